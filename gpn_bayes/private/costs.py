"""What a run costs: bytes, messages and seconds of each sub-protocol, and how far it is."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpn_bayes.secure.link import Link

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Cost:
    """What one sub-protocol took so far; bytes are those of messages, without what their transport adds."""

    seconds: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    messages: int = 0


@dataclass(frozen=True)
class Expected:
    """What one sub-protocol takes at most, as computed beforehand."""

    seconds: float
    bytes: int


class Meter:
    """A link that keeps account of what goes through it, for the sub-protocol under way.

    Parameters
    ----------
    link : Link
        What the messages go through.
    advance : callable
        Called with the share of the expected time by which the run has advanced.

    Attributes
    ----------
    costs : dict of str to Cost
        By sub-protocol, in the order in which they began.

    Examples
    --------
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> meter = Meter(alice)
    >>> with meter.stage("greeting"):
    ...     meter.send("hello", b"Bob")
    >>> meter.costs["greeting"].bytes_sent
    3
    """

    def __init__(self, link: Link, advance: Callable[[float], None] = lambda share: None) -> None:
        self._link = link
        self._expected: Mapping[str, Expected] = {}
        self._advance = advance
        self._done: dict[str, float] = {}
        self._stage = "other"
        self.costs: dict[str, Cost] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Book what happens meanwhile under a sub-protocol."""
        cost = self.costs.setdefault(name, Cost())
        self._stage, before = name, self._stage
        started = time.perf_counter()
        try:
            yield
        finally:
            cost.seconds += time.perf_counter() - started
            self._stage = before

    def send(self, kind: str, payload: bytes) -> None:
        """Send a message."""
        self._link.send(kind, payload)
        self._book(len(payload), 0)

    def receive(self, kind: str, length: int | None = None) -> bytes:
        """Wait for the next message; see `Link`."""
        payload = self._link.receive(kind, length)
        self._book(0, len(payload))
        return payload

    def expect(self, expected: Mapping[str, Expected]) -> None:
        """Take note of what sub-protocols take at most."""
        self._expected = expected

    def finish(self, name: str) -> None:
        """Count a sub-protocol as done, also where it took less than expected."""
        if name in self._expected:
            self._move(name, self._expected[name].seconds)

    def _book(self, sent: int, received: int) -> None:
        cost = self.costs.setdefault(self._stage, Cost())
        cost.bytes_sent += sent
        cost.bytes_received += received
        cost.messages += 1
        expected = self._expected.get(self._stage)
        if expected is not None and expected.bytes:
            share = (cost.bytes_sent + cost.bytes_received) / expected.bytes
            self._move(self._stage, expected.seconds * min(share, 1.0))

    def _move(self, name: str, seconds: float) -> None:
        done = self._done.get(name, 0.0)
        total = sum(expected.seconds for expected in self._expected.values())
        self._advance((seconds - done) / total if total else 0.0)
        self._done[name] = seconds


def cost_table(costs: Mapping[str, Cost]) -> "pd.DataFrame":
    """Return costs as a table with one row per sub-protocol, and the share of each in the time.

    Examples
    --------
    >>> cost_table({"counts": Cost(3.0, 1000, 500, 7), "scores": Cost(1.0)})["share"].tolist()
    [0.75, 0.25]
    """
    import pandas as pd

    table = pd.DataFrame([vars(cost) for cost in costs.values()], index=pd.Index(list(costs), name="sub-protocol"))
    return table.assign(share=table["seconds"] / table["seconds"].sum())
