"""Good DAGs to begin with: an ordering search over the same parent sets, and orders read off a relaxed solution."""

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.estimators.exact.outcome import Clock
from gpn_bayes.kernels.learners.ordering import OrderState, linear_extension, local_search, perturb
from gpn_bayes.kernels.learners.parent_sets import ParentSets, best_of_order
from gpn_bayes.kernels.learners.relaxed import order_of_shares

# Rounds of the search for each node; it stays far quicker than what follows.
ROUNDS = 10
# As many nodes move between two rounds; fewer would fall back into the same order.
_MOVES = 6


def smallest_sets(sets: ParentSets) -> Ints:
    """Return the row of each node's smallest set: its required parents, so that together they are a DAG."""
    sizes = np.bitwise_count(sets.words).sum(axis=1)
    pairs = zip(sets.starts[:-1], sets.starts[1:], strict=True)
    return np.array([start + np.argmin(sizes[start:end]) for start, end in pairs], dtype=np.int64)


def starting_rows(sets: ParentSets, rng: np.random.Generator, clock: Clock | None = None) -> Ints:
    """Return the row of each node's parent set in a good DAG: repeated insertion searches, each from the best so far.

    Parameters
    ----------
    sets : ParentSets
        What to choose from; every node has a set that holds no more than its required parents.
    rng : Generator
        Where the first order and the disturbances come from.
    clock : Clock, optional
        When to stop, after one search at least.
    """
    state = OrderState(np.empty(len(sets.starts) - 1, dtype=np.int64), smallest_sets(sets))
    linear_extension(rng, sets, state.rows, state.order)
    best_of_order(sets, state.order, state.rows)
    best = local_search(rng, sets, state, True, False)
    kept = OrderState(state.order.copy(), state.rows.copy())
    for _ in range(ROUNDS * len(state.order)):
        if clock is not None and clock.over:
            break
        state.order[:], state.rows[:] = kept.order, kept.rows
        perturb(rng, sets, state, _MOVES)
        found = local_search(rng, sets, state, True, False)
        if found > best:
            best = found
            kept.order[:], kept.rows[:] = state.order, state.rows
    return kept.rows


def rows_near(sets: ParentSets, shares: Floats, rng: np.random.Generator) -> Ints:
    """Return the row of each node's parent set in a good DAG near a relaxed solution.

    Parameters
    ----------
    sets : ParentSets
        What to choose from.
    shares : ndarray of float
        The share of each of them.
    rng : Generator
        The insertion search that follows visits the nodes in a random order.
    """
    state = OrderState(order_of_shares(sets, shares), np.empty(len(sets.starts) - 1, dtype=np.int64))
    best_of_order(sets, state.order, state.rows)
    local_search(rng, sets, state, True, False)
    return state.rows
