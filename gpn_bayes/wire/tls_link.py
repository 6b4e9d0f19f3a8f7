"""A link between two parties: mutual TLS over a plain socket, each end knowing the one certificate it talks to."""

import hashlib
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives.serialization import Encoding

from gpn_bayes.wire.certificates import read_certificate, read_identity
from gpn_bayes.wire.framing import (
    WireError,
    drain,
    header_bytes,
    reason_of,
    receive_content,
    receive_header,
    send_message,
)

_HELLO = "hello"
_VERSION = b"gpn_bayes link 1"
_END = "the end"
# The reasons that may be sent for the end of a run: fixed texts, so that no error text ever leaves.
REASONS = {
    b"interrupted": "it was interrupted",
    b"refused": "it refused a setting or a table",
    b"protocol": "it received an invalid message, or none in time",
    b"failed": "it failed",
}
_HANDSHAKE_SECONDS = 10.0
# Callers whose certificates are looked at at the same time, and seconds between looks at what became of them.
_MOST_CALLERS = 32
_GLANCE = 0.02
_PAUSE = 0.2
_FAREWELL_SECONDS = 2.0


class Unacceptable(WireError):
    """The other party isn't the expected one, or of another version: to try again changes nothing."""


@dataclass(frozen=True)
class Credentials:
    """The files that prove who a party is, and who the other must be.

    Parameters
    ----------
    certificate, key : path
        This party's certificate and its private key (PEM).
    peer : path
        The other party's certificate (PEM); no other is accepted, whoever signed it.
    """

    certificate: Path
    key: Path
    peer: Path

    def context(self, server: bool) -> ssl.SSLContext:
        """Return the settings of TLS 1.3 for one end; both show their certificate.

        Raises
        ------
        ValueError
            If a file is missing or unfit.
        """
        read_identity(self.certificate, self.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if server:
            context.num_tickets = 0
        # Who the other is matters, not the address at which it is reached.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=self._peer_bytes())
        context.load_cert_chain(self.certificate, self.key)
        return context

    def check_peer(self, stream: ssl.SSLSocket) -> None:
        """Refuse any certificate but the one that is expected."""
        shown = stream.getpeercert(binary_form=True) or b""
        if hashlib.sha256(shown).digest() != hashlib.sha256(self._peer_bytes()).digest():
            raise Unacceptable("the other party's certificate must be the expected one; it is another")

    def _peer_bytes(self) -> bytes:
        return read_certificate(self.peer).public_bytes(Encoding.DER)


class TlsLink:
    """One end of a conversation; to be closed.

    Parameters
    ----------
    stream : SSLSocket
        A connection on which both have shown their certificates.
    patience : float
        Seconds to wait for each message, apart from what a slow connection takes.

    Attributes
    ----------
    sent, received : int
        Bytes so far, with the headers of messages but without what TLS adds.
    """

    def __init__(self, stream: socket.socket, patience: float) -> None:
        self._stream = stream
        self._patience = patience
        self._in_message = False
        self._over = False
        self.sent = 0
        self.received = 0

    def __enter__(self) -> Self:
        """Return the link, which is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the link."""
        self.close()

    def send(self, kind: str, payload: bytes) -> None:
        """Send a message."""
        # What was begun and not finished can't be followed by anything.
        self._in_message = True
        self.sent += send_message(self._stream, kind, payload, self._patience)
        self._in_message = False

    def receive(self, kind: str, length: int | None = None) -> bytes:
        """Wait for the next message, which must be of this kind and, where given, of this length.

        Raises
        ------
        WireError
            For a message of another kind or length, where none comes in time, where the connection breaks, and where
            the other party ended the run.
        """
        header = receive_header(self._stream, kind, self._patience)
        if header.kind == _END:
            self._over = True
            code = receive_content(self._stream, header, None, self._patience)
            raise WireError(f"the other party ended the run: {REASONS.get(code, 'it gave no reason')}")
        if header.kind != kind:
            raise WireError(f"a message of kind {kind!r} was expected; received one of kind {header.kind!r}")
        content = receive_content(self._stream, header, length, self._patience)
        self.received += len(header_bytes(kind, 0)) + len(content)
        return content

    def abort(self, reason: bytes) -> None:
        """Tell the other party, if it still listens, that and why the run is over; one of `REASONS`."""
        if self._in_message or self._over:
            return
        try:
            send_message(self._stream, _END, reason, _FAREWELL_SECONDS)
        except WireError:
            return
        # Closed at once, a socket with unread bytes would take back what was sent last.
        drain(self._stream, _FAREWELL_SECONDS)

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def _greet(self) -> None:
        """Make sure that the other party accepts this one, which TLS tells a client late."""
        try:
            self.send(_HELLO, _VERSION)
            answer = self.receive(_HELLO)
        except WireError as error:
            raise WireError(f"the other party must accept this party's certificate; it may not have: {error}") from None
        if answer != _VERSION:
            raise Unacceptable("both parties must use the same version of the link; the other uses another")


class Listener:
    """Waits for the other party to call; to be closed.

    Parameters
    ----------
    address : (str, int)
        Host and port; port 0 takes any that is free.
    credentials : Credentials
        Who this party is, and who may call.

    Attributes
    ----------
    port : int
        Where it listens.
    """

    def __init__(self, address: tuple[str, int], credentials: Credentials) -> None:
        self._credentials = credentials
        self._context = credentials.context(server=True)
        try:
            self._socket = socket.create_server(address)
        except OSError as error:
            raise ValueError(
                f"the address to listen at must be free and this machine's; {_text(address)} isn't ({reason_of(error)})"
            ) from None
        self.port = int(self._socket.getsockname()[1])

    def accept(self, wait: float, patience: float, tell: Callable[[str], None] = lambda text: None) -> TlsLink:
        """Return the link to the first caller with the right certificate; others are refused.

        Parameters
        ----------
        wait : float
            How many seconds to wait for the call.
        patience : float
            How many seconds to wait for each message, later.
        tell : callable
            Called with the reason why a caller was refused.
        """
        deadline, refused = time.monotonic() + wait, ""
        with _Callers(lambda plain: _meet(plain, self._context, self._credentials, patience, server=True)) as callers:
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(min(left, _GLANCE))
                with suppress(TimeoutError):
                    callers.welcome(self._socket.accept()[0])
                for met in callers.met():
                    if isinstance(met, TlsLink):
                        return met  # the one who has the expected certificate calls once
                    refused = f"; a caller was refused: {met}"
                    tell(f"a caller was refused: {met}")
        raise WireError(f"the other party must call within {wait:g} s; it didn't{refused}")

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class _Callers:
    """Callers who prove who they are, each in a thread of its own, so that none keeps the others waiting.

    Parameters
    ----------
    meet : callable
        Takes a caller's socket, and returns the link or raises a `WireError`.
    """

    def __init__(self, meet: Callable[[socket.socket], TlsLink]) -> None:
        self._meet = meet
        self._outcomes: SimpleQueue[tuple[socket.socket, TlsLink | WireError]] = SimpleQueue()
        self._pending: list[socket.socket] = []
        self._over = False

    def welcome(self, plain: socket.socket) -> None:
        """Take a caller; where there are too many, the one who has taken longest is dropped."""
        if len(self._pending) == _MOST_CALLERS:
            _cut(self._pending.pop(0))
        self._pending.append(plain)
        Thread(target=self._try, args=(plain,), name="gpn-bayes-caller", daemon=True).start()

    def met(self) -> list[TlsLink | WireError]:
        """Return what has become of callers since this was last asked."""
        outcomes = []
        while not self._outcomes.empty():
            plain, outcome = self._outcomes.get()
            if plain in self._pending:
                self._pending.remove(plain)
            outcomes.append(outcome)
        return outcomes

    def __enter__(self) -> Self:
        """Return the callers, of whom those who are still at it are dropped at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Drop all but the one who was taken."""
        self._over = True
        for plain in self._pending:
            _cut(plain)
        for late in self.met():
            if isinstance(late, TlsLink):
                late.close()

    def _try(self, plain: socket.socket) -> None:
        try:
            outcome: TlsLink | WireError = self._meet(plain)
        except WireError as error:
            outcome = error
        if self._over and isinstance(outcome, TlsLink):
            outcome.close()
        else:
            self._outcomes.put((plain, outcome))


def _cut(plain: socket.socket) -> None:
    """End a connection that another thread waits for, which then closes it."""
    with suppress(OSError):
        plain.shutdown(socket.SHUT_RDWR)


def connect(address: tuple[str, int], credentials: Credentials, wait: float, patience: float) -> TlsLink:
    """Call the other party, again and again until it listens, and return the link.

    Parameters
    ----------
    address : (str, int)
        Where the other party listens.
    credentials : Credentials
        Who this party is, and who must answer.
    wait : float
        How many seconds to try.
    patience : float
        How many seconds to wait for each message, later.
    """
    context = credentials.context(server=False)
    deadline = time.monotonic() + wait
    while True:
        try:
            plain = socket.create_connection(address, timeout=_HANDSHAKE_SECONDS)
            return _meet(plain, context, credentials, patience, server=False)
        except Unacceptable:
            raise
        except WireError:
            # Whoever listens may be busy with somebody else.
            if time.monotonic() + _PAUSE > deadline:
                raise
        except OSError as error:
            if time.monotonic() + _PAUSE > deadline:
                raise WireError(
                    f"the other party must listen at {_text(address)}; it didn't for {wait:g} s ({reason_of(error)})"
                ) from None
        time.sleep(_PAUSE)


def _meet(
    plain: socket.socket, context: ssl.SSLContext, credentials: Credentials, patience: float, server: bool
) -> TlsLink:
    """Return a link on which both parties have accepted each other; hang up if they don't."""
    plain.settimeout(_HANDSHAKE_SECONDS)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = plain
    try:
        stream = _handshake(plain, context, server)
        credentials.check_peer(stream)
        link = TlsLink(stream, _HANDSHAKE_SECONDS)
        link._greet()
        link._patience = patience
        return link
    except BaseException:
        stream.close()
        raise


def _handshake(plain: socket.socket, context: ssl.SSLContext, server: bool) -> ssl.SSLSocket:
    try:
        return context.wrap_socket(plain, server_side=server)
    except ssl.SSLCertVerificationError as error:
        raise Unacceptable(
            f"the other party's certificate must be the expected one; it isn't ({error.verify_message})"
        ) from None
    except TimeoutError:
        raise WireError("the other party must begin with TLS; it didn't in time") from None
    except OSError as error:
        raise WireError(f"the other party must begin with TLS; it didn't ({reason_of(error)})") from None


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
