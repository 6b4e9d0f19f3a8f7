r"""Potentially optimal parent sets: those that some best DAG can have. For optimisers only, never for samplers.

A set that scores no more than one of its subsets can be left out: the subset closes no cycle that the set doesn't.
That holds for any score, where the subset holds the required edges too.

For the discrete BIC, with m rows and r_i levels, s(P) = -m H(X_i|P) - pen(P) with pen(P) = ln(m)/2 (r_i - 1) |P|, where
|P| counts the configurations of P, three rules tell of sets, and of all their supersets, that a subset is as good
before they are scored (de Campos & Ji 2011; de Campos, Scanagatta, Corani & Zaffalon 2018):

1. |P| > |R| + 2 m ln r_i / ((r_i - 1) ln m), with R the required parents, |R| = 1 without any: s(P) <= -pen(P) since
   H >= 0, and s(R) >= -m ln r_i - pen(R) since H(X_i|R) <= ln r_i; so s(P) < s(R).
2. P a subset of P' that holds R, and pen(P') + s(P) > 0: s(P') <= -pen(P') < s(P), and supersets cost still more. With
   P = R this shuts out what the first rule does, and more; so the first needs no code of its own here.
3. m min{H(X_i|P), H(X_j|P)} <= (r_j - 1) pen(P), for j that isn't required: for any Q that holds P and not j,
   s(Q + j) - s(Q) = m I(X_i; X_j|Q) - (r_j - 1) pen(Q), and I(X_i; X_j|Q) <= min{H(X_i|Q), H(X_j|Q)}, which is no
   larger than with P, while pen(Q) is no smaller; so Q is as good as Q + j.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.estimators.parent_sets import MOST_SETS, ScoredSets, gather, scored_nodes, sets_up_to, tabulated_up_to
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.kernels.learners.parent_sets import ParentSets
from gpn_bayes.kernels.learners.pops import Levels, Rules, best_below, extend
from gpn_bayes.scores.discrete import DiscreteBICScorer

# What a set takes in a table, beside its score.
_TABULATING_SECONDS = 4e-7
# What scoring may take unasked, where many sets are quickly scored.
_SCORING_SECONDS = 15.0


class Pruned(NamedTuple):
    """The parent sets that a best DAG can have, of every node.

    Attributes
    ----------
    scored : list of ScoredSets
        The sets and their scores.
    up_to : int or None
        Where not all sets could be searched, the number of parents up to which they were; None where none was left out
        but those that the user's limit excludes, or that a subset is proved to be as good as.
    """

    scored: list[ScoredSets]
    up_to: int | None


def potentially_optimal_sets(problem: Problem, progressbar: bool = False) -> ParentSets:
    """Return the parent sets that a best DAG can have, with their scores: none that a subset is as good as.

    Parameters
    ----------
    problem : Problem
        What to score.
    progressbar : bool
        Whether to show progress.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators.problem import read_problem
    >>> problem = read_problem(datasets.sachs(transform="log2"), "bge", max_parents=3)
    >>> kept = potentially_optimal_sets(problem)
    >>> print(f"{len(kept.scores)} of {11 * (1 + 10 + 45 + 120)}")
    27 of 1936
    """
    return gather(prune(problem, progressbar).scored, problem.n)


def prune(problem: Problem, progressbar: bool = False) -> Pruned:
    """Score the parent sets of all nodes, and keep those that no subset is as good as; see `Pruned`.

    Where the user stated no limit, sets grow until the rules shut out the rest, or until there are too many.
    """
    if isinstance(problem.store.scorer, DiscreteBICScorer):
        search = _LevelSearch(problem, problem.store.scorer)
        return Pruned(search.run(progressbar), search.up_to)
    if _has_tables(problem):
        return Pruned(_from_tables(problem, progressbar), None)
    limit = tabulated_up_to(problem)
    scored = []
    for node, known in scored_nodes(problem, progressbar, limit):
        removable = np.ones(problem.n, dtype=bool)
        removable[problem.required(node)] = False
        scored.append(_undominated(*known, removable))
    return Pruned(scored, limit if _leaves_out(problem, limit) else None)


def _leaves_out(problem: Problem, limit: int) -> bool:
    """Tell whether a limit that the user didn't state leaves out sets of some node."""
    return not problem.stated and any(len(problem.allowed(node)) > limit for node in range(problem.n))


def _has_tables(problem: Problem) -> bool:
    """Tell whether tables of all subsets of a node's candidates are quick, and lists of sets would be long."""
    scorer = problem.store.scorer
    widest = max(len(problem.allowed(node)) for node in range(problem.n))
    if not scorer.closed_form or widest > MAX_CANDIDATES or sets_up_to(widest, problem.max_parents) <= MOST_SETS:
        return False
    quick: bool = problem.n * 2**widest * (scorer.seconds_per_set + _TABULATING_SECONDS) <= _SCORING_SECONDS
    return quick


def _from_tables(problem: Problem, progressbar: bool) -> list[ScoredSets]:
    scored = []
    with progress_bar("Scoring", problem.n, progressbar) as advance:
        for node in range(problem.n):
            candidates = problem.allowed(node)
            table = problem.store.scorer.table(node, candidates, problem.max_parents)
            required = sum(1 << place for place, other in enumerate(candidates) if other in problem.required(node))
            scored.append(_undominated_of_table(table, np.array(candidates, dtype=np.int16), required))
            advance(1)
    return scored


def _undominated_of_table(table: Floats, candidates: NDArray[np.int16], required: int) -> ScoredSets:
    """Return the sets of a table in bitmask order that score more than each of their subsets with the required."""
    masks = np.arange(len(table))
    best = np.where(masks & required == required, table, -np.inf)
    below = np.full(len(table), -np.inf)
    # First the best of each set and its subsets, one candidate after the other; then the best of those with one less.
    for result in (best, below):
        for place in range(len(candidates)):
            without, with_it = best.reshape(-1, 2, 1 << place).swapaxes(0, 1)
            rows = result.reshape(-1, 2, 1 << place)[:, 1]
            np.maximum(with_it if result is best else rows, without, out=rows)
    (kept,) = np.nonzero((masks & required == required) & ((table > below) | (masks == required)))
    width = int(np.bitwise_count(kept).max(initial=0))
    sets = np.full((len(kept), width), -1, dtype=np.int16)
    left = kept.copy()
    for column in sets.T:
        lowest = np.bitwise_count((left & -left) - 1)
        column[left > 0] = candidates[lowest[left > 0]]
        left &= left - 1
    return sets, table[kept]


def _undominated(sets: NDArray[np.int16], scores: Floats, removable: Bools) -> ScoredSets:
    """Return the sets that score more than each of their subsets."""
    keys: list[NDArray[Any]] = [sets[:, place] for place in reversed(range(sets.shape[1]))]
    order = np.lexsort([np.zeros(len(sets)), *keys])
    sets, scores = np.ascontiguousarray(sets[order]), scores[order]
    sizes = (sets >= 0).sum(axis=1)
    below = best_below(sets, np.argsort(sizes, kind="stable"), scores, removable)
    # The smallest set has nothing below it, and stays even if it scores minus infinity.
    kept = (scores > below) | (sizes == sizes.min())
    return sets[kept], scores[kept]


class _Level(NamedTuple):
    """The open sets of one node and one size: members beside the required, log likelihoods, best scores so far."""

    sets: np.ndarray
    fits: np.ndarray
    best: np.ndarray


class _LevelSearch:
    """Goes through the sets of all nodes by size; what the rules shut out is never scored.

    Attributes
    ----------
    scored : int
        Number of sets scored so far.
    up_to : int or None
        As in `Pruned`.
    """

    def __init__(self, problem: Problem, scorer: DiscreteBICScorer) -> None:
        self._problem, self._scorer = problem, scorer
        self._required = [problem.required(node) for node in range(problem.n)]
        self._rules = self._read_rules()
        self._kept: list[list[ScoredSets]] = [[] for _ in range(problem.n)]
        self.scored = 0
        self.up_to: int | None = None

    def run(self, progressbar: bool = False) -> list[ScoredSets]:
        """Return the sets to keep, of every node."""
        nothing = np.empty((1, 0), dtype=np.int16)
        levels = [self._score(node, nothing, np.array([-np.inf])) for node in range(self._problem.n)]
        for size in range(1, self._problem.max_parents + 1):
            extended = self._extended(_gathered(levels))
            if extended is None or not any(len(below) for _, below in extended):
                break
            levels = []
            with progress_bar(f"Scoring sets of {size}", self._problem.n, progressbar) as advance:
                for node, own in enumerate(extended):
                    levels.append(self._score(node, *own))
                    advance(1)
        return [self._collected(node) for node in range(self._problem.n)]

    def _extended(self, levels: Levels) -> "list[tuple[NDArray[np.int16], Floats]] | None":
        """Return the sets with one member more to score, and the best below each; None where they are too many."""
        size = levels.sets.shape[1]
        extended: list[tuple[NDArray[np.int16], Floats]] = []
        most = max(MOST_SETS * self._problem.n, _SCORING_SECONDS / self._scorer.seconds_per_set)
        room = np.inf if self._problem.stated else most - self.scored
        for node, required in enumerate(self._required):
            if len(required) + size < self._problem.max_parents:
                extended.append(extend(self._rules, levels, node))
            else:
                extended.append((np.empty((0, size + 1), dtype=np.int16), np.empty(0)))
            room -= len(extended[-1][1])
            if room < 0:
                self.up_to = size + min(map(len, self._required))
                return None
        return extended

    def _score(self, node: int, sets: NDArray[np.int16], below: Floats) -> _Level:
        """Score new sets, and keep those that beat all sets below them."""
        required = np.tile(np.array(self._required[node], dtype=np.int16), (len(sets), 1))
        whole = np.concatenate([required, sets], axis=1)
        scores = self._scorer.score_padded(node, whole)
        self.scored += len(sets)
        better = scores > below
        self._kept[node].append((np.sort(whole[better], axis=1), scores[better]))
        sizes = self._rules.cardinalities[sets].prod(axis=1, dtype=np.float64)
        return _Level(sets, scores + self._rules.penalties[node] * sizes, np.maximum(scores, below))

    def _collected(self, node: int) -> ScoredSets:
        width = max(sets.shape[1] for sets, _ in self._kept[node])
        filled = [
            np.pad(sets, ((0, 0), (0, width - sets.shape[1])), constant_values=-1) for sets, _ in self._kept[node]
        ]
        return np.concatenate(filled), np.concatenate([scores for _, scores in self._kept[node]])

    def _read_rules(self) -> Rules:
        problem, scorer = self._problem, self._scorer
        cardinalities = scorer.cardinalities
        each = 0.5 * np.log(scorer.n_rows) * (cardinalities - 1.0)
        required = np.ascontiguousarray(problem.prior.required)
        penalties = each * [cardinalities[parents].prod(dtype=np.float64) for parents in self._required]
        pair_fits = np.empty((problem.n, problem.n))
        for node in range(problem.n):
            # Itself, on the diagonal, gives way to nobody.
            others = np.arange(problem.n, dtype=np.int16)[:, None].copy()
            others[node] = -1
            sizes = np.where(np.arange(problem.n) == node, 1, cardinalities)
            pair_fits[:, node] = scorer.score_padded(node, others) + each[node] * sizes
        return Rules(cardinalities, penalties, ~problem.prior.forbidden & ~required, required, pair_fits)


def _gathered(levels: list[_Level]) -> Levels:
    starts = np.cumsum([0, *(len(level.sets) for level in levels)])
    sets, fits, best = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    return Levels(starts, sets, fits, best)
