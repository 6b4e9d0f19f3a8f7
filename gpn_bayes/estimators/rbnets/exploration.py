"""How an agent chooses among the legal actions: by what it knows, and what it hasn't tried."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.estimators.rbnets.order_graph import Walk

# Returns what the network says of all actions in the walk's state; not called where nobody asks.
Values = Callable[[Walk], np.ndarray]


class Explorer(Protocol):
    """Chooses the next variable of a walk."""

    def choose(self, walk: Walk, values: Values) -> int:
        """Return one that is legal."""


def any_legal(legal: Bools, rng: np.random.Generator) -> int:
    """Return a legal action, all alike."""
    return int(rng.choice(np.flatnonzero(legal)))


def best_legal(values: Floats, legal: Bools) -> int:
    """Return the legal action of the highest value, the first of equals."""
    return int(np.where(legal, values, -np.inf).argmax())


class UpperConfidence:
    r"""Chooses the highest Q(s, a) + c sqrt(2 ln(1 + tau(s)) / (1 + tau(s, a))), where tau counts what was chosen.

    In a state that was never seen all have the same bonus, 0, and Q decides.

    Parameters
    ----------
    c : float
        The weight of what wasn't tried.

    Attributes
    ----------
    counts : dict of bytes to ndarray of int
        How often each action was chosen in each state seen, tau(s, a).
    """

    def __init__(self, c: float) -> None:
        self.c = c
        self.counts: dict[bytes, np.ndarray] = {}

    def choose(self, walk: Walk, values: Values) -> int:
        """Return the action, and count it."""
        tried = self.counts.setdefault(walk.state, np.zeros(len(walk.placed), dtype=np.int32))
        action = best_legal(values(walk) + self.c * bonus(tried), walk.legal)
        tried[action] += 1
        return action


def bonus(tried: NDArray[np.int32]) -> Floats:
    """Return sqrt(2 ln(1 + tau(s)) / (1 + tau(s, a))) for the counts of all actions in a state.

    Examples
    --------
    >>> bonus(np.array([0, 3])).round(3).tolist()
    [1.665, 0.833]
    """
    bonuses: Floats = np.sqrt(2 * np.log1p(tried.sum()) / (1 + tried))
    return bonuses


class EpsilonGreedy:
    """Chooses at random with a probability that falls along a line in the first half of the walks, else the best.

    Parameters
    ----------
    first, last : float
        The probabilities of the first walk, and of those in the second half.
    walks : int
        Their number.
    rng : Generator
        Where chance comes from.
    """

    def __init__(self, first: float, last: float, walks: int, rng: np.random.Generator) -> None:
        self._first, self._last = first, last
        self._falling, self._begun = max(walks // 2, 1), 0
        self._rng = rng

    @property
    def epsilon(self) -> float:
        """The present probability."""
        share = min(max(self._begun - 1, 0) / self._falling, 1.0)
        return self._first + (self._last - self._first) * share

    def choose(self, walk: Walk, values: Values) -> int:
        """Return the action."""
        self._begun += not walk.order
        if self._rng.random() < self.epsilon:
            return any_legal(walk.legal, self._rng)
        return best_legal(values(walk), walk.legal)
