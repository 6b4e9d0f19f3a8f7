"""A client's end: calls out to the coordinator behind mutual TLS, again and again until one gets through."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire import service
from gpn_bayes.wire.certificates import Identity
from gpn_bayes.wire.limits import Limits
from gpn_bayes.wire.pinning import pinned_certificate

_log = logging.getLogger(__name__)
_PAUSES = (0.1, 2.0)  # the first and the longest pause between two tries, in seconds
_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class Refused(ValueError):
    """The coordinator refused a message."""


class Dialler:
    """A connection to the coordinator; to be closed.

    Parameters
    ----------
    target : str
        ``host:port`` of the coordinator.
    identity : Identity
        This client's certificate and key.
    authority : bytes
        The certificate (PEM) that signed all others.
    coordinator : str
        The name that the coordinator's certificate must be made out to.
    limits : Limits
        Deadlines and patience.
    pinned : str, optional
        The SHA-256 of the only certificate that the coordinator may show, whoever signed it.
    """

    def __init__(
        self,
        target: str,
        identity: Identity,
        authority: bytes,
        coordinator: str,
        limits: Limits,
        pinned: str | None = None,
    ) -> None:
        self._target = target
        self._identity = identity
        self._authority = authority
        self._coordinator = coordinator
        self._limits = limits
        self._pinned = pinned
        self._connecting = threading.Lock()
        self._channel: grpc.Channel | None = None
        # Requests are handed over as bytes: what is sent again is the same to the last bit.
        self._calls: dict[str, Any] = {}

    def _connect(self) -> None:
        """Open the channel, unless it is open; where a certificate is pinned, it is the only authority."""
        with self._connecting:  # else a second thread would find the channel before its calls are there
            if self._channel is not None:
                return
            roots = self._authority
            if self._pinned is not None:
                roots = pinned_certificate(self._target, self._pinned, self._limits.deadline_seconds)
            first, longest = (int(1000 * pause) for pause in _PAUSES)
            self._channel = grpc.secure_channel(
                self._target,
                grpc.ssl_channel_credentials(roots, self._identity.key_pem, self._identity.certificate_pem),
                options=[
                    *service.options(self._limits.message_bytes),
                    # Who the coordinator is matters, not the address at which it is reached.
                    ("grpc.ssl_target_name_override", self._coordinator),
                    ("grpc.initial_reconnect_backoff_ms", first),
                    ("grpc.min_reconnect_backoff_ms", 1000),
                    ("grpc.max_reconnect_backoff_ms", longest),
                ],
            )
            self._calls = {
                call: self._channel.unary_unary(service.path(call), None, reply_type.FromString)
                for call, (_, reply_type) in service.CALLS.items()
            }

    def next(self, poll: messages.Poll) -> messages.Instruction:
        """Ask what to do; the reply may take a heartbeat's time."""
        instruction: messages.Instruction = self._insist(
            "Next", poll.SerializeToString(), self._limits.heartbeat_seconds
        )
        return instruction

    def announce(self, announcement: messages.Announcement) -> None:
        """Send this client's key."""
        self._insist("Announce", announcement.SerializeToString())

    def submit(self, answer: bytes) -> None:
        """Send the bytes of an answer."""
        self._insist("Submit", answer)

    def refuse(self, run: str, reason: messages.Reason) -> None:
        """Say why an instruction isn't followed."""
        self._insist("Refuse", messages.Refusal(run=run, reason=reason).SerializeToString())

    def beat(self) -> None:
        """Show that this client is alive; failures don't matter."""
        if not self._calls:
            return
        try:
            self._calls["Beat"](b"", timeout=self._limits.deadline_seconds)
        except grpc.RpcError:
            _log.debug("a heartbeat got lost")

    def close(self) -> None:
        """Hang up."""
        if self._channel is not None:
            self._channel.close()

    def _insist(self, call: str, request: bytes, waiting: float = 0.0) -> Any:
        """Call until a reply comes, with longer and longer pauses.

        Raises
        ------
        Refused
            If the coordinator doesn't take the message.
        WrongCertificate
            If it isn't the one that is pinned.
        ConnectionError
            When patience is at its end.
        """
        started = time.monotonic()
        pause, levels = _PAUSES[0], [logging.INFO, logging.WARNING]
        while True:
            try:
                self._connect()
                return self._calls[call](request, timeout=waiting + self._limits.deadline_seconds)
            except OSError as error:
                details: str | None = str(error)
            except grpc.RpcError as error:
                code, details = error.code(), error.details()
                if code not in _PASSING:
                    raise Refused(f"the coordinator refused {call}: {details}") from None
            lost = time.monotonic() - started
            if lost > self._limits.patience_seconds:
                raise ConnectionError(
                    f"the coordinator at {self._target} must be reachable; it wasn't for "
                    f"{self._limits.patience_seconds:g} seconds ({details})"
                )
            # It may not have been started yet; logged at once, and as a warning if it takes long.
            if levels and (len(levels) == 2 or lost > self._limits.silence_seconds):
                _log.log(levels.pop(0), "the coordinator at %s can't be reached (%s)", self._target, details)
            # Clients that lost the same coordinator should not all come back in the same moment.
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _PAUSES[1])


class Heartbeat:
    """Calls something again and again in the background, while a block runs.

    Examples
    --------
    >>> beats = []
    >>> with Heartbeat(lambda: beats.append(1), 0.01):
    ...     time.sleep(0.1)
    >>> len(beats) > 1
    True
    """

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpn-bayes-heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop, whatever happened."""
        self._over.set()
        self._thread.join(timeout=1)  # it may be in a call that hangs; it ends with the process then

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            self._beat()
