"""The rule by which a search space grows: parents from outside that the draws of a round use become candidates."""

from dataclasses import dataclass

import numpy as np

from gpn_bayes.candidates.parent_space import ParentSpace

# A parent from outside becomes a candidate at this probability or above; where there is no room, it replaces a
# candidate that is less probable by this factor.
THRESHOLD = 0.05
_MUCH_LESS = 0.1
# A node has more candidates than usual where it would otherwise have two parents from outside with this probability.
_LEFT_OUT = 0.002
# A space is stable when a round adds no more than this share of it: edges at the threshold come and go by chance.
_STABLE = 0.01


@dataclass(frozen=True)
class Round:
    """One round: the numbers of edges added to the space, dropped to make room for them, and left out for lack of it.

    Examples
    --------
    >>> done = Round(added=1, dropped=0, no_room=2)
    >>> done.parameters
    {'added': 1, 'dropped': 0, 'no room': 2}
    >>> done.is_stable(ParentSpace([[1], [0]], [[], []])), Round(0, 0, 2).is_stable(ParentSpace([[1], [0]], [[], []]))
    (False, True)
    """

    added: int
    dropped: int
    no_room: int

    @property
    def parameters(self) -> dict[str, int]:
        """The round, JSON-able."""
        return {"added": self.added, "dropped": self.dropped, "no room": self.no_room}

    def is_stable(self, space: ParentSpace) -> bool:
        """Return whether the round added so little that the space it led to needs no further one."""
        return self.added <= _STABLE * sum(map(len, space.lists))


@dataclass(frozen=True)
class GrowthRule:
    """Which parents from outside become candidates, given the edge probabilities of a round.

    Attributes
    ----------
    threshold : float
        The probability at which a parent from outside becomes a candidate.
    limit : int
        The usual limit on the number of candidates of a node; the most probable parents from outside come first.
    most : int
        The limit for nodes that would otherwise have two parents from outside too often.
    """

    threshold: float
    limit: int
    most: int

    def next_lists(self, space: ParentSpace, probabilities: np.ndarray) -> tuple[list[list[int]], Round]:
        """Return the candidates of every node in the next round, and how they differ from those of this one.

        Parameters
        ----------
        space : ParentSpace
            The space of this round.
        probabilities : ndarray of shape (n, n)
            Probabilities of edges, rows parents; 1 for those that must stay in the space.

        Examples
        --------
        >>> space = ParentSpace([[1], [0], []], [[2], [2], [0, 1]])
        >>> probabilities = np.array([[0, 0.5, 0.01], [0.5, 0, 0.3], [0.2, 0, 0]])
        >>> GrowthRule(threshold=0.05, limit=2, most=3).next_lists(space, probabilities)
        ([[1, 2], [0], [1]], Round(added=2, dropped=0, no_room=0))
        """
        lists, added, dropped, no_room = [], 0, 0, 0
        for i, (own, others) in enumerate(zip(space.lists, space.outside, strict=True)):
            chances = probabilities[:, i]
            staying = sorted(own, key=lambda j: chances[j])
            room = self.most if _two_from_outside(chances[list(others)]) > _LEFT_OUT else max(self.limit, len(own))
            for j in sorted((j for j in others if chances[j] >= self.threshold), key=lambda j: -chances[j]):
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


def _two_from_outside(chances: np.ndarray) -> float:
    """Return about how probable two parents from outside are, as if each came independently of the others."""
    return float(chances.sum() ** 2 - (chances**2).sum()) / 2
