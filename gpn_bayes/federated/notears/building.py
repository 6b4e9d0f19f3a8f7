"""From settings to the two sides of a run: what the coordinator fits, and what each client answers with."""

from collections.abc import Sequence

import numpy as np

from gpn_bayes._util.types import Bools
from gpn_bayes.estimators.lagged_data import LaggedData
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.notears.clients import Part
from gpn_bayes.federated.notears.consensus import Schedule
from gpn_bayes.federated.notears.participants import LinearParticipant, NetworkParticipant, SeriesParticipant
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.federated.notears.shared_models import LinearModel, NetworkModel, SharedModel
from gpn_bayes.scores.prior import GraphPrior

_MOST_WEIGHTS = 5_000_000


def graph_prior(names: Sequence[str], settings: Settings) -> GraphPrior:
    """Return which edges must, and must not, be there."""
    return GraphPrior(tuple(names), required=settings.required, forbidden=settings.forbidden, tiers=settings.tiers)


def shared_model(names: Sequence[str], settings: Settings) -> SharedModel:
    """Return what the coordinator fits.

    Examples
    --------
    >>> shared_model(["x", "y", "z"], Settings(model="dynamic", lags=2)).start.shape
    (9, 3)
    """
    prior = graph_prior(names, settings)
    d = len(names)
    if settings.model == "mlp":
        _check_size(d, settings)
        rng = np.random.default_rng(settings.random_state)
        return NetworkModel(
            _inputs(prior, settings), prior.required, settings.hidden, settings.penalty, settings.lambda2, rng
        )
    lagged = d * settings.lags if settings.model == "dynamic" else 0
    penalties = np.full((d + lagged, d), settings.penalty)
    penalties[:d][prior.required] = 0.0
    return LinearModel(_inputs(prior, settings), penalties)


def participant(data: Part, settings: Settings) -> Participant:
    """Return a client's side of a run.

    Parameters
    ----------
    data : Dataset or LaggedData
        From `gpn_bayes.federated.notears.clients.read_client`.
    settings : Settings
        The same as the coordinator's.
    """
    if isinstance(data, LaggedData):
        return SeriesParticipant(data, settings.shared_intercepts)
    values = data.numeric("federated NOTEARS")
    if settings.model == "mlp":
        _check_size(len(data.names), settings)
        inputs = _inputs(graph_prior(data.names, settings), settings)
        return NetworkParticipant(values, inputs, settings.hidden, settings.shared_intercepts)
    return LinearParticipant(values, len(data.names), settings.shared_intercepts)


def _check_size(d: int, settings: Settings) -> None:
    """Refuse networks that would fill a client's memory."""
    if d * d * settings.hidden > _MOST_WEIGHTS:
        raise ValueError(
            f"networks must have {_MOST_WEIGHTS} weights at most; {settings.hidden} hidden units for each of {d} "
            f"variables have {d * d * settings.hidden}"
        )


def schedule(settings: Settings) -> Schedule:
    """Return how fast the constraints are tightened."""
    return Schedule(settings.first_rho, settings.first_rho, settings.tolerance, settings.max_rounds)


def _inputs(prior: GraphPrior, settings: Settings) -> np.ndarray:
    """Return which weights may differ from zero on the way; those on the diagonal end at zero in any case."""
    diagonal = np.eye(len(prior.forbidden), dtype=bool)
    allowed: Bools = ~prior.forbidden
    return allowed | diagonal if settings.free_diagonal else allowed
