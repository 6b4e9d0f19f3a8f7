"""Number, means and covariance of rows that several clients hold, by one secure sum."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.data import Dataset, SufficientStatistics, read_part
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.moments import digit_shape, moment_digits, pooled_statistics
from gpn_bayes.federated.plan import warn_of_few

_TASK = "moments"


class StatisticsParticipant(Participant):
    """A client's side: it answers with the digits of its moments.

    Parameters
    ----------
    data : Dataset
        This client's rows.
    settings : dict
        None are known.
    """

    def __init__(self, data: Dataset, settings: Mapping[str, Any] | None = None) -> None:
        if settings:
            raise ValueError(f"statistics take no settings; received {', '.join(sorted(settings))}")
        self._values = data.numeric("a sum over clients")

    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, Floats]:
        """Return the digits of n, sum x and sum xx'."""
        if task != _TASK:
            raise ValueError(f"the only task of statistics is {_TASK!r}; received {task[:40]!r}")
        return {"digits": moment_digits(self._values)}

    def state(self) -> dict[str, np.ndarray]:
        """Return nothing: the rows are all there is."""
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Do nothing."""


def sum_statistics(channel: Channel, names: Sequence[str]) -> SufficientStatistics:
    """Return the statistics of all rows of all clients of a channel; the coordinator's side."""
    sums = channel.sum(_TASK, {}, {"digits": digit_shape(len(names))})
    return pooled_statistics(sums["digits"], names, len(channel.clients))


def secure_statistics(tables: Iterable[Any], secure: bool = True) -> SufficientStatistics:
    """Return the statistics of several parties' tables together, as if they were pooled.

    Every party's numbers are masked so that only their sum over all parties can be read: the number of rows, and the
    sums of x and xx'. This runs all parties in one process; ``gpn-bayes federate`` runs the same between machines.

    Parameters
    ----------
    tables : list of DataFrames, arrays or paths
        One per party; the same columns, in the same order.
    secure : bool, default True
        Whether to mask. Without masks whoever adds up sees every party's statistics; the result is the same.

    Returns
    -------
    SufficientStatistics
        Takes the place of a table for everything linear: ``gpn.sample(stats, score="bge")``.

    Raises
    ------
    ValueError
        For tables that differ in their columns or don't hold numbers, and for fewer than two of them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> tables = [rng.normal(size=(rows, 3)) for rows in (20, 50, 30)]
    >>> pooled = secure_statistics(tables)
    >>> bool(np.allclose(pooled.cov, np.cov(np.vstack(tables).T), rtol=1e-12))
    True
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
    if secure:
        warn_of_few(len(parts))
    channel = MemoryChannel([StatisticsParticipant(part) for part in parts], secure=secure)
    return sum_statistics(channel, parts[0].names)
