"""Which parent sets nodes may have: those of their candidates, with one further parent from outside them."""

from collections.abc import Collection
from dataclasses import dataclass

from gpn_bayes.candidates.costs import MAX_OUTSIDE, number_of_sets
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.scores.prior import GraphPrior


@dataclass(frozen=True)
class ParentSpace:
    """Which parent sets each node may have.

    Attributes
    ----------
    lists : list of list of int
        The candidate parents of every node.
    outside : list of list of int
        Nodes outside these, of which one may be a further parent.
    max_parents : int or None
        Largest number of parents.
    """

    lists: list[list[int]]
    outside: list[list[int]]
    max_parents: int | None = None

    def limit(self, node: int) -> int:
        """Return the largest number of candidates in a parent set of a node."""
        own = len(self.lists[node])
        return own if self.max_parents is None else min(self.max_parents, own)

    def limit_beside(self, node: int) -> int:
        """Return the largest number of candidates beside a parent from outside; -1 if there is room for none."""
        own = len(self.lists[node])
        return own if self.max_parents is None else min(self.max_parents - 1, own)

    def holds(self, node: int, parents: set[int]) -> bool:
        """Return whether a node may have these parents.

        Examples
        --------
        >>> space = ParentSpace([[1], [0], []], [[2], [], [0, 1]])
        >>> [space.holds(0, {1, 2}), space.holds(1, {0, 2}), space.holds(2, {0, 1})]
        [True, False, False]
        """
        if self.max_parents is not None and len(parents) > self.max_parents:
            return False
        others = parents.difference(self.lists[node])
        return not others or (len(others) == 1 and others.issubset(self.outside[node]))

    @property
    def size(self) -> int:
        """The number of parent sets of all nodes together."""
        return sum(
            number_of_sets(len(own), self.limit(i)) + len(others) * number_of_sets(len(own), self.limit_beside(i))
            for i, (own, others) in enumerate(zip(self.lists, self.outside, strict=True))
        )


def with_parents_from_outside(
    lists: list[list[int]],
    prior: GraphPrior,
    max_parents: int | None,
    wanted: bool,
    closed: Collection[int] = (),
) -> ParentSpace:
    """Return a space in which nodes may have one parent more, of all that aren't their candidates.

    Parameters
    ----------
    lists : list of list of int
        The candidates.
    prior : GraphPrior
        Forbidden edges are never in the space.
    max_parents : int or None
        Largest number of parents.
    wanted : bool
        Whether to; otherwise no node has parents from outside.
    closed : collection of int
        Nodes that have no parents from outside even so.
    """
    n = len(lists)
    if not wanted or max_parents == 0:
        return ParentSpace(lists, [[] for _ in lists], max_parents)
    outside = [
        [j for j in range(n) if j != i and j not in own and not prior.forbidden[j, i]] for i, own in enumerate(lists)
    ]
    for i, own in enumerate(lists):
        if i in closed or len(own) == MAX_CANDIDATES:  # the latter have no local bit left for a parent from outside
            outside[i] = []
    stored = sum(len(others) << len(own) for own, others in zip(lists, outside, strict=True))
    if stored > MAX_OUTSIDE:
        raise ValueError(
            f"parents from outside the candidates take at most {MAX_OUTSIDE} scores; received candidates that ask for "
            f"{stored}: name fewer, or use space=gpn.Space(plus_one=False)"
        )
    return ParentSpace(lists, outside, max_parents)
