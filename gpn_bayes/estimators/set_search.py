"""The most promising parent sets of each node, where there are too many to score them all.

Independence selection (Scanagatta, de Campos, Corani & Zaffalon 2015): a set is worth scoring if its parts say so. The
score of P and one more parent j is guessed as if j said of the node the same with P as without,

    s(P + j) ~ s(P) + s(R + j) - s(R),

with R the required parents; a discrete BIC charges for the parameters that P + j has beyond its parts, which is known
and taken off. Sets are scored in the order of the guess, and each of them then offers its own extensions.

Where variables tell much the same, the guess is poor: it never looks for what a parent adds to others. So a plain climb
over DAGs comes first, which does, and the sets it scored are kept beside the promising ones.

The same climb helps where all sets up to some size are searched, since there are too many larger ones.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes import graphs
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Adjacency, Floats, Ints
from gpn_bayes.estimators.hill_climbing import Climb, Climber
from gpn_bayes.estimators.parent_sets import ScoredSets, as_words, gather
from gpn_bayes.estimators.pops import prune
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.learners.parent_sets import ParentSets, undominated
from gpn_bayes.scores.base import padded_sets
from gpn_bayes.scores.discrete import DiscreteBICScorer

# This many sets are scored at a time. More means fewer calls, but older guesses.
BATCH = 64

Set = tuple[int, ...]


class Searched(NamedTuple):
    """The parent sets that a search may choose from.

    Attributes
    ----------
    sets : ParentSets
        Those that can be in a best DAG.
    up_to : int or None
        Where there were too many sets to search them all, the number of parents up to which all were; of the larger
        ones, those that a climb over DAGs scored. None where no set was left out that can be in a best DAG.
    order : ndarray of int64 or None
        An order of the DAG that the climb found, if there was one: its best DAG is as good.
    """

    sets: ParentSets
    up_to: int | None
    order: Ints | None


def searched_sets(problem: Problem, progressbar: bool = False) -> Searched:
    """Return the parent sets to search: all that can be in a best DAG, or as many as there is time for.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators.problem import read_problem
    >>> searched = searched_sets(read_problem(datasets.sachs(transform="log2"), "bge"))
    >>> len(searched.sets.scores), searched.up_to is None
    (27, True)
    """
    scored, up_to = prune(problem, progressbar)
    order = None
    if up_to is not None and problem.store.scorer.closed_form:
        order = graphs.topological_order(_climb(problem))
        larger: list[list[tuple[Set, float]]] = [[] for _ in range(problem.n)]
        for (node, parents), record in problem.store.items():
            if len(parents) > up_to:
                larger[node].append((parents, record.value))
        scored = [_with_larger(*own, more, problem.n) for own, more in zip(scored, larger, strict=True)]
    return Searched(gather(scored, problem.n), up_to, order)


def _with_larger(sets: NDArray[np.int16], scores: Floats, larger: list[tuple[Set, float]], n: int) -> ScoredSets:
    """Return the scored sets of a node and, of some larger ones, those that beat all their subsets."""
    words = as_words(sets, n)
    for parents, value in sorted(larger, key=lambda own: (len(own[0]), own)):
        row = as_words(np.array([parents]), n)
        if not ((words & ~row == 0).all(axis=1) & (scores >= value)).any():
            width = max(len(parents), sets.shape[1])
            sets = np.pad(sets, ((0, 1), (0, width - sets.shape[1])), constant_values=-1)
            sets[-1, : len(parents)] = parents
            words, scores = np.concatenate([words, row]), np.append(scores, value)
    return sets, scores


def anytime_parent_sets(problem: Problem, sets_per_variable: int, progressbar: bool = False) -> tuple[ParentSets, Ints]:
    """Score the most promising parent sets of every node; return those that beat all their subsets, and a good order.

    Parameters
    ----------
    problem : Problem
        What to score.
    sets_per_variable : int
        How many sets of each node to score, beside those that a plain climb scores, and those with one parent more than
        required.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    sets : ParentSets
    order : ndarray of int64
        An order of the DAG that the climb found, which has all its parent sets among these.
    """
    order = graphs.topological_order(_climb(problem))
    known: list[list[Set]] = [[] for _ in range(problem.n)]
    for (node, parents), _ in problem.store.items():
        known[node].append(parents)
    scored = []
    with progress_bar("Scoring", problem.n, progressbar) as advance:
        for node in range(problem.n):
            scored.append(_Explorer(problem, node, known[node]).explore(sets_per_variable))
            advance(1)
    sets = gather(scored, problem.n)
    # Only sets that an order can choose.
    kept = undominated(sets)
    starts = np.append(0, np.cumsum(kept))[sets.starts]
    return ParentSets(starts, sets.words[kept], sets.scores[kept]), order


def _climb(problem: Problem) -> Adjacency:
    """Return the first DAG that no change of one edge makes better; its scores are remembered in the store."""
    climb = Climb(Climber(problem, problem.prior.required))
    climb.climb()
    return climb.climber.adjacency


class _Explorer:
    """The search for good parent sets of one node, from some whose scores are known already."""

    def __init__(self, problem: Problem, node: int, first: Sequence[Set] = ()) -> None:
        self.problem = problem
        self.node = node
        self.required = tuple(problem.required(node))
        self.others = [other for other in problem.allowed(node) if other not in self.required]
        self.known: dict[Set, float] = {}
        # Of each scored set, which parents to add, most promising first, and how good that looks.
        self._extensions: dict[Set, tuple[np.ndarray, np.ndarray]] = {}
        # The next extension of each: minus its guessed score, itself, what it extends, and its rank there.
        self._queue: list[tuple[float, Set, Set, int]] = []
        self._seen: set[Set] = set()
        self._first = [members for members in first if self._is_allowed(members)]
        self._read_charges()

    def explore(self, limit: int) -> ScoredSets:
        """Score this many further sets, the most promising first, and return all that are known."""
        self._score(list(dict.fromkeys([self.required, *self._first])))
        if self.problem.greedy_limit > len(self.required):
            self._explore_extensions(limit)
        padded, _ = padded_sets(self.known)
        return padded.astype(np.int16), np.array(list(self.known.values()))

    def _explore_extensions(self, limit: int) -> None:
        singles = [_with(self.required, other) for other in self.others]
        self._score(singles)
        self._gains = np.full(self.problem.n, -np.inf)
        self._gains[self.others] = [self.known[single] - self.known[self.required] for single in singles]
        for single in singles:
            self._offer(single)
        end = len(self.known) + limit
        while len(self.known) < end and self._queue:
            batch = self._most_promising(min(BATCH, end - len(self.known)))
            self._score(batch)
            for members in batch:
                self._offer(members)

    def _is_allowed(self, members: Set) -> bool:
        chosen = set(members)
        legal = chosen.issuperset(self.required) and chosen.issubset([*self.required, *self.others])
        return legal and len(chosen) <= self.problem.greedy_limit

    def _score(self, sets: list[Set]) -> None:
        values = self.problem.store.values(self.node, sets)
        self.known.update(zip(sets, values.tolist(), strict=True))
        self._seen.update(sets)

    def _offer(self, members: Set) -> None:
        """Put the most promising extension of a scored set into the queue."""
        if len(members) >= self.problem.greedy_limit or self.known[members] == -np.inf:
            return
        guesses = self.known[members] + self._gains - self._configurations_beyond(members) * self._charges
        guesses[list(members)] = -np.inf
        ranked = np.argsort(-guesses, kind="stable")
        self._extensions[members] = (ranked, guesses[ranked])
        self._push(members, 0)

    def _push(self, members: Set, rank: int) -> None:
        others, guesses = self._extensions[members]
        if rank < len(others) and guesses[rank] > -np.inf:
            heappush(self._queue, (-float(guesses[rank]), _with(members, int(others[rank])), members, rank))

    def _most_promising(self, count: int) -> list[Set]:
        batch: list[Set] = []
        while self._queue and len(batch) < count:
            _, extended, members, rank = heappop(self._queue)
            self._push(members, rank + 1)
            if extended not in self._seen:
                self._seen.add(extended)
                batch.append(extended)
        return batch

    def _read_charges(self) -> None:
        """Note what a discrete BIC charges, for each configuration of the others, for each parent to be added."""
        scorer = self.problem.store.scorer
        self._levels = [1] * self.problem.n
        self._charges = np.zeros(self.problem.n)
        if isinstance(scorer, DiscreteBICScorer):
            self._levels = scorer.cardinalities.tolist()
            a_parameter = 0.5 * np.log(scorer.n_rows) * (self._levels[self.node] - 1)
            self._charges = a_parameter * (scorer.cardinalities - 1.0)

    def _configurations_beyond(self, members: Set) -> int:
        """Return how many more configurations a set has than the required parents."""
        return prod(self._levels[i] for i in members) - prod(self._levels[i] for i in self.required)


def _with(members: Set, other: int) -> Set:
    return tuple(sorted((*members, other)))
