"""Residual variances of linear regressions, from the correlations."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.linear.bge import family, log_minor


@compiled
def log_residuals(matrix: Floats, node: int, parents: Ints, sizes: Ints) -> Floats:
    """Return the log variance of a node that several parent sets (rows of `parents`, padded) leave unexplained."""
    values = np.empty(len(sizes))
    for row in range(len(sizes)):
        size = sizes[row]
        indices = family(parents[row], size, node)
        # |R_PX| / |R_P| is the Schur complement R_XX - R_XP R_PP^-1 R_PX.
        values[row] = log_minor(matrix, indices) - log_minor(matrix, indices[:size])
    return values
