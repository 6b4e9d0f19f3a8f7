"""Rows of a discrete table in groups, one for each configuration of some variables, which one more divides further.

No table of all configurations is ever made, however many there are. A row alone in its group is dropped: it stays alone
whatever divides the groups further, so that it is enough to count it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Ints
from gpn_bayes.kernels.compiled import inner

# Counts by group and level are kept in one array while it has at most this many entries per row: going through it is
# quick, and free of branches. Where there would be more, each group is counted by itself.
_ENTRIES_PER_ROW = 4
_LEAST_ENTRIES = 64


class Counted(NamedTuple):
    """A table of codes, equal rows put together.

    Attributes
    ----------
    codes : ndarray of uint16, shape (variables, distinct rows)
        The level of each variable in each row.
    weights : ndarray of uint32 or float64, shape (distinct rows,)
        How often the row occurs; or, as floats, the sum of the weights with which it does.
    cardinalities : ndarray of int64, shape (variables,)
        Number of levels of each variable, observed or not.
    """

    codes: NDArray[np.uint16]
    weights: NDArray[Any]
    cardinalities: Ints


class RowGroups(NamedTuple):
    """The groups at every depth: those of depth d are by the configurations of the first d variables.

    Attributes
    ----------
    rows : ndarray of uint32, shape (depths, rows + 1)
        Row numbers, group after group; the last entry is for rows that are dropped.
    labels : ndarray of uint32, shape (depths, rows + 1)
        The group of each.
    starts : ndarray of uint32, shape (depths, rows + 1)
        Where each group begins, and where the last ends.
    groups : ndarray of int64, shape (depths,)
        Number of groups.
    singles : ndarray of int64, shape (depths,)
        Number of rows that were dropped.
    """

    rows: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    groups: Ints
    singles: Ints


class Scratch(NamedTuple):
    """Room for counts, zero between uses, and for what goes with them."""

    totals: NDArray[np.uint32]
    sizes: NDArray[np.uint32]
    places: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    touched: NDArray[np.uint16]
    # A variable that divides nothing.
    no_column: NDArray[np.uint16]


@inner
def new_groups(n_rows: int, depths: int) -> RowGroups:
    """Return groups whose depth 0 holds all rows in one."""
    groups = RowGroups(
        np.empty((depths, n_rows + 1), np.uint32),
        np.empty((depths, n_rows + 1), np.uint32),
        np.empty((depths, n_rows + 1), np.uint32),
        np.zeros(depths, np.int64),
        np.zeros(depths, np.int64),
    )
    for row in range(n_rows):
        groups.rows[0, row] = row
        groups.labels[0, row] = 0
    groups.starts[0, 0] = 0
    groups.starts[0, 1] = n_rows
    groups.groups[0] = 1
    return groups


@inner
def new_scratch(n_rows: int, most_levels: int | np.int64) -> Scratch:
    """Return room for counts of a table whose variables have at most `most_levels` levels."""
    entries = max(_ENTRIES_PER_ROW * n_rows + _LEAST_ENTRIES, most_levels)
    return Scratch(
        np.zeros(entries, np.uint32),
        np.zeros(entries, np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
        np.empty(most_levels + 1, np.uint16),
        np.zeros(n_rows, np.uint16),
    )


@inner
def active_rows(groups: RowGroups, depth: int) -> np.int64:
    """Return how many rows are in groups."""
    return np.int64(groups.starts[depth, groups.groups[depth]])


@inner
def fits(groups: RowGroups, depth: int, levels: int) -> bool:
    """Tell whether counts of this number of levels in every group are few enough to keep in one array."""
    return bool(groups.groups[depth] * levels <= _ENTRIES_PER_ROW * active_rows(groups, depth) + _LEAST_ENTRIES)


@inner
def divide(
    column: NDArray[np.uint16],
    levels: int,
    weights: NDArray[np.uint32],
    groups: RowGroups,
    depth: int,
    scratch: Scratch,
) -> None:
    """Divide the groups of a depth by one more variable: they are those of the next depth.

    Parameters
    ----------
    column, levels : ndarray, int
        The codes of the variable, and how many levels it has.
    weights : ndarray
        How often each row occurs.
    groups, depth : RowGroups, int
        What to divide.
    scratch : Scratch
        Room to work in.
    """
    if fits(groups, depth, levels):
        _divide_at_once(column, levels, weights, groups, depth, scratch)
    else:
        _divide_one_by_one(column, weights, groups, depth, scratch)


@inner
def _divide_at_once(
    column: NDArray[np.uint16],
    levels: int,
    weights: NDArray[np.uint32],
    groups: RowGroups,
    depth: int,
    scratch: Scratch,
) -> None:
    rows, labels = groups.rows[depth], groups.labels[depth]
    rows_below, labels_below, starts_below = groups.rows[depth + 1], groups.labels[depth + 1], groups.starts[depth + 1]
    totals, sizes, places, names = scratch.totals, scratch.sizes, scratch.places, scratch.labels
    r = np.uint32(levels)
    active = active_rows(groups, depth)
    for t in range(active):
        row = rows[t]
        # Level k of group j is entry j r + k.
        entry = labels[t] * r + column[row]
        sizes[entry] += 1
        totals[entry] += weights[row]
    # Rows fall into small groups at random: what could be a branch is written as arithmetic, which takes half the time.
    nowhere = len(weights)
    end, count, singles = np.int64(0), 0, groups.singles[depth]
    starts_below[0] = 0
    for entry in range(groups.groups[depth] * levels):
        single = int(totals[entry] == 1)
        some = int(totals[entry] > 1)
        names[entry] = count
        places[entry] = nowhere if single else end
        end += some * np.int64(sizes[entry])
        count += some
        singles += single
        starts_below[count] = end
        sizes[entry] = 0
        totals[entry] = 0
    for t in range(active):
        row = rows[t]
        entry = labels[t] * r + column[row]
        place = places[entry]
        rows_below[place] = row
        labels_below[place] = names[entry]
        places[entry] += 1
    groups.groups[depth + 1] = count
    groups.singles[depth + 1] = singles


@inner
def _divide_one_by_one(
    column: NDArray[np.uint16], weights: NDArray[np.uint32], groups: RowGroups, depth: int, scratch: Scratch
) -> None:
    rows, starts = groups.rows[depth], groups.starts[depth]
    rows_below, labels_below, starts_below = groups.rows[depth + 1], groups.labels[depth + 1], groups.starts[depth + 1]
    totals, sizes, places, names = scratch.totals, scratch.sizes, scratch.places, scratch.labels
    end, count, singles = np.int64(0), 0, groups.singles[depth]
    starts_below[0] = 0
    for group in range(groups.groups[depth]):
        n_touched = 0
        for t in range(starts[group], starts[group + 1]):
            level = column[rows[t]]
            scratch.touched[n_touched] = level
            n_touched += sizes[level] == 0
            sizes[level] += 1
            totals[level] += weights[rows[t]]
        for i in range(n_touched):
            level = scratch.touched[i]
            if totals[level] == 1:
                singles += 1
                places[level] = len(weights)
            else:
                places[level] = end
                names[level] = count
                end += np.int64(sizes[level])
                count += 1
                starts_below[count] = end
            sizes[level] = 0
            totals[level] = 0
        for t in range(starts[group], starts[group + 1]):
            level = column[rows[t]]
            place = places[level]
            rows_below[place] = rows[t]
            labels_below[place] = names[level]
            places[level] += 1
    groups.groups[depth + 1] = count
    groups.singles[depth + 1] = singles
