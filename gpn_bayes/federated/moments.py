"""Number, sums and sums of products of rows, so exactly that adding them up over clients loses nothing.

A covariance is the small difference of large sums, so the sums are whole numbers in units of 2^-140, cut into seven
digits of 40 bits. The digits are added separately, each exactly, in whatever arithmetic adds floats.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.data import SufficientStatistics

FRACTION_BITS = 140
DIGIT_BITS = 40
N_DIGITS = 7
_UNIT = 1 << FRACTION_BITS
_BASE = 1 << DIGIT_BITS
# Variances this many units above the rounding of the sums have ten correct digits.
_LEAST_UNITS = 10**10


def moment_digits(values: Floats) -> Floats:
    """Return the digits of n, sum x and sum xx' (upper triangle, row by row).

    Parameters
    ----------
    values : ndarray of shape (rows, variables)
        Finite numbers.

    Returns
    -------
    ndarray of shape (7, 1 + d + d (d + 1) / 2)
        Whole numbers of at most 2^39 in size, the lowest digits first.

    Raises
    ------
    ValueError
        If a sum of products is too large.
    """
    rows, d = values.shape
    # About any centre that is near, the sums of differences are small, and floats are exact enough for them.
    centre = values.mean(axis=0)
    differences = values - centre
    near = [Fraction(float(total)) for total in differences.sum(axis=0)]
    products = differences.T @ differences
    shift = [Fraction(float(c)) for c in centre]
    sums = [rows * c + r for c, r in zip(shift, near, strict=True)]
    moments = [Fraction(rows), *sums]
    for i, j in zip(*_upper(d), strict=True):
        moments.append(Fraction(float(products[i, j])) + shift[i] * near[j] + sums[i] * shift[j])
    return to_digits([round(moment * _UNIT) for moment in moments])


def pooled_statistics(digits: Floats, names: Sequence[str], clients: int) -> SufficientStatistics:
    """Return the statistics of all rows from the sums of their digits.

    Examples
    --------
    >>> rows = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 5.0], [1e8, 0.5]])
    >>> pooled = pooled_statistics(moment_digits(rows[:2]) + moment_digits(rows[2:]), ["x", "y"], 2)
    >>> bool(np.allclose(pooled.cov, np.cov(rows.T), rtol=1e-14))
    True
    """
    d = len(names)
    total, *moments = from_digits(digits)
    n, sums, products = total // _UNIT, moments[:d], moments[d:]
    if n < 2:
        raise ValueError(f"statistics need at least two rows; received n = {n}")
    mean = np.array([value / (n * _UNIT) for value in sums])
    cov = np.empty((d, d))
    for i, j, product in zip(*_upper(d), products, strict=True):
        centred = product * n * _UNIT - sums[i] * sums[j]
        if i == j and 0 < centred < _LEAST_UNITS * clients * n * _UNIT:
            raise ValueError(f"a column must vary by more than 1e-16; {names[i]!r} doesn't: give it in smaller units")
        # The quotient of whole numbers is rounded once, however long they are.
        cov[i, j] = cov[j, i] = centred / (n * (n - 1) * _UNIT**2)
    return SufficientStatistics(n, mean, cov, tuple(names))


def digit_shape(variables: int) -> tuple[int, int]:
    """Return the shape of the digits of this many variables."""
    return N_DIGITS, 1 + variables + variables * (variables + 1) // 2


def _upper(d: int) -> tuple[list[int], list[int]]:
    """Return the rows and columns of a matrix's upper triangle, row by row."""
    rows, columns = np.triu_indices(d)
    return rows.tolist(), columns.tolist()


def to_digits(numbers: list[int]) -> Floats:
    """Return whole numbers of units of 2^-140 as digits from -2^39 to 2^39 - 1, the lowest first."""
    digits = np.empty((N_DIGITS, len(numbers)))
    half = _BASE >> 1
    for k, number in enumerate(numbers):
        rest = number
        for place in range(N_DIGITS):
            digit = (rest + half) % _BASE - half
            digits[place, k] = digit
            rest = (rest - digit) >> DIGIT_BITS
        if rest:
            raise ValueError("sums of products must be below 1e41 in size; received a larger one: use larger units")
    return digits


def from_digits(digits: Floats) -> list[int]:
    """Return the whole numbers that digits, or sums of them, stand for.

    Examples
    --------
    >>> from_digits(to_digits([1 << 200, -5]) + to_digits([1, 2])) == [(1 << 200) + 1, -3]
    True
    """
    return [sum(int(digit) << (DIGIT_BITS * place) for place, digit in enumerate(column)) for column in digits.T]
