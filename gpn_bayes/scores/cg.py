"""The marginal likelihood of conditional Gaussian networks: tables of numbers and categories."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.checks import check_positive, shown
from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints
from gpn_bayes.data import Data, Dataset, SufficientStatistics
from gpn_bayes.kernels.graphs.subsets import members_of
from gpn_bayes.kernels.linear.conditional_gaussian import (
    EACH,
    LOG_MINORS,
    LOG_SQUARES,
    SQUARES,
    excess_kurtosis,
    sums_over_groups,
    table_over_groups,
)
from gpn_bayes.scores.base import GroupedScorer, Score, padded_sets
from gpn_bayes.scores.discrete import BDeu
from gpn_bayes.scores.mixed import (
    EACH_VARIANCE,
    EQUIVALENT,
    MIXED,
    NEARLY_EQUIVALENT,
    ONE_OR_EACH,
    ONE_VARIANCE,
    Groups,
    MixedScorer,
    categories_among,
)
from gpn_bayes.scores.strata import SharedVariance

VARIANCES = ("one or each", "one", "each")
# Equations with a variance for each combination that are less probable than those with one by this many nats hardly
# count, whatever their tails, which then aren't looked at.
_HARDLY_COUNTING = 10.0

# Returns some of the parent sets at hand, given by their places: padded, and their sizes.
type _Sets = Callable[[Ints], tuple[Ints, Ints]]


class CG(Score):
    r"""The conditional Gaussian score of a table that mixes numbers and categories.

    A category given others has BDeu's score. A number has a linear regression on those among its parents, with normal
    noise, for each of the q combinations of the categories among its parents. The noise has one variance for all of
    them or one for each, both as probable in advance.

    Parameters have conjugate priors. With a variance for each combination they are those of Bøttcher (2001) and of the
    R package deal (Bøttcher & Dethlefsen 2003): with :math:`\nu = ess / q` imagined rows in each combination, in which
    all numbers are independent and have the mean of their column, and the sum of squares `scale` times :math:`\nu`
    times its variance (ddof = 0). With one variance, coefficients have the same prior given it, and all imagined rows
    say something of it. Without categories this is BGe with ``alpha_mu=ess``, ``alpha_w=ess + n - 1`` and
    ``t0=scale * ess``, up to the units; without numbers it is BDeu. Scores are in units of the table.

    Noise with tails makes variances look different that aren't: where it has excess kurtosis :math:`\kappa`, the log
    likelihood ratio of variances that differ is too large by the factor :math:`1 + \kappa / 2` (Box 1953). Where it is
    uncertain whether they do, it counts divided by this factor, :math:`\kappa` being that of the residuals within
    combinations.

    Columns of text and whole numbers of two values are categories, all others numbers, unless
    ``gpn.Table(data, kinds=…)`` says otherwise. An edge from a number to a category has no score.

    Parameters
    ----------
    ess : float, default 1
        Equivalent sample size: the number of imagined rows.
    scale : float, default 0.5
        Their variance, relative to that of the columns. In deal it is 1 - m / ess, m being the number of combinations
        of all categories of the table: 0.5 with the smallest sample size that it allows.
    variances : {"one or each", "one", "each"}
        Whether all combinations have the same variance. With "each", equivalent networks score alike; with the others
        they don't where a category acts on both of two numbers.

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
    >>> from gpn_bayes import Dataset
    >>> table = pd.DataFrame({"rain": ["no", "yes", None, "no"], "wet": ["no", "yes", "yes", "no"]})
    >>> CG().complete(Dataset.read(table, missing="impute")).variables.table
    1.0
    """

    name = "cg"
    takes_weights = True
    standardise = False  # scores are in units of the table

    def __init__(self, ess: float = 1.0, scale: float = 0.5, variances: str = "one or each") -> None:
        for name, value in (("ess", ess), ("scale", scale)):
            check_positive(name, value)
        if variances not in VARIANCES:
            raise ValueError(f"variances must be one of {', '.join(map(repr, VARIANCES))}; received {shown(variances)}")
        self.ess, self.scale, self.variances = float(ess), float(scale), variances

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> CG(ess=12).parameters
        {'ess': 12.0, 'scale': 0.5, 'variances': 'one or each'}
        """
        return {"ess": self.ess, "scale": self.scale, "variances": self.variances}

    def _bind(self, data: Dataset | SufficientStatistics) -> "CGScorer":
        return CGScorer(self, BDeu(self.ess), data)

    def complete(self, data: Dataset) -> Any:
        """Return how missing values are drawn: given tables of probabilities, and regressions by combinations."""
        from gpn_bayes.scores.completing import completion, filled, observed_units

        among = categories_among(data)
        units = observed_units(data, among, ddof=0)
        template = self._bind(filled(data)).in_units(*units)
        numbers = np.array([1.0, self.ess, self.ess, self.scale * self.ess])
        made = completion(data, among, template, numbers=numbers, table=self.ess, units=units)
        return made if self.variances == "each" else replace(made, draw_one_variance=template.draw_one_variance)

    def _bind_groups(self, data: Data) -> GroupedScorer:
        raise ValueError("the score 'cg' takes rows that were merely observed; received some of experiments")


class CGScorer(MixedScorer):
    """Conditional Gaussian scores of one data set; see `CG`."""

    score: CG

    def __init__(self, score: CG, of_categories: Score, data: Dataset | SufficientStatistics) -> None:
        super().__init__(score, of_categories, data)
        self.imagined_rows, self.imagined_scale = score.ess, score.scale
        self.assumptions = {
            "one or each": (*MIXED, ONE_OR_EACH, NEARLY_EQUIVALENT),
            "one": (*MIXED, ONE_VARIANCE, NEARLY_EQUIVALENT),
            "each": (*MIXED, EACH_VARIANCE, EQUIVALENT),
        }[score.variances]

    def _sets_of_groups(self, groups: Groups, node: int, parents: Ints, sizes: Ints) -> Floats:
        prior = self._prior_and_rows(groups)
        sums = sums_over_groups(prior.matrices, node, parents, sizes, prior.constants, prior.half_dfs)
        return self._scores(groups, prior, node, sums, sizes, lambda places: (parents[places], sizes[places]))

    def _table_of_groups(self, groups: Groups, chosen: Ints, largest: int) -> Floats:
        prior = self._prior_and_rows(groups)
        sums = table_over_groups(prior.matrices, chosen, prior.constants, prior.half_dfs, largest)
        sizes = np.array([mask.bit_count() for mask in range(sums.shape[1])], dtype=np.int64)
        masks = np.flatnonzero(sizes <= largest)

        def sets(places: Ints) -> tuple[Ints, Ints]:
            return padded_sets([chosen[list(members_of(int(mask)))].tolist() for mask in masks[places]])

        table = np.full(len(sizes), -np.inf)
        table[masks] = self._scores(groups, prior, int(chosen[-1]), sums[:, masks], sizes[masks], sets)
        return table

    def _scores(self, groups: Groups, prior: "_Prior", node: int, sums: Floats, sizes: Ints, sets: _Sets) -> Floats:
        """Return the scores of parent sets from `sums_over_groups`, by the numbers that each has and what these are."""
        if groups.cells == 1 or self.score.variances == "each":
            each: Floats = sums[EACH]
            return each
        one = self._one_variance(groups, prior, sums, sizes)
        if self.score.variances == "one":
            return one
        each = sums[EACH].copy()
        doubtful = np.flatnonzero(each > one - _HARDLY_COUNTING)
        if len(doubtful):
            each[doubtful] -= self._overstated(groups, prior, node, sums[:, doubtful], *sets(doubtful))
        scores: Floats = np.logaddexp(one, each) - np.log(2)
        return scores

    def one_variance(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the probability that a number has the same variance for all combinations of its categories."""
        categories, numbers = self._split(parents)
        shared = self._shared_variance(self.groups(categories), int(self._place[node]), numbers)
        return 0.0 if shared is None else shared.probability

    def draw_one_variance(self, rng: np.random.Generator, values: Floats, adjacency: Adjacency) -> Bools:
        """Draw which numbers have the same variance for all combinations in a DAG, given rows as `with_rows` takes."""
        drawn = np.zeros(len(adjacency), dtype=bool)
        scorer, among = self.with_rows(values), self._is_category
        for node in np.flatnonzero(~among & (adjacency[among] != 0).any(axis=0)):
            parents = tuple(np.flatnonzero(adjacency[:, node]).tolist())
            drawn[node] = rng.random() < scorer.one_variance(int(node), parents)
        return drawn

    def _shared_variance(self, groups: Groups, node: int, numbers: tuple[int, ...]) -> SharedVariance | None:
        if self.score.variances == "each":
            return None
        prior = self._prior_and_rows(groups)
        parents, sizes = padded_sets([numbers])
        sums = sums_over_groups(prior.matrices, node, parents, sizes, prior.constants, prior.half_dfs)
        one = self._one_variance(groups, prior, sums, sizes)
        score = self._scores(groups, prior, node, sums, sizes, lambda _: (parents, sizes))
        probability = 1.0 if self.score.variances == "one" else float(np.exp(one - np.log(2) - score)[0])
        df = float(self._weights.sum()) + self.score.ess + len(numbers)
        return SharedVariance(probability, float(self._squares(groups, prior, sums)[0]), df)

    def _squares(self, groups: Groups, prior: "_Prior", sums: Floats) -> Floats:
        """Return the squares that the lines of all combinations leave, with those imagined where there are no rows."""
        squares: Floats = sums[SQUARES] + (1 - len(prior.half_dfs) / groups.cells) * self.score.scale * self.score.ess
        return squares

    def _one_variance(self, groups: Groups, prior: "_Prior", sums: Floats, sizes: Ints) -> Floats:
        """Return the log marginal likelihoods of lines in each combination, with the same variance about all of them.

        It is inverse gamma with shape (ess + p) / 2 and scale t0 / 2, t0 = scale * ess, as without categories.
        """
        ess, n = self.score.ess, self._weights.sum()
        t0, t0_of_group = self.score.scale * ess, self.score.scale * ess / groups.cells
        rows = 2 * prior.half_dfs + 1
        scores: Floats = (
            -0.5 * n * np.log(np.pi)
            + gammaln(0.5 * (n + ess + sizes))
            - gammaln(0.5 * (ess + sizes))
            + 0.5 * (ess + sizes) * np.log(t0)
            + 0.5 * np.log(ess / groups.cells / rows).sum()
            + 0.5 * (sizes * len(rows) * np.log(t0_of_group) - sums[LOG_MINORS])
            - 0.5 * (n + ess + sizes) * np.log(self._squares(groups, prior, sums))
        )
        return scores

    def _overstated(
        self, groups: Groups, prior: "_Prior", node: int, sums: Floats, parents: Ints, sizes: Ints
    ) -> Floats:
        """Return by how much tails of the noise overstate the evidence that variances differ.

        Where noise has excess kurtosis kappa, the log likelihood ratio of variances that differ, which is half of
        Bartlett's M, is too large by the factor 1 + kappa / 2 (Box 1953). It counts divided by this.
        """
        levels = groups.means * (groups.sizes / (groups.sizes + self.score.ess / groups.cells))[:, None]
        kappa = excess_kurtosis(
            self._values, groups.of_rows, self._weights, levels, prior.matrices, node, parents, sizes
        )
        rows = 2 * prior.half_dfs + 1
        ratio = 0.5 * (
            rows.sum() * np.log(sums[SQUARES] / rows.sum()) - sums[LOG_SQUARES] + (rows * np.log(rows)).sum()
        )
        overstated: Floats = ratio * (1 - 1 / np.maximum(1 + 0.5 * kappa, 1))
        return overstated

    def _prior_and_rows(self, groups: Groups) -> "_Prior":
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
        return _Prior(matrices, constants, 0.5 * (n + nu - 1))


class _Prior(NamedTuple):
    """The arguments of `sums_over_groups` that stay the same for all sets."""

    matrices: Floats
    constants: Floats
    half_dfs: Floats
