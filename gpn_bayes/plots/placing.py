"""From nodes of given sizes to a drawing that fills a box: boxes in layers, lines around them, bands for tiers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpn_bayes.plots.layout import Layout, Pair, drawing_order, layered_layout
from gpn_bayes.plots.links import Link
from gpn_bayes.posterior.draws import Draws, GraphCollection

# The pairs of the first of these probabilities that leaves two a node at most say where nodes stand, and have lines
# around them; those of others go straight, behind nodes.
STARTS = (0.1, 0.5, 0.9)
# Lines that may have their full width without covering each other.
_FEW_LINES = 20
# Scales at which a box is tried to be filled, from the largest that is worth having.
_SCALES = tuple(1.25 * 0.88**k for k in range(16))
# Arrowheads at a node that are kept apart; where there are more, they come closer.
_MOST_APART = 8
# How much wider than need be a drawing may become, to fill a box.
_MOST_SPREAD = 1.6


class Spacing(NamedTuple):
    """The distances of a drawing, in the unit of the nodes' sizes.

    Attributes
    ----------
    gap : float
        Between two nodes of a layer, at least.
    layers : (float, float)
        Between two layers, at least and at most.
    inset : float
        From the ends of a node's side to the outermost line that begins or ends there.
    step : float
        Between two lines at a node, at most.
    margin : float
        Around the drawing.
    heading : float
        The width of the names of tiers, to the left of all nodes.
    """

    gap: float
    layers: tuple[float, float]
    inset: float
    step: float
    margin: float
    heading: float


class Band(NamedTuple):
    """The part of a drawing that holds one tier, with the number of the tier."""

    tier: float
    top: float
    bottom: float


class Placed(NamedTuple):
    """A drawing, y downwards from the upper left corner.

    Attributes
    ----------
    centre : ndarray of shape (nodes, 2)
        The middle of each node.
    sizes : ndarray of shape (nodes, 2)
        The width and height of each.
    courses : dict of ndarray of shape (lanes, 3)
        For each pair, from the upper to the lower node: the lanes (x, top, bottom) in which its line goes straight
        down. From one to the next it bends.
    bands : list of Band
        The tiers, from the top down.
    size : (float, float)
        Width and height.
    dip : float
        How far a line between nodes side by side bends out.
    """

    centre: np.ndarray
    sizes: np.ndarray
    courses: dict[Pair, np.ndarray]
    bands: list[Band]
    size: tuple[float, float]
    dip: float

    def scale(self, box: tuple[float, float]) -> float:
        """Return how much larger the drawing may be drawn to just fit a box."""
        return min(box[0] / self.size[0], box[1] / self.size[1])


def tiers_of(post: GraphCollection) -> np.ndarray | None:
    """Return the tier of each variable as its prior numbered them; None without tiers, or if they weren't recorded.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> given = {"score": "bge", "draws": 20, "random_seed": 1, "progressbar": False}
    >>> tiers_of(gpn.sample(data, tiers=[["v2"], ["v1"]], **given)).tolist()
    [2.0, 1.0]
    >>> tiers_of(gpn.sample(data, **given))
    """
    tiers = post.record.prior.tiers if isinstance(post, Draws) else None
    return None if tiers is None else np.array(tiers)


def tier_label(tier: float) -> str:
    """Return what a tier is called in a drawing.

    Examples
    --------
    >>> tier_label(2.0), tier_label(0.5)
    ('tier 2', 'tier 0.5')
    """
    return f"tier {tier:.10g}"


def place_network(
    sizes: np.ndarray,
    drawn: Sequence[Link],
    averaged: np.ndarray,
    spacing: Spacing,
    box: tuple[float, float],
    tiers: np.ndarray | None = None,
    least: float = 0.0,
) -> Placed:
    """Return the drawing, of those tried, that can be drawn largest in a box.

    Parameters
    ----------
    sizes : ndarray of shape (nodes, 2)
        The width and height of each node.
    drawn : sequence of Link
        The lines.
    averaged : ndarray of int
        The nodes from causes to effects.
    spacing : Spacing
        The distances to keep.
    box : (float, float)
        Its width and height, in the unit of the sizes.
    tiers : ndarray, optional
        The tier of each node.
    least : float, default 0
        Scales below this aren't worth a try.

    Examples
    --------
    >>> from gpn_bayes.plots.links import Link
    >>> spacing = Spacing(gap=1, layers=(1, 2), inset=0.1, step=0.5, margin=0.5, heading=0)
    >>> drawn = [Link(0, child, 1.0, "clear") for child in range(1, 7)]
    >>> flat = place_network(np.full((7, 2), [3.0, 1.0]), drawn, np.arange(7), spacing, (24.0, 6.0))
    >>> tall = place_network(np.full((7, 2), [3.0, 1.0]), drawn, np.arange(7), spacing, (9.0, 20.0))
    >>> flat.size[0] > flat.size[1], tall.size[0] > tall.size[1]
    (True, False)
    """
    order = node_order(drawn, averaged, tiers)
    pairs = [(link.parent, link.child) for link in drawn]
    ranks = None if tiers is None else np.unique(tiers, return_inverse=True)[1]
    heading = spacing.heading if tiers is not None else 0.0
    best: tuple[float, Layout] | None = None
    for scale in _SCALES:
        if best is not None and (best[0] >= scale or scale < least):
            break
        room = box[0] / scale - 2 * spacing.margin - heading
        layout = layered_layout(pairs, order, sizes[:, 0], spacing.gap, ranks, max(room, float(sizes[:, 0].max())))
        fits = _Drawing(layout, sizes, spacing, tiers, spacing.layers[0]).placed().scale(box)
        if best is None or fits > 1.02 * best[0]:
            best = fits, layout
    assert best is not None
    return _filled(best[1], sizes, spacing, tiers, box, min(best[0], _SCALES[0]))


def strong_links(drawn: Sequence[Link], n: int, starts: Sequence[float]) -> tuple[float, list[Link]]:
    """Return the pairs that say where n nodes stand, and have lines around nodes: two a node at most.

    Parameters
    ----------
    drawn : sequence of Link
        The lines.
    n : int
        The number of nodes.
    starts : sequence of float
        Probabilities: the pairs at least as probable as the first that leaves few enough, else as the last.

    Returns
    -------
    start : float
        The probability that was taken.
    strong : list of Link
        The pairs that are at least as probable.

    Examples
    --------
    >>> from gpn_bayes.plots.links import Link
    >>> link = Link(0, 1, 0.2, "clear")
    >>> strong_links([link], 2, STARTS)[0], strong_links([link] * 5, 2, STARTS)[0]
    (0.1, 0.5)
    """
    strong: list[Link] = []
    for start in starts:
        strong = [link for link in drawn if link.probability >= start]
        if len(strong) <= 2 * n:
            break
    return start, strong


def widened(sizes: np.ndarray, strong: Sequence[Link], spacing: Spacing) -> np.ndarray:
    """Return the sizes of nodes that are wide enough for the arrowheads on one of their sides to stand apart.

    Examples
    --------
    >>> from gpn_bayes.plots.links import Link
    >>> spacing = Spacing(gap=1, layers=(1, 2), inset=0.1, step=0.5, margin=0.5, heading=0)
    >>> widened(np.ones((4, 2)), [Link(parent, 3, 1.0, "clear") for parent in range(3)], spacing)[:, 0].tolist()
    [1.0, 1.0, 1.0, 1.2]
    """
    ends = np.zeros((2, len(sizes)), dtype=int)
    for link in strong:
        ends[0, link.parent] += 1
        ends[1, link.child] += 1
    most = np.minimum(ends.max(axis=0), _MOST_APART)
    needed = 2 * spacing.inset + line_scale(strong) * spacing.step * np.maximum(most - 1, 0)
    return np.stack([np.maximum(sizes[:, 0], needed), sizes[:, 1]], axis=1)


def line_scale(strong: Sequence[Link]) -> float:
    """Return how much thinner than usual lines are: the more there are, the thinner."""
    return float(np.clip(np.sqrt(_FEW_LINES / max(len(strong), 1)), 0.5, 1.0))


def node_order(drawn: Sequence[Link], averaged: np.ndarray, tiers: np.ndarray | None) -> np.ndarray:
    """Return the nodes from the top of a drawing to its bottom."""
    directed = sorted((link for link in drawn if link.direction != "open"), key=lambda link: -link.probability)
    return drawing_order([(link.parent, link.child) for link in directed], averaged, tiers)


def _filled(
    layout: Layout,
    sizes: np.ndarray,
    spacing: Spacing,
    tiers: np.ndarray | None,
    box: tuple[float, float],
    scale: float,
) -> Placed:
    """Return a drawing with nodes and layers as far apart as the box has room for, at a scale."""
    low, high = spacing.layers
    flat = _Drawing(layout, sizes, spacing, tiers, low).placed()
    spread = float(np.clip(box[0] / scale / flat.size[0], 1.0, _MOST_SPREAD))
    routes = {pair: [(spread * x, layer) for x, layer in route] for pair, route in layout.routes.items()}
    layout = layout._replace(x=spread * layout.x, routes=routes)
    gaps = int(layout.layer.max())
    more = (box[1] / scale - flat.size[1]) / gaps if gaps else 0.0
    # Lines that are all but level can't be followed: the wider a network, the farther apart are its layers.
    wanted = low + 0.06 * spread * flat.size[0]
    return _Drawing(layout, sizes, spacing, tiers, float(np.clip(min(wanted, low + more), low, high))).placed()


class _Drawing:
    """Nodes as boxes in layers, and lines that pass between them; the first node's layer is at 0."""

    def __init__(
        self, layout: Layout, sizes: np.ndarray, spacing: Spacing, tiers: np.ndarray | None, layer_gap: float
    ) -> None:
        self.layout, self.sizes, self.spacing, self.tiers = layout, sizes, spacing, tiers
        layers = range(int(layout.layer.max()) + 1)
        self.tallest = np.array([sizes[layout.layer == k, 1].max(initial=0.0) for k in layers])
        between = (self.tallest[:-1] + self.tallest[1:]) / 2 + layer_gap
        self.middle = np.concatenate([[0.0], np.cumsum(between)])
        self.centre = np.stack([layout.x, self.middle[layout.layer]], axis=1)
        self.layer_gap = layer_gap

    def placed(self) -> Placed:
        """Return the drawing with its upper left corner at 0."""
        passed = [x for route in self.layout.routes.values() for x, _ in route]
        half = self.sizes / 2
        margin = self.spacing.margin
        heading = self.spacing.heading if self.tiers is not None else 0.0
        left = min([*(self.centre - half)[:, 0], *passed]) - margin - heading
        right = max([*(self.centre + half)[:, 0], *passed]) + margin
        corner = np.array([left, (self.centre - half)[:, 1].min() - margin])
        # Lines between nodes side by side pass below a single layer.
        below = self.spacing.layers[0] if len(self.middle) == 1 else 0.0
        bottom = (self.centre + half)[:, 1].max() + margin + below
        bands = [Band(own.tier, own.top - corner[1], own.bottom - corner[1]) for own in self._bands()]
        ports = self._ports()
        courses = {pair: self._course(pair, ports) - corner[[0, 1, 1]] for pair in self.layout.routes}
        size = float(right - corner[0]), float(bottom - corner[1])
        return Placed(self.centre - corner, self.sizes, courses, bands, size, self.spacing.layers[0])

    def _bands(self) -> list[Band]:
        """Return the tiers, which end halfway between layers."""
        if self.tiers is None:
            return []
        numbers = np.unique(self.tiers)
        ends = []
        for number in numbers:
            own = self.layout.layer[self.tiers == number]
            top = self.middle[own.min()] - self.tallest[own.min()] / 2
            bottom = self.middle[own.max()] + self.tallest[own.max()] / 2
            ends.append((top, bottom))
        middles = [(above[1] + below[0]) / 2 for above, below in zip(ends[:-1], ends[1:], strict=True)]
        tops = [ends[0][0] - self.spacing.margin, *middles]
        bottoms = [*middles, ends[-1][1] + self.spacing.margin]
        return [Band(float(n), float(top), float(end)) for n, top, end in zip(numbers, tops, bottoms, strict=True)]

    def _ports(self) -> dict[tuple[int, Pair], float]:
        """Give each end of a line a place of its own on its node's side, so that arrowheads don't meet."""
        sides: dict[tuple[int, bool], list[tuple[float, Pair]]] = {}
        for (upper, lower), route in self.layout.routes.items():
            towards_lower = route[0][0] if route else self.layout.x[lower]
            towards_upper = route[-1][0] if route else self.layout.x[upper]
            sides.setdefault((upper, True), []).append((float(towards_lower), (upper, lower)))
            sides.setdefault((lower, False), []).append((float(towards_upper), (upper, lower)))
        ports = {}
        for (node, _), ends in sides.items():
            room = max(self.sizes[node, 0] - 2 * self.spacing.inset, 0.0)
            step = min(room / max(len(ends) - 1, 1), self.spacing.step)
            for k, (_, pair) in enumerate(sorted(ends)):
                ports[node, pair] = float(self.layout.x[node] + (k - (len(ends) - 1) / 2) * step)
        return ports

    def _course(self, pair: Pair, ports: dict[tuple[int, Pair], float]) -> np.ndarray:
        """Return the lanes of a line: straight down past every layer that it leaves, passes or comes to."""
        upper, lower = pair
        first, last = self.layout.layer[upper], self.layout.layer[lower]
        begin = self.centre[upper, 1] + self.sizes[upper, 1] / 2
        end = self.centre[lower, 1] - self.sizes[lower, 1] / 2
        lanes = [(ports[upper, pair], begin, self._side(first, 1))]
        lanes += [(x, self._side(layer, -1), self._side(layer, 1)) for x, layer in self.layout.routes[pair]]
        lanes.append((ports[lower, pair], self._side(last, -1), end))
        return np.array(lanes)

    def _side(self, layer: int, sign: int) -> float:
        """Return the top (-1) or bottom (1) of a layer's tallest node."""
        return float(self.middle[layer] + sign * self.tallest[layer] / 2)
