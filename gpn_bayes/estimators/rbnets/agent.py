"""Agents on the order graph: a double deep Q-network that learns, and a random one for comparison."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.estimators.rbnets.exploration import Explorer, any_legal
from gpn_bayes.estimators.rbnets.network import QNetwork, RMSprop
from gpn_bayes.estimators.rbnets.order_graph import OrderGraph, Walk
from gpn_bayes.estimators.rbnets.replay import ReplayBuffer, Transitions
from gpn_bayes.kernels.learners.q_network import double_targets


@dataclass(frozen=True)
class LearningSettings:
    """How an agent learns; see `RBNets`."""

    hidden: tuple[int, ...]
    buffer: int
    batch: int
    refresh: int
    learning_rate: float
    gamma: float


class Player(Protocol):
    """Finds orders."""

    def play(self, graph: OrderGraph) -> list[int]:
        """Walk through the graph once, and return the order."""


class RandomPlayer:
    """Takes any legal action, and learns nothing.

    Parameters
    ----------
    rng : Generator
        Where chance comes from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def play(self, graph: OrderGraph) -> list[int]:
        """Walk through the graph once, and return the order."""
        walk = graph.walk()
        while not walk.ended:
            walk.place(any_legal(walk.legal, self._rng))
        return walk.order


class Agent:
    """Learns the values of actions in the order graph.

    Parameters
    ----------
    n : int
        Number of variables.
    explorer : Explorer
        How to choose.
    settings : LearningSettings
        How to learn.
    rng : Generator
        Where weights and batches come from.

    Attributes
    ----------
    online, frozen : QNetwork
        The network that learns, and what it was at the last refresh.
    """

    def __init__(self, n: int, explorer: Explorer, settings: LearningSettings, rng: np.random.Generator) -> None:
        sizes = (n, *settings.hidden, n)
        self.online, self.frozen = QNetwork(sizes, rng), QNetwork(sizes, rng)
        self.frozen.copy_from(self.online)
        self._explorer, self._settings, self._rng = explorer, settings, rng
        self._optimiser = RMSprop(self.online.parameters, settings.learning_rate)
        self._memory = ReplayBuffer(settings.buffer, n)
        self._steps = 0

    def values(self, walk: Walk) -> NDArray[np.float32]:
        """Return what the network says of all actions in the walk's state."""
        values: NDArray[np.float32] = self.online.values(walk.placed[None].astype(np.float32))[0]
        return values

    def play(self, graph: OrderGraph) -> list[int]:
        """Walk through the graph once, learning on the way, and return the order."""
        walk = graph.walk()
        while not walk.ended:
            before = walk.placed.copy()
            action = self._explorer.choose(walk, self.values)
            reward = walk.place(action)
            self._memory.add(before, action, reward, walk.placed, walk.legal)
            self._learn()
        return walk.order

    def targets(self, some: Transitions) -> NDArray[np.float32]:
        """Return what the network should have said of the actions taken."""
        online, frozen = self.online.values(some.following), self.frozen.values(some.following)
        targets = np.empty_like(some.rewards)
        double_targets(some.rewards, some.legal, online, frozen, self._settings.gamma, targets)
        return targets

    def _learn(self) -> None:
        """Take a step once there is a batch to take it from; refresh the target network at fixed intervals."""
        if len(self._memory) < min(self._settings.batch, self._settings.buffer):
            return
        some = self._memory.draw(self._rng, self._settings.batch)
        self._optimiser.step(self.online.gradient(some.states, some.actions, self.targets(some)))
        self._steps += 1
        if self._steps % self._settings.refresh == 0:
            self.frozen.copy_from(self.online)
