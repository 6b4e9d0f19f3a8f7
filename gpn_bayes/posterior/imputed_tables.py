"""What is missing in a posterior's table, and completed tables that were drawn with its DAGs."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.posterior.draws import Draws


def imputed(post: Draws, m: int = 5) -> list[pd.DataFrame]:
    """Return completed tables, in which missing values are as they were drawn with some of the DAGs.

    Of a run with ``missing="impute"``. Each is one draw from the posterior of all missing values: an analysis of
    several of them, pooled by Rubin's rules, takes into account that they aren't known.

    Parameters
    ----------
    m : int, default 5
        How many, spread evenly over those that were kept: 5 of each chain.

    Returns
    -------
    list of DataFrame
        In the units and levels of the table; observed values are untouched.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
    >>> data.loc[3, "mek"] = float("nan")
    >>> post = gpn.sample(data, score="bge", missing="impute", draws=50, tune=20, random_seed=1, progressbar=False)
    >>> tables = post.imputed(m=2)
    >>> len(tables), tables[0].shape, bool(tables[0].loc[3, "mek"] != tables[1].loc[3, "mek"])
    (2, (853, 3), True)
    """
    check_count("m", m, 1)
    if post.completed is None:
        raise ValueError("completed tables need missing='impute' and the data; this posterior has none")
    if m > len(post.completed):
        raise ValueError(f"this posterior kept {len(post.completed)} completed tables; received m={m}")
    places = (np.arange(m) * len(post.completed)) // m
    return [completed_frame(post.data, post.completed[place]) for place in places]


def can_complete(data: Dataset, completed: Floats) -> bool:
    """Tell whether entries of columns of categories are codes of their levels."""
    assert data.missing is not None
    column = np.nonzero(data.missing)[1]
    coded = np.array([kind not in ("continuous", "integer") for kind in data.kinds])[column]
    levels = np.array([0 if known is None else len(known) for known in data.levels])[column]
    codes = completed[:, coded]
    return bool(((codes >= 0) & (codes < levels[coded]) & (codes == np.round(codes))).all())


def completed_values(data: Dataset, entries: Floats) -> Floats:
    """Return the values of a table with its missing entries filled in, row by row."""
    assert data.missing is not None
    values = data.values.copy()
    values[data.missing] = entries
    return values


def completed_frame(data: Dataset, entries: Floats) -> pd.DataFrame:
    """Return a completed table in the user's units and levels."""
    values = completed_values(data, entries)
    columns = {}
    for name, column, kind, levels in zip(data.names, values.T, data.kinds, data.levels, strict=True):
        if kind not in ("continuous", "integer"):
            assert levels is not None
            columns[name] = pd.Series(pd.Categorical.from_codes(column.astype(int), pd.Index(list(levels))))
        elif kind == "integer" and (column == np.round(column)).all():
            truths = levels is not None and all(isinstance(level, bool | np.bool_) for level in levels)
            columns[name] = pd.Series(column.astype(bool if truths else np.int64))
        else:
            columns[name] = pd.Series(column)
    return pd.DataFrame(columns)


class GapPatterns(NamedTuple):
    """Groups of rows that lack the same columns, the most frequent first.

    Attributes
    ----------
    missing : ndarray of bool, shape (patterns, columns)
        Which columns each lacks.
    rows : ndarray of int, shape (patterns,)
        How many rows it has.
    left : int
        How many patterns were left out, the rarest.
    left_rows : int
        How many rows these have.
    """

    missing: Bools
    rows: Ints
    left: int
    left_rows: int


def gap_patterns(missing: Bools, most: int) -> GapPatterns:
    """Return the patterns of missing values, complete rows among them.

    Parameters
    ----------
    missing : ndarray of bool, shape (rows, columns)
        Which values are missing.
    most : int
        How many patterns to return.

    Examples
    --------
    >>> found = gap_patterns(np.array([[0, 1], [0, 0], [0, 1], [1, 1]], dtype=bool), most=2)
    >>> found.missing.astype(int).tolist(), found.rows.tolist(), found.left, found.left_rows
    ([[0, 1], [0, 0]], [2, 1], 1, 1)
    """
    patterns, rows = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-rows, kind="stable")
    shown, left = order[:most], order[most:]
    return GapPatterns(patterns[shown], rows[shown], len(left), int(rows[left].sum()))
