"""Posterior probabilities of edges, paths and orders in networks of continuous or discrete variables.

Names are loaded when they are first used, so that ``import gpn_bayes`` stays quick.

Examples take ``np``, ``pd`` and ``nx`` (numpy, pandas and networkx) for granted, and the names of the module that they
stand in.

Examples
--------
>>> import gpn_bayes as gpn
>>> gpn.datasets.sachs_consensus(17).number_of_edges()
17
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = (
    "datasets",
    "estimators",
    "federated",
    "graphs",
    "metrics",
    "plots",
    "private",
    "scores",
    "simulate",
    "time_series",
)
_NAMES = {
    "Dataset": "gpn_bayes.data",
    "SufficientStatistics": "gpn_bayes.data",
    "GraphPosterior": "gpn_bayes.posterior",
    "bootstrap": "gpn_bayes.bootstrapping",
    "load": "gpn_bayes.posterior",
    "sample": "gpn_bayes.sampling",
}
__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gpn_bayes.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gpn_bayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
