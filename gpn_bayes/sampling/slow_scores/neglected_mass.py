"""How probable the parent sets are that were never scored: an audit of a random sample of them."""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.candidates.costs import number_of_sets
from gpn_bayes.sampling.slow_scores.scored_sets import Contexts, NodeSets, ScoredSets
from gpn_bayes.scores.workers import ParentSet

# Sets audited of each node.
PER_NODE = 10
# How many nodes a set that is audited has more than some set that has a score.
_SHARE_OF_STEP = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
# The share of the sample that starts from any scored set, whatever its probability.
_ANY = 0.1


class Audit(NamedTuple):
    """What was scored and what was left out.

    Attributes
    ----------
    conceivable : int
        Parent sets of all nodes together that the prior and the largest number of parents allow.
    scored : int
        How many of them have a score.
    audited : int
        How many of these the audit scored.
    neglected_mass : float
        What share of the posterior of a node's parents the sets without a score would have, on average over the nodes.
    error : float
        Its standard error.
    """

    conceivable: int
    scored: int
    audited: int
    neglected_mass: float
    error: float

    @property
    def parameters(self) -> dict[str, float]:
        """The audit, JSON-able."""
        return self._asdict()


def audit(scored: ScoredSets, contexts: Sequence[Contexts], max_parents: int | None, rng: np.random.Generator) -> Audit:
    """Estimate the mass of all sets without a score by importance sampling, and score those that were sampled.

    With contexts c of node i of weight w_c, sum Z_c over the scored sets, and log scores s, the mass of node i is the
    sum over all other sets S of a_i(S) exp(s(S)), where a_i(S) is the sum of w_c / Z_c over the contexts that hold S.
    As contexts are those of drawn DAGs, this tells of DAGs that differ from them by the parents of one node. A sampled
    set is a scored one, T, with further nodes drawn at random; T has a probability that grows with the square root of
    its mass. Every set can be sampled, since the smallest set is scored.

    Parameters
    ----------
    scored : ScoredSets
        The scored sets; those of the sample are added.
    contexts : sequence of Contexts
        Those of every node.
    max_parents : int or None
        Largest number of parents.
    rng : Generator
        Where the sample comes from.
    """
    prior, n = scored.prior, len(scored.nodes)
    before, conceivable = sum(scored.counts), 0
    samples: list[tuple[int, ParentSet, float]] = []
    sums = []
    for i, (own, context) in enumerate(zip(scored.nodes, contexts, strict=True)):
        log_p, log_z = own.log_probabilities(context)
        sums.append(log_z)
        required = np.flatnonzero(prior.required[:, i])
        others = np.setdiff1d(np.flatnonzero(~prior.forbidden[:, i]), [i])
        limit = len(others) if max_parents is None else min(max_parents, len(others))
        conceivable += number_of_sets(len(others) - len(required), limit - len(required))
        sampler = _Sampler(own, np.exp(log_p) @ context.weights, others, limit)
        samples += [(i, *sampler.draw(rng)) for _ in range(PER_NODE if limit > len(required) else 0)]
    left_out = {(i, parents) for i, parents, _ in samples if parents not in scored.nodes[i].places}
    scored.add(sorted(left_out))
    masses = np.zeros(n * PER_NODE)
    for k, (i, parents, probability) in enumerate(samples):
        place = scored.nodes[i].places.get(parents)
        if (i, parents) in left_out and place is not None:
            inside = contexts[i].nodes[:, list(parents)].all(axis=1)
            log_ratios = np.where(inside, scored.nodes[i].scores[place] - sums[i], -np.inf)
            masses[k] = np.exp(log_ratios) @ contexts[i].weights / probability
    # The nodes are strata of equal size.
    by_node = masses.reshape(n, PER_NODE)
    error = np.sqrt((by_node.var(axis=1, ddof=1) / PER_NODE).sum()) / n
    count = sum(scored.counts)
    return Audit(conceivable, count, count - before, float(by_node.mean()), float(error))


class _Sampler:
    """Draws parent sets of a node, each with its probability of being drawn."""

    def __init__(self, own: NodeSets, masses: Floats, others: np.ndarray, limit: int) -> None:
        self._sets = list(own.places)
        self._others = others
        self._limit = limit
        room = np.array([len(parents) < limit for parents in self._sets])
        roots = np.sqrt(masses) * room
        any_set = room / room.sum()
        starts = any_set if roots.sum() == 0.0 else (1 - _ANY) * roots / roots.sum() + _ANY * any_set
        self._starts = starts
        self._probabilities = dict(zip(self._sets, starts.tolist(), strict=True))

    def draw(self, rng: np.random.Generator) -> tuple[ParentSet, float]:
        start = self._sets[rng.choice(len(self._sets), p=self._starts)]
        steps = self._steps(len(start))
        more = rng.choice(np.setdiff1d(self._others, start), 1 + rng.choice(len(steps), p=steps), replace=False)
        parents = tuple(sorted((*start, *more.tolist())))
        return parents, self._probability(parents)

    def _steps(self, size: int) -> Floats:
        """Return the probabilities of adding 1, 2, … nodes to a set of a size."""
        steps = _SHARE_OF_STEP[: self._limit - size]
        shares: Floats = steps / steps.sum()
        return shares

    def _probability(self, parents: ParentSet) -> float:
        """Return the probability of a set, summed over all sets it can be drawn from."""
        total = 0.0
        for added in range(1, min(len(parents), len(_SHARE_OF_STEP)) + 1):
            size = len(parents) - added
            share = self._steps(size)[added - 1] / comb(len(self._others) - size, added)
            total += share * sum(self._probabilities.get(start, 0.0) for start in combinations(parents, size))
        return total
