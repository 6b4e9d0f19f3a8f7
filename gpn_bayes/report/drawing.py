"""Where the nodes and links of a report's network stand, computed once; in pixels, y downwards."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpn_bayes.plots.layout import averaged_order
from gpn_bayes.plots.lettering import wrapped
from gpn_bayes.plots.links import Link, links
from gpn_bayes.plots.placing import (
    STARTS,
    Band,
    Placed,
    Spacing,
    line_scale,
    node_order,
    place_network,
    strong_links,
    tier_label,
    tiers_of,
    widened,
)
from gpn_bayes.posterior.directions import short_grounds
from gpn_bayes.posterior.draws import GraphCollection
from gpn_bayes.posterior.queries import edge_probabilities
from gpn_bayes.report.compact import compact_places

# Pairs below this probability are never drawn.
SHOWN_FROM = 0.01
# The size of letters in nodes, as in the style sheet, and the height of a line.
FONT, LINE_HEIGHT = 13.0, 16.0
# The boxes that a network is drawn for, of a screen, a tablet and a phone; all but the first only if letters are at
# least so large in them.
_BOXES, _LEGIBLE = ((1180.0, 760.0), (700.0, 860.0), (330.0, 600.0)), 10.0
# A network in layers whose letters would be smaller than this is drawn in rows of the same length, if they are larger.
_SMALLEST = 7.5
_NAME_WIDTH, _LONGEST_LINE, _MOST_LINES = 18, 26, 3
_PAD, _NARROWEST = (11.0, 7.0), 46.0
SPACING = Spacing(gap=22.0, layers=(44.0, 100.0), inset=11.0, step=16.0, margin=12.0, heading=0.0)
# The widths of letters over the size of the font, as in the widest of the fonts that systems come with.
_SLIM, _USUAL, _BROAD, _SQUARE = 0.4, 0.62, 0.95, 1.0
_SLIM_LETTERS, _BROAD_LETTERS = frozenset("iljtfrI .,:;'|!()[]{}-/\\"), frozenset("mwMWOQ%@&")


def drawing_of(post: GraphCollection) -> dict[str, Any]:
    """Return the network of a posterior or bootstrap as it is drawn, causes above effects; see `drawing`."""
    probabilities = edge_probabilities(post).to_numpy()
    clear = [(link.parent, link.child) for link in links(probabilities, SHOWN_FROM) if link.direction == "clear"]
    return drawing(post.names, probabilities, averaged_order(post), tiers_of(post), short_grounds(post, clear))


def drawing(
    names: Sequence[str],
    probabilities: np.ndarray,
    averaged: np.ndarray,
    tiers: np.ndarray | None = None,
    decided: Mapping[tuple[int, int], str] | None = None,
) -> dict[str, Any]:
    """Return a network as it is drawn, causes above effects.

    Parameters
    ----------
    names : sequence of str
        The variables.
    probabilities : ndarray of shape (n, n)
        Of the edges, rows parents.
    averaged : ndarray of int
        The variables from causes to effects.
    tiers : ndarray, optional
        The tier of each variable.
    decided : mapping, optional
        What decides clear directions, by parent and child.

    Returns
    -------
    dict
        `labels`, the lines of each node's name; `sizes`, its width and height; `links`, the most probable last so that
        it lies on top, each with `parent`, `child`, `probability` (of being joined, either way), `direction` ("clear",
        "likelier" or "open") and perhaps `ground`, what decides that; `layouts`, drawings for boxes of several shapes;
        `from` and `start`, the least probability of the links, and of those that are shown at first; `thinner`, the
        width of lines as a share of the usual one; `dip`, how far lines between nodes side by side bend out. A layout
        has `width` and `height`; `nodes`, their middles; `courses`, by the number of a link, the lanes (x, top, bottom)
        of its way around nodes; and `bands`, the tiers, each with `label`, `top` and `bottom`.
    """
    drawn = sorted(links(probabilities, SHOWN_FROM), key=lambda link: link.probability)
    start, strong = strong_links(drawn, len(names), STARTS)
    labels = [name_lines(name) for name in names]
    sizes = widened(np.array([node_size(lines) for lines in labels]), strong, SPACING)
    headings = [] if tiers is None else [_width(tier_label(tier)) for tier in np.unique(tiers)]
    spacing = SPACING._replace(heading=max(headings, default=0.0) + SPACING.margin)
    first, *narrower = (
        place_network(sizes, strong, averaged, spacing, box, tiers, least=least / FONT)
        for box, least in zip(_BOXES, (_SMALLEST, _LEGIBLE, _LEGIBLE), strict=True)
    )
    if FONT * first.scale(_BOXES[0]) < _SMALLEST:
        rows = _in_rows(sizes, strong, averaged, spacing, tiers)
        first = max(first, rows, key=lambda place: place.scale(_BOXES[0]))
    layouts = [first]
    for place, box in zip(narrower, _BOXES[1:], strict=True):
        if FONT * place.scale(box) >= _LEGIBLE and place.size[0] < layouts[-1].size[0]:
            layouts.append(place)
    return {
        "labels": labels,
        "sizes": sizes.round(1).tolist(),
        "links": [_numbers(link, decided or {}) for link in drawn],
        "layouts": [_layout(place, drawn) for place in layouts],
        "from": SHOWN_FROM,
        "start": start,
        "thinner": round(line_scale(strong), 3),
        "dip": SPACING.layers[0],
    }


def order_by_edges(probabilities: np.ndarray) -> np.ndarray:
    """Return the nodes from causes to effects: by how many parents more than children they have.

    Examples
    --------
    >>> order_by_edges(np.array([[0, 0, 0], [1, 0, 1], [1, 0, 0]])).tolist()
    [1, 2, 0]
    """
    return np.argsort(np.round(probabilities.sum(axis=0) - probabilities.sum(axis=1), 9), kind="stable")


def _numbers(link: Link, decided: Mapping[tuple[int, int], str]) -> dict[str, Any]:
    probability = round(min(link.probability, 1.0), 6)
    ground = decided.get((link.parent, link.child))
    return {
        "parent": link.parent,
        "child": link.child,
        "probability": probability,
        "direction": link.direction,
        **({"ground": ground} if ground else {}),
    }


def _layout(place: Placed, drawn: list[Link]) -> dict[str, Any]:
    courses = {}
    for number, link in enumerate(drawn):
        pair = (link.parent, link.child)
        lanes = place.courses.get(pair, place.courses.get(pair[::-1]))
        if lanes is not None:
            courses[str(number)] = lanes.round(1).tolist()
    bands = [
        {"label": tier_label(own.tier), "top": round(own.top, 1), "bottom": round(own.bottom, 1)} for own in place.bands
    ]
    width, height = (round(side, 1) for side in place.size)
    return {
        "width": width,
        "height": height,
        "nodes": place.centre.round(1).tolist(),
        "courses": courses,
        "bands": bands,
    }


def _in_rows(
    sizes: np.ndarray, strong: list[Link], averaged: np.ndarray, spacing: Spacing, tiers: np.ndarray | None
) -> Placed:
    """Return a drawing in rows of about the same length, in which lines go straight, behind nodes."""
    order = node_order(strong, averaged, tiers)
    widest, tallest = sizes.max(axis=0) + [spacing.gap, spacing.layers[0]]
    pairs = [(link.parent, link.child) for link in strong]
    x, y = compact_places(pairs, order, widest, tallest, _BOXES[0][0] / _BOXES[0][1], tiers)
    centre = np.stack([x, y], axis=1)
    corner = (centre - sizes / 2).min(axis=0) - spacing.margin - [spacing.heading if tiers is not None else 0.0, 0.0]
    centre -= corner
    width, height = (centre + sizes / 2).max(axis=0) + spacing.margin
    return Placed(centre, {}, _bands_of_rows(centre, tiers, float(height)), (float(width), float(height)))


def _bands_of_rows(centre: np.ndarray, tiers: np.ndarray | None, height: float) -> list[Band]:
    if tiers is None:
        return []
    numbers = np.unique(tiers)
    ends = [centre[tiers == number, 1] for number in numbers]
    between = [(float(one.max()) + float(two.min())) / 2 for one, two in zip(ends[:-1], ends[1:], strict=True)]
    return [Band(float(n), top, end) for n, top, end in zip(numbers, [0.0, *between], [*between, height], strict=True)]


def name_lines(name: str) -> list[str]:
    """Return the lines of a node's name, cut short where they are too long or too many; the page holds the whole."""
    lines = wrapped(" ".join(name.split()), _NAME_WIDTH, longest=len(name) + 1).split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1]} …"]
    return [line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…" for line in lines]


def node_size(lines: list[str]) -> tuple[float, float]:
    """Return the width and height of a node that holds such lines."""
    width = max(_width(line) for line in lines) + 2 * _PAD[0]
    return max(width, _NARROWEST), LINE_HEIGHT * len(lines) + 2 * _PAD[1]


def _width(line: str) -> float:
    """Return about how wide a line is, at most; letters of East Asia are square, accents take nothing."""
    return FONT * sum(_letter_width(letter) for letter in line)


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return _SQUARE
    return _SLIM if letter in _SLIM_LETTERS else _BROAD if letter in _BROAD_LETTERS else _USUAL
