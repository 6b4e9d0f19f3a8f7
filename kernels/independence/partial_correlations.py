"""The weakest partial correlations of one variable, over all conditioning sets of a size."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner

# A variable with less than this share of its variance left is determined by the conditioning set.
DETERMINED = 1e-8


@inner
def _condition(above: Floats, below: Floats, k: int) -> None:
    """Write the Schur complement of variable k, as far as deeper levels read it.

    These are the rows of variable 0 and of those after k, which may follow k in a set, and the diagonal.
    """
    # S_ab <- S_ab - S_ak S_kb / S_kk
    m = above.shape[0]
    pivot = above[k, k]
    for a in range(m):
        factor = above[k, a] / pivot
        if a == 0 or a > k:
            for b in range(m):
                below[a, b] = above[a, b] - factor * above[k, b]
        else:
            below[a, a] = above[a, a] - factor * above[k, a]


@inner
def _test_all(above: Floats, chosen: Ints, weakest: Floats, sets: Ints) -> None:
    """Compare variable 0 with every variable that isn't in the set, whose last member isn't conditioned on yet."""
    m, size = above.shape[0], len(chosen)
    k = chosen[size - 1]
    pivot = above[k, k]
    # With the last member k of the set conditioned on: own = S_00 - S_0k^2 / S_kk, what is left of variable 0;
    # rest = S_jj - S_kj^2 / S_kk and shared = S_0j - S_0k S_kj / S_kk.
    own = above[0, 0] - above[0, k] ** 2 / pivot
    if own < DETERMINED:
        return
    for j in range(1, m):
        rest = above[j, j] - above[k, j] ** 2 / pivot
        if rest < DETERMINED:  # also every member of the set
            continue
        shared = above[0, j] - above[0, k] * above[k, j] / pivot
        # The squared partial correlation: shared^2 / (own rest).
        square = shared * shared / (own * rest)
        if square < weakest[j]:
            member = False
            for b in range(size):
                member = member or chosen[b] == j
            if not member:
                weakest[j] = square
                for b in range(size):
                    sets[j, b] = chosen[b]


@compiled
def weakest_partials(matrix: Floats, size: int) -> tuple[Floats, Ints]:
    """Return the smallest squared partial correlation of variable 0 with each other one, and the set that gives it.

    All sets of `size` others are gone through. A set grows by one variable after its last, and carries the Schur
    complement of those before: a test takes a handful of multiplications, whatever the size. Sets that determine one of
    their own members, or one of the two variables, say nothing and are left out.

    On a precision matrix instead of a correlation matrix, what is conditioned on is left out instead: then it returns
    the partial correlations given all others but the set.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Symmetric, with ones on the diagonal.
    size : int
        Size of the sets, from 1 to m - 2.

    Returns
    -------
    weakest : ndarray of shape (m,)
        Infinite where no set could be tested.
    sets : ndarray of int, shape (m, size)
    """
    m = matrix.shape[0]
    weakest = np.full(m, np.inf)
    sets = np.zeros((m, size), np.int64)
    chosen = np.zeros(size, np.int64)
    schur = np.empty((size, m, m))
    for a in range(m):
        for b in range(m):
            schur[0, a, b] = matrix[a, b]
    following = np.ones(size, np.int64)
    depth = 0
    while depth >= 0:
        k = following[depth]
        if k > m - (size - depth):
            depth -= 1
            continue
        following[depth] = k + 1
        above = schur[depth]
        if above[k, k] < DETERMINED:
            continue
        chosen[depth] = k
        if depth == size - 1:
            _test_all(above, chosen, weakest, sets)
        else:
            _condition(above, schur[depth + 1], k)
            depth += 1
            following[depth] = k + 1
    return weakest, sets
