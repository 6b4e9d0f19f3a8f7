"""Scores of discrete variables from counts, for many parent sets at once.

All of them have one form: every configuration j of the parents that was observed adds ``margin[N_j]`` and, for each
level k of the child, ``cell[N_jk]``; and each configuration, observed or not, adds a constant. With a Dirichlet prior
of a_jk imagined rows, a_j in all, these are (Heckerman, Geiger & Chickering 1995)

    margin = ln Gamma(a_j) - ln Gamma(N_j + a_j)  and  cell = ln Gamma(N_jk + a_jk) - ln Gamma(a_jk).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.discrete.row_groups import (
    Counted,
    RowGroups,
    Scratch,
    active_rows,
    divide,
    fits,
    new_groups,
    new_scratch,
)

# Numbers of configurations stay finite, and imagined rows positive, with room to divide them by the number of levels.
MAX_CONFIGURATIONS = 1e280
LEAST_PRIOR_COUNT = 1e-280


class CountTerms(NamedTuple):
    """What counts add to a node's score.

    Attributes
    ----------
    cell : ndarray of float64
        What a count N_jk adds; 0 for none. Where `prior_size` is positive, the length says only up to which count the
        values are kept.
    margin : ndarray of float64
        What a count N_j adds; 0 for none.
    per_configuration : float
        What each configuration of the parents adds.
    prior_size : float
        If positive, `cell` and `margin` are filled for each number of configurations q: they are those of a Dirichlet
        prior with ``prior_size / (q r)`` imagined rows for each of r levels.
    prior_counts : ndarray of float64, shape (4,)
        The imagined rows that they were filled for, of a level and of a configuration, and ln Gamma of both.
    """

    cell: Floats
    margin: Floats
    per_configuration: float
    prior_size: float
    prior_counts: Floats


@inner
def _fill_dirichlet(terms: CountTerms, configurations: float, levels: int) -> None:
    """Write ln Gamma(n + a) - ln Gamma(a) for cells, and its negative for margins, of small counts."""
    # a_j = prior_size / q and a_jk = prior_size / (q r), for q configurations and r levels (BDeu).
    prior_margin = max(terms.prior_size / configurations, LEAST_PRIOR_COUNT)
    if terms.prior_counts[1] == prior_margin:
        return
    prior_cell = prior_margin / levels
    terms.prior_counts[0] = prior_cell
    terms.prior_counts[1] = prior_margin
    terms.prior_counts[2] = math.lgamma(prior_cell)
    terms.prior_counts[3] = math.lgamma(prior_margin)
    terms.cell[0] = 0.0
    terms.margin[0] = 0.0
    # Gamma(x + 1) = x Gamma(x), so that ln Gamma(n + a) = ln Gamma(n - 1 + a) + ln (a + n - 1).
    for n in range(1, len(terms.cell)):
        terms.cell[n] = terms.cell[n - 1] + math.log(prior_cell + (n - 1))
        terms.margin[n] = terms.margin[n - 1] - math.log(prior_margin + (n - 1))


@inner
def _cell(terms: CountTerms, count: int) -> float:
    """Return what a count N_jk adds: of a Dirichlet prior, ln Gamma(N_jk + a_jk) - ln Gamma(a_jk)."""
    value: float
    if count < len(terms.cell):
        value = terms.cell[count]
    else:
        # Stirling's series looks quicker, but is arithmetic that compilers do ahead of the branch, for every count.
        value = math.lgamma(count + terms.prior_counts[0]) - terms.prior_counts[2]
    return value


@inner
def _margin(terms: CountTerms, count: int | np.int64) -> float:
    """Return what a count N_j adds: of a Dirichlet prior, ln Gamma(a_j) - ln Gamma(N_j + a_j)."""
    value: float
    if count < len(terms.margin):
        value = terms.margin[count]
    else:
        value = terms.prior_counts[3] - math.lgamma(count + terms.prior_counts[1])
    return value


@inner
def _sum_at_once(
    table: Counted,
    node: int,
    column: NDArray[np.uint16],
    levels: int,
    groups: RowGroups,
    depth: int,
    counts: NDArray[np.uint32],
    terms: CountTerms,
) -> float:
    """Return what the groups of a depth add once one more column divides them, without dividing them."""
    child, weights = table.codes[node], table.weights
    rows, labels = groups.rows[depth], groups.labels[depth]
    r, step = np.uint32(table.cardinalities[node]), np.uint32(levels * table.cardinalities[node])
    active = active_rows(groups, depth)
    half = active // 2
    # Neighbours are counted in the same places, and the second would wait for the first: so two far apart take turns.
    for t in range(half):
        one, other = rows[t], rows[t + half]
        counts[labels[t] * step + column[one] * r + child[one]] += weights[one]
        counts[labels[t + half] * step + column[other] * r + child[other]] += weights[other]
    if active > 2 * half:
        one = rows[active - 1]
        counts[labels[active - 1] * step + column[one] * r + child[one]] += weights[one]
    # sum_j (margin[N_j] + sum_k cell[N_jk]), N_j = sum_k N_jk.
    total, entry = 0.0, 0
    for _ in range(groups.groups[depth] * levels):
        count = np.int64(0)
        for _ in range(r):
            count += np.int64(counts[entry])
            total += _cell(terms, counts[entry])
            counts[entry] = 0
            entry += 1
        total += _margin(terms, count)
    return total


@inner
def _sum_one_by_one(
    table: Counted, node: int, groups: RowGroups, depth: int, scratch: Scratch, terms: CountTerms
) -> float:
    """Return what the groups of a depth add, counting one group after the other."""
    column, weights = table.codes[node], table.weights
    rows, starts = groups.rows[depth], groups.starts[depth]
    # sum_j (margin[N_j] + sum_k cell[N_jk]), over the levels k that were observed.
    total = 0.0
    for group in range(groups.groups[depth]):
        n_touched, count = 0, np.int64(0)
        for t in range(starts[group], starts[group + 1]):
            level = column[rows[t]]
            scratch.touched[n_touched] = level
            n_touched += scratch.totals[level] == 0
            scratch.totals[level] += weights[rows[t]]
            count += np.int64(weights[rows[t]])
        for i in range(n_touched):
            level = scratch.touched[i]
            total += _cell(terms, scratch.totals[level])
            scratch.totals[level] = 0
        total += _margin(terms, count)
    return total


@inner
def shared(first: NDArray[np.int16], second: NDArray[np.int16]) -> int:
    """Return how many members two padded sets have in common at their beginnings."""
    place = 0
    while place < len(first) and first[place] >= 0 and first[place] == second[place]:
        place += 1
    return place


@inner
def size_of(members: NDArray[np.int16]) -> int:
    """Return how many members a padded set has."""
    size = 0
    while size < len(members) and members[size] >= 0:
        size += 1
    return size


@compiled
def count_scores(table: Counted, node: int, sets: NDArray[np.int16], given: CountTerms) -> Floats:
    """Return the scores of a node's parent sets; quickest where sets that begin alike follow each other.

    Parameters
    ----------
    table : Counted
        The data.
    node : int
        The child.
    sets : ndarray of int16, shape (sets, width)
        The members of each, in any order, then -1.
    given : CountTerms
        What counts add.
    """
    width, n_rows, r = sets.shape[1], len(table.weights), table.cardinalities[node]
    terms = given
    if given.prior_size > 0:
        # To be filled, so that threads can't share them.
        cell, margin = np.zeros(len(given.cell)), np.zeros(len(given.margin))
        terms = CountTerms(cell, margin, given.per_configuration, given.prior_size, np.zeros(4))
    groups, scratch = new_groups(n_rows, width + 1), new_scratch(n_rows, table.cardinalities.max())
    configurations = np.ones(width + 1)
    known = 0
    values = np.empty(len(sets))
    for s in range(len(sets)):
        size = size_of(sets[s])
        known = min(known, shared(sets[s], sets[s - 1])) if s > 0 else 0
        goes_on = s + 1 < len(sets) and shared(sets[s], sets[s + 1]) == size
        column, levels = scratch.no_column, 1
        for depth in range(known, size):
            column, levels = table.codes[sets[s, depth]], table.cardinalities[sets[s, depth]]
            # q, the product of the parents' numbers of levels.
            configurations[depth + 1] = min(configurations[depth] * levels, MAX_CONFIGURATIONS)
            if depth + 1 < size or goes_on or not fits(groups, depth, levels * r):
                divide(column, levels, table.weights, groups, depth, scratch)
                column, levels, known = scratch.no_column, 1, depth + 1
        if terms.prior_size > 0:
            _fill_dirichlet(terms, configurations[size], r)
        if fits(groups, known, levels * r):
            total = _sum_at_once(table, node, column, levels, groups, known, scratch.totals, terms)
        else:
            total = _sum_one_by_one(table, node, groups, known, scratch, terms)
        # Of a row alone in its group, N_j = N_jk = 1.
        total += groups.singles[known] * (terms.cell[1] + terms.margin[1])
        values[s] = total + configurations[size] * terms.per_configuration
    return values


@compiled
def subsets_up_to(n: int, size: int, count: int) -> NDArray[np.int16]:
    """Return all subsets of n with up to a given size, padded with -1, those that begin alike after each other.

    Parameters
    ----------
    n, size : int
        Number of members to choose from, and the largest number to choose.
    count : int
        How many subsets there are.
    """
    sets = np.full((count, size), -1, np.int16)
    chosen = np.empty(size + 1, np.int64)
    depth, following = 0, 0
    for row in range(1, count):
        while depth == size or following == n:
            depth -= 1
            following = chosen[depth] + 1
        chosen[depth] = following
        depth += 1
        following += 1
        for place in range(depth):
            sets[row, place] = chosen[place]
    return sets


@compiled
def masks_of(sets: NDArray[np.int16]) -> Ints:
    """Return padded sets of up to 63 members as bitmasks."""
    masks = np.zeros(len(sets), np.int64)
    for row in range(len(sets)):
        for place in range(size_of(sets[row])):
            masks[row] |= 1 << sets[row, place]
    return masks
