"""Fitted functions: how a variable depends on each of its parents, averaged over the parent sets that were drawn."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import ndtr

from gpn_bayes import graphs
from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_count, check_flag, check_share, shown
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset, check_known, read_complete
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.queries import edge_probabilities, parent_set_probabilities
from gpn_bayes.scores.base import Scorer, lacking
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.gp.components import components
from gpn_bayes.scores.gp.laplace import log_masses
from gpn_bayes.scores.gp.score import GP, GPScorer
from gpn_bayes.scores.registry import find

# A parent's curve is averaged over the most probable parent sets that contain it: those that together hold this share
# of their probability, and at most this many.
_SHARE, _MOST_SETS = 0.99, 40
_BISECTIONS = 50
# A mode with a smaller share of its parent set's probability than this is left out.
_NEGLIGIBLE = 1e-3
_LINES = ("node", "parent", "edge_probability", "x", "mean", "sd", "lower", "upper")
_POINTS = ("node", "parent", "x", "y", "adjusted")
# What the settings of Gaussian processes must be for their functions to be drawn as curves.
_NEEDED = {"noise": "normal", "equations": "curved"}
# Preparing the rows takes longer than a variable's curves: done once for a posterior, where they or the score are
# given by hand.
_scorers: WeakKeyDictionary[Draws, Scorer] = WeakKeyDictionary()


class Curves(NamedTuple):
    """The fitted functions of one variable.

    Attributes
    ----------
    lines : DataFrame
        Columns `node`, `parent`, `edge_probability`, `x` (a value of the parent; of a category, a level), and of the
        function there, in units of the node, `mean`, `sd`, `lower` and `upper`.
    points : DataFrame
        Columns `node`, `parent`, `x`, `y`, which are the rows of the data, and `adjusted`: y less what the parent's
        companions add to it, on average.
    categories : tuple of str
        The parents that are categories, whose `x` are levels.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> x = np.random.default_rng(1).uniform(-3, 3, 60)
    >>> table = pd.DataFrame({"x": x, "y": np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=60)})
    >>> score = gpn.scores.GP(estimator="laplace")
    >>> post = gpn.sample(table, score=score, draws=50, random_seed=1, progressbar=False)
    >>> curves = fitted_curves(post, "y")
    >>> curves.lines.shape, curves.points.columns.tolist()
    ((100, 8), ['node', 'parent', 'x', 'y', 'adjusted'])
    """

    lines: pd.DataFrame
    points: pd.DataFrame
    categories: tuple[str, ...] = ()


class _Fit(NamedTuple):
    """What one parent set, at one mode of its hyperparameters, says: a weight, and each parent's part."""

    weight: float
    parts: dict[int, Any]


def fitted_curves(
    post: Draws,
    node: Hashable,
    data: Any = None,
    score: GP | None = None,
    *,
    parents: Sequence[Hashable] | None = None,
    threshold: float = 0.05,
    probability: float = 0.9,
    points: int = 100,
    centred: bool = True,
) -> Curves:
    """Return how a variable depends on each of its parents, by the Gaussian processes behind a posterior.

    The function of a parent is its own additive part of the node, given the data: a curve over a number, a value for
    each level of a category. It is averaged over the parent sets that were drawn and contain the parent, weighted by
    their probability (the most probable sets, up to 99 % of it or 40), and over the modes of their hyperparameters,
    each with the probability around it. Hyperparameters stand at these modes, so with few rows bands are somewhat too
    narrow. With the interaction kernel, what pairs of parents add isn't part of it.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    node : str or int
        The variable.
    data : DataFrame, ndarray, path or Dataset, optional
        The table that the posterior is of; only a posterior that was loaded from a file needs it.
    score : GP, optional
        The Gaussian processes to fit; by default those that the posterior was drawn under.
    parents : sequence of str or int, optional
        The parents; by default all whose edge has at least the probability `threshold`, the most probable first.
    threshold : float, default 0.05
        See `parents`.
    probability : float, default 0.9
        That the function lies between `lower` and `upper`, at every single point.
    points : int, default 100
        At how many values of a parent that is a number, from its smallest to its largest.
    centred : bool, default True
        Whether every function has the node's mean as its mean over the rows. The data don't tell the level of a
        single part; with False it is left to the prior.

    Returns
    -------
    Curves
        `lines` and `points`, in the units of the data.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> x = np.random.default_rng(1).uniform(-3, 3, 80)
    >>> y = np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=80)
    >>> post = gpn.sample(pd.DataFrame({"x": x, "y": y}), score="gp", draws=50, random_seed=1, progressbar=False)
    >>> lines = fitted_curves(post, "y").lines
    >>> bool(np.abs(lines["mean"] - np.sin(lines["x"])).max() < 0.3)
    True
    """
    check_share("probability", probability, ends=False)
    check_share("threshold", threshold)
    check_flag("centred", centred)
    check_count("points", points, 2)
    table = _table_of(post, data)
    gp = _gp_of(post, score)
    for setting, needed in _NEEDED.items():
        if (received := getattr(gp, setting)) != needed:
            raise ValueError(
                f"curves need {setting}={needed!r}; received GP({setting}={received!r}): give score=GP(), or see "
                "post.effect(cause, outcome).plot()"
            )
    target = graphs.node_index(node, post.names)
    chosen = _parents_of(post, target, parents, threshold)
    categories = _scorer_of(post, gp, table).categories
    if categories[target]:
        raise ValueError(
            f"curves are of numbers; {post.names[target]!r} is a category: post.effect(cause, "
            f"{post.names[target]!r}).plot() shows the probabilities of its levels"
        )
    sets = _sets_of(post, target, chosen)
    scorer, rows = _rows_of(_scorer_of(post, gp, table), target, sets, table)
    columns = scorer.columns_of_levels
    numbers = [p for p in chosen if p not in columns]
    grids = {p: np.linspace(table.values[:, p].min(), table.values[:, p].max(), points) for p in numbers}
    weights = {s: weight for own in sets.values() for s, weight in own.items()}
    centres, scales = _units(gp, table)
    scaled = {p: (grid - centres[p]) / scales[p] for p, grid in grids.items()}
    # Levels stand where the score has them.
    scaled |= {p: columns[p].inside[columns[p].occurring] for p in chosen if p in columns}
    fits = _fit_sets(scorer, target, weights, scaled, centred)
    edges = edge_probabilities(post).to_numpy()[:, target]
    y = table.values[rows, target]
    lines, dots = [], []
    for p in chosen:
        own = [fit for fit in fits if tuple(fit.parts) in sets[p]]
        names = {"node": post.names[target], "parent": post.names[p]}
        moments = _averaged(own, p, probability, centres[target], scales[target])
        levels = _levels_of(scorer, p) if p in columns else None
        at = grids[p] if levels is None else pd.Series(levels, dtype=object)
        lines.append(pd.DataFrame(names | {"edge_probability": float(edges[p]), "x": at} | moments))
        adjusted = y - scales[target] * _companions(own, p)
        held = table.values[rows, p] if levels is None else pd.Series(levels[columns[p].levels], dtype=object)
        dots.append(pd.DataFrame(names | {"x": held, "y": y, "adjusted": adjusted}))
    named = tuple(post.names[p] for p in chosen if p in columns)
    return Curves(_joined(lines, _LINES), _joined(dots, _POINTS), named)


def _levels_of(scorer: GPScorer, parent: int) -> np.ndarray:
    """Return the names of the levels of a category that occur."""
    occurring = scorer.columns_of_levels[parent].occurring
    return np.array([scorer.levels[parent][code] for code in occurring], dtype=object)


def curves(post: Draws, node: Hashable, data: Any = None, score: Any = None, **settings: Any) -> pd.DataFrame:
    """Return how a variable depends on each of its parents; see `gpn_bayes.posterior.curves.fitted_curves`.

    Parameters
    ----------
    node : str or int
        The variable.
    data : DataFrame, ndarray, path or Dataset, optional
        The table that the posterior is of; only a posterior that was loaded from a file needs it.
    score : GP, optional
        The Gaussian processes to fit; by default those that the posterior was drawn under.
    **settings
        `parents`, `threshold`, `probability`, `points` and `centred` of `gpn_bayes.posterior.curves.fitted_curves`.

    Returns
    -------
    DataFrame
        Columns `node`, `parent`, `edge_probability`, `x`, `mean`, `sd`, `lower` and `upper`, in the data's units.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import gpn_bayes as gpn
    >>> x = np.random.default_rng(1).uniform(-3, 3, 60)
    >>> y = np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=60)
    >>> score = gpn.scores.GP(estimator="laplace")
    >>> post = gpn.sample(pd.DataFrame({"x": x, "y": y}), score=score, draws=50, random_seed=1, progressbar=False)
    >>> post.curves("y", points=5)[["parent", "x", "mean"]].round(1)
      parent    x  mean
    0      x -2.8  -0.4
    1      x -1.4  -1.0
    2      x  0.0   0.1
    3      x  1.5   1.1
    4      x  2.9   0.1
    """
    return fitted_curves(post, node, data, score, **settings).lines


def has_curves(post: Draws, node: int, data: Any = None) -> bool:
    """Tell whether a variable of a posterior under Gaussian processes is a number with normal noise, which has curves.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    node : int
        The variable.
    data : DataFrame, ndarray, path or Dataset, optional
        As for `fitted_curves`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> x = np.random.default_rng(1).normal(size=40)
    >>> table = pd.DataFrame({"x": x, "ill": (x > 0.3).astype(int)})
    >>> score = gpn.scores.GP(estimator="laplace")
    >>> post = gpn.sample(table, score=score, draws=50, random_seed=1, progressbar=False)
    >>> has_curves(post, 0), has_curves(post, 1)
    (True, False)
    """
    table, gp = _table_of(post, data), _gp_of(post, None)
    return (
        all(getattr(gp, setting) == needed for setting, needed in _NEEDED.items())
        and not _scorer_of(post, gp, table).categories[node]
    )


def _joined(tables: list[pd.DataFrame], columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(columns))


def _table_of(post: Draws, data: Any) -> Dataset:
    """Return the rows behind a posterior."""
    if data is None and post.data is None:
        raise ValueError("curves need the rows, and this posterior was saved without them; give them as data=")
    table = read_complete(post.data if data is None else data).with_rows("curves need the rows")
    check_known(table, post.names, post.record.data_fingerprint)
    return table


def _gp_of(post: Draws, score: Any) -> GP:
    """Return the score that a posterior was drawn under, unless another is given."""
    if score is not None:
        if not getattr(score, "has_curves", False):
            raise ValueError(f"score must be a gpn_bayes.scores.GP; received {shown(score)}")
        return cast(GP, score)
    if not getattr(find(post.record.score_name), "has_curves", False):
        known = "the unknown score of this posterior" if post.record.score is None else post.record.score_name
        raise ValueError(f"{lacking('a curve', 'hyper_posterior', known)}: give score=gpn.scores.GP()")
    if isinstance(post.scorer, DagScorer):
        return cast(GP, post.scorer.score)
    with suppress(ValueError):
        if post.record.score is not None:
            return cast(GP, post.record.score.make())
    text = post.record.score_text("an unknown score")
    raise ValueError(f"curves need the score's settings, which this posterior doesn't have; give it as score= ({text})")


def _scorer_of(post: Draws, score: GP, table: Dataset) -> Scorer:
    own = post.scorer
    if isinstance(own, DagScorer) and own.score is score and own.data is table:
        return own.scorer
    known = _scorers.get(post)
    if known is None or known.score.fingerprint != score.fingerprint or known.data_fingerprint != table.fingerprint:
        known = _scorers[post] = score.bind(table)
    return known


def _rows_of(
    scorer: Scorer, target: int, sets: dict[int, dict[tuple[int, ...], float]], table: Dataset
) -> tuple[GPScorer, Ints]:
    """Return the scorer of the rows that tell how a node depends on its parents, and these rows.

    Where it isn't known which rows do, those that most probably do, given the most probable of its parent sets.
    """
    likeliest = max((weight, s) for own in sets.values() for s, weight in own.items())[1] if sets else ()
    part, rows = scorer.observed_part(target, likeliest)
    return cast(GPScorer, part), np.arange(table.n_rows)[rows]


def _parents_of(post: Draws, target: int, parents: Any, threshold: float) -> list[int]:
    """Return the parents to show."""
    column = edge_probabilities(post).iloc[:, target].to_numpy()
    if parents is None:
        return [int(p) for p in np.argsort(-column, kind="stable") if column[p] > 0 and column[p] >= threshold]
    if isinstance(parents, str):
        raise ValueError(f"parents must be a list of variables; received {shown(parents)}")
    chosen = [graphs.node_index(parent, post.names) for parent in parents]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"parents must name each variable once; received {shown(list(parents))}")
    drawn = {name for listed in parent_set_probabilities(post, target)["parents"] for name in listed}
    for p in chosen:
        if post.names[p] not in drawn:
            raise ValueError(f"a curve needs an edge that was drawn; {post.names[p]} -> {post.names[target]} wasn't")
    return chosen


def _sets_of(post: Draws, target: int, chosen: list[int]) -> dict[int, dict[tuple[int, ...], float]]:
    """Return for each parent the sets that its curve is averaged over, with their probabilities."""
    sets = parent_set_probabilities(post, target)
    places = {name: place for place, name in enumerate(post.names)}
    known = [tuple(sorted(places[name] for name in listed)) for listed in sets["parents"]]
    wanted = {}
    for parent in chosen:
        own = [(s, float(weight)) for s, weight in zip(known, sets["probability"], strict=True) if parent in s]
        held = np.cumsum([weight for _, weight in own])
        needed = int(np.searchsorted(held, _SHARE * held[-1])) + 1
        wanted[parent] = dict(own[: min(needed, _MOST_SETS)])
    return wanted


def _units(score: GP, table: Dataset) -> tuple[Floats, Floats]:
    """Return the zero and the unit of every column, as the score has them."""
    if not score.standardise:
        return np.zeros(len(table.names)), np.ones(len(table.names))
    return table.means(), table.spreads()


@one_blas_thread
def _fit_sets(
    scorer: GPScorer,
    target: int,
    sets: dict[tuple[int, ...], float],
    grids: dict[int, np.ndarray],
    centred: bool,
) -> list[_Fit]:
    """Return what every parent set says, at every mode of its hyperparameters that counts."""
    fits = []
    nowhere = np.empty(0)
    for parents, weight in sets.items():
        _, modes = scorer.hyper_posterior(target, parents)
        masses = log_masses(modes)
        # Where no mode has a normal approximation, their heights must do.
        masses = masses if np.isfinite(masses).any() else modes.heights
        shares = np.exp(masses - masses.max())
        for phi, share in zip(modes.points, shares / shares.sum(), strict=True):
            if share > _NEGLIGIBLE:
                places = [grids.get(p, nowhere) for p in parents]
                parts = components(scorer, target, parents, phi, places, centred)
                fits.append(_Fit(weight * share, dict(zip(parents, parts, strict=True))))
    return fits


def _averaged(fits: list[_Fit], parent: int, probability: float, level: float, scale: float) -> dict[str, np.ndarray]:
    """Return the moments and quantiles of a mixture of normal distributions, in the node's units."""
    weights = _shares(fits)
    means = np.array([fit.parts[parent].mean for fit in fits])
    sds = np.array([fit.parts[parent].sd for fit in fits])
    mean = weights @ means
    sd = np.sqrt(weights @ (sds**2 + (means - mean) ** 2))
    tail = 0.5 * (1 - probability)
    lower, upper = (_quantile(weights, means, sds, q) for q in (tail, 1 - tail))
    moved = {"mean": mean, "lower": lower, "upper": upper}
    functions = {name: level + scale * values for name, values in moved.items()}
    return {"mean": functions["mean"], "sd": scale * sd, "lower": functions["lower"], "upper": functions["upper"]}


def _quantile(weights: Floats, means: Floats, sds: Floats, q: float) -> Floats:
    """Return a quantile of a mixture of normal distributions at every point, by bisection."""
    low: Floats = (means - 10 * sds).min(axis=0)
    high: Floats = (means + 10 * sds).max(axis=0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        below = weights @ ndtr((middle - means) / sds) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _companions(fits: list[_Fit], parent: int) -> np.ndarray:
    """Return what the other parents add at the rows, averaged over the sets with a parent."""
    total = np.zeros(len(fits[0].parts[parent].at_rows))
    for weight, fit in zip(_shares(fits), fits, strict=True):
        for p, part in fit.parts.items():
            if p != parent:
                total += weight * part.at_rows
    return total


def _shares(fits: list[_Fit]) -> np.ndarray:
    weights = np.array([fit.weight for fit in fits])
    shares: Floats = weights / weights.sum()
    return shares
