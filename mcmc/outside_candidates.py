"""Redraw the outside candidates: which node outside a node's candidates its last local bit stands for.

Given an order or a partition, every outside candidate is drawn in proportion to the score that its node would have with
it (Gibbs), parent sets summed over. See `gpn_bayes.mcmc.tables` for why DAGs keep their probabilities.
"""

import numpy as np

from gpn_bayes.kernels.compiled import ZERO, compiled, inner
from gpn_bayes.kernels.graphs.subsets import log_add
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.choices import Chance, choose_weighted
from gpn_bayes.mcmc.order import OrderState
from gpn_bayes.mcmc.partition import BLOCK, INSIDE, NEEDED, PartitionState, node_score
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting_with, log_sum_meeting_without, log_sum_with
from gpn_bayes.mcmc.tables import ScoreTables, n_core, n_outside, outside_node, set_outside_candidate


@compiled
def redraw_outside_candidates_of_partition(
    chance: Chance, tables: ScoreTables, state: PartitionState, beta: float
) -> None:
    """Give every node a new outside candidate; the target is the partition's score to the power `beta`."""
    for node in range(len(state.score)):
        if n_outside(tables, node) > 0:
            _redraw_in_partition(chance, tables, state, node, beta)


@inner
def _redraw_in_partition(chance: Chance, tables: ScoreTables, state: PartitionState, node: int, beta: float) -> None:
    k = n_core(tables, node)
    low = (1 << k) - 1
    block, inside, needed = state.ints[BLOCK, node], state.ints[INSIDE, node] & low, state.ints[NEEDED, node] & low
    root = block == 0
    without = log_sum_inside(tables, node, ZERO) if root else log_sum_meeting_without(tables, node, inside, needed)
    log_weights = np.full(n_outside(tables, node), without)
    for place in range(len(log_weights)):
        other = state.ints[BLOCK, outside_node(tables, node, place)]
        if other < block:
            with_other = log_sum_meeting_with(tables, node, place, inside, needed, int(other == block - 1))
            log_weights[place] = log_add(without, with_other)
    place = choose_weighted(chance, beta * log_weights)
    set_outside_candidate(tables, node, place)
    other = state.ints[BLOCK, outside_node(tables, node, place)]
    state.ints[INSIDE, node] = inside | int(other < block) << k
    state.ints[NEEDED, node] = needed | int(other == block - 1) << k
    state.score[node] = node_score(tables, node, block, state.ints[INSIDE, node], state.ints[NEEDED, node])


@compiled
def redraw_outside_candidates_of_order(chance: Chance, tables: ScoreTables, state: OrderState, beta: float) -> None:
    """Give every node a new outside candidate; the target is the order's score to the power `beta`."""
    for node in range(len(state.score)):
        if n_outside(tables, node) > 0:
            _redraw_in_order(chance, tables, state, node, beta)


@inner
def _redraw_in_order(chance: Chance, tables: ScoreTables, state: OrderState, node: int, beta: float) -> None:
    k = n_core(tables, node)
    inside = state.ints[orders.INSIDE, node] & ((1 << k) - 1)
    log_weights = np.full(n_outside(tables, node), log_sum_inside(tables, node, inside))
    here = state.ints[orders.PLACE, node]
    for place in range(len(log_weights)):
        if state.ints[orders.PLACE, outside_node(tables, node, place)] < here:
            log_weights[place] = log_add(log_weights[place], log_sum_with(tables, node, place, inside))
    place = choose_weighted(chance, beta * log_weights)
    set_outside_candidate(tables, node, place)
    before = state.ints[orders.PLACE, outside_node(tables, node, place)] < here
    state.ints[orders.INSIDE, node] = inside | int(before) << k
    state.score[node] = log_sum_inside(tables, node, state.ints[orders.INSIDE, node])
