"""Chains under BGe show which parent sets slow scores should look at first."""

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.sampling import stages, tables
from gpn_bayes.sampling.chains import Draws
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.rounds import Scouted, edge_frequencies, grow
from gpn_bayes.sampling.slow_scores import linear_scouts
from gpn_bayes.sampling.slow_scores.linear_scouts import scout
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores.cache import ScoreCache
from tests.benchmarks.field.data import problem
from tests.draws import asked, assert_same_draws
from tests.rough_scores import Noisy

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

# BGe, by a scorer that has no closed form.
SLOW = Noisy(rough=0)
N = 8


@pytest.fixture
def few_are_many(monkeypatch):
    """Score no table in full, however small."""
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 0)


def simulated():
    dag = gpn.simulate.random_dag(N, edges_per_node=1.5, random_seed=1)
    return gpn.simulate.linear(dag, n_rows=200, random_seed=1)


def scouted(data, **settings):
    """Return what scouts find for a run, if they are sent."""
    run = prepare(data, RunOptions(**asked(**{"score": SLOW, "draws": 20, "tune": 20, "random_seed": 1} | settings)))
    return scout(run, progressbar=False)


def without_scouts(*arguments):
    """Stand in for `scout`."""
    return


def by_both(table):
    """Return the edge probabilities of a table under BGe, and under the same score as if it were slow."""
    settings = {
        "prior": "fair",
        "space": gpn.Space(max_parents=5),
        "draws": 300,
        "tune": 300,
        "random_seed": 1,
        "progressbar": False,
    }
    return [gpn.sample(table, score=score, **settings).edge_probabilities().to_numpy() for score in ("bge", SLOW)]


# Its v7 has five parents, three of which forward selection doesn't find.
HARD = ("linear", 20, 100, 2)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parents_that_tell_little_one_by_one_are_found():
    closed_form, slow = by_both(problem(*HARD).table)
    assert np.abs(closed_form - slow).max() < 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_scouts_they_are_missed(monkeypatch):
    """Negative control."""
    monkeypatch.setattr(stages, "scout", without_scouts)
    closed_form, slow = by_both(problem(*HARD).table)
    assert np.abs(closed_form - slow).max() > 0.9


def test_scouts_find_the_edges_of_linear_relations():
    data = simulated()
    exact = gpn.sample(data, prior="fair", draws=10, random_seed=1, progressbar=False).edge_probabilities()
    found = scouted(data, prior="fair", candidates="greedy", sampler="partition", draws=200, tune=200)
    np.testing.assert_allclose(found.probabilities, exact, atol=0.1)
    assert {node for node, _ in found.sets} == set(range(N))
    likely = {(i, j) for i, j in np.argwhere(exact.to_numpy() > 0.5).tolist()}
    assert likely <= {(parent, node) for node, parents in found.sets for parent in parents}


def test_sets_are_rare_below_a_hundredth_of_the_draws_and_edges_are_counted_over_all_chains():
    dags = np.zeros((2, 100, 3, 3), dtype=np.int8)
    dags[0, :2, 0, 1] = 1
    dags[0, 2, 0, 2] = 1
    dags[1, 50:, 2, 1] = 1
    parents = graphs.pack(dags)
    assert linear_scouts._not_rare(parents) == [(0, ()), (1, ()), (1, (0,)), (1, (2,)), (2, ())]
    found = edge_frequencies(Draws(*[None] * 9)._replace(parents=parents))
    np.testing.assert_allclose(found, [[0, 0.01, 0.005], [0, 0, 0], [0, 0.25, 0]])


def test_they_keep_to_what_is_known_about_edges():
    data = simulated()
    names = list(data.columns)
    known = {"required": [(names[0], names[1])], "forbidden": [(names[2], names[3])], "max_parents": 2}
    found = scouted(data, candidates="greedy", sampler="partition", **known)
    assert found.probabilities[0, 1] == pytest.approx(1.0) and found.probabilities[2, 3] == 0.0
    assert max(len(parents) for _, parents in found.sets) <= 2


def test_they_are_sent_only_where_candidates_of_slow_scores_are_looked_for():
    data = simulated()
    names = list(data.columns)
    settings = {"sampler": "partition", "candidates": "greedy"}
    assert scouted(data, **settings) is not None
    assert scouted(data, **settings | {"score": "bge"}) is None
    assert scouted(data) is None  # all others are candidates
    assert scouted(data, **settings | {"candidates": dict.fromkeys(names, []) | {names[0]: [names[1]]}}) is None
    categories = data.assign(**{names[0]: pd.Categorical(data[names[0]] > 0)})
    assert scouted(categories, **settings | {"score": "gp"}) is None


def test_few_sets_are_all_scored_even_so():
    run = prepare(
        simulated(),
        RunOptions(SLOW, draws=20, tune=20, random_seed=1, space=gpn.Space(candidates="greedy", plus_one=True)),
    )
    tabulator = Tabulator(ScoreCache(run.scorer), run.prior, progressbar=False)
    found = Scouted([(0, (3, 4, 5))], np.zeros((N, N)))
    growth = grow(run, [[] for _ in range(N)], tabulator, progressbar=False, scouted=found)
    assert growth.audit is None and not any(tabulator.scored.counts)


@pytest.mark.parametrize("expand", [True, False])
def test_sets_are_scored_and_candidates_added_as_far_as_the_space_may_grow(few_are_many, expand):
    data = simulated()
    run = prepare(
        data,
        RunOptions(
            SLOW,
            draws=20,
            tune=20,
            random_seed=1,
            space=gpn.Space(candidates="greedy", plus_one=True, expand=expand),
            sampler="partition",
        ),
    )
    tabulator = Tabulator(ScoreCache(run.scorer), run.prior, progressbar=False)
    probabilities = np.zeros((N, N))
    probabilities[[3, 4, 5], 0] = 0.9
    lists = [[1], *([] for _ in range(N - 1))]
    growth = grow(run, lists, tabulator, progressbar=False, scouted=Scouted([(0, (3, 4, 5))], probabilities))
    assert 1 in growth.space.lists[0]  # a candidate stays, although it has no probability there
    assert ({3, 4, 5} <= set(growth.space.lists[0])) == expand
    assert ((3, 4, 5) in tabulator.scored.nodes[0].places) == expand


def test_ctrl_c_ends_a_run_that_then_goes_on(few_are_many, monkeypatch, tmp_path):
    data = simulated()
    settings = {
        "score": SLOW,
        "space": gpn.Space(candidates="greedy"),
        "sampler": "partition",
        "draws": 50,
        "tune": 50,
        "random_seed": 1,
        "progressbar": False,
    }
    real = linear_scouts.run_chains
    with monkeypatch.context() as interrupting:
        interrupting.setattr(
            linear_scouts, "run_chains", lambda *args, **kwargs: real(*args, **kwargs)._replace(interrupted=True)
        )
        with pytest.raises(KeyboardInterrupt, match="^interrupted before the search space was found$"):
            gpn.sample(data, cache=tmp_path / "run.sqlite", **settings)
    again = gpn.sample(data, cache=tmp_path / "run.sqlite", **settings)
    assert_same_draws(again, gpn.sample(data, **settings))
