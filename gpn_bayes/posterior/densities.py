"""Log densities of rows given DAGs, parameters integrated out: of new rows, and of each row given all others."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import did_you_mean
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.posterior.equations import scorer_of, units_of
from gpn_bayes.posterior.protocols import DrawnPosterior
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.base import Scorer


class RowDensities(NamedTuple):
    """Log densities of rows in units of the table, for every parent set that some DAGs have.

    Attributes
    ----------
    by_set : ndarray of shape (parent set, row)
        Of a variable given these parents.
    places : ndarray of int, shape (draw, variable)
        Which parent set each variable has, in every DAG.
    """

    by_set: Floats
    places: Ints

    def joint(self, rows: slice) -> Floats:
        """Return the log densities of some whole rows, of shape (draw, row): a sum over variables."""
        total = np.zeros((len(self.places), len(range(*rows.indices(self.by_set.shape[1])))))
        for own in self.places.T:
            total += self.by_set[own, rows]
        return total


def of_new_rows(post: DrawnPosterior, values: np.ndarray, places: Ints, progressbar: bool) -> RowDensities:
    """Return the densities of new rows given all rows of the data.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    values : ndarray of shape (row, variable)
        The rows, as `read_rows` returns them.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    return _densities(post, values, places, "log_predictive", progressbar)


def of_rows_left_out(post: DrawnPosterior, places: Ints, progressbar: bool) -> RowDensities:
    """Return the density of every row of the data given all others.

    Variables are standardised as they were with the row.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    values = rows_behind(post, "leave-one-out densities")
    return _densities(post, values, places, "log_leave_one_out", progressbar)


def rows_behind(post: DrawnPosterior, purpose: str) -> np.ndarray:
    """Return the rows that a posterior is of, as numbers or as codes of levels: (row, variable).

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    purpose : str
        What needs them, to begin a message with.
    """
    scorer, data = scorer_of(post, purpose), post.data
    if not isinstance(data, Dataset):
        raise ValueError(f"{purpose} need the rows; received SufficientStatistics")
    if data.interventions is not None:
        raise ValueError(f"{purpose} need rows that were merely observed; received some of experiments")
    if not scorer.discrete:
        return data.values
    columns = [
        own if kind == "categorical" else np.searchsorted(np.array(levels, dtype=float), own)
        for own, kind, levels in zip(data.values.T, data.kinds, scorer.levels, strict=True)
    ]
    return np.column_stack(columns).astype(np.int64)


def _densities(post: DrawnPosterior, values: np.ndarray, places: Ints, of_rows: str, progressbar: bool) -> RowDensities:
    """Return densities by the method of equations that is named."""
    scorer = scorer_of(post, "predictions")
    sets: DrawnSets = drawn_sets(post.parents.reshape(1, -1, *post.parents.shape[2:])[:, places])
    centre, scale = units_of(scorer, post.data)
    if not scorer.discrete:
        values = (values - centre) / scale
    by_set = np.empty((len(sets.keys), len(values)))
    with progress_bar("Densities", len(sets.keys), progressbar and not scorer.closed_form) as advance:
        for place, (node, parents) in enumerate(sets.keys):
            density = getattr(scorer.equation(node, parents), of_rows)
            by_set[place] = density(values[:, node], values[:, list(parents)].T)
            by_set[place] -= np.log(scale[node])
            advance(1)
    return RowDensities(by_set, sets.places.reshape(-1, len(post.names)))


def read_rows(post: DrawnPosterior, rows: Any, unknown: str | None = None) -> tuple[np.ndarray, pd.Index]:
    """Return new rows as numbers, or as codes of levels, and their names.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    rows : DataFrame, Series or mapping
        A column for every variable.
    unknown : str, optional
        A variable whose column isn't needed, nor read.
    """
    scorer = scorer_of(post, "predictions")
    table = (rows if isinstance(rows, pd.DataFrame) else pd.DataFrame([dict(rows)])).rename(columns=str)
    missing = [name for name in post.names if name not in table and name != unknown]
    if missing:
        raise ValueError(
            f"new rows must have a column for every variable; received none for {missing[0]!r}"
            f"{did_you_mean(missing[0], list(table))}"
        )
    if not len(table):
        raise ValueError("new rows must be one or more; received none")
    values = np.zeros((len(table), len(post.names)), dtype=np.int64 if scorer.discrete else np.float64)
    for node, name in enumerate(post.names):
        if name != unknown:
            values[:, node] = _codes(table[name], scorer, node) if scorer.discrete else _numbers(table[name])
    return values, table.index


def _numbers(column: pd.Series) -> Floats:
    values: Floats = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    odd = np.flatnonzero(~np.isfinite(values))
    if len(odd):
        raise ValueError(f"new rows must hold finite numbers; received {column.iloc[odd[0]]!s} for {column.name!r}")
    return values


def _codes(column: pd.Series, scorer: Scorer, node: int) -> Ints:
    known = {value: scorer.level_code(node, value) for value in column.unique()}
    return column.map(known).to_numpy(dtype=np.int64)
