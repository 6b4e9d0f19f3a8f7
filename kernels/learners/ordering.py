"""Local search over the orders of the nodes: each node takes its best parent set among its predecessors.

Teyssier & Koller (2005), with insertions besides swaps of neighbours; and the acyclic selection of Scanagatta et al.
(2015), which also takes edges against an order where they close no cycle. All parent sets hold the required edges, and
every order that is passed in has a set for every node; so has, then, every order that comes out.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.learners.parent_sets import (
    LEAST_GAIN,
    ParentSets,
    best_of_order,
    best_within,
    contains,
    insert,
    next_within,
    remove,
)


class OrderState(NamedTuple):
    """An order and the DAG it gives.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        The nodes, first to last.
    rows : ndarray of int64, shape (n,)
        The row of each node's best parent set among its predecessors.
    """

    order: Ints
    rows: Ints


@compiled
def total_score(sets: ParentSets, rows: Ints) -> float:
    """Return the score of the DAG in which each node has the parent set of its row."""
    # sum_i s(i, Pa_i)
    total = 0.0
    for row in rows:
        total += sets.scores[row]
    return total


@inner
def _pick(rng: np.random.Generator, count: int) -> int:
    """Return a random index below a count; the generator's own integers take seconds to compile."""
    return int(rng.random() * count)


@inner
def _shuffle(rng: np.random.Generator, nodes: Ints) -> None:
    for last in range(len(nodes) - 1, 0, -1):
        other = _pick(rng, last + 1)
        nodes[last], nodes[other] = nodes[other], nodes[last]


@inner
def _predecessors(sets: ParentSets, order: Ints, end: int) -> Words:
    """Return the first nodes of an order as a set."""
    before = np.zeros(sets.words.shape[1], dtype=np.uint64)
    for place in range(end):
        insert(before, order[place])
    return before


@inner
def _exchanged(
    sets: ParentSets, first: int, first_row: int, second: int, second_row: int, before: Words
) -> tuple[int, int]:
    """Return the rows of two neighbours once they trade places; `before` are the predecessors of both."""
    if contains(sets.words[second_row], first):
        second_row = next_within(sets, second, before, second_row + 1)
    insert(before, second)
    first_row = best_within(sets, first, before)
    remove(before, second)
    return first_row, second_row


@inner
def _best_place_before(sets: ParentSets, state: OrderState, place: int) -> tuple[float, int]:
    """Return the largest gain of moving a node to the left, and where to; no gain where it had better stay."""
    node = state.order[place]
    row = state.rows[node]
    before = _predecessors(sets, state.order, place)
    gain, best, target = 0.0, 0.0, place
    for passed in range(place - 1, -1, -1):
        other = state.order[passed]
        remove(before, other)
        other_row, new_row = _exchanged(sets, other, state.rows[other], node, row, before)
        if new_row < 0:
            break
        # b_node(Pred - other) - b_node(Pred) + b_other(Pred + node) - b_other(Pred), b_i(T) the best score within T.
        gain += sets.scores[new_row] - sets.scores[row]
        gain += sets.scores[other_row] - sets.scores[state.rows[other]]
        row = new_row
        if gain > best + LEAST_GAIN:
            best, target = gain, passed
    return best, target


@inner
def _best_place_after(sets: ParentSets, state: OrderState, place: int, last: int) -> tuple[float, int]:
    """Return the largest gain of moving a node to the right, at most to place `last`, and where to."""
    node = state.order[place]
    row = state.rows[node]
    before = _predecessors(sets, state.order, place)
    gain, best, target = 0.0, 0.0, place
    for passed in range(place + 1, last + 1):
        other = state.order[passed]
        new_row, other_row = _exchanged(sets, node, row, other, state.rows[other], before)
        if other_row < 0:
            break
        # b_node(Pred + other) - b_node(Pred) + b_other(Pred - node) - b_other(Pred)
        gain += sets.scores[new_row] - sets.scores[row]
        gain += sets.scores[other_row] - sets.scores[state.rows[other]]
        row = new_row
        if gain > best + LEAST_GAIN:
            best, target = gain, passed
        insert(before, other)
    return best, target


@inner
def _move_node(sets: ParentSets, state: OrderState, place: int, target: int) -> bool:
    """Move the node at a place to another, those between closing up; tell whether every node then has a set."""
    order = state.order
    node = order[place]
    step = 1 if target > place else -1
    for passed in range(place, target, step):
        order[passed] = order[passed + step]
    order[target] = node
    first, last = min(place, target), max(place, target)
    before = _predecessors(sets, order, first)
    possible = True
    for changed in range(first, last + 1):
        state.rows[order[changed]] = best_within(sets, order[changed], before)
        possible &= state.rows[order[changed]] >= 0
        insert(before, order[changed])
    return possible


@inner
def _insertion_search(rng: np.random.Generator, sets: ParentSets, state: OrderState) -> None:
    """Move each node in turn to where it gains most, until no node gains anywhere.

    All n places of a node are compared by n - 1 trades of neighbours, which cost two lookups each.
    """
    n = len(state.order)
    nodes = state.order.copy()
    waiting = n
    while waiting > 0:
        _shuffle(rng, nodes)
        for node in nodes:
            place = 0
            while state.order[place] != node:
                place += 1
            gain, target = _best_place_before(sets, state, place)
            gain_after, target_after = _best_place_after(sets, state, place, n - 1)
            if gain_after > gain:
                target = target_after
            waiting -= 1
            if target != place:
                _move_node(sets, state, place, target)
                waiting = n
            if waiting == 0:
                break


@inner
def _swap_search(sets: ParentSets, state: OrderState) -> None:
    """Trade the neighbours that gain most, until none gain."""
    best = 1.0
    while best > 0.0:
        best, chosen = 0.0, 0
        for place in range(len(state.order) - 1):
            gain, _ = _best_place_after(sets, state, place, place + 1)
            if gain > best + LEAST_GAIN:
                best, chosen = gain, place
        if best > 0.0:
            _move_node(sets, state, chosen, chosen + 1)


@compiled
def acyclic_selection(sets: ParentSets, order: Ints, rows: Ints) -> float:
    """Choose for each node, last to first, the best set that closes no cycle with those chosen; return the score.

    A node's predecessors have no parents yet when it chooses, so its best set among them is always there to take: the
    score is never below that of the order.
    """
    n, width = len(order), sets.words.shape[1]
    descendants = np.zeros((n, width), dtype=np.uint64)
    allowed = np.empty(width, dtype=np.uint64)
    for place in range(n - 1, -1, -1):
        node = order[place]
        for word in range(width):
            allowed[word] = ~descendants[node, word]
        rows[node] = best_within(sets, node, allowed)
        parents = sets.words[rows[node]]
        for other in range(n):
            leads_here = contains(parents, other)
            for word in range(width):
                leads_here |= descendants[other, word] & parents[word] != np.uint64(0)
            if leads_here:
                insert(descendants[other], node)
                for word in range(width):
                    descendants[other, word] |= descendants[node, word]
    return total_score(sets, rows)


@compiled
def linear_extension(rng: np.random.Generator, sets: ParentSets, rows: Ints, order: Ints) -> None:
    """Write an order of the nodes with parents first, each next node chosen at random among those that may come."""
    n, width = len(rows), sets.words.shape[1]
    placed = np.zeros(width, dtype=np.uint64)
    ready = np.empty(n, dtype=np.int64)
    for place in range(n):
        choices = 0
        for node in range(n):
            missing = np.uint64(0)
            for word in range(width):
                missing |= sets.words[rows[node], word] & ~placed[word]
            if missing == np.uint64(0) and not contains(placed, node):
                ready[choices] = node
                choices += 1
        order[place] = ready[_pick(rng, choices)]
        insert(placed, order[place])


@inner
def _reshuffle(rng: np.random.Generator, sets: ParentSets, state: OrderState) -> None:
    """Take another order of the same DAG, in which some nodes may have better sets."""
    linear_extension(rng, sets, state.rows, state.order)
    best_of_order(sets, state.order, state.rows)


@compiled
def random_order(rng: np.random.Generator, sets: ParentSets, state: OrderState) -> None:
    """Take a random order in which every node comes after its smallest set, which holds its required parents alone."""
    for node in range(len(state.rows)):
        fewest = 64 * sets.words.shape[1] + 1
        for row in range(sets.starts[node], sets.starts[node + 1]):
            size = 0
            for member in range(len(state.rows)):
                size += contains(sets.words[row], member)
            if size < fewest:
                fewest = size
                state.rows[node] = row
    _reshuffle(rng, sets, state)


@compiled
def perturb(rng: np.random.Generator, sets: ParentSets, state: OrderState, moves: int) -> None:
    """Move a number of nodes to random places; moves that leave a node without a set are undone."""
    n = len(state.order)
    for _ in range(moves):
        place, target = _pick(rng, n), _pick(rng, n)
        if not _move_node(sets, state, place, target):
            _move_node(sets, state, target, place)


@compiled
def local_search(
    rng: np.random.Generator, sets: ParentSets, state: OrderState, by_insertion: bool, against_order: bool
) -> float:
    """Improve an order until no move does, nor, with `against_order`, the acyclic selection; return its score."""
    rows = np.empty(len(state.rows), dtype=np.int64)
    while True:
        if by_insertion:
            _insertion_search(rng, sets, state)
        else:
            _swap_search(sets, state)
        score = total_score(sets, state.rows)
        if not against_order or acyclic_selection(sets, state.order, rows) <= score + LEAST_GAIN:
            return score
        for node in range(len(rows)):
            state.rows[node] = rows[node]
        _reshuffle(rng, sets, state)
