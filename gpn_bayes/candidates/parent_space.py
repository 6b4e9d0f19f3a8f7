"""Which parent sets nodes may have: those of their candidates, with one further parent from outside them."""

from collections.abc import Collection
from dataclasses import dataclass

from gpn_bayes.candidates.costs import MAX_OUTSIDE, number_of_sets
from gpn_bayes.kernels.subsets import MAX_CANDIDATES
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.prior import GraphPrior

# Scores of sets with a parent from outside that are worth their time where each takes milliseconds.
_MAX_SLOW_OUTSIDE = 100_000


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
    max_with_outside : int or None
        Largest number of parents of sets with one from outside, that one counted.
    """

    lists: list[list[int]]
    outside: list[list[int]]
    max_parents: int | None = None
    max_with_outside: int | None = None

    def limit(self, node: int) -> int:
        """Return the largest number of candidates in a parent set of a node."""
        own = len(self.lists[node])
        return own if self.max_parents is None else min(self.max_parents, own)

    def limit_beside(self, node: int) -> int:
        """Return the largest number of candidates beside a parent from outside; -1 if there is room for none."""
        limits = [limit - 1 for limit in (self.max_parents, self.max_with_outside) if limit is not None]
        return min([len(self.lists[node]), *limits])


def with_parents_from_outside(
    lists: list[list[int]],
    prior: GraphPrior,
    max_parents: int | None,
    scorer: Scorer,
    wanted: bool,
    closed: Collection[int] = (),
) -> ParentSpace:
    """Return a space in which nodes may have one parent more, of all that aren't their candidates.

    Sets with such a parent are kept smaller where there would be too many of them.

    Parameters
    ----------
    lists : list of list of int
        The candidates.
    prior : GraphPrior
        Forbidden edges are never in the space.
    max_parents : int or None
        Largest number of parents.
    scorer : Scorer
        The score, which takes milliseconds unless it has a closed form.
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
            f"{stored}: name fewer, or use plus_one=False"
        )
    largest = max(map(len, lists)) + 1 if max_parents is None else max_parents
    if not scorer.closed_form:
        while largest > 1 and _count_outside(ParentSpace(lists, outside, max_parents, largest)) > _MAX_SLOW_OUTSIDE:
            largest -= 1
    return ParentSpace(lists, outside, max_parents, largest)


def _count_outside(space: ParentSpace) -> int:
    """Return how many scores of sets with a parent from outside a space holds."""
    return sum(
        len(others) * number_of_sets(len(own), space.limit_beside(i))
        for i, (own, others) in enumerate(zip(space.lists, space.outside, strict=True))
    )
