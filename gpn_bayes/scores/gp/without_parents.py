"""The score of a node without parents: a one-dimensional integral over the noise, exact to rounding."""

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gp_modes import HIGHEST_LOG_SIGMA, LOWEST_LOG_SIGMA
from gpn_bayes.kernels.priors import log_prior
from gpn_bayes.scores.gp.priors import HyperPriors

_POINTS = 4001
# A density this many nats below its highest value is negligible.
_NEGLIGIBLE = 45.0


def log_evidence_without_parents(y: Floats, priors: HyperPriors) -> float:
    """Return log of the integral of N(y; mu_0 1, s^2 1 1' + sigma^2 I) p(log sigma) over log sigma.

    The trapezoidal rule is exact to rounding on a smooth peak.

    Parameters
    ----------
    y : ndarray, shape (rows,)
        The standardised values of the node.
    priors : HyperPriors
        The prior of the mean, mu_0 and s, and that of sigma.

    Examples
    --------
    >>> y = np.random.default_rng(1).normal(size=100)
    >>> round(log_evidence_without_parents(y, HyperPriors()), 1)
    -131.0
    """
    coarse = np.linspace(LOWEST_LOG_SIGMA, HIGHEST_LOG_SIGMA, _POINTS)
    log_density = _log_density(y, priors, coarse)
    high = coarse[log_density > log_density.max() - _NEGLIGIBLE]
    step = coarse[1] - coarse[0]
    grid = np.linspace(max(high[0] - step, coarse[0]), min(high[-1] + step, coarse[-1]), _POINTS)
    log_density = _log_density(y, priors, grid)
    top = log_density.max()
    return float(top + np.log(np.trapezoid(np.exp(log_density - top), grid)))


def _log_density(y: Floats, priors: HyperPriors, log_sigma: Floats) -> Floats:
    """Return log N(y; mu_0 1, s^2 1 1' + sigma^2 I) + log p(log sigma), at every log sigma."""
    mean, sd = priors.mu
    centred = y - mean
    n_rows, noise = len(y), np.exp(2 * log_sigma)
    with_mean = noise + n_rows * sd**2
    squares = centred @ centred - (sd * centred.sum()) ** 2 / with_mean
    log_density = -0.5 * (
        (n_rows - 1) * 2 * log_sigma + np.log(with_mean) + squares / noise + n_rows * np.log(2 * np.pi)
    )
    prior = priors.for_parents(0)
    with_prior: Floats = log_density + np.array([log_prior(np.array([value]), prior) for value in log_sigma])
    return with_prior
