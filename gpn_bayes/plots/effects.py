"""An effect of setting a variable: as a distribution, a curve or a table."""

from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes

from gpn_bayes.plots import frames, lettering, palette

_BINS = 40


class DrawnEffect(Protocol):
    """What a picture needs of `gpn_bayes.posterior.Effect`, which has it as a method."""

    cause: str
    outcome: str
    quantity: str
    draws: Any
    weights: np.ndarray
    probability: float
    units: str
    mcse: Any
    slope: Any
    given_path: Any

    @property
    def mean(self) -> Any:
        """The posterior mean."""

    @property
    def sd(self) -> Any:
        """The posterior standard deviation."""

    @property
    def what(self) -> str:
        """What the mean is, in words."""

    def interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds the effect with a probability."""

    def outcome_interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds a single outcome."""


def plot_effect(effect: DrawnEffect, ax: Axes | None = None) -> Axes:
    """Draw the posterior of an effect.

    A slope or a contrast is a histogram of the draws with an effect, and the probability of none a line at zero. A
    curve has a band that holds its mean with 90% probability and a wider one for single outcomes. Probabilities of
    levels, and means at levels, are points with 90% intervals; probabilities over values of a number are lines with
    bands.

    Parameters
    ----------
    effect : Effect
        What `GraphPosterior.effect` returned.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> gpn.plots.plot_effect(post.effect("erk", "akt")).get_xlabel()
    'effect of erk on akt, for each unit of erk'
    """
    ax = frames.axes_of(ax, 5.2, 3.4)
    if effect.quantity == "curve":
        _draw_curve(effect, ax)
    elif effect.quantity == "means":
        _draw_means(effect, ax)
    elif effect.quantity == "curves":
        _draw_probability_curves(effect, ax)
    elif effect.quantity in ("table", "change"):
        _draw_levels(effect, ax)
    else:
        _draw_distribution(effect, ax)
    return ax


def _draw_distribution(effect: DrawnEffect, ax: Axes) -> None:
    values, weights = effect.draws.to_numpy().ravel(), effect.weights.ravel() / effect.weights.sum()
    some = values != 0
    if some.any():
        ax.hist(values[some], bins=_BINS, weights=weights[some], color=palette.BLUE, alpha=0.8)
    if effect.probability < 1:
        ax.axvline(0.0, color=palette.VERMILION, linewidth=2)
    none = f"no effect: probability {frames.short(max(1 - effect.probability, 1e-9))}"
    some_text = f"an effect: probability {frames.short(max(effect.probability, 1e-9))}"
    handles = [
        ax.plot([], [], color=palette.BLUE, linewidth=6, alpha=0.8, label=some_text)[0],
        ax.plot([], [], color=palette.VERMILION, linewidth=2, label=none)[0],
    ]
    ax.legend(
        handles=handles, frameon=False, fontsize=frames.LEGEND, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2
    )
    ax.set_xlabel(lettering.wrapped(lettering.drawable(effect.what), 60), **lettering.style(frames.FONT))
    ax.set_ylabel("probability", fontsize=frames.FONT)


def _legend_above(ax: Axes, **settings: Any) -> None:
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(frameon=False, fontsize=frames.LEGEND, **place, **settings)


def _draw_curve(effect: DrawnEffect, ax: Axes) -> None:
    x = effect.mean["cause"].to_numpy()
    for band, alpha, label in (
        (effect.outcome_interval(0.9), 0.15, "90% of outcomes"),
        (effect.interval(0.9), 0.4, "90% for the mean"),
    ):
        lower, upper = (end.to_numpy() for end in band)
        ax.fill_between(x, lower, upper, color=palette.BLUE, alpha=alpha, linewidth=0, label=label)
    ax.plot(x, effect.mean, color=palette.BLUE, linewidth=2, label="mean")
    _legend_above(ax, ncols=3)
    ax.set_xlabel(f"{lettering.drawable(effect.cause)}, set to", **lettering.style(frames.FONT))
    ax.set_ylabel(lettering.drawable(effect.outcome), **lettering.style(frames.FONT))


def _draw_levels(effect: DrawnEffect, ax: Axes) -> None:
    lower, upper = effect.interval(0.9)
    mean, lower, upper = (
        values if values.ndim == 2 else values.expand_dims({"cause": [effect.units]})
        for values in (effect.mean, lower, upper)
    )
    groups, levels = (mean[name].to_numpy() for name in ("cause", "outcome"))
    place = np.arange(len(groups))
    for k, (level, colour) in enumerate(zip(levels, palette.series(len(levels)), strict=True)):
        at = place + 0.6 * ((k + 0.5) / len(levels) - 0.5)
        middle, low, high = (values.isel(outcome=k).to_numpy() for values in (mean, lower, upper))
        bars = [middle - low, high - middle]
        ax.errorbar(
            at, middle, np.maximum(bars, 0), fmt="o", color=colour, markersize=4, label=lettering.drawable(str(level))
        )
    _name_cause(effect, ax, place, groups)
    what = "probability" if effect.quantity == "table" else "change of probability"
    ax.set_ylabel(what, fontsize=frames.FONT)
    if effect.quantity == "change":
        ax.axhline(0.0, color=palette.GREY, linewidth=0.8)
    frames.legend_beside(ax, title=lettering.drawable(effect.outcome))


def _draw_means(effect: DrawnEffect, ax: Axes) -> None:
    levels = effect.mean["cause"].to_numpy()
    place, mean = np.arange(len(levels)), effect.mean.to_numpy()
    for band, colour, width, label in (
        (effect.outcome_interval(0.9), palette.GREY, 4, "90% of outcomes"),
        (effect.interval(0.9), palette.BLUE, 2, "90% for the mean"),
    ):
        lower, upper = (end.to_numpy() for end in band)
        ax.vlines(place, lower, upper, color=colour, linewidth=width, label=label)
    ax.plot(place, mean, "o", color=palette.BLUE, label="mean")
    _legend_above(ax, ncols=3)
    _name_cause(effect, ax, place, levels)
    ax.set_ylabel(lettering.drawable(effect.outcome), **lettering.style(frames.FONT))


def _draw_probability_curves(effect: DrawnEffect, ax: Axes) -> None:
    x, levels = (effect.mean[name].to_numpy() for name in ("cause", "outcome"))
    lower, upper = effect.interval(0.9)
    for k, (level, colour) in enumerate(zip(levels, palette.series(len(levels)), strict=True)):
        low, high = (end.isel(outcome=k).to_numpy() for end in (lower, upper))
        ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, effect.mean.isel(outcome=k), color=colour, label=lettering.drawable(str(level)))
    ax.set_xlabel(f"{lettering.drawable(effect.cause)}, set to", **lettering.style(frames.FONT))
    ax.set_ylabel("probability", fontsize=frames.FONT)
    frames.legend_beside(ax, title=lettering.drawable(effect.outcome))


def _name_cause(effect: DrawnEffect, ax: Axes, place: np.ndarray, groups: np.ndarray) -> None:
    ax.set_xticks(place, [lettering.drawable(str(group)) for group in groups], **lettering.style(frames.FONT))
    ax.set_xlabel(f"{lettering.drawable(effect.cause)}, set", **lettering.style(frames.FONT))
