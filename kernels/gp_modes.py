"""The posterior of a Gaussian process' hyperparameters: its density and its modes.

Everything is in unconstrained space, phi = (log sigma, log theta_1, …), the Jacobian included.
"""

import math

import numpy as np

from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.gp import Moments, Workspace, log_likelihood, log_likelihood_and_gradient, new_workspace

# Outside this box the density is taken as zero: standardised data give no hyperparameter a reason to be there.
LOWEST_LOG_SIGMA, HIGHEST_LOG_SIGMA = math.log(1e-3), math.log(1e3)
LOWEST_LOG_THETA, HIGHEST_LOG_THETA = math.log(0.1), math.log(1e4)
# Starts of the mode search, as length scales.
SHORT, MIDDLE, LONG = 0.3, 1.0, 3.0
# A first climb ends when it promises to gain less than _ROUGH; if a known mode is within _NEAR, it leads there. The
# final climb ends at _FINE, and two ends within _SAME are one mode. All in e-folds of the hyperparameters.
_ROUGH, _NEAR, _FINE, _SAME = 0.05, 0.25, 1e-10, 0.05


@compiled
def log_inverse_gamma(log_x: float, shape: float, scale: float) -> float:
    """Return the log density of log x for x ~ IG(shape, scale)."""
    return shape * np.log(scale) - math.lgamma(shape) - shape * log_x - scale * np.exp(-log_x)


@compiled
def in_box(phi: np.ndarray) -> bool:
    """Tell whether the hyperparameters are where the likelihood can be computed."""
    if not LOWEST_LOG_SIGMA <= phi[0] <= HIGHEST_LOG_SIGMA:
        return False
    for i in range(1, len(phi)):
        if not LOWEST_LOG_THETA <= phi[i] <= HIGHEST_LOG_THETA:
            return False
    return True


@compiled
def log_posterior(phi: np.ndarray, moments: Moments, work: Workspace, priors: np.ndarray) -> float:
    """Return log p(y | phi) + log p(phi), `priors` being the shape and scale of sigma and of theta."""
    if not in_box(phi):
        return -np.inf
    value = log_likelihood(phi[0], phi[1:], moments, work)
    value += log_inverse_gamma(phi[0], priors[0], priors[1])
    for i in range(1, len(phi)):
        value += log_inverse_gamma(phi[i], priors[2], priors[3])
    return value


@compiled
def log_posterior_and_gradient(
    phi: np.ndarray, moments: Moments, work: Workspace, priors: np.ndarray, gradient: np.ndarray
) -> float:
    """Return the log posterior density and write its gradient."""
    if not in_box(phi):
        return -np.inf
    value = log_likelihood_and_gradient(phi[0], phi[1:], moments, work, gradient)
    value += log_inverse_gamma(phi[0], priors[0], priors[1])
    gradient[0] += priors[1] * np.exp(-phi[0]) - priors[0]
    for i in range(1, len(phi)):
        value += log_inverse_gamma(phi[i], priors[2], priors[3])
        gradient[i] += priors[3] * np.exp(-phi[i]) - priors[2]
    return value


@compiled
def first_inverse(size: int, n_rows: float) -> np.ndarray:
    """Return a first guess of the inverse of minus the Hessian: log sigma is known best, to about 1 / sqrt(2 N)."""
    inverse = 0.25 * np.eye(size)
    inverse[0, 0] = 0.5 / n_rows
    return inverse


@compiled
def climb(
    phi: np.ndarray,
    inverse: np.ndarray,
    moments: Moments,
    work: Workspace,
    priors: np.ndarray,
    tolerance: float,
    max_steps: int,
) -> float:
    """Climb from `phi`, in place, to a mode by BFGS; returns the log posterior there.

    `inverse` is the inverse of minus the Hessian as far as it is known, and is brought up to date. Stops when the next
    step promises to gain less than `tolerance`.
    """
    gradient = np.empty(len(phi))
    new_gradient = np.empty(len(phi))
    value = log_posterior_and_gradient(phi, moments, work, priors, gradient)
    for _ in range(max_steps):
        direction = _times(inverse, gradient)
        promise = _dot(direction, gradient)
        if promise < tolerance:
            break
        # No coordinate moves by more than one e-fold in a step.
        length = min(1.0, 1.0 / np.abs(direction).max())
        tries = 0
        while True:
            new_phi = phi + length * direction
            new_value = log_posterior_and_gradient(new_phi, moments, work, priors, new_gradient)
            if new_value >= value + 1e-4 * length * promise:
                break
            tries += 1
            if tries > 12:
                return value
            length *= 0.3
        moved = new_phi - phi
        bent = gradient - new_gradient
        if _dot(moved, bent) > 1e-12:
            _update_inverse(inverse, moved, bent)
        phi[:] = new_phi
        gradient[:] = new_gradient
        value = new_value
    return value


@compiled
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    result = np.empty(len(vector))
    for a in range(len(vector)):
        result[a] = _dot(matrix[a], vector)
    return result


@compiled
def _update_inverse(inverse: np.ndarray, moved: np.ndarray, bent: np.ndarray) -> None:
    """BFGS: make the inverse map the last change of gradient to the last step."""
    image = _times(inverse, bent)
    curvature = _dot(moved, bent)
    scale = (1.0 + _dot(bent, image) / curvature) / curvature
    for a in range(len(moved)):
        for b in range(len(moved)):
            inverse[a, b] += scale * moved[a] * moved[b] - (image[a] * moved[b] + moved[a] * image[b]) / curvature


@compiled
def starts_of_search(parents: int) -> np.ndarray:
    """Return the points a mode search starts from, one a row.

    All combinations of short, middle and long length scales for up to two parents, one at a time changed beyond.
    """
    scales = np.log(np.array([MIDDLE, SHORT, LONG]))
    count = 3**parents if parents <= 2 else 1 + 2 * parents
    starts = np.zeros((count, parents + 1))
    starts[:, 0] = np.log(0.6)
    for s in range(count):
        if parents <= 2:
            rest = s
            for i in range(parents):
                starts[s, i + 1] = scales[rest % 3]
                rest //= 3
        elif s > 0:
            starts[s, 1 + (s - 1) // 2] = scales[1 + (s - 1) % 2]
    return starts


@compiled
def hessian_at(phi: np.ndarray, moments: Moments, work: Workspace, priors: np.ndarray) -> np.ndarray:
    """Return minus the second derivatives of the log posterior, by central differences of its gradient.

    NaN where a step leaves the box, so that there is no gradient to take the difference of.
    """
    size = len(phi)
    step = 1e-4
    hessian = np.empty((size, size))
    above, below = np.empty(size), np.empty(size)
    for a in range(size):
        above[:] = np.nan
        below[:] = np.nan
        moved = phi.copy()
        moved[a] = phi[a] + step
        log_posterior_and_gradient(moved, moments, work, priors, above)
        moved[a] = phi[a] - step
        log_posterior_and_gradient(moved, moments, work, priors, below)
        for b in range(size):
            hessian[a, b] = -(above[b] - below[b]) / (2 * step)
    return 0.5 * (hessian + hessian.T)


@compiled
def find_modes(moments: Moments, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct modes of the hyperparameters' posterior, best first, with heights and minus Hessians."""
    work = new_workspace(moments)
    starts = starts_of_search(len(moments.starts))
    size = starts.shape[1]
    modes = np.empty((len(starts), size))
    heights = np.empty(len(starts))
    found = 0
    for s in range(len(starts)):
        phi = starts[s].copy()
        inverse = first_inverse(size, moments.sizes[0])
        climb(phi, inverse, moments, work, priors, _ROUGH, 30)
        if _nearest(phi, modes, found) < _NEAR:
            continue
        height = climb(phi, inverse, moments, work, priors, _FINE, 200)
        if not np.isfinite(height) or _nearest(phi, modes, found) < _SAME:
            continue
        modes[found] = phi
        heights[found] = height
        found += 1
    order = np.argsort(-heights[:found])
    hessians = np.empty((found, size, size))
    for k in range(found):
        hessians[k] = hessian_at(modes[order[k]], moments, work, priors)
    return modes[order], heights[order], hessians


@compiled
def _nearest(phi: np.ndarray, modes: np.ndarray, found: int) -> float:
    """Return the distance to the nearest mode found so far, in the largest coordinate."""
    best = np.inf
    for k in range(found):
        best = min(best, np.abs(modes[k] - phi).max())
    return best
