"""Which parent sets are worth a score where scores are slow: those that count beside the DAGs that were drawn.

In a DAG, a node may swap its parents for any set of nodes that aren't its descendants, its context. Given the rest of
the DAG, a set S of the context then has probability exp(s(S)) / Z, where s is the log score with the prior and Z sums
exp(s) over all sets of the context. From a set whose probability counts in some context drawn, sets grow that are one
node smaller, and those one node larger unless that node lowered the scores of similar sets by too much to matter. This
goes on until no set is left to add, and again for the DAGs drawn under what has been scored by then.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from gpn_bayes import graphs
from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling.slow_scores.corrected_proposal import CorrectedProposal
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.workers import ParentSet

# The log of the smallest probability that counts. Nearby sets gain about as much by a further parent: within this.
LOG_NEGLIGIBLE = np.log(1e-3)
_SLACK = 2.0
# At first, where all nodes are in the context, only the best sets grow: they are one forward selection.
_LOG_BEST = np.log(0.3) + _SLACK
# A parent from outside the context, which takes another DAG, must be added to a set more probable by this, in nats.
_ELSEWHERE = 4.0
# Of a set of as many parents as there may be, one is replaced if the set has at least this log probability.
_LOG_FULL = np.log(0.05)
# DAGs whose contexts are looked at.
_MAX_DAGS = 200


class Contexts(NamedTuple):
    """The distinct sets of nodes that may be parents of a node in some DAGs.

    Attributes
    ----------
    nodes : ndarray of bool, shape (context, n)
        Which nodes are in each.
    weights : ndarray
        The share of the DAGs that has each.
    """

    nodes: Bools
    weights: Floats


def drawn_contexts(parents: np.ndarray) -> list[Contexts]:
    """Return the contexts of every node in DAGs, evenly spaced ones where there are many.

    Parameters
    ----------
    parents : ndarray of uint64, shape (..., node, words)
        The DAGs as parent bits.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> [own.nodes.astype(int).tolist() for own in drawn_contexts(graphs.pack(chain[None]))]
    [[[0, 0, 0]], [[1, 0, 0]], [[1, 1, 0]]]
    """
    dags = parents.reshape(-1, *parents.shape[-2:])
    n = dags.shape[1]
    chosen = dags[np.unique(np.linspace(0, len(dags) - 1, _MAX_DAGS).astype(int))]
    free = ~graphs.ancestors(graphs.unpack(chosen, n)) & ~np.eye(n, dtype=bool)
    return [_distinct(free[:, i]) for i in range(n)]


def _distinct(rows: Bools) -> Contexts:
    nodes, counts = np.unique(rows, axis=0, return_counts=True)
    return Contexts(nodes, counts / counts.sum())


class NodeSets:
    """The scored parent sets of a node.

    Parameters
    ----------
    n : int
        Number of variables.
    """

    def __init__(self, n: int) -> None:
        self.places: dict[ParentSet, int] = {}
        self.scores: Floats = np.empty(0)
        self._members: Bools = np.empty((0, n), dtype=bool)

    def append(self, sets: Sequence[ParentSet], scores: Floats) -> None:
        """Add sets that aren't there yet, with their log scores, prior included."""
        rows = np.zeros((len(sets), self._members.shape[1]), dtype=bool)
        for row, parents in zip(rows, sets, strict=True):
            row[list(parents)] = True
        self.places.update({parents: len(self.places) + k for k, parents in enumerate(sets)})
        self.scores = np.concatenate([self.scores, scores])
        self._members = np.concatenate([self._members, rows])

    def log_probabilities(self, contexts: Contexts) -> tuple[Floats, Floats]:
        """Return the log probability of each set in each context, and the log of each context's sum."""
        # In whole numbers matrix products are slow.
        outside = self._members.astype(np.float32) @ (~contexts.nodes).T.astype(np.float32)
        inside = np.where(outside == 0, self.scores[:, None], -np.inf)
        log_z: Floats = logsumexp(inside, axis=0)
        return inside - log_z, log_z

    def worth_scoring(self, contexts: Contexts, limit: int, log_negligible: float) -> Iterator[ParentSet]:
        """Yield sets, with a score or without, that are one node smaller or larger than one that counts.

        Parameters
        ----------
        contexts : Contexts
            Where it counts.
        limit : int
            Largest number of parents; in a set of as many, one is replaced.
        log_negligible : float
            The log of the smallest probability that counts.
        """
        log_p, _ = self.log_probabilities(contexts)
        highest = log_p.max(axis=1, initial=-np.inf)
        gains = self._gains()
        for k, parents in enumerate(self.places):
            if highest[k] < log_negligible - _SLACK:
                continue
            smaller = [parents[:b] + parents[b + 1 :] for b in range(len(parents))]
            if highest[k] >= log_negligible:
                yield from smaller
            within = np.where(contexts.nodes, log_p[k][:, None], -np.inf).max(axis=0)
            reach = np.maximum(within, highest[k] - _ELSEWHERE)
            replaced = smaller if highest[k] >= _LOG_FULL else []
            for fewer in [parents] if len(parents) < limit else replaced:
                worth = reach + self._gain_nearby(fewer, gains) + _SLACK >= log_negligible
                yield from (tuple(sorted((*fewer, j))) for j in np.flatnonzero(worth).tolist() if j not in fewer)

    def _gains(self) -> Floats:
        """Return by how much each node raises the score of each set; NaN where that isn't known."""
        gains = np.full(self._members.shape, np.nan)
        for parents, place in self.places.items():
            for b, parent in enumerate(parents):
                without = self.places.get(parents[:b] + parents[b + 1 :])
                if without is not None:
                    gains[without, parent] = self.scores[place] - self.scores[without]
        return gains

    def _gain_nearby(self, parents: ParentSet, gains: Floats) -> Floats:
        """Return the most that each node gained at sets that differ by one node; 0 if more, or if nothing is known."""
        common = self._members[:, list(parents)].sum(axis=1)
        near = gains[self._members.sum(axis=1) + len(parents) - 2 * common == 1]
        most: Floats = np.where(np.isnan(near), -np.inf, near).max(axis=0, initial=-np.inf)
        return np.where(most == -np.inf, 0.0, np.minimum(most, 0.0))


@dataclass
class ScoredSets:
    """The scored parent sets of all nodes, and their growth.

    Parameters
    ----------
    store : ScoreCache
        The scores.
    prior : GraphPrior
        The prior, added to them.
    executor : Executor, optional
        Where to compute scores.
    progressbar : bool
        Whether to show progress.
    """

    store: ScoreCache
    prior: GraphPrior
    executor: Executor | None = None
    progressbar: bool = True
    nodes: list[NodeSets] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without any set."""
        n = len(self.prior.names)
        self.nodes = [NodeSets(n) for _ in range(n)]

    @property
    def counts(self) -> list[int]:
        """The number of scored sets of each node."""
        return [len(own.places) for own in self.nodes]

    def begin(self, space: ParentSpace) -> None:
        """Score the empty set, every single parent, and what grows from the best of them where all may be parents.

        Required parents are in every set.
        """
        n = len(self.nodes)
        required = [tuple(np.flatnonzero(column).tolist()) for column in self.prior.required.T]
        begun = ((i, {*own, *more}) for i, own in enumerate(required) for more in [(), *((j,) for j in range(n))])
        self.add((i, parents) for i, parents in begun if space.holds(i, parents))
        self.extend(space, [_distinct(row[None]) for row in ~np.eye(n, dtype=bool)], _LOG_BEST)

    def extend(self, space: ParentSpace, contexts: Sequence[Contexts], log_negligible: float = LOG_NEGLIGIBLE) -> float:
        """Score what is worth it in the contexts, and what grows from that.

        Parameters
        ----------
        space : ParentSpace
            Sets that it doesn't hold aren't scored.
        contexts : sequence of Contexts
            Those of every node.
        log_negligible : float
            The log of the smallest probability that counts.

        Returns
        -------
        float
            How many nodes have a set scored here in a DAG, on average over the contexts.
        """
        before = self.counts
        while self.add(self._worth_scoring(space, contexts, log_negligible)):
            pass
        gained = 0.0
        for own, known, context in zip(self.nodes, before, contexts, strict=True):
            gained += float((np.exp(own.log_probabilities(context)[0][known:]).sum(axis=0) * context.weights).sum())
        return gained

    def drawn_since(self, parents: np.ndarray, counts: Sequence[int]) -> float:
        """Return how many nodes of a DAG, on average over draws, have a set that was scored since some time.

        Parameters
        ----------
        parents : ndarray of uint64, shape (chain, draw, node, words)
            The DAGs as parent bits.
        counts : sequence of int
            How many scored sets each node had then.
        """
        sets = drawn_sets(parents)
        later = np.array([self.nodes[i].places[own] >= counts[i] for i, own in sets.keys])
        return float(later[sets.places].sum(axis=-1).mean())

    def add(self, requests: Iterable[tuple[int, Iterable[int]]]) -> int:
        """Score sets that have no score yet and that the prior allows; return how many these are."""
        fresh: dict[int, dict[ParentSet, float]] = {}
        for i, members in requests:
            parents = tuple(sorted(set(members)))
            if i in parents or parents in self.nodes[i].places or parents in fresh.get(i, ()):
                continue
            if self.prior.required[:, i].sum() == self.prior.required[list(parents), i].sum():
                log_prior = float(self.prior.log_table(i, parents)[-1])
                if log_prior > -np.inf:
                    fresh.setdefault(i, {})[parents] = log_prior
        self.store.fill(((i, parents) for i, own in fresh.items() for parents in own), self.executor, self.progressbar)
        for i, own in fresh.items():
            self.nodes[i].append(list(own), self.store.values(i, list(own)) + list(own.values()))
        return sum(map(len, fresh.values()))

    def table(self, space: ParentSpace, i: int, correction: CorrectedProposal | None = None) -> tuple[Floats, Floats]:
        """Return the scores of all sets of a node's candidates, and with each parent from outside.

        Sets that have no score have minus infinity.

        Parameters
        ----------
        space : ParentSpace
            The candidates, and those outside.
        i : int
            The node.
        correction : CorrectedProposal, optional
            What to add to the scores.
        """
        own, others = space.lists[i], space.outside[i]
        bits = {j: 1 << b for b, j in enumerate(own)}
        rows = {j: row for row, j in enumerate(others)}
        table = np.full(1 << len(own), -np.inf)
        beside = np.full((len(others), len(table)), -np.inf)
        node = self.nodes[i]
        scores = node.scores
        if correction is not None:
            scores = scores + correction.corrections(i, list(node.places))
        for parents, score in zip(node.places, scores.tolist(), strict=True):
            if space.holds(i, set(parents)):
                mask = sum(bits.get(j, 0) for j in parents)
                outside = [rows[j] for j in parents if j not in bits]
                if outside:
                    beside[outside[0], mask] = score
                else:
                    table[mask] = score
        return table, beside

    def _worth_scoring(
        self, space: ParentSpace, contexts: Sequence[Contexts], log_negligible: float
    ) -> Iterator[tuple[int, ParentSet]]:
        limit = space.max_parents or len(self.nodes)
        for i, (own, context) in enumerate(zip(self.nodes, contexts, strict=True)):
            sets = own.worth_scoring(context, limit, log_negligible)
            yield from ((i, parents) for parents in sets if space.holds(i, set(parents)))
