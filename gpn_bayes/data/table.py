"""`Table`: data, and what describes their rows and columns, stated once for all that take them."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from gpn_bayes._util import cells
from gpn_bayes.data.dataset import Dataset
from gpn_bayes.data.keywords import KEYWORDS, Described, Keywords, ReadingKeywords, TableKeywords, in_short, settings_of
from gpn_bayes.data.kinds import CATEGORICAL, in_words
from gpn_bayes.data.reading import check_described
from gpn_bayes.data.statistics import SufficientStatistics, read_data

__all__ = ["ReadingKeywords", "Table", "TableKeywords", "described"]

_SORTS = {"continuous": "number", "integer": "whole number", "categorical": "category", "ordered": "ordered"}


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Table(Described):
    """A table and what describes its rows and columns, stated once; it is data for all that take tables.

    `gpn_bayes.sample`, `gpn_bayes.bootstrap`, the ``fit`` of learners and the ``bind`` of scores take the same keywords
    besides data, from ``kinds`` to ``target_penalty``: ``gpn.sample(df, weights="n")`` is ``gpn.sample(gpn.Table(df,
    weights="n"))``. What only says how to read a table, from ``columns`` to ``sheet``, is for a `Table`, and methods of
    posteriors that take rows, such as `GraphPosterior.predict`, take all of it by a `Table`. What a `Table` states
    already can't be given again; what it doesn't may be added: also the kinds of further columns, and further entries
    of ``drop``, ``categories`` and ``na``. Keywords are checked at once as far as the data in memory allow; the table
    is read when it is used.

    Parameters
    ----------
    data : DataFrame, ndarray, str or Path
        Variables are columns. Columns of an array are named v1, v2, ….
    kinds : mapping of str to str or sequence, optional
        What columns are, whatever they look like: "number"; "category"; "binary", a category of two levels;
        "ordered", whole numbers ordered by value; or a list of the levels of an ordered column, the lowest first:
        ``{"visits": "number", "grade": ["low", "mid", "high"]}``. Other columns are what they look like.
    weights : str or sequence, optional
        How many rows each row stands for: the name of a column, which is then no variable, or a sequence with a
        number for each row. Whole numbers are frequencies: all is as if each row stood there that many times. Any
        others are survey weights, scaled to add up to the number of rows, of which a warning says what they mean.
        Rows of weight 0 are left out.
    missing : {"error", "drop", "impute"}
        Whether to refuse missing values, to drop the rows that have any (`rows_dropped` counts them), or to leave
        them to `gpn_bayes.sample`, which draws them along with the networks; nothing else takes such a table.
    imputations : int, default 5
        How many completed tables there are, 2 or more and at most five per chain, where `gpn_bayes.sample` has a run of
        its own for each, as under "gp".
    targets : str or sequence, optional
        Which variables were changed in each row, by an experiment: the name of a column, which is then no variable,
        or a sequence with an entry for each row. An entry is empty where all were only observed, a name, several
        names joined by ";", or a list of names.
    intervention : {"perfect", "soft"}, optional
        What was done to targets: "perfect", the default, set them from outside, whatever their parents; "soft"
        changed how they depend on the same parents.
    contexts : str or sequence, optional
        Where it isn't known what experiments changed: the experiment of each row, given as targets are. Rows
        without one are the reference, in which nothing was changed; if there are none, those of the first row's
        experiment. At most 12 besides the reference.
    target_probability : float, optional
        The prior probability that an experiment of unknown targets changed a variable; 0.1 by default.
    target_penalty : float, optional
        Instead, what each change costs: this much is subtracted from the log score.
    columns, drop : str or sequence of str
        Columns to use, all by default, and columns to leave out.
    categories : str or sequence of str
        Columns to treat as categories, whatever they look like.
    discretise : int or "mean", optional
        Cut measurements into this number of levels of equal frequency, or at their mean. Whole numbers with at most
        20 values, and columns with no more values than levels, keep theirs.
    na : str, number or sequence of these
        Values that mean missing, besides empty cells, NA, NaN, N/A and null: "n.d.", -99.
    sep : str, optional
        The field separator of a text file.
    decimal : {".", ","}, optional
        The decimal sign of a file; the other sign may then stand between thousands.
    encoding : str, optional
        The encoding of a text file, such as "cp1252".
    sheet : str or int, optional
        The sheet of an Excel file, by name or by number from 1; the first by default.

    Attributes
    ----------
    keywords : dict
        What was said of the table, as it was given.

    Raises
    ------
    ValueError
        For keywords that there are not, that contradict each other, or that don't go with the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.DataFrame({"rain": ["no", "yes", "yes"], "wet": ["no", "no", "yes"], "days": [20, 2, 8]})
    >>> table = Table(days, weights="days")
    >>> table
    Table of 3 rows and 3 columns
      how many rows each row stands for: column 'days'
      read as 30 rows of 2 variables: 2 categories (rain, wet)
    >>> table.read().n_rows
    30
    >>> Table(days, wieghts="days")
    Traceback (most recent call last):
    ValueError: a table has no keyword 'wieghts': did you mean 'weights'?
    """

    def __init__(self, data: Any, **keywords: Unpack[Keywords]) -> None:
        # What can be read only once is kept, to be checked now and used later.
        given = {name: list(own) if isinstance(own, Iterator) else own for name, own in keywords.items()}
        if isinstance(data, Described):
            data, given = data.data, data.joined(given)
        if isinstance(data, Dataset):
            Dataset._read(data, given, whole=True, gaps=True)
        else:
            check_described(data, settings_of(given))
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "keywords", given)

    def read(self) -> Dataset:
        """Read the table, with all checks.

        Raises
        ------
        ValueError
            As of `Dataset.read`, which lists everything that is wrong.

        Examples
        --------
        >>> Table(np.array([[0.5, 1.0], [1.5, 4.0], [2.5, 2.0]])).read().kinds
        ('continuous', 'integer')
        """
        return Dataset._read(self.data, self.keywords, whole=True)

    def __repr__(self) -> str:
        """Say in words what was stated, and how columns are read."""
        return "\n  ".join([self._title, *self._stated(), self._as_read()])

    @cells.safe_html
    def _repr_html_(self) -> str:
        parts = [cells.heading(self._title), cells.listed([*self._stated(), self._as_read()])]
        table = self._quietly_read()
        if isinstance(table, Dataset):
            parts.append(cells.table(["column", "read as", "values"], list(_columns(table))))
        return cells.cell(*parts)

    @property
    def _title(self) -> str:
        if hasattr(self.data, "shape"):
            return f"Table of {self.data.shape[0]} rows and {self.data.shape[1]} columns"
        if isinstance(self.data, Dataset):
            return f"Table of {self.data.n_rows} rows and {len(self.data.names)} columns"
        return f"Table of the file {self.data}"

    def _stated(self) -> list[str]:
        """Return in words what was stated, in the order of the definitions."""
        said = []
        for name, own in KEYWORDS.items():
            if name in self.keywords:
                value = self.keywords[name]
                text = value if isinstance(value, str) else in_short(value)
                said.append(own.words.format(f"column {value!r}" if own.of_rows and text is value else text))
        return said

    def _as_read(self) -> str:
        """Return in words what the columns are read as, or why they can't be."""
        table = self._quietly_read()
        if isinstance(table, str):
            return f"can't be read yet: {table}"
        sorts = [
            [name for name, kind in zip(table.names, table.kinds, strict=True) if kind in kinds]
            for kinds in (_SORTS.keys() - CATEGORICAL, {"categorical"}, {"ordered"})
        ]
        dropped = f", after {table.rows_dropped} with missing values were dropped" if table.rows_dropped else ""
        return f"read as {table.size} rows of {len(table.names)} variables{dropped}: {in_words(*sorts)}"

    def _quietly_read(self) -> Dataset | str:
        """Return the table as it is read, or the first line of what is wrong with it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.read()
        except ValueError as error:
            return str(error).partition("\n")[0]


def described(data: Any, keywords: TableKeywords) -> Any:
    """Return data with what was said of them; as they are where nothing was.

    Examples
    --------
    >>> values = np.eye(3)
    >>> described(values, {}) is values, described(values, {"missing": "drop"}).keywords
    (True, {'missing': 'drop'})
    >>> described(values, {"drop": "v1"})
    Traceback (most recent call last):
    ValueError: drop says how to read a table: use gpn.Table(data, drop='v1') as data
    """
    if not keywords:
        return data
    for name, value in keywords.items():
        if name in ReadingKeywords.__annotations__:
            raise ValueError(f"{name} says how to read a table: use gpn.Table(data, {name}={in_short(value)}) as data")
    if isinstance(data, list | tuple):  # several tables, as for series
        return [described(own, keywords) for own in data]
    return read_data(data, **keywords) if isinstance(data, SufficientStatistics) else Table(data, **keywords)


def _columns(table: Dataset) -> Iterator[tuple[str, str, str]]:
    """Return for each column its name, what it is read as, and which values it has."""
    for name, column, kind, levels in zip(table.names, table.values.T, table.kinds, table.levels, strict=True):
        if kind in CATEGORICAL:
            values = (" < " if kind == "ordered" else ", ").join(map(str, levels or ()))
        else:
            values = f"{np.nanmin(column):g} to {np.nanmax(column):g}"
        yield name, _SORTS[kind], values
