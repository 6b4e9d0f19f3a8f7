"""Compiled questions about many DAGs at once: acyclicity, ancestors, CPDAGs, MPDAGs, linear extensions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Adjacency, Bools, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.graphs.subsets import popcount

# 20! is the largest factorial that a signed 64-bit integer holds, and 2^20 counts still fit in memory.
MAX_EXTENSION_NODES = 20
_COMPELLED = 1
_REVERSIBLE = 2


@compiled
def topological_order(adjacency: Adjacency, order: Ints) -> int:
    """Fill `order` with parents before children; return how many nodes were placed (all, unless cyclic)."""
    n = adjacency.shape[0]
    waiting = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(n):
            if adjacency[i, j]:
                waiting[j] += 1
    placed = 0
    for j in range(n):
        if waiting[j] == 0:
            order[placed] = j
            placed += 1
    done = 0
    while done < placed:
        i = order[done]
        done += 1
        for j in range(n):
            if adjacency[i, j]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    order[placed] = j
                    placed += 1
    return placed


@compiled
def acyclic(adjacency: Adjacency) -> Bools:
    """Return, for each graph of a stack [d, n, n], whether it has no directed cycle."""
    count, n = adjacency.shape[0], adjacency.shape[1]
    order = np.empty(n, np.int64)
    answer = np.empty(count, np.bool_)
    for d in range(count):
        answer[d] = topological_order(adjacency[d], order) == n
    return answer


@compiled
def closures(adjacency: Adjacency) -> Bools:
    """Return the transitive closure of each graph of a stack [d, n, n] (Warshall)."""
    reach: Bools = adjacency != 0
    n = adjacency.shape[1]
    for d in range(adjacency.shape[0]):
        for k in range(n):
            for i in range(n):
                if reach[d, i, k]:
                    # i ~> k and k ~> j: i ~> j.
                    for j in range(n):
                        reach[d, i, j] |= reach[d, k, j]
    return reach


@inner
def _label_into(y: int, label: int, adjacency: Adjacency, labels: Adjacency) -> None:
    """Give every edge into y that has no label yet this one."""
    for z in range(adjacency.shape[0]):
        if adjacency[z, y] and labels[z, y] == 0:
            labels[z, y] = label


@inner
def _label_edge(x: int, y: int, adjacency: Adjacency, labels: Adjacency) -> None:
    """Label x -> y, and with it the unlabelled edges into y, where all edges into x have labels."""
    n = adjacency.shape[0]
    for w in range(n):
        # w -> x is compelled. So is x -> y where w and y aren't joined: turned round, it would make w -> x <- y.
        if labels[w, x] == _COMPELLED:
            if not adjacency[w, y]:
                _label_into(y, _COMPELLED, adjacency, labels)
                return
            labels[w, y] = _COMPELLED
    for z in range(n):
        # x -> y <- z with x and z not joined.
        if adjacency[z, y] and z != x and not adjacency[z, x]:
            _label_into(y, _COMPELLED, adjacency, labels)
            return
    _label_into(y, _REVERSIBLE, adjacency, labels)


@compiled
def cpdags(adjacency: Adjacency) -> Adjacency:
    """Return the CPDAG of each DAG of a stack [d, n, n]: reversible edges are set both ways.

    Chickering's labelling (1995): edges are visited by the order of their child, then with the latest
    parent first, so that every edge into x has its label before x -> y is looked at.
    """
    n = adjacency.shape[1]
    order = np.empty(n, np.int64)
    labels = np.empty((n, n), np.int8)
    answer = adjacency.copy()
    for d in range(adjacency.shape[0]):
        graph = adjacency[d]
        topological_order(graph, order)
        labels[:] = 0
        for child in range(n):
            y = order[child]
            for parent in range(child - 1, -1, -1):
                x = order[parent]
                if graph[x, y] and labels[x, y] == 0:
                    _label_edge(x, y, graph, labels)
                if labels[x, y] == _REVERSIBLE:
                    answer[d, y, x] = 1
    return answer


@inner
def _direct(i: int, j: int, graph: Adjacency, queue: Ints, count: int) -> int:
    """Direct i - j as i -> j and put it into the queue; return how many edges this holds."""
    graph[j, i] = 0
    queue[count] = i * graph.shape[0] + j
    return count + 1


@inner
def _apply_rules(a: int, b: int, graph: Adjacency, queue: Ints, count: int) -> int:
    """Direct what follows from a -> b by Meek's rules, with what is directed already; return the queue's length."""
    for x in range(graph.shape[0]):
        if x == a or x == b:
            continue
        with_a, with_b = graph[a, x] or graph[x, a], graph[b, x] or graph[x, b]
        if with_b and not with_a:
            if graph[b, x] and graph[x, b]:
                # 1: a -> b - x with a and x not joined.
                count = _direct(b, x, graph, queue, count)
            elif graph[b, x]:
                # 4: i - a -> b -> x with a and x not joined, i and b joined.
                count = _fourth(a, x, b, graph, queue, count)
        elif with_a and not with_b:
            if graph[x, a] and not graph[a, x]:
                # 4 again: i - x -> a -> b with x and b not joined, i and a joined.
                count = _fourth(x, b, a, graph, queue, count)
        elif with_a and with_b:
            if graph[a, x] and graph[x, a] and graph[b, x] and not graph[x, b]:
                # 2: a -> b -> x.
                count = _direct(a, x, graph, queue, count)
            elif graph[b, x] and graph[x, b] and graph[x, a] and not graph[a, x]:
                # 2 again: x -> a -> b.
                count = _direct(x, b, graph, queue, count)
            elif graph[a, x] and graph[x, a] and graph[b, x] and graph[x, b] and _third(x, a, b, graph):
                # 3: x - a -> b and x - d -> b with a and d not joined.
                count = _direct(x, b, graph, queue, count)
    return count


@inner
def _third(i: int, c: int, j: int, graph: Adjacency) -> bool:
    """Tell whether i - c -> j has a companion, i - d -> j with c and d not joined: then i -> j."""
    for d in range(graph.shape[0]):
        if d != c and graph[i, d] and graph[d, i] and graph[d, j] and not graph[j, d]:
            if not (graph[c, d] or graph[d, c]):
                return True
    return False


@inner
def _fourth(c: int, j: int, d: int, graph: Adjacency, queue: Ints, count: int) -> int:
    """Direct i -> j wherever i - j, i - c -> d -> j with c and j not joined, and i and d joined."""
    for i in range(graph.shape[0]):
        if graph[i, j] and graph[j, i] and graph[i, c] and graph[c, i] and (graph[i, d] or graph[d, i]):
            count = _direct(i, j, graph, queue, count)
    return count


@compiled
def mpdags(adjacency: Adjacency, known: Bools) -> Adjacency:
    """Return what is known of each DAG of a stack [d, n, n] from its class and the direction of some pairs [n, n].

    The CPDAG, with the pairs known directed as in the DAG, and closed under Meek's four rules (1995). A rule can begin
    to apply only where an edge was just directed, so that each is looked at once.
    """
    n = adjacency.shape[1]
    answer = cpdags(adjacency)
    queue = np.empty(n * n, np.int64)
    for d in range(adjacency.shape[0]):
        dag, graph = adjacency[d], answer[d]
        count, done = 0, 0
        for i in range(n):
            for j in range(n):
                if dag[i, j] and graph[j, i] and (known[i, j] or known[j, i]):
                    count = _direct(i, j, graph, queue, count)
        while done < count:
            edge = queue[done]
            done += 1
            count = _apply_rules(edge // n, edge % n, graph, queue, count)
    return answer


@inner
def _component(mask: int, neighbours: Ints) -> int:
    """Return the members of `mask` that are connected, inside it, with its lowest member."""
    component = mask & -mask
    fresh = component
    while fresh and component != mask:
        bit = fresh & -fresh
        linked = neighbours[popcount(bit - 1)] & mask & ~component
        component |= linked
        fresh = (fresh ^ bit) | linked
    return component


@inner
def _removable(mask: int, parents: Ints, children: Ints) -> int:
    """Return the sources of `mask`, or its sinks where those are fewer."""
    sources, sinks = 0, 0
    left = mask
    while left:
        bit = left & -left
        left ^= bit
        v = popcount(bit - 1)
        if not parents[v] & mask:
            sources |= bit
        if not children[v] & mask:
            sinks |= bit
    return sources if popcount(sources) <= popcount(sinks) else sinks


class _Order(NamedTuple):
    """A DAG as bitmasks per node, and what has been counted of it."""

    parents: Ints
    children: Ints
    neighbours: Ints
    binomials: Ints
    known: Ints
    # Place 0 counts the places in use; clearing only those keeps small DAGs cheap.
    visited: NDArray[np.int32]


@compiled
def _extensions(mask: int, order: _Order) -> int:
    """Count the linear extensions of the nodes in `mask`, remembering each count.

    Only sources, sinks and whole components are ever taken away, so every path between two members
    of `mask` stays inside it: the edges inside `mask` say all about its order.
    """
    if mask & (mask - 1) == 0:
        return 1
    known: int = order.known[mask]
    if known:
        return known
    part = _component(mask, order.neighbours)
    total = 0
    if part != mask:
        # e(A + B) = (|A + B| choose |A|) e(A) e(B), where no edge joins A and B.
        total = _extensions(part, order) * _extensions(mask ^ part, order)
        total *= order.binomials[popcount(mask), popcount(part)]
    else:
        ends = _removable(mask, order.parents, order.children)
        # e(M) = sum of e(M - v) over its sources v, which may come first, or over its sinks, which may come last.
        while ends:
            end = ends & -ends
            ends ^= end
            total += _extensions(mask ^ end, order)
    order.known[mask] = total
    order.visited[0] += 1
    order.visited[order.visited[0]] = mask
    return total


@inner
def _binomials(n: int) -> Ints:
    """Return Pascal's triangle up to row n."""
    rows = np.zeros((n + 1, n + 1), np.int64)
    for i in range(n + 1):
        rows[i, 0] = 1
        for j in range(1, i + 1):
            # (i choose j) = (i - 1 choose j - 1) + (i - 1 choose j)
            rows[i, j] = rows[i - 1, j - 1] + rows[i - 1, j]
    return rows


@compiled
def linear_extensions(parents: Ints) -> Ints:
    """Count the linear extensions of each DAG of a stack of parent masks, int64[d, n] with n <= 20."""
    count, n = parents.shape
    links = np.empty((3, n), np.int64)
    order = _Order(
        links[0],
        links[1],
        links[2],
        _binomials(n),
        np.zeros(1 << n, np.int64),
        np.zeros((1 << n) + 1, np.int32),
    )
    answer = np.empty(count, np.int64)
    for d in range(count):
        order.parents[:] = parents[d]
        order.children[:] = 0
        for v in range(n):
            for u in range(n):
                if parents[d, v] & (1 << u):
                    order.children[u] |= 1 << v
        order.neighbours[:] = order.parents | order.children
        answer[d] = _extensions((1 << n) - 1, order)
        for place in range(1, order.visited[0] + 1):
            order.known[order.visited[place]] = 0
        order.visited[0] = 0
    return answer
