"""What keeps a table from being used: each problem with its rule and its remedy, all listed at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# More problems, cells or rows than these are counted, not listed.
_LISTED_PROBLEMS, _LISTED_CELLS, _LISTED_ROWS = 20, 3, 5


@dataclass(frozen=True)
class Problem:
    """One thing that keeps a table from being used.

    Attributes
    ----------
    rule : str
        What holds for every table.
    finding : str
        What was found in this one.
    remedy : str
        What to do about it, in arguments of `gpn_bayes.Table`, which the command line shows as its own; empty where
        nothing is known.
    """

    rule: str
    finding: str
    remedy: str = ""

    @property
    def with_remedy(self) -> str:
        """The finding and what to do about it."""
        return f"{self.finding}: {self.remedy}" if self.remedy else self.finding


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one `ValueError` that lists all problems: one in one line, several on separate lines.

    Examples
    --------
    >>> raise_problems([Problem("every column must vary", "column 'x' is constant")])
    Traceback (most recent call last):
    ValueError: every column must vary; column 'x' is constant
    """
    if not problems:
        return
    if len(problems) == 1:
        raise ValueError(f"{problems[0].rule}; {problems[0].with_remedy}")
    lines = [problem.with_remedy for problem in problems[:_LISTED_PROBLEMS]]
    more = len(problems) - len(lines)
    lines += [f"and {more} more"] if more else []
    raise ValueError(
        f"a table must hold complete columns of numbers or categories that vary; received one with {len(problems)} "
        "problems:" + "".join(f"\n  {line}" for line in lines)
    )


def argument(name: str, value: Any) -> str:
    """Return an argument of `gpn_bayes.Table` as it is written in Python, which `in_options` writes as an option.

    Examples
    --------
    >>> argument("drop", ["id"])
    "gpn.Table(data, drop=['id'])"
    """
    return f"gpn.Table(data, {name}={value!r})"


def listed_rows(labels: Sequence[Any], word: str) -> str:
    """Return where something is, ``lines 4, 9 and 12``.

    Parameters
    ----------
    labels : sequence
        The rows' labels.
    word : str
        What a row is called: ``line`` or ``row``.

    Examples
    --------
    >>> listed_rows([4, 9, 12], "line"), listed_rows(range(90), "row")
    ('lines 4, 9 and 12', 'rows 0, 1, 2, 3, 4 and 85 more')
    """
    shown = [str(label) for label in labels[:_LISTED_ROWS]]
    rest = len(labels) - len(shown)
    parts = [*shown, f"{rest} more"] if rest else shown
    joined = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"{word}{'s' if len(labels) > 1 else ''} {joined}"


def listed_cells(cells: dict[Any, list[Any]], word: str) -> str:
    """Return values and where they are, ``'<0.1' in line 7, 'n.d.' in lines 9 and 12``.

    Parameters
    ----------
    cells : dict
        The labels of the rows that hold a value, by value.
    word : str
        What a row is called.

    Examples
    --------
    >>> listed_cells({"<0.1": [7], "n.d.": [9, 12]}, "line")
    "'<0.1' in line 7 and 'n.d.' in lines 9 and 12"
    """
    shown = [f"{value!r} in {listed_rows(rows, word)}" for value, rows in list(cells.items())[:_LISTED_CELLS]]
    rest = sum(map(len, list(cells.values())[_LISTED_CELLS:]))
    parts = [*shown, f"{rest} more cells" if rest > 1 else "one more cell"] if rest else shown
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def listed_names(names: Sequence[str]) -> str:
    """Return the names of columns, ``column 'x'`` or ``columns 'x', 'y'``, the first five of them.

    Examples
    --------
    >>> listed_names(["x"]), listed_names(["x", "y"])
    ("column 'x'", "columns 'x', 'y'")
    """
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"{'column' if len(names) == 1 else 'columns'} {shown}"
