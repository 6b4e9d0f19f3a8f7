"""The posterior of the hyperparameters of an additive process, by low-rank algebra."""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.low_rank import Moments, new_workspace
from gpn_bayes.kernels.gaussian_process.modes import climb, hessian_at, log_posterior_and_gradient, log_posteriors
from gpn_bayes.kernels.gaussian_process.priors import Priors
from gpn_bayes.scores.gp.modes import (
    SAME,
    Modes,
    first_inverse,
    is_known,
    leads_to_known,
    smallest_gains,
    starts_of_search,
    within_bounds,
)

# A relation this rough, with this little noise, is looked at besides, a parent at a time.
_ROUGHEST, _LITTLE_NOISE = 0.12, 0.3
# A mode this many nats below the best has negligible posterior mass.
_NEGLIGIBLE = 15.0


class _End(NamedTuple):
    """Where a first climb ended: the place, the inverse of minus the Hessian as far as it is known, the log density."""

    phi: Floats
    inverse: Floats
    height: float


class LowRankPosterior:
    """The posterior of an additive process, at a cost that doesn't grow with the number of rows.

    Parameters
    ----------
    moments : Moments
        The data of the node and its parents.
    priors : Priors
        The priors of phi.
    rough : Moments, optional
        The same data to a lesser accuracy, for the first steps of the mode search.
    """

    def __init__(self, moments: Moments, priors: Priors, rough: Moments | None = None) -> None:
        self.moments = moments
        self.priors = priors
        self._rough = moments if rough is None else rough
        self._work = new_workspace(moments)
        self._rough_work = new_workspace(self._rough)

    def log_densities(self, points: Floats) -> Floats:
        """Return the log density at every point, one per row; minus infinity where it can't be computed."""
        return log_posteriors(points, self.moments, self.priors)

    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""
        gradient = np.full(len(phi), np.nan)
        value = log_posterior_and_gradient(phi, self.moments, self._work, self.priors, gradient)
        return value, gradient

    def find_modes(self) -> Modes:
        """Return all modes that a search from fixed starts finds, but for those that hold nothing of the posterior."""
        starts, roughest = self.starts()
        ends = [self._first_climb(start) for start in starts]
        best = max(end.height for end in ends)
        values = log_posteriors(roughest, self._rough, self.priors)
        ends += [self._first_climb(start) for start in roughest[values > best]]
        best = max(end.height for end in ends)
        rough, fine = smallest_gains(self.moments.n_rows)
        modes: list[Floats] = []
        heights: list[float] = []
        hessians: list[Floats] = []
        for end in ends:
            if not end.height > best - _NEGLIGIBLE or leads_to_known(end.phi, modes, hessians, rough):
                continue
            phi, height = self.climb_from(end.phi, end.inverse, fine)
            if np.isfinite(height) and not is_known(phi, modes, SAME):
                modes.append(phi)
                heights.append(height)
                hessians.append(hessian_at(phi, self.moments, self._work, self.priors))
        order = np.argsort(-np.array(heights), kind="stable")
        size = starts.shape[1]
        return Modes(
            np.array(modes).reshape(-1, size)[order],
            np.array(heights)[order],
            np.array(hessians).reshape(-1, size, size)[order],
        )

    def starts(self) -> tuple[Floats, Floats]:
        """Return the usual starts of a search, and others for relations as rough as can be, of little noise.

        From the usual ones no climb may lead to these.
        """
        usual = within_bounds(starts_of_search(len(self.moments.cells)), self.priors)
        roughest = np.repeat(usual[:1], usual.shape[1] - 1, axis=0)
        roughest[:, 0] = math.log(_LITTLE_NOISE)
        np.fill_diagonal(roughest[:, 1:], math.log(_ROUGHEST))
        return usual, roughest

    def _first_climb(self, start: Floats) -> _End:
        """Climb almost to a mode, on the rougher likelihood, which is quicker."""
        phi, inverse = start.copy(), first_inverse(len(start), self.moments.n_rows)
        gain, _ = smallest_gains(self.moments.n_rows)
        height = climb(phi, inverse, self._rough, self._rough_work, self.priors, gain, 30)
        return _End(phi, inverse, height)

    def climb_from(self, start: Floats, inverse: Floats, tolerance: float) -> tuple[Floats, float]:
        """Return where a climb from a point ends, and the log density there.

        Parameters
        ----------
        start : ndarray
            Where it starts.
        inverse : ndarray
            The inverse of minus the Hessian, as far as it is known.
        tolerance : float
            The smallest gain worth a step.
        """
        phi = start.copy()
        return phi, climb(phi, inverse.copy(), self.moments, self._work, self.priors, tolerance, 200)
