"""Where a chain starts: an order found by simulated annealing.

Chains that start from random orders of forty nodes or more end in local modes, tens of nats below the best and unable
to leave. Annealing moves one node at a time to any place, by Gibbs, under the score to a power beta that grows to one.
"""

import numpy as np

from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.mcmc.choices import Chance, choose
from gpn_bayes.mcmc.order import OrderState, copy_order, log_weights_of_places, relocate
from gpn_bayes.mcmc.outside_candidates import redraw_outside_candidates_of_order
from gpn_bayes.mcmc.tables import ScoreTables

# Levels of beta, and moves of each node at each level.
LEVELS, SWEEPS = 50, 10


@compiled
def anneal(chance: Chance, tables: ScoreTables, state: OrderState, levels: int, sweeps: int) -> None:
    """Move an order, in place, to where scores are high.

    Beta grows by the same factor from level to level. It begins where the place of a node makes a difference of about
    one nat.
    """
    n = len(state.score)
    new = OrderState(state.ints.copy(), state.score.copy())
    lowest = min(1.0, 1.0 / _spread(chance, tables, state))
    for level in range(levels):
        beta = lowest ** (1.0 - (level + 1) / levels)
        redraw_outside_candidates_of_order(chance, tables, state, beta)
        copy_order(state, new)
        for _ in range(sweeps * n):
            relocate(chance, tables, state, new, beta)
            copy_order(new, state)


@inner
def _spread(chance: Chance, tables: ScoreTables, state: OrderState) -> float:
    """Return the mean gap, over some nodes, between their best and their worst possible place."""
    n = len(state.score)
    total = 1e-9
    for _ in range(n):
        log_weights = log_weights_of_places(tables, state, choose(chance, n))
        best, worst = -np.inf, np.inf
        for log_weight in log_weights:
            if log_weight > -np.inf:
                best, worst = max(best, log_weight), min(worst, log_weight)
        total += best - worst
    return total / n
