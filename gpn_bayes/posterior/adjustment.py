"""What to adjust for: sets of variables that satisfy the back-door criterion, averaged over DAGs."""

import warnings
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.estimate import Estimate

_PACKAGE = (str(Path(__file__).parents[1]),)
# Adjustment sets are looked for in this many DAGs, the likeliest; their probabilities are those over all.
_DAGS_FOR_SETS = 300


def adjustment_sets(post: Draws, cause: Hashable, outcome: Hashable, most: int = 10) -> pd.DataFrame:
    """Return the sets of variables that are most probably enough to adjust for, and no larger than they must be.

    A regression of the outcome on the cause and a back-door set (Pearl 1995) has the effect as the cause's
    coefficient, if relations are linear. The sets are minimal ones of drawn DAGs: of the parents of the cause, and
    of all variables that don't come after it.

    Parameters
    ----------
    cause, outcome : str or int
        The effect.
    most : int, default 10
        How many sets to return: those that are found most often.

    Returns
    -------
    DataFrame
        Columns `adjustment_set`, a tuple of names; `probability`, that it is a back-door set; and `mcse`. By
        falling probability. Where pairs with the cause or the outcome can't be joined under the score and the
        constraints of the run, the sets can't hold them for want of an edge: a warning says so, and the column
        `unexamined` names these variables.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.adjustment_sets("erk", "akt").round(2).to_numpy().tolist()
    [[(), 0.5, 0.0]]
    """
    i, j = graphs.node_pair(cause, outcome, post.names)
    check_count("most", most, 1)
    distinct, _, inverse = post._distinct
    share = np.bincount(inverse, post.weights.ravel()) / post.weights.sum()
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    likeliest = np.argsort(-share, kind="stable")[:_DAGS_FOR_SETS]
    for k in likeliest:
        for members in graphs.minimal_back_door_sets(graphs.unpack(distinct[k], len(post.names)), i, j):
            found[members] += float(share[k])
    rows = []
    for members in sorted(found, key=found.__getitem__, reverse=True)[:most]:
        answer = is_adjustment_set(post, cause, outcome, members)
        rows.append((tuple(post.names[v] for v in members), answer.value, answer.mcse))
    table = pd.DataFrame(rows, columns=["adjustment_set", "probability", "mcse"])
    _warn_of_unexamined(post, table, i, j)
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _warn_of_unexamined(post: Draws, table: pd.DataFrame, cause: int, outcome: int) -> None:
    """Say, also in the table, with which variables neither the cause nor the outcome could be joined."""
    note = post._note_on_effect(cause, outcome)
    if not note:
        return
    asked = {cause, outcome}
    others = sorted({v for pair in post.record.impossible_pairs if asked & set(pair) for v in set(pair) - asked})
    table["unexamined"] = [tuple(post.names[v] for v in others)] * len(table)
    warnings.warn(f"sets are found {note}", UserWarning, skip_file_prefixes=_PACKAGE)


def is_adjustment_set(post: Draws, cause: Hashable, outcome: Hashable, variables: Sequence[Hashable]) -> Estimate:
    """Return the probability that a set of variables satisfies the back-door criterion, with its error.

    Parameters
    ----------
    cause, outcome : str or int
        The effect.
    variables : sequence of str or int
        The set; it may be empty.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
    >>> post.is_adjustment_set("erk", "akt", ["raf"]).value < post.is_adjustment_set("erk", "akt", []).value
    True
    """
    i, j = graphs.node_pair(cause, outcome, post.names)
    note = post._note_on_effect(i, j)
    if isinstance(variables, str):
        raise ValueError(f"variables must be a list of variables; received {shown(variables)}")
    given = [graphs.node_index(name, post.names) for name in variables]
    return post._estimate(
        lambda dags: np.array([graphs.is_back_door_set(dag, i, j, given) for dag in dags], dtype=float)
    ).with_note(note)
