"""Baselines of federated learning: votes, averages, the best client and pooled rows; cycles are left and told."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

from gpn_bayes import graphs, simulate
from gpn_bayes.estimators import NOTEARS, PC, HillClimbing
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.federated import AllData, Averaging, Best, Voting
from tests.federated import split

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

COLLIDER = nx.DiGraph([("raf", "erk"), ("pka", "erk")])


class Told(GraphEstimator):
    """Finds the weights that stand in the first rows of its table."""

    def fit(self, X, y=None):
        d = X.values.shape[1]
        self.raw_weights_ = X.values[:d].copy()
        self._keep_graph(np.abs(self.raw_weights_) >= 0.3, X.names, X)
        return self


def clients_with(*weights):
    """Return a client's table per matrix of weights; the last row keeps columns from being constant."""
    return [np.vstack([matrix, np.arange(1.0, len(matrix) + 1)]) for matrix in weights]


def edges(d, **weights):
    matrix = np.zeros((d, d))
    for places, weight in weights.items():
        matrix[int(places[1]), int(places[2])] = weight
    return matrix


@pytest.fixture(scope="module")
def tables():
    return split(simulate.linear(COLLIDER, 600, random_seed=1), 3)


def test_more_than_half_must_agree():
    two_of_four = clients_with(edges(2, e01=1.0), edges(2, e01=1.0), edges(2), edges(2))
    three_of_four = clients_with(edges(2, e01=1.0), edges(2, e01=1.0), edges(2, e01=1.0), edges(2, e10=1.0))
    assert not Voting(Told()).fit(two_of_four).adjacency_.any()
    vote = Voting(Told()).fit(three_of_four)
    assert vote.adjacency_.tolist() == [[0, 1], [0, 0]]
    assert vote.shares_.tolist() == [[0, 0.75], [0.25, 0]]
    assert vote.acyclic_


def test_a_vote_may_be_cyclic_and_says_so():
    """Each of three clients has two of the three edges of a cycle."""
    clients = clients_with(edges(3, e01=1.0, e12=1.0), edges(3, e12=1.0, e20=1.0), edges(3, e20=1.0, e01=1.0))
    vote = Voting(Told()).fit(clients)
    assert sorted(vote.graph_.edges) == [("v1", "v2"), ("v2", "v3"), ("v3", "v1")]
    assert not vote.acyclic_
    with pytest.raises(ValueError, match="^only DAGs have a score; the combination of the clients' graphs has"):
        vote.log_score("bge", data=np.random.default_rng(1).normal(size=(20, 3)))


def test_averages_are_cut_and_may_be_cyclic():
    clients = clients_with(edges(2, e01=0.8), edges(2, e10=-0.9))
    average = Averaging(Told(), threshold=0.3).fit(clients)
    assert average.raw_weights_ == pytest.approx(np.array([[0, 0.4], [-0.45, 0]]))
    assert average.adjacency_.tolist() == [[0, 1], [1, 0]]
    assert not average.acyclic_
    strict = Averaging(Told(), threshold=0.42).fit(clients)
    assert strict.weights_.tolist() == [[0, 0], [-0.45, 0]]
    assert strict.acyclic_


def test_the_best_client_is_the_nearest():
    clients = clients_with(edges(3, e01=1.0), edges(3, e01=1.0, e12=1.0), edges(3))
    best = Best(Told()).fit(clients, np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    assert best.client_ == 1
    assert best.distances_.tolist() == [1, 0, 2]
    assert best.adjacency_.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_pooled_rows_are_those_of_all_clients(tables):
    pooled = AllData(PC()).fit(tables)
    alone = PC().fit(pd.concat(tables))
    assert (pooled.adjacency_ == alone.adjacency_).all()
    assert pooled.log_score("bge") == pytest.approx(alone.log_score("bge"))


def test_classes_are_voted_on(tables):
    """A chain's edges have no direction in its class: the vote leaves them undirected, which is no cycle."""
    chain = split(simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 900, random_seed=2), 3)
    vote = Voting(HillClimbing(score="bic", random_state=1), cpdag=True).fit(chain)
    assert vote.adjacency_.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert vote.acyclic_
    assert (Voting(PC()).fit(chain).adjacency_ == vote.adjacency_).all()
    collider = Voting(HillClimbing(score="bic", random_state=1), cpdag=True).fit(tables)
    assert (collider.adjacency_ == graphs.cpdag(nx.to_numpy_array(COLLIDER, ["raf", "erk", "pka"]))).all()


def test_learners_of_clients_are_those_given(tables):
    learner = NOTEARS(lambda1=0.05, check_scale=False, random_state=1)
    vote = Voting(learner).fit(tables)
    assert sorted(vote.graph_.edges) == sorted(COLLIDER.edges)
    assert not hasattr(learner, "graph_")
    for one, table in zip(vote.estimators_, tables, strict=True):
        assert (one.raw_weights_ == clone(learner).fit(table).raw_weights_).all()
    assert sorted(Averaging(learner).fit(tables).graph_.edges) == sorted(COLLIDER.edges)


@pytest.mark.parametrize("baseline", [Voting, Averaging, Best, AllData])
def test_refusals(baseline, tables):
    assert isinstance(clone(baseline(PC())), BaseEstimator)
    with pytest.raises(ValueError, match="^fit needs a list of tables, one per client; received DataFrame$"):
        baseline(PC()).fit(tables[0])
    with pytest.raises(ValueError, match="^at least one client is needed; received none$"):
        baseline(PC()).fit([])
    with pytest.raises(ValueError, match="same columns in the same order; client 2 has erk, raf, pka, the first raf"):
        baseline(PC()).fit([tables[0], tables[1][["erk", "raf", "pka"]]])


def test_the_best_client_needs_the_truth(tables):
    with pytest.raises(ValueError, match="^the best client is the one nearest to the truth; give the true graph: fit"):
        Best(PC()).fit(tables)


def test_clients_keep_their_rows(tables):
    with pytest.raises(ValueError, match="^Voting keeps no data; pass some to log_score"):
        Voting(PC()).fit(tables).log_score("bge")
