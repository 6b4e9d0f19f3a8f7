"""A column of any table -> numbers, their kind and levels; or what is wrong with it."""

import datetime
import decimal
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.data.kinds import BINARY, CATEGORICAL, CATEGORY, NUMBER, ORDERED, Stated, level_text
from gpn_bayes.data.levels import FEW_LEVELS
from gpn_bayes.data.notation import POINT, is_number, is_whole, parse_plain, unit_of
from gpn_bayes.data.problems import Problem, argument, listed_cells, listed_rows

# Columns of whole numbers with more distinct values than this are measurements, not categories.
MAX_INTEGER_LEVELS = 64
_EXACT = 2**53  # up to here all whole numbers are floats
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}([ T]\d.*)?|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2})([ T]\d.*)?", re.ASCII)
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_KINDS_RULE = "columns must hold numbers or categories"


class Column(NamedTuple):
    """A column as a `Dataset` holds it: floats, the kind and the levels."""

    values: Floats
    kind: str
    levels: tuple[Any, ...] | None


class Source(NamedTuple):
    """Where a column is from: its name, its rows' labels, what a row is called, and whether cells were texts there."""

    name: str
    labels: Any
    word: str
    of_text: bool = False

    def rows(self, chosen: Bools) -> str:
        """Return in words the rows that are chosen by a mask."""
        return listed_rows([self.labels[place] for place in np.flatnonzero(chosen)], self.word)

    def cells(self, column: NDArray[np.object_], chosen: Bools) -> str:
        """Return in words the values and rows that are chosen by a mask."""
        lines: dict[Any, list[Any]] = {}
        for place in np.flatnonzero(chosen):
            lines.setdefault(column[place], []).append(self.labels[place])
        return listed_cells(lines, self.word)


def read_column(column: pd.Series, source: Source, stated: Stated | None = None) -> Column | Problem:
    """Return what a column without missing values holds, or its problem.

    Parameters
    ----------
    column : Series
        Numbers, truth values, text, a pandas categorical, or objects: these are read by what they are.
    source : Source
        Where it is from.
    stated : str or tuple of str, optional
        Its kind, whatever it looks like; or its levels in order.
    """
    if isinstance(stated, tuple):
        return _of_levels(column, source, stated)
    if stated == NUMBER:
        return _stated_number(column, source)
    if stated == ORDERED:
        return _stated_order(column, source)
    if stated in (CATEGORY, BINARY):
        read = _categories(column, source)
        if stated == BINARY and isinstance(read, Column) and read.levels is not None and len(read.levels) > 2:
            finding = f"column {source.name!r} has {len(read.levels)}"
            return Problem("a column of kind 'binary' must have two values", finding)
        return read
    return _by_content(column, source)


def _by_content(column: pd.Series, source: Source) -> Column | Problem:
    if isinstance(column.dtype, pd.CategoricalDtype):
        read = _categories(column, source)
        return read._replace(kind="ordered") if column.cat.ordered and isinstance(read, Column) else read
    if pd.api.types.is_bool_dtype(column.dtype):
        return Column(column.to_numpy(dtype=float), "integer", (False, True))
    if pd.api.types.is_complex_dtype(column.dtype):
        return Problem("values must be real numbers", f"column {source.name!r} is complex")
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _numbers(column.to_numpy(), column.to_numpy(dtype=float), column.dtype, source)
    if pd.api.types.is_string_dtype(column.dtype) or pd.api.types.is_object_dtype(column.dtype):
        return _objects(column, source)
    remedy = f"{argument('drop', [source.name])} leaves it out"
    return Problem(_KINDS_RULE, f"column {source.name!r} is {column.dtype}", remedy)


def _numbers(given: Iterable[Any], values: Floats, dtype: Any, source: Source) -> Column | Problem:
    infinite = ~np.isfinite(values)
    if infinite.any():
        return Problem(
            "every value must be finite",
            f"column {source.name!r} holds an infinite value ({source.rows(infinite)})",
            f"{argument('na', ['inf', '-inf'])} counts such values as missing",
        )
    if not (pd.api.types.is_integer_dtype(dtype) or _are_whole(values)):
        return Column(values, "continuous", None)
    distinct = np.unique(values)
    large = np.abs(values) > _EXACT
    if large.any() and len(distinct) < len(set(given)):
        first = int(np.argmax(large))
        return Problem(
            f"whole numbers beyond {_EXACT} must remain distinct as floating-point numbers",
            f"column {source.name!r} holds {list(given)[first]} in {source.rows(np.arange(len(large)) == first)}",
            f"{argument('drop', [source.name])} leaves it out, {argument('categories', [source.name])} takes the "
            "numbers as names",
        )
    return Column(values, "integer", tuple(int(v) for v in distinct) if len(distinct) <= MAX_INTEGER_LEVELS else None)


def _are_whole(values: Floats) -> bool:
    """Tell whether numbers are whole, however they are stored: 1.0 is 1.

    Floating-point numbers beyond `_EXACT` have no fractions to lose, so that there it means nothing.
    """
    return bool((values == np.floor(values)).all() and (np.abs(values) <= _EXACT).all())


def _stated_number(column: pd.Series, source: Source) -> Column | Problem:
    """Read a column as numbers, also if these are given as text."""
    column = _of_plain_type(column)
    cells = column.to_numpy(dtype=object)
    if all(isinstance(cell, str) and is_number(cell, POINT) for cell in cells):
        numbers = parse_plain(cells)
        column = column if numbers is None else pd.Series(numbers)
    read = _by_content(column, source)
    if isinstance(read, Problem):
        return read
    if read.kind in CATEGORICAL:
        remedy = f"{argument('kinds', {source.name: CATEGORY})} takes them as categories"
        return Problem(
            "a column of kind 'number' must hold numbers",
            f"column {source.name!r} holds texts such as {str(cells[0])!r}",
            remedy,
        )
    return Column(read.values, "continuous", None)


def _stated_order(column: pd.Series, source: Source) -> Column | Problem:
    """Read a column of levels that are ordered by their values, or as pandas has them."""
    if not (isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered):
        column = _of_plain_type(column)
    read = _by_content(column, source)
    if isinstance(read, Problem) or read.kind == "ordered":
        return read
    if read.kind == "categorical":
        return Problem(
            "the order of texts must be stated",
            f"column {source.name!r} holds texts such as {str(column.iloc[0])!r}",
            f"{argument('kinds', {source.name: list(map(str, read.levels or ()))})} does, with the lowest first",
        )
    distinct = np.unique(read.values)
    as_number = f"{argument('kinds', {source.name: NUMBER})} takes it as a number"
    fractions = distinct[distinct != np.floor(distinct)]
    if len(fractions):
        rule = "an ordered column must hold whole numbers, or levels whose order is stated"
        return Problem(rule, f"column {source.name!r} holds fractions such as {fractions[0]:g}", as_number)
    if len(distinct) > MAX_INTEGER_LEVELS:
        return Problem(
            f"an ordered column must have at most {MAX_INTEGER_LEVELS} levels",
            f"column {source.name!r} has {len(distinct)}",
            as_number,
        )
    levels = tuple(map(int, distinct)) if read.levels is None else read.levels
    return Column(np.searchsorted(np.array(levels, dtype=float), read.values).astype(float), "ordered", levels)


def _of_levels(column: pd.Series, source: Source, levels: tuple[str, ...]) -> Column | Problem:
    """Read a column of the levels that are stated, the lowest first."""
    texts = np.array([level_text(cell) for cell in column], dtype=object)
    codes = pd.Index(levels).get_indexer(pd.Index(texts))
    if (codes < 0).any():
        rule = "the levels of an ordered column must be all that occur"
        return Problem(rule, f"column {source.name!r} also holds {source.cells(texts, codes < 0)}")
    return Column(codes.astype(float), "ordered", levels)


def _of_plain_type(column: pd.Series) -> pd.Series:
    """Return a pandas categorical as what its categories are."""
    return column.astype(column.cat.categories.dtype) if isinstance(column.dtype, pd.CategoricalDtype) else column


def _categories(column: pd.Series, source: Source) -> Column | Problem:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Column(column.cat.codes.to_numpy().astype(float), "categorical", tuple(column.cat.categories))
    if pd.api.types.is_float_dtype(column.dtype) and _are_whole(column.to_numpy(dtype=float)):
        column = column.astype("int64")  # so that levels are called alike
    elif pd.api.types.is_object_dtype(column.dtype):
        column = column.map(lambda cell: int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
    try:
        codes, levels = pd.factorize(column.astype(str), sort=True)
    except UnicodeDecodeError:
        remedy = f"{argument('drop', [source.name])} leaves it out"
        return Problem(_KINDS_RULE, f"column {source.name!r} holds bytes that aren't text", remedy)
    return Column(codes.astype(float), "categorical", tuple(levels))


def _objects(column: pd.Series, source: Source) -> Column | Problem:
    """Read objects by what they are, so that a table of objects is the same as the table they came from."""
    cells = column.to_numpy(dtype=object)
    kind = pd.api.types.infer_dtype(cells, skipna=False)
    if kind == "string":
        return _text(column, cells, source)
    if kind == "boolean":
        return Column(cells.astype(float), "integer", (False, True))
    numeric = np.array([_is_number(cell) for cell in cells])
    if numeric.all():
        whole = all(isinstance(cell, int | np.integer) for cell in cells)
        return _numbers(cells, np.array([_as_float(cell) for cell in cells]), np.dtype(int if whole else float), source)
    if numeric.any():
        return _mixed(cells, numeric, source)
    if all(isinstance(cell, _DATES) for cell in cells):
        return _dates(cells, source)
    return _categories(column, source)


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # a whole number of hundreds of digits
        return np.inf if cell > 0 else -np.inf


def _is_number(cell: Any) -> bool:
    return isinstance(cell, bool | int | float | np.bool_ | np.number | decimal.Decimal) and not isinstance(
        cell, np.complexfloating | np.timedelta64
    )


def _text(column: pd.Series, cells: NDArray[np.object_], source: Source) -> Column | Problem:
    """Read texts as categories, unless some of them are numbers: whole numbers in every cell are names of levels."""
    written = {text: is_number(text) for text in pd.unique(cells)}
    if not any(written.values()):
        if all(map(_DATE.fullmatch, written)):
            return _dates(cells, source)
        return _units(list(written), source) or _categories(column, source)
    if not all(written.values()):
        return _mixed(cells, np.array([written[text] for text in cells]), source)
    if all(map(is_whole, written)):
        return _categories(column, source)
    example = next(text for text in written if not is_whole(text))
    return Problem(
        "numbers must be given as numbers",
        f"column {source.name!r} holds them as text such as {example!r}",
        f"pandas.to_numeric converts it, {argument('categories', [source.name])} takes the texts as categories",
    )


def _units(texts: list[str], source: Source) -> Problem | None:
    """Return the problem of numbers that are all written with the same unit, unless they may be the names of levels."""
    units = {unit_of(text) for text in texts}
    if len(units) > 1 or "" in units:
        return None
    (unit,) = units
    whole = all(is_whole(text.removesuffix(unit).strip()) for text in texts)
    if "%" not in unit and len(texts) <= FEW_LEVELS and whole:
        return None
    return Problem(
        "numbers must be written without units",
        f"column {source.name!r} holds texts such as {texts[0]!r}",
        f"write the numbers alone; {argument('kinds', {source.name: CATEGORY})} takes the texts as categories",
    )


def _mixed(cells: NDArray[np.object_], numeric: Bools, source: Source) -> Problem:
    """Return the problem of a column of numbers and text, with the cells that are in the minority."""
    rule, name = "a column must hold either numbers or text", source.name
    as_categories = f"{argument('categories', [name])} takes the column as categories"
    if numeric.sum() * 2 < len(cells):
        return Problem(rule, f"column {name!r} holds text but {source.cells(cells, numeric)}", as_categories)
    odd = list(dict.fromkeys(str(cell) for cell in cells[~numeric]))[:3]
    counted = "them" if len(odd) > 1 else "it"
    written = [] if source.of_text else [cell for cell in cells if isinstance(cell, str) and is_number(cell)]
    if not written:
        as_missing = f"write a number there; {argument('na', odd)} counts {counted} as missing"
    elif parse_plain(np.array(written, dtype=object)) is not None:
        # Without the others these would still be texts.
        as_missing = f"pandas.to_numeric(data[{name!r}], errors='coerce') makes it numbers, missing where it can't"
    else:
        as_missing = "give numbers instead of texts"
    return Problem(
        rule, f"column {name!r} holds numbers but {source.cells(cells, ~numeric)}", f"{as_missing}, {as_categories}"
    )


def _dates(cells: NDArray[np.object_], source: Source) -> Problem:
    example = str(cells[0]).removesuffix(" 00:00:00")
    remedy = f"{argument('drop', [source.name])} leaves it out"
    return Problem(_KINDS_RULE, f"column {source.name!r} holds dates such as {example!r}", remedy)
