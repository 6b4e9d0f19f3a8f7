"""Texts that come from others, or from files: what they may do to a terminal, or to a spreadsheet."""

import unicodedata
from collections.abc import Iterable

# What begins a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def printable(text: str) -> str:
    """Return a text without characters that would move the cursor, change colours or turn the direction of writing.

    Line breaks stay.

    Examples
    --------
    >>> printable(f"erk{chr(27)}[2J")
    'erk?[2J'
    """
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def no_formulas(names: Iterable[str]) -> list[str]:
    """Return names that a spreadsheet takes for texts: those that look like formulas after an apostrophe.

    Examples
    --------
    >>> no_formulas(["erk", "=1+1", "-log10(p)"])
    ['erk', "'=1+1", "'-log10(p)"]
    """
    return [f"'{name}" if _looks_like_formula(name) else name for name in names]


def _looks_like_formula(name: str) -> bool:
    """Return whether a name begins as formulas do, also in full-width or small signs, which some spreadsheets take."""
    return name.startswith(_FORMULA) or unicodedata.normalize("NFKC", name[:1]).startswith(_FORMULA)
