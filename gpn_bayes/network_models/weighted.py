"""PyMC models of the most probable DAGs of a posterior, with their probabilities."""

from itertools import islice
from typing import Any, NamedTuple

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.types import DiGraph
from gpn_bayes.network_models.building import pymc_network
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.equations import scorer_of


class WeightedNetwork(NamedTuple):
    """A PyMC model of one of a posterior's DAGs.

    Attributes
    ----------
    model : pymc.Model
        The model; see `gpn_bayes.pymc_network`.
    weight : float
        The posterior probability of the DAG.
    graph : networkx.DiGraph
        The DAG.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> model, weight, graph = pymc_networks(post, k=1)[0]
    >>> len(model.coords["row"]), 0 < weight < 1, len(graph)
    (853, True, 4)
    """

    model: Any
    weight: float
    graph: DiGraph


def pymc_networks(post: GraphPosterior, k: int = 5, *, functions: str = "drawn") -> list[WeightedNetwork]:
    """Return PyMC models of the most probable DAGs that a posterior drew.

    An average over DAGs of anything that follows from such a model is nearly the average over these, by their weights:
    as nearly as the sum of the weights is to one.

    Parameters
    ----------
    post : GraphPosterior
        The posterior, with its data. Its score is that of the models.
    k : int, default 5
        How many DAGs; fewer where fewer were drawn.
    functions : {"drawn", "marginal"}
        As in `gpn_bayes.pymc_network`.

    Returns
    -------
    list of WeightedNetwork
        Tuples of a model, its weight and its DAG, by falling weight. The weight is the share of the DAG among all
        draws, by their importance weights where they have any; so weights add up to what these DAGs hold of the
        posterior.

    Raises
    ------
    ValueError
        Where the posterior has no data, or a score that `gpn_bayes.pymc_network` refuses.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> first, second = pymc_networks(post, k=2)
    >>> sorted(first.graph.edges), first.weight, len(first.model.observed_RVs)
    ([('erk', 'akt'), ('mek', 'raf')], 0.215, 4)
    """
    check_count("k", k, 1)
    score = scorer_of(post, "PyMC networks").score
    return [
        WeightedNetwork(pymc_network(post.data, graph, score, functions=functions), graph.graph["probability"], graph)
        for graph in islice(post.graphs(distinct=True), k)
    ]
