"""A client of neural networks: fitted to its own rows by a quasi-Newton method, near what all clients share."""

from collections.abc import Mapping

import numpy as np

from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.estimators.quasi_newton import minimise
from gpn_bayes.federated.channel import Participant
from gpn_bayes.federated.tasks import ROUND, RoundTask, about_rows, check_task, read_round

_TOLERANCE = 1e-9


class NetworkParticipant(Participant):
    """A client with one small network per variable.

    Its own parameters B, pulled towards the shared ones W with the strength rho, minimise

        ||X - networks(X)||^2 / (2 n) + beta' (B - W) + rho / 2 ||B - W||^2

    where n counts the rows of all clients. Penalties and acyclicity are the coordinator's.

    Parameters
    ----------
    values : ndarray, shape (rows, d)
        X are their differences from the means.
    allowed : ndarray of bool, shape (d, d)
        Which variables each network has as inputs.
    hidden : int
        Number of hidden units of each network.
    shared_intercepts : bool, default False
        Whether the means are those of all clients, which the coordinator then learns; or this client's own.
    """

    def __init__(self, values: np.ndarray, allowed: np.ndarray, hidden: int, shared_intercepts: bool = False) -> None:
        self._count, self._means = len(values), values.mean(axis=0)
        self._centred = rows = values - self._means
        self._networks = Perceptrons(rows, rows, allowed, hidden, 0.0, 0.0, np.zeros(allowed.shape, dtype=bool))
        self._shared_intercepts = shared_intercepts
        self._parameters = np.zeros(0)
        self._multipliers = np.zeros(self._networks.size)

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
        given = read_round(values, (self._networks.size,), self._means, self._shared_intercepts)
        distance, start = 0.0, given.shared
        if len(self._parameters):
            gap = self._parameters - given.shared
            distance, start = float(gap @ gap), self._parameters
            self._multipliers = self._multipliers + given.last_rho * gap
        self._parameters = self._fit(start, given)
        return {"target": self._parameters + self._multipliers / given.rho, "distance": np.array(distance)}

    def _fit(self, start: np.ndarray, given: RoundTask) -> np.ndarray:
        self._networks.inputs = self._networks.outputs = self._centred + (self._means - given.centre)
        share = self._count / given.rows

        def function(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            loss, slope = self._networks.loss(parameters)
            gap = parameters - given.shared
            value = share * loss + float(self._multipliers @ gap) + given.rho / 2 * float(gap @ gap)
            return value, share * slope + self._multipliers + given.rho * gap

        return minimise(function, start, np.zeros(len(start)), _TOLERANCE).x

    def state(self) -> dict[str, np.ndarray]:
        """Return B and beta."""
        return {"parameters": self._parameters.copy(), "multipliers": self._multipliers.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over B and beta."""
        self._parameters = np.array(state["parameters"], dtype=float)
        self._multipliers = np.array(state["multipliers"], dtype=float)
