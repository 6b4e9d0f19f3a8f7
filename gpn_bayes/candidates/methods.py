"""Find candidate parents in data: by conditional independence, by dependence, or by the score itself."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

import numpy as np

from gpn_bayes.candidates.pc_skeleton import Skeleton, check_dual_rows, dual_pc_skeleton, pc_skeleton
from gpn_bayes.candidates.screening import distance_correlations, forward_selection, strongest
from gpn_bayes.data import CATEGORICAL, Data, SufficientStatistics, refuse_weights, statistics_of
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.cache import ScoreCache

Lists = list[list[int]]

# Level of the tests: a parent that is missed is lost, a variable too many costs time.
ALPHA = 0.2
# Slow scores choose among this many, those of greatest distance correlation.
POOL = 20
MIN_ROWS = 4
_NEEDS_ROWS = "distance correlations need the rows"


@dataclass(frozen=True, eq=False)
class SpaceContext:
    """What methods look at to find candidates.

    Attributes
    ----------
    data : Dataset or SufficientStatistics
        The data.
    store : ScoreCache
        The score that DAGs are drawn under.
    executor : concurrent.futures.Executor, optional
        Where to compute scores that have no closed form.
    progressbar : bool
        Whether to show progress.
    """

    data: Data
    store: ScoreCache
    executor: Executor | None = None
    progressbar: bool = True


@dataclass(frozen=True, eq=False)
class Wanted:
    """Which candidates to look for.

    Attributes
    ----------
    allowed : ndarray of bool, shape (n, n)
        Who may be a candidate of whom.
    required : ndarray of bool, shape (n, n)
        Who is one anyway.
    limit : int
        How many candidates a node will keep.
    at_least : int
        How many forward selection finds even where the score favours fewer.
    max_parents : int, optional
        How many it finds at most under slow scores.
    """

    allowed: np.ndarray
    required: np.ndarray
    limit: int
    at_least: int = 0
    max_parents: int | None = None


Method = Callable[[SpaceContext, Wanted], Lists]


def _skeleton_method(find: Callable[..., Skeleton]) -> Method:
    def method(context: SpaceContext, wanted: Wanted) -> Lists:
        statistics = _statistics(context.data)
        skeleton = find(statistics.correlation, statistics.n, ALPHA)
        return strongest(skeleton.strengths, skeleton.adjacent & wanted.allowed, len(wanted.allowed))

    return method


def _by_correlation(context: SpaceContext, wanted: Wanted) -> Lists:
    return strongest(np.abs(_statistics(context.data).correlation), wanted.allowed, wanted.limit)


def _by_distance_correlation(context: SpaceContext, wanted: Wanted) -> Lists:
    table = context.data.with_rows(_NEEDS_ROWS)
    refuse_weights(table, "a distance correlation")
    return strongest(distance_correlations(table.numeric("a distance")), wanted.allowed, wanted.limit)


def _by_score(context: SpaceContext, wanted: Wanted) -> Lists:
    """Return what forward selection adds to the required parents; slow scores choose among few."""
    if context.store.scorer.closed_form or not _numeric(context.data):
        pools = strongest(np.zeros(wanted.allowed.shape), wanted.allowed, len(wanted.allowed))
    elif context.data.table is not None and context.data.weights is None:
        pools = _by_distance_correlation(context, replace(wanted, limit=POOL))
    else:
        pools = _by_correlation(context, replace(wanted, limit=POOL))
    required = [np.flatnonzero(column).tolist() for column in wanted.required.T]
    limit = wanted.limit
    if not context.store.scorer.closed_form and wanted.max_parents is not None:
        # Scores of more parents take longest; what they would find, draws will find among the parents from outside.
        limit = min(limit, wanted.max_parents)
    return forward_selection(
        context.store,
        pools,
        required,
        limit,
        at_least=wanted.at_least,
        executor=context.executor,
        progressbar=context.progressbar,
    )


# Each returns for every node its candidates, strongest first.
_METHODS: dict[str, Method] = {
    "pc": _skeleton_method(pc_skeleton),
    "dual-pc": _skeleton_method(dual_pc_skeleton),
    "greedy": _by_score,
    "correlation": _by_correlation,
    "distance-correlation": _by_distance_correlation,
}
METHODS = tuple(_METHODS)


def ranked_candidates(methods: Sequence[str], context: SpaceContext, wanted: Wanted) -> Lists:
    """Return for every node what the methods find, strongest first: the first of each method, then the second ….

    Parameters
    ----------
    methods : sequence of str
        Some of `METHODS`.
    context : SpaceContext
        The data and the score.
    wanted : Wanted
        What to look for. Independence tests may find more than the limit; forward selection starts from what is
        required.
    """
    lists_by_method = [_METHODS[method](context, wanted) for method in methods]
    return [_merge(own) for own in zip(*lists_by_method, strict=True)]


def _merge(rankings: Sequence[list[int]]) -> list[int]:
    """Return the union of rankings, by the best place in any of them."""
    by_place = chain.from_iterable(zip_longest(*rankings))
    return list(dict.fromkeys(j for j in by_place if j is not None))


def default_methods(scorer: Scorer, data: Data) -> tuple[str, ...]:
    """Return how candidates are found unless the user says how."""
    tests = scorer.closed_form and not scorer.discrete and _numeric(data) and data.size >= MIN_ROWS
    return ("pc", "greedy") if tests else ("greedy",)


def check_methods(methods: Sequence[str], scorer: Scorer, data: Data) -> None:
    """Refuse methods that can't work on the data, before anything is computed."""
    for method in methods:
        if method == "greedy" and (scorer.closed_form or not _numeric(data)):
            continue
        if scorer.discrete:
            raise ValueError(f"the method {method!r} needs numbers; {scorer.label} takes categories: use 'greedy'")
        data.require_numbers(f"the method {method!r}")
        if method == "distance-correlation":
            refuse_weights(data.with_rows(_NEEDS_ROWS), "a distance correlation")
        if data.size < MIN_ROWS:
            raise ValueError(f"the method {method!r} needs at least {MIN_ROWS} rows; received {data.size}")
        if method == "dual-pc":
            check_dual_rows(len(data.names), data.size)


def _numeric(data: Data) -> bool:
    return CATEGORICAL.isdisjoint(data.kinds)


def _statistics(data: Data) -> SufficientStatistics:
    # Of all rows together, experiments or not: candidates needn't be parents.
    return statistics_of(data, "a covariance")
