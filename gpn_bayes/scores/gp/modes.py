"""The posterior of a node's hyperparameters, as the estimators of its integral see it, and the search for its modes.

Posteriors of length scales often have two modes, a rough relation with little noise and a smooth one with more. So a
search starts from several length scales and keeps every distinct end.
"""

import itertools
from typing import NamedTuple, Protocol

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.priors import Priors

# Length scales to start from, and the noise.
MIDDLE, SHORT, LONG = 1.0, 0.3, 3.0
START_SIGMA = 0.6
# A first climb ends when it promises to gain less than ROUGH; if a known mode is within NEAR, it leads there. The final
# climb ends at FINE, and two ends within SAME are one mode. Distances are in e-folds of the hyperparameters.
ROUGH, NEAR, FINE, SAME = 0.05, 0.25, 1e-10, 0.05
# Beyond this many rows, gains are worth less: the density is steeper, and a low-rank likelihood less smooth.
_MANY_ROWS = 1000


class Modes(NamedTuple):
    """The distinct modes of a posterior, best first.

    Attributes
    ----------
    points : ndarray of shape (modes, size)
        Where they are, in phi.
    heights : ndarray of shape (modes,)
        The log density there.
    hessians : ndarray of shape (modes, size, size)
        Minus its second derivatives there; NaN where they aren't known.
    """

    points: Floats
    heights: Floats
    hessians: Floats


class HyperPosterior(Protocol):
    """The unnormalised posterior of phi = (log sigma, log theta_1, …): likelihood times prior, Jacobian included."""

    priors: Priors

    def log_densities(self, points: Floats) -> Floats:
        """Return the log density at every point, one per row; minus infinity where it can't be computed."""

    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""

    def find_modes(self) -> Modes:
        """Return all modes that a search from fixed starts finds."""


def starts_of_search(parents: int) -> Floats:
    """Return the points phi = (log sigma, log theta_1, …) a mode search starts from, one per row.

    All combinations of middle, short and long length scales for up to two parents; beyond, one changed at a time.

    Examples
    --------
    >>> len(starts_of_search(2)), len(starts_of_search(3))
    (9, 7)
    """
    if parents <= 2:
        thetas = np.array(list(itertools.product((MIDDLE, SHORT, LONG), repeat=parents))).reshape(3**parents, parents)
    else:
        thetas = np.full((1 + 2 * parents, parents), MIDDLE)
        for i in range(parents):
            thetas[1 + 2 * i, i], thetas[2 + 2 * i, i] = SHORT, LONG
    return np.log(np.column_stack([np.full(len(thetas), START_SIGMA), thetas]))


def within_bounds(points: Floats, priors: Priors) -> Floats:
    """Return the points, those outside the priors' bounds moved just inside, none twice."""
    lower, upper = priors.bounds[priors.kinds].T
    inset = 0.01 * (upper - lower)
    moved = np.clip(points, lower + inset, upper - inset)
    return moved[np.sort(np.unique(moved, axis=0, return_index=True)[1])]


def smallest_gains(n_rows: float) -> tuple[float, float]:
    """Return the gains at which a first and a final climb end."""
    more = max(1.0, n_rows / _MANY_ROWS)
    return ROUGH * more, FINE * more**2


def first_inverse(size: int, n_rows: float) -> Floats:
    """Return a first guess of the inverse of minus the Hessian: log sigma is known best, to about 1 / sqrt(2 N)."""
    inverse = 0.25 / max(1.0, n_rows / _MANY_ROWS) * np.eye(size)
    inverse[0, 0] = 0.5 / n_rows
    return inverse


def is_known(phi: Floats, modes: list[Floats], distance: float) -> bool:
    """Tell whether a mode is within a distance, in the largest coordinate."""
    return any(np.abs(phi - mode).max() < distance for mode in modes)


def leads_to_known(end: Floats, modes: list[Floats], hessians: list[Floats], smallest_gain: float) -> bool:
    """Tell whether a first climb ended near a mode, or within one standard deviation of it as its Hessian has it.

    With many rows standard deviations are tiny, and a climb that ends at a larger gain ends some of them away.
    """
    if is_known(end, modes, NEAR):
        return True
    gaps = [end - mode for mode in modes]
    limit = max(1.0, 10.0 * smallest_gain)
    return any(gap @ hessian @ gap < limit for gap, hessian in zip(gaps, hessians, strict=True))
