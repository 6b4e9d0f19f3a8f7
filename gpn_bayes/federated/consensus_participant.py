"""A client of ADMM: its own parameters, what pulls them to the shared ones, and what it tells of both."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from gpn_bayes.federated.channel import Participant
from gpn_bayes.federated.tasks import ROUND, RoundTask, about_rows, check_task, read_round


class ConsensusParticipant(Participant):
    """A client with its own parameters B and multipliers beta; a subclass fits B to its rows.

    Parameters
    ----------
    values : ndarray, shape (rows, columns)
        The client's rows; only their number and means are kept here.
    shape : tuple of int
        That of the parameters.
    shared_intercepts : bool
        Whether the means are those of all clients, which the coordinator then learns; or this client's own.
    """

    def __init__(self, values: np.ndarray, shape: tuple[int, ...], shared_intercepts: bool) -> None:
        self._count, self._means = len(values), values.mean(axis=0)
        self._shared_intercepts = shared_intercepts
        # B before the first round: none.
        self._own = np.zeros(0)
        self._multipliers = np.zeros(shape)

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
        distance, start = 0.0, given.shared
        if self._own.size:
            gap = self._own - given.shared
            distance, start = float(np.vdot(gap, gap)), self._own
            self._multipliers = self._multipliers + given.last_rho * gap
        self._own = self._fit(start, given)
        return {"target": self._own + self._multipliers / given.rho, "distance": np.array(distance)}

    @abstractmethod
    def _fit(self, start: np.ndarray, given: RoundTask) -> np.ndarray:
        """Return the B that fits this client's rows near the shared parameters."""

    def state(self) -> dict[str, np.ndarray]:
        """Return B and beta."""
        return {"own": self._own.copy(), "multipliers": self._multipliers.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over B and beta."""
        self._own = np.array(state["own"], dtype=float)
        self._multipliers = np.array(state["multipliers"], dtype=float)
