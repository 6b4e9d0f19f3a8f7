"""Densities of new rows given those that a score is bound to, in units of the table; parameters are integrated out."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import did_you_mean
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Floats
from gpn_bayes.data import Dataset, Table
from gpn_bayes.data.keywords import in_short, settings_of, value_of
from gpn_bayes.data.notation import POINT, is_number
from gpn_bayes.scores.base import LARGEST_K_HAT, Scorer
from gpn_bayes.scores.equations import LeftOut


def read_rows(rows: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return new rows with a column for every variable, in the order of the variables.

    Parameters
    ----------
    rows : DataFrame, Series or mapping, or Table of a DataFrame
        The rows, or one of them; further columns are left out.
    names : sequence of str
        The variables.

    Examples
    --------
    >>> read_rows({"b": 1, "c": 2, "a": 3}, ["a", "b"]).to_dict("records")
    [{'a': 3, 'b': 1}]
    """
    rows = _stated(rows, names) if isinstance(rows, Table) else rows
    if not isinstance(rows, pd.DataFrame | pd.Series | Mapping):
        raise ValueError(f"new rows must be a DataFrame, a Series or a mapping; received {type(rows).__name__}")
    table = (rows if isinstance(rows, pd.DataFrame) else pd.DataFrame([dict(rows)])).rename(columns=str)
    missing = [name for name in names if name not in table]
    if missing:
        raise ValueError(
            f"new rows must have a column for every variable; received none for {missing[0]!r}"
            f"{did_you_mean(missing[0], list(table))}"
        )
    if table.empty:
        raise ValueError("new rows must be one or more; received none")
    return table[list(names)]


def _stated(table: Table, names: Sequence[str]) -> Any:
    """Return the rows of a table as it says: codes that mean missing are, and rows with missing values dropped.

    What columns are is known from the rows that a score is bound to.
    """
    settings, rows = settings_of(table.keywords), table.data
    if not isinstance(rows, pd.DataFrame):
        raise ValueError(f"new rows must be a DataFrame, or a Table of one; received a Table of {type(rows).__name__}")
    for word in ("weights", "targets", "contexts", "discretise"):
        if value_of(settings, word) is not None:
            raise ValueError(f"new rows take no {word}; received {word}={in_short(value_of(settings, word))}")
    codes = [*settings["na"], *(float(code) for code in settings["na"] if is_number(code, POINT))]
    rows = rows.mask(rows.isin(codes)) if codes else rows
    return rows.dropna(subset=[name for name in names if name in rows]) if settings["missing"] == "drop" else rows


def values_of(table: pd.DataFrame, scorer: Scorer) -> np.ndarray:
    """Return new rows as a score takes them: codes of levels, numbers in units of the table, or some of either.

    Parameters
    ----------
    table : DataFrame
        The rows, as `read_rows` returns them.
    scorer : Scorer
        The score, bound to other rows.

    Examples
    --------
    >>> from gpn_bayes import scores
    >>> scorer = scores.BDeu().bind(pd.DataFrame({"rain": ["no", "yes", "no"], "wet": [0, 1, 1]}))
    >>> values_of(pd.DataFrame({"rain": ["yes", "no"], "wet": [1, 0]}), scorer).tolist()
    [[1, 1], [0, 0]]
    """
    if scorer.discrete:
        return _codes(table, scorer)
    categories = scorer.categories
    values = np.empty(table.shape)
    values[:, ~categories] = _numbers(table.loc[:, ~categories])
    values[:, categories] = _codes(table.loc[:, categories], scorer)
    return values


def log_densities(
    scorer: Scorer,
    data: Any,
    families: Sequence[tuple[int, tuple[int, ...]]],
    values: np.ndarray,
    progressbar: bool = False,
) -> Floats:
    """Return the log densities of new rows in units of the table: those of nodes given their parents.

    Parameters
    ----------
    scorer : Scorer
        The score, bound to the data.
    data : Dataset or SufficientStatistics
        The data.
    families : sequence of (int, tuple of int)
        Each node with its parents.
    values : ndarray of shape (rows, variables)
        The new rows, as `values_of` returns them.
    progressbar : bool, default False
        Whether scores that take long show progress.

    Returns
    -------
    ndarray of shape (families, rows)
        Log probabilities under scores of categories.

    Examples
    --------
    >>> from gpn_bayes import Dataset, datasets, scores
    >>> data = Dataset.read(datasets.sachs(transform="log2")[["raf", "mek"]])
    >>> scorer = scores.BGe().bind(data)
    >>> log_densities(scorer, data, [(0, ()), (1, (0,))], data.values[:3]).shape
    (2, 3)
    """
    found = np.empty((len(families), len(values)))
    for place, known in enumerate(_known_rows(scorer, data, families, values, progressbar)):
        found[place] = known.equation.log_predictive(known.values, known.parents) - known.log_unit
    return found


def left_out(
    scorer: Scorer, data: Dataset, families: Sequence[tuple[int, tuple[int, ...]]], progressbar: bool = False
) -> Iterator[LeftOut]:
    """Yield what all other rows of the data say of each row, in units of the table: for nodes given their parents.

    Variables are standardised as they were with the row.

    Parameters
    ----------
    scorer : Scorer
        The score, bound to the data.
    data : Dataset
        The data.
    families : sequence of (int, tuple of int)
        Each node with its parents.
    progressbar : bool, default False
        Whether scores that take long show progress.

    Examples
    --------
    >>> from gpn_bayes import Dataset, datasets, scores
    >>> data = Dataset.read(datasets.sachs(transform="log2")[["raf", "mek"]])
    >>> (found,) = left_out(scores.BGe().bind(data), data, [(1, (0,))])
    >>> found.log_density.shape, round(float(found.below.mean()), 1)
    ((853,), 0.5)
    """
    doubtful: set[int] = set()
    for known in _known_rows(scorer, data, families, scorer.rows(data), progressbar):
        found = known.equation.leave_one_out(known.values, known.parents)
        if found.k_hats is not None:
            doubtful |= set(np.flatnonzero(found.k_hats > LARGEST_K_HAT).tolist())
        yield LeftOut(found.log_density - known.log_unit, found.below)
    if doubtful:
        warnings.warn(
            f"{len(doubtful)} of {data.n_rows} rows can't be left out reliably: weights of drawn parameters have a "
            f"Pareto k above {LARGEST_K_HAT}",
            UserWarning,
            stacklevel=2,
        )


class _KnownRows(NamedTuple):
    """A node's equation, with rows of the node and of its parents in its units, and the log of the node's unit."""

    equation: Any
    values: np.ndarray
    parents: np.ndarray
    log_unit: float


def _known_rows(
    scorer: Scorer, data: Any, families: Sequence[tuple[int, tuple[int, ...]]], values: np.ndarray, progressbar: bool
) -> Iterator[_KnownRows]:
    """Yield each family's equation and its rows."""
    centre, scale = scorer.units(data)
    if not scorer.discrete:
        values = (values - centre) / scale
    categories = scorer.categories
    with progress_bar("Densities", len(families), progressbar and not scorer.closed_form) as advance:
        for node, parents in families:
            own, given = values[:, node], values[:, list(parents)].T
            if categories[node]:
                own = own.astype(np.int64)
            yield _KnownRows(scorer.equation(node, parents), own, given, float(np.log(scale[node])))
            advance(1)


def _numbers(table: pd.DataFrame) -> Floats:
    values: Floats = table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        received, name = table.iat[row, column], table.columns[column]
        raise ValueError(f"new rows must hold finite numbers; received {received!s} for {name!r}")
    return values


def _codes(table: pd.DataFrame, scorer: Scorer) -> np.ndarray:
    """Return the levels of categories as numbers."""
    codes = np.empty(table.shape, dtype=np.int64)
    for column, name in enumerate(table):
        node = scorer.index(str(name))
        known = {value: scorer.level_code(node, value) for value in table[name].unique()}
        codes[:, column] = table[name].map(known)
    return codes
