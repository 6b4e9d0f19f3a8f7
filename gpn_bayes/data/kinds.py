"""What a column is: as a user states it, and as a `Dataset` keeps it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpn_bayes._util.checks import check_choice

# The kinds of columns whose values are codes of levels; others hold numbers.
CATEGORICAL = frozenset({"categorical", "ordered"})
NUMBER, CATEGORY, ORDERED, BINARY = "number", "category", "ordered", "binary"
STATED = (NUMBER, CATEGORY, ORDERED, BINARY)
# Columns of a kind that are named, where more are counted.
_NAMED = 8
# A kind by its name, or the levels of an ordered column, the lowest first.
Stated = str | tuple[str, ...]


def check_kinds(kinds: Any) -> dict[str, Stated]:
    """Return the kinds of columns by name, checked as far as they can be without a table.

    Parameters
    ----------
    kinds : mapping of str to str or sequence
        For each column "number", "category", "ordered" or "binary", or the levels of an ordered one.

    Examples
    --------
    >>> check_kinds({"sex": "binary", "grade": ["low", "mid", "high"]})
    {'sex': 'binary', 'grade': ('low', 'mid', 'high')}
    """
    if not isinstance(kinds, Mapping):
        raise ValueError(f"kinds must map column names to kinds; received {type(kinds).__name__}")
    checked: dict[str, Stated] = {}
    for name, kind in kinds.items():
        if isinstance(kind, Sequence) and not isinstance(kind, str):
            checked[str(name)] = _levels(str(name), kind)
        else:
            check_choice(f"the kind of {str(name)!r}", kind, STATED)
            checked[str(name)] = kind
    return checked


def _levels(name: str, given: Sequence[Any]) -> tuple[str, ...]:
    levels = tuple(level_text(level) for level in given)
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise ValueError(f"an ordered column needs two or more different levels; received {list(levels)} for {name!r}")
    return levels


def level_text(value: Any) -> str:
    """Return a value as the name of a level: whole numbers are named alike, whatever their type.

    Examples
    --------
    >>> level_text(2.0), level_text(2), level_text("2"), level_text(0.5)
    ('2', '2', '2', '0.5')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def in_words(numbers: Sequence[str], categories: Sequence[str], ordered: Sequence[str]) -> str:
    """Return what the columns of a mixed table are: numbers are counted, others named too.

    Parameters
    ----------
    numbers, categories, ordered : sequence of str
        The columns of each kind.

    Examples
    --------
    >>> in_words(["age", "bmi"], ["sex"], ["grade"])
    '2 numbers, 1 category (sex), 1 ordered (grade)'
    """
    several = [
        (numbers, "number" if len(numbers) == 1 else "numbers", ""),
        (categories, "category" if len(categories) == 1 else "categories", f" ({listed_in_words(categories)})"),
        (ordered, "ordered", f" ({listed_in_words(ordered)})"),
    ]
    return ", ".join(f"{len(names)} {word}{named}" for names, word, named in several if names)


def listed_in_words(names: Sequence[str]) -> str:
    """Return the first names of columns, and how many more there are.

    Examples
    --------
    >>> listed_in_words(list("abcdefghijk"))
    'a, b, c, d, e, f, g, h and 3 more'
    """
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''}"
