"""The programs that a federated run can carry out, by name: what the coordinator does, and what a client answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import Dataset
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.notears.bounds import Bounds
from gpn_bayes.federated.notears.program import bounded_participant, coordinate_notears, notears_participant
from gpn_bayes.federated.statistics import StatisticsParticipant, sum_statistics

Arrays = dict[str, np.ndarray]


def _unbounded(participant: Participant, settings: Mapping[str, Any], bounds: Bounds) -> Participant:
    return participant


@dataclass(frozen=True)
class Program:
    """A program for both sides of a run.

    Parameters
    ----------
    coordinate : callable
        ``coordinate(channel, names, settings)`` returns the results as named arrays, which are written to
        ``<program>.npz``. A deterministic function of what the channel returns.
    participant : callable
        ``participant(data, settings)`` returns a client's side; it refuses settings that it doesn't know.
    bounded : callable
        ``bounded(participant, settings, bounds)`` returns a client's side that answers within the bounds of the
        client's own file.
    once : bool, default False
        Whether a client takes part only once with the same table, unless its user says otherwise: sums over two sets of
        clients that differ by one give that one's numbers away.
    """

    coordinate: Callable[[Channel, Sequence[str], Mapping[str, Any]], Arrays]
    participant: Callable[[Dataset, Mapping[str, Any]], Participant]
    bounded: Callable[[Participant, Mapping[str, Any], Bounds], Participant] = _unbounded
    once: bool = False


def _coordinate_statistics(channel: Channel, names: Sequence[str], settings: Mapping[str, Any]) -> Arrays:
    pooled = sum_statistics(channel, names)
    # The arrays of `SufficientStatistics.save`.
    return {"n": np.array(pooled.n), "mean": pooled.mean, "cov": pooled.cov, "names": np.array(pooled.names, dtype=str)}


PROGRAMS: dict[str, Program] = {
    "statistics": Program(_coordinate_statistics, StatisticsParticipant, once=True),
    "notears": Program(coordinate_notears, notears_participant, bounded_participant, once=True),
}


def find_program(name: str) -> Program:
    """Return a program by its name.

    Examples
    --------
    >>> find_program("statistic")
    Traceback (most recent call last):
    ValueError: program must be one of statistics, notears; received 'statistic': did you mean 'statistics'?
    """
    check_choice("program", name, tuple(PROGRAMS))
    return PROGRAMS[name]
