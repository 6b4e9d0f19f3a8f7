"""Directions for a skeleton: colliders by a vote of separating sets, what is known beforehand, and Meek's rules."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Adjacency, Bools
from gpn_bayes.candidates.pc_skeleton import Skeleton
from gpn_bayes.estimators.independence.base import BoundTest, neighbour_sets
from gpn_bayes.graphs import equivalence

COLLIDER_RULES = ("majority", "conservative", "separating-set")
# Larger sets don't vote where a pair would have more voters than this.
_MAX_VOTERS = 1000

Triple = tuple[int, int, int]


class _Vote(NamedTuple):
    """A triple x - z - y, x and y not joined: the share of separating sets with z, and the pair's largest p-value."""

    triple: Triple
    share: float
    p_value: float


@dataclass
class Orientation:
    """A skeleton with directions.

    Attributes
    ----------
    pdag : ndarray of int8, shape (n, n)
        Undirected edges are set both ways.
    ambiguous : list of tuple
        Triples (x, z, y), x and y not joined, whose separating sets disagree on whether z is a collider; it isn't made
        one.
    conflicts : list of tuple
        Colliders x -> z <- y that were left out, since stronger ones or what is known say otherwise.
    undecided : list of tuple
        Edges that Meek's rules would direct both ways.
    """

    pdag: Adjacency
    ambiguous: list[Triple] = field(default_factory=list)
    conflicts: list[Triple] = field(default_factory=list)
    undecided: list[tuple[int, int]] = field(default_factory=list)


def orient(
    skeleton: Skeleton, test: BoundTest, alpha: float, rule: str, required: Bools, forbidden: Bools
) -> Orientation:
    """Direct as many edges of a skeleton as can be.

    Colliders are taken one after the other, those first that fewest separating sets speak against, and of those the
    ones with the largest p-value: one that contradicts an earlier one, or would close a cycle, is left out. So nothing
    depends on the order of the variables, but for ties.

    Parameters
    ----------
    skeleton : Skeleton
        The joined pairs.
    test : BoundTest
        What found them; it is asked for further separating sets.
    alpha : float
        Sets with p-values from here on separate.
    rule : {"majority", "conservative", "separating-set"}
        Which triples are colliders: those of whose separating sets less than half, or none, hold the middle one; or
        those whose separating set of the largest p-value doesn't.
    required, forbidden : ndarray of bool, shape (n, n)
        Edges that must, or must not, be there; rows parents.
    """
    oriented = Orientation(np.zeros_like(skeleton.adjacent, dtype=np.int8))
    pdag = skeleton.adjacent & ~required.T & ~(forbidden & ~forbidden.T)
    colliders = []
    for vote in _votes(skeleton, test, alpha, rule):
        if _is_collider(vote.share, rule):
            colliders.append(vote)
        elif _is_ambiguous(vote.share, rule):
            oriented.ambiguous.append(vote.triple)
    for vote in sorted(colliders, key=lambda vote: (vote.share, -vote.p_value, vote.triple)):
        pdag = _with_collider(pdag, vote.triple, oriented.conflicts)
    oriented.pdag, oriented.undecided = equivalence.meek_closure(pdag.astype(np.int8))
    return oriented


def _is_collider(share: float, rule: str) -> bool:
    return share == 0 if rule == "conservative" else share < 0.5


def _is_ambiguous(share: float, rule: str) -> bool:
    """Tell whether separating sets disagree too much, or there is none."""
    return math.isnan(share) or (share < 1 if rule == "conservative" else share == 0.5)


def _with_collider(pdag: Bools, triple: Triple, conflicts: list[Triple]) -> Bools:
    """Return the graph with one more collider, or as it is where it can't have it."""
    x, z, y = triple
    if pdag[x, z] and pdag[y, z]:
        more = pdag.copy()
        more[z, x] = more[z, y] = False
        if graphs.is_acyclic((more & ~more.T).astype(np.int8)):
            return more
    conflicts.append(triple)
    return pdag


def _votes(skeleton: Skeleton, test: BoundTest, alpha: float, rule: str) -> list[_Vote]:
    """Return for every triple what the separating sets of its ends say of its middle."""
    adjacent = skeleton.adjacent
    votes = []
    for x, y in np.argwhere(np.triu(~adjacent, 1)).tolist():
        middles = np.flatnonzero(adjacent[x] & adjacent[y]).tolist()
        if middles:
            separating = {skeleton.separating_sets[x, y]} if (x, y) in skeleton.separating_sets else set()
            if rule != "separating-set" or not separating:
                separating |= _separating_sets(x, y, skeleton, test, alpha)
            p_value = float(skeleton.p_values[x, y])
            for z in middles:
                share = float(np.mean([z in given for given in separating])) if separating else math.nan
                votes.append(_Vote((x, z, y), share, p_value))
    return votes


def _separating_sets(x: int, y: int, skeleton: Skeleton, test: BoundTest, alpha: float) -> set[tuple[int, ...]]:
    """Return all sets of neighbours of one of the two that separate them, of any allowed size."""
    degrees = [int(skeleton.adjacent[node].sum()) for node in (x, y)]
    separated, voters = set(), 0
    for size in range(min(max(degrees), max(skeleton.largest_set, 1)) + 1):
        voters += sum(math.comb(degree, size) for degree in degrees)
        if size > 0 and voters > _MAX_VOTERS:
            break
        separated |= {g for g in neighbour_sets(x, y, size, skeleton.adjacent) if test.known(x, y, g) >= alpha}
    return separated
