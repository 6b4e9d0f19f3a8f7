"""Flags, what checks of a table return, and the columns that they look at."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data.dataset import Dataset
from gpn_bayes.data.kinds import CATEGORICAL

# Worth knowing, but not a reason to doubt the answers.
MILD_KINDS = frozenset({"binary", "sorted rows"})
# Columns whose values are described one by one in a message; the others are counted.
DESCRIBED = 3
# Of the text of an error, in a message.
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Flag:
    """Something in the data that should be checked.

    Attributes
    ----------
    kind : str
        "sentinel", "identifier", "groups", "dependent rows", "sorted rows", "time to event", "codes", "spike",
        "outliers", "same rows", "same columns", "sums", "cut columns" or "binary"; of residuals,
        "leftover dependence", "heavy tails" or "uneven noise"; and "failed check" where a check raised an error.
    columns : tuple of str
        The columns it is about; none for whole rows.
    message : str
        What was seen, and what to do. Rows are counted from 1.

    Examples
    --------
    >>> flag = Flag("binary", ("smoker",), "smoker: two values only.")
    >>> flag.mild, Flag.read(flag.record()) == flag
    (True, True)
    """

    kind: str
    columns: tuple[str, ...]
    message: str

    @property
    def mild(self) -> bool:
        """Whether it is only worth knowing, and not a reason to doubt the answers."""
        return self.kind in MILD_KINDS

    def record(self) -> dict[str, Any]:
        """Return the flag as JSON takes it."""
        return {"kind": self.kind, "columns": list(self.columns), "message": self.message}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Flag":
        """Return the flag that `record` wrote."""
        return cls(str(record["kind"]), tuple(record["columns"]), str(record["message"]))


class TableColumn(NamedTuple):
    """The observed values of one column: their rows, and the distinct ones (ascending) with their counts."""

    name: str
    values: Floats
    rows: Ints
    distinct: Floats
    counts: Ints
    is_number: bool
    is_text: bool

    @classmethod
    def of(cls, data: Dataset, place: int, numbers: bool) -> "TableColumn":
        """Return a column of a table; `numbers` says whether the score reads it as one, if it can."""
        rows = np.flatnonzero(~np.isnan(data.values[:, place]))
        values = data.values[rows, place]
        distinct, counts = np.unique(values, return_counts=True)
        is_text = data.kinds[place] in CATEGORICAL
        return cls(data.names[place], values, rows, distinct, counts, numbers and not is_text, is_text)

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers alone."""
        return not self.is_text and is_whole(self.distinct)

    @property
    def unique(self) -> bool:
        """Whether no value occurs twice."""
        return len(self.distinct) == len(self.values)

    def holds(self, chosen: Bools) -> Bools:
        """Tell which of its values are among the chosen distinct ones."""
        return np.isin(self.values, self.distinct[chosen])

    def in_all_rows(self, n_rows: int) -> Floats:
        """Return its values in all rows of the table, NaN where there is none."""
        values = np.full(n_rows, np.nan)
        values[self.rows] = self.values
        return values

    def without(self, dropped: Bools) -> "TableColumn":
        """Return the column without the rows that hold the dropped distinct values."""
        if not dropped.any():
            return self
        kept = ~self.holds(dropped)
        return self._replace(
            values=self.values[kept],
            rows=self.rows[kept],
            distinct=self.distinct[~dropped],
            counts=self.counts[~dropped],
        )


def checked(checks: Mapping[str, Callable[[], Iterable[Flag | None]]]) -> tuple[Flag, ...]:
    """Return what all checks found; of one that raises an error, that it did: no run is lost to a check.

    Parameters
    ----------
    checks : mapping of str to callable
        For what each looks for, what returns its flags; None among them is left out.

    Examples
    --------
    >>> [flag] = checked({"outliers": lambda: [None], "residuals": lambda: [1 / 0]})
    >>> print(flag.message)
    the check of residuals failed: ZeroDivisionError: division by zero. The answers don't depend on it, but
    what it looks for may be there.
    """
    flags: list[Flag] = []
    for what, check in checks.items():
        try:
            flags += [flag for flag in check() if flag is not None]
        except Exception as error:  # whatever it is: hours of draws may be at stake
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_CHARACTERS]
            advice = "The answers don't depend on it, but what it looks for may be there."
            flags.append(Flag("failed check", (), f"the check of {what} failed: {text}. {advice}"))
    return tuple(flags)


def grouped(kind: str, seen: Sequence[tuple[str, str]], advice: str) -> Flag | None:
    """Return one flag for all columns with the same finding; None if there are none.

    Parameters
    ----------
    kind : str
        See `Flag`.
    seen : sequence of (str, str)
        Columns, and what was seen in each; the first few are described, the others only counted.
    advice : str
        What to do, in whole sentences.

    Examples
    --------
    >>> grouped("outliers", [("a", "3 values"), ("b", "1 value")], "Check them.").message
    'a: 3 values; b: 1 value. Check them.'
    """
    if not seen:
        return None
    descriptions = [f"{name}: {what}" for name, what in seen[:DESCRIBED]]
    more = len(seen) - len(descriptions)
    descriptions += [f"and {more} more column{'s' if more > 1 else ''}"] if more else []
    return Flag(kind, tuple(name for name, _ in seen), f"{'; '.join(descriptions)}. {advice}")


def value_range(values: Floats) -> str:
    """Return the first and the last of ascending values, in words."""
    return f"{values[0]:.3g} to {values[-1]:.3g}" if not is_whole(values) else f"{values[0]:.0f} to {values[-1]:.0f}"


def is_whole(values: Floats) -> bool:
    """Tell whether all of some numbers are whole."""
    return bool((values == np.floor(values)).all())


def listed(words: Sequence[str]) -> str:
    """Return words in a row.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
