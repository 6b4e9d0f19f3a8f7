"""The marginal likelihood of conditional Gaussian networks: tables of numbers and categories."""

from typing import Any

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Data, Dataset, SufficientStatistics
from gpn_bayes.kernels.mixed import bge_sets_of_groups, bge_table_of_groups
from gpn_bayes.scores.base import GroupedScorer, Score
from gpn_bayes.scores.discrete import BDeu
from gpn_bayes.scores.mixed import Groups, MixedScorer


class CG(Score):
    r"""The conditional Gaussian score of a table that mixes numbers and categories.

    A category given others has BDeu's score. A number has a linear regression on those among its parents, with normal
    noise, for each of the q combinations of the categories among its parents; parameters have conjugate priors, those
    of Bøttcher (2001) and of the R package deal (Bøttcher & Dethlefsen 2003): with :math:`\nu = ess / q` imagined rows
    in each combination, in which all numbers are independent and have the mean of their column, and the sum of squares
    `scale` times :math:`\nu` times its variance (ddof = 0). So equivalent networks score alike. Without categories this
    is BGe with ``alpha_mu=ess``, ``alpha_w=ess + n - 1`` and ``t0=scale * ess``, up to the units; without numbers it is
    BDeu. Scores are in units of the table.

    Columns of text and whole numbers of two values are categories, all others numbers, unless
    ``Dataset.read(..., kinds=…)`` says otherwise. An edge from a number to a category has no score.

    Parameters
    ----------
    ess : float, default 1
        Equivalent sample size: the number of imagined rows.
    scale : float, default 0.5
        Their variance, relative to that of the columns. In deal it is 1 - m / ess, m being the number of combinations
        of all categories of the table: 0.5 with the smallest sample size that it allows.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> drug = rng.choice(["a", "b"], 60)
    >>> weight = rng.normal(70, 9, 60)
    >>> loss = np.where(drug == "a", 5, 0.1 * weight) + rng.normal(size=60)
    >>> scorer = CG().bind(pd.DataFrame({"drug": drug, "weight": weight, "loss": loss}))
    >>> scorer.local("loss", ["drug", "weight"]) > scorer.local("loss", ["drug"]) > scorer.local("loss")
    True
    """

    name = "cg"
    takes_weights = True
    standardise = False  # scores are in units of the table

    def __init__(self, ess: float = 1.0, scale: float = 0.5) -> None:
        for name, value in (("ess", ess), ("scale", scale)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
                raise ValueError(f"{name} must be positive and finite; received {value!r}")
        self.ess, self.scale = float(ess), float(scale)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> CG(ess=12).parameters
        {'ess': 12.0, 'scale': 0.5}
        """
        return {"ess": self.ess, "scale": self.scale}

    def _bind(self, data: Dataset | SufficientStatistics) -> "CGScorer":
        return CGScorer(self, BDeu(self.ess), data)

    def _bind_groups(self, data: Data) -> GroupedScorer:
        raise ValueError("the score 'cg' takes rows that were merely observed; received some of experiments")


class CGScorer(MixedScorer):
    """Conditional Gaussian scores of one data set; see `CG`."""

    score: CG

    def __init__(self, score: CG, of_categories: Score, data: Dataset | SufficientStatistics) -> None:
        super().__init__(score, of_categories, data)
        self.imagined_rows, self.imagined_scale = score.ess, score.scale

    def _sets_of_groups(self, groups: Groups, node: int, parents: Ints, sizes: Ints) -> Floats:
        matrices, constants, half_dfs = self._prior_and_rows(groups)
        return bge_sets_of_groups(matrices, node, parents, sizes, constants, half_dfs)

    def _table_of_groups(self, groups: Groups, chosen: Ints, largest: int) -> Floats:
        matrices, constants, half_dfs = self._prior_and_rows(groups)
        return bge_table_of_groups(matrices, chosen, constants, half_dfs, largest)

    def _prior_and_rows(self, groups: Groups) -> tuple[Floats, Floats, Floats]:
        """Return what BGe's formula needs in each group, alpha_mu and alpha_w - n + 1 both being nu = ess / q."""
        nu = self.score.ess / groups.cells
        t0, n = self.score.scale * nu, groups.sizes
        between = np.einsum("ga,gb->gab", groups.means, groups.means) * (n * nu / (n + nu))[:, None, None]
        m = groups.means.shape[1]
        matrices = groups.scatters + between + t0 * np.eye(m)
        size = np.arange(m)
        constants = (
            (-0.5 * n * np.log(np.pi) + 0.5 * np.log(nu / (n + nu)))[:, None]
            + gammaln(0.5 * (n[:, None] + nu + size))
            - gammaln(0.5 * (nu + size))
            + 0.5 * (nu + 2 * size) * np.log(t0)
        )
        return matrices, constants, 0.5 * (n + nu - 1)
