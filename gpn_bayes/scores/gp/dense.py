"""The posterior of a node's hyperparameters with the whole covariance matrix: any length scale, and interactions."""

import math

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_choice
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gp_dense import log_likelihood, log_likelihood_and_gradient, new_workspace, size_of_phi
from gpn_bayes.kernels.gp_modes import update_inverse
from gpn_bayes.kernels.priors import Priors, add_prior_gradient, log_prior
from gpn_bayes.scores.gp.modes import MIDDLE, SHORT, Modes, first_inverse, is_known, starts_of_search
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
# A climb goes in stages, (promised gain at which it ends, distance within which a known mode is where it leads to), the
# distance in e-folds of the hyperparameters: most climbs lead to modes that are known, and needn't be finished.
_STAGES = ((0.05, 0.25), (1e-3, 0.1), (1e-10, 0.05))
_LARGEST_POLISH = 0.05
_MOST_STEPS = 200
_HESSIAN_STEP = 1e-4


class DensePosterior:
    """The posterior of a Gaussian process with its covariance matrix written out: time grows as rows cubed.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        The node's column, the prior mean of mu taken off.
    x : ndarray of shape (rows, parents)
        Its parents' columns.
    priors : Priors
        The priors of phi = (log sigma, log theta_1, …), and with the interaction kernel log tau1 and (from two parents
        on) log tau2.
    kernel : {"additive", "interaction"}
        sum_i K_i, or tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j.
    mu_sd : float, default 1.0
        The prior standard deviation of mu.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> x = np.random.default_rng(1).normal(size=(50, 2))
    >>> y = x[:, 0] * x[:, 1]
    >>> posterior = DensePosterior(y, x, HyperPriors().for_parents(2, "interaction"), kernel="interaction")
    >>> posterior.find_modes().points.shape[1]
    5
    """

    def __init__(self, y: Floats, x: Floats, priors: Priors, kernel: str = "additive", mu_sd: float = 1.0) -> None:
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
        self.mu_variance = float(mu_sd) ** 2
        self._work = new_workspace(self.x)

    @one_blas_thread
    def log_densities(self, points: Floats) -> Floats:
        """Return the log density at every point, one per row; minus infinity where it can't be computed."""
        return np.array([self._log_density(phi) for phi in points])

    def _log_density(self, phi: Floats) -> float:
        prior = self._log_prior(phi)
        if prior == -np.inf:
            return -np.inf
        value = prior + log_likelihood(phi, self.x, self.y, self.interaction, self.mu_variance, self._work)
        return -np.inf if np.isnan(value) else value

    @one_blas_thread
    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient; minus infinity and NaN where they can't be computed."""
        gradient = np.full(self.size, np.nan)
        prior = self._log_prior(phi)
        if prior == -np.inf:
            return -np.inf, gradient
        value = prior + log_likelihood_and_gradient(
            phi, self.x, self.y, self.interaction, self.mu_variance, self._work, gradient
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

    @one_blas_thread
    def find_modes(self) -> Modes:
        """Return all modes that a search from fixed starts finds."""
        modes: list[tuple[float, Floats, Floats]] = []
        possible = [start for start in self._starts() if self._log_prior(start) > -np.inf]
        for start in possible or [self._prior_medians()]:
            phi = self._new_mode(start, [point for _, point, _ in modes])
            if phi is not None:
                phi, hessian = self._polish(phi)
                modes.append((self._log_density(phi), phi, hessian))
        modes.sort(key=lambda mode: -mode[0])
        heights, points, hessians = zip(*modes, strict=True) if modes else ((), (), ())
        return Modes(
            np.array(points).reshape(-1, self.size),
            np.array(heights, dtype=np.float64),
            np.array(hessians).reshape(-1, self.size, self.size),
        )

    def _new_mode(self, start: Floats, known: list[Floats]) -> Floats | None:
        """Return the mode that a climb leads to, or None if it is known or there is no density to climb."""
        if self._log_density(start) == -np.inf:
            return None
        phi, inverse = start, first_inverse(self.size, len(self.y))
        for tolerance, distance in _STAGES:
            phi, inverse = self._climb(phi, inverse, tolerance)
            if is_known(phi, known, distance):
                return None
        return phi

    def _starts(self) -> Floats:
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

    def _prior_medians(self) -> Floats:
        """Return where to start if the priors rule out all usual starts."""
        cells = [np.searchsorted(self.priors.cumulative[kind], 0.5) for kind in self.priors.kinds]
        return self.priors.lowest + self.priors.step * np.array(cells, dtype=np.float64)

    def _climb(self, phi: Floats, inverse: Floats, tolerance: float) -> tuple[Floats, Floats]:
        """Climb by BFGS until the next step promises to gain no more than a tolerance.

        Returns where the climb ends, and the inverse of minus the Hessian as far as it is known.
        """
        value, gradient = self.log_density_and_gradient(phi)
        fresh = False
        for _ in range(_MOST_STEPS):
            direction = inverse @ gradient
            promise = float(direction @ gradient)
            if not promise > tolerance:
                break
            moved = self._step(phi, value, direction, promise)
            if moved is None:
                if fresh:
                    break
                # What was learnt of the Hessian elsewhere can mislead here.
                inverse, fresh = first_inverse(self.size, len(self.y)), True
                continue
            new_phi, value, new_gradient = moved
            update_inverse(inverse, phi, new_phi, gradient, new_gradient)
            fresh = False
            phi, gradient = new_phi, new_gradient
        return phi, inverse

    def _step(
        self, phi: Floats, value: float, direction: Floats, promise: float
    ) -> tuple[Floats, float, Floats] | None:
        """Go so far along a direction that a fair part of the promised gain is made; None where nothing is gained."""
        # No coordinate moves by more than one e-fold in a step.
        length = min(1.0, 1.0 / np.abs(direction).max())
        for _ in range(12):
            new_phi = phi + length * direction
            new_value, new_gradient = self.log_density_and_gradient(new_phi)
            if new_value >= value + 1e-4 * length * promise:
                return new_phi, new_value, new_gradient
            length *= 0.3
        return None

    def _polish(self, phi: Floats) -> tuple[Floats, Floats]:
        """Return a mode, exact by Newton's steps where values are too coarse to climb by, and minus its Hessian."""
        hessian = self._hessian(phi)
        if not np.isfinite(hessian).all() or np.linalg.eigvalsh(hessian)[0] <= 0:
            return phi, hessian
        _, gradient = self.log_density_and_gradient(phi)
        for _ in range(3):
            new_phi = phi + np.linalg.solve(hessian, gradient)
            _, new_gradient = self.log_density_and_gradient(new_phi)
            if not np.abs(new_gradient).max() < np.abs(gradient).max() or np.abs(new_phi - phi).max() > _LARGEST_POLISH:
                break
            phi, gradient = new_phi, new_gradient
        return phi, hessian

    def _hessian(self, phi: Floats) -> Floats:
        """Return minus the second derivatives of the log density, by central differences; NaN at the box's edge."""
        rows = []
        for step in _HESSIAN_STEP * np.eye(self.size):
            above, below = (self.log_density_and_gradient(phi + sign * step)[1] for sign in (1, -1))
            rows.append((below - above) / (2 * _HESSIAN_STEP))
        hessian = np.array(rows)
        return 0.5 * (hessian + hessian.T)
