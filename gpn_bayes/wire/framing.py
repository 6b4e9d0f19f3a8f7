"""Messages on a stream of bytes: a kind, a length and a content, with limits and deadlines; nothing is unpickled."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_HEADER = struct.Struct(">BI")
MAX_KIND = 40
# The largest message of which the receiver doesn't know the length beforehand.
MAX_UNKNOWN = 1 << 20
# A connection that moves fewer bytes a second counts as broken.
_SLOWEST = 25_000
_AT_ONCE = 1 << 16


class WireError(ConnectionError):
    """A connection that broke, ended too early or carried what it must not; the text never holds data."""


class Header(NamedTuple):
    """What stands before the content of a message."""

    kind: str
    length: int


def header_bytes(kind: str, length: int) -> bytes:
    r"""Return what stands before the content of a message.

    Examples
    --------
    >>> header_bytes("greeting", 5)
    b'\x08\x00\x00\x00\x05greeting'
    """
    encoded = kind.encode("ascii")
    if not 0 < len(encoded) <= MAX_KIND:
        raise ValueError(f"kinds of messages must have 1 to {MAX_KIND} characters; received {len(encoded)}")
    return _HEADER.pack(len(encoded), length) + encoded


def send_message(stream: socket.socket, kind: str, payload: bytes, patience: float) -> int:
    """Send a message; return how many bytes that took.

    Raises
    ------
    WireError
        If the connection breaks, or the other side doesn't take the message in time.
    """
    content = memoryview(header_bytes(kind, len(payload)) + payload)
    deadline = _deadline(patience, len(content))
    with _plain_errors(f"a message of kind {kind!r} couldn't be sent"):
        done = 0
        while done < len(content):
            stream.settimeout(_left(deadline))
            done += stream.send(content[done : done + _AT_ONCE])
    return len(content)


def receive_header(stream: socket.socket, due: str, patience: float) -> Header:
    """Wait for a message, and return its kind and length; the content is still to be read.

    Parameters
    ----------
    stream : socket
        Where it comes from.
    due : str
        The kind that is expected, for messages of errors.
    patience : float
        How many seconds to wait.
    """
    deadline = _deadline(patience, 0)
    what = f"a message of kind {due!r} was expected"
    kind_length, length = _HEADER.unpack(_read(stream, _HEADER.size, deadline, what))
    if not 0 < kind_length <= MAX_KIND:
        raise WireError(f"{what}; received other bytes")
    kind = _read(stream, kind_length, deadline, what)
    if not (kind.isascii() and kind.decode("ascii").isprintable()):
        raise WireError(f"{what}; received other bytes")
    return Header(kind.decode("ascii"), length)


def receive_content(stream: socket.socket, header: Header, length: int | None, patience: float) -> bytes:
    """Return the content of a message; refuse one of another length before anything of it is read.

    Parameters
    ----------
    stream : socket
        Where it comes from.
    header : Header
        Of the message.
    length : int, optional
        What it must have; by default anything up to `MAX_UNKNOWN`.
    patience : float
        How many seconds to wait, apart from what a slow connection takes.
    """
    rule = f"a message of kind {header.kind!r} must have"
    if length is not None and header.length != length:
        raise WireError(f"{rule} {length} bytes; received one of {header.length}")
    if length is None and header.length > MAX_UNKNOWN:
        raise WireError(f"{rule} {MAX_UNKNOWN} bytes at most; received one of {header.length}")
    deadline = _deadline(patience, header.length)
    return _read(stream, header.length, deadline, f"{rule} {header.length} bytes")


def drain(stream: socket.socket, seconds: float) -> None:
    """Read and forget what still comes, until the other side hangs up or the time is over."""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            stream.settimeout(_left(deadline))
            if not stream.recv(_AT_ONCE):
                return
    except OSError:
        return


def _read(stream: socket.socket, length: int, deadline: float, what: str) -> bytes:
    content = bytearray()
    with _plain_errors(what):
        while len(content) < length:
            stream.settimeout(_left(deadline))
            part = stream.recv(min(length - len(content), _AT_ONCE))
            if not part:
                raise WireError(f"{what}; the connection ended before it was complete")
            content += part
    return bytes(content)


@contextmanager
def _plain_errors(what: str) -> Iterator[None]:
    try:
        yield
    except WireError:
        raise
    except TimeoutError:
        raise WireError(f"{what}; it timed out") from None
    except OSError as error:
        # TLS has a reason where sockets have a text; neither holds data.
        raise WireError(f"{what}; the connection broke ({reason_of(error)})") from None


def reason_of(error: OSError) -> str:
    """Return in few words why a connection failed."""
    return str(getattr(error, "reason", None) or error.strerror or type(error).__name__).replace("_", " ").lower()


def _deadline(patience: float, length: int) -> float:
    return time.monotonic() + patience + length / _SLOWEST


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
