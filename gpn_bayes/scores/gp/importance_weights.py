"""Means of importance weights: Pareto-smoothed, with control variates and standard errors."""

import math

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.weights import pareto_fit

# The tail that is fitted: this many times the root of the number of weights, but at most this share of them.
_TAIL, _LARGEST_TAIL = 3.0, 0.2
_LEAST_TAIL = 5
# Components with fewer draws than this have no variance of their own.
_LEAST_STRATUM = 10
# At least this many draws per control variate, and how much is added to the normal equations, per draw.
_DRAWS_PER_CONTROL, _RIDGE = 10, 1e-9
_LARGEST_LEVERAGE = 0.9


def smooth_tail(weights: Floats) -> tuple[Floats, float]:
    """Return the weights with the largest replaced by quantiles of a Pareto fit to them, and the fit's shape k.

    None becomes larger than the largest was. Weights whose tail can't be fitted stay as they are; k is then infinite,
    or zero if the tail's weights are all equal.
    """
    count = len(weights)
    tail = int(min(_TAIL * math.sqrt(count), _LARGEST_TAIL * count))
    if tail < _LEAST_TAIL or (weights > 0).sum() <= tail:
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


def variance_of_sum(terms: Floats, components: Ints) -> float:
    """Return the variance of the sum of the terms, given how many draws each component has.

    Components with few draws are taken together.
    """
    counts = np.bincount(components)
    strata = np.where(counts >= _LEAST_STRATUM, np.arange(len(counts)), len(counts))[components]
    sizes = np.bincount(strata)
    means = np.bincount(strata, terms) / np.maximum(sizes, 1)
    squares = np.bincount(strata, (terms - means[strata]) ** 2)
    many = sizes > 1
    return float((squares[many] * sizes[many] / (sizes[many] - 1)).sum())


def controlled_mean(weights: Floats, densities: Floats, shares: Floats, components: Ints) -> tuple[float, float]:
    """Return the expectation of weights of draws from a mixture, and its standard error.

    The ratio of a component's density to the mixture's has expectation one, so what a linear regression on these
    ratios explains of the weights is known without error (Owen & Zhou 2000). The shares that guard a proposal against
    missing mass then cost next to nothing.

    Parameters
    ----------
    weights : ndarray of shape (draws,)
        The weights.
    densities : ndarray of shape (draws, components)
        Share times density of each component.
    shares : ndarray of shape (components - 1,)
        The shares of all but the last, whose ratio follows from the others'.
    components : ndarray of int64, shape (draws,)
        Which component each draw is from.
    """
    count = len(weights)
    controls = min(len(shares), count // _DRAWS_PER_CONTROL)
    ratios = densities[:, :controls] / (densities.sum(axis=1, keepdims=True) * shares[:controls])
    design = np.column_stack([np.ones(count), ratios - 1.0])
    inverse = np.linalg.inv(design.T @ design + _RIDGE * count * np.eye(controls + 1))
    coefficients = inverse @ (design.T @ weights)
    mapped = design @ inverse
    leverage = np.minimum((mapped * design).sum(axis=1), _LARGEST_LEVERAGE)
    # As if each draw had been left out of the regression that predicts it.
    terms = mapped[:, 0] * (weights - design @ coefficients) / (1.0 - leverage)
    return float(coefficients[0]), math.sqrt(variance_of_sum(terms, components))
