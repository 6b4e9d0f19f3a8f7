"""Whole numbers from the discrete Gaussian distribution, exactly, for differential privacy.

Algorithms 1 to 3 of Canonne, Kamath & Steinke (2020, "The discrete Gaussian for differential privacy"): rejection from
a discrete Laplace distribution. They use nothing but whole numbers and the operating system's randomness, so that no
rounding of floats reveals what the noise was added to (Mironov 2012).
"""

from math import isqrt
from secrets import randbelow


def discrete_gaussian(variance: int, count: int) -> list[int]:
    """Return independent whole numbers x with probabilities proportional to exp(-x^2 / (2 variance)).

    Parameters
    ----------
    variance : int
        At least 1; above 10 or so, the numbers' variance is this to many digits.
    count : int
        How many numbers.

    Examples
    --------
    >>> noise = discrete_gaussian(10**20, 200)
    >>> bool(3e18 < sum(x * x for x in noise) / 200 < 3e20)
    True
    """
    return [_gaussian(variance) for _ in range(count)]


def _gaussian(variance: int) -> int:
    """Draw from the discrete Laplace distribution of nearly the same width, and keep the draw as often as fits."""
    width = isqrt(variance) + 1
    while True:
        drawn = _laplace(width)
        if _bernoulli_exp((abs(drawn) * width - variance) ** 2, 2 * variance * width**2):
            return drawn


def _laplace(width: int) -> int:
    """Draw x with probability proportional to exp(-|x| / width)."""
    while True:
        rest = randbelow(width)
        if not _bernoulli_exp(rest, width):
            continue
        whole = 0
        while _bernoulli_exp(1, 1):
            whole += 1
        size, negative = rest + width * whole, randbelow(2)
        if size or not negative:  # 0 has one sign only
            return -size if negative else size


def _bernoulli_exp(numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1):
            return False
        numerator -= denominator
    # The alternating series of exp(-x): the first k at which a coin of probability x / k fails is odd.
    k = 1
    while randbelow(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
