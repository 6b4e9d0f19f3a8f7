"""Lasso regressions by active sets: exact zeros, exact minima, and little work where hardly anything changes."""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner_fused

# A predictor that the others determine up to this share of its variance adds nothing of its own.
_PIVOT_SHARE = 1e-11
# Gradients that exceed the penalty by no more than this, in units of the scales, are rounding.
_TOLERANCE = 1e-8
_MOST_ROUNDS = 50


class LassoSpace(NamedTuple):
    """Room to work in, for problems of a limited number of predictors."""

    active: Ints
    signs: Floats
    goal: Floats
    factor: Floats
    blocked: Bools


def lasso_space(most: int) -> LassoSpace:
    """Return the room that problems of up to `most` predictors need."""
    return LassoSpace(
        np.empty(most, np.int64), np.empty(most), np.empty(most), np.empty((most, most)), np.empty(most, np.bool_)
    )


@inner_fused
def _extend_factor(gram: Floats, active: Ints, factor: Floats, valid: int, size: int) -> None:
    """Compute the rows of the Cholesky factor of the active predictors from `valid` on."""
    for a in range(valid, size):
        for b in range(a + 1):
            # L_ab = (G_ab - sum over c < b of L_ac L_bc) / L_bb, and L_aa = sqrt(G_aa - sum over c < a of L_ac^2).
            total = gram[active[a], active[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if b < a:
                factor[a, b] = total / factor[b, b]
            else:
                factor[a, a] = np.sqrt(max(total, _PIVOT_SHARE * gram[active[a], active[a]]))


@inner_fused
def _solve_factor(factor: Floats, goal: Floats, size: int) -> None:
    """Replace `goal` by the solution of L L' x = goal."""
    # L y = goal: y_a = (goal_a - sum over c < a of L_ac y_c) / L_aa.
    for a in range(size):
        total = goal[a]
        for c in range(a):
            total -= factor[a, c] * goal[c]
        goal[a] = total / factor[a, a]
    # L' x = y: x_a = (y_a - sum over c > a of L_ca x_c) / L_aa.
    for a in range(size - 1, -1, -1):
        total = goal[a]
        for c in range(a + 1, size):
            total -= factor[c, a] * goal[c]
        goal[a] = total / factor[a, a]


@inner_fused
def _settle(
    gram: Floats, linear: Floats, penalties: Floats, weights: Floats, space: LassoSpace, size: int,
    valid: int,
) -> int:  # fmt: skip
    """Move to the minimum over the active predictors, leaving out those whose sign would turn; return how many stay."""
    active, signs, goal = space.active, space.signs, space.goal
    while size > 0:
        _extend_factor(gram, active, space.factor, valid, size)
        # Where no sign turns, the minimum over the active set A has G_AA w_A = c_A - p_A sign(w_A).
        for a in range(size):
            goal[a] = linear[active[a]] - penalties[active[a]] * signs[a]
        _solve_factor(space.factor, goal, size)
        step, turning = 1.0, -1
        for a in range(size):
            now = weights[active[a]]
            if penalties[active[a]] > 0.0 and goal[a] * signs[a] <= 0.0:
                # now + share (goal - now) = 0
                share = now / (now - goal[a]) if now != goal[a] else 0.0
                if turning < 0 or share < step:
                    step, turning = share, a
        # w <- w + step (goal - w), as far as the first that turns.
        for a in range(size):
            j = active[a]
            weights[j] += step * (goal[a] - weights[j])
        if turning < 0:
            for a in range(size):
                weights[active[a]] = goal[a]
            return size
        gone = active[turning]
        if step == 0.0:
            # It came in only to leave at once: rounding, which would go on forever.
            space.blocked[gone] = True
        weights[gone] = 0.0
        for a in range(turning, size - 1):
            active[a], signs[a] = active[a + 1], signs[a + 1]
        size, valid = size - 1, turning
    return size


@inner_fused
def _fill_gradient(gram: Floats, linear: Floats, weights: Floats, active: Ints, gradient: Floats) -> None:
    """Write c - G w, minus the gradient of w' G w / 2 - c' w."""
    m = len(linear)
    for j in range(m):
        gradient[j] = linear[j]
    for i in active:
        weight = weights[i]
        # G is symmetric: rows are read, which lie together in memory.
        for j in range(m):
            gradient[j] -= weight * gram[i, j]


@inner_fused
def lasso(
    gram: Floats,
    linear: Floats,
    penalties: Floats,
    allowed: Bools,
    scale: float,
    weights: Floats,
    gradient: Floats,
    space: LassoSpace,
) -> float:
    """Minimise w' G w / 2 - c' w + sum of p |w| over the allowed weights, from those given; return the minimum.

    Parameters
    ----------
    gram : ndarray, shape (m, m)
        G, positive semi-definite.
    linear, penalties : ndarray, shape (m,)
        c and p; no penalty is negative.
    allowed : ndarray of bool, shape (m,)
        The others have weight 0.
    scale : float
        The size of what is explained, its standard deviation: it says how small a gradient is rounding.
    weights : ndarray, shape (m,)
        Where to begin; overwritten with the minimum.
    gradient : ndarray, shape (m,)
        Receives c - G w for all m predictors, allowed or not.
    space : LassoSpace
        Room to work in.
    """
    m = len(linear)
    active, signs, blocked = space.active, space.signs, space.blocked
    size = 0
    for j in range(m):
        blocked[j] = not allowed[j]
        if weights[j] != 0.0 and allowed[j]:
            active[size] = j
            signs[size] = 1.0 if weights[j] > 0.0 else -1.0
            size += 1
        else:
            weights[j] = 0.0
    valid = 0
    for _ in range(_MOST_ROUNDS + 2 * m):
        size = _settle(gram, linear, penalties, weights, space, size, valid)
        # The factor is that of all who stayed; only who joins adds to it.
        valid = size
        _fill_gradient(gram, linear, weights, active[:size], gradient)
        worst, chosen = 0.0, -1
        for j in range(m):
            # At the minimum |c - G w|_j <= p_j where w_j = 0.
            excess = np.abs(gradient[j]) - penalties[j]
            if weights[j] == 0.0 and not blocked[j] and excess > _TOLERANCE * scale * np.sqrt(gram[j, j]):
                # Twice what w_j alone could lower the objective by: max over t of excess t - G_jj t^2 / 2.
                decrease = excess * excess / gram[j, j]
                if decrease > worst:
                    worst, chosen = decrease, j
        if chosen < 0:
            break
        active[size] = chosen
        signs[size] = 1.0 if gradient[chosen] > 0.0 else -1.0
        size += 1
    total = 0.0
    for a in range(size):
        j = active[a]
        # Half the quadratic form follows from the gradient: w' G w = w' (c - gradient).
        # So w' G w / 2 - c' w = -w' (c + gradient) / 2.
        total += np.abs(weights[j]) * penalties[j] - 0.5 * weights[j] * (linear[j] + gradient[j])
    return total


@inner_fused
def _fit_set(covariance: Floats, node: int, allowed: Bools, penalties: Floats, weights: Floats,
             gradient: Floats, space: LassoSpace) -> float:  # fmt: skip
    """Return the minimum of ||x - X w||^2 / (2 n) + sum of p |w|, x being the node and X the allowed others."""
    variance: float = covariance[node, node]
    # ||x - X w||^2 / n = C_xx - 2 C_x' w + w' C w
    return 0.5 * variance + lasso(
        covariance, covariance[node], penalties, allowed, np.sqrt(variance), weights, gradient, space
    )


@compiled
def lasso_sets(covariance: Floats, node: int, padded: Ints, sizes: Ints, lambda1: float, space: LassoSpace) -> Floats:
    """Return the minimum of ||x - X w||^2 / (2 n) + lambda1 sum of |w| for a node x on each of several sets X.

    Parameters
    ----------
    covariance : ndarray, shape (d, d)
        X'X / n of centred columns.
    node : int
        What is explained.
    padded : ndarray of int64, shape (sets, most)
        The members of every set; those after its size aren't read.
    sizes : ndarray of int64, shape (sets,)
        How many members each has.
    lambda1 : float
        The penalty.
    space : LassoSpace
        Room for d predictors.
    """
    d = len(covariance)
    values = np.empty(len(sizes))
    allowed, penalties = np.zeros(d, np.bool_), np.full(d, lambda1)
    weights, gradient = np.zeros(d), np.empty(d)
    for row in range(len(sizes)):
        for k in range(sizes[row]):
            allowed[padded[row, k]] = True
        values[row] = _fit_set(covariance, node, allowed, penalties, weights, gradient, space)
        for k in range(sizes[row]):
            allowed[padded[row, k]] = False
    return values


@compiled
def lasso_table(
    covariance: Floats, node: int, candidates: Ints, max_parents: int, lambda1: float, space: LassoSpace
) -> Floats:
    """Return the minimum of the lasso of a node on each subset of candidates, in bitmask order; inf for larger ones.

    Each fit begins from the last one, whose members are nearly the same.
    """
    d, count = len(covariance), 1 << len(candidates)
    values = np.full(count, np.inf)
    allowed, penalties = np.zeros(d, np.bool_), np.full(d, lambda1)
    weights, gradient = np.zeros(d), np.empty(d)
    for mask in range(count):
        size = 0
        for bit in range(len(candidates)):
            member = (mask >> bit) & 1 == 1
            allowed[candidates[bit]] = member
            size += member
        if size <= max_parents:
            values[mask] = _fit_set(covariance, node, allowed, penalties, weights, gradient, space)
    return values
