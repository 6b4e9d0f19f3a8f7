"""Any table a user has -> a checked `Dataset`."""

import hashlib
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes.data.files import check_names, read_file

# Integer columns with more distinct values than this are measurements, not categories.
MAX_INTEGER_LEVELS = 64


def fingerprint_of(*parts: Any) -> str:
    """Return a content hash of JSON-able parts and arrays."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(str(part.shape).encode())
            digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
        else:
            digest.update(json.dumps(part, default=str).encode())
    return digest.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A complete table of variables, as the user gave it.

    Attributes
    ----------
    names : tuple of str
        Variable names, in the user's order.
    values : ndarray of shape (rows, variables)
        Raw values; categorical columns hold the 0-based code of their level.
    kinds : tuple of str
        "continuous" (floats), "integer" (whole numbers and booleans, usable either way) or
        "categorical" (text and pandas categoricals).
    levels : tuple of (tuple or None)
        The levels of each column that can be read as discrete, else None.
    fingerprint : str
        A hash of the content: equal tables have equal fingerprints.

    Examples
    --------
    >>> import pandas as pd
    >>> data = Dataset.read(pd.DataFrame({"x": [0.5, 1.5, 1.0], "y": ["a", "b", "a"]}))
    >>> data.kinds, data.levels[1]
    (('continuous', 'categorical'), ('a', 'b'))
    >>> numbers = Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]]))
    >>> numbers.n_rows, numbers.numeric("my score")[0].tolist(), numbers.standardised("my score")[0].tolist()
    (3, [1.0, 4.0], [-1.0, 0.0])
    """

    names: tuple[str, ...]
    values: np.ndarray
    kinds: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the fingerprint."""
        levels = [None if known is None else [str(level) for level in known] for known in self.levels]
        object.__setattr__(self, "fingerprint", fingerprint_of(list(self.names), list(self.kinds), levels, self.values))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @classmethod
    def read(cls, data: "Dataset | pd.DataFrame | np.ndarray | str | Path") -> "Dataset":
        """Check a DataFrame, an array, or a CSV or Parquet file, and return it as a `Dataset`.

        Parameters
        ----------
        data : DataFrame, ndarray, str, Path or Dataset
            Variables are columns. Columns of an array are named v1, v2, ….

        Raises
        ------
        ValueError
            For missing or infinite values, constant columns, repeated names, or fewer than two columns.
        """
        return cls._read(data, whole=True)

    @classmethod
    def _read(cls, data: "Dataset | pd.DataFrame | np.ndarray | str | Path", whole: bool) -> "Dataset":
        if isinstance(data, Dataset):
            return data
        if isinstance(data, str | Path):
            data = read_file(Path(data))
        if isinstance(data, np.ndarray):
            data = _frame_of_array(data)
        if not isinstance(data, pd.DataFrame):
            raise ValueError(
                f"data must be a DataFrame, an array or the path of a table; received {type(data).__name__}"
            )
        return _dataset_of_frame(data, whole)

    def numeric(self, purpose: str) -> np.ndarray:
        """Return the raw values as floats, or say which column is not a number.

        Parameters
        ----------
        purpose : str
            What needs numbers, for the message where a column holds text.
        """
        for name, kind, levels in zip(self.names, self.kinds, self.levels, strict=True):
            if kind == "categorical":
                example = levels[0] if levels else ""
                raise ValueError(f"{purpose} needs numbers; column {name!r} holds text such as {example!r}")
        return self.values

    def standardised(self, purpose: str) -> np.ndarray:
        """Return the values centred and scaled to unit variance (ddof = 1).

        Parameters
        ----------
        purpose : str
            As of `numeric`.
        """
        values = self.numeric(purpose)
        return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def read_part(data: "Dataset | pd.DataFrame | np.ndarray | str | Path") -> Dataset:
    """Return one party's part of a larger table: as `Dataset.read`, but columns may be constant, and a row is enough.

    Examples
    --------
    >>> read_part(np.array([[1.0, 2.0]])).n_rows
    1
    """
    return Dataset._read(data, whole=False)


def _frame_of_array(values: np.ndarray) -> pd.DataFrame:
    if values.ndim != 2:
        raise ValueError(f"an array of data must have two dimensions; received {values.ndim}")
    # Columns of objects are numbers where all their entries are.
    return pd.DataFrame(values, columns=[f"v{i + 1}" for i in range(values.shape[1])]).infer_objects()


def _dataset_of_frame(frame: pd.DataFrame, whole: bool) -> Dataset:
    """Check a table; a part of one may have a single row, and columns that don't vary in it."""
    names = tuple(str(name) for name in frame.columns)
    check_names(names)
    if whole and len(frame) < 2:
        raise ValueError(f"a table needs at least two rows; received {len(frame)}")
    if frame.empty:
        raise ValueError("a part of a table needs at least one row; received none")
    columns = [_read_column(name, frame.iloc[:, i]) for i, name in enumerate(names)]
    values = np.column_stack([column for column, _, _ in columns])
    if whole:
        _check_variation(names, values)
        _warn_of_identical_columns(names, values)
    values.setflags(write=False)
    return Dataset(names, values, tuple(kind for _, kind, _ in columns), tuple(levels for *_, levels in columns))


def _read_column(name: str, column: pd.Series) -> tuple[np.ndarray, str, tuple[Any, ...] | None]:
    """Return a column's values as floats, its kind and its levels."""
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(f"every value must be present; column {name!r} has {missing} missing")
    kind, levels = "continuous", None
    if isinstance(column.dtype, pd.CategoricalDtype):
        kind, levels = "categorical", tuple(column.cat.categories)
        values = column.cat.codes.to_numpy(dtype=float)
    elif pd.api.types.is_bool_dtype(column.dtype):
        kind, levels = "integer", (False, True)
        values = column.to_numpy(dtype=float)
    elif pd.api.types.is_numeric_dtype(column.dtype):
        if pd.api.types.is_complex_dtype(column.dtype):
            raise ValueError(f"values must be real numbers; column {name!r} is complex")
        values = column.to_numpy(dtype=float)
        if pd.api.types.is_integer_dtype(column.dtype):
            kind = "integer"
            distinct = np.unique(values)
            levels = tuple(int(v) for v in distinct) if len(distinct) <= MAX_INTEGER_LEVELS else None
    elif pd.api.types.is_string_dtype(column.dtype) or pd.api.types.is_object_dtype(column.dtype):
        codes, found = pd.factorize(column.astype(str), sort=True)
        kind, levels, values = "categorical", tuple(found), codes.astype(float)
    else:
        raise ValueError(f"columns must hold numbers or categories; column {name!r} is {column.dtype}")
    if not np.isfinite(values).all():
        raise ValueError(f"every value must be finite; column {name!r} holds an infinite value")
    return values, kind, levels


def _check_variation(names: tuple[str, ...], values: np.ndarray) -> None:
    for name, column in zip(names, values.T, strict=True):
        if np.ptp(column) == 0 or column.std(ddof=1) == 0:
            raise ValueError(f"every column must vary; column {name!r} is constant")


def _warn_of_identical_columns(names: tuple[str, ...], values: np.ndarray) -> None:
    seen: dict[bytes, str] = {}
    for name, column in zip(names, values.T, strict=True):
        first = seen.setdefault(column.tobytes(), name)
        if first != name:
            warnings.warn(
                f"columns {first!r} and {name!r} are identical: the data can't tell them apart",
                UserWarning,
                stacklevel=5,
            )
