"""What federated learning is compared with: clients that learn alone, their graphs put together; or all rows pooled."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_not_negative
from gpn_bayes._util.types import Adjacency, Bools, DiGraph, Floats, Ints
from gpn_bayes.data import Dataset, read_part
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.federated.notears.clients import check_same_columns, listed
from gpn_bayes.graphs import metrics


class _Combination(GraphEstimator, ABC):
    """Fits a learner to every client's rows alone; a subclass puts the estimates together in `_combine`.

    What a client tells others here is its graph or its weights, unmasked.
    """

    learner: Any
    estimators_: list[Any]
    acyclic_: bool

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn every client's graph, and combine them.

        Parameters
        ----------
        X : list of DataFrames, arrays or paths
            One per client; the same columns in the same order.
        y : graph, optional
            The true graph, for `Best` alone.
        """
        parts = _read_tables(X)
        self.estimators_ = [clone(self.learner).fit(part) for part in parts]
        adjacency = self._combine(parts[0].names, y)
        self._keep_graph(adjacency, parts[0].names, None)
        self.acyclic_ = _is_acyclic(self.adjacency_, self._votes_for_classes())
        return self

    def _votes_for_classes(self) -> bool:
        """Return whether edges that are there both ways are undirected ones, not cycles."""
        return any(_has_lines(one.adjacency_) for one in self.estimators_)

    @abstractmethod
    def _combine(self, names: tuple[str, ...], truth: Any) -> np.ndarray:
        """Return the adjacency matrix that the clients' graphs make together."""

    def _dag(self) -> DiGraph:
        if not bool(graphs.is_acyclic(self.adjacency_)):
            raise ValueError("only DAGs have a score; the combination of the clients' graphs has a cycle")
        return self.graph_


class Voting(_Combination):
    """Keep the edges that more than half of the clients found, each alone.

    The result may have cycles: it is left as it is, and `acyclic_` says so.

    Parameters
    ----------
    learner : learner
        What every client uses, such as ``NOTEARS()``, ``NOTEARSMLP()``, ``PC()`` or ``HillClimbing()``.
    cpdag : bool, default False
        Whether clients vote with equivalence classes: DAGs are replaced by their CPDAG first. An undirected edge is a
        vote for both directions, and those of `PC` always are.

    Attributes
    ----------
    graph_, adjacency_
        As in every learner, but maybe with cycles, and undirected edges both ways.
    acyclic_ : bool
        Whether there is no directed cycle, of edges that aren't undirected.
    shares_ : ndarray, shape (d, d)
        The share of the clients that found each edge.
    estimators_ : list
        The clients' fitted learners.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import PC
    >>> table = simulate.linear(nx.DiGraph([("raf", "erk"), ("pka", "erk")]), n_rows=600, random_seed=1)
    >>> vote = Voting(PC()).fit([table[:200], table[200:400], table[400:]])
    >>> sorted(vote.graph_.edges), vote.acyclic_
    ([('pka', 'erk'), ('raf', 'erk')], True)
    """

    shares_: Floats

    def __init__(self, learner: Any, cpdag: bool = False) -> None:
        self.learner = learner
        self.cpdag = cpdag

    def _combine(self, names: tuple[str, ...], truth: Any) -> Bools:
        votes = [_class_of(one.adjacency_) if self.cpdag else one.adjacency_ for one in self.estimators_]
        self.shares_ = np.mean(votes, axis=0)
        return self.shares_ > 0.5

    def _votes_for_classes(self) -> bool:
        return self.cpdag or super()._votes_for_classes()


class Averaging(_Combination):
    """Average the clients' weights, and cut off those below a threshold.

    The result may have cycles: it is left as it is, and `acyclic_` says so.

    Parameters
    ----------
    learner : learner
        What every client uses; one with `raw_weights_`, such as ``NOTEARS()`` or ``NOTEARSMLP()``.
    threshold : float, default 0.3
        Magnitudes below it become zero.

    Attributes
    ----------
    graph_, adjacency_
        As in every learner, but maybe with cycles.
    weights_, raw_weights_ : ndarray, shape (d, d)
        The average with and without the threshold.
    acyclic_ : bool
        Whether there is no cycle.
    estimators_ : list
        The clients' fitted learners.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import NOTEARS
    >>> table = simulate.linear(nx.DiGraph([("raf", "erk"), ("pka", "erk")]), n_rows=400, random_seed=1)
    >>> average = Averaging(NOTEARS(check_scale=False, random_state=1)).fit([table[:200], table[200:]])
    >>> sorted(average.graph_.edges)
    [('pka', 'erk'), ('raf', 'erk')]
    """

    weights_: Floats
    raw_weights_: Floats

    def __init__(self, learner: Any, threshold: float = 0.3) -> None:
        self.learner = learner
        self.threshold = threshold

    def _combine(self, names: tuple[str, ...], truth: Any) -> Bools:
        check_not_negative("threshold", self.threshold)
        self.raw_weights_ = np.mean([one.raw_weights_ for one in self.estimators_], axis=0)
        self.weights_ = np.where(np.abs(self.raw_weights_) >= self.threshold, self.raw_weights_, 0.0)
        kept: Bools = self.weights_ != 0
        return kept


class Best(_Combination):
    """Take the client's graph that is nearest to the truth, which nobody has: for comparisons alone.

    Parameters
    ----------
    learner : learner
        What every client uses.

    Attributes
    ----------
    graph_, adjacency_
        As in every learner.
    client_ : int
        Whose graph it is, from 0 on.
    distances_ : ndarray of int
        The SHD of every client's graph.
    estimators_ : list
        The clients' fitted learners.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import PC
    >>> dag = nx.DiGraph([("raf", "erk"), ("pka", "erk")])
    >>> table = simulate.linear(dag, n_rows=400, random_seed=1)
    >>> Best(PC()).fit([table[:10], table[10:]], dag).client_
    1
    """

    client_: int
    distances_: Ints

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def _combine(self, names: tuple[str, ...], truth: Any) -> Adjacency:
        if truth is None:
            raise ValueError("the best client is the one nearest to the truth; give the true graph: fit(tables, truth)")
        self.distances_ = np.array([metrics.shd(one.graph_, truth) for one in self.estimators_])
        self.client_ = int(self.distances_.argmin())
        adjacency: Adjacency = self.estimators_[self.client_].adjacency_
        return adjacency


class AllData(GraphEstimator):
    """Fit the learner to all rows pooled: what federated learning would like to reach.

    Parameters
    ----------
    learner : learner
        Any learner.

    Attributes
    ----------
    graph_, adjacency_
        Those of the learner.
    estimator_
        The fitted learner.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import PC
    >>> table = simulate.linear(nx.DiGraph([("raf", "erk"), ("pka", "erk")]), n_rows=400, random_seed=1)
    >>> sorted(AllData(PC()).fit([table[:200], table[200:]]).graph_.edges)
    [('pka', 'erk'), ('raf', 'erk')]
    """

    estimator_: Any

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Iterable[Any], y: None = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the graph.

        Parameters
        ----------
        X : list of DataFrames, arrays or paths
            One per client; the same columns in the same order.
        y : None
            Ignored.
        """
        parts = _read_tables(X)
        rows = np.concatenate([part.numeric("pooling") for part in parts])
        pooled = Dataset.read(pd.DataFrame(rows, columns=pd.Index(parts[0].names)))
        self.estimator_ = clone(self.learner).fit(pooled)
        self._keep_graph(self.estimator_.adjacency_, pooled.names, pooled)
        return self

    def _dag(self) -> DiGraph:
        dag: DiGraph = self.estimator_._dag()
        return dag


def _read_tables(tables: Iterable[Any]) -> list[Dataset]:
    parts = [read_part(table) for table in listed(tables)]
    if not parts:
        raise ValueError("at least one client is needed; received none")
    check_same_columns(parts)
    return parts


def _has_lines(adjacency: Adjacency) -> bool:
    """Return whether there are undirected edges."""
    return bool(((adjacency != 0) & (adjacency.T != 0)).any())


def _class_of(adjacency: Adjacency) -> Adjacency:
    """Return the CPDAG of a DAG; what has undirected edges is taken for one."""
    return adjacency if _has_lines(adjacency) else graphs.cpdag(adjacency)


def _is_acyclic(adjacency: Adjacency, with_lines: bool) -> bool:
    """Return whether there is no cycle; undirected edges, if there may be any, are part of none."""
    directed = (adjacency != 0) & (adjacency.T == 0) if with_lines else adjacency != 0
    return bool(graphs.is_acyclic(directed.astype(np.int8)))
