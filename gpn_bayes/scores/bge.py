"""BGe: the marginal likelihood of linear-Gaussian networks under a normal-Wishart prior."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.checks import check_flag, check_positive
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Data, Dataset, RowMoments, moments_of, standardised, statistics_of
from gpn_bayes.kernels.linear.bge import bge_sets, bge_table
from gpn_bayes.scores.assumptions import EQUIVALENCE, FOR_MIXED, LINEAR, linear_residuals
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets
from gpn_bayes.scores.equations import LinearEquation, LinearEquations

_PURPOSE = "the BGe score"


class BGe(Score):
    """The Bayesian Gaussian equivalent score, on standardised data.

    Geiger & Heckerman (2002), with the correction of Kuipers, Moffa & Heckerman (2014). The prior mean
    is zero and the prior precision's parametric matrix is ``t0`` times the identity. Where rows have targets of
    interventions, it is a product over groups of rows (Kuipers & Moffa 2022), standardised all together.

    Parameters
    ----------
    alpha_mu : float, default 1
        Prior sample size of the mean.
    alpha_w : float, optional
        Degrees of freedom of the Wishart prior, more than n - 1; n + 2 by default.
    t0 : float, optional
        Scale of the parametric matrix T0; alpha_mu (alpha_w - n - 1) / (alpha_mu + 1) by default.
    standardise : bool, default True
        Whether to centre and scale the columns; otherwise they are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(1).normal(size=(50, 1))
    >>> scorer = BGe().bind(np.hstack([x, x + 0.1 * np.random.default_rng(2).normal(size=(50, 1))]))
    >>> scorer.local("v2", ["v1"]) > scorer.local("v2")
    True
    >>> from gpn_bayes import Dataset
    >>> table = Dataset.read(np.array([[1.0, 2.0], [2.0, np.nan], [4.0, 3.0], [3.0, 1.0]]), missing="impute")
    >>> BGe().complete(table).missing.sum()
    np.int64(1)
    """

    name = "bge"
    takes_weights = True

    def __init__(
        self,
        alpha_mu: float = 1.0,
        alpha_w: float | None = None,
        t0: float | None = None,
        standardise: bool = True,
    ) -> None:
        check_positive("alpha_mu", alpha_mu)
        for name, value in (("alpha_w", alpha_w), ("t0", t0)):
            if value is not None:
                check_positive(name, value)
        self.alpha_mu = alpha_mu
        self.alpha_w = alpha_w
        self.t0 = t0
        self.standardise = check_flag("standardise", standardise)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> BGe(alpha_mu=0.5).parameters
        {'alpha_mu': 0.5, 'alpha_w': None, 't0': None}
        """
        settings = {"alpha_mu": self.alpha_mu, "alpha_w": self.alpha_w, "t0": self.t0}
        return settings if self.standardise else settings | {"standardise": False}

    def _of_groups(self, data: Data) -> "tuple[BGe, Data]":
        """Return the score of a group of rows as they are, and the whole table as this score takes it."""
        if not self.standardise:
            return self, data
        return BGe(self.alpha_mu, self.alpha_w, self.t0, standardise=False), standardised(data, _PURPOSE)

    def _bind(self, data: Data | RowMoments) -> "BGeScorer":
        return BGeScorer(self, data)

    def complete(self, data: Dataset) -> Any:
        """Return how missing numbers are drawn: given regressions with this score's prior."""
        from gpn_bayes.scores.completing import completion, filled, observed_units

        n = len(data.names)
        none = np.zeros(n, dtype=bool)
        as_it_is = BGe(self.alpha_mu, self.alpha_w, self.t0, standardise=False)
        # The prior of a node without parents, which doesn't depend on the rows.
        empty = RowMoments(0, np.zeros(n), np.zeros((n, n)), tuple(map(str, range(n))), "")
        prior = as_it_is._bind(empty).prior_equation(0)
        return completion(
            data,
            none,
            self._bind(filled(data)),
            numbers=np.array([0.0, prior.rows, prior.df, prior.residual]),
            units=observed_units(data, none, ddof=1) if self.standardise else None,
        )


class BGeScorer(Scorer):
    """BGe scores of one data set; see `BGe`."""

    closed_form = True
    assumptions = (*LINEAR, *EQUIVALENCE)
    score: BGe

    def __init__(self, score: BGe, data: Data | RowMoments) -> None:
        super().__init__(score, data.names, data.fingerprint)
        big_n, mean, scatter = _moments(data, score.standardise)
        n = len(self.names)
        alpha_mu = score.alpha_mu
        alpha_w = n + 2.0 if score.alpha_w is None else score.alpha_w
        if not alpha_w > n - 1:
            raise ValueError(f"alpha_w must be more than n - 1 = {n - 1}; received {alpha_w}")
        t0 = alpha_mu * (alpha_w - n - 1) / (alpha_mu + 1) if score.t0 is None else score.t0
        if t0 <= 0:
            raise ValueError(f"the default t0 needs alpha_w above n + 1 = {n + 1}; received alpha_w = {alpha_w}")
        # R of Kuipers et al. 2014, eq. 4. The prior mean is zero, and so is the mean of standardised data.
        self.matrix = t0 * np.eye(n) + scatter + big_n * alpha_mu / (big_n + alpha_mu) * np.outer(mean, mean)
        self.half_df = 0.5 * (big_n + alpha_w - n)
        self._rows = big_n + alpha_mu
        self._means = big_n / (big_n + alpha_mu) * mean
        self._alpha_mu, self._t0, self._prior_df = float(alpha_mu), float(t0), float(alpha_w - n)
        sizes = np.arange(n)
        self.constants = (
            -0.5 * big_n * np.log(np.pi)
            + 0.5 * np.log(alpha_mu / (big_n + alpha_mu))
            + gammaln(0.5 * (big_n + alpha_w - n + sizes + 1))
            - gammaln(0.5 * (alpha_w - n + sizes + 1))
            + 0.5 * (alpha_w - n + 2 * sizes + 1) * np.log(t0)
        )

    def with_rows(self, values: Floats) -> "BGeScorer":
        """Return the scorer of other rows, which are taken as they are."""
        as_it_is = BGe(self.score.alpha_mu, self.score.alpha_w, self.score.t0, standardise=False)
        return BGeScorer(as_it_is, RowMoments.of(values, self.names, self.data_fingerprint))

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        padded, sizes = padded_sets(parent_sets)
        values = bge_sets(self.matrix, node, padded, sizes, self.constants, self.half_df)
        return ScoreBatch.exact(values)

    def prior_equation(self, size: int) -> LinearEquation:
        """Return the equation of a node with this many parents before any row is seen: what the prior says of it.

        Examples
        --------
        >>> prior = BGe().bind(np.random.default_rng(1).normal(size=(50, 4))).prior_equation(2)
        >>> prior.mean, prior.df, prior.residual
        (array([0., 0.]), 5.0, 0.5)
        """
        return LinearEquation(
            mean=np.zeros(size),
            spread=np.eye(size) / self._t0,
            residual=self._t0,
            df=self._prior_df + size + 1,
            level=0.0,
            centre=np.zeros(size),
            rows=self._alpha_mu,
        )

    def equation(self, node: int, parents: tuple[int, ...]) -> LinearEquation:
        """Return the t posterior of a node's coefficients: Geiger & Heckerman (2002), with R as in the score."""
        return self.equations(node, np.array([parents], dtype=np.int64)).one(0)

    def equations(self, node: int, parent_sets: Ints) -> LinearEquations:
        """Return those of several parent sets of one size, one a row."""
        df = 2 * self.half_df + parent_sets.shape[1] + 1
        return LinearEquations.of_moments(self.matrix, node, parent_sets, df, self._means, self._rows)

    def pymc_node(self, node: int, parents: tuple[int, ...], table: Dataset, functions: str) -> None:
        """Add a linear regression to the PyMC model being built."""
        from gpn_bayes.scores.linear_pymc_node import add_linear_node
        from gpn_bayes.scores.pymc_columns import columns

        own, *given = columns(self, table, [node, *parents])
        add_linear_node(own, given, self.prior_equation(len(given)))

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats:
        """Return the residuals of the linear regression on the parents."""
        return linear_residuals(data.values, node, parents, data.weights)

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        chosen = np.append(candidates, node)
        matrix = np.ascontiguousarray(self.matrix[np.ix_(chosen, chosen)])
        return bge_table(matrix, self.constants, self.half_df, max_parents)


def _moments(data: Data | RowMoments, standardise: bool) -> tuple[int, Floats, Floats]:
    """Return the number of rows, their mean, and the sum of squares and products about it."""
    if standardise and not isinstance(data, RowMoments):  # those are of a table that was standardised as a whole
        statistics = statistics_of(data, _PURPOSE, FOR_MIXED)
        return statistics.n, np.zeros(len(data.names)), (statistics.n - 1) * statistics.correlation
    moments = moments_of(data, _PURPOSE, FOR_MIXED)
    return moments.n, moments.mean, moments.scatter
