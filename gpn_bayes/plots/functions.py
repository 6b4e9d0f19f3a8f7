"""Fitted functions: a panel for every parent of a variable, with the curve, its band and the rows.

Of a parent that is a category, a mean and an interval for every level.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice
from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.posterior.curves import fitted_curves
from gpn_bayes.posterior.draws import Draws

_COLUMNS = 4
# More dots than this take long to draw and hide the curve.
_MOST_DOTS = 2000
# Characters in a line of a level's name, and how far dots lie beside their level at most.
_LEVEL_WIDTH, _ASIDE = 12, 0.3
_DOTS = ("adjusted", "data", "none")


def plot_curves(
    post: Draws,
    node: Hashable,
    data: Any = None,
    score: Any = None,
    dots: str = "adjusted",
    ax: Axes | Sequence[Axes] | None = None,
    **settings: Any,
) -> np.ndarray:
    """Draw how a variable depends on each of its parents: the mean of the fitted function, a band, and the rows.

    A parent that is a category has a mean and an interval for every level.

    Parameters
    ----------
    post : GraphPosterior
        The draws, under the score "gp".
    node : str or int
        The variable.
    data : DataFrame, ndarray, path or Dataset, optional
        The table that the posterior is of; only a posterior that was loaded from a file needs it.
    score : GP, optional
        The Gaussian processes to fit; by default those that the posterior was drawn under.
    dots : {"adjusted", "data", "none"}
        The rows with what other parents add to the node taken off, as they are, or not at all; up to 2,000 of them.
    ax : matplotlib Axes or several, optional
        Where to draw, one for every panel; by default a new figure. Give your own ``layout="constrained"``.
    **settings
        `parents`, `threshold`, `probability`, `points` and `centred` of `gpn_bayes.posterior.curves.fitted_curves`.

    Returns
    -------
    ndarray of matplotlib Axes
        One for every parent, the most probable first; a single one that says so if there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> import gpn_bayes as gpn
    >>> x = np.random.default_rng(1).uniform(-3, 3, 80)
    >>> y = np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=80)
    >>> post = gpn.sample(pd.DataFrame({"x": x, "y": y}), score="gp", draws=50, random_seed=1, progressbar=False)
    >>> [panel.get_xlabel() for panel in post.plot_curves("y")]
    ['x']
    """
    check_choice("dots", dots, _DOTS)
    curves = fitted_curves(post, node, data, score, **settings)
    parents = list(dict.fromkeys(curves.lines["parent"]))
    panels = _panels(ax, max(len(parents), 1))
    target = post.names[graphs.node_index(node, post.names)]
    if not parents:
        why = "is probable enough to be shown" if settings.get("parents") is None else "was asked for"
        frames.note(panels[0], f"No parent of {lettering.drawable(target)} {why}.")
        panels[0].set_axis_off()
    for panel, parent in zip(panels, parents, strict=False):
        line, rows = (table[table["parent"] == parent] for table in (curves.lines, curves.points))
        is_category = parent in curves.categories
        if dots != "none":
            _draw_dots(panel, _beside_levels(rows, list(line["x"])) if is_category else rows, dots)
        if is_category:
            _draw_levels(panel, line)
        else:
            x = line["x"].to_numpy(dtype=float)
            panel.fill_between(x, line["lower"], line["upper"], color=palette.BLUE, alpha=0.25, linewidth=0)
            panel.plot(x, line["mean"], color=palette.BLUE, linewidth=2)
        _label(panel, parent, float(line["edge_probability"].iloc[0]))
    if parents:
        taken_off = dots == "adjusted" and bool((curves.points["adjusted"] != curves.points["y"]).any())
        _label_node(panels, target, taken_off)
    return panels


def _panels(ax: Axes | Sequence[Axes] | None, count: int) -> np.ndarray:
    """Return one panel for every curve."""
    if ax is None:
        columns = min(count, _COLUMNS)
        rows = -(-count // columns)
        size = (3.2 * columns + 0.4, 2.9 * rows)
        _, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
        for unused in grid.ravel()[count:]:
            unused.remove()
        return grid.ravel()[:count]
    given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    for own in given:
        frames.check_axes(own)
    if len(given) < count:
        raise ValueError(f"every parent needs axes of its own; {count} parents, received {len(given)}")
    return given[:count]


def _draw_levels(panel: Axes, line: pd.DataFrame) -> None:
    """Draw the mean and interval of every level."""
    ends = (line["mean"] - line["lower"], line["upper"] - line["mean"])
    places = np.arange(len(line))
    panel.errorbar(places, line["mean"], ends, fmt="o", color=palette.BLUE, markersize=4, linewidth=2, capsize=8)
    names = [lettering.wrapped(lettering.drawable(str(level)), _LEVEL_WIDTH) for level in line["x"]]
    panel.set_xticks(places, names, **lettering.style(frames.SMALL))
    panel.set_xlim(-0.5, len(line) - 0.5)


def _beside_levels(rows: pd.DataFrame, levels: list[Hashable]) -> pd.DataFrame:
    """Return rows with places beside those of their levels, so that their dots don't hide each other."""
    beside = np.random.default_rng(0).uniform(-_ASIDE, _ASIDE, len(rows))
    return rows.assign(x=rows["x"].map(levels.index).to_numpy() + beside)


def _draw_dots(panel: Axes, rows: Any, dots: str) -> None:
    step = -(-len(rows) // _MOST_DOTS)
    shown = rows.iloc[::step]
    values = shown["adjusted"] if dots == "adjusted" else shown["y"]
    alpha = float(np.clip(100 / len(shown), 0.3, 0.7))
    panel.scatter(shown["x"], values, s=9, color=palette.GREY, alpha=alpha, linewidth=0, zorder=0, rasterized=True)
    if step > 1:
        label = f"{len(shown)} of {len(rows)} rows shown"
        panel.text(0.99, 0.01, label, transform=panel.transAxes, ha="right", va="bottom", fontsize=frames.SMALL)


def _label(panel: Axes, parent: str, probability: float) -> None:
    panel.set_xlabel(lettering.wrapped(lettering.drawable(parent), 34), **lettering.style(frames.FONT))
    shown = frames.short(probability).replace(".", "0.")
    panel.set_title(f"edge probability {shown}", fontsize=frames.FONT)


def _label_node(panels: np.ndarray, target: str, taken_off: bool) -> None:
    """Name the node once a row of panels, with what was done to the dots."""
    label = lettering.wrapped(lettering.drawable(target), 34) + (
        "\n(other parents' effects taken off)" if taken_off else ""
    )
    for panel in panels:
        place = panel.get_subplotspec()
        if place is None or place.is_first_col() or panel is panels[0]:
            panel.set_ylabel(label, **lettering.style(frames.FONT))
