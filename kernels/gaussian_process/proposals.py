"""Proposals for importance sampling of a Gaussian process' hyperparameters.

A proposal is a mixture over phi = (log sigma, log theta_1, …): multivariate Student t's around the modes of the
posterior, and the prior itself, whose share keeps the weights from growing where no mode was found.
"""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.gaussian_process.priors import Priors, draw_prior, log_drawn_density

# Degrees of freedom of the t components: tails heavier than the posterior's, which fall off exponentially.
_FREEDOM = 5.0
# The prior's share, and what a fitted proposal's components share equally, so that none is left without draws.
PRIOR_SHARE, FITTED_EQUAL = 0.1, 0.05
# A component's first scale and centre count like this number of draws per dimension when it's fitted.
_SCALE_DRAWS, _CENTRE_DRAWS = 2.0, 1.0
_EM_STEPS = 8


class Mixture(NamedTuple):
    """A proposal: t components, and the prior with the share that they leave.

    Attributes
    ----------
    centres : ndarray of shape (components, size)
        Their centres.
    roots : ndarray of shape (components, size, size)
        Lower Cholesky factors of their scale matrices.
    shares : ndarray of shape (components,)
        Their probabilities.
    """

    centres: Floats
    roots: Floats
    shares: Floats


@inner
def _log_peaks(mixture: Mixture) -> Floats:
    """Return the log of share times density of every t component at its centre."""
    # log of Gamma((nu + d) / 2) / (Gamma(nu / 2) (nu pi)^(d/2) |L|), for d dimensions and the scale matrix L L'.
    size = mixture.centres.shape[1]
    peak = math.lgamma(0.5 * (_FREEDOM + size)) - math.lgamma(0.5 * _FREEDOM) - 0.5 * size * np.log(_FREEDOM * np.pi)
    peaks: Floats = np.log(mixture.shares) + peak
    for k in range(len(peaks)):
        for a in range(size):
            peaks[k] -= np.log(mixture.roots[k, a, a])
    return peaks


@inner
def _squared_distance(phi: Floats, centre: Floats, root: Floats, z: Floats) -> float:
    """Return |z|^2, z = L^-1 (phi - c) with root L and centre c: z_a = (phi_a - c_a - sum_{b<a} L_ab z_b) / L_aa."""
    total = 0.0
    for a in range(len(phi)):
        left = phi[a] - centre[a]
        for b in range(a):
            left -= root[a, b] * z[b]
        z[a] = left / root[a, a]
        total += z[a] * z[a]
    return total


@compiled
def component_densities(points: Floats, mixture: Mixture, priors: Priors) -> Floats:
    """Return share times density of every component at every point, the prior's last: (points, components + 1)."""
    count, size = points.shape
    prior = len(mixture.shares)
    densities = np.empty((count, prior + 1))
    prior_share = max(0.0, 1.0 - mixture.shares.sum())
    peaks = _log_peaks(mixture)
    scratch = np.empty(size)
    for s in range(count):
        phi = points[s]
        for k in range(prior):
            # Student's t: its peak times (1 + distance / nu)^(-(nu + d) / 2).
            distance = _squared_distance(phi, mixture.centres[k], mixture.roots[k], scratch)
            densities[s, k] = np.exp(peaks[k] - 0.5 * (_FREEDOM + size) * np.log1p(distance / _FREEDOM))
        densities[s, prior] = prior_share * np.exp(log_drawn_density(phi, priors))
    return densities


@inner
def _draw_t(phi: Floats, centre: Floats, root: Floats, rng: np.random.Generator) -> None:
    """Draw phi = centre + L e (nu / q)^1/2, with e standard normal and q chi-squared of nu degrees of freedom."""
    size = len(phi)
    normal = np.empty(size)
    for a in range(size):
        normal[a] = rng.standard_normal()
    # q / 2 is Gamma distributed, of shape nu / 2.
    stretch = np.sqrt(0.5 * _FREEDOM / rng.standard_gamma(0.5 * _FREEDOM))
    for a in range(size):
        total = 0.0
        for b in range(a + 1):
            total += root[a, b] * normal[b]
        phi[a] = centre[a] + stretch * total


@compiled
def draw_points(mixture: Mixture, priors: Priors, count: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Draw hyperparameters from a proposal, one a row, and tell the component of each.

    The number of draws of a component is its share of `count`, rounded at random: less variance than a draw of it.
    """
    points = np.empty((count, mixture.centres.shape[1]))
    components = np.empty(count, np.int64)
    prior = len(mixture.shares)
    offset = rng.random()
    component, passed = 0, mixture.shares[0]
    for s in range(count):
        # Draw s is of the first component up to which the shares sum to more than (s + offset) / count.
        while component < prior and passed <= (s + offset) / count:
            component += 1
            if component < prior:
                passed += mixture.shares[component]
        components[s] = component
        if component < prior:
            _draw_t(points[s], mixture.centres[component], mixture.roots[component], rng)
        else:
            draw_prior(points[s], priors, rng)
    return points, components


@compiled
def fitted_mixture(points: Floats, weights: Floats, first: Mixture, priors: Priors) -> Mixture:
    """Return a fit of `first` to weighted draws, by some steps of EM for a mixture of t's.

    Components stay close to what they were as far as few effective draws speak for something else.
    """
    count = len(points)
    total = squares = 0.0
    for weight in weights:
        total += weight
        squares += weight * weight
    prior, scaled = np.empty(count), np.empty(count)
    for s in range(count):
        # The weights sum to the number of draws they are worth, (sum w)^2 / sum w^2.
        scaled[s] = weights[s] * total / squares
        prior[s] = np.exp(log_drawn_density(points[s], priors))
    own, pull = np.empty((len(first.shares), count)), np.empty((len(first.shares), count))
    mixture = first
    for _ in range(_EM_STEPS):
        _divide_draws(points, scaled, prior, mixture, own, pull)
        centres, roots = np.empty_like(first.centres), np.empty_like(first.roots)
        masses = np.empty(len(first.shares))
        for k in range(len(first.shares)):
            masses[k] = own[k].sum()
            _fit_component(points, masses[k], pull[k], first, k, centres[k], roots[k])
        # Tiny masses keep the sum from vanishing where all draws are the prior's.
        total = masses.sum() + 1e-9 * len(masses)
        for k in range(len(masses)):
            # (1 - prior share) ((1 - e) mass_k / sum_j mass_j + e / K), e being what K components share equally.
            equal = FITTED_EQUAL / len(masses)
            masses[k] = (1.0 - PRIOR_SHARE) * ((1.0 - FITTED_EQUAL) * (masses[k] + 1e-9) / total + equal)
        mixture = Mixture(centres, roots, masses)
    return mixture


@inner
def _divide_draws(points: Floats, weights: Floats, prior: Floats, mixture: Mixture, own: Floats, pull: Floats) -> None:
    """Write how much of every draw is each component's, and how much it pulls at its centre and scale.

    The E-step: own_k = w share_k t_k(phi) / sum_j share_j t_j(phi), the prior being one of the j, and
    pull_k = own_k (nu + d) / (nu + distance_k) (Peel & McLachlan 2000).
    """
    count, size = points.shape
    prior_share = max(0.0, 1.0 - mixture.shares.sum())
    peaks = _log_peaks(mixture)
    scratch = np.empty(size)
    for s in range(count):
        total = prior_share * prior[s]
        for k in range(len(peaks)):
            distance = _squared_distance(points[s], mixture.centres[k], mixture.roots[k], scratch)
            own[k, s] = np.exp(peaks[k] - 0.5 * (_FREEDOM + size) * np.log1p(distance / _FREEDOM))
            pull[k, s] = (_FREEDOM + size) / (_FREEDOM + distance)
            total += own[k, s]
        for k in range(len(peaks)):
            own[k, s] *= weights[s] / total
            pull[k, s] *= own[k, s]


@inner
def _fit_component(
    points: Floats, mass: float, pull: Floats, first: Mixture, k: int, centre: Floats, root: Floats
) -> None:
    """Write the centre and the root of a component, given how much every draw pulls at them.

    The M-step, where the first centre c_0 and scale L_0 L_0' count like u and v draws: the centre is
    c = (u c_0 + sum_s pull_s phi_s) / (u + sum_s pull_s), and the scale is
    (v L_0 L_0' + sum_s pull_s (phi_s - c) (phi_s - c)') / (v + mass).
    """
    count, size = points.shape
    total = _CENTRE_DRAWS * size
    for a in range(size):
        centre[a] = total * first.centres[k, a]
    for s in range(count):
        total += pull[s]
        for a in range(size):
            centre[a] += pull[s] * points[s, a]
    for a in range(size):
        centre[a] /= total
    keep = _SCALE_DRAWS * size
    for a in range(size):
        for b in range(size):
            root[a, b] = 0.0
            for c in range(b + 1):
                root[a, b] += keep * first.roots[k, a, c] * first.roots[k, b, c]
    for s in range(count):
        for a in range(size):
            for b in range(a + 1):
                root[a, b] += pull[s] * (points[s, a] - centre[a]) * (points[s, b] - centre[b])
    _root_in_place(root, keep + mass)


@inner
def _root_in_place(matrix: Floats, divisor: float) -> None:
    """Replace a positive definite matrix, of which the lower half counts, by the root of it over a divisor."""
    for a in range(len(matrix)):
        for b in range(a + 1):
            # L_ab = (M_ab - sum_{c<b} L_ac L_bc) / L_bb, and L_aa = (M_aa - sum_{c<a} L_ac^2)^1/2.
            total = matrix[a, b] / divisor
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            matrix[a, b] = np.sqrt(total) if a == b else total / matrix[b, b]
        for b in range(a + 1, len(matrix)):
            matrix[a, b] = 0.0
