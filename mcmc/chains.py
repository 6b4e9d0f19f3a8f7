"""Run a chain for a block of draws: steps, then a DAG from the state, again and again."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.dag_moves import longest_paths, propose_dag, restore_outside_candidates
from gpn_bayes.mcmc.draw_dag import store_parents
from gpn_bayes.mcmc.order import OrderState, copy_order, draw_from_order, new_order, propose_order
from gpn_bayes.mcmc.outside_candidates import redraw_outside_candidates_of_order, redraw_outside_candidates_of_partition
from gpn_bayes.mcmc.partition import (
    BLOCK,
    PartitionState,
    copy_partition,
    draw_from_partition,
    partition_from_depths,
    set_blocks,
)
from gpn_bayes.mcmc.partition_moves import RELOCATE, propose_partition
from gpn_bayes.mcmc.tables import ScoreTables, log_score_of

# The moves of a partition chain: those of the partition, then those of a walk over DAGs.
PARTITION_MOVES = (
    "split or join", "adjacent swap", "any swap", "relocation", "edge toggle", "parents redrawn", "edge reversal",
    "reordering",
)  # fmt: skip
_N_PARTITION_MOVES = 4
PARTITION_MIX = np.array([0.16, 0.13, 0.06, 0.02, 0.21, 0.19, 0.2, 0.03])


@inner
def _pick_move(rng: np.random.Generator, shares: Floats) -> int:
    """Draw a move; `shares` are cumulative."""
    target = rng.random() * shares[-1]
    move = 0
    while target >= shares[move]:
        move += 1
    return move


@compiled
def _copy(source: Ints, target: Ints) -> bool:
    """Copy a short array, and tell whether that changed anything; a slice assignment takes longer."""
    changed = False
    for i in range(len(source)):
        changed |= target[i] != source[i]
        target[i] = source[i]
    return changed


@compiled
def accept(rng: np.random.Generator, log_ratio: float) -> bool:
    """Decide by Metropolis-Hastings."""
    return log_ratio >= 0.0 or rng.random() < np.exp(log_ratio)


@inner
def draw_dag(
    chance: Chance,
    tables: ScoreTables,
    state: PartitionState,
    shares: Floats,
    length: int,
    parents: Ints,
    new_parents: Ints,
    counters: Ints,
) -> None:
    """Draw a DAG, take some steps over DAGs, if any, and put its layering in the state's place."""
    draw_from_partition(chance, tables, state, parents)
    if length == 0:
        return
    _copy(parents, new_parents)
    changed = np.empty(4, np.int64)
    for _ in range(length):
        move = _pick_move(chance.rng, shares)
        log_ratio = propose_dag(chance, tables, parents, new_parents, move, changed)
        counters[_N_PARTITION_MOVES + move, 0] += 1
        if accept(chance.rng, log_ratio):
            counters[_N_PARTITION_MOVES + move, 1] += _copy(new_parents, parents)
        else:
            restore_outside_candidates(tables, changed)
            _copy(parents, new_parents)
    set_blocks(tables, state, longest_paths(tables, parents))


@inner
def steps_over_partitions(
    chance: Chance,
    tables: ScoreTables,
    state: PartitionState,
    new: PartitionState,
    shares: Floats,
    steps: int,
    beta: float,
    counters: Ints,
) -> None:
    """Redraw the outside candidates, then take steps over partitions; the target is the score to the power `beta`."""
    redraw_outside_candidates_of_partition(chance, tables, state, beta)
    copy_partition(state, new)
    for _ in range(steps):
        move = _pick_move(chance.rng, shares)
        log_ratio = propose_partition(chance, tables, state, new, move, beta)
        counters[move, 0] += 1
        if accept(chance.rng, log_ratio):
            if move != RELOCATE or _moved(state, new):
                counters[move, 1] += 1
            copy_partition(new, state)
        else:
            copy_partition(state, new)


@inner
def _moved(state: PartitionState, new: PartitionState) -> bool:
    """Tell whether any node is in another block."""
    for i in range(len(state.score)):
        if new.ints[BLOCK, i] != state.ints[BLOCK, i]:
            return True
    return False


@inner
def split_mix(mix: Floats) -> tuple[Floats, Floats]:
    """Return the cumulative shares of the moves over partitions, and of those over DAGs."""
    return mix[:_N_PARTITION_MOVES].cumsum(), mix[_N_PARTITION_MOVES:].cumsum()


@inner
def share_of_walk(mix: Floats, thin: int) -> int:
    """Return how many of the steps before a draw go over DAGs."""
    return int(round(thin * mix[_N_PARTITION_MOVES:].sum() / mix.sum()))


@compiled
def run_partition(
    chance: Chance,
    tables: ScoreTables,
    state: PartitionState,
    mix: Floats,
    thin: int,
    words: Words,
    log_scores: Floats,
    targets: Floats,
    counters: Ints,
) -> None:
    """Run partition MCMC for a block of draws, `thin` steps before each.

    Parameters
    ----------
    chance : Chance
        The source of randomness.
    tables : ScoreTables
        The scores.
    state : PartitionState
        Where the chain stands; moved on in place.
    mix : ndarray
        How often each move is tried.
    thin : int
        Steps before each draw: those over partitions first, then those over DAGs, in the shares of `mix`.
    words : ndarray of uint64, shape (draws, n, words)
        Takes the drawn DAGs as parent bits.
    log_scores, targets : ndarray of float64, shape (draws,)
        Take the log score of each DAG and of the partition it was drawn from.
    counters : ndarray of int64, shape (moves, 2)
        Counts moves tried, and moves that changed the state.
    """
    new = PartitionState(state.ints.copy(), state.score.copy())
    parents = np.empty(len(state.score), np.int64)
    spare = np.empty(len(state.score), np.int64)
    partition_shares, dag_shares = split_mix(mix)
    walk = share_of_walk(mix, thin)
    for draw in range(len(log_scores)):
        steps_over_partitions(chance, tables, state, new, partition_shares, thin - walk, 1.0, counters)
        draw_dag(chance, tables, state, dag_shares, walk, parents, spare, counters)
        store_parents(tables, parents, words[draw])
        log_scores[draw] = log_score_of(tables, parents)
        targets[draw] = state.score.sum()


@compiled
def run_order(
    chance: Chance,
    tables: ScoreTables,
    state: OrderState,
    mix: Floats,
    thin: int,
    words: Words,
    log_scores: Floats,
    targets: Floats,
    counters: Ints,
) -> None:
    """Run order MCMC for a block of draws, `thin` steps before each; as `run_partition`."""
    new = OrderState(state.ints.copy(), state.score.copy())
    parents = np.empty(len(state.score), np.int64)
    shares = mix.cumsum()
    for draw in range(len(log_scores)):
        redraw_outside_candidates_of_order(chance, tables, state, 1.0)
        copy_order(state, new)
        for _ in range(thin):
            move = _pick_move(chance.rng, shares)
            log_ratio = propose_order(chance, tables, state, new, move)
            counters[move, 0] += 1
            if accept(chance.rng, log_ratio):
                if move != orders.RELOCATE or not np.array_equal(new.ints, state.ints):
                    counters[move, 1] += 1
                copy_order(new, state)
            else:
                copy_order(state, new)
        draw_from_order(chance, tables, state, parents)
        store_parents(tables, parents, words[draw])
        log_scores[draw] = log_score_of(tables, parents)
        targets[draw] = state.score.sum()


def start_partition(chance: Chance, tables: ScoreTables, order: Ints) -> PartitionState:
    """Return the layering of a DAG drawn from an order: a partition of finite score."""
    parents = np.empty(len(order), np.int64)
    start = new_order(tables, order)
    if start.score.sum() == -np.inf:
        stuck = np.flatnonzero(start.score == -np.inf).tolist()
        raise ValueError(f"the starting order must allow a DAG; nodes {stuck} have no parent set in {order.tolist()}")
    draw_from_order(chance, tables, start, parents)
    return partition_from_depths(tables, longest_paths(tables, parents))
