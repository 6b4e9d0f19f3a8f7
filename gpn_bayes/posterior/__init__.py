"""GraphPosterior: weighted draws of DAGs, the questions they answer, and how far to trust them."""

from typing import TYPE_CHECKING

from gpn_bayes._util.lazy import lazily
from gpn_bayes.posterior.graph_posterior import GraphPosterior

if TYPE_CHECKING:
    from gpn_bayes.posterior.comparing import Comparison, compare
    from gpn_bayes.posterior.diagnostics import Diagnostics
    from gpn_bayes.posterior.effect import Effect
    from gpn_bayes.posterior.estimate import Estimate
    from gpn_bayes.posterior.loading import load

__all__ = ["Comparison", "Diagnostics", "Effect", "Estimate", "GraphPosterior", "compare", "load"]

_HOMES = {
    "Comparison": "gpn_bayes.posterior.comparing",
    "Diagnostics": "gpn_bayes.posterior.diagnostics",
    "Effect": "gpn_bayes.posterior.effect",
    "Estimate": "gpn_bayes.posterior.estimate",
    "GraphPosterior": "gpn_bayes.posterior.graph_posterior",
    "compare": "gpn_bayes.posterior.comparing",
    "load": "gpn_bayes.posterior.loading",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
