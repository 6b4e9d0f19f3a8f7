"""Read a table as categories: the codes and the number of levels of every column."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.checks import shown
from gpn_bayes.data import CATEGORICAL, MAX_INTEGER_LEVELS, Data, Dataset, SufficientStatistics
from gpn_bayes.data.levels import FEW_LEVELS
from gpn_bayes.data.problems import argument, listed_names
from gpn_bayes.kernels.discrete.row_groups import Counted

MAX_LEVELS = int(np.iinfo(np.uint16).max)


def check_cardinalities(cardinalities: Any) -> dict[str, int] | None:
    """Return numbers of levels by column name, checked as far as they can be without data."""
    if cardinalities is None:
        return None
    if not isinstance(cardinalities, Mapping):
        raise ValueError(
            f"cardinalities must map column names to numbers of levels; received {type(cardinalities).__name__}"
        )
    checked = {}
    for name, levels in cardinalities.items():
        if isinstance(levels, bool) or not isinstance(levels, int | np.integer) or not 2 <= levels <= MAX_LEVELS:
            raise ValueError(
                f"a cardinality must be a whole number from 2 to {MAX_LEVELS}; received {shown(levels)} for "
                f"{str(name)!r}"
            )
        checked[str(name)] = int(levels)
    return checked


def measurements(data: Data) -> list[str]:
    """Return the columns that can't be read as categories unless their cardinality is given."""
    return [name for name, levels in zip(data.names, data.levels, strict=True) if levels is None]


def is_mixed(data: Data) -> bool:
    """Tell whether some columns of a table can only be numbers, and others only categories.

    Examples
    --------
    >>> import pandas as pd
    >>> is_mixed(Dataset.read(pd.DataFrame({"sex": ["f", "m", "f"], "bmi": [21.5, 30.0, 25.2]})))
    True
    """
    return bool(measurements(data)) and not CATEGORICAL.isdisjoint(data.kinds)


def is_discrete(data: Data) -> bool:
    """Tell whether a table is one of categories.

    It is if no column is a measurement (with fractions, or whole numbers with more than 64 values), and at least one is
    text, categorical, or has at most 20 levels: a table whose columns all count further holds measurements too.

    Raises
    ------
    ValueError
        If some columns can only be measurements and others only categories.
    """
    continuous = measurements(data)
    text = [name for name, kind in zip(data.names, data.kinds, strict=True) if kind in CATEGORICAL]
    if is_mixed(data):
        raise ValueError(
            f"columns must be all categories or all numbers; {listed_names(text)} {_hold(text)} text and "
            f"{listed_names(continuous)} {_hold(continuous)} measurements: {argument('drop', text)} leaves out the "
            f"text, {argument('discretise', 3)} cuts the measurements into levels"
        )
    return not continuous and bool(text or min(len(levels) for levels in data.levels if levels) <= FEW_LEVELS)


def _hold(names: list[str]) -> str:
    return "holds" if len(names) == 1 else "hold"


NEEDS_ROWS = "discrete scores need the rows"


def read_categories(data: Dataset | SufficientStatistics, cardinalities: Mapping[str, int] | None = None) -> Counted:
    """Return the codes of a table, equal rows put together; their weights are floats where the table has any.

    Parameters
    ----------
    data : Dataset
        Every column categorical, boolean, or of few whole numbers.
    cardinalities : mapping of str to int, optional
        Number of levels of some columns, at least those that occur. A column of whole numbers for which it is given
        must hold the codes 0, 1, …; otherwise its levels are the values that occur.

    Raises
    ------
    ValueError
        For columns that are no categories, or have more levels than they are said to have.
    """
    data = data.with_rows(NEEDS_ROWS)
    given = dict(cardinalities or {})
    unknown = [name for name in given if name not in data.names]
    if unknown:
        raise ValueError(f"cardinalities must be given for columns; {unknown[0]!r} is not one")
    _check_columns(data, given)
    read = [_read_column(data, column, given.get(name)) for column, name in enumerate(data.names)]
    rows = np.array([codes for codes, _ in read])
    codes, place, counts = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    weighted = data.weights is not None
    return Counted(
        np.ascontiguousarray(codes, dtype=np.uint16),
        np.bincount(place.reshape(-1), data.weights) if weighted else counts.astype(np.uint32),
        np.array([levels for _, levels in read], dtype=np.int64),
    )


def levels_of(data: Dataset, cardinalities: Mapping[str, int] | None = None) -> tuple[tuple[Any, ...], ...]:
    """Return the levels of every column, by their codes; those that don't occur have no name but their code.

    Parameters
    ----------
    data : Dataset
        As for `read_categories`, and read by it before.
    cardinalities : mapping of str to int, optional
        As for `read_categories`.

    Examples
    --------
    >>> import pandas as pd
    >>> data = Dataset.read(pd.DataFrame({"dose": [0, 2, 2, 0], "sex": ["f", "m", "f", "m"]}))
    >>> levels_of(data), levels_of(data, {"dose": 3})
    (((0, 2), ('f', 'm')), ((0, 1, 2), ('f', 'm')))
    """
    given = dict(cardinalities or {})
    found = []
    for name, kind, levels in zip(data.names, data.kinds, data.levels, strict=True):
        known = tuple(levels or ())
        if name in given:
            known = known if kind in CATEGORICAL else ()  # whole numbers are codes then
            known += tuple(range(len(known), given[name]))
        found.append(known)
    return tuple(found)


def _check_columns(data: Dataset, given: Mapping[str, int]) -> None:
    kinds = dict(zip(data.names, data.kinds, strict=True))
    continuous = [name for name in data.names if kinds[name] == "continuous"]
    if continuous:
        verb = "is" if len(continuous) == 1 else "are"
        raise ValueError(
            f"discrete scores need categories; {listed_names(continuous)} {verb} continuous: "
            f"{argument('discretise', 3)} cuts {'it' if len(continuous) == 1 else 'them'} into levels"
        )
    many = [name for name in measurements(data) if name not in given]
    if many:
        raise ValueError(
            f"whole numbers must have at most {MAX_INTEGER_LEVELS} values to be categories; {listed_names(many)} "
            f"{'has' if len(many) == 1 else 'have'} more: {argument('discretise', 3)} cuts "
            f"{'it' if len(many) == 1 else 'them'} into levels, or give the cardinality"
        )


def _read_column(data: Dataset, column: int, given: int | None) -> tuple[NDArray[np.uint16], int]:
    """Return a column's codes and its number of levels."""
    name, values, levels = data.names[column], data.values[:, column], data.levels[column]
    if data.kinds[column] in CATEGORICAL or (levels is not None and given is None):
        assert levels is not None  # only whole numbers have none
        codes = values if data.kinds[column] in CATEGORICAL else np.searchsorted(np.array(levels, float), values)
        if given is not None and given < len(levels):
            raise ValueError(
                f"a cardinality must count every level; column {name!r} has {len(levels)}, received {given}"
            )
        r = len(levels) if given is None else given
    else:
        assert given is not None  # checked before
        odd = values[(values < 0) | (values >= given)]
        if len(odd):
            raise ValueError(
                f"whole numbers with a cardinality must be codes 0 to {given - 1}; column {name!r} holds {int(odd[0])}"
            )
        codes, r = values, given
    if r > MAX_LEVELS:
        raise ValueError(f"a column can have at most {MAX_LEVELS} levels; column {name!r} has {r}")
    _warn_of_names(name, codes)
    return codes.astype(np.uint16), r


def _warn_of_names(name: str, codes: NDArray[Any]) -> None:
    seen = len(np.unique(codes))
    if seen > max(len(codes) / 2, FEW_LEVELS):
        warnings.warn(
            f"column {name!r} has {seen} levels in {len(codes)} rows: few values repeat, so little can be learnt",
            UserWarning,
            stacklevel=6,
        )
