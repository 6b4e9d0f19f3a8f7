"""Parent sets with any outside node, or none: what moves over DAGs need where nodes may have a parent from outside.

These moves go over DAGs alone, and the outside candidates follow: a node with a parent from outside has it as its
outside candidate, one without has any of its outside nodes, all alike. So a move that draws a node's parents draws its
outside candidate as well.
"""

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Floats
from gpn_bayes.kernels.compiled import FALSE, NONE, TRUE, ZERO, inner
from gpn_bayes.mcmc.choices import Chance, choose, choose_weighted
from gpn_bayes.mcmc.draw_dag import draw_among, draw_parents
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting_with, log_sum_meeting_without, log_sum_with
from gpn_bayes.mcmc.tables import ScoreTables, bit_of, candidate, n_core, n_outside, outside_node, set_outside_candidate


@inner
def can_be_parent(tables: ScoreTables, node: int, other: int) -> bool:
    """Tell whether another node is a candidate or an outside node of a node."""
    if bit_of(tables, node, other) >= 0:
        return True
    for place in range(n_outside(tables, node)):
        if outside_node(tables, node, place) == other:
            return True
    return False


@inner
def _free_core(tables: ScoreTables, node: int, marked: Bools) -> int:
    """Return the mask of a node's candidates for good that aren't marked."""
    mask = ZERO
    for bit in range(n_core(tables, node)):
        mask |= int(not marked[candidate(tables, node, bit)]) << bit
    return mask


@inner
def log_weights_of_outside_sets(tables: ScoreTables, node: int, marked: Bools, parent: int) -> Floats:
    """Return log sums of S over parent sets of unmarked nodes: those without an outside node, then those with each.

    Only sets that hold `parent` count, unless it is -1.
    """
    inside = _free_core(tables, node, marked)
    log_weights = np.full(n_outside(tables, node) + 1, -np.inf)
    needed = _needed(tables, node, parent)
    if parent < 0:
        log_weights[0] = log_sum_inside(tables, node, inside)
    elif needed:
        log_weights[0] = log_sum_meeting_without(tables, node, inside, needed)
    log_count = np.log(max(n_outside(tables, node), 1))
    for place in range(n_outside(tables, node)):
        other = outside_node(tables, node, place)
        if marked[other]:
            continue
        if needed:
            log_weights[1 + place] = log_sum_meeting_with(tables, node, place, inside, needed, ZERO) - log_count
        elif parent < 0 or parent == other:
            log_weights[1 + place] = log_sum_with(tables, node, place, inside) - log_count
    return log_weights


@inner
def _needed(tables: ScoreTables, node: int, parent: int) -> int:
    """Return the mask of a parent that is a candidate for good, else zero."""
    bit = bit_of(tables, node, parent) if parent >= 0 else NONE
    return 1 << bit if 0 <= bit < n_core(tables, node) else ZERO


@inner
def log_sum(log_weights: Floats) -> float:
    """Return the log of the sum of the weights."""
    top: float = log_weights.max()
    if top == -np.inf:
        return top
    total = 0.0
    for log_weight in log_weights:
        total += np.exp(log_weight - top)
    log_total: float = top + np.log(total)
    return log_total


@inner
def draw_free(chance: Chance, tables: ScoreTables, node: int, marked: Bools, parent: int, log_weights: Floats) -> int:
    """Draw such a parent set in proportion to its score, and the outside candidate with it; return its local mask.

    `log_weights` are those of the same arguments.
    """
    inside = _free_core(tables, node, marked)
    needed = _needed(tables, node, parent)
    if n_outside(tables, node) == 0:
        return draw_parents(chance, tables, node, inside, needed, log_weights[0])
    which = choose_weighted(chance, log_weights)
    if which == 0:
        set_outside_candidate(tables, node, choose(chance, n_outside(tables, node)))
        return draw_among(chance, tables, node, inside, needed, log_weights[0], FALSE)
    set_outside_candidate(tables, node, which - 1)
    log_total = log_weights[which] + np.log(n_outside(tables, node))
    return draw_among(chance, tables, node, inside, needed, log_total, TRUE)
