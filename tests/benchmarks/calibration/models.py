"""The models that posteriors assume, to draw networks from: equations, tables of rows, true effects.

A model draws the equation of a node given its parents, values of the node from it, and knows what `post.effect` calls
the effect of one variable on another. Everything else is the same for all of them: a DAG from the prior, one equation
for each node and for each group of rows in which an experiment changed it, and rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.posterior.effect import Effect
from gpn_bayes.scores.base import Score
from tests.benchmarks.prior_networks import (
    CurvedEquation,
    StraightEquation,
    average_slopes,
    curved_equation,
    curved_values,
    linear_equation,
    probability_table,
)

# What a row says of a node: its own equation, that of the k-th change (1, 2, …), or that it was set from outside.
UNCHANGED, SET = 0, -1
# Values of the cause between which slopes of curves are taken, and rows in which their truth is simulated.
_POINTS, _TRUTH_ROWS = 9, 1_000


class Network(NamedTuple):
    """A DAG drawn from the prior, its equations, and rows.

    Attributes
    ----------
    dag : ndarray of shape (n, n)
        Rows parents.
    equations : list
        One for each node, of rows in which it wasn't changed.
    data : DataFrame
        The rows.
    """

    dag: np.ndarray
    equations: list[Any]
    data: pd.DataFrame


class Model(ABC):
    """A model of rows; `score` is the score whose marginal likelihood it has.

    Parameters
    ----------
    n : int
        The number of variables.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.names = [f"v{i + 1}" for i in range(n)]

    @property
    def stream(self) -> str:
        """What tells the random numbers of its networks from those of other models."""
        return type(self).__name__

    @abstractmethod
    def score(self) -> Score:
        """Return the score of this model."""

    @abstractmethod
    def begin(self, rng: np.random.Generator) -> None:
        """Draw what belongs to a whole table, before its equations."""

    @abstractmethod
    def equation(self, node: int, parents: Sequence[int], rng: np.random.Generator) -> Any:
        """Draw an equation from the prior."""

    @abstractmethod
    def values(self, equation: Any, parents: Sequence[np.ndarray], rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values of a node, given those of its parents."""

    @abstractmethod
    def outside(self, node: int, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values that an experiment sets."""

    @abstractmethod
    def effect(self, network: Network, cause: int, outcome: int, rng: np.random.Generator) -> float:
        """Return a true effect, of a pair that has a directed path."""

    @abstractmethod
    def asked(self, post: gpn.GraphPosterior, cause: int, outcome: int, draws: int) -> "Answer":
        """Return the posterior's answer to the same question."""

    def network(self, dag: np.ndarray, versions: np.ndarray, rng: np.random.Generator) -> Network:
        """Return a network with this DAG; `versions` (rows, variables) says which equation each entry is from."""
        self.begin(rng)
        table = np.zeros(versions.shape)
        equations: list[Any] = [None] * self.n
        for node in graphs.topological_order(dag):
            parents = np.flatnonzero(dag[:, node]).tolist()
            # In every table, also where no row is left as it was.
            for version in sorted({UNCHANGED, *versions[:, node].tolist()}):
                rows = np.flatnonzero(versions[:, node] == version)
                if version == SET:
                    table[rows, node] = self.outside(node, len(rows), rng)
                    continue
                drawn = self.equation(node, parents, rng)
                table[rows, node] = self.values(drawn, [table[rows, p] for p in parents], len(rows), rng)
                if version == UNCHANGED:
                    equations[node] = drawn
        return Network(dag, equations, self.frame(table))

    def frame(self, table: np.ndarray) -> pd.DataFrame:
        """Return a table as the package is given it."""
        return pd.DataFrame(table, columns=self.names)


class Answer(NamedTuple):
    """An effect, and which of its numbers is asked for, where it has several."""

    effect: Effect
    element: int = 0

    def draws(self, given_path: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the draws and their weights."""
        own = self.effect.given_path if given_path else self.effect
        if own is None:
            return np.empty(0), np.empty(0)
        values, weights = own.draws.to_numpy().reshape(own.weights.size, -1)[:, self.element], own.weights.ravel()
        return values[weights > 0], weights[weights > 0]

    def interval(self, given_path: bool, probability: float) -> tuple[float, float]:
        """Return the ends of an interval, as the package has them."""
        own = self.effect.given_path if given_path else self.effect
        assert own is not None
        low, high = (np.ravel(end)[self.element] for end in own.interval(probability))
        return float(low), float(high)


class Linear(Model):
    """Linear equations with BGe's prior: one of the means, too."""

    def score(self) -> Score:
        return gpn.scores.BGe(standardise=False)

    def begin(self, rng: np.random.Generator) -> None:
        pass

    def equation(self, node: int, parents: Sequence[int], rng: np.random.Generator) -> StraightEquation:
        weights, sd = linear_equation(self.n, len(parents), rng)
        # The means of all variables have their covariance, as alpha_mu is 1; so that of a node given its parents' has
        # the variance of its noise.
        return StraightEquation(weights, sd * float(rng.standard_normal()), sd)

    def values(self, equation: Any, parents: Sequence[np.ndarray], rows: int, rng: np.random.Generator) -> np.ndarray:
        return equation.values(parents, rng.standard_normal(rows))

    def outside(self, node: int, rows: int, rng: np.random.Generator) -> np.ndarray:
        return 2.0 * rng.standard_normal(rows)

    def effect(self, network: Network, cause: int, outcome: int, rng: np.random.Generator) -> float:
        weights = np.zeros((self.n, self.n))
        for node, own in enumerate(network.equations):
            weights[network.dag[:, node] != 0, node] = own.weights
        return float(np.linalg.inv(np.eye(self.n) - weights)[cause, outcome])

    def asked(self, post: gpn.GraphPosterior, cause: int, outcome: int, draws: int) -> Answer:
        return Answer(post.effect(cause, outcome, draws=draws))


class Discrete(Model):
    """Tables of conditional probabilities, of two or three levels.

    Parameters
    ----------
    n : int
        The number of variables.
    ess : float, optional
        BDeu's equivalent sample size; without one, all distributions are equally probable, as K2 has it.
    """

    def __init__(self, n: int, ess: float | None) -> None:
        super().__init__(n)
        self.ess = ess
        self.levels = [2] * n

    @property
    def stream(self) -> str:
        return "K2" if self.ess is None else super().stream

    def score(self) -> Score:
        known = dict(zip(self.names, self.levels, strict=True))
        return gpn.scores.K2(known) if self.ess is None else gpn.scores.BDeu(self.ess, known)

    def begin(self, rng: np.random.Generator) -> None:
        self.levels = rng.integers(2, 4, self.n).tolist()

    def equation(self, node: int, parents: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        own = [self.levels[p] for p in parents]
        cells = self.levels[node] * int(np.prod(own))
        return probability_table(self.levels[node], own, 1.0 if self.ess is None else self.ess / cells, rng)

    def values(self, equation: Any, parents: Sequence[np.ndarray], rows: int, rng: np.random.Generator) -> np.ndarray:
        chances = np.broadcast_to(equation[tuple(column.astype(int) for column in parents)], (rows, equation.shape[-1]))
        return (rng.random((rows, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)

    def outside(self, node: int, rows: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(self.levels[node], size=rows)

    def effect(self, network: Network, cause: int, outcome: int, rng: np.random.Generator) -> float:
        change = 0.0
        for levels in product(*(range(count) for count in self.levels)):
            if levels[outcome] == 0 and levels[cause] < 2:
                chance = 1.0
                for node, table in enumerate(network.equations):
                    if node != cause:
                        chance *= table[*(levels[p] for p in np.flatnonzero(network.dag[:, node])), levels[node]]
                change += chance if levels[cause] == 1 else -chance
        return change

    def asked(self, post: gpn.GraphPosterior, cause: int, outcome: int, draws: int) -> Answer:
        return Answer(post.effect(cause, outcome, to=1, versus=0, draws=draws))

    def frame(self, table: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(table.astype(int), columns=self.names, dtype="Int64")


class Curved(Model):
    """Sums of smooth functions, length scales and noise with the priors of the GP score.

    Parameters
    ----------
    n : int
        The number of variables.
    noise_prior : pair of float
        Shape and scale of the noise's inverse gamma prior. By default light-tailed, so that few networks are nearly all
        noise.
    """

    def __init__(self, n: int, noise_prior: tuple[float, float] = (3.0, 1.0)) -> None:
        super().__init__(n)
        self.noise_prior = noise_prior

    def score(self) -> Score:
        return gpn.scores.GP(standardise=False, sigma=self.noise_prior)

    def begin(self, rng: np.random.Generator) -> None:
        pass

    def equation(self, node: int, parents: Sequence[int], rng: np.random.Generator) -> CurvedEquation:
        return curved_equation(len(parents), self.noise_prior, rng)

    def values(self, equation: Any, parents: Sequence[np.ndarray], rows: int, rng: np.random.Generator) -> np.ndarray:
        return equation.values(parents, rng.standard_normal(rows))

    def outside(self, node: int, rows: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(rows)

    def effect(self, network: Network, cause: int, outcome: int, rng: np.random.Generator) -> float:
        column = network.data.iloc[:, cause].to_numpy()
        grid = np.linspace(column.min(), column.max(), _POINTS)
        noise = rng.standard_normal((self.n, _TRUTH_ROWS))
        dag = graphs.to_networkx(network.dag, self.names)
        # In the order in which equations have their parents.
        ordered = nx.DiGraph()
        ordered.add_nodes_from(self.names)
        ordered.add_edges_from(sorted(dag.edges))
        equations = dict(zip(self.names, network.equations, strict=True))
        means = [
            curved_values(ordered, equations, noise, {self.names[cause]: value})[self.names[outcome]].mean()
            for value in grid
        ]
        return float(average_slopes(np.array(means)[:, None], grid, column)[0])

    def asked(self, post: gpn.GraphPosterior, cause: int, outcome: int, draws: int) -> Answer:
        curve = post.effect(cause, outcome, points=_POINTS, draws=draws, progressbar=False)
        assert curve.slope is not None
        return Answer(curve.slope)


class LinearOrCurved(Curved):
    """Equations of which each is linear or curved, both as probable, with the priors of BGe and of the GP score."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._lines = Linear(n)

    def score(self) -> Score:
        return gpn.scores.GP(standardise=False, sigma=self.noise_prior, equations="linear or curved")

    def equation(
        self, node: int, parents: Sequence[int], rng: np.random.Generator
    ) -> CurvedEquation | StraightEquation:
        kind = self._lines if rng.random() < 0.5 else super()
        return kind.equation(node, parents, rng)
