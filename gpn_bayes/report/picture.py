"""A small picture of a network, as SVG that stands in the output of a notebook."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.cells import BLUE, VERMILION
from gpn_bayes.plots.links import Link, links
from gpn_bayes.plots.placing import Placed, free_curve, line_scale, place_network, tier_label, widened
from gpn_bayes.report.drawing import FONT, LINE_HEIGHT, SPACING, name_lines, node_size, order_by_edges

# Pairs below this probability aren't drawn, nor more than this many.
SHOWN_FROM, _MOST_LINKS = 0.1, 30
# All variables are drawn up to this many; of more, only those that are joined.
_MOST_ALONE = 20
# In pixels: the room there is, and the smallest letters. A larger network is scrolled.
_BOX, _SMALLEST = (600.0, 440.0), 9.0
_CLEAR = 2.0


class Picture(NamedTuple):
    """A picture, and what is not in it.

    Attributes
    ----------
    svg : str
        The picture; empty where there is no variable to draw.
    pairs : int
        How many pairs of a probability of 0.1 or more are left out.
    variables : int
        How many variables are left out.
    clear : list of (int, int)
        Parent and child of the pairs drawn with a clear direction.
    """

    svg: str
    pairs: int
    variables: int
    clear: list[tuple[int, int]]

    def left_out(self, quantity: str = "probability") -> str:
        """Say what isn't drawn; an empty text where all is."""
        parts = []
        if self.pairs:
            parts.append(f"{self.pairs:,} more pair{'s' * (self.pairs != 1)} joined with a {quantity} of {SHOWN_FROM}+")
        if self.variables:
            parts.append(f"{self.variables:,} more variable{'s' * (self.variables != 1)}")
        return f"Not drawn: {' and '.join(parts)}." if parts else ""


def picture_of(
    names: Sequence[str], probabilities: np.ndarray, quantity: str = "probability", tiers: np.ndarray | None = None
) -> Picture:
    """Return the most probable pairs of a network as SVG of some kilobytes.

    Lines and text take the colour of the page around them or one that can be read on any, so that it needs no
    background of its own.

    Parameters
    ----------
    names : sequence of str
        The variables.
    probabilities : ndarray of shape (n, n)
        Of the edges, rows parents; an edge of unknown direction is one half each way.
    quantity : str
        What to call them; without it, as for a single graph, they aren't written.
    tiers : ndarray, optional
        The tier of each variable.

    Examples
    --------
    >>> picture = picture_of(["a", "<b>", "c"], np.array([[0, 0.9, 0], [0, 0, 0], [0, 0.02, 0]]))
    >>> picture.svg[:4], "&lt;b&gt;" in picture.svg, picture.left_out()
    ('<svg', True, '')
    """
    ranked = sorted(links(probabilities, SHOWN_FROM), key=lambda link: -link.probability)
    shown = ranked[:_MOST_LINKS]
    joined = {end for link in shown for end in (link.parent, link.child)}
    kept = list(range(len(names))) if len(names) <= _MOST_ALONE else sorted(joined)
    svg = ""
    if kept:
        place = {node: k for k, node in enumerate(kept)}
        own = [link._replace(parent=place[link.parent], child=place[link.child]) for link in shown]
        # Cheaper than an average over all draws, and as good where arrows lead forward anyway.
        averaged = order_by_edges(probabilities[np.ix_(kept, kept)])
        svg = _Drawn([names[k] for k in kept], own, averaged, quantity, None if tiers is None else tiers[kept]).svg()
    clear = [(link.parent, link.child) for link in shown if link.direction == "clear"]
    return Picture(svg, len(ranked) - len(shown), len(names) - len(kept), clear)


class _Drawn:
    """A network in pixels, y downwards."""

    def __init__(
        self, names: Sequence[str], shown: list[Link], averaged: np.ndarray, quantity: str, tiers: np.ndarray | None
    ) -> None:
        self.names, self.shown, self.quantity = names, shown, quantity
        self.labels = [name_lines(name) for name in names]
        self.sizes = widened(np.array([node_size(lines) for lines in self.labels]), shown, SPACING)
        heading = 0.0 if tiers is None else max(node_size([tier_label(tier)])[0] for tier in np.unique(tiers))
        spacing = SPACING._replace(heading=heading, layers=(36.0, 70.0))
        self.placed: Placed = place_network(self.sizes, shown, averaged, spacing, _BOX, tiers)
        # The edges of one graph are all alike: nothing is lost with thinner lines.
        self.thinner = line_scale(shown) * (1.0 if quantity else 0.5)

    def svg(self) -> str:
        """Return the whole picture."""
        width, height = self.placed.size
        scale = max(min(self.placed.scale(_BOX), 1.0), _SMALLEST / FONT)
        size = f'width="{scale * width:.0f}" height="{scale * height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        drawn = [*self._bands(), *map(self._link, reversed(self.shown)), *map(self._node, range(len(self.names)))]
        font = f'font-family="system-ui,Roboto,Arial,sans-serif" font-size="{FONT:g}"'
        label = "Network; the table beside it holds its strongest edges"
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} fill="none" role="img" aria-label="{label}">'
        return f"{opening}{''.join(drawn)}</svg>"

    def _bands(self) -> list[str]:
        width = self.placed.size[0]
        bands = []
        for k, band in enumerate(self.placed.bands):
            place = f'y="{band.top:.1f}" width="{width:.1f}" height="{band.bottom - band.top:.1f}"'
            box = f'<rect {place} fill="currentColor" opacity=".06"/>'
            middle = (band.top + band.bottom) / 2
            look = 'dy=".35em" fill="currentColor" opacity=".75"'
            text = f'<text x="{SPACING.margin:g}" y="{middle:.1f}" {look}>{tier_label(band.tier)}</text>'
            bands.append(text if k % 2 else box + text)
        return bands

    def _node(self, k: int) -> str:
        (x, y), (width, height) = self.placed.centre[k], self.sizes[k]
        box = f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7"'
        first = y - LINE_HEIGHT * (len(self.labels[k]) - 1) / 2
        lines = "".join(
            f'<text x="{x:.1f}" y="{first + LINE_HEIGHT * row:.1f}" dy=".35em" text-anchor="middle" '
            f'fill="currentColor">{escape(line)}</text>'
            for row, line in enumerate(self.labels[k])
        )
        frame = f'<rect {box} stroke="currentColor" stroke-opacity=".55"/>'
        return f'<g class="node"><title>{escape(self.names[k])}</title>{frame}{lines}</g>'

    def _link(self, link: Link) -> str:
        """Return a line with its arrowhead, both of which end in the vertical."""
        probability = min(link.probability, 1.0)
        wide = self.thinner * (1 + 4 * probability)
        colour = VERMILION if link.direction == "open" else BLUE
        head = 0.0 if link.direction == "open" else 5 + 1.7 * wide
        points = self._course(link)
        # Whether the line comes to the child from below (1) or from above (-1).
        sign = float(np.sign(points[-2, 1] - points[-1, 1])) or -1.0
        points[0, 1] += _CLEAR * (np.sign(points[1, 1] - points[0, 1]) or 1.0)
        x, tip = points[-1, 0], points[-1, 1] + sign * _CLEAR
        base = tip + sign * head
        # Nothing of the line may lie beyond the head's base.
        beyond = sign * (points[:, 1] - base) < 0
        last_within = int(np.flatnonzero(~beyond).max(initial=0))
        points[last_within + 1 :, 1] = base
        first, *rest = [f"{own[0]:.1f} {own[1]:.1f}" for own in points]
        line = f'<path d="M{first}C{" ".join(rest)}" stroke="{colour}" stroke-width="{wide:.1f}"/>'
        half = 0.55 * head
        face = colour if link.direction == "clear" else "none"
        corners = f"M{x:.1f} {tip:.1f}L{x - half:.1f} {base:.1f}H{x + half:.1f}Z"
        arrow = f'<path d="{corners}" fill="{face}" stroke="{colour}"/>'
        title = f"<title>{escape(self._words(link))}</title>"
        opacity = f'opacity="{0.45 + 0.55 * probability:.2f}"'
        return f'<g class="link {link.direction}" {opacity}>{title}{line}{arrow if head else ""}</g>'

    def _words(self, link: Link) -> str:
        arrow = "–" if link.direction == "open" else "→"
        pair = f"{self.names[link.parent]} {arrow} {self.names[link.child]}"
        return f"{pair}: joined with a {self.quantity} of {link.probability:.3f}" if self.quantity else pair

    def _course(self, link: Link) -> np.ndarray:
        """Return the corners of a line from parent to child, three for each bend."""
        pair = (link.parent, link.child)
        downwards = pair in self.placed.courses
        if downwards or pair[::-1] in self.placed.courses:
            points = _through(self.placed.courses[pair if downwards else pair[::-1]])
        else:
            centre = self.placed.centre
            downwards = bool(centre[link.parent, 1] <= centre[link.child, 1])
            ends = list(pair if downwards else pair[::-1])
            dip = SPACING.layers[0] if centre[ends[0], 1] <= self.placed.size[1] / 2 else -SPACING.layers[0]
            points = free_curve(centre[ends[0]], centre[ends[1]], self.sizes[ends, 1], dip)
        return points if downwards else points[::-1].copy()


def _through(lanes: np.ndarray) -> np.ndarray:
    """Return the corners of a line that goes straight in lanes and bends between them, all of it as bends."""
    points = [(lanes[0, 0], lanes[0, 1])]
    for k, (x, top, bottom) in enumerate(lanes):
        if k:
            before = points[-1]
            halfway = (before[1] + top) / 2
            points += [(before[0], halfway), (x, halfway), (x, top)]
        if bottom > top:
            third = (bottom - top) / 3
            points += [(x, top + third), (x, bottom - third), (x, bottom)]
    return np.array(points)
