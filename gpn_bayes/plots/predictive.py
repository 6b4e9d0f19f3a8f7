"""How well posteriors predict: one against another, variable by variable."""

from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gpn_bayes.plots import frames, lettering, palette


class PredictiveComparison(Protocol):
    """What a picture needs of `gpn_bayes.posterior.Comparison`, which has it as a method."""

    table: pd.DataFrame
    by_variable: pd.DataFrame

    @property
    def best(self) -> str:
        """The posterior that predicts best."""


def plot_elpd(comparison: PredictiveComparison, ax: Axes | None = None) -> Axes:
    """Draw how far below the best posterior the others predict each variable given its parents.

    Points right of the line are variables that the best posterior predicts worse. Bars are one standard error long to
    either side.

    Parameters
    ----------
    comparison : Comparison
        What `gpn_bayes.compare` returned.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> quick = {"draws": 200, "random_seed": 1, "progressbar": False}
    >>> posts = {
    ...     str(k): gpn.sample(data, score="bge", space=gpn.Space(max_parents=k), **quick)
    ...     for k in (1, 2)
    ... }
    >>> [label.get_text() for label in plot_elpd(gpn.compare(posts)).get_yticklabels()]
    ['raf', 'mek', 'erk', 'akt']
    """
    table = comparison.by_variable
    variables = list(dict.fromkeys(table["variable"]))
    others = [model for model in dict.fromkeys(table["model"]) if model != comparison.best]
    ax = frames.axes_of(ax, 5.2, 1.2 + 0.28 * len(variables))
    place = np.arange(len(variables))
    for k, (model, colour) in enumerate(zip(others, palette.series(len(others)), strict=True)):
        own = table[table["model"] == model].set_index("variable").loc[variables]
        at = place + 0.5 * ((k + 0.5) / len(others) - 0.5)
        ax.errorbar(
            own["elpd_diff"], at, xerr=np.hypot(own["dse"], own["mcse"]), fmt="o", color=colour, markersize=4,
            linewidth=1.2, label=lettering.drawable(f"{model} - {comparison.best}"),
        )  # fmt: skip
    ax.axvline(0.0, color=palette.GREY, linewidth=0.8)
    ax.set_yticks(place, [lettering.drawable(name) for name in variables], **lettering.style(frames.FONT))
    ax.invert_yaxis()
    ax.set_xlabel("difference of log predictive densities, rows left out (nats)", fontsize=frames.FONT)
    ax.legend(frameon=False, fontsize=frames.LEGEND, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return ax
