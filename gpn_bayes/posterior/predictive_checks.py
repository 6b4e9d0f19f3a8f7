"""A posterior's predictions beside the data: tables drawn anew, what parents leave unexplained, and ranks of rows."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes._util.types import Floats
from gpn_bayes.posterior import densities
from gpn_bayes.posterior.densities import RowsLeftOut, rows_left_out
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.outcomes import drawn_variable, replicated, resampled
from gpn_bayes.posterior.queries import edge_probabilities

# Over how many DAGs to average by default, where densities are quick and where they take long.
_QUICK_DRAWS, _SLOW_DRAWS = 1000, 100
# Pairs are shown if the edge is at least this probable.
_LEAST_PROBABLE = 0.1
# Of more variables, those whose ranks are the least uniform are returned.
_MOST_VARIABLES = 12
# Marks the random numbers of ranks: others of the same seed may stand behind the data.
_RANKS = 7
_PURPOSE = "predictive checks"


class VariableCheck(NamedTuple):
    """One variable of the data beside what a posterior predicts of it.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple
        Its levels, where it is a category: all values are then codes of these.
    observed : ndarray of shape (row,)
        The data.
    simulated : ndarray of shape (table, row)
        Tables drawn anew, each from a single DAG with a single draw of its parameters.
    pit : ndarray of shape (row,)
        The probability integral transform: that of a smaller value than the row's, given its parents and all other
        rows, averaged over DAGs. Uniform if the model is right. Categories: drawn between the probability of an earlier
        level and that of this one or an earlier.
    parent : str or None
        The most probable parent, if it is at least 0.1 probable.
    parent_levels : tuple
        Its levels.
    probability : float
        Of that edge.
    parent_observed, parent_simulated : ndarray
        The parent's values, as the variable's.
    residuals : ndarray of shape (row,), or None
        What all parents leave unexplained, averaged over DAGs; None for categories.
    """

    name: str
    levels: tuple[Any, ...]
    observed: Floats
    simulated: Floats
    pit: Floats
    parent: str | None
    parent_levels: tuple[Any, ...]
    probability: float
    parent_observed: Floats
    parent_simulated: Floats
    residuals: Floats | None


def predictive_checks(
    post: Draws,
    variables: Sequence[Hashable] | None = None,
    *,
    draws: int | None = None,
    tables: int = 20,
    random_seed: int = 0,
    progressbar: bool = True,
) -> list[VariableCheck]:
    """Put each variable of the data beside what a posterior predicts of it.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    variables : sequence of str or int, optional
        Which variables; by default all, or the twelve whose ranks are the least uniform.
    draws : int, optional
        Over how many DAGs to average; 1,000 by default, and 100 under Gaussian processes, whose densities take long.
    tables : int, default 20
        How many tables to draw anew.
    random_seed : int, default 0
        Where the tables come from.
    progressbar : bool, default True
        Whether Gaussian processes show progress.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=200, random_seed=1, progressbar=False)
    >>> (check,) = predictive_checks(post, ["akt"])
    >>> check.parent, check.simulated.shape, round(float(check.pit.mean()), 1)
    ('erk', (20, 853), 0.5)
    """
    check_count("tables", tables, 1)
    if draws is not None:
        check_count("draws", draws, 1)
    if variables is not None and (isinstance(variables, str) or not len(variables)):
        raise ValueError(f"variables must be a list of one or more; received {shown(variables)}")
    scorer = scorer_of(post, _PURPOSE)
    rows = densities.rows_behind(post, _PURPOSE)
    asked = post.names if variables is None else variables
    nodes = [graphs.node_index(name, post.names) for name in asked]
    some = draws if draws is not None else _QUICK_DRAWS if scorer.closed_form else _SLOW_DRAWS
    left_out = rows_left_out(post, some, progressbar, below=True)
    drawn = replicated(post, resampled(post.weights, tables, random_seed), len(rows), random_seed, progressbar)
    edges = edge_probabilities(post).to_numpy()
    levels, categories = scorer.levels or ((),) * len(post.names), scorer.categories
    found = []
    for node in nodes:
        parent = int(edges[:, node].argmax())
        residuals = None
        if not categories[node]:
            places = resampled(post.weights, some, random_seed)
            rng = np.random.default_rng([random_seed, node])
            new = drawn_variable(post, places, rows, node, random_seed, rng, progressbar=False)
            residuals = rows[:, node] - new.expected.mean(axis=0)
        found.append(
            VariableCheck(
                name=post.names[node],
                levels=levels[node],
                observed=rows[:, node],
                simulated=drawn[..., node],
                pit=_pit(left_out, node, bool(categories[node]), random_seed),
                parent=post.names[parent] if edges[parent, node] >= _LEAST_PROBABLE else None,
                parent_levels=levels[parent],
                probability=float(edges[parent, node]),
                parent_observed=rows[:, parent],
                parent_simulated=drawn[..., parent],
                residuals=residuals,
            )
        )
    return found if variables is not None or len(found) <= _MOST_VARIABLES else _least_uniform(found)


def _least_uniform(checks: list[VariableCheck]) -> list[VariableCheck]:
    """Return the variables whose ranks are the least uniform, in their order."""
    from scipy import stats  # takes half a second, which others needn't wait for

    misfit = [stats.kstest(check.pit, "uniform").statistic for check in checks]
    return [checks[k] for k in sorted(np.argsort(misfit)[-_MOST_VARIABLES:])]


def _pit(left_out: RowsLeftOut, node: int, is_category: bool, random_seed: int) -> Floats:
    """Return the probability of a smaller value than each row's, without the row, averaged over DAGs."""
    known, weights = left_out.densities, np.exp(left_out.log_weights)
    assert known.below is not None
    own = known.places[:, node]
    below: Floats = (weights * known.below[own]).sum(axis=0)
    if is_category:
        at = (weights * np.exp(known.by_set[own])).sum(axis=0)
        below = below + at * np.random.default_rng([_RANKS, random_seed, node]).random(len(below))
    return np.clip(below, 0.0, 1.0)
