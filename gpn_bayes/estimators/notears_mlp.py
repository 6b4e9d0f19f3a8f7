"""NOTEARS-MLP: a DAG whose variables are neural networks of their parents, by continuous optimisation."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, check_not_negative
from gpn_bayes._util.progress import progress_bar, shares
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import TableKeywords, read_complete, refuse_interventions, refuse_weights
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.lagrangian import Round, augmented_lagrangian
from gpn_bayes.estimators.notears.dags import Removed, break_cycles, cut, order_of, removed_table
from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.estimators.quasi_newton import Function, Minimum, minimise
from gpn_bayes.kernels.learners.acyclicity import exponential
from gpn_bayes.scores.prior import GraphPrior

# Cycles are this weak when they are cut; the order of the variables is settled long before.
_LARGEST_H = 1e-5
# How much of their inputs networks see where they begin; see `Perceptrons.start`.
_REACH = 0.5
# The way to the order needs no exact minima; the networks within it do.
_ROUGH, _EXACT = 1e-6, 1e-9


class NOTEARSMLP(GraphEstimator):
    """Learn a DAG with non-linear relations: each variable is a small neural network of its parents, plus noise.

    All networks are fitted at once, with absolute and squared penalties on their weights, while an augmented Lagrangian
    drives the cycles out of the graph of which variable enters which network (Zheng et al. 2020). What remains of the
    cycles is then cut at the weakest places, and each network is fitted again on its predecessors alone: the weights
    are those of a DAG before any threshold. Data are centred, not scaled: like all learners with a squared loss, this
    one may take much of the order of the variables from their variances.

    Parameters
    ----------
    lambda1 : float, default 0.01
        Weight of the absolute values of the first layer: larger gives fewer edges.
    lambda2 : float, default 0.01
        Weight of half the squared weights of both layers: larger gives smoother relations.
    hidden : int, default 10
        Number of hidden units (sigmoids) of each network.
    threshold : float, default 0.5
        Edges with a smaller norm are left out.
    starts : int, default 2
        Number of random networks to begin with; the lowest objective is kept. The first know nothing of their inputs,
        as in the paper, which often leads lowest, but never to a relation without correlation; the others do.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges. Required ones have no penalty on absolute values.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for the networks to begin with.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_
        As in every learner.
    weights_ : ndarray of float, shape (d, d)
        How strongly i enters the network of j: the norm of its weights in the first layer; 0 where there is no edge.
    raw_weights_ : ndarray of float, shape (d, d)
        The same before the threshold; acyclic as well.
    objective_ : float
        Half the mean squared errors plus penalties at `raw_weights_`.
    objectives_ : ndarray of float, shape (starts,)
        That of every start.
    h_ : float
        How much of cycles the optimisation had left (tr exp(W * W) - d) before they were cut.
    removed_ : DataFrame
        Edges not below the threshold that were cut because they closed a cycle; usually none.
    interrupted_ : bool
        Whether Ctrl-C ended the search; the best so far is kept.

    Examples
    --------
    >>> import networkx as nx
    >>> from gpn_bayes import simulate
    >>> from gpn_bayes.estimators import NOTEARSMLP
    >>> dag = nx.DiGraph([("raf", "mek"), ("mek", "erk")])
    >>> learner = NOTEARSMLP(random_state=1).fit(simulate.mlp(dag, n_rows=300, random_seed=2))
    >>> sorted(learner.graph_.edges)
    [('mek', 'erk'), ('raf', 'mek')]
    """

    weights_: Floats
    raw_weights_: Floats
    objective_: float
    objectives_: Floats
    h_: float
    removed_: pd.DataFrame
    interrupted_: bool

    def __init__(
        self,
        lambda1: float = 0.01,
        lambda2: float = 0.01,
        *,
        hidden: int = 10,
        threshold: float = 0.5,
        starts: int = 2,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.hidden = hidden
        self.threshold = threshold
        self.starts = starts
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: Any, y: None = None, **table: Unpack[TableKeywords]) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the graph.

        Parameters
        ----------
        X : DataFrame, array, path, Table or Dataset
            Numbers; variables are columns.
        y : None
            Ignored; for compatibility with scikit-learn.
        **table
            What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``weights=``, ….
        """
        for name in ("lambda1", "lambda2", "threshold"):
            check_not_negative(name, getattr(self, name))
        for name in ("hidden", "starts"):
            check_count(name, getattr(self, name), least=1)
        data = read_complete(self._check_input(X, table)).with_rows("NOTEARS-MLP needs the rows of a table")
        refuse_interventions(data, "NOTEARS-MLP")
        refuse_weights(data, "NOTEARS-MLP")
        prior = GraphPrior(data.names, required=self.required, forbidden=self.forbidden, tiers=self.tiers)
        best = self._best_start(data.numeric("NOTEARS-MLP"), prior)
        self.raw_weights_ = best.weights
        self.weights_ = cut(best.weights, self.threshold, prior.required)
        self.objective_ = best.objective
        self.h_ = best.h
        strong = [entry for entry in best.removed if entry.weight >= self.threshold]
        self.removed_ = removed_table(strong, data.names)
        self._keep_graph((self.weights_ != 0) | prior.required, data.names, data)
        return self

    def _best_start(self, values: Floats, prior: GraphPrior) -> "_Found":
        rng = generator("random_state", self.random_state)
        search = _Search(values, prior, self.hidden, self.lambda1, self.lambda2)
        results: list[_Found] = []
        with progress_bar("Networks", self.starts, self.progressbar) as advance:
            while len(results) < self.starts and not any(one.interrupted for one in results):
                results.append(search.run(rng, _REACH if results else 0.0, shares(advance)))
        self.objectives_ = np.array([one.objective for one in results])
        self.interrupted_ = results[-1].interrupted
        return min(results, key=lambda one: one.objective)


class _Found(NamedTuple):
    weights: Floats
    objective: float
    h: float
    removed: list[Removed]
    interrupted: bool


class _Search:
    """The optimisation from one start."""

    def __init__(self, values: Floats, prior: GraphPrior, hidden: int, lambda1: float, lambda2: float) -> None:
        self.values = values - values.mean(axis=0)
        self.required: np.ndarray = prior.required
        # What leads back along required edges could only close a cycle.
        self.allowed = ~prior.forbidden & ~graphs.ancestors(self.required).T
        self.settings = hidden, lambda1, lambda2

    def run(self, rng: np.random.Generator, reach: float, report: Callable[[float], None]) -> _Found:
        """Return the weights of a DAG from a random start; `report` gets the share done."""
        everyone = np.arange(self.values.shape[1])
        networks = self._networks(everyone, everyone)
        start, interrupted = networks.start(rng, reach), False
        rough = Round(start, np.inf)
        try:
            for rough in self._without_cycles(networks, start):
                # h falls by about the same factor from one round to the next.
                report(0.5 * min(1.0, max(0.0, math.log(max(rough.h, _LARGEST_H)) / math.log(_LARGEST_H))))
        except KeyboardInterrupt:
            interrupted = True
        strengths = np.sqrt(networks.squares(rough.x))
        _, removed = break_cycles(strengths, self.required)
        places = np.argsort(order_of(strengths, self.required))
        weights, objective = np.zeros(strengths.shape), 0.0
        for node in everyone.tolist():
            parents = np.flatnonzero((places < places[node]) & self.allowed[:, node])
            own = networks.part(rough.x, parents, node)
            alone = self._networks(parents, np.array([node]))
            try:
                # Interrupted, the other networks are kept as they are.
                own = own if interrupted else minimise(alone.loss, own, alone.penalties, _EXACT).x
            except KeyboardInterrupt:
                interrupted = True
            weights[parents, node] = np.sqrt(alone.squares(own)[:, 0])
            objective += alone.loss(own)[0] + float(alone.penalties @ np.abs(own))
            report(0.5 + (node + 1) / (2 * len(everyone)))
        return _Found(weights, objective, rough.h, removed, interrupted)

    def _networks(self, inputs: Ints, outputs: Ints) -> Perceptrons:
        allowed, free = (matrix[np.ix_(inputs, outputs)] for matrix in (self.allowed, self.required))
        return Perceptrons(self.values[:, inputs], self.values[:, outputs], allowed, *self.settings, free)

    @staticmethod
    def _without_cycles(networks: Perceptrons, start: Floats) -> Iterator[Round]:
        """Fit all networks at once, until hardly anything is left of cycles."""

        def cycles(parameters: Floats) -> tuple[float, Floats]:
            h, slopes = exponential(networks.squares(parameters))
            return h, networks.through_squares(parameters, slopes)

        def minimiser(function: Function, start: Floats) -> Minimum:
            return minimise(function, start, networks.penalties, _ROUGH)

        return augmented_lagrangian(networks.loss, cycles, start, _LARGEST_H, minimiser)
