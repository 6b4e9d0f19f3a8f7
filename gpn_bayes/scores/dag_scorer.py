"""The log score of whole DAGs under a posterior: the score of every node, and the graph prior."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpn_bayes._util.types import Adjacency
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.prior import GraphPrior


def refuse_gaps(data: Dataset | SufficientStatistics) -> None:
    """Refuse to answer from one table what depends on missing values, of which a posterior has many draws."""
    if data.missing is not None:
        raise ValueError(
            f"this needs a complete table, and {data.missing.sum()} of its values are missing; post.imputed() gives "
            "completed tables: sample each with its own run, and average the answers"
        )


@dataclass(eq=False)
class DagScorer:
    """Gives any DAG the log score that draws of a posterior have, graph prior included.

    Parameters
    ----------
    score : Score
        The score of a node given its parents.
    prior : GraphPrior
        The graph prior.
    data : Dataset or SufficientStatistics, optional
        What to score; None where a file was saved without it.

    Examples
    --------
    >>> from gpn_bayes import Dataset, datasets, scores
    >>> table = Dataset.read(datasets.sachs(transform="log2")[["raf", "mek", "erk"]])
    >>> scorer = DagScorer(scores.BGe(), GraphPrior(table.names, required=[("raf", "mek")]), table)
    >>> round(scorer(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])), 1), scorer(np.zeros((3, 3)))
    (-3388.3, -inf)
    """

    score: Score
    prior: GraphPrior
    data: Dataset | SufficientStatistics | None = None

    @classmethod
    def of(cls, scorer: Scorer, prior: GraphPrior, data: Dataset | SufficientStatistics) -> "DagScorer":
        """Return one around a scorer that is bound to the data already."""
        made = cls(scorer.score, prior, data)
        made.__dict__["scorer"] = scorer
        return made

    @cached_property
    def scorer(self) -> Scorer:
        """The score bound to the data, when it is first needed: preparing the rows may take seconds."""
        if self.data is None:
            raise ValueError("scores need the data, and this posterior was saved without them; sample again")
        refuse_gaps(self.data)
        return self.score.bind(self.data)

    def __call__(self, adjacency: Adjacency) -> float:
        """Return the log score of a DAG, minus infinity where a required edge is missing or a forbidden one there."""
        if (self.prior.required & (adjacency == 0)).any():
            return -np.inf
        total = self.scorer.total(adjacency)
        for i in range(len(self.prior.names)):
            total += float(self.prior.log_table(i, np.flatnonzero(adjacency[:, i]).tolist())[-1])
        return total
