"""Scores of numbers given categories: sums, over groups of rows, of what regressions within a group say."""

import numpy as np

from gpn_bayes.kernels.algebra.triangles import cholesky, solve_transposed
from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.graphs.subsets import popcount
from gpn_bayes.kernels.linear.bge import bge_from_minors, family, log_minor, log_minors


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
    # N_g = sum w, mean_g = sum w x / N_g and S_g = sum w (x - mean_g) (x - mean_g)', over the rows of group g.
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


# What `sums_over_groups` has of every parent set, each summed over the groups of rows.
EACH, LOG_MINORS, SQUARES, LOG_SQUARES = range(4)


@inner
def _add_group(
    sums: Floats, place: int, with_node: float, without: float, size: int, constants: Floats, half_df: float
) -> None:
    """Add what a group says of a parent set, from log |R_PX| and log |R_P|; their ratio is the sum of squares left."""
    sums[EACH, place] += bge_from_minors(with_node, without, size, constants, half_df)
    sums[LOG_MINORS, place] += without
    # |R_PX| / |R_P| = R_XX - R_XP R_PP^-1 R_PX, and 2 half_df + 1 is the number of rows.
    sums[SQUARES, place] += np.exp(with_node - without)
    sums[LOG_SQUARES, place] += (2 * half_df + 1) * (with_node - without)


@compiled
def table_over_groups(matrices: Floats, chosen: Ints, constants: Floats, half_dfs: Floats, largest: int) -> Floats:
    """Return the sums of `sums_over_groups` for the last of the chosen variables and all subsets of the others."""
    k = len(chosen)
    top = 1 << (k - 1)
    sums = np.zeros((4, top))
    own = np.empty((k, k))
    for group in range(len(half_dfs)):
        for a in range(k):
            for b in range(k):
                own[a, b] = matrices[group, chosen[a], chosen[b]]
        minors = log_minors(own, largest + 1)
        for mask in range(top):
            size = popcount(mask)
            if size <= largest:
                _add_group(sums, mask, minors[mask | top], minors[mask], size, constants[group], half_dfs[group])
    return sums


@compiled
def sums_over_groups(
    matrices: Floats, node: int, parents: Ints, sizes: Ints, constants: Floats, half_dfs: Floats
) -> Floats:
    """Return what groups of rows say of a node given several parent sets (rows of `parents`, padded).

    Parameters
    ----------
    matrices : ndarray of shape (groups, m, m)
        Squares and products, prior included.
    node : int
        The variable.
    parents : ndarray of int, shape (sets, largest set)
        Its parent sets, padded.
    sizes : ndarray of int, shape (sets,)
        How many parents each has.
    constants, half_dfs : ndarray of shape (groups, sizes), (groups,)
        As for `bge_sets`, by group; twice half_df is one less than the rows of the group, imagined ones included.

    Returns
    -------
    ndarray of shape (4, sets)
        BGe scores; log |R_P|; the squares that the regressions leave; the logs of these times the rows.
    """
    sums = np.zeros((4, len(sizes)))
    for place in range(len(sizes)):
        size = sizes[place]
        indices = family(parents[place], size, node)
        for group in range(len(half_dfs)):
            with_node, without = log_minor(matrices[group], indices), log_minor(matrices[group], indices[:size])
            _add_group(sums, place, with_node, without, size, constants[group], half_dfs[group])
    return sums


@compiled
def excess_kurtosis(
    values: Floats,
    groups: Ints,
    weights: Floats,
    levels: Floats,
    matrices: Floats,
    node: int,
    parents: Ints,
    sizes: Ints,
) -> Floats:
    """Return the excess kurtosis of the residuals of a node in groups of rows, given several parent sets.

    It is N sum r^4 / (sum r^2)^2 - 3, r being the residuals of every group's own line, all groups taken together
    (Layard 1973).

    Parameters
    ----------
    values : ndarray of shape (rows, m)
        The numbers.
    groups : ndarray of int, shape (rows,)
        The group of each row.
    weights : ndarray of shape (rows,)
        How many rows each row stands for.
    levels : ndarray of shape (groups, m)
        The level of each number in each group.
    matrices : ndarray of shape (groups, m, m)
        Squares and products about these, prior included.
    node, parents, sizes
        As for `sums_over_groups`.
    """
    found = np.zeros(len(sizes))
    count, most, total = len(matrices), parents.shape[1] + 1, weights.sum()
    root, lines = np.empty((most, most)), np.empty((count, most))  # coefficients, and at last the intercept
    for place in range(len(sizes)):
        size = sizes[place]
        indices = family(parents[place], size, node)
        for group in range(count):
            for a in range(size + 1):
                for b in range(a + 1):
                    root[a, b] = matrices[group, indices[a], indices[b]]
            # With R = L L', the coefficients R_PP^-1 R_PX are L_PP'^-1 times L's last row.
            cholesky(root, size + 1)
            lines[group, :size] = root[size, :size]
            solve_transposed(root, lines[group], size)
            # The intercept, level_X - sum_a b_a level_a.
            lines[group, size] = levels[group, node]
            for a in range(size):
                lines[group, size] -= lines[group, a] * levels[group, indices[a]]
        second, fourth = 0.0, 0.0
        for row in range(len(values)):
            line = lines[groups[row]]
            # r = x - intercept - sum_a b_a x_a, then sum r^2 and sum r^4.
            residual = values[row, node] - line[size]
            for a in range(size):
                residual -= line[a] * values[row, indices[a]]
            square = residual * residual
            second += weights[row] * square
            fourth += weights[row] * square * square
        if second > 0:
            found[place] = total * fourth / second**2 - 3.0
    return found


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
            # log of the squares left, |S_PX| / |S_P| = S_XX - S_XP S_PP^-1 S_PX.
            without = log_minor(scatters[group], indices[:size])
            left = log_minor(scatters[group], indices) - without
            alone = 0.0
            for b in range(size):
                alone += np.log(scatters[group, indices[b], indices[b]])
            least = np.log(noise)
            # |S_P| > noise prod_b S_bb, and more than N_g noise is left; comparisons that are false of NaN.
            if not (without > alone + least and left > np.log(counts[group]) + least):
                # S + noise N_g I.
                own = scatters[group] + noise * counts[group] * np.eye(scatters.shape[1])
                left = log_minor(own, indices) - log_minor(own, indices[:size])
            values[row] += counts[group] * left
    return values
