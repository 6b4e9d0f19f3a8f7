"""BGe: the marginal likelihood of linear-Gaussian networks under a normal-Wishart prior."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.kernels.bge import bge_sets, bge_table
from gpn_bayes.scores.assumptions import EQUIVALENCE, LINEAR, linear_residuals
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets


class BGe(Score):
    """The Bayesian Gaussian equivalent score, on standardised data.

    Geiger & Heckerman (2002), with the correction of Kuipers, Moffa & Heckerman (2014). The prior mean
    is zero and the prior precision's parametric matrix is ``t0`` times the identity.

    Parameters
    ----------
    alpha_mu : float, default 1
        Prior sample size of the mean.
    alpha_w : float, optional
        Degrees of freedom of the Wishart prior, more than n - 1; n + 2 by default.
    t0 : float, optional
        Scale of the parametric matrix T0; alpha_mu (alpha_w - n - 1) / (alpha_mu + 1) by default.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(1).normal(size=(50, 1))
    >>> scorer = BGe().bind(np.hstack([x, x + 0.1 * np.random.default_rng(2).normal(size=(50, 1))]))
    >>> scorer.local("v2", ["v1"]) > scorer.local("v2")
    True
    """

    name = "bge"

    def __init__(self, alpha_mu: float = 1.0, alpha_w: float | None = None, t0: float | None = None) -> None:
        if not alpha_mu > 0:
            raise ValueError(f"alpha_mu must be positive; received {alpha_mu}")
        if t0 is not None and not t0 > 0:
            raise ValueError(f"t0 must be positive; received {t0}")
        self.alpha_mu = alpha_mu
        self.alpha_w = alpha_w
        self.t0 = t0

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> BGe(alpha_mu=0.5).parameters
        {'alpha_mu': 0.5, 'alpha_w': None, 't0': None}
        """
        return {"alpha_mu": self.alpha_mu, "alpha_w": self.alpha_w, "t0": self.t0}

    def _bind(self, data: Dataset | SufficientStatistics) -> "BGeScorer":
        if isinstance(data, Dataset):
            data.numeric("the BGe score")
            statistics = SufficientStatistics.of(data)
        else:
            statistics = data
        return BGeScorer(self, statistics, data.fingerprint)


class BGeScorer(Scorer):
    """BGe scores of one data set; see `BGe`."""

    closed_form = True
    assumptions = (*LINEAR, *EQUIVALENCE)

    def __init__(self, score: BGe, statistics: SufficientStatistics, data_fingerprint: str) -> None:
        super().__init__(score, statistics.names, data_fingerprint)
        n, big_n = len(self.names), statistics.n
        alpha_mu = score.alpha_mu
        alpha_w = n + 2.0 if score.alpha_w is None else score.alpha_w
        if not alpha_w > n - 1:
            raise ValueError(f"alpha_w must be more than n - 1 = {n - 1}; received {alpha_w}")
        t0 = alpha_mu * (alpha_w - n - 1) / (alpha_mu + 1) if score.t0 is None else score.t0
        if t0 <= 0:
            raise ValueError(f"the default t0 needs alpha_w above n + 1 = {n + 1}; received alpha_w = {alpha_w}")
        # R of Kuipers et al. 2014, eq. 4: the standardised mean is zero, so its rank-one term vanishes.
        self.matrix = t0 * np.eye(n) + (big_n - 1) * statistics.correlation
        self.half_df = 0.5 * (big_n + alpha_w - n)
        sizes = np.arange(n)
        self.constants = (
            -0.5 * big_n * np.log(np.pi)
            + 0.5 * np.log(alpha_mu / (big_n + alpha_mu))
            + gammaln(0.5 * (big_n + alpha_w - n + sizes + 1))
            - gammaln(0.5 * (alpha_w - n + sizes + 1))
            + 0.5 * (alpha_w - n + 2 * sizes + 1) * np.log(t0)
        )

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        padded, sizes = padded_sets(parent_sets)
        values = bge_sets(self.matrix, node, padded, sizes, self.constants, self.half_df)
        return ScoreBatch.exact(values)

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats:
        """Return the residuals of the linear regression on the parents."""
        return linear_residuals(data.values, node, parents)

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        chosen = np.append(candidates, node)
        matrix = np.ascontiguousarray(self.matrix[np.ix_(chosen, chosen)])
        return bge_table(matrix, self.constants, self.half_df, max_parents)
