"""The posterior of a Gaussian process' hyperparameters: its density and its modes.

Everything is in unconstrained space, phi = (log sigma, log theta_1, …), the Jacobian included.
"""

import math

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.gaussian_process.climbing import VALUE, goes_on, new_climb
from gpn_bayes.kernels.gaussian_process.low_rank import (
    LOWEST_THETA,
    Moments,
    Workspace,
    log_likelihood,
    log_likelihood_and_gradient,
    new_workspace,
)
from gpn_bayes.kernels.gaussian_process.priors import Priors, add_prior_gradient, log_prior

# Outside this box the density is taken as zero: standardised data give no hyperparameter a reason to be there. (Behind
# categories, where the first is the log odds of sigma, all but 1e-4 of the prior lies inside.)
LOWEST_LOG_SIGMA, HIGHEST_LOG_SIGMA = math.log(1e-3), math.log(1e4)
LOWEST_LOG_THETA, HIGHEST_LOG_THETA = math.log(LOWEST_THETA), math.log(1e4)
# Steps that second derivatives are taken by. Much smaller ones would see the seams of the tabulated likelihood.
HESSIAN_STEP = 1e-3


@inner
def in_box(phi: Floats) -> bool:
    """Tell whether the hyperparameters are where the likelihood can be computed."""
    if not LOWEST_LOG_SIGMA <= phi[0] <= HIGHEST_LOG_SIGMA:
        return False
    for i in range(1, len(phi)):
        if not LOWEST_LOG_THETA <= phi[i] <= HIGHEST_LOG_THETA:
            return False
    return True


@inner
def log_posterior(phi: Floats, moments: Moments, work: Workspace, priors: Priors) -> float:
    """Return log p(y | phi) + log p(phi), the Jacobian of the logarithms included."""
    prior = log_prior(phi, priors) if in_box(phi) else -np.inf
    return prior if prior == -np.inf else prior + log_likelihood(phi[0], phi[1:], moments, work)


@compiled
def log_posterior_and_gradient(
    phi: Floats, moments: Moments, work: Workspace, priors: Priors, gradient: Floats
) -> float:
    """Return the log posterior density and write its gradient."""
    prior = log_prior(phi, priors) if in_box(phi) else -np.inf
    if prior == -np.inf:
        return prior
    value = log_likelihood_and_gradient(phi[0], phi[1:], moments, work, gradient)
    add_prior_gradient(phi, priors, gradient)
    return value + prior


@compiled
def climb(
    phi: Floats,
    inverse: Floats,
    moments: Moments,
    work: Workspace,
    priors: Priors,
    tolerance: float,
    max_steps: int,
) -> float:
    """Climb from `phi`, in place, to a mode by BFGS; returns the log posterior there.

    `inverse` is the inverse of minus the Hessian as far as it is known, and is brought up to date.
    """
    ascent = new_climb(phi, inverse)
    value = log_posterior_and_gradient(ascent.new_phi, moments, work, priors, ascent.new_gradient)
    while goes_on(ascent, value, tolerance, max_steps):
        value = log_posterior_and_gradient(ascent.new_phi, moments, work, priors, ascent.new_gradient)
    for a in range(len(phi)):
        phi[a] = ascent.phi[a]
    height: float = ascent.numbers[VALUE]
    return height


@compiled
def hessian_at(phi: Floats, moments: Moments, work: Workspace, priors: Priors) -> Floats:
    """Return minus the second derivatives of the log posterior, by central differences of its gradient.

    NaN where a step leaves the box, so that there is no gradient to take the difference of.
    """
    size = len(phi)
    hessian = np.zeros((size, size))
    # Minus (g_b(phi + h e_a) - g_b(phi - h e_a)) / 2 h, h being the step, and the mean of this and its transpose.
    moved, gradient = phi.copy(), np.empty(size)
    for side in range(2 * size):
        a, step = side // 2, (-HESSIAN_STEP if side % 2 else HESSIAN_STEP)
        moved[a] = phi[a] + step
        inside = log_posterior_and_gradient(moved, moments, work, priors, gradient) > -np.inf
        for b in range(size):
            share = -gradient[b] / (4.0 * step) if inside else np.nan
            # Both halves of a symmetric matrix; on the diagonal they are one.
            hessian[a, b] += share
            hessian[b, a] += share
        moved[a] = phi[a]
    return hessian


@compiled
def log_posteriors(points: Floats, moments: Moments, priors: Priors) -> Floats:
    """Return the log posterior density at every point; minus infinity where it can't be computed."""
    work = new_workspace(moments)
    values = np.empty(len(points))
    for s in range(len(points)):
        value = log_posterior(points[s], moments, work, priors)
        values[s] = -np.inf if np.isnan(value) else value
    return values
