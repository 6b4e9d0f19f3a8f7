"""Whether what parents leave of a variable still depends on something: on one variable, or on two parents together."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from gpn_bayes._util.types import Floats, Ints

# Rows are put into this many groups by a variable's value, of this many rows at least.
_GROUPS, _ROWS_A_GROUP = 10, 10
# Dependence is reported if it is both certain and large: p-values below this of ranks, and this share of the variance.
_CERTAIN, _LARGE = 1e-8, 0.05


class Leftover(NamedTuple):
    """What residuals depend on.

    Attributes
    ----------
    variables : tuple of int
        One variable, or two.
    share : float
        The share of the residuals' variance that they explain.
    straight : bool
        Whether a straight line explains half of that: an edge is missing rather than a curve.
    """

    variables: tuple[int, ...]
    share: float
    straight: bool


class Grouping(NamedTuple):
    """Rows in groups by the value of each variable.

    Attributes
    ----------
    ranks : ndarray of shape (variable, row)
        The variables' ranks, centred, between -1/2 and 1/2.
    groups : ndarray of int, shape (variable, row)
        The group of each row; rows of equal value share one.
    """

    ranks: Floats
    groups: Ints

    @classmethod
    def of(cls, values: Floats) -> "Grouping":
        """Group the rows of a table, (row, variable)."""
        count = max(2, min(_GROUPS, len(values) // _ROWS_A_GROUP))
        ranks = (pd.DataFrame(values).rank().to_numpy().T - 0.5) / len(values)
        return cls(ranks - 0.5, np.minimum((ranks * count).astype(np.int64), count - 1))

    def of_rows(self, rows: np.ndarray) -> "Grouping":
        """Return the same for some of the rows."""
        return Grouping(self.ranks[:, rows], self.groups[:, rows])


def leftover_of_one(residuals: Floats, grouping: Grouping, variables: Ints) -> Leftover | None:
    """Return the variable on which the mean of residuals depends most, by the test of Kruskal & Wallis (1952).

    Parameters
    ----------
    residuals : ndarray of shape (row,)
        What parents leave of a variable.
    grouping : Grouping
        The same rows, by the values of all variables.
    variables : ndarray of int
        The variables that residuals shouldn't depend on: parents, and others that aren't effects.

    Returns
    -------
    Leftover or None
        None if no dependence is both certain and large.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(300, 2))
    >>> y = x[:, 1] ** 2 + rng.normal(size=300)
    >>> leftover_of_one(y - y.mean(), Grouping.of(x), np.array([0, 1])).variables
    (1,)
    >>> leftover_of_one(rng.normal(size=300), Grouping.of(x), np.array([0, 1])) is None
    True
    """
    if not len(variables):
        return None
    n, count = len(residuals), int(grouping.groups.max()) + 1
    places = (np.arange(len(variables))[:, None] * count + grouping.groups[variables]).ravel()
    sizes, *sums = (
        np.bincount(places, np.tile(own, len(variables)), len(variables) * count).reshape(-1, count)
        for own in (np.ones(n), _ranks(residuals), residuals - residuals.mean())
    )
    of_ranks, of_values = ((own**2 / np.maximum(sizes, 1)).sum(axis=1) for own in sums)
    p_values = chdtrc((sizes > 0).sum(axis=1) - 1, 12 / (n * (n + 1)) * of_ranks - 3 * (n + 1))
    shares = of_values / (n * residuals.var())
    found = np.flatnonzero((p_values < _CERTAIN) & (shares > _LARGE))
    if not len(found):
        return None
    most = int(found[shares[found].argmax()])
    variable, share = int(variables[most]), float(shares[most])
    line = float(np.corrcoef(residuals, grouping.ranks[variable])[0, 1] ** 2)
    return Leftover((variable,), share, line > 0.5 * share)


def leftover_of_two(residuals: Floats, grouping: Grouping, parents: tuple[int, ...]) -> Leftover | None:
    """Return the pair of parents on whose product, of ranks, residuals depend most.

    Parameters
    ----------
    residuals : ndarray of shape (row,)
        What parents leave of a variable.
    grouping : Grouping
        The same rows, by the values of all variables.
    parents : tuple of int
        The parents.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(300, 2))
    >>> y = x[:, 0] * x[:, 1] + rng.normal(size=300)
    >>> leftover_of_two(y - y.mean(), Grouping.of(x), (0, 1)).variables
    (0, 1)
    """
    found = []
    for k, first in enumerate(parents):
        for second in parents[k + 1 :]:
            product = grouping.ranks[first] * grouping.ranks[second]
            if np.ptp(product) == 0:
                continue
            strength = len(residuals) * np.corrcoef(_ranks(residuals), product)[0, 1] ** 2
            share = float(np.corrcoef(residuals, product)[0, 1] ** 2)
            if chdtrc(1, strength) < _CERTAIN and share > _LARGE:
                found.append(Leftover((first, second), share, straight=False))
    return max(found, key=lambda pair: pair.share, default=None)


def _ranks(values: Floats) -> Floats:
    return np.asarray(pd.Series(values).rank(), dtype=np.float64)
