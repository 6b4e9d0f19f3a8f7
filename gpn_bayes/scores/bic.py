"""BIC, in its discrete or its Gaussian form as the data ask for."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import Data, Dataset, RowMoments, standardised
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.categories import check_cardinalities, is_discrete
from gpn_bayes.scores.discrete import DiscreteBICScorer
from gpn_bayes.scores.gaussian_bic import GaussianBICScorer

KINDS = ("auto", "discrete", "gaussian")


class BIC(Score):
    r"""The Bayesian information criterion: the log likelihood at its maximum, less ln(m) / 2 for every parameter.

    For a discrete node i with r_i levels and parents P, of m rows, this is

    .. math:: \sum_{jk} N_{ijk} \ln (N_{ijk} / N_{ij}) - \tfrac12 \ln(m) (r_i - 1) \prod_{p \in P} r_p,

    where all configurations of the parents count, observed or not. For continuous data it is that of the linear
    regression on the parents with normal noise, whose parameters are a coefficient for each parent, the intercept and
    the variance. It is taken of standardised columns, as BGe is: other units would add the same to all scores of a
    node. Where columns determine each other, a share of 1e-10 of each variance is taken as noise; sets with as many
    coefficients as there are rows score minus infinity.

    Parameters
    ----------
    cardinalities : mapping of str to int, optional
        Number of levels of columns, where not all were observed. Whole numbers must then be codes 0, 1, …. The data
        are then discrete.
    kind : {"auto", "discrete", "gaussian"}
        "auto" takes a table as discrete if no column holds floats or more than 64 different whole numbers, and at
        least one column is text, categorical, or has at most 20 levels. It takes statistics, and all other tables of
        numbers, as continuous.

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

    def __init__(self, cardinalities: Mapping[str, int] | None = None, kind: str = "auto") -> None:
        check_choice("kind", kind, KINDS)
        self.cardinalities = check_cardinalities(cardinalities)
        if kind == "gaussian" and self.cardinalities:
            raise ValueError("cardinalities are those of discrete columns; received some with kind='gaussian'")
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
        if not isinstance(data, RowMoments) and self._takes_as_discrete(data):
            return DiscreteBICScorer(self, data, self.cardinalities)
        return GaussianBICScorer(self, data, self._standardise)

    def _of_groups(self, data: Data) -> "tuple[BIC, Data]":
        """Return the score of a group of rows, and the whole table as this score takes it."""
        of_rows = copy(self)
        if self._takes_as_discrete(data):
            of_rows.kind = "discrete"
            return of_rows, data
        of_rows.kind, of_rows._standardise = "gaussian", False
        return of_rows, standardised(data, "the Gaussian BIC score")

    def _takes_as_discrete(self, data: Data) -> bool:
        if self.kind != "auto":
            return self.kind == "discrete"
        return bool(self.cardinalities) or (isinstance(data, Dataset) and is_discrete(data))
