"""CSV and Parquet files -> tables, read as they stand there."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from gpn_bayes.extras import installed_by

MAX_VARIABLES = 256
# What stands for a missing value in a CSV file. Unlike to pandas, "None" doesn't: it is a level, as of pain.
_MISSING = (
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"]
    + ["<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"]
)  # fmt: skip


def check_names(names: tuple[str, ...]) -> None:
    """Refuse too few or too many columns, and names that are missing or not unique."""
    if len(names) < 2:
        raise ValueError(f"a network needs at least two variables; received {len(names)}")
    if len(names) > MAX_VARIABLES:
        raise ValueError(f"at most {MAX_VARIABLES} variables are supported; received {len(names)}")
    seen: set[str] = set()
    for name in names:
        if not name or name.startswith("Unnamed:"):
            raise ValueError(
                f"every column must have a name; received {name!r} (a row index? write the file without it)"
            )
        if name in seen:
            raise ValueError(f"column names must differ; {name!r} appears more than once")
        seen.add(name)


def read_file(path: Path, texts: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table of a CSV or Parquet file.

    Parameters
    ----------
    path : path
        The file.
    texts : sequence of str
        Columns of a CSV file that are read as they stand there: '007' isn't 7.
    """
    if not path.is_file():
        raise ValueError(f"the data file must exist; {str(path)!r} is not a file")
    if path.suffix.lower() in (".parquet", ".pq"):
        with installed_by("parquet"):
            import pyarrow  # noqa: F401 (pandas reads by it)
        try:
            return pd.read_parquet(path, engine="pyarrow")
        except (OSError, ValueError) as error:
            raise ValueError(f"{path.name} can't be read as Parquet: {_first_line(error)}") from None
    if path.stat().st_size == 0:
        raise ValueError(f"the data file must hold a table; {path.name!r} is empty")
    try:
        # pandas renames repeated columns, so the header is checked as it stands in the file.
        with path.open(newline="", encoding="utf-8-sig") as lines:
            header = next(csv.reader(lines, skipinitialspace=True), [])
        check_names(tuple(name.strip() for name in header))
        with warnings.catch_warnings():
            # Fields without a name would otherwise be taken for row labels, and dropped.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                skipinitialspace=True,
                encoding="utf-8-sig",
                index_col=False,
                keep_default_na=False,
                na_values=_MISSING,
                dtype={name: str for name in header if name.strip() in texts},
            )
    except pd.errors.ParserWarning:
        raise ValueError(f"{path.name} has more fields in its rows than names in its header") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} can't be read as a CSV table: {_first_line(error)}") from None
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return frame


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
