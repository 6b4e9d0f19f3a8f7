"""Search over orders of the variables: each has its regression on those before it, and moves to where the sum is least.

A move costs little: a regression changes only if a parent with a weight leaves, or one whose gradient exceeds its
penalty comes. All other steps along the order are free, and what a regression gains or loses by one variable more or
less is remembered until its predecessors change.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Bools, Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.learners.lasso import LassoSpace
from gpn_bayes.kernels.learners.regressions import Regressions, copy_to, regress

# Improvements below this share of the objective are rounding.
_IMPROVEMENT = 1e-10


class OrderState(NamedTuple):
    """An order with the regressions of every variable on its predecessors.

    Attributes
    ----------
    order : ndarray of int64, shape (d,)
        The variables, earliest first.
    weights : ndarray, shape (d, d + 1)
        Row j holds the weights of i -> j, and the intercept.
    gradients : ndarray, shape (d, d + 1)
        Row j holds minus the gradient of the loss of j.
    values : ndarray, shape (d,)
        Loss plus penalties of each variable.
    changes : ndarray, shape (d, d)
        Entry (j, i) tells what the value of j becomes less what it is, where i joins its predecessors, or leaves them;
        NaN where that isn't known.
    floors : ndarray, shape (d,)
        The least value that each variable can have: that of its regression on all others. NaN where not known.
    """

    order: Ints
    weights: Floats
    gradients: Floats
    values: Floats
    changes: Floats
    floors: Floats


def new_state(order: Ints) -> OrderState:
    """Return the state of an order without weights yet; `search_orders` fits them."""
    d = len(order)
    weights, gradients = np.zeros((2, d, d + 1))
    return OrderState(
        order.astype(np.int64), weights, gradients, np.zeros(d), np.full((d, d), np.nan), np.full(d, np.nan)
    )


@inner
def _sum(values: Floats) -> float:
    """Return the objective: the sum of v_j(Pred_j), each variable's least loss plus penalties on its predecessors."""
    total = 0.0
    for value in values:
        total += value
    return total


@inner
def _predecessors(data: Regressions, order: Ints, child: int, parents: Bools) -> None:
    """Write which variables stand before a child and may be its parents."""
    for node in range(len(parents)):
        parents[node] = False
    for node in order:
        if node == child:
            break
        parents[node] = data.allowed[child, node]


@inner
def _fit_order(data: Regressions, state: OrderState, space: LassoSpace) -> None:
    """Fit all regressions of the state's order, from the weights it has."""
    parents = np.empty(len(state.order), np.bool_)
    for child in state.order:
        _predecessors(data, state.order, child, parents)
        state.values[child] = regress(data, child, parents, state.weights[child], state.gradients[child], space)


@inner
def _fill_floors(data: Regressions, state: OrderState, space: LassoSpace) -> None:
    """Write v_j of all variables that may be parents of j, the least that v_j of any predecessors can be."""
    d = len(state.order)
    weights, gradient = np.empty(d + 1), np.empty(d + 1)
    for child in range(d):
        copy_to(state.weights[child], weights)
        state.floors[child] = regress(data, child, data.allowed[child], weights, gradient, space)


@inner
def _gains(data: Regressions, child: int, parent: int, gradient: Floats) -> bool:
    """Tell whether a regression would give weight to a new parent."""
    if not data.allowed[child, parent]:
        return False
    # A weight stays 0 where |gradient| <= penalty. The tolerance is that of the regressions.
    least = data.penalties[child, parent] + 1e-8 * np.sqrt(data.gram[parent, parent] * data.gram[child, child])
    gains: bool = np.abs(gradient[parent]) > least
    return gains


@inner
def _change(data: Regressions, state: OrderState, child: int, node: int, joins: bool, space: LassoSpace) -> float:
    """Return by how much the value of a child changes where a node joins its predecessors, or leaves them."""
    if joins and not _gains(data, child, node, state.gradients[child]):
        return 0.0
    if not joins and state.weights[child, node] == 0.0:
        return 0.0
    if np.isnan(state.changes[child, node]):
        d = len(state.order)
        parents, weights, gradient = np.empty(d, np.bool_), np.empty(d + 1), np.empty(d + 1)
        _predecessors(data, state.order, child, parents)
        parents[node] = joins
        # v_child(Pred + node) - v_child(Pred), or with Pred - node.
        copy_to(state.weights[child], weights)
        state.changes[child, node] = regress(data, child, parents, weights, gradient, space) - state.values[child]
    change: float = state.changes[child, node]
    return change


@inner
def _best_later_place(
    data: Regressions, required: Bools, state: OrderState, place: int, space: LassoSpace
) -> tuple[float, int]:
    """Return by how much the objective changes where a variable moves to its best later place, and that place.

    A variable gains by every predecessor, so that it stops only before those who would miss it, or at the end.
    """
    order, d = state.order, len(state.order)
    node = order[place]
    parents, weights, gradient = np.empty(d, np.bool_), np.empty(d + 1), np.empty(d + 1)
    _predecessors(data, order, node, parents)
    copy_to(state.weights[node], weights)
    copy_to(state.gradients[node], gradient)
    best, best_place, change, own, gaining = 0.0, place, 0.0, 0.0, False
    for target in range(place + 1, d + 1):
        loss, blocked = 0.0, target == d
        if not blocked:
            loss = _change(data, state, order[target], node, False, space)
            blocked = required[node, order[target]]
        if (loss > 0.0 or blocked) and gaining:
            # The objective changes by v_node(Pred + passed) - v_node(Pred), and by what those passed lose.
            own = regress(data, node, parents, weights, gradient, space) - state.values[node]
            gaining = False
            if change + own < best:
                best, best_place = change + own, target - 1
        change += loss
        # No later place gives less than change + floor - v_node.
        if blocked or change + state.floors[node] - state.values[node] >= best:
            break
        parents[order[target]] = data.allowed[node, order[target]]
        gaining = gaining or _gains(data, node, order[target], gradient)
    return best, best_place


@inner
def _best_earlier_place(
    data: Regressions, required: Bools, state: OrderState, place: int, space: LassoSpace
) -> tuple[float, int]:
    """Return by how much the objective changes where a variable moves to its best earlier place, and that place."""
    order, d = state.order, len(state.order)
    node = order[place]
    parents, weights, gradient = np.empty(d, np.bool_), np.empty(d + 1), np.empty(d + 1)
    _predecessors(data, order, node, parents)
    copy_to(state.weights[node], weights)
    # What those passed gain, up to each place, and the most that is still to come: the variable itself only loses.
    gained, hope = np.zeros(place + 1), np.zeros(place + 1)
    first = place
    while first > 0 and not required[order[first - 1], node]:
        first -= 1
        # gained[k] = sum of v(Pred + node) - v(Pred) over the variables at places k to place - 1.
        gained[first] = gained[first + 1] + _change(data, state, order[first], node, True, space)
    for target in range(first, place):
        # hope[k + 1] = min of gained[first], …, gained[k].
        hope[target + 1] = gained[target] if target == first else min(hope[target], gained[target])
    best, best_place, own = 0.0, place, 0.0
    for target in range(place - 1, first - 1, -1):
        if own + hope[target + 1] >= best:
            break
        passed = order[target]
        parents[passed] = False
        if weights[passed] != 0.0:
            # v_node(Pred - passed) - v_node(Pred)
            own = regress(data, node, parents, weights, gradient, space) - state.values[node]
        if gained[target] + own < best:
            best, best_place = gained[target] + own, target
    return best, best_place


@inner
def _move(data: Regressions, state: OrderState, place: int, target: int, space: LassoSpace) -> None:
    """Move the variable at a place to another, and fit the regressions that this changes."""
    order = state.order
    node = order[place]
    step = 1 if target > place else -1
    for k in range(place, target, step):
        order[k] = order[k + step]
    order[target] = node
    parents = np.empty(len(order), np.bool_)
    for k in range(min(place, target), max(place, target) + 1):
        child = order[k]
        for other in range(len(order)):
            state.changes[child, other] = np.nan
        _predecessors(data, order, child, parents)
        changed = k == target or state.weights[child, node] != 0.0
        if changed or (step == -1 and _gains(data, child, node, state.gradients[child])):
            state.values[child] = regress(data, child, parents, state.weights[child], state.gradients[child], space)


@inner
def _climb(data: Regressions, required: Bools, state: OrderState, waiting: Ints, space: LassoSpace) -> float:
    """Move variables to their best places, in turn, until none has a better one; return the objective."""
    following, idle = 0, 0
    while idle < len(waiting):
        node = waiting[following]
        following = (following + 1) % len(waiting)
        place = 0
        while state.order[place] != node:
            place += 1
        change, target = _best_later_place(data, required, state, place, space)
        earlier, earlier_target = _best_earlier_place(data, required, state, place, space)
        if earlier < change:
            change, target = earlier, earlier_target
        idle += 1
        if change < -_IMPROVEMENT * (1.0 + np.abs(_sum(state.values))):
            _move(data, state, place, target, space)
            idle = 1
    return _sum(state.values)


@inner
def _kick(data: Regressions, required: Bools, state: OrderState, place: int, target: int, space: LassoSpace) -> None:
    """Move the variable at a place towards another one, as far as required edges let it."""
    node = state.order[place]
    step = 1 if target > place else -1
    last = place
    while last != target:
        passed = state.order[last + step]
        if (step == 1 and required[node, passed]) or (step == -1 and required[passed, node]):
            break
        last += step
    if last != place:
        _move(data, state, place, last, space)


@compiled
def search_orders(
    data: Regressions,
    required: Bools,
    state: OrderState,
    kicks: Ints,
    waiting: Ints,
    space: LassoSpace,
) -> tuple[float, float]:
    """Fit the state's order if it isn't yet, move a few variables, then climb to a minimum among insertions.

    Parameters
    ----------
    data : Regressions
        The data.
    required : ndarray of bool, shape (d, d)
        Entry (i, j) tells whether i must stand before j.
    state : OrderState
        Where to begin; overwritten with the minimum.
    kicks : ndarray of int64, shape (count, 2)
        Places to move variables from, and to, before the climb.
    waiting : ndarray of int64
        In which order the variables are tried; empty to fit the order and not to climb.
    space : LassoSpace
        Room for d + 1 predictors.

    Returns
    -------
    first, last : float
        The objective before and after.
    """
    if np.isnan(state.floors[0]):
        _fit_order(data, state, space)
        _fill_floors(data, state, space)
    first = _sum(state.values)
    for k in range(len(kicks)):
        _kick(data, required, state, kicks[k, 0], kicks[k, 1], space)
    return first, _climb(data, required, state, waiting, space) if len(waiting) else first
