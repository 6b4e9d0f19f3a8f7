"""The clients of ADMM: each has parameters of its own, fitted to its rows, and what pulls them to the shared ones."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.estimators.lagged_data import LaggedData
from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.estimators.quasi_newton import minimise
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.notears.tasks import ROUND, RoundTask, about_rows, check_task, read_round

_NETWORK_TOLERANCE = 1e-9


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
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                answer = self._next(given)
        except np.linalg.LinAlgError:
            answer = {}
        if not answer or not all(np.isfinite(array).all() for array in answer.values()):
            raise ValueError("a round's values must lead to finite parameters; these don't")
        return answer

    def _next(self, given: RoundTask) -> dict[str, np.ndarray]:
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
        shape = self._multipliers.shape
        own, multipliers = state.get("own"), state.get("multipliers")
        for array, shapes in ((own, ((0,), shape)), (multipliers, (shape,))):
            if array is None or array.shape not in shapes or array.dtype != float or not np.isfinite(array).all():
                raise ValueError("a client's parameters must be as they were saved; received others")
        self._own, self._multipliers = np.array(own), np.array(multipliers)


class LinearParticipant(ConsensusParticipant):
    """A client of linear structural equations: ridge regressions of some columns of its rows on all of them.

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
        products: Floats = self._products + self._count * np.outer(away, away)
        return products


class SeriesParticipant(LinearParticipant):
    """A client that regresses its variables at a time on each other and on all of those before.

    Parameters
    ----------
    series : LaggedData
        Every time of this client's series with its past.
    shared_intercepts : bool
        Whether intercepts are the same for all clients; otherwise each client centres its columns.
    """

    def __init__(self, series: LaggedData, shared_intercepts: bool) -> None:
        super().__init__(series.values, len(series.names), shared_intercepts)


class NetworkParticipant(ConsensusParticipant):
    """A client with one small network per variable, fitted by a quasi-Newton method.

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

        return minimise(function, start, np.zeros(len(start)), _NETWORK_TOLERANCE).x
