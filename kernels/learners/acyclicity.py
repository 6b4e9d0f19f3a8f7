"""How far a weighted graph is from acyclic: three functions of its squared weights that vanish on DAGs alone.

Each takes a matrix A with no negative entry, such as W * W, and returns its value with the gradient for A; times 2 W,
that is the gradient for W. Values are sums without cancellation, so that tiny ones have all their digits.
"""

from collections.abc import Callable

import numpy as np

from gpn_bayes.kernels.arrays import Floats

# With the norm halved below this, sixteen terms of the exponential series leave less than 1e-19.
_SERIES_NORM = 0.5
_SERIES_DEGREE = 16
_BLOCK = 4

Acyclicity = Callable[[Floats], tuple[float, Floats]]


def exponential(squares: Floats) -> tuple[float, Floats]:
    """Return tr exp(A) - d and its gradient exp(A)'.

    Examples
    --------
    >>> value, gradient = exponential(np.array([[0.0, 4.0], [0.0, 0.0]]))
    >>> value, gradient.tolist()
    (0.0, [[1.0, 0.0], [4.0, 1.0]])
    """
    # ||A||_1 = max_j sum_i A_ij, as no entry is negative.
    norm = float(squares.sum(axis=0).max())
    if not np.isfinite(norm):
        return np.inf, np.full_like(squares, np.nan)
    # The least number with ||A||_1 / 2^halvings <= _SERIES_NORM.
    halvings = max(0, int(np.ceil(np.log2(norm / _SERIES_NORM)))) if norm > 0 else 0
    # exp(A / 2^halvings) - I; then exp(2 M) - I = exp(M)^2 - I, until it is exp(A) - I.
    less_one = _exponential_series(squares / 2.0**halvings)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(halvings):
            less_one = _times(less_one, less_one)
    # h(W) = tr exp(W * W) - d (Zheng et al. 2018, Theorem 1), where A = W * W.
    return _trace_and_gradient(less_one, less_one)


def polynomial(squares: Floats) -> tuple[float, Floats]:
    """Return tr (I + A / d)^d - d and its gradient, the transpose of (I + A / d)^(d - 1).

    Examples
    --------
    >>> polynomial(np.array([[0.0, 2.0], [2.0, 0.0]]))[0]
    2.0
    """
    d = len(squares)
    step = squares / d
    # I + power = (I + A / d)^k, where k is what the bits of d - 1 read so far say.
    power = np.zeros_like(step)
    with np.errstate(over="ignore", invalid="ignore"):
        for bit in bin(d - 1)[2:]:
            power = _times(power, power)
            if bit == "1":
                power = _times(power, step)
        # tr (I + A / d)^d - d; the gradient is d (I + A / d)^(d - 1)' / d.
        return _trace_and_gradient(_times(power, step), power)


def log_determinant(squares: Floats, s: float = 1.0) -> tuple[float, Floats]:
    """Return -log det(s I - A) + d log s and its gradient, the transpose of (s I - A)^-1.

    It is finite where all eigenvalues of A are below s in magnitude; elsewhere the value is infinite.

    Examples
    --------
    >>> value, gradient = log_determinant(np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> print(round(np.exp(-value), 12))
    0.75
    >>> log_determinant(np.array([[0.0, 2.0], [2.0, 0.0]]))[0]
    inf
    """
    d = len(squares)
    outside = np.inf, np.full_like(squares, np.nan)
    if not np.isfinite(squares).all():
        return outside
    try:
        # (I - A / s)^-1
        inverse = np.linalg.inv(np.eye(d) - squares / s)
    except np.linalg.LinAlgError:
        return outside
    # Inside, the inverse is the series I + A/s + (A/s)^2 + …: no entry is negative, and the diagonal is at least one.
    if inverse.min() < -1e-12 * inverse.max() or inverse.diagonal().min() < 1 - 1e-9:
        return outside
    # -log det(s I - A) + d log s = log det (I - A / s)^-1; its gradient (s I - A)^-1' = (I - A / s)^-1' / s.
    sign, logarithm = np.linalg.slogdet(inverse)
    return (float(logarithm), inverse.T / s) if sign > 0 else outside


def _times(left: Floats, right: Floats) -> Floats:
    """Return (I + left)(I + right) - I."""
    return left + right + left @ right


def _exponential_series(matrix: Floats) -> Floats:
    """Return exp(matrix) - I for a small matrix, four powers at a time (Paterson & Stockmeyer)."""
    # I, M, M^2, M^3, M^4
    powers: list[Floats] = [np.eye(len(matrix)), matrix]
    for _ in range(_BLOCK - 1):
        powers.append(powers[-1] @ matrix)
    # coefficients[k] = 1 / k!
    coefficients = np.ones(_SERIES_DEGREE + 1)
    coefficients[1:] = 1 / np.cumprod(np.arange(1.0, _SERIES_DEGREE + 1))
    # sum over k = 1 … 16 of M^k / k!, by Horner's rule: total <- total M^4 + sum over k < 4 of M^k / (start + k)!
    total: Floats = coefficients[_SERIES_DEGREE] * powers[0]
    for start in range(_SERIES_DEGREE - _BLOCK, -1, -_BLOCK):
        total = total @ powers[_BLOCK]
        for k in range(_BLOCK):
            # The identity is left out: the caller wants exp - I.
            if start + k:
                total = total + coefficients[start + k] * powers[k]
    return total


def _trace_and_gradient(less_one: Floats, gradient_less_one: Floats) -> tuple[float, Floats]:
    """Return tr E and (I + F)', for the matrices E and F that are given less the identity."""
    value = float(np.trace(less_one))
    if not np.isfinite(value):
        return np.inf, np.full_like(less_one, np.nan)
    return value, gradient_less_one.T + np.eye(len(less_one))
