"""The upper tail of importance weights."""

import math

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner

# The prior of the tail's shape counts like this many weights at this value (Vehtari et al. 2024).
_PRIOR_WEIGHTS, _PRIOR_SHAPE = 10.0, 0.5
# Zhang & Stephens' grid: its prior stretches to this many times the first quartile.
_QUARTILES, _GRID = 3.0, 30


@compiled
def pareto_fit(excesses: Floats) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution fitted to rising positive numbers.

    The density at x is (1 + shape x / scale)^(-1 / shape - 1) / scale. With the rate b = -shape / scale, the likelihood
    given b is highest at shape = mean log(1 - b x).

    Zhang & Stephens' (2009) empirical Bayes estimate, its shape drawn towards 1/2 where there are few. NaN where the
    first quartile isn't above the smallest: nothing like a tail.
    """
    count = len(excesses)
    quartile = excesses[int(count / 4 + 0.5) - 1]
    if quartile <= excesses[0]:
        return np.nan, np.nan
    grid = _GRID + int(math.sqrt(count))
    rates, heights = np.empty(grid), np.empty(grid)
    for i in range(grid):
        # b_i = 1 / max x + (1 - (m / (i - 1/2))^1/2) / (3 quartile) for i = 1, …, m, and the highest log likelihood
        # given b_i, N (log(-b_i / shape) - shape - 1).
        rates[i] = (1.0 - math.sqrt(grid / (i + 0.5))) / (_QUARTILES * quartile) + 1.0 / excesses[-1]
        shape = _mean_log1p(rates[i], excesses)
        heights[i] = count * (np.log(-rates[i] / shape) - shape - 1.0)
    # b is the mean of the b_i, weighted by their likelihoods.
    chances = np.exp(heights - heights.max())
    rate = (chances * rates).sum() / chances.sum()
    shape = _mean_log1p(rate, excesses)
    scale = -shape / rate
    # (N shape + 10 / 2) / (N + 10) (Vehtari et al. 2024).
    return (count * shape + _PRIOR_WEIGHTS * _PRIOR_SHAPE) / (count + _PRIOR_WEIGHTS), scale


@inner
def _mean_log1p(rate: float, excesses: Floats) -> float:
    """Return mean log(1 - b x) of a rate b."""
    total = 0.0
    for excess in excesses:
        total += math.log1p(-rate * excess)
    return total / len(excesses)
