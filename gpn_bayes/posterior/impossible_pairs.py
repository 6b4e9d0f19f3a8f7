"""Pairs that can't be joined: the score has no edge one way, and the constraints of a run rule out the other.

Under `cg` and `bic` no number causes a category. With tiers, a category may then have no edge to a number of an earlier
tier in either direction, whatever the data say: an effect is not adjusted for such a number, however it confounds.
"""

from collections.abc import Collection, Sequence

import numpy as np

from gpn_bayes._util.types import Bools
from gpn_bayes.posterior.run_record import RunRecord

_LISTED = 8
# Scores of tables of numbers and categories that have linear equations for numbers alone.
OF_MIXED = ("cg", "bic")


def impossible_pairs(impossible: Bools | None, forbidden: Bools) -> list[list[int]]:
    """Return the pairs that only the score and the constraints together leave without an edge.

    Pairs that the constraints alone rule out are what the user asked for.

    Parameters
    ----------
    impossible : ndarray of bool, shape (n, n), optional
        Edges that have no score, rows parents.
    forbidden : ndarray of bool, shape (n, n)
        Edges that are forbidden, or against the tiers.

    Examples
    --------
    >>> from_number = np.array([[False, True, True], [False, False, False], [False, False, False]])
    >>> earlier = np.array([[False, False, False], [True, False, False], [True, True, False]])
    >>> impossible_pairs(from_number, earlier)
    [[0, 1], [0, 2]]
    """
    if impossible is None:
        return []
    neither = (impossible | forbidden) & (impossible | forbidden).T & ~(forbidden & forbidden.T)
    pairs: list[list[int]] = np.argwhere(np.triu(neither, 1)).tolist()
    return pairs


def pairs_of(record: RunRecord, about: Collection[int] = ()) -> list[tuple[int, int]]:
    """Return the pairs that can't be joined, as the record of a run has them.

    Parameters
    ----------
    record : RunRecord
        That of the posterior.
    about : collection of int
        Variables that are asked about: the pairs with one of them come first.

    Examples
    --------
    >>> pairs_of(RunRecord.read({"impossible_pairs": [[0, 1], [2, 3]]}), about=[3])
    [(2, 3), (0, 1)]
    """
    return sorted(record.impossible_pairs, key=lambda pair: not set(pair) & set(about))


def listed_pairs(pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> str:
    """Return pairs as text, and how many more there are.

    Examples
    --------
    >>> listed_pairs([(0, 1), (2, 1)], ["age", "treat", "educ"])
    'age - treat, educ - treat'
    """
    more = len(pairs) - _LISTED
    shown = ", ".join(f"{names[i]} - {names[j]}" for i, j in pairs[:_LISTED])
    return f"{shown}{f' and {more} more' if more > 0 else ''}"


def reason(record: RunRecord) -> str:
    """Return in words why pairs can't be joined.

    Examples
    --------
    >>> settings = {"score": {"name": "cg"}, "impossible_pairs": [[0, 1]]}
    >>> settings["prior"] = {"tiers": [0, 1], "forbidden": [[1, 0]]}
    >>> reason(RunRecord.read(settings))
    "under the score 'cg' no number causes a category, and tiers rule out the other direction"
    """
    name, tiers = record.score_name, record.prior.tiers
    # Tiers forbid one direction of every pair that they part.
    by_tiers = {tiers is not None and tiers[i] != tiers[j] for i, j in pairs_of(record)}
    constraints = " and ".join(["tiers"] * (True in by_tiers) + ["forbidden edges"] * (False in by_tiers))
    rule = "no number causes a category" if name in OF_MIXED else "one direction has no score"
    return f"under the score {name!r} {rule}, and {constraints} rule out the other direction"


def remedy(record: RunRecord) -> str:
    """Return what can join such pairs, with the time that it takes where that is long; empty where nothing is known."""
    return f"{record.can_join} can join them" if record.can_join else ""


def assumption(record: RunRecord, names: Sequence[str]) -> list[str]:
    """Return what is taken for granted of such pairs, in a sentence; none where there are no such pairs.

    Examples
    --------
    >>> settings = {"score": {"name": "cg"}, "impossible_pairs": [[0, 1]], "can_join": "score='gp'"}
    >>> settings["prior"] = {"tiers": [0, 1], "forbidden": [[1, 0]]}
    >>> assumption(RunRecord.read(settings), ["age", "treat"])
    ["1 pair has no edge in either direction, whatever the data say: age - treat (under the score 'cg' no number causes
    a category, and tiers rule out the other direction; score='gp' can join them)."]
    """
    text = _told(record, names)
    return [f"{text}."] if text else []


def note_on_pair(record: RunRecord, i: int, j: int) -> str:
    """Return what to say beside the probability of an edge; nothing where the pair can be joined.

    Examples
    --------
    >>> settings = {"score": {"name": "cg"}, "impossible_pairs": [[0, 1]], "can_join": "score='gp'"}
    >>> settings["prior"] = {"tiers": [0, 1], "forbidden": [[1, 0]]}
    >>> note_on_pair(RunRecord.read(settings), 1, 0)
    "whatever the data say: under the score 'cg' no number causes a category, and tiers rule out the other direction;
    score='gp' can join them"
    """
    concerned = {i, j} in map(set, pairs_of(record))
    return f"whatever the data say: {_because(record)}" if concerned else ""


def note_on_effect(record: RunRecord, names: Sequence[str], cause: int, outcome: int) -> str:
    """Return what to say beside an effect, or a set to adjust for; nothing where all pairs can be joined.

    Examples
    --------
    >>> settings = {"score": {"name": "cg"}, "impossible_pairs": [[0, 1]], "can_join": "score='gp'"}
    >>> settings["prior"] = {"tiers": [0, 1], "forbidden": [[1, 0]]}
    >>> note_on_effect(RunRecord.read(settings), ["age", "treat", "wage"], 1, 2)
    "taking for granted that 1 pair has no edge in either direction, whatever the data say: age - treat (under
    the score 'cg' no number causes a category, and tiers rule out the other direction; score='gp' can join them)"
    """
    text = _told(record, names, (cause, outcome))
    return f"taking for granted that {text}" if text else ""


def _told(record: RunRecord, names: Sequence[str], about: Collection[int] = ()) -> str:
    pairs = pairs_of(record, about)
    if not pairs:
        return ""
    counted = "1 pair has" if len(pairs) == 1 else f"{len(pairs)} pairs have"
    listed = listed_pairs(pairs, names)
    return f"{counted} no edge in either direction, whatever the data say: {listed} ({_because(record)})"


def _because(record: RunRecord) -> str:
    return "; ".join(filter(None, [reason(record), remedy(record)]))
