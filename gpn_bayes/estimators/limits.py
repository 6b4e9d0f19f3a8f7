"""What learners leave out, in words: limits that nobody asked for, and pairs that can't be joined."""

import warnings
from pathlib import Path

from gpn_bayes._util.types import Adjacency
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.posterior.impossible_pairs import listed_pairs

_PACKAGE = (str(Path(__file__).parents[1]),)


def warn_of_sets(up_to: int | None) -> None:
    """Say that parent sets beyond some size weren't all searched, where that is so."""
    if up_to is not None:
        warnings.warn(
            f"not all parent sets could be searched: all of up to {up_to} parents were, and of larger ones those that "
            "a climb over DAGs met; max_parents= sets a limit within which all are searched; HillClimbing needs none",
            UserWarning,
            skip_file_prefixes=_PACKAGE,
        )


def warn_of_impossible_pairs(problem: Problem) -> None:
    """Say which pairs the score and the constraints leave without an edge, whatever the data say."""
    pairs = list(problem.impossible_pairs)
    if pairs:
        them = "they have" if len(pairs) > 1 else "it has"
        warnings.warn(
            f"{len(pairs)} pair{'s' * (len(pairs) > 1)} of variables can't be joined in either direction: "
            f"{listed_pairs(pairs, problem.names)}: the score has no edge one way, and tiers or forbidden edges rule "
            f"out the other; the graph takes for granted that {them} no edge",
            UserWarning,
            skip_file_prefixes=_PACKAGE,
        )


def warn_of_limit(problem: Problem, adjacency: Adjacency, limit: int) -> None:
    """Say that a node has as many parents as a search takes unasked, and might have more, where one does."""
    counts = adjacency.sum(axis=0)
    full = [i for i in range(problem.n) if counts[i] == limit < len(problem.allowed(i))]
    if full and not problem.stated:
        reason = "sets are slow to score" if limit == problem.max_parents else f"there are {problem.data.n_rows} rows"
        warnings.warn(
            f"{problem.names[full[0]]!r} has {limit} parents, the limit where none is stated, since {reason}; "
            "max_parents= states another",
            UserWarning,
            skip_file_prefixes=_PACKAGE,
        )
