"""The learner that finds the best DAG and proves it."""

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from gpn_bayes._util.checks import check_choice, check_not_negative, check_seconds
from gpn_bayes._util.progress import status_line
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency
from gpn_bayes.estimators.base import ScoreBasedEstimator
from gpn_bayes.estimators.exact import a_star, dp
from gpn_bayes.estimators.exact.outcome import NO_GAP, Clock, Outcome
from gpn_bayes.estimators.exact.start import starting_rows
from gpn_bayes.estimators.parent_sets import adjacency_of
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.estimators.set_search import searched_sets
from gpn_bayes.kernels.learners.parent_sets import ParentSets

METHODS = ("auto", "dp", "ilp", "a-star")
# Dynamic programming takes a second here whatever the scores; the integer programme depends on them.
_DP_UP_TO = 20


class Exact(ScoreBasedEstimator):
    """The DAG with the highest score, with proof; or a good one, and a bound on its distance to the best.

    Only parent sets that no subset of theirs is as good as are searched, see
    `gpn_bayes.estimators.pops.potentially_optimal_sets`; this loses nothing.

    Parameters
    ----------
    score : Score or str, default "bic"
        What to maximise.
    max_parents : int, optional
        Maximum number of parents per node, as part of the model. By default there is none, and all parent sets are
        searched that can be in a best DAG. Where these are too many (mostly beyond 16 variables, beyond 20 under BGe
        and the Gaussian BIC, more under the discrete BIC), sets up to some size are, and of larger ones those that a
        climb over DAGs meets; a warning and ``searched_up_to_`` say so, and nothing is then called proved.
    method : {"auto", "dp", "ilp", "a-star"}
        "dp" is dynamic programming over subsets, for at most 25 variables; it takes the same time whatever the data.
        "ilp" is integer programming with cluster cuts, for many variables with few parents. "a-star" searches the order
        graph, for about as many variables as "dp", with less memory where the scores leave little doubt. "auto" takes
        "dp" up to 20 variables and "ilp" beyond.
    time_limit : float, optional
        Seconds that the search may take, once the parent sets are scored; the best DAG found by then is returned.
    gap : float, default 0
        Stop as soon as the DAG is known to be at most this many nats below the best.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None, default 0
        The search for a DAG to begin with is random. What is proved best doesn't depend on it, but where several DAGs
        score the same, which one is returned may.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_, log_score_, weights_, max_parents_
        The estimate; see `ScoreBasedEstimator`.
    searched_up_to_ : int or None
        Up to this many parents, all sets were searched, and not all of the larger ones; None where no set was left out
        that can be in a best DAG of at most ``max_parents`` parents per node.
    proved_ : bool
        Whether no DAG scores higher, of those that the settings allow.
    bound_ : float
        No DAG of parent sets that were searched scores higher than this.
    gap_ : float
        How many nats the estimate is below the bound; 0 when it is the best of those searched.
    method_ : str
        The method used.
    interrupted_ : bool
        Whether Ctrl-C ended the search.
    seconds_ : float
        Time of the search, without scoring.
    statistics_ : dict
        Number of parent sets searched, seconds of scoring, and what the method counted.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> learner = Exact(score="bge", max_parents=3).fit(datasets.sachs(transform="log2"))
    >>> learner.proved_, learner.gap_, learner.graph_.number_of_edges()
    (True, 0.0, 6)
    """

    proved_: bool
    bound_: float
    gap_: float
    method_: str
    interrupted_: bool
    seconds_: float
    statistics_: dict[str, Any]

    def __init__(
        self,
        score: Any = "bic",
        max_parents: int | None = None,
        method: str = "auto",
        time_limit: float | None = None,
        gap: float = 0.0,
        required: Iterable[Any] = (),
        forbidden: Iterable[Any] = (),
        tiers: Any = None,
        random_state: Any = 0,
        progressbar: bool = False,
    ) -> None:
        self.score = score
        self.max_parents = max_parents
        self.method = method
        self.time_limit = time_limit
        self.gap = gap
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def _search(self, problem: Problem) -> Adjacency:
        self.method_ = self._chosen_method(problem.n)
        began = perf_counter()
        sets, up_to, _ = searched_sets(problem, self.progressbar)
        self._note_searched(up_to)
        scored = perf_counter()
        outcome = self._run(sets)
        self.seconds_ = perf_counter() - scored
        missing = outcome.bound - float(sets.scores[outcome.rows].sum())
        self.gap_ = missing if missing > NO_GAP else 0.0
        self.proved_ = self.gap_ == 0.0 and up_to is None
        self.bound_ = outcome.bound
        self.interrupted_ = outcome.interrupted
        counted = {"parent_sets": len(sets.scores), "scoring_seconds": scored - began}
        self.statistics_ = counted | outcome.statistics
        return adjacency_of(sets, outcome.rows)

    def _chosen_method(self, n: int) -> str:
        """Check the settings before any scoring, and return the method they mean."""
        check_choice("method", self.method, METHODS)
        check_seconds("time_limit", self.time_limit)
        check_not_negative("gap", self.gap)
        if self.method == "auto":
            return "dp" if n <= _DP_UP_TO else "ilp"
        if self.method == "dp":
            dp.check_size(n)
        if self.method == "a-star":
            a_star.check_size(n)
        return self.method

    def _run(self, sets: ParentSets) -> Outcome:
        rng = generator("random_state", self.random_state)
        clock = Clock(self.time_limit)
        if self.method_ == "dp":
            return dp.dynamic_programme(sets, clock, rng, self.progressbar)
        with status_line(self.progressbar) as tell:
            start = starting_rows(sets, rng, clock)
            if self.method_ == "a-star":
                return a_star.search_orders(sets, start, clock, self.gap, tell)
            # HiGHS is loaded only by those who need it.
            from gpn_bayes.estimators.exact.integer_programme import IntegerProgramme

            return IntegerProgramme(sets, start, clock, self.gap, rng, tell).run()
