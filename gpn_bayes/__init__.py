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

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "datasets": "gpn_bayes.datasets",
    "estimators": "gpn_bayes.estimators",
    "federated": "gpn_bayes.federated",
    "graphs": "gpn_bayes.graphs",
    "metrics": "gpn_bayes.graphs.metrics",
    "plots": "gpn_bayes.plots",
    "private": "gpn_bayes.private",
    "scores": "gpn_bayes.scores",
    "simulate": "gpn_bayes.simulate",
}
# The reference shows them in this order.
_NAMES = {
    "sample": "gpn_bayes.sampling.sample",
    "GraphPosterior": "gpn_bayes.posterior",
    "load": "gpn_bayes.posterior",
    "bootstrap": "gpn_bayes.estimators.bootstrapping",
    "Dataset": "gpn_bayes.data",
    "SufficientStatistics": "gpn_bayes.data",
}
__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gpn_bayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
