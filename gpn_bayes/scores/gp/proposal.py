"""A proposal for the posterior of a node's hyperparameters, fitted to the draws made from it so far."""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.gaussian_process import proposals as gp_importance
from gpn_bayes.kernels.gaussian_process.priors import Priors
from gpn_bayes.kernels.gaussian_process.proposals import PRIOR_SHARE, Mixture, fitted_mixture
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes

# Draws before a proposal has been fitted.
PILOT = 200
# Weighted draws of the hyperparameters behind an equation, and how many of them at most are taken for one parent set.
_WEIGHTED, MOST_PHI = 300, 32
# Every mode has a component as wide as its Hessian says and one this many times as wide.
_WIDER, _WIDER_SHARE = 2.5, 0.35
# What goes to components that are as wide as the prior along one coordinate, and this many times as wide as the best
# mode (as a variance) along the others: where data say little of a length scale, its posterior has a long shoulder.
_SHOULDER_SHARE, _SHOULDER_WIDER = 0.3, 1.5
# What the modes share equally, so that none is left without draws.
_EQUAL = 0.2
# A posterior that is flatter than this at its mode is drawn from as if it had this curvature.
_LEAST_CURVATURE = 0.25
# The share of the first proposal that stays in the adapted one: a fit to few draws can be too narrow.
_FIRST_STAYS = 0.3


class Draws(NamedTuple):
    """Draws of one round.

    Attributes
    ----------
    points : ndarray of shape (draws, size)
        Where they are.
    log_weights : ndarray of shape (draws,)
        Log of posterior over proposal density.
    components : ndarray of int64, shape (draws,)
        The component of the proposal each is from.
    densities : ndarray of shape (draws, components)
        Share times density of every component.
    shares : ndarray of shape (components - 1,)
        The shares of all components but the prior's.
    """

    points: Floats
    log_weights: Floats
    components: Ints
    densities: Floats
    shares: Floats


class Proposal:
    """A mixture of Student t's around the modes, and 10% of the prior; every round of draws improves the fit.

    Attributes
    ----------
    first : Mixture
        What the modes alone suggest.
    evaluations : int
        How many times the posterior density was evaluated.
    """

    def __init__(self, posterior: HyperPosterior, modes: Modes, rng: np.random.Generator) -> None:
        self.posterior = posterior
        self.first = laplace_mixture(modes, posterior.priors)
        self.evaluations = 0
        self._rng = rng
        self._mixture = self.first
        self._rounds: list[Draws] = []

    def draw(self, count: int) -> Draws:
        """Draw from the fit to all rounds before, or around the modes if there are none."""
        if self._rounds:
            self._mixture = adapted_mixture(*self.lessons(), self.first, self.posterior.priors)
        self._rounds.append(self.draw_from(self._mixture, count))
        return self._rounds[-1]

    def lessons(self) -> tuple[Floats, Floats]:
        """Return the draws of all rounds and weights that sum to the number of draws they are worth."""
        points = np.concatenate([drawn.points for drawn in self._rounds])
        weights = _bounded(np.concatenate([drawn.log_weights for drawn in self._rounds]))
        return points, weights * (weights.sum() / (weights**2).sum())

    def draw_from(self, mixture: Mixture, count: int) -> Draws:
        """Draw from any mixture, without a lesson for the fit."""
        points, components = gp_importance.draw_points(mixture, self.posterior.priors, count, self._rng)
        densities = gp_importance.component_densities(points, mixture, self.posterior.priors)
        log_weights = self.posterior.log_densities(points) - np.log(densities.sum(axis=1))
        self.evaluations += count
        return Draws(points, log_weights, components, densities, mixture.shares)


def draw_hyperparameters(posterior: HyperPosterior, modes: Modes, count: int, rng: np.random.Generator) -> Floats:
    """Draw hyperparameters by systematic resampling of weighted ones, in random order.

    The weighted ones are resampled along their principal axis, so that few of them cover the posterior evenly.

    Parameters
    ----------
    posterior : HyperPosterior
        Their posterior.
    modes : Modes
        Its modes.
    count : int
        How many; more than `MOST_PHI` aren't worth their time.
    rng : numpy.random.Generator
        The source of all randomness.
    """
    proposal = Proposal(posterior, modes, rng)
    proposal.draw(PILOT)
    drawn = proposal.draw(_WEIGHTED)
    weights = np.exp(drawn.log_weights - drawn.log_weights.max())
    _, axes = np.linalg.eigh(np.atleast_2d(np.cov(drawn.points, rowvar=False, aweights=weights)))
    along = np.argsort(drawn.points @ axes[:, -1], kind="stable")
    below = np.cumsum(weights[along]) / weights.sum()
    chosen = np.searchsorted(below, (np.arange(count) + rng.random()) / count)
    points: Floats = drawn.points[along[rng.permutation(np.minimum(chosen, len(below) - 1))]]
    return points


def _bounded(log_weights: Floats) -> Floats:
    """Return weights of which none is so large that a fit would only see it."""
    top = log_weights.max()
    if top == -np.inf:
        return np.ones(len(log_weights))
    weights = np.exp(log_weights - top)
    return np.minimum(weights, weights.mean() * math.sqrt(len(weights)))


def prior_moments(priors: Priors) -> Floats:
    """Return mean and standard deviation of every coordinate's prior: (size, 2)."""
    chances = np.diff(priors.cumulative, axis=1)
    centres = priors.lowest + priors.step * (np.arange(chances.shape[1]) + 0.5)
    means = chances @ centres
    deviations = np.sqrt(chances @ centres**2 - means**2)
    return np.column_stack([means, deviations])[priors.kinds]


def laplace_mixture(modes: Modes, priors: Priors) -> Mixture:
    """Return the proposal that the modes, their heights and minus Hessians suggest.

    Every mode has two components, one as wide as the Hessian says and one wider, for skewness; the best one has one
    more for every coordinate but log sigma, with the prior's centre and width along it, for shoulders. Without a mode,
    the centre of the prior stands for one.
    """
    moments = prior_moments(priors)
    size = len(moments)
    if not len(modes.points):
        modes = Modes(moments[None, :, 0], np.zeros(1), np.full((1, size, size), np.nan))
    roots = np.array([np.linalg.cholesky(_repaired_inverse(hessian)) for hessian in modes.hessians])
    masses = modes.heights + np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    masses = np.exp(masses - masses.max())
    at_modes = (1.0 - _EQUAL) * masses / masses.sum() + _EQUAL / len(masses)
    shares = np.concatenate(
        [
            (1.0 - _SHOULDER_SHARE) * (1.0 - _WIDER_SHARE) * at_modes,
            (1.0 - _SHOULDER_SHARE) * _WIDER_SHARE * at_modes,
            np.full(size - 1, _SHOULDER_SHARE / (size - 1)),
        ]
    )
    centres, along = _shoulders(modes.points[0], roots[0], moments)
    return Mixture(
        np.concatenate([modes.points, modes.points, centres]),
        np.concatenate([roots, _WIDER * roots, along]),
        (1.0 - PRIOR_SHARE) * shares,
    )


def _repaired_inverse(hessian: Floats) -> Floats:
    """Return the inverse of a minus Hessian that may not be positive definite, or not even finite."""
    if not np.isfinite(hessian).all():
        return np.eye(len(hessian))
    values, vectors = np.linalg.eigh(hessian)
    return (vectors / np.maximum(values, _LEAST_CURVATURE)) @ vectors.T


def _shoulders(mode: Floats, root: Floats, moments: Floats) -> tuple[Floats, Floats]:
    """Return centres and roots of the components that reach as far as the prior, a coordinate at a time."""
    size = len(mode)
    centres = np.repeat(mode[None], size - 1, axis=0)
    scales = np.repeat(_SHOULDER_WIDER * (root @ root.T)[None], size - 1, axis=0)
    for i in range(1, size):
        centres[i - 1, i] = moments[i, 0]
        scales[i - 1, i, :] = scales[i - 1, :, i] = 0.0
        scales[i - 1, i, i] = moments[i, 1] ** 2
    return centres, np.linalg.cholesky(scales)


def adapted_mixture(points: Floats, weights: Floats, first: Mixture, priors: Priors) -> Mixture:
    """Return a fit of `first` to weighted draws, followed by `first` itself with a smaller share."""
    fitted = fitted_mixture(points, weights, first, priors)
    return Mixture(
        np.concatenate([fitted.centres, first.centres]),
        np.concatenate([fitted.roots, first.roots]),
        np.concatenate([(1.0 - _FIRST_STAYS) * fitted.shares, _FIRST_STAYS * first.shares]),
    )


def without_prior(mixture: Mixture) -> Mixture:
    """Return a mixture of the t components alone."""
    return Mixture(mixture.centres, mixture.roots, mixture.shares / mixture.shares.sum())
