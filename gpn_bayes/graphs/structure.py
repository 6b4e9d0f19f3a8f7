"""What can be asked of graphs: orders, ancestors, equivalence classes, blankets and separation."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import networkx as nx
import numpy as np

from gpn_bayes._util.checks import did_you_mean, shown
from gpn_bayes._util.types import Adjacency, Bools, DiGraph, Ints
from gpn_bayes.graphs.adjacency import as_adjacency, as_stack, graph_names, to_networkx
from gpn_bayes.kernels.graphs import dags


def _flat(stack: Adjacency) -> Adjacency:
    return stack.reshape(math.prod(stack.shape[:-2]), *stack.shape[-2:])


def is_acyclic(adjacency: Any) -> Any:
    """Return whether a graph has no directed cycle: a bool, or an array of them for a stack (..., n, n).

    Examples
    --------
    >>> is_acyclic(np.array([[0, 1], [1, 0]]))
    False
    """
    stack = as_stack(adjacency)
    answer = dags.acyclic(_flat(stack))
    return bool(answer[0]) if stack.ndim == 2 else answer.reshape(stack.shape[:-2])


def as_dags(graph: Any) -> Adjacency:
    """Return one DAG or an array of them as int8 of shape (..., n, n)."""
    stack = as_stack(graph)
    if not np.all(is_acyclic(stack)):
        raise ValueError("every graph must be acyclic; received one with a directed cycle")
    return stack


def topological_order(adjacency: Any) -> Ints:
    """Return the nodes' positions with parents before their children.

    Examples
    --------
    >>> topological_order(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])).tolist()
    [2, 1, 0]
    """
    matrix = as_dags(adjacency)
    order = np.empty(len(matrix), np.int64)
    dags.topological_order(matrix, order)
    return order


def ancestors(adjacency: Any) -> Bools:
    """Return the ancestor relation, bool of shape (..., n, n): a directed path leads from i to j.

    Examples
    --------
    >>> ancestors(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))[0].tolist()
    [False, True, True]
    """
    stack = as_stack(adjacency)
    return dags.closures(_flat(stack)).reshape(stack.shape)


def cpdag(adjacency: Any) -> Adjacency:
    """Return the completed partially directed graph of a DAG, or of each of a stack (..., n, n).

    Returns
    -------
    ndarray of int8
        ``[i, j]`` alone is 1 where every equivalent DAG has i -> j; both ``[i, j]`` and ``[j, i]`` are 1
        where some have i -> j and others j -> i.

    Examples
    --------
    >>> cpdag(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> cpdag(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])).tolist()
    [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    """
    stack = as_dags(adjacency)
    return dags.cpdags(_flat(stack)).reshape(stack.shape)


def markov_blankets(adjacency: Any) -> Bools:
    """Return the Markov blankets, bool of shape (..., n, n): j is a parent, child or co-parent of i.

    Examples
    --------
    >>> markov_blankets(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]))[0].tolist()
    [False, True, True]
    """
    # In int8 the count of common children would wrap at 256.
    stack = as_stack(adjacency).astype(np.float32)
    back = stack.swapaxes(-1, -2)
    return (stack + back + stack @ back > 0) & ~np.eye(stack.shape[-1], dtype=bool)


def d_separated(graph: Any, xs: Any, ys: Any, given: Any = (), names: Sequence[Hashable] | None = None) -> bool:
    """Return whether `given` blocks every path between `xs` and `ys` in a DAG.

    Parameters
    ----------
    graph : networkx.DiGraph, DataFrame or array
        The DAG; nodes of an array have the names in `names`, or are numbered.
    xs, ys, given : a node or several
        Disjoint sets of nodes.
    names : sequence, optional
        The variables.

    Examples
    --------
    >>> dag = nx.DiGraph([("raf", "mek"), ("mek", "erk")])
    >>> d_separated(dag, "raf", "erk"), d_separated(dag, "raf", "erk", given=["mek"])
    (False, True)
    """
    names = graph_names(graph) or range(len(graph)) if names is None else list(names)
    dag = to_networkx(as_adjacency(graph, names), names)
    sets = [_nodes(dag, nodes) for nodes in (xs, ys, given)]
    shared = (sets[0] & sets[1]) | (sets[0] & sets[2]) | (sets[1] & sets[2])
    if shared:
        raise ValueError(f"xs, ys and given must have no node in common; they share {shown(next(iter(shared)))}")
    return bool(nx.is_d_separator(dag, *sets))


def _nodes(graph: DiGraph, nodes: Any) -> set[Hashable]:
    chosen = {nodes} if isinstance(nodes, str | int) or nodes in graph else set(nodes)
    for node in chosen:
        if node not in graph:
            raise ValueError(
                f"every node must be one of the variables; {shown(node)} is not{did_you_mean(node, graph)}"
            )
    return chosen
