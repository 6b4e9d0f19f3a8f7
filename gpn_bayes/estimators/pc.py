"""The PC algorithm: a skeleton by tests of independence, and the directions that follow from it."""

import warnings
from collections.abc import Callable
from typing import Any, Self, Unpack

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_choice, check_count, check_share, shown
from gpn_bayes._util.types import Bools, DiGraph
from gpn_bayes.candidates.pc_skeleton import Skeleton
from gpn_bayes.data import Data, TableKeywords, read_complete
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.independence import (
    HSIC,
    CallableTest,
    ConditionalIndependenceTest,
    DistanceCorrelation,
    FisherZ,
    GSquared,
)
from gpn_bayes.estimators.independence.kernel_tests import NULLS
from gpn_bayes.estimators.pc_orientation import COLLIDER_RULES, Orientation, orient
from gpn_bayes.graphs import equivalence
from gpn_bayes.scores.categories import is_discrete
from gpn_bayes.scores.prior import GraphPrior

TESTS = ("auto", "fisher-z", "g2", "hsic", "distance-correlation")
NO_DAG = "no DAG has these edges and colliders: the tests contradict each other, and dag_ is None"


class PC(GraphEstimator):
    """The PC algorithm: joins the variables that no conditioning set makes independent.

    The estimate is an equivalence class of DAGs. Its undirected edges, whose direction isn't identifiable, are there in
    both directions in `graph_`, `adjacency_` and `cpdag_`, which hold the same; `dag_` is one DAG of the class.
    Apart from ties, nothing depends on the order of the columns (Colombo & Maathuis 2014).

    Tests sometimes contradict each other. How that was resolved is recorded in `ambiguous_`, `conflicts_` and
    `undecided_`; where no DAG agrees with the result, `dag_` is None and a warning says so.

    Parameters
    ----------
    alpha : float, default 0.05
        Level of each test: larger values leave more edges.
    test : str, ConditionalIndependenceTest or callable
        "fisher-z" (linear relations), "g2" (discrete variables), "hsic" or "distance-correlation" (any relations, a few
        hundred rows); or "auto", one of the first two by the kind of data. Or one of
        `gpn_bayes.estimators.independence`, or a function of a DataFrame, the names of two variables and a tuple of
        names given, which returns a p-value.
    max_conditioning : int, optional
        Largest conditioning set.
    colliders : {"majority", "conservative", "separating-set"}
        When x - z - y, with x and y not joined, is directed x -> z <- y: if less than half of the sets that separate x
        and y hold z, if none does, or if that of the largest p-value doesn't.
    null : {"gamma", "permutation"}
        What "hsic" and "distance-correlation" compare with.
    permutations : int
        Number of permutations.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges. What follows from them is directed, so that the estimate is a part of an
        equivalence class.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for permutations.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    cpdag_ : ndarray of int8, shape (n, n)
        The estimate; undirected edges are set both ways.
    dag_ : networkx.DiGraph or None
        A DAG of the class; `log_score` scores this one.
    separating_sets_ : dict
        For pairs (x, y) of names that aren't joined, those given which they were nearest to independence.
    p_values_ : ndarray of shape (n, n)
        The largest p-value of each pair over its tests; NaN for pairs that were settled beforehand.
    ambiguous_ : list of (x, z, y)
        Triples whose separating sets don't agree on whether z is a collider; it isn't made one.
    conflicts_ : list of (x, z, y)
        Colliders that were left out, since stronger ones or prior knowledge contradict them.
    undecided_ : list of (x, y)
        Edges that the others would direct both ways; they are undirected.

    Examples
    --------
    >>> from gpn_bayes import simulate
    >>> data = simulate.linear(nx.DiGraph([("raf", "erk"), ("pka", "erk"), ("erk", "akt")]), 500, random_seed=2)
    >>> sorted(PC().fit(data).graph_.edges)
    [('erk', 'akt'), ('pka', 'erk'), ('raf', 'erk')]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        test: str | ConditionalIndependenceTest | Callable[..., float] = "auto",
        max_conditioning: int | None = None,
        colliders: str = "majority",
        null: str = "gamma",
        permutations: int = 199,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.alpha = alpha
        self.test = test
        self.max_conditioning = max_conditioning
        self.colliders = colliders
        self.null = null
        self.permutations = permutations
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    @one_blas_thread
    def fit(self, X: Any, y: None = None, **table: Unpack[TableKeywords]) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the equivalence class.

        Parameters
        ----------
        X : DataFrame, array, path, Table, Dataset or SufficientStatistics
            Variables are columns. Statistics suffice for "fisher-z".
        y : None
            Ignored; for compatibility with scikit-learn.
        **table
            What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``weights=``, ….
        """
        self._check_settings()
        data = read_complete(self._check_input(X, table))
        known = GraphPrior(data.names, required=self.required, forbidden=self.forbidden, tiers=self.tiers)
        bound = self._chosen_test(data).bind(data, self.random_state)
        kept, apart = known.required | known.required.T, known.forbidden & known.forbidden.T
        skeleton = bound.skeleton(self.alpha, self.max_conditioning, kept, apart, self.progressbar)
        oriented = orient(skeleton, bound, self.alpha, self.colliders, known.required, known.forbidden)
        self._keep(oriented, skeleton, kept | apart, data)
        return self

    def _check_settings(self) -> None:
        check_share("alpha", self.alpha, ends=False)
        if self.max_conditioning is not None:
            check_count("max_conditioning", self.max_conditioning)
        check_choice("colliders", self.colliders, COLLIDER_RULES)
        check_choice("null", self.null, NULLS)
        check_count("permutations", self.permutations, 1)

    def _chosen_test(self, data: Data) -> ConditionalIndependenceTest:
        if isinstance(self.test, ConditionalIndependenceTest):
            return self.test
        if self.test == "auto":
            return GSquared() if is_discrete(data) else FisherZ()
        if self.test == "fisher-z":
            return FisherZ()
        if self.test == "g2":
            return GSquared()
        if self.test == "hsic":
            return HSIC(self.null, self.permutations)
        if self.test == "distance-correlation":
            return DistanceCorrelation(self.null, self.permutations)
        if callable(self.test):
            return CallableTest(self.test)
        raise ValueError(f"test must be a test, a function or one of {', '.join(TESTS)}; received {shown(self.test)}")

    def _keep(self, found: Orientation, skeleton: Skeleton, settled: Bools, data: Data) -> None:
        names = data.names
        self._keep_graph(found.pdag, names, data)
        self.cpdag_ = self.adjacency_
        dag = equivalence.consistent_extension(found.pdag)
        self.dag_ = None if dag is None else graphs.to_networkx(dag, names)
        self.p_values_ = np.where(settled, np.nan, skeleton.p_values)
        self.separating_sets_ = {
            (names[x], names[y]): tuple(names[k] for k in given)
            for (x, y), given in sorted(skeleton.separating_sets.items())
            if not skeleton.adjacent[x, y]
        }
        self.ambiguous_ = [tuple(names[k] for k in triple) for triple in found.ambiguous]
        self.conflicts_ = [tuple(names[k] for k in triple) for triple in found.conflicts]
        self.undecided_ = [tuple(names[k] for k in pair) for pair in found.undecided]
        if dag is None:
            warnings.warn(NO_DAG, UserWarning, stacklevel=4)

    def _dag(self) -> DiGraph:
        if self.dag_ is None:
            raise ValueError("only DAGs have a score; no DAG agrees with the edges and colliders that PC found")
        return self.dag_
