"""The table, and options that may be files: edges, tiers, orders, candidates and prior probabilities."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpn_bayes.cli import screen

if TYPE_CHECKING:
    import pandas as pd

    from gpn_bayes.data import Dataset, SufficientStatistics

Pair = tuple[str, str]


def read_score(given: str) -> str:
    """Return the name of a score as `gpn_bayes.scores.by_name` takes it."""
    from gpn_bayes import scores
    from gpn_bayes._util.checks import check_choice

    check_choice("--score", given.lower(), scores.names())
    return given.lower()


def read_table(path: Path, options: dict[str, str]) -> "Dataset | SufficientStatistics":
    """Return the table of a file, read as the options of `reads_table` say; statistics pass through."""
    from gpn_bayes.data import read_data

    data = read_data(path, **_settings(options))
    _say_how(data)
    return data


def read_part(path: Path, options: dict[str, str]) -> "Dataset":
    """Return one party's part of a larger table, likewise."""
    from gpn_bayes.data import read_part as read

    data = read(path, **_settings(options))
    _say_how(data)
    return data


def _settings(options: dict[str, str]) -> dict[str, Any]:
    """Return the settings of `Dataset.read` that options stand for."""
    from gpn_bayes.data.keywords import KEYWORDS

    settings: dict[str, Any] = dict(options)
    for name, text in options.items():
        read = _TYPED.get(KEYWORDS[name].typed)
        settings[name] = text if read is None else read(text)
    return settings


def _names(text: str) -> list[str]:
    # An empty field is the name of an unnamed column.
    return next(csv.reader([text], skipinitialspace=True), []) or [""]


def _levels(text: str) -> int | str:
    return int(text) if is_whole(text) else text


def _separator(text: str) -> str:
    return "\t" if text.lower() in ("tab", "\\t") else text


def _say_how(data: "Dataset | SufficientStatistics") -> None:
    for text in data.notes:
        screen.note(text)
    if data.rows_dropped:
        screen.note(f"dropped {data.rows_dropped} of {data.n_rows + data.rows_dropped} rows with missing values")
    if data.missing is not None:
        rows, columns = (int(data.missing.any(axis=axis).sum()) for axis in (1, 0))
        screen.note(f"{data.missing.sum()} values are missing, in {rows} rows and {columns} columns")


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
    from gpn_bayes.posterior.questions import read_question

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
    """Return the edges of a CSV file: columns cause and effect, parent and child, or any two.

    Where a column type says that an edge is undirected, it is returned both ways.
    """
    from gpn_bayes.scores import GraphPrior

    header, *rows = _rows(path, option)
    lower = [cell.lower() for cell in header]
    with _naming(option, path):
        for pair in (("cause", "effect"), ("parent", "child")):
            if set(pair) <= set(lower):
                i, j = lower.index(pair[0]), lower.index(pair[1])
                break
        else:
            if len(header) != 2:
                raise ValueError(f"a file of edges needs the columns cause and effect; it has {', '.join(header)}")
            i, j = 0, 1
            if set(header) <= set(names):  # no header at all: that line is an edge too
                rows.insert(0, header)
        pairs = [(row[i], row[j]) for row in rows]
        if "type" in lower:  # as gpn-bayes estimate writes edges
            undirected = [(row[i], row[j]) for row in rows if row[lower.index("type")] == "undirected"]
            if undirected and option == "--required":
                raise ValueError(f"a required edge must have a direction; {' - '.join(undirected[0])} is undirected")
            pairs += [(child, parent) for parent, child in undirected]
        for name in (name for pair in pairs for name in pair):
            _check_name(name, names)
        if option == "--required":
            GraphPrior(names, required=pairs)
        elif option == "--forbidden":
            GraphPrior(names, forbidden=pairs)
    return pairs


def read_tiers(path: Path | None, names: Sequence[str]) -> dict[str, float] | None:
    """Return the tier of each variable from a CSV file with the columns name and tier."""
    if path is None:
        return None
    from gpn_bayes.scores import GraphPrior

    header, *rows = _rows(path, "--tiers")
    with _naming("--tiers", path):
        if len(header) != 2:
            raise ValueError(f"a file of tiers has two columns, name and tier; received {len(header)}")
        if header[0] in names:
            rows.insert(0, header)
        tiers: dict[str, float] = {}
        for name, tier in rows:
            _check_name(name, names)
            if name in tiers:
                raise ValueError(f"every variable belongs to one tier; {name!r} is listed twice")
            tiers[name] = _number(tier, "a tier must be a number")
        GraphPrior(names, tiers=tiers)
    return tiers


def read_kinds(given: str) -> dict[str, str | list[str]]:
    """Return the kinds of columns from a CSV file of name, kind and levels, or from ``a=number,b=ordered``.

    Levels of an ordered column stand in order, with ``<`` or ``|`` between them.
    """
    path = Path(given)
    rows = None if "=" in given and not path.is_file() else _rows(path, "--kinds")
    with _naming("--kinds", None if rows is None else path):
        if rows is None:
            fields = next(csv.reader([given], skipinitialspace=True), [])
            entries = [(name.strip(), kind.strip()) for name, _, kind in (field.rpartition("=") for field in fields)]
        else:
            entries = _kinds_of_file(rows)
        kinds: dict[str, str | list[str]] = {}
        for name, kind in entries:
            if name in kinds:
                raise ValueError(f"a column's kind must be given once; {name!r} is listed twice")
            several = re.split(r"[<|]", kind)
            kinds[name] = [level.strip() for level in several] if len(several) > 1 else kind.lower()
    return kinds


def _kinds_of_file(rows: list[list[str]]) -> list[Pair]:
    """Return columns with what is stated of them: a kind, or levels, which say that it is ordered."""
    header, *body = rows
    lower = [cell.lower() for cell in header]
    if lower not in (["name", "kind"], ["name", "kind", "levels"]):
        raise ValueError(f"a file of kinds has the columns name, kind and perhaps levels; it has {', '.join(header)}")
    entries = []
    for name, kind, *levels in body:
        if any(levels) and kind.lower() != "ordered":
            raise ValueError(f"only ordered columns have levels in order; {name!r} is {kind!r} and has {levels[0]!r}")
        entries.append((name, levels[0] if any(levels) else kind))
    return entries


def read_order(given: str | None, names: Sequence[str]) -> list[str] | None:
    """Return the variables of an option that takes ``a,b,c`` or a CSV file of names, all in one line or one in each."""
    if given is None:
        return None
    order = read_names(given, names, "--order")
    with _naming("--order", Path(given) if Path(given).is_file() else None):
        for name in order:
            _check_name(name, names)
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
    from gpn_bayes.candidates.spaces import candidate_lists
    from gpn_bayes.scores import GraphPrior

    candidates: dict[str, list[str]] = {}
    pairs = read_pairs(path, [*names, ""], "--candidates")
    with _naming("--candidates", path):
        for parent, child in pairs:
            if not child:
                raise ValueError(f"every line must name a child; one has the parent {parent!r} alone")
            candidates.setdefault(child, []).extend([parent] if parent else [])
        # Whether the others' candidates suffice can only be checked with the data.
        if any(candidates.values()):
            candidate_lists({name: candidates.get(name, []) for name in names}, GraphPrior(names))
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

    from gpn_bayes.scores import GraphPrior

    rule = "edge probabilities must be numbers"
    header, *rows = _rows(path, "--prior")
    with _naming("--prior", path):
        if [cell.lower() for cell in header[:3]] == ["parent", "child", "probability"]:
            table = pd.DataFrame(0.5, index=list(names), columns=list(names))
            for parent, child, probability, *_ in rows:
                for name in (parent, child):
                    _check_name(name, names)
                table.loc[parent, child] = _number(probability, rule)
        else:
            values: list[list[float]] = [
                # The diagonal has no meaning and may be left empty.
                [np.nan if not cell and row[0] == name else _number(cell, rule)
                 for name, cell in zip(header[1:], row[1:], strict=True)]
                for row in rows
            ]  # fmt: skip
            table = pd.DataFrame(values, index=[row[0] for row in rows], columns=header[1:])
        GraphPrior(names, edge_probabilities=table)
    return table


# How keywords of a table are written; see `gpn_bayes.data.keywords.Keyword.typed`.
_TYPED: dict[str, Callable[[str], Any]] = {
    "names": _names,
    "kinds": read_kinds,
    "levels": _levels,
    "separator": _separator,
}


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return re.fullmatch("-?[0-9]+", text) is not None


@contextmanager
def _naming(option: str, path: Path | None) -> Iterator[None]:
    """Put the option, and the file it was given, in front of what is wrong with it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{option}{'' if path is None else f' {path}'}: {error}") from None


def _check_name(name: str, names: Sequence[str]) -> None:
    if name not in names:
        from gpn_bayes._util.checks import did_you_mean

        raise ValueError(f"every name must be one of the variables; {name!r} is not{did_you_mean(name, names)}")


def _number(text: str, rule: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{rule}; received {text!r}") from None


def _rows(path: Path, option: str) -> list[list[str]]:
    """Return the lines of a CSV file that aren't empty, all as long as the first."""
    if not path.is_file():
        raise ValueError(f"{option}: the file must exist; {str(path)!r} is not a file")
    with _naming(option, path):
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                read: list[Any] = [[cell.strip() for cell in row] for row in csv.reader(lines)]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"the file must be a CSV table: {error}") from None
        rows = [row for row in read if any(row)]
        if not rows:
            raise ValueError("the file must hold a table; it is empty")
        for number, row in enumerate(rows, start=1):
            if len(row) != len(rows[0]):
                problem = f"line {number} has {len(row)}, not {len(rows[0])}"
                raise ValueError(f"every line must have as many fields as the first; {problem}")
    return rows
