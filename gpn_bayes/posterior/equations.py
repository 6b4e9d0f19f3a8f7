"""Equations of drawn DAGs: each DAG with a draw of its parameters, from which effects and predictions follow."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Adjacency, Bools, Floats, Ints
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.equations import DrawnEquation, DrawnLevels, DrawnTable, Equation, LinearEquation
from gpn_bayes.scores.recorded import unmakeable
from gpn_bayes.scores.registry import find


class Setting(NamedTuple):
    """An intervention that sets a variable to some values, or codes of levels, whatever its parents are."""

    values: Floats


class Changing(NamedTuple):
    """An intervention that changes the values which a variable's equation gives."""

    function: Callable[[Floats], Floats]


Interventions = Mapping[int, Setting | Changing]


def scorer_of(post: Draws, purpose: str) -> Scorer:
    """Return the scorer behind a posterior, bound to its data.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    purpose : str
        What needs it, to begin a message with.
    """
    if not isinstance(post.scorer, DagScorer):
        recorded = post.record.score
        if recorded is not None and find(recorded.name) is None:
            raise ValueError(
                f"{purpose} need the score, and {recorded.name!r} isn't known: import the module that "
                "defines it before loading"
            )
        if recorded is not None and (why := unmakeable(recorded.name, recorded.parameters)):
            raise ValueError(f"{purpose} need the score; {why}")
        raise ValueError(f"{purpose} need the score, and this posterior doesn't have it; sample again")
    if post.scorer.data is None:
        raise ValueError(f"{purpose} need the data, and this posterior was saved without them; sample again")
    return post.scorer.scorer


def table_scorer(post: Draws) -> Scorer:
    """Return the scorer behind a posterior, for the tables of an exported network."""
    return scorer_of(post, "tables")


def given_data(post: Draws, data: Dataset | SufficientStatistics | None) -> Draws:
    """Return a posterior that was saved without its data together with them; any other as it is.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    data : Dataset or SufficientStatistics, optional
        What it was drawn from.
    """
    if data is None or post.data is not None or not isinstance(post.scorer, DagScorer):
        return post
    whole = copy(post)
    whole.data = data
    whole.scorer = replace(post.scorer, data=data)
    return whole


class DrawnEquations:
    """Some of a posterior's DAGs, each with its own draw of the parameters of every node's equation.

    Parameters are drawn when they are first asked for. They follow from the seed and the DAGs, whatever else was asked
    for before, and in a new process too.

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
    scorer : Scorer
        The score, bound to the data.
    categories : ndarray of bool
        Which variables are categories.
    linear : bool
        Whether all variables are numbers, and all equations linear.
    straight : bool
        Whether equations of numbers are linear in numbers, given categories, and those of categories have no numbers.
    centre, scale : ndarray of shape (variables,)
        The zero and the unit of each number in the equations, in units of the table; categories are given by codes.
    """

    def __init__(self, post: Draws, places: Ints, random_seed: int) -> None:
        check_count("random_seed", random_seed, 0)
        self.scorer = scorer_of(post, "effects")
        self._seed = random_seed
        self.names = post.names
        parents = post.parents.reshape(-1, *post.parents.shape[2:])[places]
        self.dags: Adjacency = graphs.unpack(parents, len(post.names))
        self._sets: DrawnSets = drawn_sets(parents[None])
        self.categories = self.scorer.categories
        first = next((self.scorer.equation(*key) for key in self._sets.keys if not self.categories[key[0]]), None)
        causes = {p for node, parents in self._sets.keys if self.categories[node] for p in parents}
        self.straight = isinstance(first, Equation) and first.is_linear and all(self.categories[list(causes)])
        self.linear = isinstance(first, LinearEquation) and self.straight and not self.categories.any()
        # What is drawn together: the DAGs in which a node has the same parents, or as many where equations are linear.
        kinds = [(node, len(own) if self.linear else own) for node, own in self._sets.keys]
        self._groups: list[tuple[int, Any]] = list(dict.fromkeys(kinds))
        number = {kind: place for place, kind in enumerate(self._groups)}
        self._group_of = np.array([number[kind] for kind in kinds])[self._sets.places[0]]
        self._counts = np.bincount(self._group_of.ravel(), minlength=len(self._groups))
        self._ranks = _ranks(self._group_of)
        self._drawn: dict[int, Any] = {}
        self._lines: dict[int, tuple[Ints, Ints]] = {}
        self.centre, self.scale = self.scorer.units(post.data)

    def __len__(self) -> int:
        """Return the number of DAGs."""
        return len(self.dags)

    @property
    def discrete(self) -> bool:
        """Whether all variables are categories."""
        return self.scorer.discrete

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

    def _of(self, group: int) -> Any:
        """Return the draws of all DAGs of a group."""
        if group not in self._drawn:
            node, parents = self._groups[group]
            if self.linear:
                rng = np.random.default_rng([self._seed, node, parents])
                sets, which = self._lines_of(group)
                lines = self.scorer.equations(node, sets)
                assert lines is not None
                self._drawn[group] = lines.draw(which, rng)
            else:
                rng = np.random.default_rng([self._seed, node, *(p + 1 for p in parents)])
                self._drawn[group] = self.scorer.equation(node, parents).draw(int(self._counts[group]), rng)
        return self._drawn[group]

    def _lines_of(self, group: int) -> tuple[Ints, Ints]:
        """Return the parent sets of a group of linear equations, one a row, and which of them its DAGs have."""
        if group not in self._lines:
            node = self._groups[group][0]
            own = self._sets.places[0, self._group_of[:, node] == group, node]
            keys, which = np.unique(own, return_inverse=True)
            sets = [self._sets.keys[key][1] for key in keys]
            self._lines[group] = np.array(sets, dtype=np.int64).reshape(len(sets), -1), which.reshape(-1)
        return self._lines[group]

    def prepare(self, nodes: Callable[[int], Iterable[int]], progressbar: bool) -> None:
        """Draw the equations of some nodes of each DAG ahead of time, which may take long.

        Parameters
        ----------
        nodes : callable
            Given the number of a DAG, returns its nodes.
        progressbar : bool
            Whether to show progress.
        """
        groups = sorted({int(self._group_of[k, node]) for k in range(len(self)) for node in nodes(k)})
        with progress_bar("Drawing equations", len(groups), progressbar) as advance:
            for group in groups:
                self._of(group)
                advance(1)

    def equation(self, draw: int, node: int) -> tuple[DrawnEquation, int]:
        """Return the drawn equations of a node, and which of them is that of a DAG."""
        drawn = self._of(int(self._group_of[draw, node]))
        assert isinstance(drawn, DrawnEquation)
        return drawn, int(self._ranks[draw, node])

    def table(self, draw: int, node: int) -> Floats:
        """Return the conditional probabilities of a node in a DAG: (*levels of the parents, levels of the node)."""
        drawn = self._of(int(self._group_of[draw, node]))
        assert isinstance(drawn, DrawnTable)
        probabilities: Floats = drawn.probabilities[self._ranks[draw, node]]
        return probabilities

    def coefficients(self, draws: slice) -> Floats:
        """Return the matrices B of some linear equations, of shape (draw, parent, child), in standardised units."""
        n = len(self.names)
        b = np.zeros((len(self.dags[draws]), n, n))
        for group, (node, size) in enumerate(self._groups):
            own = np.flatnonzero(self._group_of[draws, node] == group)
            if size and len(own):
                sets, which = self._lines_of(group)
                ranks = self._ranks[draws, node][own]
                b[own[:, None], sets[which[ranks]], node] = self._of(group).coefficients[ranks]
        return b

    def run(
        self,
        draw: int,
        nodes: Iterable[int],
        interventions: Interventions,
        noise: Floats,
        known: Mapping[int, Floats] | None = None,
    ) -> dict[int, Floats]:
        """Return the values of some variables under interventions, in standardised units.

        Parameters
        ----------
        draw : int
            Which DAG.
        nodes : iterable of int
            The variables, with all their ancestors that aren't known, causes first.
        interventions : mapping of int to Setting or Changing
            What is done, in standardised units.
        noise : ndarray of shape (variables, repetitions)
            Standard normal noise of every variable; that of a category says which level it has.
        known : mapping of int to ndarray, optional
            Values of other variables.
        """
        values = dict(known or {})
        for node in nodes:
            given = interventions.get(node)
            if isinstance(given, Setting):
                values[node] = given.values
                continue
            natural = self._natural(draw, node, values, noise[node])
            values[node] = natural if given is None else given.function(natural)
        return values

    def _natural(self, draw: int, node: int, values: Mapping[int, Floats], noise: Floats) -> Floats:
        """Return the values that the equation of a node in a DAG gives, or the codes of levels."""
        if self.categories[node]:
            return levels_at(self.chances(draw, node, values), ndtr(noise)).astype(float)
        drawn, rank = self.equation(draw, node)
        given = self._given(draw, node, values)
        return drawn.expected(rank, given) + drawn.noise(rank, given) * drawn.noise_from_normal(noise)

    def expected(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return what the equation of a number in a DAG gives without noise, for some values of its parents."""
        drawn, rank = self.equation(draw, node)
        return drawn.expected(rank, self._given(draw, node, values))

    def noise(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return the standard deviation of the noise of a number in a DAG, for some values of its parents."""
        drawn, rank = self.equation(draw, node)
        return drawn.noise(rank, self._given(draw, node, values))

    def normal_noise(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return the standard normal noise by which a number in a DAG has its value, given those of its parents."""
        left = (values[node] - self.expected(draw, node, values)) / self.noise(draw, node, values)
        return self.equation(draw, node)[0].normal_from_noise(left)

    def noise_from_normal(self, draw: int, node: int, normal: Floats) -> Floats:
        """Return noise of unit variance as a number has it in a DAG, given standard normal numbers."""
        return self.equation(draw, node)[0].noise_from_normal(normal)

    def chances(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return the probabilities of a category's levels in a DAG, (…, levels), for some values of its parents."""
        drawn = self._of(int(self._group_of[draw, node]))
        assert isinstance(drawn, DrawnLevels)
        return drawn.chances(int(self._ranks[draw, node]), self._given(draw, node, values))

    def _given(self, draw: int, node: int, values: Mapping[int, Floats]) -> Floats:
        """Return the values of a node's parents in a DAG, of shape (parents, …)."""
        own = [values[p] for p in self.parents(draw, node)]
        return np.array(np.broadcast_arrays(*own)) if own else np.empty((0, 1))


def levels_at(chances: Floats, uniform: Floats) -> Ints:
    """Return codes of levels from their probabilities, (…, levels), and numbers between 0 and 1.

    Examples
    --------
    >>> levels_at(np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.6, 0.99])).tolist()
    [0, 1, 2]
    """
    below = np.cumsum(chances, axis=-1)
    codes: Ints = np.minimum((below < uniform[..., None]).sum(axis=-1), chances.shape[-1] - 1)
    return codes


def _ranks(groups: Ints) -> Ints:
    """Return the place of each entry among those of its column that are equal.

    Examples
    --------
    >>> _ranks(np.array([[5], [7], [5]])).tolist()
    [[0], [0], [1]]
    """
    ranks = np.empty_like(groups)
    for column, own in zip(groups.T, ranks.T, strict=True):
        order = np.argsort(column, kind="stable")
        begins = np.flatnonzero(np.diff(column[order], prepend=column[order[0]] - 1))
        lengths = np.diff(begins, append=len(column))
        own[order] = np.arange(len(column)) - np.repeat(begins, lengths)
    return ranks
