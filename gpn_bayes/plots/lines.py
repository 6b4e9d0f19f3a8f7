"""The course of a line from one placed node to another, and its arrowhead."""

from typing import NamedTuple

import numpy as np

from gpn_bayes.plots.links import Link
from gpn_bayes.plots.placing import Placed

# In points: from a line to the node it ends at, and an arrowhead, which must be seen at the end of the widest line.
_CLEAR, _HEAD, _HEAD_PER_WIDTH = 1.6, 4.5, 1.5
# Half the width of an arrowhead over its length.
_HALF = 0.57


class Line(NamedTuple):
    """A line as it is drawn, y downwards, in the unit of the nodes' sizes.

    Attributes
    ----------
    points : ndarray of shape (1 + 3 * bends, 2)
        From parent to child, three for each bend: the corners of cubic Bézier curves. Both ends are vertical.
    head : ndarray of shape (3, 2), optional
        The triangle of the arrowhead, its tip first; None where the direction is open.
    width : float
        Its width.
    """

    points: np.ndarray
    head: np.ndarray | None
    width: float


def line_of(placed: Placed, link: Link, point: float, thinner: float) -> Line:
    """Return the line of a link: around the nodes between if it had a say in where nodes stand, else behind them.

    Parameters
    ----------
    placed : Placed
        The drawing.
    link : Link
        Whom to join.
    point : float
        The size of a point in the unit of the nodes' sizes.
    thinner : float
        The width of lines as a share of the usual one.

    Examples
    --------
    >>> placed = Placed(np.array([[2.0, 1.0], [5.0, 6.0]]), np.full((2, 2), 2.0), {}, [], (7.0, 7.0), 1.0)
    >>> down, up = (line_of(placed, Link(*pair, 1.0, "clear"), 0.1, 1.0) for pair in ((0, 1), (1, 0)))
    >>> down.points.round(2).tolist()
    [[2.0, 2.16], [2.0, 3.5], [5.0, 3.5], [5.0, 3.79]]
    >>> down.head.round(2).tolist()
    [[5.0, 4.84], [4.4, 3.79], [5.6, 3.79]]
    >>> up.head[0].round(2).tolist(), round(up.width, 2)
    ([2.0, 2.16], 0.4)
    >>> line_of(placed, Link(0, 1, 1.0, "open"), 0.1, 1.0).head
    """
    upper, lower = sorted((link.parent, link.child), key=lambda node: float(placed.centre[node, 1]))
    lanes = placed.courses.get((upper, lower))
    points = _free(placed, upper, lower) if lanes is None else _through(lanes)
    if upper != link.parent:
        points = points[::-1].copy()
    width = thinner * link.width
    head = 0.0 if link.direction == "open" else point * (_HEAD + _HEAD_PER_WIDTH * width)
    points[0, 1] += point * _CLEAR * (np.sign(points[1, 1] - points[0, 1]) or 1.0)
    # Whether the line comes to the child from below (1) or from above (-1).
    sign = float(np.sign(points[-2, 1] - points[-1, 1])) or -1.0
    x, tip = points[-1] + [0.0, sign * point * _CLEAR]
    base = tip + sign * head
    # Nothing of the line may lie beyond the head's base.
    within = sign * (points[:, 1] - base) >= 0
    points[int(np.flatnonzero(within).max(initial=0)) + 1 :, 1] = base
    corners = np.array([[x, tip], [x - _HALF * head, base], [x + _HALF * head, base]])
    return Line(points, corners if head else None, point * width)


def _through(lanes: np.ndarray) -> np.ndarray:
    """Return the corners of a line that goes straight in lanes and bends between them; straight pieces as bends too."""
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


def _free(placed: Placed, upper: int, lower: int) -> np.ndarray:
    """Return the corners of a bend that heeds no other nodes."""
    (start_x, start), (end_x, end) = placed.centre[[upper, lower]]
    half = placed.sizes[[upper, lower], 1] / 2
    if end - half[1] > start + half[0]:
        start, end = start + half[0], end - half[1]
        bends = [(start + end) / 2] * 2
    else:
        # Side by side in the lower half, they are joined at their tops: below there may be no room.
        side = 1.0 if start <= placed.size[1] / 2 else -1.0
        start, end = start + side * half[0], end + side * half[1]
        bends = [start + side * placed.dip, end + side * placed.dip]
    return np.array([[start_x, start], [start_x, bends[0]], [end_x, bends[1]], [end_x, end]])
