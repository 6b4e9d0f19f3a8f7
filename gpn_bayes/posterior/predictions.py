"""What new rows are like, and how probable: averaged over DAGs and over the parameters of their equations."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice, check_count, check_share
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.posterior import densities
from gpn_bayes.posterior.draws import CURVE_DRAWS, Chosen, Draws, choose
from gpn_bayes.posterior.effect import weighted_quantiles
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.outcomes import do, drawn_variable, replicated, resampled, with_levels
from gpn_bayes.scores.densities import read_rows, values_of
from gpn_bayes.scores.equations import log_mean

if TYPE_CHECKING:
    import xarray as xr

# Numbers of all draws that are held at a time.
_CHUNK = 20_000_000
# Values of a variable at which its density is computed: over all that it could be, then where it is likely.
_WIDE, _NARROW = 129, 65
# What lies below this share of the highest density isn't looked at.
_NEGLIGIBLE = 1e-8
# Tails are heavy where 98% of a variable lies in less of that range; how many values are then placed anew, how often.
_BULK, _HEAVY, _HEAVY_ROUNDS = 0.25, 513, 4


def log_predictive(post: Draws, rows: Any, *, draws: int | None = None, progressbar: bool = True) -> "xr.Dataset":
    """Return the log density of new rows, averaged over DAGs with their parameters integrated out.

    BGe and CG: each number is t distributed given its parents. Gaussian processes: normal given the
    hyperparameters, of which draws are averaged over, or with Student t noise, t distributed given hyperparameters
    and functions. Categories: log probabilities. Densities are in units of the table, so that posteriors under
    different scores of the same columns can be compared on rows that none of them has seen.

    Parameters
    ----------
    rows : DataFrame, Series or mapping
        New rows, with a column for every variable; further columns are left aside. They are taken as merely
        observed, also where some rows behind the posterior come from experiments.
    draws : int, optional
        Over how many DAGs to average; all by default, and 500 under Gaussian processes, whose densities take long.
    progressbar : bool, default True
        Whether Gaussian processes show progress.

    Returns
    -------
    xarray.Dataset
        `log_density` of each ``row``, with its Monte Carlo standard error `mcse`; and `log_density_given_parents`
        (``row``, ``variable``), that of each variable given its parents. Both are logarithms of averages over
        DAGs, so that the latter don't add up to the former.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data[:800], score="bge", draws=500, random_seed=1, progressbar=False)
    >>> found = post.log_predictive(data[800:])
    >>> found.sizes["row"], round(float(found.log_density.mean()), 1)
    (53, -4.4)
    """
    import xarray as xr

    scorer = scorer_of(post, "predictions")
    table = read_rows(rows, post.names)
    values, chosen = values_of(table, scorer), _some(post, draws)
    found = densities.of_new_rows(post, values, chosen.places, progressbar)
    step = max(1, _CHUNK // found.places.size)
    parts = [_averaged(post, found, slice(begin, begin + step), chosen) for begin in range(0, len(values), step)]
    density, mcse, given = (np.concatenate(part) for part in zip(*parts, strict=True))
    return xr.Dataset(
        {
            "log_density": ("row", density),
            "mcse": ("row", mcse),
            "log_density_given_parents": (("row", "variable"), given),
        },
        coords={"row": table.index.to_numpy(), "variable": list(post.names)},
    )


def predict(
    post: Draws,
    rows: Any,
    variable: Hashable,
    *,
    given: str = "parents",
    probability: float = 0.9,
    draws: int | None = None,
    random_seed: int = 0,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Predict a variable of new rows from the others, averaged over DAGs and their parameters.

    Parameters
    ----------
    rows : DataFrame, Series or mapping
        New rows, with a column for every other variable, taken as merely observed.
    variable : str or int
        What to predict; its own column isn't read.
    given : {"parents", "all"}
        What is known: its parents, whichever these are in a DAG, or all other variables, its effects among them.
    probability : float, default 0.9
        That of the interval between `lower` and `upper`.
    draws : int, optional
        Over how many DAGs to average; all by default, and 500 under Gaussian processes.
    random_seed : int, default 0
        Where the parameters and the noise come from.
    progressbar : bool, default True
        Whether Gaussian processes show progress.

    Returns
    -------
    DataFrame
        A row for each: `mean`, `sd`, `lower` and `upper` of the variable, noise included, in units of the table; or
        the probability of each of its levels.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data[:800], score="bge", draws=500, random_seed=1, progressbar=False)
    >>> found = post.predict(data[800:].drop(columns="akt"), "akt", given="all")
    >>> held = data["akt"][800:].between(found["lower"], found["upper"])
    >>> found.columns.tolist(), bool(held.mean() > 0.8)
    (['mean', 'sd', 'lower', 'upper'], True)
    """
    check_choice("given", given, ("parents", "all"))
    check_share("probability", probability, ends=False)
    scorer = scorer_of(post, "predictions")
    node = graphs.node_index(variable, post.names)
    known = read_rows(rows, [name for name in post.names if name != post.names[node]])
    is_category = bool(scorer.categories[node])
    blank = scorer.levels[node][0] if is_category else 0.0
    table = known.assign(**{post.names[node]: blank})[list(post.names)]
    values, chosen = values_of(table, scorer), _some(post, draws)
    if is_category:
        return _levels(post, values, node, scorer.levels[node], given, chosen, progressbar).set_index(table.index)
    tails = (0.5 * (1 - probability), 0.5 * (1 + probability))
    rng = np.random.default_rng([random_seed, len(chosen.places)])
    drawn = drawn_variable(post, chosen.places, values, node, random_seed, rng, progressbar)
    found = _of_draws(*drawn, chosen.weights.ravel(), tails)
    if given == "all":
        found = _on_grid(post, values, node, found, tails, chosen, progressbar)
    return found.set_index(table.index)


def sample_predictive(
    post: Draws, rows: int = 100, *, tables: int | None = None, random_seed: int = 0, progressbar: bool = True
) -> pd.DataFrame:
    """Draw new rows: each from a DAG and parameters of its own, or whole tables.

    Parameters
    ----------
    rows : int, default 100
        How many rows, or rows of each table.
    tables : int, optional
        Draw this many tables, each from a single DAG with a single draw of its parameters; rows are then indexed by
        ``table`` and ``row``.
    random_seed : int, default 0
        Where DAGs, parameters and noise come from.
    progressbar : bool, default True
        Whether Gaussian processes show progress.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.sample_predictive(3).shape, post.sample_predictive(50, tables=2).index.names
    ((3, 4), FrozenList(['table', 'row']))
    """
    check_count("rows", rows, 1)
    scorer = scorer_of(post, "predictions")
    if tables is None:
        return do(post, {}, draws=rows, random_seed=random_seed, progressbar=progressbar)
    check_count("tables", tables, 1)
    places = resampled(post.weights, tables, random_seed)
    drawn = replicated(post, places, rows, random_seed, progressbar)
    index = pd.MultiIndex.from_product([range(tables), range(rows)], names=["table", "row"])
    found = pd.DataFrame(drawn.reshape(-1, len(post.names)), index=index, columns=list(post.names))
    return with_levels(found, scorer)


def _averaged(post: Draws, found: densities.RowDensities, rows: slice, chosen: Chosen) -> tuple[Floats, Floats, Floats]:
    """Return log densities of some rows, their errors, and those of each variable, averaged over DAGs."""
    joint = found.joint(rows)
    top = joint.max(axis=0)
    moments = post._drawn_moments(np.exp(joint - top), *chosen)
    log_share = np.log(np.maximum(chosen.weights.ravel(), np.finfo(float).tiny))[:, None]
    given = [log_mean(found.by_set[own, rows], log_share) for own in found.places.T]
    return top + np.log(moments.value), moments.mcse / moments.value, np.array(given).T


def _some(post: Draws, draws: int | None) -> Chosen:
    """Return the draws to average over: by default all, but 500 where densities take long."""
    few = draws is None and not scorer_of(post, "predictions").closed_form
    return choose(post, CURVE_DRAWS if few else draws)


def _levels(
    post: Draws, values: Ints, node: int, levels: tuple[Any, ...], given: str, chosen: Chosen, progressbar: bool
) -> pd.DataFrame:
    """Return the probabilities of a variable's levels in rows."""
    codes = np.broadcast_to(np.arange(len(levels)), (len(values), len(levels)))
    found = _densities_at(post, values, node, codes, given, chosen, progressbar)
    shares = np.exp(found - found.max(axis=1, keepdims=True))
    return pd.DataFrame(shares / shares.sum(axis=1, keepdims=True), columns=[str(level) for level in levels])


def _densities_at(
    post: Draws, values: np.ndarray, node: int, points: np.ndarray, given: str, chosen: Chosen, progressbar: bool
) -> Floats:
    """Return log densities of rows with some values of a variable, (row, value): its own, or of whole rows."""
    many = np.repeat(values, points.shape[1], axis=0)
    many[:, node] = points.ravel()
    found = densities.of_new_rows(post, many, chosen.places, progressbar)
    log_share = np.log(np.maximum(chosen.weights.ravel(), np.finfo(float).tiny))[:, None]
    step = max(1, _CHUNK // len(found.places))
    parts = []
    for begin in range(0, len(many), step):
        some = slice(begin, begin + step)
        own = found.by_set[found.places[:, node], some] if given == "parents" else found.joint(some)
        parts.append(log_mean(own, log_share))
    return np.concatenate(parts).reshape(points.shape)


def _on_grid(
    post: Draws,
    values: Floats,
    node: int,
    start: pd.DataFrame,
    tails: tuple[float, float],
    chosen: Chosen,
    progressbar: bool,
) -> pd.DataFrame:
    """Return mean, sd and interval of a variable given all others: p(row) as a function of it, normalised.

    Computed at values from far below to far above what its parents say, then at those where it is likely. Where
    tails are heavy, most of these lie in the tails, and values are then placed by the probability between them.
    """
    reach = 8 * start["sd"].to_numpy()
    lowest, highest = (start["mean"].to_numpy() + sign * reach for sign in (-1, 1))
    for count in (_WIDE, _WIDE, _NARROW):
        points = np.linspace(lowest, highest, count, axis=1)
        found = _densities_at(post, values, node, points, "all", chosen, progressbar)
        likely = found > found.max(axis=1, keepdims=True) + np.log(_NEGLIGIBLE)
        first, last = likely.argmax(axis=1), count - 1 - likely[:, ::-1].argmax(axis=1)
        every = np.arange(len(points))
        lowest, highest = points[every, np.maximum(first - 1, 0)], points[every, np.minimum(last + 1, count - 1)]
    table = pd.DataFrame([_of_density(*row, tails) for row in zip(points, found, strict=True)])
    heavy = np.array([_is_heavy(*row) for row in zip(points, found, strict=True)])
    if heavy.any():
        points, found = points[heavy], found[heavy]
        for _ in range(_HEAVY_ROUNDS):
            points = np.array([_closer(*row) for row in zip(points, found, strict=True)])
            found = _densities_at(post, values[heavy], node, points, "all", chosen, progressbar)
        table[heavy] = [list(_of_density(*row, tails).values()) for row in zip(points, found, strict=True)]
    return table


def _shares(points: Floats, log_densities: Floats) -> tuple[Floats, Floats]:
    """Return the probability of each of some ascending values, and of all that are below."""
    shares = np.exp(log_densities - log_densities.max()) * np.gradient(points)
    shares /= shares.sum()
    # Each value stands for its surroundings, half a step to either side.
    return shares, np.cumsum(shares) - 0.5 * shares


def _of_density(points: Floats, log_densities: Floats, tails: tuple[float, float]) -> dict[str, float]:
    """Return mean, sd and interval of a variable from its log density at some values, of any scale.

    Examples
    --------
    >>> points = np.linspace(-8, 8, 129)
    >>> found = _of_density(points, -0.5 * points**2, (0.05, 0.95))
    >>> {name: round(value, 2) + 0.0 for name, value in found.items()}
    {'mean': 0.0, 'sd': 1.0, 'lower': -1.65, 'upper': 1.65}
    """
    shares, below = _shares(points, log_densities)
    mean = float(shares @ points)
    lower, upper = np.interp(tails, below, points)
    sd = float(np.sqrt(shares @ (points - mean) ** 2))
    return {"mean": mean, "sd": sd, "lower": float(lower), "upper": float(upper)}


def _is_heavy(points: Floats, log_densities: Floats) -> bool:
    """Tell whether nearly all of a density lies in a small part of the range in which it isn't negligible.

    Examples
    --------
    >>> points = np.linspace(-100, 100, 129)
    >>> _is_heavy(points, -1.5 * np.log1p(points**2)), _is_heavy(points, -(points**2) / 600)
    (True, False)
    """
    low, high = np.interp([0.01, 0.99], _shares(points, log_densities)[1], points)
    return bool(high - low < _BULK * np.ptp(points))


def _closer(points: Floats, log_densities: Floats) -> Floats:
    """Return values of which half lie evenly by the probability between them, and half over the whole range."""
    below = _shares(points, log_densities)[1]
    even, by_probability = ((own - own[0]) / np.ptp(own) for own in (points, below))
    return np.interp(np.linspace(0, 1, _HEAVY), 0.5 * (even + by_probability), points)


def _of_draws(
    expected: Floats, sigma: Floats, drawn: Floats, weights: Floats, tails: tuple[float, float]
) -> pd.DataFrame:
    """Return mean, sd and interval of expected values, (draw, row), with noise, and drawn ones."""
    mean = np.average(expected, axis=0, weights=weights)
    variance = np.average((expected - mean) ** 2 + sigma**2, axis=0, weights=weights)
    lower, upper = weighted_quantiles(drawn, [weights], tails)[0]
    return pd.DataFrame({"mean": mean, "sd": np.sqrt(variance), "lower": lower, "upper": upper})
