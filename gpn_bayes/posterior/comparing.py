"""Posteriors compared by how well each predicts a row of the table from all others: leave-one-out, by ArviZ."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from gpn_bayes._util.checks import check_count, shown
from gpn_bayes._util.types import Floats
from gpn_bayes.posterior import densities
from gpn_bayes.posterior.densities import RowsLeftOut, rows_left_out
from gpn_bayes.posterior.draws import CURVE_DRAWS, Draws
from gpn_bayes.posterior.equations import scorer_of

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData
    from matplotlib.axes import Axes

_PURPOSE = "comparisons"
# Draws times rows that are held at a time.
_MOST = 100_000_000
# Differences of fewer standard errors are none to speak of.
_CLEAR = 2.0


@dataclass(eq=False, repr=False)
class Comparison:
    """How well posteriors over the same table predict each of its rows from all others.

    Attributes
    ----------
    table : DataFrame
        ArviZ's comparison, one posterior a row, the best first: `rank`, `elpd_diff` (below the best; negative) with
        its standard error `dse`, `p_worse`, `diag_diff` and `diag_elpd` (what ArviZ warns of), `p` (effective number of
        parameters; of DAGs here), `elpd` (the sum of log densities of rows left out) with its standard error `se`,
        `weight` (of the best mixture: stacking), and `mcse`, the Monte Carlo error of `elpd`.
    by_variable : DataFrame
        Of each variable given its parents, under each posterior: `variable`, `model`, `elpd`, `elpd_diff` (below the
        posterior that is best altogether; positive where this one is better), its standard error `dse` over rows, and
        `mcse`, the Monte Carlo error of the difference. They add up to `elpd` of the table but for the averaging over
        DAGs. Where an edge points one way under one posterior and
        the other way under another, one variable gains what the other loses: look at both.
    rows : int
        How many rows were predicted.
    pointwise : dict of ELPDData
        What ArviZ found for each posterior: elpd and Pareto k of every row.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(-3, 3, 80)
    >>> data = pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.2 * rng.normal(size=80)})
    >>> runs = {s: gpn.sample(data, score=s, draws=200, random_seed=1, progressbar=False) for s in ("gp", "bge")}
    >>> found = gpn.compare(runs, progressbar=False)
    >>> found.best, found.table.index.tolist(), found.rows
    ('gp', ['gp', 'bge'], 80)
    >>> found.by_variable.query("model == 'bge'").set_index("variable")["elpd_diff"].round(-1).to_dict()
    {'x': 0.0, 'y': -100.0}
    """

    table: pd.DataFrame
    by_variable: pd.DataFrame
    rows: int
    pointwise: "dict[str, ELPDData]"

    @property
    def best(self) -> str:
        """The posterior that predicts best."""
        return str(self.table.index[0])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the differences variable by variable; see `gpn_bayes.plots.plot_elpd`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek"]]
        >>> posts = {s: gpn.sample(data, score=s, draws=50, random_seed=1, progressbar=False) for s in ("bge", "bic")}
        >>> gpn.compare(posts).plot().get_xlabel()
        'difference of log predictive densities, rows left out (nats)'
        """
        from gpn_bayes.plots.predictive import plot_elpd

        return plot_elpd(self, ax)

    def __str__(self) -> str:
        """Say in a few lines which posterior predicts best, and by how much."""
        lines = []
        for name, row in self.table.iloc[1:].iterrows():
            error = float(np.hypot(row["dse"], np.hypot(row["mcse"], self.table["mcse"].iloc[0])))
            gap = f"{abs(row['elpd_diff']):.1f} ± {error:.1f} nats over all {self.rows:,} rows"
            if abs(row["elpd_diff"]) <= _CLEAR * error:
                lines.append(f"{self.best} and {name} predict rows left out about equally well, a difference of {gap}")
            else:
                lines.append(f"{self.best} predicts rows left out better than {name}, by {gap}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show what `str` says."""
        return f"<Comparison: {self}>"

    def _repr_html_(self) -> str:
        lines = "<br>".join(escape(line) for line in str(self).split("\n"))
        wide = self.by_variable.pivot(index="variable", columns="model", values="elpd").loc[
            list(dict.fromkeys(self.by_variable["variable"])), list(self.table.index)
        ]
        tables = [frame.to_html(float_format="{:.1f}".format, escape=True) for frame in (self.table, wide)]
        return f"<p>{lines}</p>{''.join(tables)}"


def compare(posteriors: Mapping[str, Draws], *, draws: int | None = None, progressbar: bool = True) -> Comparison:
    """Compare posteriors of the same table by how well each predicts a row from all others.

    Leave-one-out densities are averaged over DAGs, with parameters integrated out, in units of the table, so that
    posteriors under different scores can be compared: where do curves help? Differences of a few standard errors
    `dse` are clear. Under Gaussian processes densities are averages over 32 draws of the hyperparameters, whose error
    isn't counted.

    Parameters
    ----------
    posteriors : mapping of str to GraphPosterior
        Two or more, of the same rows and columns in the same units.
    draws : int, optional
        Over how many DAGs to average; all by default (fewer of tables with very many rows), and 500 under Gaussian
        processes, whose densities take long.
    progressbar : bool, default True
        Whether to show progress where it takes long, under Gaussian processes.

    Raises
    ------
    ValueError
        If densities can't be compared: those of other rows, of other units, or of numbers with those of categories.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> posts = {
    ...     "all": gpn.sample(data, score="bge", draws=200, random_seed=1, progressbar=False),
    ...     "one parent": gpn.sample(
    ...         data, score="bge", space=gpn.Space(max_parents=1), draws=200, random_seed=1, progressbar=False
    ...     ),
    ... }
    >>> found = gpn.compare(posts)
    >>> bool(found.table.loc["all", "mcse"] < 0.1)
    True
    """
    from arviz_stats.loo.compare import compare as arviz_compare

    if draws is not None:
        check_count("draws", draws, 1)
    named = _named(posteriors)
    if len(named) < 2:
        raise ValueError(f"comparisons need two posteriors or more; received {len(named)}")
    first, *others = named
    for name in others:
        _check_same_table(named[first], named[name], first, name)
    found, of_variables, errors = {}, {}, {}
    for name, post in named.items():
        found[name], of_variables[name], errors[name] = _left_out(post, named[first].names, draws, progressbar)
    table = arviz_compare(found, round_to="none").assign(mcse=pd.Series(errors))
    return Comparison(table, _by_variable(table, of_variables), _n_rows(found), found)


def _named(posteriors: Any) -> dict[str, Draws]:
    """Return posteriors by name; refuse all else."""
    rule = "posteriors must map names to what gpn.sample returned, as in {'gp': post_gp, 'bge': post_bge}"
    if not isinstance(posteriors, Mapping):
        raise ValueError(f"{rule}; received a {type(posteriors).__name__}")
    for name, post in posteriors.items():
        if not hasattr(post, "log_score"):
            raise ValueError(f"{rule}; received {shown(post)} for {name!r}")
    return dict(posteriors)


def _check_same_table(one: Draws, two: Draws, first: str, second: str) -> None:
    """Refuse posteriors whose densities aren't those of the same things."""
    alone = sorted(set(one.names) ^ set(two.names))
    if alone:
        which = first if alone[0] in one.names else second
        raise ValueError(f"compared posteriors must be over the same variables; {alone[0]!r} is only in {which!r}")
    scorers = [scorer_of(post, _PURPOSE) for post in (one, two)]
    order = [two.names.index(name) for name in one.names]
    apart = np.flatnonzero(scorers[0].categories != scorers[1].categories[order])
    if len(apart):
        numbers, categories = (second, first) if scorers[0].categories[apart[0]] else (first, second)
        raise ValueError(
            f"densities of numbers and probabilities of categories can't be compared; received numbers in {numbers!r} "
            f"and categories in {categories!r}"
        )
    rows = [densities.rows_behind(post, _PURPOSE) for post in (one, two)]
    levels = [scorer.levels for scorer in scorers]
    same_levels = not levels[0] or tuple(levels[0]) == tuple(levels[1][place] for place in order)
    if rows[0].shape != rows[1].shape or not np.allclose(rows[0], rows[1][:, order], rtol=1e-9) or not same_levels:
        raise ValueError(
            "compared posteriors must be of the same rows in the same units, or their densities can't be compared; "
            f"those of {first!r} and {second!r} differ"
        )


def _left_out(
    post: Draws, names: tuple[str, ...], draws: int | None, progressbar: bool
) -> tuple["ELPDData", "dict[str, _OfVariable]", float]:
    """Return what ArviZ finds of rows left out, the same of each variable given its parents, and the error of all."""
    if draws is None and not scorer_of(post, _PURPOSE).closed_form:
        draws = CURVE_DRAWS
    n_rows = len(densities.rows_behind(post, _PURPOSE))
    rows = rows_left_out(post, min(draws or post.log_score.size, max(1000, _MOST // n_rows)), progressbar)
    of_variables = {name: _of_variable(rows, post.names.index(name)) for name in names}
    return rows.elpd, of_variables, _mcse(rows.joint, rows.share)


class _OfVariable(NamedTuple):
    """Log densities of a variable in rows left out, and the Monte Carlo error of their sum."""

    elpd: Floats
    mcse: float


def _of_variable(rows: RowsLeftOut, node: int) -> _OfVariable:
    """Return what DAGs say of a variable given its parents: logs of ratios of means, to which each DAG adds."""
    weighted = rows.log_weights + rows.densities.by_set[rows.densities.places[:, node]]
    elpd: Floats = logsumexp(weighted, axis=0)
    influence = len(weighted) * (np.exp(weighted - elpd) - np.exp(rows.log_weights)).sum(axis=1)
    return _OfVariable(elpd, float(influence.std() / np.sqrt(rows.share * len(influence))))


def _mcse(joint: Floats, share: float) -> float:
    """Return the Monte Carlo error of the sum over rows of -log E[1 / p], by the influence of every draw on it."""
    inverse = np.exp(joint.min(axis=0) - joint)
    influence = (inverse / inverse.mean(axis=0)).sum(axis=1)
    return float(influence.std() / np.sqrt(share * len(influence)))


def _by_variable(table: pd.DataFrame, of_variables: Mapping[str, Mapping[str, _OfVariable]]) -> pd.DataFrame:
    best, records = str(table.index[0]), []
    for variable, of_best in of_variables[best].items():
        for model in table.index:
            own = of_variables[model][variable]
            apart = own.elpd - of_best.elpd
            records.append(
                {
                    "variable": variable,
                    "model": model,
                    "elpd": float(own.elpd.sum()),
                    "elpd_diff": float(apart.sum()),
                    "dse": float(np.sqrt(len(apart) * apart.var())),
                    "mcse": 0.0 if model == best else float(np.hypot(own.mcse, of_best.mcse)),
                }
            )
    return pd.DataFrame(records)


def _n_rows(found: "Mapping[str, ELPDData]") -> int:
    return int(next(iter(found.values())).n_data_points)
