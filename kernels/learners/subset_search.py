"""The best DAG on every subset of the nodes, by dynamic programming (Silander & Myllymäki 2006).

A set of nodes is a mask. The best DAG on S has a sink: V(S) = max over i in S of V(S - i) + b_i(S - i), where b_i(T) is
node i's best score with parents in T. All b_i at once would take n 2^(n-1) numbers; here they are made for a block of
masks that share their high bits, just before V of the block is filled in.
"""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.learners.parent_sets import ParentSets, best_within

# A block's table of one node, 2^12 numbers, fits into the fastest memory.
LOW_BITS = 12


@inner
def _best_in_block(sets: ParentSets, node: int, high: int, low_bits: int, table: Floats) -> None:
    """Write a node's best score with parents in T, for every T with these high bits."""
    size = 1 << low_bits
    table[:] = -np.inf
    for row in range(sets.starts[node], sets.starts[node + 1]):
        parents = np.int64(sets.words[row, 0])
        if (parents >> low_bits) & ~high == 0:
            place = parents & (size - 1)
            if sets.scores[row] > table[place]:
                table[place] = sets.scores[row]
    # b(T) = max over P within T of s(P), a low bit at a time: b(T + bit) = max(b(T + bit), b(T)).
    step = 1
    while step < size:
        for start in range(0, size, 2 * step):
            for low in range(start, start + step):
                table[low + step] = max(table[low + step], table[low])
        step *= 2


@inner
def _fill_block(sets: ParentSets, block: int, low_bits: int, values: Floats, tables: Floats) -> None:
    """Write V(S) = max over i in S of V(S - i) + b_i(S - i) for every S with these high bits."""
    n = len(sets.starts) - 1
    size = 1 << low_bits
    base = block << low_bits
    here = values[base : base + size]
    here[:] = -np.inf
    for node in range(low_bits, n):
        bit = 1 << (node - low_bits)
        if block & bit:
            table = tables[0]
            _best_in_block(sets, node, block ^ bit, low_bits, table)
            # The sink i is one of the high bits: V(S - i) stands in the block without it.
            without = values[(block ^ bit) << low_bits : ((block ^ bit) << low_bits) + size]
            for place in range(size):
                here[place] = max(here[place], without[place] + table[place])
    for node in range(low_bits):
        _best_in_block(sets, node, block, low_bits, tables[node])
    if block == 0:
        here[0] = 0.0
    for place in range(1, size):
        best = here[place]
        for node in range(low_bits):
            if (place >> node) & 1:
                # The sink i is one of the low bits: V(S - i) stands in this block, already there.
                before = place ^ (1 << node)
                best = max(best, here[before] + tables[node, before])
        here[place] = best


@compiled
def fill_values(sets: ParentSets, values: Floats, first: int, last: int) -> None:
    """Fill in V for the blocks from `first` up to, not including, `last`; those before must be there already."""
    n = len(sets.starts) - 1
    low_bits = min(n, LOW_BITS)
    tables = np.empty((low_bits, 1 << low_bits))
    for block in range(first, last):
        _fill_block(sets, block, low_bits, values, tables)


@compiled
def best_rows(sets: ParentSets, values: Floats) -> Ints:
    """Return the row of each node's parent set in the best DAG, sinks taken away one by one."""
    n = len(sets.starts) - 1
    rows = np.empty(n, np.int64)
    left = len(values) - 1
    before = np.empty(1, np.uint64)
    for _ in range(n):
        best, sink = -np.inf, -1
        for node in range(n):
            if not (left >> node) & 1:
                continue
            before[0] = left ^ (1 << node)
            row = best_within(sets, node, before)
            # V(S - i) + b_i(S - i) is largest at the sink.
            if row >= 0 and (sink < 0 or values[left ^ (1 << node)] + sets.scores[row] > best):
                best, sink = values[left ^ (1 << node)] + sets.scores[row], node
                rows[node] = row
        left ^= 1 << sink
    return rows
