"""Graphs as adjacency matrices, bitmasks or networkx, and what can be asked of them."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes.kernels import dags

MAX_NODES = 256
MAX_ENUMERATED_NODES = 5


def graph_names(graph: Any) -> list[Hashable] | None:
    """Return the node names that a graph carries, or None for an array or a list of edges.

    Examples
    --------
    >>> graph_names(nx.DiGraph([("raf", "mek")]))
    ['raf', 'mek']
    """
    if isinstance(graph, nx.Graph):
        return list(graph.nodes)
    if isinstance(graph, pd.DataFrame):
        return list(graph.columns)
    return None


def as_adjacency(graph: Any, names: Sequence[Hashable], acyclic: bool = True) -> np.ndarray:
    """Return the adjacency matrix of a graph, with rows and columns in the order of `names`.

    Parameters
    ----------
    graph : networkx.DiGraph, DataFrame, array, or edges
        Nodes that a DiGraph lacks have no edges. The rows and columns of a DataFrame are matched by name.
        Edges are pairs (parent, child) of names, or of positions where no name is a whole number.
    names : sequence
        The variables.
    acyclic : bool
        Whether a directed cycle is an error. CPDAGs need False.

    Returns
    -------
    ndarray of int8, shape (n, n)
        ``[i, j]`` is 1 where i -> j.

    Raises
    ------
    ValueError
        For unknown nodes, a wrong shape, entries other than 0 and 1, self-loops, or cycles.

    Examples
    --------
    >>> as_adjacency([("raf", "mek"), ("mek", "erk")], ["raf", "mek", "erk"]).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    names = list(names)
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for place, name in enumerate(names) if places[name] != place)
        raise ValueError(f"node names must differ; {twice!r} appears more than once")
    if isinstance(graph, nx.Graph):
        matrix = _from_networkx(graph, places)
    elif isinstance(graph, pd.DataFrame):
        matrix = _from_frame(graph, names)
    elif hasattr(graph, "__array__"):
        matrix = _from_array(np.asarray(graph), len(names))
    else:
        matrix = _from_edges(graph, places)
    if matrix.diagonal().any():
        raise ValueError(f"no node may be its own parent; {names[matrix.diagonal().argmax()]!r} is")
    if acyclic and not is_acyclic(matrix):
        raise ValueError(f"the graph must be acyclic; it contains {_cycle(matrix, names)}")
    return matrix


def _from_networkx(graph: nx.Graph, places: dict[Hashable, int]) -> np.ndarray:
    if not graph.is_directed():
        raise ValueError(f"the graph must be directed; received a networkx {type(graph).__name__}")
    for node in graph.nodes:
        if node not in places:
            raise ValueError(f"every node must be one of the variables; {node!r} is not")
    return _from_edges(graph.edges(), places)


def _from_frame(frame: pd.DataFrame, names: list[Hashable]) -> np.ndarray:
    for side, labels in (("columns", frame.columns), ("rows", frame.index)):
        if len(labels) != len(names) or set(labels) != set(names):
            odd = sorted(map(repr, set(labels) ^ set(names)))
            told = f"{odd[0]} is in only one of the two" if odd else f"received {len(labels)} for {len(names)}"
            raise ValueError(f"the {side} of an adjacency DataFrame must be the variables; {told}")
    return _from_array(frame.loc[names, names].to_numpy(), len(names))


def _from_array(array: np.ndarray, n: int) -> np.ndarray:
    if array.shape != (n, n):
        raise ValueError(f"the adjacency matrix must have shape ({n}, {n}); received {array.shape}")
    return _binary(array).copy()


def _binary(array: np.ndarray) -> np.ndarray:
    """Return an array of zeros and ones as int8."""
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        raise ValueError(f"an adjacency matrix must hold 0 and 1 only; received {array[wrong][0]}")
    return np.ascontiguousarray(array, dtype=np.int8)


def _from_edges(edges: Iterable[Any], places: dict[Hashable, int]) -> np.ndarray:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ValueError(f"a graph must be a DiGraph, an adjacency matrix or edges; received {edges!r}")
    matrix = np.zeros((len(places), len(places)), np.int8)
    by_position = _by_position(places)
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ValueError(f"every edge must be a pair (parent, child); received {edge!r}")
        parent, child = (_place(node, places, by_position) for node in edge)
        matrix[parent, child] = 1
    return matrix


def node_index(node: Hashable, names: Sequence[Hashable]) -> int:
    """Return the position of a node given by name or position.

    Examples
    --------
    >>> node_index("mek", ["raf", "mek"])
    1
    """
    return _place(node, {name: place for place, name in enumerate(names)}, _by_position(names))


def _by_position(names: Iterable[Hashable]) -> bool:
    """Tell whether a number can mean a position: not where it could be a name."""
    return not any(isinstance(name, int | np.integer) for name in names)


def _place(node: Hashable, places: dict[Hashable, int], by_position: bool) -> int:
    if node in places:
        return places[node]
    if by_position and isinstance(node, int | np.integer) and 0 <= node < len(places):
        return int(node)
    raise ValueError(f"every node must be one of the variables; {node!r} is not")


def _cycle(matrix: np.ndarray, names: Sequence[Hashable]) -> str:
    edges = nx.find_cycle(to_networkx(matrix, names))
    return " -> ".join(str(node) for node in [edges[0][0], *(edge[1] for edge in edges)])


def to_networkx(adjacency: Any, names: Sequence[Hashable] | None = None) -> nx.DiGraph:
    """Return an adjacency matrix as a networkx.DiGraph with all its nodes, in order.

    Examples
    --------
    >>> to_networkx(np.array([[0, 1], [0, 0]]), ["raf", "mek"]).edges
    OutEdgeView([('raf', 'mek')])
    """
    matrix = np.asarray(adjacency)
    names = list(range(len(matrix))) if names is None else list(names)
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(names)
    matrix = _from_array(matrix, len(names))
    graph.add_edges_from((names[i], names[j]) for i, j in np.argwhere(matrix).tolist())
    return graph


def _words(n: int) -> int:
    """Return how many 64-bit words hold the parents of one of n nodes."""
    if not 1 <= n <= MAX_NODES:
        raise ValueError(f"packed graphs must have 1 to {MAX_NODES} nodes; received {n}")
    return -(-n // 64)


def pack(adjacency: np.ndarray) -> np.ndarray:
    """Return the parents of each node as bits: bit i of word i >> 6 of node j is set where i -> j.

    Parameters
    ----------
    adjacency : array of shape (..., n, n)
        One graph or many, n at most 256.

    Returns
    -------
    ndarray of uint64, shape (..., n, ceil(n / 64))

    Examples
    --------
    >>> pack(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])).tolist()
    [[0], [1], [3]]
    """
    stack = as_stack(adjacency)
    padded = np.zeros((*stack.shape[:-1], 8 * _words(stack.shape[-1])), np.uint8)
    octets = np.packbits(stack.swapaxes(-1, -2), axis=-1, bitorder="little")
    padded[..., : octets.shape[-1]] = octets
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpack(parents: np.ndarray, n: int) -> np.ndarray:
    """Return the adjacency matrices, int8 of shape (..., n, n), of packed parents.

    Examples
    --------
    >>> unpack(np.array([[0], [1], [3]], dtype=np.uint64), 3).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    parents = np.asarray(parents)
    words = _words(n)
    if parents.dtype != np.uint64 or parents.shape[-2:] != (n, words):
        raise ValueError(
            f"packed parents of {n} nodes must be uint64 of shape (..., {n}, {words}); "
            f"received {parents.dtype} of shape {parents.shape}"
        )
    if n % 64 and (parents[..., -1] >> np.uint64(n % 64)).any():
        raise ValueError(f"parents must be among the {n} nodes; received a higher bit")
    octets = np.ascontiguousarray(parents, dtype="<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, count=n, bitorder="little")
    return np.ascontiguousarray(bits.swapaxes(-1, -2)).view(np.int8)


def as_stack(graph: Any) -> np.ndarray:
    """Return one graph or an array of them as int8 of shape (..., n, n).

    Examples
    --------
    >>> as_stack([[[0, 1], [0, 0]], [[0, 0], [0, 0]]]).shape
    (2, 2, 2)
    """
    if (names := graph_names(graph)) is not None:
        return as_adjacency(graph, names, acyclic=False)
    array = np.asarray(graph)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"adjacency matrices must have shape (..., n, n); received {array.shape}")
    return _binary(array)


def _flat(stack: np.ndarray) -> np.ndarray:
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


def _dags(graph: Any) -> np.ndarray:
    """Return one DAG or an array of them as int8 of shape (..., n, n)."""
    stack = as_stack(graph)
    if not np.all(is_acyclic(stack)):
        raise ValueError("every graph must be acyclic; received one with a directed cycle")
    return stack


def topological_order(adjacency: Any) -> np.ndarray:
    """Return the nodes' positions with parents before their children.

    Examples
    --------
    >>> topological_order(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])).tolist()
    [2, 1, 0]
    """
    matrix = _dags(adjacency)
    order = np.empty(len(matrix), np.int64)
    dags.topological_order(matrix, order)
    return order


def ancestors(adjacency: Any) -> np.ndarray:
    """Return the ancestor relation, bool of shape (..., n, n): a directed path leads from i to j.

    Examples
    --------
    >>> ancestors(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))[0].tolist()
    [False, True, True]
    """
    stack = as_stack(adjacency)
    return dags.closures(_flat(stack)).reshape(stack.shape)


def cpdag(adjacency: Any) -> np.ndarray:
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
    stack = _dags(adjacency)
    return dags.cpdags(_flat(stack)).reshape(stack.shape)


def markov_blankets(adjacency: Any) -> np.ndarray:
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
        raise ValueError(f"xs, ys and given must have no node in common; they share {next(iter(shared))!r}")
    return bool(nx.is_d_separator(dag, *sets))


def _nodes(graph: nx.DiGraph, nodes: Any) -> set[Hashable]:
    chosen = {nodes} if isinstance(nodes, str | int) or nodes in graph else set(nodes)
    for node in chosen:
        if node not in graph:
            raise ValueError(f"every node must be one of the variables; {node!r} is not")
    return chosen


def count_linear_extensions(adjacency: Any) -> int:
    """Return how many orders of the nodes put every parent before its children, for at most 20 nodes.

    Examples
    --------
    >>> count_linear_extensions(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    2
    """
    return int(_extension_counts(pack(_dags(adjacency))))


def log_linear_extensions(parents: np.ndarray) -> np.ndarray:
    """Return the log of the number of linear extensions of each DAG, given as packed parents.

    Parameters
    ----------
    parents : ndarray of uint64, shape (..., n, 1)
        What `pack` returns, for DAGs of at most 20 nodes.

    Examples
    --------
    >>> np.exp(log_linear_extensions(pack(np.zeros((2, 4, 4))))).round().tolist()
    [24.0, 24.0]
    """
    parents = np.asarray(parents)
    if parents.ndim < 2:
        raise ValueError(f"packed parents must have shape (..., n, words); received {parents.shape}")
    _dags(unpack(parents, parents.shape[-2]))
    return np.log(_extension_counts(parents).astype(float))


def _extension_counts(parents: np.ndarray) -> np.ndarray:
    n = parents.shape[-2]
    most = dags.MAX_EXTENSION_NODES
    if n > most:
        raise ValueError(f"linear extensions are counted for at most {most} nodes; received {n}")
    masks = parents.astype(np.int64).reshape(-1, n)
    return dags.linear_extensions(masks).reshape(parents.shape[:-2])


def enumerate_dags(n: int) -> np.ndarray:
    """Return every DAG on n labelled nodes (n at most 5), int8 of shape (count, n, n).

    Examples
    --------
    >>> [len(enumerate_dags(n)) for n in (1, 2, 3, 4)]
    [1, 3, 25, 543]
    """
    if not 1 <= n <= MAX_ENUMERATED_NODES:
        raise ValueError(f"DAGs are enumerated for 1 to {MAX_ENUMERATED_NODES} nodes; received {n}")
    first, second = np.triu_indices(n, 1)
    # Each pair of nodes has no edge (0), one forward (1) or one backward (2).
    choices = np.arange(3 ** len(first))[:, None] // 3 ** np.arange(len(first)) % 3
    graphs = np.zeros((len(choices), n, n), np.int8)
    graphs[:, first, second] = choices == 1
    graphs[:, second, first] = choices == 2
    return graphs[dags.acyclic(graphs)]
