"""The moves of partition MCMC that work on the partition itself.

`propose_partition` proposes from `current` into `new`, a copy of it, and returns the log acceptance
ratio. Each move returns the log ratio of proposal probabilities, back over there; minus infinity where
nothing can be proposed, which counts as a step that stays.
"""

import math

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import ONE, ZERO, compiled, inner
from gpn_bayes.mcmc.choices import Chance, choose, choose_weighted
from gpn_bayes.mcmc.partition import (
    BLOCK,
    COUNT,
    INSIDE,
    NEEDED,
    ORDER,
    START,
    PartitionState,
    node_score,
    rescore_partition,
    set_blocks,
)
from gpn_bayes.mcmc.tables import ScoreTables, bit_of, candidate, n_candidates

SPLIT_OR_JOIN, ADJACENT_SWAP, ANY_SWAP, RELOCATE = range(4)


@inner
def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@inner
def _split_or_join(chance: Chance, tables: ScoreTables, new: PartitionState) -> float:
    """Pick one of the n - 1 gaps between nodes: join the blocks it parts, or split the block it lies in.

    A gap inside a block of k nodes, c of them before it, stands for all C(k, c) ways to split the block
    into c and k - c nodes; one of them is drawn. The number of gaps is the same in every partition.
    """
    n = len(new.score)
    if n == 1:
        return -np.inf
    gap = choose(chance, n - 1)
    b = new.ints[BLOCK, new.ints[ORDER, gap]]
    if new.ints[BLOCK, new.ints[ORDER, gap + 1]] != b:
        c, size = new.ints[START, b + 1] - new.ints[START, b], new.ints[START, b + 2] - new.ints[START, b]
        _join(new, b)
        return -_log_binomial(size, c) if rescore_partition(tables, new, b, b + 2) else -np.inf
    size = new.ints[START, b + 1] - new.ints[START, b]
    c = gap + 1 - new.ints[START, b]
    _choose_first(chance, new, b, c)
    _split(new, b, c)
    return _log_binomial(size, c) if rescore_partition(tables, new, b + 1, b + 3) else -np.inf


@inner
def _choose_first(chance: Chance, state: PartitionState, b: int, c: int) -> None:
    """Bring c nodes of a block, drawn uniformly, to its front."""
    begin = state.ints[START, b]
    size = state.ints[START, b + 1] - begin
    for t in range(c):
        here = begin + t
        there = here + choose(chance, size - t)
        state.ints[ORDER, here], state.ints[ORDER, there] = state.ints[ORDER, there], state.ints[ORDER, here]


@compiled
def _join(state: PartitionState, b: int) -> None:
    for p in range(state.ints[START, b + 1], len(state.score)):
        state.ints[BLOCK, state.ints[ORDER, p]] -= 1
    for later in range(b + 1, state.ints[COUNT, 0]):
        state.ints[START, later] = state.ints[START, later + 1]
    state.ints[COUNT, 0] -= 1


@compiled
def _split(state: PartitionState, b: int, c: int) -> None:
    for later in range(state.ints[COUNT, 0], b, -1):
        state.ints[START, later + 1] = state.ints[START, later]
    state.ints[START, b + 1] = state.ints[START, b] + c
    state.ints[COUNT, 0] += 1
    for p in range(state.ints[START, b + 1], len(state.score)):
        state.ints[BLOCK, state.ints[ORDER, p]] += 1


@inner
def _swap_nodes(chance: Chance, tables: ScoreTables, new: PartitionState, adjacent: bool) -> float:
    """Swap two nodes of different blocks: of neighbouring blocks, or of any. Symmetric: sizes stay."""
    m = new.ints[COUNT, 0]
    if m == 1:
        return -np.inf
    if adjacent:
        b = choose(chance, m - 1)
        first = new.ints[START, b] + choose(chance, new.ints[START, b + 1] - new.ints[START, b])
        second = new.ints[START, b + 1] + choose(chance, new.ints[START, b + 2] - new.ints[START, b + 1])
    else:
        first = choose(chance, len(new.score))
        b = new.ints[BLOCK, new.ints[ORDER, first]]
        size = new.ints[START, b + 1] - new.ints[START, b]
        second = choose(chance, len(new.score) - size)
        if second >= new.ints[START, b]:
            second += size
        first, second = min(first, second), max(first, second)
    left, right = new.ints[ORDER, first], new.ints[ORDER, second]
    new.ints[ORDER, first], new.ints[ORDER, second] = right, left
    low, high = new.ints[BLOCK, left], new.ints[BLOCK, right]
    new.ints[BLOCK, left], new.ints[BLOCK, right] = high, low
    return 0.0 if rescore_partition(tables, new, low, high + 2) else -np.inf


@inner
def _relocate_node(
    chance: Chance, tables: ScoreTables, current: PartitionState, new: PartitionState, beta: float
) -> float:
    """Take a node out and put it back, into any block or between any two, by Gibbs.

    With the node taken out, m blocks are left: m blocks to join and m + 1 gaps to stand in alone. The
    2m + 1 partitions share what is left, so drawing one in proportion to its score is reversible.
    """
    n = len(current.score)
    node = choose(chance, n)
    blocks, m = _blocks_without(current, node)
    log_weights = _log_weights_of_places(tables, current, node, blocks, m)
    place = choose_weighted(chance, beta * log_weights)
    if place < m:
        blocks[node] = place
    else:
        for other in range(n):
            blocks[other] += blocks[other] >= place - m
        blocks[node] = place - m
    set_blocks(tables, new, blocks)
    return 0.0


@inner
def _blocks_without(current: PartitionState, node: int) -> tuple[Ints, int]:
    """Return the block of every other node once `node` is out, and the number of blocks."""
    b = current.ints[BLOCK, node]
    alone = current.ints[START, b + 1] - current.ints[START, b] == 1
    blocks = current.ints[BLOCK, : len(current.score)].copy()
    m = current.ints[COUNT, 0]
    if alone:
        m -= 1
        for other in range(len(blocks)):
            if blocks[other] > b:
                blocks[other] -= 1
    # Never in an earlier block, nor in the block just before.
    blocks[node] = len(blocks)
    return blocks, m


@inner
def _log_weights_of_places(tables: ScoreTables, current: PartitionState, node: int, blocks: Ints, m: int) -> Floats:
    """Return the log score of the node in block 0, …, m - 1, then alone before block 0, …, m."""
    before = np.zeros(m + 1)  # node in a later block or the same
    joined = np.zeros(m + 1)  # node in the block just before
    alone = np.zeros(m + 1)  # node alone just before
    earlier = np.zeros(m + 2)  # node further up
    for other in range(len(blocks)):
        if other == node:
            continue
        b = blocks[other]
        inside, needed = ZERO, ZERO
        for bit in range(n_candidates(tables, other)):
            block = blocks[candidate(tables, other, bit)]
            inside |= int(block < b) << bit
            needed |= int(block == b - 1) << bit
        if inside == current.ints[INSIDE, other] and needed == current.ints[NEEDED, other] and needed != 0:
            unaware = current.score[other]
        else:
            unaware = node_score(tables, other, b, inside, needed)
        before[b] += unaware
        own = bit_of(tables, other, node)
        if own < 0:
            joined[b] += unaware
            earlier[b] += unaware
            alone[b] = -np.inf
            continue
        with_node = inside | (1 << own)
        joined[b] += node_score(tables, other, ONE, with_node, needed | (1 << own))
        alone[b] += node_score(tables, other, ONE, with_node, 1 << own)
        earlier[b] += node_score(tables, other, ONE, with_node, needed)
    for b in range(m - 1, -1, -1):
        earlier[b] += earlier[b + 1]
    log_weights = np.empty(2 * m + 1)
    above = 0.0
    inside, needed = ZERO, ZERO
    for b in range(m + 1):
        own_score = node_score(tables, node, b, inside, needed)
        after = earlier[b + 1] if b < m else 0.0
        log_weights[m + b] = above + own_score + alone[b] + after
        if b == m:
            break
        above += before[b]
        further = joined[b + 1] + earlier[b + 2] if b + 1 < m else 0.0
        log_weights[b] = above + own_score + further
        needed = ZERO
        for bit in range(n_candidates(tables, node)):
            needed |= int(blocks[candidate(tables, node, bit)] == b) << bit
        inside |= needed
    return log_weights


@compiled
def propose_partition(
    chance: Chance, tables: ScoreTables, current: PartitionState, new: PartitionState, move: int, beta: float
) -> float:
    """Propose a move from `current` into `new` (a copy of it); return the log acceptance ratio.

    The target is the score to the power `beta`: 1, or less for the chains that tempering couples to this one.
    """
    if move == RELOCATE:
        # A Gibbs draw: the scores are in the proposal already.
        return _relocate_node(chance, tables, current, new, beta)
    if move == SPLIT_OR_JOIN:
        log_q = _split_or_join(chance, tables, new)
    else:
        log_q = _swap_nodes(chance, tables, new, move == ADJACENT_SWAP)
    if log_q == -np.inf:
        return log_q
    return log_q + beta * (new.score.sum() - current.score.sum())
