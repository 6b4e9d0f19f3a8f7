"""NOTEARS-ADMM as it was first run: 197 rounds, a smooth quasi-Newton method on an objective with corners."""

import numpy as np
from scipy.optimize import minimize

from gpn_bayes.kernels.learners.acyclicity import exponential

LARGEST_RHO = 1e16


def original_admm(tables, lambda1=0.01):
    """Return the shared weights before any threshold.

    The absolute values have the slope zero at zero, and the tolerances are those that scipy has by default, so that
    early rounds, whose minimum has many zeros, often end where they began.
    """
    rows = sum(len(table) for table in tables)
    centred = [table - table.mean(axis=0) for table in tables]
    covariances = np.array([table.T @ table for table in centred]) / rows
    d = covariances.shape[1]
    shared, multipliers = np.zeros((d, d)), np.zeros(covariances.shape)
    alpha, rho1, rho2 = 0.0, 0.001, 0.001
    while rho1 < LARGEST_RHO or rho2 < LARGEST_RHO:
        right = rho2 * shared - multipliers + covariances
        own = np.linalg.solve(covariances + rho2 * np.eye(d), right)
        shared = minimize(
            _objective, shared.ravel(), (own, multipliers, lambda1, alpha, rho1, rho2), "L-BFGS-B", jac=True
        ).x
        shared = shared.reshape(d, d)
        alpha += rho1 * exponential(shared**2)[0]
        multipliers = multipliers + rho2 * (own - shared)
        rho1 = rho1 * 1.75 if rho1 < LARGEST_RHO else rho1
        rho2 = rho2 * 1.25 if rho2 < LARGEST_RHO else rho2
    return shared


def _objective(x, own, multipliers, lambda1, alpha, rho1, rho2):
    shared = x.reshape(own.shape[1:])
    h, slopes = exponential(shared**2)
    gaps = own - shared
    value = lambda1 * np.abs(shared).sum() + alpha * h + rho1 / 2 * h * h
    value += (multipliers * gaps).sum() + rho2 / 2 * (gaps**2).sum()
    gradient = lambda1 * np.sign(shared) - (multipliers + rho2 * gaps).sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = gradient + (alpha + rho1 * h) * 2 * shared * slopes
    return value, gradient.ravel()
