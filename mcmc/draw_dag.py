"""Draw parent sets, and whole DAGs, from the sets an order or a partition allows."""

import numpy as np

from gpn_bayes.kernels.arrays import Ints, Words
from gpn_bayes.kernels.compiled import FALSE, ZERO, compiled, inner
from gpn_bayes.mcmc.choices import Chance, choose_weighted, is_scripted, note, prescribed
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting_with, log_sum_meeting_without, log_sum_with
from gpn_bayes.mcmc.tables import (
    ScoreTables,
    candidate,
    log_score,
    n_candidates,
    n_core,
    outside_place,
    ranked_mask,
)

# With at most this many nodes to choose from, their subsets are run through; else the ranked table is.
_FEW = 6


@compiled
def draw_parents(chance: Chance, tables: ScoreTables, node: int, inside: int, needed: int, log_total: float) -> int:
    """Draw a parent set inside a set, meeting `needed` unless that is empty, in proportion to its score.

    Parameters
    ----------
    chance : Chance
        The source of randomness.
    tables : ScoreTables
        The scores.
    node : int
        Whose parents.
    inside, needed : int
        Local masks.
    log_total : float
        The log sum of the scores of all sets that qualify.

    Returns
    -------
    int
        The local mask of the parents.
    """
    k = n_core(tables, node)
    if not inside >> k:
        return draw_among(chance, tables, node, inside, needed, log_total, FALSE)
    # First whether the outside candidate is a parent, then the others.
    place = outside_place(tables, node)
    log_weights = np.empty(2)
    if needed == 0:
        log_weights[0] = log_sum_inside(tables, node, inside & ~(1 << k))
        log_weights[1] = log_sum_with(tables, node, place, inside)
    else:
        log_weights[0] = log_sum_meeting_without(tables, node, inside, needed)
        log_weights[1] = log_sum_meeting_with(tables, node, place, inside, needed, needed >> k)
    with_outside = choose_weighted(chance, log_weights) == 1
    if with_outside and needed >> k:
        needed = ZERO
    low = (1 << k) - 1
    log_total = log_weights[1] if with_outside else log_weights[0]
    return draw_among(chance, tables, node, inside & low, needed & low, log_total, with_outside)


@inner
def draw_among(
    chance: Chance, tables: ScoreTables, node: int, inside: int, needed: int, log_total: float, with_outside: bool
) -> int:
    """Draw a parent set without the outside candidate, or one with it; `inside` and `needed` don't hold it."""
    scripted = is_scripted(chance)
    wanted = prescribed(chance) if scripted else -1
    target = 0.0 if scripted else chance.rng.random()
    few = _popcount_at_most(inside, _FEW)
    outside_bit = int(with_outside) << n_core(tables, node)
    reached = 0.0
    options = ZERO
    chosen = -1
    chosen_probability = 0.0
    # Either all subsets of `inside` (counted down by the usual bit trick), or all masks by falling score.
    subset = inside
    rank = ZERO
    last_rank = (1 << n_core(tables, node)) - 1
    while True:
        mask = subset if few else ranked_mask(tables, node, rank, with_outside)
        if (mask & ~inside) == 0 and (needed == 0 or mask & needed):
            probability = np.exp(log_score(tables, node, mask | outside_bit) - log_total)
            if probability > 0.0:
                if not scripted or options == wanted:
                    chosen, chosen_probability = mask | outside_bit, probability
                options += 1
                reached += probability
                if not scripted and target < reached:
                    return mask | outside_bit
        if few:
            if subset == 0:
                break
            subset = (subset - 1) & inside
        else:
            if rank == last_rank:
                break
            rank += 1
    # Reached when scripted, or when rounding left the sum of probabilities just short of the target.
    if scripted:
        note(chance, options, chosen_probability)
    return chosen


@inner
def _popcount_at_most(mask: int, limit: int) -> bool:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
        if count > limit:
            return False
    return True


@compiled
def store_parents(tables: ScoreTables, parents: Ints, words: Words) -> None:
    """Write a DAG given by local masks as 64-bit words of node bits, one row a node."""
    words[:] = np.uint64(0)
    for i in range(len(parents)):
        mask = parents[i]
        for b in range(n_candidates(tables, i)):
            if (mask >> b) & 1:
                parent = candidate(tables, i, b)
                words[i, parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)
