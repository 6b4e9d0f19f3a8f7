"""Exact search: the DAG with the highest score, and the proof or what is missing of it."""

from gpn_bayes.estimators.exact.learner import Exact

__all__ = ["Exact"]
