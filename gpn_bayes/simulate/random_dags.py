"""The DAGs that data are simulated from: random ones, and those that are given."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency, Bools, DiGraph

Seed = int | np.random.SeedSequence | np.random.Generator | None


def random_dag(
    n: int,
    kind: str = "er",
    edges_per_node: float | None = None,
    p: float | None = None,
    names: Sequence[Hashable] | None = None,
    random_seed: Seed = None,
) -> DiGraph:
    """Return a random DAG.

    Parameters
    ----------
    n : int
        Number of nodes.
    kind : {"er", "sf"}
        "er" (Erdős-Rényi): every pair of nodes has an edge with the same probability, directed along a
        random order. "sf" (scale-free): in a random order, each node points to `edges_per_node` earlier
        ones (or to all, while they are fewer), chosen with probability proportional to their degree, so that
        a few hubs have many parents.
    edges_per_node : float, optional
        Expected number of edges divided by n: half the expected degree. "sf" needs a whole number.
    p : float, optional
        Probability of each edge, instead of `edges_per_node`; "er" only.
    names : sequence, optional
        The nodes' names; v1, v2, … if not given.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Examples
    --------
    >>> dag = random_dag(10, edges_per_node=2, random_seed=1)
    >>> len(dag), nx.is_directed_acyclic_graph(dag)
    (10, True)
    >>> random_dag(10, kind="sf", edges_per_node=2, random_seed=1).number_of_edges()
    17
    """
    check_count("n", n, 1)
    names = [f"v{i + 1}" for i in range(n)] if names is None else list(names)
    if len(set(names)) != n or len(names) != n:
        raise ValueError(f"names must be {n} different names; received {names}")
    rng = generator("random_seed", random_seed)
    if kind == "er":
        ordered = rng.random((n, n)) < _edge_probability(n, edges_per_node, p)
        ordered = np.triu(ordered, 1)
    elif kind == "sf":
        if p is not None or edges_per_node is None:
            raise ValueError(
                f"a scale-free graph is given by edges_per_node alone; received {edges_per_node} and p = {p}"
            )
        ordered = _attachment(n, edges_per_node, rng)
    else:
        raise ValueError(f"kind must be 'er' or 'sf'; received {shown(kind)}")
    shuffle = rng.permutation(n)
    return graphs.to_networkx(ordered[np.ix_(shuffle, shuffle)], names)


def _edge_probability(n: int, edges_per_node: float | None, p: float | None) -> float:
    if edges_per_node is not None and p is None:
        most = (n - 1) / 2
        if not 0 <= edges_per_node <= most:
            raise ValueError(f"{n} nodes have 0 to {most:g} edges per node; received {edges_per_node}")
        return edges_per_node / most if most else 0.0
    if p is None or edges_per_node is not None:
        raise ValueError(f"give one of edges_per_node and p; received {edges_per_node} and {p}")
    if not 0 <= p <= 1:
        raise ValueError(f"p must be a probability; received {p}")
    return p


def _attachment(n: int, edges_per_node: float, rng: np.random.Generator) -> Bools:
    """Return the adjacency of a graph grown by preferential attachment, later nodes pointing to earlier."""
    most = max(n - 1, 1)
    if edges_per_node not in range(1, most + 1):
        raise ValueError(f"edges_per_node must be a whole number from 1 to {most}; received {edges_per_node}")
    matrix = np.zeros((n, n), dtype=bool)
    degrees = np.zeros(n)
    for node in range(1, n):
        count = min(node, int(edges_per_node))
        # The first node has no edge yet when the second one comes.
        weights = degrees[:node] if node > 1 else np.ones(1)
        older = rng.choice(node, size=count, replace=False, p=weights / weights.sum())
        matrix[node, older] = True
        degrees[older] += 1
        degrees[node] = count
    return matrix


def read_dag(dag: Any) -> tuple[Adjacency, list[Hashable]]:
    """Return the adjacency matrix and the names of a DAG; the nodes of an array are named v1, v2, ….

    Examples
    --------
    >>> read_dag([[0, 1], [0, 0]])[1]
    ['v1', 'v2']
    """
    names = graphs.graph_names(dag)
    if names is None:
        dag = np.asarray(dag)
        names = [f"v{i + 1}" for i in range(len(dag))]
    return graphs.as_adjacency(dag, names), names
