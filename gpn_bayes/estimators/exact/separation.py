"""Which clusters a solution of the relaxed problem breaks: a quick search, and one that misses none."""

import highspy
import numpy as np

from gpn_bayes._util.types import Floats, Ints, Words
from gpn_bayes.estimators.exact.relaxation import quiet_model
from gpn_bayes.estimators.parent_sets import as_words, members
from gpn_bayes.kernels.learners.parent_sets import ParentSets
from gpn_bayes.kernels.learners.relaxed import grown_clusters

# Shares and sums below this are rounding of the linear programme.
SMALL = 1e-6
# Clusters that are hardly broken move the bound little; only the integer programme looks for them.
_WORTH_A_CUT = 1e-3
_MOST_CUTS = 60


def grown(sets: ParentSets, shares: Floats) -> Words:
    """Return clusters whose rule a solution breaks, as sets of nodes, those broken most first; there may be others.

    Parameters
    ----------
    sets : ParentSets
        The sets chosen from.
    shares : ndarray of float
        The share of each of them.
    """
    clusters, outside = grown_clusters(len(sets.starts) - 1, *_positive(sets, shares), _WORTH_A_CUT)
    clusters, first = np.unique(clusters, axis=0, return_index=True)
    return clusters[np.argsort(outside[first], kind="stable")[:_MOST_CUTS]]


def _positive(sets: ParentSets, shares: Floats) -> tuple[Ints, Words, Floats]:
    """Return whose the sets with a share are, their members and the shares, without the empty ones."""
    owners = np.repeat(np.arange(len(sets.starts) - 1), np.diff(sets.starts))
    (chosen,) = np.nonzero((shares > SMALL) & sets.words.any(axis=1))
    return owners[chosen], np.ascontiguousarray(sets.words[chosen]), shares[chosen]


def most_broken(sets: ParentSets, shares: Floats, seconds: float = np.inf) -> Words:
    """Return the cluster whose rule a solution breaks most, in one row; no row if none is broken, or the time is up.

    Binary y(i) says whether node i is in the cluster, and z(i, P) <= y(i), z(i, P) <= sum of y over P whether it is
    with a parent beside it; sum of y - sum of x z, the shares of the sets that avoid the cluster, is to be small.

    Parameters
    ----------
    sets : ParentSets
        The sets chosen from.
    shares : ndarray of float
        The share of each of them.
    seconds : float
        How long it may take.
    """
    n = len(sets.starts) - 1
    owners, words, shares = _positive(sets, shares)
    model = quiet_model()
    model.setOptionValue("time_limit", seconds)
    losses = np.concatenate([np.ones(n), -shares])
    columns = np.arange(len(losses), dtype=np.int32)
    model.addVars(len(losses), np.zeros(len(losses)), np.ones(len(losses)))
    model.changeColsCost(len(losses), columns, losses)
    model.changeColsIntegrality(n, columns[:n], np.full(n, int(highspy.HighsVarType.kInteger), dtype=np.uint8))
    for place, (owner, parents) in enumerate(zip(owners.tolist(), words, strict=True), start=n):
        for nodes in ([owner], members(parents)):
            entries = np.array([place, *nodes], dtype=np.int32)
            model.addRow(-np.inf, 0.0, len(entries), entries, np.array([1.0] + [-1.0] * len(nodes)))
    model.addRow(2.0, np.inf, n, columns[:n], np.ones(n))
    model.run()
    info = model.getInfo()
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if not solved or info.objective_function_value > 1.0 - SMALL:
        return np.empty((0, sets.words.shape[1]), dtype=np.uint64)
    inside = np.flatnonzero(np.array(model.getSolution().col_value[:n]) > 0.5)
    return as_words(inside[None, :], n)
