"""The lasso score: how well a sparse regression on the parents does, to compare NOTEARS with the exact best."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpn_bayes._util.checks import check_not_negative
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Data, Dataset, SufficientStatistics, refuse_interventions, statistics_of
from gpn_bayes.kernels.learners.lasso import lasso_sets, lasso_space, lasso_table
from gpn_bayes.scores.assumptions import LEAST_SQUARES
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets


class Lasso(Score):
    r"""Minus the minimum of a lasso regression on the parents, of centred columns in their original units:

    .. math:: -\min_w \tfrac{1}{2n} \lVert x_i - X_P w \rVert^2 + \lambda \lVert w \rVert_1.

    The DAG with the highest sum has the least F of NOTEARS, minus that sum. It isn't a likelihood: it depends on units,
    and it never falls as parents are added.

    Parameters
    ----------
    lambda1 : float
        The penalty of a unit of weight.

    Examples
    --------
    >>> x = np.array([1.0, -1.0, 1.0, -1.0])
    >>> scorer = Lasso(lambda1=0.5).bind(np.column_stack([x, 2 * x]))
    >>> scorer.local("v2"), scorer.local("v2", ["v1"])
    (-2.0, -0.875)
    """  # noqa: D400 (the sentence ends with the formula)

    name = "lasso"

    def __init__(self, lambda1: float = 0.1) -> None:
        check_not_negative("lambda1", lambda1)
        self.lambda1 = lambda1

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> Lasso(lambda1=0.5).parameters
        {'lambda1': 0.5}
        """
        return {"lambda1": self.lambda1}

    def _of_groups(self, data: Data) -> "tuple[Lasso, Data]":
        """Refuse groups of rows: the score isn't a likelihood, whose logarithms add up."""
        refuse_interventions(data, "the lasso score")
        return self, data

    def _bind(self, data: Dataset | SufficientStatistics) -> "LassoScorer":
        return LassoScorer(self, statistics_of(data, "the lasso score"), data.fingerprint)


class LassoScorer(Scorer):
    """Lasso scores of one data set; see `Lasso`."""

    closed_form = True
    assumptions = LEAST_SQUARES

    def __init__(self, score: Lasso, statistics: SufficientStatistics, data_fingerprint: str) -> None:
        super().__init__(score, statistics.names, data_fingerprint)
        self.covariance = np.ascontiguousarray(statistics.cov * ((statistics.n - 1) / statistics.n))
        self.lambda1 = float(score.lambda1)

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        padded, sizes = padded_sets(parent_sets)
        values = -lasso_sets(self.covariance, node, padded, sizes, self.lambda1, lasso_space(len(self.names)))
        return ScoreBatch.exact(values)

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        space = lasso_space(len(self.names))
        return -lasso_table(self.covariance, node, candidates, max_parents, self.lambda1, space)
