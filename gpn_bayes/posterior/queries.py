"""Questions that any collection of DAGs answers, whether drawn from a posterior or fitted to resampled rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice, check_share, finite_number, shown
from gpn_bayes._util.types import Adjacency, Bools, DiGraph, Words
from gpn_bayes.exports import Exports
from gpn_bayes.graphs import metrics
from gpn_bayes.posterior.directions import DirectionShares, any_known, direction_shares
from gpn_bayes.posterior.estimate import Estimate, Moments
from gpn_bayes.posterior.pictures import EdgePictures
from gpn_bayes.posterior.questions import Question, read_question

# Probabilities that are summed exactly are as exact as this.
_ROUNDING = 1e-12


class GraphQueries(EdgePictures, Exports, ABC):
    """DAGs over the same variables, and what can be asked of them.

    A subclass has the attributes below, and implements `_moments` and `_best_dag`.

    Attributes
    ----------
    names : tuple of str
        The variables.
    parents : ndarray of uint64, shape (chain, draw, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.
    """

    names: tuple[str, ...]
    parents: Words
    _best: ClassVar[str] = "map"  # what `export` calls the one DAG

    @abstractmethod
    def _moments(self, features_of: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """Return the means of features of a stack of DAGs, as arrays over the features."""

    @abstractmethod
    def _best_dag(self) -> DiGraph:
        """Return the one DAG that stands for all where a DAG is needed."""

    @property
    def _target_sets(self) -> list[list[int]]:
        """The variables that each experiment changed; none where all rows were only observed."""
        return []

    @property
    def _known_directions(self) -> dict[str, Bools]:
        """The pairs that can only be joined in one direction, by what says so; see `known_directions`."""
        return {}

    @cached_property
    def _direction_shares(self) -> DirectionShares:
        n = len(self.names)
        weights = getattr(self, "weights", np.ones(self.parents.shape[:2]))
        flat = self.parents.reshape(-1, *self.parents.shape[2:])
        return direction_shares(flat, weights.ravel(), any_known(self._known_directions, n))

    @cached_property
    def _edge_moments(self) -> Moments:
        return self._drawn_edge_moments()

    def _drawn_edge_moments(self) -> Moments:
        """Return the estimates of all edges; those that were never drawn, which are most, are one column."""
        ever = graphs.unpack(np.bitwise_or.reduce(self.parents, axis=(0, 1)), len(self.names))
        i, j = np.nonzero(ever)
        # No node is its own parent.
        i, j = np.append(i, 0), np.append(j, 0)
        moments = self._moments(lambda dags: dags[:, i, j])
        column = np.full(ever.size, len(i) - 1)
        column[i[:-1] * len(self.names) + j[:-1]] = np.arange(len(i) - 1)
        return Moments(*(values[column] for values in moments))

    @cached_property
    def adjacency(self) -> Adjacency:
        """The drawn DAGs as int8 of shape (chain, draw, parent, child).

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.adjacency.shape
        (4, 100, 4, 4)
        >>> post.adjacency[0, 0].tolist()
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
        """
        return graphs.unpack(self.parents, len(self.names))

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct drawn DAGs as parent bits, the first draw of each, and which one each draw is."""
        flat = self.parents.reshape(self.parents.shape[0] * self.parents.shape[1], -1)
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return flat[first].reshape(-1, *self.parents.shape[2:]), first, inverse.reshape(-1)

    def _features(self, features_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return features of the distinct drawn DAGs, one row each."""
        distinct, _, _ = self._distinct
        parts = [features_of(dags) for dags in graphs.unpack_in_parts(distinct, len(self.names))]
        return np.concatenate([np.asarray(part).reshape(len(part), -1) for part in parts])

    def _estimate(self, features_of: Callable[[np.ndarray], np.ndarray]) -> Estimate:
        moments = self._moments(features_of)
        return Estimate(float(moments.value[0]), float(moments.mcse[0]), float(moments.ess[0]))

    def _index(self, node: Hashable) -> int:
        return graphs.node_index(node, self.names)

    def _table(self, values: np.ndarray) -> pd.DataFrame:
        n = len(self.names)
        return pd.DataFrame(
            values.reshape(n, n),
            index=pd.Index(self.names, name="parent"),
            columns=pd.Index(self.names, name="child"),
        )

    # Questions

    def edge_probabilities(self) -> pd.DataFrame:
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
        return self._table(self._edge_moments.value)

    def edge_probability(self, parent: Hashable, child: Hashable | None = None) -> Estimate:
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
            return self._answer(self._asked(parent, "->"))
        place = self._index(parent) * len(self.names) + self._index(child)
        value, mcse, ess, _ = (column[place] for column in self._edge_moments)
        note = self._note_on_pair(self._index(parent), self._index(child))
        return Estimate(float(value), float(mcse), float(ess)).with_note(note)

    def _note_on_pair(self, i: int, j: int) -> str:
        """Return what to say beside the probability that nodes i and j are joined."""
        return ""

    def _note_on_effect(self, i: int, j: int) -> str:
        """Return what to say beside the probability that node i acts on node j."""
        return ""

    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        """Return the estimates that nodes i and j are joined, either way."""
        return self._moments(lambda dags: dags[:, i, j] | dags[:, j, i])

    def probability(self, feature: Callable[[DiGraph], Any] | str | Question) -> Estimate:
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
            return self._answer(feature if isinstance(feature, Question) else read_question(feature, self.names))
        if not callable(feature):
            raise ValueError(f"a feature must be a function of a DAG, or a text such as 'a -> b'; received {feature!r}")
        return self._estimate(
            lambda dags: np.array([_number(feature(graphs.to_networkx(dag, self.names))) for dag in dags])
        )

    def _asked(self, text: Any, sign: str) -> Question:
        """Return the question that stands, in one text, in the place of the variables it is about."""
        if not isinstance(text, str):
            raise ValueError(f"two variables, or a text such as 'a {sign} b', must be given; received {shown(text)}")
        return read_question(text, self.names, [sign])

    def _answer(self, question: Question) -> Estimate:
        """Return the probability of what a question asks."""
        sign, names = question
        if sign == "->":
            return self.edge_probability(*names)
        if sign == "~>":
            return self.path_probability(*names)
        if sign == "<":
            return self.order_probability(*names)
        i, j = (self._index(name) for name in names)
        value, mcse, ess, _ = (column[0] for column in self._joined_moments([i], [j]))
        return Estimate(float(value), float(mcse), float(ess)).with_note(self._note_on_pair(i, j))

    def path_probabilities(self) -> pd.DataFrame:
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
        return self._table(self._moments(graphs.ancestors).value)

    def path_probability(self, source: Hashable, target: Hashable | None = None) -> Estimate:
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
            return self._answer(self._asked(source, "~>"))
        i, j = self._index(source), self._index(target)
        return self._estimate(lambda dags: graphs.ancestors(dags)[:, i, j]).with_note(self._note_on_effect(i, j))

    def order_probability(self, *nodes: Hashable) -> Estimate:
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
            return self._answer(self._asked(nodes[0], "<"))
        if len(nodes) < 2:
            raise ValueError(f"an order needs at least two variables; received {len(nodes)}")
        places = [self._index(node) for node in nodes]
        if len(set(places)) < len(places):
            raise ValueError(f"an order names each variable once; received {list(nodes)}")

        def allows(dags: Adjacency) -> Bools:
            chained = dags.copy()
            chained[:, places[:-1], places[1:]] = 1
            allowed: Bools = graphs.is_acyclic(chained)
            return allowed

        return self._estimate(allows)

    def markov_blanket(self, node: Hashable) -> pd.Series:
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
        i = self._index(node)
        value = self._moments(lambda dags: graphs.markov_blankets(dags)[:, i]).value
        return pd.Series(value, index=pd.Index(self.names, name="variable"), name="probability").drop(self.names[i])

    def cpdag_edges(self) -> pd.DataFrame:
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

        n = len(self.names)
        known = any_known(self._known_directions, n) | graphs.directed_by_experiments(self._target_sets, n)
        directed, undirected = self._moments(classes).value.reshape(2, n, n)
        parent, child = np.nonzero(~np.eye(n, dtype=bool))
        return pd.DataFrame(
            {
                "parent": [self.names[i] for i in parent],
                "child": [self.names[j] for j in child],
                "directed": directed[parent, child],
                "undirected": undirected[parent, child],
            }
        )

    # Graphs

    def median_graph(self, threshold: float = 0.5) -> DiGraph:
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
        probabilities = self.edge_probabilities().to_numpy()
        graph: DiGraph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        # Two directions with 0.5 each may be off by a rounding, and would both be there, as a cycle.
        for i, j in np.argwhere(probabilities > threshold + _ROUNDING):
            graph.add_edge(self.names[i], self.names[j], probability=float(probabilities[i, j]))
        return graph

    def _graph_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        if which is not None:
            check_choice("which", which, ("median", self._best))
        if which == self._best and threshold is not None:
            raise ValueError(f"a threshold is that of which='median'; received {threshold} with which={which!r}")
        chosen = self._best_dag() if which == self._best else self.median_graph(0.5 if threshold is None else threshold)
        graph: DiGraph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        probabilities = self.edge_probabilities().to_numpy()
        for parent, child in chosen.edges:
            probability = float(probabilities[self._index(parent), self._index(child)])
            graph.add_edge(parent, child, **{self.quantity: probability})
        return graph

    def _instead_of_cycles(self) -> str:
        return f": use which={self._best!r}"

    # Comparison with a known network

    def expected_shd(self, truth: Any, cpdag: bool = False) -> Estimate:
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
        known = self._known_network(truth, undirected=cpdag)
        return self._estimate(lambda dags: metrics.shd_draws(dags, known, cpdag=cpdag))

    def expected_tp(self, truth: Any) -> Estimate:
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
        known = self._known_network(truth)
        return self._estimate(lambda dags: metrics.tp_draws(dags, known))

    def expected_fp(self, truth: Any) -> Estimate:
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
        known = self._known_network(truth)
        return self._estimate(lambda dags: metrics.fp_draws(dags, known))

    def _known_network(self, truth: Any, undirected: bool = False) -> np.ndarray:
        """Return the adjacency matrix of a network to compare with, which must have no directed cycle."""
        known = metrics.network_matrix(truth, self.names)
        directed = known & ~known.T & 1 if undirected else known
        if not graphs.is_acyclic(directed[None])[0]:
            cycle = nx.find_cycle(graphs.to_networkx(directed, self.names))
            shown = " -> ".join(str(name) for name in [cycle[0][0], *(edge[1] for edge in cycle)])
            raise ValueError(f"the network to compare with must be acyclic; it has the cycle {shown}")
        return known


def _number(value: Any) -> float:
    """Return what a feature says of a DAG."""
    return finite_number(value, "a feature must be a truth value or a finite number for every DAG")
