"""Files -> rows of cells: text with any separator and encoding, and sheets of Excel."""

import os
import warnings
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

from gpn_bayes._util.extras import installed_by
from gpn_bayes.data.grid import Grid, read_grid
from gpn_bayes.data.recognising import SEPARATORS, decode, find_separator, records

_PARQUET, _FEATHER = (".parquet", ".pq"), (".feather", ".ftr", ".arrow")
_ZIPPED = b"PK\x03\x04"  # how an .xlsx file begins, whatever it is called
# Excel's own limit; a file may say that a cell stands in any row, and rows before it count as empty ones.
_MAX_SHEET_ROWS = 1 << 20
# What a table may take in memory, whatever its file says: cells of a sheet are Python objects, others numbers.
_MAX_SHEET_CELLS = 50_000_000
_MAX_CELLS = 500_000_000
# A compressed file may unpack to any size. Sheets do to ten or twenty times their own, small ones to a few megabytes.
_MAX_UNPACKED = 2 << 30
_MAX_RATIO = 200
_ALWAYS_UNPACKED = 100 << 20
_LONGEST_REASON = 300


@dataclass(frozen=True)
class FileTable:
    """What a file holds, before it is known which cells are numbers.

    Attributes
    ----------
    grid : Grid
        Its names and cells.
    word : str
        What a row is called: ``line`` or ``row``.
    recognised : list of str
        In words, what isn't as in a plain CSV file.
    """

    grid: Grid
    word: str
    recognised: list[str]


def check_file(path: Path) -> None:
    """Refuse a path that no table can be read from."""
    if not path.is_file():
        raise ValueError(f"the data file must exist; {str(path)!r} is not a file")
    if path.stat().st_size == 0:
        raise ValueError(f"the data file must hold a table; {path.name!r} is empty")


def is_columnar(path: Path) -> bool:
    """Tell whether a file is a Parquet or a Feather file by its ending."""
    return path.suffix.lower() in (*_PARQUET, *_FEATHER)


def read_columnar(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet or a Feather file."""
    with installed_by("parquet"):
        import pyarrow as _  # noqa: F401 (a missing package is reported first)
    parquet = path.suffix.lower() in _PARQUET
    try:
        table = _parquet(path) if parquet else _feather(path)
        table.validate(full=True)  # texts are decoded only when somebody looks at them
        frame: pd.DataFrame = table.to_pandas()
    except _TooLargeError:
        raise
    except Exception as error:  # a broken file can lead pyarrow to any
        name = "Parquet" if parquet else "Feather"
        raise ValueError(f"{path.name} can't be read as {name}: {_first_line(error)}") from None
    frame.columns = pd.Index([str(name) for name in frame.columns])
    return frame


class _TooLargeError(ValueError):
    """A table has too many cells."""


def _check_cells(path: Path, cells: int) -> None:
    if cells > _MAX_CELLS:
        raise _TooLargeError(f"a table must have {_MAX_CELLS:,} cells at most; {path.name!r} has {cells:,}")


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        _check_cells(path, file.metadata.num_rows * file.metadata.num_columns)
        return file.read(use_pandas_metadata=True)


def _feather(path: Path) -> Any:
    import pyarrow.ipc

    with pyarrow.OSFile(str(path)) as file:
        reader = pyarrow.ipc.open_file(file)
        batches, rows = [], 0
        for number in range(reader.num_record_batches):
            batches.append(reader.get_batch(number))
            rows += batches[-1].num_rows
            _check_cells(path, rows * len(reader.schema))
        return pyarrow.Table.from_batches(batches, reader.schema)


def read_cells(path: Path, sep: str | None, encoding: str | None, sheet: str | None) -> FileTable:
    """Return the cells of a text file or of a sheet of Excel.

    Parameters
    ----------
    path : path
        The file, which exists.
    sep, encoding : str, optional
        Of a text file; recognised by default.
    sheet : str, optional
        Name or number of the sheet; the first by default.

    Raises
    ------
    ValueError
        For files that hold no table.
    """
    with path.open("rb") as file:
        excel = file.read(len(_ZIPPED)) == _ZIPPED
    if excel:
        _refuse(path, "a text file", sep=sep, encoding=encoding)
        return _read_excel(path, sheet)
    _refuse(path, "an Excel file", sheet=sheet)
    return _read_text(path, sep, encoding)


def _refuse(path: Path, of: str, **settings: str | None) -> None:
    for name, value in settings.items():
        if value is not None:
            raise ValueError(f"{name} is a setting of {of}; received {value!r} for {path.name!r}")


def _read_text(path: Path, sep: str | None, encoding: str | None) -> FileTable:
    text, used = decode(path, encoding)
    sep = find_separator(text) if sep is None else sep
    if len(sep) != 1 or sep in '"\r\n':
        raise ValueError(f"sep must be a single character, such as ';'; received {sep!r}")
    try:
        rows = records(text, sep)
    except ValueError as error:
        raise ValueError(f"{path.name} can't be read as a CSV table: {_first_line(error)}") from None
    recognised = [] if sep == "," else [SEPARATORS.get(sep, f"fields separated by {sep!r}")]
    recognised += [] if used == "UTF-8" else [used]
    return FileTable(read_grid(rows, path.name, "line"), "line", recognised)


def _read_excel(path: Path, sheet: str | None) -> FileTable:
    with installed_by("excel"):
        import openpyxl  # here, as it takes a while to load

    try:
        # From an open file: whether it is Excel's is seen from its content, not from its name.
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")  # of what it doesn't keep: styles, lists to choose from
            _check_unpacked(file)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            names = [own.title for own in book.worksheets]  # and not those of charts
            chosen = _find_sheet(names, sheet)
            rows = []
            if chosen is not None:
                book[chosen].reset_dimensions()  # some programs write wrong ones
                rows = _rows_of_sheet(book[chosen].iter_rows(values_only=True))
    except Exception as error:  # a broken file can lead openpyxl to any
        raise ValueError(f"{path.name} can't be read as an Excel file: {_first_line(error)}") from None
    if chosen is None:
        received = f"received {sheet!r}" if names else f"{path.name!r} has none"
        raise ValueError(f"sheet must be one of {', '.join(map(repr, names))}, or its number; {received}")
    among = f", the first of {len(names)}" if len(names) > 1 and sheet is None else ""
    return FileTable(read_grid(rows, path.name, "row"), "row", [f"sheet {chosen!r}{among}"])


def _check_unpacked(file: IO[bytes]) -> None:
    """Refuse a file whose parts unpack to far more than the parts of a sheet do; no part gives more than it says."""
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    most = min(max(_MAX_RATIO * packed, _ALWAYS_UNPACKED), _MAX_UNPACKED)
    if unpacked > most:
        raise ValueError(f"its parts must unpack to {most >> 20} MB at most; they do to {unpacked >> 20} MB")


def _rows_of_sheet(given: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    cells = 0
    for row in given:
        cells += len(row)
        if len(rows) == _MAX_SHEET_ROWS or cells > _MAX_SHEET_CELLS:
            raise ValueError(
                f"a sheet must have {_MAX_SHEET_ROWS:,} rows and {_MAX_SHEET_CELLS:,} cells at most; this one has more"
            )
        rows.append([_cell(cell) for cell in row])
    return rows


def _find_sheet(names: list[str], sheet: str | None) -> str | None:
    """Return the name of the sheet that was asked for; None if there is none."""
    if sheet is None:
        return names[0] if names else None
    if sheet not in names and sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    return sheet if sheet in names else None


def _cell(cell: Any) -> Any:
    """Return a cell of a sheet; texts as they are in a text file."""
    return cell.strip() if isinstance(cell, str) else cell


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:_LONGEST_REASON] if text else type(error).__name__
