"""The calls of the federation's schema, for both ends of a connection, and the settings of gRPC that both share."""

from typing import Any

from gpn_bayes.wire import federation_pb2 as messages

_SERVICE = messages.DESCRIPTOR.services_by_name["Federation"]
SERVICE_NAME = str(_SERVICE.full_name)
# By name of the call: the types of its request and its reply.
CALLS: dict[str, tuple[Any, Any]] = {
    "Next": (messages.Poll, messages.Instruction),
    "Announce": (messages.Announcement, messages.Receipt),
    "Submit": (messages.Answer, messages.Receipt),
    "Refuse": (messages.Refusal, messages.Receipt),
    "Beat": (messages.Heartbeat, messages.Receipt),
}


def path(call: str) -> str:
    """Return the full name of a call."""
    return f"/{SERVICE_NAME}/{call}"


def options(most_bytes: int) -> list[tuple[str, int]]:
    """Return the settings of gRPC that both ends share.

    Parameters
    ----------
    most_bytes : int
        The largest message that is taken; of one that says it is larger than twice this, nothing is read.
    """
    return [
        # Twice the limit, so that a moderate excess reaches our own check, which logs it.
        ("grpc.max_receive_message_length", 2 * most_bytes),
        ("grpc.max_send_message_length", -1),
        # Nobody here compresses, and a small message could unpack to a thousand times its size: the limit is that of
        # what is sent.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.per_message_decompression", 0),
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]
