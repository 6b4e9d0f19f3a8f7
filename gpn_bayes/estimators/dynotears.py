"""DYNOTEARS: instantaneous effects in a time series, a DAG, and lagged effects."""

from collections.abc import Iterable
from typing import Any, Self, Unpack

import numpy as np

from gpn_bayes import graphs, scores
from gpn_bayes._util.checks import check_count, check_not_negative, shown
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Bools, DiGraph, Floats
from gpn_bayes.data import Dataset, TableKeywords
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.lagged_data import LaggedData, lagged_graph, lagged_name, read_series
from gpn_bayes.estimators.lagged_orders import OrderProblem, best_orders
from gpn_bayes.estimators.method_and_parameter import method_and_parameter
from gpn_bayes.estimators.notears.dags import cut
from gpn_bayes.estimators.predicting import mean_log_density
from gpn_bayes.scores.prior import GraphPrior


class DYNOTEARS(GraphEstimator):
    """Learn a linear network of a time series: X_t = X_t W + X_{t-1} A_1 + … + X_{t-p} A_p + noise, with W acyclic.

    The objective is that of Pamfil et al. (2020): the squared errors, divided by twice the number of times, plus
    lambda_w times the absolute values of W and lambda_a times those of the A. With an order of the variables given, its
    minimum is a lasso for every variable, on its predecessors and on the past; so the search goes over orders instead
    of penalising cycles, and W is that of a DAG before any threshold. It needs nothing but the covariances of a time
    with those before it. Data are centred, not scaled: the order of the variables may depend on their variances.

    Parameters
    ----------
    lags : int, default 1
        How many earlier times act on a time: p.
    lambda_w, lambda_a : float, default 0.05
        Weights of the absolute values within a time, and of the lagged ones.
    threshold, lagged_threshold : float, default 0.3 and 0.1
        Weights smaller in magnitude are left out, within a time and lagged.
    starts : int, default 5
        Number of orders the search begins at: one that takes the variable with the least remaining variance first, and
        random ones.
    series : str, optional
        The column of a table that identifies several realisations, such as "patient"; it isn't a variable.
    required, forbidden : iterable of (parent, child)
        Edges within a time that must, or must not, be there. Required ones have no penalty.
    forbidden_lagged : iterable of (parent, child) or (parent, child, lag)
        Lagged edges that must not be there, at all lags or at one.
    random_state : int, Generator or None
        Source of randomness for the random orders.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_
        The DAG within a time, over the variables' own names.
    lagged_graph_ : networkx.DiGraph
        All edges, with their ``weight``, over names such as "x[t]" and "x[t-1]"; every edge ends at a "[t]".
    weights_ : ndarray of float, shape (d, d)
        W: entry (i, j) is the weight of i -> j; 0 where there is no edge.
    lagged_weights_ : ndarray of float, shape (lags, d, d)
        The A: entry (k, i, j) is the weight of i, k + 1 times before, on j.
    raw_weights_, raw_lagged_weights_ : ndarray of float
        Both before the thresholds.
    objective_ : float
        What was minimised, at the raw weights.
    objectives_ : ndarray of float
        The minimum that each start led to.
    interrupted_ : bool
        Whether Ctrl-C ended the search; the best so far is kept.

    Examples
    --------
    >>> import networkx as nx
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import DYNOTEARS
    >>> series = simulate.svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], [200, 300], random_seed=1)
    >>> learner = DYNOTEARS(lags=1, random_state=1).fit(series)
    >>> list(learner.graph_.edges), sorted(learner.lagged_graph_.edges)
    ([('rain', 'flow')], [('flow[t-1]', 'flow[t]'), ('rain[t-1]', 'rain[t]'), ('rain[t]', 'flow[t]')])
    """

    lagged_graph_: DiGraph
    weights_: Floats
    lagged_weights_: Floats
    raw_weights_: Floats
    raw_lagged_weights_: Floats
    objective_: float
    objectives_: Floats
    interrupted_: bool
    _lagged: LaggedData

    def __init__(
        self,
        lags: int = 1,
        lambda_w: float = 0.05,
        lambda_a: float = 0.05,
        *,
        threshold: float = 0.3,
        lagged_threshold: float = 0.1,
        starts: int = 5,
        series: str | None = None,
        required: Any = (),
        forbidden: Any = (),
        forbidden_lagged: Any = (),
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.lags = lags
        self.lambda_w = lambda_w
        self.lambda_a = lambda_a
        self.threshold = threshold
        self.lagged_threshold = lagged_threshold
        self.starts = starts
        self.series = series
        self.required = required
        self.forbidden = forbidden
        self.forbidden_lagged = forbidden_lagged
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: Any, y: None = None, **table: Unpack[TableKeywords]) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn both graphs.

        Parameters
        ----------
        X : DataFrame, array, path, Table or Dataset, or list of DataFrames and arrays
            A series with times as rows, or several realisations of it, of any lengths above `lags`.
        y : None
            Ignored; for compatibility with scikit-learn.
        **table
            What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``weights=``, ….
        """
        for name in ("lambda_w", "lambda_a", "threshold", "lagged_threshold"):
            check_not_negative(name, getattr(self, name))
        for name in ("lags", "starts"):
            check_count(name, getattr(self, name), least=1)
        lagged = read_series(self._check_input(X, table), int(self.lags), self.series)
        prior = GraphPrior(lagged.names, required=self.required, forbidden=self.forbidden)
        orders = best_orders(
            self._problem(lagged, prior), self.starts, generator("random_state", self.random_state), self.progressbar
        )
        d = len(lagged.names)
        self.raw_weights_ = orders.weights[:d]
        self.raw_lagged_weights_ = orders.weights[d:].reshape(lagged.lags, d, d)
        self.objective_, self.objectives_ = float(orders.objectives.min()), orders.objectives
        self.interrupted_ = orders.interrupted
        self._keep_edges(lagged, prior.required)
        return self

    def _problem(self, lagged: LaggedData, prior: GraphPrior) -> OrderProblem:
        later = ~_lagged_matrix(self.forbidden_lagged, lagged.names, lagged.lags)
        d = len(lagged.names)
        penalties = np.full((d * (lagged.lags + 1), d), float(self.lambda_a))
        penalties[:d] = np.where(prior.required, 0.0, self.lambda_w)
        allowed = np.concatenate([~prior.forbidden, *later])
        return OrderProblem(lagged.moments(), penalties, allowed, graphs.ancestors(prior.required))

    def _keep_edges(self, lagged: LaggedData, required: Bools) -> None:
        self.weights_ = cut(self.raw_weights_, self.threshold, required)
        self.lagged_weights_ = cut(self.raw_lagged_weights_, self.lagged_threshold, np.zeros(1, dtype=bool))
        within = (self.weights_ != 0) | required
        self._keep_graph(within, lagged.names, None)
        self._lagged = lagged
        self.lagged_graph_ = lagged_graph(lagged.names, within, self.weights_, self.lagged_weights_)

    @method_and_parameter
    def score(self, X: Any, y: None = None) -> float:  # noqa: N803 (scikit-learn's name)
        """Return how well the estimate predicts another series: the mean log density of a time given those before it.

        Parameters are integrated out under BGe, given the series of `fit`; see `log_score` for other scores.

        Parameters
        ----------
        X : series, or list of series
            As for `fit`.
        y : None
            Ignored; for compatibility with scikit-learn.

        Examples
        --------
        >>> import networkx as nx
        >>> import gpn_bayes as gpn
        >>> [series] = gpn.simulate.svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], 300, random_seed=1)
        >>> round(gpn.estimators.DYNOTEARS(random_state=1).fit(series[:200]).score(series[200:]), 2)
        -2.86
        """
        rows = self._read_again(self._check_rows(X)).frame()
        now = [lagged_name(name, 0) for name in self._lagged.names]
        return mean_log_density(None, Dataset.read(self._lagged.frame()), self.lagged_graph_, rows, now)

    def _read_again(self, series: Any) -> LaggedData:
        """Return other series of the variables of `fit`."""
        lagged = read_series(series, self._lagged.lags, self.series)
        if set(lagged.names) != set(self._lagged.names):
            odd = min(set(lagged.names) ^ set(self._lagged.names))
            raise ValueError(f"the data must have the estimate's variables; {odd!r} is in only one of the two")
        return lagged

    def _graph_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        """Return the edges of all times."""
        self._check_one(which, threshold)
        return self.lagged_graph_.copy()

    def _dag_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        return self._graph_to_export(which, threshold)

    def log_score(self, score: Any, data: Any = None) -> float:
        """Return the score of all edges: the sum over the variables at a time, given their parents.

        Parameters
        ----------
        score : Score or str
            Any score, such as "bge" or "gp".
        data : series, or list of series, optional
            The data to score it on; by default those of `fit`.

        Examples
        --------
        >>> import networkx as nx
        >>> import gpn_bayes as gpn
        >>> series = gpn.simulate.svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], 300, random_seed=1)
        >>> round(DYNOTEARS(random_state=1).fit(series).log_score("bge"), 1)
        -537.9
        """
        data = self._check_rows(data)
        lagged = self._lagged if data is None else self._read_again(data)
        scorer = scores.by_name(score).bind(lagged.frame())
        now = [lagged_name(name, 0) for name in lagged.names]
        return sum(scorer.local(node, self.lagged_graph_.predecessors(node)) for node in now)


def _lagged_matrix(edges: Any, names: tuple[str, ...], lags: int) -> Bools:
    """Return forbidden lagged edges as an array of shape (lags, d, d)."""
    matrix = np.zeros((lags, len(names), len(names)), dtype=bool)
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ValueError(
            f"forbidden_lagged must hold edges (parent, child) or (parent, child, lag); received {shown(edges)}"
        )
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, tuple | list) or len(edge) not in (2, 3):
            raise ValueError(f"a lagged edge must be (parent, child) or (parent, child, lag); received {shown(edge)}")
        parent, child = (graphs.node_index(node, names) for node in edge[:2])
        if len(edge) == 2:
            matrix[:, parent, child] = True
            continue
        if edge[2] not in range(1, lags + 1):
            raise ValueError(f"the lag of an edge must be a whole number from 1 to {lags}; received {shown(edge[2])}")
        matrix[edge[2] - 1, parent, child] = True
    return matrix
