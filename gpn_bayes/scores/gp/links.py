"""Categories as children of a Gaussian process: the posterior of the hyperparameters, given the levels observed."""

import math

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.gaussian_process import links as gp_links
from gpn_bayes.kernels.gaussian_process.links import Counts
from gpn_bayes.kernels.gaussian_process.priors import Priors
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.modes import within_bounds
from gpn_bayes.scores.gp.processes import DrawnWeights, Kernels, ProcessPosterior

# Without parents: values of sigma, and how often the likelihood at each is estimated.
_SIGMAS, _ESTIMATES = 200, 8
# The noise behind a category that a search starts from lies between these, and its log odds are this well known.
_LEAST_NOISE, _MOST_NOISE = 0.05, 0.95
_VARIANCE_OF_ODDS = 0.3
LOGISTIC, GUMBEL = math.pi / math.sqrt(3.0), math.pi / math.sqrt(6.0)
_KERNELS = Kernels(
    gp_links.laplace_log_posterior,
    gp_links.laplace_log_posterior_and_gradient,
    gp_links.estimated_log_posteriors,
    gp_links.weighted_draws,
)


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


class LatentPosterior(ProcessPosterior):
    """The posterior of the hyperparameters behind a category.

    Parameters
    ----------
    counts : Counts
        The data of the node and its parents.
    priors : Priors
        The priors of phi = (log(sigma / (1 - sigma)), log theta_1, …).
    rng : numpy.random.Generator
        The source of the estimates' randomness.
    codes : LowRankPosterior, optional
        The posterior if the codes of the levels were numbers, whose modes take next to no time: a search starts there.
    """

    pairs = 4
    climbs = 2

    def __init__(
        self, counts: Counts, priors: Priors, rng: np.random.Generator, codes: LowRankPosterior | None = None
    ) -> None:
        self.counts = counts
        self._codes = codes
        processes = 1 if counts.ordered else len(counts.contrasts)
        super().__init__(_KERNELS, counts, processes, priors, int(counts.counts.sum()), rng)

    def starts(self) -> Floats:
        """Return the highest mode if codes were numbers, and the first of the usual starts."""
        if self._codes is None:
            return super().starts()
        first = self._codes.find_modes().points[:1]
        sigma = np.clip(np.exp(first[:, 0]), _LEAST_NOISE, _MOST_NOISE)
        first[:, 0] = np.log(sigma / (1 - sigma))
        return within_bounds(np.concatenate([first, self.usual_starts()[:1]]), self.priors)

    def first_inverse(self) -> Floats:
        """Return a first guess of the inverse of minus the Hessian: levels tell less of sigma than numbers do."""
        inverse = super().first_inverse()
        inverse[0, 0] = _VARIANCE_OF_ODDS
        return inverse

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
            return super().draw_phi(count, rng)
        grid = self._grid()
        log_densities = self.log_densities(grid)
        chances = np.exp(log_densities - log_densities.max())
        return grid[rng.choice(len(grid), count, p=chances / chances.sum())]

    def draw_processes(self, phi: Floats, count: int, rng: np.random.Generator) -> DrawnWeights:
        """Draw the weights of processes given hyperparameters: of one, or of one for each level, with mean zero."""
        drawn = super().draw_processes(phi, count, rng)
        if self.counts.ordered:
            return drawn
        contrasts = self.counts.contrasts
        functions = [np.einsum("dpf,pk->dkf", own, contrasts) for own in drawn.functions]
        return DrawnWeights(functions, drawn.intercept @ contrasts)

    def scale(self, phi: Floats) -> float:
        """Return s, the inverse of the noise in units of the link's own: what offsets are multiplied by too."""
        return (LOGISTIC if self.counts.ordered else GUMBEL) * (1 + math.exp(-phi[0]))
