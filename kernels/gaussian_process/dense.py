"""The Gaussian-process marginal likelihood as a textbook states it, with the whole covariance matrix of the rows.

C = tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j + s_mu^2 1 1' + sigma^2 I, products being elementwise and K_i having the
entries exp(-(x_i - x_i')^2 / (2 theta_i^2)). The additive kernel has tau1 = 1 and tau2 = 0. Time grows with the cube of
the number of rows: LAPACK factors and inverts C in place, numpy takes the exponentials (its vectorised ones are eight
times faster than compiled code's), and compiled code does the rest; all of them let other threads run.

A row of weight w counts as w equal rows. The mean of these has noise of variance sigma^2 / w, so their density is
N(y; f, sigma^2 / w) times (2 pi sigma^2)^(-(w - 1) / 2) w^(-1/2).
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.extending import get_cython_function_address
from scipy.linalg import lapack

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, fused, inner

# Kernels are computed for this many pairs of rows at a time, so that they stay in the processor's cache.
_PAIRS_AT_ONCE = 2**15
_LOG_2PI = np.log(2 * np.pi)


class Workspace(NamedTuple):
    """Scratch space of the likelihood, and how far levels of categories are apart.

    Attributes
    ----------
    spacings : ndarray of shape (parents,)
        The squared distance between any two levels of a parent that is a category; 0 for numbers.
    covariance : ndarray of shape (rows, rows)
        C, then its Cholesky factor, then its inverse; only the lower triangle counts.
    exponents : ndarray of shape (parents, pairs)
        log K_i of some pairs of rows.
    kernels : ndarray of shape (parents, pairs)
        K_i of these pairs.
    """

    spacings: Floats
    covariance: Floats
    exponents: Floats
    kernels: Floats


class Hyperparameters(NamedTuple):
    """The hyperparameters themselves, the noise as its variance."""

    noise: float
    thetas: Floats
    tau1: float
    tau2: float


def _in_place(name: str) -> Callable[[Floats], bool]:
    """Return a LAPACK function of a symmetric matrix's lower triangle, which tells whether it succeeded.

    By its address, because `scipy.linalg.lapack` doesn't let other threads run meanwhile.
    """
    integer = ctypes.POINTER(ctypes.c_int)
    signature = ctypes.CFUNCTYPE(None, ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer)
    function = signature(get_cython_function_address("scipy.linalg.cython_lapack", name))

    def call(matrix: Floats) -> bool:
        size, info = ctypes.c_int(len(matrix)), ctypes.c_int()
        # LAPACK counts down columns first, and takes our lower triangle for an upper one.
        function(b"U", size, matrix.ctypes.data, size, info)
        return info.value == 0

    return call


_factor = _in_place("dpotrf")
_invert = _in_place("dpotri")


def new_workspace(x: Floats, spacings: Floats | None = None) -> Workspace:
    """Return scratch space for the parents' columns, of shape (rows, parents), and the spacings of categories."""
    n_rows, parents = x.shape
    pairs = min(_rows_at_once(n_rows), n_rows) * n_rows
    spacings = np.zeros(parents) if spacings is None else spacings
    return Workspace(spacings, np.empty((n_rows, n_rows)), np.empty((parents, pairs)), np.empty((parents, pairs)))


def size_of_phi(parents: int, interaction: bool) -> int:
    """Return how many hyperparameters there are: sigma, a theta a parent, and the taus where there are pairs."""
    return 1 + parents + (2 if interaction and parents > 1 else 0)


def _rows_at_once(n_rows: int) -> int:
    return max(1, _PAIRS_AT_ONCE // n_rows)


def read_phi(phi: Floats, parents: int, interaction: bool) -> Hyperparameters:
    """Return the hyperparameters from their logarithms; without pairs of parents, tau1 = 1 and tau2 = 0."""
    pairs = interaction and parents > 1
    tau1 = float(np.exp(phi[parents + 1])) if pairs else 1.0
    tau2 = float(np.exp(phi[parents + 2])) if pairs else 0.0
    # phi = (log sigma, log theta_1, …, log tau1, log tau2), and the noise is sigma^2 = exp(2 log sigma).
    return Hyperparameters(float(np.exp(2.0 * phi[0])), np.exp(phi[1 : parents + 1]), tau1, tau2)


def log_likelihood(
    phi: Floats,
    x: Floats,
    y: Floats,
    interaction: bool,
    mu_variance: float,
    work: Workspace,
    weights: Floats | None = None,
) -> float:
    """Return log N(y; 0, C), or NaN where C isn't positive definite to rounding.

    Parameters
    ----------
    phi : ndarray
        log sigma, log theta_1, …, and with the interaction kernel, from two parents on, log tau1 and log tau2.
    x : ndarray of shape (rows, parents)
        The parents' columns, quickest in Fortran order.
    y : ndarray of shape (rows,)
        The node's column, its prior mean taken off.
    interaction : bool
        Whether the kernel has products.
    mu_variance : float
        The prior variance of the mean.
    work : Workspace
        Scratch space; left with the Cholesky factor.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.
    """
    value, _ = _solve(read_phi(phi, x.shape[1], interaction), x, y, mu_variance, work, weights)
    return value


def log_likelihood_and_gradient(
    phi: Floats,
    x: Floats,
    y: Floats,
    interaction: bool,
    mu_variance: float,
    work: Workspace,
    gradient: Floats,
    weights: Floats | None = None,
) -> float:
    """Return the log likelihood and write its gradient in phi; NaN where C isn't positive definite to rounding."""
    n_rows, parents = x.shape
    parts = read_phi(phi, parents, interaction)
    value, alpha = _solve(parts, x, y, mu_variance, work, weights)
    gradient[:] = np.nan
    if np.isnan(value) or not _invert(work.covariance):
        return np.nan
    # d log N = 1/2 tr (alpha alpha' - C^-1) dC (Rasmussen & Williams 2006, eq. 5.9); the first trace is that with the
    # identity, tr (alpha alpha' - C^-1) = alpha'alpha - sum_a (C^-1)_aa.
    inverses = np.diagonal(work.covariance)
    trace = float(alpha @ alpha - inverses.sum())
    slopes = np.zeros(parents + 2)
    # The diagonals of dC / d tau1 = sum_i K_i and dC / d tau2 = sum_{i<j} K_i K_j hold one for each K_i and each pair.
    slopes[parents] = 0.5 * trace * parents
    slopes[parents + 1] = 0.5 * trace * (parents * (parents - 1) / 2)
    for first, last in _strips(n_rows):
        _compute_kernels(parts.thetas, x, first, last, work)
        _add_slopes(first, last, parts.tau1, parts.tau2, alpha, work, slopes)
    # d / d log tau = tau d / d tau.
    slopes[parents] *= parts.tau1
    slopes[parents + 1] *= parts.tau2
    # dC / d log sigma = 2 sigma^2 I.
    gradient[0] = parts.noise * trace
    if weights is not None:
        # sigma^2 sum_a (alpha_a^2 - (C^-1)_aa) / w_a, and of (2 pi sigma^2)^(-(w - 1) / 2) there is -sum_a (w_a - 1).
        gradient[0] = parts.noise * ((alpha**2 - inverses) / weights).sum() - (weights - 1.0).sum()
    gradient[1:] = slopes[: len(phi) - 1]
    return value


def _strips(n_rows: int) -> list[tuple[int, int]]:
    step = _rows_at_once(n_rows)
    return [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def _solve(
    parts: Hyperparameters, x: Floats, y: Floats, mu_variance: float, work: Workspace, weights: Floats | None
) -> tuple[float, Floats]:
    """Return the log likelihood and alpha = C^-1 y, leaving the Cholesky factor."""
    n_rows, parents = x.shape
    for first, last in _strips(n_rows):
        _compute_kernels(parts.thetas, x, first, last, work)
        _fill_covariance(first, last, parts.tau1, parts.tau2, mu_variance, work)
    # C_aa = tau1 p + tau2 p (p - 1) / 2 + s_mu^2 + sigma^2 / w_a for p parents, as K_i is one there.
    diagonal = parts.tau1 * parents + parts.tau2 * (parents * (parents - 1) / 2) + mu_variance
    np.fill_diagonal(work.covariance, diagonal + (parts.noise if weights is None else parts.noise / weights))
    if not _factor(work.covariance):
        return np.nan, y
    # With C = L L', alpha = L'^-1 L^-1 y and log |C| = 2 sum_a log L_aa.
    alpha, _ = lapack.dpotrs(work.covariance.T, y, lower=0)
    log_det = 2.0 * np.log(np.diagonal(work.covariance)).sum()
    # log N(y; 0, C) = -1/2 (log |C| + y'C^-1 y + N log 2 pi) (Rasmussen & Williams 2006, eq. 2.30).
    value = float(-0.5 * (log_det + y @ alpha + n_rows * _LOG_2PI))
    if weights is not None:
        # log of (2 pi sigma^2)^(-(w - 1) / 2) w^(-1/2), summed over the rows.
        value -= 0.5 * float(((weights - 1.0) * (_LOG_2PI + np.log(parts.noise)) + np.log(weights)).sum())
    return value, alpha


def _compute_kernels(thetas: Floats, x: Floats, first: int, last: int, work: Workspace) -> None:
    """Write the kernels between rows from `first` to before `last` and all rows before each, and their logarithms."""
    count = _fill_exponents(thetas, x, work.spacings, first, last, work.exponents)
    np.exp(work.exponents[:, :count], out=work.kernels[:, :count])


@compiled
def _fill_exponents(thetas: Floats, x: Floats, spacings: Floats, first: int, last: int, exponents: Floats) -> int:
    """Write log K_i = -(x_i - x_i')^2 / (2 theta_i^2) of pairs of rows; return how many pairs there are."""
    at = 0
    for a in range(first, last):
        for i in range(len(thetas)):
            scale = -0.5 / (thetas[i] * thetas[i])
            column, own = x[:a, i], x[a, i]
            row = exponents[i, at : at + a]
            if spacings[i] > 0.0:
                # Of a category, (x_i - x_i')^2 is 0 for equal levels and its spacing for any two others.
                for b in range(a):
                    row[b] = 0.0 if own == column[b] else scale * spacings[i]
                continue
            for b in range(a):
                gap = own - column[b]
                row[b] = scale * gap * gap
        at += a
    return at


@compiled
def _fill_covariance(first: int, last: int, tau1: float, tau2: float, mu_variance: float, work: Workspace) -> None:
    """Write C_ab = tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j + s_mu^2 below the diagonal."""
    total, products = np.empty(last), np.empty(last)
    at = 0
    for a in range(first, last):
        _sum_kernels(work.kernels[:, at : at + a], total, products)
        row = work.covariance[a]
        for b in range(a):
            row[b] = tau1 * total[b] + tau2 * products[b] + mu_variance
        at += a


@inner
def _sum_kernels(kernels: Floats, total: Floats, products: Floats) -> None:
    """Write sum_i K_i and sum_{i<j} K_i K_j of the pairs given."""
    parents, count = kernels.shape
    total[:count] = 0.0
    products[:count] = 0.0
    for i in range(parents):
        kernel = kernels[i]
        for b in range(count):
            # sum_{i<j} K_i K_j gains (sum_{i<j} K_i) K_j with every j.
            products[b] += total[b] * kernel[b]
            total[b] += kernel[b]


@fused
def _add_slopes(
    first: int, last: int, tau1: float, tau2: float, alpha: Floats, work: Workspace, slopes: Floats
) -> None:
    """Add these rows' part of the gradient in the log thetas, and of d/d tau1 and d/d tau2 (the last two slopes)."""
    total, products, pull = np.empty(last), np.empty(last), np.empty(last)
    parents = len(work.kernels)
    at = 0
    for a in range(first, last):
        _sum_kernels(work.kernels[:, at : at + a], total, products)
        # Both triangles, so that 1/2 becomes 1; on the diagonal the kernels don't depend on theta.
        inverse, own = work.covariance[a], alpha[a]
        # (alpha alpha' - C^-1)_ab, then its products with sum_i K_i and sum_{i<j} K_i K_j.
        for b in range(a):
            pull[b] = own * alpha[b] - inverse[b]
        slope1 = slope2 = 0.0
        for b in range(a):
            slope1 += pull[b] * total[b]
            slope2 += pull[b] * products[b]
        slopes[parents] += slope1
        slopes[parents + 1] += slope2
        for i in range(parents):
            kernel, exponent = work.kernels[i, at : at + a], work.exponents[i, at : at + a]
            slope = 0.0
            # dC / d log theta_i = (tau1 + tau2 sum_{j != i} K_j) dK_i, and dK_i / d log theta_i = -2 K_i log K_i.
            for b in range(a):
                slope -= pull[b] * (tau1 + tau2 * (total[b] - kernel[b])) * kernel[b] * exponent[b]
            slopes[i] += 2.0 * slope
        at += a
