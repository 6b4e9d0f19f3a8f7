"""Number, means and covariance of rows that several clients hold, by one secure sum."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.data import Dataset, SufficientStatistics, read_part
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.moments import digit_shape, moment_digits, pooled_statistics
from gpn_bayes.federated.noisy_moments import noisy_digits, noisy_statistics
from gpn_bayes.federated.plan import warn_of_few
from gpn_bayes.federated.privacy import Privacy, check_secure, check_variables

_TASK = "moments"


class StatisticsParticipant(Participant):
    """A client's side: it answers, once, with the digits of its moments, plus noise if that is asked for.

    Parameters
    ----------
    data : Dataset
        This client's rows.
    privacy : Privacy, optional
        How private the sum must be.
    clients : int, default 1
        How many clients add noise.
    """

    def __init__(self, data: Dataset, privacy: Privacy | None = None, clients: int = 1) -> None:
        self._values = data.numeric("a sum over clients")
        self._names = data.names
        self._privacy = privacy
        self._clients = clients
        self._answered = False

    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, Floats]:
        """Return the digits of n, sum x and sum xx', of the scaled values where there is noise."""
        if task != _TASK:
            raise ValueError(f"the only task of statistics is {_TASK!r}; received {task[:40]!r}")
        if self._answered:
            # With other noise each time, the average of many answers would have little of it.
            raise ValueError("statistics are summed once in a run; received the task again")
        self._answered = True
        if self._privacy is None:
            return {"digits": moment_digits(self._values)}
        return {"digits": noisy_digits(self._values, self._names, self._privacy, self._clients)}

    def state(self) -> dict[str, np.ndarray]:
        """Return whether it has answered."""
        return {"answered": np.array(self._answered)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what `state` returned."""
        self._answered = bool(state.get("answered", False))


def answer_shapes(variables: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an answer, by name of the array."""
    return {"digits": digit_shape(variables)}


def sum_statistics(channel: Channel, names: Sequence[str], privacy: Privacy | None = None) -> SufficientStatistics:
    """Return the statistics of all rows of all clients of a channel; the coordinator's side."""
    clients = len(channel.clients)
    digits = channel.sum(_TASK, {}, answer_shapes(len(names)))["digits"]
    if privacy is None:
        return pooled_statistics(digits, names, clients)
    return noisy_statistics(digits, names, privacy, clients)


def secure_statistics(
    tables: Iterable[Any], secure: bool = True, *, privacy: Privacy | None = None
) -> SufficientStatistics:
    """Return the statistics of several parties' tables together, as if they were pooled.

    Every party's numbers are masked so that only their sum over all parties can be read: the number of rows, and the
    sums of x and xx'. This runs all parties in one process; ``gpn-bayes federate`` runs the same between machines.

    Parameters
    ----------
    tables : list of DataFrames, arrays or paths
        One per party; the same columns, in the same order.
    secure : bool, default True
        Whether to mask. Without masks whoever adds up sees every party's statistics; the result is the same.
    privacy : Privacy, optional
        Adds noise, so that the sum reveals little of any single row; see `gpn_bayes.federated.Privacy`. Every party
        adds its share, from the operating system's randomness, before its numbers are masked. Without it the sum is
        exact.

    Returns
    -------
    SufficientStatistics
        Takes the place of a table for everything linear: ``gpn.sample(stats, score="bge")``. With privacy, its `noise`
        says how large the noise is.

    Raises
    ------
    ValueError
        For tables that differ in their columns or don't hold numbers, for fewer than two of them, for bounds of other
        columns, and where noise leaves fewer than two rows.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> tables = [rng.normal(size=(rows, 3)) for rows in (20, 50, 30)]
    >>> pooled = secure_statistics(tables)
    >>> bool(np.allclose(pooled.cov, np.cov(np.vstack(tables).T), rtol=1e-12))
    True

    With noise, and bounds that were known before:

    >>> tables = [rng.normal(size=(20_000, 3)) for _ in range(3)]
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, bounds={name: (-4, 4) for name in ("v1", "v2", "v3")})
    >>> noisy = secure_statistics(tables, privacy=privacy)
    >>> bool(abs(noisy.n - 60_000) < 200), bool(noisy.largest_noise < 0.005)
    (True, True)
    """
    parts = [read_part(table) for table in tables]
    if not parts:
        raise ValueError("statistics need at least one table; received none")
    for number, part in enumerate(parts):
        if part.names != parts[0].names:
            raise ValueError(
                f"all tables must have the same columns in the same order; table {number + 1} has "
                f"{', '.join(part.names)}, the first {', '.join(parts[0].names)}"
            )
    if privacy is not None:
        check_secure(secure)
        check_variables(privacy, parts[0].names)
    elif secure:
        warn_of_few(len(parts))
    channel = MemoryChannel([StatisticsParticipant(part, privacy, len(parts)) for part in parts], secure=secure)
    return sum_statistics(channel, parts[0].names, privacy)
