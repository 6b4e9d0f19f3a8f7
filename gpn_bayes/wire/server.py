"""The coordinator's end: a gRPC server behind mutual TLS that knows each client by its certificate."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn, Protocol

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from google.protobuf.message import DecodeError

from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire import service
from gpn_bayes.wire.certificates import Identity
from gpn_bayes.wire.limits import Limits

_log = logging.getLogger(__name__)
# One waits for instructions, one submits, one beats, and one may still wait from before the connection broke.
_CALLS_PER_CLIENT = 4
# To refuse further ones, no more than wait on a connection at the same time.
_CALLS_PER_CONNECTION = 2 * _CALLS_PER_CLIENT
# The largest message but for answers, and the largest answer where it isn't known how large it must be. A message of
# many empty parts takes forty times its size when it is read.
_MOST_BYTES = 1 << 16
_MOST_ANSWER_BYTES = 4 << 20


class Host(Protocol):
    """What answers the calls; each comes with the name of the client, as its certificate proves it.

    A ValueError is a refusal: its text, which must hold no data, goes to the client and into the log.
    """

    def next(self, client: str, poll: messages.Poll) -> messages.Instruction:
        """Return what the client is to do, when there is something or a heartbeat's time has passed."""

    def announce(self, client: str, announcement: messages.Announcement) -> None:
        """Take a client's key."""

    def submit(self, client: str, answer: messages.Answer) -> None:
        """Take a client's answer to a task."""

    def answer_bytes(self) -> int | None:
        """Return how large an answer to the present task may be; None if that isn't known."""

    def refuse(self, client: str, refusal: messages.Refusal) -> None:
        """Take note that a client doesn't follow an instruction."""

    def beat(self, client: str) -> None:
        """Take note that a client is alive."""


class Server:
    """A running server; to be closed.

    Parameters
    ----------
    host : Host
        What answers.
    listen : str
        ``address:port`` to listen at; port 0 takes any that is free.
    identity : Identity
        The coordinator's certificate and key.
    authority : bytes
        The certificate (PEM) that signed all others.
    fingerprints : dict of str to str
        The certificate that each client must show, by its name.
    limits : Limits
        How large messages may be, and how long they may take to come.
    largest : int, optional
        Bytes of the largest answer that the run will ask for, where that is known.

    Attributes
    ----------
    port : int
        Where it listens.
    """

    def __init__(
        self,
        host: Host,
        listen: str,
        identity: Identity,
        authority: bytes,
        fingerprints: Mapping[str, str],
        limits: Limits,
        largest: int | None = None,
    ) -> None:
        self._reception = _Reception(host, fingerprints, limits)
        # More than all clients together can hold, so that there is always one that refuses what is too much.
        self._pool = ThreadPoolExecutor(_CALLS_PER_CLIENT * len(fingerprints) + 2, "gpn-bayes-wire")
        # gRPC keeps what has come of a message, up to this: as many times as all clients may have calls under way.
        most_bytes = min(max(largest or _MOST_ANSWER_BYTES, _MOST_BYTES), limits.message_bytes)
        options = [
            *service.options(most_bytes),
            ("grpc.max_concurrent_streams", _CALLS_PER_CONNECTION),
            # Without this, a second coordinator could listen at the same port, and take half of the calls.
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.server(self._pool, options=options)
        self._server.add_generic_rpc_handlers((self._reception.handlers(),))
        credentials = grpc.ssl_server_credentials(
            [(identity.key_pem, identity.certificate_pem)], root_certificates=authority, require_client_auth=True
        )
        try:
            self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise ValueError(f"the coordinator must be able to listen at {listen!r}; it can't (in use?)") from None
        self._server.start()

    def close(self) -> None:
        """Stop listening; calls that wait are cut off."""
        self._server.stop(grace=0.2).wait()
        self._pool.shutdown(wait=False)


class _Reception:
    """Finds out who calls, and turns refusals into gRPC's words."""

    def __init__(self, host: Host, fingerprints: Mapping[str, str], limits: Limits) -> None:
        self._names = {value: name for name, value in fingerprints.items()}
        self._free = {name: threading.BoundedSemaphore(_CALLS_PER_CLIENT) for name in fingerprints}
        self._limits = limits
        self._answer_bytes = host.answer_bytes
        self._replies: dict[str, Callable[[str, Any], Any]] = {
            "Next": host.next,
            "Announce": host.announce,
            "Submit": host.submit,
            "Refuse": host.refuse,
            "Beat": lambda client, _: host.beat(client),
        }

    def handlers(self) -> "grpc.GenericRpcHandler[bytes, Any]":
        """Return one handler a call; requests arrive as bytes, so that their size is known before they are read.

        To gRPC each is a stream, of which the first message is taken: so nothing is read before it is known who calls,
        and a message that never ends holds none but its sender's share of the threads.
        """
        return grpc.method_handlers_generic_handler(
            service.SERVICE_NAME,
            {
                call: grpc.stream_unary_rpc_method_handler(
                    self._receive(call), response_serializer=lambda reply: reply.SerializeToString()
                )
                for call in service.CALLS
            },
        )

    def _receive(self, call: str) -> Callable[[Iterator[bytes], grpc.ServicerContext], Any]:
        request_type, _ = service.CALLS[call]

        def receive(incoming: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            client = self._client(call, context)
            if not self._free[client].acquire(blocking=False):
                _refuse(
                    context, grpc.StatusCode.UNAVAILABLE, call, f"client {client!r}",
                    f"a client must have {_CALLS_PER_CLIENT} calls under way at most; received another",
                )  # fmt: skip
            try:
                return answered(client, self._read(call, client, incoming, context), context)
            finally:
                self._free[client].release()

        def answered(client: str, received: bytes, context: grpc.ServicerContext) -> Any:
            try:
                reply = self._replies[call](client, request_type.FromString(received))
            except DecodeError:
                _refuse(
                    context, grpc.StatusCode.INVALID_ARGUMENT, call, f"client {client!r}",
                    "messages must be of the agreed schema; received another",
                )  # fmt: skip
            except ValueError as error:
                _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, call, f"client {client!r}", str(error))
            except Exception as error:
                # Neither the log nor the caller gets a text of which nobody knows what is in it.
                _log.error("%s from client %r failed: %s", call, client, type(error).__name__)
                context.abort(grpc.StatusCode.INTERNAL, "the coordinator failed; see its log")
            return messages.Receipt() if reply is None else reply

        return receive

    def _read(self, call: str, client: str, incoming: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """Return a call's message, or refuse it: one that is too large, or takes too long."""
        seconds = self._limits.deadline_seconds
        watch = threading.Timer(seconds, context.cancel)
        watch.daemon = True
        watch.start()
        received = None
        with suppress(grpc.RpcError):
            received = next(incoming, None)
        watch.cancel()
        if received is None:
            _refuse(
                context, grpc.StatusCode.INVALID_ARGUMENT, call, f"client {client!r}",
                f"a message must come whole within {seconds:g} seconds, and be no larger than the run needs; it didn't",
            )  # fmt: skip
        most = self._most_bytes(call)
        if len(received) > most:
            _refuse(
                context, grpc.StatusCode.RESOURCE_EXHAUSTED, call, f"client {client!r}",
                f"messages of this kind must have {most} bytes at most; received {len(received)}",
            )  # fmt: skip
        return received

    def _most_bytes(self, call: str) -> int:
        """Return how large a message may be that is yet to be read."""
        if call != "Submit":
            return min(_MOST_BYTES, self._limits.message_bytes)
        return min(self._answer_bytes() or _MOST_ANSWER_BYTES, self._limits.message_bytes)

    def _client(self, call: str, context: grpc.ServicerContext) -> str:
        """Return the name that the caller's certificate is pinned to, or refuse the call."""
        shown: Any = context.auth_context()["x509_pem_cert"][0]
        certificate = x509.load_pem_x509_certificate(shown)
        name = self._names.get(certificate.fingerprint(SHA256()).hex())
        if name is None:
            _refuse(
                context, grpc.StatusCode.PERMISSION_DENIED, call, "a caller whose certificate isn't known",
                "the certificate must be one of those that the coordinator knows; it isn't",
            )  # fmt: skip
        return name


def _refuse(context: grpc.ServicerContext, code: grpc.StatusCode, call: str, who: str, reason: str) -> NoReturn:
    _log.warning("refused %s from %s: %s", call, who, reason)
    context.abort(code, reason)
    raise AssertionError("abort always raises")
