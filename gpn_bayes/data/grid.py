"""Rows of cells, as a file holds them -> names and columns; what isn't part of the table is left out and reported."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Ints
from gpn_bayes.data.notation import is_number, is_whole
from gpn_bayes.data.problems import listed_rows

# What stands for a missing value in a file. Unlike in pandas, "None" doesn't: it is a level, as of pain.
MISSING = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"]
    + ["<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"]
)  # fmt: skip


# What stands in the place of a number is neither a name nor a unit.
_IN_PLACE_OF_NUMBERS = frozenset(["-", "--", ".", "?", "missing", "n.a.", "n.d.", "nd", "none", "unknown", "x"])


@dataclass(frozen=True)
class Grid:
    """The columns of a file, cell by cell.

    Attributes
    ----------
    names : tuple of str
        The header; a name may be empty or stand there twice.
    columns : list of ndarray
        Cells as they stand in the file; missing ones are None.
    lines : ndarray of int
        The line of the file, or the row of the sheet, that each row is from; counted from one.
    left_out : list of str
        In words, what isn't part of the table.
    """

    names: tuple[str, ...]
    columns: list[NDArray[np.object_]]
    lines: Ints
    left_out: list[str]


def read_grid(rows: Sequence[Sequence[Any]], file: str, word: str) -> Grid:
    """Find the header and the columns in the rows of a file.

    Parameters
    ----------
    rows : sequence of sequences
        The cells of every row of the file, blank ones too; texts are stripped.
    file : str
        The file's name, for messages.
    word : str
        What a row of it is called: ``line`` or ``row``.

    Raises
    ------
    ValueError
        If there is no header, or rows have more cells than it.
    """
    numbered = [(number, _trimmed(row)) for number, row in enumerate(rows, start=1)]
    filled = [(number, row) for number, row in numbered if row]
    if not filled:
        raise ValueError(f"the data file must hold a table; {file!r} is empty")
    # A blank line is not a row.
    left_out = _counted(sum(len(row) > 1 for row, (_, kept) in zip(rows, numbered, strict=True) if not kept), "row")
    body, above, comments = _without_titles(filled)
    left_out += [f"{listed_rows(above, word)} above the header"] if above else []
    left_out += [f"{_number_of(comments, f'{word} of comments', f'{word}s of comments')}"] if comments else []
    (header_line, header), *body = body
    names = [_name(cell) for cell in header]
    _check_header(names, body, header_line, file, word)
    body, below = _without_notes(body, len(names))
    if body and _is_second_header(names, body):
        if _is_torn(names, body[0][1]):
            raise ValueError(
                f"the header must be one row of names; {listed_rows([header_line, body[0][0]], word)} of {file!r} both "
                "hold names: join them into one, with a name for each column"
            )
        left_out.append(f"{word} {body[0][0]} of units")
        body = body[1:]
    left_out += [f"{listed_rows(below, word)} below the table"] if below else []
    width = len(names)
    for _, row in body:
        width = max(width, min(len(row), len(rows[header_line - 1])))  # below a field of the header that is empty
    _check_widths(body, width, file, word)
    names += [""] * (width - len(names))
    columns = [_cells([row[place] if place < len(row) else None for _, row in body]) for place in range(width)]
    lines = np.array([number for number, _ in body], dtype=int)
    empty = [place for place in range(width) if not names[place] and all(cell is None for cell in columns[place])]
    left_out += _counted(len(empty) + max(len(rows[header_line - 1]) - width, 0), "column")
    kept = [place for place in range(width) if place not in empty]
    if len(kept) > 1 and kept[0] == 0 and _is_row_index(names[0], columns[0]):
        left_out.append("the first column, which has no name and labels the rows")
        kept = kept[1:]
    return Grid(tuple(names[place] for place in kept), [columns[place] for place in kept], lines, left_out)


def _trimmed(row: Sequence[Any]) -> list[Any]:
    """Return a row up to its last cell that isn't empty."""
    end = next((place for place in range(len(row), 0, -1) if row[place - 1] not in (None, "")), 0)
    return list(row[:end])


def _number_of(count: int, one: str, several: str) -> str:
    return f"one {one}" if count == 1 else f"{count} {several}"


def _counted(count: int, what: str) -> list[str]:
    return [_number_of(count, f"empty {what}", f"empty {what}s")] if count else []


Rows = list[tuple[int, list[Any]]]


def _without_titles(rows: Rows) -> tuple[Rows, list[int], int]:
    """Return the rows from the header on, the numbers of those above, and how many comments were left out."""
    widths = Counter(len(row) for _, row in rows)
    width = max(widths, key=lambda width: (widths[width], width))

    def is_comment(row: list[Any]) -> bool:
        return str(row[0]).startswith("#") and len(row) < width

    def has_names(row: list[Any]) -> bool:
        return sum(cell not in (None, "") for cell in row) > 1

    wide = next((place for place, (_, row) in enumerate(rows) if not is_comment(row) and has_names(row)), 0)
    # Numbers below a single name: that is the header, of which the other names are missing.
    titled = not any(_holds_number(cell) for cell in rows[wide][1])
    first = wide if titled else next(place for place, (_, row) in enumerate(rows) if not is_comment(row))
    kept = [(number, row) for number, row in rows[first:] if not is_comment(row)]
    return kept, [number for number, _ in rows[:first]], len(rows) - first - len(kept)


def _is_second_header(names: list[str], body: Rows) -> bool:
    """Tell whether the first row below the header is part of it: no number in it, but below it in two columns or more.

    In a column of text, a row of units has nothing; a second row of names has a name, perhaps where the first has none.
    """
    first, rest = body[0][1], [row for _, row in body[1:]]
    if any(_holds_number(cell) for cell in first) or not rest:
        return False
    below = [[row[place] for row in rest if place < len(row)] for place in range(len(first))]
    numeric = [
        all(_holds_number(cell) for cell in cells if cell not in (None, *MISSING)) and any(map(_holds_number, cells))
        for cells in below
    ]
    texts = [cell for cell, number in zip(first, numeric, strict=True) if number and cell not in (None, *MISSING)]
    if sum(numeric) < 2 or 2 * len(texts) < sum(numeric) or not all(map(_may_be_unit, texts)):
        return False
    labels = [cell for cell, number in zip(first, numeric, strict=True) if not number]
    return _is_torn(names, first) or all(cell in (None, "", "-") or str(cell).startswith(("[", "(")) for cell in labels)


def _may_be_unit(cell: Any) -> bool:
    return isinstance(cell, str) and cell.lower() not in _IN_PLACE_OF_NUMBERS and not cell.startswith(("<", ">", "#"))


def _is_torn(names: list[str], second: list[Any]) -> bool:
    """Tell whether a header lacks names that may stand in the second row, as it does where its cells were merged."""
    given = names[: len(second)] + [""] * (len(second) - len(names))
    return "" in given or len(set(given)) < len(given)


def _without_notes(body: Rows, width: int) -> tuple[Rows, list[int]]:
    """Return the rows without those at the end that are notes, and the numbers of these: texts alone in a row."""
    end = len(body)
    while end and width > 1 and len(body[end - 1][1]) == 1 and not _holds_number(body[end - 1][1][0]):
        end -= 1
    notes = body[end:]
    if not end or not notes:
        return body, []
    apart = notes[0][0] > body[end - 1][0] + 1
    if apart or all(_holds_number(row[0]) for _, row in body[1:end]):  # units may stand in the first
        return body[:end], [number for number, _ in notes]
    return body, []


def _holds_number(cell: Any) -> bool:
    return is_number(cell) if isinstance(cell, str) else isinstance(cell, int | float)


def _name(cell: Any) -> str:
    # Names may be broken into lines.
    return "" if cell is None else " ".join(str(cell).split())


def _check_header(names: list[str], body: Rows, line: int, file: str, word: str) -> None:
    """Refuse a first row of the table in the place of a header: numbers, and texts that stand below themselves."""
    given = [name for name in names if name]
    numbers = [name for name in given if is_number(name)]
    # Whole numbers may be names; measurements, or one number twice, can't.
    measured = [name for name in numbers if not is_whole(name) or name.startswith("-") or given.count(name) > 1]
    if measured and all(_stands_below(place, names, body) for place in range(len(names))):
        raise ValueError(
            f"the header must hold the names of columns; {word} {line} of {file!r} holds numbers such as "
            f"{measured[0]!r}: add a line of names"
        )


def _stands_below(place: int, names: list[str], body: Rows) -> bool:
    """Tell whether a name may be a cell of its own column: a number, or a text that is found there again."""
    name = names[place]
    return not name or is_number(name) or any(place < len(row) and row[place] == name for _, row in body)


def _check_widths(body: Rows, width: int, file: str, word: str) -> None:
    wide = [(number, len(row)) for number, row in body if len(row) > width]
    if not wide:
        return
    if len(wide) == len(body):
        fields = wide[0][1]
        hint = " (decimal commas? then separate the fields by semicolons)" if fields == 2 * width else ""
        raise ValueError(f"{file} has more fields in its rows than names in its header: {fields}, not {width}{hint}")
    several = len(wide) > 1
    raise ValueError(
        f"no row may have more fields than the header; {listed_rows([number for number, _ in wide], word)} of {file!r} "
        f"{'have' if several else 'has'} {wide[0][1]}{' and more' * several}, not {width}"
    )


def _cells(cells: list[Any]) -> NDArray[np.object_]:
    column = np.empty(len(cells), dtype=object)
    column[:] = [None if cell is None or (isinstance(cell, str) and cell in MISSING) else cell for cell in cells]
    return column


def _is_row_index(name: str, column: NDArray[np.object_]) -> bool:
    """Tell whether a column is a row index: nameless, with consecutive numbers or texts that all differ."""
    if name and not name.startswith("Unnamed:"):
        return False
    cells = [str(cell) for cell in column]
    if all(map(is_whole, cells)):
        return [int(cell) - int(cells[0]) for cell in cells] == list(range(len(cells)))
    return not name and len(set(cells)) == len(cells) and not any(map(is_number, cells))
