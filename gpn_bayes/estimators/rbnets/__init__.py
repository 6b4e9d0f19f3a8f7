"""RBNets: orders learned by reinforcement, with a deep Q-network over the order graph."""

from gpn_bayes.estimators.rbnets.learner import RBNets

__all__ = ["RBNets"]
