"""The programs that a federated run can carry out, by name: what the coordinator does, and what a client answers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import Dataset
from gpn_bayes.federated.combining import Shapes
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.notears.bounds import Bounds
from gpn_bayes.federated.notears.program import (
    bounded_participant,
    coordinate_notears,
    notears_participant,
    notears_shapes,
)
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.privacy import planned_privacy
from gpn_bayes.federated.statistics import StatisticsParticipant, answer_shapes, sum_statistics

Arrays = dict[str, np.ndarray]


def _unbounded(participant: Participant, plan: Plan, bounds: Bounds) -> Participant:
    return participant


@dataclass(frozen=True)
class Program:
    """A program for both sides of a run.

    Parameters
    ----------
    coordinate : callable
        ``coordinate(channel, plan)`` returns the results as named arrays, which are written to ``<program>.npz``. A
        deterministic function of what the channel returns.
    participant : callable
        ``participant(data, plan)`` returns a client's side; it refuses settings that it doesn't know.
    bounded : callable
        ``bounded(participant, plan, bounds)`` returns a client's side that answers within the bounds of the client's
        own file.
    largest : callable
        ``largest(plan)`` returns the shapes of the largest answer to come, by name of the array; None where that isn't
        known.
    """

    coordinate: Callable[[Channel, Plan], Arrays]
    participant: Callable[[Dataset, Plan], Participant]
    bounded: Callable[[Participant, Plan, Bounds], Participant] = _unbounded
    largest: Callable[[Plan], Shapes | None] = lambda plan: None


def _coordinate_statistics(channel: Channel, plan: Plan) -> Arrays:
    return sum_statistics(channel, plan.variables, planned_privacy(plan)).to_arrays()


def _statistics_participant(data: Dataset, plan: Plan) -> Participant:
    return StatisticsParticipant(data, planned_privacy(plan), len(plan.clients))


PROGRAMS: dict[str, Program] = {
    "statistics": Program(
        _coordinate_statistics, _statistics_participant, largest=lambda plan: answer_shapes(len(plan.variables))
    ),
    "notears": Program(
        lambda channel, plan: coordinate_notears(channel, plan.variables, plan.options),
        lambda data, plan: notears_participant(data, plan.options),
        lambda participant, plan, bounds: bounded_participant(participant, plan.options, bounds),
        lambda plan: notears_shapes(plan.variables, plan.options),
    ),
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
