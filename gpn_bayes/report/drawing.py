"""Where the nodes and links of a report's network stand, computed once; in pixels, y downwards."""

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from gpn_bayes.plots.layout import Layout, averaged_order, drawing_order, layered_layout
from gpn_bayes.plots.lettering import wrapped
from gpn_bayes.plots.network import Link, links
from gpn_bayes.report.compact import compact_places

if TYPE_CHECKING:
    from gpn_bayes.posterior.graph_posterior import GraphPosterior

# Pairs below this probability are never drawn.
SHOWN_FROM = 0.01
# The report opens with the pairs of the first of these probabilities that leaves two a node at most; they say where
# nodes stand.
STARTS = (0.1, 0.5, 0.9)
# Layers that would take more room than this can't be read at a glance.
_LARGEST = 1800.0
_NAME_WIDTH = 18
# Of letters of the size that the style sheet gives to nodes: their width, and the height of a line.
_LETTER, _LINE = 8.2, 19.0
_PAD, _NARROWEST, _GAP, _LAYER_GAP = 12.0, 48.0, 28.0, 64.0
_PORT_STEP = 18.0


def drawing_of(post: "GraphPosterior") -> dict[str, Any]:
    """Return the network as it is drawn, causes above effects.

    Returns
    -------
    dict
        `nodes`, each with `label`, `x`, `y`, `width` and `height`; `links`, the most probable last so that it lies on
        top, each with `parent`, `child`, `probability` (of being joined, either way), `direction` ("told", "likelier"
        or "open"), and, where it doesn't go straight: `source` and `target`, its ends from the nodes' centres, and
        `bends`, places along the straight line between these and away from it.
    """
    probabilities = post.edge_probabilities().to_numpy()
    drawn = sorted(links(probabilities, SHOWN_FROM), key=lambda link: link.probability)
    start = _start(drawn, len(post.names))
    picture = _Picture(post.names, [link for link in drawn if link.probability >= start], averaged_order(post))
    return {
        "nodes": picture.nodes(),
        "links": [_numbers(link) | picture.course(link) for link in drawn],
        "from": SHOWN_FROM,
        "start": start,
    }


def _start(drawn: list[Link], n: int) -> float:
    for start in STARTS:
        if sum(link.probability >= start for link in drawn) <= 2 * n:
            return start
    return STARTS[-1]


def _numbers(link: Link) -> dict[str, Any]:
    probability = round(min(link.probability, 1.0), 6)
    return {"parent": link.parent, "child": link.child, "probability": probability, "direction": link.direction}


def _letters(line: str) -> int:
    """Return how many letters wide a line is; letters of East Asia count twice, accents not at all."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in line)
    return len(line) + wide - sum(unicodedata.combining(letter) > 0 for letter in line)


class _Picture:
    """Nodes as boxes in layers, and links that pass between them."""

    def __init__(self, names: tuple[str, ...], drawn: list[Link], averaged: np.ndarray) -> None:
        self.labels = [wrapped(name, _NAME_WIDTH) for name in names]
        lines = [label.split("\n") for label in self.labels]
        longest = np.array([max(_letters(line) for line in own) for own in lines])
        self.width = np.maximum(longest * _LETTER + 2 * _PAD, _NARROWEST)
        self.height = np.array([len(own) for own in lines]) * _LINE + _PAD
        told = sorted((link for link in drawn if link.direction != "open"), key=lambda link: -link.probability)
        order = drawing_order([(link.parent, link.child) for link in told], averaged)
        pairs = [(link.parent, link.child) for link in drawn]
        self.layout: Layout = layered_layout(pairs, order, self.width, _GAP)
        layers = range(int(self.layout.layer.max()) + 1)
        self.tallest = np.array([self.height[self.layout.layer == k].max(initial=0.0) for k in layers])
        between = (self.tallest[:-1] + self.tallest[1:]) / 2 + _LAYER_GAP
        self.middle = np.concatenate([[0.0], np.cumsum(between)])
        self.centre = np.stack([self.layout.x, self.middle[self.layout.layer]], axis=1)
        self.routed = bool(np.ptp(self.centre, axis=0).max() <= _LARGEST)
        if not self.routed:
            room = float(self.width.max()) + _GAP, float(self.height.max()) + _LAYER_GAP
            self.centre = np.stack(compact_places(pairs, order, *room), axis=1)
        self.ports = self._ports()

    def nodes(self) -> list[dict[str, Any]]:
        """Return the boxes."""
        boxes = zip(self.labels, self.centre.round(1).tolist(), self.width.tolist(), self.height.tolist(), strict=True)
        return [
            {"label": label, "x": x, "y": y, "width": round(width, 1), "height": round(height, 1)}
            for label, (x, y), width, height in boxes
        ]

    def _ports(self) -> dict[tuple[int, tuple[int, int]], float]:
        """Give each end of a link a place of its own on its node's side, so that arrowheads don't meet."""
        sides: dict[tuple[int, bool], list[tuple[float, tuple[int, int]]]] = {}
        for (upper, lower), route in self.layout.routes.items():
            towards_lower = route[0][0] if route else self.layout.x[lower]
            towards_upper = route[-1][0] if route else self.layout.x[upper]
            sides.setdefault((upper, True), []).append((float(towards_lower), (upper, lower)))
            sides.setdefault((lower, False), []).append((float(towards_upper), (upper, lower)))
        found = {}
        for (node, _), ends in sides.items():
            step = min((self.width[node] - 2 * _PAD) / max(len(ends) - 1, 1), _PORT_STEP)
            for k, (_, pair) in enumerate(sorted(ends)):
                found[node, pair] = float((k - (len(ends) - 1) / 2) * step)
        return found

    def course(self, link: Link) -> dict[str, Any]:
        """Return where a link passes; nothing for one that goes straight, without a say in where nodes stand."""
        pair = (link.parent, link.child)
        downwards = pair in self.layout.routes
        upper, lower = pair = pair if downwards else pair[::-1]
        if not self.routed or pair not in self.layout.routes:
            return {}
        start = np.array([self.ports[upper, pair], self.height[upper] / 2])
        end = np.array([self.ports[lower, pair], -self.height[lower] / 2])
        bends = self._bends(self.centre[upper] + start, self.layout.routes[pair], self.centre[lower] + end)
        ends, places = ((upper, start), (lower, end)), bends
        if not downwards:
            ends, places = ends[::-1], bends[::-1]
        (source, first), (target, last) = ends
        along = _along(places, self.centre[source] + first, self.centre[target] + last)
        return {"source": first.round(1).tolist(), "target": last.round(1).tolist(), "bends": along}

    def _bends(self, start: np.ndarray, route: list[tuple[float, int]], end: np.ndarray) -> np.ndarray:
        """Return the control points of a smooth line that passes straight down between the nodes of a layer."""
        lanes = [(start[0], start[1], start[1])]
        for x, layer in route:
            half = self.tallest[layer] / 2
            lanes.append((x, self.middle[layer] - half, self.middle[layer] + half))
        lanes.append((end[0], end[1], end[1]))
        points = []
        for (x, _, bottom), (next_x, top, _) in zip(lanes[:-1], lanes[1:], strict=True):
            points += [(x, bottom + 0.4 * (top - bottom)), (next_x, bottom + 0.6 * (top - bottom))]
        return np.array(points)


def _along(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> list[list[float]]:
    """Return points by their place along a line, between 0 and 1, and their distance from it.

    Examples
    --------
    >>> _along(np.array([[1.0, 5.0]]), np.array([0.0, 0.0]), np.array([0.0, 10.0]))
    [[0.5, -1.0]]
    """
    line = end - start
    length = float(np.hypot(*line))
    away = np.array([-line[1], line[0]]) / length
    offsets = points - start
    return [[round(float(own @ line) / length**2, 4), round(float(own @ away), 1)] for own in offsets]
