"""Sums of scores over the parent sets that an order or a partition allows, read from the tables."""

import numpy as np

from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.graphs.subsets import log_add, without_bit
from gpn_bayes.mcmc.tables import ScoreTables, n_core, outside_place, outside_stretches, own_stretches

# A difference of two subset sums is used while it keeps this share of the larger one.
_SAFE_SHARE_TABULATED = 0.1
_SAFE_SHARE_DIRECT = 1e-4


@compiled
def log_sum_inside(tables: ScoreTables, node: int, inside: int) -> float:
    """Return the log sum of S over all parent sets inside a set."""
    k = n_core(tables, node)
    low = inside & ((1 << k) - 1)
    without_outside: float = tables.values[own_stretches(tables, node)[1] + low]
    if not inside >> k:
        return without_outside
    return log_add(without_outside, log_sum_with(tables, node, outside_place(tables, node), inside))


@inner
def log_sum_with(tables: ScoreTables, node: int, place: int, inside: int) -> float:
    """Return the log sum of S over the sets of an outside node and candidates inside a set."""
    low = inside & ((1 << n_core(tables, node)) - 1)
    log_sum: float = tables.values[outside_stretches(tables, node, place)[1] + low]
    return log_sum


@compiled
def log_sum_meeting(tables: ScoreTables, node: int, inside: int, needed: int) -> float:
    """Return the log sum of S over the parent sets inside a set that meet `needed` (a part of it)."""
    without_outside = log_sum_meeting_without(tables, node, inside, needed)
    k = n_core(tables, node)
    if not inside >> k:
        return without_outside
    place = outside_place(tables, node)
    return log_add(without_outside, log_sum_meeting_with(tables, node, place, inside, needed, needed >> k))


@inner
def log_sum_meeting_without(tables: ScoreTables, node: int, inside: int, needed: int) -> float:
    """Return the part of `log_sum_meeting` that has no parent from outside."""
    return _meeting(tables, own_stretches(tables, node), n_core(tables, node), inside, needed)


@inner
def log_sum_meeting_with(
    tables: ScoreTables, node: int, place: int, inside: int, needed: int, outside_needed: int
) -> float:
    """Return the log sum over the sets of an outside node and candidates; it may itself be one of the needed."""
    if outside_needed:
        return log_sum_with(tables, node, place, inside)
    return _meeting(tables, outside_stretches(tables, node, place), n_core(tables, node), inside, needed)


@compiled
def _meeting(tables: ScoreTables, stretches: tuple[int, int, int, int], k: int, inside: int, needed: int) -> float:
    """Sum over the sets of the k candidates inside a set that meet `needed`.

    It is the sum over all sets less the sum over those that avoid `needed`; where that difference loses
    too many digits, the sets are summed directly, all terms positive.
    """
    low = (1 << k) - 1
    inside &= low
    needed &= low
    if needed == 0:
        return -np.inf
    scores, sums, ranks, containing = stretches
    everything: float = tables.values[sums + inside]
    avoiding = tables.values[sums + (inside & ~needed)]
    if avoiding == -np.inf:
        return everything
    # log(e^a - e^b) = a + log(1 - e^(b - a)).
    share = -np.expm1(avoiding - everything)
    if share > (_SAFE_SHARE_TABULATED if containing >= 0 else _SAFE_SHARE_DIRECT):
        difference: float = everything + np.log(share)
        return difference
    if containing >= 0:
        return _sum_by_members(tables, containing, k, inside, needed)
    return _sum_by_sets(tables, scores, ranks, k, inside, needed)


@inner
def _sum_by_members(tables: ScoreTables, containing: int, k: int, inside: int, needed: int) -> float:
    """Sum over the members m of `needed`: the sets whose first member it is."""
    half = 1 << (k - 1)
    total = -np.inf
    left = inside
    for m in range(k):
        if (needed >> m) & 1:
            total = log_add(total, tables.values[containing + m * half + without_bit(left, m)])
            left &= ~(1 << m)
    return total


@inner
def _sum_by_sets(tables: ScoreTables, scores: int, ranks: int, k: int, inside: int, needed: int) -> float:
    """Sum over every set inside that meets `needed`, from the largest score down."""
    top = -np.inf
    total = 0.0
    for rank in range(1 << k):
        mask = tables.ranked[ranks + rank]
        if mask & ~inside or not mask & needed:
            continue
        score = tables.values[scores + mask]
        if top == -np.inf:
            top = score
        # Falling order: what follows is smaller still, and 2^20 such terms don't reach the last digit.
        if score - top < -55.0 or score == -np.inf:
            break
        total += np.exp(score - top)
    return top + np.log(total) if total > 0.0 else -np.inf
