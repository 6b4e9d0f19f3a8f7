"""Effects of setting a variable, averaged over drawn DAGs and drawn parameters."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, check_share, finite_number
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.posterior.draws import CURVE_DRAWS, Chosen, Draws, choose
from gpn_bayes.posterior.effect import Effect, weighted_quantiles
from gpn_bayes.posterior.equations import DrawnEquations, Setting
from gpn_bayes.posterior.impossible_pairs import assumption

if TYPE_CHECKING:
    import xarray as xr

_PACKAGE = (str(Path(__file__).parents[1]),)
# Repetitions of the noise behind a curve, in each DAG: a power of two, for the low-discrepancy points that they are.
_REPETITIONS = 256
# Entries of the largest stack of matrices that is inverted at a time.
_CHUNK = 20_000_000
# Variables of one sum over categories: numpy names no more.
_MOST_ANCESTORS = 52
# Points of the curves behind a table of all pairs, and repetitions.
_POINTS_OF_PAIRS, _REPETITIONS_OF_PAIRS = 9, 64


def effect(
    post: Draws,
    cause: Hashable,
    outcome: Hashable,
    *,
    to: Any = None,
    versus: Any = None,
    points: int = 25,
    draws: int | None = None,
    random_seed: int = 0,
    progressbar: bool = True,
) -> Effect:
    """Return the effect of setting one variable on another, averaged over DAGs and their parameters.

    Linear scores (BGe, Gaussian BIC): the total effect, the change of the outcome for each unit of the cause.
    Gaussian processes: the curve of the expected outcome over values of the cause, and its average slope. Scores of
    categories: the probabilities of the outcome's levels for each level of the cause. Tables of both (CG, BIC): of
    a number on a number the total effect, averaged over categories; of a category on a number the mean of the
    outcome at each level of the cause; on a category probabilities of its levels.

    Parameters
    ----------
    cause, outcome : str or int
        The variable that is set, and the one that is looked at.
    to, versus : float or level, optional
        Two values of the cause, in units of the table: the answer is then the change of the outcome from `versus`
        to `to`.
    points : int, default 25
        Of a curve: at how many values of the cause, from its smallest to its largest.
    draws : int, optional
        Over how many DAGs to average; all by default, and 500 for curves and for tables of numbers and categories.
    random_seed : int, default 0
        Where the parameters come from.
    progressbar : bool, default True
        Whether curves show their progress.

    Returns
    -------
    Effect
        `Effect.mean`, `Effect.sd`, `Effect.interval`, `Effect.draws`, and `Effect.probability` of any effect.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> effect = post.effect("erk", "akt")
    >>> round(effect.probability, 1), round(effect.mean, 1)
    (0.5, 0.4)
    >>> round(post.effect("erk", "akt", to=6.0, versus=4.0).mean / effect.mean, 6)
    2.0
    """
    i, j = graphs.node_pair(cause, outcome, post.names)
    if (to is None) != (versus is None):
        raise ValueError("a contrast needs both values, to= and versus=; received one of them")
    check_count("points", points, 2)
    return PairEffects(post, draws, random_seed).effect(i, j, to, versus, points, progressbar)


class PairEffects:
    """Effects of any number of pairs in the same networks, whose equations are drawn once for all of them.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    draws : int, optional
        Over how many DAGs to average; all by default, and 500 where effects are simulated.
    random_seed : int
        Where the parameters come from.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> pairs = PairEffects(post, None, 0)
    >>> pairs.quantity, pairs.effect(2, 3).mean == post.effect("erk", "akt").mean
    ('slope', True)
    """

    def __init__(self, post: Draws, draws: int | None, random_seed: int) -> None:
        self._post = post
        self._seed = random_seed
        self._chosen, self._equations = _drawn(post, draws, random_seed)

    def __len__(self) -> int:
        """Return the number of DAGs that are averaged over."""
        return len(self._equations)

    @property
    def quantity(self) -> str:
        """What effects are: "slope", "curve" or "table", or "mixed" where pairs differ; see `quantity_of`."""
        if self._equations.discrete:
            return "table"
        if self._equations.categories.any():
            return "mixed"
        return "slope" if self._equations.linear else "curve"

    def quantity_of(self, cause: int, outcome: int) -> str:
        """Return what the effect of one variable on another is, where no two values are compared; see `Effect`."""
        of_cause, of_outcome = self._equations.categories[[cause, outcome]]
        if of_outcome:
            return "table" if of_cause else "curves"
        if of_cause:
            return "means"
        return "slope" if self._equations.straight else "curve"

    @cached_property
    def _totals(self) -> Floats:
        return total_effects(self._equations)

    def effect(
        self,
        cause: int,
        outcome: int,
        to: Any = None,
        versus: Any = None,
        points: int = 25,
        progressbar: bool = False,
    ) -> Effect:
        """Return the effect of one variable on another, by their numbers; see `gpn_bayes.GraphPosterior.effect`."""
        question = _Question(self._post, cause, outcome, to, versus, self._equations, self._chosen)
        quantity = self.quantity_of(cause, outcome)
        if quantity == "table" and (self._equations.discrete or self._equations.straight):
            return _table(question)
        if quantity == "slope":
            linear = self._equations.linear
            slopes = self._totals[:, cause, outcome] if linear else _straight_slopes(question, self._seed, progressbar)
            return _line(question, slopes)
        if quantity == "curve":
            return _curve(question, points, self._seed, progressbar)
        return _simulated_effect(question, quantity, points, self._seed, progressbar)


class _Question(NamedTuple):
    """What is asked, and the draws that answer it."""

    post: Draws
    cause: int
    outcome: int
    to: Any
    versus: Any
    equations: DrawnEquations
    chosen: Chosen

    def answer(
        self,
        quantity: str,
        values: Floats,
        over: dict[str, Any] | None = None,
        slope: Effect | None = None,
        **more: Any,
    ) -> Effect:
        """Return the effect that draws of it, of shape (draw, …), are."""
        whole = self._weighed(quantity, values, over or {}, self.chosen.weights, slope=slope, **more)
        path = self._paths.reshape(self.chosen.shape)
        if path.all():
            whole.given_path = whole
        elif whole.probability > 0:
            weights = self.chosen.weights * path
            own = None if slope is None else slope.given_path
            whole.given_path = self._weighed(
                quantity, values, over or {}, weights / weights.mean(), slope=own, is_given_path=True, **more
            )
            whole.given_path.given_path = whole.given_path
        return whole

    @property
    def _paths(self) -> Bools:
        """Which DAGs have a directed path from the cause to the outcome."""
        return self.equations.ancestors[:, self.cause, self.outcome]

    def _weighed(self, quantity: str, values: Floats, over: dict[str, Any], weights: Floats, **more: Any) -> Effect:
        """Return the effect that draws of it are, with some weights."""
        array = _named(values, self.chosen, over)
        mcse = self.post._drawn_moments(values.reshape(len(values), -1), self.chosen.places, weights).mcse
        shaped = array.isel(chain=0, draw=0, drop=True).copy(data=mcse.reshape(values.shape[1:]))
        return Effect(
            cause=self.post.names[self.cause],
            outcome=self.post.names[self.outcome],
            quantity=quantity,
            draws=array,
            weights=weights,
            probability=float(np.average(self._paths, weights=weights.ravel())),
            mcse=Effect._plain(shaped),
            note=self.post._note_on_effect(self.cause, self.outcome),
            **more,
        )


def _named(values: Floats, chosen: Chosen, over: dict[str, Any]) -> "xr.DataArray":
    import xarray as xr

    return xr.DataArray(
        values.reshape(*chosen.shape, *values.shape[1:]), dims=("chain", "draw", *over), coords=dict(over)
    )


def _drawn(post: Draws, draws: int | None, random_seed: int) -> tuple[Chosen, DrawnEquations]:
    """Return the draws to average over, and their equations: all of them where that takes no time."""
    chosen = choose(post, draws)
    equations = DrawnEquations(post, chosen.places, random_seed)
    if draws is None and not equations.discrete and not equations.linear:
        chosen = choose(post, CURVE_DRAWS)
        equations = DrawnEquations(post, chosen.places, random_seed)
    return chosen, equations


# Linear equations


def total_effects(equations: DrawnEquations) -> Floats:
    """Return the total effects of all variables on all, (I - B)^-1 of each DAG, in units of the table."""
    n = len(equations.names)
    step = max(1, _CHUNK // n**2)
    totals = np.empty((len(equations), n, n))
    for begin in range(0, len(equations), step):
        some = slice(begin, begin + step)
        inverse: Floats = np.linalg.inv(np.eye(n) - equations.coefficients(some))
        # Rounding must not make an effect of none.
        totals[some] = np.where(equations.ancestors[some], inverse, 0.0)
    totals *= equations.scale / equations.scale[:, None]
    return totals


def _line(question: _Question, slopes: Floats) -> Effect:
    slope = question.answer("slope", slopes)
    if question.to is None:
        return slope
    to, versus = (_number(value) for value in (question.to, question.versus))
    units = f"from {versus:g} to {to:g}"
    return question.answer("contrast", (to - versus) * slopes, units=units, slope=slope)


def _number(value: Any) -> float:
    return finite_number(value, "a variable of numbers is set to a finite number")


# Simulation


class _Simulated(NamedTuple):
    """What an outcome is with the cause set to some values, in standardised units.

    Attributes
    ----------
    means : ndarray of shape (draw, value), or (draw, value, level)
        Its expected value, or the probability of each of its levels.
    singles : ndarray of shape (draw, value)
        Single outcomes, noise included.
    """

    means: Floats
    singles: Floats


def _simulated(
    question: _Question, at: Floats, random_seed: int, progressbar: bool, paths_only: bool = False
) -> _Simulated:
    """Run the equations of every DAG with the cause set to some values, or only of those with a path to the outcome.

    The noise is the same for all values, so that differences between them are of the values alone.
    """
    equations, i, j = question.equations, question.cause, question.outcome
    n = len(equations.names)
    run = [k for k in range(len(equations)) if equations.ancestors[k, i, j] or not paths_only]

    def needed(k: int) -> list[int]:
        return [int(v) for v in equations.orders[k] if v == j or equations.ancestors[k, v, j]]

    levels = (len(equations.scorer.levels[j]),) if equations.categories[j] else ()
    means, singles = np.zeros((len(equations), len(at), *levels)), np.zeros((len(equations), len(at)))
    noise = _normal_points(n, _REPETITIONS)
    shifts = np.random.default_rng([random_seed, i, j]).random((len(equations), n, 1))
    own = set(run)
    shown = progressbar and not equations.straight
    equations.prepare(lambda k: [v for v in needed(k) if v != i] if k in own else [], shown)
    for k in run:
        means[k], singles[k] = _outcomes(equations, k, needed(k), i, [j], at, noise.shifted(shifts[k]))[j]
    return _Simulated(means, singles)


def _straight_slopes(question: _Question, random_seed: int, progressbar: bool) -> Floats:
    """Return slopes of equations that are linear in numbers, given categories, which are averaged over."""
    equations = question.equations
    means = _simulated(question, np.array([0.0, 1.0]), random_seed, progressbar, paths_only=True).means
    slopes: Floats = (means[:, 1] - means[:, 0]) * equations.scale[question.outcome] / equations.scale[question.cause]
    return slopes


def _simulated_effect(question: _Question, quantity: str, points: int, random_seed: int, progressbar: bool) -> Effect:
    """Return the effect of a category on a number or on a category, or of a number on a category."""
    equations, i, j = question.equations, question.cause, question.outcome
    scorer = equations.scorer
    asked = None if question.to is None else (question.versus, question.to)
    units = f"from {question.versus} to {question.to}"
    over: dict[str, Any] = {}
    if equations.categories[i]:
        levels = scorer.levels[i] if asked is None else asked
        at = np.array([scorer.level_code(i, level) for level in levels], dtype=float)
        over["cause"] = list(levels)
    else:
        over["cause"] = np.array([_number(own) for own in asked]) if asked else _grid(question, points)
        at = (over["cause"] - equations.centre[i]) / equations.scale[i]
    means, singles = _simulated(question, at, random_seed, progressbar)
    if asked:
        del over["cause"]
    if not equations.categories[j]:
        means, singles = (equations.centre[j] + equations.scale[j] * own for own in (means, singles))
        if asked:
            return question.answer("contrast", means[:, 1] - means[:, 0], units=units)
        return question.answer(quantity, means, over, outcomes=_named(singles, question.chosen, over))
    over["outcome"] = list(scorer.levels[j])
    if asked:
        return question.answer("change", means[:, 1] - means[:, 0], over, units=units)
    return question.answer(quantity, means, over)


def _grid(question: _Question, points: int) -> Floats:
    """Return values of a number, from its smallest to its largest in the data."""
    column = question.post.data.values[:, question.cause]
    return np.linspace(column.min(), column.max(), points)


# Curves


def _curve(question: _Question, points: int, random_seed: int, progressbar: bool) -> Effect:
    equations, i, j = question.equations, question.cause, question.outcome
    if question.to is None:
        grid = _grid(question, points)
    else:
        grid = np.array([_number(question.versus), _number(question.to)])
    found = _simulated(question, (grid - equations.centre[i]) / equations.scale[i], random_seed, progressbar)
    means, singles = (equations.centre[j] + equations.scale[j] * values for values in found)
    if question.to is not None:
        return question.answer("contrast", means[:, 1] - means[:, 0], units=f"from {grid[0]:g} to {grid[1]:g}")
    data = question.post.data
    slopes = _average_slopes(means, grid, data.values[:, i], data.weights)
    over = {"cause": grid}
    return question.answer(
        "curve",
        means,
        over,
        outcomes=_named(singles, question.chosen, over),
        slope=question.answer("slope", slopes),
    )


class _Noise:
    """Points that fill the unit cube evenly, one a column, to be shifted at random and made normal."""

    def __init__(self, cube: Floats) -> None:
        self._cube = cube

    def shifted(self, shift: Floats) -> Floats:
        """Return standard normal noise: the cube's points moved by a shift, modulo one."""
        least = 0.5 / self._cube.shape[1]
        moved: Floats = ndtri(np.clip((self._cube + shift) % 1.0, least**2, 1 - least**2))
        return moved


@lru_cache(maxsize=4)
def _normal_points(n: int, repetitions: int) -> _Noise:
    """Return low-discrepancy points, so that few repetitions of the noise do."""
    from scipy.stats import qmc

    return _Noise(qmc.Sobol(n, scramble=False).random(repetitions).T)


def _outcomes(
    equations: DrawnEquations,
    k: int,
    needed: Sequence[int],
    cause: int,
    outcomes: Sequence[int],
    at: Floats,
    noise: Floats,
    known: Mapping[int, Floats] | None = None,
) -> dict[int, tuple[Floats, Floats]]:
    """Return expected and single outcomes of one DAG with the cause set to some values, in standardised units.

    Of a category, the probabilities of its levels are expected.
    """
    values = equations.run(k, needed, {cause: Setting(at[:, None])}, noise, known)
    found = {}
    for j in outcomes:
        if equations.categories[j]:
            chances = equations.chances(k, j, values)
            expected = np.broadcast_to(chances, (len(at), noise.shape[1], chances.shape[-1]))
            found[j] = expected.mean(axis=1), np.broadcast_to(values[j], (len(at), noise.shape[1]))[:, -1]
            continue
        expected = np.broadcast_to(equations.expected(k, j, values), (len(at), noise.shape[1]))
        found[j] = expected.mean(axis=1), np.broadcast_to(values[j], expected.shape)[:, -1]
    return found


def _average_slopes(means: Floats, grid: Floats, column: Floats, weights: Floats | None) -> Floats:
    """Return the slopes of curves, piecewise between points, averaged over rows."""
    cell = np.clip(np.searchsorted(grid, column, side="right") - 1, 0, len(grid) - 2)
    rows = np.bincount(cell, weights, minlength=len(grid) - 1)
    slopes: Floats = (np.diff(means, axis=1) / np.diff(grid)) @ (rows / rows.sum())
    return slopes


# Tables


def _table(question: _Question) -> Effect:
    equations = question.equations
    levels_of = [list(equations.scorer.levels[v]) for v in (question.cause, question.outcome)]
    tables = np.array(
        [_intervened(equations, k, question.cause, question.outcome, len(levels_of[0])) for k in range(len(equations))]
    )
    if question.to is None:
        over = {"cause": levels_of[0], "outcome": levels_of[1]}
        return question.answer("table", tables, over)
    to, versus = (equations.scorer.level_code(question.cause, value) for value in (question.to, question.versus))
    units = f"from {question.versus} to {question.to}"
    over = {"outcome": levels_of[1]}
    return question.answer("change", tables[:, to] - tables[:, versus], over, units=units)


def _intervened(equations: DrawnEquations, k: int, cause: int, outcome: int, levels: int) -> Floats:
    """Return P(outcome | do(cause)) of a DAG, of shape (levels of the cause, levels of the outcome).

    The truncated factorisation, summed over all other ancestors of the outcome.
    """
    relevant = [v for v in range(len(equations.names)) if v == outcome or equations.ancestors[k, v, outcome]]
    if len(relevant) > _MOST_ANCESTORS:
        name = equations.names[outcome]
        raise ValueError(f"tables take at most {_MOST_ANCESTORS - 1} ancestors of an outcome; {name!r} has more")
    label = {v: place for place, v in enumerate(relevant)}
    operands: list[Any] = []
    for v in relevant:
        if v != cause:
            operands += [equations.table(k, v), [label[u] for u in (*equations.parents(k, v), v)]]
    if cause not in label:
        (own,) = (np.einsum(*operands, [label[outcome]], optimize="greedy"),)
        return np.broadcast_to(own, (levels, len(own)))
    table: Floats = np.einsum(*operands, [label[cause], label[outcome]], optimize="greedy")
    return table


# All pairs


def effects(
    post: Draws,
    *,
    probability: float = 0.9,
    draws: int | None = None,
    random_seed: int = 0,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Return the effects of all variables on all others, the largest first, in standard deviations of both.

    Of linear scores the total effects, of Gaussian processes the average slopes. Of a category on a number, the
    change of the mean from the cause's first level to each other; effects on categories are left out.

    Parameters
    ----------
    probability : float, default 0.9
        That an effect lies between `lower` and `upper`.
    draws, random_seed, progressbar
        As for `effect`.

    Returns
    -------
    DataFrame
        Columns `cause`, `outcome`, `mean`, `sd`, `lower`, `upper`, `probability` (of an effect of the mean's sign),
        `path_probability` (of any effect), `mcse` (of the mean), and `mean_given_path`, `lower_given_path` and
        `upper_given_path`, the same without the point mass at zero, in units of the table; and `standardised`,
        the mean in standard deviations of both, or of the outcome where the cause is a category. Tables with
        categories also have `to` and `versus`, the levels compared.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.effects()[["cause", "outcome", "mean", "path_probability"]].round(1).head(2)
      cause outcome  mean  path_probability
    0   erk     akt   0.4               0.5
    1   akt     erk   0.5               0.5
    """
    check_share("probability", probability, ends=False)
    chosen, equations = _drawn(post, draws, random_seed)
    if equations.discrete:
        raise ValueError(
            "a table of all effects needs numbers; received categories, of which effect() tells pair by pair"
        )
    if equations.linear:
        n = len(post.names)
        i, j = np.divmod(np.flatnonzero(~np.eye(n, dtype=bool)), n)
        pairs = _Pairs(i, j, np.full(len(i), -1), total_effects(equations)[:, i, j])
    else:
        pairs = _all_pairs(post, equations, random_seed, progressbar)
    paths = equations.ancestors[:, pairs.cause, pairs.outcome]
    step = max(1, _CHUNK // len(equations))
    parts = [
        _described(post, chosen, pairs.values[:, some], paths[:, some], probability)
        for some in (slice(begin, begin + step) for begin in range(0, len(pairs.cause), step))
    ]
    names = np.array(post.names)
    table = pd.DataFrame({"cause": names[pairs.cause], "outcome": names[pairs.outcome]})
    if equations.categories.any():
        levels, coded = equations.scorer.levels, list(zip(pairs.cause, pairs.level, strict=True))
        table["to"] = [levels[i][level] if levels[i] else None for i, level in coded]
        table["versus"] = [levels[i][0] if levels[i] else None for i, _ in coded]
    table = table.join(pd.concat(parts, ignore_index=True))
    spread = np.where(equations.categories, 1.0, post.data.spreads())
    table["standardised"] = table["mean"] * spread[pairs.cause] / post.data.spreads()[pairs.outcome]
    for text in assumption(post.record, post.names):
        warnings.warn(text, UserWarning, skip_file_prefixes=_PACKAGE)
    return table.sort_values("standardised", key=abs, ascending=False, kind="stable", ignore_index=True)


class _Pairs(NamedTuple):
    """Effects of variables on numbers, in units of the table.

    Attributes
    ----------
    cause, outcome : ndarray of int
        The variables.
    level : ndarray of int
        The level that a category is set to, compared with its first; -1 for numbers.
    values : ndarray of shape (draw, pair)
        Slopes, averaged over rows where they are curves, or changes of the mean.
    """

    cause: Ints
    outcome: Ints
    level: Ints
    values: Floats


def _described(post: Draws, chosen: Chosen, values: Floats, paths: Bools, probability: float) -> pd.DataFrame:
    """Return what draws of some effects, of shape (draw, pair), say."""
    weights = chosen.weights.ravel()
    share = weights / weights.sum()
    tail = 0.5 * (1 - probability)
    moments = post._drawn_moments(values, *chosen)
    sign = np.where(moments.value < 0, -1.0, 1.0)
    path_weights = weights[:, None] * paths
    some = path_weights.sum(axis=0)
    given_path = np.divide((path_weights * values).sum(axis=0), some, out=np.full(len(some), np.nan), where=some > 0)
    (lower, upper), given = weighted_quantiles(values, [weights, path_weights], [tail, 1 - tail])
    given = np.where(some > 0, given, np.nan)
    return pd.DataFrame(
        {
            "mean": moments.value,
            "sd": np.sqrt(share @ (values - moments.value) ** 2),
            "lower": lower,
            "upper": upper,
            "probability": share @ (values * sign > 0),
            "path_probability": share @ paths,
            "mcse": moments.mcse,
            "mean_given_path": given_path,
            "lower_given_path": given[0],
            "upper_given_path": given[1],
        }
    )


def _all_pairs(post: Draws, equations: DrawnEquations, random_seed: int, progressbar: bool) -> _Pairs:
    """Return the effects of all variables on all numbers, by simulation."""
    n = len(equations.names)
    equations.prepare(lambda _: range(n), progressbar and not equations.straight)
    noise = _normal_points(n, _REPETITIONS_OF_PAIRS)
    shifts = np.random.default_rng([random_seed, n]).random((len(equations), n, 1))
    settings = [_settings_of(post, equations, i) for i in range(n)]
    numbers = np.flatnonzero(~equations.categories).tolist()
    columns = [(i, j, c) for i in range(n) for j in numbers if j != i for c in range(settings[i][1].shape[1])]
    cause, outcome, place = np.array(columns, dtype=np.int64).reshape(-1, 3).T
    first = {(i, j): column for column, (i, j, c) in enumerate(columns) if c == 0}
    values = np.zeros((len(equations), len(columns)))
    with progress_bar("Effects", len(equations), progressbar) as advance:
        for k in range(len(equations)):
            own = noise.shifted(shifts[k])
            # What doesn't come after a cause stays as it is.
            natural = equations.run(k, equations.orders[k], {}, own)
            for i, (at, combined) in enumerate(settings):
                after = [int(v) for v in equations.orders[k] if v == i or equations.ancestors[k, i, v]]
                below = [j for j in after if j != i and not equations.categories[j]]
                found = _outcomes(equations, k, after, i, below, at, own, natural) if below else {}
                for j in below:
                    begin = first[i, j]
                    values[k, begin : begin + combined.shape[1]] = found[j][0] @ combined
            advance(1)
    level = np.where(equations.categories[cause], place + 1, -1)
    return _Pairs(cause, outcome, level, values * equations.scale[outcome])


def _settings_of(post: Draws, equations: DrawnEquations, cause: int) -> tuple[Floats, Floats]:
    """Return values to set a cause to, and what to multiply expected outcomes there by, (value, effect).

    Of a number the effect is a slope, averaged over its rows; of a category, the changes from its first level.
    """
    if equations.categories[cause]:
        levels = len(equations.scorer.levels[cause])
        return np.arange(levels, dtype=float), np.eye(levels)[:, 1:] - np.eye(levels)[:, :1]
    column = post.data.values[:, cause]
    grid = np.linspace(column.min(), column.max(), 2 if equations.straight else _POINTS_OF_PAIRS)
    slopes = _average_slopes(np.eye(len(grid)), grid, column, post.data.weights)[:, None]
    return (grid - equations.centre[cause]) / equations.scale[cause], slopes
