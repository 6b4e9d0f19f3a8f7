"""A* over the order graph (Yuan & Malone 2013): from no node placed to all, a node at a time.

A state is the set of nodes placed, its value g the score of the best DAG on them that is known. What the rest can add
at most is h, the sum over groups of nodes of what each group could add if only its own members stood in each other's
way (a static pattern database). States are taken by g + h, highest first.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.learners.parent_sets import ParentSets, best_within

# Sums of the same scores in another order differ by less.
_ROUNDING = 1e-9

DONE = 0
PAUSED = 1
FULL = 2


class Patterns(NamedTuple):
    """What each group of nodes can still add at most.

    Attributes
    ----------
    group : ndarray of int64, shape (n,)
        The group of each node.
    bit : ndarray of int64, shape (n,)
        Its place within the group, as a mask.
    tables : ndarray of float64, shape (groups, 2 ** largest)
        For each group and each mask of its members not yet placed, the most they can add.
    """

    group: Ints
    bit: Ints
    tables: Floats


class Frontier(NamedTuple):
    """The states known, in a hash table, and those to be looked at, in a heap.

    Attributes
    ----------
    keys : ndarray of uint64
        The state in each place of the hash table, or 2^63 for none; their number is a power of 2.
    values : ndarray of float64
        The value g of each.
    waiting : ndarray of uint64
        The heap's states.
    limits : ndarray of float64
        Their g + h; the highest is first.
    counts : ndarray of int64
        Numbers of states known, of states in the heap, and of states looked at.
    """

    keys: Words
    values: Floats
    waiting: Words
    limits: Floats
    counts: Ints


_NO_STATE = np.uint64(1 << 63)


@compiled
def fill_patterns(sets: ParentSets, patterns: Patterns, members: Ints) -> None:
    """Fill in the tables; `members` lists each group's nodes, then -1.

    The first of the remaining members to be placed has all nodes but them to choose from.
    """
    n = len(patterns.group)
    before = np.empty(1, np.uint64)
    for group in range(members.shape[0]):
        size = 0
        while size < members.shape[1] and members[group, size] >= 0:
            size += 1
        table = patterns.tables[group]
        table[0] = 0.0
        for mask in range(1, 1 << size):
            before[0] = (1 << n) - 1
            for place in range(size):
                if (mask >> place) & 1:
                    before[0] ^= np.uint64(1) << np.uint64(members[group, place])
            best = -np.inf
            for place in range(size):
                if (mask >> place) & 1:
                    row = best_within(sets, members[group, place], before)
                    # table(M) = max over i in M of table(M - i) + b_i(V - M), b_i(T) the best score with parents in T.
                    if row >= 0:
                        best = max(best, table[mask ^ (1 << place)] + sets.scores[row])
            table[mask] = best


@inner
def _place(keys: Words, state: np.uint64) -> int:
    """Return where a state is in the hash table, or where it would go."""
    last = np.uint64(len(keys) - 1)
    mixed = state * np.uint64(0x9E3779B97F4A7C15)
    place = (mixed ^ (mixed >> np.uint64(32))) & last
    while keys[place] != state and keys[place] != _NO_STATE:
        place = (place + np.uint64(1)) & last
    return int(place)


@inner
def _push(frontier: Frontier, state: np.uint64, limit: float) -> None:
    waiting, limits = frontier.waiting, frontier.limits
    place = frontier.counts[1]
    frontier.counts[1] += 1
    while place > 0 and limits[(place - 1) // 2] < limit:
        waiting[place], limits[place] = waiting[(place - 1) // 2], limits[(place - 1) // 2]
        place = (place - 1) // 2
    waiting[place], limits[place] = state, limit


@inner
def _pop(frontier: Frontier) -> np.uint64:
    waiting, limits = frontier.waiting, frontier.limits
    top: np.uint64 = waiting[0]
    frontier.counts[1] -= 1
    size = frontier.counts[1]
    state, limit = waiting[size], limits[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and limits[child + 1] > limits[child]:
            child += 1
        if limits[child] <= limit:
            break
        waiting[place], limits[place] = waiting[child], limits[child]
        place = child
    waiting[place], limits[place] = state, limit
    return top


@inner
def _remaining(patterns: Patterns, state: np.uint64, left: Ints) -> float:
    """Return h of a state, and write which members of each group are still to be placed."""
    left[:] = 0
    for node in range(len(patterns.group)):
        if not (state >> np.uint64(node)) & np.uint64(1):
            left[patterns.group[node]] |= patterns.bit[node]
    # h = sum over groups of table(members left)
    h = 0.0
    for group in range(len(left)):
        h += patterns.tables[group, left[group]]
    return h


@inner
def _expand(
    sets: ParentSets, patterns: Patterns, frontier: Frontier, state: np.uint64, known: float, left: Ints
) -> None:
    """Place one more node after a state, each in turn; keep what may lead to a score above `known`."""
    before = np.empty(1, np.uint64)
    before[0] = state
    g = frontier.values[_place(frontier.keys, state)]
    h = _remaining(patterns, state, left)
    for node in range(len(patterns.group)):
        if (state >> np.uint64(node)) & np.uint64(1):
            continue
        row = best_within(sets, node, before)
        if row < 0:
            continue
        table, mask = patterns.tables[patterns.group[node]], left[patterns.group[node]]
        # g(S + i) = g(S) + b_i(S), and f = g + h, where only the table of the node's own group changes h.
        g_after = g + sets.scores[row]
        f_after = g_after + h - table[mask] + table[mask ^ patterns.bit[node]]
        if not f_after > known + _ROUNDING:
            continue
        after = state | (np.uint64(1) << np.uint64(node))
        place = _place(frontier.keys, after)
        if frontier.keys[place] == _NO_STATE:
            frontier.keys[place] = after
            frontier.counts[0] += 1
        elif frontier.values[place] + _ROUNDING >= g_after:
            continue
        frontier.values[place] = g_after
        _push(frontier, after, f_after)


@compiled
def begin(patterns: Patterns, frontier: Frontier) -> None:
    """Put the state with no node placed into an empty frontier."""
    left = np.empty(patterns.tables.shape[0], np.int64)
    frontier.keys[:] = _NO_STATE
    place = _place(frontier.keys, np.uint64(0))
    frontier.keys[place] = np.uint64(0)
    frontier.values[place] = 0.0
    frontier.counts[:] = 0
    frontier.counts[0] = 1
    _push(frontier, np.uint64(0), _remaining(patterns, np.uint64(0), left))


@compiled
def search(sets: ParentSets, patterns: Patterns, frontier: Frontier, known: float, most: int) -> int:
    """Look at up to `most` states; return DONE once no state can lead above `known`, or the best order is found.

    It is FULL where the arrays have to grow first. The highest g + h in the heap, if any, bounds every score above
    `known`.
    """
    n = len(patterns.group)
    goal = (np.uint64(1) << np.uint64(n)) - np.uint64(1)
    left = np.empty(patterns.tables.shape[0], np.int64)
    for _ in range(most):
        if frontier.counts[1] == 0 or frontier.waiting[0] == goal:
            return DONE
        if 2 * (frontier.counts[0] + n) > len(frontier.keys) or frontier.counts[1] + n > len(frontier.waiting):
            return FULL
        f = frontier.limits[0]
        state = _pop(frontier)
        g = frontier.values[_place(frontier.keys, state)]
        # A state that was reached again, by a better way, has been looked at already.
        if g + _remaining(patterns, state, left) > f + 0.5 * _ROUNDING:
            continue
        frontier.counts[2] += 1
        _expand(sets, patterns, frontier, state, known, left)
    return PAUSED


@compiled
def move_states(old: Frontier, new: Frontier) -> None:
    """Put all states into larger arrays."""
    new.keys[:] = _NO_STATE
    for place in range(len(old.keys)):
        if old.keys[place] != _NO_STATE:
            there = _place(new.keys, old.keys[place])
            new.keys[there], new.values[there] = old.keys[place], old.values[place]
    for place in range(old.counts[1]):
        new.waiting[place], new.limits[place] = old.waiting[place], old.limits[place]
    new.counts[:] = old.counts


@compiled
def rows_of_path(sets: ParentSets, frontier: Frontier, n: int) -> Ints:
    """Return the row of each node's parent set along the best way to the state in which all are placed."""
    rows = np.empty(n, np.int64)
    state = (np.uint64(1) << np.uint64(n)) - np.uint64(1)
    before = np.empty(1, np.uint64)
    for _ in range(n):
        best, last = -np.inf, -1
        for node in range(n):
            bit = np.uint64(1) << np.uint64(node)
            if not state & bit:
                continue
            before[0] = state ^ bit
            place = _place(frontier.keys, before[0])
            row = best_within(sets, node, before)
            if frontier.keys[place] == _NO_STATE or row < 0:
                continue
            # g(S) = max over i in S of g(S - i) + b_i(S - i)
            if last < 0 or frontier.values[place] + sets.scores[row] > best:
                best, last = frontier.values[place] + sets.scores[row], node
                rows[node] = row
        state ^= np.uint64(1) << np.uint64(last)
    return rows
