"""What a run costs, estimated before it starts, and what is decided by it: the sampler and the search space.

All times are CPU seconds of one 2-core machine, of default runs (4 chains of 3,000 draws, 10 n steps before each) on
500 rows of linear data. Only their ratios matter.

The exact sampler took 0.3 s for 12 variables, 1.6 s for 14, 8 s for 16 and 22 s for 17, where it holds 1 GB. MCMC over
17 variables takes about 20 s, so "auto" changes over after 16.

MCMC with all other variables as candidates took 14 s with 14 candidates per node, 26 s with 15, about 100 s with 17 and
470 s with 19, as drawing a parent set runs through the table of all sets. And with 19 candidates, most of which have
nothing to do with the node, chains that were limited to 3 parents per node did not agree, while those over 10
candidates that were found did. So a node keeps all others while they are at most 14.

Beyond, candidates are found, and every node may have one further parent from outside them. That leaves out the DAGs in
which a node has two parents from outside. With only those candidates that tests and the score favour, these were 10 to
35 % of the posterior of 14 to 16 variables, and edge probabilities were off by up to 0.1. So lists are filled up to 14
by the score, as far as their tables take a small share of the run, and a node that would otherwise leave out more than
0.2 % of its parent sets, as draws show, has up to 16. With 17 variables, edge probabilities were then off from those of
the exact sampler by 0.01 at 2 parents per node and by 0.015 at 3, which is Monte Carlo error; with no more than 14, by
0.02 and 0.09. Giving 16 to every node that used a parent from outside took 1.3 times as long and was no better.

A Gaussian-process score takes about 10 ms, a thousand times the rest, so that only sets that count are scored (see
`sampling.slow_scores`): for 14 variables about 3,500 of 33,320, for which 65 s took the place of 438 s. This draws in
rounds, so that the exact sampler, which takes half its time at 15, is left at 16: there it took 116 s, 46 of
them for drawing, and 20 variables by MCMC 112 s.
"""

from math import comb

import numpy as np

from gpn_bayes.mcmc.tables import MAX_TABULATED
from gpn_bayes.scores.base import Scorer

AUTO_EXACT_NODES = 16
AUTO_EXACT_SLOW = 15
# Sets with a parent from outside, at 20 bytes each.
MAX_OUTSIDE = 42_000_000
# Sorting the scores of a set among those of its table, and summing them.
_TABULATING_SECONDS = 4e-7
# A step of a chain over tables of 14 candidates.
_STEP_SECONDS = 8e-6
# Filling lists up may take this share of the time of the chains, and this time at most.
_FILLING_SHARE = 0.12
_FILLING_SECONDS = 3.0
# Tables as large as they may grow take this time at most, if all of them did, and hold this many candidates.
_GROWING_SECONDS = 2.0
_MOST_GROWN = 16


def keeps_all(others: int) -> bool:
    """Return whether MCMC is best off with all others that may be parents of a node as its candidates.

    Examples
    --------
    >>> keeps_all(14), keeps_all(15)
    (True, False)
    """
    return others <= MAX_TABULATED


def number_of_sets(candidates: int, max_parents: int | None = None) -> int:
    """Return how many subsets of the candidates have no more than a number of members.

    Examples
    --------
    >>> number_of_sets(11, 5), number_of_sets(4)
    (1024, 16)
    """
    most = candidates if max_parents is None else min(max_parents, candidates)
    return sum(comb(candidates, size) for size in range(most + 1))


def most_candidates(n: int) -> int:
    """Return how many candidates each of n nodes can have beside parents from outside, as far as memory goes.

    Examples
    --------
    >>> most_candidates(40), most_candidates(100), most_candidates(1024)
    (14, 12, 5)
    """
    return min(MAX_TABULATED, int(np.log2(MAX_OUTSIDE / n**2)))


def filled_up_to(n: int, scorer: Scorer, steps: int | None = None) -> int:
    """Return how many candidates each of n nodes gets at least where they are found; 0 for slow scores.

    Parameters
    ----------
    n : int
        Number of variables.
    scorer : Scorer
        The score.
    steps : int, optional
        Steps that all chains take together; many if not given.

    Examples
    --------
    >>> from gpn_bayes.scores import BGe
    >>> [filled_up_to(n, BGe().bind(np.random.default_rng(1).normal(size=(9, n)))) for n in (18, 26, 40, 100)]
    [14, 14, 12, 9]
    >>> filled_up_to(26, BGe().bind(np.random.default_rng(1).normal(size=(9, 26))), steps=100_000)
    8
    """
    if not scorer.closed_form:
        return 0
    seconds = _FILLING_SECONDS if steps is None else min(_FILLING_SECONDS, _FILLING_SHARE * _STEP_SECONDS * steps)
    return _largest(n, scorer, most_candidates(n), seconds)


def grown_up_to(n: int, scorer: Scorer) -> int:
    """Return how many candidates each of n nodes has at most when draws have shown which ones are missing.

    Examples
    --------
    >>> from gpn_bayes.scores import BGe
    >>> [grown_up_to(n, BGe().bind(np.random.default_rng(1).normal(size=(9, n)))) for n in (18, 20, 22, 40)]
    [16, 15, 14, 14]
    """
    memory = most_candidates(n)
    return max(memory, _largest(n, scorer, _MOST_GROWN, _GROWING_SECONDS)) if scorer.closed_form else memory


def _largest(n: int, scorer: Scorer, most: int, seconds: float) -> int:
    """Return the largest number of candidates whose tables, with all parents from outside, take only some seconds."""
    per_set = _TABULATING_SECONDS + scorer.seconds_per_set
    # With all others but one as candidates, and that one as the parent from outside, no parent set is left out.
    sizes = range(min(most, n - 2) + 1)
    return max((k for k in sizes if n * (n - k) * 2**k * per_set <= seconds), default=0)
