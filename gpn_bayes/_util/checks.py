"""Checks of single settings, with the same wording everywhere."""

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

# With more, a node could have fewer than five candidates beside parents from outside: see `candidates.costs`.
MAX_VARIABLES = 1024


def shown(value: Any) -> str:
    """Return a value as a message shows it: as Python writes it, but numbers of numpy as plain ones.

    Examples
    --------
    >>> import numpy as np
    >>> shown(np.float64(0.5)), shown("a"), shown([np.int64(3), (np.bool_(True), "b")]), shown({"x": np.float64(1)})
    ('0.5', "'a'", "[3, (True, 'b')]", "{'x': 1.0}")
    """
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {_plain(key): _plain(own) for key, own in value.items()}
    return value


def check_count(name: str, value: Any, least: int = 0) -> None:
    """Refuse a setting that isn't a whole number, or is below the least.

    Examples
    --------
    >>> check_count("restarts", -1)
    Traceback (most recent call last):
    ValueError: restarts must be a whole number, 0 or more; received -1
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; received {shown(value)}")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a setting that isn't one of the choices.

    Examples
    --------
    >>> check_choice("moves", "jump", ("insertion", "swap"))
    Traceback (most recent call last):
    ValueError: moves must be one of insertion, swap; received 'jump'
    >>> check_choice("moves", "swop", ("insertion", "swap"))
    Traceback (most recent call last):
    ValueError: moves must be one of insertion, swap; received 'swop': did you mean 'swap'?
    """
    if not isinstance(value, str) or value not in choices:
        received = f"{shown(value)}{did_you_mean(value, choices)}"
        raise ValueError(f"{name} must be one of {', '.join(choices)}; received {received}")


def did_you_mean(value: Any, choices: Iterable[Any]) -> str:
    """Return the end of a message that suggests the closest of the choices; empty where none is close.

    Examples
    --------
    >>> did_you_mean("gpp", ("bge", "gp"))
    ": did you mean 'gp'?"
    >>> did_you_mean("Raf", ("raf", "mek"))
    ": did you mean 'raf'?"
    >>> did_you_mean("best", ("bge", "gp"))
    ''
    """
    if not isinstance(value, str):
        return ""
    by_lower = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    close = get_close_matches(value.strip().lower(), by_lower, n=1)
    return f": did you mean {by_lower[close[0]]!r}?" if close else ""


def listed(values: Sequence[Any], most: int = 20) -> str:
    """Return values as a message lists them, the first ones where there are many.

    Examples
    --------
    >>> listed(["raf", "mek", "erk"], most=2)
    "'raf', 'mek', …"
    """
    return ", ".join(map(shown, values[:most])) + (", …" if len(values) > most else "")


def check_seconds(name: str, value: Any) -> None:
    """Refuse a time limit that isn't a positive number; None is no limit.

    Examples
    --------
    >>> check_seconds("max_seconds", 0)
    Traceback (most recent call last):
    ValueError: max_seconds must be a positive number or None; received 0
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0):
        raise ValueError(f"{name} must be a positive number or None; received {shown(value)}")


def check_not_negative(name: str, value: Any, word: str | None = None) -> None:
    """Refuse a setting that is neither a finite non-negative number nor, if one is given, the word.

    Examples
    --------
    >>> check_not_negative("lambda1", -0.1)
    Traceback (most recent call last):
    ValueError: lambda1 must be a number, 0 or more; received -0.1
    >>> check_not_negative("lambda1", "aic", word="bic")
    Traceback (most recent call last):
    ValueError: lambda1 must be 'bic' or a number, 0 or more; received 'aic'
    """
    if word is not None and isinstance(value, str) and value == word:
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        either = "" if word is None else f"{word!r} or "
        raise ValueError(f"{name} must be {either}a number, 0 or more; received {shown(value)}")


def check_positive(name: str, value: Any) -> None:
    """Refuse a setting that isn't a positive, finite number.

    Examples
    --------
    >>> check_positive("ess", "one")
    Traceback (most recent call last):
    ValueError: ess must be positive and finite; received 'one'
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be positive and finite; received {shown(value)}")


def check_share(name: str, value: Any, ends: bool = True) -> None:
    """Refuse a setting that isn't a number between 0 and 1, with or without the ends.

    Examples
    --------
    >>> check_share("threshold", 1.5)
    Traceback (most recent call last):
    ValueError: threshold must lie between 0 and 1; received 1.5
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) <= 1 or (not ends and float(value) in (0.0, 1.0)):
        raise ValueError(f"{name} must lie between 0 and 1; received {shown(value)}")


def check_flag(name: str, value: Any) -> bool:
    """Return a setting that must be True or False.

    Examples
    --------
    >>> check_flag("standardise", "no")
    Traceback (most recent call last):
    ValueError: standardise must be True or False; received 'no'
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False; received {shown(value)}")
    return value


def finite_number(value: Any, rule: str) -> float:
    """Return a value as a finite number, or refuse it by a rule.

    Examples
    --------
    >>> finite_number("2.5", "a limit is a finite number")
    2.5
    >>> finite_number("two", "a limit is a finite number")
    Traceback (most recent call last):
    ValueError: a limit is a finite number; received 'two'
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{rule}; received {shown(value)}")
    return number
