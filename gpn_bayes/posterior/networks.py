"""The DAGs themselves: drawn, the best, the most probable edges, and how far they are from a known network."""

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice, check_share
from gpn_bayes._util.types import DiGraph
from gpn_bayes.graphs import metrics
from gpn_bayes.posterior.draws import Draws, GraphCollection
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.posterior.queries import edge_probabilities

# Probabilities that are summed exactly are as exact as this.
_ROUNDING = 1e-12


def map_graph(post: Draws) -> DiGraph:
    """Return the drawn DAG of the highest score; its log score is in ``graph.graph["log_score"]``.

    Where missing values were imputed, scores are of different completed tables: then it is the DAG drawn most
    often, with its average score.
    """
    if post.record.is_imputed:
        return _most_frequent(post)
    best = np.unravel_index(int(post.log_score.argmax()), post.log_score.shape)
    graph = graphs.to_networkx(graphs.unpack(post.parents[best], len(post.names)), post.names)
    graph.graph["log_score"] = float(post.log_score[best])
    return graph


def _most_frequent(post: Draws) -> DiGraph:
    parents, _, inverse = post._distinct
    weight = np.bincount(inverse, post.weights.ravel())
    best = int(weight.argmax())
    graph = graphs.to_networkx(graphs.unpack(parents[best], len(post.names)), post.names)
    own = np.bincount(inverse, post.weights.ravel() * post.log_score.ravel())
    graph.graph["log_score"] = float(own[best] / weight[best])
    return graph


def drawn_graphs(post: Draws, distinct: bool = False) -> Iterator[DiGraph]:
    """Yield the drawn DAGs, with ``log_score`` and ``weight`` (of mean one) in ``graph.graph``.

    Parameters
    ----------
    distinct : bool, default False
        Yield each DAG once, by falling posterior ``probability``, instead of every draw.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> sum(graph.has_edge("raf", "mek") for graph in post.graphs()), post.log_score.size
    (199, 400)
    >>> likeliest = next(post.graphs(distinct=True))
    >>> sorted(likeliest.edges), likeliest.graph["probability"]
    ([('erk', 'akt'), ('mek', 'raf')], 0.215)
    """
    if not distinct:
        flat = post.parents.reshape(-1, *post.parents.shape[2:])
        for dag, score, weight in zip(flat, post.log_score.flat, post.weights.flat, strict=True):
            graph = graphs.to_networkx(graphs.unpack(dag, len(post.names)), post.names)
            graph.graph.update(log_score=float(score), weight=float(weight))
            yield graph
        return
    dags, first, inverse = post._distinct
    probability = np.bincount(inverse, post.weights.ravel()) / post.weights.sum()
    for k in np.argsort(-probability, kind="stable"):
        graph = graphs.to_networkx(graphs.unpack(dags[k], len(post.names)), post.names)
        graph.graph.update(log_score=float(post.log_score.flat[first[k]]), probability=float(probability[k]))
        yield graph


def log_score_gap(post: Draws, graph: Any) -> float:
    """Return how far the log score of a DAG lies below that of the best drawn DAG.

    Parameters
    ----------
    graph : networkx.DiGraph, array or edge list
        The DAG, over the posterior's variables.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> truth = gpn.datasets.sachs_consensus(17).subgraph(data.columns)
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> round(post.log_score_gap(truth), 1)
    4.3
    """
    if post.scorer is None:
        raise ValueError("this posterior has no score to compare a DAG by; sample again")
    return float(post.log_score.max() - post.scorer(graphs.as_adjacency(graph, post.names)))


def median_graph(post: GraphCollection, threshold: float = 0.5) -> DiGraph:
    """Return the edges whose probability exceeds a threshold; together they may close a cycle.

    Parameters
    ----------
    threshold : float, default 0.5
        Between 0 and 1. The edges carry their ``probability``.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> graph = post.median_graph(threshold=0.1)
    >>> sorted(graph.edges)
    [('akt', 'erk'), ('erk', 'akt'), ('mek', 'raf'), ('raf', 'mek')]
    >>> round(graph.edges["erk", "akt"]["probability"], 2)
    0.5
    """
    check_share("threshold", threshold)
    probabilities = edge_probabilities(post).to_numpy()
    graph: DiGraph = nx.DiGraph()
    graph.add_nodes_from(post.names)
    # Two directions with 0.5 each may be off by a rounding, and would both be there, as a cycle.
    for i, j in np.argwhere(probabilities > threshold + _ROUNDING):
        graph.add_edge(post.names[i], post.names[j], probability=float(probabilities[i, j]))
    return graph


def expected_shd(post: GraphCollection, truth: Any, cpdag: bool = False) -> Estimate:
    """Return the mean of the structural Hamming distance to a network; a reversal counts once.

    Parameters
    ----------
    truth : networkx.DiGraph, DataFrame, array, or list of edges
        The network to compare with, over the same variables.
    cpdag : bool, default False
        Whether to compare equivalence classes, so that directions that are not identifiable don't count; see
        `gpn_bayes.metrics.shd`. Only then may the network have undirected edges, set both ways.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> truth = gpn.datasets.sachs_consensus(17).subgraph(data.columns)
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.expected_shd(truth))
    2.094 (exact)
    >>> print(post.expected_shd(truth, cpdag=True))
    1.272 (exact)
    """
    known = _known_network(post, truth, undirected=cpdag)
    return post._estimate(lambda dags: metrics.shd_draws(dags, known, cpdag=cpdag))


def expected_tp(post: GraphCollection, truth: Any) -> Estimate:
    """Return the mean number of edges that a given network has too, with the same direction.

    Parameters
    ----------
    truth : networkx.DiGraph, DataFrame, array, or list of edges
        The network to compare with, over the same variables.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> truth = gpn.datasets.sachs_consensus(17).subgraph(data.columns)
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.expected_tp(truth), "of", truth.number_of_edges())
    1.044 (exact) of 3
    """
    known = _known_network(post, truth)
    return post._estimate(lambda dags: metrics.tp_draws(dags, known))


def expected_fp(post: GraphCollection, truth: Any) -> Estimate:
    """Return the mean number of edges between pairs that a given network doesn't join.

    Parameters
    ----------
    truth : networkx.DiGraph, DataFrame, array, or list of edges
        The network to compare with, over the same variables.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> truth = gpn.datasets.sachs_consensus(17).subgraph(data.columns)
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.expected_fp(truth))
    0.138 (exact)
    """
    known = _known_network(post, truth)
    return post._estimate(lambda dags: metrics.fp_draws(dags, known))


def _known_network(post: GraphCollection, truth: Any, undirected: bool = False) -> np.ndarray:
    """Return the adjacency matrix of a network to compare with, which must have no directed cycle."""
    known = metrics.network_matrix(truth, post.names)
    directed = known & ~known.T & 1 if undirected else known
    if not graphs.is_acyclic(directed[None])[0]:
        cycle = nx.find_cycle(graphs.to_networkx(directed, post.names))
        shown = " -> ".join(str(name) for name in [cycle[0][0], *(edge[1] for edge in cycle)])
        raise ValueError(f"the network to compare with must be acyclic; it has the cycle {shown}")
    return known


def graph_to_export(post: GraphCollection, which: str | None, threshold: float | None) -> DiGraph:
    """Return the graph that `export` writes, with the probabilities of its edges."""
    if which is not None:
        check_choice("which", which, ("median", post._best))
    if which == post._best and threshold is not None:
        raise ValueError(f"a threshold is that of which='median'; received {threshold} with which={which!r}")
    chosen = post._best_dag() if which == post._best else median_graph(post, 0.5 if threshold is None else threshold)
    graph: DiGraph = nx.DiGraph()
    graph.add_nodes_from(post.names)
    probabilities = edge_probabilities(post).to_numpy()
    for parent, child in chosen.edges:
        probability = float(probabilities[post._index(parent), post._index(child)])
        graph.add_edge(parent, child, **{post.quantity: probability})
    return graph


def instead_of_cycles(post: GraphCollection) -> str:
    """Return which graph to export where the one chosen has a cycle, to end a message with."""
    return f": use which={post._best!r}"
