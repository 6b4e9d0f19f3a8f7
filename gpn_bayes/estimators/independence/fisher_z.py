"""Fisher's z: partial correlations, for Gaussian data."""

import math

import numpy as np
from scipy.special import ndtr

from gpn_bayes._util.types import Bools
from gpn_bayes.candidates.pc_skeleton import Skeleton, pc_skeleton, z_statistic
from gpn_bayes.data import Data, SufficientStatistics, statistics_of
from gpn_bayes.estimators.independence.base import BoundTest, ConditionalIndependenceTest, Nodes
from gpn_bayes.kernels.independence.partial_correlations import DETERMINED


class FisherZ(ConditionalIndependenceTest):
    """Partial correlations by Fisher's z-transform; for linear relations with Gaussian noise.

    It also takes `SufficientStatistics`. Sets that determine one of the variables can't be tested, nor can those that
    leave no degree of freedom.

    Examples
    --------
    >>> from gpn_bayes import SufficientStatistics
    >>> stats = SufficientStatistics(100, [0, 0], [[1, 0.1], [0.1, 1]], ["raf", "mek"])
    >>> round(FisherZ().bind(stats).p_value("raf", "mek"), 3)
    0.323
    """

    takes_weights = True

    def _bind(self, data: Data, rng: np.random.Generator) -> BoundTest:
        return _BoundFisherZ(statistics_of(data, "a covariance"))


class _BoundFisherZ(BoundTest):
    def __init__(self, statistics: SufficientStatistics) -> None:
        super().__init__(statistics.names)
        self.correlation = statistics.correlation
        self.n_rows = statistics.n

    def _p_value(self, x: int, y: int, given: Nodes) -> float:
        freedom = self.n_rows - len(given) - 3
        chosen = [x, y, *given]
        left = self.correlation[np.ix_(chosen, chosen)]
        # Condition on the last variable, then on the one before it, down to the two.
        for k in range(len(chosen) - 1, 1, -1):
            if left[k, k] < DETERMINED:
                return math.nan
            left = left[:k, :k] - np.outer(left[:k, k], left[:k, k]) / left[k, k]
        if freedom < 1 or min(left[0, 0], left[1, 1]) < DETERMINED:
            return math.nan
        return float(2 * ndtr(-z_statistic(left[0, 1] ** 2 / (left[0, 0] * left[1, 1]), freedom)))

    def skeleton(
        self, alpha: float, max_conditioning: int | None, kept: Bools, apart: Bools, progressbar: bool = False
    ) -> Skeleton:
        """Return the skeleton; all sets of a level are gone through in compiled code."""
        return pc_skeleton(self.correlation, self.n_rows, alpha, max_conditioning, kept=kept, apart=apart)
