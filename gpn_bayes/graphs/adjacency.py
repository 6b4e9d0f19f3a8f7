"""Any graph a user has -> an adjacency matrix, and back."""

import functools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import did_you_mean, shown
from gpn_bayes._util.types import Adjacency, DiGraph
from gpn_bayes.kernels.graphs import dags


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


def as_adjacency(graph: Any, names: Sequence[Hashable], acyclic: bool = True) -> Adjacency:
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
        raise ValueError(f"node names must differ; {shown(twice)} appears more than once")
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
    if acyclic and not dags.acyclic(matrix[None])[0]:
        raise ValueError(f"the graph must be acyclic; it contains {_cycle(matrix, names)}")
    return matrix


def _from_networkx(graph: "nx.Graph[Any]", places: dict[Hashable, int]) -> Adjacency:
    if not graph.is_directed():
        raise ValueError(f"the graph must be directed; received a networkx {type(graph).__name__}")
    for node in graph.nodes:
        if node not in places:
            raise ValueError(
                f"every node must be one of the variables; {shown(node)} is not{did_you_mean(node, places)}"
            )
    return _from_edges(graph.edges(), places)


def _from_frame(frame: pd.DataFrame, names: list[Hashable]) -> Adjacency:
    for side, labels in (("columns", frame.columns), ("rows", frame.index)):
        if len(labels) != len(names) or set(labels) != set(names):
            odd = sorted(map(repr, set(labels) ^ set(names)))
            difference = f"{odd[0]} is in only one of the two" if odd else f"received {len(labels)} for {len(names)}"
            raise ValueError(f"the {side} of an adjacency DataFrame must be the variables; {difference}")
    return _from_array(frame.loc[names, names].to_numpy(), len(names))


def _from_array(array: NDArray[Any], n: int) -> Adjacency:
    if array.shape != (n, n):
        raise ValueError(f"the adjacency matrix must have shape ({n}, {n}); received {array.shape}")
    return _binary(array).copy()


def _binary(array: NDArray[Any]) -> Adjacency:
    """Return an array of zeros and ones as int8."""
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        raise ValueError(f"an adjacency matrix must hold 0 and 1 only; received {array[wrong][0]}")
    return np.ascontiguousarray(array, dtype=np.int8)


def _from_edges(edges: Iterable[Any], places: dict[Hashable, int]) -> Adjacency:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ValueError(f"a graph must be a DiGraph, an adjacency matrix or edges; received {shown(edges)}")
    matrix = np.zeros((len(places), len(places)), np.int8)
    by_position = _by_position(places)
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ValueError(f"every edge must be a pair (parent, child); received {shown(edge)}")
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
    return _place(node, *_places(tuple(names)))


def node_pair(cause: Hashable, outcome: Hashable, names: Sequence[Hashable]) -> tuple[int, int]:
    """Return the positions of two different nodes, a cause and an outcome.

    Examples
    --------
    >>> node_pair("mek", "raf", ["raf", "mek"])
    (1, 0)
    """
    i, j = (node_index(node, names) for node in (cause, outcome))
    if i == j:
        raise ValueError(f"an effect is that of one variable on another; received {names[i]!r} twice")
    return i, j


@functools.lru_cache(maxsize=32)
def _places(names: tuple[Hashable, ...]) -> tuple[dict[Hashable, int], bool]:
    """Return the position of every name, and whether a number can mean a position; a run asks for them many times."""
    return {name: place for place, name in enumerate(names)}, _by_position(names)


def _by_position(names: Iterable[Hashable]) -> bool:
    """Tell whether a number can mean a position: not where it could be a name."""
    return not any(isinstance(name, int | np.integer) for name in names)


def _place(node: Hashable, places: dict[Hashable, int], by_position: bool) -> int:
    if isinstance(node, Hashable) and node in places:
        return places[node]
    if by_position and isinstance(node, int | np.integer) and 0 <= node < len(places):
        return int(node)
    raise ValueError(f"every node must be one of the variables; {shown(node)} is not{did_you_mean(node, places)}")


def _cycle(matrix: Adjacency, names: Sequence[Hashable]) -> str:
    edges = nx.find_cycle(to_networkx(matrix, names))
    return " -> ".join(str(node) for node in [edges[0][0], *(edge[1] for edge in edges)])


def to_networkx(adjacency: Any, names: Sequence[Hashable] | None = None) -> DiGraph:
    """Return an adjacency matrix as a networkx.DiGraph with all its nodes, in order.

    Examples
    --------
    >>> to_networkx(np.array([[0, 1], [0, 0]]), ["raf", "mek"]).edges
    OutEdgeView([('raf', 'mek')])
    """
    matrix = np.asarray(adjacency)
    names = list(range(len(matrix))) if names is None else list(names)
    graph: DiGraph = nx.DiGraph()
    graph.add_nodes_from(names)
    matrix = _from_array(matrix, len(names))
    graph.add_edges_from((names[i], names[j]) for i, j in np.argwhere(matrix).tolist())
    return graph


def as_stack(graph: Any) -> Adjacency:
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
