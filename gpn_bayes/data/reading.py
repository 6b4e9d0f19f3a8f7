"""From any table to checked columns: chosen, without missing rows, each of one kind; or all its problems."""

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import MAX_VARIABLES, shown
from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data.columns import Column, Source, read_column
from gpn_bayes.data.files import FileTable, check_file, is_columnar, read_cells, read_columnar
from gpn_bayes.data.identifiers import identifier_problem, names_rows, numbers_rows
from gpn_bayes.data.interventions import Interventions, KnownTargets, UnknownTargets
from gpn_bayes.data.keywords import (
    INTERVENTIONS,
    KEYWORDS,
    Settings,
    check_columns,
    columns_of_rows,
    experiments_of,
    given_names,
    settings_of,
    stated_kinds,
    value_of,
)
from gpn_bayes.data.kinds import CATEGORICAL, NUMBER, ORDERED
from gpn_bayes.data.levels import FEW_LEVELS, cut, labels
from gpn_bayes.data.notation import COMMA, POINT, find_notation, is_number, parse, parse_plain, without_percent
from gpn_bayes.data.problems import Problem, argument, listed_names, raise_problems
from gpn_bayes.data.weights import MOST_REPEATED, are_frequencies, check_weights, repetitions, scaled

_PRESENT = "every value must be present"
# Columns with missing values that are named.
_LISTED_COLUMNS = 3
# Characters of these kinds can't be part of a name: control characters, and separators of lines and paragraphs.
_UNPRINTABLE = frozenset({"Cc", "Zl", "Zp"})
# Columns with smaller standard deviations have variances that are no normal floating-point numbers.
_LEAST_SPREAD = 1e-150
_OF_FILES = ("sep", "decimal", "encoding", "sheet")


@dataclass(frozen=True)
class _Table:
    """The columns that were chosen, with labels of rows, what a row is called, and the experiment of each.

    `of_text` says that cells are texts until they are read, as in files.
    """

    names: tuple[str, ...]
    columns: list[pd.Series]
    labels: Any
    word: str
    experiments: list[Any] | None = None
    notes: tuple[str, ...] = ()
    weights: Floats | None = None
    of_text: bool = False


@dataclass(frozen=True)
class CheckedTable:
    """What a `Dataset` is made of."""

    names: tuple[str, ...]
    columns: list[Column]
    rows_dropped: int
    notes: tuple[str, ...]
    interventions: Interventions | None
    weights: Floats | None = None
    repeated: bool = False


def checked_table(data: Any, settings: Settings, whole: bool) -> CheckedTable:
    """Read and check a table.

    Parameters
    ----------
    data : DataFrame, ndarray, str or Path
        Any table.
    settings : Settings
        How to read it.
    whole : bool
        Whether it is all of a table; a part may have a single row, and columns that don't vary in it.

    Raises
    ------
    ValueError
        With all problems of the table.
    """
    table = _raw(data, settings)
    _check_size(table.names, len(table.labels), whole)
    # By all weights, also those of rows that are going to be dropped.
    frequencies = table.weights is not None and are_frequencies(table.weights)
    if table.weights is not None and not table.weights.all():
        table = _rows_of(table, np.flatnonzero(table.weights))
    absent = np.column_stack([_is_missing(column, settings["na"]) for column in table.columns])
    # Before rows are dropped, after which they don't count on.
    numbering = _numbering(table, absent, settings) if whole else []
    dropped = 0
    if settings["missing"] == "drop" and absent.any():
        kept = ~absent.any(axis=1)
        _check_kept(table, absent, int(kept.sum()))
        dropped = int((~kept).sum())
        if table.weights is not None and frequencies:
            dropped = int(table.weights[~kept].sum())
        table = _rows_of(table, np.flatnonzero(kept))
        absent = absent[kept]
    if settings["missing"] == "impute" and not whole:
        raise ValueError("missing='impute' needs the whole table; received a part of a larger one: use missing='drop'")
    if settings["missing"] == "impute" and absent.any() and table.weights is not None:
        raise ValueError("missing='impute' takes rows without weights; received weights: use missing='drop'")
    problems = list(name_problems(table.names))
    if settings["missing"] == "error":
        problems += _missing(
            table, absent, imputable=whole and table.weights is None and experiments_of(settings)[1] is None
        )
    complete: list[Column] = []
    constant, naming = [], []
    for place, name in enumerate(table.names):
        if name in numbering:
            continue
        column, problems_here = _read_one(table, place, absent, settings, whole)
        problems += problems_here
        if column is not None:
            complete.append(column)
            if whole and name not in {*stated_kinds(settings), *settings["declared"]} and names_rows(column):
                naming.append(name)
            elif whole and name not in settings["declared"] and _is_constant(column):
                constant.append(name)
    problems += _constant(table, constant)
    problems += identifier_problem(naming, numbering, len(table.names) - len(naming) - len(numbering))
    raise_problems(problems)
    weights = table.weights
    places = repetitions(weights) if weights is not None and frequencies else None
    if weights is not None and frequencies:
        said = f"weights: {len(weights)} rows stand for {weights.sum():.0f}"
        table = replace(table, notes=(*table.notes, said))
    if places is not None:
        weights = None
        experiments = None if table.experiments is None else [table.experiments[place] for place in places]
        table = replace(table, experiments=experiments)
        complete = [column._replace(values=column.values[places]) for column in complete]
    if weights is not None:
        _check_beside_weights(settings)
        weights = weights if frequencies else scaled(weights)
        weights.setflags(write=False)
    if settings["discretise"] is not None:
        complete = _discretised(table.names, complete, settings["discretise"])
    if absent.any():
        complete = [_filled_in(column, gaps) for column, gaps in zip(complete, absent.T, strict=True)]
    interventions: Interventions | None = None
    if table.experiments is not None:
        interventions = read_interventions(table.experiments, table.names, settings)
    return CheckedTable(
        table.names, complete, dropped, table.notes, interventions, weights, repeated=places is not None
    )


def _check_beside_weights(settings: Settings) -> None:
    """Refuse settings that take all rows alike beside weights that rows aren't repeated by."""
    given = {"discretise": settings["discretise"], "targets": settings["targets"], "contexts": settings["contexts"]}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} can be given beside weights by which rows are repeated, whole numbers of up to "
                f"{MOST_REPEATED:,} in all; received others"
            )


def read_frame(path: Path, texts: Sequence[str] = (), settings: Settings | None = None) -> pd.DataFrame:
    """Return the table of a file as a DataFrame, with its missing values; its attribute "notes" says how it was read.

    Parameters
    ----------
    path : path
        The file.
    texts : sequence of str
        Columns that are read as they stand there: '007' isn't 7.
    settings : Settings, optional
        How to read it, and which of its columns; all by default.
    """
    settings = settings_of({}) if settings is None else settings
    table = _raw(path, settings, texts)
    raise_problems(list(name_problems(table.names)))
    columns = [_with_gaps(column, _is_missing(column, settings["na"])) for column in table.columns]
    frame = pd.DataFrame(dict(zip(table.names, columns, strict=True)))
    frame.attrs["notes"] = table.notes
    return frame


# Types of pandas that keep what cells are beside missing ones: whole numbers stay whole.
_TYPES_WITH_GAPS: dict[str, Any] = {
    "integer": "Int64",
    "boolean": "boolean",
    "floating": "float64",
    "mixed-integer-float": "float64",
}


def _with_gaps(column: pd.Series, missing: Bools) -> pd.Series:
    """Return a column in which missing values are missing to pandas too."""
    if missing.any():
        column = column.astype(object).where(~missing, None)
        kept = _TYPES_WITH_GAPS.get(pd.api.types.infer_dtype(column, skipna=True))
        with suppress(OverflowError):  # whole numbers beyond 64 bits
            return column.infer_objects() if kept is None else column.astype(kept)
    return column.infer_objects()


def check_names(names: tuple[str, ...]) -> None:
    """Refuse too few or too many variables, and names that are missing or not unique."""
    _check_number(names)
    raise_problems(list(name_problems(names)))


def _check_number(names: tuple[str, ...]) -> None:
    if len(names) < 2:
        spaced = bool(names) and " " in names[0]
        remedy = f": if {names[0]!r} is several names, {argument('sep', ' ')} separates them" if spaced else ""
        raise ValueError(f"a network needs at least two variables; received {len(names)}{remedy}")
    if len(names) > MAX_VARIABLES:
        raise ValueError(f"at most {MAX_VARIABLES} variables are supported; received {len(names)}")


def _check_size(names: tuple[str, ...], rows: int, whole: bool) -> None:
    _check_number(names)
    if whole and rows < 2:
        raise ValueError(f"a table needs at least two rows; received {rows}")
    if not rows:
        raise ValueError("a part of a table needs at least one row; received none")


def name_problems(names: tuple[str, ...]) -> Iterable[Problem]:
    """Return what is wrong with the names of columns."""
    for place, name in enumerate(names):
        if not name or name.startswith("Unnamed:"):
            finding = f"column {place + 1} {f'is called {name!r}' if name else 'has none'}"
            remedy = f"if it is a row index, {argument('drop', [name])} leaves it out"
            yield Problem("every column must have a name", finding, remedy)
        elif any(unicodedata.category(character) in _UNPRINTABLE for character in name):
            rule = "the names of columns must be without line breaks, tabs and other control characters"
            yield Problem(rule, f"column {place + 1} is called {name!r}", "give it another name")
    for name in dict.fromkeys(names):
        places = [str(place + 1) for place, other in enumerate(names) if other == name]
        if name and len(places) > 1:
            which = f"columns {', '.join(places[:-1])} and {places[-1]}"
            yield Problem("column names must differ", f"{name!r} appears more than once ({which})")


def _raw(data: Any, settings: Settings, texts: Sequence[str] = ()) -> _Table:
    """Return the columns that were asked for, numbers as numbers."""
    if isinstance(data, str | Path):
        path = Path(data)
        check_file(path)
        if not is_columnar(path):
            sheet = None if settings["sheet"] is None else str(settings["sheet"])
            return _of_file(path.name, read_cells(path, settings["sep"], settings["encoding"], sheet), settings, texts)
        data = read_columnar(path)
    data = _in_memory(data, settings)
    # Without the table's own notes, which pandas would copy with every column.
    data = data.copy(deep=False)
    data.attrs = {}
    names = tuple(_name(label) for label in data.columns)
    chosen = _chosen(names, settings)
    columns = [data.iloc[:, place].reset_index(drop=True) for place in chosen]
    every = [data.iloc[:, place] for place in range(len(names))]
    experiments = _of_rows(*experiments_of(settings), names, every, len(data))
    entries = _of_rows("weights", settings["weights"], names, every, len(data))
    weights = None if entries is None else check_weights(entries, data.index, "row")
    return _Table(tuple(names[place] for place in chosen), columns, data.index, "row", experiments, weights=weights)


def _in_memory(data: Any, settings: Settings) -> pd.DataFrame:
    given = [name for name in given_names(settings) if name in _OF_FILES]
    if given:
        what = type(data).__name__
        raise ValueError(f"{given[0]} is a setting of text files and sheets; received {what}")
    if isinstance(data, np.ndarray):
        data = _frame_of_array(data)
    if not isinstance(data, pd.DataFrame):
        raise ValueError(f"data must be a DataFrame, an array or the path of a table; received {type(data).__name__}")
    return data


def check_described(data: Any, settings: Settings) -> None:
    """Refuse settings that don't go with the names of columns and the number of rows, of tables in memory.

    Parameters
    ----------
    data : DataFrame, ndarray, str or Path
        The table; files aren't opened.
    settings : Settings
        What was said of it.
    """
    if isinstance(data, str | Path):
        return
    data = _in_memory(data, settings)
    check_columns([_name(label) for label in data.columns], settings)
    for word, own in KEYWORDS.items():
        if own.of_rows and not isinstance(given := value_of(settings, word), str):
            _listed_rows(word, given, len(data))


def _name(label: Any) -> str:
    """Return the label of a column as its name; empty where it is missing: None, NaN and the like."""
    return "" if pd.api.types.is_scalar(label) and pd.isna(label) else str(label)


def _frame_of_array(values: NDArray[Any]) -> pd.DataFrame:
    if values.ndim != 2:
        raise ValueError(f"an array of data must have two dimensions; received {values.ndim}")
    return pd.DataFrame(values, columns=[f"v{i + 1}" for i in range(values.shape[1])])


def _of_file(file: str, table: FileTable, settings: Settings, texts: Sequence[str]) -> _Table:
    grid = table.grid
    chosen = _chosen(grid.names, settings)
    names = tuple(grid.names[place] for place in chosen)
    # What is a number is parsed, and so is what is ordered by value.
    as_written = {*texts, *(name for name, kind in stated_kinds(settings).items() if kind not in (NUMBER, ORDERED))}
    cells = [_without_codes(grid.columns[place], settings["na"]) for place in chosen]
    percent = {
        place: numbers
        for place, (name, column) in enumerate(zip(names, cells, strict=True))
        if name not in as_written and (numbers := without_percent(column)) is not None
    }
    cells = [percent.get(place, column) for place, column in enumerate(cells)]
    unread = {name: column for name, column in zip(names, cells, strict=True) if name not in as_written}
    plain = {name: numbers for name, column in unread.items() if (numbers := _plain(column)) is not None}
    odd = [name for name in unread if name not in plain]
    notation = find_notation(unread, odd, grid.lines, table.word, settings["decimal"])
    if notation.decimal == COMMA:
        plain, odd = {}, list(unread)
    columns = []
    for name, column in zip(names, cells, strict=True):
        read = _typed(column, notation.decimal) if name in odd else plain.get(name, column)
        columns.append(pd.Series(read, dtype=read.dtype))  # by type: pandas would guess at objects
    recognised = [*table.recognised]
    recognised += ["decimal comma"] if notation.decimal == COMMA else []
    recognised += ["thousands separators"] if notation.grouped else []
    recognised += ["percent signs"] if percent else []
    said = ", ".join(recognised)
    if grid.left_out:
        said += f"{'; ' if said else ''}left out {', '.join(grid.left_out)}"
    size = f"{len(grid.lines)} rows, {len(grid.names)} columns"
    experiments = _of_rows(*experiments_of(settings), grid.names, grid.columns, len(grid.lines))
    notes = (f"read {file}: {said}; {size}",) if said else ()
    weights = None
    entries = _of_rows("weights", settings["weights"], grid.names, grid.columns, len(grid.lines))
    if entries is not None:
        weights = check_weights(_typed(np.array(entries, dtype=object), notation.decimal), grid.lines, table.word)
    return _Table(names, columns, grid.lines, table.word, experiments, notes, weights, of_text=True)


def _chosen(names: tuple[str, ...], settings: Settings) -> list[int]:
    """Return the places of the columns that are wanted, in the order they were asked for."""
    check_columns(names, settings)
    places = list(range(len(names)))
    if settings["columns"] is not None:
        places = [place for name in dict.fromkeys(settings["columns"]) for place in places if names[place] == name]
    no_variables = {*settings["drop"], *columns_of_rows(settings).values()}
    return [place for place in places if names[place] not in no_variables]


def _of_rows(word: str, given: Any, names: tuple[str, ...], columns: Sequence[Any], rows: int) -> list[Any] | None:
    """Return what a setting says of each row, as it was given: in a column, or as a sequence."""
    if isinstance(given, str):
        return list(columns[names.index(given)])
    return _listed_rows(word, given, rows)


def read_labels(rows: int, settings: Settings) -> list[Any] | None:
    """Return the targets or the contexts of rows that were given as a sequence; None where there are none."""
    return _listed_rows(*experiments_of(settings), rows)


def _listed_rows(word: str, given: Any, rows: int) -> list[Any] | None:
    if given is None:
        return None
    try:
        entries = list(given)
    except TypeError:
        raise ValueError(f"{word} must be a column of the table, or a sequence; received {shown(given)}") from None
    if len(entries) != rows:
        raise ValueError(f"{word} must be as many as there are rows, {rows}; received {len(entries)}")
    return entries


def read_interventions(given: list[Any], names: tuple[str, ...], settings: Settings) -> Interventions:
    """Return what was done in the rows that were kept."""
    if settings["contexts"] is not None:
        return UnknownTargets.read(given, settings["target_probability"], settings["target_penalty"])
    return KnownTargets.read(given, names, settings["intervention"] or INTERVENTIONS[0])


def _without_codes(cells: NDArray[np.object_], codes: Sequence[str]) -> NDArray[np.object_]:
    if not codes:
        return cells
    column = cells.copy()
    column[[isinstance(cell, str) and cell in codes for cell in cells]] = None
    return column


def _plain(cells: NDArray[np.object_]) -> NDArray[Any] | None:
    """Return a column without gaps as numbers, where all are written as in plain CSV files."""
    return parse_plain(cells) if all(type(cell) is str for cell in cells) else None


def _typed(cells: NDArray[np.object_], decimal: str) -> NDArray[Any]:
    """Return the cells of a column of a file as numbers where all are; the rest as it is."""
    text = np.array([isinstance(cell, str) for cell in cells], dtype=bool)
    numbers = parse(cells[text], decimal) if text.any() else None
    if numbers is None:
        return cells
    if text.all():
        return numbers
    column = cells.copy()  # of objects, so that whole numbers stay whole beside missing ones
    column[text] = numbers.astype(object)
    return column


def _is_missing(column: pd.Series, codes: Sequence[str]) -> Bools:
    """Return which values are missing, or stand for that."""
    missing = column.isna().to_numpy(dtype=bool)
    if codes:
        numbers = [float(code) for code in codes if is_number(code, POINT)]
        missing = missing | column.astype(object).isin([*codes, *numbers]).to_numpy()
    return missing


def _rows_of(table: _Table, places: Ints) -> _Table:
    columns = [column.iloc[places].reset_index(drop=True) for column in table.columns]
    labels = [table.labels[place] for place in places]
    experiments = None if table.experiments is None else [table.experiments[place] for place in places]
    weights = None if table.weights is None else table.weights[places]
    return replace(table, columns=columns, labels=labels, experiments=experiments, weights=weights)


def _check_kept(table: _Table, absent: Bools, kept: int) -> None:
    if kept >= 2:
        return
    counts = absent.sum(axis=0)
    worst = [table.names[place] for place in np.argsort(-counts, kind="stable")[:3] if counts[place]]
    listed = ", ".join(f"{name!r} {counts[table.names.index(name)]}" for name in worst)
    raise ValueError(
        f"at least two rows must have no missing value; {kept} of {len(absent)} do, and most are missing in {listed}: "
        f"{argument('drop', worst[:1])} leaves that column out"
    )


def _read_one(
    table: _Table, place: int, absent: Bools, settings: Settings, whole: bool
) -> tuple[Column | None, list[Problem]]:
    """Return one column, None if it can't be read, and what is wrong with it."""
    name, gaps = table.names[place], absent[:, place]
    problems: list[Problem] = []
    if gaps.all():
        finding = f"column {name!r} has {len(gaps)} missing, all of them"
        return None, [Problem(_PRESENT, finding, _leaving_out(table, name))]
    column, names = table.columns[place], table.labels
    if gaps.any():
        column, names = column[~gaps].reset_index(drop=True), [names[row] for row in np.flatnonzero(~gaps)]
    stated = stated_kinds(settings).get(name)
    result = read_column(column, Source(name, names, table.word, table.of_text), stated)
    if isinstance(result, Problem):
        return None, [*problems, result]
    if whole and isinstance(stated, tuple) and (never := sorted(set(range(len(stated))) - set(result.values))):
        finding = f"column {name!r} never holds {', '.join(repr(stated[level]) for level in never)}"
        problems.append(Problem("the levels of an ordered column must be those that occur", finding))
    if whole and len(result.values) > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            spread = float(result.values.std(ddof=1))
        rule = "every column's variance must be a number"
        if 0 < np.ptp(result.values) and spread < _LEAST_SPREAD:
            finding = f"column {name!r} varies by {np.ptp(result.values):.1g} only, too little to be squared"
            problems.append(Problem(rule, finding, "measure it in another unit"))
        if not np.isfinite(spread):
            finding = f"column {name!r} holds numbers up to {np.abs(result.values).max():g}"
            problems.append(Problem(rule, finding, "measure it in another unit"))
    return result, problems


def _numbering(table: _Table, absent: Bools, settings: Settings) -> list[str]:
    """Return the columns that number the rows, unless it is stated what they are."""
    return [
        name
        for name, column, gaps in zip(table.names, table.columns, absent.T, strict=True)
        if name not in {*stated_kinds(settings), *settings["declared"]} and numbers_rows(name, column[~gaps])
    ]


def _is_constant(column: Column) -> bool:
    """Tell whether a column has no variance, be it that its values differ too little for a number."""
    if len(column.values) < 2:
        return False
    width = float(np.ptp(column.values))
    with np.errstate(over="ignore", invalid="ignore"):
        return width == 0 or (width > _LEAST_SPREAD and bool(column.values.std(ddof=1) == 0))


def _constant(table: _Table, names: list[str]) -> list[Problem]:
    """Return the problem that columns are constant, all in one."""
    if not names:
        return []
    verb, them = ("are", "them") if len(names) > 1 else ("is", "it")
    remedy = f"{argument('drop', names)} leaves {them} out" if len(table.names) - len(names) > 1 else ""
    return [Problem("every column must vary", f"{listed_names(names)} {verb} constant", remedy)]


def _leaving_out(table: _Table, name: str) -> str:
    """Return how to leave a column out, where enough others remain."""
    return f"{argument('drop', [name])} leaves it out" if len(table.names) > 2 else ""


def _missing(table: _Table, absent: Bools, imputable: bool) -> list[Problem]:
    """Return, as one problem, which values are missing; columns without any value are problems of their own."""
    gaps = absent & ~absent.all(axis=0)
    if not gaps.any():
        return []
    columns, rows = np.flatnonzero(gaps.any(axis=0)), int(gaps.any(axis=1).sum())
    shown = [
        f"{table.names[place]!r} in {Source('', table.labels, table.word).rows(gaps[:, place])}"
        for place in columns[:_LISTED_COLUMNS]
    ]
    more = len(columns) - len(shown)
    shown += [f"{more} more column{'s' * (more > 1)}"] if more else []
    count = int(gaps.sum())
    finding = (
        f"{count} {'is' if count == 1 else 'are'} missing, in {rows} of {len(gaps)} rows and {len(columns)} of "
        f"{gaps.shape[1]} columns ({'; '.join(shown)})"
    )
    remedy = f"{argument('missing', 'drop')} drops the row{'s' * (rows > 1)}"
    if imputable:
        drawn = f"draws the value{'s' * (count > 1)} along with the networks"
        remedy += f"; for sampling, {argument('missing', 'impute')} {drawn}"
    return [Problem(_PRESENT, finding, remedy)]


def _filled_in(column: Column, gaps: Bools) -> Column:
    """Return a column that was read without its missing values with NaN in their places."""
    values = np.full(len(gaps), np.nan)
    values[~gaps] = column.values
    return column._replace(values=values)


def _discretised(names: tuple[str, ...], columns: list[Column], how: int | str) -> list[Column]:
    """Cut the columns of measurements; what has few values keeps them as its levels."""
    method, levels = ("mean", 2) if how == "mean" else ("quantile", int(how))
    done, problems = [], []
    for name, column in zip(names, columns, strict=True):
        distinct = np.unique(column.values)
        if column.levels is not None and len(column.levels) <= max(levels, FEW_LEVELS):
            done.append(column)
        elif column.kind == "continuous" and len(distinct) <= levels:
            codes = np.searchsorted(distinct, column.values).astype(float)
            done.append(Column(codes, "ordered", tuple(str(value) for value in distinct)))
        elif column.kind in CATEGORICAL:
            done.append(column)
        else:
            try:
                codes = cut(name, column.values, method, levels)
            except ValueError as error:
                rule, finding = str(error).split("; ")
                remedy = f"{argument('discretise', 'mean')} cuts at the mean"
                problems.append(Problem(rule, finding, remedy))
            else:
                done.append(Column(codes.astype(float), "ordered", tuple(labels(levels))))
    raise_problems(problems)
    return done
