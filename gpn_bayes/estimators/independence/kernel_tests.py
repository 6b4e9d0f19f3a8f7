"""Tests that see any kind of dependence: HSIC and distance correlation of residuals."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from gpn_bayes._util.checks import check_choice, check_count
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Data
from gpn_bayes.estimators.independence.base import BoundTest, ConditionalIndependenceTest, Nodes
from gpn_bayes.estimators.independence.residuals import REMEMBERED, Regression
from gpn_bayes.kernels.independence.dependence import (
    centred_distances,
    centred_gaussian,
    permuted_sums,
    product_sum,
    traces,
)

NULLS = ("gamma", "permutation")
# The moments of a permuted statistic divide by the number of rows less three.
MIN_ROWS = 5
# Residuals with less than this share of the variance are rounding, and what else a smooth curve leaves of a copy.
_DETERMINED = 1e-6


class _KernelTest(ConditionalIndependenceTest):
    """Dependence of the residuals of two variables given others; a subclass says how alike two residuals are.

    Parameters
    ----------
    null : {"gamma", "permutation"}
        What the statistic is compared with: a shifted gamma distribution with the mean and variance that it has over
        all permutations of the rows and the skewness that it has with many rows, or some of these permutations.
    permutations : int
        How many, the same for all tests.
    """

    def __init__(self, null: str = "gamma", permutations: int = 199) -> None:
        check_choice("null", null, NULLS)
        check_count("permutations", permutations, 1)
        self.null = null
        self.permutations = permutations

    @staticmethod
    @abstractmethod
    def _similarity(values: Floats) -> Floats:
        """Return how alike the rows are by one variable, as a centred matrix."""

    def _bind(self, data: Data, rng: np.random.Generator) -> BoundTest:
        values = data.with_rows(f"{type(self).__name__} needs the rows").numeric(type(self).__name__)
        if len(values) < MIN_ROWS:
            raise ValueError(f"{type(self).__name__} needs at least {MIN_ROWS} rows; received {len(values)}")
        orders = None
        if self.null == "permutation":
            orders = rng.permuted(np.tile(np.arange(len(values)), (self.permutations, 1)), axis=1)
        return _BoundKernelTest(data.names, Regression(values), type(self)._similarity, orders)


class HSIC(_KernelTest):
    """The Hilbert-Schmidt independence criterion of residuals, with Gaussian kernels as wide as the median distance.

    Two variables are tested given others by what Gaussian-process regressions on these leave of them (see
    `residuals.Regression`), which is right where noise is added to a smooth function of the others. It may miss a
    dependence that is only there given a common effect, since a mean that doesn't change with the effect leaves all.

    Parameters
    ----------
    null : {"gamma", "permutation"}
        What the statistic is compared with: a shifted gamma distribution with the mean and variance that it has over
        all permutations of the rows and the skewness that it has with many rows, or some of these permutations.
    permutations : int
        How many, the same for all tests.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=(100, 2))
    >>> x[:, 1] += x[:, 0] ** 2
    >>> HSIC().bind(x).p_value("v1", "v2") < 0.001
    True
    """

    _similarity = staticmethod(centred_gaussian)


class DistanceCorrelation(_KernelTest):
    """The distance correlation of residuals; a parameter-free relative of `HSIC`, with the same parameters.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=(100, 2))
    >>> x[:, 1] += x[:, 0] ** 2
    >>> DistanceCorrelation().bind(x).p_value("v1", "v2") < 0.001
    True
    """

    _similarity = staticmethod(centred_distances)


class _Similarity(NamedTuple):
    """A centred similarity matrix; its trace, that of its square, and the sum of its squared diagonal; its skewness."""

    matrix: np.ndarray
    traces: tuple[float, float, float]
    skewness: float


class _BoundKernelTest(BoundTest):
    def __init__(
        self,
        names: tuple[str, ...],
        regression: Regression,
        similarity: Callable[[np.ndarray], np.ndarray],
        permutations: Ints | None,
    ) -> None:
        super().__init__(names)
        self.regression = regression
        self.similarity = similarity
        self.permutations = permutations
        rows = len(regression.residuals(0, ()))
        self._similar = lru_cache(max(REMEMBERED // rows**2, 4))(self._find_similarity)

    def _find_similarity(self, target: int, given: Nodes) -> _Similarity | None:
        """Return how alike the rows are in a variable's residuals; None where nothing is left of it."""
        left = self.regression.residuals(target, given)
        if left.var() < _DETERMINED:
            return None
        matrix = self.similarity(left)
        sums = traces(matrix)
        skewness = product_sum(matrix @ matrix, matrix) / sums[1] ** 1.5 if self.permutations is None else math.nan
        return _Similarity(matrix, sums, skewness)

    def _p_value(self, x: int, y: int, given: Nodes) -> float:
        first, second = self._similar(x, given), self._similar(y, given)
        if first is None or second is None:
            return math.nan
        statistic = product_sum(first.matrix, second.matrix)
        if self.permutations is not None:
            others = permuted_sums(first.matrix, second.matrix, self.permutations)
            # A permutation may repeat the rows' own order: sums that differ by rounding are the same.
            reached = np.count_nonzero(others >= statistic * (1 - 1e-12))
            return float((1 + reached) / (1 + len(others)))
        mean, variance = permutation_moments(first.traces, second.traces, len(first.matrix))
        # With many rows the statistic is a sum of independent squared normals, weighted by products of eigenvalues.
        shape = 2 / (first.skewness * second.skewness) ** 2
        return float(gammaincc(shape, max(shape + math.sqrt(shape / variance) * (statistic - mean), 0.0)))


def permutation_moments(
    first: tuple[float, float, float], second: tuple[float, float, float], n: int
) -> tuple[float, float]:
    """Return mean and variance of sum_ij A_ij B_p(i)p(j) over all permutations p of n (Kazi-Aoual et al. 1995).

    Parameters
    ----------
    first, second : tuple of float
        Of the centred matrices A and B: the trace, that of the square, and the sum of the squared diagonal.
    n : int
        Their size, at least 4.
    """
    (a, a2, a_diagonal), (b, b2, b_diagonal) = first, second
    spread = ((n - 1) * a2 - a**2) * ((n - 1) * b2 - b**2) * 2 / ((n - 1) ** 2 * (n + 1) * (n - 2))
    ends = (n * (n + 1) * a_diagonal - (n - 1) * (a**2 + 2 * a2)) * (
        n * (n + 1) * b_diagonal - (n - 1) * (b**2 + 2 * b2)
    )
    return a * b / (n - 1), spread + ends / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
