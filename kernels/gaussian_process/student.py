"""Gaussian processes with Student t noise: likelihoods given the hyperparameters.

A number is y = mu + f(parents) + sigma e, with e of Student's t distribution with nu degrees of freedom, scaled to unit
variance; so hyperparameters mean what they mean with normal noise, and nu must exceed 2. In units of the t's own scale,
sigma sqrt((nu - 2) / nu), a row leaves z = y - Phi w, see `features`, and the log likelihood is a sum of
-(nu + 1) / 2 log(1 + z^2 / nu).

It isn't concave in w: a row far from all others may be followed or not. Steps with the expected curvature of a row,
(nu + 1) / (nu + 3), in place of the actual one have a positive definite matrix that is factored once (Fisher's
scoring), and Laplace's approximation with it is smooth in the hyperparameters (Hartmann & Vanhatalo 2019). For weighted
draws, each row's share in their precision and centre is then chosen by what the row does to the distribution of its
process given all other rows, as a step of expectation propagation: where the row leaves two places for the process, the
normal distribution of the draws covers both. Part of the draws have the tails of a t distribution, so that weights are
bounded.
"""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.algebra.tiles import TILE_COLUMNS, TILE_ROWS, invert_transposed, padded, square_lower, write_tile
from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import fused, inner_fused
from gpn_bayes.kernels.gaussian_process.features import (
    LatentWorkspace,
    RowFunctions,
    factor_system,
    log_mean_weight,
    solve_system,
    solve_upper,
    theta_slope,
    write_features,
    write_processes,
)
from gpn_bayes.kernels.gaussian_process.modes import in_box
from gpn_bayes.kernels.gaussian_process.priors import Priors, add_prior_gradient, log_prior

# The search for the mode ends when a step promises to gain less than this, in nats, or before draws, which needn't be
# about the mode itself, than that; and never takes more steps than this.
_SMALLEST_GAIN, _LAST_GAIN_FOR_DRAWS, _MOST_STEPS = 1e-9, 1e-2, 300
# Steps of expectation propagation before draws.
_SWEEPS = 2
# What a row's own share in the precision of its process may be at most, so that there is something left without it.
_LARGEST_LEVERAGE = 0.98
# Every fourth pair of draws has the tails of a t distribution of this many degrees of freedom.
_EVERY, _FREEDOM = 4, 6.0


class Measured(NamedTuple):
    """What the likelihood needs of a number with Student t noise and its parents.

    Attributes
    ----------
    rows : RowFunctions
        The functions of the parents.
    values : ndarray of shape (rows,)
        The standardised node minus the prior mean of mu.
    weights : ndarray of shape (rows,)
        How many rows each row stands for; zero beyond the last row.
    degrees : float
        nu, the degrees of freedom.
    spreads, log_shares : ndarray of shape (parts,)
        A mixture of normal distributions about zero that is nearly the t distribution of unit scale: variances, and
        logs of the shares.
    """

    rows: RowFunctions
    values: Floats
    weights: Floats
    degrees: float
    spreads: Floats
    log_shares: Floats


@inner_fused
def _log_scale(log_sigma: float, measured: Measured) -> float:
    """Return the log of the t distribution's own scale, given that of its standard deviation."""
    # sigma ((nu - 2) / nu)^1/2, the variance of the t distribution of unit scale being nu / (nu - 2).
    value: float = log_sigma + 0.5 * np.log1p(-2.0 / measured.degrees)
    return value


@inner_fused
def _expected_curvature(measured: Measured) -> float:
    """Return (nu + 1) / (nu + 3), the Fisher information of the t distribution's centre at unit scale."""
    return (measured.degrees + 1.0) / (measured.degrees + 3.0)


@inner_fused
def _log_joint(w: Floats, log_scale: float, columns: int, measured: Measured, work: LatentWorkspace) -> float:
    """Return log p(y | w) - w'w / 2; write the derivatives of the first in the process."""
    write_processes(w, columns, work)
    # log of Gamma((nu + 1) / 2) / (Gamma(nu / 2) (nu pi)^1/2 scale), the density's highest value.
    nu, inverse = measured.degrees, np.exp(-log_scale)
    peak = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * np.log(nu * np.pi) - log_scale
    value = 0.0
    for n in range(len(measured.values)):
        # z = y / scale - Phi w, log p = peak - (nu + 1) / 2 log(1 + z^2 / nu), and its slope is
        # g = (nu + 1) z / (nu + z^2).
        weight, z = measured.weights[n], inverse * measured.values[n] - work.processes[0, n]
        value += weight * (peak - 0.5 * (nu + 1.0) * np.log1p(z * z / nu))
        work.slopes[0, n] = weight * (nu + 1.0) * z / (nu + z * z)
    # - w'w / 2.
    for c in range(columns):
        value -= 0.5 * w[0, c] * w[0, c]
    return value


@inner_fused
def _find_mode(
    log_scale: float, columns: int, last_gain: float, measured: Measured, work: LatentWorkspace
) -> tuple[float, float]:
    """Find a mode of w by Fisher's scoring; return the log joint density there and log |A|, leaving R.

    It starts from what would be the mode if noise were normal. A step is A^-1 b, with b = Phi'g - w the gradient and
    A = I + Phi'D Phi, in which D has the expected curvatures (nu + 1) / (nu + 3) times the rows' weights.
    """
    n_rows = len(measured.values)
    curvature, inverse = _expected_curvature(measured), np.exp(-log_scale)
    # The normal noise of the start has curvature D and slope D y / scale at w = 0: its mode is A^-1 Phi'D y / scale.
    for n in range(n_rows):
        work.curvatures[0, 0, n] = curvature * measured.weights[n]
        work.slopes[0, n] = work.curvatures[0, 0, n] * inverse * measured.values[n]
    work.mode[:] = 0.0
    log_det = factor_system(work.mode, columns, work)
    if np.isnan(log_det):
        return np.nan, np.nan
    step = np.empty(columns)
    for c in range(columns):
        step[c] = work.system[c, columns]
    solve_upper(step, columns, work)
    for c in range(columns):
        work.mode[0, c] = step[c]
    value = _log_joint(work.mode, log_scale, columns, measured, work)
    for _ in range(_MOST_STEPS):
        # b = Phi'g - w.
        for c in range(columns):
            step[c] = -work.mode[0, c]
        for n in range(n_rows):
            slope, row = work.slopes[0, n], work.features[n]
            for c in range(columns):
                step[c] += slope * row[c]
        promise = 0.0
        for c in range(columns):
            work.moved[0, c] = step[c]
        # A^-1 b, and what a step of length one promises: b'A^-1 b / 2.
        solve_system(step, columns, work)
        for c in range(columns):
            promise += 0.5 * step[c] * work.moved[0, c]
        if promise < last_gain:
            break
        length = 1.0
        while True:
            # Halved until the gain is a tenth of length times promise.
            for c in range(columns):
                work.moved[0, c] = work.mode[0, c] + length * step[c]
            moved = _log_joint(work.moved, log_scale, columns, measured, work)
            if moved >= value + 0.1 * length * promise or length < 1e-6:
                break
            length *= 0.5
        if not moved > value:
            # Rounding: there is nothing left to gain.
            _log_joint(work.mode, log_scale, columns, measured, work)
            break
        value = moved
        work.mode[0, :columns] = work.moved[0, :columns]
    return value, log_det


@inner_fused
def _write_variances(columns: int, work: LatentWorkspace, variances: Floats) -> None:
    """Write A^-1, Phi A^-1 in the place of D Phi, and the variances of the processes under A^-1."""
    invert_transposed(work.system, work.roots, work.lower, columns)
    square_lower(work.lower, work.inverse, columns)
    turned = np.empty((columns, TILE_ROWS))
    for first in range(0, len(variances), TILE_ROWS):
        for r in range(TILE_ROWS):
            row = work.features[first + r]
            for c in range(columns):
                turned[c, r] = row[c]
        for d in range(0, columns, TILE_COLUMNS):
            write_tile(work.weighted[first:], turned, work.inverse, 0, d, 0, columns)
        for n in range(first, first + TILE_ROWS):
            row, out = work.features[n], work.weighted[n]
            total = 0.0
            # v_n = (Phi A^-1 Phi')_nn.
            for d in range(columns):
                total += out[d] * row[d]
            variances[n] = total


@inner_fused
def _sweep(log_scale: float, columns: int, measured: Measured, work: LatentWorkspace, variances: Floats) -> float:
    """Choose every row's share in precision and centre of the draws anew; return log |A|, leaving R and the centre.

    Without the row, its process is normal with mean m and variance u; with it, the distribution is a mixture of normal
    ones, whose mean and variance the row's new share brings about. A precision below zero is taken as zero.
    """
    inverse, shares = np.exp(-log_scale), np.empty(len(measured.spreads))
    _write_variances(columns, work, variances)
    for n in range(len(measured.values)):
        weight = measured.weights[n]
        if weight == 0.0:
            continue
        # The row's share is a precision and a pull, precision times centre; only one of its equal rows is
        # taken off. With v the variance and f the mean of its process, u = v / (1 - precision v) and
        # m = (f - v pull) / (1 - precision v): the cavity of expectation propagation (Minka 2001).
        precision, pull = work.curvatures[0, 0, n] / weight, work.slopes[0, n] / weight
        leverage = precision * variances[n]
        left = 1.0 - min(leverage, _LARGEST_LEVERAGE)
        u = variances[n] / left
        m = (work.processes[0, n] - variances[n] * pull) / left
        z = inverse * measured.values[n] - m
        # The row's log density given the others, log sum_k share_k N(z; 0, u + spread_k), and its derivatives in m.
        highest = -np.inf
        for k in range(len(shares)):
            variance = u + measured.spreads[k]
            shares[k] = measured.log_shares[k] - 0.5 * (np.log(variance) + z * z / variance)
            highest = max(highest, shares[k])
        total = first = second = 0.0
        for k in range(len(shares)):
            share, variance = np.exp(shares[k] - highest), u + measured.spreads[k]
            total += share
            first += share * z / variance
            second += share * (z * z / variance - 1.0) / variance
        # The derivatives of the row's log density in m. With the row, the process has mean m + u first and variance
        # u + u^2 second; so the row's share in the precision is 1 / (u + u^2 second) - 1 / u, which is
        # -second / (1 + u second), and its pull is (m + u first) (1 / u + precision) - m / u.
        first /= total
        second = second / total - first * first
        precision = max(-second / (1.0 + u * second), 0.0)
        work.curvatures[0, 0, n] = weight * precision
        work.slopes[0, n] = weight * (first + precision * (m + u * first))
    # The centre is A^-1 Phi'pull.
    work.mode[:] = 0.0
    log_det = factor_system(work.mode, columns, work)
    if np.isnan(log_det):
        return np.nan
    centre = np.empty(columns)
    for c in range(columns):
        centre[c] = work.system[c, columns]
    solve_upper(centre, columns, work)
    work.mode[0, :columns] = centre
    return log_det


@inner_fused
def _place_draws(log_sigma: float, log_thetas: Floats, measured: Measured, work: LatentWorkspace) -> float:
    """Find the normal distribution that draws come from; return log |A|, leaving R, and its centre in `mode`."""
    log_scale = _log_scale(log_sigma, measured)
    columns = write_features(np.exp(-log_scale), log_thetas, measured.rows, work)
    value, log_det = _find_mode(log_scale, columns, _LAST_GAIN_FOR_DRAWS, measured, work)
    if np.isnan(value):
        return np.nan
    for n in range(len(measured.values)):
        # About the mode, a row of this precision pulls as the likelihood does: g + D f, f = Phi w.
        work.slopes[0, n] += work.curvatures[0, 0, n] * work.processes[0, n]
    variances = np.empty(len(measured.values))
    for sweep in range(_SWEEPS):
        if sweep:
            write_processes(work.mode, columns, work)
        log_det = _sweep(log_scale, columns, measured, work, variances)
        if np.isnan(log_det):
            return np.nan
    return log_det


@inner_fused
def _draw_weighted(
    log_sigma: float,
    log_thetas: Floats,
    measured: Measured,
    work: LatentWorkspace,
    log_weights: Floats,
    drawn: Floats,
    rng: np.random.Generator,
) -> None:
    """Draw w in pairs, on both sides of a centre, some normal and some t.

    Writes log p(y | w) p(w) over the density of each draw, and the draws as far as there is room for them.
    """
    log_det = _place_draws(log_sigma, log_thetas, measured, work)
    if np.isnan(log_det):
        log_weights[:] = -np.inf
        return
    unknowns = work.spans[len(measured.rows.cells), 1] + 1
    columns = padded(unknowns, TILE_COLUMNS)
    log_scale = _log_scale(log_sigma, measured)
    pairs = len(log_weights) // 2
    heavy = pairs // _EVERY
    # Relative to the normal density with the same matrix: log of Gamma((nu + m) / 2) / (Gamma(nu / 2) (nu / 2)^(m/2)),
    # for m unknowns, nu being the degrees of freedom of these draws.
    t_peak = (
        math.lgamma(0.5 * (_FREEDOM + unknowns)) - math.lgamma(0.5 * _FREEDOM) - 0.5 * unknowns * np.log(0.5 * _FREEDOM)
    )
    change = np.empty(columns)
    work.moved[:] = 0.0
    for k in range(pairs):
        # w = centre -+ R^-1 e, e standard normal; or e times (nu / c)^1/2, c chi-squared of nu degrees of freedom.
        squares = 0.0
        change[unknowns:] = 0.0
        for c in range(unknowns):
            change[c] = rng.standard_normal()
            squares += change[c] * change[c]
        if k < heavy:
            stretch = np.sqrt(0.5 * _FREEDOM / rng.standard_gamma(0.5 * _FREEDOM))
            for c in range(unknowns):
                change[c] *= stretch
            squares *= stretch * stretch
        # With q = |R (w - centre)|^2, `squares`, and h the share of t draws, the density of w is (2 pi)^(-m/2) |A|^1/2
        # times (1 - h) exp(-q / 2) + h exp(t_peak) (1 + q / nu)^(-(nu + m) / 2).
        normal = -0.5 * squares
        log_density = normal + np.log(1.0 - heavy / pairs)
        if heavy:
            t = t_peak - 0.5 * (_FREEDOM + unknowns) * np.log1p(squares / _FREEDOM) + np.log(heavy / pairs)
            log_density = max(log_density, t) + np.log1p(np.exp(-abs(log_density - t)))
        solve_upper(change, columns, work)
        for side in range(2):
            for c in range(unknowns):
                work.moved[0, c] = work.mode[0, c] + (change[c] if side else -change[c])
            joint = _log_joint(work.moved, log_scale, columns, measured, work)
            # log p(y | w) - w'w / 2 - log density - log |A| / 2; the powers of 2 pi, of prior and density, cancel.
            log_weights[2 * k + side] = joint - log_density - 0.5 * log_det
            if 2 * k + side < len(drawn):
                drawn[2 * k + side] = work.moved


@fused
def laplace_log_posterior(phi: Floats, measured: Measured, work: LatentWorkspace, priors: Priors) -> float:
    """Return log p(y | phi) + log p(phi), the Jacobian included, the first by Laplace's approximation.

    phi is (log sigma, log theta_1, …).
    """
    prior = log_prior(phi, priors) if in_box(phi) else -np.inf
    if prior == -np.inf:
        return prior
    log_scale = _log_scale(phi[0], measured)
    columns = write_features(np.exp(-log_scale), phi[1:], measured.rows, work)
    # log p(phi) + log p(y | w) - w'w / 2 - log |A| / 2 at the mode.
    value, log_det = _find_mode(log_scale, columns, _SMALLEST_GAIN, measured, work)
    return prior + value - 0.5 * log_det


@fused
def laplace_log_posterior_and_gradient(
    phi: Floats, measured: Measured, work: LatentWorkspace, priors: Priors, gradient: Floats
) -> float:
    """Return the same, and write its gradient.

    With g the slopes at the mode w and D the expected curvatures, which don't depend on w, it is linear in dPhi: the
    sum of the products of its elements with those of g w' - D Phi A^-1.
    """
    value = laplace_log_posterior(phi, measured, work, priors)
    if not np.isfinite(value):
        return value
    scale = np.exp(-_log_scale(phi[0], measured))
    columns = padded(work.spans[len(measured.rows.cells), 1] + 1, TILE_COLUMNS)
    variances = np.empty(len(measured.values))
    _write_variances(columns, work, variances)
    # z and Phi are proportional to 1 / sigma. So d / d log sigma of the log likelihood is sum_n (g_n z_n - weight_n),
    # and of -log |A| / 2 it is tr A^-1 Phi'D Phi = sum_n D_n v_n, v being the variances of the processes.
    by_sigma = 0.0
    for n in range(len(measured.values)):
        slope, curvature, out = work.slopes[0, n], work.curvatures[0, 0, n], work.weighted[n]
        by_sigma += slope * (scale * measured.values[n] - work.processes[0, n]) - measured.weights[n]
        by_sigma += curvature * variances[n]
        # g w' - D Phi A^-1.
        for c in range(columns):
            out[c] = slope * work.mode[0, c] - curvature * out[c]
    gradient[0] = by_sigma
    for i in range(len(measured.rows.cells)):
        gradient[i + 1] = theta_slope(i, scale, measured.rows, work)
    add_prior_gradient(phi, priors, gradient)
    return value


@fused
def estimated_log_posteriors(
    points: Floats, measured: Measured, work: LatentWorkspace, priors: Priors, pairs: int, rng: np.random.Generator
) -> Floats:
    """Return at every point the log of an unbiased estimate of p(y | phi) p(phi)."""
    values = np.full(len(points), -np.inf)
    log_weights, nowhere = np.empty(2 * pairs), np.empty((0, *work.moved.shape))
    for s in range(len(points)):
        phi = points[s]
        prior = log_prior(phi, priors) if in_box(phi) else -np.inf
        if prior == -np.inf:
            continue
        _draw_weighted(phi[0], phi[1:], measured, work, log_weights, nowhere, rng)
        values[s] = prior + log_mean_weight(log_weights)
    return values


@fused
def weighted_draws(
    phi: Floats, measured: Measured, work: LatentWorkspace, pairs: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw w given phi; return the draws, (draw, 1, column), and their log weights.

    Columns are those of Phi that `spans` of the workspace says; s B of every parent are its `factors`.
    """
    drawn, log_weights = np.empty((2 * pairs, *work.moved.shape)), np.empty(2 * pairs)
    _draw_weighted(phi[0], phi[1:], measured, work, log_weights, drawn, rng)
    return drawn, log_weights


@fused
def log_likelihoods_without_parents(
    values: Floats, weights: Floats, degrees: float, log_sigmas: Floats, means: Floats
) -> Floats:
    """Return log p(y | sigma, mu) without parents, at every pair of log sigma and mu: (log sigmas, means)."""
    found = np.zeros((len(log_sigmas), len(means)))
    # The sum over rows of weight (peak - log scale - (nu + 1) / 2 log(1 + (y - mu)^2 / (nu scale^2))).
    peak = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * np.log(degrees * np.pi)
    for s in range(len(log_sigmas)):
        log_scale = log_sigmas[s] + 0.5 * np.log1p(-2.0 / degrees)
        share = np.exp(-2.0 * log_scale) / degrees
        for m in range(len(means)):
            total = 0.0
            for n in range(len(values)):
                left = values[n] - means[m]
                total += weights[n] * (peak - log_scale - 0.5 * (degrees + 1.0) * np.log1p(share * left * left))
            found[s, m] = total
    return found
