"""Probabilities of edges, paths, orders and any other feature of DAGs."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import finite_number, shown
from gpn_bayes._util.types import Adjacency, Bools, DiGraph
from gpn_bayes.posterior.diagnostics import edge_r_hats
from gpn_bayes.posterior.directions import any_known
from gpn_bayes.posterior.draws import Draws, GraphCollection
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.posterior.questions import Question, read_question
from gpn_bayes.posterior.target_answers import target_sets


def edge_probabilities(post: GraphCollection) -> pd.DataFrame:
    """Return the probability of every edge; rows are parents, columns children.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.edge_probabilities().round(2)
    child    raf   mek   erk   akt
    parent
    raf     0.00  0.50  0.02  0.02
    mek     0.50  0.00  0.05  0.04
    erk     0.03  0.03  0.00  0.50
    akt     0.02  0.01  0.50  0.00
    """
    return _table(post, post._edge_moments.value)


def edge_probability(post: GraphCollection, parent: Hashable, child: Hashable | None = None) -> Estimate:
    """Return the probability of an edge, with its error.

    Parameters
    ----------
    parent, child : str or int
        The edge parent -> child; or both in one text, ``"raf -> mek"``.

    Returns
    -------
    Estimate
        Its value, Monte Carlo standard error and effective number of draws.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.edge_probability("raf", "mek"))
    0.499 (exact)
    >>> print(post.edge_probability("raf -> akt"))
    0.023 (exact)
    """
    if child is None:
        return _answer(post, _asked(post, parent, "->"))
    place = post._index(parent) * len(post.names) + post._index(child)
    value, mcse, ess, _ = (column[place] for column in post._edge_moments)
    note = post._note_on_pair(post._index(parent), post._index(child))
    return Estimate(float(value), float(mcse), float(ess)).with_note(note)


def probability(post: GraphCollection, feature: Callable[[DiGraph], Any] | str | Question) -> Estimate:
    """Return the probability (or mean) of any feature of a DAG.

    Parameters
    ----------
    feature : callable or str
        A function of a networkx.DiGraph over the variables that returns a truth value or a finite number; it is
        called once for each distinct DAG, and the answer is its mean. Or a question as on the command line:
        "a -> b" (edge), "a ~> b" (directed path), "a - b" (edge either way) or "a < b < c" (order).

    Returns
    -------
    Estimate
        Its value, Monte Carlo standard error and effective number of draws.

    Examples
    --------
    >>> import networkx as nx
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.probability(lambda graph: nx.has_path(graph, "raf", "akt")))
    0.051 (exact)
    >>> print(post.probability(lambda graph: graph.in_degree("akt")))
    0.560 (exact)
    >>> print(post.probability("raf ~> akt"))
    0.051 (exact)
    """
    if isinstance(feature, str | Question):
        return _answer(post, feature if isinstance(feature, Question) else read_question(feature, post.names))
    if not callable(feature):
        raise ValueError(
            f"a feature must be a function of a DAG, or a text such as 'a -> b'; received {shown(feature)}"
        )
    return post._estimate(
        lambda dags: np.array([_number(feature(graphs.to_networkx(dag, post.names))) for dag in dags])
    )


def _asked(post: GraphCollection, text: Any, sign: str) -> Question:
    """Return the question that stands, in one text, in the place of the variables it is about."""
    if not isinstance(text, str):
        raise ValueError(f"two variables, or a text such as 'a {sign} b', must be given; received {shown(text)}")
    return read_question(text, post.names, [sign])


def _answer(post: GraphCollection, question: Question) -> Estimate:
    """Return the probability of what a question asks."""
    sign, names = question
    if sign == "->":
        return edge_probability(post, *names)
    if sign == "~>":
        return path_probability(post, *names)
    if sign == "<":
        return order_probability(post, *names)
    i, j = (post._index(name) for name in names)
    value, mcse, ess, _ = (column[0] for column in post._joined_moments([i], [j]))
    return Estimate(float(value), float(mcse), float(ess)).with_note(post._note_on_pair(i, j))


def path_probabilities(post: GraphCollection) -> pd.DataFrame:
    """Return the probability of a directed path from each variable (row) to each other (column).

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.path_probabilities().round(2)
    child    raf   mek   erk   akt
    parent
    raf     0.00  0.50  0.05  0.05
    mek     0.50  0.00  0.06  0.06
    erk     0.04  0.04  0.00  0.50
    akt     0.04  0.04  0.50  0.00
    """
    return _table(post, post._moments(graphs.ancestors).value)


def path_probability(post: GraphCollection, source: Hashable, target: Hashable | None = None) -> Estimate:
    """Return the probability of a directed path, with its error.

    Parameters
    ----------
    source, target : str or int
        Where the path begins and ends; it may be a single edge. Or both in one text, ``"raf ~> akt"``.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.path_probability("raf", "akt"))
    0.051 (exact)
    """
    if target is None:
        return _answer(post, _asked(post, source, "~>"))
    i, j = post._index(source), post._index(target)
    return post._estimate(lambda dags: graphs.ancestors(dags)[:, i, j]).with_note(post._note_on_effect(i, j))


def order_probability(post: GraphCollection, *nodes: Hashable) -> Estimate:
    """Return the probability that the variables can stand in this order, causes first.

    A DAG allows the order if none of the variables is an ancestor of one named before it, directly or
    by way of the order itself: if it stays acyclic with the edges between neighbours of the order added.

    Parameters
    ----------
    *nodes : str or int
        Two variables or more, each once; or all in one text, ``"raf < mek < erk"``.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.order_probability("raf", "mek", "erk"))
    0.466 (exact)
    """
    if len(nodes) == 1 and isinstance(nodes[0], str):
        return _answer(post, _asked(post, nodes[0], "<"))
    if len(nodes) < 2:
        raise ValueError(f"an order needs at least two variables; received {len(nodes)}")
    places = [post._index(node) for node in nodes]
    if len(set(places)) < len(places):
        raise ValueError(f"an order names each variable once; received {shown(list(nodes))}")

    def allows(dags: Adjacency) -> Bools:
        chained = dags.copy()
        chained[:, places[:-1], places[1:]] = 1
        allowed: Bools = graphs.is_acyclic(chained)
        return allowed

    return post._estimate(allows).with_note(post._note_on_effect(places[0], places[-1]))


def markov_blanket(post: GraphCollection, node: Hashable) -> pd.Series:
    """Return the probability that each other variable is in a variable's Markov blanket.

    The blanket holds its parents, its children and the other parents of its children: given these, no other
    variable tells more about it.

    Parameters
    ----------
    node : str or int
        The variable.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.markov_blanket("mek").round(2).to_dict()
    {'raf': 1.0, 'erk': 0.12, 'akt': 0.1}
    """
    i = post._index(node)
    value = post._moments(lambda dags: graphs.markov_blankets(dags)[:, i]).value
    return pd.Series(value, index=pd.Index(post.names, name="variable"), name="probability").drop(post.names[i])


def cpdag_edges(post: GraphCollection) -> pd.DataFrame:
    """Return how often each pair is joined in the equivalence class of the drawn DAG, and how.

    Of the class, only those DAGs count that agree with what is known: tiers, required and forbidden edges, edges
    that have no score (from numbers to categories, under ``score="cg"``), edges that the given candidates leave no
    way to, and, where rows have targets of interventions, the directions that experiments determine. The graph is
    then that of `gpn_bayes.graphs.mpdag`; where nothing is known, the CPDAG. Scores that tell DAGs of a class
    apart, such as Gaussian processes, have no say in it.

    Returns
    -------
    DataFrame
        For every ordered pair: `directed`, the probability that parent -> child is in all of these DAGs, and
        `undirected`, that the edge is there but its direction is not identifiable.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.cpdag_edges().round(2).head(3)
      parent child  directed  undirected
    0    raf   mek      0.03        0.94
    1    raf   erk      0.01        0.01
    2    raf   akt      0.01        0.02
    """

    def classes(dags: np.ndarray) -> np.ndarray:
        both = graphs.mpdag(dags, known)
        back = np.swapaxes(both, -1, -2)
        return np.stack([both & ~back & 1, both & back], axis=1)

    n = len(post.names)
    known = any_known(post._known_directions, n) | graphs.directed_by_experiments(target_sets(post), n)
    directed, undirected = post._moments(classes).value.reshape(2, n, n)
    parent, child = np.nonzero(~np.eye(n, dtype=bool))
    return pd.DataFrame(
        {
            "parent": [post.names[i] for i in parent],
            "child": [post.names[j] for j in child],
            "directed": directed[parent, child],
            "undirected": undirected[parent, child],
        }
    )


def parent_set_probabilities(post: Draws, node: Hashable) -> pd.DataFrame:
    """Return the parent sets of a variable by decreasing probability; exact from the exact sampler.

    Parameters
    ----------
    node : str or int
        The variable.

    Returns
    -------
    DataFrame
        Columns `parents`, a tuple of names, and `probability`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.parent_set_probabilities("erk").round(2).head(3).to_numpy().tolist()
    [[(), 0.49], [('akt',), 0.45], [('mek', 'akt'), 0.04]]
    """
    i = post._index(node)
    if post.exact is not None:
        chosen, probability = post.exact.candidates[i], post.exact.parent_sets[i]
        masks = np.flatnonzero(probability > 0)
        sets = [tuple(post.names[c] for b, c in enumerate(chosen) if mask >> b & 1) for mask in masks]
        table = pd.DataFrame({"parents": sets, "probability": probability[masks]})
    else:
        columns = graphs.parents_of(post.parents, i).reshape(-1, len(post.names))
        distinct, inverse = np.unique(columns, axis=0, return_inverse=True)
        weight = np.bincount(inverse.reshape(-1), post.weights.ravel())
        sets = [tuple(post.names[j] for j in np.flatnonzero(row)) for row in distinct]
        table = pd.DataFrame({"parents": sets, "probability": weight / weight.sum()})
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def summary(post: Draws) -> pd.DataFrame:
    """Return a tidy table of all edges by decreasing probability.

    Returns
    -------
    DataFrame
        Columns `edge`, `parent`, `child`, `probability`, `mcse`, `ess`, `r_hat` and `status`: "sampled",
        "exact", "never" or "always" (constant over all chains) or "chains disagree" (constant within
        each chain but not the same in all).

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.summary()[["edge", "probability", "status"]].round(2).head(3)
             edge  probability status
    0  akt -> erk          0.5  exact
    1  mek -> raf          0.5  exact
    2  raf -> mek          0.5  exact
    """
    n = len(post.names)
    parent, child = np.nonzero(~np.eye(n, dtype=bool))
    places = parent * n + child
    value, mcse, ess, status = (column[places] for column in post._edge_moments)
    varies = np.flatnonzero(post._edge_moments.status == "sampled")
    table = pd.DataFrame(
        {
            "edge": [f"{post.names[i]} -> {post.names[j]}" for i, j in zip(parent, child, strict=True)],
            "parent": [post.names[i] for i in parent],
            "child": [post.names[j] for j in child],
            "probability": value,
            "mcse": mcse,
            "ess": ess,
            "r_hat": edge_r_hats(post, varies)[places],
            "status": status,
        }
    )
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _table(post: GraphCollection, values: np.ndarray) -> pd.DataFrame:
    n = len(post.names)
    return pd.DataFrame(
        values.reshape(n, n),
        index=pd.Index(post.names, name="parent"),
        columns=pd.Index(post.names, name="child"),
    )


def _number(value: Any) -> float:
    """Return what a feature says of a DAG."""
    return finite_number(value, "a feature must be a truth value or a finite number for every DAG")
