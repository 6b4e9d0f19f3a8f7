"""Pareto smoothing of importance weights.

The largest weights are replaced by expected order statistics of a generalised Pareto distribution fitted to them; its
shape k tells how far the weights can be trusted (Vehtari, Simpson, Gelman, Yao & Gabry 2024, Pareto smoothed importance
sampling, Journal of Machine Learning Research 25). ArviZ does the same; this takes a tenth of its time, of which a
Gaussian-process score would otherwise take a good part, and leaves the weights' scale alone.
"""

import math

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.algebra.tails import pareto_fit

# A shape fitted to fewer weights than this would be its prior alone.
_SHORTEST_TAIL = 5


def tail_size(weights: int) -> int:
    """Return how many of the largest weights the tail is fitted to.

    Examples
    --------
    >>> tail_size(100), tail_size(900)
    (20, 90)
    """
    return int(min(3.0 * math.sqrt(weights), 0.2 * weights))


def smooth_tail(weights: Floats) -> tuple[Floats, float]:
    """Return the weights with the largest replaced by quantiles of a Pareto fit to them, and the fit's shape k.

    None becomes larger than the largest was. Weights whose tail can't be fitted stay as they are; k is then infinite,
    or zero if the tail's weights are all equal.
    """
    count = len(weights)
    tail = tail_size(count)
    if tail < _SHORTEST_TAIL or (weights > 0).sum() <= tail:
        return weights, math.inf
    order = np.argsort(weights)[count - tail - 1 :]
    lowest, largest = weights[order[0]], weights[order[-1]]
    if weights[order[1]] == largest:
        return weights, 0.0
    shape, scale = pareto_fit(weights[order[1:]] - lowest)
    if not np.isfinite(shape) or not scale > 0:
        return weights, math.inf
    chances = np.log1p(-(np.arange(tail) + 0.5) / tail)
    excesses = -scale * chances if shape == 0.0 else scale * np.expm1(-shape * chances) / shape
    smoothed = weights.copy()
    smoothed[order[1:]] = np.minimum(lowest + excesses, largest)
    return smoothed, shape
