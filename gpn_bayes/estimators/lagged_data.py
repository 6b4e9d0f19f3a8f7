"""Time series, in one or several realisations, as a table of each time together with those before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Bools, DiGraph, Floats
from gpn_bayes.data import CATEGORICAL, Dataset, refuse_interventions, refuse_weights


def lagged_name(name: str, lag: int) -> str:
    """Return the name of a lagged variable.

    Examples
    --------
    >>> lagged_name("flow", 0), lagged_name("flow", 2)
    ('flow[t]', 'flow[t-2]')
    """
    return f"{name}[t-{lag}]" if lag else f"{name}[t]"


def lagged_graph(names: Sequence[str], adjacency: Bools, weights: Floats, lagged_weights: Floats) -> DiGraph:
    """Return the edges within a time and those of the past, with their weights, over names such as "x[t-1]".

    Parameters
    ----------
    names : sequence of str
        The variables.
    adjacency, weights : ndarray, shape (d, d)
        The edges within a time; required ones may have no weight.
    lagged_weights : ndarray, shape (lags, d, d)
        Entry (k, i, j) is the weight of i, k + 1 times before, on j; zero where there is no edge.

    Examples
    --------
    >>> flow = np.array([[0, 1], [0, 0]])
    >>> sorted(lagged_graph(["rain", "flow"], flow, 2.0 * flow, [0.5 * np.eye(2)]).edges)
    [('flow[t-1]', 'flow[t]'), ('rain[t-1]', 'rain[t]'), ('rain[t]', 'flow[t]')]
    """
    columns = [lagged_name(name, lag) for lag in range(len(lagged_weights) + 1) for name in names]
    present = np.concatenate([adjacency, *(matrix != 0 for matrix in lagged_weights)])
    values = np.concatenate([weights, *lagged_weights])
    graph: DiGraph = nx.DiGraph()
    graph.add_nodes_from(columns)
    for parent, child in np.argwhere(present):
        graph.add_edge(columns[parent], columns[child], weight=float(values[parent, child]))
    return graph


@dataclass(frozen=True, eq=False)
class LaggedData:
    """Every time that has a full past, together with it.

    Attributes
    ----------
    names : tuple of str
        The variables.
    lags : int
        How many times before are included.
    values : ndarray of shape (rows, (lags + 1) * d)
        The variables at a time, then one time before, and so on.
    """

    names: tuple[str, ...]
    lags: int
    values: Floats

    @property
    def columns(self) -> list[str]:
        """The names of the columns of `values`."""
        return [lagged_name(name, lag) for lag in range(self.lags + 1) for name in self.names]

    def moments(self) -> Floats:
        """Return the covariances (divided by the number of rows) of all columns."""
        centred = self.values - self.values.mean(axis=0)
        return centred.T @ centred / len(centred)

    def frame(self) -> pd.DataFrame:
        """Return the table with its names."""
        return pd.DataFrame(self.values, columns=self.columns)


def read_series(series: Any, lags: int, by: str | None = None) -> LaggedData:
    """Check one realisation or a list of them, and put every time beside those before it.

    Parameters
    ----------
    series : DataFrame, array, path, Dataset, or list of DataFrames and arrays
        Times are rows. Realisations of a list may have different lengths; their columns are matched by name.
    lags : int
        How many times before are wanted.
    by : str, optional
        A column of a single table that tells its realisations apart; their rows may stand in turn.

    Raises
    ------
    ValueError
        For realisations without a full past or with other columns, and for data that `Dataset.read` refuses.
    """
    frames = _realisations(series, by)
    labels = list(frames[0].columns)
    for number, frame in enumerate(frames, start=1):
        if sorted(map(str, frame.columns)) != sorted(map(str, labels)):
            raise ValueError(
                f"all series must have the same columns; series {number} has {list(frame.columns)}, the first {labels}"
            )
        if len(frame) <= lags:
            raise ValueError(f"every series must be longer than lags = {lags}; series {number} has {len(frame)} rows")
    # Read together: a variable may rest in one realisation, as long as it moves in another.
    matched = [frame if list(frame.columns) == labels else frame[labels] for frame in frames]
    data = Dataset.read(pd.concat(matched, ignore_index=True) if len(matched) > 1 else matched[0])
    starts = np.cumsum([len(frame) for frame in frames])[:-1]
    blocks = [_beside_past(block, lags) for block in np.split(data.numeric("a time series"), starts)]
    lagged = LaggedData(data.names, lags, np.concatenate(blocks))
    _check_moving(lagged)
    return lagged


def _realisations(series: Any, by: str | None) -> list[pd.DataFrame]:
    several = isinstance(series, list | tuple)
    if by is None:
        frames = [_frame(one) for one in series] if several else [_frame(series)]
        if not frames:
            raise ValueError("a list of series must hold at least one; received none")
        return frames
    if several:
        raise ValueError(f"series = {by!r} splits one table; received a list of {len(series)}")
    table = _frame(series)
    if by not in table.columns:
        raise ValueError(f"series must be a column of the table; received {shown(by)}")
    return [part.drop(columns=by) for _, part in table.groupby(by, sort=False, dropna=False)]


def _frame(series: Any) -> pd.DataFrame:
    if isinstance(series, pd.DataFrame):
        return series
    if isinstance(series, np.ndarray) and series.ndim == 2:
        return pd.DataFrame(series, columns=[f"v{i + 1}" for i in range(series.shape[1])]).infer_objects()
    data = Dataset.read(series)
    refuse_interventions(data, "a time series")
    refuse_weights(data, "a time series")
    if data.rows_dropped:
        raise ValueError(f"every time of a series must be there; missing='drop' drops {data.rows_dropped} of them")
    if data.repeated:
        raise ValueError("every row of a time series stands there once; received rows with frequencies")
    # A column of text may tell realisations apart; as a variable it is refused later.
    values = {
        name: np.array(levels, dtype=object)[column.astype(int)] if kind in CATEGORICAL else column
        for name, column, kind, levels in zip(data.names, data.values.T, data.kinds, data.levels, strict=True)
    }
    return pd.DataFrame(values)


def _beside_past(values: Floats, lags: int) -> Floats:
    rows = len(values) - lags
    return np.hstack([values[lags - k : lags - k + rows] for k in range(lags + 1)])


def _check_moving(lagged: LaggedData) -> None:
    if len(lagged.values) < 2:
        raise ValueError(f"at least two times with a full past are needed; received {len(lagged.values)}")
    resting = np.flatnonzero(np.ptp(lagged.values, axis=0) == 0)
    if len(resting):
        raise ValueError(
            f"every variable must vary among the times with a full past; {lagged.columns[resting[0]]!r} is constant"
        )
