"""A table with missing values under a score: completed tables, their scores, and new missing entries given a DAG.

The prior must be the same for every completed table, or alternating between DAGs and entries would have no stationary
distribution. So whatever a score takes from the data to define its prior (the means and standard deviations by which
numbers are standardised, the levels of categories) is taken from the observed values alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.kernels.missing.entries import (
    RowsAlike,
    Variables,
    complete_categories,
    draw_entries,
    draw_parameters,
    parameter_starts,
)
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.categories import levels_of

MISSING_AT_RANDOM = (
    "Values are missing at random: whether one is missing may depend on what was observed, but not on the value itself."
)
# A missing number lies within the observed ones, or at most this many of their standard deviations beyond. Groups of
# few rows say so little of their own numbers that the weakest priors would let these be anything.
_BEYOND = 10.0
# Parameters of an equation; parent sets whose equations have more have no score.
MOST_PARAMETERS = 100_000


class Refilled(Protocol):
    """A scorer that can be bound to other rows under the same prior."""

    @property
    def score(self) -> Score:
        """What it computes."""

    def with_rows(self, values: Floats) -> Scorer:
        """Return the scorer of other rows, numbers standardised as in `Completion` and categories as codes."""


@dataclass(frozen=True, eq=False)
class Completion:
    """How a score completes a table; what `gpn_bayes.scores.Score.complete` returns.

    Completed tables are arrays in which numbers are standardised by the observed ones, and categories are codes.

    Attributes
    ----------
    data : Dataset
        The table.
    missing : ndarray of bool, shape (rows, variables)
        Which entries are missing.
    variables : Variables
        What its columns are, and the prior of their equations.
    centre, scale : ndarray of shape (variables,)
        Units of numbers: a number of the table is `centre` plus `scale` times one in here.
    codes : tuple of (ndarray or None)
        Of each category, what the table holds for its levels; None of numbers.
    template : Refilled
        The score bound to some completed table.
    alike : RowsAlike or None
        Where all columns are categories, the rows with missing entries, those that observe the same put together.
    draw_one_variance : callable, optional
        Given a source of randomness, a completed table and a DAG, draws which numbers have the same noise whatever the
        categories among their parents.

    Examples
    --------
    >>> table = np.random.default_rng(1).normal(size=(50, 3))
    >>> table[3, 1] = np.nan
    >>> from gpn_bayes.scores import BGe
    >>> completion = BGe().complete(Dataset.read(table, missing="impute"))
    >>> rng = np.random.default_rng(1)
    >>> values = completion.begin(rng)
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    >>> completion.draw(rng, values, chain)
    >>> completion.entries(values).shape, completion.scorer(values).names
    ((1,), ('v1', 'v2', 'v3'))
    """

    data: Dataset
    missing: Bools
    variables: Variables
    centre: Floats
    scale: Floats
    codes: tuple[Floats | None, ...]
    template: Refilled
    alike: RowsAlike | None = None
    draw_one_variance: Callable[[np.random.Generator, Floats, Adjacency], Bools] | None = None

    def begin(self, rng: np.random.Generator) -> Floats:
        """Return a table whose missing entries are drawn from the observed values of their columns."""
        values = self._inside(self.data.values)
        for column, gaps in zip(values.T, self.missing.T, strict=True):
            column[gaps] = rng.choice(column[~gaps], int(gaps.sum()))
        return values

    def draw(self, rng: np.random.Generator, values: Floats, adjacency: Adjacency) -> None:
        """Give a completed table new entries: parameters given DAG and table, then entries given these.

        Parameters
        ----------
        rng : Generator
            The source of randomness.
        values : ndarray of shape (rows, variables)
            The table, which is changed.
        adjacency : ndarray of int8, shape (variables, variables)
            The DAG, rows parents.
        """
        if self.alike is not None:
            complete_categories(rng, values, self.missing, self.alike, self.variables, adjacency)
            return
        starts = parameter_starts(adjacency, self.variables.levels)
        parameters = np.empty(starts[-1])
        one_variance = np.zeros(len(adjacency), dtype=bool)
        if self.draw_one_variance is not None:
            one_variance = self.draw_one_variance(rng, values, adjacency)
        draw_parameters(rng, values, self.variables, adjacency, one_variance, starts, parameters)
        rows = np.flatnonzero(self.missing.any(axis=1))
        draw_entries(rng, values, self.missing, rows, self.variables, adjacency, starts, parameters)

    def scorer(self, values: Floats) -> Scorer:
        """Return the score bound to a completed table, under the prior that all of them share."""
        return self.template.with_rows(values)

    def too_large(self, node: int, candidates: Ints) -> Bools:
        """Tell for which sets of candidates, in bitmask order, a node's equation has too many parameters."""
        levels = self.variables.levels
        sizes = np.array([np.log(max(levels[node], 1))])
        for c in candidates:
            sizes = np.concatenate([sizes, sizes + np.log(max(levels[c], 1))])
        too_many: Bools = sizes > np.log(MOST_PARAMETERS)
        return too_many

    def may_be(self, entries: Floats) -> bool:
        """Tell whether some numbers can be the missing entries of a completed table, row by row."""
        column = np.nonzero(self.missing)[1]
        levels, (low, high) = self.variables.levels[column], self.variables.bounds[column].T
        coded = (entries >= 0) & (entries < levels) & (entries == np.round(entries))
        return bool(np.where(levels > 0, coded, (entries >= low) & (entries <= high)).all())

    def entries(self, values: Floats) -> Floats:
        """Return the missing entries of a completed table, row by row, as the table would hold them."""
        return self.outside(values)[self.missing]

    def outside(self, values: Floats) -> Floats:
        """Return a completed table as a `Dataset` would hold it."""
        result = self.centre + self.scale * values
        for v, codes in enumerate(self.codes):
            if codes is not None:
                result[:, v] = codes[values[:, v].astype(np.int64)]
        # As they were observed, to the last bit.
        return np.where(self.missing, result, self.data.values)

    def _inside(self, values: Floats) -> Floats:
        result = (values - self.centre) / self.scale
        for v, codes in enumerate(self.codes):
            if codes is not None:
                known = ~np.isnan(values[:, v])
                result[known, v] = np.searchsorted(codes, values[known, v])
        return result

    def dataset(self, values: Floats) -> Dataset:
        """Return a completed table as a `Dataset`."""
        return complete_dataset(self.data, self.outside(values))


def complete_dataset(data: Dataset, values: Floats) -> Dataset:
    """Return a table with other values, of the same columns."""
    values.setflags(write=False)
    return Dataset(data.names, values, data.kinds, data.levels)


def completion(
    data: Dataset,
    among: Bools,
    template: Refilled,
    *,
    numbers: Floats | None = None,
    table: float = 0.0,
    units: tuple[Floats, Floats] | None = None,
    cardinalities: dict[str, int] | None = None,
) -> Completion:
    """Return how a score with linear equations and tables of probabilities completes a table.

    Parameters
    ----------
    data : Dataset
        A table with missing values.
    among : ndarray of bool
        Which columns are categories.
    template : Scorer
        The score bound to `filled`, which is given other rows in these units.
    numbers : ndarray of shape (4,), optional
        The prior of regressions, as `gpn_bayes.kernels.missing.entries.Variables` has it.
    table : float
        That of tables of probabilities, likewise.
    units : pair of ndarray, optional
        The zero and the unit of every number; those of the table by default.
    cardinalities : mapping of str to int, optional
        Numbers of levels that the score was given.
    """
    assert data.missing is not None
    n, observed = len(data.names), np.ma.masked_invalid(data.values)
    centre, scale = units or (np.zeros(n), np.ones(n))
    levels: list[Floats | None] = [None] * n
    if among.any():
        known: Any = levels_of(data, cardinalities)
        for v in np.flatnonzero(among):
            whole = data.kinds[v] == "integer"
            levels[v] = np.array(known[v] if whole else range(len(known[v])), dtype=float)
    lowest, highest = (np.asarray((f(axis=0) - centre) / scale) for f in (observed.min, observed.max))
    spread = np.asarray(observed.std(axis=0, ddof=1)) / scale
    variables = Variables(
        levels=np.array([0 if own is None else len(own) for own in levels], dtype=np.int64),
        bounds=np.column_stack([lowest - _BEYOND * spread, highest + _BEYOND * spread]),
        numbers=np.zeros(4) if numbers is None else numbers,
        table=table,
    )
    made = Completion(data, data.missing, variables, centre, scale, tuple(levels), template)
    return replace(made, alike=_rows_alike(made)) if among.all() else made


def filled(data: Dataset) -> Dataset:
    """Return a table with some observed value in place of every missing one, to bind a score to.

    Parameters
    ----------
    data : Dataset
        A table with missing values.
    """
    assert data.missing is not None
    values = data.values.copy()
    for column, gaps in zip(values.T, data.missing.T, strict=True):
        column[gaps] = column[~gaps][0]
    return complete_dataset(data, values)


def observed_units(data: Dataset, among: Bools, ddof: int) -> tuple[Floats, Floats]:
    """Return the means and standard deviations of the observed numbers; of categories, 0 and 1."""
    observed = np.ma.masked_invalid(data.values)
    return np.where(among, 0.0, observed.mean(axis=0)), np.where(among, 1.0, observed.std(axis=0, ddof=ddof))


def _rows_alike(completion: Completion) -> RowsAlike:
    """Return the rows of a table of categories that have missing entries, grouped by what they observe."""
    (rows,) = np.nonzero(completion.missing.any(axis=1))
    observed = np.where(completion.missing, -1, completion.begin(np.random.default_rng(1)))[rows]
    _, group, counts = np.unique(observed, axis=0, return_inverse=True, return_counts=True)
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    return RowsAlike(starts, rows[np.argsort(group.ravel(), kind="stable")].astype(np.int64))
