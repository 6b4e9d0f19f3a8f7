"""Numbers -> levels: columns cut at their mean, or into parts of equal frequency."""

from typing import Any

import pandas as pd

from gpn_bayes._util.checks import check_choice, check_count
from gpn_bayes.data import Dataset, refuse_weights
from gpn_bayes.data.levels import cut, labels

_METHODS = ("mean", "quantile")


def discretise(data: Any, method: str = "mean", levels: int = 2) -> pd.DataFrame:
    """Return a table with every column of numbers cut into levels.

    Parameters
    ----------
    data : DataFrame, array or path
        The table. Categorical columns come back unchanged; text and truth values become categories as they are.
    method : {"mean", "quantile"}
        "mean": high above the column's mean, else low. "quantile": parts of equal frequency, as nearly as the number of
        rows and ties allow: equal values always have the same level.
    levels : int
        Number of levels; "mean" gives 2.

    Returns
    -------
    DataFrame of ordered categoricals
        The levels are low and high; low, middle and high; or, if more, q1, q2, …. Every level holds a row.

    Raises
    ------
    ValueError
        For missing or infinite values, a constant column, or one with too few distinct values, or too many ties, to
        give every level a row.

    Examples
    --------
    >>> discretise(pd.DataFrame({"raf": [1.0, 2.0, 9.0], "mek": [1, 5, 3]}))["raf"].tolist()
    ['low', 'low', 'high']
    >>> discretise(pd.DataFrame({"raf": [1.0, 2.0, 9.0], "mek": [1, 5, 3]}), "quantile", 3)["raf"].tolist()
    ['low', 'middle', 'high']
    """
    check_choice("method", method, _METHODS)
    check_count("levels", levels, 2)
    if method == "mean" and levels != 2:
        raise ValueError(f"the mean cuts a column into 2 levels; received levels = {levels}: use method='quantile'")
    read = Dataset.read(data)
    refuse_weights(read, "a cut into levels")
    given = data if isinstance(data, pd.DataFrame) else None
    columns: dict[str, Any] = {}
    for place, name in enumerate(read.names):
        values, known = read.values[:, place], read.levels[place]
        if given is not None and isinstance(given.dtypes.iloc[place], pd.CategoricalDtype):
            columns[name] = given.iloc[:, place].array
        elif known is not None and isinstance(known[0], str | bool):
            columns[name] = pd.Categorical.from_codes(values.astype(int), pd.Index(known))
        else:
            codes = cut(name, values, method, levels)
            columns[name] = pd.Categorical.from_codes(codes, pd.Index(labels(levels)), ordered=True)
    return pd.DataFrame(columns, index=None if given is None else given.index)
