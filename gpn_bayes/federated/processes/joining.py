"""Whether a client joins a run: what it checks of the plan before it has anything to do with it."""

import logging
from collections.abc import Sequence

import numpy as np

from gpn_bayes.data import Dataset
from gpn_bayes.federated.plan import ENOUGH, Plan, few_clients
from gpn_bayes.federated.privacy import planned_privacy
from gpn_bayes.federated.processes.client_store import ClientStore, Release
from gpn_bayes.federated.processes.config import ClientConfig
from gpn_bayes.wire import federation_pb2 as messages

_log = logging.getLogger(__name__)
_SHOWN = 6  # clients that a message names


class Unwilling(ValueError):
    """A client won't join a run; of why, the coordinator hears no more than the reason's number."""

    def __init__(self, text: str, reason: messages.Reason) -> None:
        super().__init__(text)
        self.reason = reason


def check_plan(plan: Plan, config: ClientConfig, data: Dataset) -> None:
    """Refuse a plan that this client's user hasn't agreed to.

    Raises
    ------
    Unwilling
        If the plan isn't secure, runs a program or has clients that the configuration doesn't list, leaves out clients
        that it lists, has less privacy than it asks for, or needs columns that the table lacks.
    """
    if config.secure and not plan.secure:
        raise _not_agreed("sums must be secure; the coordinator plans plain ones (secure = false would allow it)")
    if plan.program not in config.programs:
        raise _not_agreed(f"programs must be those of the configuration; the coordinator plans {plan.program[:40]!r}")
    known = config.credentials.fingerprints
    unknown = [name for name in plan.clients if name not in known]
    if unknown:
        raise _not_agreed(f"the clients of a run must be known; {unknown[0][:70]!r} isn't")
    # Who is left out of one sum, but not of another, is given away by their difference.
    fewest = len(known) if config.fewest is None else config.fewest
    if len(plan.clients) < fewest:
        raise _not_agreed(
            f"a run must be over at least {fewest} clients; the coordinator plans one over {len(plan.clients)} "
            "(fewest in this client's file says how many)"
        )
    if len(plan.clients) < ENOUGH:
        _log.warning("%s", few_clients(len(plan.clients)))
    _check_privacy(plan, config)
    try:
        select(data, plan.variables)
    except ValueError as error:
        raise Unwilling(str(error), messages.TABLE) from None


def _check_privacy(plan: Plan, config: ClientConfig) -> None:
    """Refuse statistics with noise that makes no sense, and whatever is less private than the configuration allows."""
    try:
        privacy = planned_privacy(plan) if plan.program == "statistics" else None
    except ValueError as error:
        raise _not_agreed(str(error)) from None
    limits = config.privacy
    if limits is None:
        return
    if privacy is None:
        raise _not_agreed(
            "a run must be differentially private, as this client's file asks; the coordinator plans none"
        )
    if privacy.epsilon > limits.largest_epsilon or privacy.delta > limits.largest_delta:
        raise _not_agreed(
            f"epsilon and delta must be at most {limits.largest_epsilon:g} and {limits.largest_delta:g}, as this "
            f"client's file asks; the coordinator plans {privacy.epsilon:g} and {privacy.delta:g}"
        )


def check_once(plan: Plan, data: Dataset, store: ClientStore, again: bool) -> None:
    """Refuse a table a second time, whatever the program, unless its user says otherwise.

    Every program opens sums over the clients of its run, so those of any two runs can be subtracted.

    Raises
    ------
    Unwilling
        If the table was part of another run.
    """
    earlier = store.earlier_releases(data.fingerprint, plan.run)
    if not earlier:
        return
    # Of several, the one that says most: over other clients than this run.
    telling = next((release for release in earlier if _differing(release, plan)), earlier[-1])
    if not again:
        raise Unwilling(
            "a table is summed once, whatever the program: two sums that differ by one client reveal that client's; "
            f"this table was part of {_in_words(telling)} (--again allows one more run)",
            messages.SUMMED_BEFORE,
        )
    differing = _differing(telling, plan)
    if differing:
        _log.warning(
            "this table was part of %s: that run's sums and this one's differ by those of %s",
            _in_words(telling), _listed(differing),
        )  # fmt: skip


def _differing(release: Release, plan: Plan) -> list[str]:
    """Return the clients that were in one of the two runs only."""
    return sorted(set(release.clients) ^ set(plan.clients)) if release.clients else []


def _in_words(release: Release) -> str:
    over = f" over {_listed(release.clients)}" if release.clients else ""
    return f"run {release.run} ({release.program}{over})"


def _listed(clients: Sequence[str]) -> str:
    shown = ", ".join(clients[:_SHOWN])
    return shown if len(clients) <= _SHOWN else f"{shown} and {len(clients) - _SHOWN} more"


def _not_agreed(text: str) -> Unwilling:
    return Unwilling(text, messages.PLAN)


def select(data: Dataset, variables: Sequence[str]) -> Dataset:
    """Return the columns that a run is about, in its order."""
    missing = [name for name in variables if name not in data.names]
    if missing:
        raise ValueError(f"the table must have all columns of the run; {missing[0][:70]!r} isn't there")
    columns = [data.names.index(name) for name in variables]
    kinds = tuple(data.kinds[column] for column in columns)
    # In the usual order of memory, on which the last bits of products depend.
    values = np.ascontiguousarray(data.values[:, columns])
    return Dataset(tuple(variables), values, kinds, tuple(data.levels[column] for column in columns))
