"""The Gaussian-process marginal likelihood at a cost that doesn't grow with the number of rows.

With additive squared-exponential kernels and a normal mean, the covariance of a node given its parents is
C = sum_i K_theta_i + 1 1' + sigma^2 I. On the rows, K_theta is W K_theta(z, z) W' for all theta from some length scale
on, with nodes z and weights W free of theta (see `gpn_bayes.scores.gp_basis`). So only W'W, W'y and W'1 are needed of
the rows, and linear algebra of the size of the small kernel matrices' ranks.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.compiled import compiled

# Relative size at which a pivot of a small kernel matrix counts as zero.
_RANK_TOLERANCE = 1e-14
_LOG_2PI = np.log(2 * np.pi)


class Moments(NamedTuple):
    """What the likelihood needs of the rows of a node and its parents.

    Attributes
    ----------
    nodes : ndarray of shape (m,)
        The nodes of all parents, level after level, parent after parent.
    starts : ndarray of int64, shape (parents, levels + 1)
        Where the nodes of each level of each parent begin, and end.
    thetas : ndarray of shape (levels,)
        The smallest length scale each level is made for, rising.
    gram : ndarray of shape (m, m)
        W'W.
    with_one : ndarray of shape (m,)
        W'1.
    with_y : ndarray of shape (m,)
        W'y, y being the standardised node.
    sizes : ndarray of shape (2,)
        Number of rows, and y'y.
    """

    nodes: np.ndarray
    starts: np.ndarray
    thetas: np.ndarray
    gram: np.ndarray
    with_one: np.ndarray
    with_y: np.ndarray
    sizes: np.ndarray


@compiled
def _level_of(thetas: np.ndarray, theta: float) -> int:
    level = 0
    while level + 1 < len(thetas) and thetas[level + 1] <= theta:
        level += 1
    return level


@compiled
def _factor_kernel(nodes: np.ndarray, theta: float, kernel: np.ndarray, factor: np.ndarray) -> int:
    """Write K_theta(z, z) and a factor B with B B' = K, columns first, and return its rank.

    `factor[c]` is column c of B. Pivoted Cholesky: stops where nothing but rounding is left.
    """
    m = len(nodes)
    scale = -0.5 / (theta * theta)
    for a in range(m):
        for b in range(m):
            gap = nodes[a] - nodes[b]
            kernel[a, b] = np.exp(scale * gap * gap)
    left = np.ones(m)
    for rank in range(m):
        pivot = 0
        for a in range(1, m):
            if left[a] > left[pivot]:
                pivot = a
        if left[pivot] <= _RANK_TOLERANCE:
            return rank
        root = np.sqrt(left[pivot])
        column = factor[rank]
        for a in range(m):
            column[a] = kernel[pivot, a]
        for c in range(rank):
            before = factor[c]
            share = before[pivot]
            for a in range(m):
                column[a] -= share * before[a]
        for a in range(m):
            column[a] /= root
            left[a] -= column[a] * column[a]
        left[pivot] = 0.0
    return m


@compiled
def _cholesky(matrix: np.ndarray, size: int) -> float:
    """Replace the lower triangle by its Cholesky factor, and return the log determinant."""
    log_det = 0.0
    for j in range(size):
        for k in range(j):
            factor = matrix[j, k]
            for i in range(j, size):
                matrix[i, j] -= matrix[i, k] * factor
        pivot = matrix[j, j]
        if not pivot > 0.0:
            return np.nan
        log_det += np.log(pivot)
        root = np.sqrt(pivot)
        for i in range(j, size):
            matrix[i, j] /= root
    return log_det


class Workspace(NamedTuple):
    """Scratch space of the likelihood, for a node with some number of parents.

    Attributes
    ----------
    kernels : ndarray of shape (parents, m, m)
        K_theta(z, z) of each parent.
    factors : ndarray of shape (parents, m, m)
        Factors B of the kernels, columns first.
    spans : ndarray of int64, shape (parents, 3)
        Where each parent's nodes begin, how many there are, and where its columns begin.
    crossed : ndarray of shape (columns, m)
        W'Phi, transposed: a row for each column of Phi = (W B, 1).
    system : ndarray of shape (columns, columns)
        Phi'Phi + sigma^2 I, then its Cholesky factor.
    solved : ndarray of shape (columns,)
        (Phi'Phi + sigma^2 I)^-1 Phi'y.
    """

    kernels: np.ndarray
    factors: np.ndarray
    spans: np.ndarray
    crossed: np.ndarray
    system: np.ndarray
    solved: np.ndarray


@compiled
def new_workspace(moments: Moments) -> Workspace:
    """Return scratch space that is large enough for all length scales."""
    parents = len(moments.starts)
    widest = 0
    columns = 1
    for i in range(parents):
        most = 0
        for level in range(len(moments.thetas)):
            most = max(most, moments.starts[i, level + 1] - moments.starts[i, level])
        widest = max(widest, most)
        columns += most
    return Workspace(
        np.empty((parents, widest, widest)),
        np.empty((parents, widest, widest)),
        np.zeros((parents + 1, 3), np.int64),
        np.empty((columns, len(moments.nodes))),
        np.empty((columns, columns)),
        np.empty(columns),
    )


@compiled
def _prepare(log_thetas: np.ndarray, moments: Moments, work: Workspace) -> int:
    """Factor each parent's kernel and multiply it into W'W; return the number of columns of Phi."""
    parents = len(moments.starts)
    columns = 0
    for i in range(parents):
        theta = np.exp(log_thetas[i])
        level = _level_of(moments.thetas, theta)
        begin, end = moments.starts[i, level], moments.starts[i, level + 1]
        m = end - begin
        work.spans[i, 0] = begin
        work.spans[i, 1] = m
        work.spans[i, 2] = columns
        columns += _factor_kernel(moments.nodes[begin:end], theta, work.kernels[i], work.factors[i])
    work.spans[parents, 2] = columns
    # Row by row of W'Phi: the columns of Phi against the nodes in use of every parent.
    for j in range(parents):
        begin_j, m_j = work.spans[j, 0], work.spans[j, 1]
        for c in range(work.spans[j, 2], work.spans[j + 1, 2]):
            row = work.crossed[c]
            column = work.factors[j, c - work.spans[j, 2]]
            for i in range(parents):
                begin, m = work.spans[i, 0], work.spans[i, 1]
                for a in range(m):
                    row[begin + a] = 0.0
                for b in range(m_j):
                    share = column[b]
                    along = moments.gram[begin_j + b]
                    for a in range(m):
                        row[begin + a] += share * along[begin + a]
    for i in range(parents):
        begin, m = work.spans[i, 0], work.spans[i, 1]
        for a in range(m):
            work.crossed[columns, begin + a] = moments.with_one[begin + a]
    return columns + 1


@compiled
def _assemble(moments: Moments, work: Workspace, columns: int, noise: float) -> None:
    """Write Phi'Phi + sigma^2 I (lower triangle) and Phi'y."""
    parents = len(moments.starts)
    for c in range(columns):
        row = work.crossed[c]
        for i in range(parents):
            begin, m = work.spans[i, 0], work.spans[i, 1]
            for d in range(work.spans[i, 2], work.spans[i + 1, 2]):
                if d > c:
                    break
                column = work.factors[i, d - work.spans[i, 2]]
                total = 0.0
                for a in range(m):
                    total += column[a] * row[begin + a]
                work.system[c, d] = total
    one = columns - 1
    work.system[one, one] = moments.sizes[0]
    for c in range(columns):
        work.system[c, c] += noise
    for i in range(parents):
        begin, m = work.spans[i, 0], work.spans[i, 1]
        for c in range(work.spans[i, 2], work.spans[i + 1, 2]):
            column = work.factors[i, c - work.spans[i, 2]]
            total = 0.0
            for a in range(m):
                total += column[a] * moments.with_y[begin + a]
            work.solved[c] = total
    # The node is standardised: y'1 = 0.
    work.solved[one] = 0.0


@compiled
def log_likelihood(log_sigma: float, log_thetas: np.ndarray, moments: Moments, work: Workspace) -> float:
    """Return log N(y; 0, C), C = sum_i K_theta_i + 1 1' + sigma^2 I (eq. 7 of the paper, exponent -1/2).

    Leaves in `work` what `log_likelihood_and_gradient` needs.
    """
    noise = np.exp(2.0 * log_sigma)
    columns = _prepare(log_thetas, moments, work)
    _assemble(moments, work, columns, noise)
    log_det = _cholesky(work.system, columns)
    forward_solve(work.system, work.solved, columns)
    fitted = 0.0
    for c in range(columns):
        fitted += work.solved[c] * work.solved[c]
    n_rows, squares = moments.sizes[0], moments.sizes[1]
    return -0.5 * ((n_rows - columns) * 2.0 * log_sigma + log_det + (squares - fitted) / noise + n_rows * _LOG_2PI)


@compiled
def forward_solve(lower: np.ndarray, vector: np.ndarray, size: int) -> None:
    """Solve L x = b in place."""
    for i in range(size):
        total = vector[i]
        for k in range(i):
            total -= lower[i, k] * vector[k]
        vector[i] = total / lower[i, i]


@compiled
def backward_solve(lower: np.ndarray, vector: np.ndarray, size: int) -> None:
    """Solve L' x = b in place."""
    for i in range(size - 1, -1, -1):
        vector[i] /= lower[i, i]
        for k in range(i):
            vector[k] -= lower[i, k] * vector[i]


@compiled
def log_likelihood_and_gradient(
    log_sigma: float, log_thetas: np.ndarray, moments: Moments, work: Workspace, gradient: np.ndarray
) -> float:
    """Return the log likelihood, and write its gradient in (log sigma, log theta_1, …)."""
    value = log_likelihood(log_sigma, log_thetas, moments, work)
    parents = len(moments.starts)
    columns = work.spans[parents, 2] + 1
    noise = np.exp(2.0 * log_sigma)
    n_rows, squares = moments.sizes[0], moments.sizes[1]
    fitted = 0.0
    for c in range(columns):
        fitted += work.solved[c] * work.solved[c]
    backward_solve(work.system, work.solved, columns)
    solved_squares = 0.0
    for c in range(columns):
        solved_squares += work.solved[c] * work.solved[c]
    # L^-1 W'Phi, over the nodes in use, and tr (L L')^-1 with it.
    inverse_trace = _solve_rows(moments, work, columns)
    alpha_squares = (squares - fitted - noise * solved_squares) / noise**2
    gradient[0] = noise * alpha_squares - (n_rows - columns) - noise * inverse_trace
    for i in range(parents):
        gradient[i + 1] = _theta_gradient(i, np.exp(log_thetas[i]), noise, moments, work, columns)
    return value


@compiled
def _solve_rows(moments: Moments, work: Workspace, columns: int) -> float:
    """Replace W'Phi by W'Phi L'^-1, keeping alpha's part first; return tr (L L')^-1."""
    parents = len(moments.starts)
    lower = work.system
    # sigma^2 W'alpha = W'y - W'Phi x, needed before the rows are overwritten, takes the place of the first factor.
    for i in range(parents):
        begin, m = work.spans[i, 0], work.spans[i, 1]
        for a in range(m):
            work.factors[i, 0, a] = moments.with_y[begin + a]
        for c in range(columns):
            share = work.solved[c]
            row = work.crossed[c]
            for a in range(m):
                work.factors[i, 0, a] -= share * row[begin + a]
    for c in range(columns):
        row = work.crossed[c]
        for k in range(c):
            share = lower[c, k]
            before = work.crossed[k]
            for i in range(parents):
                begin, m = work.spans[i, 0], work.spans[i, 1]
                for a in range(m):
                    row[begin + a] -= share * before[begin + a]
        for i in range(parents):
            begin, m = work.spans[i, 0], work.spans[i, 1]
            for a in range(m):
                row[begin + a] /= lower[c, c]
    trace = 0.0
    column = np.empty(columns)
    for j in range(columns):
        # Column j of L^-1, from its diagonal down.
        column[j] = 1.0 / lower[j, j]
        trace += column[j] * column[j]
        for i in range(j + 1, columns):
            total = 0.0
            for k in range(j, i):
                total -= lower[i, k] * column[k]
            column[i] = total / lower[i, i]
            trace += column[i] * column[i]
    return trace


@compiled
def _theta_gradient(i: int, theta: float, noise: float, moments: Moments, work: Workspace, columns: int) -> float:
    """Return d log N / d log theta_i = 1/2 tr (alpha alpha' - C^-1) W K' W'."""
    begin, m = work.spans[i, 0], work.spans[i, 1]
    residual = work.factors[i, 0]
    total = 0.0
    inner = np.empty(m)
    for a in range(m):
        along = moments.gram[begin + a]
        for b in range(a):
            inner[b] = along[begin + b]
        for c in range(columns):
            row = work.crossed[c]
            share = row[begin + a]
            for b in range(a):
                inner[b] -= share * row[begin + b]
        for b in range(a):
            gap = moments.nodes[begin + a] - moments.nodes[begin + b]
            slope = work.kernels[i, a, b] * gap * gap / (theta * theta)
            # Both triangles, so that 1/2 becomes 1; the diagonal's slope is zero.
            total += slope * (residual[a] * residual[b] / noise - inner[b]) / noise
    return total
