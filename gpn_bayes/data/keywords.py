"""What can be said of a table: every keyword once, with its default, its check and its option of the command line.

A new keyword is an entry of `TableKeywords` (what describes rows and columns) or of `ReadingKeywords` (how a table is
read), and the code that uses it. Whatever takes a table takes these keywords by `Unpack[TableKeywords]` and hands them
on. This file imports nothing heavy, since the command line makes its options of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, TypedDict, cast, get_type_hints

from gpn_bayes._util.checks import (
    check_choice,
    check_count,
    check_not_negative,
    check_share,
    did_you_mean,
    listed,
    shown,
)
from gpn_bayes.data.kinds import CATEGORY, Stated, check_kinds

MISSING_CHOICES = ("error", "drop", "impute")
# What was done to known targets; the first is the default.
INTERVENTIONS = ("perfect", "soft")
# Returns a keyword's value as it is kept, given its name and what was given for it.
Check = Callable[[str, Any], Any]


def _as_it_is(name: str, value: Any) -> Any:
    return value


def _optional(check: Callable[[str, Any], None]) -> Check:
    """Return a check that lets None pass."""

    def checked(name: str, value: Any) -> Any:
        if value is not None:
            check(name, value)
        return value

    return checked


def _each_row(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a column of the table, or a sequence; received {shown(value)}")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str | Real):
        value = (value,)
    if value is not None and not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a text, or several; received {shown(value)}")
    return None if value is None else tuple(map(str, value))


def _missing(name: str, value: Any) -> Any:
    check_choice(name, value, MISSING_CHOICES)
    return value


def _imputations(name: str, value: Any) -> int:
    check_count(name, value, 2)
    return int(value)


def _kinds(name: str, value: Any) -> dict[str, Stated] | None:
    return check_kinds(value) if value else None


def _discretise(name: str, value: Any) -> Any:
    if value is not None and value != "mean":
        if isinstance(value, str):
            raise ValueError(f"{name} must be 'mean' or a number of levels; received {value!r}")
        check_count(name, value, 2)
    return value


def _decimal(name: str, value: Any) -> Any:
    if value not in (None, ".", ","):
        raise ValueError(f"{name} must be '.' or ','; received {shown(value)}")
    return value


@dataclass(frozen=True)
class Keyword:
    """What belongs to a keyword, wherever it is taken.

    Attributes
    ----------
    words : str
        What a table says of it in plain words; ``{}`` is what was given.
    help : str
        The text of its option.
    default : Any
        Its value where it isn't given.
    check : callable
        Returns the value as it is kept, from the keyword's name and what was given; raises ValueError.
    typed : str
        How its option is written: "text", "number", "count", "names" (a,b,c), "kinds", "levels" or "separator".
    of_rows : bool
        Whether it says something of every row: by a sequence, or by the name of a column, which then is no variable.
    adds_up : bool
        Whether what is said later is added to what was said before: of other columns, or further values.
    drawing : str or None
        What the help of commands that draw networks says besides; None where only these have the option.
    """

    words: str
    help: str
    default: Any = None
    check: Check = _as_it_is
    typed: str = "text"
    of_rows: bool = False
    adds_up: bool = False
    drawing: str | None = ""


class TableKeywords(TypedDict, total=False):
    """What describes the rows and columns of a table; `gpn_bayes.Table` says what each means."""

    kinds: Annotated[
        Mapping[str, Any] | None,
        Keyword(
            "columns are taken for {}",
            "What columns are: number, category, binary or ordered. A CSV file with columns name,kind and, for ordered "
            "text, levels (low<mid<high); or visits=number,grade=low<mid<high.",
            check=_kinds, typed="kinds", adds_up=True,
        ),
    ]  # fmt: skip
    weights: Annotated[
        Any,
        Keyword(
            "how many rows each row stands for: {}",
            "The column that says how many rows each row stands for: frequencies, or survey weights.",
            check=_each_row, of_rows=True,
        ),
    ]  # fmt: skip
    missing: Annotated[
        str,
        Keyword(
            "missing values: {}",
            "error: refuse missing values (the default). drop: drop rows with any.",
            default="error", check=_missing, drawing=" impute: draw them too.",
        ),
    ]  # fmt: skip
    imputations: Annotated[
        int,
        Keyword(
            "completed tables, where each has a run of its own: {}",
            "How many completed tables, each with its own run, for --missing impute under gp; 5 by default.",
            default=5, check=_imputations, typed="count", drawing=None,
        ),
    ]  # fmt: skip
    targets: Annotated[
        Any,
        Keyword(
            "what an experiment changed in each row: {}",
            "The column that names what an experiment changed in each row; empty where nothing was.",
            check=_each_row, of_rows=True,
        ),
    ]  # fmt: skip
    intervention: Annotated[
        str | None,
        Keyword(
            "what it did to them: {}",
            "What it did: perfect (set it, the default) or soft (changed how it depends on others).",
            check=_optional(lambda name, value: check_choice(name, value, INTERVENTIONS)),
        ),
    ]
    contexts: Annotated[
        Any,
        Keyword(
            "the experiment of each row, where it isn't known what was changed: {}",
            "The column that names the experiment of each row where it isn't known what was changed.",
            check=_each_row, of_rows=True,
        ),
    ]  # fmt: skip
    target_probability: Annotated[
        float | None,
        Keyword(
            "prior probability that an experiment changed a variable: {}",
            "Prior probability that one of them changed a variable, 0.1 by default.",
            check=_optional(lambda name, value: check_share(name, value, ends=False)), typed="number",
        ),
    ]  # fmt: skip
    target_penalty: Annotated[
        float | None,
        Keyword(
            "what each change costs, subtracted from the log score: {}",
            "Instead, what each change costs: subtracted from the log score.",
            check=_optional(check_not_negative), typed="number",
        ),
    ]  # fmt: skip


class ReadingKeywords(TypedDict, total=False):
    """How a table is read, mostly of files; `gpn_bayes.Table` says what each means."""

    columns: Annotated[
        str | Sequence[str] | None,
        Keyword("columns used: {}", "Columns to use, a,b,c; all by default.", check=_texts, typed="names"),
    ]
    drop: Annotated[
        str | Sequence[str],
        Keyword(
            "columns left out: {}",
            "Columns to leave out, id,name.",
            default=(),
            check=_texts,
            typed="names",
            adds_up=True,
        ),
    ]
    categories: Annotated[
        str | Sequence[str],
        Keyword(
            "columns taken for categories: {}",
            "Columns to treat as categories, whatever they look like.",
            default=(), check=_texts, typed="names", adds_up=True,
        ),
    ]  # fmt: skip
    discretise: Annotated[
        int | str | None,
        Keyword(
            "measurements are cut into levels: {}",
            "Cut measurements into this many levels of equal frequency, or 'mean': at their mean.",
            check=_discretise, typed="levels",
        ),
    ]  # fmt: skip
    na: Annotated[
        Any,
        Keyword(
            "values that mean missing: {}",
            "Further values that mean missing, n.d.,-99.",
            default=(), check=_texts, typed="names", adds_up=True,
        ),
    ]  # fmt: skip
    sep: Annotated[
        str | None,
        Keyword(
            "field separator: {}",
            "Field separator of a text file, ';' or tab; recognised by default.",
            typed="separator",
        ),
    ]  # fmt: skip
    decimal: Annotated[
        str | None, Keyword("decimal sign: {}", "The decimal sign, . or ,; recognised by default.", check=_decimal)
    ]
    encoding: Annotated[
        str | None, Keyword("encoding: {}", "The encoding of a text file, cp1252; recognised by default.")
    ]
    sheet: Annotated[
        str | int | None,
        Keyword("sheet: {}", "The sheet of an Excel file, by name or number; the first by default."),
    ]


class Keywords(TableKeywords, ReadingKeywords, total=False):
    """All that can be said of a table."""


class Settings(Keywords, total=False):
    """A table's keywords, checked; those that weren't given have their defaults.

    `declared` are columns whose levels are known from a score, so that they may be constant.
    """

    declared: Sequence[str]


KEYWORDS: dict[str, Keyword] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Keywords, include_extras=True).items()
}


def settings_of(keywords: Mapping[str, Any], declared: Sequence[str] = (), read: bool = False) -> Settings:
    """Return keywords checked, each by itself and those that go together, with the defaults of all others.

    Parameters
    ----------
    keywords : mapping
        What was given.
    declared : sequence of str
        Columns whose levels are known from elsewhere.
    read : bool
        Whether they are of a table that was read before, perhaps to be imputed.

    Raises
    ------
    ValueError
        For what no table could make right.

    Examples
    --------
    >>> settings_of({"drop": "id"})["drop"], settings_of({})["missing"]
    (('id',), 'error')
    >>> settings_of({"weigths": "n"})
    Traceback (most recent call last):
    ValueError: a table has no keyword 'weigths': did you mean 'weights'?
    """
    for name in keywords:
        if name not in KEYWORDS:
            raise ValueError(f"a table has no keyword {name!r}{did_you_mean(name, KEYWORDS)}")
    every = {name: own.check(name, keywords.get(name, own.default)) for name, own in KEYWORDS.items()}
    settings = cast(Settings, every | {"declared": declared})
    _check_together(settings)
    if "imputations" in keywords and settings["missing"] != "impute" and not read:
        raise ValueError(f"imputations needs missing='impute'; received {settings['imputations']} without it")
    return settings


def value_of(settings: Settings, name: str) -> Any:
    """Return a keyword's value by a name that isn't a literal."""
    return cast(dict[str, Any], settings)[name]


def _check_together(settings: Settings) -> None:
    if settings["targets"] is not None and settings["contexts"] is not None:
        raise ValueError("targets are known, or contexts name experiments whose targets aren't; received both")
    if settings["contexts"] is not None and settings["intervention"] == "perfect":
        raise ValueError(
            "unknown targets are soft changes, since nothing is left out of scores; received intervention='perfect'"
        )
    word, experiments = experiments_of(settings)
    if settings["missing"] == "impute" and experiments is not None:
        raise ValueError(f"missing='impute' takes rows that were merely observed; received {word}: use missing='drop'")
    if settings["intervention"] is not None and experiments is None:
        raise ValueError(f"intervention needs targets; received {settings['intervention']!r} without them")
    for name in ("target_probability", "target_penalty"):
        if value_of(settings, name) is not None and settings["contexts"] is None:
            raise ValueError(f"{name} needs contexts; received {shown(value_of(settings, name))} without them")
    if settings["target_probability"] is not None and settings["target_penalty"] is not None:
        raise ValueError("target_probability and target_penalty say the same; received both")
    twice = [name for name in settings["categories"] if name in (settings["kinds"] or ())]
    if twice:
        raise ValueError(f"a column's kind must be given once; {twice[0]!r} is in both categories and kinds")


def experiments_of(settings: Settings) -> tuple[str, Any]:
    """Return the keyword that says the experiments of rows, and what was given for it."""
    return ("targets", settings["targets"]) if settings["contexts"] is None else ("contexts", settings["contexts"])


def stated_kinds(settings: Settings) -> dict[str, Stated]:
    """Return the kinds of columns that were stated, by name.

    Examples
    --------
    >>> stated_kinds(settings_of({"categories": "site", "kinds": {"visits": "number"}}))
    {'site': 'category', 'visits': 'number'}
    """
    return {**dict.fromkeys(settings["categories"], CATEGORY), **(settings["kinds"] or {})}


def given_names(settings: Settings) -> list[str]:
    """Return the keywords that differ from their defaults.

    Examples
    --------
    >>> given_names(settings_of({"drop": "id", "missing": "error"}))
    ['drop']
    """
    return [name for name, own in KEYWORDS.items() if not _same(value_of(settings, name), own.default)]


def _same(value: Any, default: Any) -> bool:
    """Tell whether a setting, which may be an array, has its default."""
    return value is default or (isinstance(value, str | int | tuple) and value == default)


def columns_of_rows(settings: Settings) -> dict[str, str]:
    """Return the columns that say something of every row, and are no variables, by their keywords.

    Examples
    --------
    >>> columns_of_rows(settings_of({"weights": "n", "targets": ["", "x"]}))
    {'weights': 'n'}
    """
    given = {name: value_of(settings, name) for name, own in KEYWORDS.items() if own.of_rows}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def check_columns(names: Sequence[str], settings: Settings) -> None:
    """Refuse keywords that name columns that a table hasn't.

    Parameters
    ----------
    names : sequence of str
        The table's columns.
    settings : Settings
        The keywords.

    Examples
    --------
    >>> check_columns(["x", "y"], settings_of({"weights": "n"}))
    Traceback (most recent call last):
    ValueError: weights must be a column of the table, or a sequence as long as it; received 'n', which isn't a column
    """
    for setting in ("columns", "drop", "categories", "kinds"):
        for name in value_of(settings, setting) or ():
            if name not in names:
                raise ValueError(
                    f"{setting} must name columns of the table; received {name!r}, not one of {listed(names)}"
                )
    for word, name in columns_of_rows(settings).items():
        if name not in names:
            raise ValueError(
                f"{word} must be a column of the table, or a sequence as long as it; received {shown(name)}, which "
                "isn't a column"
            )
        if name in (settings["columns"] or ()):
            raise ValueError(f"the column of {word} is no variable; columns has {name!r}")


@dataclass(frozen=True, eq=False, repr=False)
class Described:
    """Data, and the keywords that describe them; `gpn_bayes.Table` is what users make.

    Attributes
    ----------
    data : DataFrame, ndarray, path or Dataset
        The table.
    keywords : dict
        What was said of it, as it was given.
    """

    data: Any
    keywords: Mapping[str, Any]

    def joined(self, further: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords with further ones.

        Kinds of further columns, and further columns and values of ``drop``, ``categories`` and ``na``, are added.

        Raises
        ------
        ValueError
            For one that is stated already.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> table = gpn.Table(np.array([[1.0, 4.0], [3.0, 8.0]]), weights=[1, 2])
        >>> table.joined({"missing": "drop"})
        {'weights': [1, 2], 'missing': 'drop'}
        >>> gpn.Table(table, kinds={"v1": "number"}).joined({"kinds": {"v2": "category"}})["kinds"]
        {'v1': 'number', 'v2': 'category'}
        >>> table.joined({"weights": "n"})
        Traceback (most recent call last):
        ValueError: weights must be stated once; the table has weights=[1, 2], and received weights='n'
        """
        joined = {**self.keywords, **further}
        for name, value in further.items():
            if name in self.keywords and (both := _added(name, self.keywords[name], value)) is not None:
                joined[name] = both
            elif name in self.keywords:
                stated = f"{name}={in_short(self.keywords[name])}"
                raise ValueError(
                    f"{name} must be stated once; the table has {stated}, and received {name}={in_short(value)}"
                )
        return joined


def _added(name: str, stated: Any, further: Any) -> Any:
    """Return what was stated and what is added to it; None where it can only be stated once."""
    if name not in KEYWORDS or not KEYWORDS[name].adds_up:
        return None
    first, second = (KEYWORDS[name].check(name, own) for own in (stated, further))
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **second} if first.keys().isdisjoint(second) else None
    return tuple(dict.fromkeys((*(first or ()), *(second or ()))))


def in_short(value: Any) -> str:
    """Return a value as a message shows it: sequences of rows by their length.

    Examples
    --------
    >>> in_short("n"), in_short([0.5] * 90), in_short(["id", "name"])
    ("'n'", '90 values', "['id', 'name']")
    """
    several = hasattr(value, "__len__") and not isinstance(value, str | Mapping) and len(value) > 8
    return f"{len(value)} values" if several else " ".join(shown(value).split())
