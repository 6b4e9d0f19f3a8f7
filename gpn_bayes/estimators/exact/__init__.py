"""Exact search: the DAG with the highest score, with proof of optimality or the remaining gap."""

from gpn_bayes.estimators.exact.learner import Exact

__all__ = ["Exact"]
