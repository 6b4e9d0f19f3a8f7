"""How much Gaussian noise makes an answer differentially private: the analytic Gaussian mechanism."""

import math
from functools import cache

from scipy.optimize import brentq
from scipy.special import erfcx, ndtri

LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 100.0
LEAST_DELTA, LARGEST_DELTA = 1e-15, 0.1
_LEAST_MULTIPLIER = 0.05  # delta is above 0.1 there, even at the largest epsilon
_UPWARDS = 1 + 1e-9  # more than the error of the root


@cache
def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation of Gaussian noise, in units of the sensitivity, for (epsilon, delta).

    Balle & Wang (2018, "Improving the Gaussian mechanism for differential privacy", theorem 8): it is necessary and
    sufficient, whatever epsilon is. The classic ``sqrt(2 log(1.25 / delta)) / epsilon`` is larger, and holds only for
    epsilon below 1.

    Parameters
    ----------
    epsilon : float
        From 1e-6 to 100.
    delta : float
        From 1e-15 to 0.1.

    Examples
    --------
    >>> round(noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    # Without the second term of delta; an upper bound, as that term is subtracted.
    quantile = -float(ndtri(delta))
    largest = (quantile + math.sqrt(quantile**2 + 2 * epsilon)) / (2 * epsilon)
    target = math.log(delta)
    return _UPWARDS * float(
        brentq(lambda s: log_delta(epsilon, s) - target, _LEAST_MULTIPLIER, largest, xtol=1e-14, rtol=1e-13)
    )


def log_delta(epsilon: float, multiplier: float) -> float:
    """Return the log of the smallest delta that noise of this standard deviation, per sensitivity, gives with epsilon.

    It is ``Phi(1 / 2s - epsilon s) - exp(epsilon) Phi(-1 / 2s - epsilon s)``, in a form in which neither the second
    factor overflows nor the tails vanish: with ``Phi(-x) = exp(-x^2 / 2) erfcx(x / sqrt 2) / 2``, both terms have the
    factor ``exp(-(epsilon s - 1 / 2s)^2 / 2)``.
    """
    first, second = ((epsilon * multiplier + sign / (2 * multiplier)) / math.sqrt(2) for sign in (-1, 1))
    return -(first**2) + math.log((float(erfcx(first)) - float(erfcx(second))) / 2)
