"""A client of linear structural equations: ridge regressions towards what all clients share, in closed form."""

import numpy as np

from gpn_bayes.federated.consensus_participant import ConsensusParticipant
from gpn_bayes.federated.tasks import RoundTask


class LinearParticipant(ConsensusParticipant):
    """A client that regresses some columns of its rows on all of them.

    Its own weights B, pulled towards the shared ones W with the strength rho, minimise

        ||Y - X B||^2 / (2 n) + tr(beta' (B - W)) + rho / 2 ||B - W||^2

    where Y are the first columns of X and n counts the rows of all clients. Of the rows, only their number, means and
    products are kept.

    Parameters
    ----------
    values : ndarray, shape (rows, columns)
        The variables first, then what else predicts them, such as their past. X are their differences from the means.
    d : int
        How many variables there are.
    shared_intercepts : bool, default False
        Whether the means are those of all clients, which the coordinator then learns; or this client's own.

    Notes
    -----
    What it answers must not be read by anybody: one answer determines X'X; see `FederatedNOTEARS`.
    """

    def __init__(self, values: np.ndarray, d: int, shared_intercepts: bool = False) -> None:
        super().__init__(values, (values.shape[1], d), shared_intercepts)
        centred = values - self._means
        self._products = centred.T @ centred

    def _fit(self, start: np.ndarray, given: RoundTask) -> np.ndarray:
        covariance = self._products_about(given.centre) / given.rows
        d = self._multipliers.shape[1]
        right = given.rho * given.shared - self._multipliers + covariance[:, :d]
        return np.linalg.solve(covariance + given.rho * np.eye(len(covariance)), right)

    def _products_about(self, centre: np.ndarray) -> np.ndarray:
        away = self._means - centre
        return self._products + self._count * np.outer(away, away)
