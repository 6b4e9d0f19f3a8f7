"""Scored parent sets of every node, best first, and the best of them within a set of nodes.

A set of nodes is a row of 64-bit words, so that networks of any size have room.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner

# A smaller difference between two scores is rounding: they tie.
LEAST_GAIN = 1e-8


class ParentSets(NamedTuple):
    """The parent sets that each node may have.

    Attributes
    ----------
    starts : ndarray of int64, shape (n + 1,)
        The sets of node i are the rows ``starts[i]`` to ``starts[i + 1]``, best first; every node has at least one.
    words : ndarray of uint64, shape (sets, words)
        Their members: node j is bit ``j % 64`` of word ``j // 64``.
    scores : ndarray of float64, shape (sets,)
        Their scores.
    """

    starts: Ints
    words: Words
    scores: Floats


@compiled
def contains(nodes: Words, node: int) -> bool:
    """Tell whether a node is in a set of nodes."""
    holds: bool = (nodes[node >> 6] >> np.uint64(node & 63)) & np.uint64(1) == np.uint64(1)
    return holds


@compiled
def insert(nodes: Words, node: int) -> None:
    """Put a node into a set of nodes."""
    nodes[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@compiled
def remove(nodes: Words, node: int) -> None:
    """Take a node out of a set of nodes."""
    nodes[node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))


@compiled
def best_within(sets: ParentSets, node: int, allowed: Words) -> int:
    """Return the row of a node's best parent set within the allowed nodes; -1 if it has none there."""
    return next_within(sets, node, allowed, sets.starts[node])


@inner
def next_within(sets: ParentSets, node: int, allowed: Words, first: int) -> int:
    """Return the first row, from `first` on, of a node's parent sets that lies within the allowed nodes; or -1."""
    words = sets.words
    for row in range(first, sets.starts[node + 1]):
        outside = np.uint64(0)
        for word in range(words.shape[1]):
            outside |= words[row, word] & ~allowed[word]
        if outside == np.uint64(0):
            return row
    return -1


@compiled
def best_of_order(sets: ParentSets, order: Ints, rows: Ints) -> float:
    """Return the score of the best DAG of an order, earlier nodes first, and write the row of every node's set.

    It is minus infinity where some node has no set among its predecessors.
    """
    before = np.zeros(sets.words.shape[1], dtype=np.uint64)
    # sum_i max of s(i, P) over P within the predecessors of i
    total = 0.0
    for node in order:
        row = best_within(sets, node, before)
        rows[node] = row
        total += sets.scores[row] if row >= 0 else -np.inf
        insert(before, node)
    return total


@compiled
def undominated(sets: ParentSets) -> Bools:
    """Return, for each row, whether no subset of the set, among its node's sets, has a score as high."""
    kept = np.zeros(len(sets.scores), dtype=np.bool_)
    for node in range(len(sets.starts) - 1):
        for row in range(sets.starts[node], sets.starts[node + 1]):
            # Better sets come first, and of equal ones the smaller.
            kept[row] = True
            for better in range(sets.starts[node], row):
                outside = np.uint64(0)
                for word in range(sets.words.shape[1]):
                    outside |= sets.words[better, word] & ~sets.words[row, word]
                # Q within P, with s(Q) >= s(P).
                if kept[better] and outside == np.uint64(0):
                    kept[row] = False
                    break
    return kept
