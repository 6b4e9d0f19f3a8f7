"""Categories as children of a Gaussian process: the posterior of the hyperparameters, given the levels observed."""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.gp_links import (
    Counts,
    estimated_log_posteriors,
    laplace_log_posterior,
    laplace_log_posterior_and_gradient,
    new_workspace,
    weighted_draws,
)
from gpn_bayes.kernels.priors import Priors
from gpn_bayes.scores.gp.climbing import ClimbedPosterior
from gpn_bayes.scores.gp.modes import starts_of_search, within_bounds
from gpn_bayes.scores.gp.proposal import draw_hyperparameters

# Pairs of weighted draws that estimate a likelihood.
_PAIRS = 4
# Weighted draws of the processes for each one that is wanted.
_DRAWS_EACH = 8
# How many climbs start for modes of the hyperparameters.
_STARTS = 2
# Without parents: values of sigma, and how often the likelihood at each is estimated.
_SIGMAS, _ESTIMATES = 200, 8
LOGISTIC, GUMBEL = math.pi / math.sqrt(3.0), math.pi / math.sqrt(6.0)


def offsets_of(levels: Ints, cardinality: int, ordered: bool, weights: Floats | None = None) -> Floats:
    """Return the cuts of an ordered category, or the a_k of an unordered one, at which all rows fit without parents.

    As the columns of numbers are standardised, this fixes where the number behind a category lies: with mu = 0,
    sigma = 1 and no parents, the levels have the probabilities with which they were observed.

    Parameters
    ----------
    levels : ndarray of int, shape (rows,)
        The levels observed, by code; each at least once.
    cardinality : int
        How many there are.
    ordered : bool
        Whether they are ordered.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.

    Examples
    --------
    >>> offsets_of(np.array([0, 1, 1, 1]), 2, ordered=True).round(3)
    array([-0.606])
    """
    counts = np.bincount(levels, weights, minlength=cardinality)
    shares = counts / counts.sum()
    if not ordered:
        log_shares: Floats = np.log(shares) / GUMBEL
        return log_shares - log_shares.mean()
    below = np.cumsum(shares)[:-1]
    cuts: Floats = np.log(below / (1 - below)) / LOGISTIC
    return cuts


class DrawnWeights(NamedTuple):
    """Draws of the processes behind a category, given hyperparameters.

    Attributes
    ----------
    scale : float
        s, the inverse of the noise: what offsets are multiplied by.
    functions : list of ndarray of shape (draw, process, function)
        For every parent, s times the coefficients of the basis' functions U.
    intercept : ndarray of shape (draw, process)
        s times mu.
    """

    scale: float
    functions: list[Floats]
    intercept: Floats


class LatentPosterior(ClimbedPosterior):
    """The posterior of the hyperparameters behind a category.

    Densities and modes are those of Laplace's approximation; `log_densities` are estimates without bias, so that what
    is estimated from many of them is exact but for its standard error.

    Parameters
    ----------
    counts : Counts
        The data of the node and its parents.
    priors : Priors
        The priors of phi = (log(sigma / (1 - sigma)), log theta_1, …).
    rng : numpy.random.Generator
        The source of the estimates' randomness.
    """

    hessian_step = 0.02
    stages = ((0.05, 0.25), (1e-3, 0.1), (1e-5, 0.05))

    def __init__(self, counts: Counts, priors: Priors, rng: np.random.Generator) -> None:
        self.counts = counts
        self.priors = priors
        self.size = len(priors.kinds)
        self.n_rows = int(counts.counts.sum())
        self._rng = rng
        self._work = new_workspace(counts)

    def log_densities(self, points: Floats) -> Floats:
        """Return the logs of unbiased estimates of the density at every point, one per row."""
        return estimated_log_posteriors(points, self.counts, self._work, self.priors, _PAIRS, self._rng)

    def log_density(self, phi: Floats) -> float:
        """Return the log density by Laplace's approximation; minus infinity where it can't be computed."""
        value = laplace_log_posterior(phi, self.counts, self._work, self.priors)
        return -np.inf if np.isnan(value) else value

    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density by Laplace's approximation, and its gradient."""
        gradient = np.full(self.size, np.nan)
        value = laplace_log_posterior_and_gradient(phi, self.counts, self._work, self.priors, gradient)
        return (value, gradient) if np.isfinite(value) else (-np.inf, np.full(self.size, np.nan))

    def starts(self) -> Floats:
        """Return the best few of the usual starts: levels tell less of length scales than numbers, and take longer."""
        usual = within_bounds(starts_of_search(self.size - 1), self.priors)
        heights = [self.log_density(start) for start in usual]
        return usual[np.argsort(heights)[::-1][:_STARTS]]

    def log_evidence_without_parents(self) -> tuple[float, float]:
        """Return the log of the integral over sigma, and its standard error: of a node without parents.

        The trapezoidal rule over the log odds of sigma; mu is integrated out by weighted draws.
        """
        grid = self._grid()
        estimates = np.array([self.log_densities(grid) for _ in range(_ESTIMATES)])
        totals = np.exp(estimates - estimates.max()).sum(axis=1)
        log_step = math.log(grid[1, 0] - grid[0, 0])
        error = totals.std(ddof=1) / math.sqrt(_ESTIMATES) / totals.mean()
        return float(estimates.max() + np.log(totals.mean()) + log_step), float(error)

    def _grid(self) -> Floats:
        """Return values of phi without parents, one a row."""
        lowest, highest = self.priors.bounds[self.priors.kinds[0]]
        return np.linspace(lowest, highest, _SIGMAS)[1:-1, None]

    def draw_phi(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw hyperparameters from the posterior, one a row."""
        if self.size > 1:
            return draw_hyperparameters(self, self.find_modes(), count, rng)
        grid = self._grid()
        log_densities = self.log_densities(grid)
        chances = np.exp(log_densities - log_densities.max())
        return grid[rng.choice(len(grid), count, p=chances / chances.sum())]

    def draw_processes(self, phi: Floats, count: int, rng: np.random.Generator) -> "DrawnWeights":
        """Draw the weights w of the processes given hyperparameters: those of weighted draws that a choice falls on."""
        drawn, log_weights = weighted_draws(phi, self.counts, self._work, max(_DRAWS_EACH * count // 2, 1), rng)
        chances = np.exp(log_weights - log_weights.max())
        chosen = drawn[rng.choice(len(drawn), count, p=chances / chances.sum())]
        spans, parents = self._work.spans, len(self.counts.cells)
        functions = [
            chosen[:, :, begin : begin + m] @ self._work.factors[i, :m, :m].T
            for i, (m, begin) in enumerate(spans[:parents].tolist())
        ]
        scale = (LOGISTIC if self.counts.ordered else GUMBEL) * (1 + math.exp(-phi[0]))
        return DrawnWeights(scale, functions, scale * self.counts.mean_sd * chosen[:, :, spans[parents, 1]])
