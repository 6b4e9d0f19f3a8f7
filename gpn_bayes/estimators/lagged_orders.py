"""Search over the orders of variables that also have a past: each regressed on its predecessors and on the past."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Ints
from gpn_bayes.estimators.notears.order_search import OrderSearch, least_variance_order
from gpn_bayes.kernels.learners.lasso_orders import OrderState
from gpn_bayes.kernels.learners.regressions import Regressions

# From every start, the search goes on from its best order until this many random moves in a row found none better.
_PATIENCE = 20


class OrderProblem(NamedTuple):
    """Regressions of d variables, the first, on each other and on the variables of the past, the rest.

    Attributes
    ----------
    moments : ndarray of shape (m, m)
        The covariances of all.
    penalties : ndarray of shape (m, d)
        The weight of each absolute value, rows parents.
    allowed : ndarray of bool, shape (m, d)
        Which weights there may be.
    before : ndarray of bool, shape (d, d)
        Entry (i, j) tells whether i must precede j.
    """

    moments: np.ndarray
    penalties: np.ndarray
    allowed: np.ndarray
    before: np.ndarray


class Orders(NamedTuple):
    """What a search found.

    Attributes
    ----------
    weights : ndarray of shape (m, d)
        Those of the best order, rows parents.
    objectives : ndarray
        The minimum that each start led to.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    weights: np.ndarray
    objectives: np.ndarray
    interrupted: bool


def best_orders(problem: OrderProblem, starts: int, rng: np.random.Generator, progressbar: bool = False) -> Orders:
    """Search from several orders, and return the best weights."""
    m, d = problem.allowed.shape
    search = OrderSearch(_regressions(problem), problem.before, rng)
    first = least_variance_order(problem.moments, d)
    best, lowest, _ = search.begin(first, climb=False)
    objectives: list[float] = []
    interrupted = False
    try:
        with progress_bar("Orders", starts, progressbar) as advance:
            for start in range(starts):
                order, value = _run(search, first if start == 0 else rng.permutation(d))
                objectives.append(value)
                if value <= lowest:
                    best, lowest = order, value
                advance(1)
    except KeyboardInterrupt:
        interrupted = True
    return Orders(search.weights(best)[:m], np.array(objectives or [lowest]), interrupted)


def _regressions(problem: OrderProblem) -> Regressions:
    m, d = problem.allowed.shape
    penalties, allowed = np.zeros((m, m)), np.zeros((m, m), dtype=bool)
    # The kernels have children as rows; the past has no parents.
    penalties[:d], allowed[:d] = problem.penalties.T, problem.allowed.T
    return Regressions(0, np.ascontiguousarray(problem.moments), None, penalties, allowed)


def _run(search: OrderSearch, order: Ints) -> tuple[OrderState, float]:
    """Climb from an order, and on from there by random moves as long as they lead to better ones."""
    best, _, lowest = search.begin(order)
    idle = 0
    while idle < _PATIENCE:
        state, value = search.kicked(best)
        idle = 0 if value < lowest - 1e-9 * abs(lowest) else idle + 1
        if value <= lowest:
            best, lowest = state, value
    return best, lowest
