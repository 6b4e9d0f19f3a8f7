"""What every exact method returns, and its time limit."""

from time import monotonic
from typing import Any, NamedTuple

import numpy as np

# Scores are sums of rounded terms, and HiGHS works to 1e-6: a smaller gap, in nats, is none.
NO_GAP = 1e-5


class Outcome(NamedTuple):
    """The best DAG that a method found, and what it knows of the rest.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        The row of each node's parent set.
    bound : float
        No DAG scores higher.
    interrupted : bool
        Whether Ctrl-C ended the search.
    statistics : dict
        What the method counted.
    """

    rows: np.ndarray
    bound: float
    interrupted: bool
    statistics: dict[str, Any]


class Clock:
    """The time that is left of a limit.

    Examples
    --------
    >>> Clock(None).left, Clock(0.0).over
    (inf, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = np.inf if seconds is None else monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, 0 at least."""
        return max(self._end - monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether none are left."""
        return self.left <= 0.0
