"""Columns that name or number the rows: they are no variables."""

import re

import numpy as np
import pandas as pd

from gpn_bayes.data.columns import Column
from gpn_bayes.data.kinds import CATEGORY, NUMBER
from gpn_bayes.data.problems import Problem, argument, listed_names

# In fewer rows all values may well differ.
FEWEST_ROWS = 10
_NUMBERS = ("integer", "floating", "mixed-integer-float")
_OF_ROWS = "case|donor|participant|patient|person|record|respondent|row|sample|specimen|subject"
# "patient_id" and "patientId", but not "acid"; "Patient No." and "sample", but not "particle number".
_NAME = re.compile(
    r"(?i:(^|.*[\W_])(id|ids|idx|uuid|guid|rowid|rownum|barcode|mrn)|index|"
    rf"({_OF_ROWS})([\W_]*(no|nr|num|number|code|key)\.?)?)|.*[a-z](Id|ID)"
)


def named_so(name: str) -> bool:
    """Tell whether a column is called as identifiers are.

    Examples
    --------
    >>> [name for name in ("patient_id", "patientId", "Sample No.", "acid", "body mass index") if named_so(name)]
    ['patient_id', 'patientId', 'Sample No.']
    """
    return _NAME.fullmatch(name) is not None


def numbers_rows(name: str, column: pd.Series) -> bool:
    """Tell whether a column numbers the rows: whole numbers that count from 0 or 1, or differ and are called so.

    Measurements in whole numbers that merely all differ, as in a small table, don't.

    Parameters
    ----------
    name : str
        What it is called.
    column : Series
        What it holds, without missing values.

    Examples
    --------
    >>> weights = pd.Series([71, 64, 88, 90, 55, 61, 77, 80, 102, 69])
    >>> numbers_rows("weight", weights), numbers_rows("sample", weights), numbers_rows("n", pd.Series(range(1, 20)))
    (False, True, True)
    """
    if len(column) < FEWEST_ROWS or pd.api.types.infer_dtype(column, skipna=False) not in _NUMBERS:
        return False
    cells = column.tolist()
    if any(cell % 1 for cell in cells):  # 1.0 is a whole number; an infinite value leaves NaN
        return False
    counting = cells[0] in (0, 1) and cells == list(range(int(cells[0]), int(cells[0]) + len(cells)))
    return counting or (named_so(name) and len(set(cells)) == len(cells))


def names_rows(column: Column) -> bool:
    """Tell whether a column holds a different text in every row."""
    return (
        column.kind == "categorical"
        and len(column.values) >= FEWEST_ROWS
        and len(np.unique(column.values)) == len(column.values)
    )


def identifier_problem(texts: list[str], numbers: list[str], others: int) -> list[Problem]:
    """Return the problem that columns name or number the rows; none where there are no such.

    Parameters
    ----------
    texts, numbers : list of str
        The columns that do so by text and by whole numbers.
    others : int
        How many other columns the table has.
    """
    names = texts + numbers
    if not names:
        return []
    what = " or ".join(["text"] * bool(texts) + ["whole number"] * bool(numbers))
    several = len(names) > 1
    verb, them = ("hold", "them") if several else ("holds", "it")
    leaving = [f"{argument('drop', names)} leaves {them} out"] if others > 1 else []
    kinds = {**dict.fromkeys(texts, CATEGORY), **dict.fromkeys(numbers, NUMBER)}
    return [
        Problem(
            "a row number or an identifier is no variable",
            f"{listed_names(names)} {verb} a different {what} in every row",
            ", ".join([*leaving, f"{argument('kinds', kinds)} keeps {them}"]),
        )
    ]
