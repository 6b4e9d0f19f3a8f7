"""The posterior of hyperparameters of which several groups of rows share the length scales."""

from collections.abc import Sequence

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.gaussian_process.modes import HESSIAN_STEP
from gpn_bayes.kernels.gaussian_process.priors import add_prior_gradient, log_prior
from gpn_bayes.scores.gp.climbing import ClimbedPosterior
from gpn_bayes.scores.gp.dense import DensePosterior
from gpn_bayes.scores.gp.low_rank import LowRankPosterior


class SharedScalesPosterior(ClimbedPosterior):
    """The posterior of the hyperparameters of a mechanism that differs between groups of rows, but not in smoothness.

    Each group has a function and a noise of its own; the length scales, and the kernel's weights where there are
    interactions, are the same in all. So phi is (log sigma of the first group, log theta_1, …, log sigma of the
    others), and its density the product of the groups' with the prior of what they share counted once.

    Parameters
    ----------
    groups : sequence of LowRankPosterior or DensePosterior
        The posterior of each group by itself; all of one kind.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> moments = Basis(np.random.default_rng(1).normal(size=(50, 2))).moments(0, (1,))
    >>> group = LowRankPosterior(moments, HyperPriors().for_parents(1))
    >>> SharedScalesPosterior([group, group]).priors.kinds
    array([0, 1, 0])
    """

    def __init__(self, groups: Sequence[LowRankPosterior | DensePosterior]) -> None:
        own = groups[0].priors
        self.groups = groups
        self.shared = slice(1, len(own.kinds))
        self.priors = own._replace(kinds=np.append(own.kinds, np.repeat(own.kinds[:1], len(groups) - 1)))
        self.size = len(self.priors.kinds)
        self._shared_priors = own._replace(kinds=own.kinds[self.shared])
        dense = [group for group in groups if isinstance(group, DensePosterior)]
        low_rank = [group for group in groups if isinstance(group, LowRankPosterior)]
        self.n_rows = sum(group.n_rows for group in dense) + sum(int(group.moments.n_rows) for group in low_rank)
        if low_rank:
            self.hessian_step = HESSIAN_STEP
            self._starts_of_one = np.concatenate(low_rank[0].starts())
        else:
            self._starts_of_one = dense[0].starts()

    def _coordinates(self, group: int) -> Ints:
        """Return the coordinates of phi that are a group's own phi."""
        sigma = 0 if group == 0 else self.shared.stop + group - 1
        return np.array([sigma, *range(self.size)[self.shared]])

    def log_densities(self, points: Floats) -> Floats:
        """Return the log density at every point, one per row; minus infinity where it can't be computed."""
        total = np.zeros(len(points))
        for k, group in enumerate(self.groups):
            total += group.log_densities(np.ascontiguousarray(points[:, self._coordinates(k)]))
        for s in np.flatnonzero(total > -np.inf):
            total[s] -= (len(self.groups) - 1) * log_prior(points[s, self.shared], self._shared_priors)
        return total

    def log_density(self, phi: Floats) -> float:
        """Return the log density; minus infinity where it can't be computed."""
        return float(self.log_densities(phi[None])[0])

    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient; minus infinity and NaN where they can't be computed."""
        again = len(self.groups) - 1
        total, gradient = 0.0, np.zeros(self.size)
        for k, group in enumerate(self.groups):
            coordinates = self._coordinates(k)
            value, slopes = group.log_density_and_gradient(phi[coordinates])
            total += value
            gradient[coordinates] += slopes
        if not total > -np.inf:
            return -np.inf, np.full(self.size, np.nan)
        prior_slopes = np.zeros(self.size)[self.shared]
        add_prior_gradient(phi[self.shared], self._shared_priors, prior_slopes)
        gradient[self.shared] -= again * prior_slopes
        return total - again * log_prior(phi[self.shared], self._shared_priors), gradient

    def starts(self) -> Floats:
        """Return the starts of one group, with its noise for the others."""
        sigmas = np.repeat(self._starts_of_one[:, :1], len(self.groups) - 1, axis=1)
        return np.hstack([self._starts_of_one, sigmas])
