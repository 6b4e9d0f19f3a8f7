"""Equations of drawn DAGs: each DAG with a draw of its parameters, from which effects and predictions follow."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.posterior.protocols import DrawnPosterior
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.equations import DrawnEquation, DrawnTable, LinearEquation


class Setting(NamedTuple):
    """An intervention that sets a variable to some values, whatever its parents are."""

    values: Floats


class Changing(NamedTuple):
    """An intervention that changes the values which a variable's equation gives."""

    function: Callable[[Floats], Floats]


Interventions = Mapping[int, Setting | Changing]


def scorer_of(post: DrawnPosterior, purpose: str) -> Scorer:
    """Return the scorer behind a posterior, bound to its data.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    purpose : str
        What needs it, to begin a message with.
    """
    if not isinstance(post.scorer, DagScorer):
        raise ValueError(f"{purpose} need the score, and this posterior doesn't have it; sample again")
    if post.scorer.data is None:
        raise ValueError(f"{purpose} need the data, and this posterior was saved without them; sample again")
    return post.scorer.scorer


class DrawnEquations:
    """Some of a posterior's DAGs, each with its own draw of the parameters of every node's equation.

    Parameters are drawn when they are first asked for. They follow from the seed, the node and its parents, and the
    place of the DAG among those that share them: whatever else is asked for, and in a new process too.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    random_seed : int
        Where the parameters come from.

    Attributes
    ----------
    dags : ndarray of int8, shape (draw, parent, child)
        The DAGs.
    centre, scale : ndarray of shape (variables,)
        The zero and the unit of each variable in the equations, in units of the table.
    """

    def __init__(self, post: DrawnPosterior, places: Ints, random_seed: int) -> None:
        self._scorer = scorer_of(post, "effects")
        self._seed = random_seed
        self.names = post.names
        parents = post.parents.reshape(-1, *post.parents.shape[2:])[places]
        self.dags: Adjacency = graphs.unpack(parents, len(post.names))
        self._sets: DrawnSets = drawn_sets(parents[None])
        self._ranks = np.empty(self._sets.places.shape[1:], dtype=np.int64)
        self._counts = np.empty(len(self._sets.keys), dtype=np.int64)
        for node in range(len(post.names)):
            column = self._sets.places[0, :, node]
            for key in np.unique(column):
                own = np.flatnonzero(column == key)
                self._ranks[own, node] = np.arange(len(own))
                self._counts[key] = len(own)
        self._drawn: dict[int, Any] = {}
        self.centre, self.scale = _units(self._scorer, post.data)

    def __len__(self) -> int:
        """Return the number of DAGs."""
        return len(self.dags)

    @property
    def discrete(self) -> bool:
        """Whether the variables are categories."""
        return self._scorer.discrete

    @property
    def linear(self) -> bool:
        """Whether all equations are linear."""
        return isinstance(self._scorer.equation(*self._sets.keys[0]), LinearEquation)

    @cached_property
    def orders(self) -> list[Ints]:
        """The variables of each DAG, causes before effects."""
        return [graphs.topological_order(dag) for dag in self.dags]

    @cached_property
    def ancestors(self) -> Bools:
        """Which variables (rows) have a directed path to which (columns), in each DAG."""
        return graphs.ancestors(self.dags)

    def parents(self, draw: int, node: int) -> tuple[int, ...]:
        """Return the parents of a node in one of the DAGs."""
        return self._sets.keys[int(self._sets.places[0, draw, node])][1]

    def _of(self, key: int) -> Any:
        """Return the draws of all DAGs that have a parent set in common."""
        if key not in self._drawn:
            node, parents = self._sets.keys[key]
            rng = np.random.default_rng([self._seed, node, *(p + 1 for p in parents)])
            self._drawn[key] = self._scorer.equation(node, parents).draw(int(self._counts[key]), rng)
        return self._drawn[key]

    def prepare(self, nodes: Callable[[int], Iterable[int]], progressbar: bool) -> None:
        """Draw the equations of some nodes of each DAG ahead of time, which may take long.

        Parameters
        ----------
        nodes : callable
            Given the number of a DAG, returns its nodes.
        progressbar : bool
            Whether to show progress.
        """
        keys = sorted({int(self._sets.places[0, k, node]) for k in range(len(self)) for node in nodes(k)})
        with progress_bar("Drawing equations", len(keys), progressbar) as advance:
            for key in keys:
                self._of(key)
                advance(1)

    def equation(self, draw: int, node: int) -> tuple[DrawnEquation, int]:
        """Return the drawn equations of a node, and which of them is that of a DAG."""
        drawn = self._of(int(self._sets.places[0, draw, node]))
        assert isinstance(drawn, DrawnEquation)
        return drawn, int(self._ranks[draw, node])

    def table(self, draw: int, node: int) -> Floats:
        """Return the conditional probabilities of a node in a DAG: (*levels of the parents, levels of the node)."""
        drawn = self._of(int(self._sets.places[0, draw, node]))
        assert isinstance(drawn, DrawnTable)
        probabilities: Floats = drawn.probabilities[self._ranks[draw, node]]
        return probabilities

    def level_names(self, node: int, data: Dataset) -> list[Any]:
        """Return the levels of a variable of categories; those that don't occur are called by their codes."""
        known = list(data.levels[node] or ())
        return known + list(range(len(known), self.table(0, node).shape[-1]))

    def level_place(self, node: int, value: Any, data: Dataset) -> int:
        """Return the code of a level."""
        texts = [str(level) for level in self.level_names(node, data)]
        if str(value) not in texts:
            raise ValueError(
                f"{self.names[node]!r} is set to one of its levels, {', '.join(texts)}; received {value!r}"
            )
        return texts.index(str(value))

    def coefficients(self) -> Floats:
        """Return the matrices B of linear equations, of shape (draw, parent, child), in standardised units."""
        n = len(self.names)
        b = np.zeros((len(self), n, n))
        for key, (node, parents) in enumerate(self._sets.keys):
            if parents:
                own = np.flatnonzero(self._sets.places[0, :, node] == key)
                b[np.ix_(own, parents, [node])] = self._of(key).coefficients[:, :, None]
        return b

    def run(self, draw: int, nodes: Iterable[int], interventions: Interventions, noise: Floats) -> dict[int, Floats]:
        """Return the values of some variables under interventions, in standardised units.

        Parameters
        ----------
        draw : int
            Which DAG.
        nodes : iterable of int
            The variables, with all their ancestors, causes first.
        interventions : mapping of int to Setting or Changing
            What is done, in standardised units.
        noise : ndarray of shape (variables, repetitions)
            Standard normal noise of every variable.
        """
        values: dict[int, Floats] = {}
        for node in nodes:
            given = interventions.get(node)
            if isinstance(given, Setting):
                values[node] = given.values
                continue
            drawn, rank = self.equation(draw, node)
            natural = self.expected(draw, node, values) + drawn.sigma[rank] * noise[node]
            values[node] = natural if given is None else given.function(natural)
        return values

    def expected(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return what the equation of a node in a DAG gives without noise, for some values of its parents."""
        drawn, rank = self.equation(draw, node)
        own = [values[p] for p in self.parents(draw, node)]
        return drawn.expected(rank, np.array(np.broadcast_arrays(*own)) if own else np.empty((0, 1)))


def _units(scorer: Scorer, data: Any) -> tuple[Floats, Floats]:
    """Return the zero and the unit of every variable, as the score has them."""
    n = len(scorer.names)
    if scorer.discrete or not getattr(scorer.score, "standardise", True):
        return np.zeros(n), np.ones(n)
    return data.values.mean(axis=0) if isinstance(data, Dataset) else data.mean, spread_of(data)


def spread_of(data: Dataset | SufficientStatistics) -> Floats:
    """Return the standard deviation of every variable, in units of the table."""
    spread: Floats = data.values.std(axis=0, ddof=1) if isinstance(data, Dataset) else np.sqrt(np.diag(data.cov))
    return spread
