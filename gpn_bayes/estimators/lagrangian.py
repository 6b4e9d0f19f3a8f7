"""Minimises under a constraint h(x) = 0 that is never negative, by the augmented Lagrangian."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.estimators.quasi_newton import Function, Minimum

Minimiser = Callable[[Function, np.ndarray], Minimum]
# How far h must fall for rho to stay, by how much it grows otherwise, and where it ends.
_SUFFICIENT = 0.25
_GROWTH = 10.0
_LARGEST_RHO = 1e16


class Round(NamedTuple):
    """Where the augmented Lagrangian stands after a round.

    Attributes
    ----------
    x : ndarray
        The point.
    h : float
        The constraint's value there.
    """

    x: np.ndarray
    h: float


def augmented_lagrangian(
    loss: Function, constraint: Function, start: Floats, largest_h: float, minimiser: Minimiser
) -> Iterator[Round]:
    """Yield where each round ends, until h is below `largest_h` or can't be brought there.

    A round minimises loss + alpha h + rho / 2 h^2, then raises alpha by rho h. Where h doesn't fall to a quarter of
    what it was, rho grows tenfold instead, and the round counts as none.

    Parameters
    ----------
    loss, constraint : callable
        Each returns its value and gradient.
    start : ndarray
        Where to begin.
    largest_h : float
        How much of the constraint may remain.
    minimiser : callable
        Minimises a function from a point on, with whatever penalties there are.
    """
    now = Round(start, np.inf)
    alpha, rho = 0.0, 1.0
    while now.h > largest_h and rho < _LARGEST_RHO:
        minimum = minimiser(_lagrangian(loss, constraint, alpha, rho), now.x).x
        h = float(constraint(minimum)[0])
        if h > _SUFFICIENT * now.h:
            rho *= _GROWTH
            continue
        alpha += rho * h
        now = Round(minimum, h)
        yield now


def _lagrangian(loss: Function, constraint: Function, alpha: float, rho: float) -> Function:
    def function(x: Floats) -> tuple[float, Floats]:
        value, gradient = loss(x)
        h, slope = constraint(x)
        # A product, not a power: Python's powers raise where a product overflows.
        value += alpha * h + rho / 2 * h * h
        if not np.isfinite(value):
            return np.inf, gradient
        return value, gradient + (alpha + rho * h) * slope

    return function
