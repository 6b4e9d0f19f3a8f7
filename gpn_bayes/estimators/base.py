"""What all point estimates have in common: a graph, and its value under any score."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from gpn_bayes import graphs, scores
from gpn_bayes._util.cells import safe_html
from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Adjacency, DiGraph, Floats
from gpn_bayes.data import Data, TableKeywords, described, warn_of_noise
from gpn_bayes.estimators.arrays import check_array_input
from gpn_bayes.estimators.limits import warn_of_impossible_pairs, warn_of_limit, warn_of_sets
from gpn_bayes.estimators.method_and_parameter import method_and_parameter
from gpn_bayes.estimators.predicting import mean_log_density, predictive_scorer
from gpn_bayes.estimators.problem import Problem, read_problem
from gpn_bayes.exports import Exports
from gpn_bayes.exports.formats import UNDIRECTED


class GraphEstimator(Exports, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A learner that returns one graph.

    A subclass implements `fit`, which calls `_keep_graph` and returns itself.

    Attributes
    ----------
    graph_ : networkx.DiGraph
        The estimate.
    adjacency_ : ndarray of int8, shape (n, n)
        Entry (i, j) is 1 where i -> j.
    feature_names_in_ : ndarray of str
        The variables, in the user's order.
    n_features_in_ : int
        Their number.
    """

    graph_: DiGraph
    adjacency_: Adjacency
    feature_names_in_: NDArray[np.object_]
    n_features_in_: int
    _data: Data | None

    def _keep_graph(self, adjacency: Adjacency, names: Sequence[str], data: Data | None) -> None:
        """Set what every fitted learner has; `data` is None where a learner never saw pooled rows."""
        self.adjacency_ = np.ascontiguousarray(adjacency, dtype=np.int8)
        self.graph_ = graphs.to_networkx(self.adjacency_, list(names))
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self._data = data
        warn_of_noise(data)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name.

        Parameters
        ----------
        deep : bool
            As in scikit-learn: whether to include the settings of settings that are estimators.

        Examples
        --------
        >>> from gpn_bayes.estimators import HillClimbing
        >>> HillClimbing(score="bge").get_params()["score"]
        'bge'
        """
        parameters: dict[str, Any] = super().get_params(deep)
        # As an attribute, `score` is the method.
        return parameters | {"score": vars(self)["score"]} if "score" in parameters else parameters

    @method_and_parameter
    def score(self, X: Any, y: None = None) -> float:  # noqa: N803 (scikit-learn's name)
        """Return how well the estimate predicts other rows, such as those that cross-validation holds out.

        It is the mean over the rows of log p(row | rows of `fit`, estimate): parameters are integrated out under the
        learner's own ``score``, or else under BGe for numbers and BDeu for categories. Higher is better. Densities are
        in units of the table, so that learners with different scores can be compared. For another measure, give
        scikit-learn a function: ``scoring=lambda learner, rows, y=None: learner.log_score("gp", rows)``.

        Parameters
        ----------
        X : DataFrame or array
            The rows. The columns of a table are matched by name, those of an array by position.
        y : None
            Ignored; for compatibility with scikit-learn.

        Raises
        ------
        NotFittedError
            If the learner isn't fitted; it is a ValueError.
        ValueError
            If it keeps no data, for rows without one of the variables, and for levels that didn't occur in `fit`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> est = gpn.estimators.HillClimbing(score="bge").fit(data[:400])
        >>> round(est.score(data[400:]), 2), est.get_params()["score"]
        (-4.71, 'bge')
        """
        rows = self._check_rows(X)
        return mean_log_density(self._own_score, self._kept_data("predict from"), self._dag(), rows)

    @property
    def _own_score(self) -> Any:
        """The constructor's ``score`` (which, as an attribute, is the method); None where it has none."""
        return vars(self).get("score")

    def _kept_data(self, purpose: str) -> Data:
        """Return the data of `fit`; refuse where a learner never saw pooled rows."""
        if self._data is None:
            raise ValueError(f"a learner must keep its data to {purpose}; {type(self).__name__} keeps none")
        return self._data

    def _check_input(self, data: Any, table: TableKeywords) -> Any:
        """Return data for `fit` with what was said of them; arrays are checked as scikit-learn does, and no others."""
        return described(check_array_input(data, type(self).__name__), table)

    def _check_rows(self, data: Any) -> Any:
        """Return data for a fitted learner; the columns of an array are those of `fit`, in that order."""
        self._check_fitted("scored")
        label = type(self).__name__
        if getattr(data, "ndim", 0) == 2 and not isinstance(data, pd.DataFrame):
            if data.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {data.shape[1]} features, but {label} is expecting {self.n_features_in_} features as input"
                )
            return pd.DataFrame(check_array_input(data, label), columns=self.feature_names_in_).infer_objects()
        return data

    def _check_fitted(self, purpose: str) -> None:
        if not hasattr(self, "adjacency_"):
            label = type(self).__name__
            raise NotFittedError(f"a learner must be fitted before it is {purpose}; {label} isn't: call fit first")

    def _graph_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        self._check_one(which, threshold)
        graph = self.graph_.copy()
        weights = getattr(self, "weights_", None)
        names = self.feature_names_in_
        for i, j in np.argwhere(self.adjacency_):
            edge = graph.edges[names[i], names[j]]
            if weights is not None:
                edge["weight"] = float(weights[i, j])
            if self.adjacency_[j, i]:
                edge[UNDIRECTED] = True
        return graph

    def _dag_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        self._check_one(which, threshold)
        return self._dag()

    def _check_one(self, which: str | None, threshold: float | None) -> None:
        self._check_fitted("exported")
        for name, value in (("which", which), ("threshold", threshold)):
            if value is not None:
                raise ValueError(f"a learner has one graph to export; received {name}={shown(value)}")

    def _table_scorer(self) -> scores.Scorer:
        self._check_fitted("exported")
        return predictive_scorer(self._own_score, self._kept_data("have tables"))

    def log_score(self, score: Any, data: Any = None) -> float:
        """Return the score of the estimate: the sum over its nodes.

        Parameters
        ----------
        score : Score or str
            Any score, such as "bge", "gp" or "bic".
        data : DataFrame, optional
            The data to score it on; by default those of `fit`. The columns of an array are taken to be those of `fit`.

        Raises
        ------
        NotFittedError
            If the learner isn't fitted; it is a ValueError.
        ValueError
            If it keeps no data to score on, or is given those of other variables.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> est = gpn.estimators.HillClimbing(score="bic").fit(data)
        >>> round(est.log_score("bge"), 1), round(est.log_score("bge", data=data[:400]), 1)
        (-4117.2, -1940.2)
        """
        data = self._check_rows(data)
        if data is None and self._data is None:
            raise ValueError(f"{type(self).__name__} keeps no data; pass some to log_score(score, data=…)")
        scorer = scores.by_name(score).bind(self._data if data is None else data)
        odd = set(scorer.names) ^ set(self.feature_names_in_)
        if odd:
            raise ValueError(f"the data must have the estimate's variables; {min(odd)!r} is in only one of the two")
        return scorer.total(self._dag())

    def report(self, path: str | PathLike[str], overwrite: bool = False) -> Path:
        """Write an HTML report of the estimate, one file that works offline: the network, its edges and its score.

        Parameters
        ----------
        path : path
            Where to write, such as ``"report.html"``.
        overwrite : bool, default False
            Whether an existing file may be replaced.

        Returns
        -------
        Path
            Where the report is.

        Raises
        ------
        NotFittedError
            If the learner isn't fitted; it is a ValueError.
        ValueError
            If the file exists, or its folder doesn't.

        Examples
        --------
        >>> import tempfile
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> est = gpn.estimators.HillClimbing(score="bge").fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     est.report(f"{folder}/report.html").name
        'report.html'
        """
        from gpn_bayes.estimators.describing import describe
        from gpn_bayes.report import write_estimate_report

        self._check_fitted("reported")
        return write_estimate_report(describe(self), path, overwrite)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram and, once fitted, the network below it."""
        diagram: str = super()._repr_html_inner()
        return diagram + self._network_html() if hasattr(self, "adjacency_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    @safe_html
    def _network_html(self) -> str:
        from gpn_bayes.estimators.describing import learner_cell

        return learner_cell(self)

    def _dag(self) -> DiGraph:
        """Return the DAG to score: the estimate, or one that represents it."""
        return self.graph_


class ScoreBasedEstimator(GraphEstimator, ABC):
    """A learner that looks for the DAG with the highest score.

    A subclass implements `_search`. Its constructor keeps the settings below, and its own.

    Parameters
    ----------
    score : Score or str
        What to maximise.
    max_parents : int, optional
        Maximum number of parents per node; see `Problem.max_parents` for the default.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness, in learners that use any.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    log_score_ : float
        The score of the estimate.
    weights_ : ndarray of float, shape (n, n)
        By how much the score would fall without each edge, the rest left as it is; 0 where there is none. A required
        edge may have a negative one.
    max_parents_ : int
        The limit that was used: the one given, or else how many parents a node can have.
    """

    max_parents: int | None
    required: Any
    forbidden: Any
    tiers: Any
    random_state: Any
    progressbar: bool
    log_score_: float
    weights_: Floats
    max_parents_: int
    searched_up_to_: int | None

    def fit(self, X: Any, y: None = None, **table: Unpack[TableKeywords]) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the graph.

        Parameters
        ----------
        X : DataFrame, array, path, Table, Dataset or SufficientStatistics
            Variables are columns.
        y : None
            Ignored; for compatibility with scikit-learn.
        **table
            What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``weights=``, ….
        """
        problem = read_problem(
            self._check_input(X, table), self._own_score, self.max_parents, self.required, self.forbidden, self.tiers
        )
        warn_of_impossible_pairs(problem)
        self.max_parents_ = problem.max_parents
        adjacency = self._search(problem)
        warn_of_limit(problem, adjacency, self.max_parents_)
        self._keep_graph(adjacency, problem.names, problem.data)
        self.weights_ = problem.edge_gains(adjacency)
        self.log_score_ = problem.total(adjacency)
        return self

    def __sklearn_tags__(self) -> Any:
        """Say what input the learner takes: for the scores of counts, categories."""
        tags = super().__sklearn_tags__()
        name = getattr(self._own_score, "name", self._own_score)
        tags.input_tags.categorical = name in ("bdeu", "k2")
        return tags

    def _note_searched(self, up_to: int | None) -> None:
        """Keep up to which size all parent sets are searched, and warn where larger ones are left out."""
        self.searched_up_to_ = up_to
        warn_of_sets(up_to)

    @abstractmethod
    def _search(self, problem: Problem) -> np.ndarray:
        """Return the adjacency matrix of the best DAG; may set attributes of its own."""
