"""A placed network as SVG, for pages and cells: pixels, y downwards.

Colours are those that can be read on any background, or that of the text around; a style sheet may override them.
"""

import unicodedata
from collections.abc import Sequence
from html import escape

import numpy as np

from gpn_bayes._util.cells import BLUE, VERMILION
from gpn_bayes.plots.lettering import wrapped
from gpn_bayes.plots.lines import line_of
from gpn_bayes.plots.links import Link
from gpn_bayes.plots.placing import Placed, Spacing, tier_label

# The size of letters in nodes, as in the style sheet, and the height of a line.
FONT, LINE_HEIGHT = 13.0, 16.0
SPACING = Spacing(gap=22.0, layers=(44.0, 100.0), inset=11.0, step=16.0, margin=12.0, heading=0.0)
# The size of a point, by which lines are measured.
_POINT = 1.25
_NAME_WIDTH, _LONGEST_LINE, _MOST_LINES = 18, 26, 3
_PAD, _NARROWEST = (11.0, 7.0), 46.0
# The widths of letters over the size of the font, as in the widest of the fonts that systems come with.
_SLIM, _USUAL, _BROAD, _SQUARE = 0.4, 0.62, 0.95, 1.0
_SLIM_LETTERS, _BROAD_LETTERS = frozenset("iljtfrI .,:;'|!()[]{}-/\\"), frozenset("mwMWOQ%@&")


def network_svg(
    names: Sequence[str], placed: Placed, drawn: Sequence[Link], thinner: float, titles: Sequence[str] = ()
) -> str:
    """Return what an SVG of a network holds: bands, links and nodes, the last on top.

    Parameters
    ----------
    names : sequence of str
        The variables.
    placed : Placed
        Where they stand.
    drawn : sequence of Link
        The lines, the last on top. Each carries its number, as ``data-link``.
    thinner : float
        The width of lines as a share of the usual one.
    titles : sequence of str, optional
        What is said of each line where it is pointed at.

    Examples
    --------
    >>> placed = Placed(np.array([[30.0, 20.0]]), np.array([[46.0, 30.0]]), {}, [], (60.0, 40.0), 44.0)
    >>> svg = network_svg(["<b>"], placed, [], 1.0)
    >>> "&lt;b&gt;" in svg, svg.count("<g"), svg.count("<text")
    (True, 4, 1)
    """
    bands = [_band(placed, k) for k in range(len(placed.bands))]
    lines = [_link(placed, k, link, thinner, titles[k] if titles else "") for k, link in enumerate(drawn)]
    nodes = [_node(placed, k, name) for k, name in enumerate(names)]
    return (
        f"<g>{''.join(bands)}</g>"
        f'<g fill="none" stroke="{BLUE}">{"".join(lines)}</g>'
        f'<g fill="none" stroke="currentColor" stroke-opacity=".55">{"".join(nodes)}</g>'
    )


def _number(value: float) -> str:
    """Write a coordinate, to a tenth of a pixel."""
    return f"{round(float(value), 1) + 0.0:g}"


def _place(**coordinates: float) -> str:
    """Write coordinates as attributes."""
    return " ".join(f'{name}="{_number(value)}"' for name, value in coordinates.items())


def _band(placed: Placed, k: int) -> str:
    """Return a band, which goes beyond both sides of any frame; every other one is shaded."""
    band = placed.bands[k]
    look = 'class="band plain" fill="none"' if k % 2 else 'class="band" fill="currentColor" opacity=".06"'
    box = f"<rect {look} {_place(x=-9999, y=band.top, width=99999, height=band.bottom - band.top)}/>"
    place = _place(x=SPACING.margin, y=(band.top + band.bottom) / 2)
    look = 'dy=".35em" fill="currentColor" opacity=".75"'
    return f'{box}<text class="tier" {place} {look}>{tier_label(band.tier)}</text>'


def _link(placed: Placed, number: int, link: Link, thinner: float, title: str) -> str:
    """Return a line with its arrowhead."""
    points, head, width = line_of(placed, link, _POINT, thinner)
    shapes = f'<path class="line" d="{_path(points)}" stroke-width="{_number(width)}"/>'
    if head is not None:
        tip, left, right = ([_number(x), _number(y)] for x, y in head)
        face = f' fill="{BLUE}"' if link.direction == "clear" else ""
        shapes += f'<path class="head" d="M{" ".join(tip)}L{" ".join(left)}H{right[0]}Z"{face}/>'
    colour = f' stroke="{VERMILION}"' if link.direction == "open" else ""
    said = f"<title>{escape(title)}</title>" if title else ""
    group = f'class="link {link.direction}" data-link="{number}" opacity="{link.opacity:.2g}"{colour}'
    return f"<g {group}>{said}{shapes}</g>"


def _path(points: np.ndarray) -> str:
    """Return a line as a path: straight pieces as such, all else as bends."""
    parts = [f"M{_number(points[0, 0])} {_number(points[0, 1])}"]
    for k in range(1, len(points), 3):
        if np.ptp(points[k - 1 : k + 3, 0]) == 0:
            parts.append(f"V{_number(points[k + 2, 1])}")
        else:
            parts.append("C" + " ".join(map(_number, points[k : k + 3].ravel())))
    return "".join(parts)


def _node(placed: Placed, k: int, name: str) -> str:
    """Return a box with a name."""
    (x, y), (width, height), lines = placed.centre[k], placed.sizes[k], name_lines(name)
    box = f'<rect {_place(x=x - width / 2, y=y - height / 2, width=width, height=height)} rx="7"/>'
    first = y - LINE_HEIGHT * (len(lines) - 1) / 2
    rows = "".join(
        f'<tspan {_place(x=x, y=first + LINE_HEIGHT * row)} dy=".35em">{escape(line)}</tspan>'
        for row, line in enumerate(lines)
    )
    text = f'<text text-anchor="middle" fill="currentColor" stroke="none">{rows}</text>'
    return f'<g class="node" data-node="{k}"><title>{escape(name)}</title>{box}{text}</g>'


def name_lines(name: str) -> list[str]:
    """Return the lines of a node's name, cut short where they are too long or too many; the page holds the whole."""
    lines = wrapped(" ".join(name.split()), _NAME_WIDTH, longest=len(name) + 1).split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1]} …"]
    return [line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…" for line in lines]


def node_size(lines: list[str]) -> tuple[float, float]:
    """Return the width and height of a node that holds such lines."""
    width = max(text_width(line) for line in lines) + 2 * _PAD[0]
    return max(width, _NARROWEST), LINE_HEIGHT * len(lines) + 2 * _PAD[1]


def text_width(line: str) -> float:
    """Return about how wide a line is, at most; letters of East Asia are square, accents take nothing."""
    return FONT * sum(_letter_width(letter) for letter in line)


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return _SQUARE
    return _SLIM if letter in _SLIM_LETTERS else _BROAD if letter in _BROAD_LETTERS else _USUAL
