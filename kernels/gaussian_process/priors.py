"""Priors of positive hyperparameters, tabulated over the logarithm so that compiled code can use any distribution.

A hyperparameter x is handled as log x throughout; densities are those of log x, the Jacobian included.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner


class Priors(NamedTuple):
    """The priors of the coordinates of phi = (log sigma, log theta_1, …).

    Attributes
    ----------
    kinds : ndarray of int64, shape (size,)
        The row of the tables that each coordinate of phi uses.
    lowest : float
        The first knot, a logarithm.
    step : float
        The distance between knots.
    log_density : ndarray of shape (distributions, knots)
        The log density of log x at the knots. The knots next to a bound on its outer side hold the continuation that
        makes the interpolation right up to the bound; those further out aren't read.
    slopes : ndarray of shape (distributions, knots)
        Its derivative there.
    cumulative : ndarray of shape (distributions, knots)
        The probability below each knot, with all of it between the first knot and the last.
    bounds : ndarray of shape (distributions, 2)
        The lowest and the highest log x of positive density, within the knots.
    """

    kinds: Ints
    lowest: float
    step: float
    log_density: Floats
    slopes: Floats
    cumulative: Floats
    bounds: Floats


@inner
def _cell(log_x: float, priors: Priors) -> int:
    """Return the cell between knots that holds a value; the last knot belongs to the last cell."""
    cell = int(np.floor((log_x - priors.lowest) / priors.step))
    within: int = max(0, min(cell, priors.log_density.shape[1] - 2))
    return within


@inner
def _within(log_x: float, kind: int, priors: Priors) -> bool:
    within: bool = priors.bounds[kind, 0] <= log_x <= priors.bounds[kind, 1]
    return within


@compiled
def log_prior(phi: Floats, priors: Priors) -> float:
    """Return the log prior density; minus infinity outside the bounds."""
    total = 0.0
    for i in range(len(phi)):
        kind = priors.kinds[i]
        if not _within(phi[i], kind, priors):
            return -np.inf
        cell = _cell(phi[i], priors)
        t = (phi[i] - priors.lowest) / priors.step - cell
        below, above = priors.log_density[kind, cell], priors.log_density[kind, cell + 1]
        rise, next_rise = priors.slopes[kind, cell] * priors.step, priors.slopes[kind, cell + 1] * priors.step
        # Cubic Hermite interpolation, p_0 and p_1 being the values at the knots, h their distance and m the slopes:
        # (1 - t)^2 ((1 + 2 t) p_0 + t h m_0) + t^2 ((3 - 2 t) p_1 + (t - 1) h m_1).
        total += (1 - t) * (1 - t) * ((1 + 2 * t) * below + t * rise) + t * t * (
            (3 - 2 * t) * above + (t - 1) * next_rise
        )
    return total


@compiled
def add_prior_gradient(phi: Floats, priors: Priors, gradient: Floats) -> None:
    """Add the gradient of the log prior density; NaN outside the bounds."""
    for i in range(len(phi)):
        kind = priors.kinds[i]
        if not _within(phi[i], kind, priors):
            gradient[i] = np.nan
            continue
        cell = _cell(phi[i], priors)
        t = (phi[i] - priors.lowest) / priors.step - cell
        # Its derivative: 6 t (1 - t) (p_1 - p_0) / h + (1 - t) (1 - 3 t) m_0 + t (3 t - 2) m_1.
        gap = (priors.log_density[kind, cell + 1] - priors.log_density[kind, cell]) / priors.step
        gradient[i] += (
            6 * t * (1 - t) * gap
            + (1 - t) * (1 - 3 * t) * priors.slopes[kind, cell]
            + t * (3 * t - 2) * priors.slopes[kind, cell + 1]
        )


@compiled
def draw_prior(phi: Floats, priors: Priors, rng: np.random.Generator) -> None:
    """Draw phi from the histogram of the priors whose cells lie between the knots.

    A cell that holds a bound is drawn from as a whole, so that a draw may lie outside, where the density is zero.
    """
    for i in range(len(phi)):
        cumulative = priors.cumulative[priors.kinds[i]]
        chance = rng.random()
        # F(phi_i) = chance, F being linear between the knots.
        cell = np.searchsorted(cumulative, chance, side="right") - 1
        share = (chance - cumulative[cell]) / (cumulative[cell + 1] - cumulative[cell])
        phi[i] = priors.lowest + priors.step * (cell + share)


@compiled
def log_drawn_density(phi: Floats, priors: Priors) -> float:
    """Return the log density of what `draw_prior` draws: the histogram's, so that weights are exact."""
    total = 0.0
    width = priors.step * (priors.cumulative.shape[1] - 1)
    for i in range(len(phi)):
        if not 0.0 <= phi[i] - priors.lowest <= width:
            return -np.inf
        cell = _cell(phi[i], priors)
        cumulative = priors.cumulative[priors.kinds[i]]
        # log ((F_{k+1} - F_k) / h) in the cell from knot k on.
        total += np.log((cumulative[cell + 1] - cumulative[cell]) / priors.step)
    return total
