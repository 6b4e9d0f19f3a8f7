"""Slower scores that fit what a quicker one leaves: what they would take on a table, and how to ask less of them.

Advice must be followable, so a run is priced before it is suggested. All times are CPU seconds of one 2-core machine,
on the rows of the demo (11 variables); only their order of magnitude matters. A score of two parents took

==================== ======== ======== ======== ========
rows                      100      200      400      853
==================== ======== ======== ======== ========
kernel="interaction"      0.8      2.4      9.4       50
noise="student"           0.6      1.0      2.0      4.6
==================== ======== ======== ======== ========

Three parents take as long with interactions and two to three times as long with Student t noise, with which a single
parent takes half; a single parent has no interactions, and takes what it takes under the additive kernel. Laplace's
approximation, under which DAGs are drawn, takes a tenth and a thirtieth. Of the demo's 7,018 parent sets a run scores
1,454 so, and computes the score itself for the 573 that are drawn; of 14 variables about 3,500, of 20 about 10,000.
With the additive kernel and normal noise, all of that takes 0.02 s a set, whatever the number of rows. With
interactions three columns took 37 s (500 rows), four 31 s (200) and five 32 s (100); with Student t noise, three took
29 s (853).
"""

from collections.abc import Sequence
from math import comb

from gpn_bayes.data import CATEGORICAL, Dataset
from gpn_bayes.data.interventions import UnknownTargets
from gpn_bayes.scores.gp.dense import LARGEST_DENSE
from gpn_bayes.scores.mixed import categories_among

# A run that takes longer is not advised.
LONGEST = 1800.0
INTERACTION, STUDENT, CURVES = "interaction", "student", "curves"
# The most parents that Gaussian processes take by default, up to how many sets all are scored, how many are scored of
# more variables (times their number cubed), and what share of them are in DAGs that are drawn.
_MOST_PARENTS, _ALL, _GROWTH, _DRAWN = 5, 1000, 1.2, 0.4
# The number of parents in most sets that are scored.
_OFTEN = 3
# Under Gaussian processes: sets of a node that are scored, and those that are drawn, of which there are more where
# relations are weak; and what a score takes at 1,000 rows, of a number, and of a category of two levels with two
# parents, by Laplace's approximation and by importance sampling (see docs/guide/gaussian_processes.md).
_SETS_PER_NODE, _SETS_DRAWN = 250, 50
_PROCESS_SECONDS, _LAPLACE_SECONDS, _IMPORTANCE_SECONDS = 0.02, 0.07, 2.3
# Rows of a part of the table on which whole covariance matrices take seconds.
_FEW_ROWS = 500


def run_seconds(kind: str, variables: int, rows: int) -> float:
    """Return about how long a run under a slower score takes, in CPU seconds.

    Parameters
    ----------
    kind : {"interaction", "student", "curves"}
        Gaussian processes with the interaction kernel, with Student t noise, or as they are by default.
    variables, rows : int
        The size of the table.

    Examples
    --------
    >>> [round(run_seconds(kind, 11, 853) / 3600, 2) for kind in ("interaction", "student", "curves")]
    [11.26, 2.11, 0.01]
    >>> round(run_seconds("interaction", 3, 500)), round(run_seconds("student", 3, 853))
    (49, 26)
    """
    sets = variables * sum(comb(variables - 1, size) for size in range(min(_MOST_PARENTS, variables - 1) + 1))
    scored = min(sets, max(_ALL, _GROWTH * variables**3))
    drawn = scored if sets <= _ALL // 10 else _DRAWN * scored
    # Of few variables, half of the others are parents on average.
    parents = min(_OFTEN, (variables - 1) / 2)
    if kind == INTERACTION:
        # A single parent has no interactions.
        share = 1.0 - variables**2 / sets
        parents = max(2.0, parents)
        own: float = min(1.0, 0.3 * parents**1.7) * (0.006 * rows + 7 * (rows / 400) ** 2.5)
        return 0.02 * scored + share * (scored * 0.1 * own + drawn * own)
    if kind == STUDENT:
        own = float(0.0025 * parents**1.5 * rows)
        return scored * 0.03 * own + drawn * own
    return 0.02 * scored


def gp_seconds(rows: int, numbers: int, levels: Sequence[int]) -> float:
    """Return roughly how long a run under Gaussian processes takes, of a table of numbers and categories.

    Most of it goes into categories, whose scores take longer and longer with rows: by Laplace's approximation for all
    sets that are looked at, and by importance sampling for those drawn.

    Parameters
    ----------
    rows : int
        How many rows the table has.
    numbers : int
        How many of its columns are numbers.
    levels : sequence of int
        The number of levels of each of the others.

    Examples
    --------
    >>> round(gp_seconds(1_000, 8, [2, 3, 2, 3, 2, 2, 2]) / 60), round(gp_seconds(16_000, 5, [2] * 5) / 3600)
    (27, 9)
    """
    sets = min(2 ** (numbers + len(levels) - 1), _SETS_PER_NODE)
    thousands = rows / 1000
    of_category = (
        sets * _LAPLACE_SECONDS * thousands**1.2 + min(sets, _SETS_DRAWN) * _IMPORTANCE_SECONDS * thousands**1.4
    )
    seconds: float = numbers * sets * _PROCESS_SECONDS * thousands + of_category * sum(
        (own - 1) ** 1.8 for own in levels
    )
    return seconds


def in_words(seconds: float) -> str:
    """Return a time as a message names it.

    Examples
    --------
    >>> in_words(20), in_words(340), in_words(5400), in_words(400_000)
    ('less than a CPU minute', 'about 6 CPU minutes', 'about 1.5 CPU hours', 'about 5 CPU days')
    """
    if seconds < 60:
        return "less than a CPU minute"
    if seconds < 3600:
        minutes = round(seconds / 60)
        return f"about {minutes} CPU minute{'s' if minutes > 1 else ''}"
    if seconds < 48 * 3600:
        return f"about {seconds / 3600:.1f} CPU hours"
    return f"about {seconds / 86400:.0f} CPU days" if seconds < 365 * 86400 else "more than a CPU year"


def curves_advice(data: Dataset) -> str:
    """Return what to do where lines can't follow curves, with the time that it takes where that is long."""
    seconds = run_seconds(CURVES, len(data.names), data.n_rows)
    if seconds < 60:
        return "try score='gp'."
    if seconds <= LONGEST:
        return f"try score='gp', which takes {in_words(seconds)} on this table."
    return (
        f"transform columns; score='gp' follows curves, but takes {in_words(seconds)} on this table, and less on fewer "
        "variables."
    )


def mixed_advice(data: Dataset) -> str:
    """Return what to do where lines within categories don't follow the data, with the time that it takes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> table = {"dose": np.random.default_rng(1).lognormal(size=80), "sex": ["f", "m"] * 40}
    >>> mixed_advice(Dataset.read(pd.DataFrame(table)))
    "or compare with score='gp', which takes less than a CPU minute on this table."
    """
    among = categories_among(data)
    levels = [len(own) for own, category in zip(data.levels, among, strict=True) if own and category]
    seconds = gp_seconds(data.n_rows, len(data.names) - len(levels), levels)
    if seconds <= LONGEST:
        return f"or compare with score='gp', which takes {in_words(seconds)} on this table."
    return f"or compare with score='gp' on fewer columns or rows; on this table it takes {in_words(seconds)}."


def interaction_advice(data: Dataset, family: Sequence[int]) -> str:
    """Return what to do where parents act together: the interaction kernel, if that is done before long.

    Parameters
    ----------
    data : Dataset
        The table.
    family : sequence of int
        A variable and two of its parents that act together.
    """
    score, products = "score=gpn.scores.GP(kernel='interaction')", "add a column of products"
    if data.interventions is not None or any(data.kinds[v] in CATEGORICAL for v in family):
        return f"{products}."
    whole = run_seconds(INTERACTION, len(data.names), data.n_rows)
    all_numbers = not any(kind in CATEGORICAL for kind in data.kinds)
    if all_numbers and whole <= LONGEST:
        return f"try {score}, in Python, which takes {in_words(whole)} on this table."
    taken = f"takes {in_words(whole)} on this table"
    if not all_numbers:
        taken = "takes tables of numbers only"
    elif data.n_rows > LARGEST_DENSE:
        taken = f"takes at most {LARGEST_DENSE:,} rows"
    return (
        f"{score}, in Python, can, but {taken}; on {_part(data, family)} it takes "
        f"{in_words(run_seconds(INTERACTION, len(family), min(data.n_rows, _FEW_ROWS)))}. Or {products}."
    )


def student_advice(data: Dataset, family: Sequence[int]) -> str:
    """Return what to do about heavy tails: Student t noise, if that is done before long.

    Parameters
    ----------
    data : Dataset
        The table.
    family : sequence of int
        A variable whose noise has heavy tails, and its parents.
    """
    score, transform = "score=gpn.scores.GP(noise='student')", "transform the column"
    if isinstance(data.interventions, UnknownTargets):
        return f"{transform}."
    whole = run_seconds(STUDENT, len(data.names), data.n_rows)
    if whole <= LONGEST:
        return f"{transform}, or try {score}, in Python, which takes {in_words(whole)} on this table."
    slow = f"{transform}; {score}, in Python, allows for them, but takes {in_words(whole)} on this table"
    part = run_seconds(STUDENT, len(family), data.n_rows)
    if len(family) < 2 or part > LONGEST:
        return f"{slow}, and less on fewer variables or rows."
    return f"{slow}, and {in_words(part)} on {_columns(data, family)}."


def _part(data: Dataset, columns: Sequence[int]) -> str:
    """Return how to take some columns of a table, and some of its rows where there are many."""
    rows = f".sample({_FEW_ROWS}, random_state=1)" if data.n_rows > _FEW_ROWS else ""
    return f"{_columns(data, columns)}{rows}"


def _columns(data: Dataset, columns: Sequence[int]) -> str:
    return f"data[{[data.names[v] for v in columns]!r}]"
