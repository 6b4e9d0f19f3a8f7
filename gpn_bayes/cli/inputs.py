"""Options that may be files: edges, tiers, orders, candidates and prior probabilities, read for known variables."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpn_bayes.cli.questions import read_question

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[str, str]


def read_edges(given: Sequence[str], names: Sequence[str], option: str) -> list[Pair]:
    """Return the edges of an option that takes ``cause -> effect`` or a CSV file, any number of times.

    Parameters
    ----------
    given : sequence of str
        What the user wrote, one entry a use of the option.
    names : sequence of str
        The variables.
    option : str
        The option, for messages.
    """
    edges: list[Pair] = []
    for text in given:
        if Path(text).is_file():
            edges += read_pairs(Path(text), names, option)
        elif "->" in text:
            try:
                _, (parent, child) = read_question(text, names, ["->"])
            except ValueError as error:
                raise ValueError(f"{option}: {error}") from None
            edges.append((parent, child))
        else:
            raise ValueError(f"{option} takes 'cause -> effect' or the path of a CSV file; received {text!r}")
    return edges


def read_pairs(path: Path, names: Sequence[str], option: str) -> list[Pair]:
    """Return the edges of a CSV file: columns cause and effect, parent and child, or any two."""
    header, *rows = _rows(path, option)
    lower = [cell.lower() for cell in header]
    for pair in (("cause", "effect"), ("parent", "child")):
        if set(pair) <= set(lower):
            i, j = lower.index(pair[0]), lower.index(pair[1])
            break
    else:
        if len(header) != 2:
            raise ValueError(
                f"{option}: a file of edges needs the columns cause and effect; {path.name!r} has {', '.join(header)}"
            )
        i, j = 0, 1
        if set(header) <= set(names):  # no header at all: that line is an edge too
            rows.insert(0, header)
    pairs = [(row[i], row[j]) for row in rows]
    for name in (name for pair in pairs for name in pair):
        if name not in names:
            raise ValueError(f"{option}: every name must be one of the variables; {name!r} is not")
    return pairs


def read_tiers(path: Path | None, names: Sequence[str]) -> dict[str, float] | None:
    """Return the tier of each variable from a CSV file with the columns name and tier."""
    if path is None:
        return None
    header, *rows = _rows(path, "--tiers")
    if len(header) != 2:
        raise ValueError(f"--tiers: a file of tiers has two columns, name and tier; received {len(header)}")
    if header[0] in names:
        rows.insert(0, header)
    tiers: dict[str, float] = {}
    for name, tier in rows:
        if name in tiers:
            raise ValueError(f"--tiers: every variable belongs to one tier; {name!r} is listed twice")
        tiers[name] = _number(tier, "--tiers: a tier must be a number")
    return tiers


def read_order(given: str | None, names: Sequence[str]) -> list[str] | None:
    """Return the variables of an option that takes ``a,b,c`` or a CSV file of names, all in one line or one in each."""
    if given is None:
        return None
    order = read_names(given, names, "--order")
    for name in order:
        if name not in names:
            raise ValueError(f"--order: every name must be one of the variables; {name!r} is not")
    return order


def read_names(given: str, names: Sequence[str], option: str) -> list[str]:
    """Return the names of an option as of `read_order`; others than those that are known may be among them."""
    path = Path(given)
    if path.is_file():
        return [cell for row in _rows(path, option) for cell in row if cell]
    if "," not in given and path.suffix and given not in names:
        raise ValueError(f"{option}: the file must exist; {given!r} is not a file")
    return [cell.strip() for cell in given.split(",")]


def read_candidates(given: str | None, names: Sequence[str]) -> dict[str, list[str]] | str | int | None:
    """Return the candidate parents of variables from a CSV file of edges, the name of a method, or a number.

    A line without a parent names a child that has no candidates.
    """
    if given is None:
        return None
    if is_whole(given):
        return int(given)
    path = Path(given)
    if not path.is_file() and not path.suffix:
        return given
    candidates: dict[str, list[str]] = {}
    for parent, child in read_pairs(path, [*names, ""], "--candidates"):
        if not child:
            raise ValueError(
                f"--candidates: every line must name a child; {path.name!r} has one with parent {parent!r}"
            )
        candidates.setdefault(child, []).extend([parent] if parent else [])
    return candidates


def read_prior(given: str, names: Sequence[str]) -> "str | pd.DataFrame":
    """Return the name of a prior, or edge probabilities from a CSV file.

    The file is a square table, rows parents, with names in its first row and column; or a list with the
    columns parent, child and probability, where an edge that isn't listed has probability one half.
    """
    path = Path(given)
    if not path.is_file():
        if path.suffix:
            raise ValueError(f"--prior: the file must exist; {given!r} is not a file")
        return given
    import numpy as np
    import pandas as pd

    rule = "--prior: edge probabilities must be numbers"
    header, *rows = _rows(path, "--prior")
    if [cell.lower() for cell in header[:3]] == ["parent", "child", "probability"]:
        table = pd.DataFrame(0.5, index=list(names), columns=list(names))
        for parent, child, probability, *_ in rows:
            for name in (parent, child):
                if name not in names:
                    raise ValueError(f"--prior: every name must be one of the variables; {name!r} is not")
            table.loc[parent, child] = _number(probability, rule)
        return table
    values: list[list[float]] = [
        # The diagonal means nothing and may be left empty.
        [np.nan if not cell and row[0] == name else _number(cell, rule)
         for name, cell in zip(header[1:], row[1:], strict=True)]
        for row in rows
    ]  # fmt: skip
    return pd.DataFrame(values, index=[row[0] for row in rows], columns=header[1:])


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return re.fullmatch("-?[0-9]+", text) is not None


def _number(text: str, rule: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{rule}; received {text!r}") from None


def _rows(path: Path, option: str) -> list[list[str]]:
    """Return the lines of a CSV file that aren't empty, all as long as the first."""
    if not path.is_file():
        raise ValueError(f"{option}: the file must exist; {str(path)!r} is not a file")
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            read: list[Any] = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option}: {path.name!r} can't be read as CSV: {error}") from None
    rows = [row for row in read if any(row)]
    if not rows:
        raise ValueError(f"{option}: the file must hold a table; {path.name!r} is empty")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{option}: every line must have as many fields as the first; line {number} of {path.name!r} "
                f"has {len(row)}, not {len(rows[0])}"
            )
    return rows
