"""A closer proposal: the target scores of parent sets that were drawn, and proposal scores on their level elsewhere."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling.predicted_scores import often_drawn
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.workers import ParentSet


class Proposal(Protocol):
    """Scores that DAGs are drawn under."""

    def values(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return the scores of some parent sets of a node."""
        ...


class CorrectedProposal:
    """The proposal score with the gap to the target score added: a set's own, or its node's mean over the draws.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, node, words)
        DAGs drawn under the proposal score.
    proposal, target : ScoreCache
        The scores; the target scores of sets that were drawn often must be known.
    """

    def __init__(self, parents: np.ndarray, proposal: ScoreCache, target: ScoreCache) -> None:
        sets = drawn_sets(parents)
        counts = np.bincount(sets.places.ravel(), minlength=len(sets.keys))
        self._proposal = proposal
        self._gaps: list[dict[ParentSet, float]] = [{} for _ in proposal.scorer.names]
        totals = np.zeros((len(self._gaps), 2))
        for (i, own), often, count in zip(sets.keys, often_drawn(sets), counts.tolist(), strict=True):
            gap = target.get(i, own) - proposal.get(i, own) if often else np.nan
            if np.isfinite(gap):
                self._gaps[i][own] = gap
                totals[i] += count * gap, count
        self._usual = totals[:, 0] / np.maximum(totals[:, 1], 1)

    def values(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return the corrected scores of some parent sets of a node."""
        return self._proposal.values(node, sets) + self.corrections(node, sets)

    def corrections(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return what is added to the proposal scores of some parent sets of a node."""
        gaps, usual = self._gaps[node], float(self._usual[node])
        return np.array([gaps.get(parents, usual) for parents in sets])
