"""The pairs of variables that draws join: how probable each is, and how clear its direction."""

from typing import NamedTuple

import numpy as np

from gpn_bayes.plots import palette
from gpn_bayes.posterior.directions import CLEAR

# The share of a pair's probability that one direction needs to count as more probable.
LIKELIER = 2 / 3


class Link(NamedTuple):
    """A pair of nodes that some draws join.

    Attributes
    ----------
    parent, child : int
        The nodes, in the more probable direction.
    probability : float
        That they are joined, either way.
    direction : {"clear", "likelier", "open"}
        How clear the direction is: it has 90 % or more of this probability, two thirds or more, or less.
    """

    parent: int
    child: int
    probability: float
    direction: str

    @property
    def width(self) -> float:
        """The line's width, in points."""
        return 0.6 + 3.4 * min(self.probability, 1.0)

    @property
    def opacity(self) -> float:
        """The line's opacity."""
        return 0.45 + 0.55 * min(self.probability, 1.0)

    @property
    def colour(self) -> str:
        """Its colour."""
        return palette.VERMILION if self.direction == "open" else palette.BLUE


def links(probabilities: np.ndarray, threshold: float) -> list[Link]:
    """Return all pairs whose probability of being joined is positive and at least a threshold.

    Examples
    --------
    >>> links(np.array([[0.0, 0.5], [0.4, 0.0]]), 0.1)
    [Link(parent=0, child=1, probability=0.9, direction='open')]
    """
    chosen = []
    for i, j in zip(*np.triu_indices(len(probabilities), 1), strict=True):
        forth, back = float(probabilities[i, j]), float(probabilities[j, i])
        joined = forth + back
        if joined > 0 and joined >= threshold:
            share = max(forth, back) / joined
            direction = "clear" if share >= CLEAR else "likelier" if share >= LIKELIER else "open"
            parent, child = (i, j) if forth >= back else (j, i)
            chosen.append(Link(int(parent), int(child), joined, direction))
    return chosen
