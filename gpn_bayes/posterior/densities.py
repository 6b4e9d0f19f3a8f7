"""Log densities of rows given DAGs, parameters integrated out: of new rows, and of each row given all others."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.densities import left_out, log_densities


class RowDensities(NamedTuple):
    """Log densities of rows in units of the table, for every parent set that some DAGs have.

    Attributes
    ----------
    by_set : ndarray of shape (parent set, row)
        Of a variable given these parents.
    places : ndarray of int, shape (draw, variable)
        Which parent set each variable has, in every DAG.
    below : ndarray of shape (parent set, row), optional
        The probability of a smaller value of the variable.
    """

    by_set: Floats
    places: Ints
    below: Floats | None = None

    def joint(self, rows: slice) -> Floats:
        """Return the log densities of some whole rows, of shape (draw, row): a sum over variables."""
        total = np.zeros((len(self.places), len(range(*rows.indices(self.by_set.shape[1])))))
        for own in self.places.T:
            total += self.by_set[own, rows]
        return total


def of_new_rows(post: Draws, values: np.ndarray, places: Ints, progressbar: bool) -> RowDensities:
    """Return the densities of new rows given all rows of the data.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    values : ndarray of shape (row, variable)
        The rows, as `gpn_bayes.scores.densities.values_of` returns them.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    sets = _sets(post, places)
    by_set = log_densities(scorer_of(post, "predictions"), post.data, sets.keys, values, progressbar)
    return RowDensities(by_set, sets.places.reshape(-1, len(post.names)))


def of_rows_left_out(post: Draws, places: Ints, progressbar: bool, below: bool = False) -> RowDensities:
    """Return the density of every row of the data given all others.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    below : bool, default False
        Whether the probabilities of smaller values are wanted too.
    """
    purpose = "leave-one-out densities"
    n_rows = len(rows_behind(post, purpose))
    sets = _sets(post, places)
    by_set = np.empty((len(sets.keys), n_rows))
    smaller = np.empty_like(by_set) if below else None
    for k, found in enumerate(left_out(scorer_of(post, purpose), post.data, sets.keys, progressbar)):
        by_set[k] = found.log_density
        if smaller is not None:
            smaller[k] = found.below
    return RowDensities(by_set, sets.places.reshape(-1, len(post.names)), smaller)


def rows_behind(post: Draws, purpose: str) -> np.ndarray:
    """Return the rows that a posterior is of, as numbers or as codes of levels: (row, variable).

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    purpose : str
        What needs them, to begin a message with.
    """
    scorer = scorer_of(post, purpose)
    data: Dataset = post.data.with_rows(f"{purpose} need the rows")
    if data.interventions is not None:
        raise ValueError(f"{purpose} need rows that were merely observed; received some of experiments")
    if data.weights is not None:
        raise ValueError(f"{purpose} need rows that all count alike; received weights of rows")
    return scorer.rows(data)


def _sets(post: Draws, places: Ints) -> DrawnSets:
    """Return the parent sets of some of a posterior's draws."""
    return drawn_sets(post.parents.reshape(1, -1, *post.parents.shape[2:])[:, places])
