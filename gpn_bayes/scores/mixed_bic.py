"""BIC of tables that mix numbers and categories: conditional Gaussian networks."""

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.kernels.linear.conditional_gaussian import log_residuals_of_groups
from gpn_bayes.scores.mixed import Groups, MixedScorer

# Where columns determine each other, or don't vary in a group, so much of each variance is taken as noise.
_NOISE = 1e-10


class MixedBICScorer(MixedScorer):
    """BIC of one table of numbers and categories; see `gpn_bayes.scores.BIC`."""

    def _sets_of_groups(self, groups: Groups, node: int, parents: Ints, sizes: Ints) -> Floats:
        n = groups.sizes
        sums = log_residuals_of_groups(groups.scatters, n, node, parents, sizes, _NOISE)
        # Residual sums of squares over degrees of freedom, as bnlearn's bic-cg has variances.
        df = np.maximum(n[:, None] - 1 - np.arange(sizes.max(initial=0) + 1), 0.5)
        by_size = (df - n[:, None] * np.log(df)).sum(axis=0)
        log_likelihood = -0.5 * (self.n_rows * np.log(2 * np.pi) + sums + by_size[sizes])
        scores: Floats = log_likelihood - 0.5 * np.log(self.n_rows) * groups.cells * (sizes + 2.0)
        return scores
