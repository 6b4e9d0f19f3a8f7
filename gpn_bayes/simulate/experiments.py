"""Experiments in simulated tables: some variables are changed, and the others respond by unchanged mechanisms."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import check_count, did_you_mean, listed, shown
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data.interventions import SEPARATOR, names_of

TARGET_COLUMN = "target"
OBSERVED = ""
_WORDS = ("shift", "noise")

type Values = NDArray[Any]
# What a variable becomes in an experiment: from the values that its mechanism gives, those of the observed rows, and a
# source of randomness.
type Change = Callable[[Values, Values, np.random.Generator], Values]
# Rows of all variables, drawn parents first. A variable takes the values that its mechanism gives after they have gone
# through the second argument, which also takes the place of the variable.
type Draw = Callable[[int, Callable[[int, Values], Values]], Values]


class Experiment(NamedTuple):
    """An experiment.

    Attributes
    ----------
    label : str
        Its targets, joined by ";".
    n_rows : int
        Number of rows.
    changes : dict of int to callable
        What becomes of each target, by its place among the variables.
    """

    label: str
    n_rows: int
    changes: dict[int, Change]


def observed_rows(n_rows: int | Mapping[Any, int], interventions: Mapping[Any, Any] | None) -> int:
    """Return the number of observed rows that a user asks for, checked.

    Examples
    --------
    >>> observed_rows({"": 100, "mek": 20}, {"mek": 2})
    100
    """
    if isinstance(n_rows, Mapping):
        if interventions is None:
            raise ValueError(f"n_rows must be a number where there are no interventions; received {shown(n_rows)}")
        if OBSERVED not in n_rows:
            raise ValueError(
                f"n_rows must hold the number of observed rows, under {OBSERVED!r}; received {shown(n_rows)}"
            )
        n_rows = n_rows[OBSERVED]
    check_count("n_rows", n_rows, 1)
    return n_rows


def read_experiments(
    names: Sequence[Hashable],
    n_rows: int | Mapping[Any, int],
    interventions: Mapping[Any, Any] | None,
    read_change: Callable[[int, Any], Change],
) -> list[Experiment]:
    """Return the experiments that a user asks for, checked.

    Parameters
    ----------
    names : sequence
        The variables.
    n_rows : int or mapping
        Number of rows of each experiment, or of all of them.
    interventions : mapping, optional
        What is done, by target: a variable, or several joined by ";".
    read_change : callable
        Checks what is to be done to the variable at a place, and returns it as a function.

    Examples
    --------
    >>> read_change = lambda place, done: number_change("mek", 9, done)
    >>> (experiment,) = read_experiments(["raf", "mek"], 9, {"mek": 2}, read_change)
    >>> experiment.label, experiment.n_rows, list(experiment.changes)
    ('mek', 9, [1])
    """
    if interventions is None:
        return []
    if not isinstance(interventions, Mapping) or not interventions:
        raise ValueError(
            f"interventions must map one variable or more to what is done to it; received {shown(interventions)}"
        )
    if any(str(name) == TARGET_COLUMN for name in names):
        raise ValueError(
            f"interventions add a column {TARGET_COLUMN!r}, so no variable may have this name; received one that does"
        )
    targets = {key: _targets(key, names) for key in interventions}
    rows = n_rows if isinstance(n_rows, Mapping) else dict.fromkeys(interventions, n_rows)
    if rows.keys() - {OBSERVED} != interventions.keys():
        keys = ", ".join(repr(key) for key in interventions)
        raise ValueError(f"n_rows must be of {OBSERVED!r} and of all interventions, {keys}; received {shown(n_rows)}")
    experiments = []
    for key, done in interventions.items():
        check_count(f"n_rows of {key!r}", rows[key], 1)
        label = SEPARATOR.join(str(names[place]) for place in targets[key])
        experiments.append(Experiment(label, rows[key], {place: read_change(place, done) for place in targets[key]}))
    return experiments


def _targets(key: Any, names: Sequence[Hashable]) -> list[int]:
    """Return the places of the variables that a key of `interventions` names."""
    texts = [str(name) for name in names]
    given = [str(key)] if key in names else names_of(key)
    if not given:
        raise ValueError(f"interventions must be on variables; received {shown(key)}, which names none")
    for name in given:
        if name not in texts:
            raise ValueError(f"interventions must be on variables; received {shown(name)}, not one of {listed(texts)}")
        if names_of(name) != [name]:
            raise ValueError(
                f"the name of a target must have no {SEPARATOR!r} and no spaces around it; received {shown(name)}"
            )
    if len(set(given)) < len(given):
        raise ValueError(f"the targets of an experiment must differ; received {shown(key)}")
    return [texts.index(name) for name in given]


def draw_rows(draw: Draw, n_rows: int, experiments: Sequence[Experiment], rng: np.random.Generator) -> Values:
    """Return the observed rows, and below them those of the experiments.

    The observed rows are drawn first, so that experiments don't alter them.

    Parameters
    ----------
    draw : callable
        Draws rows.
    n_rows : int
        Number of observed rows.
    experiments : sequence of Experiment
        The experiments.
    rng : Generator
        Source of randomness of what is done to targets.
    """
    observed = draw(n_rows, lambda _, values: values)
    if not experiments:
        return observed

    def rows_of(experiment: Experiment) -> Values:
        def changed(place: int, values: Values) -> Values:
            change = experiment.changes.get(place)
            return values if change is None else change(values, observed[:, place], rng)

        return draw(experiment.n_rows, changed)

    return np.concatenate([observed, *map(rows_of, experiments)])


def add_targets(table: pd.DataFrame, n_rows: int, experiments: Sequence[Experiment]) -> pd.DataFrame:
    """Return the table with a last column that names the targets of every row, if there are experiments."""
    if not experiments:
        return table
    labels = [OBSERVED] * n_rows
    for experiment in experiments:
        labels += [experiment.label] * experiment.n_rows
    return table.assign(**{TARGET_COLUMN: labels})


def number_change(name: Hashable, n_rows: int, done: Any) -> Change:
    """Return what is done to a variable of numbers, as a function.

    Parameters
    ----------
    name : hashable
        The variable, for messages.
    n_rows : int
        Number of observed rows.
    done : float, {"shift", "noise"} or callable
        As in `simulate.linear`.

    Examples
    --------
    >>> shift = number_change("mek", 3, "shift")
    >>> shift(np.array([5.0, 6.0]), np.array([2.0, 4.0, 6.0]), np.random.default_rng(1)).tolist()
    [7.0, 8.0]
    """
    if callable(done):
        return lambda values, _, rng: _numbers(name, done(values.copy(), rng), len(values))
    if isinstance(done, str) and done in _WORDS:
        if n_rows < 2:
            raise ValueError(
                f"{done!r} takes the standard deviation from two observed rows or more; received n_rows = {n_rows}"
            )
        return _shift if done == "shift" else _normal_noise
    if isinstance(done, bool) or not isinstance(done, Real) or not math.isfinite(done):
        words = ", ".join(map(repr, _WORDS))
        raise ValueError(
            f"an intervention must be a finite number, {words} or a function; received {shown(done)} for {str(name)!r}"
            f"{did_you_mean(done, _WORDS)}"
        )
    return lambda values, _observed, _rng: np.full(len(values), float(done))


def _shift(values: Values, observed: Values, _: np.random.Generator) -> Values:
    moved: Floats = values + observed.std(ddof=1)
    return moved


def _normal_noise(values: Values, observed: Values, rng: np.random.Generator) -> Values:
    return rng.normal(observed.mean(), observed.std(ddof=1), len(values))


def _numbers(name: Hashable, returned: Any, n_rows: int) -> Floats:
    """Check the numbers that a user's function returned."""
    rule = f"the function in interventions must return a finite number for each of the {n_rows} rows"
    try:
        values: Floats = np.asarray(returned, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{rule}; that of {str(name)!r} returned something else") from None
    if values.shape != (n_rows,):
        raise ValueError(f"{rule}; that of {str(name)!r} returned shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{rule}; that of {str(name)!r} returned {values[~np.isfinite(values)][0]}")
    return values


def level_change(name: str, levels: Sequence[str], done: Any) -> Change:
    """Return what is done to a variable with levels, as a function of their codes.

    Parameters
    ----------
    name : str
        The variable, for messages.
    levels : sequence of str
        Its levels.
    done : level, "noise" or callable
        As in `DiscreteNetwork.sample`.

    Examples
    --------
    >>> codes = np.array([0, 0, 1])
    >>> level_change("cough", ["yes", "no"], "no")(codes, codes, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    if callable(done):
        labels = np.array(levels, dtype=object)
        return lambda values, _, rng: _codes(name, levels, done(labels[values], rng), len(values))
    if str(done) in levels:
        code = list(levels).index(str(done))
        return lambda values, _observed, _rng: np.full(len(values), code)
    if done == "noise":
        return lambda values, _, rng: rng.integers(len(levels), size=len(values))
    why = ": a level can't be shifted" if done == "shift" else did_you_mean(done, (*levels, "noise"))
    raise ValueError(
        f"an intervention must be a level ({listed(levels)}), 'noise' or a function; received {shown(done)} for "
        f"{name!r}{why}"
    )


def _codes(name: str, levels: Sequence[str], returned: Any, n_rows: int) -> Ints:
    """Check the levels that a user's function returned, and return their codes."""
    rule = f"the function in interventions must return a level ({listed(levels)}) for each of the {n_rows} rows"
    if np.shape(returned) != (n_rows,):
        raise ValueError(f"{rule}; that of {name!r} returned shape {np.shape(returned)}")
    texts = pd.Index([str(level) for level in returned])
    codes = pd.Index(levels).get_indexer(texts)
    if (codes < 0).any():
        raise ValueError(f"{rule}; that of {name!r} returned {shown(texts[codes < 0][0])}")
    return codes.astype(np.int64)
