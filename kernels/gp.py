"""The Gaussian-process marginal likelihood at a cost that doesn't grow with the number of rows.

With additive squared-exponential kernels and a normal mean, the covariance of a node given its parents is
C = sum_i K_theta_i + s^2 1 1' + sigma^2 I. On the rows, K_theta is U B B' U' with orthonormal functions U that are free
of theta and a small lower triangular matrix B(theta), tabulated as polynomials in log theta (see
`gpn_bayes.scores.gp_basis`). The smoother the process, the fewer of the functions are needed. So
C = Phi Phi' + sigma^2 I with Phi = (U_1 B_1, …, s 1), and of the rows only U_i'U_j, U_i'1 and U_i'y are needed.
"""

from typing import NamedTuple

import numpy as np

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
        Where each parent's functions begin in what follows.
    gram : ndarray of shape (m, m)
        U_i'U_j.
    with_one, with_y : ndarray of shape (m,)
        U_i'1 and U_i'y, y being the standardised node minus the prior mean of mu.
    sizes : ndarray of shape (4,)
        The number of rows, y'y, 1'y, and the prior standard deviation s of mu.
    """

    cells: np.ndarray
    coefficients: np.ndarray
    starts: np.ndarray
    gram: np.ndarray
    with_one: np.ndarray
    with_y: np.ndarray
    sizes: np.ndarray


class Workspace(NamedTuple):
    """Scratch space of the likelihood, for a node with some number of parents.

    Attributes
    ----------
    spans : ndarray of int64, shape (parents + 1, 2)
        How many functions of each parent are in use, and where its columns of Phi begin.
    factors : ndarray of shape (parents, most functions, most functions)
        The matrices B.
    slopes : ndarray of shape (parents, packed length)
        Their derivatives in log theta, packed row after row.
    packed : ndarray of shape (packed length,)
        One B, packed.
    crossed : ndarray of shape (m, columns)
        U'Phi.
    system : ndarray of shape (columns, columns)
        S = Phi'Phi + sigma^2 I, then R with R'R = S.
    lower, inverse : ndarray of shape (columns, columns)
        R'^-1 and S^-1.
    solved : ndarray of shape (columns,)
        S^-1 Phi'y.
    """

    spans: np.ndarray
    factors: np.ndarray
    slopes: np.ndarray
    packed: np.ndarray
    crossed: np.ndarray
    system: np.ndarray
    lower: np.ndarray
    inverse: np.ndarray
    solved: np.ndarray


@fused
def new_workspace(moments: Moments) -> Workspace:
    """Return scratch space that is large enough for all length scales."""
    parents = len(moments.cells)
    widest = 0
    for i in range(parents):
        widest = max(widest, moments.starts[i + 1] - moments.starts[i])
    functions = moments.starts[parents]
    packed = max(widest * (widest + 1) // 2, functions + 1)
    return Workspace(
        np.zeros((parents + 1, 2), np.int64),
        np.empty((parents, widest, widest)),
        np.empty((parents, packed)),
        np.empty(packed),
        np.empty((functions, functions + 1)),
        np.empty((functions + 1, functions + 1)),
        np.empty((functions + 1, functions + 1)),
        np.empty((functions + 1, functions + 1)),
        np.empty(functions + 1),
    )


@inner_fused
def _add_rows(row: np.ndarray, shares: np.ndarray, rows: np.ndarray, count: int) -> None:
    """Add to `row` the first `count` rows, each times its share. Four at a time: memory is slower than arithmetic."""
    length = len(row)
    k = 0
    while k + 4 <= count:
        a, b, c, d = shares[k], shares[k + 1], shares[k + 2], shares[k + 3]
        first, second, third, fourth = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for j in range(length):
            row[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
        k += 4
    while k < count:
        a, first = shares[k], rows[k]
        for j in range(length):
            row[j] += a * first[j]
        k += 1


@inner_fused
def _write_factor(log_theta: float, i: int, moments: Moments, work: Workspace) -> int:
    """Write B(theta) of a parent and its slope in log theta; return its size."""
    cell = min(max(int((log_theta - _LOWEST_CELL) / CELL_WIDTH), 0), CELLS - 1)
    m, begin = moments.cells[i, cell, 0], moments.cells[i, cell, 1]
    length = m * (m + 1) // 2
    t = 2.0 * ((log_theta - _LOWEST_CELL) / CELL_WIDTH - cell) - 1.0
    terms = moments.coefficients[begin : begin + (DEGREE + 1) * length]
    packed, slopes = work.packed[:length], work.slopes[i, :length]
    for k in range(length):
        # Horner's scheme; the slope's comes along.
        value, slope = terms[DEGREE * length + k], 0.0
        for power in range(DEGREE - 1, -1, -1):
            slope = slope * t + value
            value = value * t + terms[power * length + k]
        packed[k] = value
        slopes[k] = slope * (2.0 / CELL_WIDTH)
    factor = work.factors[i]
    k = 0
    for a in range(m):
        for c in range(m):
            factor[a, c] = packed[k + c] if c <= a else 0.0
        k += a + 1
    return m


@inner_fused
def _cross(i: int, j: int, moments: Moments, work: Workspace) -> None:
    """Write U_i'Phi_j."""
    first, other = moments.starts[i], moments.starts[j]
    m, begin = work.spans[j, 0], work.spans[j, 1]
    for a in range(work.spans[i, 0]):
        row = work.crossed[first + a, begin : begin + m]
        for c in range(m):
            # The functions of one variable are orthonormal.
            row[c] = work.factors[i, a, c] if i == j else 0.0
        if i != j:
            _add_rows(row, moments.gram[first + a, other : other + m], work.factors[j, :, :m], m)


@inner_fused
def _assemble(moments: Moments, work: Workspace, columns: int, noise: float) -> None:
    """Write the upper triangle of Phi'Phi + sigma^2 I, and Phi'y."""
    shares = work.packed
    for i in range(len(moments.cells)):
        m, begin, first = work.spans[i, 0], work.spans[i, 1], moments.starts[i]
        for c in range(m):
            for a in range(c, m):
                shares[a - c] = work.factors[i, a, c]
            row = work.system[begin + c, begin + c : columns]
            row[:] = 0.0
            _add_rows(row, shares, work.crossed[first + c : first + m, begin + c : columns], m - c)
            total = 0.0
            for a in range(m - c):
                total += shares[a] * moments.with_y[first + c + a]
            work.solved[begin + c] = total
    n_rows, mean_sd = moments.sizes[0], moments.sizes[3]
    work.system[columns - 1, columns - 1] = n_rows * mean_sd * mean_sd
    work.solved[columns - 1] = mean_sd * moments.sizes[2]
    for c in range(columns):
        work.system[c, c] += noise


@inner_fused
def _factor_system(system: np.ndarray, shares: np.ndarray, size: int) -> float:
    """Replace the upper triangle by R with R'R = S, and return the log determinant; NaN if there is none."""
    log_det = 0.0
    for k in range(size):
        row = system[k, k:size]
        for j in range(k):
            shares[j] = -system[j, k]
        _add_rows(row, shares, system[:, k:size], k)
        pivot = row[0]
        if not pivot > 0.0:
            return np.nan
        log_det += np.log(pivot)
        root = 1.0 / np.sqrt(pivot)
        for j in range(size - k):
            row[j] *= root
    return log_det


@inner_fused
def _solve_transposed(upper: np.ndarray, vector: np.ndarray, size: int) -> None:
    """Solve R'x = b in place."""
    for k in range(size):
        vector[k] /= upper[k, k]
        for j in range(k + 1, size):
            vector[j] -= vector[k] * upper[k, j]


@inner_fused
def _solve(upper: np.ndarray, vector: np.ndarray, size: int) -> None:
    """Solve R x = b in place."""
    for k in range(size - 1, -1, -1):
        total = vector[k]
        for j in range(k + 1, size):
            total -= upper[k, j] * vector[j]
        vector[k] = total / upper[k, k]


@fused
def log_likelihood(log_sigma: float, log_thetas: np.ndarray, moments: Moments, work: Workspace) -> float:
    """Return log N(y; 0, C), C = sum_i K_theta_i + s^2 1 1' + sigma^2 I (eq. 7 of the paper, exponent -1/2).

    Leaves in `work` what `log_likelihood_and_gradient` needs.
    """
    parents = len(moments.cells)
    columns = 0
    for i in range(parents):
        work.spans[i, 0] = _write_factor(log_thetas[i], i, moments, work)
        work.spans[i, 1] = columns
        columns += work.spans[i, 0]
    work.spans[parents, 1] = columns
    columns += 1
    for i in range(parents):
        # Phi'Phi is symmetric: half of U'Phi is enough for it.
        for j in range(i, parents):
            _cross(i, j, moments, work)
        for a in range(moments.starts[i], moments.starts[i] + work.spans[i, 0]):
            work.crossed[a, columns - 1] = moments.sizes[3] * moments.with_one[a]
    noise = np.exp(2.0 * log_sigma)
    _assemble(moments, work, columns, noise)
    log_det = _factor_system(work.system, work.packed, columns)
    _solve_transposed(work.system, work.solved, columns)
    fitted = 0.0
    for c in range(columns):
        fitted += work.solved[c] * work.solved[c]
    n_rows, squares = moments.sizes[0], moments.sizes[1]
    return -0.5 * ((n_rows - columns) * 2.0 * log_sigma + log_det + (squares - fitted) / noise + n_rows * _LOG_2PI)


@inner_fused
def _invert_system(work: Workspace, size: int) -> float:
    """Write S^-1 = R^-1 R'^-1, and return its trace."""
    upper, lower, inverse, shares = work.system, work.lower, work.inverse, work.packed
    trace = 0.0
    for k in range(size):
        row = lower[k, : k + 1]
        row[:] = 0.0
        root = 1.0 / upper[k, k]
        for j in range(k):
            shares[j] = -upper[j, k] * root
        # Row j of R'^-1 ends at its diagonal; beyond it, `lower` is zero.
        _add_rows(row[:k], shares, lower[:, :k], k)
        row[k] = root
        lower[k, k + 1 : size] = 0.0
        for j in range(k + 1):
            trace += row[j] * row[j]
    for k in range(size):
        row = inverse[k, : k + 1]
        row[:] = 0.0
        for j in range(k, size):
            shares[j - k] = lower[j, k]
        _add_rows(row, shares, lower[k:, : k + 1], size - k)
        for j in range(k):
            inverse[j, k] = row[j]
    return trace


@fused
def log_likelihood_and_gradient(
    log_sigma: float, log_thetas: np.ndarray, moments: Moments, work: Workspace, gradient: np.ndarray
) -> float:
    """Return the log likelihood, and write its gradient in (log sigma, log theta_1, …)."""
    value = log_likelihood(log_sigma, log_thetas, moments, work)
    parents = len(moments.cells)
    for i in range(parents):
        for j in range(i):
            _cross(i, j, moments, work)
    columns = work.spans[parents, 1] + 1
    noise = np.exp(2.0 * log_sigma)
    fitted = 0.0
    for c in range(columns):
        fitted += work.solved[c] * work.solved[c]
    _solve(work.system, work.solved, columns)
    solved_squares = 0.0
    for c in range(columns):
        solved_squares += work.solved[c] * work.solved[c]
    trace = _invert_system(work, columns)
    # alpha = C^-1 y; alpha'alpha follows from y'y and S alone.
    alpha_squares = (moments.sizes[1] - fitted - noise * solved_squares) / noise**2
    gradient[0] = noise * alpha_squares - (moments.sizes[0] - columns) - noise * trace
    for i in range(parents):
        gradient[i + 1] = _theta_gradient(i, noise, moments, work, columns)
    return value


@inner_fused
def _theta_gradient(i: int, noise: float, moments: Moments, work: Workspace, columns: int) -> float:
    """Return d log N / d log theta_i = tr dB' (U'alpha alpha'Phi - U'C^-1 Phi), with C^-1 Phi = Phi S^-1."""
    m, begin, first = work.spans[i, 0], work.spans[i, 1], moments.starts[i]
    row = work.packed[:m]
    total = 0.0
    k = 0
    for a in range(m):
        crossed = work.crossed[first + a]
        residual = moments.with_y[first + a]
        for c in range(columns):
            residual -= crossed[c] * work.solved[c]
        row[: a + 1] = 0.0
        _add_rows(row[: a + 1], crossed, work.inverse[:, begin : begin + a + 1], columns)
        for c in range(a + 1):
            total += work.slopes[i, k] * (residual / noise * work.solved[begin + c] - row[c])
            k += 1
    return total
