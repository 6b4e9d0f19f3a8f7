"""Numbers with Student t noise: the posterior of the hyperparameters, and what there is without parents."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammainccinv, gammaincinv

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process import student as gp_student
from gpn_bayes.kernels.gaussian_process.features import RowFunctions
from gpn_bayes.kernels.gaussian_process.modes import HIGHEST_LOG_SIGMA, LOWEST_LOG_SIGMA
from gpn_bayes.kernels.gaussian_process.priors import Priors, log_prior
from gpn_bayes.kernels.gaussian_process.student import Measured
from gpn_bayes.scores.gp.modes import starts_of_search
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.processes import Kernels, ProcessPosterior

# Normal distributions in the mixture that stands for a t distribution where draws are placed, and the probability of
# their precisions that is left out on either side.
_PARTS, _LEFT_OUT = 12, 1e-9
# Climbs start with more noise and with less: where there are outliers, most of the rows may have little.
_LITTLE_NOISE = 0.2
# Without parents: points of log sigma and of mu, first to find where the posterior is and then to integrate over it;
# a density this many nats below the highest is negligible; and mu is looked for this many prior standard deviations
# about its mean, and wherever there are rows.
_COARSE, _FINE, _NEGLIGIBLE, _WIDTHS = 41, 81, 40.0, 8.0
_MOST_ZOOMS = 20
_KERNELS = Kernels(
    gp_student.laplace_log_posterior,
    gp_student.laplace_log_posterior_and_gradient,
    gp_student.estimated_log_posteriors,
    gp_student.weighted_draws,
)


def measured(rows: RowFunctions, values: Floats, degrees: float, weights: Floats | None = None) -> Measured:
    """Return what the likelihood of a number with Student t noise needs of the rows.

    Parameters
    ----------
    rows : RowFunctions
        The functions of its parents at all rows.
    values : ndarray of shape (rows,)
        The standardised node minus the prior mean of mu.
    degrees : float
        The degrees of freedom, more than 2.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> table = np.random.default_rng(1).normal(size=(50, 2))
    >>> found = measured(Basis(table).row_functions((1,), np.arange(50)), table[:, 0], 4.0)
    >>> bool(np.isclose(np.exp(found.log_shares).sum(), 1)), len(found.values)
    (True, 52)
    """
    padded = np.zeros((2, rows.functions.shape[1]))
    padded[0, : len(values)] = values
    padded[1, : len(values)] = 1.0 if weights is None else weights
    # A t distribution is a normal one whose precision has a gamma distribution; its logarithm is on a grid here.
    half = 0.5 * degrees
    lowest, highest = gammaincinv(half, _LEFT_OUT) / half, gammainccinv(half, _LEFT_OUT) / half
    logs = np.linspace(math.log(lowest), math.log(highest), _PARTS)
    log_shares = half * (logs - np.exp(logs))
    log_shares -= np.logaddexp.reduce(log_shares)
    return Measured(rows, padded[0], padded[1], float(degrees), np.exp(-logs), log_shares)


class StudentPosterior(ProcessPosterior):
    """The posterior of the hyperparameters of a number with Student t noise: phi = (log sigma, log theta_1, …).

    sigma is the standard deviation of the noise.

    Parameters
    ----------
    observed : Measured
        The data of the node and its parents, of which there is at least one.
    priors : Priors
        The priors of phi.
    rng : numpy.random.Generator
        The source of the estimates' randomness.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> table = np.random.default_rng(1).normal(size=(50, 2))
    >>> observed = measured(Basis(table).row_functions((1,), np.arange(50)), table[:, 0], 4.0)
    >>> posterior = StudentPosterior(observed, HyperPriors().for_parents(1), np.random.default_rng(2))
    >>> len(posterior.find_modes().points) > 0
    True
    """

    pairs = 4
    climbs = 3

    def __init__(self, observed: Measured, priors: Priors, rng: np.random.Generator) -> None:
        self.observed = observed
        super().__init__(_KERNELS, observed, 1, priors, int(observed.weights.sum()), rng)

    def usual_starts(self) -> Floats:
        """Return the usual starts, and the same with less noise."""
        usual = starts_of_search(self.size - 1)
        with_less = usual.copy()
        with_less[:, 0] = math.log(_LITTLE_NOISE)
        return np.concatenate([usual, with_less])

    def scale(self, phi: Floats) -> float:
        """Return the inverse of the t distribution's own scale."""
        return math.exp(-phi[0]) / math.sqrt(1 - 2 / self.observed.degrees)


class LevelGrid(NamedTuple):
    """The posterior of sigma and mu of a node without parents, on a grid over all that counts of it.

    Attributes
    ----------
    log_sigma : ndarray of shape (sigmas,)
        Evenly spaced.
    mu : ndarray of shape (means,)
        Evenly spaced.
    log_density : ndarray of shape (sigmas, means)
        Log likelihood plus log prior, the Jacobian of log sigma included.
    """

    log_sigma: Floats
    mu: Floats
    log_density: Floats

    def log_evidence(self) -> float:
        """Return the log of the integral, by the trapezoidal rule, which is exact to rounding on a smooth peak."""
        top = self.log_density.max()
        inner = np.trapezoid(np.exp(self.log_density - top), self.mu, axis=1)
        return float(top + np.log(np.trapezoid(inner, self.log_sigma)))

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw mu and sigma: a cell about a point of the grid, and a place within it."""
        chances = np.exp(self.log_density - self.log_density.max()).ravel()
        cells = rng.choice(len(chances), count, p=chances / chances.sum())
        first, second = np.unravel_index(cells, self.log_density.shape)
        steps = self.log_sigma[1] - self.log_sigma[0], self.mu[1] - self.mu[0]
        apart = rng.random((2, count)) - 0.5
        return self.mu[second] + steps[1] * apart[1], np.exp(self.log_sigma[first] + steps[0] * apart[0])


def grid_without_parents(y: Floats, priors: HyperPriors, degrees: float, weights: Floats | None = None) -> LevelGrid:
    """Return the posterior of sigma and mu of a node without parents and with Student t noise.

    Parameters
    ----------
    y : ndarray, shape (rows,)
        The standardised values of the node.
    priors : HyperPriors
        The prior of the mean and that of sigma, the standard deviation of the noise.
    degrees : float
        The degrees of freedom.
    weights : ndarray, shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> y = np.random.default_rng(1).standard_t(4, size=300)
    >>> grid = grid_without_parents(y, HyperPriors(), 4.0)
    >>> mu, sigma = grid.draw(1000, np.random.default_rng(2))
    >>> float(mu.mean().round(1)), float(sigma.mean().round(1))
    (-0.1, 1.4)
    """
    mean, sd = priors.mu
    prior = priors.for_parents(0)
    lowest, highest = prior.bounds[prior.kinds[0]]
    whole = np.array(
        [
            [max(lowest, LOWEST_LOG_SIGMA), min(highest, HIGHEST_LOG_SIGMA)],
            [min(y.min(), mean - _WIDTHS * sd), max(y.max(), mean + _WIDTHS * sd)],
        ]
    )
    counted = np.ones(len(y)) if weights is None else weights

    def over(box: Floats, points: int) -> LevelGrid:
        log_sigma, mu = (np.linspace(lower, upper, points) for lower, upper in box)
        likelihood = gp_student.log_likelihoods_without_parents(y, counted, degrees, log_sigma, mu)
        of_sigma = np.array([log_prior(np.array([value]), prior) for value in log_sigma])
        of_mu = -0.5 * ((mu - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)
        return LevelGrid(log_sigma, mu, likelihood + of_sigma[:, None] + of_mu)

    box = whole
    for _ in range(_MOST_ZOOMS):
        grid = over(box, _COARSE)
        high = grid.log_density > grid.log_density.max() - _NEGLIGIBLE
        sides = []
        for axis, values in ((1, grid.log_sigma), (0, grid.mu)):
            held = values[high.any(axis=axis)]
            step = values[1] - values[0]
            sides.append([held[0] - step, held[-1] + step])
        closer = np.clip(sides, whole[:, :1], whole[:, 1:])
        settled = (np.ptp(closer, axis=1) > 0.8 * np.ptp(box, axis=1)).all()
        box = closer
        if settled:
            break
    return over(box, _FINE)
