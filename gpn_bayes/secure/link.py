"""The channel between two parties: messages of a known kind, in order."""

from queue import Empty, Queue
from typing import Protocol

_PATIENCE = 60.0


class ProtocolError(Exception):
    """The other party sent an invalid message, or none; the text never holds data."""


class Link(Protocol):
    """One end of a conversation between two parties."""

    def send(self, kind: str, payload: bytes) -> None:
        """Send a message."""

    def receive(self, kind: str, length: int | None = None) -> bytes:
        """Wait for the next message, which must be of this kind and, where given, of this length.

        Raises
        ------
        ProtocolError
            For a message of another kind or length, and where none comes in time. A link between two machines may
            raise a ConnectionError instead.
        """


class MemoryLink:
    """One end of a conversation within one process, for tests and simulations; the other end is in another thread."""

    def __init__(self, outgoing: "Queue[tuple[str, bytes]]", incoming: "Queue[tuple[str, bytes]]") -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self.sent = 0

    def send(self, kind: str, payload: bytes) -> None:
        """Send a message."""
        self.sent += len(payload)
        self._outgoing.put((kind, bytes(payload)))

    def receive(self, kind: str, length: int | None = None) -> bytes:
        """Wait for the next message; see `Link`."""
        try:
            found, payload = self._incoming.get(timeout=_PATIENCE)
        except Empty:
            raise ProtocolError(f"a message of kind {kind!r} was expected; none came within {_PATIENCE:g} s") from None
        check_message(found, payload, kind, length)
        return payload


def check_message(found: str, payload: bytes, kind: str, length: int | None) -> None:
    """Refuse a message of another kind or length than expected."""
    if found != kind:
        raise ProtocolError(f"a message of kind {kind!r} was expected; received one of kind {found[:40]!r}")
    if length is not None and len(payload) != length:
        raise ProtocolError(f"a message of kind {kind!r} must have {length} bytes; received {len(payload)}")


def memory_links() -> tuple[MemoryLink, MemoryLink]:
    """Return the two ends of a conversation within one process.

    Examples
    --------
    >>> alice, bob = memory_links()
    >>> alice.send("greeting", b"hello")
    >>> bob.receive("greeting")
    b'hello'
    """
    forth: Queue[tuple[str, bytes]] = Queue()
    back: Queue[tuple[str, bytes]] = Queue()
    return MemoryLink(forth, back), MemoryLink(back, forth)
