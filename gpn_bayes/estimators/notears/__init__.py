"""NOTEARS: linear structural equations with a smooth constraint for acyclicity, and better minima than that finds."""

from gpn_bayes.estimators.notears.linear import NOTEARS

__all__ = ["NOTEARS"]
