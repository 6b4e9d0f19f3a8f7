"""The table of a file as a DataFrame, to look at and to change before it is analysed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gpn_bayes.data.files import check_file
from gpn_bayes.data.keywords import settings_of
from gpn_bayes.data.reading import read_frame


def read_table(
    path: str | Path,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    na: Any = (),
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
) -> pd.DataFrame:
    r"""Return the table of a file as a DataFrame, read as `gpn_bayes.sample` reads it.

    Files are text (.csv, .tsv, .txt), Excel (.xlsx), Parquet (.parquet) or Feather (.feather). Of text, the separator,
    the decimal sign, the encoding and its byte order mark are recognised. What isn't as in a plain CSV file, and what
    was left out, is said in one line on stderr, and stands in ``attrs["notes"]``. Missing values, identifiers, constant
    columns and the like are there as they are in the file: `Dataset.read` refuses or drops them.

    Parameters
    ----------
    path : str or Path
        The file.
    sep, decimal, encoding, sheet, na, columns, drop
        As in `Dataset.read`.

    Returns
    -------
    DataFrame
        Numbers as numbers, all else as text.

    Raises
    ------
    ValueError
        If the file holds no table, or one whose header or numbers can be read in several ways.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gpn_bayes as gpn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "cells.csv").write_text("dose;weight\n0,5;61\n1,5;n.d.\n", encoding="utf-8")
    ...     table = gpn.read_table(Path(folder) / "cells.csv", na="n.d.")
    >>> table["dose"].tolist(), int(table["weight"].isna().sum())
    ([0.5, 1.5], 1)
    >>> table.attrs["notes"]
    ('read cells.csv: semicolons, decimal comma; 2 rows, 2 columns',)
    """
    check_file(Path(path))
    given = {"sep": sep, "decimal": decimal, "encoding": encoding, "sheet": sheet, "na": na}
    frame = read_frame(Path(path), settings=settings_of({**given, "columns": columns, "drop": drop}))
    for note in frame.attrs["notes"]:
        print(note, file=sys.stderr)
    return frame
