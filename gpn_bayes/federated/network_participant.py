"""A client of neural networks: fitted to its own rows by a quasi-Newton method, near what all clients share."""

import numpy as np

from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.estimators.quasi_newton import minimise
from gpn_bayes.federated.consensus_participant import ConsensusParticipant
from gpn_bayes.federated.tasks import RoundTask

_TOLERANCE = 1e-9


class NetworkParticipant(ConsensusParticipant):
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
        rows = values - values.mean(axis=0)
        self._networks = Perceptrons(rows, rows, allowed, hidden, 0.0, 0.0, np.zeros(allowed.shape, dtype=bool))
        self._centred = rows
        super().__init__(values, (self._networks.size,), shared_intercepts)

    def _fit(self, start: np.ndarray, given: RoundTask) -> np.ndarray:
        self._networks.inputs = self._networks.outputs = self._centred + (self._means - given.centre)
        share = self._count / given.rows

        def function(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            loss, slope = self._networks.loss(parameters)
            gap = parameters - given.shared
            value = share * loss + float(self._multipliers @ gap) + given.rho / 2 * float(gap @ gap)
            return value, share * slope + self._multipliers + given.rho * gap

        return minimise(function, start, np.zeros(len(start)), _TOLERANCE).x
