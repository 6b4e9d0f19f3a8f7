"""Which variables the experiments of unknown targets changed, averaged over DAGs."""

from collections.abc import Callable

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.data import UnknownTargets
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.scores.base import GroupedScorer
from gpn_bayes.scores.dag_scorer import DagScorer

# Parent sets that are less probable tell nothing.
_NEGLIGIBLE = 1e-10

Key = tuple[int, tuple[int, ...]]


class TargetAnswers:
    """The probabilities that contexts changed variables, given their parents.

    Parameters
    ----------
    scorer : callable
        That of a posterior.

    Raises
    ------
    ValueError
        If the posterior is not one of unknown targets.
    """

    def __init__(self, scorer: Callable[[Adjacency], float] | None) -> None:
        found = scorer.scorer if isinstance(scorer, DagScorer) else None
        if not isinstance(found, GroupedScorer) or not isinstance(found.interventions, UnknownTargets):
            raise ValueError("targets are estimated where experiments of unknown targets are given by contexts=")
        self._scorer = found
        self.contexts = found.interventions.contexts[1:]
        self._known: dict[Key, Floats] = {}

    def given(self, keys: list[Key]) -> Floats:
        """Return the probability that each context changed a node, for nodes with parent sets; rows are these."""
        for node in {node for node, _ in keys}:
            sets = [parents for i, parents in keys if i == node and (node, parents) not in self._known]
            for parents, found in zip(sets, self._scorer.change_probabilities(node, sets), strict=True):
                self._known[node, parents] = found[1:]
        return np.array([self._known[key] for key in keys])

    def of_dags(self, dags: Adjacency) -> Floats:
        """Return the probabilities of a stack of DAGs, of shape (dag, contexts x nodes)."""
        keys, places = drawn_sets(graphs.pack(dags)[None])
        found: Floats = np.swapaxes(self.given(keys)[places[0]], 1, 2).reshape(len(dags), -1)
        return found

    def averaged(self, exact: ExactAnswers) -> Floats:
        """Return the probabilities averaged over all DAGs, of shape (contexts x nodes,)."""
        columns = []
        for node, (chosen, probability) in enumerate(zip(exact.candidates, exact.parent_sets, strict=True)):
            masks = np.flatnonzero(probability > _NEGLIGIBLE)
            sets = [tuple(sorted(int(c) for b, c in enumerate(chosen) if mask >> b & 1)) for mask in masks]
            columns.append(probability[masks] @ self.given([(node, parents) for parents in sets]))
        return np.column_stack(columns).reshape(-1)
