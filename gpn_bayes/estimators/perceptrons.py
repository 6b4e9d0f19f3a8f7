"""The model of NOTEARS-MLP: small neural networks that predict variables from others."""

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.kernels.learners import mlp


class Layers(NamedTuple):
    """The parameters of all networks, as views of one vector.

    Attributes
    ----------
    first : ndarray of shape (networks * hidden, inputs)
        Weights of the inputs; unit k of network j is row ``j * hidden + k``.
    biases : ndarray of shape (networks * hidden,)
        The constants of the units.
    second : ndarray of shape (networks, hidden)
        Weights of the units.
    offsets : ndarray of shape (networks,)
        The constants of the outputs.
    """

    first: Floats
    biases: Floats
    second: Floats
    offsets: Floats


class Perceptrons:
    """Networks with one hidden layer of sigmoids, one per output, with their loss and its gradient.

    Parameters
    ----------
    inputs : ndarray of shape (rows, inputs)
        What the networks see.
    outputs : ndarray of shape (rows, networks)
        What they should say.
    allowed : ndarray of bool, shape (inputs, networks)
        Which inputs each network has.
    hidden : int
        Number of hidden units of each network.
    lambda1, lambda2 : float
        Weights of the absolute values of the first layer, and of half the squares of both; constants are free.
    free : ndarray of bool, shape (inputs, networks)
        Inputs whose absolute values have no weight.
    """

    def __init__(
        self,
        inputs: Floats,
        outputs: Floats,
        allowed: Bools,
        hidden: int,
        lambda1: float,
        lambda2: float,
        free: Bools,
    ) -> None:
        self.inputs = np.ascontiguousarray(inputs, dtype=float)
        self.outputs = np.ascontiguousarray(outputs, dtype=float)
        self.hidden = hidden
        self.lambda2 = lambda2
        self._allowed = np.repeat(allowed.T, hidden, axis=0)
        networks: int = self.outputs.shape[1]
        units = networks * hidden
        self._ends: list[int] = list(accumulate([units * self.inputs.shape[1], units, units, networks]))
        self._activations = np.empty((len(self.inputs), units))
        self.penalties = np.zeros(self.size)
        self.layers(self.penalties).first[:] = np.repeat(np.where(free, 0.0, lambda1).T, hidden, axis=0)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self._ends[-1]

    def layers(self, parameters: Floats) -> Layers:
        """Return the parts of a vector of parameters, without a copy."""
        first, biases, second, _ = self._ends
        return Layers(
            parameters[:first].reshape(self._allowed.shape),
            parameters[first:biases],
            parameters[biases:second].reshape(-1, self.hidden),
            parameters[second:],
        )

    def part(self, parameters: Floats, inputs: Ints, network: int) -> Floats:
        """Return the parameters of one network alone, with some of its inputs."""
        layers = self.layers(parameters)
        units = slice(network * self.hidden, (network + 1) * self.hidden)
        first = layers.first[units, inputs].ravel()
        return np.concatenate([first, layers.biases[units], layers.second[network], layers.offsets[[network]]])

    def start(self, rng: np.random.Generator, reach: float) -> Floats:
        """Return random parameters to begin with.

        Parameters
        ----------
        rng : Generator
            Source of randomness.
        reach : float
            How much units see of their inputs, in units of the standard deviation of each. Without any, no step leads
            to a relation without correlation, such as y = |x|: the gradient is zero there.
        """
        parameters = np.zeros(self.size)
        layers = self.layers(parameters)
        layers.first[:] = self._allowed * reach * rng.uniform(-1, 1, layers.first.shape) / self.inputs.std(axis=0)
        layers.biases[:] = rng.uniform(-1, 1, layers.biases.shape) / np.sqrt(self.inputs.shape[1])
        layers.second[:] = rng.uniform(-1, 1, layers.second.shape) / np.sqrt(self.hidden)
        return parameters

    def loss(self, parameters: Floats) -> tuple[float, Floats]:
        """Return half the mean squared error, summed over the networks, plus the L2 penalty; and the gradient."""
        layers = self.layers(parameters)
        gradient = np.empty(self.size)
        slopes = self.layers(gradient)
        units = self._exponentials(self.inputs, layers, self._activations)
        value = mlp.backpropagate(units, self.outputs, layers.second, layers.offsets, slopes.second, slopes.offsets)
        np.dot(units.T, self.inputs, out=slopes.first)
        np.sum(units, axis=0, out=slopes.biases)
        for weights, slope in ((layers.first, slopes.first), (layers.second, slopes.second)):
            value += self.lambda2 / 2 * float(np.vdot(weights, weights))
            slope += self.lambda2 * weights
        slopes.first[~self._allowed] = 0.0
        return value, gradient

    def predict(self, parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """Return what the networks say, of shape (rows, networks)."""
        layers = self.layers(parameters)
        units = 1 / (1 + self._exponentials(inputs, layers, np.empty((len(inputs), len(layers.biases)))))
        outputs: Floats = (
            np.einsum("njk,jk->nj", units.reshape(len(inputs), -1, self.hidden), layers.second) + layers.offsets
        )
        return outputs

    @staticmethod
    def _exponentials(inputs: Floats, layers: Layers, room: Floats) -> Floats:
        """Write exp(-z) of what enters each unit into `room`, and return it."""
        np.dot(inputs, layers.first.T, out=room)
        room += layers.biases
        np.negative(room, out=room)
        # A unit far below zero is off: 1 / (1 + infinity) is the 0 that is meant.
        with np.errstate(over="ignore"):
            return np.exp(room, out=room)

    def squares(self, parameters: Floats) -> Floats:
        """Return how strongly each input (row) enters each network (column): the sum of its squared weights."""
        first = self.layers(parameters).first
        return np.square(first).reshape(self.outputs.shape[1], self.hidden, first.shape[1]).sum(axis=1).T

    def through_squares(self, parameters: Floats, slopes: Floats) -> Floats:
        """Return the gradient of a function of `squares`, by the parameters, from that by the squares."""
        gradient = np.zeros(self.size)
        first = self.layers(parameters).first
        self.layers(gradient).first[:] = 2 * np.repeat(slopes.T, self.hidden, axis=0) * first
        return gradient
