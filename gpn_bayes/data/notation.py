"""Numbers as they are written in files: decimal signs and thousands separators."""

import re
import string
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.types import Ints
from gpn_bayes.data.problems import argument, listed_rows

POINT, COMMA = ".", ","
_SPACES = " '’\u00a0\u202f"  # between thousands in France and Switzerland
_UNIT_SIGNS = "%‰°µμΩ€$£/ "
_WHOLE = re.compile(r"[+-]?\d+")
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


@cache
def _grammar(decimal: str) -> re.Pattern[str]:
    """Return what a number looks like with a decimal sign; thousands may stand apart, by the same mark throughout."""
    sign, other = re.escape(decimal), COMMA if decimal == POINT else POINT
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>[{re.escape(other)}{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*(?:{sign}\d*)?"
    plain = rf"(?:\d+(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?"
    return re.compile(rf"[+−-]?(?:{grouped}|{plain}|(?i:inf|infinity))", re.ASCII)


def is_number(text: str, decimal: str | None = None) -> bool:
    """Tell whether a text is a number, with the decimal sign or, by default, with either.

    Examples
    --------
    >>> [text for text in ("1.5", "1,5", "1.234,5", "-2e-3", "<0.1", "5 mg") if is_number(text)]
    ['1.5', '1,5', '1.234,5', '-2e-3']
    """
    return any(_grammar(sign).fullmatch(text) is not None for sign in ((POINT, COMMA) if decimal is None else decimal))


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number without thousands separators."""
    return _WHOLE.fullmatch(text) is not None


def unit_of(text: str) -> str:
    """Return the unit of a text that is a number with one; empty for others.

    Examples
    --------
    >>> [unit_of(text) for text in ("12%", "1.5 mg/l", "p38", "3a1")]
    ['%', 'mg/l', '', '']
    """
    number = text.rstrip(_UNIT_SIGNS + string.ascii_letters)
    return text[len(number) :].strip() if is_number(number.strip()) else ""


def without_percent(texts: NDArray[np.object_]) -> NDArray[np.object_] | None:
    """Return the numbers of a column of percentages, as text; None if it isn't one.

    Parameters
    ----------
    texts : ndarray of object
        Texts, of which missing ones are None.

    Examples
    --------
    >>> without_percent(np.array(["12 %", None, "7.5%"], dtype=object)).tolist()
    ['12', None, '7.5']
    """
    first = next((text for text in texts if text is not None), "")
    if not isinstance(first, str) or not first.endswith("%"):
        return None
    if not all(text is None or (isinstance(text, str) and text.endswith("%")) for text in texts):
        return None
    numbers = np.array([None if text is None else text[:-1].strip() for text in texts], dtype=object)
    return numbers if all(text is None or is_number(text) for text in numbers) else None


def parse_plain(texts: NDArray[np.object_]) -> NDArray[Any] | None:
    """Return the numbers that texts stand for in a plain CSV file, as `pandas.read_csv` has them; None if some aren't.

    Examples
    --------
    >>> parse_plain(np.array(["1.5", "2"], dtype=object)).tolist()
    [1.5, 2.0]
    """
    try:
        return _whole_or_float(pd.to_numeric(texts))
    except (TypeError, ValueError):
        return None


def parse(texts: NDArray[np.object_], decimal: str) -> NDArray[Any] | None:
    """Return the numbers or truth values that texts stand for; None if some aren't.

    Parameters
    ----------
    texts : ndarray of str, dtype object
        What stands in the cells of a column.
    decimal : {".", ","}
        The decimal sign.

    Examples
    --------
    >>> parse(np.array(["1.234,5", "2"], dtype=object), ",").tolist()
    [1234.5, 2.0]
    """
    distinct = pd.unique(texts)
    if all(text in _TRUTH for text in distinct):
        return np.array([_TRUTH[text] for text in texts])
    if not all(is_number(text, decimal) for text in distinct):
        return None
    written = {text: _without_marks(text, decimal) for text in distinct}
    return parse_plain(np.array([written[text] for text in texts], dtype=object))


def _whole_or_float(numbers: NDArray[Any]) -> NDArray[Any]:
    # Whole numbers beyond 64 bits come back as objects, some even as they were written.
    return np.array([int(number) for number in numbers], dtype=object) if numbers.dtype == object else numbers


def _without_marks(text: str, decimal: str) -> str:
    text = text.replace("−", "-").translate({ord(mark): None for mark in _SPACES})
    return text.replace(POINT, "").replace(COMMA, POINT) if decimal == COMMA else text.replace(COMMA, "")


class Notation(NamedTuple):
    """How numbers are written in a table: the decimal sign, and whether there are thousands separators."""

    decimal: str
    grouped: bool


def find_notation(
    columns: Mapping[str, NDArray[np.object_]], odd: Iterable[str], lines: Ints, word: str, decimal: str | None
) -> Notation:
    """Return the one notation that all numbers of a table are written in.

    A point is a decimal point unless some number can only have a decimal comma (``1,5`` or ``1.234,5``). A comma before
    three digits, ``1,234``, can be either: it takes another number of the table to decide, or `decimal`.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The cells of each column; missing ones are None.
    odd : iterable of str
        Those that `parse_plain` can't read.
    lines : ndarray
        The rows' labels.
    word : str
        What a row is called.
    decimal : {".", ","}, optional
        The decimal sign, where it is known.

    Raises
    ------
    ValueError
        If numbers are written both ways, or can be read both ways.
    """
    if decimal is None and not any(_has_marks(columns[name]) for name in odd):
        return Notation(POINT, False)
    numbers = _numbers_of(columns)
    grouped = any(mark in text for cells in numbers.values() for text in cells for mark in _SPACES)
    if decimal is None:
        decimal = _decimal_of(numbers, columns, lines, word)
    other = COMMA if decimal == POINT else POINT
    grouped |= any(other in text and is_number(text, decimal) for cells in numbers.values() for text in cells)
    return Notation(decimal, grouped)


def _has_marks(cells: NDArray[np.object_]) -> bool:
    """Tell whether some number of a column isn't written as in plain CSV files."""
    marks = (COMMA, *_SPACES)
    texts = (text for text in pd.unique(cells) if isinstance(text, str))
    return any(any(mark in text for mark in marks) and is_number(text) for text in texts)


def _numbers_of(columns: Mapping[str, NDArray[np.object_]]) -> dict[str, list[str]]:
    """Return the distinct texts that are numbers in some notation, of columns that mostly hold such."""
    read = {}
    for name, cells in columns.items():
        distinct = [text for text in pd.unique(cells) if isinstance(text, str)]
        numbers = [text for text in distinct if is_number(text)]
        if len(numbers) * 2 >= len(distinct):
            read[name] = numbers
    return read


def _decimal_of(
    numbers: Mapping[str, Iterable[str]], columns: Mapping[str, NDArray[np.object_]], lines: Ints, word: str
) -> str:
    sure: dict[str, tuple[str, str]] = {}
    unsure = None
    for name, cells in numbers.items():
        for text in cells:
            possible = [sign for sign in (POINT, COMMA) if is_number(text, sign)]
            if len(possible) == 1:
                sure.setdefault(possible[0], (name, text))
            elif COMMA in text and unsure is None:
                unsure = (name, text)

    def place(cell: tuple[str, str]) -> str:
        name, text = cell
        row: Any = lines[np.flatnonzero(columns[name] == text)[0]]
        return f"{text!r} in {listed_rows([row], word)} of column {name!r}"

    if len(sure) > 1:
        raise ValueError(
            f"all numbers of a table must have the same decimal sign; {place(sure[COMMA])} has a comma, "
            f"{place(sure[POINT])} a point: use one decimal sign, or leave a column out by "
            f"{argument('drop', [sure[COMMA][0]])} or {argument('drop', [sure[POINT][0]])}"
        )
    if unsure is not None and not sure:
        as_comma, as_point = (_without_marks(unsure[1], sign) for sign in (COMMA, POINT))
        raise ValueError(
            f"it must be clear what commas in numbers mean; {place(unsure)} can be {as_point} or {as_comma}: "
            f"{argument('decimal', POINT)} reads it as {as_point}, {argument('decimal', COMMA)} as {as_comma}"
        )
    return next(iter(sure), POINT)
