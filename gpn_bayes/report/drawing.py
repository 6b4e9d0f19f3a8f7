"""The network of a report: its links, and drawings for screens of several shapes, laid out once."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes.plots.layout import averaged_order
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
from gpn_bayes.report.svg import FONT, SPACING, name_lines, network_svg, node_size, text_width

# Pairs below this probability are never drawn.
SHOWN_FROM = 0.01
# The boxes that a network is drawn for, of a screen, a tablet and a phone; all but the first only if letters are at
# least so large in them.
_BOXES, _LEGIBLE = ((1180.0, 760.0), (700.0, 860.0), (330.0, 600.0)), 10.0
# A network in layers whose letters would be smaller than this is drawn in rows of the same length, if they are larger.
_SMALLEST = 7.5


class Drawing(NamedTuple):
    """A network as it is drawn, causes above effects.

    Attributes
    ----------
    names : sequence of str
        The variables.
    links : list of Link
        The pairs, the most probable last so that it lies on top.
    grounds : mapping
        What decides clear directions, by parent and child.
    start : float
        The least probability of the links that are shown at first.
    thinner : float
        The width of lines as a share of the usual one.
    layouts : list of Placed
        Where the nodes stand, for boxes of several shapes.
    """

    names: Sequence[str]
    links: list[Link]
    grounds: Mapping[tuple[int, int], str]
    start: float
    thinner: float
    layouts: list[Placed]

    def content(self) -> dict[str, Any]:
        """Return what a page takes.

        Returns
        -------
        dict
            `network`: `start` and the `links`, each with `parent`, `child`, `probability` (of being joined, either
            way), `direction` ("clear", "likelier" or "open") and perhaps `ground`, what decides that; `layouts`, each
            with `width`, `height` and `svg`, what is drawn there.
        """
        layouts = [
            {
                "width": round(own.size[0], 1),
                "height": round(own.size[1], 1),
                "svg": network_svg(self.names, own, self.links, self.thinner),
            }
            for own in self.layouts
        ]
        return {"network": {"links": [*map(self._numbers, self.links)], "start": self.start}, "layouts": layouts}

    def _numbers(self, link: Link) -> dict[str, Any]:
        ground = self.grounds.get((link.parent, link.child))
        numbers = link._asdict() | {"probability": round(min(link.probability, 1.0), 6)}
        return numbers | ({"ground": ground} if ground else {})


def drawing_of(post: GraphCollection) -> Drawing:
    """Return the network of a posterior or bootstrap; see `drawing`."""
    probabilities = edge_probabilities(post).to_numpy()
    clear = [(link.parent, link.child) for link in links(probabilities, SHOWN_FROM) if link.direction == "clear"]
    return drawing(post.names, probabilities, averaged_order(post), tiers_of(post), short_grounds(post, clear))


def drawing(
    names: Sequence[str],
    probabilities: np.ndarray,
    averaged: np.ndarray,
    tiers: np.ndarray | None = None,
    decided: Mapping[tuple[int, int], str] | None = None,
) -> Drawing:
    """Return a network as it is drawn.

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
    """
    drawn = sorted(links(probabilities, SHOWN_FROM), key=lambda link: link.probability)
    start, strong = strong_links(drawn, len(names), STARTS)
    sizes = widened(np.array([node_size(name_lines(name)) for name in names]), strong, SPACING)
    headings = [] if tiers is None else [text_width(tier_label(tier)) for tier in np.unique(tiers)]
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
    return Drawing(names, drawn, decided or {}, start, line_scale(strong), layouts)


def order_by_edges(probabilities: np.ndarray) -> np.ndarray:
    """Return the nodes from causes to effects: by how many parents more than children they have.

    Examples
    --------
    >>> order_by_edges(np.array([[0, 0, 0], [1, 0, 1], [1, 0, 0]])).tolist()
    [1, 2, 0]
    """
    return np.argsort(np.round(probabilities.sum(axis=0) - probabilities.sum(axis=1), 9), kind="stable")


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
    bands = _bands_of_rows(centre, tiers, float(height))
    return Placed(centre, sizes, {}, bands, (float(width), float(height)), spacing.layers[0])


def _bands_of_rows(centre: np.ndarray, tiers: np.ndarray | None, height: float) -> list[Band]:
    if tiers is None:
        return []
    numbers = np.unique(tiers)
    ends = [centre[tiers == number, 1] for number in numbers]
    between = [(float(one.max()) + float(two.min())) / 2 for one, two in zip(ends[:-1], ends[1:], strict=True)]
    return [Band(float(n), top, end) for n, top, end in zip(numbers, [0.0, *between], [*between, height], strict=True)]
