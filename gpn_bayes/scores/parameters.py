"""The posterior of a few parameters, given its log density: an integral with its error, and draws.

Importance sampling from a multivariate t distribution, which rounds of draws fit to the posterior (Cappé, Guillin,
Marin & Robert 2004). In the first, where few draws count, weights are taken to a power that lets enough of them count:
the distribution moves and narrows step by step, and no slopes are needed. The integral is the mean of the weights of
one last set of draws, which nothing was fitted to, so that it is unbiased; the largest are smoothed as their Pareto k
asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.checks import check_not_negative
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.pareto_tails import smooth_tail
from gpn_bayes._util.types import Floats

# Degrees of freedom of the distribution that is drawn from: its tails are heavier than those of most posteriors.
_DF = 5.0
# Rounds of the fit, draws of each, and the share of them that must count as effective for the fit to be good enough.
_ROUNDS, _ROUND, _GOOD = 60, 500, 0.6
# Of more parameters, this many draws for each.
_PER_PARAMETER = 100
# While weights are taken to a power, this many draws a parameter count, and the distribution is wider by this factor.
_COUNTING, _WIDER = 10, 2.0
# Draws of the integral at least, and at most.
_FEWEST, _MOST = 1000, 64_000
_SEED = 0


@dataclass(frozen=True, eq=False)
class Parameters:
    """The posterior of some parameters; `of` finds it.

    Attributes
    ----------
    values : ndarray of shape (draws, parameters)
        Weighted draws.
    weights : ndarray of shape (draws,)
        Their weights, which add up to one.
    log_evidence : float
        The log of the integral of likelihood times prior.
    error : float
        Its standard error.
    k_hat : float
        The Pareto k of the weights: above 0.7 neither can be relied on.

    Examples
    --------
    Of a normal mean whose prior is standard normal, given ten numbers about it:

    >>> from scipy import stats
    >>> y = np.arange(10.0) / 5
    >>> found = Parameters.of(
    ...     lambda draws: stats.norm.logpdf(y, draws).sum(axis=1) + stats.norm.logpdf(draws[:, 0]), [0.0]
    ... )
    >>> exact = stats.multivariate_normal.logpdf(y, np.zeros(10), np.eye(10) + 1)
    >>> bool(abs(found.log_evidence - exact) < 4 * found.error < 0.1)
    True
    >>> float(found.draw(4000, np.random.default_rng(1)).mean().round(1))
    0.8
    """

    values: Floats
    weights: Floats
    log_evidence: float
    error: float
    k_hat: float

    @classmethod
    def of(cls, log_density: Callable[[Floats], Floats], start: Any, target_error: float = 0.02) -> "Parameters":
        """Return the posterior that has this log density; the same every time.

        Parameters
        ----------
        log_density : callable
            Given draws of the parameters, one a row, returns log likelihood plus log prior of each. Parameters can be
            any numbers: what must be positive is given by its logarithm, density included.
        start : sequence of float
            Where the search for it begins, some units of one from where it is.
        target_error : float, default 0.02
            The standard error of the log integral to aim at.
        """
        check_not_negative("target_error", target_error)
        rng = np.random.default_rng(_SEED)
        mean = np.atleast_1d(np.asarray(start, dtype=float))
        covariance = np.eye(len(mean))
        if not np.isfinite(first := _density(log_density, mean[None])[0]):
            raise ValueError(f"the log density must be finite at the start; received {first}")
        size = max(_ROUND, _PER_PARAMETER * len(mean))
        for _ in range(_ROUNDS):
            values, log_weights = _weighted(log_density, mean, covariance, size, rng)
            weights = np.exp(log_weights - log_weights.max())
            if effective_size(weights) > _GOOD * size:
                break
            mean, covariance = _fitted(values, log_weights, covariance)
        count = _FEWEST
        while True:
            values, log_weights = _weighted(log_density, mean, covariance, count, rng)
            top = log_weights.max()
            weights, k_hat = smooth_tail(np.exp(log_weights - top))
            error = float(weights.std() / weights.mean() / np.sqrt(count))
            if error <= target_error or count >= _MOST:
                break
            count *= 2
        log_evidence = float(top + np.log(weights.mean()))
        return cls(values, weights / weights.sum(), log_evidence, error, float(k_hat))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return draws of equal weight, by systematic resampling in random order."""
        below = np.cumsum(self.weights)
        places = np.searchsorted(below, (np.arange(count) + rng.random()) / count * below[-1], side="right")
        drawn: Floats = self.values[rng.permutation(np.minimum(places, len(below) - 1))]
        return drawn


def _weighted(
    log_density: Callable[[Floats], Floats], mean: Floats, covariance: Floats, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return draws of a multivariate t distribution, and their log weights, which a log density of -inf rules out."""
    d, root = len(mean), np.linalg.cholesky(covariance)
    normal = rng.standard_normal((count, d))
    stretched = normal * np.sqrt(_DF / rng.chisquare(_DF, (count, 1)))
    values = mean + stretched @ root.T
    constant = gammaln(0.5 * (_DF + d)) - gammaln(0.5 * _DF) - 0.5 * d * np.log(_DF * np.pi)
    log_t = constant - np.log(np.diag(root)).sum() - 0.5 * (_DF + d) * np.log1p((stretched**2).sum(axis=1) / _DF)
    with np.errstate(over="ignore"):  # a density far out may be zero
        log_weights: Floats = _density(log_density, values) - log_t
    return values, log_weights


def _density(log_density: Callable[[Floats], Floats], values: Floats) -> Floats:
    """Return the log density of draws, if it is one."""
    density = np.asarray(log_density(values), dtype=float)
    if density.shape != (len(values),):
        raise ValueError(
            f"the log density must be one number for each of {len(values)} draws; received shape {density.shape}"
        )
    if np.isnan(density).any() or (density == np.inf).any():
        raise ValueError(
            "the log density must be a number or -inf for any parameters; received NaN or inf: give what must be "
            "positive by its logarithm"
        )
    return density


def _fitted(values: Floats, log_weights: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance matrix of weighted draws, weights evened out as far as few of them count."""
    d = values.shape[1]
    power = 1.0
    while True:
        weights = np.exp(power * (log_weights - log_weights.max()))
        if effective_size(weights) >= _COUNTING * d or power < 1e-6:
            break
        power *= 0.7
    weights /= weights.sum()
    mean: Floats = weights @ values
    apart = values - mean
    # A little of the matrix before keeps it positive definite.
    covariance: Floats = (weights[:, None] * apart).T @ apart + 1e-6 * before
    return mean, covariance if power == 1.0 else _WIDER * covariance
