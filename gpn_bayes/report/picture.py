"""A small picture of a network, as SVG that stands in the output of a notebook."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpn_bayes.plots.links import Link, links
from gpn_bayes.plots.placing import line_scale, place_network, tier_label, widened
from gpn_bayes.report.drawing import order_by_edges
from gpn_bayes.report.svg import FONT, SPACING, name_lines, network_svg, node_size

# Pairs below this probability aren't drawn, nor more than this many.
SHOWN_FROM, _MOST_LINKS = 0.1, 30
# All variables are drawn up to this many; of more, only those that are joined.
_MOST_ALONE = 20
# In pixels: the room there is, and the smallest letters. A larger network is scrolled.
_BOX, _SMALLEST = (600.0, 440.0), 9.0


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
        svg = _svg([names[k] for k in kept], own, averaged, quantity, None if tiers is None else tiers[kept])
    clear = [(link.parent, link.child) for link in shown if link.direction == "clear"]
    return Picture(svg, len(ranked) - len(shown), len(names) - len(kept), clear)


def _svg(names: Sequence[str], shown: list[Link], averaged: np.ndarray, quantity: str, tiers: np.ndarray | None) -> str:
    sizes = widened(np.array([node_size(name_lines(name)) for name in names]), shown, SPACING)
    heading = 0.0 if tiers is None else max(node_size([tier_label(tier)])[0] for tier in np.unique(tiers))
    spacing = SPACING._replace(heading=heading, layers=(36.0, 70.0))
    placed = place_network(sizes, shown, averaged, spacing, _BOX, tiers)
    width, height = placed.size
    scale = max(min(placed.scale(_BOX), 1.0), _SMALLEST / FONT)
    size = f'width="{scale * width:.0f}" height="{scale * height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    font = f'font-family="system-ui,Roboto,Arial,sans-serif" font-size="{FONT:g}"'
    label = "Network; the table beside it holds its strongest edges"
    # The edges of one graph are all alike: nothing is lost with thinner lines.
    thinner = line_scale(shown) * (1.0 if quantity else 0.5)
    # The most probable on top.
    drawn = shown[::-1]
    inner = network_svg(names, placed, drawn, thinner, [_words(names, link, quantity) for link in drawn])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img" aria-label="{label}">{inner}</svg>'


def _words(names: Sequence[str], link: Link, quantity: str) -> str:
    arrow = "–" if link.direction == "open" else "→"
    pair = f"{names[link.parent]} {arrow} {names[link.child]}"
    return f"{pair}: joined with a {quantity} of {link.probability:.3f}" if quantity else pair
