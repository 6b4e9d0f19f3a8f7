"""Draws of all variables under interventions, and of what a row would have been."""

import warnings
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.equations import Changing, DrawnEquations, Interventions, Setting, levels_at
from gpn_bayes.posterior.impossible_pairs import assumption
from gpn_bayes.scores.base import Scorer

SHIFT = "shift"
_PACKAGE = (str(Path(__file__).parents[1]),)
_RULE = "an intervention is a number, ('shift', amount), a function of the values, or None; received {1} for {0!r}"
_LEVELS_RULE = "a category can only be set to one of its levels; received {1} for {0!r}"


def do(
    post: Draws,
    interventions: Mapping[Hashable, Any],
    *,
    draws: int = 1000,
    random_seed: int = 0,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Return draws of all variables under interventions: each row from another DAG and its parameters.

    Parameters
    ----------
    interventions : mapping
        What is done to variables, by name: a number or level that one is set to, whatever its parents are;
        ``("shift", amount)`` or a function of its values for a change of what its equation gives; None for nothing.
    draws : int, default 1000
        How many rows.
    random_seed : int, default 0
        For all randomness.
    progressbar : bool, default True
        Whether Gaussian processes, whose functions take long to draw, show their progress.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> rows = post.do({"erk": 6.0, "raf": ("shift", 1.0)}, draws=200)
    >>> rows.shape, rows["erk"].unique().tolist()
    ((200, 4), [6.0])
    """
    given, equations = _asked(post, interventions, draws, random_seed)
    _warn_of_unexamined(post)
    rng = np.random.default_rng([random_seed, draws])
    if equations.discrete:
        return _categories(post, equations, given, rng)
    done = _read(given, equations)
    _prepare(equations, progressbar)
    noise = rng.standard_normal((draws, len(post.names), 1))
    rows = [equations.run(k, equations.orders[k], done, noise[k]) for k in range(draws)]
    return _in_units(rows, equations)


def replicated(post: Draws, places: Ints, rows: int, random_seed: int, progressbar: bool) -> Floats:
    """Return a new table for each of some DAGs, with one draw of its parameters: (draw, row, variable).

    Categories are given by their codes.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    rows : int
        How many rows a table has.
    random_seed : int
        Where the parameters and the rows come from.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    equations = DrawnEquations(post, places, random_seed)
    rng = np.random.default_rng([random_seed, len(places), rows])
    tables = np.empty((len(places), rows, len(post.names)))
    if not equations.discrete:
        _prepare(equations, progressbar)
    for k, table in enumerate(tables):
        if equations.discrete:
            table[:] = _levels(equations, k, {}, rng.random((rows, len(post.names))))
        else:
            found = equations.run(k, equations.orders[k], {}, rng.standard_normal((len(post.names), rows)))
            table[:] = equations.centre + equations.scale * np.array([found[v] for v in range(len(post.names))]).T
    return tables


def replicated_variable(
    post: Draws, places: Ints, rows: np.ndarray, variable: int, random_seed: int, progressbar: bool
) -> Floats:
    """Return new values of one variable given its parents in each row, for each of some DAGs: (draw, row).

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    rows : ndarray of shape (row, variable)
        The rows, in units of the table, categories by their codes.
    variable : int
        Which variable.
    random_seed : int
        Where the parameters and the values come from.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    equations = DrawnEquations(post, places, random_seed)
    rng = np.random.default_rng([random_seed, len(places), variable])
    if equations.discrete:
        levels = [_level(equations, k, variable, rows, rng.random(len(rows))) for k in range(len(places))]
        return np.array(levels, dtype=float)
    if equations.categories[variable]:
        known = _standardised_columns(equations, rows)
        chances = (equations.chances(k, variable, known) for k in range(len(places)))
        return np.array([levels_at(own, rng.random(len(rows))) for own in chances], dtype=float)
    return drawn_variable(post, places, rows, variable, random_seed, rng, progressbar).values


class DrawnVariable(NamedTuple):
    """What a number is expected to be in each row, the standard deviation of its noise, and values, (draw, row).

    In units of the table; the noise is of shape (draw, 1) where it is the same in all rows.
    """

    expected: Floats
    sigma: Floats
    values: Floats


def drawn_variable(
    post: Draws,
    places: Ints,
    rows: Floats,
    variable: int,
    random_seed: int,
    rng: np.random.Generator,
    progressbar: bool,
) -> DrawnVariable:
    """Draw a number given its parents in each row; the parameters are those of `replicated_variable`."""
    equations = DrawnEquations(post, places, random_seed)
    equations.prepare(lambda _: [variable], progressbar and not equations.straight)
    known = _standardised_columns(equations, rows)
    expected = np.empty((len(places), len(rows)))
    sigma = np.empty((len(places), len(rows) if equations.categories.any() else 1))
    for k in range(len(places)):
        expected[k], sigma[k] = equations.expected(k, variable, known), equations.noise(k, variable, known)
    normal = rng.standard_normal(expected.shape)
    noise = np.array([equations.noise_from_normal(k, variable, own) for k, own in enumerate(normal)])
    centre, scale = equations.centre[variable], equations.scale[variable]
    expected, sigma = centre + scale * expected, scale * sigma
    return DrawnVariable(expected, sigma, expected + sigma * noise)


def _standardised_columns(equations: DrawnEquations, rows: Floats) -> dict[int, Floats]:
    """Return the columns of rows as equations take them, by variable."""
    return dict(enumerate(((rows - equations.centre) / equations.scale).T))


def counterfactual(
    post: Draws,
    row: Any,
    interventions: Mapping[Hashable, Any],
    *,
    draws: int = 1000,
    random_seed: int = 0,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Return what a row would have been under interventions: its own noise, kept, run through changed equations.

    This takes more for granted than `do`: that the noise of each equation belongs to the row and stays what it was
    whatever is done, which no experiment can show for a single row. A row doesn't tell the noise of a category: one
    that depends on what is changed has to be set too.

    Parameters
    ----------
    row : mapping, Series or sequence
        A value for every variable, in units of the table.
    interventions : mapping
        As for `do`.
    draws : int, default 1000
        How many DAGs, each with its parameters, to answer by: one row each.
    random_seed : int, default 0
        For all randomness.
    progressbar : bool, default True
        As for `do`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> unchanged = post.counterfactual(data.iloc[0], {"raf": data["raf"].iloc[0]}, draws=50)
    >>> bool(np.allclose(unchanged, data.iloc[[0]]))
    True
    """
    given, equations = _asked(post, interventions, draws, random_seed)
    if equations.discrete:
        raise ValueError("counterfactuals need numbers, whose noise a row tells; received categories")
    _warn_of_unexamined(post)
    observed = (_row(row, equations) - equations.centre) / equations.scale
    done = _read(given, equations)
    _check_identified(done, equations)
    _prepare(equations, progressbar)
    known = {v: observed[v : v + 1] for v in range(len(post.names))}
    # Categories that nothing is done to, and that depend on nothing of it, are what they were.
    unchanged: Interventions = {v: Setting(known[v]) for v in known if equations.categories[v]}
    whole = {**unchanged, **done}
    rows = []
    for k in range(draws):
        noise = np.empty((len(post.names), 1))
        for v in map(int, np.flatnonzero(~equations.categories)):
            # Abduction: what the equation leaves of the row.
            noise[v] = equations.normal_noise(k, v, known)
        rows.append(equations.run(k, equations.orders[k], whole, noise))
    return _in_units(rows, equations)


def _warn_of_unexamined(post: Draws) -> None:
    """Say of which pairs of variables an answer takes for granted that neither acts on the other."""
    for text in assumption(post.record, post.names):
        warnings.warn(f"answers take for granted: {text}", UserWarning, skip_file_prefixes=_PACKAGE)


def _check_identified(done: Interventions, equations: DrawnEquations) -> None:
    """Refuse to say what a category would have been: a row doesn't tell the noise behind its level."""
    for v in map(int, np.flatnonzero(equations.categories)):
        for cause in done:
            if v not in done and equations.ancestors[:, cause, v].any():
                name, changed = equations.names[v], equations.names[cause]
                raise ValueError(
                    f"a row doesn't tell the noise of a category; {name!r} depends on {changed!r} in some networks: "
                    f"set {name!r} too"
                )


def _asked(
    post: Draws, interventions: Mapping[Hashable, Any], draws: int, random_seed: int
) -> tuple[dict[int, Any], DrawnEquations]:
    """Return the interventions by variable, and the equations of the requested number of DAGs."""
    check_count("draws", draws, 1)
    if not isinstance(interventions, Mapping):
        raise ValueError(
            f"interventions must map variables to what is done to them, as in {{{post.names[0]!r}: 1.0}}; received "
            f"{shown(interventions)}"
        )
    given = {graphs.node_index(name, post.names): value for name, value in interventions.items()}
    return given, DrawnEquations(post, resampled(post.weights, draws, random_seed), random_seed)


def _prepare(equations: DrawnEquations, progressbar: bool) -> None:
    equations.prepare(lambda _: range(len(equations.names)), progressbar and not equations.straight)


def resampled(weights: Floats, draws: int, random_seed: int) -> Ints:
    """Return which of the posterior's draws stand for all of them, by systematic resampling over all chains.

    Parameters
    ----------
    weights : ndarray of shape (chain, draw)
        The weights of all draws.
    draws : int
        How many to choose.
    random_seed : int
        Where the one random number comes from.
    """
    below = np.cumsum(weights.ravel())
    offset = np.random.default_rng(random_seed).random()
    places: Ints = np.searchsorted(below, (np.arange(draws) + offset) / draws * below[-1], side="right")
    return np.minimum(places, len(below) - 1)


def _read(given: Mapping[int, Any], equations: DrawnEquations) -> Interventions:
    """Return interventions in standardised units."""
    done: dict[int, Setting | Changing] = {}
    for v, value in given.items():
        if value is None:
            continue
        centre, scale = float(equations.centre[v]), float(equations.scale[v])
        if equations.categories[v]:
            if callable(value) or isinstance(value, tuple):
                raise ValueError(_LEVELS_RULE.format(equations.names[v], shown(value)))
            done[v] = Setting(np.array([float(equations.scorer.level_code(v, value))]))
        elif callable(value):
            done[v] = Changing(_standardised(value, centre, scale))
        elif isinstance(value, tuple):
            if len(value) != 2 or value[0] != SHIFT or not _is_number(value[1]):
                raise ValueError(_RULE.format(equations.names[v], shown(value)))
            done[v] = Changing(partial(np.add, float(value[1]) / scale))
        elif _is_number(value):
            done[v] = Setting(np.array([(float(value) - centre) / scale]))
        else:
            raise ValueError(_RULE.format(equations.names[v], shown(value)))
    return done


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


def _standardised(function: Callable[[Floats], Any], centre: float, scale: float) -> Callable[[Floats], Floats]:
    """Return a function of values in units of the table as one of standardised values."""

    def changed(values: Floats) -> Floats:
        found = np.asarray(function(centre + scale * values), dtype=float)
        if found.shape not in ((), values.shape) or not np.isfinite(found).all():
            raise ValueError("an intervention's function must return a finite number for every value")
        standardised: Floats = (np.broadcast_to(found, values.shape) - centre) / scale
        return standardised

    return changed


def _row(row: Any, equations: DrawnEquations) -> Floats:
    """Return a row's values in the order of the variables, categories by their codes."""
    names = equations.names
    values = dict(row) if isinstance(row, Mapping | pd.Series) else dict(zip(names, np.ravel(row), strict=False))
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(f"a row must have a value for every variable; {', '.join(map(repr, missing))} not given")
    for v in np.flatnonzero(equations.categories):
        values[names[v]] = equations.scorer.level_code(int(v), values[names[v]])
    numbers = [values[name] for name in names]
    if not all(_is_number(value) for value in numbers):
        raise ValueError(f"a row's values must be finite numbers; received {shown(numbers)}")
    return np.array(numbers, dtype=float)


def _in_units(rows: list[dict[int, Floats]], equations: DrawnEquations) -> pd.DataFrame:
    table = np.array([[float(values[v][0]) for v in range(len(equations.names))] for values in rows])
    found = pd.DataFrame(equations.centre + equations.scale * table, columns=list(equations.names))
    return with_levels(found, equations.scorer)


def with_levels(table: pd.DataFrame, scorer: Scorer) -> pd.DataFrame:
    """Return drawn rows with the levels of categories in place of their codes.

    Parameters
    ----------
    table : DataFrame
        The rows, a column for every variable.
    scorer : Scorer
        The score, which knows the levels.
    """
    columns = {
        name: [own[int(code)] for code in table[name]]
        for name, own in zip(scorer.names, scorer.levels, strict=False)
        if own
    }
    return table.assign(**columns)


def _categories(
    post: Draws, equations: DrawnEquations, given: Mapping[int, Any], rng: np.random.Generator
) -> pd.DataFrame:
    """Return draws of categories, level by level down each DAG."""
    levels = equations.scorer.levels
    set_to = {v: equations.scorer.level_code(v, value) for v, value in given.items() if value is not None}
    chances = rng.random((len(equations), 1, len(post.names)))
    codes = np.concatenate([_levels(equations, k, set_to, chances[k]) for k in range(len(equations))])
    return pd.DataFrame(
        {name: [levels[v][code] for code in codes[:, v]] for v, name in enumerate(post.names)}, columns=list(post.names)
    )


def _levels(equations: DrawnEquations, k: int, set_to: Mapping[int, int], chances: Floats) -> Ints:
    """Return codes of levels, down one of the DAGs, from numbers between 0 and 1, both (row, variable)."""
    codes = np.empty(chances.shape, dtype=np.int64)
    for v in map(int, equations.orders[k]):
        codes[:, v] = set_to[v] if v in set_to else _level(equations, k, v, codes, chances[:, v])
    return codes


def _level(equations: DrawnEquations, k: int, v: int, codes: Ints, chances: Floats) -> Ints:
    """Return codes of one variable, given those of its parents in one of the DAGs, from numbers between 0 and 1."""
    own = equations.table(k, v)[tuple(codes[:, p] for p in equations.parents(k, v))]
    return levels_at(np.broadcast_to(own, (len(codes), own.shape[-1])), chances)
