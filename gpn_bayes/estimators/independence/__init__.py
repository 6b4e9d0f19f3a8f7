"""Tests of conditional independence, each bound to a table: what the PC algorithm asks.

Examples
--------
>>> import networkx as nx
>>> from gpn_bayes import simulate
>>> data = simulate.linear(nx.DiGraph([("raf", "mek"), ("mek", "erk")]), 500, random_seed=1)
>>> test = FisherZ().bind(data)
>>> test.p_value("raf", "erk") < 0.05 < test.p_value("raf", "erk", ["mek"])
True
"""

from gpn_bayes.estimators.independence.base import BoundTest, CallableTest, ConditionalIndependenceTest
from gpn_bayes.estimators.independence.fisher_z import FisherZ
from gpn_bayes.estimators.independence.g_squared import GSquared
from gpn_bayes.estimators.independence.kernel_tests import HSIC, DistanceCorrelation

__all__ = [
    "BoundTest",
    "CallableTest",
    "ConditionalIndependenceTest",
    "DistanceCorrelation",
    "FisherZ",
    "GSquared",
    "HSIC",
]
