"""The data beside what a posterior predicts: a row of panels for every variable."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from scipy import stats

from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.predictive_checks import VariableCheck, predictive_checks

_MOST_DOTS = 1000
_MOST_BINS = 30
# Rows for each bin of ranks at least, the most bins there are, and the level of the band that should hold all of them.
_ROWS_A_BIN, _RANK_BINS, _OUTSIDE = 20, 20, 0.01
# Groups of rows whose mean residuals are drawn.
_GROUPS = 10
_SIZE = (2.3, 1.75)


def plot_ppc(post: Draws, variables: Sequence[Hashable] | None = None, **settings: Any) -> np.ndarray:
    """Draw the data beside what the posterior predicts, a row of panels for every variable.

    From left to right: the variable's distribution, with a band that holds 90% of simulated tables; the rows against
    its most probable parent, then those of a simulated table; what all parents leave unexplained of a number, against
    that parent, with the means of ten groups of rows (or of its levels) and two standard errors to either side; and the
    ranks of rows in their predictions from all other rows (the probability integral transform, PIT). If the model is
    right these are uniform, and all bars end within the grey band with 99% probability; others are vermilion. A hump in
    the middle means that predictions are too wide, high ends that they are too narrow.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    variables : sequence of str or int, optional
        Which variables; by default all, or the twelve whose ranks are the least uniform.
    **settings
        `draws`, `tables`, `random_seed` and `progressbar` of
        `gpn_bayes.posterior.predictive_checks.predictive_checks`.

    Returns
    -------
    ndarray of matplotlib Axes, shape (variable, panel)

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=200, random_seed=1, progressbar=False)
    >>> panels = post.plot_ppc(["akt", "mek"])
    >>> panels.shape, [panel.get_title() for panel in panels[0]]
    ((2, 5), ['akt', 'real rows', 'simulated rows', 'residuals', 'ranks (PIT)'])
    """
    checks = predictive_checks(post, variables, **settings)
    numbers = any(check.residuals is not None for check in checks)
    draw = [_marginal, _real, _simulated, *([_residuals] if numbers else []), _ranks]
    size = (_SIZE[0] * len(draw), _SIZE[1] * len(checks) + 0.4)
    _, panels = plt.subplots(len(checks), len(draw), figsize=size, squeeze=False, layout="constrained")
    for row, check in zip(panels, checks, strict=True):
        for panel, own in zip(row, draw, strict=True):
            panel.tick_params(labelsize=frames.SMALL)
            own(panel, check)
    for panel in panels[1:, 1:].ravel():
        panel.set_title("")
    return panels


def _marginal(panel: Axes, check: VariableCheck) -> None:
    """Draw the distribution of the data, and a band of those of simulated tables."""
    panel.set_title(lettering.wrapped(lettering.drawable(check.name), 24), **lettering.style(frames.FONT))
    panel.set_yticks([])
    if check.levels:
        place, (real, *drawn) = np.arange(len(check.levels)), _shares(check)
        panel.bar(place, real, color=palette.BLUE, alpha=0.4)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        panel.vlines(place, low, high, color=palette.GREY, linewidth=4)
        _name_levels(panel, check.levels)
        return
    low, high = np.quantile(check.simulated, [0.002, 0.998])
    spread = (min(low, check.observed.min()), max(high, check.observed.max()))
    edges = np.histogram_bin_edges(check.observed, "auto", spread)
    edges = edges if len(edges) <= _MOST_BINS else np.linspace(*spread, _MOST_BINS + 1)
    shares = [np.histogram(own, edges)[0] for own in check.simulated]
    low, high = (np.append(end, end[-1]) for end in np.quantile(shares, [0.05, 0.95], axis=0))
    panel.fill_between(edges, low, high, step="post", color=palette.GREY, alpha=0.5, linewidth=0)
    panel.stairs(np.histogram(check.observed, edges)[0], edges, color=palette.BLUE, linewidth=1.4)


def _shares(check: VariableCheck) -> list[np.ndarray]:
    """Return the share of each level, in the data and in every simulated table."""
    count = len(check.levels)
    return [np.bincount(own.astype(int), minlength=count) / len(own) for own in (check.observed, *check.simulated)]


def _name_levels(panel: Axes, levels: Sequence[Any]) -> None:
    names = [lettering.wrapped(lettering.drawable(str(level)), 10) for level in levels]
    panel.set_xticks(range(len(levels)), names, **lettering.style(frames.SMALL))


def _real(panel: Axes, check: VariableCheck) -> None:
    """Draw the rows against the most probable parent."""
    panel.set_title("real rows", fontsize=frames.FONT)
    _pairs(panel, check, check.parent_observed, check.observed)
    panel.set_ylabel(lettering.wrapped(lettering.drawable(check.name), 24), **lettering.style(frames.LEGEND))


def _simulated(panel: Axes, check: VariableCheck) -> None:
    """Draw the rows of one simulated table against the most probable parent."""
    panel.set_title("simulated rows", fontsize=frames.FONT)
    _pairs(panel, check, check.parent_simulated[0], check.simulated[0])


def _pairs(panel: Axes, check: VariableCheck, parent: np.ndarray, values: np.ndarray) -> None:
    if check.parent is None:
        _without_parent(panel)
        return
    _name_parent(panel, check)
    if not check.levels or not check.parent_levels:
        _dots(panel, parent, values)
        # Both pictures of a variable have the same axes, those of the real rows.
        panel.set_xlim(*_around(check.parent_observed))
        panel.set_ylim(*_around(check.observed))
        if check.parent_levels:
            _name_levels(panel, check.parent_levels)
        if check.levels:
            _name_own_levels(panel, check.levels)
        return
    counts = np.zeros((len(check.levels), len(check.parent_levels)))
    np.add.at(counts, (values.astype(int), parent.astype(int)), 1)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    panel.imshow(shares, cmap=palette.shades(panel), vmin=0, vmax=1, aspect="auto", origin="lower")
    _name_levels(panel, check.parent_levels)
    _name_own_levels(panel, check.levels)


def _name_own_levels(panel: Axes, levels: Sequence[Any]) -> None:
    names = [lettering.drawable(str(level)) for level in levels]
    panel.set_yticks(range(len(names)), names, **lettering.style(frames.SMALL))


def _residuals(panel: Axes, check: VariableCheck) -> None:
    """Draw what all parents leave unexplained against the most probable one, with means of groups of rows."""
    panel.set_title("residuals", fontsize=frames.FONT)
    if check.residuals is None:
        panel.set_axis_off()
        return
    if check.parent is None:
        _without_parent(panel)
        return
    _name_parent(panel, check)
    _dots(panel, check.parent_observed, check.residuals)
    panel.axhline(0.0, color=palette.GREY, linewidth=0.8)
    groups = [own for own in _groups(check) if len(own) > 1]
    at, mean = ([values[own].mean() for own in groups] for values in (check.parent_observed, check.residuals))
    error = [2 * check.residuals[own].std(ddof=1) / np.sqrt(len(own)) for own in groups]
    panel.errorbar(at, mean, error, color=palette.BLUE, linewidth=1.4, fmt="o" if check.parent_levels else "")
    if check.parent_levels:
        _name_levels(panel, check.parent_levels)


def _groups(check: VariableCheck) -> list[np.ndarray]:
    """Return rows in groups by the parent's value, or by its level."""
    if check.parent_levels:
        return [np.flatnonzero(check.parent_observed == level) for level in range(len(check.parent_levels))]
    return np.array_split(np.argsort(check.parent_observed, kind="stable"), _GROUPS)


def _ranks(panel: Axes, check: VariableCheck) -> None:
    """Draw the ranks of rows in their predictions, and the band that uniform ones stay in."""
    panel.set_title("ranks (PIT)", fontsize=frames.FONT)
    rows = len(check.pit)
    bins = int(np.clip(rows // _ROWS_A_BIN, 2, _RANK_BINS))
    heights = np.histogram(check.pit, bins, (0, 1))[0] * bins / rows
    tail = 0.5 * _OUTSIDE / bins
    low, high = np.asarray(stats.binom.ppf([tail, 1 - tail], rows, 1 / bins)) * bins / rows
    colours = [palette.BLUE if low <= height <= high else palette.VERMILION for height in heights]
    edges = np.linspace(0, 1, bins + 1)
    panel.bar(edges[:-1], heights, 1 / bins, align="edge", color=colours, alpha=0.8)
    panel.axhspan(low, high, color=palette.GREY, alpha=0.3, linewidth=0, zorder=0)
    panel.axhline(1.0, color=palette.GREY, linewidth=0.8)
    panel.set_xlim(0, 1)
    panel.set_yticks([])


def _dots(panel: Axes, x: np.ndarray, y: np.ndarray) -> None:
    step = -(-len(x) // _MOST_DOTS)
    panel.scatter(x[::step], y[::step], s=5, color=palette.GREY, alpha=0.5, linewidth=0, rasterized=True)


def _around(values: np.ndarray) -> tuple[float, float]:
    """Return the range of values, and some more."""
    beyond = 0.15 * float(np.ptp(values))
    return float(values.min()) - beyond, float(values.max()) + beyond


def _name_parent(panel: Axes, check: VariableCheck) -> None:
    panel.set_xlabel(lettering.wrapped(lettering.drawable(str(check.parent)), 24), **lettering.style(frames.LEGEND))


def _without_parent(panel: Axes) -> None:
    panel.set_axis_off()
    panel.text(
        0.5, 0.5, "no probable parent", transform=panel.transAxes, ha="center", color=palette.GREY,
        fontsize=frames.LEGEND,
    )  # fmt: skip
