"""The Gaussian-process score: a node is an unknown smooth function of its parents, plus noise."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_choice, check_count, check_flag, check_positive, finite_number
from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import Floats
from gpn_bayes.data import Data, Dataset, RowMoments, SufficientStatistics, UnknownTargets, refuse_weights
from gpn_bayes.data.interventions import Group
from gpn_bayes.kernels.gaussian_process.low_rank import LOWEST_THETA
from gpn_bayes.kernels.gaussian_process.modes import LOWEST_LOG_THETA
from gpn_bayes.scores.assumptions import (
    ADDITIVE,
    BEHIND_LEVELS,
    CURVED,
    EVEN_NOISE,
    LINEAR_OR_SMOOTH,
    PAIRWISE,
    SMOOTH,
    SMOOTH_STUDENT,
    linear_residuals,
)
from gpn_bayes.scores.base import GroupedScorer, Score, ScoreBatch, Scorer
from gpn_bayes.scores.bge import BGe, BGeScorer
from gpn_bayes.scores.categories import levels_of
from gpn_bayes.scores.equations import Equation, LevelsEquation
from gpn_bayes.scores.gp.basis import MANY_ROWS, Basis, PartOfBasis
from gpn_bayes.scores.gp.bridge import bridge_estimate
from gpn_bayes.scores.gp.category_equation import CategoryEquation
from gpn_bayes.scores.gp.components import noise
from gpn_bayes.scores.gp.curve_equation import CurveEquation, LevelEquation
from gpn_bayes.scores.gp.dense import LARGEST_DENSE, DensePosterior
from gpn_bayes.scores.gp.importance import importance_estimate
from gpn_bayes.scores.gp.laplace import laplace_estimate
from gpn_bayes.scores.gp.linear_or_curved import LinearOrCurvedEquation, linear_or_curved
from gpn_bayes.scores.gp.links import LatentPosterior, offsets_of
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes
from gpn_bayes.scores.gp.priors import KERNELS, HyperPriors
from gpn_bayes.scores.gp.shared_scales import SharedScalesPosterior
from gpn_bayes.scores.gp.student import StudentPosterior, grid_without_parents, measured
from gpn_bayes.scores.gp.student_equation import StudentEquation, StudentLevelEquation
from gpn_bayes.scores.gp.table import PURPOSE, GPTable, gp_table
from gpn_bayes.scores.gp.without_parents import log_evidence_without_parents
from gpn_bayes.scores.mixed import columns_of

ESTIMATORS = ("importance", "bridge", "laplace")
POSTERIORS = ("independence", "nuts")
LENGTH_SCALES = ("own", "shared")
NOISES = ("normal", "student")
EQUATIONS = ("curved", "linear or curved")
# A mode this close to the shortest length scale of the low-rank form, in e-folds, was stopped by it; one this many nats
# below the best is negligible.
_EDGE, _NEGLIGIBLE = 0.02, 15.0
# A prior that puts more than this below that length scale asks for the dense form from the beginning.
_LARGEST_LOSS = 1e-3
# How much of a kernel matrix' columns the first steps of a mode search may neglect.
_ROUGH_COLUMNS = 1e-5
# An integral over a grid; the mode search of a single parent takes less.
_COST_WITHOUT_PARENTS = 10
# Salts of the seeds behind categories and with Student t noise, so that no two purposes share random numbers.
_OF_LEVELS, _OF_STUDENT = 0x6C6576656C73, 0x73747564656E74
# With fewer degrees of freedom, Student t noise has no standard deviation, which sigma is.
_LEAST_DEGREES = 2.0
# What was prepared of tables: the scorers of one table share it, also those that came pickled.
_prepared: WeakValueDictionary[tuple[str, bool, tuple[float, float], float], Basis] = WeakValueDictionary()

Row = tuple[float, float, float, str]
_NEEDS_ROWS = "the Gaussian-process score needs the rows"


class GP(Score):
    """The marginal likelihood of a Gaussian-process network, on standardised data.

    X = f(parents) + noise, f a Gaussian process and noise N(mu, sigma^2), or of Student's t distribution with this mean
    and variance. The kernel is a sum of one squared-exponential kernel a parent, of unit variance and length scales
    theta_i; or, with `kernel="interaction"` and from two parents on, tau1 times this sum plus tau2 times the sum of the
    products of any two of them. The score is the integral of the likelihood over the hyperparameters and mu (Giudice,
    Kuipers & Moffa 2023).

    The time per score of the additive kernel doesn't depend on the number of rows. Where the data ask for length
    scales below 0.1 standard deviations, for interactions, and with `dense=True` the covariance matrix is written out,
    which takes a time that grows as the rows cubed, and at most 5,000 of them.

    Parameters
    ----------
    kernel : {"additive", "interaction"}
        Whether parents act independently of each other, or also in pairs.
    estimator : {"importance", "bridge", "laplace"}
        "importance" and "bridge" estimate the integral with a standard error of about `target_error`; "laplace" is
        faster, and off by a few tenths of a nat.
    target_error : float, default 0.02
        Target standard error, in nats.
    sigma, theta, tau : pair of float, or PyMC distribution
        Priors of the noise, the length scales and the kernel's weights: shape and scale of an inverse gamma
        distribution, or a distribution such as ``pm.LogNormal.dist(0, 1)``.
    mu : pair of float, or PyMC distribution
        Normal prior of the mean: mean and standard deviation, or ``pm.Normal.dist(mean, sd)``.
    posterior : {"independence", "nuts"}
        Where the bridge estimator's draws of the hyperparameters come from: a compiled independence sampler, or PyMC's
        NUTS, which needs the extra ``gpn_bayes[nuts]``.
    dense : bool, default False
        Whether to write the covariance matrix out in any case, to check the quicker form.
    seed : int, default 0
        Each score's randomness follows from this seed, the node and its parents, so that it doesn't depend on the
        order in which scores are computed.
    standardise : bool, default True
        Whether to centre and scale the columns; otherwise they are taken as they are.
    length_scales : {"own", "shared"}
        Where experiments changed a mechanism (``intervention="soft"``), whether the rows before and after the change
        have length scales of their own, or the same; the functions and the noise differ in any case.
    noise : {"normal", "student"}
        The noise of numbers: normal, or of Student's t distribution, for tables with outliers or heavy tails. sigma is
        its standard deviation in both cases. With "student" every likelihood looks at all rows and takes much longer,
        length scales are at least 0.1 standard deviations, and interactions, `dense=True`, `posterior="nuts"` and
        shared length scales aren't available. Categories keep their noise.
    degrees : float, default 4
        The degrees of freedom of Student t noise, more than 2; the fewer, the heavier its tails.
    equations : {"curved", "linear or curved"}
        Whether every equation is a sum of smooth functions, or each is either that or linear, with the prior of `BGe`,
        both as probable in advance. With the latter, the directions of straight lines stay as open as the data leave
        them; it needs numbers, normal noise and, where experiments changed a mechanism, length scales of their own.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=60)
    >>> y = np.sin(2 * x) + 0.3 * np.random.default_rng(2).normal(size=60)
    >>> scorer = GP(estimator="laplace").bind(np.column_stack([x, y]))
    >>> scorer.local("v2", ["v1"]) > scorer.local("v2") + 10
    True
    >>> from gpn_bayes import Dataset
    >>> table = Dataset.read(np.array([[1.0, 2.0], [2.0, np.nan], [4.0, 3.0], [3.0, 1.0]]), missing="impute")
    >>> GP().complete(table).missing.sum()
    np.int64(1)
    """

    name = "gp"
    takes_weights = True
    has_curves = True

    def __init__(
        self,
        kernel: str = "additive",
        estimator: str = "importance",
        target_error: float = 0.02,
        sigma: Any = (1.0, 1.0),
        theta: Any = (2.0, 2.0),
        tau: Any = (1.0, 1.0),
        mu: Any = (0.0, 1.0),
        posterior: str = "independence",
        dense: bool = False,
        seed: int = 0,
        standardise: bool = True,
        length_scales: str = "own",
        noise: str = "normal",
        degrees: float = 4.0,
        equations: str = "curved",
    ) -> None:
        for setting, value, allowed in (
            ("kernel", kernel, KERNELS),
            ("estimator", estimator, ESTIMATORS),
            ("posterior", posterior, POSTERIORS),
            ("length_scales", length_scales, LENGTH_SCALES),
            ("noise", noise, NOISES),
            ("equations", equations, EQUATIONS),
        ):
            check_choice(setting, value, allowed)
        check_positive("target_error", target_error)
        check_count("seed", seed)
        self.kernel = kernel
        self.estimator = estimator
        self.target_error = target_error
        self.priors = HyperPriors(sigma, theta, tau, mu)
        self.posterior = posterior
        self.dense = check_flag("dense", dense)
        self.seed = seed
        self.standardise = check_flag("standardise", standardise)
        self.length_scales = length_scales
        self.noise = noise
        rule = f"degrees must be a number above {_LEAST_DEGREES:g}"
        self.degrees = finite_number(degrees, rule)
        if not self.degrees > _LEAST_DEGREES:
            raise ValueError(f"{rule}; received {degrees}")
        self.equations = equations
        if noise == "student":
            self._refuse_for_student()
        if equations != "curved" and length_scales == "shared":
            raise ValueError(f"length_scales='shared' needs equations='curved'; received equations={equations!r}")

    def _refuse_for_student(self) -> None:
        """Refuse settings that Student t noise can't be scored with."""
        named = {
            "kernel='interaction'": self.kernel == "interaction",
            "dense=True": self.dense,
            "a prior of very short length scales": _asks_for_dense(self.priors),
            "posterior='nuts'": self.estimator == "bridge" and self.posterior == "nuts",
            "length_scales='shared'": self.length_scales == "shared",
            f"equations={self.equations!r}": self.equations != "curved",
        }
        chosen = [setting for setting, given in named.items() if given]
        if chosen:
            raise ValueError(f"{chosen[0]} needs noise='normal'; received noise='student'")

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score; those that it doesn't depend on are left out.

        Examples
        --------
        >>> GP(estimator="laplace").parameters
        {'kernel': 'additive', 'estimator': 'laplace', 'sigma': [1.0, 1.0], 'theta': [2.0, 2.0],
         'mu': [0.0, 1.0], 'dense': False}
        """
        settings = {"kernel": self.kernel, "estimator": self.estimator, **self.priors.parameters, "dense": self.dense}
        if self.kernel == "additive":
            del settings["tau"]
        if self.estimator != "laplace":
            settings |= {"target_error": self.target_error, "seed": self.seed}
        if self.estimator == "bridge":
            settings["posterior"] = self.posterior
        if not self.standardise:
            settings["standardise"] = False
        if self.length_scales != "own":
            settings["length_scales"] = self.length_scales
        if self.noise != "normal":
            settings |= {"noise": self.noise, "degrees": self.degrees}
        if self.equations != "curved":
            settings["equations"] = self.equations
        return settings

    def _of_groups(self, data: Data) -> "tuple[GP, Data]":
        """Return the score of a group of rows as they are, and the whole table as this score takes it: as numbers."""
        data = data.with_rows(_NEEDS_ROWS)
        of_rows = copy(self)
        of_rows.standardise = False
        n = len(data.names)
        values = gp_table(data, self.standardise).values
        return of_rows, replace(data, values=values, kinds=("continuous",) * n, levels=(None,) * n)

    def _table(self, data: Dataset) -> GPTable:
        """Return a table as this score takes it."""
        return gp_table(data, self.standardise)

    def _proposal(self) -> "GP | None":
        """Return the score by Laplace's approximation; None where this is it."""
        if self.estimator == "laplace":
            return None
        quicker = copy(self)
        quicker.estimator = "laplace"
        return quicker

    def _bind_group(self, data: Data, group: Group) -> Scorer:
        """Return the scorer of some experiments; those of unknown targets, of which there are many, share a basis."""
        done = data.interventions
        if isinstance(done, UnknownTargets):
            data = data.with_rows(_NEEDS_ROWS)
            if self.noise == "student":
                raise ValueError("contexts, whose targets are unknown, need noise='normal'; received noise='student'")
            return GPScorer(self, data.rows(done.rows_of(group)), PartOfTable(data, group))
        return super()._bind_group(data, group)

    def _bind_groups(self, data: Data) -> GroupedScorer:
        """Return the scorer of a table of experiments, whose groups may share length scales."""
        if self.length_scales == "own":
            return super()._bind_groups(data)
        if isinstance(data.interventions, UnknownTargets):
            raise ValueError('length_scales="shared" needs known targets; received contexts, whose targets are unknown')
        return SharedScalesScorer(self, data)

    def _bind(self, data: Dataset | SufficientStatistics) -> "GPScorer":
        data = data.with_rows(_NEEDS_ROWS)
        if self.estimator == "bridge" and self.posterior == "nuts":
            with installed_by("nuts"):
                import nutpie  # noqa: F401 (its absence is reported before any score)
        return GPScorer(self, data)

    def complete(self, data: Dataset) -> Any:
        """Return how missing values are drawn: as networks of lines do, under CG or BGe.

        Processes have no equations in closed form; runs under this score start from tables that were completed so.
        """
        from gpn_bayes.scores.cg import CG
        from gpn_bayes.scores.mixed import categories_among

        return (CG() if categories_among(data).any() else BGe()).complete(data)

    def pymc_model(self, data: Any, node: str | int, parents: Sequence[str | int] = ()) -> Any:
        """Return the `pm.Model` that states this score of a node given its parents, for use with PyMC.

        Parameters
        ----------
        data : DataFrame, ndarray or path
            The table; it is standardised.
        node : str or int
            The variable.
        parents : sequence of str or int
            Its parents.

        Examples
        --------
        >>> x = np.random.default_rng(1).normal(size=(60, 2))
        >>> model = GP().pymc_model(x, "v2", ["v1"])
        >>> sorted(variable.name for variable in model.free_RVs), model.observed_RVs[0].name
        (['sigma', 'theta'], 'y')
        """
        from gpn_bayes.scores.gp.pymc_model import pymc_model

        if self.noise == "student":
            raise ValueError("a PyMC model needs noise='normal'; received noise='student'")
        if self.equations != "curved":
            raise ValueError(f"a PyMC model needs equations='curved'; received equations={self.equations!r}")
        table = Dataset.read(data)
        refuse_weights(table, "a PyMC model")
        values = table.standardised(PURPOSE) if self.standardise else table.numeric(PURPOSE)
        return pymc_model(values, table.names, node, parents, self.priors, self.kernel)


class PartOfTable(NamedTuple):
    """Some experiments of a table, whose basis serves them."""

    whole: Dataset
    group: Group


class GPScorer(Scorer):
    """Gaussian-process scores of one data set; see `GP`.

    Parameters
    ----------
    score : GP
        The settings.
    data : Dataset
        The rows.
    part : PartOfTable, optional
        The larger table whose basis serves them.
    """

    default_max_parents = 5
    score: GP
    basis: Basis | PartOfBasis
    _rough: Basis | PartOfBasis

    def __init__(self, score: GP, data: Dataset, part: PartOfTable | None = None) -> None:
        super().__init__(score, data.names, data.fingerprint)
        self.score = score
        self.values, self._spacings, self.columns_of_levels = score._table(data)
        self.weights = data.weights
        self.score_fingerprint = self._fingerprint_of(score)
        if self.columns_of_levels:
            self.levels = tuple(
                _names_of_levels(data, i) if i in self.columns_of_levels else () for i in range(len(data.names))
            )
        self._part = part
        self._short_scales = _asks_for_dense(score.priors)
        self._refuse_for_categories()
        self._lines: BGeScorer | None = None
        if score.equations != "curved":
            moments = RowMoments.of(self.values, data.names, data.fingerprint, data.weights)
            self._lines = BGe(standardise=False)._bind(moments)
        if self.only_dense(2):
            self._refuse_many_rows("interactions, dense=True and priors of very short length scales take")
        self._share_basis()

    def only_dense(self, parents: int) -> bool:
        """Tell whether scores of this many parents always need the whole covariance matrix; one has no interactions."""
        return self.score.dense or self._short_scales or (self.score.kernel == "interaction" and parents > 1)

    def _share_basis(self) -> None:
        """Share what other scorers of the same table have prepared in this process, or will."""
        mu = self.score.priors.mu
        if self._part is None:
            fresh = Basis(self.values, mu=mu, weights=self.weights, spacings=self._spacings)
            self.basis, self._rough = _shared_bases(fresh, self.data_fingerprint, self.score.standardise)
            return
        table = self._part.whole
        assert table.interventions is not None
        experiment = table.interventions.experiment
        values = self.score._table(table).values
        bases = _shared_bases(Basis(values, mu=mu, experiment=experiment), table.fingerprint, self.score.standardise)
        if len(self.values) == table.n_rows:
            self.basis, self._rough = bases
        else:
            self.basis, self._rough = (PartOfBasis(basis, self._part.group) for basis in bases)

    def _fingerprint_of(self, score: GP) -> str:
        """Return what tells a score apart in caches, where 0/1 columns once were numbers."""
        return score.fingerprint + (":levels" if self.columns_of_levels else "")

    def proposal(self) -> "GPScorer | None":
        """Return the scorer by Laplace's approximation, which shares the prepared rows."""
        quicker = self.score._proposal()
        if quicker is None:
            return None
        proposal = copy(self)
        proposal.basis, proposal._rough = self.basis, self._rough
        proposal.score = quicker
        proposal.score_fingerprint, proposal.label = self._fingerprint_of(quicker), repr(quicker)
        return proposal

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]  # elsewhere a constant
        """What the score assumes."""
        behind = (BEHIND_LEVELS,) if self.columns_of_levels else ()
        smooth = SMOOTH if self.score.noise == "normal" else SMOOTH_STUDENT.format(self.score.degrees)
        if self._lines is not None:
            smooth = LINEAR_OR_SMOOTH
        return (smooth, *behind, PAIRWISE if self.score.kernel == "interaction" else ADDITIVE, EVEN_NOISE, CURVED)

    @one_blas_thread
    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats | None:
        """Return the posterior mean of the noise, at the highest mode of the hyperparameters; None for categories.

        None with Student t noise too: what is checked is whether noise is normal.
        """
        if node in self.columns_of_levels or self.score.noise == "student":
            return None
        # A group of rows was standardised together with all others.
        scale = data.values[:, node].std() / self.values[:, node].std()
        if not parents:
            return scale * (self.values[:, node] - np.average(self.values[:, node], weights=self.weights))
        _, modes = self.hyper_posterior(node, parents)
        curved = noise(self, node, parents, modes.points[modes.heights.argmax()])
        if self._lines is None:
            return scale * curved
        straight = self._straight(node, parents)
        line = linear_residuals(self.values, node, parents, self.weights)
        return scale * (straight * line + (1 - straight) * curved)

    def pymc_node(self, node: int, parents: tuple[int, ...], table: Dataset, functions: str) -> None:
        """Add a Gaussian process to the PyMC model being built, its functions drawn or integrated out."""
        if self.columns_of_levels:
            raise ValueError("PyMC networks need numbers or categories alone; received a table that mixes them")
        if self.score.noise == "student":
            raise ValueError("PyMC networks need noise='normal'; received GP(noise='student')")
        if self.score.equations != "curved":
            raise ValueError(f"PyMC networks need equations='curved'; received GP(equations={self.score.equations!r})")
        if functions == "drawn" and self.score.kernel != "additive":
            raise ValueError('the interaction kernel needs functions="marginal"; received functions="drawn"')
        from gpn_bayes.scores.gp.pymc_nodes import add_drawn_node, add_marginal_node
        from gpn_bayes.scores.pymc_columns import columns

        own, *given = columns(self, table, [node, *parents])
        if functions == "drawn":
            add_drawn_node(own, given, self.score.priors)
        else:
            add_marginal_node(own, given, self.score.priors, self.score.kernel)

    def cost(self, size: int) -> float:
        """Return roughly how long a score of this many parents takes, relative to one of a single parent."""
        return float(size**2 or _COST_WITHOUT_PARENTS)

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        sets = [tuple(sorted(parents)) for parents in parent_sets]
        curves = _batch([self._score(node, parents) for parents in sets])
        return curves if self._lines is None else linear_or_curved(self._lines.score_sets(node, sets).values, curves)

    def _straight(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the probability that an equation is linear, where it may be."""
        assert self._lines is not None
        line = self._lines.score_sets(node, [parents]).values[0]
        return float(np.exp(line - np.logaddexp(line, self._score(node, parents)[0])))

    def hyper_posterior(self, node: int, parents: tuple[int, ...]) -> tuple[HyperPosterior, Modes]:
        """Return the posterior of the hyperparameters of a node given its parents, and its modes."""
        if node in self.columns_of_levels:
            latent = self.latent_posterior(node, parents)
            return latent, latent.find_modes()
        if self.score.noise == "student":
            student = self.student_posterior(node, parents)
            return student, student.find_modes()
        if not self.only_dense(len(parents)):
            low_rank = self.low_rank_posterior(node, parents)
            modes = low_rank.find_modes()
            if not _stopped_at_edge(modes):
                return low_rank, modes
        dense = self.dense_posterior(node, parents)
        return dense, dense.find_modes()

    def low_rank_posterior(self, node: int, parents: tuple[int, ...]) -> LowRankPosterior:
        """Return the posterior of the hyperparameters by low-rank algebra."""
        return LowRankPosterior(
            self.basis.moments(node, parents),
            self.score.priors.for_parents(len(parents)),
            self._rough.moments(node, parents),
        )

    def latent_posterior(self, node: int, parents: tuple[int, ...]) -> LatentPosterior:
        """Return the posterior of the hyperparameters behind a category."""
        assert isinstance(self._rough, Basis)  # parts of tables have no categories
        levels, occurring, ordered, _ = self.columns_of_levels[node]
        codes = None
        if parents:
            codes = LowRankPosterior(self._rough.moments(node, parents), self.score.priors.for_parents(len(parents)))
        return LatentPosterior(
            self._rough.counts(parents, levels, offsets_of(levels, len(occurring), ordered, self.weights), ordered),
            self.score.priors.for_parents(len(parents), category=True),
            np.random.default_rng([_OF_LEVELS, self.score.seed, node, *(p + 1 for p in parents)]),
            codes,
        )

    def student_posterior(self, node: int, parents: tuple[int, ...]) -> StudentPosterior:
        """Return the posterior of the hyperparameters of a number with Student t noise."""
        assert isinstance(self.basis, Basis)  # parts of tables have normal noise
        rows = self.basis.row_functions(parents, np.arange(len(self.values)))
        return StudentPosterior(
            measured(rows, self.values[:, node] - self.score.priors.mu[0], self.score.degrees, self.weights),
            self.score.priors.for_parents(len(parents)),
            np.random.default_rng([_OF_STUDENT, self.score.seed, node, *(p + 1 for p in parents)]),
        )

    def dense_posterior(self, node: int, parents: tuple[int, ...]) -> DensePosterior:
        """Return the posterior of the hyperparameters with the covariance matrix written out."""
        self._refuse_many_rows(f"length scales below {LOWEST_THETA}, which {self.names[node]!r} asks for, take")
        return DensePosterior(
            self.values[:, node] - self.score.priors.mu[0],
            self.values[:, list(parents)],
            self.score.priors.for_parents(len(parents), self.score.kernel),
            self.score.kernel,
            self.score.priors.mu[1],
            self.weights,
            self._spacings[list(parents)],
        )

    def equation(self, node: int, parents: tuple[int, ...]) -> Equation | LevelsEquation:
        """Return the posterior of a node's functions and noise, given its parents."""
        inside = {p: self.columns_of_levels[p].inside for p in parents if p in self.columns_of_levels}
        if node in self.columns_of_levels:
            assert isinstance(self._rough, Basis)  # parts of tables have no categories
            column = self.columns_of_levels[node]
            posterior = self.latent_posterior(node, parents)
            return CategoryEquation(posterior, self._rough, parents, inside, column.occurring, len(column.inside))
        if self.score.noise == "student":
            degrees = self.score.degrees
            if not parents:
                grid = grid_without_parents(self.values[:, node], self.score.priors, degrees, self.weights)
                return StudentLevelEquation(grid, degrees)
            assert isinstance(self.basis, Basis)  # parts of tables have normal noise
            return StudentEquation(self.student_posterior(node, parents), self.basis, parents, inside)
        curve = self._curve(node, parents, inside)
        if self._lines is None:
            return curve
        return LinearOrCurvedEquation(self._lines.equation(node, parents), curve, self._straight(node, parents))

    def _curve(
        self, node: int, parents: tuple[int, ...], inside: Mapping[int, Floats]
    ) -> CurveEquation | LevelEquation:
        """Return the posterior of a number's functions and normal noise, given its parents."""
        if not parents:
            return LevelEquation(self.values[:, node], self.score.priors, self.weights)
        if self.score.kernel == "interaction":
            raise ValueError("equations are drawn under the additive kernel only; received kernel='interaction'")
        hyper = self.hyper_posterior(node, parents)
        return CurveEquation(self.values[:, node], self.basis, parents, *hyper, self.score.priors, self.weights, inside)

    def _score(self, node: int, parents: tuple[int, ...]) -> Row:
        if not parents and node in self.columns_of_levels:
            value, error = self.latent_posterior(node, ()).log_evidence_without_parents()
            return value, error, float("nan"), "ok"
        if not parents and self.score.noise == "student":
            grid = grid_without_parents(self.values[:, node], self.score.priors, self.score.degrees, self.weights)
            return grid.log_evidence(), 0.0, float("nan"), "exact"
        if not parents:
            value = log_evidence_without_parents(self.values[:, node], self.score.priors, self.weights)
            return value, 0.0, float("nan"), "exact"
        return _estimated(self.score, *self.hyper_posterior(node, parents), node, parents)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was prepared, which takes hundreds of times the room of the table it is made of."""
        return {name: value for name, value in self.__dict__.items() if name not in ("basis", "_rough")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the settings and the table, and prepare or share the rest."""
        self.__dict__.update(state)
        self._share_basis()

    def _refuse_for_categories(self) -> None:
        """Refuse settings that categories can't be scored with."""
        named = {
            "kernel='interaction'": self.score.kernel == "interaction",
            "dense=True": self.score.dense,
            "a prior of very short length scales": self._short_scales,
            "a prior of sigma above 1": self.score.priors.probability_below("sigma", 1.0) < _LARGEST_LOSS,
            "posterior='nuts'": self.score.estimator == "bridge" and self.score.posterior == "nuts",
            f"equations={self.score.equations!r}": self.score.equations != "curved",
        }
        chosen = [setting for setting, given in named.items() if given]
        if self.columns_of_levels and chosen:
            name = self.names[min(self.columns_of_levels)]
            raise ValueError(f"{chosen[0]} needs columns that are numbers; received the category {name!r}")

    def _refuse_many_rows(self, what: str) -> None:
        if len(self.values) > LARGEST_DENSE:
            raise ValueError(f"{what} at most {LARGEST_DENSE} rows; received {len(self.values)}")


class SharedScalesScorer(GroupedScorer):
    """Gaussian-process scores of a table of experiments, the rows of a changed mechanism sharing its length scales.

    Parameters
    ----------
    score : GP
        The settings.
    data : Dataset
        The whole table.
    """

    score: GP

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        ((_, groups),) = self.interventions.terms(node)
        if len(groups) == 1:
            return super().score_sets(node, parent_sets)
        parts = [part for part in map(self.part, groups) if isinstance(part, GPScorer)]
        return _batch([self._score(parts, node, tuple(sorted(parents))) for parents in parent_sets])

    def _score(self, parts: Sequence[GPScorer], node: int, parents: tuple[int, ...]) -> Row:
        if not parents:  # nothing is shared
            values = [log_evidence_without_parents(part.values[:, node], self.score.priors) for part in parts]
            return float(np.sum(values)), 0.0, float("nan"), "exact"
        if not parts[0].only_dense(len(parents)):
            posterior = SharedScalesPosterior([part.low_rank_posterior(node, parents) for part in parts])
            modes = posterior.find_modes()
            if not _stopped_at_edge(modes, posterior.shared):
                return _estimated(self.score, posterior, modes, node, parents)
        posterior = SharedScalesPosterior([part.dense_posterior(node, parents) for part in parts])
        return _estimated(self.score, posterior, posterior.find_modes(), node, parents)


def _asks_for_dense(priors: HyperPriors) -> bool:
    """Tell whether the prior of length scales reaches below those that the low-rank form serves."""
    return priors.probability_below("theta", LOWEST_THETA) > _LARGEST_LOSS


def _names_of_levels(data: Dataset, column: int) -> tuple[Any, ...]:
    """Return the levels of a column of categories, by code."""
    return levels_of(columns_of(data, np.array([column])))[0]


def _batch(rows: Sequence[Row]) -> ScoreBatch:
    values, errors, k_hats, statuses = zip(*rows, strict=True) if rows else ((), (), (), ())
    return ScoreBatch(np.array(values), np.array(errors), np.array(k_hats), list(statuses))


def _estimated(score: GP, posterior: HyperPosterior, modes: Modes, node: int, parents: tuple[int, ...]) -> Row:
    """Return the log of the integral over the hyperparameters, as a score's settings ask for it."""
    if score.estimator == "laplace":
        value, status = laplace_estimate(modes)
        # Where no mode has a normal approximation, an estimate that needs none stands in; its status tells.
        if np.isfinite(value):
            return value, float("nan"), float("nan"), status
    rng = np.random.default_rng([score.seed, node, *(p + 1 for p in parents)])
    if score.estimator == "bridge":
        return _bridged(score, posterior, modes, rng)
    estimate = importance_estimate(posterior, modes, rng, target_error=score.target_error)
    status = "no mode: importance" if score.estimator == "laplace" else estimate.status
    return estimate.value, estimate.error, estimate.k_hat, status


def _bridged(score: GP, posterior: HyperPosterior, modes: Modes, rng: np.random.Generator) -> Row:
    draws = None
    if score.posterior == "nuts":
        # PyMC takes seconds to load.
        from gpn_bayes.scores.gp.nuts import nuts_draws

        def draws(count: int, rng: np.random.Generator) -> Floats:
            return nuts_draws(posterior, modes, count, rng)

    estimate = bridge_estimate(posterior, modes, rng, target_error=score.target_error, posterior_draws=draws)
    return estimate.value, estimate.error, float("nan"), estimate.status


def _shared_bases(fresh: Basis, fingerprint: str, standardised: bool) -> tuple[Basis, Basis]:
    """Return the basis of a table, or the one that others have prepared already, and a rougher one."""
    basis = _prepared.setdefault((fingerprint, standardised, fresh.mu, fresh.tolerance), fresh)
    rough = basis.rougher(_ROUGH_COLUMNS * min(fresh.size, MANY_ROWS))
    return basis, _prepared.setdefault((fingerprint, standardised, rough.mu, rough.tolerance), rough)


def _stopped_at_edge(modes: Modes, thetas: slice = slice(1, None)) -> bool:
    """Tell whether a mode that counts leans on the shortest length scale of the low-rank form."""
    counts = modes.heights > modes.heights.max(initial=-np.inf) - _NEGLIGIBLE
    return bool((modes.points[counts, thetas] < LOWEST_LOG_THETA + _EDGE).any())
