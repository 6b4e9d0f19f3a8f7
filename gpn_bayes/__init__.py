"""Posterior probabilities of edges, paths and orders in networks of continuous or discrete variables.

Names are loaded when they are first used, so that ``import gpn_bayes`` stays quick.

Examples take ``np``, ``pd`` and ``nx`` (numpy, pandas and networkx) for granted, and the names of the module that they
stand in.

Examples
--------
>>> import gpn_bayes as gpn
>>> df = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
>>> post = gpn.sample(df, score="bge", random_seed=1, progressbar=False)
>>> round(post.edge_probability("raf", "mek").value, 2)
0.5
"""

from gpn_bayes._util.lazy import lazily

__version__ = "0.1.0"

_MODULES = {
    "datasets": "gpn_bayes.datasets",
    "estimators": "gpn_bayes.estimators",
    "federated": "gpn_bayes.federated",
    "graphs": "gpn_bayes.graphs",
    "metrics": "gpn_bayes.graphs.metrics",
    "plots": "gpn_bayes.plots",
    "private": "gpn_bayes.private",
    "samplers": "gpn_bayes.samplers",
    "scores": "gpn_bayes.scores",
    "simulate": "gpn_bayes.simulate",
}
# The reference shows them in this order.
_NAMES = {
    "sample": "gpn_bayes.sampling.sample",
    "Space": "gpn_bayes.candidates.space",
    "GraphPosterior": "gpn_bayes.posterior",
    "load": "gpn_bayes.posterior",
    "compare": "gpn_bayes.posterior",
    "bootstrap": "gpn_bayes.estimators.bootstrapping",
    "pymc_network": "gpn_bayes.network_models.building",
    "pymc_networks": "gpn_bayes.network_models.weighted",
    "Table": "gpn_bayes.data",
    "read_table": "gpn_bayes.data",
    "Dataset": "gpn_bayes.data",
    "SufficientStatistics": "gpn_bayes.data",
}
__all__ = ["__version__", *_MODULES, *_NAMES]
__getattr__, __dir__ = lazily(__name__, {"__version__": __name__} | _NAMES, _MODULES)
