"""Two posteriors against each other: two runs of one, or one score against another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.posterior.draws import Draws, GraphCollection
from gpn_bayes.posterior.queries import edge_probabilities

# Gaps between runs that are worth a name, and how many get one.
_NAMED_GAP, _MOST_NAMED = 0.05, 5
# Marks nearer to each other than this share one label.
_NEAR = 0.045


def plot_runs(post: GraphCollection, other: GraphCollection, ax: Axes | None = None) -> Axes:
    """Draw the edge probabilities of one run against those of another: if both have converged, on the diagonal.

    The five edges that are farthest apart, if by more than 0.05, are numbered, and named beside.

    Parameters
    ----------
    post, other : GraphPosterior or BootstrapResult
        Two runs on the same variables.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> quick = {"space": gpn.Space(max_parents=2), "draws": 50, "progressbar": False}
    >>> runs = [gpn.sample(data, random_seed=k, **quick) for k in (1, 2)]
    >>> runs[0].plot_runs(runs[1]).get_xlabel()
    'edge probability, first run'
    """
    off = ~np.eye(len(post.names), dtype=bool)
    first, second = edge_probabilities(post).to_numpy(), frames.same_variables(post, other)
    gaps = np.abs(first - second)
    widest = [np.unravel_index(k, gaps.shape) for k in np.argsort(-gaps, axis=None, kind="stable")[:_MOST_NAMED]]
    apart = [(int(i), int(j)) for i, j in widest if gaps[i, j] > _NAMED_GAP]
    names = [frames.edge_label(post, i, j) for i, j in apart]
    ax = frames.axes_of(ax, 5.1 + frames.width_beside([*names, "largest gap"]), 4.4)
    ax.plot([0, 1], [0, 1], color=palette.GREY, linewidth=0.8, zorder=1)
    ax.fill_between([0, 1], [-_NAMED_GAP, 1 - _NAMED_GAP], [_NAMED_GAP, 1 + _NAMED_GAP], color=palette.GREY, alpha=0.15)
    ax.scatter(first[off], second[off], s=22, color=palette.BLUE, alpha=0.6, linewidth=0, zorder=2, clip_on=False)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel=f"edge {post.quantity}, first run", ylabel=f"edge {other.quantity}, second run")
    _number(ax, [(float(first[pair]), float(second[pair])) for pair in apart])
    handles = [Line2D([], [], color=palette.GREY, linewidth=6, alpha=0.3, label=f"within {_NAMED_GAP:g}")]
    marks: dict[str, Any] = {"linestyle": "", "color": palette.ink(), "markeredgewidth": 0}
    handles += [Line2D([], [], marker=f"${k}$", label=name, **marks) for k, name in enumerate(names, start=1)]
    largest = f"largest gap {gaps.max():.3f}"
    frames.legend_beside(ax, handles, title=largest, title_fontsize=frames.LEGEND, alignment="left")
    return ax


def _number(ax: Axes, places: list[tuple[float, float]]) -> None:
    """Write numbers at places, from one on, those of neighbours together."""
    groups: dict[tuple[float, float], list[str]] = {}
    for k, place in enumerate(places, start=1):
        near = [known for known in groups if max(abs(known[0] - place[0]), abs(known[1] - place[1])) < _NEAR]
        groups.setdefault(near[0] if near else place, []).append(str(k))
    for place, numbers in groups.items():
        left = place[0] > 0.85
        ax.annotate(
            ", ".join(numbers), place, xytext=(-6 if left else 6, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", fontsize=frames.LEGEND,
        )  # fmt: skip


def plot_comparison(
    post: GraphCollection,
    other: GraphCollection,
    labels: Sequence[str] | None = None,
    truth: Any = None,
    edges: int = 25,
    ax: Axes | None = None,
) -> Axes:
    """Compare two posteriors edge by edge, such as one under Gaussian processes with a linear one.

    The edges on which they differ most come first.

    Parameters
    ----------
    post, other : GraphPosterior or BootstrapResult
        Two posteriors on the same variables.
    labels : pair of str, optional
        What to call them; by default their scores.
    truth : networkx.DiGraph, array or edges, optional
        A known network, whose edges are marked.
    edges : int, default 25
        How many edges to show: those that differ most. How far the others differ at most, and how many of them the
        known network has, is written below.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> bge = gpn.sample(data, score="bge", space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> bic = gpn.sample(data, score="bic", space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> ax = bge.plot_comparison(bic, edges=10)
    >>> len(ax.get_yticklabels())
    10
    """
    check_count("edges", edges, 1)
    titles = _titles(post, other) if labels is None else _checked(labels)
    first, second = edge_probabilities(post).to_numpy(), frames.same_variables(post, other)
    known = None if truth is None else graphs.as_adjacency(truth, post.names, acyclic=False)
    shown, hidden = _ranked(first, second, edges)
    names = [frames.edge_label(post, i, j) for i, j in shown]
    heights = [lettering.size_of(name, frames.FONT)[1] + 0.08 for name in names]
    long = max(lettering.size_of(name, frames.FONT)[0] for name in names)
    ax = frames.axes_of(ax, 3.9 + long + frames.width_beside([*titles, "in the known network"]), sum(heights) + 1.2)
    # Every row is as high as its label.
    rows = np.cumsum(heights) - np.divide(heights, 2)
    one, two = (np.array([table[i, j] for i, j in shown]) for table in (first, second))
    ax.hlines(rows, np.minimum(one, two), np.maximum(one, two), color=palette.GREY, linewidth=1.2, zorder=1)
    # The second is hollow: where both agree, the first is seen within it.
    looks: tuple[dict[str, Any], ...] = (
        {"marker": "o", "color": palette.BLUE},
        {"marker": "D", "facecolors": "none", "edgecolors": palette.VERMILION, "linewidths": 1.4},
    )
    handles: list[Any] = [
        ax.scatter(values, rows, s=34, label=lettering.drawable(title), zorder=2, clip_on=False, **look)
        for values, title, look in zip((one, two), titles, looks, strict=True)
    ]
    if known is not None:
        handles.append(_mark_truth(ax, [row for row, (i, j) in zip(rows, shown, strict=True) if known[i, j]]))
    ax.set_yticks(rows, names, **lettering.style(frames.FONT))
    quantity = " or ".join(dict.fromkeys([post.quantity, other.quantity]))
    ax.set(xlim=(-0.02, 1.02), ylim=(sum(heights), 0), xlabel=_below(quantity, hidden, first, second, known))
    ax.grid(axis="x", color=palette.GREY, alpha=0.25, linewidth=0.5)
    frames.legend_beside(ax, handles, gap=0.01 if known is None else 0.06)
    return ax


def _checked(labels: Any) -> list[str]:
    titles = [labels] if isinstance(labels, str) else list(labels)
    if len(titles) != 2 or not all(isinstance(title, str) for title in titles):
        raise ValueError(f"labels must be two texts, one for each posterior; received {shown(labels)}")
    return titles


def _titles(post: GraphCollection, other: GraphCollection) -> list[str]:
    """Return short names of two posteriors: their scores, made distinct."""
    first, second = (
        one.record.score_title(type(one).__name__) if isinstance(one, Draws) else type(one).__name__
        for one in (post, other)
    )
    return [first, second] if first != second else [f"{first}, first", f"{second}, second"]


def _ranked(first: np.ndarray, second: np.ndarray, count: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the edges that differ most, and the others; of equal differences, the most probable come first."""
    # Differences that are equal but for rounding are equal.
    gaps, highest = np.abs(first - second).round(12), np.maximum(first, second)
    pairs = [(int(i), int(j)) for i, j in np.argwhere(~np.eye(len(first), dtype=bool))]
    pairs.sort(key=lambda pair: (-gaps[pair], -highest[pair]))
    return pairs[:count], pairs[count:]


def _mark_truth(ax: Axes, rows: list[float]) -> Line2D:
    # On the right end, in the place of a tick.
    (marks,) = ax.plot(
        np.full(len(rows), 1.035), rows, linestyle="", marker="<", color=palette.GREEN, clip_on=False,
        transform=ax.get_yaxis_transform(), label="in the known network", gid="truth",
    )  # fmt: skip
    return marks


def _below(
    quantity: str, hidden: list[tuple[int, int]], first: np.ndarray, second: np.ndarray, known: np.ndarray | None
) -> str:
    """Return the label of the axis of probabilities, with what is left out."""
    label = f"edge {quantity}"
    if not hidden:
        return label
    widest = max(abs(first[pair] - second[pair]) for pair in hidden)
    noun, verb = ("edge", "differs") if len(hidden) == 1 else ("edges", "differ")
    of_truth = 0 if known is None else sum(bool(known[pair]) for pair in hidden)
    of_those = f"\n{of_truth} of these in the known network" if of_truth else ""
    return f"{label}\n{len(hidden):,} more {noun} {verb} by {widest:.2g} at most{of_those}"
