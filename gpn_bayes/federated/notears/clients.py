"""The tables of all clients: checked one by one, and against each other."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes.data import Dataset, read_part
from gpn_bayes.estimators.lagged_data import LaggedData, read_series
from gpn_bayes.federated.notears.settings import Settings

Part = Dataset | LaggedData


def read_client(table: Any, settings: Settings) -> Part:
    """Check one client's table, in which columns may be constant, or its series."""
    return read_series(table, settings.lags) if settings.model == "dynamic" else read_part(table)


def read_clients(tables: Iterable[Any], settings: Settings) -> list[Part]:
    """Check the tables of all clients.

    Raises
    ------
    ValueError
        For fewer than two of them, tables that differ in their columns, or columns that are constant in all.
    """
    parts = list(_each_read(tables, settings))
    if len(parts) < 2:
        raise ValueError(f"at least two clients are needed; received {len(parts)}")
    check_same_columns(parts)
    spreads = np.array([np.ptp(part.values, axis=0) for part in parts]).max(axis=0)
    for name, spread in zip(parts[0].names, spreads[: len(parts[0].names)], strict=True):
        if spread == 0:
            raise ValueError(f"every column must vary in some client's table; column {name!r} doesn't")
    return parts


def check_same_columns(parts: Sequence[Part]) -> None:
    """Refuse tables that differ in their columns or in the order of these."""
    for number, part in enumerate(parts, start=1):
        if part.names != parts[0].names:
            raise ValueError(
                f"all clients must have the same columns in the same order; client {number} has "
                f"{', '.join(part.names)}, the first {', '.join(parts[0].names)}"
            )


def listed(tables: Iterable[Any]) -> list[Any]:
    """Return tables as a list, or refuse what is a single table."""
    if isinstance(tables, pd.DataFrame | str | Dataset) or not isinstance(tables, Iterable):
        raise ValueError(f"fit needs a list of tables, one per client; received {type(tables).__name__}")
    return list(tables)


def _each_read(tables: Iterable[Any], settings: Settings) -> Iterator[Part]:
    for number, table in enumerate(listed(tables), start=1):
        try:
            yield read_client(table, settings)
        except ValueError as error:
            raise ValueError(f"client {number}: {error}") from None
