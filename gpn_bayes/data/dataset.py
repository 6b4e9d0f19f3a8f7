"""Any table a user has -> a checked `Dataset`."""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.data.interventions import Interventions, refuse_interventions
from gpn_bayes.data.keywords import KEYWORDS, Described, Keywords, given_names, settings_of
from gpn_bayes.data.kinds import CATEGORICAL
from gpn_bayes.data.notation import unit_of
from gpn_bayes.data.problems import argument, listed_names
from gpn_bayes.data.reading import checked_table
from gpn_bayes.data.weights import are_frequencies, refuse_weights, warn_of_survey_weights


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
    """A table of variables, as the user gave it; complete, unless it was read to have its missing values imputed.

    Attributes
    ----------
    names : tuple of str
        Variable names, in the user's order.
    values : ndarray of shape (rows, variables)
        Raw values; categorical columns hold the 0-based code of their level. NaN where `missing`.
    kinds : tuple of str
        "continuous" (numbers of which some have a fraction, and what is stated to be a number), "integer" (whole
        numbers, also where they are stored as floats, and booleans, usable either way), "categorical" (text and pandas
        categoricals) or "ordered" (categories in order).
    levels : tuple of (tuple or None)
        The levels of each column that can be read as discrete, else None.
    missing : ndarray of bool, shape (rows, variables), or None
        Which values are to be imputed; None where there are none.
    fingerprint : str
        A hash of the content: equal tables have equal fingerprints.
    rows_dropped : int
        Number of rows that were left out because of missing values.
    notes : tuple of str
        What was recognised in a file, and what was left out of it.
    interventions : Interventions or None
        Which variables were changed in which rows, or may have been; None where all were only observed.
    weights : ndarray of shape (rows,), or None
        How many rows each stands for, where that isn't one: survey weights, scaled to add up to the number of rows, or
        frequencies of more than 100,000 rows in all.
    repeated : bool
        Whether rows stand there as often as their frequencies said.
    imputations : int
        How many completed tables there are to be where missing values are drawn once for several runs.
    own_units : tuple of ndarray, or None
        Of rows that are part of a larger table: its means and standard deviations, by which they are standardised.

    Examples
    --------
    >>> import pandas as pd
    >>> data = Dataset.read(pd.DataFrame({"x": [0.5, 1.5, 1.0], "y": ["a", "b", "a"]}))
    >>> data.kinds, data.levels[1]
    (('continuous', 'categorical'), ('a', 'b'))
    >>> numbers = Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]]))
    >>> numbers.n_rows, numbers.numeric("my score")[0].tolist(), numbers.standardised("my score")[0].tolist()
    (3, [1.0, 4.0], [-1.0, 0.0])

    What takes `SufficientStatistics` too asks both alike; only these have no `table`, and refuse what needs rows:

    >>> numbers.table is numbers.with_rows("my score needs the rows"), numbers.require_numbers("my score")
    (True, None)
    """

    names: tuple[str, ...]
    values: Floats
    kinds: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    rows_dropped: int = 0
    notes: tuple[str, ...] = ()
    interventions: Interventions | None = None
    weights: Floats | None = None
    repeated: bool = False
    imputations: int = KEYWORDS["imputations"].default
    own_units: tuple[Floats, Floats] | None = None
    # As of `SufficientStatistics`, which may have some.
    noise: ClassVar[None] = None
    experiments: ClassVar[None] = None
    missing: Bools | None = field(init=False)
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Note which values are missing, and compute the fingerprint."""
        gaps = np.isnan(self.values)
        object.__setattr__(self, "missing", gaps if gaps.any() else None)
        levels = [None if known is None else [str(level) for level in known] for known in self.levels]
        changed = self.interventions
        further = [] if changed is None else [*changed.parts()]
        further += [] if self.weights is None else ["weights", self.weights]
        fingerprint = fingerprint_of(list(self.names), list(self.kinds), levels, self.values, *further)
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        rows: int = self.values.shape[0]
        return rows

    @property
    def size(self) -> int:
        """Number of rows that these stand for, by their weights; without any, `n_rows`.

        Examples
        --------
        >>> Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])).size
        3
        """
        return self.n_rows if self.weights is None else round(float(self.weights.sum()))

    @classmethod
    def read(
        cls,
        data: "Dataset | Described | pd.DataFrame | NDArray[Any] | str | Path",
        **keywords: Unpack[Keywords],
    ) -> "Dataset":
        """Check a DataFrame, an array or a file, and return it as a `Dataset`.

        Files are text (CSV, with any separator), Excel (.xlsx), Parquet or Feather. Of text, the separator, the decimal
        sign and the encoding are recognised; `notes` says so where they aren't those of a plain CSV file. Objects in a
        DataFrame are read by their content, so that ``df.astype(object)`` is the same as ``df``, and numbers by their
        values: 0.0 and 1.0 are the whole numbers 0 and 1, also in a column that has missing values. Text is taken as
        categories, also if every text is a whole number; a column that mixes numbers and text is refused, and so are
        numbers with a fraction that are given as text.

        Parameters
        ----------
        data : DataFrame, ndarray, str, Path, Table or Dataset
            Variables are columns. Columns of an array are named v1, v2, ….
        **keywords
            What describes its rows and columns, and how it is read: those of `gpn_bayes.Table`.

        Raises
        ------
        ValueError
            For missing or infinite values, constant columns, columns that mix numbers and text, identifiers and row
            numbers, repeated names, or fewer than two columns; the message lists everything that is wrong.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"id": ["a", "b", "c", "d"], "x": [1.0, 2.5, None, 4.0], "y": [3, 1, 2, 2]})
        >>> data = Dataset.read(table, drop="id", missing="drop")
        >>> data.names, data.n_rows, data.rows_dropped
        (('x', 'y'), 3, 1)
        >>> grades = pd.DataFrame({"grade": ["mid", "low", "high", "low"], "ill": [0, 1, 1, 0]})
        >>> data = Dataset.read(grades, kinds={"grade": ["low", "mid", "high"], "ill": "number"})
        >>> data.kinds, data.values[:, 0].tolist()
        (('ordered', 'continuous'), [1.0, 0.0, 2.0, 0.0])
        >>> counted = pd.DataFrame({"rain": ["no", "yes", "yes"], "wet": ["no", "no", "yes"], "days": [20, 2, 8]})
        >>> data = Dataset.read(counted, weights="days")
        >>> data.names, data.n_rows
        (('rain', 'wet'), 30)
        """
        return cls._read(data, keywords, whole=True)

    @classmethod
    def _read(
        cls, data: Any, keywords: Mapping[str, Any], whole: bool, declared: Sequence[str] = (), gaps: bool = False
    ) -> "Dataset":
        """Read a table, whole or a part of one; `gaps` lets one pass that was read before and has missing values."""
        if isinstance(data, Described):
            data, keywords = data.data, data.joined(keywords)
        settings = settings_of(keywords, declared, read=isinstance(data, Dataset))
        if isinstance(data, Dataset):
            further = [name for name in given_names(settings) if name not in ("missing", "imputations")]
            if further:
                raise ValueError(f"{further[0]} is for tables that aren't read yet; received a Dataset")
            if settings["missing"] != "impute" and not gaps:
                data.refuse_gaps()
            return replace(data, imputations=settings["imputations"]) if "imputations" in keywords else data
        table = checked_table(data, settings, whole)
        values = np.column_stack([column.values for column in table.columns])
        if whole:
            _warn_of_identical_columns(table.names, values)
        values.setflags(write=False)
        kinds, levels = (tuple(getattr(column, part) for column in table.columns) for part in ("kind", "levels"))
        if table.weights is not None and not are_frequencies(table.weights):
            warn_of_survey_weights(table.weights)
        return cls(
            table.names, values, kinds, levels, table.rows_dropped, table.notes, table.interventions, table.weights,
            table.repeated, settings["imputations"],
        )  # fmt: skip

    @property
    def table(self) -> "Dataset | None":
        """The rows, for what can do with `SufficientStatistics` too: these have none."""
        return self

    def require_numbers(self, purpose: str, instead: str = "") -> None:
        """Refuse columns of categories; see `numeric`."""
        self.numeric(purpose, instead)

    def with_rows(self, need: str) -> "Dataset":
        """Return the table; `SufficientStatistics` refuse by the need, such as "a bootstrap needs the rows"."""
        return self

    def refuse_gaps(self) -> None:
        """Refuse a table with missing values, where it must be complete.

        Examples
        --------
        >>> Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [np.nan, 0.0]]), missing="impute").refuse_gaps()
        Traceback (most recent call last):
        ValueError: this takes complete tables; received one with 1 missing values, which only gpn.sample draws along
        with the networks: read it with missing='drop'
        """
        if self.missing is not None:
            raise ValueError(
                f"this takes complete tables; received one with {self.missing.sum()} missing values, which only "
                "gpn.sample draws along with the networks: read it with missing='drop'"
            )

    def rows(self, places: NDArray[Any]) -> "Dataset":
        """Return some of the rows, as a table of its own without interventions; columns keep their levels.

        Parameters
        ----------
        places : ndarray of int
            Which rows.

        Examples
        --------
        >>> Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])).rows(np.array([0, 2])).values.tolist()
        [[1.0, 4.0], [5.0, 0.0]]
        """
        chosen = self.values[places]
        chosen.setflags(write=False)
        weights = None if self.weights is None else self.weights[places]
        return Dataset(self.names, chosen, self.kinds, self.levels, weights=weights)

    def in_units_of(self, whole: "Dataset") -> "Dataset":
        """Return some rows of a table, to be standardised by the means and standard deviations of all its rows.

        Examples
        --------
        >>> whole = Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]]))
        >>> whole.rows(np.array([0, 2])).in_units_of(whole).standardised("my score").tolist()
        [[-1.0, 0.0], [1.0, -1.0]]
        """
        return replace(self, own_units=(whole.means(), whole.spreads()))

    def numeric(self, purpose: str, instead: str = "") -> Floats:
        """Return the raw values as floats, or say which column is not a number.

        Parameters
        ----------
        purpose : str
            What needs numbers, for the message where a column holds text.
        instead : str
            What takes such tables, for the same message.
        """
        text = [place for place, kind in enumerate(self.kinds) if kind in CATEGORICAL]
        if text:
            names, known = [self.names[place] for place in text], self.levels[text[0]]
            example = known[0] if known else ""
            several = len(names) > 1
            what = "text" if isinstance(example, str) else "categories"
            units = isinstance(example, str) and unit_of(example) != ""
            remedies = ["write the numbers without their units"] * units
            if len(self.names) - len(names) > 1:
                remedies.append(f"{argument('drop', names)} leaves {'them' if several else 'it'} out")
            if instead and not units and len(names) < len(self.names):
                remedies.append(instead)
            raise ValueError(
                f"{purpose} needs numbers; {listed_names(names)} hold{'s' * (not several)} {what} such as {example!r}"
                + (f": {', or '.join(remedies)}" if remedies else "")
            )
        return self.values

    def standardised(self, purpose: str, instead: str = "") -> Floats:
        """Return the values centred and scaled to unit variance (ddof = 1).

        Parameters
        ----------
        purpose, instead : str
            As of `numeric`.
        """
        # Columns in one piece, as pandas has them: sums are then rounded alike.
        columns = np.ascontiguousarray(self.numeric(purpose, instead).T)
        if self.own_units is not None:
            centre, scale = self.own_units
            return np.ascontiguousarray((columns.T - centre) / scale)
        if self.weights is not None:
            return np.ascontiguousarray((columns.T - self.means()) / self.spreads())
        centred = columns - columns.mean(axis=1, keepdims=True)
        return np.ascontiguousarray((centred / columns.std(axis=1, ddof=1, keepdims=True)).T)

    def means(self) -> Floats:
        """Return the mean of every column, over all rows that these stand for.

        Examples
        --------
        >>> Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])).means().tolist()
        [3.0, 4.0]
        """
        means: Floats = np.average(self.values, axis=0, weights=self.weights)
        return means

    def spreads(self) -> Floats:
        """Return the standard deviation (ddof = 1) of every column, over all rows that these stand for.

        Examples
        --------
        >>> Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])).spreads().tolist()
        [2.0, 4.0]
        """
        if self.weights is None:
            return np.asarray(self.values.std(axis=0, ddof=1))
        squares: Floats = self.weights @ (self.values - self.means()) ** 2
        return np.sqrt(squares / (self.size - 1))


def read_part(data: Any, **keywords: Unpack[Keywords]) -> Dataset:
    """Return one party's part of a larger table: as `Dataset.read`, but columns may be constant, and a row is enough.

    Examples
    --------
    >>> read_part(np.array([[1.0, 2.0]])).n_rows
    1
    """
    part = Dataset._read(data, keywords, whole=False)
    refuse_interventions(part, "a part of a larger table")
    refuse_weights(part, "a part of a larger table")
    return part


def _warn_of_identical_columns(names: tuple[str, ...], values: Floats) -> None:
    seen: dict[bytes, str] = {}
    for name, column in zip(names, values.T, strict=True):
        first = seen.setdefault(column.tobytes(), name)
        if first != name:
            warnings.warn(
                f"columns {first!r} and {name!r} are identical: the data can't distinguish them",
                UserWarning,
                stacklevel=4,
            )
