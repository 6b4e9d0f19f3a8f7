"""Back-door adjustment: which sets of variables make an association an effect."""

from collections.abc import Collection

import networkx as nx

from gpn_bayes._util.types import Adjacency
from gpn_bayes.graphs.adjacency import to_networkx


def is_back_door_set(dag: Adjacency, cause: int, outcome: int, given: Collection[int]) -> bool:
    """Tell whether a set of variables satisfies Pearl's back-door criterion for an effect.

    No member is a descendant of the cause, and together they block every path to the outcome that begins with an arrow
    into the cause (Pearl 1995).

    Parameters
    ----------
    dag : ndarray of shape (n, n)
        The DAG.
    cause, outcome : int
        The effect.
    given : collection of int
        The set.

    Examples
    --------
    >>> fork = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> is_back_door_set(fork, 1, 2, [0]), is_back_door_set(fork, 1, 2, [])
    (True, False)
    """
    graph = to_networkx(dag, range(len(dag)))
    if set(given) & (nx.descendants(graph, cause) | {cause, outcome}):
        return False
    graph.remove_edges_from(list(graph.out_edges(cause)))
    return bool(nx.is_d_separator(graph, {cause}, {outcome}, set(given)))


def minimal_back_door_sets(dag: Adjacency, cause: int, outcome: int) -> list[tuple[int, ...]]:
    """Return up to two back-door sets of which no part is one: one among the parents of the cause, one anywhere.

    Parameters
    ----------
    dag : ndarray of shape (n, n)
        The DAG.
    cause, outcome : int
        The effect.

    Examples
    --------
    >>> fork = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> minimal_back_door_sets(fork, 1, 2), minimal_back_door_sets(fork, 2, 1)
    ([(0,)], [])
    """
    graph = to_networkx(dag, range(len(dag)))
    able = set(graph) - nx.descendants(graph, cause) - {cause, outcome}
    parents = set(graph.predecessors(cause)) - {outcome}
    graph.remove_edges_from(list(graph.out_edges(cause)))
    separators = [nx.find_minimal_d_separator(graph, cause, outcome, restricted=own) for own in (parents, able)]
    return sorted({tuple(sorted(members)) for members in separators if members is not None})
