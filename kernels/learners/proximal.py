"""Coordinate descent on a quasi-Newton model with penalties: the inner step of the proximal method."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import fused


@fused
def descend_coordinates(
    gradient: Floats,
    x: Floats,
    penalties: Floats,
    scale: float,
    wide: Floats,
    reduced: Floats,
    active: Ints,
    rounds: int,
    step: Floats,
) -> None:
    """Minimise g's + s'Bs / 2 + sum of penalties |x + s| over the active entries of the step s, where B = c I - Q P.

    Parameters
    ----------
    gradient, x, penalties : ndarray, shape (size,)
        g, where the step begins, and what a unit of magnitude costs.
    scale : float
        c.
    wide, reduced : ndarray, shape (size, rank)
        Q, and P transposed.
    active : ndarray of int64
        The entries that may change.
    rounds : int
        How often to go over them at most.
    step : ndarray, shape (size,)
        s, zero at the beginning; overwritten.
    """
    rank = wide.shape[1]
    carried = np.zeros(rank)
    first = 0.0
    for turn in range(rounds):
        largest = 0.0
        for j in active:
            # B_jj = c - sum_k Q_jk P_kj, and (g + B s)_j = g_j + c s_j - sum_k Q_jk (P s)_k, carried being P s.
            curvature, slope = scale, gradient[j] + scale * step[j]
            for k in range(rank):
                curvature -= wide[j, k] * reduced[j, k]
                slope -= wide[j, k] * carried[k]
            curvature = max(curvature, 1e-12 * scale)
            # The minimum over z = x_j + s_j is the soft threshold of `wanted`: sign(wanted) (|wanted| - p_j / B_jj)_+.
            now = x[j] + step[j]
            wanted = now - slope / curvature
            kept = max(np.abs(wanted) - penalties[j] / curvature, 0.0)
            target = kept if wanted > 0.0 else -kept
            change = target - now
            if change != 0.0:
                # Where the target is zero, x + step must be exactly that.
                step[j] = target - x[j]
                largest = max(largest, np.abs(change))
                # P s changes by P_kj times the change of s_j.
                for k in range(rank):
                    carried[k] += change * reduced[j, k]
        if turn == 0:
            first = largest
        if largest <= 1e-5 * first:
            break
