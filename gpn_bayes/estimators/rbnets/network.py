"""The Q-network: layers of rectified units, their gradients written out, and the optimiser."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Ints
from gpn_bayes.kernels.learners.q_network import rms_step


class QNetwork:
    """Says of each action in a state what it and all that follows are worth.

    Weights start normal with variance 2 / inputs, so that signals keep their size; those of the last layer a tenth of
    that, so that all actions start out alike; biases at 0.

    Parameters
    ----------
    sizes : sequence of int
        The units of each layer: inputs, hidden, outputs.
    rng : Generator
        Where the weights come from.
    dtype : dtype, default float32
        What to compute in.

    Attributes
    ----------
    parameters : ndarray
        All weights and biases; `weights` and `biases` are views of it, by layer.
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator, dtype: type = np.float32) -> None:
        self.sizes = tuple(sizes)
        count = sum((before + 1) * after for before, after in pairwise(sizes))
        self.parameters: np.ndarray = np.zeros(count, dtype=dtype)
        self.weights, self.biases = self._views(self.parameters)
        for weights in self.weights:
            weights[:] = rng.standard_normal(weights.shape) * np.sqrt(2 / len(weights))
        self.weights[-1][:] *= 0.1
        self._gradient = np.zeros_like(self.parameters)
        self._slopes = self._views(self._gradient)

    def copy_from(self, other: "QNetwork") -> None:
        """Take over the parameters of another network of the same sizes."""
        self.parameters[:] = other.parameters

    def values(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the values of all actions, a row for each state."""
        return self._layers(states)[-1]

    def gradient(self, states: np.ndarray, actions: Ints, targets: np.ndarray) -> np.ndarray:
        """Return the slopes of the loss, in the order of `parameters`, in an array that the next call uses again.

        The loss is half the mean square of what the values of the actions taken are away from their targets.

        Parameters
        ----------
        states : ndarray, shape (batch, inputs)
            Where the actions were taken.
        actions : ndarray of int, shape (batch,)
            The actions.
        targets : ndarray, shape (batch,)
            What their values should have been.
        """
        layers = self._layers(states)
        rows = np.arange(len(states))
        error = np.zeros_like(layers[-1])
        error[rows, actions] = (layers[-1][rows, actions] - targets) / len(states)
        weight_slopes, bias_slopes = self._slopes
        for depth in reversed(range(len(self.weights))):
            np.matmul(layers[depth].T, error, out=weight_slopes[depth])
            error.sum(axis=0, out=bias_slopes[depth])
            if depth > 0:
                error = error @ self.weights[depth].T
                error *= layers[depth] > 0
        return self._gradient

    def _layers(self, states: np.ndarray) -> list[np.ndarray]:
        """Return what comes out of every layer, the states first."""
        layers = [states]
        for depth, (weights, biases) in enumerate(zip(self.weights, self.biases, strict=True)):
            outputs = layers[-1] @ weights
            outputs += biases
            if depth < len(self.weights) - 1:
                np.maximum(outputs, 0, out=outputs)
            layers.append(outputs)
        return layers

    def _views(self, flat: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        weights, biases, start = [], [], 0
        for before, after in pairwise(self.sizes):
            middle, end = start + before * after, start + (before + 1) * after
            weights.append(flat[start:middle].reshape(before, after))
            biases.append(flat[middle:end])
            start = end
        return weights, biases


class RMSprop:
    """Steps down gradients, each parameter at its own pace.

    Parameters
    ----------
    parameters : ndarray
        What to change, in place.
    rate : float
        The step length.
    """

    decay = 0.99
    epsilon = 1e-8

    def __init__(self, parameters: np.ndarray, rate: float) -> None:
        self.parameters, self.rate = parameters, rate
        self.squares = np.zeros_like(parameters)

    def step(self, gradient: np.ndarray) -> None:
        """Take one step."""
        rms_step(self.parameters, gradient, self.squares, self.rate, self.decay, self.epsilon)
