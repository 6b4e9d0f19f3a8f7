"""Branches of the integer programme: partial orders of the nodes.

A branch says of two nodes which comes first, and with that what follows by transitivity; parents that come later are
ruled out. In both of two branches sets are lost, so that both bounds fall; that would not be so with an edge that is or
isn't there.
"""

from heapq import heappop, heappush
from itertools import count

import numpy as np

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.estimators.exact.separation import SMALL
from gpn_bayes.kernels.learners.parent_sets import ParentSets
from gpn_bayes.kernels.learners.relaxed import edge_shares, sets_against_order


class Branch:
    """A partial order of the nodes.

    Parameters
    ----------
    before : ndarray of bool, shape (n, n)
        Entry (i, j) tells that i comes before j; transitive.

    Examples
    --------
    >>> branch = Branch(np.zeros((3, 3), dtype=bool)).with_order(0, 1).with_order(1, 2)
    >>> bool(branch.before[0, 2]), branch.settles(2, 0)
    (True, True)
    """

    def __init__(self, before: Bools) -> None:
        self.before = before

    def with_order(self, first: int, second: int) -> "Branch":
        """Return the branch in which one node comes before another as well."""
        up, down = self.before[:, first].copy(), self.before[second].copy()
        up[first] = down[second] = True
        return Branch(self.before | np.outer(up, down))

    def settles(self, first: int, second: int) -> bool:
        """Tell whether the order of two nodes is known."""
        return bool(self.before[first, second] or self.before[second, first])

    def ruled_out(self, sets: ParentSets) -> Bools:
        """Tell of each parent set whether it holds a node that comes after its own."""
        return sets_against_order(sets, self.before)


class OpenBranches:
    """The branches still to be looked at, the one with the highest bound first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Branch]] = []
        # Of equal bounds the later branch goes first: it is deeper.
        self._numbers = count(0, -1)

    def add(self, branch: Branch, bound: float) -> None:
        """Put in a branch with its bound."""
        heappush(self._heap, (-bound, next(self._numbers), branch))

    def pop(self) -> Branch:
        """Take out the branch with the highest bound."""
        return heappop(self._heap)[2]

    @property
    def bound(self) -> float:
        """The highest bound; minus infinity where no branch is left."""
        return -self._heap[0][0] if self._heap else -np.inf


def doubtful_pairs(sets: ParentSets, shares: Floats) -> list[tuple[int, int]]:
    """Return the pairs of nodes that lie on a circle, the strongest circle first; none where the shares fit an order.

    Parameters
    ----------
    sets : ParentSets
        The sets chosen from.
    shares : ndarray of float
        The share of each of them. A circle is as strong as the weakest edge on it.
    """
    edges = edge_shares(sets, shares)
    n = len(edges)
    reach = edges.copy()
    for middle in range(n):
        reach = np.maximum(reach, np.minimum(reach[:, [middle]], reach[[middle]]))
    doubt = np.triu(np.minimum(reach, reach.T), 1)
    # Among those on the same circle, neighbours first.
    rank = np.where(doubt > SMALL, doubt * (1.0 + 0.1 * np.minimum(edges + edges.T, 1.0)), 0.0)
    order = np.argsort(-rank, axis=None, kind="stable")[: np.count_nonzero(rank)]
    return [divmod(place, n) for place in order.tolist()]
