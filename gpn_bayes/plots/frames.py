"""What pictures share: axes of the right size, notes below them, and checks of what is compared."""

from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.legend import Legend

from gpn_bayes._util.checks import shown
from gpn_bayes.plots import lettering, palette
from gpn_bayes.posterior.draws import GraphCollection
from gpn_bayes.posterior.queries import edge_probabilities

FONT = 9.0
LEGEND = 8.0
SMALL = 7.0
# Characters in a line of a remark.
_NOTE_WIDTH = 44


def axes_of(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw in: those given, or new ones of a size in inches."""
    check_axes(ax)
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def check_axes(ax: Any) -> None:
    """Refuse what is no place to draw in, such as the name of a variable."""
    if ax is not None and not isinstance(ax, Axes):
        raise ValueError(f"ax must be Axes of matplotlib; received {shown(ax)}")


def note(ax: Axes, text: str) -> None:
    """Write a remark in the middle of axes that would be empty."""
    # Matplotlib's own wrapping would read a name with "$" as a formula.
    lines = lettering.wrapped(text, _NOTE_WIDTH)
    place: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center", "color": palette.GREY}
    ax.text(0.5, 0.5, lines, parse_math=False, fontfamily=lettering.families(), **place)


def legend_below(ax: Axes, handles: list[Any], title: str, columns: int, size: float) -> Legend:
    """Write a legend at the bottom of axes without ticks, headed by a line in words."""
    legend = ax.legend(
        handles=handles,
        title=title,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=columns,
        frameon=False,
        fontsize=size,
        title_fontsize=size,
        borderaxespad=0.0,
    )
    legend.get_title().set_multialignment("center")
    return legend


def legend_beside(ax: Axes, handles: list[Any] | None = None, gap: float = 0.01, **settings: Any) -> None:
    """Write a legend to the right of the axes, off the data; `gap` is how far, in widths of the axes."""
    settings = settings if handles is None else {"handles": handles, **settings}
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0 + gap, 1.0)}
    legend = ax.legend(frameon=False, fontsize=LEGEND, **place, **settings)
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_fontfamily(lettering.families())


def edge_label(post: GraphCollection, parent: int, child: int, width: int = 40) -> str:
    """Return an edge in words that can be drawn, wrapped at a width in characters."""
    cause, effect = lettering.drawable(post.names[parent]), lettering.drawable(post.names[child])
    if len(cause) + len(effect) + 3 <= width:
        return f"{cause} → {effect}"
    return f"{lettering.wrapped(cause, width - 2)} →\n{lettering.wrapped(effect, width)}"


def short(probability: float) -> str:
    """Return a positive probability in up to four characters, none of which rounds it to never or always.

    Examples
    --------
    >>> [short(p) for p in (0.001, 0.25, 0.998, 1.0)]
    ['<.01', '.25', '>.99', '1']
    """
    if probability < 0.005:
        return "<.01"
    if probability > 1 - 1e-12:
        return "1"
    return ">.99" if probability > 0.995 else f"{probability:.2f}".removeprefix("0")


def width_beside(labels: list[str]) -> float:
    """Return the width, in inches, of a legend with such labels."""
    return 0.75 + max((lettering.size_of(label, LEGEND)[0] for label in labels), default=0.0)


def same_variables(post: GraphCollection, other: GraphCollection) -> np.ndarray:
    """Return the edge probabilities of another posterior in the order of one; refuses other variables."""
    if not isinstance(other, GraphCollection):
        raise ValueError(f"other must be a GraphPosterior or a BootstrapResult; received {type(other).__name__}")
    if set(post.names) != set(other.names):
        odd = sorted(set(post.names) ^ set(other.names))[0]
        raise ValueError(f"both must have the same variables; {odd!r} is in only one of the two")
    return edge_probabilities(other).loc[list(post.names), list(post.names)].to_numpy()
