"""Where the nodes of a network stand: in layers from causes to effects, with few crossings, edges around nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np
from scipy.optimize import isotonic_regression

from gpn_bayes import graphs

if TYPE_CHECKING:
    from gpn_bayes.posterior.queries import GraphQueries

Pair = tuple[int, int]

_SWEEPS = 24
# DAGs whose paths are found at a time.
_CHUNK = 500
# An edge that passes a layer takes no width, and keeps this share of a gap to what is beside it.
_BESIDE = 0.5


class Layout(NamedTuple):
    """A drawing of a network, in units of the nodes' widths; layers are numbered from the top.

    Attributes
    ----------
    x : ndarray of shape (nodes,)
        The centre of each node.
    layer : ndarray of int, shape (nodes,)
        Its layer.
    routes : dict of list of (float, int)
        For each pair, from the upper to the lower node, the places (x, layer) that its edge passes between.
    """

    x: np.ndarray
    layer: np.ndarray
    routes: dict[Pair, list[tuple[float, int]]]


def averaged_order(post: "GraphQueries") -> np.ndarray:
    """Return the nodes from causes to effects: by how many ancestors more than descendants they have, on average.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    """
    dags, _, inverse = post._distinct
    weights = getattr(post, "weights", None)
    shares = np.bincount(inverse, None if weights is None else weights.ravel())
    paths = np.zeros(dags.shape[1:])
    for begin in range(0, len(dags), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        paths += np.einsum("d,dij->ij", shares[part], graphs.ancestors(dags[part]).astype(float))
    paths /= shares.sum()
    return np.argsort(np.round(paths.sum(axis=0) - paths.sum(axis=1), 9), kind="stable")


def drawing_order(arrows: Sequence[Pair], averaged: np.ndarray) -> np.ndarray:
    """Return an order in which arrows lead forward, but for those that close a cycle, as near to the averaged one.

    Parameters
    ----------
    arrows : sequence of (int, int)
        Pairs (parent, child), the strongest first: of a cycle, the weakest arrow leads backward.
    averaged : ndarray of int
        All nodes, in the averaged order.

    Examples
    --------
    >>> drawing_order([(2, 1), (1, 2)], np.array([0, 1, 2])).tolist()
    [0, 2, 1]
    """
    forward: nx.DiGraph = nx.DiGraph()
    forward.add_nodes_from(averaged.tolist())
    for parent, child in arrows:
        if not nx.has_path(forward, child, parent):
            forward.add_edge(parent, child)
    rank = np.argsort(averaged)
    return np.array(list(nx.lexicographical_topological_sort(forward, key=lambda node: int(rank[node]))))


def layered_layout(pairs: Sequence[Pair], order: np.ndarray, widths: np.ndarray, gap: float) -> Layout:
    """Return a layout of the nodes, those without edges in rows below the others.

    Parameters
    ----------
    pairs : sequence of (int, int)
        The nodes that are joined, either way.
    order : ndarray of int
        All nodes, from the top down: the nodes of a pair stand in different layers, in this order.
    widths : ndarray
        The nodes' widths.
    gap : float
        The least space between two nodes of a layer.

    Examples
    --------
    >>> found = layered_layout([(0, 1), (1, 2), (0, 2)], np.array([0, 1, 2]), np.ones(3), 0.3)
    >>> found.layer.tolist()
    [0, 1, 2]
    >>> [place[1] for place in found.routes[0, 2]]
    [1]
    """
    rank = np.argsort(order)
    down = sorted({(i, j) if rank[i] < rank[j] else (j, i) for i, j in pairs})
    layer = _layers(down, order)
    joined = {node for pair in down for node in pair}
    grid = _Grid([node for node in order.tolist() if node in joined], down, layer, widths, gap)
    grid.arrange()
    x = np.zeros(len(order))
    for node in joined:
        x[node] = grid.x[node]
    _place_unjoined([node for node in order.tolist() if node not in joined], joined, x, layer, widths, gap)
    routes = {pair: [(float(grid.x[via]), grid.layer_of[via]) for via in grid.passages[pair]] for pair in down}
    return Layout(x, layer, routes)


def _layers(down: list[Pair], order: np.ndarray) -> np.ndarray:
    """Return each node's layer: below all its parents, and no farther from its nearest child than it need be."""
    layer = np.zeros(len(order), dtype=int)
    parents: dict[int, list[int]] = {int(node): [] for node in order}
    children: dict[int, list[int]] = {int(node): [] for node in order}
    for i, j in down:
        parents[j].append(i)
        children[i].append(j)
    for node in order.tolist():
        layer[node] = max((layer[p] + 1 for p in parents[node]), default=0)
    for node in order[::-1].tolist():
        if len(children[node]) > len(parents[node]):
            layer[node] = min(layer[c] for c in children[node]) - 1
    return layer


class _Grid:
    """The joined nodes and the passages of long edges, layer by layer; numbers beyond the nodes' are passages."""

    def __init__(self, nodes: list[int], down: list[Pair], layer: np.ndarray, widths: np.ndarray, gap: float) -> None:
        self.gap = gap
        self.layer_of: dict[int, int] = {node: int(layer[node]) for node in nodes}
        self.width: dict[int, float] = {node: float(widths[node]) for node in nodes}
        self.above: dict[int, list[int]] = {node: [] for node in nodes}
        self.below: dict[int, list[int]] = {node: [] for node in nodes}
        self.passages: dict[Pair, list[int]] = {}
        self.x: dict[int, float] = {}
        self._first_passage = len(widths)
        for i, j in down:
            self._join(i, j)
        depth = max(self.layer_of.values(), default=-1) + 1
        self.rows: list[list[int]] = [[] for _ in range(depth)]
        for item, number in self.layer_of.items():
            self.rows[number].append(item)

    def _join(self, i: int, j: int) -> None:
        """Join two nodes by way of a passage through every layer between them."""
        line = [i]
        for number in range(self.layer_of[i] + 1, self.layer_of[j]):
            via = self._first_passage + len(self.layer_of)
            self.layer_of[via], self.width[via] = number, 0.0
            self.above[via], self.below[via] = [], []
            line.append(via)
        self.passages[i, j] = line[1:]
        for upper, lower in zip(line, [*line[1:], j], strict=True):
            self.below[upper].append(lower)
            self.above[lower].append(upper)

    def arrange(self) -> None:
        """Order every layer so that few edges cross, then give all their places."""
        best, fewest = [row[:] for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            self._sweep(downwards=sweep % 2 == 0)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [row[:] for row in self.rows], crossings
        self.rows = best
        for row in self.rows:
            self._place(row, {item: float(k) for k, item in enumerate(row)})
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            for row in self.rows if downwards else self.rows[::-1]:
                self._place(row, {item: self._wanted(item, downwards) for item in row})

    def _sweep(self, downwards: bool) -> None:
        """Order the items of every layer by the mean place of their neighbours in the layer before."""
        sides = self.above if downwards else self.below
        place = self._places()
        for row in self.rows if downwards else self.rows[::-1]:
            near = {item: [place[n] for n in sides[item]] or [place[item]] for item in row}
            row.sort(key=lambda item: _mean(near[item]))
            place.update((item, k) for k, item in enumerate(row))

    def _places(self) -> dict[int, int]:
        """Return the place of every item in its layer."""
        return {item: k for row in self.rows for k, item in enumerate(row)}

    def _crossings(self) -> int:
        place = self._places()
        total = 0
        for row in self.rows[:-1]:
            ends = np.array([(place[i], place[j]) for i in row for j in self.below[i]]).reshape(-1, 2)
            total += int(((ends[:, None, 0] < ends[None, :, 0]) & (ends[:, None, 1] > ends[None, :, 1])).sum())
        return total

    def _wanted(self, item: int, downwards: bool) -> float:
        sides = self.above[item] if downwards else self.below[item]
        near = sides or (self.below[item] if downwards else self.above[item])
        return _mean([self.x[n] for n in near])

    def _place(self, row: list[int], wanted: dict[int, float]) -> None:
        """Place a layer's items as near to where they want to be as their widths allow."""
        passes = np.array([item >= self._first_passage for item in row])
        half = np.array([0.5 * self.width[item] for item in row])
        between = self.gap * np.where(passes[:-1] | passes[1:], _BESIDE, 1.0)
        offsets = np.concatenate([[0.0], np.cumsum(half[:-1] + half[1:] + between)])
        # Straight passages read better than centred nodes.
        weights = np.where(passes, 4.0, 1.0)
        free = np.array([wanted[item] for item in row]) - offsets
        fitted = isotonic_regression(free, weights=weights).x + offsets
        self.x.update(zip(row, fitted.tolist(), strict=True))


def _mean(values: Sequence[float]) -> float:
    # For the few neighbours that a node has, numpy's mean takes many times as long.
    return sum(values) / len(values)


def _place_unjoined(
    nodes: list[int], joined: set[int], x: np.ndarray, layer: np.ndarray, widths: np.ndarray, gap: float
) -> None:
    """Place the nodes without edges in rows below, about as wide as the rest or as a square."""
    if not nodes:
        return
    others = list(joined)
    span = float((x[others] + widths[others] / 2).max() - (x[others] - widths[others] / 2).min()) if others else 0.0
    typical = float(widths[nodes].mean()) + gap
    most = max(int(span // typical), int(np.ceil(np.sqrt(len(nodes)))), 1)
    middle = float((x[others] + widths[others] / 2).max() - span / 2) if others else 0.0
    first = int(layer[others].max()) + 1 if others else 0
    for row in range(0, len(nodes), most):
        own = nodes[row : row + most]
        half = widths[own] / 2
        places = np.concatenate([[0.0], np.cumsum(half[:-1] + half[1:] + gap)])
        x[own] = places - places.mean() + middle
        layer[own] = first + row // most
