"""The posterior of a Gaussian process' hyperparameters: its density and its modes.

Everything is in unconstrained space, phi = (log sigma, log theta_1, …), the Jacobian included.
"""

import math

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner
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

    `inverse` is the inverse of minus the Hessian as far as it is known, and is brought up to date. Stops when the next
    step promises to gain less than `tolerance`. Loops rather than array expressions, which take long to compile.
    """
    size = len(phi)
    gradient, direction, new_phi, new_gradient = np.empty(size), np.empty(size), phi.copy(), np.empty(size)
    value = -np.inf
    length, promise, step, tries = 0.0, 0.0, 0, 0
    while True:
        new_value = log_posterior_and_gradient(new_phi, moments, work, priors, new_gradient)
        if step == 0 and not new_value > -np.inf:
            # There is no density at the start, and no gradient.
            return -np.inf
        # Armijo's condition, f(phi + length p) >= f(phi) + 1e-4 length p'g with p the direction and g the gradient.
        if step == 0 or new_value >= value + 1e-4 * length * promise:
            if step > 0:
                update_inverse(inverse, phi, new_phi, gradient, new_gradient)
            value = new_value
            for a in range(size):
                phi[a] = new_phi[a]
                gradient[a] = new_gradient[a]
            promise = _direction(inverse, gradient, direction)
            if not promise >= tolerance or step == max_steps:
                return value
            # No coordinate moves by more than one e-fold in a step.
            length = 1.0
            for a in range(size):
                length = min(length, 1.0 / abs(direction[a]))
            step += 1
            tries = 0
        else:
            tries += 1
            if tries > 12:
                return value
            length *= 0.3
        for a in range(size):
            new_phi[a] = phi[a] + length * direction[a]


@inner
def _direction(inverse: Floats, gradient: Floats, direction: Floats) -> float:
    """Write the direction of the next step; return what a step of length one promises to gain, twice."""
    # p = H g with H the inverse, and p'g = g'H g.
    promise = 0.0
    for a in range(len(gradient)):
        direction[a] = 0.0
        for b in range(len(gradient)):
            direction[a] += inverse[a, b] * gradient[b]
        promise += direction[a] * gradient[a]
    return promise


@compiled
def update_inverse(inverse: Floats, phi: Floats, new_phi: Floats, gradient: Floats, new_gradient: Floats) -> None:
    """BFGS: make the inverse, in place, map the last change of gradient to the last step.

    With the inverse H, step s and change d of minus the gradient, it becomes
    H + (1 + d'H d / s'd) s s' / s'd - (H d s' + s d'H) / s'd.
    """
    size = len(phi)
    s, h_d = np.empty(size), np.empty(size)
    # s, s_d = s'd and h_d = H d.
    s_d = d_h_d = 0.0
    for a in range(size):
        s[a] = new_phi[a] - phi[a]
        s_d += s[a] * (gradient[a] - new_gradient[a])
        h_d[a] = 0.0
        for b in range(size):
            h_d[a] += inverse[a, b] * (gradient[b] - new_gradient[b])
    if not s_d > 1e-12:
        return
    # d_h_d = d'H d, then (1 + d'H d / s'd) / s'd.
    for a in range(size):
        d_h_d += (gradient[a] - new_gradient[a]) * h_d[a]
    scale = (1.0 + d_h_d / s_d) / s_d
    for a in range(size):
        for b in range(size):
            inverse[a, b] += scale * s[a] * s[b] - (h_d[a] * s[b] + s[a] * h_d[b]) / s_d


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
