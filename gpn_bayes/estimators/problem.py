"""The problem that score-based learners solve: scores to maximise, and which edges may, must and must not be there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpn_bayes import scores
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.data import Dataset, SufficientStatistics, read_complete
from gpn_bayes.posterior.impossible_pairs import impossible_pairs
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior

# With more variables than this, greedy searches unasked take at most one parent for this many rows, but at least this
# many parents.
_SMALL, _ROWS_PER_PARENT, _FEW = 16, 10, 3


@dataclass(frozen=True, eq=False)
class Problem:
    """A checked problem.

    Attributes
    ----------
    data : Dataset or SufficientStatistics
        The data.
    store : ScoreCache
        The scores, remembered.
    prior : GraphPrior
        Holds `required` and `forbidden` as matrices, rows parents; it gives no weight to anything else.
    max_parents : int
        Maximum number of parents per node. By default all others; where scores are slow, as many as the score takes by
        itself.
    greedy_limit : int
        How many parents a greedy search gives a node: as many; but beyond 16 variables, unless the user stated a limit,
        one per ten rows (or 3). With nearly as many parents as rows, BIC praises noise without end.
    stated : bool
        Whether the user gave that limit. It is then part of the model, and otherwise of the search.
    impossible_pairs : list of (int, int)
        The pairs that the score and the constraints together leave without an edge in either direction.
    """

    data: Dataset | SufficientStatistics
    store: ScoreCache
    prior: GraphPrior
    max_parents: int
    stated: bool = True
    impossible_pairs: Sequence[tuple[int, int]] = ()

    @property
    def greedy_limit(self) -> int:
        """How many parents a greedy search gives a node."""
        if self.stated:
            return self.max_parents
        beyond = max(self.data.n_rows // _ROWS_PER_PARENT, _FEW) if self.n > _SMALL else self.n
        return min(self.max_parents, max(beyond, int(self.prior.required.sum(axis=0).max())))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.store.scorer.names

    @property
    def n(self) -> int:
        """Their number."""
        return len(self.names)

    def allowed(self, node: int) -> list[int]:
        """Return the parents a node may have, by index."""
        return np.flatnonzero(~self.prior.forbidden[:, node]).tolist()

    def required(self, node: int) -> list[int]:
        """Return the parents a node must have, by index."""
        return np.flatnonzero(self.prior.required[:, node]).tolist()

    def local(self, node: int, parents: Any) -> float:
        """Return log S(node | parents), by index, from memory where it is known."""
        return self.store.get(node, (int(parent) for parent in parents))

    def total(self, adjacency: Adjacency) -> float:
        """Return the score of a DAG."""
        return sum(self.local(i, np.flatnonzero(adjacency[:, i])) for i in range(self.n))

    def edge_gains(self, adjacency: Adjacency) -> Floats:
        """Return by how much the score of a DAG would fall without each of its edges; 0 where there is none."""
        gains = np.zeros(adjacency.shape)
        for i in range(self.n):
            parents = np.flatnonzero(adjacency[:, i]).tolist()
            for parent in parents:
                rest = [other for other in parents if other != parent]
                gains[parent, i] = self.local(i, parents) - self.local(i, rest)
        return gains


def read_problem(
    data: Any, score: Any, max_parents: int | None = None, required: Any = (), forbidden: Any = (), tiers: Any = None
) -> Problem:
    """Check what a learner was asked for.

    Raises
    ------
    ValueError
        For data that the score can't take, edges that contradict each other, or a limit below the required parents.
    """
    score = scores.by_name(score)
    checked = read_complete(data, declared=score.declared)
    scorer = score.bind(checked)
    known = GraphPrior(scorer.names, required=required, forbidden=forbidden, tiers=tiers)
    prior = known.without(scorer.impossible)
    n = len(scorer.names)
    stated = max_parents is not None
    if max_parents is None:
        # What large sets take matters where each is slow; those of closed forms are only many, and few are asked for.
        slow = None if scorer.closed_form else scorer.default_max_parents
        max_parents = max(n - 1 if slow is None else slow, int(prior.required.sum(axis=0).max()))
    prior.check_max_parents(max_parents)
    pairs = [(i, j) for i, j in impossible_pairs(scorer.impossible, known.forbidden)]
    return Problem(checked, ScoreCache(scorer), prior, min(int(max_parents), n - 1), stated, pairs)
