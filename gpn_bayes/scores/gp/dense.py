"""The posterior of a node's hyperparameters with the whole covariance matrix: any length scale, and interactions."""

import math

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_choice
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.dense import (
    log_likelihood,
    log_likelihood_and_gradient,
    new_workspace,
    size_of_phi,
)
from gpn_bayes.kernels.gaussian_process.priors import Priors, add_prior_gradient, log_prior
from gpn_bayes.scores.gp.climbing import ClimbedPosterior
from gpn_bayes.scores.gp.modes import MIDDLE, SHORT, starts_of_search
from gpn_bayes.scores.gp.priors import KERNELS

# Beyond this many rows the covariance matrix fills memory, and one look at it takes seconds.
LARGEST_DENSE = 5000
# Outside this box the density is taken as zero.
_SIGMA_BOX = math.log(1e-3), math.log(1e3)
_OTHER_BOX = math.log(1e-3), math.log(1e4)
# One parent at a time starts as rough as this, too: from longer length scales no climb leads there.
_ROUGH_THETA = 0.05
# With interactions a search also starts with this little noise: products can fit closely what a sum can't.
_LITTLE_NOISE = 0.3
# A search with more starts than this takes too long; those left out differ from others in one parent only.
_MOST_STARTS = 25


class DensePosterior(ClimbedPosterior):
    """The posterior of a Gaussian process with its covariance matrix written out: time grows as rows cubed.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        The node's column, the prior mean of mu taken off.
    x : ndarray of shape (rows, parents)
        Its parents' columns.
    priors : Priors
        The priors of phi = (log sigma, log theta_1, …), and with the interaction kernel log tau1 and log tau2, from two
        parents on.
    kernel : {"additive", "interaction"}
        sum_i K_i, or tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j.
    mu_sd : float, default 1.0
        The prior standard deviation of mu.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.
    spacings : ndarray of shape (parents,), optional
        Of parents that are categories without order, the squared distance between any two levels; 0 for numbers.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> x = np.random.default_rng(1).normal(size=(50, 2))
    >>> y = x[:, 0] * x[:, 1]
    >>> posterior = DensePosterior(y, x, HyperPriors().for_parents(2, "interaction"), kernel="interaction")
    >>> posterior.find_modes().points.shape[1]
    5
    """

    def __init__(
        self,
        y: Floats,
        x: Floats,
        priors: Priors,
        kernel: str = "additive",
        mu_sd: float = 1.0,
        weights: Floats | None = None,
        spacings: Floats | None = None,
    ) -> None:
        check_choice("kernel", kernel, KERNELS)
        if np.ndim(y) != 1 or np.ndim(x) != 2 or len(x) != len(y):
            raise ValueError(f"x must have one row for every value of y; received {np.shape(x)} and {np.shape(y)}")
        if len(y) > LARGEST_DENSE:
            raise ValueError(f"a dense Gaussian process takes at most {LARGEST_DENSE} rows; received {len(y)}")
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        self.x = np.asfortranarray(x, dtype=np.float64)
        self.interaction = kernel == "interaction"
        self.size = size_of_phi(self.x.shape[1], self.interaction)
        if len(priors.kinds) != self.size:
            raise ValueError(f"{self.size} hyperparameters need as many priors; received {len(priors.kinds)}")
        self.priors = priors
        self.n_rows = len(self.y) if weights is None else round(float(weights.sum()))
        self.weights = weights
        self.mu_variance = float(mu_sd) ** 2
        self._work = new_workspace(self.x, spacings)

    @one_blas_thread
    def log_densities(self, points: Floats) -> Floats:
        """Return the log density at every point, one per row; minus infinity where it can't be computed."""
        return np.array([self.log_density(phi) for phi in points])

    def log_density(self, phi: Floats) -> float:
        """Return the log density; minus infinity where it can't be computed."""
        prior = self._log_prior(phi)
        if prior == -np.inf:
            return -np.inf
        value = prior + log_likelihood(
            phi, self.x, self.y, self.interaction, self.mu_variance, self._work, self.weights
        )
        return -np.inf if np.isnan(value) else value

    @one_blas_thread
    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient; minus infinity and NaN where they can't be computed."""
        gradient = np.full(self.size, np.nan)
        prior = self._log_prior(phi)
        if prior == -np.inf:
            return -np.inf, gradient
        value = prior + log_likelihood_and_gradient(
            phi, self.x, self.y, self.interaction, self.mu_variance, self._work, gradient, self.weights
        )
        if np.isnan(value):
            return -np.inf, np.full(self.size, np.nan)
        add_prior_gradient(phi, self.priors, gradient)
        return value, gradient

    def _log_prior(self, phi: Floats) -> float:
        inside = _SIGMA_BOX[0] <= phi[0] <= _SIGMA_BOX[1] and all(
            _OTHER_BOX[0] <= value <= _OTHER_BOX[1] for value in phi[1:]
        )
        value = log_prior(phi, self.priors) if inside else -np.inf
        return value if np.isfinite(value) else -np.inf

    def starts(self) -> Floats:
        """Return the usual starts, and some that are rougher or have less noise."""
        parents = self.x.shape[1]
        usual = starts_of_search(parents)
        rough = np.repeat(usual[:1], parents, axis=0)
        rough[np.arange(parents), 1 + np.arange(parents)] = math.log(_ROUGH_THETA)
        others = np.concatenate([usual[1:], rough])
        if len(others) >= _MOST_STARTS:
            others = others[np.linspace(0, len(others) - 1, _MOST_STARTS - 1).astype(int)]
        close = np.log([[_LITTLE_NOISE] + [theta] * parents for theta in (MIDDLE, SHORT)])
        starts = np.concatenate([usual[:1], others, close[: 2 * self.interaction]])
        # The kernels' weights start at one.
        return np.hstack([starts, np.zeros((len(starts), self.size - starts.shape[1]))])
