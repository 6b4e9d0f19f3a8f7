"""Where the nodes of a network stand: in layers from causes to effects, with few crossings, edges around nodes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
from scipy.optimize import isotonic_regression

from gpn_bayes import graphs
from gpn_bayes._util.types import DiGraph
from gpn_bayes.posterior.draws import GraphCollection

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


def averaged_order(post: GraphCollection) -> np.ndarray:
    """Return the nodes from causes to effects: by how many ancestors more than descendants they have, on average.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    """
    dags, _, inverse = post._distinct
    shares = np.bincount(inverse, post._weights.ravel())
    n = len(post.names)
    paths = np.zeros((n, n))
    for begin in range(0, len(dags), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        paths += np.einsum("d,dij->ij", shares[part], graphs.ancestors(graphs.unpack(dags[part], n)).astype(float))
    paths /= shares.sum()
    return np.argsort(np.round(paths.sum(axis=0) - paths.sum(axis=1), 9), kind="stable")


def drawing_order(arrows: Sequence[Pair], averaged: np.ndarray, tiers: np.ndarray | None = None) -> np.ndarray:
    """Return an order in which arrows lead forward, but for those that close a cycle, as near to the averaged one.

    Parameters
    ----------
    arrows : sequence of (int, int)
        Pairs (parent, child), the strongest first: of a cycle, the weakest arrow leads backward.
    averaged : ndarray of int
        All nodes, in the averaged order.
    tiers : ndarray of int, optional
        The tier of each node: earlier ones come first.

    Examples
    --------
    >>> drawing_order([(2, 1), (1, 2)], np.array([0, 1, 2])).tolist()
    [0, 2, 1]
    >>> drawing_order([(2, 1)], np.array([0, 1, 2]), tiers=np.array([1, 0, 0])).tolist()
    [2, 1, 0]
    """
    forward: DiGraph = nx.DiGraph()
    forward.add_nodes_from(averaged.tolist())
    for parent, child in arrows:
        if not nx.has_path(forward, child, parent):
            forward.add_edge(parent, child)
    rank = np.argsort(averaged)
    order = np.array(list(nx.lexicographical_topological_sort(forward, key=lambda node: int(rank[node]))))
    return order if tiers is None else order[np.argsort(tiers[order], kind="stable")]


def layered_layout(
    pairs: Sequence[Pair],
    order: np.ndarray,
    widths: np.ndarray,
    gap: float,
    tiers: np.ndarray | None = None,
    room: float = np.inf,
) -> Layout:
    """Return a layout of the nodes, those without edges in rows below the others or in their tier.

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
    tiers : ndarray of int, optional
        The tier of each node, which must not fall along the order: no layer holds nodes of two tiers.
    room : float, default infinity
        The width that layers should keep to: fuller ones are continued in the next.

    Examples
    --------
    >>> layout = layered_layout([(0, 1), (1, 2), (0, 2)], np.array([0, 1, 2]), np.ones(3), 0.3)
    >>> layout.layer.tolist()
    [0, 1, 2]
    >>> [place[1] for place in layout.routes[0, 2]]
    [1]
    >>> layered_layout([(0, 1), (0, 2), (0, 3)], np.arange(4), np.ones(4), 0.3, room=2.5).layer.tolist()
    [0, 1, 1, 2]
    """
    rank = np.argsort(order)
    down = sorted({(i, j) if rank[i] < rank[j] else (j, i) for i, j in pairs})
    joined = {node for pair in down for node in pair}
    layers = _Layers(down, widths, gap, room)
    if tiers is None:
        layers.fill([node for node in order.tolist() if node in joined])
        placed = joined
    else:
        for tier in np.unique(tiers):
            own = [node for node in order.tolist() if tiers[node] == tier]
            layers.fill([node for node in own if node in joined], [node for node in own if node not in joined])
        placed = set(order.tolist())
    grid = _Grid([node for node in order.tolist() if node in placed], down, layers.numbered(), widths, gap, room)
    grid.arrange()
    x, layer = np.zeros(len(order)), np.zeros(len(order), dtype=int)
    for node in placed:
        x[node], layer[node] = grid.x[node], grid.layer_of[node]
    _place_unjoined([node for node in order.tolist() if node not in placed], placed, x, layer, widths, gap, room)
    routes = {pair: [(float(grid.x[via]), grid.layer_of[via]) for via in grid.passages[pair]] for pair in down}
    return Layout(x, layer, routes)


class _Layers:
    """The layers of nodes: below all their parents, no farther from their nearest child than need be, not too full."""

    def __init__(self, down: list[Pair], widths: np.ndarray, gap: float, room: float) -> None:
        self.of: dict[int, int] = {}
        self._load: list[float] = []
        self._widths, self._gap, self._room = widths, gap, room
        self._parents: dict[int, list[int]] = {node: [] for node in range(len(widths))}
        self._children: dict[int, list[int]] = {node: [] for node in range(len(widths))}
        for i, j in down:
            self._parents[j].append(i)
            self._children[i].append(j)

    def fill(self, joined: list[int], unjoined: Sequence[int] = ()) -> None:
        """Put nodes, in their order, into layers below those that are there already."""
        first = len(self._load)
        for node in joined:
            least = max((self.of[parent] + 1 for parent in self._parents[node]), default=first)
            self._put(node, max(least, first))
        for node in joined[::-1]:
            self._lower(node)
        for node in unjoined:
            self._put(node, min(range(first, len(self._load)), key=self._load.__getitem__, default=first))

    def numbered(self) -> dict[int, int]:
        """Return the layers of nodes without gaps in their numbers, which nodes that were moved may leave."""
        used = sorted(set(self.of.values()))
        return {node: used.index(layer) for node, layer in self.of.items()}

    def _put(self, node: int, layer: int) -> None:
        """Put a node into the first layer that has room for it."""
        while layer < len(self._load) and not self._fits(node, layer):
            layer += 1
        self._load += [0.0] * (layer + 1 - len(self._load))
        self._load[layer] += self._taken(node)
        self.of[node] = layer

    def _lower(self, node: int) -> None:
        """Move a node down to its nearest child, if that has more edges become shorter than longer."""
        children = [self.of[child] for child in self._children[node] if child in self.of]
        if len(children) <= len(self._parents[node]):
            return
        here = self.of[node]
        for layer in range(min(children) - 1, here, -1):
            if self._fits(node, layer):
                self._load[here] -= self._taken(node)
                self._load[layer] += self._taken(node)
                self.of[node] = layer
                return

    def _fits(self, node: int, layer: int) -> bool:
        return not self._load[layer] or self._load[layer] + self._taken(node) <= self._room + self._gap

    def _taken(self, node: int) -> float:
        return float(self._widths[node]) + self._gap


class _Grid:
    """The joined nodes and the passages of long edges, layer by layer; numbers beyond the nodes' are passages."""

    def __init__(
        self,
        nodes: list[int],
        down: list[Pair],
        layer: Mapping[int, int],
        widths: np.ndarray,
        gap: float,
        room: float = np.inf,
    ) -> None:
        self.gap, self.room = gap, room
        self.layer_of: dict[int, int] = {node: layer[node] for node in nodes}
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
        if not self.rows:
            return
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
        before: list[dict[int, float]] = []
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            for row in self.rows if downwards else self.rows[::-1]:
                self._place(row, {item: self._wanted(item, downwards) for item in row})
            if before[-2:] == [self.x, self.x]:
                break
            before.append(dict(self.x))
        self._close_up()

    def _close_up(self) -> None:
        """Narrow the empty strips from top to bottom that are left between parts that nothing joins."""
        spans = [(self.x[item] - 0.5 * self.width[item], self.x[item] + 0.5 * self.width[item]) for item in self.x]
        spans += [
            (min(self.x[i], self.x[j]), max(self.x[i], self.x[j])) for i, below in self.below.items() for j in below
        ]
        spans.sort()
        reached, strips = spans[0][1], []
        for begin, end in spans[1:]:
            if begin > reached + self.gap:
                strips.append((begin, begin - reached - self.gap))
            reached = max(reached, end)
        for item, x in self.x.items():
            self.x[item] = x - sum(spare for begin, spare in strips if x >= begin)

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
        return _mean([self.x[n] for n in near]) if near else self.x[item]

    def _place(self, row: list[int], wanted: dict[int, float]) -> None:
        """Place a layer's items as near to where they want to be as their widths allow."""
        if len(row) == 1:
            spare = max(self.room - self.width[row[0]], 0.0)
            self.x[row[0]] = min(max(wanted[row[0]], -spare / 2), spare / 2)
            return
        passes = np.array([item >= self._first_passage for item in row])
        half = np.array([0.5 * self.width[item] for item in row])
        between = self.gap * np.where(passes[:-1] | passes[1:], _BESIDE, 1.0)
        offsets = np.concatenate([[0.0], np.cumsum(half[:-1] + half[1:] + between)])
        # Straight passages read better than centred nodes.
        weights = np.where(passes, 4.0, 1.0)
        free = np.array([wanted[item] for item in row]) - offsets
        fitted = isotonic_regression(free, weights=weights).x
        # Within bounds, the best places are those without bounds, cut off; a row that is too long stands centred.
        spare = max(self.room - (offsets[-1] + half[0] + half[-1]), 0.0)
        middle = (half[0] - half[-1] - offsets[-1]) / 2
        fitted = np.clip(fitted, middle - spare / 2, middle + spare / 2) + offsets
        self.x.update(zip(row, fitted.tolist(), strict=True))


def _mean(values: Sequence[float]) -> float:
    # For the few neighbours that a node has, numpy's mean takes many times as long.
    return sum(values) / len(values)


def _place_unjoined(
    nodes: list[int], joined: set[int], x: np.ndarray, layer: np.ndarray, widths: np.ndarray, gap: float, room: float
) -> None:
    """Place the nodes without edges in rows below, about as wide as there is room, as the rest or as a square."""
    if not nodes:
        return
    others = list(joined)
    left, right = ((x + side * widths / 2)[others] for side in (-1, 1))
    span = float(right.max() - left.min()) if others else 0.0
    taken = widths[nodes] + gap
    if np.isfinite(room):
        span = max(room, span)
    else:
        span = max(span, float(np.ceil(np.sqrt(len(nodes))) * taken.mean()))
    middle = float(right.max() + left.min()) / 2 if others else 0.0
    row = int(layer[others].max()) + 1 if others else 0
    own: list[int] = []
    for node in nodes:
        if own and widths[[*own, node]].sum() + gap * len(own) > span:
            _set_row(own, row, middle, x, layer, widths, gap)
            own, row = [], row + 1
        own.append(node)
    _set_row(own, row, middle, x, layer, widths, gap)


def _set_row(
    own: list[int], row: int, middle: float, x: np.ndarray, layer: np.ndarray, widths: np.ndarray, gap: float
) -> None:
    """Place nodes side by side around the middle."""
    ends = np.cumsum(widths[own] + gap)
    x[own] = ends - gap - widths[own] / 2 - (ends[-1] - gap) / 2 + middle
    layer[own] = row
