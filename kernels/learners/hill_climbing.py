"""The best change of one edge: added, deleted or reversed."""

import numpy as np

from gpn_bayes.kernels.arrays import Adjacency, Bools, Floats, Words
from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.learners.parent_sets import LEAST_GAIN

NO_MOVE, TOGGLE, REVERSE = -1, 0, 1


@compiled
def reversible(adjacency: Adjacency, reach: Bools, parent: int, child: int) -> bool:
    """Tell whether the edge is the only way from parent to child, so that it can turn round without closing a cycle."""
    for other in range(len(adjacency)):
        # parent -> other ~> child
        if adjacency[parent, other] and other != child and reach[other, child]:
            return False
    return True


@compiled
def _visited(graph: int, visited: Words) -> bool:
    for known in visited:
        if known == graph:
            return True
    return False


@compiled
def best_move(
    adjacency: Adjacency, reach: Bools, gains: Floats, keys: Words, graph: int, visited: Words
) -> tuple[float, int, int, int]:
    """Return the gain of the best change, what it is, and the edge; of equal gains the first edge counts.

    Parameters
    ----------
    adjacency : ndarray of int8, shape (n, n)
        The DAG.
    reach : ndarray of bool, shape (n, n)
        Its transitive closure.
    gains : ndarray of float64, shape (n, n)
        By how much the score of node j grows when the edge i -> j is added or, where it is there, deleted: minus
        infinity where that is against the rules. It isn't read where an added edge would close a cycle, unless the edge
        the other way is there and could turn round.
    keys : ndarray of uint64, shape (n, n)
        A random number for each edge: a graph is known by the exclusive or of its edges' numbers.
    graph : uint64
        The number of the DAG.
    visited : ndarray of uint64
        The numbers of graphs not to go to.
    """
    n = len(adjacency)
    best, kind, parent, child = -np.inf, NO_MOVE, 0, 0
    for i in range(n):
        for j in range(n):
            if i == j or (not adjacency[i, j] and reach[j, i]):
                continue
            toggled = graph ^ keys[i, j]
            # gains[i, j] = s(j, Pa_j + i) - s(j, Pa_j), or with Pa_j - i where i -> j is there.
            if gains[i, j] > best + LEAST_GAIN and not _visited(toggled, visited):
                best, kind, parent, child = gains[i, j], TOGGLE, i, j
            if not adjacency[i, j]:
                continue
            # s(j, Pa_j - i) - s(j, Pa_j) + s(i, Pa_i + j) - s(i, Pa_i): i -> j turns round.
            both = gains[i, j] + gains[j, i]
            if both > best + LEAST_GAIN and reversible(adjacency, reach, i, j):
                if not _visited(toggled ^ keys[j, i], visited):
                    best, kind, parent, child = both, REVERSE, i, j
    return best, kind, parent, child
