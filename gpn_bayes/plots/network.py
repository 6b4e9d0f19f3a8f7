"""The network as the draws see it: every pair as strong as it is probable, with its direction as far as it is clear."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text

from gpn_bayes._util.checks import check_share
from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.plots.layout import averaged_order
from gpn_bayes.plots.lines import line_of
from gpn_bayes.plots.links import Link, links
from gpn_bayes.plots.placing import (
    STARTS,
    Placed,
    Spacing,
    line_scale,
    place_network,
    strong_links,
    tier_label,
    tiers_of,
    widened,
)
from gpn_bayes.posterior.directions import counted_sentences, grounds
from gpn_bayes.posterior.draws import GraphCollection
from gpn_bayes.posterior.queries import edge_probabilities

# In inches, at a scale of 1: around a name, and the narrowest node.
_PAD, _NARROWEST = 0.08, 0.5
_SPACING = Spacing(gap=0.24, layers=(0.46, 1.3), inset=0.1, step=0.18, margin=0.12, heading=0.0)
# Names are broken into lines of this many characters, in small axes of fewer; a word that is longer than all is too.
_NAME_WIDTHS, _LONGEST_WORD = (18, 12), 30
# New figures are this much wider than high, if the network lets them; widths that are tried, in inches.
_ASPECT, _WIDTHS = 1.5, tuple(5.0 * 1.15**k for k in range(24))
# Letters are never larger than this share of their usual size.
_LARGEST = 1.25
# The width of axes, in inches, below which the legend's letters are smaller.
_LEGEND_WIDTH = 3.6


def plot_network(post: GraphCollection, threshold: float = 0.1, ax: Axes | None = None) -> Axes:
    """Draw the network: lines as wide and opaque as the pair is probable, causes above effects.

    Layers follow the order of the variables averaged over the draws. A filled arrowhead is a direction with 90 % or
    more of the pair's probability, an open one a direction with two thirds or more; a line of another colour, without
    a head, joins two variables of which either may be the cause. What decides the clear directions is written below:
    conditional independences, the shape of relations, or what was given. The lines of the most probable pairs, at most
    two for each variable, go around the nodes between; those of other pairs pass behind nodes. Tiers that were given to
    `gpn_bayes.sample` are bands, the earliest at the top.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    threshold : float, default 0.1
        Pairs are drawn whose probability of being joined, either way, is at least this. How many aren't is written
        below.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, as large as the network needs. Names, lines and legend stay within
        the axes, however small they are: names shrink with them.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, score="bge", space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> ax = post.plot_network(threshold=0.2)
    >>> len(ax.texts) >= 11
    True
    """
    check_share("threshold", threshold)
    probabilities = edge_probabilities(post).to_numpy()
    drawn = links(probabilities, threshold)
    left_out = len(links(probabilities, 0.0)) - len(drawn)
    picture = _Picture(post, drawn, threshold)
    clear = [(link.parent, link.child) for link in drawn if link.direction == "clear"]
    decided = counted_sentences(grounds(post, clear))
    ax = picture.start(ax, _explanation(drawn, left_out, threshold, post.quantity, decided))
    picture.draw_tiers(ax)
    for link in drawn:
        picture.draw_link(ax, link, f"{post.names[link.parent]} -> {post.names[link.child]}")
    picture.draw_nodes(ax)
    return ax


class _Label(Text):
    """A text that is as large, beside what is drawn around it, whatever size its axes have when they are drawn."""

    def __init__(self, x: float, y: float, text: str, inches: float, **settings: Any) -> None:
        super().__init__(x, y, text, **settings)
        self._inches = inches

    def _fit(self) -> None:
        if self.axes is None or self.figure is None:
            return
        ends = self.axes.transData.transform([(0.0, 0.0), (1.0, 0.0)])
        points = 72 * self._inches * float(ends[1, 0] - ends[0, 0]) / self.figure.dpi
        if abs(points - float(self.get_fontsize())) > 1e-3 * points:
            self.set_fontsize(points)

    def draw(self, renderer: Any) -> None:
        self._fit()
        super().draw(renderer)

    def get_window_extent(self, renderer: Any = None, dpi: float | None = None) -> Any:
        self._fit()
        return super().get_window_extent(renderer, dpi)


class _Picture:
    """A network in inches, y upwards from its lower left corner; `scale` is the size of an inch where it is drawn."""

    def __init__(self, post: GraphCollection, drawn: Sequence[Link], threshold: float) -> None:
        self.full_names = [lettering.drawable(name) for name in post.names]
        _, self.strong = strong_links(drawn, len(post.names), (threshold, *STARTS))
        self.thinner = line_scale(self.strong)
        self.averaged, self.tiers = averaged_order(post), tiers_of(post)
        headings = [] if self.tiers is None else [tier_label(tier) for tier in np.unique(self.tiers)]
        self.heading = max((lettering.size_of(text, frames.LEGEND)[0] for text in headings), default=0.0)
        self.scale = 1.0

    def _place(self, box: tuple[float, float], name_width: int) -> float:
        """Place the nodes, with names of such a width, and return the scale at which they fit a box."""
        self.names = [lettering.wrapped(name, name_width, _LONGEST_WORD) for name in self.full_names]
        sizes = np.array([lettering.size_of(name, frames.FONT) for name in self.names]) + 2 * _PAD
        spacing = _SPACING._replace(heading=self.heading + _SPACING.margin)
        sizes = widened(np.maximum(sizes, [_NARROWEST, 0.0]), self.strong, spacing)
        self.placed: Placed = place_network(sizes, self.strong, self.averaged, spacing, box, self.tiers)
        return self.placed.scale(box)

    def start(self, ax: Axes | None, explanation: tuple[list[Line2D], str]) -> Axes:
        """Return axes with a legend at their bottom, and place the network above it."""
        frames.check_axes(ax)
        if ax is None:
            return self._new_axes(explanation)
        ax.set_axis_off()
        figure = ax.get_figure(root=True)
        if figure is not None and (engine := figure.get_layout_engine()) is not None:
            # Else the axes would have their final size only when they are drawn.
            engine.execute(figure)
        legend = _legend(ax, *explanation)
        width, height = _inches(ax)
        above = max(height - legend, 0.3 * height)
        scales = {name_width: self._place((width, above), name_width) for name_width in _NAME_WIDTHS}
        self.scale = min(self._place((width, above), max(scales, key=scales.__getitem__)), _LARGEST)
        self._set_limits(ax, width, height, above)
        return ax

    def _new_axes(self, explanation: tuple[list[Line2D], str]) -> Axes:
        """Return the axes of a new figure, in which letters have their usual size."""
        for width in _WIDTHS:
            if self._place((width, width / _ASPECT), _NAME_WIDTHS[0]) >= 1:
                break
        width, height = max(self.placed.size[0], _WIDTHS[0]), self.placed.size[1]
        ax = frames.axes_of(None, width, height)
        ax.figure.set_layout_engine("constrained", w_pad=0.0, h_pad=0.0)  # type: ignore[union-attr]  # no subfigure
        ax.set_axis_off()
        legend = _legend(ax, *explanation, width)
        ax.figure.set_size_inches(width, height + legend)  # type: ignore[union-attr]  # no subfigure
        self._set_limits(ax, width, height + legend, height)
        return ax

    def _set_limits(self, ax: Axes, width: float, height: float, above: float) -> None:
        """Set the limits of axes of such a size, with the network in the middle of the part above the legend."""
        centre = self.placed.size[0] / 2, -self.placed.size[1] / 2
        x, y, room = width / self.scale / 2, height / self.scale, above / self.scale / 2
        ax.set(xlim=(centre[0] - x, centre[0] + x), ylim=(centre[1] + room - y, centre[1] + room))
        ax.set_aspect("equal")

    def draw_tiers(self, ax: Axes) -> None:
        """Draw the tiers as bands behind everything, every other one shaded."""
        width = self.placed.size[0]
        for k, band in enumerate(self.placed.bands):
            label = tier_label(band.tier)
            shade: dict[str, Any] = {"facecolor": palette.GREY, "alpha": 0.12 if k % 2 == 0 else 0.0, "linewidth": 0}
            ax.add_patch(Rectangle((0, -band.bottom), width, band.bottom - band.top, zorder=0, gid=label, **shade))
            middle = -(band.top + band.bottom) / 2
            style = lettering.style(frames.LEGEND * self.scale)
            look: dict[str, Any] = {"ha": "left", "va": "center", "color": palette.GREY, "zorder": 4}
            ax.add_artist(_Label(_SPACING.margin, middle, label, frames.LEGEND / 72, **look, **style))

    def draw_nodes(self, ax: Axes) -> None:
        """Draw boxes with names, above all lines."""
        inset = 0.06
        style = lettering.style(frames.FONT * self.scale)
        for name, (x, down), (width, height) in zip(self.names, self.placed.centre, self.placed.sizes, strict=True):
            corner = x - width / 2 + inset, -down - height / 2 + inset
            box = FancyBboxPatch(corner, width - 2 * inset, height - 2 * inset, boxstyle=f"round,pad={inset}", zorder=3)
            box.set(facecolor=ax.get_facecolor(), edgecolor=palette.GREY, linewidth=0.9 * self.scale)
            ax.add_patch(box)
            look: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "linespacing": 1.1}
            ax.add_artist(_Label(x, -down, name, frames.FONT / 72, **look, **style))

    def draw_link(self, ax: Axes, link: Link, label: str) -> None:
        """Draw a line with its arrowhead."""
        points, head, width = line_of(self.placed, link, 1 / 72, self.thinner)
        codes = [Path.MOVETO, *[Path.CURVE4] * (len(points) - 1)]
        upwards = np.array([1.0, -1.0])
        colours: dict[str, Any] = {"edgecolor": link.colour, "alpha": link.opacity, "zorder": 1 + link.probability}
        line = PathPatch(Path(points * upwards, codes), fill=False, gid=label, capstyle="butt", **colours)
        line.set_linewidth(72 * width * self.scale)
        ax.add_patch(line)
        if head is not None:
            face = link.colour if link.direction == "clear" else ax.get_facecolor()
            mark = Polygon(head * upwards, facecolor=face, linewidth=0.9 * self.scale, joinstyle="miter", **colours)
            mark.set_gid(f"{label} head")
            ax.add_patch(mark)


def _inches(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def _explanation(
    drawn: Sequence[Link], left_out: int, threshold: float, quantity: str, decided: Sequence[str]
) -> tuple[list[Line2D], str]:
    """Return what lines mean, as a legend's lines and its title: what isn't drawn, and what decides directions."""
    kinds = {"clear": "clear direction", "likelier": "more probable direction", "open": "direction undetermined"}
    marks = {"clear": palette.BLUE, "likelier": "none"}
    handles = [
        Line2D(
            [], [], color=palette.VERMILION if kind == "open" else palette.BLUE, linewidth=2, label=text,
            marker=">" if kind in marks else "", markerfacecolor=marks.get(kind), markersize=6,
        )
        for kind, text in kinds.items()
        if any(link.direction == kind for link in drawn)
    ]  # fmt: skip
    unseen = f"{left_out} more pair{'s' * (left_out != 1)}, below {threshold:g}, not drawn"
    caption = f"Width and opacity: {quantity} that two are joined" if drawn else "No two variables to join"
    return handles, "\n".join([caption, *decided, *([unseen] if left_out else [])])


def _legend(ax: Axes, handles: list[Line2D], title: str, width: float | None = None) -> float:
    """Write a legend at the bottom of axes, in as many columns as fit; return its height in inches."""
    width = _inches(ax)[0] if width is None else width
    size = frames.LEGEND * float(np.clip(width / _LEGEND_WIDTH, 0.5, 1.0))
    # About half the size of the letters is their mean width.
    letters = max(int(72 * width / (0.52 * size)), 12)
    title = "\n".join(lettering.wrapped(line, letters) for line in title.split("\n"))
    for columns in range(max(len(handles), 1), 0, -1):
        legend = frames.legend_below(ax, handles, title, columns, size)
        box = legend.get_window_extent()
        if box.width <= width * ax.figure.dpi:
            break
    return box.height / ax.figure.dpi
