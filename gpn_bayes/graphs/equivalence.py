"""Graphs with some edges undirected: Meek's rules, what is known besides, and the DAGs that such a graph stands for.

A partially directed graph is an int8 matrix like an adjacency matrix, with undirected edges set both ways, as
`gpn_bayes.graphs.cpdag` returns it. It stands for its consistent extensions: the DAGs with the same pairs joined and
the same arrows, and with no collider between unjoined parents that it does not have itself.
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Adjacency, Bools
from gpn_bayes.graphs.adjacency import as_stack
from gpn_bayes.graphs.structure import as_dags, cpdag
from gpn_bayes.kernels.graphs import dags


class Closure(NamedTuple):
    """A graph after Meek's rules.

    Attributes
    ----------
    pdag : ndarray of int8, shape (n, n)
        The graph.
    clashes : list of tuple of int
        Edges (i, j), i < j, that rules would direct both ways, and so were left undirected.
    """

    pdag: Adjacency
    clashes: list[tuple[int, int]]


def meek_closure(pdag: NDArray[Any]) -> Closure:
    """Direct the undirected edges that can point one way only, by Meek's four rules (1995).

    All rules are applied to all edges at once until none finds any more, so that the order of the variables doesn't
    matter. Edges that can't point either way, which happens where no DAG agrees with the graph, stay undirected.

    Examples
    --------
    >>> meek_closure(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])).pdag.tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    closed = as_stack(pdag).astype(bool)
    clashing = np.zeros_like(closed)
    while True:
        wanted = _directed_by_rules(closed) & ~clashing
        both = wanted & wanted.T
        clashing |= both
        wanted &= ~both
        if not wanted.any():
            break
        closed = closed & ~wanted.T
    pairs = [(i, j) for i, j in np.argwhere(np.triu(clashing)).tolist()]
    return Closure(closed.astype(np.int8), pairs)


def interventional_cpdag(adjacency: Any, targets: Collection[Collection[int]]) -> Adjacency:
    """Return the interventional essential graph of a DAG, or of each of a stack (..., n, n).

    An experiment that changes one end of an edge and not the other determines its direction, and with it maybe those
    of others (Hauser & Bühlmann 2012). That is so whether targets were set or their mechanism changed, provided that
    each variable was only observed in some rows.

    Parameters
    ----------
    adjacency : array
        The DAG.
    targets : collection of collections of int
        The variables that each experiment changed.

    Returns
    -------
    ndarray of int8
        As `gpn_bayes.graphs.cpdag`.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> interventional_cpdag(chain, [[2]]).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    >>> interventional_cpdag(chain, [[1]]).tolist() == chain.tolist()
    True
    """
    return mpdag(adjacency, directed_by_experiments(targets, as_stack(adjacency).shape[-1]))


def directed_by_experiments(targets: Collection[Collection[int]], n: int) -> Bools:
    """Return which pairs have a direction that experiments determine: these changed one of the two and not the other.

    Parameters
    ----------
    targets : collection of collections of int
        The variables that each experiment changed.
    n : int
        How many variables there are.

    Examples
    --------
    >>> directed_by_experiments([[2]], 3).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    """
    pairs = np.zeros((n, n), dtype=bool)
    for experiment in targets:
        changed = np.isin(np.arange(n), list(experiment))
        pairs |= changed[:, None] != changed[None, :]
    return pairs


def mpdag(adjacency: Any, known: NDArray[Any]) -> Adjacency:
    """Return the maximally oriented graph of a DAG, or of each of a stack (..., n, n), given what else is known.

    It stands for the DAGs of the equivalence class in which certain pairs have the same direction: its arrows are those
    that all of them share. They follow from the CPDAG and these pairs by the four rules of Meek (1995); see Perković,
    Kalisch & Maathuis (2017).

    Parameters
    ----------
    adjacency : array
        The DAG.
    known : ndarray of bool, shape (n, n)
        Which pairs, in either order, can only be joined in the direction that they have in the DAG.

    Returns
    -------
    ndarray of int8
        As `gpn_bayes.graphs.cpdag`.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> mpdag(chain, np.zeros((3, 3), dtype=bool)).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> mpdag(chain, np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])).tolist() == chain.tolist()
    True
    """
    stack = as_dags(adjacency)
    known = np.asarray(known, dtype=bool)
    if not known.any():
        return cpdag(stack)
    return dags.mpdags(stack.reshape(-1, *stack.shape[-2:]), known).reshape(stack.shape)


def _directed_by_rules(graph: Bools) -> Bools:
    """Return the undirected edges that some rule directs, [i, j] for i -> j."""
    arrows, lines, joined = graph & ~graph.T, graph & graph.T, graph | graph.T
    counts = arrows.astype(np.int32)
    # 1: a -> i - j with a and j not joined. 2: i -> b -> j.
    wanted = lines & ((counts.T @ ~joined > 0) | (counts @ counts > 0))
    for i, j in np.argwhere(lines & ~wanted):
        # 3: i - c -> j and i - d -> j with c and d not joined.
        middle = np.flatnonzero(lines[i] & arrows[:, j])
        if np.count_nonzero(joined[np.ix_(middle, middle)]) < len(middle) * (len(middle) - 1):
            wanted[i, j] = True
            continue
        # 4: i - c -> d -> j with c and j not joined, i and d joined; needed where more than colliders is known.
        first = np.flatnonzero(lines[i] & ~joined[:, j])
        first = first[first != j]
        second = np.flatnonzero(arrows[:, j] & joined[i])
        wanted[i, j] = arrows[np.ix_(first, second)].any()
    return wanted


def consistent_extension(pdag: NDArray[Any]) -> Adjacency | None:
    """Return a DAG that a partially directed graph stands for, or None where there is none (Dor & Tarsi 1992).

    Examples
    --------
    >>> consistent_extension(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> consistent_extension(square) is None
    True
    """
    dag = as_stack(pdag).copy()
    left = np.ones(len(dag), dtype=bool)
    while left.any():
        sink = next((int(i) for i in np.flatnonzero(left) if _cost_as_sink(dag, left, int(i)) == (0, 0)), None)
        if sink is None:
            return None
        _make_sink(dag, left, sink)
    return dag


def nearest_dag(pdag: NDArray[Any], rng: np.random.Generator) -> Adjacency:
    """Return a DAG near to a partially directed graph that stands for none: the same pairs are joined.

    Sinks are taken away one after the other, as for a consistent extension; where none is left, the node that reverses
    fewest arrows, and of those the one that makes fewest new colliders. Chance decides between equals.

    Examples
    --------
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> int(nearest_dag(square, np.random.default_rng(1)).sum())
    4
    """
    dag = as_stack(pdag).copy()
    left = np.ones(len(dag), dtype=bool)
    while left.any():
        costs = {int(i): _cost_as_sink(dag, left, int(i)) for i in np.flatnonzero(left)}
        cheapest = [i for i, cost in costs.items() if cost == min(costs.values())]
        _make_sink(dag, left, int(rng.choice(cheapest)))
    return dag


def _cost_as_sink(graph: Adjacency, left: Bools, node: int) -> tuple[int, int]:
    """Return how many arrows out of a node, and how many unjoined pairs of new and other parents, speak against it."""
    into, out_of = (graph[:, node] == 1) & left, (graph[node] == 1) & left
    near = into | out_of
    apart = near[None, :] & ~((graph | graph.T) == 1)
    np.fill_diagonal(apart, False)
    return int((out_of & ~into).sum()), int(apart[into & out_of].sum())


def _make_sink(graph: Adjacency, left: Bools, node: int) -> None:
    """Direct all edges between a node and those that are left into the node, and take it away."""
    graph[left & (graph[node] == 1), node] = 1
    graph[node, left] = 0
    left[node] = False


def random_extension(pdag: NDArray[Any], rng: np.random.Generator) -> Adjacency | None:
    """Return one of the DAGs that a partially directed graph stands for, each with the same probability; or None.

    Every DAG of an undirected component has a single source. How many have a given one is counted by directing its
    edges outwards and applying Meek's rules, which leaves smaller components (He, Jia & Yu 2015).

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> random_extension(chain, np.random.default_rng(1)).tolist()
    [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    """
    members = _members(pdag)
    if members is None:
        return None
    dag = members.arrows.copy()
    for nodes in _components(members.lines, range(len(dag))):
        dag |= members.draw(nodes, rng)
    return dag.astype(np.int8)


def count_extensions(pdag: NDArray[Any]) -> int:
    """Return how many DAGs a partially directed graph stands for.

    Examples
    --------
    >>> count_extensions(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    3
    """
    members = _members(pdag)
    if members is None:
        return 0
    return math.prod(members.count(nodes) for nodes in _components(members.lines, range(len(members.lines))))


def _members(pdag: NDArray[Any]) -> "_Members | None":
    """Return what a partially directed graph stands for: its equivalence class, and what is known beyond that."""
    extension = consistent_extension(pdag)
    if extension is None:
        return None
    given = as_stack(pdag) == 1
    return _Members(cpdag(extension) == 1, given & ~given.T)


Nodes = tuple[int, ...]


class _Rooted(NamedTuple):
    """What follows from one node being the source of a component: arrows, components left, and how many DAGs."""

    arrows: Bools
    parts: list[Nodes]
    size: int


class _Members:
    """The ways to direct the undirected components of a CPDAG without new colliders, and with what is known."""

    def __init__(self, class_graph: Bools, known: Bools) -> None:
        self.arrows = class_graph & ~class_graph.T
        self.lines = class_graph & class_graph.T
        self.known = known & self.lines
        self._rooted: dict[Nodes, list[_Rooted]] = {}

    def count(self, nodes: Nodes) -> int:
        """Return the number of ways to direct a component."""
        if self._any_order(nodes):
            return math.factorial(len(nodes))
        return sum(choice.size for choice in self._choices(nodes))

    def draw(self, nodes: Nodes, rng: np.random.Generator) -> Bools:
        """Return the arrows of a component, each way to direct it with the same probability."""
        if self._any_order(nodes):
            place = np.full(len(self.lines), -1)
            place[list(nodes)] = rng.permutation(len(nodes))
            inside = place >= 0
            return np.outer(inside, inside) & (place[:, None] < place[None, :])
        choices = self._choices(nodes)
        shares = np.array([choice.size for choice in choices], dtype=float)
        chosen = choices[int(rng.choice(len(choices), p=shares / shares.sum()))]
        arrows = chosen.arrows.copy()
        for part in chosen.parts:
            arrows |= self.draw(part, rng)
        return arrows

    def _any_order(self, nodes: Nodes) -> bool:
        """Tell whether all orders of a component are ways to direct it: all are joined, and nothing is known."""
        inside = np.ix_(nodes, nodes)
        return int(self.lines[inside].sum()) == len(nodes) * (len(nodes) - 1) and not self.known[inside].any()

    def _choices(self, nodes: Nodes) -> list[_Rooted]:
        if nodes not in self._rooted:
            choices = [self._from(root, nodes) for root in nodes]
            self._rooted[nodes] = [choice for choice in choices if choice.size > 0]
        return self._rooted[nodes]

    def _from(self, root: int, nodes: Nodes) -> _Rooted:
        inside = np.ix_(nodes, nodes)
        graph = np.zeros_like(self.lines)
        graph[inside] = self.lines[inside]
        graph[:, root] = False
        closed = meek_closure(graph).pdag == 1
        arrows = closed & ~closed.T
        if (arrows & self.known.T).any():
            return _Rooted(arrows, [], 0)
        parts = [part for part in _components(closed & closed.T, nodes) if len(part) > 1]
        return _Rooted(arrows, parts, math.prod(self.count(part) for part in parts))


def _components(lines: Bools, nodes: Nodes | range) -> list[Nodes]:
    """Return the connected components among some nodes, each in ascending order."""
    left, pieces = set(nodes), []
    while left:
        component, fresh = set(), {min(left)}
        while fresh:
            component |= fresh
            fresh = {int(j) for i in fresh for j in np.flatnonzero(lines[i])} - component
        pieces.append(tuple(sorted(component)))
        left -= component
    return pieces
