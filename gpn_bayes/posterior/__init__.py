"""GraphPosterior: weighted draws of DAGs, the questions they answer, and how far to trust them."""

from gpn_bayes.posterior.comparing import Comparison, compare
from gpn_bayes.posterior.diagnostics import Diagnostics
from gpn_bayes.posterior.effect import Effect
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.posterior.graph_posterior import GraphPosterior
from gpn_bayes.posterior.loading import load

__all__ = ["Comparison", "Diagnostics", "Effect", "Estimate", "GraphPosterior", "compare", "load"]
