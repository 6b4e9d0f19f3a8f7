"""G^2: the likelihood-ratio test of independence in counts, for discrete data."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from gpn_bayes.data import Data
from gpn_bayes.estimators.independence.base import BoundTest, ConditionalIndependenceTest, Nodes
from gpn_bayes.kernels.discrete.row_groups import Counted
from gpn_bayes.kernels.independence.contingency import g_squared
from gpn_bayes.scores.categories import read_categories

# Strata are remembered up to this many numbers: 64 MB.
_REMEMBERED = 8_000_000


class GSquared(ConditionalIndependenceTest):
    """The likelihood-ratio test of discrete variables, against a chi-squared distribution.

    Each configuration of the variables given adds (a - 1)(b - 1) degrees of freedom, where a and b levels of the two
    occur in it. Where there are none left, nothing speaks against independence, and the p-value is 1.

    Parameters
    ----------
    min_rows : float, default 5
        Rows that there must be for every degree of freedom. With fewer the distribution isn't known, and nothing is
        tested: it neither joins nor separates the two.

    Examples
    --------
    >>> import pandas as pd
    >>> table = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [30, 20, 20, 30], axis=0)
    >>> round(GSquared().bind(pd.DataFrame(table, columns=["raf", "mek"])).p_value("raf", "mek"), 4)
    0.0448
    """

    def __init__(self, min_rows: float = 5.0) -> None:
        if not min_rows >= 0:
            raise ValueError(f"min_rows must be 0 or more; received {min_rows}")
        self.min_rows = min_rows

    def _bind(self, data: Data, rng: np.random.Generator) -> BoundTest:
        return _BoundGSquared(read_categories(data), data.names, self.min_rows)


class _Strata(NamedTuple):
    """Rows by the configuration of some variables: the number of each row's, and the rows ordered by it."""

    labels: np.ndarray
    order: np.ndarray
    starts: np.ndarray


class _BoundGSquared(BoundTest):
    def __init__(self, table: Counted, names: tuple[str, ...], min_rows: float) -> None:
        super().__init__(names)
        self.codes = table.codes.astype(np.int32)
        self.weights = table.weights.astype(np.int64)
        self.cardinalities = table.cardinalities.tolist()
        self.least = min_rows
        self.n_rows = int(table.weights.sum())
        self._strata = lru_cache(max(_REMEMBERED // (3 * len(table.weights)), 16))(self._find_strata)

    def _p_value(self, x: int, y: int, given: Nodes) -> float:
        strata = self._strata(given)
        shape = (self.cardinalities[x], self.cardinalities[y])
        statistic, freedom = g_squared(
            self.codes[x], self.codes[y], self.weights, strata.order, strata.starts, shape
        ).tolist()
        if freedom == 0:
            return 1.0
        if self.n_rows < self.least * freedom:
            return math.nan
        return float(chdtrc(freedom, max(statistic, 0.0)))

    def _find_strata(self, given: Nodes) -> _Strata:
        rows = len(self.weights)
        if not given:
            return _Strata(np.zeros(rows, np.int64), np.arange(rows), np.array([0, rows]))
        last = given[-1]
        labels = self._strata(given[:-1]).labels * self.cardinalities[last] + self.codes[last]
        # Numbered anew, so that many variables don't overflow.
        _, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
        return _Strata(labels, np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(counts)]))
