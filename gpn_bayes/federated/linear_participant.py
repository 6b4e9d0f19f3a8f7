"""A client of linear structural equations: ridge regressions towards what all clients share, in closed form."""

from collections.abc import Mapping

import numpy as np

from gpn_bayes.federated.channel import Participant
from gpn_bayes.federated.tasks import ROUND, about_rows, check_task, read_round


class LinearParticipant(Participant):
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
        self._count, self._means = len(values), values.mean(axis=0)
        centred = values - self._means
        self._products = centred.T @ centred
        self._d = d
        self._shared_intercepts = shared_intercepts
        self._weights = np.zeros((0, d))
        self._multipliers = np.zeros((values.shape[1], d))

    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what is asked about the rows; or, in a round, B + beta / rho and how far the last B was from W.

        Parameters
        ----------
        task : {"rows", "round"}
            What is asked.
        values : mapping
            Those of a round; see `read_round`.
        """
        check_task(task)
        if task != ROUND:
            return about_rows(self._count, self._means if self._shared_intercepts else None)
        given = read_round(values, self._multipliers.shape, self._means, self._shared_intercepts)
        distance = 0.0
        if len(self._weights):
            gap = self._weights - given.shared
            distance = float(np.vdot(gap, gap))
            self._multipliers = self._multipliers + given.last_rho * gap
        covariance = self._products_about(given.centre) / given.rows
        right = given.rho * given.shared - self._multipliers + covariance[:, : self._d]
        self._weights = np.linalg.solve(covariance + given.rho * np.eye(len(covariance)), right)
        return {"target": self._weights + self._multipliers / given.rho, "distance": np.array(distance)}

    def _products_about(self, centre: np.ndarray) -> np.ndarray:
        away = self._means - centre
        return self._products + self._count * np.outer(away, away)

    def state(self) -> dict[str, np.ndarray]:
        """Return B and beta."""
        return {"weights": self._weights.copy(), "multipliers": self._multipliers.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over B and beta."""
        self._weights = np.array(state["weights"], dtype=float)
        self._multipliers = np.array(state["multipliers"], dtype=float)
