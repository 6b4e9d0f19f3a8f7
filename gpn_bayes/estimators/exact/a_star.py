"""The best DAG by A* over the order graph, with a bound from groups of nodes."""

from collections.abc import Callable

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.estimators.exact.outcome import NO_GAP, Clock, Outcome
from gpn_bayes.kernels.learners.order_graph import (
    DONE,
    FULL,
    Frontier,
    Patterns,
    begin,
    fill_patterns,
    move_states,
    rows_of_path,
    search,
)
from gpn_bayes.kernels.learners.parent_sets import ParentSets, best_within

MAX_NODES = 62
# 2^27 places of the hash table: 2 GiB, and as much again for the heap.
MOST_PLACES = 1 << 27
_FIRST_PLACES = 1 << 16
_LARGEST_GROUP = 15
_STEP = 20_000


def check_size(n: int) -> None:
    """Refuse more variables than a state has bits for."""
    if n > MAX_NODES:
        raise ValueError(f"A* takes at most {MAX_NODES} variables; received {n}: use method='ilp'")


def search_orders(
    sets: ParentSets, start: Ints, clock: Clock, gap: float, tell: Callable[[str], None], most: int = MOST_PLACES
) -> Outcome:
    """Return the best DAG; or the one to begin with, and a bound, where time or memory end or Ctrl-C comes first.

    Parameters
    ----------
    sets : ParentSets
        What the nodes choose from; at most 62 nodes.
    start : ndarray of int64
        The row of each node's set in a good DAG.
    clock : Clock
        When to stop.
    gap : float
        How many nats from the optimum suffice.
    tell : callable
        Gets a line about the state of things.
    most : int
        Places of the hash table, twice the number of states, beyond which the search gives up.
    """
    n = len(sets.starts) - 1
    patterns = group_patterns(sets)
    frontier = _empty_frontier(min(_FIRST_PLACES, most))
    begin(patterns, frontier)
    known = float(sets.scores[start].sum())
    interrupted, done = False, False
    try:
        while not (done or clock.over or _bound(frontier, known) - known <= max(gap, NO_GAP)):
            answer = search(sets, patterns, frontier, known, _STEP)
            done = answer == DONE
            if answer == FULL:
                if 2 * len(frontier.keys) > most:
                    break
                frontier = _larger(frontier)
            tell(
                f"Score {known:.3f}, at most {_bound(frontier, known) - known:.3f} nats below the best; "
                f"{frontier.counts[0]:,} states"
            )
    except KeyboardInterrupt:
        interrupted = True
    statistics = {"states": int(frontier.counts[0]), "expanded": int(frontier.counts[2])}
    # An empty heap says that nothing beats the DAG to begin with.
    rows = rows_of_path(sets, frontier, n) if done and frontier.counts[1] else start
    return Outcome(rows, max(_bound(frontier, known), float(sets.scores[rows].sum())), interrupted, statistics)


def _bound(frontier: Frontier, known: float) -> float:
    return max(known, float(frontier.limits[0])) if frontier.counts[1] else known


def _empty_frontier(places: int) -> Frontier:
    return Frontier(
        np.empty(places, dtype=np.uint64), np.empty(places), np.empty(places, dtype=np.uint64), np.empty(places),
        np.zeros(3, dtype=np.int64),
    )  # fmt: skip


def _larger(frontier: Frontier) -> Frontier:
    larger = _empty_frontier(2 * len(frontier.keys))
    move_states(frontier, larger)
    return larger


def group_patterns(sets: ParentSets) -> Patterns:
    """Return the bounds of groups of nodes, those together that want each other as parents.

    Parameters
    ----------
    sets : ParentSets
        What the nodes choose from.
    """
    groups = _groups(_clashes(sets))
    n, size = len(sets.starts) - 1, max(map(len, groups))
    members = np.full((len(groups), size), -1, dtype=np.int64)
    patterns = Patterns(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty((len(groups), 1 << size)))
    for number, group in enumerate(groups):
        members[number, : len(group)] = group
        patterns.group[group] = number
        patterns.bit[group] = 1 << np.arange(len(group))
    fill_patterns(sets, patterns, members)
    return patterns


def _clashes(sets: ParentSets) -> Floats:
    """Return for each pair what it costs at least that they can't be each other's parents."""
    n = len(sets.starts) - 1
    losses = np.zeros((n, n))
    everything = np.uint64((1 << n) - 1)
    for node in range(n):
        for parent in range(n):
            row = best_within(sets, node, np.array([everything & ~np.uint64(1 << parent)]))
            losses[node, parent] = sets.scores[sets.starts[node]] - (sets.scores[row] if row >= 0 else -np.inf)
    return np.minimum(losses, losses.T)


def _groups(clashes: Floats) -> list[list[int]]:
    """Split the nodes into groups of about equal size; each takes in the node that clashes most with its members."""
    n = len(clashes)
    count = max(2, -(-n // _LARGEST_GROUP)) if n > 1 else 1
    free = list(range(n))
    groups: list[list[int]] = []
    for number in range(count):
        group = [max(free, key=lambda node: clashes[node, free].sum())]
        free.remove(group[0])
        while len(group) < -(-(len(free) + len(group)) // (count - number)):
            group.append(max(free, key=lambda node: clashes[node, group].sum()))
            free.remove(group[-1])
        groups.append(group)
    return groups
