"""All parent sets a node may have, with their scores: what searches over orders choose from."""

from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Adjacency, Floats, Ints, Words
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.learners.parent_sets import ParentSets

# Members of each set, ascending, then -1; and the scores.
ScoredSets = tuple[NDArray[np.int16], Floats]

# Unasked, as many parents are tabulated as keep the sets of every node below this.
MOST_SETS = 50_000


def scored_nodes(
    problem: Problem, progressbar: bool = False, limit: int | None = None
) -> Iterator[tuple[int, ScoredSets]]:
    """Yield each node with all of its parent sets that hold the required edges, and their scores.

    Parameters
    ----------
    problem : Problem
        What to score.
    progressbar : bool
        Whether to show progress.
    limit : int, optional
        The largest number of parents; by default that of the problem.
    """
    scorer = problem.store.scorer
    limit = problem.max_parents if limit is None else limit
    with progress_bar("Scoring", problem.n, progressbar) as advance:
        for node in range(problem.n):
            sets, values = scorer.scores_up_to(node, problem.allowed(node), limit)
            complete = np.ones(len(sets), dtype=bool)
            for parent in problem.required(node):
                complete &= (sets == parent).any(axis=1)
            yield node, (sets[complete], values[complete])
            advance(1)


def tabulated_up_to(problem: Problem) -> int:
    """Return how many parents a table of all sets covers: the problem's limit if the user stated it or it costs little.

    Examples
    --------
    >>> from gpn_bayes.estimators.problem import read_problem
    >>> rows = np.random.default_rng(1).normal(size=(30, 40))
    >>> [tabulated_up_to(read_problem(rows[:, :n], "bge")) for n in (9, 16, 25, 40)]
    [8, 15, 4, 3]
    """
    if problem.stated:
        return problem.max_parents
    most = problem.store.scorer.default_max_parents
    largest = problem.max_parents if most is None else min(problem.max_parents, most)
    widest = max(len(problem.allowed(node)) for node in range(problem.n))
    size = 1
    while size < largest and sets_up_to(widest, size + 1) <= MOST_SETS:
        size += 1
    return max(min(size, problem.max_parents), int(problem.prior.required.sum(axis=0).max()))


def sets_up_to(candidates: int, size: int) -> int:
    """Return how many sets of at most that size there are.

    Examples
    --------
    >>> sets_up_to(4, 2), sets_up_to(3, 9)
    (11, 8)
    """
    return sum(comb(candidates, own) for own in range(size + 1))


def gather(scored: Sequence[ScoredSets], n: int) -> ParentSets:
    """Put the scored sets of all nodes together, best first; of equal scores the smaller set, then the lower indices.

    Examples
    --------
    >>> sets = gather([(np.array([[-1], [1]]), np.array([-3.0, -2.0])), (np.array([[-1]]), np.array([-1.0]))], 2)
    >>> sets.starts.tolist(), sets.words.ravel().tolist(), sets.scores.tolist()
    ([0, 2, 3], [2, 0, 0], [-2.0, -3.0, -1.0])
    """
    ranked = [_ranked(sets, values) for sets, values in scored]
    starts = np.cumsum([0, *(len(values) for _, values in ranked)])
    return ParentSets(
        starts.astype(np.int64),
        np.concatenate([as_words(sets, n) for sets, _ in ranked]),
        np.concatenate([values for _, values in ranked]),
    )


def _ranked(sets: NDArray[np.int16], values: Floats) -> ScoredSets:
    keys: list[NDArray[Any]] = [sets[:, column] for column in reversed(range(sets.shape[1]))]
    order = np.lexsort([*keys, (sets >= 0).sum(axis=1), -values])
    return sets[order], np.ascontiguousarray(values[order], dtype=np.float64)


def as_words(sets: NDArray[np.integer], n: int) -> Words:
    """Return padded rows of indices as sets of nodes in 64-bit words.

    Examples
    --------
    >>> as_words(np.array([[0, 1], [65, -1]]), 70).tolist()
    [[3, 0], [0, 2]]
    """
    words = np.zeros((len(sets), (n + 63) // 64), dtype=np.uint64)
    for column in sets.T:
        (present,) = np.nonzero(column >= 0)
        member = column[present].astype(np.int64)
        words[present, member >> 6] |= np.uint64(1) << (member & 63).astype(np.uint64)
    return words


def members(words: Words) -> list[int]:
    """Return the nodes in a set of nodes.

    Examples
    --------
    >>> members(np.array([3, 2], dtype=np.uint64))
    [0, 1, 65]
    """
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def adjacency_of(sets: ParentSets, rows: Ints) -> Adjacency:
    """Return the adjacency matrix of the DAG in which each node has the parent set of its row."""
    n = len(rows)
    adjacency = np.zeros((n, n), dtype=np.int8)
    for node, row in enumerate(rows):
        adjacency[members(sets.words[row]), node] = 1
    return adjacency
