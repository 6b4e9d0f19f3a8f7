"""A table as the Gaussian-process score takes it: numbers standardised, categories by what their levels are."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.scores.categories import levels_of
from gpn_bayes.scores.mixed import categories_among, columns_of

PURPOSE = "the Gaussian-process score"


class Category(NamedTuple):
    """A column of categories.

    Attributes
    ----------
    levels : ndarray of int, shape (rows,)
        The levels of the rows, numbered among those that occur.
    occurring : ndarray of int
        The codes of those that occur.
    ordered : bool
        Whether they are ordered, which is all the same if there are two.
    inside : ndarray of shape (levels,)
        What stands for each level in the table, by code, also for those that don't occur.
    """

    levels: Ints
    occurring: Ints
    ordered: bool
    inside: Floats


class GPTable(NamedTuple):
    """The columns of a table, ready for squared-exponential kernels.

    Attributes
    ----------
    values : ndarray of shape (rows, variables)
        Numbers, standardised if that is asked for; standardised ranks of ordered levels; codes of others.
    spacings : ndarray of shape (variables,)
        Of categories without order, the squared distance between any two levels; 0 for all others. On average, two
        rows are as far apart as they are for a standardised number.
    categories : dict of int to Category
        The columns of categories.
    """

    values: Floats
    spacings: Floats
    categories: dict[int, Category]


def gp_table(data: Dataset, standardise: bool) -> GPTable:
    """Return a table as the Gaussian-process score takes it.

    Parameters
    ----------
    data : Dataset
        The table. Of one with experiments, all columns must be numbers, and are taken as such.
    standardise : bool
        Whether to standardise the numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"site": list("abcabc"), "ill": [0, 1, 1, 1, 0, 1], "bmi": [20.5, 31, 25, 22, 27, 24]})
    >>> read = gp_table(Dataset.read(table), standardise=True)
    >>> read.spacings.round(2).tolist(), sorted(read.categories)
    ([2.5, 0.0, 0.0], [0, 1])
    """
    among: Bools = categories_among(data)
    if data.interventions is not None or not among.any():
        read = data.standardised if standardise else data.numeric
        return GPTable(read(PURPOSE), np.zeros(len(data.names)), {})
    values = np.array(data.values, dtype=float)
    spacings = np.zeros(len(data.names))
    categories = {}
    for i, known in zip(
        np.flatnonzero(among).tolist(), levels_of(columns_of(data, np.flatnonzero(among))), strict=True
    ):
        column, inside = values[:, i].copy(), np.arange(len(known), dtype=float)
        if data.kinds[i] == "integer":
            column = np.searchsorted(np.array(known, dtype=float), column).astype(float)
        occurring, levels = np.unique(column.astype(np.int64), return_inverse=True)
        ordered = data.kinds[i] == "ordered" or len(occurring) == 2
        if ordered:
            mean, spread = _mean_and_spread(column, data)
            inside = (inside - mean) / spread
        else:
            counts = np.bincount(levels, data.weights)
            shares = counts / counts.sum()
            spacings[i] = 2 * (data.size - 1) / (data.size * (1 - shares @ shares))
        values[:, i] = inside[column.astype(np.int64)]
        categories[i] = Category(levels, occurring, ordered, inside)
    if standardise:
        values[:, ~among] = ((values - data.means()) / data.spreads())[:, ~among]
    return GPTable(values, spacings, categories)


def _mean_and_spread(column: Floats, data: Dataset) -> tuple[float, float]:
    """Return the mean and the standard deviation (ddof = 1) of codes, with the weights of rows."""
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    mean = float(weights @ column / weights.sum())
    return mean, float(np.sqrt(weights @ (column - mean) ** 2 / (weights.sum() - 1)))
