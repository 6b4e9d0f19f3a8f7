"""Score tables: log S(node | parents) for all subsets of each node's candidates, and their sums.

A node may also have one parent from outside its candidates. Then it has one local bit more, whose meaning changes: at
any time the bit stands for one of the outside nodes, its guest, and `gpn_bayes.mcmc.guests` redraws the guest. A DAG
without a parent from outside goes with each of the m possible guests and one with such a parent only with this one, so
the scores of the latter are taken m times: then every DAG has its share of the states, whichever guests it has.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled
from gpn_bayes.kernels.subsets import MAX_CANDIDATES, subset_sums, sums_containing

# Up to this many candidates the sums over "sets that contain m" are tabulated; k 2^(k-1) numbers a node.
MAX_TABULATED = 14

# Columns of `ScoreTables.layout`; after them come four groups of n columns.
_SIZE, _CORE, _SCORES, _SUMS, _CONTAINING, _HEIRS, _OUTSIDERS, _GUEST, _GUEST_SCORES, _GUEST_RANKS, _GROUPS = range(11)


class ScoreTables(NamedTuple):
    """Scores of n nodes over their candidate parents.

    Three arrays, since each array passed on costs a step of a sampler more than the lookup itself; read
    them through the functions of this module.

    Attributes
    ----------
    layout : ndarray of int64, shape (n, 10 + 4 n)
        For each node: the number of its local bits, and how many k of them are candidates for good; where its 2^k
        scores, its 2^k sums and its k 2^(k-1) sums over "sets that contain m" begin in `values`; the number of its
        heirs; the number of outsiders, which of them is the guest, and where the first outsider's scores begin in
        `values` and in `ranked`; its candidates, the guest last; the local bit of every node among them, or -1; its
        heirs (the nodes that have it as a candidate or a guest); its outsiders. The guests make it part of a chain's
        state: each chain has its own.
    values : ndarray of float64
        First all scores, prior included, minus infinity for sets that aren't allowed; then all sums of
        scores over the subsets of a set; then the sums over the subsets that contain m; then for each outsider the
        scores of the sets with it and their sums over subsets, times the number of outsiders. All logs.
    ranked : ndarray of int32
        The masks of each node by falling score, laid out as the scores; then those of each outsider.
    """

    layout: Ints
    values: Floats
    ranked: NDArray[np.int32]


def build_tables(
    candidates: Sequence[Sequence[int]],
    scores: Sequence[Floats],
    outsiders: Sequence[Sequence[int]] | None = None,
    guest_scores: Sequence[Floats] | None = None,
) -> ScoreTables:
    """Build the samplers' tables from each node's candidates and the scores of all their subsets.

    Parameters
    ----------
    candidates : sequence of sequences of int
        Candidate parents of each node.
    scores : sequence of ndarray
        For each node 2^k log scores in local bitmask order.
    outsiders : sequence of sequences of int, optional
        The nodes of which each node may have one as a further parent.
    guest_scores : sequence of ndarray, optional
        For each node an array of (outsiders, 2^k): the scores of the sets with each of them.
    """
    n = len(candidates)
    outsiders = [[] for _ in candidates] if outsiders is None else outsiders
    guest_scores = [np.empty((0, len(table))) for table in scores] if guest_scores is None else guest_scores
    _check_tables(candidates, scores, outsiders, guest_scores)
    core = np.array([len(chosen) for chosen in candidates], dtype=np.int64)
    guests = np.array([len(others) for others in outsiders], dtype=np.int64)
    tabulated = np.where(core <= MAX_TABULATED, core * (1 << np.maximum(core - 1, 0)), 0)
    total = int((1 << core).sum())
    layout = np.full((n, _GROUPS + 4 * n), -1, dtype=np.int64)
    layout[:, _SIZE] = core + (guests > 0)
    layout[:, _CORE] = core
    layout[:, _SCORES] = _starts(1 << core)
    layout[:, _SUMS] = layout[:, _SCORES] + total
    layout[:, _CONTAINING] = 2 * total + _starts(tabulated)
    layout[:, _OUTSIDERS] = guests
    layout[:, _GUEST_SCORES] = 2 * total + int(tabulated.sum()) + _starts(2 * guests << core)
    layout[:, _GUEST_RANKS] = total + _starts(guests << core)
    _list_neighbours(layout, candidates, outsiders)
    values = np.empty(2 * total + int(tabulated.sum()) + 2 * int((guests << core).sum()))
    ranked = np.empty(total + int((guests << core).sum()), dtype=np.int32)
    for begin, table in zip(layout[:, _SCORES], scores, strict=True):
        values[begin : begin + len(table)] = table
        ranked[begin : begin + len(table)] = np.argsort(-np.asarray(table), kind="stable")
    for i, table in enumerate(guest_scores):
        size = 1 << core[i]
        for place, row in enumerate(table):
            begin = layout[i, _GUEST_SCORES] + 2 * size * place
            values[begin : begin + size] = row + np.log(len(table))
            begin = layout[i, _GUEST_RANKS] + size * place
            ranked[begin : begin + size] = np.argsort(-row, kind="stable")
    tables = ScoreTables(layout, values, ranked)
    _fill_sums(tables)
    return tables


def _starts(lengths: Ints) -> Ints:
    """Return where each of several stretches begins that follow each other."""
    return np.cumsum(lengths) - lengths


def _check_tables(
    candidates: Sequence[Sequence[int]],
    scores: Sequence[Floats],
    outsiders: Sequence[Sequence[int]],
    guest_scores: Sequence[Floats],
) -> None:
    n = len(candidates)
    largest = max((len(chosen) for chosen in candidates), default=0)
    if largest > MAX_CANDIDATES:
        raise ValueError(f"at most {MAX_CANDIDATES} candidates a node are supported; received {largest}")
    for what, given in (("table of scores", scores), ("list of outsiders", outsiders), ("guest table", guest_scores)):
        if len(given) != n:
            raise ValueError(f"every node needs a {what}; received {len(given)} for {n} nodes")
    for i, (chosen, others) in enumerate(zip(candidates, outsiders, strict=True)):
        _check_candidates(i, [int(j) for j in chosen] + [int(j) for j in others], n)
        size = 1 << len(chosen)
        if len(scores[i]) != size:
            raise ValueError(f"node {i} with {len(chosen)} candidates needs {size} scores; got {len(scores[i])}")
        if guest_scores[i].shape != (len(others), size):
            raise ValueError(f"node {i} needs guest scores of shape {(len(others), size)}; got {guest_scores[i].shape}")
        if not np.isfinite(scores[i]).any():
            raise ValueError(f"node {i} must have a finite score for some parent set")
        if any(np.isnan(table).any() or np.isposinf(table).any() for table in (scores[i], guest_scores[i])):
            raise ValueError(f"node {i} must have no score that is NaN or plus infinity")


def _check_candidates(node: int, chosen: list[int], n: int) -> None:
    """Refuse candidates that are no other node of the network, or named twice."""
    if node in chosen or len(set(chosen)) < len(chosen) or not all(0 <= j < n for j in chosen):
        raise ValueError(
            f"candidates must be distinct nodes from 0 to {n - 1} other than the node; node {node} has {chosen}"
        )


def _list_neighbours(layout: Ints, candidates: Sequence[Sequence[int]], outsiders: Sequence[Sequence[int]]) -> None:
    """Write who is a candidate of whom, and who is outside, into a layout; the first outsider is the guest."""
    n = len(candidates)
    layout[:, _HEIRS] = 0
    for i, (chosen, others) in enumerate(zip(candidates, outsiders, strict=True)):
        layout[i, _GROUPS + 3 * n : _GROUPS + 3 * n + len(others)] = others
        for bit, j in enumerate([*chosen, *others[:1]]):
            layout[i, _GROUPS + bit] = j
            layout[i, _GROUPS + n + j] = bit
            layout[j, _GROUPS + 2 * n + layout[j, _HEIRS]] = i
            layout[j, _HEIRS] += 1
        layout[i, _GUEST] = 0 if len(others) else -1


@compiled
def _fill_sums(tables: ScoreTables) -> None:
    values = tables.values
    for i in range(len(tables.layout)):
        k = tables.layout[i, _CORE]
        size = 1 << k
        own = scores_of(tables, i)
        begin = tables.layout[i, _SUMS]
        values[begin : begin + size] = subset_sums(own)
        if 0 < k <= MAX_TABULATED:
            half = size >> 1
            for m in range(k):
                begin = tables.layout[i, _CONTAINING] + m * half
                values[begin : begin + half] = sums_containing(own, m)
        for place in range(tables.layout[i, _OUTSIDERS]):
            begin = tables.layout[i, _GUEST_SCORES] + 2 * size * place
            values[begin + size : begin + 2 * size] = subset_sums(values[begin : begin + size])


@compiled
def n_candidates(tables: ScoreTables, node: int) -> int:
    """Return the number of candidates of a node, its guest included."""
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


@compiled
def n_core(tables: ScoreTables, node: int) -> int:
    """Return the number of candidates of a node that are so for good: the guest's bit, if there is a guest."""
    count: int = tables.layout[node, _CORE]
    return count


@compiled
def n_outsiders(tables: ScoreTables, node: int) -> int:
    """Return how many nodes a node may have as a guest."""
    count: int = tables.layout[node, _OUTSIDERS]
    return count


@compiled
def outsider(tables: ScoreTables, node: int, place: int) -> int:
    """Return one of the nodes that a node may have as a guest."""
    parent: int = tables.layout[node, _GROUPS + 3 * len(tables.layout) + place]
    return parent


@compiled
def guest_place(tables: ScoreTables, node: int) -> int:
    """Return which outsider is the guest; -1 if there are none."""
    place: int = tables.layout[node, _GUEST]
    return place


@compiled
def set_guest(tables: ScoreTables, node: int, place: int) -> None:
    """Make another outsider the guest of a node."""
    n = len(tables.layout)
    bit = n_core(tables, node)
    old, new = candidate(tables, node, bit), outsider(tables, node, place)
    if old == new:
        return
    tables.layout[node, _GUEST] = place
    tables.layout[node, _GROUPS + bit] = new
    tables.layout[node, _GROUPS + n + old] = -1
    tables.layout[node, _GROUPS + n + new] = bit
    # Heirs stay sorted, so that tables with the same guests are the same and a resumed run repeats itself.
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
    """Return tables with guests of their own and the same scores."""
    return tables._replace(layout=tables.layout.copy())


def guest_places(tables: ScoreTables) -> Ints:
    """Return which outsider is the guest of each node; -1 where there are none."""
    return tables.layout[:, _GUEST].copy()


def set_guests(tables: ScoreTables, places: Ints) -> None:
    """Give every node the guest that `guest_places` told."""
    for node, place in enumerate(places):
        if place >= 0:
            set_guest(tables, node, place)


@compiled
def scores_of(tables: ScoreTables, node: int) -> Floats:
    """Return the log scores of all sets of a node's candidates for good, in bitmask order."""
    begin = tables.layout[node, _SCORES]
    return tables.values[begin : begin + (1 << tables.layout[node, _CORE])]


@compiled
def own_stretches(tables: ScoreTables, node: int) -> tuple[int, int, int, int]:
    """Return where a node's scores, their sums, their ranked masks and, else -1, the sums "containing m" begin."""
    own = tables.layout[node]
    return own[_SCORES], own[_SUMS], own[_SCORES], own[_CONTAINING] if own[_CORE] <= MAX_TABULATED else -1


@compiled
def guest_stretches(tables: ScoreTables, node: int, place: int) -> tuple[int, int, int, int]:
    """Return the same for the sets with an outsider; they have no sums "containing m"."""
    k = tables.layout[node, _CORE]
    scores = tables.layout[node, _GUEST_SCORES] + (place * 2 << k)
    return scores, scores + (1 << k), tables.layout[node, _GUEST_RANKS] + (place << k), -1


@compiled
def log_score(tables: ScoreTables, node: int, mask: int) -> float:
    """Return log S(node | parents), prior included; with a parent from outside, times the number of outsiders."""
    k = tables.layout[node, _CORE]
    score: float
    if mask >> k:
        score = tables.values[guest_stretches(tables, node, guest_place(tables, node))[0] + mask - (1 << k)]
    else:
        score = tables.values[tables.layout[node, _SCORES] + mask]
    return score


@compiled
def ranked_mask(tables: ScoreTables, node: int, rank: int, with_guest: bool) -> int:
    """Return the mask of a given rank, best first, of the parent sets without the guest or, less it, those with it."""
    mask: int
    if with_guest:
        mask = tables.ranked[guest_stretches(tables, node, guest_place(tables, node))[2] + rank]
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
            total -= np.log(n_outsiders(tables, i))
    return total
