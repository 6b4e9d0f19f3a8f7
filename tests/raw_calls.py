"""A client that speaks HTTP/2 by hand, and so can begin calls whose message never ends, which gRPC's own can't."""

import select
import socket
import ssl
import struct
import time
from pathlib import Path
from typing import Self

from gpn_bayes.wire import service
from gpn_bayes.wire.certificates import Identity

_DATA, _HEADERS, _RST, _SETTINGS, _PING, _WINDOW = 0, 1, 3, 4, 6, 8
_ACK = _END_STREAM = 1
_END_HEADERS = 4
_FIRST_WINDOW_SIZE = 4  # among the settings
_FRAME = 16384


class RawCalls:
    """A connection on which calls are begun; to be closed. All in one thread, which must ask for what has come.

    Parameters
    ----------
    port : int
        Where the coordinator listens.
    identity : Identity
        Whose certificate is shown.
    folder : path
        Where it is written, since Python's TLS asks for files.

    Attributes
    ----------
    over : set of int
        The calls that the server has answered or reset.
    closed : bool
        Whether the server has hung up.
    """

    def __init__(self, port: int, identity: Identity, folder: Path) -> None:
        identity.write(folder / "raw.pem", folder / "raw.key")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(folder / "raw.pem", folder / "raw.key")
        context.set_alpn_protocols(["h2"])
        self._stream = context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10))
        self._stream.setblocking(False)
        self._received = b""
        self._first_window = 65535
        self._windows = {0: self._first_window}
        self._last = -1
        self.over: set[int] = set()
        self.closed = False
        self._write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b""))

    def begin(self, call: str, length: int, content: bytes = b"") -> int:
        """Begin a call with a message of a length, of which only a part is sent; return the call's number."""
        self._last += 2
        self._windows[self._last] = self._first_window
        fields = {
            ":method": "POST", ":scheme": "https", ":path": service.path(call), ":authority": "coordinator",
            "content-type": "application/grpc", "te": "trailers",
        }  # fmt: skip
        block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())
        self._write(_frame(_HEADERS, _END_HEADERS, self._last, block))
        self.send(self._last, struct.pack(">BI", 0, length) + content)
        return self._last

    def send(self, number: int, content: bytes, seconds: float = 2.0) -> int:
        """Send more of a message, as far as the server lets it within a time; return how much that was."""
        sent, deadline = 0, time.monotonic() + seconds
        while sent < len(content) and not self.closed and number not in self.over and time.monotonic() < deadline:
            room = min(self._windows[0], self._windows[number], _FRAME)
            if room <= 0:
                self.listen(0.05)
                continue
            part = content[sent : sent + room]
            self._windows[0] -= len(part)
            self._windows[number] -= len(part)
            self._write(_frame(_DATA, 0, number, part))
            sent += len(part)
            self.listen(0.0)
        return sent

    def listen(self, seconds: float) -> None:
        """Take what the server sends, until nothing has come for a time."""
        while not self.closed:
            try:
                part = self._stream.recv(1 << 16)
            except ssl.SSLWantReadError:
                if not select.select([self._stream], [], [], seconds)[0]:
                    return
            except OSError:
                self.closed = True
            else:
                self.closed = not part
                self._received += part
                self._take_frames()

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._stream.close()

    def __enter__(self) -> Self:
        """Return the connection, which is closed at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Hang up."""
        self.close()

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        while len(left) and not self.closed:
            try:
                left = left[self._stream.send(left) :]
            except ssl.SSLWantWriteError:
                select.select([], [self._stream], [], 1.0)
            except OSError:
                self.closed = True

    def _take_frames(self) -> None:
        while len(self._received) >= 9:
            length = int.from_bytes(self._received[:3])
            if len(self._received) < 9 + length:
                return
            kind, flags = self._received[3:5]
            number = int.from_bytes(self._received[5:9]) & 0x7FFFFFFF
            content, self._received = self._received[9 : 9 + length], self._received[9 + length :]
            self._take(kind, flags, number, content)

    def _take(self, kind: int, flags: int, number: int, content: bytes) -> None:
        if kind == _WINDOW:
            self._windows[number] = self._windows.get(number, 0) + int.from_bytes(content)
        elif kind == _SETTINGS and not flags & _ACK:
            for name, value in struct.iter_unpack(">HI", content):
                if name == _FIRST_WINDOW_SIZE:
                    for call in self._windows.keys() - {0}:
                        self._windows[call] += value - self._first_window
                    self._first_window = value
            self._write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._write(_frame(_PING, _ACK, 0, content))
        elif kind == _RST or (kind == _HEADERS and flags & _END_STREAM):
            self.over.add(number)


def _frame(kind: int, flags: int, number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3) + bytes((kind, flags)) + number.to_bytes(4) + content


def _text(value: str) -> bytes:
    encoded = value.encode()
    assert len(encoded) < 127
    return bytes((len(encoded),)) + encoded
