"""Distance of an estimated graph, or of a posterior over graphs, from the truth; evidence in a difference of scores."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from gpn_bayes import graphs
from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints

# Classes of evidence by the size of a difference of scores, and where each but the last ends.
_EVIDENCE = ("neutral", "positive", "strong", "very strong")
_EVIDENCE_ENDS = np.array([2.0, 6.0, 10.0])


class Confusion(NamedTuple):
    """Pairs of nodes, sorted by what the estimate and the truth say of them.

    Attributes
    ----------
    tp : int, or array over draws
        Pairs with an edge in both, not pointing opposite ways.
    fp : int, or array over draws
        Pairs with an edge in the estimate only.
    fn : int, or array over draws
        Pairs with an edge in the truth only.
    reversed : int, or array over draws
        Pairs with an edge in both, pointing opposite ways.

    Examples
    --------
    >>> counts = confusion([[0, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> counts.tp, counts.fp, counts.fn, counts.reversed
    (1, 1, 1, 0)
    """

    tp: Any
    fp: Any
    fn: Any
    reversed: Any


def shd(estimate: Any, truth: Any, cpdag: bool = False) -> int:
    """Return the structural Hamming distance: how many pairs of nodes differ.

    A missing, an extra and a reversed edge count one each, and so does an undirected edge (set both
    ways) against a directed one.

    Parameters
    ----------
    estimate, truth : networkx.DiGraph, DataFrame or array
        Named graphs are matched by name.
    cpdag : bool
        Whether to compare equivalence classes: DAGs are replaced by their CPDAG first, and graphs that
        already have undirected edges are compared as they are.

    Examples
    --------
    >>> import networkx as nx
    >>> truth = nx.DiGraph([("raf", "mek"), ("mek", "erk")])
    >>> estimate = nx.DiGraph([("mek", "raf"), ("mek", "erk")])
    >>> shd(estimate, truth), shd(estimate, truth, cpdag=True)
    (1, 0)
    """
    return int(shd_draws(*_aligned(estimate, truth), cpdag))


def confusion(estimate: Any, truth: Any, skeleton: bool = False) -> Confusion:
    """Return the counts of true, false, missing and reversed edges.

    Undirected edges (set both ways) agree with either direction. Between DAGs, tp + fn + reversed is
    the number of true edges, tp + fp + reversed that of estimated ones, and fp + fn + reversed the SHD.

    Parameters
    ----------
    estimate, truth : networkx.DiGraph, DataFrame or array
        DAGs or CPDAGs. Named graphs are matched by name.
    skeleton : bool
        Whether to ignore directions, so that nothing is reversed.

    Examples
    --------
    >>> confusion(np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]]))
    Confusion(tp=0, fp=0, fn=0, reversed=1)
    """
    counts = confusion_draws(*_aligned(estimate, truth), skeleton)
    return Confusion(*(int(count) for count in counts))


def tpr(estimate: Any, truth: Any, skeleton: bool = False) -> float:
    """Return the share of the true edges that were found (NaN where there are none).

    An undirected edge over a true edge counts as found, a reversed one doesn't.

    Parameters
    ----------
    estimate, truth : networkx.DiGraph, DataFrame or array
        DAGs or CPDAGs. Named graphs are matched by name.
    skeleton : bool
        Whether to ignore directions.

    Examples
    --------
    >>> tpr([[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    0.5
    """
    counts = confusion(estimate, truth, skeleton)
    true = counts.tp + counts.fn + counts.reversed
    return counts.tp / true if true else float("nan")


def fdr(estimate: Any, truth: Any, skeleton: bool = False) -> float:
    """Return the share of the estimated edges that are false or reversed (0 where there are none).

    An undirected edge over a true edge counts as true.

    Parameters
    ----------
    estimate, truth : networkx.DiGraph, DataFrame or array
        DAGs or CPDAGs. Named graphs are matched by name.
    skeleton : bool
        Whether to ignore directions.

    Examples
    --------
    >>> fdr([[0, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    0.5
    """
    counts = confusion(estimate, truth, skeleton)
    learned = counts.tp + counts.fp + counts.reversed
    return (counts.fp + counts.reversed) / learned if learned else 0.0


def shd_draws(draws: NDArray[Any], truth: Any, cpdag: bool = False, names: Sequence[Hashable] | None = None) -> Ints:
    """Return the structural Hamming distance of each drawn graph; see `shd`.

    Parameters
    ----------
    draws : array of shape (..., n, n)
        Adjacency matrices.
    truth : networkx.DiGraph, DataFrame or array
        The graph to compare with.
    cpdag : bool
        Whether to compare equivalence classes.
    names : sequence, optional
        The names of the draws' nodes; without them, the nodes of the truth have the draws' order.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> draws = graphs.enumerate_dags(2)
    >>> shd_draws(draws, np.array([[0, 1], [0, 0]])).tolist()
    [1, 0, 1]
    """
    drawn, true = _draws_and_truth(draws, truth, names)
    if cpdag:
        drawn, true = _classes(drawn), _classes(true)
    distances: Ints = _pairs(drawn != true)
    return distances


def confusion_draws(
    draws: NDArray[Any], truth: Any, skeleton: bool = False, names: Sequence[Hashable] | None = None
) -> Confusion:
    """Return the counts of `confusion` for each drawn graph, as four arrays.

    Parameters
    ----------
    draws : array of shape (..., n, n)
        Adjacency matrices.
    truth : networkx.DiGraph, DataFrame or array
        The graph to compare with.
    skeleton : bool
        Whether to ignore directions.
    names : sequence, optional
        The names of the draws' nodes; without them, the nodes of the truth have the draws' order.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> confusion_draws(graphs.enumerate_dags(2), np.array([[0, 1], [0, 0]])).reversed.tolist()
    [0, 0, 1]
    """
    drawn, true = (graph != 0 for graph in _draws_and_truth(draws, truth, names))
    found_pairs = drawn | drawn.swapaxes(-1, -2)
    true_pairs = true | true.swapaxes(-1, -2)
    both = _pairs(found_pairs & true_pairs)
    tp = both if skeleton else _pairs(drawn & true)
    fp, fn = _pairs(found_pairs & ~true_pairs), _pairs(true_pairs & ~found_pairs)
    return Confusion(tp, fp, fn, both - tp)


def tp_draws(draws: NDArray[Any], truth: Any, skeleton: bool = False, names: Sequence[Hashable] | None = None) -> Ints:
    """Return the number of true edges in each drawn graph; see `confusion`.

    Parameters
    ----------
    draws, truth, skeleton, names
        As of `confusion_draws`.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> tp_draws(graphs.enumerate_dags(2), np.array([[0, 1], [0, 0]])).tolist()
    [0, 1, 0]
    """
    counts: Ints = confusion_draws(draws, truth, skeleton, names).tp
    return counts


def fp_draws(draws: NDArray[Any], truth: Any, skeleton: bool = False, names: Sequence[Hashable] | None = None) -> Ints:
    """Return the number of false edges in each drawn graph; reversed edges are not among them.

    Parameters
    ----------
    draws, truth, skeleton, names
        As of `confusion_draws`.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> fp_draws(graphs.enumerate_dags(2), np.zeros((2, 2))).tolist()
    [0, 1, 1]
    """
    counts: Ints = confusion_draws(draws, truth, skeleton, names).fp
    return counts


def reverse_kl(log_q: Any, log_p: Any) -> float:
    """Return KL(q || p) of two distributions over the same DAGs.

    Parameters
    ----------
    log_q, log_p : array of shape (count,)
        Log probabilities up to a constant: both are normalised here. -inf is probability zero.

    Examples
    --------
    >>> round(reverse_kl(np.log([0.5, 0.5]), np.log([0.25, 0.75])), 4)
    0.1438
    """
    q, p = (_normalised(side, values) for side, values in (("log_q", log_q), ("log_p", log_p)))
    if q.shape != p.shape:
        raise ValueError(f"log_q and log_p must list the same DAGs; received {len(q)} and {len(p)}")
    held = q > -np.inf
    return max(0.0, float(np.sum(np.exp(q[held]) * (q[held] - p[held]))))


def auroc(scores: Any, truth: Any) -> float:
    """Return the area under the ROC curve of edge scores, over all ordered pairs of nodes.

    Parameters
    ----------
    scores : DataFrame or array of shape (n, n)
        Higher where the edge row -> column is more probable.
    truth : networkx.DiGraph, DataFrame or array
        The graph to compare with; it must have an edge.

    Examples
    --------
    >>> auroc(np.array([[0.0, 0.9], [0.1, 0.0]]), np.array([[0, 1], [0, 0]]))
    1.0
    """
    from sklearn.metrics import roc_auc_score

    names = _names(truth, scores)
    if isinstance(scores, pd.DataFrame):
        scores = scores.reindex(index=names, columns=names)
    values = np.asarray(scores, dtype=float)
    true = graphs.as_adjacency(_array(truth), names or range(len(values)))
    if values.shape != true.shape or not np.isfinite(values).all():
        raise ValueError(f"scores must be a finite matrix of shape {true.shape}; received {values.shape}")
    if not true.any():
        raise ValueError("an ROC curve needs a true edge; received a truth without edges")
    pairs = ~np.eye(len(true), dtype=bool)
    return float(roc_auc_score(true[pairs], values[pairs]))


def evidence(delta: Any) -> Any:
    """Return how strongly a difference of scores speaks for the graph with the higher one.

    A difference up to 2 is "neutral", up to 6 "positive", up to 10 "strong", above "very strong". Negative differences
    speak for the other graph: "positive against", "strong against", "very strong against".

    Scores here are natural logs, BIC = ln L - (ln m / 2) k, and comparisons of learners by delta-BIC put the classes on
    the difference of such scores as it is. Kass and Raftery (1995), from whom the limits come, put them on twice the
    log Bayes factor; a difference of BIC, BDeu, BGe or GP scores is the log Bayes factor, or near it: their class is
    that of ``2 * delta``, and ours is the more cautious one.

    Parameters
    ----------
    delta : float, array or Series
        Score of one graph minus score of the other.

    Returns
    -------
    str, array of str, or Series
        As `delta`; a Series becomes an ordered categorical, from "very strong against" to "very strong".

    Examples
    --------
    >>> evidence(4.2)
    'positive'
    >>> evidence(np.array([-11.0, 0.5, 8.0])).tolist()
    ['very strong against', 'neutral', 'strong']
    """
    values = np.asarray(delta, dtype=float)
    if np.isnan(values).any():
        raise ValueError("differences of scores must be numbers; received NaN")
    classes = [f"{name} against" for name in _EVIDENCE[:0:-1]] + list(_EVIDENCE)
    neutral = len(_EVIDENCE) - 1
    strength = np.searchsorted(_EVIDENCE_ENDS, np.abs(values), side="left")
    places = neutral + np.where(values < 0, -strength, strength)
    if isinstance(delta, pd.Series):
        return pd.Series(
            pd.Categorical.from_codes(places, pd.Index(classes), ordered=True), index=delta.index, name=delta.name
        )
    labels = np.array(classes)[places]
    return str(labels) if values.ndim == 0 else labels


def _array(graph: Any, names: Sequence[Hashable] | None = None) -> Any:
    """Read nested lists as a matrix, unless they are pairs of names."""
    if not isinstance(graph, list | tuple):
        return graph
    known = set(names or ())
    are_edges = all(isinstance(pair, list | tuple) and len(pair) == 2 and set(pair) <= known for pair in graph)
    return graph if are_edges else np.asarray(graph)


def network_matrix(network: Any, names: Sequence[Hashable]) -> Adjacency:
    """Return a network to compare with as an adjacency matrix; it may have cycles, and undirected edges set both ways.

    Parameters
    ----------
    network : networkx.DiGraph, DataFrame, array, or list of edges
        The network.
    names : sequence
        The nodes, in order.

    Examples
    --------
    >>> network_matrix([("b", "a")], ["a", "b"]).tolist()
    [[0, 0], [1, 0]]
    """
    return graphs.as_adjacency(_array(network, names), names, acyclic=False)


def _names(*candidates: Any) -> list[Hashable] | None:
    """Return the names of the first graph that has any."""
    for graph in candidates:
        if (names := graphs.graph_names(graph)) is not None:
            return names
    return None


def _aligned(estimate: Any, truth: Any) -> tuple[Adjacency, Adjacency]:
    """Return two graphs as adjacency matrices over the same nodes."""
    estimate, truth = _array(estimate), _array(truth)
    names: Sequence[Hashable] = _names(truth, estimate) or range(len(truth))
    return graphs.as_adjacency(estimate, names, acyclic=False), graphs.as_adjacency(truth, names, acyclic=False)


def _draws_and_truth(draws: Any, truth: Any, names: Sequence[Hashable] | None) -> tuple[Adjacency, Adjacency]:
    stack = graphs.as_stack(draws)
    if names is None:
        names = _names(_array(truth)) or range(stack.shape[-1])
    true = network_matrix(truth, names)
    if true.shape != stack.shape[-2:]:
        raise ValueError(f"draws and truth must have the same nodes; received {stack.shape[-1]} and {len(true)}")
    return stack, true


def _pairs(relation: Bools) -> Any:
    """Count the unordered pairs of nodes that stand in a relation, in one direction or both; one number a graph."""
    return (relation | relation.swapaxes(-1, -2)).sum(axis=(-1, -2)) // 2


def _classes(stack: Adjacency) -> Adjacency:
    """Replace DAGs by their CPDAG; graphs with undirected edges stay as they are."""
    undirected = ((stack != 0) & (stack.swapaxes(-1, -2) != 0)).any(axis=(-1, -2))
    classes = np.array(stack, dtype=np.int8)
    classes[~undirected] = graphs.cpdag(stack[~undirected])
    return classes


def _normalised(side: str, log_values: Any) -> Floats:
    values = np.asarray(log_values, dtype=float)
    if values.ndim != 1 or np.isnan(values).any() or not -np.inf < values.max(initial=-np.inf) < np.inf:
        raise ValueError(f"{side} must be a vector of log probabilities, finite or -inf but not all -inf")
    normalised: Floats = values - logsumexp(values)
    return normalised
