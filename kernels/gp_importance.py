"""Proposals for importance sampling of a Gaussian process' hyperparameters.

A proposal is a mixture over phi = (log sigma, log theta_1, …): a multivariate Student t for every mode of the
posterior, and the prior itself, whose share keeps the weights from growing where no mode was found.
"""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.gp import Moments, new_workspace
from gpn_bayes.kernels.gp_modes import log_inverse_gamma, log_posterior

# Degrees of freedom of the t components: tails heavier than the posterior's, which fall off exponentially.
_FREEDOM = 5.0
# The first proposal: every mode has a component as wide as its Hessian says and one so many times as wide.
_WIDER, _WIDER_SHARE = 2.5, 0.35
# What the components share equally, at first and once fitted to draws, so that none is left without draws.
_FIRST_EQUAL, _FITTED_EQUAL = 0.2, 0.05
_PRIOR_SHARE = 0.1
# A posterior that is flatter than this at its mode is drawn from as if it had this curvature.
_LEAST_CURVATURE = 0.25
# A component's first scale and centre count like so many draws per dimension when it's fitted.
_SCALE_DRAWS, _CENTRE_DRAWS = 2.0, 1.0
_EM_STEPS = 8
# The share of the first proposal that stays in the fitted one: a fit to few draws can be too narrow.
_FIRST_STAYS = 0.3
# Components with fewer draws than this have no variance of their own.
_LEAST_STRATUM = 10


class Mixture(NamedTuple):
    """A proposal: one t component a mode, and the prior with the share the others leave.

    Attributes
    ----------
    centres : ndarray of shape (modes, size)
        Their centres.
    roots : ndarray of shape (modes, size, size)
        Lower Cholesky factors of their scale matrices.
    shares : ndarray of shape (modes,)
        Their probabilities.
    """

    centres: np.ndarray
    roots: np.ndarray
    shares: np.ndarray


@compiled
def _repaired_inverse(hessian: np.ndarray) -> np.ndarray:
    """Return the inverse of a minus Hessian that may not be positive definite, or not even finite."""
    size = len(hessian)
    for a in range(size):
        for b in range(size):
            if not np.isfinite(hessian[a, b]):
                return np.eye(size)
    values, vectors = np.linalg.eigh(hessian)
    return (vectors / np.maximum(values, _LEAST_CURVATURE)) @ np.ascontiguousarray(vectors.T)


@compiled
def _mixed_shares(masses: np.ndarray, equal: float) -> np.ndarray:
    return (1.0 - _PRIOR_SHARE) * ((1.0 - equal) * masses / masses.sum() + equal / len(masses))


@compiled
def laplace_mixture(modes: np.ndarray, heights: np.ndarray, hessians: np.ndarray) -> Mixture:
    """Return the proposal that the modes, their heights and minus Hessians suggest.

    Every mode has two components, one as wide as the Hessian says and one wider, for skewness and shoulders.
    """
    count, size = modes.shape
    centres = np.empty((2 * count, size))
    roots = np.empty((2 * count, size, size))
    masses = np.empty(count)
    for k in range(count):
        root = np.linalg.cholesky(_repaired_inverse(hessians[k]))
        masses[k] = heights[k] + np.log(np.diag(root)).sum()
        centres[k] = modes[k]
        centres[count + k] = modes[k]
        roots[k] = root
        roots[count + k] = _WIDER * root
    masses = np.exp(masses - masses.max())
    shares = _mixed_shares(masses, _FIRST_EQUAL)
    return Mixture(centres, roots, np.concatenate(((1.0 - _WIDER_SHARE) * shares, _WIDER_SHARE * shares)))


@compiled
def _log_t(distance: float, root: np.ndarray) -> float:
    """Return the log density of a t component at a squared Mahalanobis distance from its centre."""
    size = len(root)
    value = math.lgamma(0.5 * (_FREEDOM + size)) - math.lgamma(0.5 * _FREEDOM)
    value -= 0.5 * size * np.log(_FREEDOM * np.pi) + 0.5 * (_FREEDOM + size) * np.log1p(distance / _FREEDOM)
    for a in range(size):
        value -= np.log(root[a, a])
    return value


@compiled
def _squared_distance(phi: np.ndarray, centre: np.ndarray, root: np.ndarray, scratch: np.ndarray) -> float:
    total = 0.0
    for a in range(len(phi)):
        left = phi[a] - centre[a]
        for b in range(a):
            left -= root[a, b] * scratch[b]
        scratch[a] = left / root[a, a]
        total += scratch[a] * scratch[a]
    return total


@compiled
def component_densities(points: np.ndarray, mixture: Mixture, priors: np.ndarray) -> np.ndarray:
    """Return share times density of every component at every point, the prior's last: (points, modes + 1)."""
    count, size = points.shape
    modes = len(mixture.shares)
    densities = np.empty((count, modes + 1))
    prior_share = 1.0 - mixture.shares.sum()
    scratch = np.empty(size)
    for s in range(count):
        phi = points[s]
        for k in range(modes):
            distance = _squared_distance(phi, mixture.centres[k], mixture.roots[k], scratch)
            densities[s, k] = mixture.shares[k] * np.exp(_log_t(distance, mixture.roots[k]))
        value = log_inverse_gamma(phi[0], priors[0], priors[1])
        for i in range(1, size):
            value += log_inverse_gamma(phi[i], priors[2], priors[3])
        densities[s, modes] = prior_share * np.exp(value)
    return densities


@compiled
def _draw_prior(phi: np.ndarray, priors: np.ndarray, rng: np.random.Generator) -> None:
    for i in range(len(phi)):
        shape, scale = (priors[0], priors[1]) if i == 0 else (priors[2], priors[3])
        phi[i] = np.log(scale / rng.standard_gamma(shape))


@compiled
def _draw_t(phi: np.ndarray, centre: np.ndarray, root: np.ndarray, rng: np.random.Generator) -> None:
    size = len(phi)
    normal = np.empty(size)
    for a in range(size):
        normal[a] = rng.standard_normal()
    stretch = np.sqrt(0.5 * _FREEDOM / rng.standard_gamma(0.5 * _FREEDOM))
    for a in range(size):
        total = 0.0
        for b in range(a + 1):
            total += root[a, b] * normal[b]
        phi[a] = centre[a] + stretch * total


@compiled
def draw_points(
    mixture: Mixture, priors: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw hyperparameters from a proposal, one a row, and tell the component of each.

    The number of draws of a component is its share of `count`, rounded at random: less variance than a draw of it.
    """
    points = np.empty((count, mixture.centres.shape[1]))
    components = np.empty(count, np.int64)
    prior = len(mixture.shares)
    offset = rng.random()
    component, passed = 0, mixture.shares[0]
    for s in range(count):
        while component < prior and passed <= (s + offset) / count:
            component += 1
            if component < prior:
                passed += mixture.shares[component]
        components[s] = component
        if component < prior:
            _draw_t(points[s], mixture.centres[component], mixture.roots[component], rng)
        else:
            _draw_prior(points[s], priors, rng)
    return points, components


@compiled
def variance_of_sum(weights: np.ndarray, components: np.ndarray) -> float:
    """Return the variance of the sum of the weights, given how many draws each component has.

    Components with few draws are taken together.
    """
    counts = np.bincount(components)
    few = len(counts)
    totals, squares, sizes = np.zeros(few + 1), np.zeros(few + 1), np.zeros(few + 1)
    for s in range(len(weights)):
        stratum = components[s] if counts[components[s]] >= _LEAST_STRATUM else few
        totals[stratum] += weights[s]
        sizes[stratum] += 1.0
    for s in range(len(weights)):
        stratum = components[s] if counts[components[s]] >= _LEAST_STRATUM else few
        squares[stratum] += (weights[s] - totals[stratum] / sizes[stratum]) ** 2
    variance = 0.0
    for stratum in range(few + 1):
        if sizes[stratum] > 1.0:
            variance += squares[stratum] * sizes[stratum] / (sizes[stratum] - 1.0)
    return variance


@compiled
def log_posteriors(points: np.ndarray, moments: Moments, priors: np.ndarray) -> np.ndarray:
    """Return the log posterior density at every point; minus infinity where it can't be computed."""
    work = new_workspace(moments)
    values = np.empty(len(points))
    for s in range(len(points)):
        value = log_posterior(points[s], moments, work, priors)
        values[s] = -np.inf if np.isnan(value) else value
    return values


@compiled
def adapted_mixture(points: np.ndarray, weights: np.ndarray, first: Mixture, priors: np.ndarray) -> Mixture:
    """Return `first` together with a fit of it to weighted draws, by some steps of EM for a mixture of t's.

    Components stay close to what they were as far as few effective draws speak for something else.
    """
    effective = weights.sum() ** 2 / (weights**2).sum()
    weights = weights * (effective / weights.sum())
    mixture = first
    for _ in range(_EM_STEPS):
        densities = component_densities(points, mixture, priors)
        centres, roots = np.empty_like(first.centres), np.empty_like(first.roots)
        masses = np.empty(len(first.shares))
        for k in range(len(first.shares)):
            own = weights * densities[:, k] / densities.sum(axis=1)
            masses[k] = own.sum()
            _fit_component(points, own, first, mixture, k, centres[k], roots[k])
        # Tiny masses keep the sum from vanishing where all draws are the prior's.
        mixture = Mixture(centres, roots, _mixed_shares(masses + 1e-9, _FITTED_EQUAL))
    return Mixture(
        np.concatenate((mixture.centres, first.centres)),
        np.concatenate((mixture.roots, first.roots)),
        np.concatenate(((1.0 - _FIRST_STAYS) * mixture.shares, _FIRST_STAYS * first.shares)),
    )


@compiled
def _fit_component(
    points: np.ndarray, own: np.ndarray, first: Mixture, now: Mixture, k: int, centre: np.ndarray, root: np.ndarray
) -> None:
    """Write the centre and the root of a component, given how much of every draw is its own."""
    count, size = points.shape
    keep = _SCALE_DRAWS * size
    pull = np.empty(count)
    scratch = np.empty(size)
    total = _CENTRE_DRAWS * size
    centre[:] = total * first.centres[k]
    for s in range(count):
        distance = _squared_distance(points[s], now.centres[k], now.roots[k], scratch)
        pull[s] = own[s] * (_FREEDOM + size) / (_FREEDOM + distance)
        total += pull[s]
        for a in range(size):
            centre[a] += pull[s] * points[s, a]
    for a in range(size):
        centre[a] /= total
    scale = keep * (first.roots[k] @ first.roots[k].T)
    for s in range(count):
        for a in range(size):
            for b in range(a + 1):
                scale[a, b] += pull[s] * (points[s, a] - centre[a]) * (points[s, b] - centre[b])
    scale /= keep + own.sum()
    for a in range(size):
        for b in range(a):
            scale[b, a] = scale[a, b]
    root[:] = np.linalg.cholesky(scale)
