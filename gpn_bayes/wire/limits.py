"""How much, how long and how often: the limits of messages and waiting that both sides keep."""

from dataclasses import dataclass, fields
from numbers import Real

from gpn_bayes._util.checks import shown

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of a connection.

    Parameters
    ----------
    message_megabytes : float, default 64
        The largest message that is taken, whatever a run needs; a coordinator takes none that is larger than its run
        needs. A moderate excess is refused and logged; one of more than twice this is refused before anything of it is
        read.
    heartbeat_seconds : float, default 5
        How often a client shows that it is alive, and how long it is kept waiting without a reply.
    deadline_seconds : float, default 30
        How long a call may take, on top of the waiting that it asks for; and a client's message to come whole.
    silence_seconds : float, default 30
        After how long without a sign of life of the other side the log warns of it.
    patience_seconds : float, default 3600
        After how long without a sign of life the other side is given up.

    Examples
    --------
    >>> Limits(deadline_seconds=0)
    Traceback (most recent call last):
    ValueError: limits must be positive numbers; received deadline_seconds = 0
    """

    message_megabytes: float = 64.0
    heartbeat_seconds: float = 5.0
    deadline_seconds: float = 30.0
    silence_seconds: float = 30.0
    patience_seconds: float = 3600.0

    def __post_init__(self) -> None:
        """Refuse limits that limit everything."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1e9:
                raise ValueError(f"limits must be positive numbers; received {field.name} = {shown(value)}")

    @property
    def message_bytes(self) -> int:
        """The largest message, in bytes."""
        return int(self.message_megabytes * MEGABYTE)
