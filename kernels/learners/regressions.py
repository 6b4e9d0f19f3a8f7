"""Penalised regressions of one variable on the allowed others: least squares, logistic and Poisson."""

from typing import Any, NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Floats, Ints
from gpn_bayes.kernels.compiled import inner
from gpn_bayes.kernels.learners.lasso import LassoSpace, lasso

LOGISTIC, POISSON = 1, 2
# Newton steps of a regression stop at a relative decrease below this.
_DECREASE = 1e-12
_MOST_STEPS = 100
# Curvatures are kept above this, as a share of what they may be: a step stays finite where a fit is perfect.
_LEAST_CURVATURE = 1e-6
_LARGEST_EXPONENT = 200.0


class Regressions(NamedTuple):
    """What all regressions of a data set need.

    Attributes
    ----------
    loss : int
        `LOGISTIC` or `POISSON`; any other number for least squares.
    gram : ndarray, shape (d, d)
        The covariance X'X / n of the centred rows.
    rows : ndarray, shape (d + 1, n), or None
        The variables and a last one that is 1, as rows of the array; None for least squares.
    penalties : ndarray, shape (d, d)
        Entry (j, i) is the penalty on the weight of i -> j: rows are children.
    allowed : ndarray of bool, shape (d, d)
        Entry (j, i) tells whether i -> j may be there.
    """

    loss: int
    gram: Floats
    rows: Any
    penalties: Floats
    allowed: Bools


@inner
def regress(
    data: Regressions, child: int, parents: Bools, weights: Floats, gradient: Floats, space: LassoSpace
) -> float:
    """Fit the regression of a child on the given parents, from the weights given; return loss plus penalties.

    Parameters
    ----------
    data : Regressions
        The data.
    child : int
        The variable to explain.
    parents : ndarray of bool, shape (d,)
        What may explain it.
    weights, gradient : ndarray, shape (d + 1,)
        Where to begin, overwritten with the fit; and minus the gradient of its loss for every variable, in the fit or
        not. The last entry is the intercept, which has no penalty; least squares on centred data leave it 0.
    space : LassoSpace
        Room for d + 1 predictors.
    """
    return _regress(data.rows, data, child, parents, weights, gradient, space)


@inner
def _regress(
    rows: Floats | None, data: Regressions, child: int, parents: Bools, weights: Floats,
    gradient: Floats, space: LassoSpace,
) -> float:  # fmt: skip
    # Without rows, an argument that is None, the other branch isn't compiled.
    if rows is None:
        variance: float = data.gram[child, child]
        value = lasso(
            data.gram, data.gram[child], data.penalties[child], parents, np.sqrt(variance), weights, gradient, space
        )
        # ||x - X w||^2 / (2 n) = C_xx / 2 + w' C w / 2 - C_x' w
        return value + 0.5 * variance
    return _regress_rows(data, child, parents, weights, gradient, space)


@inner
def _means(data: Regressions, child: int, weights: Floats, means: Floats) -> float:
    """Write the mean of every row under the weights; return the average loss."""
    rows = data.rows
    n = rows.shape[1]
    for r in range(n):
        means[r] = 0.0
    # eta = w' x, the linear predictor, of every row
    for i in range(len(weights)):
        if weights[i] != 0.0:
            for r in range(n):
                means[r] += weights[i] * rows[i, r]
    total = 0.0
    for r in range(n):
        eta = means[r]
        if data.loss == LOGISTIC:
            # Loss log(1 + exp(eta)) - y eta, and mean 1 / (1 + exp(-eta)), with exp of no positive number.
            small = np.exp(-np.abs(eta))
            total += max(eta, 0.0) + np.log1p(small)
            means[r] = (1.0 if eta >= 0.0 else small) / (1.0 + small)
        else:
            # Loss exp(eta) - y eta, and mean exp(eta); log y! is left out.
            means[r] = np.exp(min(eta, _LARGEST_EXPONENT))
            total += means[r]
        total -= rows[child, r] * eta
    average: float = total / n
    return average


@inner
def copy_to(origin: Floats, target: Floats) -> None:
    """Copy one array onto another of the same length."""
    for i in range(len(target)):
        target[i] = origin[i]


@inner
def _penalty(data: Regressions, child: int, weights: Floats) -> float:
    """Return sum_i p_i |w_i|; the intercept has no penalty."""
    total = 0.0
    for i in range(len(data.gram)):
        total += data.penalties[child, i] * np.abs(weights[i])
    return total


@inner
def _fill_gradient(data: Regressions, child: int, means: Floats, gradient: Floats) -> None:
    """Write minus the gradient of the loss, sum_r x_ir (y_r - mu_r) / n, for every variable and the intercept."""
    rows = data.rows
    n = rows.shape[1]
    for i in range(len(gradient)):
        total = 0.0
        for r in range(n):
            total += rows[i, r] * (rows[child, r] - means[r])
        gradient[i] = total / n


@inner
def _curvatures(data: Regressions, means: Floats, chosen: Ints, gram: Floats) -> None:
    """Write the second derivatives of the loss for the chosen predictors."""
    rows = data.rows
    n = rows.shape[1]
    weighted = np.empty(n)
    for a in range(len(chosen)):
        for r in range(n):
            # d mu / d eta = mu (1 - mu) of the logistic, mu of the Poisson regression.
            curvature = means[r] * (1.0 - means[r]) if data.loss == LOGISTIC else means[r]
            weighted[r] = max(curvature, _LEAST_CURVATURE) * rows[chosen[a], r]
        # H_ab = sum_r (d mu / d eta)_r x_ar x_br / n
        for b in range(a + 1):
            total = 0.0
            for r in range(n):
                total += weighted[r] * rows[chosen[b], r]
            gram[a, b] = gram[b, a] = total / n


@inner
def _newton_step(
    data: Regressions, child: int, chosen: Ints, means: Floats, weights: Floats, gradient: Floats,
    space: LassoSpace,
) -> Floats:  # fmt: skip
    """Return the weights of the chosen predictors that minimise the quadratic model of the loss plus penalties."""
    size, d = len(chosen), len(data.gram)
    gram, linear, penalties, wanted = np.empty((size, size)), np.empty(size), np.zeros(size), np.empty(size)
    _curvatures(data, means, chosen, gram)
    for a in range(size):
        wanted[a] = weights[chosen[a]]
        if chosen[a] < d:
            penalties[a] = data.penalties[child, chosen[a]]
    # At v, loss plus penalties are v' H v / 2 - c' v + sum of p |v| up to a constant, where c = gradient + H w.
    for a in range(size):
        linear[a] = gradient[chosen[a]]
        for b in range(size):
            linear[a] += gram[a, b] * wanted[b]
    lasso(gram, linear, penalties, np.ones(size, np.bool_), 1.0, wanted, np.empty(size), space)
    return wanted


@inner
def _working_set(data: Regressions, child: int, parents: Bools, weights: Floats, gradient: Floats) -> Ints:
    """Return the predictors with a weight, those that would gain one, and the intercept."""
    d = len(data.gram)
    chosen, size = np.empty(d + 1, np.int64), 0
    for i in range(d):
        # A weight stays 0 where |gradient_i| <= p_i.
        gains = np.abs(gradient[i]) > data.penalties[child, i] + 1e-8 * np.sqrt(data.gram[i, i])
        if parents[i] and (weights[i] != 0.0 or gains):
            chosen[size] = i
            size += 1
    chosen[size] = d
    return chosen[: size + 1]


@inner
def _regress_rows(
    data: Regressions, child: int, parents: Bools, weights: Floats, gradient: Floats, space: LassoSpace
) -> float:
    """Fit by Newton steps with the penalties left as they are, on the predictors that have or gain a weight."""
    d = len(data.gram)
    means, trial = np.empty(data.rows.shape[1]), np.empty(d + 1)
    for i in range(d):
        if not parents[i]:
            weights[i] = 0.0
    value = _means(data, child, weights, means) + _penalty(data, child, weights)
    for _ in range(_MOST_STEPS):
        _fill_gradient(data, child, means, gradient)
        chosen = _working_set(data, child, parents, weights, gradient)
        wanted = _newton_step(data, child, chosen, means, weights, gradient, space)
        share, lower = 1.0, value
        while share > 1e-10:
            copy_to(weights, trial)
            for a in range(len(chosen)):
                # w + share (wanted - w), share halved until the objective is no higher.
                now = weights[chosen[a]]
                trial[chosen[a]] = wanted[a] if share == 1.0 else now + share * (wanted[a] - now)
            lower = _means(data, child, trial, means) + _penalty(data, child, trial)
            if lower <= value:
                break
            share *= 0.5
        if not lower < value - _DECREASE * (1.0 + np.abs(value)):
            if lower < value:
                value = lower
                copy_to(trial, weights)
            _means(data, child, weights, means)
            _fill_gradient(data, child, means, gradient)
            break
        value = lower
        copy_to(trial, weights)
    return value
