"""Names as pictures show them: whole, wrapped, and without characters that no installed font has."""

import functools
import unicodedata
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

# Fonts with many scripts that systems come with; used where the font in use lacks a character.
_WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK TC", "Noto Sans CJK KR", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "IPAGothic", "TakaoGothic", "Arial Unicode MS",
    "PingFang SC", "Hiragino Sans", "Hiragino Sans GB", "Apple SD Gothic Neo", "Microsoft YaHei", "SimHei", "MS Gothic",
    "Yu Gothic", "Malgun Gothic", "Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
    "Noto Sans Thai", "Segoe UI", "Segoe UI Symbol", "Noto Sans Symbols", "Noto Sans Symbols 2",
)  # fmt: skip
_BREAK_AFTER = " _-./:,;|"
_SHORTEST = 3
# Height of a line over the font's size.
_LINE = 1.25
_POINTS_AN_INCH = 72.0


def drawable(name: str) -> str:
    """Return a name with every character that can't be drawn replaced by its number.

    Examples
    --------
    >>> drawable("raf") + drawable("β-catenin")
    'rafβ-catenin'
    >>> drawable("a" + chr(0xE000))
    'a[E000]'
    """
    return "".join(_drawable_character(character) for character in name)


def _drawable_character(character: str) -> str:
    if character.isspace():
        return " "
    has_glyph = any(font.get_char_index(ord(character)) for font in _fonts(tuple(families())))
    if has_glyph and unicodedata.category(character) not in ("Cc", "Cs"):
        return character
    return f"[{ord(character):04X}]"


def families() -> list[str]:
    """Return the font families to draw names with: that in use, then installed ones with more characters."""
    return [*mpl.rcParams["font.family"], *_installed_wide_fonts()]


@functools.cache
def _installed_wide_fonts() -> tuple[str, ...]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in _WIDE_FONTS if name in installed)


@functools.cache
def _fonts(names: tuple[str, ...]) -> list[Any]:
    return [font_manager.get_font(font_manager.findfont(FontProperties(family=[name]))) for name in names]


def style(size: float) -> dict[str, Any]:
    """Return how to draw a name, as arguments of matplotlib: dollar signs are no formulas."""
    return {"fontsize": size, "fontfamily": families(), "parse_math": False}


def wrapped(text: str, width: int, longest: int | None = None) -> str:
    """Break a text after separators into lines of about the same length, with at most `width` characters if possible.

    Parameters
    ----------
    text : str
        The text.
    width : int
        How many characters a line may hold; a longer word gets a line of its own.
    longest : int, optional
        Words of more characters than this are broken; by default those longer than a line.

    Examples
    --------
    >>> print(wrapped("phospho_lipase_gamma", 10))
    phospho_
    lipase_
    gamma
    >>> print(wrapped("C-reactive protein (hs)", 18))
    C-reactive
    protein (hs)
    >>> print(wrapped("mitogenactivated", 10))
    mitogenact
    ivated
    >>> print(wrapped("mitogenactivated kinase", 10, longest=20))
    mitogenactivated
    kinase
    """
    words = _words(text, width if longest is None else longest)
    lines = _lines(words, width)
    for narrower in range(width - 1, 0, -1):
        tried = _lines(words, narrower)
        if len(tried) > len(lines):
            break
        lines = tried
    return "\n".join(line.strip(" ") for line in lines)


def _words(text: str, longest: int) -> list[str]:
    """Return a text in the pieces that lines are made of, each with the separator at its end."""
    words = [""]
    for k, character in enumerate(text):
        if len(words[-1]) == longest:
            words.append("")
        words[-1] += character
        # A piece of a letter or two, as in "γ-catenin" and "interleukin-6", isn't worth a line.
        whole = len(words[-1]) > _SHORTEST and len(text) - k > _SHORTEST
        apart = character == " " or (character in _BREAK_AFTER and whole)
        if apart and k + 1 < len(text) and text[k + 1] not in _BREAK_AFTER:
            words.append("")
    return words


def _lines(words: list[str], width: int) -> list[str]:
    """Return words in lines, each as full as may be."""
    lines = [words[0]]
    for word in words[1:]:
        if len((lines[-1] + word).rstrip(" ")) <= width:
            lines[-1] += word
        else:
            lines.append(word)
    return lines


@functools.lru_cache(maxsize=4096)
def _line_width(line: str, size: float, names: tuple[str, ...]) -> float:
    path = TextPath((0, 0), line, size=size, prop=FontProperties(family=list(names)), usetex=False)
    return path.get_extents().width if len(path.vertices) else 0.0


def size_of(text: str, size: float) -> tuple[float, float]:
    """Return the width and height of a drawable text, in inches."""
    lines = text.split("\n")
    # A dollar sign would make a formula of the line that is measured; another letter is as wide.
    width = max(_line_width(line.replace("$", "S"), size, tuple(families())) for line in lines)
    return width / _POINTS_AN_INCH, _LINE * size * len(lines) / _POINTS_AN_INCH
