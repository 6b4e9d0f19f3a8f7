"""Effects that a posterior is asked for: one as `gpn_bayes.plots.plot_effect` draws it, all of them as a matrix."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex

from gpn_bayes.plots import matrices, palette
from gpn_bayes.plots.effects import plot_effect
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.effects import effect, effects


def plot_effect_of(post: Draws, cause: Hashable, outcome: Hashable, ax: Axes | None = None, **settings: Any) -> Axes:
    """Draw the effect of setting one variable on another; see `gpn_bayes.plots.plot_effect`.

    Parameters
    ----------
    cause, outcome : str or int
        The variable that is set, and the one that is looked at.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    **settings
        Those of `GraphPosterior.effect`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.plot_effect("erk", "akt", to=6.0, versus=4.0).get_xlabel()
    'effect of erk on akt, from 4 to 6'
    """
    return plot_effect(effect(post, cause, outcome, **settings), ax)


def plot_effects(post: Draws, ax: Axes | None = None, **settings: Any) -> Axes:
    """Draw the mean effects of all variables (rows) on all others (columns), in standard deviations of both.

    Of a category, the largest change from its first level to another is shown, in standard deviations of the outcome.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``.
    **settings
        Those of `GraphPosterior.effects`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.plot_effects().get_ylabel()
    'cause'
    """
    names = list(post.names)
    table = effects(post, **settings)
    # The first of a pair is the largest, where a category has several levels.
    wide = table.pivot_table(index="cause", columns="outcome", values="standardised", aggfunc="first", sort=False)
    values = wide.reindex(index=names, columns=names).to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    return matrices.draw_matrix(
        post.names, values, ("cause", "outcome"), "mean effect, in standard deviations", _two_sided, ax
    )


def _two_sided(ax: Axes) -> LinearSegmentedColormap:
    """Return colours from vermilion, for negative effects, by the background to blue."""
    return LinearSegmentedColormap.from_list("effect", [palette.VERMILION, to_hex(ax.get_facecolor()), palette.BLUE])
