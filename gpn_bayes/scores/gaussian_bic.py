"""Gaussian BIC: the likelihood of linear regressions at their best, less a charge for every parameter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Data, Dataset, RowMoments, moments_of
from gpn_bayes.kernels.linear.bge import log_minors
from gpn_bayes.kernels.linear.gaussian_bic import log_residuals
from gpn_bayes.scores.assumptions import EQUIVALENCE, LINEAR, linear_residuals
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, padded_sets
from gpn_bayes.scores.equations import LinearEquation, LinearEquations

# Where variables determine each other, so much of each variance is taken as noise: scores stay finite.
_NOISE = 1e-10


class GaussianBICScorer(Scorer):
    """Gaussian BIC scores of one data set; see `gpn_bayes.scores.BIC`."""

    closed_form = True
    assumptions = (*LINEAR, *EQUIVALENCE)

    def __init__(self, score: Score, data: Data | RowMoments, standardise: bool = True) -> None:
        super().__init__(score, data.names, data.fingerprint)
        moments = moments_of(data, "the Gaussian BIC score")
        self.n_rows = moments.n
        self.matrix = moments.scatter / max(moments.n - 1, 1)
        self._means = np.zeros(len(self.names)) if standardise else moments.mean
        if standardise:
            scale = np.sqrt(np.diag(self.matrix))
            self.matrix = self.matrix / np.outer(scale, scale)
        if np.linalg.eigvalsh(self.matrix)[0] < _NOISE:
            self.matrix = self.matrix + _NOISE * np.eye(len(self.names))

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        padded, sizes = padded_sets(parent_sets)
        values = self._scores(log_residuals(self.matrix, node, padded, sizes), sizes)
        return ScoreBatch.exact(values)

    def equation(self, node: int, parents: tuple[int, ...]) -> LinearEquation:
        """Return the t posterior of a node's coefficients under flat priors of them and of log sigma."""
        return self.equations(node, np.array([parents], dtype=np.int64)).one(0)

    def equations(self, node: int, parent_sets: Ints) -> LinearEquations:
        """Return those of several parent sets of one size, one a row."""
        df = self.n_rows - parent_sets.shape[1] - 1
        if df < 1:
            raise ValueError(f"a regression needs more rows than coefficients; {self.n_rows} rows, {df} left over")
        scatter = (self.n_rows - 1) * self.matrix
        return LinearEquations.of_moments(scatter, node, parent_sets, float(df), self._means, self.n_rows)

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats:
        """Return the residuals of the linear regression on the parents."""
        return linear_residuals(data.values, node, parents, data.weights)

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        chosen = np.append(candidates, node)
        minors = log_minors(np.ascontiguousarray(self.matrix[np.ix_(chosen, chosen)]), max_parents + 1)
        without, with_node = np.split(minors, 2)
        sizes = np.bitwise_count(np.arange(len(without)))
        table = np.full(len(without), -np.inf)
        kept = sizes <= max_parents
        table[kept] = self._scores((with_node - without)[kept], sizes[kept])
        return table

    def _scores(self, log_variances: Floats, sizes: NDArray[Any]) -> Floats:
        """Return the scores of regressions that leave such shares of the variance (ddof = 1) unexplained."""
        rows = self.n_rows
        variance_at_best = np.log(2 * np.pi) + np.log1p(-1 / rows) + log_variances
        scores = -0.5 * rows * (variance_at_best + 1) - 0.5 * np.log(rows) * (sizes + 2.0)
        # As many coefficients as rows fit anything.
        return np.where(sizes + 1 < rows, scores, -np.inf)
