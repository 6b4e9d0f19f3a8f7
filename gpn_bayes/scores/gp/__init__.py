"""Gaussian-process scores: the marginal likelihood of a node given its parents, as an integral over hyperparameters."""

from gpn_bayes.scores.gp.score import GP

__all__ = ["GP"]
