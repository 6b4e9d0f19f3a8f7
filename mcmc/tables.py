"""Score tables: log S(node | parents) for all subsets of each node's candidates, and their sums.

A node may also have one parent from outside its candidates. Then it has one local bit more, whose meaning changes: at
any time the bit stands for one of the outside nodes, its outside candidate, and `gpn_bayes.mcmc.outside_candidates`
redraws it. A DAG without a parent from outside goes with each of the m possible outside candidates and one with such a
parent only with this one, so the scores of the latter are taken m times: then every DAG has its share of the states,
whichever outside candidates it has.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import NONE, compiled, inner
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES, subset_sums, sums_containing

# Up to this many candidates the sums over "sets that contain m" are tabulated; k 2^(k-1) numbers a node.
MAX_TABULATED = 14

# Columns of `ScoreTables.layout`; after them come four groups of n columns.
_SIZE, _CORE, _SCORES, _SUMS, _CONTAINING, _HEIRS = range(6)
_N_OUTSIDE, _OUTSIDE_PLACE, _OUTSIDE_SCORES, _OUTSIDE_RANKS, _GROUPS = range(6, 11)


class ScoreTables(NamedTuple):
    """Scores of n nodes over their candidate parents.

    Three arrays, since each array passed on costs a step of a sampler more than the lookup itself; read
    them through the functions of this module.

    Attributes
    ----------
    layout : ndarray of int64, shape (n, 10 + 4 n)
        For each node: the number of its local bits, and how many k of them are candidates for good; where its 2^k
        scores, its 2^k sums and its k 2^(k-1) sums over "sets that contain m" begin in `values`; the number of its
        heirs; the number of outside nodes, which of them is the outside candidate, and where the first outside node's
        scores begin in `values` and in `ranked`; its candidates, the outside candidate last; the local bit of every
        node among them, or -1; its heirs (the nodes that have it as a candidate or an outside candidate); its outside
        nodes. The outside candidates make it part of a chain's state: each chain has its own.
    values : ndarray of float64
        First all scores, prior included, minus infinity for sets that aren't allowed; then all sums of
        scores over the subsets of a set; then the sums over the subsets that contain m; then for each outside node the
        scores of the sets with it and their sums over subsets, times the number of outside nodes. All logs.
    ranked : ndarray of int32
        The masks of each node by falling score, laid out as the scores; then those of each outside node.
    """

    layout: Ints
    values: Floats
    ranked: NDArray[np.int32]


def build_tables(
    candidates: Sequence[Sequence[int]],
    scores: Sequence[Floats],
    outside: Sequence[Sequence[int]] | None = None,
    outside_scores: Sequence[Floats] | None = None,
) -> ScoreTables:
    """Build the samplers' tables from each node's candidates and the scores of all their subsets.

    Parameters
    ----------
    candidates : sequence of sequences of int
        Candidate parents of each node.
    scores : sequence of ndarray
        For each node 2^k log scores in local bitmask order.
    outside : sequence of sequences of int, optional
        The nodes of which each node may have one as a further parent.
    outside_scores : sequence of ndarray, optional
        For each node an array of (outside nodes, 2^k): the scores of the sets with each of them.
    """
    n = len(candidates)
    outside = [[] for _ in candidates] if outside is None else outside
    outside_scores = [np.empty((0, len(table))) for table in scores] if outside_scores is None else outside_scores
    _check_tables(candidates, scores, outside, outside_scores)
    core = np.array([len(chosen) for chosen in candidates], dtype=np.int64)
    outside_counts = np.array([len(others) for others in outside], dtype=np.int64)
    tabulated = np.where(core <= MAX_TABULATED, core * (1 << np.maximum(core - 1, 0)), 0)
    total = int((1 << core).sum())
    layout = np.full((n, _GROUPS + 4 * n), -1, dtype=np.int64)
    layout[:, _SIZE] = core + (outside_counts > 0)
    layout[:, _CORE] = core
    layout[:, _SCORES] = _starts(1 << core)
    layout[:, _SUMS] = layout[:, _SCORES] + total
    layout[:, _CONTAINING] = 2 * total + _starts(tabulated)
    layout[:, _N_OUTSIDE] = outside_counts
    layout[:, _OUTSIDE_SCORES] = 2 * total + int(tabulated.sum()) + _starts(2 * outside_counts << core)
    layout[:, _OUTSIDE_RANKS] = total + _starts(outside_counts << core)
    _list_neighbours(layout, candidates, outside)
    values = np.empty(2 * total + int(tabulated.sum()) + 2 * int((outside_counts << core).sum()))
    ranked = np.empty(total + int((outside_counts << core).sum()), dtype=np.int32)
    _write_scores(layout, values, ranked, scores)
    for i, table in enumerate(outside_scores):
        size = 1 << core[i]
        for place, row in enumerate(table):
            begin = layout[i, _OUTSIDE_SCORES] + 2 * size * place
            values[begin : begin + size] = row + np.log(len(table))
            begin = layout[i, _OUTSIDE_RANKS] + size * place
            ranked[begin : begin + size] = np.argsort(-row, kind="stable")
    tables = ScoreTables(layout, values, ranked)
    _fill_sums(tables)
    return tables


def rescored(tables: ScoreTables, scores: Sequence[Floats]) -> ScoreTables:
    """Return tables of the same candidates, none from outside, with other scores; these aren't checked.

    Parameters
    ----------
    tables : ScoreTables
        The tables, which stay as they are.
    scores : sequence of ndarray
        For each node 2^k log scores in local bitmask order.
    """
    made = ScoreTables(tables.layout.copy(), np.empty_like(tables.values), np.empty_like(tables.ranked))
    _write_scores(*made, scores)
    _fill_sums(made)
    return made


def _write_scores(layout: Ints, values: Floats, ranked: NDArray[np.int32], scores: Sequence[Floats]) -> None:
    """Write the scores of all sets of candidates, and their masks by falling score."""
    for begin, table in zip(layout[:, _SCORES], scores, strict=True):
        values[begin : begin + len(table)] = table
        ranked[begin : begin + len(table)] = np.argsort(-np.asarray(table), kind="stable")


def _starts(lengths: Ints) -> Ints:
    """Return where each of several stretches begins that follow each other."""
    return np.cumsum(lengths) - lengths


def _check_tables(
    candidates: Sequence[Sequence[int]],
    scores: Sequence[Floats],
    outside: Sequence[Sequence[int]],
    outside_scores: Sequence[Floats],
) -> None:
    n = len(candidates)
    largest = max((len(chosen) for chosen in candidates), default=0)
    if largest > MAX_CANDIDATES:
        raise ValueError(f"at most {MAX_CANDIDATES} candidates a node are supported; received {largest}")
    for what, given in (
        ("table of scores", scores),
        ("list of outside nodes", outside),
        ("table of outside scores", outside_scores),
    ):
        if len(given) != n:
            raise ValueError(f"every node needs a {what}; received {len(given)} for {n} nodes")
    for i, (chosen, others) in enumerate(zip(candidates, outside, strict=True)):
        _check_candidates(i, [int(j) for j in chosen] + [int(j) for j in others], n)
        size = 1 << len(chosen)
        if len(scores[i]) != size:
            raise ValueError(f"node {i} with {len(chosen)} candidates needs {size} scores; got {len(scores[i])}")
        if outside_scores[i].shape != (len(others), size):
            raise ValueError(
                f"node {i} needs outside scores of shape {(len(others), size)}; got {outside_scores[i].shape}"
            )
        if not np.isfinite(scores[i]).any():
            raise ValueError(f"node {i} must have a finite score for some parent set")
        if any(np.isnan(table).any() or np.isposinf(table).any() for table in (scores[i], outside_scores[i])):
            raise ValueError(f"node {i} must have no score that is NaN or plus infinity")


def _check_candidates(node: int, chosen: list[int], n: int) -> None:
    """Refuse candidates that are no other node of the network, or named twice."""
    if node in chosen or len(set(chosen)) < len(chosen) or not all(0 <= j < n for j in chosen):
        raise ValueError(
            f"candidates must be distinct nodes from 0 to {n - 1} other than the node; node {node} has {chosen}"
        )


def _list_neighbours(layout: Ints, candidates: Sequence[Sequence[int]], outside: Sequence[Sequence[int]]) -> None:
    """Write candidates and outside nodes into a layout; the first outside node is the outside candidate."""
    n = len(candidates)
    layout[:, _HEIRS] = 0
    for i, (chosen, others) in enumerate(zip(candidates, outside, strict=True)):
        layout[i, _GROUPS + 3 * n : _GROUPS + 3 * n + len(others)] = others
        for bit, j in enumerate([*chosen, *others[:1]]):
            layout[i, _GROUPS + bit] = j
            layout[i, _GROUPS + n + j] = bit
            layout[j, _GROUPS + 2 * n + layout[j, _HEIRS]] = i
            layout[j, _HEIRS] += 1
        layout[i, _OUTSIDE_PLACE] = 0 if len(others) else -1


@inner
def _write(source: Floats, target: Floats, begin: int) -> None:
    # A slice that is assigned an array takes two seconds to compile.
    for k in range(len(source)):
        target[begin + k] = source[k]


@compiled
def _fill_sums(tables: ScoreTables) -> None:
    values = tables.values
    for i in range(len(tables.layout)):
        k = tables.layout[i, _CORE]
        size = 1 << k
        own = scores_of(tables, i)
        begin = tables.layout[i, _SUMS]
        _write(subset_sums(own), values, begin)
        if 0 < k <= MAX_TABULATED:
            half = size >> 1
            for m in range(k):
                begin = tables.layout[i, _CONTAINING] + m * half
                _write(sums_containing(own, m), values, begin)
        for place in range(tables.layout[i, _N_OUTSIDE]):
            begin = tables.layout[i, _OUTSIDE_SCORES] + 2 * size * place
            _write(subset_sums(values[begin : begin + size]), values, begin + size)


@compiled
def n_candidates(tables: ScoreTables, node: int) -> int:
    """Return the number of candidates of a node, its outside candidate included."""
    count: int = tables.layout[node, _SIZE]
    return count


@compiled
def candidate(tables: ScoreTables, node: int, bit: int) -> int:
    """Return the candidate of a node that a local bit stands for."""
    parent: int = tables.layout[node, _GROUPS + bit]
    return parent


@compiled
def bit_of(tables: ScoreTables, node: int, other: int) -> int:
    """Return the local bit of another node among a node's candidates, or -1."""
    bit: int = tables.layout[node, _GROUPS + len(tables.layout) + other]
    return bit


@compiled
def n_heirs(tables: ScoreTables, node: int) -> int:
    """Return how many nodes have a node as a candidate."""
    count: int = tables.layout[node, _HEIRS]
    return count


@compiled
def heir(tables: ScoreTables, node: int, index: int) -> int:
    """Return one of the nodes that have a node as a candidate."""
    child: int = tables.layout[node, _GROUPS + 2 * len(tables.layout) + index]
    return child


@inner
def n_core(tables: ScoreTables, node: int) -> int:
    """Return the number of permanent candidates of a node, which is also the local bit of its outside candidate."""
    count: int = tables.layout[node, _CORE]
    return count


@inner
def n_outside(tables: ScoreTables, node: int) -> int:
    """Return how many nodes a node may have as an outside candidate."""
    count: int = tables.layout[node, _N_OUTSIDE]
    return count


@compiled
def outside_node(tables: ScoreTables, node: int, place: int) -> int:
    """Return one of the nodes that a node may have as an outside candidate."""
    parent: int = tables.layout[node, _GROUPS + 3 * len(tables.layout) + place]
    return parent


@compiled
def outside_place(tables: ScoreTables, node: int) -> int:
    """Return which outside node is the outside candidate; -1 if there are none."""
    place: int = tables.layout[node, _OUTSIDE_PLACE]
    return place


@compiled
def set_outside_candidate(tables: ScoreTables, node: int, place: int) -> None:
    """Make another outside node the outside candidate of a node."""
    n = len(tables.layout)
    bit = n_core(tables, node)
    old, new = candidate(tables, node, bit), outside_node(tables, node, place)
    if old == new:
        return
    tables.layout[node, _OUTSIDE_PLACE] = place
    tables.layout[node, _GROUPS + bit] = new
    tables.layout[node, _GROUPS + n + old] = -1
    tables.layout[node, _GROUPS + n + new] = bit
    # Heirs stay sorted, so that tables with the same outside candidates are the same and a resumed run repeats itself.
    heirs = tables.layout[old, _GROUPS + 2 * n : _GROUPS + 3 * n]
    tables.layout[old, _HEIRS] -= 1
    for h in range(tables.layout[old, _HEIRS]):
        if heirs[h] >= node:
            heirs[h] = heirs[h + 1]
    heirs = tables.layout[new, _GROUPS + 2 * n : _GROUPS + 3 * n]
    h = tables.layout[new, _HEIRS]
    while h > 0 and heirs[h - 1] > node:
        heirs[h] = heirs[h - 1]
        h -= 1
    heirs[h] = node
    tables.layout[new, _HEIRS] += 1


def own_copy(tables: ScoreTables) -> ScoreTables:
    """Return tables with outside candidates of their own and the same scores."""
    return tables._replace(layout=tables.layout.copy())


def outside_counts(tables: ScoreTables) -> Ints:
    """Return how many nodes each node may have as an outside candidate."""
    return tables.layout[:, _N_OUTSIDE].copy()


def outside_places(tables: ScoreTables) -> Ints:
    """Return which outside node is the outside candidate of each node; -1 where there are none."""
    return tables.layout[:, _OUTSIDE_PLACE].copy()


def set_outside_candidates(tables: ScoreTables, places: Ints) -> None:
    """Give every node the outside candidate that `outside_places` returned."""
    for node, place in enumerate(places):
        if place >= 0:
            set_outside_candidate(tables, node, place)


@compiled
def scores_of(tables: ScoreTables, node: int) -> Floats:
    """Return the log scores of all sets of a node's candidates for good, in bitmask order."""
    begin = tables.layout[node, _SCORES]
    return tables.values[begin : begin + (1 << tables.layout[node, _CORE])]


@inner
def own_stretches(tables: ScoreTables, node: int) -> tuple[int, int, int, int]:
    """Return where a node's scores, their sums, their ranked masks and, else -1, the sums "containing m" begin."""
    own = tables.layout[node]
    return own[_SCORES], own[_SUMS], own[_SCORES], own[_CONTAINING] if own[_CORE] <= MAX_TABULATED else NONE


@inner
def outside_stretches(tables: ScoreTables, node: int, place: int) -> tuple[int, int, int, int]:
    """Return the same for the sets with an outside node; they have no sums "containing m"."""
    k = tables.layout[node, _CORE]
    scores = tables.layout[node, _OUTSIDE_SCORES] + (place * 2 << k)
    return scores, scores + (1 << k), tables.layout[node, _OUTSIDE_RANKS] + (place << k), NONE


@compiled
def log_score(tables: ScoreTables, node: int, mask: int) -> float:
    """Return log S(node | parents), prior included; with a parent from outside, times the number of outside nodes."""
    k = tables.layout[node, _CORE]
    score: float
    if mask >> k:
        score = tables.values[outside_stretches(tables, node, outside_place(tables, node))[0] + mask - (1 << k)]
    else:
        score = tables.values[tables.layout[node, _SCORES] + mask]
    return score


@compiled
def ranked_mask(tables: ScoreTables, node: int, rank: int, with_outside: bool) -> int:
    """Return the mask of a given rank, best first, among parent sets without the outside candidate or those with it."""
    mask: int
    if with_outside:
        mask = tables.ranked[outside_stretches(tables, node, outside_place(tables, node))[2] + rank]
    else:
        mask = tables.ranked[tables.layout[node, _SCORES] + rank]
    return mask


@compiled
def log_score_of(tables: ScoreTables, parents: Ints) -> float:
    """Return the log score of a DAG given by local parent masks."""
    total = 0.0
    for i in range(len(parents)):
        total += log_score(tables, i, parents[i])
        if parents[i] >> n_core(tables, i):
            total -= np.log(n_outside(tables, i))
    return total
