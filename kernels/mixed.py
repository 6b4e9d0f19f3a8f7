"""Scores of numbers given categories: sums, over groups of rows, of what regressions within a group say."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.bge import bge_from_minors, bge_table, family, log_minor
from gpn_bayes.kernels.compiled import compiled


@compiled
def group_moments(values: Floats, groups: Ints, count: int, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the number of rows of each group, their means, and their squares and products about these.

    Parameters
    ----------
    values : ndarray of shape (rows, m)
        The numbers.
    groups : ndarray of int, shape (rows,)
        The group of each row, from 0 to `count` - 1; none is empty.
    count : int
        How many groups there are.
    weights : ndarray of shape (rows,)
        How many rows each row stands for.
    """
    rows, m = values.shape
    sizes, means, scatters = np.zeros(count), np.zeros((count, m)), np.zeros((count, m, m))
    for row in range(rows):
        sizes[groups[row]] += weights[row]
        for a in range(m):
            means[groups[row], a] += weights[row] * values[row, a]
    for group in range(count):
        for a in range(m):
            means[group, a] /= sizes[group]
    apart = np.empty(m)
    for row in range(rows):
        group = groups[row]
        for a in range(m):
            apart[a] = values[row, a] - means[group, a]
        for a in range(m):
            for b in range(m):
                scatters[group, a, b] += weights[row] * apart[a] * apart[b]
    return sizes, means, scatters


@compiled
def bge_table_of_groups(matrices: Floats, chosen: Ints, constants: Floats, half_dfs: Floats, largest: int) -> Floats:
    """Return the scores of the last of the chosen variables for all subsets of the others, summed over groups."""
    k = len(chosen)
    table = np.zeros(1 << (k - 1))
    own = np.empty((k, k))
    for group in range(len(half_dfs)):
        for a in range(k):
            for b in range(k):
                own[a, b] = matrices[group, chosen[a], chosen[b]]
        table += bge_table(own, constants[group], half_dfs[group], largest)
    return table


@compiled
def bge_sets_of_groups(
    matrices: Floats, node: int, parents: Ints, sizes: Ints, constants: Floats, half_dfs: Floats
) -> Floats:
    """Return the scores of a node for several parent sets (rows of `parents`, padded), summed over groups."""
    values = np.zeros(len(sizes))
    for row in range(len(sizes)):
        size = sizes[row]
        indices = family(parents[row], size, node)
        for group in range(len(half_dfs)):
            with_node, without = log_minor(matrices[group], indices), log_minor(matrices[group], indices[:size])
            values[row] += bge_from_minors(with_node, without, size, constants[group], half_dfs[group])
    return values


@compiled
def log_residuals_of_groups(
    scatters: Floats, counts: Floats, node: int, parents: Ints, sizes: Ints, noise: float
) -> Floats:
    """Return the log sums of squares that parent sets leave, times the rows of each group, summed over groups.

    Infinite for a set with as many coefficients as some group has rows: these fit anything. Where variables determine
    each other or don't vary in a group, noise of this variance is added to them.
    """
    values = np.zeros(len(sizes))
    for row in range(len(sizes)):
        size = sizes[row]
        indices = family(parents[row], size, node)
        for group in range(len(counts)):
            if counts[group] <= size + 1:
                values[row] = np.inf
                break
            without = log_minor(scatters[group], indices[:size])
            left = log_minor(scatters[group], indices) - without
            alone = 0.0
            for b in range(size):
                alone += np.log(scatters[group, indices[b], indices[b]])
            least = np.log(noise)
            # Comparisons that are false of NaN.
            if not (without > alone + least and left > np.log(counts[group]) + least):
                own = scatters[group] + noise * counts[group] * np.eye(scatters.shape[1])
                left = log_minor(own, indices) - log_minor(own, indices[:size])
            values[row] += counts[group] * left
    return values
