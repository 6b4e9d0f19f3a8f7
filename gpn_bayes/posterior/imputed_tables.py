"""Completed tables that were drawn with a posterior's DAGs, as the user's tables were."""

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.types import Floats
from gpn_bayes.data import Dataset


def chosen_tables(completed: Floats | None, data: Dataset | None, m: int) -> list[pd.DataFrame]:
    """Return some of the completed tables, spread evenly over all that were kept.

    Parameters
    ----------
    completed : ndarray of shape (tables, missing entries), or None
        What was drawn for the missing entries, row by row.
    data : Dataset or None
        The table with its gaps.
    m : int
        How many.

    Raises
    ------
    ValueError
        If nothing was missing, the table wasn't saved, or fewer were kept.
    """
    check_count("m", m, 1)
    if completed is None:
        raise ValueError("completed tables need missing='impute' and the data; this posterior has none")
    if m > len(completed):
        raise ValueError(f"this posterior kept {len(completed)} completed tables; received m={m}")
    assert data is not None and data.missing is not None
    places = (np.arange(m) * len(completed)) // m
    return [completed_frame(data, completed[place]) for place in places]


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
