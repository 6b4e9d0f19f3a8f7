"""A table with missing values under a score: completed tables, their scores, and new missing entries given a DAG.

The prior must be the same for every completed table, or alternating between DAGs and entries would have no stationary
distribution. So whatever a score takes from the data to define its prior (the means and standard deviations by which
numbers are standardised, the levels of categories) is taken from the observed values alone.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints
from gpn_bayes.data import Dataset, RowMoments
from gpn_bayes.kernels.missing_entries import (
    RowsAlike,
    Variables,
    complete_categories,
    draw_entries,
    draw_parameters,
    parameter_starts,
)
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.bge import BGe, BGeScorer
from gpn_bayes.scores.categories import levels_of
from gpn_bayes.scores.cg import CG, CGScorer
from gpn_bayes.scores.discrete import K2, BDeu, DiscreteScorer
from gpn_bayes.scores.mixed import MixedScorer, categories_among

MISSING_AT_RANDOM = (
    "Values are missing at random: whether one is missing may depend on what was observed, but not on the value itself."
)
# A missing number lies within the observed ones, or at most this many of their standard deviations beyond. Groups of
# few rows say so little of their own numbers that the weakest priors would let these be anything.
_BEYOND = 10.0
# Parameters of an equation; parent sets whose equations have more have no score.
MOST_PARAMETERS = 100_000


@dataclass(frozen=True, eq=False)
class Completion:
    """How a score completes a table; made by `completion_of`.

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
    template : Scorer
        The score bound to some completed table.
    alike : RowsAlike or None
        Where all columns are categories, the rows with missing entries, those that observe the same put together.

    Examples
    --------
    >>> table = np.random.default_rng(1).normal(size=(50, 3))
    >>> table[3, 1] = np.nan
    >>> completion = completion_of(BGe(), Dataset.read(table, missing="impute"))
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
    template: Scorer
    alike: RowsAlike | None = None

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
        one_variance = self.one_variance(rng, values, adjacency)
        draw_parameters(rng, values, self.variables, adjacency, one_variance, starts, parameters)
        rows = np.flatnonzero(self.missing.any(axis=1))
        draw_entries(rng, values, self.missing, rows, self.variables, adjacency, starts, parameters)

    def one_variance(self, rng: np.random.Generator, values: Floats, adjacency: Adjacency) -> Bools:
        """Draw which numbers have the same noise whatever the categories among their parents, by a table's scores."""
        drawn = np.zeros(len(adjacency), dtype=bool)
        if isinstance(self.template, CGScorer) and self.template.score.variances != "each":
            scorer = self.template.with_rows(values)
            categories = self.variables.levels > 0
            for node in np.flatnonzero(~categories & (adjacency[categories] != 0).any(axis=0)):
                parents = tuple(np.flatnonzero(adjacency[:, node]).tolist())
                drawn[node] = rng.random() < scorer.one_variance(int(node), parents)
        return drawn

    def scorer(self, values: Floats) -> Scorer:
        """Return the score bound to a completed table, under the prior that all of them share."""
        if isinstance(self.template, MixedScorer):
            return self.template.with_rows(values)
        if isinstance(self.template, DiscreteScorer):
            return self.template.with_codes(values.T)
        assert isinstance(self.template.score, BGe)
        moments = RowMoments.of(values, self.data.names, self.template.data_fingerprint)
        return BGeScorer(_unstandardised(self.template.score), moments)

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


def completion_of(score: Score, data: Dataset) -> Completion:
    """Return how a score completes a table.

    Parameters
    ----------
    score : Score
        BGe, CG, BDeu, or K2 in its exact form.
    data : Dataset
        A table with missing values.

    Raises
    ------
    ValueError
        For another score, and for a table that the score doesn't take.
    """
    if not isinstance(score, BGe | CG | BDeu) and not (isinstance(score, K2) and score.form == "exact"):
        raise ValueError(
            f"missing='impute' needs a score whose equations have a posterior: 'bge', 'cg', 'bdeu', 'k2' or 'gp'; "
            f"received {score!r}: use missing='drop'"
        )
    assert data.missing is not None
    n, observed = len(data.names), np.ma.masked_invalid(data.values)
    among = np.full(n, isinstance(score, BDeu | K2))
    if isinstance(score, CG):
        among = categories_among(data)
    # Any completed table will do: what depends on it is replaced.
    first = data.values.copy()
    for column, gaps in zip(first.T, data.missing.T, strict=True):
        column[gaps] = column[~gaps][0]
    template = score.bind(complete_dataset(data, first))
    centre, scale = np.zeros(n), np.ones(n)
    if not isinstance(score, BGe) or score.standardise:
        centre[~among] = observed.mean(axis=0)[~among]
        scale[~among] = observed.std(axis=0, ddof=1 if isinstance(score, BGe) else 0)[~among]
    cardinalities = score.cardinalities if isinstance(score, BDeu | K2) else None
    levels: list[Floats | None] = [None] * n
    if among.any():
        known: Any = levels_of(data, cardinalities)
        for v in np.flatnonzero(among):
            numbers = data.kinds[v] == "integer"
            levels[v] = np.array(known[v] if numbers else range(len(known[v])), dtype=float)
    if isinstance(template, MixedScorer):
        template = template.in_units(centre, scale)
    lowest, highest = (np.asarray((f(axis=0) - centre) / scale) for f in (observed.min, observed.max))
    spread = np.asarray(observed.std(axis=0, ddof=1)) / scale
    variables = Variables(
        levels=np.array([0 if own is None else len(own) for own in levels], dtype=np.int64),
        bounds=np.column_stack([lowest - _BEYOND * spread, highest + _BEYOND * spread]),
        numbers=_prior_of_numbers(score, n),
        table=-1.0 if isinstance(score, K2) else score.ess if isinstance(score, BDeu | CG) else 0.0,
    )
    completion = Completion(data, data.missing, variables, centre, scale, tuple(levels), template)
    return replace(completion, alike=_rows_alike(completion)) if among.all() else completion


def _rows_alike(completion: Completion) -> RowsAlike:
    """Return the rows of a table of categories that have missing entries, grouped by what they observe."""
    (rows,) = np.nonzero(completion.missing.any(axis=1))
    observed = np.where(completion.missing, -1, completion.begin(np.random.default_rng(1)))[rows]
    _, group, counts = np.unique(observed, axis=0, return_inverse=True, return_counts=True)
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    return RowsAlike(starts, rows[np.argsort(group.ravel(), kind="stable")].astype(np.int64))


def _prior_of_numbers(score: Score, n: int) -> Floats:
    """Return the prior of regressions as `Variables` has it."""
    if isinstance(score, CG):
        return np.array([1.0, score.ess, score.ess, score.scale * score.ess])
    if isinstance(score, BGe):
        # That of a node without parents, which doesn't depend on the rows.
        none = RowMoments(0, np.zeros(n), np.zeros((n, n)), tuple(map(str, range(n))), "")
        prior = BGeScorer(_unstandardised(score), none).prior_equation(0)
        return np.array([0.0, prior.rows, prior.df, prior.residual])
    return np.zeros(4)


def _unstandardised(score: BGe) -> BGe:
    return BGe(score.alpha_mu, score.alpha_w, score.t0, standardise=False)
