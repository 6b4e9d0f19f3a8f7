"""Cholesky factors of small matrices, and systems of equations solved by them."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import inner


@inner
def cholesky(matrix: Floats, size: int) -> bool:
    """Turn the lower triangle of a matrix into its Cholesky factor; returns whether it has one."""
    for a in range(size):
        for b in range(a + 1):
            # L_ab = (M_ab - sum_{c<b} L_ac L_bc) / L_bb, and L_aa = (M_aa - sum_{c<a} L_ac^2)^1/2.
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            if a > b:
                matrix[a, b] = total / matrix[b, b]
            elif total > 0:  # not so of NaN
                matrix[a, a] = np.sqrt(total)
            else:
                return False
    return True


@inner
def solve(factor: Floats, right: Floats, size: int) -> None:
    """Solve L x = right, in place."""
    # x_a = (right_a - sum_{c<a} L_ac x_c) / L_aa.
    for a in range(size):
        for c in range(a):
            right[a] -= factor[a, c] * right[c]
        right[a] /= factor[a, a]


@inner
def solve_transposed(factor: Floats, right: Floats, size: int) -> None:
    """Solve L' x = right, in place."""
    # x_a = (right_a - sum_{c>a} L_ca x_c) / L_aa.
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            right[a] -= factor[c, a] * right[c]
        right[a] /= factor[a, a]
