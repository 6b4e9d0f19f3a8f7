"""BIC, in its discrete, its Gaussian or its mixed form, as the data ask for."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import Data, RowMoments, standardised
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.categories import check_cardinalities, is_discrete, is_mixed
from gpn_bayes.scores.discrete import DiscreteBICScorer
from gpn_bayes.scores.gaussian_bic import GaussianBICScorer
from gpn_bayes.scores.mixed_bic import MixedBICScorer

KINDS = ("auto", "discrete", "gaussian", "mixed")


class BIC(Score):
    r"""The Bayesian information criterion: the log likelihood at its maximum, less ln(m) / 2 for every parameter.

    For a discrete node i with r_i levels and parents P, of m rows, this is

    .. math:: \sum_{jk} N_{ijk} \ln (N_{ijk} / N_{ij}) - \tfrac12 \ln(m) (r_i - 1) \prod_{p \in P} r_p,

    where all configurations of the parents count, observed or not. For continuous data it is that of the linear
    regression on the parents with normal noise, whose parameters are a coefficient for each parent, the intercept and
    the variance. It is taken of standardised columns, as BGe is: other units would add the same to all scores of a
    node. Where columns determine each other, a share of 1e-10 of each variance is taken as noise; sets with as many
    coefficients as there are rows score minus infinity.

    In a table that mixes both, a category can have only categories as parents, and a number has a regression, with its
    own coefficients and variance, for each combination of the categories among its parents, all of which are charged
    for, observed or not; see `CG` for which columns are what. It is then in units of the table, variances are sums of
    squares over degrees of freedom (as in bnlearn's bic-cg), and sets with as many coefficients as some combination has
    rows score minus infinity.

    Parameters
    ----------
    cardinalities : mapping of str to int, optional
        Number of levels of columns, where not all were observed. Whole numbers must then be codes 0, 1, …. The data
        are then discrete.
    kind : {"auto", "discrete", "gaussian", "mixed"}
        "auto" takes a table as discrete if no column holds fractions or more than 64 different whole numbers, and at
        least one column is text, categorical, or has at most 20 levels; as mixed if some columns can only be numbers
        and others only categories. It takes statistics, and all other tables of numbers, as continuous.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rain = ["no", "no", "no", "yes", "yes", "no", "yes", "no"] * 5
    >>> scorer = BIC().bind(pd.DataFrame({"rain": rain, "wet": rain[:-3] + ["yes"] * 3}))
    >>> print(f"{scorer.local('wet', ['rain']):.2f}")
    -10.66
    >>> scorer = BIC().bind(np.random.default_rng(1).normal(size=(50, 2)))
    >>> scorer.local("v2", ["v1"]) < scorer.local("v2")
    True
    """

    name = "bic"
    takes_weights = True
    standardise = True

    def __init__(self, cardinalities: Mapping[str, int] | None = None, kind: str = "auto") -> None:
        check_choice("kind", kind, KINDS)
        self.cardinalities = check_cardinalities(cardinalities)
        if kind in ("gaussian", "mixed") and self.cardinalities:
            raise ValueError(f"cardinalities are those of discrete columns; received some with kind={kind!r}")
        self.kind = kind
        self._standardise = True

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> BIC(cardinalities={"rain": 2}).parameters
        {'cardinalities': {'rain': 2}, 'kind': 'auto'}
        """
        return {"cardinalities": self.cardinalities, "kind": self.kind}

    def _bind(self, data: Data | RowMoments) -> Scorer:
        if self._kind_of(data) == "mixed":
            assert not isinstance(data, RowMoments)
            return MixedBICScorer(self, BIC(kind="discrete"), data)
        if self._kind_of(data) == "discrete":
            assert not isinstance(data, RowMoments)
            return DiscreteBICScorer(self, data, self.cardinalities)
        return GaussianBICScorer(self, data, self._standardise)

    def _of_groups(self, data: Data) -> "tuple[BIC, Data]":
        """Return the score of a group of rows, and the whole table as this score takes it."""
        of_rows = copy(self)
        if self._kind_of(data) == "mixed":
            raise ValueError("BIC of mixed tables takes rows that were merely observed; received some of experiments")
        if self._kind_of(data) == "discrete":
            of_rows.kind = "discrete"
            return of_rows, data
        of_rows.kind, of_rows._standardise = "gaussian", False
        return of_rows, standardised(data, "the Gaussian BIC score")

    def _kind_of(self, data: Data | RowMoments) -> str:
        """Return which form of the score data take: one of `KINDS` but "auto"."""
        if self.kind != "auto":
            return self.kind
        if isinstance(data, RowMoments):
            return "gaussian"
        if self.cardinalities:
            return "discrete"
        if is_mixed(data):
            return "mixed"
        return "discrete" if is_discrete(data) else "gaussian"
