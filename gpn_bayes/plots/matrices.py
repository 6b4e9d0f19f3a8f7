"""Tables of probabilities as heat maps: of every edge, and of how many parents each variable has."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from gpn_bayes import graphs
from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.posterior.draws import Draws, GraphCollection
from gpn_bayes.posterior.queries import edge_probabilities, parent_set_probabilities

# Up to this many rows, numbers are written into the cells.
_MOST_NUMBERED = 20
_NAME_WIDTH = 30


def plot_edges(post: GraphCollection, truth: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the probability of every edge as a heat map: rows are parents, columns children.

    Up to 20 variables, cells hold numbers: none where the probability is 0, "1" where it is 1, and "<.01" or ">.99"
    next to that.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    truth : networkx.DiGraph, array or edges, optional
        A known network, whose edges are framed.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> truth = gpn.datasets.sachs_consensus(17)
    >>> data = gpn.simulate.linear(truth, 100, random_seed=1)
    >>> post = gpn.sample(data, score="bge", space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> ax = post.plot_edges(truth=truth)
    >>> len([frame for frame in ax.patches if frame.get_gid() == "truth"])
    17
    """
    values = edge_probabilities(post).to_numpy().copy()
    np.fill_diagonal(values, np.nan)
    known = None if truth is None else graphs.as_adjacency(truth, post.names, acyclic=False)
    room_above = 0.2 if known is not None else 0.0
    ax = draw_matrix(post.names, values, ("parent", "child"), f"edge {post.quantity}", None, ax, room_above)
    if known is not None:
        _frame_truth(ax, known)
    return ax


def draw_matrix(
    names: tuple[str, ...],
    values: np.ndarray,
    axes: tuple[str, str],
    quantity: str,
    two_sided: Callable[[Axes], LinearSegmentedColormap] | None = None,
    ax: Axes | None = None,
    room_above: float = 0.0,
) -> Axes:
    """Draw a number for every pair of variables as a heat map.

    Parameters
    ----------
    names : tuple of str
        The variables.
    values : ndarray of shape (variables, variables)
        The numbers; NaN where there are none.
    axes : pair of str
        What rows and columns are.
    quantity : str
        What the numbers are.
    two_sided : callable, optional
        The colours of numbers on both sides of zero, given the axes; by default numbers are probabilities.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    room_above : float, default 0
        Inches for what stands above.
    """
    n = len(names)
    labels = _labels(names)
    cell, size = _cell(labels)
    long = max(lettering.size_of(name, size)[0] for name in labels)
    frames.check_axes(ax)
    room = cell if ax is None else ax.get_window_extent().width / ax.figure.dpi / n
    ax = frames.axes_of(ax, max(n * cell + long + 1.85, 3.4), n * cell + long + 0.7 + room_above)
    image = _draw_cells(ax, values, n <= _MOST_NUMBERED, None if two_sided is None else two_sided(ax))
    style = lettering.style(size)
    ax.set_xticks(range(n), labels, rotation=90 if long > 0.9 * room else 0, **style)
    ax.set_yticks(range(n), labels, **style)
    ax.set(xlabel=axes[1], ylabel=axes[0])
    _add_scale(ax, image, quantity, n * cell)
    return ax


def plot_parent_counts(post: Draws, ax: Axes | None = None) -> Axes:
    """Draw the posterior of every variable's number of parents as a heat map.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, score="bge", space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> [label.get_text() for label in post.plot_parent_counts().get_xticklabels()]
    ['0', '1', '2']
    """
    n = len(post.names)
    tables = [parent_set_probabilities(post, name) for name in post.names]
    counts = [np.bincount(table["parents"].map(len), table["probability"]) for table in tables]
    most = max(map(len, counts))
    values = np.array([np.pad(own, (0, most - len(own))) for own in counts])
    names = _labels(post.names)
    cell, size = _cell(names)
    long = max(lettering.size_of(name, size)[0] for name in names)
    ax = frames.axes_of(ax, max(most * 0.42 + long + 1.8, 3.2), max(n * cell + 0.8, 1.8))
    image = _draw_cells(ax, values, numbered=n <= _MOST_NUMBERED)
    ax.set_aspect("auto")
    ax.set_xticks(range(most), [str(k) for k in range(most)])
    ax.set_yticks(range(n), names, **lettering.style(size))
    ax.set(xlabel="number of parents", ylabel="variable")
    _add_scale(ax, image, post.quantity, n * cell)
    return ax


def _labels(names: tuple[str, ...]) -> list[str]:
    """Return names as tick labels, wrapped only where rows are high enough."""
    shown = [lettering.drawable(name) for name in names]
    return [lettering.wrapped(name, _NAME_WIDTH) for name in shown] if len(names) <= _MOST_NUMBERED else shown


def _cell(names: list[str]) -> tuple[float, float]:
    """Return the size of a cell in inches, and that of its label in points."""
    n = len(names)
    if n > _MOST_NUMBERED:
        return (0.22, 8.0) if n <= 50 else (0.14, 6.5)
    highest = max(lettering.size_of(name, frames.FONT)[1] for name in names)
    return max(0.4, 1.6 / n, highest + 0.06), frames.FONT


def _draw_cells(
    ax: Axes, values: np.ndarray, numbered: bool, two_sided: LinearSegmentedColormap | None = None
) -> AxesImage:
    shades = (two_sided or palette.shades(ax)).with_extremes(bad=to_rgba(palette.GREY, 0.15))
    highest = 1.0 if two_sided is None else max(float(np.nanmax(np.abs(values), initial=0.0)), 1e-9)
    lowest = 0.0 if two_sided is None else -highest
    image = ax.imshow(np.ma.masked_invalid(values), cmap=shades, vmin=lowest, vmax=highest)
    if numbered:
        for (i, j), value in np.ndenumerate(values):
            if text := _cell_text(value, two_sided is not None):
                colour = palette.readable_on(shades((value - lowest) / (highest - lowest)))
                ax.text(j, i, text, ha="center", va="center", fontsize=frames.SMALL, color=colour)
    ax.set_xticks(np.arange(values.shape[1]) - 0.5, minor=True)
    ax.set_yticks(np.arange(values.shape[0]) - 0.5, minor=True)
    ax.grid(which="minor", color=palette.GREY, alpha=0.25, linewidth=0.5)
    ax.tick_params(which="both", length=0)
    return image


def _cell_text(value: float, signed: bool) -> str:
    """Return a cell's number; none where it is zero, or would be rounded to that."""
    if signed:
        return f"{value:.2f}".replace("0.", ".") if abs(value) >= 0.005 else ""
    return frames.short(value) if value > 0 else ""


def _add_scale(ax: Axes, image: AxesImage, label: str, height: float) -> None:
    """Draw the scale of colours beside the cells; `height` is that of the cells, in inches."""
    ax.figure.colorbar(image, ax=ax, label=label, fraction=0.06, pad=0.03, aspect=max(height / 0.13, 10.0))


def _frame_truth(ax: Axes, truth: np.ndarray) -> None:
    for i, j in np.argwhere(truth):
        frame = Rectangle((j - 0.42, i - 0.42), 0.84, 0.84, fill=False, edgecolor=palette.VERMILION, linewidth=1.5)
        frame.set_gid("truth")
        ax.add_patch(frame)
    handle = Patch(fill=False, edgecolor=palette.VERMILION, linewidth=1.5, label="edge of the known network")
    ax.legend(handles=[handle], loc="lower left", bbox_to_anchor=(0.0, 1.01), frameon=False, fontsize=frames.LEGEND)
