"""A closer proposal: the target scores of parent sets that were drawn, and proposal scores on their level elsewhere."""

from collections.abc import Sequence

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling.slow_scores.predicted_scores import often_drawn, ridge
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.workers import ParentSet


class CorrectedProposal:
    """The proposal score with the gap to the target score added: a set's own, or one predicted from those of others.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, node, words)
        DAGs drawn under the proposal score.
    proposal, target : ScoreCache
        The scores. Those of sets that were drawn often are taken for known, and computed where they aren't.
    """

    def __init__(self, parents: np.ndarray, proposal: ScoreCache, target: ScoreCache) -> None:
        self._proposal = proposal
        self._gaps: list[dict[ParentSet, float]] = [{} for _ in proposal.scorer.names]
        sets = drawn_sets(parents)
        for (i, own), often in zip(sets.keys, often_drawn(sets), strict=True):
            gap = target.get(i, own) - proposal.get(i, own) if often else np.nan
            if np.isfinite(gap):
                self._gaps[i][own] = gap

    def values(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return the corrected scores of some parent sets of a node."""
        return self._proposal.values(node, sets) + self.corrections(node, sets)

    def corrections(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return what is added to the proposal scores of some parent sets of a node."""
        gaps = self._gaps[node]
        if not gaps:
            return np.zeros(len(sets))
        n = len(self._gaps)
        predicted, _ = ridge(_indicators(list(gaps), n), np.array(list(gaps.values())), _indicators(sets, n))
        return np.array([gaps.get(parents, guess) for parents, guess in zip(sets, predicted.tolist(), strict=True)])


def _indicators(sets: Sequence[ParentSet], n: int) -> Floats:
    """Return which nodes are in each set, as zeros and ones."""
    rows = np.zeros((len(sets), n))
    for row, parents in zip(rows, sets, strict=True):
        row[list(parents)] = 1.0
    return rows
