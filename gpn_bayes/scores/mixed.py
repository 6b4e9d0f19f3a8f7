"""Tables of numbers and categories: numbers have both as parents, with equations of their own for each combination.

A category has categories alone as parents (Lauritzen & Wermuth 1989), so an edge from a number to a category has no
score. Edges between numbers and categories lead from the latter to the former.
"""

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data import CATEGORICAL, Data, Dataset, SufficientStatistics
from gpn_bayes.data.kinds import CATEGORY, NUMBER, in_words, listed_in_words
from gpn_bayes.data.problems import argument
from gpn_bayes.kernels.graphs.subsets import members_of
from gpn_bayes.kernels.linear.conditional_gaussian import group_moments
from gpn_bayes.scores.assumptions import CATEGORIES
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets
from gpn_bayes.scores.categories import levels_of
from gpn_bayes.scores.discrete import DiscreteScorer, affordable_parents
from gpn_bayes.scores.equations import LevelsEquation, LinearEquation, LinearEquations
from gpn_bayes.scores.strata import SharedVariance, StrataEquation, conjugate_lines

MIXED = (
    "Every number is a linear function of those among its parents plus normal noise, with coefficients of its own for "
    "each combination of the categories among its parents.",
    "Categories have no numbers among their parents: between a number and a category, the direction is assumed.",
    CATEGORIES[0],
)
ONE_VARIANCE = "The noise has constant variance: it depends on no parent."
EACH_VARIANCE = (
    "Within a combination of categories the noise has constant variance: each has its own, which doesn't depend on "
    "numbers."
)
ONE_OR_EACH = (
    "Within a combination of categories the noise has constant variance. All combinations have the same, or each has "
    "its own: both are as probable in advance."
)
EQUIVALENT = (
    "Among numbers, and among categories, directions within an equivalence class are not identifiable from the data."
)
NEARLY_EQUIVALENT = (
    "Among numbers, and among categories, directions within an equivalence class are not identifiable from the data, "
    "except where a category acts on both of two numbers: there the variances of their noise can say something."
)
# Scores that take numbers and categories, so that a column of whole numbers can be either.
_TAKES_BOTH = ("cg", "gp", "bic")
# With more values than this, whole numbers are hardly codes.
_MOST_CODES = 10
# Moments of groups of rows that are kept, in bytes.
_MOST_BYTES = 200_000_000
# Degrees of freedom of a combination's residuals, below which they say too little of its noise.
_FEWEST_LEFT = 10


def categories_among(data: Dataset) -> Bools:
    """Tell which columns of a table are categories where some are: text, ordered ones, and whole numbers of two values.

    Parameters
    ----------
    data : Dataset
        The table; ``gpn.Table(data, kinds=…)`` says otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"], "ill": [0, 1, 1], "visits": [3, 5, 4], "bmi": [21.5, 30.0, 25.2]})
    >>> categories_among(Dataset.read(table)).tolist()
    [True, True, False, False]
    """
    kinds = zip(data.kinds, data.levels, strict=True)
    return np.array([kind in CATEGORICAL or (levels is not None and len(levels) == 2) for kind, levels in kinds])


def kinds_in_words(scorer: Scorer, data: Dataset | SufficientStatistics) -> str:
    """Return what a score takes the columns of a table for, where these are numbers and categories; else nothing.

    Parameters
    ----------
    scorer : Scorer
        The score, bound to the data.
    data : Dataset or SufficientStatistics
        The data.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpn_bayes.scores import BDeu, CG
    >>> table = Dataset.read(pd.DataFrame({"sex": ["f", "m", "f"], "ill": [0, 1, 1], "visits": [3, 5, 4]}))
    >>> kinds_in_words(CG().bind(table), table), kinds_in_words(BDeu().bind(table), table)
    ('1 number, 2 categories (sex, ill)', '')
    """
    among = scorer.categories
    if among.all() or not among.any():
        return ""
    of: dict[str, list[str]] = {"numbers": [], "categories": [], "ordered": []}
    for name, kind, category in zip(data.names, data.kinds, among, strict=True):
        of["ordered" if kind == "ordered" else "categories" if category else "numbers"].append(name)
    return in_words(**of)


def either_in_words(scorer: Scorer, data: Dataset | SufficientStatistics) -> str:
    """Return which columns could as well be the other kind, where a score takes numbers and categories; else nothing.

    Whole numbers of few values may be amounts or codes, and those of two values too; whoever has said which by
    ``kinds=`` is not asked again.

    Parameters
    ----------
    scorer : Scorer
        The score, bound to the data.
    data : Dataset or SufficientStatistics
        The data.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpn_bayes.scores import CG
    >>> table = pd.DataFrame({"ill": [0, 1, 1, 0], "site": [1, 2, 3, 2], "bmi": [21.5, 30.0, 25.2, 27.1]})
    >>> data = Dataset.read(table, kinds={"ill": "category"})
    >>> either_in_words(CG().bind(data), data)
    "whole numbers that could be either: site (here a number); gpn.Table(data, kinds={'site': 'category'}) says
    otherwise"
    """
    if scorer.discrete or scorer.score.name not in _TAKES_BOTH:
        return ""
    if data.interventions is not None:
        return ""  # of experiments the rows are numbers throughout, or categories
    numbers, categories = [], []
    for name, kind, levels, category in zip(data.names, data.kinds, data.levels, scorer.categories, strict=True):
        if kind == "integer" and levels is not None and not isinstance(levels[0], bool):
            if category:
                categories.append(name)
            elif len(levels) <= _MOST_CODES:
                numbers.append(name)
    if not numbers and not categories:
        return ""
    taken = [f"{listed_in_words(numbers)} (here {_one_or_more(numbers, 'a number', 'numbers')})"] if numbers else []
    taken += [f"{listed_in_words(categories)} (here {_one_or_more(categories, 'a category', 'categories')})"] * bool(
        categories
    )
    stated = {**dict.fromkeys(numbers[:1], CATEGORY), **dict.fromkeys(categories[:1], NUMBER)}
    return f"whole numbers that could be either: {', '.join(taken)}; {argument('kinds', stated)} says otherwise"


def _one_or_more(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several


class Groups(NamedTuple):
    """Rows in groups by some categories.

    Attributes
    ----------
    cells : int
        How many combinations of levels there are, observed or not.
    sizes : ndarray of shape (group,)
        The rows of each that was observed.
    means : ndarray of shape (group, number)
        The means of all numbers, standardised over the whole table (ddof = 0).
    scatters : ndarray of shape (group, number, number)
        Their squares and products about these.
    of_rows : ndarray of int, shape (row,)
        The group of each row.
    """

    cells: int
    sizes: Floats
    means: Floats
    scatters: Floats
    of_rows: Ints

    @property
    def nbytes(self) -> int:
        """What is kept of them, in bytes, roughly."""
        return self.scatters.nbytes + self.of_rows.nbytes


class MixedScorer(Scorer):
    """Scores of a table of numbers and categories, in units of the table; a subclass scores the numbers.

    Attributes
    ----------
    of_categories : Scorer or None
        The scores of categories given others, over these columns alone.
    imagined_rows, imagined_scale : float
        The prior of equations: how many rows it imagines, and their variance; see `gpn_bayes.scores.CG`.
    """

    closed_form = True
    assumptions = (*MIXED, EACH_VARIANCE, EQUIVALENT)
    imagined_rows = 1.0
    imagined_scale = 0.5

    def __init__(self, score: Score, of_categories: Score, data: Dataset | SufficientStatistics) -> None:
        super().__init__(score, data.names, data.fingerprint)
        data = data.with_rows(f"the score {score.name!r} needs the rows")
        among = categories_among(data)
        categories = np.flatnonzero(among)
        # A variable's place among the categories, or among the numbers.
        self._place = np.where(among, np.cumsum(among), np.cumsum(~among)) - 1
        self._is_category = among
        self.impossible = ~among[:, None] & among
        self.of_categories = of_categories.bind(columns_of(data, categories)) if len(categories) else None
        known = levels_of(columns_of(data, categories))
        self.levels = tuple(known[place] if own else () for place, own in zip(self._place, among, strict=True))
        self.discrete = bool(among.all())
        self._cardinalities = np.array([len(own) for own in known], dtype=np.int64)
        codes = [
            np.searchsorted(np.array(own, dtype=float), data.values[:, v])
            if data.kinds[v] == "integer"
            else data.values[:, v]
            for v, own in zip(categories, known, strict=True)
        ]
        self._codes = np.array(codes, dtype=np.int64).reshape(len(categories), data.n_rows)
        numbers = data.values[:, ~among]
        self._weights = np.ones(data.n_rows) if data.weights is None else data.weights
        share = self._weights / self._weights.sum()
        self._centre = share @ numbers
        self._scale = np.sqrt(share @ (numbers - self._centre) ** 2)
        self._values = np.ascontiguousarray((numbers - self._centre) / self._scale)
        self._known: OrderedDict[tuple[int, ...], Groups] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()
        self.n_rows = data.size
        self.default_max_parents = affordable_parents(len(data.names), data.n_rows)
        self.seconds_per_set = 1e-8 * data.n_rows

    def in_units(self, centre: Floats, scale: Floats) -> Self:
        """Return the same scorer with numbers standardised by others than their own means and deviations.

        To be given rows by `with_rows`. Both are of all variables; those of categories count for nothing.
        """
        made = copy(self)
        made._centre, made._scale = centre[~self._is_category], scale[~self._is_category]
        return made

    def with_rows(self, values: Floats) -> Self:
        """Return the scorer of as many other rows in the same units: numbers standardised, categories as codes."""
        made = copy(self)
        made._codes = np.ascontiguousarray(values[:, self._is_category].T.astype(np.int64))
        made._values = np.ascontiguousarray(values[:, ~self._is_category])
        if isinstance(self.of_categories, DiscreteScorer):
            made.of_categories = self.of_categories.with_codes(made._codes)
        return made

    @abstractmethod
    def _sets_of_groups(self, groups: Groups, node: int, parents: Ints, sizes: Ints) -> Floats:
        """Return the scores of a number, given sets of numbers (rows, padded), in standardised units."""

    def _table_of_groups(self, groups: Groups, chosen: Ints, largest: int) -> Floats:
        """Return those of the last of the chosen numbers, for all subsets of the others in bitmask order."""
        masks = [mask for mask in range(1 << (len(chosen) - 1)) if mask.bit_count() <= largest]
        sets, sizes = padded_sets([chosen[list(members_of(mask))].tolist() for mask in masks])
        table = np.full(1 << (len(chosen) - 1), -np.inf)
        table[masks] = self._sets_of_groups(groups, int(chosen[-1]), sets, sizes)
        return table

    def groups(self, categories: tuple[int, ...]) -> Groups:
        """Return the rows in groups by some categories, given by their places among these."""
        found = self._known.get(categories)
        if found is None:
            shape = self._shape(categories)
            cell = np.zeros(len(self._weights), dtype=np.int64)
            for place, levels in zip(categories, shape, strict=True):
                # Numbered among those that occur: products of many levels would be too large for an integer.
                cell = np.unique(cell * levels + self._codes[place], return_inverse=True)[1].reshape(-1)
            moments = group_moments(self._values, cell, int(cell.max()) + 1, self._weights)
            found = Groups(int(np.prod(shape, dtype=object)), *moments, of_rows=cell)
            with self._lock:
                if categories not in self._known:
                    self._known[categories] = found
                    self._kept += found.nbytes
                while self._kept > _MOST_BYTES and len(self._known) > 1:
                    self._kept -= self._known.popitem(last=False)[1].nbytes
        return found

    def _shape(self, categories: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of levels of some categories."""
        return tuple(self._cardinalities[list(categories)].tolist())

    def units(self, data: Data) -> tuple[Floats, Floats]:
        """Return the zero and the unit of every number: its mean and standard deviation (ddof = 0)."""
        centre, scale = np.zeros(len(self.names)), np.ones(len(self.names))
        centre[~self._is_category], scale[~self._is_category] = self._centre, self._scale
        return centre, scale

    def equation(self, node: int, parents: tuple[int, ...]) -> StrataEquation | LinearEquation | LevelsEquation:
        """Return a category's table, or a number's regressions, with the conjugate posteriors of their parameters.

        BIC, without a prior, takes that of `CG` with its default settings, and for categories that of `K2`.
        """
        categories, numbers = self._split(parents)
        if self._is_category[node]:
            assert self.of_categories is not None and not numbers  # which have no score
            equation = self.of_categories.equation(int(self._place[node]), categories)
            assert isinstance(equation, LevelsEquation)
            return equation
        shape = self._shape(categories)
        groups = self.groups(categories)
        lines = self._lines(groups, int(self._place[node]), numbers)
        if not categories:
            return lines.one(0)
        shared = self._shared_variance(groups, int(self._place[node]), numbers)
        observed = np.unique(np.ravel_multi_index(tuple(self._codes[list(categories)]), shape))
        return StrataEquation.of_observed(lines, observed, shape, self._is_category[list(parents)], shared)

    def _shared_variance(self, groups: Groups, node: int, numbers: tuple[int, ...]) -> SharedVariance | None:
        """Return what is known of the noise of a number if all groups have the same; None if each has its own."""
        return None

    def _lines(self, groups: Groups, node: int, numbers: tuple[int, ...]) -> LinearEquations:
        """Return the regressions of each group, and of one without rows, which has the prior."""
        n = np.append(groups.sizes, 0.0)
        own = np.array([*numbers, node], dtype=np.int64)
        means = np.concatenate([groups.means[:, own], np.zeros((1, len(own)))])
        scatters = np.concatenate([groups.scatters[:, own[:, None], own], np.zeros((1, len(own), len(own)))])
        return conjugate_lines(n, means, scatters, self.imagined_rows / groups.cells, self.imagined_scale)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_known", "_kept", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the settings and the table."""
        self.__dict__.update(state)
        self._known, self._kept, self._lock = OrderedDict(), 0, threading.Lock()

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        values = np.full(len(parent_sets), -np.inf)
        split = [self._split(parents) for parents in parent_sets]
        if self._is_category[node]:
            kept = [row for row, (_, numbers) in enumerate(split) if not numbers]
            assert self.of_categories is not None
            sets = [split[row][0] for row in kept]
            values[kept] = self.of_categories.score_sets(int(self._place[node]), sets).values
            return ScoreBatch.exact(values)
        rows_of: dict[tuple[int, ...], list[int]] = {}
        for row, (categories, _) in enumerate(split):
            rows_of.setdefault(categories, []).append(row)
        for categories, rows in rows_of.items():
            padded, sizes = padded_sets([split[row][1] for row in rows])
            values[rows] = self._sets_of_groups(self.groups(categories), int(self._place[node]), padded, sizes)
        return ScoreBatch.exact(values - self._log_unit(node))

    def _split(self, parents: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the categories among some variables, and the numbers, by their places among these."""
        categories, numbers = (
            tuple(int(self._place[p]) for p in parents if self._is_category[p] == kind) for kind in (True, False)
        )
        return categories, numbers

    def _log_unit(self, node: int) -> float:
        """Return what a change to units of the table takes from the score of a number."""
        return self.n_rows * float(np.log(self._scale[self._place[node]]))

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        table = np.full(1 << len(candidates), -np.inf)
        bits = 1 << np.arange(len(candidates))
        among = self._is_category[candidates]
        own = self._place[candidates[among]]
        of_categories, of_numbers = (_subset_sums(bits[kind]) for kind in (among, ~among))
        if self._is_category[node]:
            assert self.of_categories is not None
            table[of_categories] = self.of_categories.table(int(self._place[node]), own.tolist(), max_parents)
            return table
        chosen = np.append(self._place[candidates[~among]], self._place[node]).astype(np.int64)
        for mask in range(1 << len(own)):
            left = max_parents - mask.bit_count()
            if left < 0:
                continue
            groups = self.groups(tuple(sorted(own[list(members_of(mask))].tolist())))
            largest = min(left, len(chosen) - 1)
            table[of_categories[mask] + of_numbers] = self._table_of_groups(groups, chosen, largest)
        table -= self._log_unit(node)
        return table

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats | None:
        """Return the residuals of linear regressions within each combination of the categories among the parents.

        Combinations have variances of their own: residuals are divided by these, and multiplied by that of all rows.
        """
        if self._is_category[node]:
            return None
        numbers = [p for p in parents if not self._is_category[p]]
        categories = [p for p in parents if self._is_category[p]]
        _, cell = np.unique(data.values[:, categories], axis=0, return_inverse=True)
        residuals = np.full(data.n_rows, np.nan)
        for group in np.unique(cell):
            rows = np.flatnonzero(cell.reshape(-1) == group)
            df = len(rows) - len(numbers) - 1
            if df < _FEWEST_LEFT:
                continue
            design = np.column_stack([np.ones(len(rows)), data.values[np.ix_(rows, numbers)]])
            own = data.values[rows, node]
            root = np.sqrt(self._weights[rows])
            left = own - design @ np.linalg.lstsq(root[:, None] * design, root * own, rcond=None)[0]
            spread = np.sqrt(np.average(left**2, weights=root**2) * len(rows) / df)
            residuals[rows] = left / spread if spread > 1e-9 * self._scale[self._place[node]] else 0.0
        return residuals * float(self._scale[self._place[node]])


def columns_of(data: Dataset, places: Ints) -> Dataset:
    """Return some columns of a table, as a table of their own."""
    values = np.ascontiguousarray(data.values[:, places])
    values.setflags(write=False)
    names, kinds, levels = (tuple(own[v] for v in places) for own in (data.names, data.kinds, data.levels))
    return Dataset(names, values, kinds, levels, weights=data.weights)


def _subset_sums(bits: Ints) -> Ints:
    """Return the sums of all subsets of some bits, in bitmask order.

    Examples
    --------
    >>> _subset_sums(np.array([1, 4])).tolist()
    [0, 1, 4, 5]
    """
    sums = np.zeros(1, dtype=np.int64)
    for bit in bits:
        sums = np.concatenate([sums, sums + bit])
    return sums
