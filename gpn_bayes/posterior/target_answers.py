"""Which variables the experiments of unknown targets changed, averaged over DAGs."""

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.data import UnknownTargets
from gpn_bayes.posterior.draws import Draws, ExactAnswers, GraphCollection
from gpn_bayes.posterior.estimate import Estimate, Moments
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.scores.base import GroupedScorer
from gpn_bayes.scores.dag_scorer import DagScorer

# Parent sets that are less probable tell nothing.
_NEGLIGIBLE = 1e-10

Key = tuple[int, tuple[int, ...]]
# What was found for each posterior.
_moments: "WeakKeyDictionary[Draws, tuple[Moments, tuple[str, ...]]]" = WeakKeyDictionary()


class TargetAnswers:
    """The probabilities that contexts changed variables, given their parents.

    Parameters
    ----------
    scorer : callable
        That of a posterior.

    Raises
    ------
    ValueError
        If the posterior is not one of unknown targets.
    """

    def __init__(self, scorer: Callable[[Adjacency], float] | None) -> None:
        found = scorer.scorer if isinstance(scorer, DagScorer) else None
        if not isinstance(found, GroupedScorer) or not isinstance(found.interventions, UnknownTargets):
            raise ValueError("targets are estimated where experiments of unknown targets are given by contexts=")
        self._scorer = found
        self.contexts = found.interventions.contexts[1:]
        self._known: dict[Key, Floats] = {}

    def given(self, keys: list[Key]) -> Floats:
        """Return the probability that each context changed a node, for nodes with parent sets; rows are these."""
        for node in {node for node, _ in keys}:
            sets = [parents for i, parents in keys if i == node and (node, parents) not in self._known]
            for parents, found in zip(sets, self._scorer.change_probabilities(node, sets), strict=True):
                self._known[node, parents] = found[1:]
        return np.array([self._known[key] for key in keys])

    def of_dags(self, dags: Adjacency) -> Floats:
        """Return the probabilities of a stack of DAGs, of shape (dag, contexts x nodes)."""
        keys, places = drawn_sets(graphs.pack(dags)[None])
        found: Floats = np.swapaxes(self.given(keys)[places[0]], 1, 2).reshape(len(dags), -1)
        return found

    def averaged(self, exact: ExactAnswers) -> Floats:
        """Return the probabilities averaged over all DAGs, of shape (contexts x nodes,)."""
        columns = []
        for node, (chosen, probability) in enumerate(zip(exact.candidates, exact.parent_sets, strict=True)):
            masks = np.flatnonzero(probability > _NEGLIGIBLE)
            sets = [tuple(sorted(int(c) for b, c in enumerate(chosen) if mask >> b & 1)) for mask in masks]
            columns.append(probability[masks] @ self.given([(node, parents) for parents in sets]))
        return np.column_stack(columns).reshape(-1)


def target_probabilities(post: Draws, errors: bool = False) -> pd.DataFrame:
    """Return the probability that each experiment changed how each variable depends on its parents.

    Of experiments whose targets are unknown, ``contexts=`` of `gpn_bayes.sample`.

    Parameters
    ----------
    errors : bool, default False
        Whether to return the Monte Carlo standard errors instead.

    Returns
    -------
    DataFrame
        Rows are contexts, but for the reference, and columns variables.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> cells = gpn.datasets.sachs_interventional(transform="log2")
    >>> few = cells[cells["target"].isin(["", "mek"])][["raf", "mek", "erk", "condition"]]
    >>> post = gpn.sample(few, score="bge", contexts="condition", draws=100, random_seed=1, progressbar=False)
    >>> post.target_probabilities().round(2)
    variable       raf  mek  erk
    context
    cd3cd28icam2   0.0  1.0  1.0
    cd3cd28_u0126  1.0  1.0  1.0
    """
    moments, contexts = _answered(post)
    values = moments.mcse if errors else moments.value
    return pd.DataFrame(
        values.reshape(-1, len(post.names)),
        index=pd.Index(contexts, name="context"),
        columns=pd.Index(post.names, name="variable"),
    )


def target_probability(post: Draws, context: Hashable, variable: Hashable) -> Estimate:
    """Return the probability that an experiment changed how a variable depends on its parents, with its error.

    Parameters
    ----------
    context : str
        The experiment.
    variable : str or int
        The variable.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> cells = gpn.datasets.sachs_interventional(transform="log2")
    >>> few = cells[cells["target"].isin(["", "mek"])][["raf", "mek", "erk", "condition"]]
    >>> post = gpn.sample(few, score="bge", contexts="condition", draws=100, random_seed=1, progressbar=False)
    >>> print(post.target_probability("cd3cd28_u0126", "erk"))
    1.000 (exact)
    """
    moments, contexts = _answered(post)
    if str(context) not in contexts:
        raise ValueError(f"a context must be one of {', '.join(map(repr, contexts))}; received {shown(context)}")
    place = contexts.index(str(context)) * len(post.names) + post._index(variable)
    value, mcse, ess, _ = (column[place] for column in moments)
    return Estimate(float(value), float(mcse), float(ess))


def target_sets(post: GraphCollection) -> list[list[int]]:
    """Return the variables that each experiment changed, or more probably than not; none without experiments."""
    if not isinstance(post, Draws) or post.record.interventions is None:
        return []
    if post.record.interventions.unknown:
        return [np.flatnonzero(row > 0.5).tolist() for row in target_probabilities(post).to_numpy()]
    return post._known_targets


def _answered(post: Draws) -> tuple[Moments, tuple[str, ...]]:
    """Return the moments of all changes, which take scores of all parent sets drawn, and the contexts; once."""
    if post not in _moments:
        answers = TargetAnswers(post.scorer)
        if post.exact is None:
            found = post._moments(answers.of_dags)
        else:
            found = post._exactly(answers.averaged(post.exact), answers.of_dags)
        _moments[post] = found, answers.contexts
    return _moments[post]
