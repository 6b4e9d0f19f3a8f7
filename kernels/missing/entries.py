"""Missing entries of a table, drawn given a DAG: the parameters of its equations, and then the entries given these.

Every variable is a category, with a table of probabilities for each combination of its parents, or a number, with a
linear regression on the numbers among its parents for each combination of the categories among them. Priors are
conjugate, so both draws are exact: this is data augmentation (Tanner & Wong 1987).

Parameters stand in one array, node after node and combination after combination: of a category the log probabilities of
its levels; of a number the variance of its noise, its level, and a coefficient for each number among its parents.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.algebra.triangles import cholesky, solve, solve_transposed
from gpn_bayes.kernels.arrays import Adjacency, Bools, Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner

# Places in `Prior.numbers`: whether the three others are per combination (then shared out among all of them).
_SHARED, _ROWS, _DF, _SQUARES = range(4)
# Noise beyond these is as good as none or infinite, and what is computed from it stays finite.
_LEAST_VARIANCE, _LARGEST_VARIANCE = 1e-200, 1e200
# How often the numbers of a row are drawn again where one lies outside its bounds; then they stay what they were.
_TRIES = 100


class Variables(NamedTuple):
    """What variables are, and the prior of their parameters.

    Attributes
    ----------
    levels : ndarray of int64, shape (n,)
        Number of levels of each category; 0 for numbers.
    bounds : ndarray of shape (n, 2)
        Between what a missing number lies.
    numbers : ndarray of shape (4,)
        The prior of regressions: 1 if the next three are shared out among the combinations of categories, else 0; the
        imagined rows of the mean; the degrees of freedom of a node without parents; the imagined sum of squares.
    table : float
        Imagined rows of a table of probabilities, shared out among its cells; or minus those of each cell.
    """

    levels: Ints
    bounds: Floats
    numbers: Floats
    table: float


@compiled
def parameter_starts(adjacency: Adjacency, levels: Ints) -> Ints:
    """Return where the parameters of each node begin, and at last where they end."""
    n = len(levels)
    starts = np.zeros(n + 1, np.int64)
    for node in range(n):
        cells, numbers = 1, 0
        for p in range(n):
            if adjacency[p, node] != 0:
                if levels[p] > 0:
                    cells *= levels[p]
                else:
                    numbers += 1
        starts[node + 1] = starts[node] + cells * (levels[node] if levels[node] > 0 else numbers + 2)
    return starts


@inner
def _cell(row: Floats, node: int, adjacency: Adjacency, levels: Ints) -> int:
    """Return the number of the combination of a node's categories among its parents that a row has."""
    cell = 0
    for p in range(len(levels)):
        if levels[p] > 0 and adjacency[p, node] != 0:
            cell = cell * levels[p] + int(row[p])
    return cell


@compiled
def draw_parameters(
    rng: np.random.Generator,
    values: Floats,
    variables: Variables,
    adjacency: Adjacency,
    one_variance: Bools,
    starts: Ints,
    parameters: Floats,
) -> None:
    """Draw the parameters of all equations given a completed table.

    Parameters
    ----------
    rng : Generator
        The source of randomness.
    values : ndarray of shape (rows, n)
        The table: codes of levels, and numbers.
    variables : Variables
        What its columns are.
    adjacency : ndarray of shape (n, n)
        The DAG, rows parents.
    one_variance : ndarray of bool, shape (n,)
        Which numbers have the same variance in all combinations of the categories among their parents.
    starts : ndarray of int64, shape (n + 1,)
        From `parameter_starts`.
    parameters : ndarray of shape (starts[n],)
        Takes the parameters.
    """
    n = len(variables.levels)
    for node in range(n):
        own = parameters[starts[node] : starts[node + 1]]
        if variables.levels[node] > 0:
            _draw_table(rng, values, node, variables, adjacency, own)
        else:
            _draw_regressions(rng, values, node, variables, adjacency, one_variance[node], own)


@inner
def _draw_table(
    rng: np.random.Generator, values: Floats, node: int, variables: Variables, adjacency: Adjacency, own: Floats
) -> None:
    """Draw log p of each combination of the parents: p is Dirichlet(a_1, a_2, …), a_k = imagined + rows of level k."""
    levels = variables.levels[node]
    imagined = variables.table / len(own) if variables.table > 0 else -variables.table
    for k in range(len(own)):
        own[k] = imagined
    for row in range(len(values)):
        own[_cell(values[row], node, adjacency, variables.levels) * levels + int(values[row, node])] += 1.0
    for first in range(0, len(own), levels):
        # As logs, log G(a) = log G(a + 1) + log(U) / a: numbers of small shape would underflow.
        highest = -np.inf
        for k in range(first, first + levels):
            shape = own[k]
            own[k] = np.log(rng.standard_gamma(shape + 1.0)) + np.log(1.0 - rng.random()) / shape
            highest = max(highest, own[k])
        # log p_k = log G(a_k) - log sum_l G(a_l)
        total = 0.0
        for k in range(first, first + levels):
            total += np.exp(own[k] - highest)
        for k in range(first, first + levels):
            own[k] -= highest + np.log(total)


@inner
def _draw_regressions(
    rng: np.random.Generator,
    values: Floats,
    node: int,
    variables: Variables,
    adjacency: Adjacency,
    one_variance: bool,
    own: Floats,
) -> None:
    """Draw the regression of a number x on the numbers P among its parents, in each combination of the categories.

    The prior is normal-Wishart with mean zero. In a combination with `rows` rows v,
    R = squares I + sum (v - mean) (v - mean)' + rows imagined / (rows + imagined) mean mean'. One after the other,
    variance ~ R_xx.P / chi^2 with rows + df + p degrees of freedom, where R_xx.P = R_xx - R_xP R_PP^-1 R_Px;
    z ~ N(R_PP^-1 R_Px, variance R_PP^-1), the coefficients; and
    level ~ N(shrunk (mean_x - z' mean_P), variance / (rows + imagined)), where shrunk = rows / (rows + imagined).
    """
    n = len(variables.levels)
    family = np.empty(n, np.int64)
    p = 0
    for j in range(n):
        if adjacency[j, node] != 0 and variables.levels[j] == 0:
            family[p] = j
            p += 1
    family[p] = node
    cells = len(own) // (p + 2)
    share = 1.0 / cells if variables.numbers[_SHARED] > 0 else 1.0
    imagined, df, squares = (
        variables.numbers[_ROWS] * share, variables.numbers[_DF] * share, variables.numbers[_SQUARES] * share
    )  # fmt: skip
    counts, means, products = np.zeros(cells), np.zeros((cells, p + 1)), np.zeros((cells, p + 1, p + 1))
    at = np.empty(len(values), np.int64)
    for row in range(len(values)):
        at[row] = _cell(values[row], node, adjacency, variables.levels)
        counts[at[row]] += 1.0
        for a in range(p + 1):
            means[at[row], a] += values[row, family[a]]
    for cell in range(cells):
        for a in range(p + 1):
            means[cell, a] /= max(counts[cell], 1.0)
    apart = np.empty(p + 1)
    for row in range(len(values)):
        for a in range(p + 1):
            apart[a] = values[row, family[a]] - means[at[row], a]
        for a in range(p + 1):
            for b in range(a + 1):
                products[at[row], a, b] += apart[a] * apart[b]
    left = 0.0  # by the lines of all combinations
    for cell in range(cells):
        rows = counts[cell]
        matrix = products[cell]
        # R, and its factor L: L_xx^2 = R_xx.P.
        for a in range(p + 1):
            for b in range(a + 1):
                matrix[a, b] += rows * imagined / (rows + imagined) * means[cell, a] * means[cell, b]
            matrix[a, a] += squares
        cholesky(matrix, p + 1)
        left += matrix[p, p] ** 2
    # One variance for all: the sum of R_xx.P over combinations, and df + p only once beside all rows.
    of_all = _variance(rng, left, len(values) + variables.numbers[_DF] + p) if one_variance else 0.0
    z = np.empty(p)
    for cell in range(cells):
        rows = counts[cell]
        matrix = products[cell]
        variance = of_all if one_variance else _variance(rng, matrix[p, p] ** 2, rows + df + p)
        sd = np.sqrt(variance)
        # z = L_PP'^-1 (L_xP + sd e), with e standard normal: its mean is R_PP^-1 R_Px, its covariance variance R_PP^-1.
        for a in range(p):
            z[a] = matrix[p, a] + sd * rng.standard_normal()
        solve_transposed(matrix, z, p)
        # level = shrunk mean_x + sd / sqrt(rows + imagined) e - shrunk z' mean_P
        shrunk = rows / (rows + imagined)
        level = shrunk * means[cell, p] + sd / np.sqrt(rows + imagined) * rng.standard_normal()
        place = cell * (p + 2)
        own[place] = variance
        for a in range(p):
            own[place + 2 + a] = z[a]
            level -= z[a] * shrunk * means[cell, a]
        own[place + 1] = level


@inner
def _variance(rng: np.random.Generator, squares: float, df: float) -> float:
    """Draw a variance: inverse gamma with shape df / 2 and scale squares / 2."""
    # squares / (2 gamma), gamma having shape df / 2.
    gamma = rng.standard_gamma(0.5 * df)
    return min(max(0.5 * squares / max(gamma, _LEAST_VARIANCE), _LEAST_VARIANCE), _LARGEST_VARIANCE)


@inner
def _log_density(
    row: Floats, node: int, variables: Variables, adjacency: Adjacency, starts: Ints, parameters: Floats
) -> float:
    """Return the log probability, or density, of a node's value given its parents'; constants left out."""
    levels = variables.levels
    cell = _cell(row, node, adjacency, levels)
    if levels[node] > 0:
        log_probability: float = parameters[starts[node] + cell * levels[node] + int(row[node])]
        return log_probability
    place = starts[node] + cell * _width(node, levels, adjacency)
    # -(log variance + (x - level - b' x_P)^2 / variance) / 2, apart from -log(2 pi) / 2.
    apart = row[node] - parameters[place + 1]
    a = 2
    for p in range(len(levels)):
        if adjacency[p, node] != 0 and levels[p] == 0:
            apart -= parameters[place + a] * row[p]
            a += 1
    log_density: float = -0.5 * (np.log(parameters[place]) + apart * apart / parameters[place])
    return log_density


@inner
def _width(node: int, levels: Ints, adjacency: Adjacency) -> int:
    """Return how many parameters a regression has."""
    width = 2
    for p in range(len(levels)):
        if adjacency[p, node] != 0 and levels[p] == 0:
            width += 1
    return width


@compiled
def draw_entries(
    rng: np.random.Generator,
    values: Floats,
    missing: Bools,
    rows: Ints,
    variables: Variables,
    adjacency: Adjacency,
    starts: Ints,
    parameters: Floats,
) -> None:
    """Draw the missing entries given the DAG, its parameters and the rest of their rows.

    Categories one by one, given all else in the row; then all its numbers at once.

    Parameters
    ----------
    rng : Generator
        The source of randomness.
    values : ndarray of shape (rows, n)
        The table, which gets new entries.
    missing : ndarray of bool, shape (rows, n)
        Which ones.
    rows : ndarray of int64
        The rows that have any.
    variables, adjacency, starts, parameters
        As for `draw_parameters`.
    """
    n = len(variables.levels)
    log_p = np.empty(int(variables.levels.max()) + 1)
    chosen = np.empty(n, np.int64)
    for row in rows:
        numbers = 0
        for node in range(n):
            if missing[row, node]:
                if variables.levels[node] > 0:
                    _draw_category(rng, values[row], node, variables, adjacency, starts, parameters, log_p)
                else:
                    chosen[numbers] = node
                    numbers += 1
        if numbers > 0:
            _draw_numbers(rng, values[row], chosen[:numbers], variables, adjacency, starts, parameters)


class RowsAlike(NamedTuple):
    """The rows of a table of categories that have missing entries, those that observe the same put together.

    Attributes
    ----------
    starts : ndarray of int64, shape (groups + 1,)
        Where each group begins among the rows, and at last where the last one ends.
    rows : ndarray of int64
        The rows, group after group.
    """

    starts: Ints
    rows: Ints


@compiled
def complete_categories(
    rng: np.random.Generator,
    values: Floats,
    missing: Bools,
    alike: RowsAlike,
    variables: Variables,
    adjacency: Adjacency,
) -> None:
    """Draw the parameters of all equations of a table of nothing but categories, and the missing entries given these.

    What is missing from rows that observe the same has the same distribution, which is computed once and drawn from for
    each of them. Where it has so many combinations that this would take longer, entries are drawn one by one.

    Parameters
    ----------
    rng, values, missing, variables, adjacency
        As for `draw_entries`.
    alike : RowsAlike
        The rows with missing entries.
    """
    starts = parameter_starts(adjacency, variables.levels)
    parameters = np.empty(starts[-1])
    draw_parameters(rng, values, variables, adjacency, np.zeros(len(starts), np.bool_), starts, parameters)
    n = len(variables.levels)
    log_p = np.empty(int(variables.levels.max()) + 1)
    nodes = np.empty(n, np.int64)
    for group in range(len(alike.starts) - 1):
        rows = alike.rows[alike.starts[group] : alike.starts[group + 1]]
        count, combinations, one_by_one = 0, 1.0, 0
        for node in range(n):
            if missing[rows[0], node]:
                nodes[count] = node
                count += 1
                combinations *= variables.levels[node]
                one_by_one += variables.levels[node]
        if combinations <= one_by_one * len(rows):
            sums = _combinations(values[rows[0]].copy(), nodes[:count], variables, adjacency, starts, parameters)
            for row in rows:
                _write_combination(values[row], nodes[:count], variables.levels, _drawn_place(rng, sums))
        else:
            for row in rows:
                for a in range(count):
                    _draw_category(rng, values[row], nodes[a], variables, adjacency, starts, parameters, log_p)


@inner
def _combinations(
    row: Floats, nodes: Ints, variables: Variables, adjacency: Adjacency, starts: Ints, parameters: Floats
) -> Floats:
    """Return the running sums of the probabilities, up to a factor, of all combinations of a row's missing entries."""
    count = 1
    for node in nodes:
        count *= variables.levels[node]
    sums, highest = np.empty(count), -np.inf
    for place in range(count):
        _write_combination(row, nodes, variables.levels, place)
        # log p(row) = sum over nodes of log p(x_node | parents)
        sums[place] = 0.0
        for node in range(len(variables.levels)):
            sums[place] += _log_density(row, node, variables, adjacency, starts, parameters)
        highest = max(highest, sums[place])
    total = 0.0
    for place in range(count):
        total += np.exp(sums[place] - highest)
        sums[place] = total
    return sums


@inner
def _write_combination(row: Floats, nodes: Ints, levels: Ints, place: int) -> None:
    """Give some nodes of a row the combination of their levels that has this number."""
    for node in nodes:
        row[node] = place % levels[node]
        place //= levels[node]


@inner
def _drawn_place(rng: np.random.Generator, sums: Floats) -> int:
    """Draw a place in proportion to what it adds to the running sums."""
    wanted = rng.random() * sums[-1]
    first, last = 0, len(sums) - 1
    while first < last:
        middle = (first + last) // 2
        if wanted < sums[middle]:
            last = middle
        else:
            first = middle + 1
    return first


@inner
def _draw_category(
    rng: np.random.Generator,
    row: Floats,
    node: int,
    variables: Variables,
    adjacency: Adjacency,
    starts: Ints,
    parameters: Floats,
    log_p: Floats,
) -> None:
    """Draw a category x: p(x | rest) is p(x | its parents) times all p(child | its parents), up to a factor."""
    levels = variables.levels[node]
    highest = -np.inf
    for level in range(levels):
        row[node] = level
        log_p[level] = _log_density(row, node, variables, adjacency, starts, parameters)
        for child in range(len(variables.levels)):
            if adjacency[node, child] != 0:
                log_p[level] += _log_density(row, child, variables, adjacency, starts, parameters)
        highest = max(highest, log_p[level])
    total = 0.0
    for level in range(levels):
        total += np.exp(log_p[level] - highest)
    # The first level whose running sum of exp(log_p) exceeds a uniform share of the total.
    left = rng.random() * total
    drawn = levels - 1
    for level in range(levels):
        left -= np.exp(log_p[level] - highest)
        if left < 0:
            drawn = level
            break
    row[node] = drawn


@inner
def _draw_numbers(
    rng: np.random.Generator,
    row: Floats,
    chosen: Ints,
    variables: Variables,
    adjacency: Adjacency,
    starts: Ints,
    parameters: Floats,
) -> None:
    """Draw numbers of a row at once: every equation that has some of them adds to their precision.

    In terms of the missing x, an equation's noise is factors' x + apart ~ N(0, variance). Together they give
    x ~ N(precision^-1 right, precision^-1), summing over equations precision = sum factors factors' / variance and
    right = -sum factors apart / variance.
    """
    n, m = len(variables.levels), len(chosen)
    precision, right = np.zeros((m, m)), np.zeros(m)
    place_of = np.full(n, -1)
    for a in range(m):
        place_of[chosen[a]] = a
    factors = np.empty(m)
    for node in range(n):
        if variables.levels[node] > 0:
            continue
        concerned = place_of[node] >= 0
        for p in range(n):
            if adjacency[p, node] != 0 and place_of[p] >= 0:
                concerned = True
        if not concerned:
            continue
        place = starts[node] + _cell(row, node, adjacency, variables.levels) * _width(node, variables.levels, adjacency)
        # noise = node - level - b' parents: factors are 1 for the node and -b for its parents, where these are missing.
        variance, apart = parameters[place], -parameters[place + 1]
        for a in range(m):
            factors[a] = 0.0
        if place_of[node] >= 0:
            factors[place_of[node]] = 1.0
        else:
            apart += row[node]
        k = place + 2
        for p in range(n):
            if adjacency[p, node] != 0 and variables.levels[p] == 0:
                if place_of[p] >= 0:
                    factors[place_of[p]] = -parameters[k]
                else:
                    apart -= parameters[k] * row[p]
                k += 1
        for a in range(m):
            right[a] -= factors[a] * apart / variance
            for b in range(m):
                precision[a, b] += factors[a] * factors[b] / variance
    if not cholesky(precision, m):
        return
    # With precision = L L': x = L'^-1 (L^-1 right + e), e standard normal.
    solve(precision, right, m)
    drawn = np.empty(m)
    for _ in range(_TRIES):
        for a in range(m):
            drawn[a] = right[a] + rng.standard_normal()
        solve_transposed(precision, drawn, m)
        inside = True
        for a in range(m):
            if not variables.bounds[chosen[a], 0] <= drawn[a] <= variables.bounds[chosen[a], 1]:
                inside = False
        if inside:
            for a in range(m):
                row[chosen[a]] = drawn[a]
            return
