"""Score tables: log S(node | parents) for all subsets of each node's candidates, and their sums."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.subsets import MAX_CANDIDATES, log_add, subset_sums, sums_containing, without_bit

# Up to this many candidates the sums over "sets that contain m" are tabulated; k 2^(k-1) numbers a node.
MAX_TABULATED = 14
# A difference of two subset sums is used while it keeps this share of the larger one.
_SAFE_SHARE_TABULATED = 0.1
_SAFE_SHARE_DIRECT = 1e-4


# Columns of `ScoreTables.layout`; after them come three groups of n columns.
_SIZE, _SCORES, _SUMS, _CONTAINING, _HEIRS, _GROUPS = 0, 1, 2, 3, 4, 5


class ScoreTables(NamedTuple):
    """Scores of n nodes over their candidate parents.

    Three arrays, since each array passed on costs a step of a sampler more than the lookup itself; read
    them through the functions of this module.

    Attributes
    ----------
    layout : ndarray of int64, shape (n, 5 + 3 n)
        For each node: the number of its candidates; where its 2^k scores, its 2^k sums and its k 2^(k-1)
        sums over "sets that contain m" begin in `values`; the number of its heirs; its candidates; the
        local bit of every node among them, or -1; its heirs (the nodes that have it as a candidate).
    values : ndarray of float64
        First all scores, prior included, minus infinity for sets that aren't allowed; then all sums of
        scores over the subsets of a set; then the sums over the subsets that contain m. All logs.
    ranked : ndarray of int32
        The masks of each node by falling score, laid out as the scores.
    """

    layout: np.ndarray
    values: np.ndarray
    ranked: np.ndarray


def build_tables(candidates: Sequence[Sequence[int]], scores: Sequence[np.ndarray]) -> ScoreTables:
    """Build the samplers' tables from each node's candidates and the scores of all their subsets.

    Parameters
    ----------
    candidates : sequence of sequences of int
        Candidate parents of each node.
    scores : sequence of ndarray
        For each node 2^k log scores in local bitmask order.
    """
    n = len(candidates)
    sizes = np.array([len(chosen) for chosen in candidates], dtype=np.int64)
    if sizes.max(initial=0) > MAX_CANDIDATES:
        raise ValueError(f"at most {MAX_CANDIDATES} candidates a node are supported; received {sizes.max()}")
    if len(scores) != n:
        raise ValueError(f"every node needs a table of scores; received {len(scores)} tables for {n} nodes")
    for i, chosen in enumerate(candidates):
        _check_candidates(i, [int(j) for j in chosen], n)
    for i, table in enumerate(scores):
        if len(table) != 1 << sizes[i]:
            raise ValueError(f"node {i} with {sizes[i]} candidates needs {1 << sizes[i]} scores; got {len(table)}")
        if not np.isfinite(table).any() or np.isnan(table).any() or np.isposinf(table).any():
            raise ValueError(f"node {i} must have a finite score for some parent set, and none NaN or infinite")
    tabulated = np.where(sizes <= MAX_TABULATED, sizes * (1 << np.maximum(sizes - 1, 0)), 0)
    total = int((1 << sizes).sum())
    layout = _lay_out(candidates)
    layout[:, _SIZE] = sizes
    layout[:, _SCORES] = np.cumsum(1 << sizes) - (1 << sizes)
    layout[:, _SUMS] = layout[:, _SCORES] + total
    layout[:, _CONTAINING] = 2 * total + np.cumsum(tabulated) - tabulated
    values = np.empty(2 * total + int(tabulated.sum()))
    ranked = np.empty(total, dtype=np.int32)
    for begin, table in zip(layout[:, _SCORES], scores, strict=True):
        values[begin : begin + len(table)] = table
        ranked[begin : begin + len(table)] = np.argsort(-np.asarray(table), kind="stable")
    tables = ScoreTables(layout, values, ranked)
    _fill_sums(tables)
    return tables


def _check_candidates(node: int, chosen: list[int], n: int) -> None:
    """Refuse candidates that are no other node of the network, or named twice."""
    if node in chosen or len(set(chosen)) < len(chosen) or not all(0 <= j < n for j in chosen):
        raise ValueError(
            f"candidates must be distinct nodes from 0 to {n - 1} other than the node; node {node} has {chosen}"
        )


def _lay_out(candidates: Sequence[Sequence[int]]) -> np.ndarray:
    """Write who is a candidate of whom into a new layout."""
    n = len(candidates)
    layout = np.full((n, _GROUPS + 3 * n), -1, dtype=np.int64)
    layout[:, _HEIRS] = 0
    for i, chosen in enumerate(candidates):
        for bit, j in enumerate(chosen):
            layout[i, _GROUPS + bit] = j
            layout[i, _GROUPS + n + j] = bit
            layout[j, _GROUPS + 2 * n + layout[j, _HEIRS]] = i
            layout[j, _HEIRS] += 1
    return layout


@compiled
def _fill_sums(tables: ScoreTables) -> None:
    values = tables.values
    for i in range(len(tables.layout)):
        k = n_candidates(tables, i)
        own = scores_of(tables, i)
        begin = tables.layout[i, _SUMS]
        values[begin : begin + len(own)] = subset_sums(own)
        if 0 < k <= MAX_TABULATED:
            half = 1 << (k - 1)
            for m in range(k):
                begin = tables.layout[i, _CONTAINING] + m * half
                values[begin : begin + half] = sums_containing(own, m)


@compiled
def n_candidates(tables: ScoreTables, node: int) -> int:
    """Return the number of candidates of a node."""
    return tables.layout[node, _SIZE]


@compiled
def candidate(tables: ScoreTables, node: int, bit: int) -> int:
    """Return the candidate of a node that a local bit stands for."""
    return tables.layout[node, _GROUPS + bit]


@compiled
def bit_of(tables: ScoreTables, node: int, other: int) -> int:
    """Return the local bit of another node among a node's candidates, or -1."""
    return tables.layout[node, _GROUPS + len(tables.layout) + other]


@compiled
def n_heirs(tables: ScoreTables, node: int) -> int:
    """Return how many nodes have a node as a candidate."""
    return tables.layout[node, _HEIRS]


@compiled
def heir(tables: ScoreTables, node: int, index: int) -> int:
    """Return one of the nodes that have a node as a candidate."""
    return tables.layout[node, _GROUPS + 2 * len(tables.layout) + index]


@compiled
def scores_of(tables: ScoreTables, node: int) -> np.ndarray:
    """Return the 2^k log scores of a node, in bitmask order."""
    begin = tables.layout[node, _SCORES]
    return tables.values[begin : begin + (1 << tables.layout[node, _SIZE])]


@compiled
def log_score(tables: ScoreTables, node: int, mask: int) -> float:
    """Return log S(node | parents), prior included."""
    return tables.values[tables.layout[node, _SCORES] + mask]


@compiled
def ranked_mask(tables: ScoreTables, node: int, rank: int) -> int:
    """Return the parent set of a given rank, best first."""
    return tables.ranked[tables.layout[node, _SCORES] + rank]


@compiled
def log_sum_inside(tables: ScoreTables, node: int, inside: int) -> float:
    """Return the log sum of S over all parent sets inside a set."""
    return tables.values[tables.layout[node, _SUMS] + inside]


@compiled
def log_sum_meeting(tables: ScoreTables, node: int, inside: int, needed: int) -> float:
    """Return the log sum of S over the parent sets inside a set that meet `needed` (a part of it).

    It is the sum over all sets less the sum over those that avoid `needed`; where that difference loses
    too many digits, the sets are summed directly, all terms positive.
    """
    if needed == 0:
        return -np.inf
    everything = log_sum_inside(tables, node, inside)
    avoiding = log_sum_inside(tables, node, inside & ~needed)
    if avoiding == -np.inf:
        return everything
    share = -np.expm1(avoiding - everything)
    tabulated = n_candidates(tables, node) <= MAX_TABULATED
    if share > (_SAFE_SHARE_TABULATED if tabulated else _SAFE_SHARE_DIRECT):
        return everything + np.log(share)
    if tabulated:
        return _sum_by_members(tables, node, inside, needed)
    return _sum_by_sets(tables, node, inside, needed)


@compiled
def _sum_by_members(tables: ScoreTables, node: int, inside: int, needed: int) -> float:
    """Sum over the members m of `needed`: the sets whose first member it is."""
    half = 1 << (n_candidates(tables, node) - 1)
    base = tables.layout[node, _CONTAINING]
    total = -np.inf
    left = inside
    for m in range(n_candidates(tables, node)):
        if (needed >> m) & 1:
            total = log_add(total, tables.values[base + m * half + without_bit(left, m)])
            left &= ~(1 << m)
    return total


@compiled
def _sum_by_sets(tables: ScoreTables, node: int, inside: int, needed: int) -> float:
    """Sum over every set inside that meets `needed`, from the largest score down."""
    top = -np.inf
    total = 0.0
    for rank in range(1 << n_candidates(tables, node)):
        mask = ranked_mask(tables, node, rank)
        if mask & ~inside or not mask & needed:
            continue
        score = log_score(tables, node, mask)
        if top == -np.inf:
            top = score
        # Falling order: what follows is smaller still, and 2^20 such terms don't reach the last digit.
        if score - top < -55.0 or score == -np.inf:
            break
        total += np.exp(score - top)
    return top + np.log(total) if total > 0.0 else -np.inf


@compiled
def log_score_of(tables: ScoreTables, parents: np.ndarray) -> float:
    """Return the log score of a DAG given by local parent masks."""
    total = 0.0
    for i in range(len(parents)):
        total += log_score(tables, i, parents[i])
    return total
