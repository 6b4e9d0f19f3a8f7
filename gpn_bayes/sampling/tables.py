"""From scores to the samplers' tables: all parent sets of a search space, or those worth a score, prior included."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from gpn_bayes._util.progress import progress_bar
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.kernels.graphs.subsets import members_of
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.sampling.slow_scores.corrected_proposal import CorrectedProposal
from gpn_bayes.sampling.slow_scores.scored_sets import ScoredSets
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.workers import ParentSet

# Closed-form scores are stored up to here; beyond, computing them again is quicker than reading them.
_MAX_STORED_CLOSED_FORM = 200_000

# Of scores without a closed form, all are computed where there are no more than this; else those that count.
MAX_ALL_SLOW = 1000


@dataclass
class Tabulator:
    """Makes tables of one score and prior, and remembers those of nodes whose space stays as it was.

    Parameters
    ----------
    store : ScoreCache
        The scores.
    prior : GraphPrior
        The prior, added to them.
    executor : Executor, optional
        Where to compute scores that have no closed form.
    progressbar : bool
        Whether to show progress.
    """

    store: ScoreCache
    prior: GraphPrior
    executor: Executor | None = None
    progressbar: bool = True
    scored: ScoredSets = field(init=False)
    _known: dict[int, tuple[object, np.ndarray, np.ndarray]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin without any set."""
        self.scored = ScoredSets(self.store, self.prior, self.executor, self.progressbar)

    def leaves_out(self, space: ParentSpace) -> bool:
        """Return whether the tables of a space hold only those of its sets that are worth a score.

        They do so for good once those of an earlier space did.
        """
        return any(self.scored.counts) or (not self.store.scorer.closed_form and space.size > MAX_ALL_SLOW)

    def tables(
        self, space: ParentSpace, power: float = 1.0, correction: CorrectedProposal | None = None
    ) -> ScoreTables:
        """Return the tables of a space.

        Parameters
        ----------
        space : ParentSpace
            The space.
        power : float
            The power of scores and prior.
        correction : CorrectedProposal, optional
            What to add to the scores, where not all sets have one.
        """
        if self.leaves_out(space):
            if not any(self.scored.counts):
                self.scored.begin(space)
            parts = [self.scored.table(space, i, correction) for i in range(len(space.lists))]
        else:
            parts = self._full_tables(space)
        for name, (own, _) in zip(self.store.scorer.names, parts, strict=True):
            if not np.isfinite(own).any():
                raise ValueError(f"every variable must have a finite score for some parent set; {name!r} has none")
        if power != 1.0:
            parts = [(power * own, power * beside) for own, beside in parts]
        with progress_bar("Summing", 1.0, self.progressbar and any(space.outside)) as advance:
            # In wide spaces it takes long, so that it is named.
            advance(0.0)
            tables = build_tables(
                space.lists, [own for own, _ in parts], space.outside, [beside for _, beside in parts]
            )
            advance(1.0)
        return tables

    def _full_tables(self, space: ParentSpace) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the scores of all sets of each node: of its candidates, and with each parent from outside."""
        stale = [i for i in range(len(space.lists)) if i not in self._known or self._known[i][0] != _key(space, i)]
        if self._closed_form(space):
            self._compute(space, stale)
        else:
            requests = ((i, parents) for i in stale for parents in _sets(space, i))
            self.store.fill(requests, self.executor, self.progressbar)
            for i in stale:
                self._known[i] = (_key(space, i), self._look_up(space, i), self._look_up_beside(space, i))
        return [self._known[i][1:] for i in range(len(space.lists))]

    def _closed_form(self, space: ParentSpace) -> bool:
        wanted = sum((1 + len(others)) << len(own) for own, others in zip(space.lists, space.outside, strict=True))
        storing = self.store.connection is not None and wanted <= _MAX_STORED_CLOSED_FORM
        return self.store.scorer.closed_form and not storing

    def _compute(self, space: ParentSpace, nodes: Sequence[int]) -> None:
        """Compute whole tables, in threads: compiled code lets go of the interpreter."""
        sizes = {i: (1 + len(space.outside[i])) << len(space.lists[i]) for i in nodes}
        with (
            progress_bar("Scoring", sum(sizes.values()), self.progressbar and any(space.outside)) as advance,
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            for i, scores in zip(nodes, pool.map(lambda i: self._table(space, i), nodes), strict=True):
                self._known[i] = (_key(space, i), *scores)
                advance(sizes[i])

    def _table(self, space: ParentSpace, i: int) -> tuple[np.ndarray, np.ndarray]:
        scorer, own, others = self.store.scorer, space.lists[i], space.outside[i]
        table = scorer.table(i, own, space.limit(i)) + self.prior.log_table(i, own)
        beside = np.full((len(others), len(table)), -np.inf)
        if space.limit_beside(i) >= 0:
            for row, j in zip(beside, others, strict=True):
                scores = scorer.table_with(i, own, j, space.limit_beside(i) + 1)
                row[:] = scores + self.prior.log_table(i, [*own, j])[len(table) :]
        return table, beside

    def _look_up(self, space: ParentSpace, i: int) -> np.ndarray:
        """Return the scores of a node's sets of candidates."""
        own = space.lists[i]
        table = np.full(1 << len(own), -np.inf)
        sets = _subsets(own, space.limit(i))
        table[list(sets)] = self.store.values(i, list(sets.values()))
        return table + self.prior.log_table(i, own)

    def _look_up_beside(self, space: ParentSpace, i: int) -> np.ndarray:
        """Return the scores of a node's sets of candidates with each parent from outside."""
        own, others = space.lists[i], space.outside[i]
        beside = np.full((len(others), 1 << len(own)), -np.inf)
        sets = _subsets(own, space.limit_beside(i))
        for row, j in zip(beside, others, strict=True):
            values = self.store.values(i, [_with(j, parents) for parents in sets.values()])
            row[list(sets)] = values + self.prior.log_table(i, [*own, j])[1 << len(own) :][list(sets)]
        return beside


def _key(space: ParentSpace, i: int) -> object:
    return space.lists[i], space.outside[i], space.limit(i), space.limit_beside(i)


def _sets(space: ParentSpace, i: int) -> Iterator[ParentSet]:
    """Yield all parent sets of a node."""
    yield from _subsets(space.lists[i], space.limit(i)).values()
    beside = _subsets(space.lists[i], space.limit_beside(i)).values()
    yield from (_with(j, parents) for j in space.outside[i] for parents in beside)


def _with(j: int, parents: ParentSet) -> ParentSet:
    return tuple(sorted((*parents, j)))


def _subsets(chosen: Sequence[int], limit: int) -> dict[int, ParentSet]:
    """Return the subsets of at most `limit` candidates, by local mask."""
    return {
        mask: tuple(chosen[bit] for bit in members_of(mask))
        for mask in range(1 << len(chosen))
        if mask.bit_count() <= limit
    }
