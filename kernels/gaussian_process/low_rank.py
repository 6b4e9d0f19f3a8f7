"""The Gaussian-process marginal likelihood at a cost that doesn't grow with the number of rows.

With additive squared-exponential kernels and a normal mean, the covariance of a node given its parents is
C = sum_i K_theta_i + s^2 1 1' + sigma^2 I. On the rows, K_theta is U B B' U' with orthonormal functions U that are free
of theta and a small lower triangular matrix B(theta), tabulated as polynomials in log theta (see
`gpn_bayes.scores.gp.basis`). The smoother the process, the fewer of the functions are needed. So
C = Phi Phi' + sigma^2 I with Phi = (U_1 B_1, …, s 1), and of the rows only U_i'U_j, U_i'1 and U_i'y are needed.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.algebra.tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    factor,
    invert_transposed,
    padded,
    square_lower,
    write_tile,
)
from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import fused, inner_fused

# The cells of log theta, each with polynomials of its own, and the polynomials' degree.
LOWEST_THETA, CELLS, CELL_WIDTH, DEGREE = 0.1, 96, 0.12, 8
_LOWEST_CELL = np.log(LOWEST_THETA)
_LOG_2PI = np.log(2 * np.pi)


class Moments(NamedTuple):
    """What the likelihood needs of the rows of a node and its parents.

    Attributes
    ----------
    cells : ndarray of int64, shape (parents, cells, 2)
        How many functions U_i are used in each cell of log theta, and where in `coefficients` its polynomials begin.
    coefficients : ndarray, one-dimensional
        For each cell and variable the polynomials of B's lower triangle, row after row, the constant terms first.
    starts : ndarray of int64, shape (parents + 1,)
        Where each parent's functions begin in what follows: at whole tiles, with zeros in between.
    gram : ndarray of shape (m, m)
        U_i'U_j; for i = j only where they aren't orthonormal.
    orthonormal : bool
        Whether the functions of one variable are: U_i'U_i is the identity, unless these are some of the rows only.
    with_one, with_y : ndarray of shape (m,)
        U_i'1 and U_i'y, y being the standardised node minus the prior mean of mu.
    n_rows, y_squares, y_sum : float
        The number of rows, y'y and 1'y.
    mean_sd : float
        The prior standard deviation s of mu.
    """

    cells: Ints
    coefficients: Floats
    starts: Ints
    gram: Floats
    orthonormal: bool
    with_one: Floats
    with_y: Floats
    n_rows: float
    y_squares: float
    y_sum: float
    mean_sd: float


class Workspace(NamedTuple):
    """Scratch space of the likelihood, for a node with some number of parents.

    Its matrices are padded to whole tiles. After the columns of Phi, and zeros up to whole tiles, comes y.

    Attributes
    ----------
    spans : ndarray of int64, shape (parents + 1, 2)
        How many functions of each parent are in use, and where its columns of Phi begin.
    factors, slopes : ndarray of shape (parents, most functions, most functions)
        The matrices B, and their derivatives in log theta.
    packed : ndarray of shape (2, packed length)
        One B and its derivative, packed row after row.
    crossed : ndarray of shape (m, columns)
        U'(Phi, y).
    system : ndarray of shape (columns, columns)
        (S, Phi'y) with S = Phi'Phi + sigma^2 I, then (R, R'^-1 Phi'y) with R'R = S.
    lower, inverse : ndarray of shape (columns, columns)
        R'^-1, later Phi'dPhi, and S^-1.
    roots, solved : ndarray of shape (columns,)
        1 / R_kk, and S^-1 Phi'y.
    """

    spans: Ints
    factors: Floats
    slopes: Floats
    packed: Floats
    crossed: Floats
    system: Floats
    lower: Floats
    inverse: Floats
    roots: Floats
    solved: Floats


@fused
def new_workspace(moments: Moments) -> Workspace:
    """Return scratch space that is large enough for all length scales."""
    parents = len(moments.cells)
    widest = 0
    for i in range(parents):
        widest = max(widest, moments.starts[i + 1] - moments.starts[i])
    functions = moments.starts[parents]
    # Room for the mean, y, and tiles that reach over the edge.
    columns = padded(functions + 1, TILE_COLUMNS) + 2 * TILE_COLUMNS
    side = padded(widest, TILE_COLUMNS)
    return Workspace(
        np.zeros((parents + 1, 2), np.int64),
        np.empty((parents, side, side)),
        np.empty((parents, side, side)),
        np.empty((2, widest * (widest + 1) // 2)),
        np.empty((functions, columns)),
        np.empty((columns, columns)),
        np.empty((columns, columns)),
        np.empty((columns, columns)),
        np.empty(columns),
        np.empty(columns),
    )


@inner_fused
def write_factor(
    log_theta: float, cells: Ints, coefficients: Floats, packed: Floats, b: Floats, slopes_of_b: Floats
) -> int:
    """Write B(theta) of a parent and its slope in log theta; return its size.

    `cells` and `coefficients` are that parent's of `Moments`, and `packed` has room for both matrices row after row.
    """
    cell = min(max(int((log_theta - _LOWEST_CELL) / CELL_WIDTH), 0), CELLS - 1)
    m: int = cells[cell, 0]
    begin = cells[cell, 1]
    length = m * (m + 1) // 2
    # The place in the cell, from -1 to 1: dt / d log theta = 2 / width.
    t = 2.0 * ((log_theta - _LOWEST_CELL) / CELL_WIDTH - cell) - 1.0
    terms = coefficients[begin : begin + (DEGREE + 1) * length]
    values, slopes = packed[0, :length], packed[1, :length]
    for k in range(length):
        # sum_power terms_power t^power by Horner's scheme; the derivative in t comes along.
        value, slope = terms[DEGREE * length + k], 0.0
        for power in range(DEGREE - 1, -1, -1):
            slope = slope * t + value
            value = value * t + terms[power * length + k]
        values[k] = value
        slopes[k] = slope * (2.0 / CELL_WIDTH)
    _unpack(values, b, m)
    _unpack(slopes, slopes_of_b, m)
    return m


@inner_fused
def _unpack(packed: Floats, matrix: Floats, size: int) -> None:
    """Write a lower triangular matrix, with zeros up to whole tiles."""
    k = 0
    for a in range(size):
        row = matrix[a]
        for c in range(a + 1):
            row[c] = packed[k + c]
        row[a + 1 : padded(size, TILE_COLUMNS)] = 0.0
        k += a + 1


@inner_fused
def _cross(i: int, j: int, moments: Moments, work: Workspace) -> None:
    """Write U_i'Phi_j, and zeros as far as its last tiles reach: what is on the right of it must be written later."""
    m, begin, first, other = work.spans[j, 0], work.spans[j, 1], moments.starts[i], moments.starts[j]
    out = work.crossed[first:, begin:]
    if i == j and moments.orthonormal:
        # U_i'U_i B_i = B_i.
        for a in range(m):
            for c in range(m):
                out[a, c] = work.factors[i, a, c]
        return
    gram = moments.gram[other:, first:]
    for a in range(0, work.spans[i, 0], TILE_ROWS):
        for c in range(0, m, TILE_COLUMNS):
            # U_i'Phi_j = (U_i'U_j) B_j, and B is lower triangular.
            write_tile(out, gram, work.factors[j], a, c, c, m)


@inner_fused
def _cross_all(moments: Moments, work: Workspace, size: int, half: bool | np.bool_) -> None:
    """Write U'(Phi, y), or only what the upper half of Phi'Phi needs."""
    parents = len(moments.cells)
    mean = work.spans[parents, 1]
    for i in range(parents):
        for j in range(i if half else 0, parents):
            _cross(i, j, moments, work)
        for a in range(moments.starts[i], moments.starts[i] + work.spans[i, 0]):
            # U'(s 1) and U'y.
            work.crossed[a, mean : size + 2 * TILE_COLUMNS] = 0.0
            work.crossed[a, mean] = moments.mean_sd * moments.with_one[a]
            work.crossed[a, size] = moments.with_y[a]


@inner_fused
def _assemble(moments: Moments, work: Workspace, size: int, width: int, noise: float) -> None:
    """Write the upper triangle of Phi'Phi + sigma^2 I, with ones on the rest of the diagonal, and Phi'y."""
    parents = len(moments.cells)
    for i in range(parents):
        m, begin = work.spans[i, 0], work.spans[i, 1]
        # Phi_i'(Phi, y) = B_i'U_i'(Phi, y).
        out, right = work.system[begin:, begin:], work.crossed[moments.starts[i] :, begin:]
        for c in range(0, m, TILE_ROWS):
            for d in range(c // TILE_COLUMNS * TILE_COLUMNS, width - begin, TILE_COLUMNS):
                write_tile(out, work.factors[i], right, c, d, c, m)
    mean = work.spans[parents, 1]
    for c in range(mean, size):
        work.system[c, c:width] = 0.0
        work.system[c, c] = 1.0
    # (s 1)'(s 1) = s^2 N and (s 1)'y.
    work.system[mean, mean] = moments.n_rows * moments.mean_sd * moments.mean_sd
    work.system[mean, size] = moments.mean_sd * moments.y_sum
    for c in range(mean + 1):
        work.system[c, c] += noise


@inner_fused
def _evaluate(log_sigma: float, log_thetas: Floats, moments: Moments, work: Workspace, half: bool | np.bool_) -> float:
    """Return the log likelihood; leave all of U'Phi or half of it."""
    parents = len(moments.cells)
    mean = 0
    for i in range(parents):
        work.spans[i, 0] = write_factor(
            log_thetas[i], moments.cells[i], moments.coefficients, work.packed, work.factors[i], work.slopes[i]
        )
        work.spans[i, 1] = mean
        mean += work.spans[i, 0]
    work.spans[parents, 1] = mean
    size = padded(mean + 1, TILE_ROWS)
    width = padded(size + 1, TILE_COLUMNS)
    noise = np.exp(2.0 * log_sigma)
    _cross_all(moments, work, size, half)
    _assemble(moments, work, size, width, noise)
    # |C| = sigma^(2 (N - m)) |S| for m columns of Phi, and y'C^-1 y = (y'y - y'Phi S^-1 Phi'y) / sigma^2, where
    # y'Phi S^-1 Phi'y = |R'^-1 Phi'y|^2.
    log_det = factor(work.system, work.roots, size, width)
    left = moments.y_squares
    for c in range(mean + 1):
        left -= work.system[c, size] * work.system[c, size]
    # log N(y; 0, C) = -1/2 (log |C| + y'C^-1 y + N log 2 pi) (Rasmussen & Williams 2006, eq. 2.30).
    n_rows = moments.n_rows
    value: float = -0.5 * ((n_rows - mean - 1) * 2.0 * log_sigma + log_det + left / noise + n_rows * _LOG_2PI)
    return value


@fused
def log_likelihood(log_sigma: float, log_thetas: Floats, moments: Moments, work: Workspace) -> float:
    """Return log N(y; 0, C), C = sum_i K_theta_i + s^2 1 1' + sigma^2 I (eq. 7 of the paper, exponent -1/2)."""
    return _evaluate(log_sigma, log_thetas, moments, work, np.bool_(True))


@fused
def log_likelihood_and_gradient(
    log_sigma: float, log_thetas: Floats, moments: Moments, work: Workspace, gradient: Floats
) -> float:
    """Return the log likelihood, and write its gradient in (log sigma, log theta_1, …)."""
    # A plain False would be a type of its own, for which everything is compiled anew.
    value = _evaluate(log_sigma, log_thetas, moments, work, np.bool_(False))
    parents = len(moments.cells)
    columns = work.spans[parents, 1] + 1
    noise = np.exp(2.0 * log_sigma)
    _invert(work, columns)
    # d log N / d log sigma = sigma^2 (alpha'alpha - tr C^-1), alpha = C^-1 y. As C^-1 = (I - Phi S^-1 Phi') / sigma^2,
    # sigma^4 alpha'alpha = y'y - x'S x - sigma^2 x'x, x = S^-1 Phi'y, and sigma^2 tr C^-1 = N - m + sigma^2 tr S^-1. Of
    # these, x'S x = |R'^-1 Phi'y|^2.
    alpha_squares, trace = moments.y_squares, 0.0
    size = padded(columns, TILE_ROWS)
    for c in range(columns):
        alpha_squares -= work.system[c, size] * work.system[c, size] + noise * work.solved[c] * work.solved[c]
        trace += work.inverse[c, c]
    gradient[0] = alpha_squares / noise - (moments.n_rows - columns) - noise * trace
    for i in range(parents):
        gradient[i + 1] = _theta_gradient(i, noise, moments, work, size)
    return value


@inner_fused
def _invert(work: Workspace, columns: int) -> None:
    """Write S^-1 = R^-1 R'^-1 and S^-1 Phi'y."""
    size = padded(columns, TILE_ROWS)
    invert_transposed(work.system, work.roots, work.lower, size)
    square_lower(work.lower, work.inverse, size)
    # x = R^-1 (R'^-1 Phi'y).
    x = work.solved
    x[:size] = 0.0
    for k in range(columns):
        share = work.system[k, size]
        for j in range(k + 1):
            x[j] += share * work.lower[k, j]


@inner_fused
def _theta_gradient(i: int, noise: float, moments: Moments, work: Workspace, size: int) -> float:
    """Return d log N / d log theta_i = tr dPhi' (alpha alpha'Phi - C^-1 Phi), where dPhi is U dB.

    C^-1 Phi = Phi S^-1 and alpha = (y - Phi x) / sigma^2 with x = S^-1 Phi'y = Phi'alpha, so this is the sum of the
    elements of (Phi, y)'dPhi times those of (-x, 1) x' / sigma^2 - (S^-1, 0).
    """
    m, begin, first = work.spans[i, 0], work.spans[i, 1], moments.starts[i]
    # (Phi, y)'dPhi_i = ((Phi, y)'U_i) dB_i.
    products, crossed = work.lower, work.crossed[first:]
    for d in range(0, size + 1, TILE_ROWS):
        for c in range(0, m, TILE_COLUMNS):
            write_tile(products, crossed, work.slopes[i], d, c, c, m)
    x = work.solved[begin : begin + m]
    total = 0.0
    # - sum_dc (Phi'dPhi)_dc (x_d x_c / sigma^2 + (S^-1)_dc) + sum_c (y'dPhi)_c x_c / sigma^2.
    for d in range(size):
        share, inverse = work.solved[d] / noise, work.inverse[d, begin : begin + m]
        for c in range(m):
            total -= products[d, c] * (share * x[c] + inverse[c])
    for c in range(m):
        total += products[size, c] * x[c] / noise
    return total
