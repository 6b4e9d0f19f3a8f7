"""The replay buffer: the latest transitions, and random batches of them."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools


class Transitions(NamedTuple):
    """Several steps, a row for each.

    Attributes
    ----------
    states : ndarray of float, shape (rows, n)
        1 for each variable placed before the step.
    actions : ndarray of int
        The variables placed by it.
    rewards : ndarray of float
        What they brought.
    following : ndarray of float, shape (rows, n)
        1 for each variable placed after the step.
    legal : ndarray of bool, shape (rows, n)
        Which variables may come next.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    following: np.ndarray
    legal: np.ndarray


class ReplayBuffer:
    """Remembers the latest transitions, and forgets the oldest where there is no room.

    Parameters
    ----------
    room : int
        How many to remember.
    n : int
        Number of variables.
    """

    def __init__(self, room: int, n: int) -> None:
        self._kept = Transitions(
            np.zeros((room, n), dtype=np.float32),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.float32),
            np.zeros((room, n), dtype=np.float32),
            np.zeros((room, n), dtype=bool),
        )
        self._added = 0

    def __len__(self) -> int:
        """Return how many are remembered."""
        return min(self._added, len(self._kept.actions))

    def add(self, state: np.ndarray, action: int, reward: float, following: np.ndarray, legal: Bools) -> None:
        """Remember a step."""
        place = self._added % len(self._kept.actions)
        for kept, new in zip(self._kept, (state, action, reward, following, legal), strict=True):
            kept[place] = new
        self._added += 1

    def draw(self, rng: np.random.Generator, count: int) -> Transitions:
        """Return a random batch, drawn with replacement."""
        rows = rng.integers(len(self), size=count)
        return Transitions(*(kept[rows] for kept in self._kept))
