"""Where the search over orders begins, and how it goes on: insertions with lasso refits, kicked out of its minima."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.estimators.notears.continuous import ROUGH, augmented_lagrangian, central_path
from gpn_bayes.estimators.notears.dags import order_of
from gpn_bayes.estimators.notears.objective import LinearProblem
from gpn_bayes.estimators.notears.order_search import OrderSearch, least_variance_order
from gpn_bayes.kernels.learners.lasso_orders import OrderState

# Minima that differ by less than this share are the same.
_SAME = 1e-10
# A start along the penalty begins with the penalty times these.
_PENALTY_PATH = (16.0, 4.0, 2.0)


class Settings(NamedTuple):
    """How to search: where to begin, how often to kick, which constraint and solver continuous starts use."""

    starts: tuple[str, ...]
    rounds: int
    acyclicity: str
    solver: str
    progressbar: bool


class Solution(NamedTuple):
    """Weights, intercepts and all, with the objective and what each start led to."""

    weights: Floats
    objective: float
    starts: pd.DataFrame
    interrupted: bool


def order_search(problem: LinearProblem, rng: np.random.Generator) -> OrderSearch:
    """Return the compiled search of a problem."""
    return OrderSearch(problem.regressions(), problem.required, rng)


def weights_of(problem: LinearProblem, search: OrderSearch, state: OrderState) -> Floats:
    """Return a state's weights, rows parents, with the intercepts below where there are any."""
    return search.weights(state)[: problem.shape[0]]


def refit(problem: LinearProblem, weights: Floats) -> Floats:
    """Return the best weights of the order that given ones have once their weakest cycle-closing entries are gone."""
    search = order_search(problem, np.random.default_rng(0))
    state, _, _ = search.begin(order_of(weights[: problem.d], problem.required), climb=False)
    return weights_of(problem, search, state)


def search_over_orders(
    problem: LinearProblem, settings: Settings, rng: np.random.Generator, orders: Sequence[Ints] = ()
) -> Solution:
    """Climb from every start, then kick the best minimum and climb again, and keep the lowest.

    Ctrl-C ends it with the best found so far, once the first start was climbed from.

    Parameters
    ----------
    problem : LinearProblem
        What to minimise.
    settings : Settings
        How.
    rng : Generator
        Source of randomness.
    orders : sequence of ndarray
        More orders to begin from.
    """
    search = order_search(problem, rng)
    begun: list[tuple[str, float, float]] = []
    best: OrderState | None = None
    lowest, interrupted = np.inf, False
    starts = [
        *((f"given {k + 1}", order) for k, order in enumerate(orders)),
        *((name, None) for name in settings.starts),
    ]
    with progress_bar("Orders", len(starts) + settings.rounds, settings.progressbar) as advance:
        try:
            for name, order in starts:
                state, first, last = search.begin(
                    START_ORDERS[name](problem, settings, rng) if order is None else order
                )
                begun.append((name, first, last))
                if last < lowest:
                    best, lowest = state, last
                advance(1)
            for _ in range(settings.rounds):
                assert best is not None
                state, last = search.kicked(best)
                # Equal minima are taken as well: the search drifts along plateaus.
                if last <= lowest + _SAME * (1 + abs(lowest)):
                    best, lowest = state, min(lowest, last)
                advance(1)
        except KeyboardInterrupt:
            if best is None:
                raise
            interrupted = True
    assert best is not None
    weights = weights_of(problem, search, best)
    table = pd.DataFrame(begun, columns=["start", "objective_at_start", "objective"])
    return Solution(weights, problem.objective(weights), table, interrupted)


def _by_variance(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    return np.argsort(np.diag(problem.covariance), kind="stable")


def _by_equal_variances(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    return least_variance_order(problem.covariance, problem.d)


def _along_penalties(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    """Take over the order from larger penalties, whose sparse graphs are easier to order."""
    order = least_variance_order(problem.covariance, problem.d)
    for factor in _PENALTY_PATH:
        stronger = order_search(problem.with_lambda1(factor * problem.lambda1), rng)
        order = stronger.begin(order)[0].order
    return order


def _by_central_path(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    *_, weights = central_path(problem, "log-det", settings.solver, ROUGH)
    return order_of(weights[: problem.d], problem.required)


def _by_augmented_lagrangian(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    *_, weights = augmented_lagrangian(problem, settings.acyclicity, settings.solver)
    return order_of(weights[: problem.d], problem.required)


def _at_random(problem: LinearProblem, settings: Settings, rng: np.random.Generator) -> Ints:
    return rng.permutation(problem.d)


START_ORDERS: dict[str, Callable[[LinearProblem, Settings, np.random.Generator], np.ndarray]] = {
    "variance": _by_variance,
    "equal-variance": _by_equal_variances,
    "lambda-path": _along_penalties,
    "central-path": _by_central_path,
    "augmented-lagrangian": _by_augmented_lagrangian,
    "random": _at_random,
}
