"""Search over the orders of the variables: given an order, the best DAG is a table lookup."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpn_bayes._util.checks import check_choice, check_count, check_seconds
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency, Floats, Ints
from gpn_bayes.estimators.base import ScoreBasedEstimator
from gpn_bayes.estimators.parent_sets import adjacency_of
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.estimators.set_search import anytime_parent_sets, searched_sets
from gpn_bayes.kernels.learners.ordering import OrderState, local_search, perturb, random_order, total_score
from gpn_bayes.kernels.learners.parent_sets import LEAST_GAIN, ParentSets, best_of_order

VARIANTS = ("obs", "asobs")
MOVES = ("insertion", "swap")
SETS = ("all", "anytime")


class OrderingSearch(ScoreBasedEstimator):
    """Search over orders, in which each variable takes its best parent set among its predecessors.

    Each search begins at a random order and moves one variable at a time to the place where the score gains most, until
    none gains. It goes on from there with some variables moved at random, as long as that still leads to better orders.
    Teyssier & Koller (2005) is the variant with ``moves="swap"``.

    Parameters
    ----------
    score : Score or str, default "bic"
        What to maximise.
    max_parents : int, optional
        Maximum number of parents per node; by default there is none. Where parent sets are too many to search them all,
        those up to some size are, and of larger ones those that a climb over DAGs meets; a warning says so.
    variant : {"obs", "asobs"}
        "asobs" also chooses, last variable first, the best parent sets that close no cycle, whether or not they are
        against the order (Scanagatta et al. 2015), and goes on from an order of that DAG where it is better.
    moves : {"insertion", "swap"}
        Whether a variable may move to any place, or only trade places with its neighbour.
    sets : {"all", "anytime"}
        Whether all parent sets within the limit count, or for each variable the most promising ones: those that a plain
        climb over DAGs scores, and then those whose parts score high (Scanagatta et al. 2015). The search then begins
        at an order of the DAG that the climb found, and is at least as good.
    sets_per_variable : int, default 2000
        How many parent sets "anytime" scores for a variable, beside those of the climb.
    restarts : int, default 5
        Number of random orders to begin at.
    patience : int, default 100
        Number of searches without a better order after which the next random order is taken.
    jump : int, default 5
        Number of variables moved at random between two searches.
    max_seconds : float, optional
        Time after which no further search is begun; results then depend on the speed of the machine. Scoring is not
        counted.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for the random orders and moves.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_, weights_, log_score_, max_parents_
        As in every score-based learner.
    searched_up_to_ : int or None
        Up to this many parents, all sets were searched, and not all of the larger ones; None where none was left out
        that can be in a best DAG, and with ``sets="anytime"``.
    order_ : list of str
        The best order, first to last.
    trace_ : ndarray of float
        The best score after each search.
    search_seconds_ : float
        How long the search took, without the scoring.
    interrupted_ : bool
        Whether Ctrl-C ended the search; the best order so far is kept.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators import OrderingSearch
    >>> learner = OrderingSearch(score="bge", random_state=1).fit(datasets.sachs(transform="log2"))
    >>> learner.graph_.number_of_edges(), len(learner.order_)
    (6, 11)
    """

    order_: list[str]
    trace_: Floats
    search_seconds_: float
    interrupted_: bool

    def __init__(
        self,
        score: Any = "bic",
        *,
        max_parents: int | None = None,
        variant: str = "obs",
        moves: str = "insertion",
        sets: str = "all",
        sets_per_variable: int = 2000,
        restarts: int = 5,
        patience: int = 100,
        jump: int = 5,
        max_seconds: float | None = None,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.score = score
        self.max_parents = max_parents
        self.variant = variant
        self.moves = moves
        self.sets = sets
        self.sets_per_variable = sets_per_variable
        self.restarts = restarts
        self.patience = patience
        self.jump = jump
        self.max_seconds = max_seconds
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def _search(self, problem: Problem) -> Adjacency:
        self._check()
        rng = generator("random_state", self.random_state)
        up_to = None
        if self.sets == "all":
            sets, up_to, first = searched_sets(problem, self.progressbar)
        else:
            self.max_parents_ = problem.greedy_limit
            sets, first = anytime_parent_sets(problem, self.sets_per_variable, self.progressbar)
        self._note_searched(up_to)
        search = OrderSearch(sets, rng, self.moves == "insertion", self.variant == "asobs", first)
        began = time.perf_counter()
        with progress_bar("Searching", self.restarts, self.progressbar) as advance:
            search.run(self.restarts, self.patience, self.jump, self.max_seconds, advance)
        self.search_seconds_ = time.perf_counter() - began
        self.order_ = [problem.names[i] for i in search.best.order]
        self.trace_ = np.array(search.trace)
        self.interrupted_ = search.interrupted
        return adjacency_of(sets, search.best.rows)

    def _check(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_choice("moves", self.moves, MOVES)
        check_choice("sets", self.sets, SETS)
        check_count("sets_per_variable", self.sets_per_variable, 1)
        check_count("restarts", self.restarts, 1)
        check_count("patience", self.patience)
        check_count("jump", self.jump, 1)
        check_seconds("max_seconds", self.max_seconds)


@dataclass
class OrderSearch:
    """A search over orders in progress.

    Parameters
    ----------
    sets : ParentSets
        What the nodes choose from; of each node one that holds no more than its required parents.
    rng : Generator
        Where random orders and moves come from.
    by_insertion, against_order : bool
        See `gpn_bayes.kernels.learners.ordering.local_search`.
    first : ndarray of int, optional
        The order to begin at, in which every node has a set; by default a random one.

    Attributes
    ----------
    best : OrderState
        The best order, and the row of each node's set.
    best_score : float
        Its score.
    trace : list of float
        The best score after each local search.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    sets: ParentSets
    rng: np.random.Generator
    by_insertion: bool = True
    against_order: bool = False
    first: Ints | None = None
    trace: list[float] = field(default_factory=list)
    interrupted: bool = False

    def __post_init__(self) -> None:
        """Take the first order as the best until now."""
        self.best = self._random_order()
        if self.first is not None:
            self.best.order[:] = self.first
            best_of_order(self.sets, self.best.order, self.best.rows)
        self.best_score = total_score(self.sets, self.best.rows)

    def run(
        self,
        restarts: int,
        patience: int,
        jump: int,
        max_seconds: float | None = None,
        advance: Callable[[float], None] = lambda done: None,
    ) -> None:
        """Search from several random orders; Ctrl-C or the time limit end it with the best until then.

        Parameters
        ----------
        restarts, patience, jump, max_seconds
            As of `OrderingSearch`.
        advance : callable
            Called after every random order.
        """
        end = np.inf if max_seconds is None else time.monotonic() + max_seconds
        try:
            for number in range(restarts):
                state = self._random_order() if number else _copy(self.best)
                score, idle = self._improve(state), 0
                while idle < patience and time.monotonic() < end:
                    other = _copy(state)
                    perturb(self.rng, self.sets, other, jump)
                    improved = self._improve(other)
                    idle = 0 if improved > score + LEAST_GAIN else idle + 1
                    if improved >= score:  # an equal one too, so that the search can leave a plateau
                        state, score = other, improved
                advance(1)
                if time.monotonic() >= end:
                    return
        except KeyboardInterrupt:
            self.interrupted = True

    def _random_order(self) -> OrderState:
        n = len(self.sets.starts) - 1
        state = OrderState(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64))
        random_order(self.rng, self.sets, state)
        return state

    def _improve(self, state: OrderState) -> float:
        score = local_search(self.rng, self.sets, state, self.by_insertion, self.against_order)
        if score > self.best_score:
            self.best, self.best_score = _copy(state), score
        self.trace.append(self.best_score)
        return score


def _copy(state: OrderState) -> OrderState:
    return OrderState(state.order.copy(), state.rows.copy())
