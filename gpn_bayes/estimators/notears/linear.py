"""NOTEARS for linear structural equations: the learner."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import check_choice, check_count, check_not_negative, shown
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency, Floats, Ints
from gpn_bayes.data import TableKeywords
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.notears.continuous import ACYCLICITIES, augmented_lagrangian, central_path
from gpn_bayes.estimators.notears.dags import Removed, break_cycles, cut, removed_table
from gpn_bayes.estimators.notears.objective import LOSSES, LinearProblem, read_linear_problem
from gpn_bayes.estimators.notears.orders import START_ORDERS, Settings, Solution, refit, search_over_orders
from gpn_bayes.estimators.notears.scale import are_standardised, compare_scales, varsortability
from gpn_bayes.estimators.notears.tuning import DagScores, choose_lambda1
from gpn_bayes.estimators.quasi_newton import SOLVERS
from gpn_bayes.kernels.learners.acyclicity import exponential

METHODS = ("auto", "order-search", "central-path", "augmented-lagrangian")
_ORDER_STARTS = ("variance", "equal-variance", "lambda-path")
# Kicks: many for few variables, whose climbs take milliseconds, and fewer where each takes a second.
_ROUNDS_TIMES_VARIABLES = 6000
_ROUNDS = (20, 300)
# Regressions on rows take so much longer than those on a covariance.
_ROWS_COST = 20


class NOTEARS(GraphEstimator):
    r"""Linear structural equations X = X W + noise with a sparse, acyclic W (Zheng et al. 2018).

    It minimises

    .. math:: F(W) = \tfrac{1}{2n} \lVert X - X W \rVert^2 + \lambda \lVert W \rVert_1

    over acyclic W, on centred columns in their original units; nothing is standardised. By default it searches over
    orders of the variables, where each has its lasso regression on those before it, from several starts; the methods
    of the paper can be asked for. Weights below `threshold` are cut off at the end.

    Parameters
    ----------
    lambda1 : float or "bic"
        The penalty; "bic" takes the one whose DAG has the best `score` along a path. Required edges have no penalty.
    threshold : float or "auto"
        Magnitudes below it become zero; "auto" takes the cut whose DAG has the best `score`.
    loss : {"l2", "logistic", "poisson"}
        Least squares; or minus the average log likelihood of 0/1 columns or counts, with an intercept each.
    acyclicity : {"auto", "exponential", "polynomial", "log-det"}
        The function h of the two continuous methods; "auto" is "exponential" for the augmented Lagrangian and
        "log-det" for the central path.
    method : {"auto", "order-search", "central-path", "augmented-lagrangian"}
        "order-search": insertions over the order with refits, from the simple starts. "auto": the same, from the
        central path too. "central-path" (Bello et al. 2022) and "augmented-lagrangian" (the original): those alone. The
        result of the central path is made exactly acyclic and refitted; that of the augmented Lagrangian is left
        unchanged, with h below 1e-8.
    solver : {"orthant-wise", "proximal"}
        The quasi-Newton method of the continuous methods; "proximal" is that of the paper's section 4.2.
    starts : "auto" or sequence of str
        Where the search over orders begins: "variance", "equal-variance", "lambda-path", "central-path",
        "augmented-lagrangian", "random".
    rounds : int, optional
        How often the best minimum is left by a few random moves and searched from again; by default 6000 / d, between
        20 and 300, and a twentieth of that for the losses that need rows.
    score : Score or str
        What `lambda1="bic"` and `threshold="auto"` maximise.
    check_scale : bool
        Whether to fit standardised columns as well (least squares only), and to warn where that gives another answer.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for the moves of the search.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    weights_ : ndarray, shape (d, d)
        Entry (i, j) is the weight of i -> j: acyclic, zero below the threshold.
    raw_weights_ : ndarray, shape (d, d)
        The weights before the threshold.
    intercepts_ : ndarray, shape (d,)
        Those of the losses that have any; zero for least squares on centred columns.
    objective_ : float
        F of the raw weights.
    h_ : float
        tr exp(W * W) - d of the raw weights: 0 where they are acyclic.
    starts_ : DataFrame
        For each start, F at the order it gave and at the minimum the search reached from there.
    removed_ : DataFrame
        Parent, child and weight of entries above the threshold that were dropped to break cycles.
    lambda1_, threshold_ : float
        The penalty and the threshold that were used.
    path_ : DataFrame
        With ``lambda1="bic"``, every penalty that was tried, with its threshold, number of edges and score.
    diagnostics_ : dict
        "varsortability" of the estimate: the share of its paths that lead to a larger variance; and for least squares
        "shd_standardised", "standardised_adjacency" and "hinges_on_scale": how the answer on standardised columns
        differs.
    interrupted_ : bool
        Whether Ctrl-C ended the search early.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> dag = simulate.random_dag(5, edges_per_node=1, random_seed=1)
    >>> data = simulate.linear(dag, n_rows=500, random_seed=1)
    >>> learner = NOTEARS(random_state=1, check_scale=False).fit(data)
    >>> sorted(learner.graph_.edges) == sorted(dag.edges)
    True
    """

    lambda1_: float
    threshold_: float
    weights_: Floats
    raw_weights_: Floats
    intercepts_: Floats
    objective_: float
    h_: float
    starts_: pd.DataFrame
    removed_: pd.DataFrame
    path_: pd.DataFrame
    diagnostics_: dict[str, Any]
    interrupted_: bool

    def __init__(
        self,
        lambda1: float | str = 0.1,
        threshold: float | str = 0.3,
        loss: str = "l2",
        acyclicity: str = "auto",
        method: str = "auto",
        solver: str = "orthant-wise",
        starts: str | Sequence[str] = "auto",
        rounds: int | None = None,
        score: Any = "bic",
        check_scale: bool = True,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.lambda1 = lambda1
        self.threshold = threshold
        self.loss = loss
        self.acyclicity = acyclicity
        self.method = method
        self.solver = solver
        self.starts = starts
        self.rounds = rounds
        self.score = score
        self.check_scale = check_scale
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: Any, y: None = None, **table: Unpack[TableKeywords]) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the graph.

        Parameters
        ----------
        X : DataFrame, array, path, Table, Dataset or SufficientStatistics
            Variables are columns. Statistics suffice for least squares.
        y : None
            Ignored; for compatibility with scikit-learn.
        **table
            What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``weights=``, ….
        """
        self._check_settings()
        lambda1 = 0.0 if self.lambda1 == "bic" else float(self.lambda1)
        problem = read_linear_problem(
            self._check_input(X, table), self.loss, lambda1, self.required, self.forbidden, self.tiers
        )
        rng = generator("random_state", self.random_state)
        self._keep(problem, self._estimate(problem, self._starts(), rng))
        if self.check_scale and problem.loss == "l2":
            self._compare_scales(problem, rng)
        return self

    def _estimate(self, problem: LinearProblem, starts: tuple[str, ...], rng: np.random.Generator) -> "_Estimate":
        """Choose the penalty, minimise, choose the threshold, and break what cycles are left."""
        tuned = self.lambda1 == "bic"
        score = DagScores(self._own_score, problem) if tuned or self.threshold == "auto" else None
        orders, path = [], None
        if tuned:
            assert score is not None
            lambda1, order, path = choose_lambda1(problem, score, self.threshold, rng)
            problem = problem.with_lambda1(lambda1)
            orders.append(order)
        solution = self._solve(problem, starts, rng, orders)
        raw = solution.weights[: problem.d]
        if score is not None and self.threshold == "auto":
            threshold = score.best_threshold(break_cycles(raw, problem.required)[0])[0]
        else:
            threshold = float(self.threshold)
        weights, removed = break_cycles(cut(raw, threshold, problem.required), problem.required)
        return _Estimate(problem.lambda1, path, solution, threshold, weights, removed)

    def _solve(
        self, problem: LinearProblem, starts: tuple[str, ...], rng: np.random.Generator, orders: list[Ints]
    ) -> Solution:
        if self.method in ("auto", "order-search"):
            return search_over_orders(problem, self._settings(problem, starts), rng, orders)
        weights, interrupted = np.zeros(problem.shape), False
        iterate = augmented_lagrangian if self.method == "augmented-lagrangian" else central_path
        try:
            for latest in iterate(problem, self._acyclicity(), self.solver):
                weights = latest
        except KeyboardInterrupt:
            interrupted = True
        first = problem.objective(weights)
        if self.method == "central-path":
            weights = refit(problem, weights)
        last = problem.objective(weights)
        row = pd.DataFrame([(self.method, first, last)], columns=["start", "objective_at_start", "objective"])
        return Solution(weights, last, row, interrupted)

    def _starts(self) -> tuple[str, ...]:
        if self.starts != "auto":
            return tuple(self.starts)
        return (*_ORDER_STARTS, "central-path") if self.method == "auto" else _ORDER_STARTS

    def _settings(self, problem: LinearProblem, starts: tuple[str, ...]) -> Settings:
        rounds = self.rounds
        if rounds is None:
            rounds = min(max(_ROUNDS_TIMES_VARIABLES // problem.d, _ROUNDS[0]), _ROUNDS[1])
            rounds = rounds if problem.rows is None else rounds // _ROWS_COST
        return Settings(starts, rounds, self._acyclicity(), self.solver, self.progressbar)

    def _acyclicity(self) -> str:
        if self.acyclicity != "auto":
            return self.acyclicity
        return "log-det" if self.method == "central-path" else "exponential"

    def _keep(self, problem: LinearProblem, found: "_Estimate") -> None:
        solution, names = found.solution, problem.data.names
        self.lambda1_, self.threshold_ = found.lambda1, found.threshold
        self.__dict__.pop("path_", None)  # that of an earlier fit
        if found.path is not None:
            self.path_ = found.path
        self.raw_weights_ = solution.weights[: problem.d]
        self.intercepts_ = np.zeros(problem.d) if problem.rows is None else solution.weights[problem.d]
        self.objective_ = solution.objective
        self.h_ = exponential(self.raw_weights_**2)[0]
        self.starts_ = solution.starts
        self.interrupted_ = solution.interrupted
        self.weights_ = found.weights
        self.removed_ = removed_table(found.removed, names)
        self._keep_graph((found.weights != 0) | problem.required, names, problem.data)
        self.diagnostics_ = {"varsortability": varsortability(self.adjacency_, np.diag(problem.covariance))}

    def _compare_scales(self, problem: LinearProblem, rng: np.random.Generator) -> None:
        variances = np.diag(problem.covariance)
        # Graphs may share one minimum where variances are equal: a second search could end in another of them.
        adjacency = self.adjacency_ if are_standardised(variances) else self._standardised(problem, rng)
        if adjacency is not None:
            self.diagnostics_ = compare_scales(self.adjacency_, adjacency, variances)

    def _standardised(self, problem: LinearProblem, rng: np.random.Generator) -> Adjacency | None:
        """Return the estimate on standardised columns; None if Ctrl-C came before it."""
        # To know whether the answer changes, the quicker starts do.
        starts = _ORDER_STARTS if self.starts == "auto" else self._starts()
        try:
            other = self._estimate(problem.standardised(), starts, rng)
        except KeyboardInterrupt:
            self.interrupted_ = True
            return None
        self.interrupted_ |= other.solution.interrupted
        adjacency: Adjacency = ((other.weights != 0) | problem.required).astype(np.int8)
        return adjacency

    def _check_settings(self) -> None:
        check_not_negative("lambda1", self.lambda1, word="bic")
        check_not_negative("threshold", self.threshold, word="auto")
        check_choice("loss", self.loss, LOSSES)
        check_choice("acyclicity", self.acyclicity, ("auto", *ACYCLICITIES))
        check_choice("method", self.method, METHODS)
        check_choice("solver", self.solver, SOLVERS)
        starts = ["variance"] if isinstance(self.starts, str) and self.starts == "auto" else self.starts
        unknown = [start for start in starts if start not in START_ORDERS]
        if isinstance(starts, str) or not list(starts) or unknown:
            received = unknown[0] if unknown and not isinstance(starts, str) else self.starts
            raise ValueError(f"starts must be 'auto' or some of {', '.join(START_ORDERS)}; received {shown(received)}")
        if self.rounds is not None:
            check_count("rounds", self.rounds)


class _Estimate(NamedTuple):
    lambda1: float
    path: pd.DataFrame | None
    solution: Solution
    threshold: float
    weights: Floats
    removed: list[Removed]
