"""Scores of discrete variables from rows whose weights aren't whole numbers, for many parent sets at once."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.discrete.counts import LEAST_PRIOR_COUNT, MAX_CONFIGURATIONS, shared, size_of
from gpn_bayes.kernels.discrete.row_groups import Counted, RowGroups, divide, new_groups, new_scratch


class WeightTerms(NamedTuple):
    """What weights of rows add to a node's score: those of a Dirichlet prior, or at the maximum of the likelihood.

    Attributes
    ----------
    prior_size : float
        If positive, the imagined rows of the prior, which all configurations of the parents share.
    prior_cell : float
        If positive, those of each level in each configuration. If neither is, there is no prior.
    per_configuration : float
        What each configuration of the parents adds, observed or not.
    """

    prior_size: float
    prior_cell: float
    per_configuration: float


@inner
def _gain(weight: float, prior: float, log_gamma: float) -> float:
    """Return ln Gamma(w + a) - ln Gamma(a), or w ln w without a prior."""
    return math.lgamma(weight + prior) - log_gamma if prior > 0.0 else weight * math.log(weight)


@inner
def _sum_of_groups(
    column: NDArray[np.uint16],
    weights: Floats,
    groups: RowGroups,
    depth: int,
    levels: int,
    prior_cell: float,
    totals: Floats,
) -> float:
    """Return what the groups j of a depth add, sum_j (sum_k gain(W_jk, a) - gain(W_j, r a)), see `_gain`.

    `totals` is zero before and after.
    """
    # r a, and ln Gamma of a and r a, with a = a_jk imagined rows of each of r levels.
    rows, starts = groups.rows[depth], groups.starts[depth]
    prior_margin = prior_cell * levels
    of_cell = math.lgamma(prior_cell) if prior_cell > 0.0 else 0.0
    of_margin = math.lgamma(prior_margin) if prior_cell > 0.0 else 0.0
    total = 0.0
    for group in range(groups.groups[depth]):
        # W_jk, the sum of the weights of the rows of group j and level k, and W_j = sum_k W_jk.
        margin = 0.0
        for t in range(starts[group], starts[group + 1]):
            totals[column[rows[t]]] += weights[rows[t]]
            margin += weights[rows[t]]
        for level in range(levels):
            if totals[level] > 0.0:
                total += _gain(totals[level], prior_cell, of_cell)
                totals[level] = 0.0
        total -= _gain(margin, prior_margin, of_margin)
    return total


@compiled
def weighted_count_scores(table: Counted, node: int, sets: NDArray[np.int16], terms: WeightTerms) -> Floats:
    """Return the scores of a node's parent sets; quickest where sets that begin alike follow each other.

    Parameters
    ----------
    table : Counted
        The data, whose weights are positive floats.
    node : int
        The child.
    sets : ndarray of int16, shape (sets, width)
        The members of each, in any order, then -1.
    terms : WeightTerms
        What weights add.
    """
    width, n_rows, r = sets.shape[1], len(table.weights), table.cardinalities[node]
    groups, scratch = new_groups(n_rows, width + 1), new_scratch(n_rows, table.cardinalities.max())
    # Rows that occur once would be dropped where they are alone in a group, but have weights of their own here.
    twice = np.full(n_rows, 2, np.uint32)
    totals = np.zeros(r)
    configurations = np.ones(width + 1)
    values = np.empty(len(sets))
    for s in range(len(sets)):
        size = size_of(sets[s])
        known = min(size, shared(sets[s], sets[s - 1])) if s > 0 else 0
        for depth in range(known, size):
            levels = table.cardinalities[sets[s, depth]]
            # q, the product of the parents' numbers of levels.
            configurations[depth + 1] = min(configurations[depth] * levels, MAX_CONFIGURATIONS)
            divide(table.codes[sets[s, depth]], levels, twice, groups, depth, scratch)
        prior_cell = terms.prior_cell
        if terms.prior_size > 0.0:
            # a_jk = prior_size / (q r) (BDeu).
            prior_cell = max(terms.prior_size / configurations[size], LEAST_PRIOR_COUNT) / r
        total = _sum_of_groups(table.codes[node], table.weights, groups, size, r, prior_cell, totals)
        values[s] = total + configurations[size] * terms.per_configuration
    return values
