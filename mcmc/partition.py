"""Partition MCMC: a chain over ordered partitions, each scored by the sum over the DAGs it stands for.

Kuipers & Moffa (2017). Every DAG belongs to exactly one ordered partition, its layering: the first
block holds the roots, and a node in a later block has all its parents in earlier blocks and at least one
in the block just before. The target of a partition is the product over the nodes of the sum of S over such parent
sets. So the chain carries no order bias: the target is the uniform prior over DAGs.
The moves are in `partition_moves` and `dag_moves`.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import ZERO, compiled, inner
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.draw_dag import draw_parents
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting
from gpn_bayes.mcmc.tables import ScoreTables, candidate, n_candidates

# Rows of `PartitionState.ints`.
ORDER, START, BLOCK, INSIDE, NEEDED, COUNT = range(6)


class PartitionState(NamedTuple):
    """An ordered partition and what is known of its score.

    Attributes
    ----------
    ints : ndarray of int64, shape (6, n + 1)
        The nodes, block after block (the order within a block means nothing); where each block begins,
        and after the last one n; the block of each node; the local masks of each node's candidates in
        earlier blocks, and in the block just before; the number of blocks, first in its row.
    score : ndarray of float64, shape (n,)
        Each node's share of the log score.
    """

    ints: Ints
    score: Floats


def new_partition(tables: ScoreTables, blocks: list[list[int]]) -> PartitionState:
    """Return the state of a given ordered partition, scored."""
    depth = np.empty(sum(len(members) for members in blocks), np.int64)
    for b, members in enumerate(blocks):
        depth[members] = b
    return partition_from_depths(tables, depth)


@compiled
def partition_from_depths(tables: ScoreTables, depth: Ints) -> PartitionState:
    """Return the state whose block of each node is its depth (0, 1, …, without a gap), scored."""
    n = len(depth)
    state = PartitionState(np.full((6, n + 1), -1), np.empty(n))
    set_blocks(tables, state, depth)
    return state


@inner
def set_blocks(tables: ScoreTables, state: PartitionState, depth: Ints) -> None:
    """Make the block of each node its depth (0, 1, …, without a gap), and score the partition."""
    n = len(depth)
    filled = 0
    b = 0
    while filled < n:
        state.ints[START, b] = filled
        for node in range(n):
            if depth[node] == b:
                state.ints[ORDER, filled] = node
                state.ints[BLOCK, node] = b
                # No mask, so that it is scored anew: its outside candidate may be another under the same mask.
                state.ints[INSIDE, node] = -1
                filled += 1
        b += 1
    state.ints[START, b] = n
    state.ints[COUNT, 0] = b
    rescore_partition(tables, state, ZERO, b)


@inner
def copy_partition(source: PartitionState, target: PartitionState) -> None:
    """Copy one state onto another."""
    n = len(source.score)
    for row in range(6):
        for i in range(n + 1):
            target.ints[row, i] = source.ints[row, i]
    for i in range(n):
        target.score[i] = source.score[i]


@inner
def node_score(tables: ScoreTables, node: int, block: int, inside: int, needed: int) -> float:
    """Return the log sum over the parent sets a node may have in its block."""
    if block == 0:
        return log_sum_inside(tables, node, ZERO)
    return log_sum_meeting(tables, node, inside, needed)


@inner
def rescore_partition(tables: ScoreTables, state: PartitionState, first: int, end: int) -> bool:
    """Bring the scores of the nodes in blocks first, …, end - 1 up to date.

    Returns False, and leaves the rest as it is, at the first node that can't stand where it stands: most
    proposals end there.
    """
    for b in range(first, min(end, state.ints[COUNT, 0])):
        for p in range(state.ints[START, b], state.ints[START, b + 1]):
            node = state.ints[ORDER, p]
            inside, needed = ZERO, ZERO
            for bit in range(n_candidates(tables, node)):
                # Without branches: they would be unpredictable, and cost more than the arithmetic.
                other = state.ints[BLOCK, candidate(tables, node, bit)]
                inside |= int(other < b) << bit
                needed |= int(other == b - 1) << bit
            # Masks without a needed parent don't tell a root from a node that misses one: score anew.
            if inside != state.ints[INSIDE, node] or needed != state.ints[NEEDED, node] or needed == 0:
                state.ints[INSIDE, node] = inside
                state.ints[NEEDED, node] = needed
                state.score[node] = node_score(tables, node, b, inside, needed)
                if state.score[node] == -np.inf:
                    return False
    return True


@compiled
def draw_from_partition(chance: Chance, tables: ScoreTables, state: PartitionState, parents: Ints) -> None:
    """Draw a DAG of the partition, as local parent masks."""
    for node in range(len(parents)):
        parents[node] = draw_parents(
            chance, tables, node, state.ints[INSIDE, node], state.ints[NEEDED, node], state.score[node]
        )
