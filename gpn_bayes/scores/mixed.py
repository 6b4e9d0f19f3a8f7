"""Tables of numbers and categories: numbers have both as parents, with equations of their own for each combination.

A category has categories alone as parents (Lauritzen & Wermuth 1989), so an edge from a number to a category has no
score. Edges between numbers and categories lead from the latter to the former.
"""

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.kernels.mixed import group_moments
from gpn_bayes.kernels.subsets import members_of
from gpn_bayes.scores.assumptions import CATEGORIES
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets
from gpn_bayes.scores.discrete import affordable_parents

MIXED = (
    "Every number is a linear function of those among its parents plus normal noise, with coefficients and variance of "
    "its own for each combination of the categories among its parents.",
    "Categories have no numbers among their parents: between a number and a category, the direction is assumed.",
    "Within a combination of categories the noise has constant variance: it doesn't depend on numbers.",
    CATEGORIES[0],
    "Among numbers, and among categories, directions within an equivalence class are not identifiable from the data.",
)
# Moments of groups of rows that are kept, in bytes.
_MOST_BYTES = 200_000_000
# Degrees of freedom of a combination's residuals, below which they say too little of its noise.
_FEWEST_LEFT = 10


def categories_among(data: Dataset) -> Bools:
    """Tell which columns of a table are categories where some are: text, and whole numbers of two values.

    Parameters
    ----------
    data : Dataset
        The table; ``Dataset.read(..., categories=…)`` names others.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"], "ill": [0, 1, 1], "visits": [3, 5, 4], "bmi": [21.5, 30.0, 25.2]})
    >>> categories_among(Dataset.read(table)).tolist()
    [True, True, False, False]
    """
    kinds = zip(data.kinds, data.levels, strict=True)
    return np.array([kind == "categorical" or (levels is not None and len(levels) == 2) for kind, levels in kinds])


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
    """

    cells: int
    sizes: Floats
    means: Floats
    scatters: Floats


class MixedScorer(Scorer):
    """Scores of a table of numbers and categories, in units of the table; a subclass scores the numbers.

    Attributes
    ----------
    of_categories : Scorer or None
        The scores of categories given others, over these columns alone.
    """

    closed_form = True
    assumptions = MIXED

    def __init__(self, score: Score, of_categories: Score, data: Dataset | SufficientStatistics) -> None:
        super().__init__(score, data.names, data.fingerprint)
        if not isinstance(data, Dataset):
            raise ValueError(f"the score {score.name!r} needs the rows; received SufficientStatistics")
        among = categories_among(data)
        categories = np.flatnonzero(among)
        # A variable's place among the categories, or among the numbers.
        self._place = np.where(among, np.cumsum(among), np.cumsum(~among)) - 1
        self._is_category = among
        self.impossible = ~among[:, None] & among
        self.of_categories = of_categories.bind(columns_of(data, categories)) if len(categories) else None
        self._cardinalities = np.array([len(data.levels[v] or ()) for v in categories], dtype=np.int64)
        codes = [np.unique(data.values[:, v], return_inverse=True)[1] for v in categories]
        self._codes = np.array(codes, dtype=np.int64).reshape(len(categories), data.n_rows)
        numbers = data.values[:, ~among]
        self._centre, self._scale = numbers.mean(axis=0), numbers.std(axis=0)
        self._values = np.ascontiguousarray((numbers - self._centre) / self._scale)
        self._known: OrderedDict[tuple[int, ...], Groups] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()
        self.n_rows = data.n_rows
        self.default_max_parents = affordable_parents(len(data.names), data.n_rows)
        self.seconds_per_set = 1e-8 * data.n_rows

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
            shape = tuple(self._cardinalities[list(categories)].tolist())
            cell = np.zeros(self.n_rows, dtype=np.int64)
            for place, levels in zip(categories, shape, strict=True):
                # Numbered among those that occur: products of many levels would be too large for an integer.
                cell = np.unique(cell * levels + self._codes[place], return_inverse=True)[1].reshape(-1)
            moments = group_moments(self._values, cell, int(cell.max()) + 1)
            found = Groups(int(np.prod(shape, dtype=object)), *moments)
            with self._lock:
                if categories not in self._known:
                    self._known[categories] = found
                    self._kept += found.scatters.nbytes
                while self._kept > _MOST_BYTES and len(self._known) > 1:
                    self._kept -= self._known.popitem(last=False)[1].scatters.nbytes
        return found

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
            left = own - design @ np.linalg.lstsq(design, own, rcond=None)[0]
            spread = np.sqrt((left**2).sum() / df)
            residuals[rows] = left / spread if spread > 1e-9 * self._scale[self._place[node]] else 0.0
        return residuals * float(self._scale[self._place[node]])


def columns_of(data: Dataset, places: Ints) -> Dataset:
    """Return some columns of a table, as a table of their own."""
    values = np.ascontiguousarray(data.values[:, places])
    values.setflags(write=False)
    names, kinds, levels = (tuple(own[v] for v in places) for own in (data.names, data.kinds, data.levels))
    return Dataset(names, values, kinds, levels)


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
