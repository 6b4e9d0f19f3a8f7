"""Let the search space grow: draw, take in the parents from outside that the draws use, and draw again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.candidates.parent_space import ParentSpace

# Rounds at most, and draws and tuning of each chain in a round: it needn't be precise.
MAX_ROUNDS = 10
DRAWS_OF_ROUND = 200
# A parent from outside is taken in from this probability on; where there is no room, a candidate makes some that is
# less probable by this factor.
THRESHOLD = 0.05
_MUCH_LESS = 0.1
# A node has more candidates than usual where it would otherwise have two parents from outside with this probability.
_LEFT_OUT = 0.002
# A space is stable when a round takes in no more than this share of it: edges at the threshold come and go by chance.
_STABLE = 0.01


@dataclass(frozen=True)
class Round:
    """One round: how many edges it took into the space, how many left it for them, and how many found no room."""

    added: int
    dropped: int
    no_room: int

    @property
    def parameters(self) -> dict[str, int]:
        """The round, JSON-able."""
        return {"added": self.added, "dropped": self.dropped, "no room": self.no_room}


def expand(
    space: ParentSpace,
    draw: Callable[[ParentSpace, int], np.ndarray],
    rebuild: Callable[[list[list[int]]], ParentSpace],
    threshold: float,
    limit: int,
    most: int,
    required: np.ndarray,
) -> tuple[ParentSpace, list[Round]]:
    """Take parents from outside into the candidates until a round finds hardly any more.

    Parameters
    ----------
    space : ParentSpace
        Where to begin.
    draw : callable
        Takes a space and the number of the round; returns drawn DAGs by parent bits, (draws, n, words).
    rebuild : callable
        Takes candidate lists; returns their space.
    threshold : float
        The probability from which on a parent is taken in.
    limit : int
        Candidates that a node usually has at most; the most probable outsiders come first.
    most : int
        Candidates that a node has at most where it would otherwise have two parents from outside too often.
    required : ndarray of bool, shape (n, n)
        Edges that stay in the space.

    Returns
    -------
    ParentSpace
        The space; the last one where it is not stable after ten rounds.
    list of Round
        What every round did.
    """
    rounds: list[Round] = []
    while len(rounds) < MAX_ROUNDS:
        dags = draw(space, len(rounds))
        probabilities = graphs.unpack(dags, len(space.lists)).mean(axis=0)
        lists, done = _take_in(space, np.where(required, 1.0, probabilities), threshold, limit, most)
        rounds.append(done)
        if done.added > 0:
            space = rebuild(lists)
        if done.added <= _STABLE * sum(map(len, space.lists)):
            break
    return space, rounds


def _take_in(
    space: ParentSpace, probabilities: np.ndarray, threshold: float, limit: int, most: int
) -> tuple[list[list[int]], Round]:
    lists, added, dropped, no_room = [], 0, 0, 0
    for i, (own, others) in enumerate(zip(space.lists, space.outsiders, strict=True)):
        chances = probabilities[:, i]
        staying = sorted(own, key=lambda j: chances[j])
        room = most if _left_out(chances[list(others)]) > _LEFT_OUT else max(limit, len(own))
        for j in sorted((j for j in others if chances[j] >= threshold), key=lambda j: -chances[j]):
            if len(staying) >= room and chances[staying[0]] < _MUCH_LESS * chances[j]:
                staying.pop(0)
                dropped += 1
            if len(staying) < room:
                staying.append(j)
                added += 1
            else:
                no_room += 1
        lists.append(sorted(staying))
    return lists, Round(added, dropped, no_room)


def _left_out(chances: np.ndarray) -> float:
    """Return about how probable two parents from outside are, as if each came independently of the others."""
    return float(chances.sum() ** 2 - (chances**2).sum()) / 2
