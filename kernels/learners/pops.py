"""Which parent sets can be in a best DAG: compiled parts of the pruning, over sorted lists of sets.

A list of sets is an array with the members of each in a row, ascending, shorter sets filled up with -1, and the rows in
lexicographic order, so that a set is found by bisection.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Bools, Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner


@inner
def _compare(first: NDArray[np.int16], second: NDArray[np.int16]) -> int:
    for place in range(len(first)):
        if first[place] != second[place]:
            return -1 if first[place] < second[place] else 1
    return 0


@inner
def _find(sets: NDArray[np.int16], start: int, end: int, wanted: NDArray[np.int16]) -> int:
    """Return the row of a set in a stretch of a sorted list; -1 if it isn't there."""
    while start < end:
        middle = (start + end) // 2
        order = _compare(sets[middle], wanted)
        if order == 0:
            return middle
        if order < 0:
            start = middle + 1
        else:
            end = middle
    return -1


@inner
def _leave_out(members: NDArray[np.int16], place: int, rest: NDArray[np.int16]) -> None:
    """Write the members but one; what is left of `rest` becomes -1."""
    rest[:] = -1
    for other in range(len(members)):
        if other != place:
            rest[other - (other > place)] = members[other]


@compiled
def best_below(sets: NDArray[np.int16], by_size: Ints, scores: Floats, removable: Bools) -> Floats:
    """Return the best score among the proper subsets of each set; minus infinity where there are none.

    Parameters
    ----------
    sets : ndarray of int16, shape (sets, width)
        A sorted list; with a set, it has all its subsets that lack only removable members.
    by_size : ndarray of int64
        The rows, smaller sets first.
    scores : ndarray of float64
        Their scores.
    removable : ndarray of bool, shape (n,)
        The nodes that subsets may lack.
    """
    best = np.full(len(sets), -np.inf)
    rest = np.empty(sets.shape[1], sets.dtype)
    for row in by_size:
        for place in range(sets.shape[1]):
            if sets[row, place] < 0:
                break
            if removable[sets[row, place]]:
                _leave_out(sets[row], place, rest)
                below = _find(sets, 0, len(sets), rest)
                # best(P) = max over j in P of best(P - j) and s(P - j)
                best[row] = max(best[row], best[below], scores[below])
    return best


class Levels(NamedTuple):
    """The sets of one size that are still open, for every node: the required parents, and these beside them.

    Attributes
    ----------
    starts : ndarray of int64, shape (n + 1,)
        The sets of node i are the rows ``starts[i]`` to ``starts[i + 1]``.
    sets : ndarray of int16, shape (rows, size)
        A sorted list for each node, without the required parents.
    fits : ndarray of float64, shape (rows,)
        The log likelihoods: minus the number of rows times the entropy of the node given the set.
    best : ndarray of float64, shape (rows,)
        The best score of a set and its subsets.
    """

    starts: Ints
    sets: NDArray[np.int16]
    fits: Floats
    best: Floats


class Rules(NamedTuple):
    """What the rules for the discrete BIC need to know.

    Attributes
    ----------
    cardinalities : ndarray of int64, shape (n,)
        The levels of each node.
    penalties : ndarray of float64, shape (n,)
        What the required parents alone cost each node: ln(m) / 2 (r_i - 1) times their configurations.
    free : ndarray of bool, shape (n, n)
        Rows parents: which may be there but need not.
    required : ndarray of bool, shape (n, n)
        Rows parents: which must be there.
    pair_fits : ndarray of float64, shape (n, n)
        Rows parents: the log likelihood of a node given one other; given none on the diagonal.
    """

    cardinalities: Ints
    penalties: Floats
    free: Bools
    required: Bools
    pair_fits: Floats


@inner
def _penalty(rules: Rules, node: int, members: NDArray[np.int16]) -> float:
    """Return pen(P) = ln(m) / 2 (r_i - 1) times the product of r_j over P, the required parents included."""
    penalty: float = rules.penalties[node]
    for member in members:
        penalty *= rules.cardinalities[member]
    return penalty


@inner
def _fit_of_other(
    rules: Rules, levels: Levels, node: int, other: int, members: NDArray[np.int16], simple: Bools
) -> float:
    """Return the log likelihood of another node given a set of this one, or less where that isn't known.

    `simple` tells which nodes have no required parents: their lists hold the sets as they are.
    """
    if simple[node] and simple[other]:
        row = _find(levels.sets, levels.starts[other], levels.starts[other + 1], members)
        if row >= 0:
            known: float = levels.fits[row]
            return known
    # -m H(X_j|P) is at least -m H(X_j), and -m H(X_j|X_k) for every k in P.
    fit: float = rules.pair_fits[other, other]
    for member in members:
        fit = max(fit, rules.pair_fits[member, other])
    for member in range(len(simple)):
        if rules.required[member, node] and member != other:
            fit = max(fit, rules.pair_fits[member, other])
    return fit


@inner
def _closed_parents(rules: Rules, levels: Levels, node: int, simple: Bools) -> Bools:
    """Tell for each set of a node, and each further parent, whether the third rule shuts out the two together."""
    n = len(simple)
    start, end = levels.starts[node], levels.starts[node + 1]
    closed = np.zeros((end - start, n), np.bool_)
    for row in range(start, end):
        members = levels.sets[row]
        penalty = _penalty(rules, node, members)
        for other in range(n):
            if not rules.free[other, node]:
                continue
            # m min{H(X_i|P), H(X_j|P)} <= (r_j - 1) pen(P)
            price = (rules.cardinalities[other] - 1) * penalty
            if -levels.fits[row] <= price:
                closed[row - start, other] = True
            elif -_fit_of_other(rules, levels, node, other, members, simple) <= price:
                closed[row - start, other] = True
    return closed


@inner
def _best_of_subsets(
    levels: Levels, node: int, members: NDArray[np.int16], closed: Bools, rest: NDArray[np.int16]
) -> tuple[bool, float]:
    """Tell whether all subsets with one member less are open, and to that member; and return their best score."""
    best = -np.inf
    start = levels.starts[node]
    for place in range(len(members)):
        _leave_out(members, place, rest)
        row = _find(levels.sets, start, levels.starts[node + 1], rest)
        if row < 0 or closed[row - start, members[place]]:
            return False, best
        best = max(best, levels.best[row])
    return True, best


@compiled
def extend(rules: Rules, levels: Levels, node: int) -> tuple[NDArray[np.int16], Floats]:
    """Return the sets of a node with one member more that no rule shuts out, and the best score below each of them."""
    n, size = len(rules.cardinalities), levels.sets.shape[1]
    simple = np.ones(n, np.bool_)
    for child in range(n):
        for parent in range(n):
            if rules.required[parent, child]:
                simple[child] = False
    closed = _closed_parents(rules, levels, node, simple)
    kept = np.empty((64, size + 1), levels.sets.dtype)
    best = np.empty(64)
    count = 0
    members = np.empty(size + 1, levels.sets.dtype)
    rest = np.empty(size, levels.sets.dtype)
    for row in range(levels.starts[node], levels.starts[node + 1]):
        members[:size] = levels.sets[row]
        first = members[size - 1] + 1 if size else 0
        for other in range(first, n):
            if not rules.free[other, node]:
                continue
            members[size] = other
            is_open, below = _best_of_subsets(levels, node, members, closed, rest)
            # The second rule, s(P) + pen(P') > 0: even a perfect fit would not make up for the penalty.
            if not is_open or below + _penalty(rules, node, members) > 0.0:
                continue
            if count == len(best):
                kept = np.concatenate((kept, kept))
                best = np.concatenate((best, best))
            kept[count] = members
            best[count] = below
            count += 1
    return kept[:count].copy(), best[:count].copy()
