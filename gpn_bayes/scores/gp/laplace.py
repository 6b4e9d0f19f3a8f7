"""Laplace's approximation of a hyperparameter integral, summed over the modes."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.scores.gp.modes import Modes


class LaplaceEstimate(NamedTuple):
    """The approximation, and how it came about: status "ok", or "flat mode" where a mode was left out."""

    value: float
    status: str


def laplace_estimate(modes: Modes) -> LaplaceEstimate:
    """Return log of the sum over modes of exp(height) (2 pi)^(d/2) |H|^(-1/2) (eq. 13 of the paper).

    Parameters
    ----------
    modes : Modes
        The modes of the posterior.

    Returns
    -------
    LaplaceEstimate
        A mode whose Hessian isn't positive definite (a ridge, or the edge of the box) has no normal approximation and
        is left out, which the status tells; if that leaves none, the value is NaN and the status "failed".

    Examples
    --------
    >>> standard_normal = Modes(np.zeros((1, 1)), np.array([0.0]), np.array([[[1.0]]]))
    >>> round(laplace_estimate(standard_normal).value, 4)
    0.9189
    """
    masses = log_masses(modes)
    counted = masses > -np.inf
    if not counted.any():
        return LaplaceEstimate(float("nan"), "failed")
    return LaplaceEstimate(float(np.logaddexp.reduce(masses[counted])), "ok" if counted.all() else "flat mode")


def log_masses(modes: Modes) -> Floats:
    """Return the log of the integral over each mode's normal approximation; minus infinity where it has none.

    Examples
    --------
    >>> log_masses(Modes(np.zeros((2, 1)), np.zeros(2), np.array([[[1.0]], [[-1.0]]]))).round(4)
    array([0.9189,   -inf])
    """
    masses = np.full(len(modes.heights), -np.inf)
    for k, (height, hessian) in enumerate(zip(modes.heights, modes.hessians, strict=True)):
        if np.isfinite(hessian).all() and np.linalg.eigvalsh(hessian)[0] > 0:
            log_det = np.linalg.slogdet(hessian)[1]
            masses[k] = height + 0.5 * len(hessian) * np.log(2 * np.pi) - 0.5 * log_det
    return masses
