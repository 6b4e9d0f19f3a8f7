"""The compiled search over orders, with the randomness it needs."""

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.estimators.notears.dags import with_required_first
from gpn_bayes.kernels.learners.lasso import lasso_space
from gpn_bayes.kernels.learners.lasso_orders import OrderState, new_state, search_orders
from gpn_bayes.kernels.learners.regressions import Regressions

_NO_KICKS = np.zeros((0, 2), np.int64)
_LARGEST_KICK = 2
# Variances below this share of what they were are rounding.
_RESOLUTION = 1e-10


class OrderSearch:
    """The search of one problem.

    Parameters
    ----------
    data : Regressions
        The regressions of m variables.
    required : ndarray of bool, shape (d, d)
        Entry (i, j) tells whether i must stand before j, among the first d.
    rng : Generator
        Source of randomness.

    The variables from d on are the past of the others: they stand first, and nothing leads to them.
    """

    def __init__(self, data: Regressions, required: Bools, rng: np.random.Generator) -> None:
        self.data = data
        self.required = required
        self.rng = rng
        self.d, self.m = len(required), len(data.gram)
        self._before = np.zeros((self.m, self.m), dtype=bool)
        self._before[: self.d, : self.d] = required
        self._before[self.d :, : self.d] = True
        self._space = lasso_space(self.m + 1)

    def begin(self, order: Ints, climb: bool = True) -> tuple[OrderState, float, float]:
        """Return the minimum that an order of the first d leads to, with the objective before and after."""
        past = np.arange(self.d, self.m)
        state = new_state(np.concatenate([past, with_required_first(order, self.required)]))
        first, last = self._search(state, _NO_KICKS, self.rng.permutation(self.d if climb else 0))
        return state, first, last

    def kicked(self, state: OrderState) -> tuple[OrderState, float]:
        """Return the minimum reached after a few random moves; the state given is left as it is."""
        fresh = OrderState._make(array.copy() for array in state)
        size = (self.rng.integers(1, _LARGEST_KICK + 1), 2)
        kicks = self.rng.integers(self.m - self.d, self.m, size=size)
        return fresh, self._search(fresh, kicks, self.rng.permutation(self.d))[1]

    def _search(self, state: OrderState, kicks: Ints, waiting: Ints) -> tuple[float, float]:
        first, last = search_orders(self.data, self._before, state, kicks, waiting, self._space)
        past = float(state.values[self.d :].sum())
        return first - past, last - past

    def weights(self, state: OrderState) -> Floats:
        """Return a state's weights of the first d, rows parents, with a last row of intercepts."""
        return state.weights[: self.d].T.copy()


def least_variance_order(covariance: Floats, d: int) -> Ints:
    """Return the first d variables such that each has the least variance left, given those before it and the past.

    Where all noises are alike, that is the order of the variables (Chen, Drton & Wang 2019).

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        That of all variables; those from d on are the past.
    d : int
        How many there are to order.

    Examples
    --------
    >>> least_variance_order(np.array([[4.0, 1.0], [1.0, 1.0]]), 2).tolist()
    [1, 0]
    """
    left = covariance.copy()
    scale = np.diag(left).copy()
    waiting = np.ones(d, dtype=bool)
    order = []
    for step in range(len(left)):
        past = step < len(left) - d
        node = d + step if past else int(np.where(waiting, np.diag(left)[:d], np.inf).argmin())
        if not past:
            order.append(node)
            waiting[node] = False
        if left[node, node] > _RESOLUTION * scale[node]:
            left -= np.outer(left[:, node], left[node]) / left[node, node]
    return np.array(order, dtype=np.int64)
