"""The network as the draws see it: every pair as strong as it is probable, with the direction as far as it is told."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path

from gpn_bayes.checking import check_share
from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.plots.layout import Layout, averaged_order, drawing_order, layered_layout

if TYPE_CHECKING:
    from gpn_bayes.posterior.queries import GraphQueries

# The share of a pair's probability that one direction must have to be called told, or likelier.
TOLD, LIKELIER = 0.9, 2 / 3
# In inches: around a name, between nodes, between layers, beyond the nodes, and from an arrow to its node.
_PAD, _GAP, _LAYER_GAP, _MARGIN, _CLEAR = 0.09, 0.3, 0.68, 0.12, 0.025
_NAME_WIDTH = 18


class Link(NamedTuple):
    """A pair of nodes that some draws join.

    Attributes
    ----------
    parent, child : int
        The nodes, in the more probable direction.
    probability : float
        That they are joined, either way.
    direction : {"told", "likelier", "open"}
        Whether the draws tell the direction: 90 % of this probability or more are in it, two thirds or more, or less.
    """

    parent: int
    child: int
    probability: float
    direction: str

    @property
    def width(self) -> float:
        """The line's width, in points."""
        return 0.6 + 3.4 * self.probability

    @property
    def head(self) -> float:
        """The length of the arrowhead, in inches: it must be seen at the end of the widest line."""
        return 0.065 + 0.02 * self.width

    @property
    def opacity(self) -> float:
        """The line's opacity."""
        return 0.45 + 0.55 * min(self.probability, 1.0)

    @property
    def colour(self) -> str:
        """Its colour."""
        return palette.VERMILION if self.direction == "open" else palette.BLUE


def links(probabilities: np.ndarray, threshold: float) -> list[Link]:
    """Return all pairs whose probability of being joined is positive and at least a threshold.

    Examples
    --------
    >>> links(np.array([[0.0, 0.5], [0.4, 0.0]]), 0.1)
    [Link(parent=0, child=1, probability=0.9, direction='open')]
    """
    found = []
    for i, j in zip(*np.triu_indices(len(probabilities), 1), strict=True):
        forth, back = float(probabilities[i, j]), float(probabilities[j, i])
        joined = forth + back
        if joined > 0 and joined >= threshold:
            share = max(forth, back) / joined
            direction = "told" if share >= TOLD else "likelier" if share >= LIKELIER else "open"
            parent, child = (i, j) if forth >= back else (j, i)
            found.append(Link(int(parent), int(child), joined, direction))
    return found


def plot_network(post: "GraphQueries", threshold: float = 0.1, ax: Axes | None = None) -> Axes:
    """Draw the network: lines as wide and opaque as the pair is probable, causes above effects.

    Layers follow the order of the variables averaged over the draws. A filled arrowhead is a direction that the draws
    tell, an open one a direction that is likelier; a line of another colour, without a head, joins two variables of
    which either may be the cause.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    threshold : float, default 0.1
        Pairs are drawn whose probability of being joined, either way, is at least this. How many aren't is written
        below.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, as large as the network needs. Give your own ``layout="constrained"``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, score="bge", max_parents=2, draws=50, random_seed=1, progressbar=False)
    >>> ax = plot_network(post, threshold=0.2)
    >>> len(ax.texts) >= 11
    True
    """
    check_share("threshold", threshold)
    probabilities = post.edge_probabilities().to_numpy()
    drawn = links(probabilities, threshold)
    names = [lettering.wrapped(lettering.drawable(name), _NAME_WIDTH) for name in post.names]
    picture = _Picture(names, drawn, averaged_order(post))
    ax = picture.new_axes(ax)
    for link in drawn:
        picture.draw_link(ax, link, f"{post.names[link.parent]} -> {post.names[link.child]}")
    picture.draw_nodes(ax)
    left_out = len(links(probabilities, 0.0)) - len(drawn)
    _explain(ax, drawn, left_out, threshold, post.quantity)
    return ax


class _Picture:
    """A network in inches, y upwards; `scale` shrinks it to axes that are given."""

    def __init__(self, names: list[str], drawn: Sequence[Link], averaged: np.ndarray) -> None:
        sizes = np.array([lettering.size_of(name, frames.FONT) for name in names]) + 2 * _PAD
        self.names = names
        self.width, self.height = np.maximum(sizes[:, 0], 0.5), sizes[:, 1]
        told = sorted((link for link in drawn if link.direction != "open"), key=lambda link: -link.probability)
        order = drawing_order([(link.parent, link.child) for link in told], averaged)
        pairs = [(link.parent, link.child) for link in drawn]
        self.layout: Layout = layered_layout(pairs, order, self.width, _GAP)
        # The wider a network, the farther apart are its layers: lines that are all but level can't be followed.
        span = float((self.layout.x + self.width / 2).max() - (self.layout.x - self.width / 2).min())
        layer_gap = float(np.clip(0.07 * span, _LAYER_GAP, 2 * _LAYER_GAP))
        layers = range(int(self.layout.layer.max()) + 1)
        self.tallest = np.array([self.height[self.layout.layer == k].max() for k in layers])
        self.middle = -np.concatenate([[0.0], np.cumsum((self.tallest[:-1] + self.tallest[1:]) / 2 + layer_gap)])
        self.y = self.middle[self.layout.layer]
        self.scale = 1.0
        self._set_ports()

    def _set_ports(self) -> None:
        """Give each end of an edge a place of its own on its node's upper or lower side, so that heads don't meet."""
        self.port: dict[tuple[int, tuple[int, int]], float] = {}
        sides: dict[tuple[int, bool], list[tuple[float, tuple[int, int]]]] = {}
        for upper, lower in self.layout.routes:
            route = self.layout.routes[upper, lower]
            first = route[0][0] if route else self.layout.x[lower]
            last = route[-1][0] if route else self.layout.x[upper]
            sides.setdefault((upper, False), []).append((float(first), (upper, lower)))
            sides.setdefault((lower, True), []).append((float(last), (upper, lower)))
        for (node, _), ends in sides.items():
            room = self.width[node] - 2 * _PAD
            step = min(room / max(len(ends) - 1, 1), 0.2)
            for k, (_, pair) in enumerate(sorted(ends)):
                self.port[node, pair] = float(self.layout.x[node] + (k - (len(ends) - 1) / 2) * step)

    def extent(self) -> tuple[float, float, float, float]:
        """Return left, right, bottom and top."""
        passed = [x for route in self.layout.routes.values() for x, _ in route]
        left = min([*(self.layout.x - self.width / 2), *passed]) - _MARGIN
        right = max([*(self.layout.x + self.width / 2), *passed]) + _MARGIN
        bottom = float((self.y - self.height / 2).min()) - _MARGIN
        top = float((self.y + self.height / 2).max()) + _MARGIN
        return float(left), float(right), bottom, top

    def new_axes(self, ax: Axes | None) -> Axes:
        """Return axes with a unit of an inch, or of what fits where they are given."""
        left, right, bottom, top = self.extent()
        if ax is None:
            ax = frames.axes_of(None, max(right - left + 0.2, 5.0), top - bottom + 0.85)
        else:
            box = ax.get_window_extent()
            inch = ax.figure.get_dpi()
            fits = min(box.width / (right - left), box.height / (top - bottom)) / inch
            self.scale = min(1.0, fits)
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        ax.set_axis_off()
        return ax

    def draw_nodes(self, ax: Axes) -> None:
        """Draw boxes with names, above all lines."""
        for i, name in enumerate(self.names):
            x, y, width, height = self.layout.x[i], self.y[i], self.width[i], self.height[i]
            inset = 0.06
            ax.add_patch(
                FancyBboxPatch(
                    (x - width / 2 + inset, y - height / 2 + inset),
                    width - 2 * inset,
                    height - 2 * inset,
                    boxstyle=f"round,pad={inset}",
                    facecolor=ax.get_facecolor(),
                    edgecolor=palette.GREY,
                    linewidth=0.9 * self.scale,
                    zorder=3,
                )
            )
            style = lettering.style(frames.FONT * self.scale)
            ax.text(x, y, name, ha="center", va="center", zorder=4, linespacing=1.1, **style)

    def draw_link(self, ax: Axes, link: Link, label: str) -> None:
        """Draw a line around the nodes between, with its arrowhead."""
        pair = (link.parent, link.child)
        downwards = pair in self.layout.routes
        pair = pair if downwards else pair[::-1]
        upper, lower = pair
        head = 0.0 if link.direction == "open" else link.head
        start = [self.port[upper, pair], self.y[upper] - self.height[upper] / 2 - _CLEAR]
        end = [self.port[lower, pair], self.y[lower] + self.height[lower] / 2 + _CLEAR]
        tip = end[:] if downwards else start[:]
        (end if downwards else start)[1] += head if downwards else -head
        path = self._path(start, self.layout.routes[pair], end)
        colours: dict[str, Any] = {"alpha": link.opacity, "zorder": 1 + link.probability}
        line = PathPatch(path, fill=False, edgecolor=link.colour, linewidth=link.width * self.scale, **colours)
        line.set(gid=label, capstyle="butt")
        ax.add_patch(line)
        if head:
            back = tip[1] + (head if downwards else -head)
            corners = [tip, [tip[0] - 0.6 * head, back], [tip[0] + 0.6 * head, back]]
            face = link.colour if link.direction == "told" else ax.get_facecolor()
            mark = Polygon(corners, facecolor=face, edgecolor=link.colour, linewidth=0.9 * self.scale, **colours)
            mark.set(gid=f"{label} head", joinstyle="miter")
            ax.add_patch(mark)

    def _path(self, start: list[float], route: list[tuple[float, int]], end: list[float]) -> Path:
        """Return a smooth line that is vertical at its ends and where it passes a layer."""
        points, codes = [start], [Path.MOVETO]
        here = start
        for x, layer in route:
            above, below = self.middle[layer] + self.tallest[layer] / 2, self.middle[layer] - self.tallest[layer] / 2
            self._bend(points, codes, here, [x, above])
            points.append([x, below])
            codes.append(Path.LINETO)
            here = [x, below]
        self._bend(points, codes, here, end)
        return Path(points, codes)

    @staticmethod
    def _bend(points: list[list[float]], codes: list[np.uint8], begin: list[float], end: list[float]) -> None:
        half = (begin[1] - end[1]) / 2
        points += [[begin[0], begin[1] - half], [end[0], end[1] + half], end]
        codes += [Path.CURVE4] * 3


def _explain(ax: Axes, drawn: Sequence[Link], left_out: int, threshold: float, quantity: str) -> None:
    """Write below what lines mean, and what isn't drawn."""
    kinds = {"told": "direction told", "likelier": "likelier direction", "open": "direction can't be told"}
    marks = {"told": palette.BLUE, "likelier": "none"}
    handles = [
        Line2D(
            [], [], color=palette.VERMILION if kind == "open" else palette.BLUE, linewidth=2, label=text,
            marker=">" if kind in marks else "", markerfacecolor=marks.get(kind), markersize=6,
        )
        for kind, text in kinds.items()
        if any(link.direction == kind for link in drawn)
    ]  # fmt: skip
    unseen = f"{left_out} more pair{'s' * (left_out != 1)}, below {threshold:g}, not drawn"
    told = f"Width and opacity: {quantity} that two are joined" if drawn else "No two variables to join"
    frames.legend_below(ax, handles, told + (f"\n{unseen}" if left_out else ""))
