"""One party's table: binary columns, and a key for each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes.private.alignment import encode_keys
from gpn_bayes.private.settings import MAX_ROWS


@dataclass(frozen=True)
class PartyTable:
    """What one party brings; printing it shows no value.

    Attributes
    ----------
    columns : dict of str to ndarray of uint8
        Zeros and ones, by the name of the variable.
    keys : list
        One for each row, a text or a whole number.
    """

    columns: dict[str, np.ndarray]
    keys: list[Any]

    def __repr__(self) -> str:
        """Return the size."""
        return f"PartyTable({len(self.columns)} columns, {self.rows} rows)"

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.keys)


def read_table(frame: pd.DataFrame, key: str | None = None, chosen: Sequence[str] | None = None) -> PartyTable:
    """Return a party's table.

    Parameters
    ----------
    frame : DataFrame
        Columns with two different values each, whatever these are; which of them is called 1 doesn't matter to K2.
    key : str, optional
        The column that tells the rows apart; by default the index.
    chosen : sequence of str, optional
        The columns to take; by default all but the key.

    Examples
    --------
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "rain": ["no", "yes", "no"]})
    >>> read_table(frame, key="id")
    PartyTable(1 columns, 3 rows)
    """
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"a party's table must be a DataFrame; received {type(frame).__name__}")
    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column names must differ; {name!r} appears more than once")
    if key is not None and key not in names:
        raise ValueError(f"the key must be a column of the table; {key!r} is not one")
    if not 1 <= len(frame) <= MAX_ROWS:
        raise ValueError(f"a party's table must have 1 to {MAX_ROWS} rows; received {len(frame)}")
    keys = frame.index if key is None else frame.iloc[:, names.index(key)]
    if keys.hasnans:
        raise ValueError("every row must have a key; some are missing")
    wanted = [name for name in names if name != key and (chosen is None or name in chosen)]
    if not wanted:
        raise ValueError("a party's table must have a variable of the order besides the key; received none")
    columns = {name: _bits(name, frame.iloc[:, names.index(name)]) for name in wanted}
    listed = keys.tolist()
    encode_keys(listed)  # an invalid key is reported before the parties meet
    return PartyTable(columns, listed)


def _bits(name: str, column: pd.Series) -> np.ndarray:
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(f"every value must be present; column {name!r} has {missing} missing")
    codes, levels = pd.factorize(column)
    if len(levels) < 2:
        raise ValueError(f"every column must vary; column {name!r} is constant")
    if len(levels) > 2:
        raise ValueError(f"every column must have two different values; column {name!r} has {len(levels)}")
    return codes.astype(np.uint8)
