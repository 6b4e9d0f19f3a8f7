"""Means of importance weights, with control variates and standard errors."""

import math

import numpy as np

from gpn_bayes._util.types import Floats, Ints

# Components with fewer draws than this have no variance of their own.
_LEAST_STRATUM = 10
# At least this many draws per control variate, and how much is added to the normal equations, per draw.
_DRAWS_PER_CONTROL, _RIDGE = 10, 1e-9
_LARGEST_LEVERAGE = 0.9


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
