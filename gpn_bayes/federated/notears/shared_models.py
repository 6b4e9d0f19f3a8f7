"""What the clients agree on, as the coordinator sees it: parameters, their penalties, and the graph in them."""

from abc import ABC, abstractmethod

import numpy as np

from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.kernels.learners.acyclicity import exponential


class SharedModel(ABC):
    """Parameters that all clients share.

    Attributes
    ----------
    start : ndarray
        Where they begin.
    free : ndarray of bool
        Which of them may change.
    penalties : ndarray
        The weight of the absolute value of each.
    squares_penalties : ndarray
        The weight of half the square of each.
    """

    start: np.ndarray
    free: np.ndarray
    penalties: np.ndarray
    squares_penalties: np.ndarray

    @abstractmethod
    def strengths(self, shared: np.ndarray) -> np.ndarray:
        """Return how strongly each variable (row) enters each other (column)."""

    @abstractmethod
    def cycles(self, shared: np.ndarray) -> tuple[float, np.ndarray]:
        """Return h = tr exp(A) - d, where A holds the squared strengths, and its gradient."""

    @abstractmethod
    def curvatures(self, shared: np.ndarray) -> np.ndarray:
        """Return the second derivative of h by each parameter alone, but for the part that its own square has."""


class LinearModel(SharedModel):
    """Weights of the variables on each other, and below them of their past, where they have any.

    Parameters
    ----------
    allowed : ndarray of bool, shape (d, d)
        Which edges there may be.
    penalties : ndarray, shape (rows, d)
        The weight of the absolute value of every weight; the first d rows are those of the edges.
    """

    def __init__(self, allowed: np.ndarray, penalties: np.ndarray) -> None:
        self.d = len(allowed)
        self.start = np.zeros(penalties.shape)
        self.free = np.ones(penalties.shape, dtype=bool)
        self.free[: self.d] = allowed
        self.penalties = penalties
        self.squares_penalties = np.zeros(penalties.shape)

    def strengths(self, shared: np.ndarray) -> np.ndarray:
        """Return the weights of the variables on each other."""
        return shared[: self.d].copy()

    def cycles(self, shared: np.ndarray) -> tuple[float, np.ndarray]:
        """Return h and its gradient, which is zero below the first d rows."""
        weights = shared[: self.d]
        h, slopes = exponential(weights**2)
        gradient = np.zeros(shared.shape)
        gradient[: self.d] = 2 * weights * slopes
        return h, gradient

    def curvatures(self, shared: np.ndarray) -> np.ndarray:
        """Return twice the gradient of h by the squared weights."""
        curvatures = np.zeros(shared.shape)
        curvatures[: self.d] = 2 * exponential(shared[: self.d] ** 2)[1]
        return curvatures


class NetworkModel(SharedModel):
    """The parameters of a neural network per variable, as one vector.

    Parameters
    ----------
    allowed : ndarray of bool, shape (d, d)
        Which edges there may be.
    required : ndarray of bool, shape (d, d)
        Edges whose absolute values have no weight.
    hidden : int
        Number of hidden units of each network.
    lambda1, lambda2 : float
        Weights of the absolute values of the first layer, and of half the squares of both.
    rng : Generator
        Where the first parameters come from. Networks begin without knowing anything of their inputs.
    """

    def __init__(
        self,
        allowed: np.ndarray,
        required: np.ndarray,
        hidden: int,
        lambda1: float,
        lambda2: float,
        rng: np.random.Generator,
    ) -> None:
        # The coordinator has no rows; these two give every input the unit scale that a start is drawn for.
        rows = np.outer([1.0, -1.0], np.ones(len(allowed)))
        self._networks = Perceptrons(rows, rows, allowed, hidden, lambda1, lambda2, required)
        self.start = self._networks.start(rng, 0.0)
        self.penalties = self._networks.penalties
        self.free = np.ones(self._networks.size, dtype=bool)
        self._networks.layers(self.free).first[:] = np.repeat(allowed.T, hidden, axis=0)
        self.squares_penalties = np.zeros(self._networks.size)
        layers = self._networks.layers(self.squares_penalties)
        layers.first[:] = layers.second[:] = lambda2

    def strengths(self, shared: np.ndarray) -> np.ndarray:
        """Return the norm of the weights with which each variable enters each network."""
        return np.sqrt(self._networks.squares(shared))

    def cycles(self, shared: np.ndarray) -> tuple[float, np.ndarray]:
        """Return h and its gradient."""
        h, slopes = exponential(self._networks.squares(shared))
        return h, self._networks.through_squares(shared, slopes)

    def curvatures(self, shared: np.ndarray) -> np.ndarray:
        """Return twice the gradient of h by the squares, for every weight of the first layer."""
        slopes = exponential(self._networks.squares(shared))[1]
        return self._networks.through_squares(np.ones(self._networks.size), slopes)
