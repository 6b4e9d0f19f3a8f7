"""Gaussian processes behind the levels of a category: likelihoods given the hyperparameters.

An ordered category, of two levels or more, cuts a number that isn't observed: z = mu + f(parents) + sigma e, with e
logistic of unit variance, is at most cut k with probability 1 / (1 + exp(-s (tau_k - mu - f))), s being
pi / (sqrt(3) sigma). An unordered one has a process for each level: that level is observed whose
a_k + mu_k + f_k + sigma e_k is the largest, e_k being Gumbel of unit variance, which makes a softmax with
s = pi / (sqrt(6) sigma). So the hyperparameters mean what they mean for a number. What all levels share changes
nothing, so the processes here are H (mu + f), contrasts between the levels and one fewer than these: the rows of H are
orthonormal, and each sums to zero.

Processes are Phi w with w standard normal, see `features`. Given the hyperparameters, log likelihood and log prior of w
are concave: Newton's method finds the mode. Laplace's approximation of the integral over w follows; and draws from its
normal distribution, weighted, estimate the integral without bias.
"""

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

_LOGISTIC, _GUMBEL = np.pi / np.sqrt(3.0), np.pi / np.sqrt(6.0)
# Newton's method ends when a step promises to gain less than this, in nats, and never takes more steps than this.
_SMALLEST_GAIN, _MOST_STEPS = 1e-10, 100
# Draws needn't be about the mode itself, nor be as wide as the curvature right there: after a step that promised less
# than this, no further matrix is factored.
_LAST_GAIN_FOR_DRAWS = 0.1


class Counts(NamedTuple):
    """What the likelihood needs of a category and its parents; rows of equal parents are one.

    Attributes
    ----------
    rows : RowFunctions
        The functions of the parents.
    counts : ndarray of shape (rows, levels)
        How often each level was observed there.
    offsets : ndarray of shape (levels - 1,) or (levels,)
        The cuts tau, or a.
    ordered : bool
        Whether levels are ordered, which is all the same if there are two.
    contrasts : ndarray of shape (levels - 1, levels)
        H of unordered levels.
    """

    rows: RowFunctions
    counts: Floats
    offsets: Floats
    ordered: bool
    contrasts: Floats


@inner_fused
def scale_of(log_sigma: float, counts: Counts) -> float:
    """Return s, the inverse of the standard deviation of the noise in units of the link's own."""
    # s = pi / (sqrt(3) sigma) of a logistic, pi / (sqrt(6) sigma) of a Gumbel distribution.
    scale: float = (_LOGISTIC if counts.ordered else _GUMBEL) * np.exp(-log_sigma)
    return scale


@inner_fused
def _log_odds_terms(x: float) -> tuple[float, float]:
    """Return 1 / (1 + exp(-x)) and its logarithm."""
    # L(x) = 1 / (1 + exp(-x)) = exp(x) / (1 + exp(x)), by the one that can't overflow.
    if x >= 0.0:
        small = np.exp(-x)
        return 1.0 / (1.0 + small), -np.log1p(small)
    small = np.exp(x)
    return small / (1.0 + small), x - np.log1p(small)


@inner_fused
def _ordered_likelihood(scale: float, counts: Counts, work: LatentWorkspace) -> float:
    """Return the log likelihood of ordered levels; write its derivatives in the process.

    Level k lies between two cuts: L(u_k) - L(u_{k-1}) = L(u_k) L(-u_{k-1}) (1 - exp(u_{k-1} - u_k)), L(u) being
    1 / (1 + exp(-u)) and u_k = s tau_k less the process. So every cut adds the terms of a logistic regression.
    """
    total = 0.0
    levels = counts.counts.shape[1]
    for k in range(1, levels - 1):
        # log (1 - exp(u_{k-1} - u_k)), in which the process cancels.
        within = np.log(-np.expm1(scale * (counts.offsets[k - 1] - counts.offsets[k])))
        total += within * counts.counts[:, k].sum()
    for n in range(counts.counts.shape[0]):
        slope = curvature = 0.0
        for k in range(levels - 1):
            below, above = counts.counts[n, k], counts.counts[n, k + 1]
            if below + above == 0.0:
                continue
            u = scale * counts.offsets[k] - work.processes[0, n]
            chance, log_chance = _log_odds_terms(u)
            # Level k has log L(u), and k + 1 has log L(-u) = log L(u) - u. As du = -1 times the change of the process,
            # g = sum_k (above L(u) - below (1 - L(u))) and D = sum_k (below + above) L(u) (1 - L(u)).
            total += below * log_chance + above * (log_chance - u)
            slope += above * chance - below * (1.0 - chance)
            curvature += (below + above) * chance * (1.0 - chance)
        work.slopes[0, n] = slope
        work.curvatures[0, 0, n] = curvature
    return total


@inner_fused
def _softmax_likelihood(scale: float, counts: Counts, work: LatentWorkspace) -> float:
    """Return the log likelihood of unordered levels; write its derivatives in the processes.

    With counts c_k of the levels in a row of the table, `rows` in all, f its processes, eta = s a + H'f and pi the
    softmax of eta, the log likelihood is c'eta - rows log sum_k exp(eta_k), g = H (c - rows pi) and
    D = rows H (diag(pi) - pi pi') H'.
    """
    total = 0.0
    processes, levels = counts.contrasts.shape
    chances, means = np.empty(levels), np.empty(processes)
    for n in range(counts.counts.shape[0]):
        rows = highest = 0.0
        for k in range(levels):
            rows += counts.counts[n, k]
            # eta_k = s a_k + sum_p H_pk f_p.
            chances[k] = scale * counts.offsets[k]
            for p in range(processes):
                chances[k] += counts.contrasts[p, k] * work.processes[p, n]
            highest = max(highest, chances[k]) if k else chances[0]
        every = 0.0
        # c_k (eta_k - log sum_k exp(eta_k)) and pi_k = exp(eta_k) / sum_k exp(eta_k), the highest eta taken off first.
        for k in range(levels):
            total += counts.counts[n, k] * (chances[k] - highest)
            chances[k] = np.exp(chances[k] - highest)
            every += chances[k]
        total -= rows * np.log(every)
        for k in range(levels):
            chances[k] /= every
        # g_p = (H c)_p - rows (H pi)_p and D_qp = rows (sum_k H_pk H_qk pi_k - (H pi)_p (H pi)_q).
        for p in range(processes):
            slope = means[p] = 0.0
            for k in range(levels):
                slope += counts.contrasts[p, k] * counts.counts[n, k]
                means[p] += counts.contrasts[p, k] * chances[k]
            work.slopes[p, n] = slope - rows * means[p]
            for q in range(p + 1):
                product = 0.0
                for k in range(levels):
                    product += counts.contrasts[p, k] * counts.contrasts[q, k] * chances[k]
                work.curvatures[q, p, n] = rows * (product - means[p] * means[q])
    return total


@inner_fused
def _log_joint(w: Floats, log_sigma: float, columns: int, counts: Counts, work: LatentWorkspace) -> float:
    """Return log p(levels | w) - w'w / 2; write the derivatives of the first in the processes."""
    write_processes(w, columns, work)
    scale = scale_of(log_sigma, counts)
    value = _ordered_likelihood(scale, counts, work) if counts.ordered else _softmax_likelihood(scale, counts, work)
    # - w'w / 2.
    for p in range(len(w)):
        for c in range(columns):
            value -= 0.5 * w[p, c] * w[p, c]
    return value


@inner_fused
def _find_mode(
    log_sigma: float, columns: int, last_gain: float, counts: Counts, work: LatentWorkspace
) -> tuple[float, float]:
    """Find the mode of w by Newton's method; return the log joint density there and log |A|, leaving R.

    A step is A^-1 b, b = Phi'g - w being the gradient; for f = Phi w, eq. 3.18 of Rasmussen & Williams (2006). One that
    promises less than `last_gain` is the last; R is then that of the place before it.
    """
    processes = len(work.mode)
    size = processes * columns
    parents = len(counts.rows.cells)
    work.mode[:] = 0.0
    for i in range(parents + 1):
        m, begin, first = work.spans[i, 0], work.spans[i, 1], counts.rows.starts[i]
        work.mode[:, begin : begin + m] = work.known[:, first : first + m]
    value = _log_joint(work.mode, log_sigma, columns, counts, work)
    log_det = np.nan
    solved = np.empty(size)
    for _ in range(_MOST_STEPS):
        log_det = factor_system(work.mode, columns, work)
        if np.isnan(log_det):
            return np.nan, np.nan
        # A step of length one promises b'A^-1 b / 2 = |R'^-1 b|^2 / 2.
        promise = 0.0
        for c in range(size):
            solved[c] = work.system[c, size]
            promise += 0.5 * solved[c] * solved[c]
        if promise < _SMALLEST_GAIN:
            break
        # A^-1 b = R^-1 R'^-1 b.
        solve_upper(solved, size, work)
        length = 1.0
        while True:
            # Halved until the gain is a tenth of length times promise.
            for p in range(processes):
                for c in range(columns):
                    work.moved[p, c] = work.mode[p, c] + length * solved[p * columns + c]
            moved = _log_joint(work.moved, log_sigma, columns, counts, work)
            if moved >= value + 0.1 * length * promise or length < 1e-6:
                break
            length *= 0.5
        if not moved > value:
            # Rounding: there is nothing left to gain.
            _log_joint(work.mode, log_sigma, columns, counts, work)
            break
        value = moved
        work.mode[:, :columns] = work.moved[:, :columns]
        if promise < last_gain:
            break
    for i in range(parents + 1):
        m, begin, first = work.spans[i, 0], work.spans[i, 1], counts.rows.starts[i]
        work.known[:, first : first + m] = work.mode[:, begin : begin + m]
    return value, log_det


@inner_fused
def _laplace_log_likelihood(log_sigma: float, log_thetas: Floats, counts: Counts, work: LatentWorkspace) -> float:
    """Return Laplace's approximation of log p(levels | hyperparameters): that of the integral over w.

    It is log p(levels | w) - w'w / 2 - log |A| / 2 at the mode; powers of 2 pi, of prior and integral, cancel. With
    f = Phi w at the mode and K = Phi Phi', w'w = f'K^-1 f: Rasmussen & Williams (2006, eq. 3.32).
    """
    columns = write_features(scale_of(log_sigma, counts), log_thetas, counts.rows, work)
    value, log_det = _find_mode(log_sigma, columns, 0.0, counts, work)
    return value - 0.5 * log_det


@inner_fused
def _draw_weighted(
    log_sigma: float,
    log_thetas: Floats,
    counts: Counts,
    work: LatentWorkspace,
    log_weights: Floats,
    drawn: Floats,
    rng: np.random.Generator,
) -> None:
    """Draw w in pairs, on both sides of the mode, from the normal distribution of Laplace's approximation.

    Writes log p(levels | w) p(w) over the density of each draw, and the draws as far as there is room for them.
    """
    columns = write_features(scale_of(log_sigma, counts), log_thetas, counts.rows, work)
    value, log_det = _find_mode(log_sigma, columns, _LAST_GAIN_FOR_DRAWS, counts, work)
    if np.isnan(value):
        log_weights[:] = -np.inf
        return
    processes = len(work.mode)
    size = processes * columns
    solved = np.empty(size)
    for k in range(len(log_weights) // 2):
        # w = mode -+ R^-1 e with e standard normal, of density (2 pi)^(-m / 2) |A|^1/2 exp(-e'e / 2) for m unknowns.
        squares = 0.0
        for c in range(size):
            solved[c] = rng.standard_normal()
            squares += solved[c] * solved[c]
        solve_upper(solved, size, work)
        for side in range(2):
            for p in range(processes):
                for c in range(columns):
                    change = solved[p * columns + c]
                    work.moved[p, c] = work.mode[p, c] + (change if side else -change)
            joint = _log_joint(work.moved, log_sigma, columns, counts, work)
            # log p(levels | w) - w'w / 2 + e'e / 2 - log |A| / 2.
            log_weights[2 * k + side] = joint + 0.5 * squares - 0.5 * log_det
            if 2 * k + side < len(drawn):
                drawn[2 * k + side] = work.moved


@fused
def laplace_log_posterior(phi: Floats, counts: Counts, work: LatentWorkspace, priors: Priors) -> float:
    """Return log p(levels | phi) + log p(phi), the Jacobian included, the first by Laplace's approximation.

    phi is (log(sigma / (1 - sigma)), log theta_1, …).
    """
    prior = log_prior(phi, priors) if in_box(phi) else -np.inf
    return prior if prior == -np.inf else prior + _laplace_log_likelihood(_log_sigma(phi), phi[1:], counts, work)


@inner_fused
def _log_sigma(phi: Floats) -> float:
    """Return log sigma from the log odds of sigma, with which phi begins."""
    # sigma = 1 / (1 + exp(-phi_0)).
    value: float = -np.log1p(np.exp(-phi[0]))
    return value


@fused
def laplace_log_posterior_and_gradient(
    phi: Floats, counts: Counts, work: LatentWorkspace, priors: Priors, gradient: Floats
) -> float:
    """Return the same, and write its gradient.

    With g and D the slopes and curvatures at the mode w, V the posterior variances of the processes and T the
    derivatives of log |A| in these by way of D, the mode's own change brings in z = A^-1 Phi'T. All of it is linear in
    dPhi: the sum of the products of its elements with those of
    (g - T / 2 + D Phi z / 2) w' - g z' / 2 - D Phi A^-1.
    """
    value = laplace_log_posterior(phi, counts, work, priors)
    if not np.isfinite(value):
        return value
    columns = padded(work.spans[len(counts.rows.cells), 1] + 1, TILE_COLUMNS)
    log_sigma = _log_sigma(phi)
    _write_pull(log_sigma, columns, counts, work, gradient)
    # d log sigma / d phi_0 = 1 - sigma.
    gradient[0] *= 1.0 - np.exp(log_sigma)
    for i in range(len(counts.rows.cells)):
        gradient[i + 1] = theta_slope(i, scale_of(log_sigma, counts), counts.rows, work)
    add_prior_gradient(phi, priors, gradient)
    return value


@inner_fused
def _write_pull(log_sigma: float, columns: int, counts: Counts, work: LatentWorkspace, gradient: Floats) -> None:
    """Write the matrix that dPhi is multiplied by, in the place of D Phi, and the derivative in log sigma."""
    processes, n_rows = len(work.mode), work.features.shape[0]
    size = processes * columns
    invert_transposed(work.system, work.roots, work.lower, size)
    square_lower(work.lower, work.inverse, size)
    # Curvatures are symmetric in the processes: blocks p, q and q, p of A^-1 count by their sum alone.
    for p in range(processes):
        for q in range(p + 1, processes):
            for c in range(columns):
                upper, lower = work.inverse[p * columns + c], work.inverse[q * columns + c]
                for d in range(columns):
                    upper[q * columns + d] += lower[p * columns + d]
    # V_pq = 1/2 Phi (A^-1_pq + A^-1_qp) Phi' at a row; `weighted` starts as -D Phi A^-1.
    turned, spread = np.empty((columns, TILE_ROWS)), np.empty((TILE_ROWS, columns))
    variances = np.empty((TILE_ROWS, processes, processes))
    pulls, offset = np.empty((processes, n_rows)), np.zeros(n_rows)
    z = np.zeros(size)
    scale = scale_of(log_sigma, counts)
    by_offsets = np.zeros(2)
    for first in range(0, n_rows, TILE_ROWS):
        for r in range(TILE_ROWS):
            work.weighted[first + r, :columns] = 0.0
            for c in range(columns):
                turned[c, r] = work.features[first + r, c]
        for p in range(processes):
            for q in range(p, processes):
                # Phi A^-1 of a pair of processes.
                for d in range(0, columns, TILE_COLUMNS):
                    write_tile(spread, turned, work.inverse[p * columns :, q * columns :], 0, d, 0, columns)
                for r in range(TILE_ROWS):
                    row, out = work.features[first + r], work.weighted[first + r]
                    share, total = work.curvatures[p, q, first + r], 0.0
                    for d in range(columns):
                        total += spread[r, d] * row[d]
                        out[d] -= share * spread[r, d]
                    variances[r, p, q] = variances[r, q, p] = total if p == q else 0.5 * total
        for r in range(TILE_ROWS):
            n = first + r
            if counts.ordered:
                pulls[0, n], offset[n] = _ordered_pull(n, scale, variances[r, 0, 0], counts, work, by_offsets)
            else:
                _softmax_pull(n, scale, variances[r], counts, work, pulls, by_offsets)
            # Phi'T, then z = A^-1 Phi'T.
            for p in range(processes):
                for c in range(columns):
                    z[p * columns + c] += pulls[p, n] * work.features[n, c]
    solve_system(z, size, work)
    slope = 0.0
    at_z, offsets = np.empty(processes), np.zeros(processes)
    if not counts.ordered:
        # H s a.
        for p in range(processes):
            for k in range(len(counts.offsets)):
                offsets[p] += scale * counts.contrasts[p, k] * counts.offsets[k]
    for n in range(n_rows):
        row, out = work.features[n], work.weighted[n]
        # Phi z at the row.
        for p in range(processes):
            at_z[p] = 0.0
            for c in range(columns):
                at_z[p] += row[c] * z[p * columns + c]
        for p in range(processes):
            # (g - T / 2 + D Phi z / 2) w' - g z' / 2.
            pull = work.slopes[p, n] - 0.5 * pulls[p, n]
            for q in range(processes):
                pull += 0.5 * work.curvatures[min(p, q), max(p, q), n] * at_z[q]
            own = 0.5 * work.slopes[p, n]
            for c in range(columns):
                out[c] += pull * work.mode[p, c] - own * z[p * columns + c]
        # d / d log s by way of Phi, as dPhi / d log s = Phi.
        for c in range(columns):
            slope += row[c] * out[c]
        # What the offsets change of the slopes moves the mode: -1/2 (Phi z)'dg / d log s, where dg is `offset`, or of a
        # softmax -D H s a.
        if counts.ordered:
            slope -= 0.5 * at_z[0] * offset[n]
        else:
            for p in range(processes):
                for q in range(processes):
                    share = work.curvatures[min(p, q), max(p, q), n]
                    slope += 0.5 * at_z[p] * share * offsets[q]
    # Phi and the offsets are proportional to 1 / sigma.
    gradient[0] = -(slope + by_offsets[0] - 0.5 * by_offsets[1])


@inner_fused
def _ordered_pull(
    n: int, scale: float, variance: float, counts: Counts, work: LatentWorkspace, by_offsets: Floats
) -> tuple[float, float]:
    """Return T, and the derivative of the slope in log s by way of the cuts; add those of likelihood and curvature."""
    third = change = 0.0
    levels = counts.counts.shape[1]
    # With L = `chance` at u = cut less the process, D is the sum over cuts of curvature = (below + above) L (1 - L),
    # and T = V dD / d process = -V sum curvature (1 - 2 L). As du / d log s = cut, the derivatives in log s are
    # sum curvature cut of the slope, sum (below (1 - L) - above L) cut of the log likelihood, and
    # V sum curvature (1 - 2 L) cut of log |A|.
    for k in range(levels - 1):
        below, above = counts.counts[n, k], counts.counts[n, k + 1]
        cut = scale * counts.offsets[k]
        chance, _ = _log_odds_terms(cut - work.processes[0, n])
        curvature = (below + above) * chance * (1.0 - chance)
        third -= curvature * (1.0 - 2.0 * chance)
        change += curvature * cut
        by_offsets[0] += cut * (below * (1.0 - chance) - above * chance)
        by_offsets[1] += variance * curvature * (1.0 - 2.0 * chance) * cut
    for k in range(1, levels - 1):
        if counts.counts[n, k] > 0.0:
            # d log (1 - exp(-gap)) / d log s = gap / (exp(gap) - 1), gap being u_k - u_{k-1}.
            gap = scale * (counts.offsets[k] - counts.offsets[k - 1])
            by_offsets[0] += counts.counts[n, k] * gap / np.expm1(gap)
    return variance * third, change


@inner_fused
def _softmax_pull(
    n: int,
    scale: float,
    variances: Floats,
    counts: Counts,
    work: LatentWorkspace,
    pulls: Floats,
    by_offsets: Floats,
) -> None:
    """Write T; add the derivatives of likelihood and curvature in log s by way of a.

    The sum of the products of the elements of V and D is rows (sum_k pi_k S_kk - pi'S pi), S = H'V H being the
    covariance of the levels' processes. With d pi_j / d eta_k = pi_j (1_{j=k} - pi_k), its derivative in eta_k is
    t_k = rows pi_k (S_kk - sum_j pi_j S_jj - 2 (S pi)_k + 2 pi'S pi), and T = H t.
    """
    processes, levels = counts.contrasts.shape
    rows = 0.0
    for k in range(levels):
        rows += counts.counts[n, k]
    pulls[:, n] = 0.0
    if rows == 0.0:
        return
    own = both = 0.0
    slopes, chances, spreads, shared = np.zeros(levels), np.empty(levels), np.zeros(levels), np.zeros(levels)
    # H'g = c - rows pi, which H'H leaves as it is: its elements sum to zero.
    for k in range(levels):
        for p in range(processes):
            slopes[k] += counts.contrasts[p, k] * work.slopes[p, n]
        chances[k] = (counts.counts[n, k] - slopes[k]) / rows
    for p in range(processes):
        for q in range(processes):
            mean = 0.0
            for k in range(levels):
                mean += counts.contrasts[q, k] * chances[k]
            for k in range(levels):
                # S_kk, the variance of each level's own process, and (S pi)_k, its covariance with their mean.
                share = counts.contrasts[p, k] * variances[p, q]
                spreads[k] += share * counts.contrasts[q, k]
                shared[k] += share * mean
    # sum_k pi_k S_kk and pi'S pi.
    for k in range(levels):
        own += chances[k] * spreads[k]
        both += chances[k] * shared[k]
    for k in range(levels):
        pull = rows * chances[k] * (spreads[k] - own - 2.0 * shared[k] + 2.0 * both)
        for p in range(processes):
            pulls[p, n] += counts.contrasts[p, k] * pull
        # d eta_k / d log s = s a_k, by which the log likelihood changes (c_k - rows pi_k) s a_k, and log |A| t_k s a_k.
        by_offsets[0] += slopes[k] * scale * counts.offsets[k]
        by_offsets[1] += pull * scale * counts.offsets[k]


@fused
def estimated_log_posteriors(
    points: Floats, counts: Counts, work: LatentWorkspace, priors: Priors, pairs: int, rng: np.random.Generator
) -> Floats:
    """Return at every point the log of an unbiased estimate of p(levels | phi) p(phi)."""
    values = np.full(len(points), -np.inf)
    log_weights, nowhere = np.empty(2 * pairs), np.empty((0, *work.moved.shape))
    for s in range(len(points)):
        phi = points[s]
        prior = log_prior(phi, priors) if in_box(phi) else -np.inf
        if prior == -np.inf:
            continue
        _draw_weighted(_log_sigma(phi), phi[1:], counts, work, log_weights, nowhere, rng)
        values[s] = prior + log_mean_weight(log_weights)
    return values


@fused
def weighted_draws(
    phi: Floats, counts: Counts, work: LatentWorkspace, pairs: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw w about its mode given phi; return the draws, (draw, process, column), and their log weights.

    Columns are those of Phi that `spans` of the workspace says; s B of every parent are its `factors`.
    """
    drawn, log_weights = np.empty((2 * pairs, *work.moved.shape)), np.empty(2 * pairs)
    _draw_weighted(_log_sigma(phi), phi[1:], counts, work, log_weights, drawn, rng)
    return drawn, log_weights
