"""NOTEARS as a program for separate processes: what the coordinator carries out, and what a client answers with."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpn_bayes.data import Dataset
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.notears import building
from gpn_bayes.federated.notears.bounds import BoundedParticipant, Bounds
from gpn_bayes.federated.notears.clients import read_client
from gpn_bayes.federated.notears.consensus import answer_shapes, consensus_rounds
from gpn_bayes.federated.notears.estimate import estimate, history
from gpn_bayes.federated.notears.settings import Settings


def coordinate_notears(channel: Channel, names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Carry out a run, and return what it found as named arrays.

    A deterministic function of the sums that the channel returns, so a run that was killed goes on by replaying them.

    Parameters
    ----------
    channel : Channel
        The way to the clients.
    names : sequence of str
        The variables, in order.
    settings : mapping
        Those of `Settings`, by name; what isn't there has its default.

    Returns
    -------
    dict of str to ndarray
        "names", "weights", "raw_weights", "adjacency", "lagged_weights", "raw_lagged_weights", "intercepts", "h",
        "consensus", "state", and "history" with a row per round: h, consensus and both strengths.
    """
    checked, variables = Settings.read(settings), tuple(names)
    rounds = list(consensus_rounds(channel, building.shared_model(variables, checked), building.schedule(checked)))
    learned = estimate(rounds[-1], variables, checked)
    return {
        "names": np.array(variables, dtype=str),
        "weights": learned.weights,
        "raw_weights": learned.raw_weights,
        "adjacency": learned.adjacency,
        "lagged_weights": learned.lagged_weights,
        "raw_lagged_weights": learned.raw_lagged_weights,
        "intercepts": learned.intercepts,
        "h": np.array(learned.h),
        "consensus": np.array(rounds[-1].consensus),
        "state": np.array(rounds[-1].state),
        "history": history(rounds).to_numpy(),
    }


def notears_shapes(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the largest answer of a run, by name of the array."""
    return answer_shapes(building.shared_model(tuple(names), Settings.read(settings)))


def notears_participant(data: Dataset, settings: Mapping[str, Any]) -> Participant:
    """Return a client's side of a run; the rows of a time series are its times, in order.

    Parameters
    ----------
    data : Dataset
        The client's table.
    settings : mapping
        The same as the coordinator's.
    """
    checked = Settings.read(settings)
    return building.participant(read_client(data, checked), checked)


def bounded_participant(participant: Participant, settings: Mapping[str, Any], bounds: Bounds) -> Participant:
    """Return a client's side that answers within bounds, which its user has set; see `BoundedParticipant`."""
    return BoundedParticipant(participant, Settings.read(settings), bounds)
