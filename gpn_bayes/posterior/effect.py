"""The answer to "what happens to Y if I set X?": weighted draws of an effect, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import check_share
from gpn_bayes._util.types import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# Levels whose numbers are printed in a line.
_SHOWN_LEVELS = 5


@dataclass(eq=False, repr=False)
class Effect:
    """The posterior of the effect of one variable on another, averaged over DAGs and their parameters.

    In DAGs without a directed path from the cause to the outcome there is no effect: a point mass at zero, which
    `probability` leaves.

    Attributes
    ----------
    cause, outcome : str
        The variables.
    quantity : str
        What was drawn: "slope" (the change of the outcome for each unit of the cause), "contrast" (the change between
        two values of the cause), "curve" (the expected outcome at values of the cause), "means" (that at each level of
        the cause), "table" (the probability of each level of the outcome, for each level of the cause), "curves" (the
        same at values of the cause) or "change" (of these probabilities between two levels or values).
    draws : xarray.DataArray
        Its draws, along ``chain`` and ``draw``; those of a curve and of means also along ``cause``, its values or
        levels, of a table and of curves along ``cause`` and ``outcome``, and of a change of probabilities along
        ``outcome``.
    weights : ndarray of shape (chain, draw)
        The weight of each draw, of mean one.
    probability : float
        The probability of any effect: of a directed path.
    mcse : float or xarray.DataArray
        The Monte Carlo standard error of the mean, with what the errors of the scores add to it; NaN where all draws
        are alike, such as those of DAGs without any path, which don't show how far off they are.
    outcomes : xarray.DataArray, optional
        Of a curve and of means: single outcomes, noise included.
    slope : Effect, optional
        Of a curve: its slope, averaged over the rows of the cause; of a linear contrast, that for each unit.
    given_path : Effect, optional
        The effect in the DAGs that have a directed path, without the point mass at zero; None where none of them has.
    is_given_path : bool
        Whether this is such an effect, of some of the DAGs only.
    note : str
        What it takes for granted of pairs that can't be joined; empty where there are no such pairs.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> effect = post.effect("erk", "akt")
    >>> print(effect)
    effect of erk on akt, for each unit of erk: 0.352 ± 0.008, 90% between 0.000 and 0.718; any effect with
    probability 0.50, and then 90% between 0.671 and 0.724
    >>> print(effect.given_path)
    effect of erk on akt, for each unit of erk, given a path: 0.698 ± 0.000, 90% between 0.671 and 0.724
    >>> effect.draws.dims, effect.what
    (('chain', 'draw'), 'effect of erk on akt, for each unit of erk')
    >>> print(f"{effect.mean:.2f} {effect.sd:.2f}")
    0.35 0.35
    """

    cause: str
    outcome: str
    quantity: str
    draws: "xr.DataArray"
    weights: Floats
    probability: float
    mcse: Any
    outcomes: "xr.DataArray | None" = None
    slope: "Effect | None" = None
    given_path: "Effect | None" = None
    units: str = ""
    is_given_path: bool = False
    note: str = ""

    @property
    def mean(self) -> Any:
        """The posterior mean: a number, or a DataArray over what `quantity` is over."""
        return self._plain(self._averaged(self.draws))

    @property
    def sd(self) -> Any:
        """The posterior standard deviation."""
        mean = self._averaged(self.draws)
        return self._plain(self._averaged((self.draws - mean) ** 2) ** 0.5)

    def interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds the effect with a probability: lower and upper end.

        Parameters
        ----------
        probability : float, default 0.9
            Between 0 and 1.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek"]]
        >>> post = gpn.sample(data, score="bge", required=[("raf", "mek")], draws=500, random_seed=1, progressbar=False)
        >>> lower, upper = post.effect("raf", "mek").interval(0.9)
        >>> print(f"{lower:.2f} {upper:.2f}")
        0.57 0.64
        """
        return self._interval(self.draws, probability)

    def outcome_interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds a single outcome, noise included; of a curve or means only.

        Parameters
        ----------
        probability : float, default 0.9
            Between 0 and 1.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> x = np.random.default_rng(1).uniform(-3, 3, 60)
        >>> table = pd.DataFrame({"x": x, "y": np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=60)})
        >>> post = gpn.sample(table, score="gp", draws=50, random_seed=1, progressbar=False)
        >>> lower, upper = post.effect("x", "y", points=5, progressbar=False).outcome_interval(0.9)
        >>> lower.shape, bool((lower < upper).all())
        ((5,), True)
        """
        if self.outcomes is None:
            raise ValueError(f"intervals of outcomes are those of a curve or of means; this is a {self.quantity}")
        return self._interval(self.outcomes, probability)

    def table(self, probability: float = 0.9) -> pd.DataFrame:
        """Return the effect as a tidy table: a row for each value or level that `quantity` is over.

        Parameters
        ----------
        probability : float, default 0.9
            That of the interval between `lower` and `upper`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.effect("erk", "akt").table().columns.tolist()
        ['mean', 'sd', 'lower', 'upper', 'mcse']
        """
        import xarray as xr

        lower, upper = self.interval(probability)
        columns = {"mean": self.mean, "sd": self.sd, "lower": lower, "upper": upper, "mcse": self.mcse}
        if self.draws.ndim == 2:
            return pd.DataFrame([columns])
        return xr.Dataset(columns).to_dataframe().reset_index()

    def _averaged(self, draws: "xr.DataArray") -> "xr.DataArray":
        import xarray as xr

        weights = xr.DataArray(self.weights / self.weights.sum(), dims=("chain", "draw"))
        return (draws * weights).sum(("chain", "draw"))

    def _interval(self, draws: "xr.DataArray", probability: float) -> Any:
        check_share("probability", probability, ends=False)
        tail = 0.5 * (1 - probability)
        flat = draws.stack(all=("chain", "draw")).transpose("all", ...)
        ends = weighted_quantiles(flat.to_numpy(), [self.weights.ravel()], [tail, 1 - tail])[0]
        lower, upper = (flat.isel(all=0, drop=True).copy(data=end) for end in ends)
        return self._plain(lower), self._plain(upper)

    @staticmethod
    def _plain(value: "xr.DataArray") -> Any:
        return float(value) if value.ndim == 0 else value

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the effect; see `gpn_bayes.plots.plot_effect`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.effect("erk", "akt").plot().get_ylabel()
        'probability'
        """
        from gpn_bayes.plots.effects import plot_effect

        return plot_effect(self, ax)

    @property
    def what(self) -> str:
        """What `mean` is, in words."""
        given = ", given a path" if self.is_given_path else ""
        if self.quantity == "slope":
            return f"effect of {self.cause} on {self.outcome}, for each unit of {self.cause}{given}"
        if self.quantity in ("contrast", "change"):
            return f"effect of {self.cause} on {self.outcome}, {self.units}{given}"
        return f"{self.outcome} if {self.cause} is set{given}"

    def __str__(self) -> str:
        """Say in one line what the effect is, and what it takes for granted of pairs that can't be joined."""
        return f"{self._told()}; {self.note}" if self.note else self._told()

    def _told(self) -> str:
        any_effect = "" if self.is_given_path else f"; any effect with probability {self.probability:.2f}"
        if self.draws.ndim == 2 and self.given_path is not None and self.probability < 1:
            lower, upper = self.given_path.interval(0.9)
            any_effect += f", and then 90% between {lower:.3f} and {upper:.3f}"
        if self.slope is not None and self.draws.ndim > 2:
            return f"{self.what}: a {self.quantity}; average slope {self.slope._number()}{any_effect}"
        if self.draws.ndim > 2:
            return f"{self.what}: {self._numbers()}{any_effect}"
        return f"{self.what}: {self._number()}{any_effect}"

    def __repr__(self) -> str:
        """Show what `str` says."""
        return f"<Effect: {self}>"

    def _number(self) -> str:
        if np.isnan(self.mcse):
            # Draws that are all alike don't show how far off they are.
            return f"{self.mean:.3f} in all {self.draws.size:,} draws"
        lower, upper = self.interval(0.9)
        return f"{self.mean:.3f} ± {self.mcse:.3f}, 90% between {lower:.3f} and {upper:.3f}"

    def _numbers(self) -> str:
        """Return the means over levels, those at both ends of a curve."""
        mean, mcse = self.mean, self.mcse
        if "cause" not in mean.dims:
            return _at_levels(mean, mcse)
        values = mean["cause"].to_numpy()
        curved = self.quantity in ("curve", "curves")
        places = [0, len(values) - 1] if curved else range(min(len(values), _SHOWN_LEVELS))
        parts = []
        for place in places:
            own, error = mean.isel(cause=place), mcse.isel(cause=place)
            number = _with_error(float(own), float(error)) if own.ndim == 0 else _at_levels(own, error)
            parts.append(f"{number} at {values[place]:.4g}" if curved else f"{number} at {values[place]}")
        more = [] if curved or len(values) <= _SHOWN_LEVELS else ["…"]
        return (", " if mean.ndim == 1 else "; ").join([*parts, *more])

    def _repr_html_(self) -> str:
        if self.draws.ndim == 2:
            return f"<p>{escape(str(self))}</p>"
        # Names come from the table's columns, which may hold anything.
        named = self.table().rename(columns={"cause": self.cause, "outcome": self.outcome})
        table = named.to_html(float_format="{:.3f}".format, index=False, escape=True, max_rows=40, na_rep="–")
        return f"<p>{escape(str(self))}</p>{table}"


def _with_error(value: float, error: float) -> str:
    """Return a mean with its error; draws that are all alike don't show how far off they are."""
    return f"{value:.3f} in all draws" if np.isnan(error) else f"{value:.3f} ± {error:.3f}"


def _at_levels(mean: "xr.DataArray", mcse: "xr.DataArray") -> str:
    """Return numbers by the levels of an outcome."""
    levels = mean["outcome"].to_numpy()
    numbers = zip(levels, mean.to_numpy(), mcse.to_numpy(), strict=True)
    parts = [f"{level} {_with_error(value, error)}" for level, value, error in numbers]
    return ", ".join(parts[:_SHOWN_LEVELS] + ["…"] * (len(parts) > _SHOWN_LEVELS))


def weighted_quantiles(values: Floats, weights: Sequence[Floats], probabilities: Sequence[float]) -> Floats:
    """Return quantiles of weighted draws along the first axis, under one weighting or several.

    Parameters
    ----------
    values : ndarray of shape (draws, …)
        The draws.
    weights : sequence of ndarray, each of shape (draws,) or of the shape of `values`
        Their weights, any scale.
    probabilities : sequence of float
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (weightings, probabilities, …)

    Examples
    --------
    >>> draws = np.array([3.0, 1.0, 2.0])
    >>> weighted_quantiles(draws, [np.ones(3), np.array([0.0, 1.0, 0.0])], [0.1, 0.5]).tolist()
    [[1.0, 2.0], [1.0, 1.0]]
    """
    # Along lines that lie together in memory.
    lines = np.ascontiguousarray(values.reshape(len(values), -1).T)
    found = np.empty((len(weights), len(probabilities), len(lines)))
    each, order = np.arange(len(lines)), None
    for own, quantiles in zip(weights, found, strict=True):
        flat = own if own.ndim == 1 else np.ascontiguousarray(own.reshape(len(own), -1).T)
        kept = flat > 0
        if not kept.any() or np.ptp(flat[kept]) == 0:
            # Equal weights need no order, and sorting alone is several times as fast.
            ordered = np.sort(lines if kept.all() else np.where(kept, lines, np.inf), axis=1)
            counts = np.broadcast_to(kept.sum(axis=-1), len(lines))
            for q, quantile in zip(probabilities, quantiles, strict=True):
                quantile[:] = ordered[each, np.maximum(np.ceil(q * counts).astype(np.int64) - 1, 0)]
            continue
        order = np.argsort(lines, axis=1) if order is None else order
        held = np.cumsum(flat[order] if own.ndim == 1 else np.take_along_axis(flat, order, axis=1), axis=1)
        for q, quantile in zip(probabilities, quantiles, strict=True):
            place = np.minimum((held < q * held[:, -1:]).sum(axis=1), len(values) - 1)
            quantile[:] = lines[each, order[each, place]]
    return found.reshape(*found.shape[:2], *values.shape[1:])
