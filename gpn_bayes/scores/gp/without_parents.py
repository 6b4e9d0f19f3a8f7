"""The score of a node without parents: a one-dimensional integral over the noise, exact to rounding."""

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.data.weights import weighted_sums
from gpn_bayes.kernels.gaussian_process.modes import HIGHEST_LOG_SIGMA, LOWEST_LOG_SIGMA
from gpn_bayes.kernels.gaussian_process.priors import log_prior
from gpn_bayes.scores.gp.priors import HyperPriors

_POINTS = 4001
# A density this many nats below its highest value is negligible.
_NEGLIGIBLE = 45.0


def log_evidence_without_parents(y: Floats, priors: HyperPriors, weights: Floats | None = None) -> float:
    """Return log of the integral of N(y; mu_0 1, s^2 1 1' + sigma^2 I) p(log sigma) over log sigma.

    The trapezoidal rule is exact to rounding on a smooth peak.

    Parameters
    ----------
    y : ndarray, shape (rows,)
        The standardised values of the node.
    priors : HyperPriors
        The prior of the mean, mu_0 and s, and that of sigma.
    weights : ndarray, shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> y = np.random.default_rng(1).normal(size=100)
    >>> round(log_evidence_without_parents(y, HyperPriors()), 1)
    -131.0
    """
    grid, log_density = posterior_without_parents(y, priors, weights)
    top = log_density.max()
    return float(top + np.log(np.trapezoid(np.exp(log_density - top), grid)))


def draw_without_parents(
    y: Floats, priors: HyperPriors, count: int, rng: np.random.Generator, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Draw mu and sigma of a node without parents from their posterior.

    Parameters
    ----------
    y : ndarray, shape (rows,)
        The standardised values of the node.
    priors : HyperPriors
        The prior of the mean, mu_0 and s, and that of sigma.
    count : int
        How often.
    rng : numpy.random.Generator
        The source of all randomness.
    weights : ndarray, shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> y = np.random.default_rng(1).normal(size=100)
    >>> mu, sigma = draw_without_parents(y, HyperPriors(), 1000, np.random.default_rng(2))
    >>> float(sigma.mean().round(1)), float(mu.std().round(1))
    (0.9, 0.1)
    """
    grid, log_density = posterior_without_parents(y, priors, weights)
    below = np.concatenate([[0.0], np.cumsum(np.exp(log_density - log_density.max()))])
    # Between the middles of cells, within which the density hardly changes.
    edges = np.append(grid, 2 * grid[-1] - grid[-2]) - 0.5 * (grid[1] - grid[0])
    sigma = np.exp(np.interp(rng.random(count), below / below[-1], edges))
    mean, sd = priors.mu
    n_rows, total, _ = weighted_sums(y, weights)
    precision = n_rows / sigma**2 + 1 / sd**2
    centre = (total / sigma**2 + mean / sd**2) / precision
    return centre + rng.standard_normal(count) / np.sqrt(precision), sigma


def posterior_without_parents(y: Floats, priors: HyperPriors, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return a grid of log sigma over all that counts of the posterior, and the log density there, not normalised.

    Parameters
    ----------
    y : ndarray, shape (rows,)
        The standardised values of the node.
    priors : HyperPriors
        The prior of the mean, mu_0 and s, and that of sigma.
    weights : ndarray, shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> y = np.random.default_rng(1).normal(size=100)
    >>> grid, log_density = posterior_without_parents(y, HyperPriors())
    >>> float(np.exp(grid[log_density.argmax()]).round(1))
    0.9
    """
    coarse = np.linspace(LOWEST_LOG_SIGMA, HIGHEST_LOG_SIGMA, _POINTS)
    log_density = _log_density(y, priors, coarse, weights)
    high = coarse[log_density > log_density.max() - _NEGLIGIBLE]
    step = coarse[1] - coarse[0]
    grid = np.linspace(max(high[0] - step, coarse[0]), min(high[-1] + step, coarse[-1]), _POINTS)
    return grid, _log_density(y, priors, grid, weights)


def _log_density(y: Floats, priors: HyperPriors, log_sigma: Floats, weights: Floats | None) -> Floats:
    """Return log N(y; mu_0 1, s^2 1 1' + sigma^2 I) + log p(log sigma), at every log sigma."""
    mean, sd = priors.mu
    n_rows, total, squares_about = weighted_sums(y - mean, weights)
    noise = np.exp(2 * log_sigma)
    with_mean = noise + n_rows * sd**2
    squares = squares_about - (sd * total) ** 2 / with_mean
    log_density = -0.5 * (
        (n_rows - 1) * 2 * log_sigma + np.log(with_mean) + squares / noise + n_rows * np.log(2 * np.pi)
    )
    prior = priors.for_parents(0)
    with_prior: Floats = log_density + np.array([log_prior(np.array([value]), prior) for value in log_sigma])
    return with_prior
