"""A proposal for the posterior of a node's hyperparameters, fitted to the draws made from it so far."""

import math
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels import gp_importance
from gpn_bayes.scores.gp.low_rank import HyperPosterior, Modes
from gpn_bayes.scores.gp.mixtures import adapted_mixture, laplace_mixture

# Draws before a proposal has been fitted.
PILOT = 200


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

    def draw_from(self, mixture: gp_importance.Mixture, count: int) -> Draws:
        """Draw from any mixture, without a lesson for the fit."""
        points, components = gp_importance.draw_points(mixture, self.posterior.priors, count, self._rng)
        densities = gp_importance.component_densities(points, mixture, self.posterior.priors)
        log_weights = self.posterior.log_densities(points) - np.log(densities.sum(axis=1))
        self.evaluations += count
        return Draws(points, log_weights, components, densities, mixture.shares)


def _bounded(log_weights: Floats) -> Floats:
    """Return weights of which none is so large that a fit would only see it."""
    top = log_weights.max()
    if top == -np.inf:
        return np.ones(len(log_weights))
    weights = np.exp(log_weights - top)
    return np.minimum(weights, weights.mean() * math.sqrt(len(weights)))
