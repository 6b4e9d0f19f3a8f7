"""A Gaussian process' marginal likelihood by importance sampling around the modes of its hyperparameters."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes.kernels import gp_importance
from gpn_bayes.kernels.gp import Moments

# A larger Pareto k says that a few draws carry the estimate (Vehtari et al. 2024).
LARGEST_K_HAT = 0.7
# The size of a round is planned from the error of the one before with this margin, and it is repeated only if its own
# error exceeds the target by more than a tolerated factor: stopping as soon as the error happens to look small would
# favour rounds in which large weights are missing, and so estimates that are too low.
_MARGIN, _TOLERATED = 1.3, 1.5
# No round has more than this many times the draws of the second.
_LARGEST_ROUND = 8
# ArviZ fits the tail to this many times the root of the number of draws.
_TAIL = 3.0


class ImportanceEstimate(NamedTuple):
    """A log marginal likelihood and how well it is known.

    Attributes
    ----------
    value : float
        The log marginal likelihood.
    error : float
        Its standard error.
    k_hat : float
        The shape of the weights' upper tail; infinite where there are too few weights to tell.
    status : str
        "ok", or "imprecise" if the aim wasn't reached.
    draws : int
        How many times the posterior density was evaluated.
    """

    value: float
    error: float
    k_hat: float
    status: str
    draws: int


class _Draws(NamedTuple):
    """The draws of one round."""

    points: np.ndarray
    log_weights: np.ndarray
    components: np.ndarray


def importance_estimate(
    moments: Moments,
    priors: np.ndarray,
    modes: np.ndarray,
    heights: np.ndarray,
    hessians: np.ndarray,
    rng: np.random.Generator,
    target_error: float = 0.03,
    pilot: int = 150,
    draws: int = 300,
    repeats: int = 2,
) -> ImportanceEstimate:
    """Estimate the log of the integral of likelihood times prior over a node's hyperparameters.

    Pilot draws from a mixture around the modes serve to fit the mixture to the posterior, draws from the fitted mixture
    to tell how many are needed, and only the round planned so enters the estimate.

    Parameters
    ----------
    moments : Moments
        The data of the node and its parents.
    priors : ndarray of shape (4,)
        Shape and scale of the inverse gamma priors of sigma and of theta.
    modes, heights, hessians : ndarray
        Modes of the posterior, its log there, and minus its second derivatives, as `find_modes` returns them.
    rng : numpy.random.Generator
        The source of all randomness.
    target_error : float, default 0.03
        The standard error to aim at.
    pilot, draws : int
        Draws of the first two rounds; later ones have at least as many as the second.
    repeats : int, default 2
        How often a planned round may be repeated.

    Examples
    --------
    >>> from gpn_bayes.kernels.gp_modes import find_modes
    >>> from gpn_bayes.scores.gp_basis import Basis
    >>> moments = Basis(np.random.default_rng(1).normal(size=(50, 2))).moments(0, (1,))
    >>> priors = np.array([1.0, 1.0, 2.0, 2.0])
    >>> importance_estimate(moments, priors, *find_modes(moments, priors), np.random.default_rng(2)).status
    'ok'
    """
    first = gp_importance.laplace_mixture(modes, heights, hessians)
    rounds = [_draw_round(first, moments, priors, pilot, rng)]
    used, count, planned = pilot, draws, False
    for _ in range(repeats + 2):
        everything = _merged(rounds)
        fitted = gp_importance.adapted_mixture(everything.points, _bounded(everything.log_weights), first, priors)
        rounds.append(_draw_round(fitted, moments, priors, count, rng))
        used += count
        value, error = _mean_of(rounds[-1:])
        k_hat = tail_shape(rounds[-1].log_weights)
        if planned and error <= _TOLERATED * target_error and k_hat <= LARGEST_K_HAT:
            return ImportanceEstimate(value, error, k_hat, "ok", used)
        needed = _MARGIN * count * (error / target_error) ** 2 if np.isfinite(error) else 2 * count
        count, planned = int(np.clip(needed, draws, _LARGEST_ROUND * draws)), True
    return ImportanceEstimate(value, error, k_hat, "imprecise", used)


def _draw_round(
    mixture: gp_importance.Mixture, moments: Moments, priors: np.ndarray, count: int, rng: np.random.Generator
) -> _Draws:
    points, components = gp_importance.draw_points(mixture, priors, count, rng)
    values = gp_importance.log_posteriors(points, moments, priors)
    density = gp_importance.component_densities(points, mixture, priors).sum(axis=1)
    return _Draws(points, values - np.log(density), components)


def _merged(rounds: list[_Draws]) -> _Draws:
    return _Draws(*(np.concatenate(parts) for parts in zip(*rounds, strict=True)))


def _bounded(log_weights: np.ndarray) -> np.ndarray:
    """Return weights of which none is so large that a fit would only see it."""
    weights = np.exp(log_weights - log_weights.max())
    return np.minimum(weights, weights.mean() * math.sqrt(len(weights)))


def _mean_of(rounds: list[_Draws]) -> tuple[float, float]:
    """Return the log of the mean weight, and its standard error by the delta method."""
    top = max(part.log_weights.max() for part in rounds)
    if top == -np.inf:
        return -np.inf, np.inf
    total = variance = 0.0
    for part in rounds:
        weights = np.exp(part.log_weights - top)
        total += weights.sum()
        variance += gp_importance.variance_of_sum(weights, part.components)
    count = sum(len(part.log_weights) for part in rounds)
    return float(top + np.log(total / count)), float(np.sqrt(variance) / total)


def tail_shape(log_weights: np.ndarray) -> float:
    """Return the Pareto k of the weights' upper tail; infinity where it can't be told, zero where all are equal."""
    count = len(log_weights)
    if np.isfinite(log_weights).sum() < 2 * _TAIL * math.sqrt(count):
        return np.inf
    tail = np.sort(log_weights)[-int(min(_TAIL * math.sqrt(count), count / 5)) :]
    if tail[0] == tail[-1]:
        return 0.0
    # Far below the largest, weights are zero; the fit takes logs of them in passing.
    with np.errstate(all="ignore"):
        _, k_hat = _array_stats().psislw(-log_weights)
    return float(k_hat) if np.isfinite(k_hat) else np.inf


def _array_stats() -> Any:
    # ArviZ takes longer to load than all else together.
    from arviz_stats.base import array_stats

    return array_stats
