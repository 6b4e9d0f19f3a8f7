"""BFGS climbs that leave the density and its gradient to the caller.

So compiled and other posteriors climb by the same rules. Loops rather than array expressions, which take long to
compile.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner

# After this many shorter steps that gained too little there is nothing to gain in a direction.
MOST_TRIES = 12
# Places in `numbers` and `counts` of a climb.
VALUE, LENGTH, PROMISE = 0, 1, 2
STEP, TRIES = 0, 1


class Climb(NamedTuple):
    """Where a climb stands.

    Attributes
    ----------
    phi, gradient : ndarray of shape (size,)
        The highest point so far, and the gradient there.
    inverse : ndarray of shape (size, size)
        The inverse of minus the Hessian, as far as it is known.
    direction : ndarray of shape (size,)
        Where it goes next.
    new_phi, new_gradient : ndarray of shape (size,)
        The point whose density is asked for, and the place for its gradient.
    numbers : ndarray of shape (3,)
        The log density at `phi`; the length of the step; and twice what one of length one promises to gain.
    counts : ndarray of shape (2,)
        The steps, and how many times the last was shortened.
    """

    phi: Floats
    gradient: Floats
    inverse: Floats
    direction: Floats
    new_phi: Floats
    new_gradient: Floats
    numbers: Floats
    counts: Ints


@compiled
def new_climb(start: Floats, inverse: Floats) -> Climb:
    """Return a climb that asks for the density at its start; `inverse` is brought up to date in place."""
    size = len(start)
    numbers = np.array([-np.inf, 0.0, 0.0])
    nowhere = np.empty(size)
    return Climb(
        start.copy(), np.empty(size), inverse, nowhere, start.copy(), np.empty(size), numbers, np.zeros(2, np.int64)
    )


@compiled
def goes_on(climb: Climb, value: float, tolerance: float, most_steps: int) -> bool:
    """Take the log density at `new_phi`, and its gradient in `new_gradient`; tell whether the climb asks for another.

    It ends where the next step promises to gain less than half of `tolerance`, or where no step gains anything.
    """
    phi, gradient, inverse, direction, new_phi, new_gradient, numbers, counts = climb
    size = len(phi)
    if counts[STEP] == 0 and not value > -np.inf:
        # There is no density at the start, and no gradient.
        return False
    # Armijo's condition, f(phi + length p) >= f(phi) + 1e-4 length p'g with p the direction and g the gradient.
    if counts[STEP] == 0 or value >= numbers[VALUE] + 1e-4 * numbers[LENGTH] * numbers[PROMISE]:
        if counts[STEP] > 0:
            _update_inverse(inverse, phi, new_phi, gradient, new_gradient)
        numbers[VALUE] = value
        for a in range(size):
            phi[a] = new_phi[a]
            gradient[a] = new_gradient[a]
        numbers[PROMISE] = _direction(inverse, gradient, direction)
        if not numbers[PROMISE] >= tolerance or counts[STEP] == most_steps:
            return False
        # No coordinate moves by more than one e-fold in a step.
        numbers[LENGTH] = 1.0
        for a in range(size):
            numbers[LENGTH] = min(numbers[LENGTH], 1.0 / abs(direction[a]))
        counts[STEP] += 1
        counts[TRIES] = 0
    else:
        counts[TRIES] += 1
        if counts[TRIES] > MOST_TRIES:
            return False
        numbers[LENGTH] *= 0.3
    for a in range(size):
        new_phi[a] = phi[a] + numbers[LENGTH] * direction[a]
    return True


@inner
def _direction(inverse: Floats, gradient: Floats, direction: Floats) -> float:
    """Write the direction of the next step; return what a step of length one promises to gain, twice."""
    # p = H g with H the inverse, and p'g = g'H g.
    promise = 0.0
    for a in range(len(gradient)):
        direction[a] = 0.0
        for b in range(len(gradient)):
            direction[a] += inverse[a, b] * gradient[b]
        promise += direction[a] * gradient[a]
    return promise


@inner
def _update_inverse(inverse: Floats, phi: Floats, new_phi: Floats, gradient: Floats, new_gradient: Floats) -> None:
    """Make the inverse, in place, map the last change of gradient to the last step.

    With the inverse H, step s and change d of minus the gradient, it becomes
    H + (1 + d'H d / s'd) s s' / s'd - (H d s' + s d'H) / s'd.
    """
    size = len(phi)
    s, h_d = np.empty(size), np.empty(size)
    # s, s_d = s'd and h_d = H d.
    s_d = d_h_d = 0.0
    for a in range(size):
        s[a] = new_phi[a] - phi[a]
        s_d += s[a] * (gradient[a] - new_gradient[a])
        h_d[a] = 0.0
        for b in range(size):
            h_d[a] += inverse[a, b] * (gradient[b] - new_gradient[b])
    if not s_d > 1e-12:
        return
    # d_h_d = d'H d, then (1 + d'H d / s'd) / s'd.
    for a in range(size):
        d_h_d += (gradient[a] - new_gradient[a]) * h_d[a]
    scale = (1.0 + d_h_d / s_d) / s_d
    for a in range(size):
        for b in range(size):
            inverse[a, b] += scale * s[a] * s[b] - (h_d[a] * s[b] + s[a] * h_d[b]) / s_d
