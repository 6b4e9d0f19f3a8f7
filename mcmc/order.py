"""Order MCMC: a chain over the n! orders, each scored by the sum over all DAGs it allows.

Friedman & Koller (2003); Kuipers, Suter & Moffa (2022). The target of an order is the product over the
nodes of the sum of S over the parent sets among its predecessors.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import ZERO, compiled, inner
from gpn_bayes.mcmc.choices import Chance, choose, choose_weighted
from gpn_bayes.mcmc.draw_dag import draw_parents
from gpn_bayes.mcmc.sums import log_sum_inside
from gpn_bayes.mcmc.tables import ScoreTables, bit_of, candidate, n_candidates

ADJACENT_SWAP, ANY_SWAP, RELOCATE = 0, 1, 2
MOVES = ("adjacent swap", "any swap", "relocation")
# How often each move is tried. Relocation does the work of n adjacent swaps, at about their price.
DEFAULT_MIX = np.array([0.3, 0.2, 0.5])


# Rows of `OrderState.ints`.
ORDER, PLACE, INSIDE = 0, 1, 2


class OrderState(NamedTuple):
    """An order and what is known of its score.

    Attributes
    ----------
    ints : ndarray of int64, shape (3, n)
        The nodes, first to last; the place of each node; the local mask of each node's candidates among
        its predecessors.
    score : ndarray of float64, shape (n,)
        Each node's share of the log score.
    """

    ints: Ints
    score: Floats


@compiled
def new_order(tables: ScoreTables, order: Ints) -> OrderState:
    """Return the state of a given order, scored."""
    n = len(order)
    state = OrderState(np.full((3, n), -1), np.empty(n))
    for p in range(n):
        state.ints[ORDER, p] = order[p]
        state.ints[PLACE, order[p]] = p
    rescore_order(tables, state, ZERO, n)
    return state


@inner
def copy_order(source: OrderState, target: OrderState) -> None:
    """Copy one state onto another."""
    for i in range(len(source.score)):
        for row in range(3):
            target.ints[row, i] = source.ints[row, i]
        target.score[i] = source.score[i]


@inner
def rescore_order(tables: ScoreTables, state: OrderState, first: int, end: int) -> None:
    """Bring the scores of the nodes at places first, …, end - 1 up to date."""
    for p in range(first, end):
        node = state.ints[ORDER, p]
        inside = ZERO
        for bit in range(n_candidates(tables, node)):
            # Without a branch: it would be unpredictable, and cost more than the arithmetic.
            inside |= int(state.ints[PLACE, candidate(tables, node, bit)] < p) << bit
        if inside != state.ints[INSIDE, node]:
            state.ints[INSIDE, node] = inside
            state.score[node] = log_sum_inside(tables, node, inside)


@compiled
def _swap(chance: Chance, tables: ScoreTables, new: OrderState, adjacent: bool) -> None:
    n = len(new.score)
    if adjacent:
        first = choose(chance, n - 1)
        second = first + 1
    else:
        first = choose(chance, n)
        second = choose(chance, n - 1)
        if second >= first:
            second += 1
        first, second = min(first, second), max(first, second)
    left, right = new.ints[ORDER, first], new.ints[ORDER, second]
    new.ints[ORDER, first], new.ints[ORDER, second] = right, left
    new.ints[PLACE, left], new.ints[PLACE, right] = second, first
    rescore_order(tables, new, first, second + 1)


@inner
def relocate(chance: Chance, tables: ScoreTables, current: OrderState, new: OrderState, beta: float) -> None:
    """Put a node at one of the n places, in proportion to the score^beta of the resulting order (Gibbs)."""
    n = len(current.score)
    node = choose(chance, n)
    target = choose_weighted(chance, beta * log_weights_of_places(tables, current, node))
    source = current.ints[PLACE, node]
    step = 1 if target > source else -1
    for p in range(source, target, step):
        other = new.ints[ORDER, p + step]
        new.ints[ORDER, p] = other
        new.ints[PLACE, other] = p
    new.ints[ORDER, target] = node
    new.ints[PLACE, node] = target
    rescore_order(tables, new, min(source, target), max(source, target) + 1)


@inner
def log_weights_of_places(tables: ScoreTables, current: OrderState, node: int) -> Floats:
    """Return the log score of the order with `node` at each place.

    At place p the others before it don't see the node, those after it do, and the node sees those before.
    """
    n = len(current.score)
    log_weights = np.empty(n)
    seeing = np.empty(n)
    unseeing = 0.0
    inside = ZERO
    place = 0
    for p in range(n):
        other = current.ints[ORDER, p]
        if other == node:
            continue
        log_weights[place] = unseeing + log_sum_inside(tables, node, inside)
        seen = current.score[other]
        unseen = seen
        bit = bit_of(tables, other, node)
        if bit >= 0:
            others_inside = current.ints[INSIDE, other]
            seen = log_sum_inside(tables, other, others_inside | (1 << bit))
            unseen = log_sum_inside(tables, other, others_inside & ~(1 << bit))
        seeing[place] = seen
        unseeing += unseen
        own_bit = bit_of(tables, node, other)
        if own_bit >= 0:
            inside |= 1 << own_bit
        place += 1
    log_weights[n - 1] = unseeing + log_sum_inside(tables, node, inside)
    # Sums from the end, not differences of sums: a term may be minus infinity.
    after = 0.0
    for p in range(n - 2, -1, -1):
        after += seeing[p]
        log_weights[p] += after
    return log_weights


@compiled
def propose_order(chance: Chance, tables: ScoreTables, current: OrderState, new: OrderState, move: int) -> float:
    """Propose a move from `current` into `new` (a copy of it); return the log acceptance ratio."""
    if move == RELOCATE:
        relocate(chance, tables, current, new, 1.0)
        return 0.0
    if len(current.score) == 1:
        return -np.inf
    _swap(chance, tables, new, move == ADJACENT_SWAP)
    return new.score.sum() - current.score.sum()


@compiled
def draw_from_order(chance: Chance, tables: ScoreTables, state: OrderState, parents: Ints) -> None:
    """Draw a DAG that the order allows, as local parent masks."""
    for node in range(len(parents)):
        parents[node] = draw_parents(chance, tables, node, state.ints[INSIDE, node], ZERO, state.score[node])
