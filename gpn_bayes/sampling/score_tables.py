"""From scores to the samplers' tables: all parent sets of a search space, computed or looked up, prior included."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from gpn_bayes._util.progress import progress_bar
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.kernels.subsets import members_of
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior

# Closed-form scores are stored up to here; beyond, computing them again is quicker than reading them.
_MAX_STORED_CLOSED_FORM = 200_000

# How far the score of a set may be below that of a subset, in nats, to be worth a score with a parent from outside.
LARGEST_LOSS = 5.0

ParentSet = tuple[int, ...]


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
    _known: dict[int, tuple[object, np.ndarray, np.ndarray]] = field(default_factory=dict, init=False)

    def tables(self, space: ParentSpace) -> ScoreTables:
        """Return the tables of a space."""
        stale = [i for i in range(len(space.lists)) if i not in self._known or self._known[i][0] != _key(space, i)]
        if self._closed_form(space):
            self._compute(space, stale)
        else:
            requests = ((i, parents) for i in stale for parents in _subsets(space.lists[i], space.limit(i)).values())
            self.store.fill(requests, self.executor, self.progressbar)
            own = {i: self._look_up(space, i) for i in stale}
            loss = np.inf if self.store.scorer.closed_form else LARGEST_LOSS
            beside = {i: worth_extending(own[i], space.lists[i], space.limit_beside(i), loss) for i in stale}
            requests = ((i, parents) for i in stale for parents in _with_one_from_outside(beside[i], space.outside[i]))
            self.store.fill(requests, self.executor, self.progressbar)
            for i in stale:
                self._known[i] = (_key(space, i), own[i], self._look_up_beside(space, i, beside[i]))
        parts = [self._known[i][1:] for i in range(len(space.lists))]
        return build_tables(space.lists, [own for own, _ in parts], space.outside, [beside for _, beside in parts])

    def _closed_form(self, space: ParentSpace) -> bool:
        wanted = sum((1 + len(others)) << len(own) for own, others in zip(space.lists, space.outside, strict=True))
        storing = self.store.connection is not None and wanted <= _MAX_STORED_CLOSED_FORM
        return self.store.scorer.closed_form and not storing

    def _compute(self, space: ParentSpace, nodes: Sequence[int]) -> None:
        """Compute whole tables, in threads: compiled code lets go of the interpreter."""
        with (
            progress_bar("Scoring", len(nodes), self.progressbar and any(space.outside)) as advance,
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            for i, scores in zip(nodes, pool.map(lambda i: self._table(space, i), nodes), strict=True):
                self._known[i] = (_key(space, i), *scores)
                advance(1)

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

    def _look_up_beside(self, space: ParentSpace, i: int, sets: dict[int, ParentSet]) -> np.ndarray:
        """Return the scores of these sets of candidates with each parent from outside; others aren't drawn."""
        own, others = space.lists[i], space.outside[i]
        beside = np.full((len(others), 1 << len(own)), -np.inf)
        for row, j in zip(beside, others, strict=True):
            values = self.store.values(i, list(_with_one_from_outside(sets, [j])))
            row[list(sets)] = values + self.prior.log_table(i, [*own, j])[1 << len(own) :][list(sets)]
        return beside


def _key(space: ParentSpace, i: int) -> object:
    return space.lists[i], space.outside[i], space.limit(i), space.limit_beside(i)


def worth_extending(
    table: np.ndarray, candidates: Sequence[int], limit: int, loss: float = LARGEST_LOSS
) -> dict[int, ParentSet]:
    """Return the sets of candidates, by local mask, that are worth a score with a parent from outside.

    Left out are sets that a subset exceeds by far. Every order that allows the set allows the subset too, so that a
    parent from outside will be drawn with the subset if at all.

    Parameters
    ----------
    table : ndarray
        The scores of all sets of candidates, prior included, in bitmask order.
    candidates : sequence of int
        The candidates.
    limit : int
        Largest number of them.
    loss : float
        How far, in nats, a score may be below that of a subset.

    Examples
    --------
    >>> worth_extending(np.array([-9.0, -4.0, -10.0, -9.5]), [3, 7], limit=2)
    {0: (), 1: (3,), 2: (7,)}
    """
    best = table.copy()
    for bit in range(len(candidates)):
        # The best score of any subset: over the sets without this candidate, then with it.
        pairs = best.reshape(-1, 2, 1 << bit)
        np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    worth = (table > best - loss) | np.isinf(loss)
    return {mask: members for mask, members in _subsets(candidates, limit).items() if worth[mask]}


def _with_one_from_outside(sets: dict[int, ParentSet], outside: Sequence[int]) -> Iterator[ParentSet]:
    """Yield the sets with each of the outside nodes."""
    for j in outside:
        yield from (tuple(sorted((*parents, j))) for parents in sets.values())


def _subsets(chosen: Sequence[int], limit: int) -> dict[int, ParentSet]:
    """Return the subsets of at most `limit` candidates, by local mask."""
    return {
        mask: tuple(chosen[bit] for bit in members_of(mask))
        for mask in range(1 << len(chosen))
        if mask.bit_count() <= limit
    }
