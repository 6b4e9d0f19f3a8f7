"""Moves over DAGs, which partition MCMC takes its walks with.

A DAG is drawn from the partition, moved by Metropolis-Hastings over DAGs, and replaced by its layering.
Each DAG has one layering, and the drawn DAG follows the target given its partition, so the whole is
reversible with respect to the partition's target. Required edges can cut the partitions apart for the
moves of `partition_moves`; these join them again.

Each move proposes from `parents` (local masks) into `new`, a copy of it, and returns the log acceptance
ratio.
"""

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Ints
from gpn_bayes.kernels.compiled import FALSE, NONE, TRUE, ZERO, compiled, inner
from gpn_bayes.kernels.graphs.subsets import popcount
from gpn_bayes.mcmc.choices import Chance, choose
from gpn_bayes.mcmc.draw_dag import draw_parents
from gpn_bayes.mcmc.order import INSIDE, ORDER, OrderState, new_order, relocate
from gpn_bayes.mcmc.outside_sets import can_be_parent, draw_free, log_sum, log_weights_of_outside_sets
from gpn_bayes.mcmc.tables import (
    ScoreTables,
    bit_of,
    candidate,
    heir,
    log_score,
    n_candidates,
    n_heirs,
    outside_place,
    set_outside_candidate,
)

TOGGLE, RESAMPLE, REVERSE, REORDER = range(4)
# No node: any parents will do, or no outside candidate was changed.
NO_ONE = NONE


@compiled
def restore_outside_candidates(tables: ScoreTables, changed: Ints) -> None:
    """Undo what a refused move did to the outside candidates."""
    for pair in range(0, len(changed), 2):
        if changed[pair] != NO_ONE and changed[pair + 1] >= 0:
            set_outside_candidate(tables, changed[pair], changed[pair + 1])


@compiled
def longest_paths(tables: ScoreTables, parents: Ints) -> Ints:
    """Return the length of the longest path that ends in each node: its layer."""
    n = len(parents)
    depth = np.zeros(n, np.int64)
    changed = True
    while changed:
        changed = False
        for node in range(n):
            deepest = 0
            for bit in range(n_candidates(tables, node)):
                if (parents[node] >> bit) & 1:
                    deepest = max(deepest, depth[candidate(tables, node, bit)] + 1)
            if deepest != depth[node]:
                depth[node] = deepest
                changed = True
    return depth


@inner
def _mark_descendants(tables: ScoreTables, parents: Ints, node: int) -> Bools:
    """Return which nodes are descendants of a node, itself included."""
    n = len(parents)
    marked = np.zeros(n, np.bool_)
    marked[node] = True
    stack = np.empty(n, np.int64)
    stack[0] = node
    height = 1
    while height > 0:
        height -= 1
        top = stack[height]
        for h in range(n_heirs(tables, top)):
            child = heir(tables, top, h)
            if not marked[child] and (parents[child] >> bit_of(tables, child, top)) & 1:
                marked[child] = True
                stack[height] = child
                height += 1
    return marked


@inner
def _free_candidates(tables: ScoreTables, parents: Ints, node: int) -> int:
    """Return the mask of a node's candidates that are not among its descendants."""
    marked = _mark_descendants(tables, parents, node)
    mask = 0
    for bit in range(n_candidates(tables, node)):
        mask |= int(not marked[candidate(tables, node, bit)]) << bit
    return mask


@inner
def _toggle_edge(chance: Chance, tables: ScoreTables, parents: Ints, new: Ints) -> float:
    """Add or delete an edge from a candidate of some node: symmetric, as both ways pick the same node and bit."""
    child = choose(chance, len(parents))
    if n_candidates(tables, child) == 0:
        return -np.inf
    pick = choose(chance, n_candidates(tables, child))
    new[child] = parents[child] ^ (1 << pick)
    log_ratio = log_score(tables, child, new[child]) - log_score(tables, child, parents[child])
    adds = new[child] > parents[child]
    if adds and not (_free_candidates(tables, parents, child) >> pick) & 1:
        return -np.inf
    return log_ratio


@inner
def _resample_parents(chance: Chance, tables: ScoreTables, parents: Ints, new: Ints) -> float:
    """Give a node a parent set in proportion to its score, among those that close no cycle (Gibbs)."""
    node = choose(chance, len(parents))
    below = _mark_descendants(tables, parents, node)
    log_weights = log_weights_of_outside_sets(tables, node, below, NO_ONE)
    new[node] = draw_free(chance, tables, node, below, NO_ONE, log_weights)
    return 0.0


@inner
def _reverse_edge(chance: Chance, tables: ScoreTables, parents: Ints, new: Ints, changed: Ints) -> float:
    """Reverse an edge i -> j and give both ends new parents (Grzegorczyk & Husmeier 2008).

    Both lose their parents; i gets a parent set that holds j, then j any parent set, each in proportion
    to its score among those that close no cycle. The way back does the same with i and j exchanged.
    """
    edges = _count_edges(parents)
    if edges == 0:
        return -np.inf
    j, bit_of_i = _edge_at(tables, parents, choose(chance, edges))
    i = candidate(tables, j, bit_of_i)
    if not can_be_parent(tables, i, j):
        return -np.inf
    new[i] = 0
    new[j] = 0
    below_i = _mark_descendants(tables, new, i)
    weights_of_i = log_weights_of_outside_sets(tables, i, below_i, j)
    log_z_i = log_sum(weights_of_i)
    if log_z_i == -np.inf:
        return -np.inf
    log_back_j = log_sum(log_weights_of_outside_sets(tables, j, _mark_descendants(tables, new, j), i))
    new[j] = parents[j]
    log_back_i = log_sum(log_weights_of_outside_sets(tables, i, _mark_descendants(tables, new, i), NO_ONE))
    new[j] = 0
    changed[0], changed[1], changed[2], changed[3] = i, outside_place(tables, i), j, outside_place(tables, j)
    new[i] = draw_free(chance, tables, i, below_i, j, weights_of_i)
    below_j = _mark_descendants(tables, new, j)
    weights_of_j = log_weights_of_outside_sets(tables, j, below_j, NO_ONE)
    log_z_j = log_sum(weights_of_j)
    if log_z_j == -np.inf:
        return -np.inf
    new[j] = draw_free(chance, tables, j, below_j, NO_ONE, weights_of_j)
    # The edges to choose from over those of the way back, times what the draws were normalised by over what the way
    # back normalises by: each of the four sums is the one over the sets that the node could draw from.
    log_ratio: float = np.log(edges / _count_edges(new)) + log_z_i + log_z_j - log_back_j - log_back_i
    return log_ratio


@inner
def _reorder(chance: Chance, tables: ScoreTables, parents: Ints, new: Ints) -> float:
    """Draw an order of the DAG, relocate a node in it by Gibbs, and redraw the parents this concerns.

    The pair (DAG, order) has the density S(DAG) r(order | DAG), r being the probability that
    `_follow_or_draw` sorts the DAG so. What order MCMC does to the order and the redrawn parents cancels
    against the scores, so that only r remains in the acceptance ratio: the freedom of order MCMC without
    its bias.
    """
    n = len(parents)
    order = np.empty(n, np.int64)
    log_r = _follow_or_draw(chance, tables, parents, order, FALSE)
    before = new_order(tables, order)
    after = OrderState(before.ints.copy(), before.score.copy())
    relocate(chance, tables, before, after, 1.0)
    for node in range(n):
        inside = after.ints[INSIDE, node]
        if inside != before.ints[INSIDE, node]:
            new[node] = draw_parents(chance, tables, node, inside, ZERO, after.score[node])
    for p in range(n):
        order[p] = after.ints[ORDER, p]
    return _follow_or_draw(chance, tables, new, order, TRUE) - log_r


@inner
def _follow_or_draw(chance: Chance, tables: ScoreTables, parents: Ints, order: Ints, follow: bool) -> float:
    """Sort a DAG by picking, again and again, one of the nodes whose parents have all been picked.

    Each pick is uniform, or follows a given order of the DAG. Returns the log probability of the order.
    """
    n = len(parents)
    waiting_for = np.empty(n, np.int64)
    ready = np.empty(n, np.int64)
    n_ready = ZERO
    for node in range(n):
        waiting_for[node] = popcount(parents[node])
        if waiting_for[node] == 0:
            ready[n_ready] = node
            n_ready += 1
    # One over the probability, its logarithm taken now and then: n logarithms would take longer than all the rest.
    log_ways = 0.0
    ways = 1.0
    for p in range(n):
        ways *= n_ready
        if ways > 1e200:
            log_ways += np.log(ways)
            ways = 1.0
        pick = 0
        if follow:
            while ready[pick] != order[p]:
                pick += 1
        else:
            pick = choose(chance, n_ready)
            order[p] = ready[pick]
        node = ready[pick]
        n_ready -= 1
        ready[pick] = ready[n_ready]
        for h in range(n_heirs(tables, node)):
            child = heir(tables, node, h)
            if (parents[child] >> bit_of(tables, child, node)) & 1:
                waiting_for[child] -= 1
                if waiting_for[child] == 0:
                    ready[n_ready] = child
                    n_ready += 1
    log_probability: float = -log_ways - np.log(ways)
    return log_probability


@inner
def _count_edges(parents: Ints) -> int:
    count = 0
    for node in range(len(parents)):
        count += popcount(parents[node])
    return count


@inner
def _edge_at(tables: ScoreTables, parents: Ints, index: int) -> tuple[int, int]:
    """Return the child and the local bit of the parent of a DAG's edge, counted from 0."""
    for node in range(len(parents)):
        for bit in range(n_candidates(tables, node)):
            if (parents[node] >> bit) & 1:
                if index == 0:
                    return node, bit
                index -= 1
    return -1, -1


@compiled
def propose_dag(chance: Chance, tables: ScoreTables, parents: Ints, new: Ints, move: int, changed: Ints) -> float:
    """Propose a move from `parents` into `new` (a copy of it); return the log acceptance ratio.

    A move that may be refused notes in `changed` whose outside candidates it changed and what they were, for
    `restore_outside_candidates`.
    """
    changed[0] = changed[2] = NO_ONE
    if move == TOGGLE:
        return _toggle_edge(chance, tables, parents, new)
    if move == RESAMPLE:
        return _resample_parents(chance, tables, parents, new)
    if move == REVERSE:
        return _reverse_edge(chance, tables, parents, new, changed)
    return _reorder(chance, tables, parents, new)
