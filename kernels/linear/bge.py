"""The arithmetic of the BGe score: principal minors of one matrix, and the scores made of them."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.graphs.subsets import popcount


@compiled
def log_minors(matrix: Floats, max_size: int) -> Floats:
    """Return the log principal minor of every index set of at most `max_size`, in bitmask order.

    A set grows by one index above its largest, and carries the Schur complement of the indices above:
    about three multiplications a set in all, instead of a determinant each.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Symmetric positive definite.
    max_size : int
        Larger sets get NaN.
    """
    m = matrix.shape[0]
    minors = np.full(1 << m, np.nan)
    minors[0] = 0.0
    schur = np.empty((max_size + 1, m, m))
    for a in range(m):
        for b in range(m):
            schur[0, a, b] = matrix[a, b]
    following = np.zeros(max_size + 1, np.int64)
    masks = np.zeros(max_size + 1, np.int64)
    depth = 0
    while depth >= 0:
        j = following[depth]
        if j == m or depth == max_size:
            depth -= 1
            continue
        following[depth] = j + 1
        above, below = schur[depth], schur[depth + 1]
        pivot = above[j, j]
        mask = masks[depth] | (1 << j)
        # |R_{S+j}| = |R_S| (R | S)_jj, where (R | S) = R - R_.S R_SS^-1 R_S. is the Schur complement of the set S.
        minors[mask] = minors[masks[depth]] + np.log(pivot)
        # (R | S+j)_ab = (R | S)_ab - (R | S)_ja (R | S)_jb / (R | S)_jj.
        for a in range(j + 1, m):
            factor = above[j, a] / pivot
            for b in range(a, m):
                below[a, b] = above[a, b] - factor * above[j, b]
        depth += 1
        following[depth] = j + 1
        masks[depth] = mask
    return minors


@inner
def log_minor(matrix: Floats, indices: Ints) -> float:
    """Return the log principal minor of one index set, by Cholesky elimination."""
    size = len(indices)
    work = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            work[a, b] = matrix[indices[a], indices[b]]
    # log |R| = sum_j log of the pivots R_jj, each after R_ab -= R_ja R_jb / R_jj for the indices before.
    total = 0.0
    for j in range(size):
        total += np.log(work[j, j])
        for a in range(j + 1, size):
            factor = work[j, a] / work[j, j]
            for b in range(a, size):
                work[a, b] -= factor * work[j, b]
    return total


@inner
def family(parents: Ints, size: int, node: int) -> Ints:
    """Return the first of some parents, as many as there are, and then the node."""
    indices = np.empty(size + 1, np.int64)
    for b in range(size):
        indices[b] = parents[b]
    indices[size] = node
    return indices


@inner
def bge_from_minors(with_node: float, without: float, size: int, constants: Floats, half_df: float) -> float:
    """Return the local score from log |R_PX|, log |R_P| and the number l of parents.

    It is the log of c_l |R_P|^((N + alpha_w - n + l) / 2) / |R_PX|^((N + alpha_w - n + l + 1) / 2) (Geiger & Heckerman
    2002; Kuipers, Moffa & Heckerman 2014). `constants` are the log c_l, and `half_df` is (N + alpha_w - n) / 2.
    """
    # log c_l - (N + alpha_w - n + l + 1) / 2 log |R_PX| + (N + alpha_w - n + l) / 2 log |R_P|.
    score: float = constants[size] - (half_df + 0.5 * (size + 1)) * with_node + (half_df + 0.5 * size) * without
    return score


@compiled
def bge_table(matrix: Floats, constants: Floats, half_df: float, max_parents: int) -> Floats:
    """Return the local scores of the last variable of `matrix` for all subsets of the others."""
    k = matrix.shape[0] - 1
    minors = log_minors(matrix, max_parents + 1)
    table = np.full(1 << k, -np.inf)
    for mask in range(1 << k):
        size = popcount(mask)
        if size <= max_parents:
            table[mask] = bge_from_minors(minors[mask | (1 << k)], minors[mask], size, constants, half_df)
    return table


@compiled
def bge_sets(
    matrix: Floats,
    node: int,
    parents: Ints,
    sizes: Ints,
    constants: Floats,
    half_df: float,
) -> Floats:
    """Return the local scores of a node for several parent sets (rows of `parents`, padded)."""
    values = np.empty(len(sizes))
    for row in range(len(sizes)):
        size = sizes[row]
        indices = family(parents[row], size, node)
        values[row] = bge_from_minors(
            log_minor(matrix, indices), log_minor(matrix, indices[:size]), size, constants, half_df
        )
    return values
