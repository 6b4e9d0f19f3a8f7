"""A search for the modes of any posterior of hyperparameters that has a gradient."""

from abc import ABC, abstractmethod

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.climbing import MOST_TRIES, STEP, TRIES, goes_on, new_climb
from gpn_bayes.kernels.gaussian_process.priors import Priors, log_prior
from gpn_bayes.scores.gp.modes import Modes, first_inverse, is_known, leads_to_known

_LARGEST_POLISH = 0.05
_MOST_STEPS = 200


class ClimbedPosterior(ABC):
    """A posterior of hyperparameters whose modes are found by BFGS climbs from several starts.

    A subclass states the density and its gradient, and where to start.

    Attributes
    ----------
    priors : Priors
        The priors of the coordinates.
    size : int
        Their number.
    n_rows : int
        The number of rows, by which the first step of a climb is chosen.
    hessian_step : float
        The steps that second derivatives are taken by.
    stages : tuple of pair of float
        A climb goes in stages, (promised gain at which it ends, distance within which a known mode is where it leads
        to), the distance in e-folds of the hyperparameters: most climbs lead to modes that are known, and needn't be
        finished.
    """

    priors: Priors
    size: int
    n_rows: int
    hessian_step = 1e-4
    stages: tuple[tuple[float, float], ...] = ((0.05, 0.25), (1e-3, 0.1), (1e-10, 0.05))

    @abstractmethod
    def log_density(self, phi: Floats) -> float:
        """Return the log density; minus infinity where it can't be computed."""

    @abstractmethod
    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient; minus infinity and NaN where they can't be computed."""

    @abstractmethod
    def starts(self) -> Floats:
        """Return the points that climbs start from, one per row."""

    @one_blas_thread
    def find_modes(self) -> Modes:
        """Return all modes that a search from fixed starts finds."""
        modes: list[tuple[float, Floats, Floats]] = []
        possible = [start for start in self.starts() if np.isfinite(log_prior(start, self.priors))]
        for start in possible or [self._prior_medians()]:
            phi = self._new_mode(start, [point for _, point, _ in modes], [hessian for _, _, hessian in modes])
            if phi is None:
                continue
            phi, hessian = self._polish(phi)
            height = self.log_density(phi)
            if np.isfinite(height):
                modes.append((height, phi, hessian))
        modes.sort(key=lambda mode: -mode[0])
        heights, points, hessians = zip(*modes, strict=True) if modes else ((), (), ())
        return Modes(
            np.array(points).reshape(-1, self.size),
            np.array(heights, dtype=np.float64),
            np.array(hessians).reshape(-1, self.size, self.size),
        )

    def first_inverse(self) -> Floats:
        """Return a first guess of the inverse of minus the Hessian."""
        return first_inverse(self.size, self.n_rows)

    def _new_mode(self, start: Floats, known: list[Floats], hessians: list[Floats]) -> Floats | None:
        """Return where a climb leads to; None if that is a known mode, within one standard deviation or closer."""
        phi, inverse = start, self.first_inverse()
        for tolerance, distance in self.stages:
            phi, inverse = self._climb(phi, inverse, tolerance)
            if is_known(phi, known, distance) or leads_to_known(phi, known, hessians, tolerance):
                return None
        return phi

    def _climb(self, phi: Floats, inverse: Floats, tolerance: float) -> tuple[Floats, Floats]:
        """Climb by BFGS until the next step promises to gain less than half of a tolerance.

        Returns where the climb ends, and the inverse of minus the Hessian as far as it is known.
        """
        stuck, start = False, phi
        while True:
            climb = new_climb(start, inverse)
            while True:
                value, climb.new_gradient[:] = self.log_density_and_gradient(climb.new_phi)
                if not goes_on(climb, value, tolerance, _MOST_STEPS):
                    break
            if climb.counts[TRIES] <= MOST_TRIES or (stuck and climb.counts[STEP] == 1):
                return climb.phi, inverse
            # What was learnt of the Hessian elsewhere can mislead here.
            stuck, start, inverse = True, climb.phi, self.first_inverse()

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
        for step in self.hessian_step * np.eye(self.size):
            above, below = (self.log_density_and_gradient(phi + sign * step)[1] for sign in (1, -1))
            rows.append((below - above) / (2 * self.hessian_step))
        hessian = np.array(rows)
        return 0.5 * (hessian + hessian.T)

    def _prior_medians(self) -> Floats:
        """Return where to start if the priors rule out all usual starts."""
        cells = [np.searchsorted(self.priors.cumulative[kind], 0.5) for kind in self.priors.kinds]
        return self.priors.lowest + self.priors.step * np.array(cells, dtype=np.float64)
