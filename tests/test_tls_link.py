"""The link over TLS: whom it lets in, what it lets through, and how soon it gives up."""

import os
import socket
import ssl
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from gpn_bayes.wire import framing, tls_link
from gpn_bayes.wire.framing import WireError, header_bytes
from gpn_bayes.wire.tls_link import REASONS, Credentials, Listener, connect
from tests.tls_parties import HOST, PATIENCE, meet, write_credentials


@pytest.fixture(scope="module")
def credentials(tmp_path_factory):
    return write_credentials(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def ends(credentials):
    first, second = meet(*credentials)
    with first, second:
        yield first, second


def refused(function, *arguments):
    """Return the text of the error, which must come before the deadline."""
    started = time.monotonic()
    with pytest.raises(WireError) as message:
        function(*arguments)
    assert time.monotonic() - started < PATIENCE + 2
    assert "\n" not in str(message.value)
    return str(message.value)


# Messages


def test_messages_arrive_in_order_and_are_counted(ends):
    first, second = ends
    contents = [b"", b"x", os.urandom(300_000)]
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(lambda: [first.send("part", content) for content in contents])
        assert [second.receive("part", len(content)) for content in contents] == contents
        sending.result(5)
    # The greetings of both come before.
    assert first.sent == second.received == sum(len(content) + 9 for content in contents) + 26
    assert second.sent == first.received == 26


def test_the_longest_message_of_unknown_length(ends, monkeypatch):
    monkeypatch.setattr(framing, "MAX_UNKNOWN", 10)
    first, second = ends
    first.send("part", bytes(10))
    assert second.receive("part") == bytes(10)
    first.send("part", bytes(11))
    message = refused(second.receive, "part")
    assert message == "a message of kind 'part' must have 10 bytes at most; received one of 11"


def test_another_kind_or_length(ends):
    first, second = ends
    first.send("chatter", b"secret")
    message = refused(second.receive, "part")
    assert message == "a message of kind 'part' was expected; received one of kind 'chatter'"
    second.send("part", b"secret")
    assert refused(first.receive, "part", 7) == "a message of kind 'part' must have 7 bytes; received one of 6"


@pytest.mark.parametrize(
    "garbage",
    [b"\x00" * 20, b"\xff" * 300, struct.pack(">BI", 4, 5) + b"\xff\xfe\x00\x01", b"GET / HTTP/1.1\r\n\r\n" * 4],
)
def test_garbage(ends, garbage):
    """From the right party, and within TLS."""
    first, second = ends
    first._stream.sendall(garbage)
    assert refused(second.receive, "part") == "a message of kind 'part' was expected; received other bytes"


def test_garbage_below_tls(ends):
    first, second = ends
    with socket.socket(fileno=os.dup(first._stream.fileno())) as below:
        below.sendall(os.urandom(500))
    assert refused(second.receive, "part").startswith("a message of kind 'part' was expected; the connection broke (")


def test_a_truncated_message(ends):
    first, second = ends
    first._stream.sendall(header_bytes("part", 100) + bytes(50))
    first.close()
    message = refused(second.receive, "part", 100)
    assert message.startswith("a message of kind 'part' must have 100 bytes; the connection ")


def test_a_message_that_stops_half_way(ends):
    first, second = ends
    second._patience = 0.3
    first._stream.sendall(header_bytes("part", 100) + bytes(50))
    assert refused(second.receive, "part", 100) == "a message of kind 'part' must have 100 bytes; it timed out"


def test_a_message_that_trickles(ends, monkeypatch):
    """Bytes that come one by one don't put the deadline off."""
    monkeypatch.setattr(framing, "_SLOWEST", 1e9)
    first, second = ends
    second._patience = 0.5
    first._stream.sendall(header_bytes("part", 100))

    def trickle():
        for _ in range(20):
            time.sleep(0.1)
            first._stream.send(b"x")

    with ThreadPoolExecutor(1) as pool:
        trickling = pool.submit(trickle)
        assert refused(second.receive, "part", 100).endswith("it timed out")
        trickling.result(5)


def test_silence(ends):
    ends[1]._patience = 0.3
    assert refused(ends[1].receive, "part") == "a message of kind 'part' was expected; it timed out"


def test_a_cut_connection(ends):
    first, second = ends
    first._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    first.close()
    assert refused(second.receive, "part").startswith("a message of kind 'part' was expected; the connection ")


def test_a_party_that_takes_nothing(ends):
    first, _ = ends
    first._patience = 0.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "_SLOWEST", 1e9)
        message = refused(first.send, "part", bytes(30_000_000))
    assert message == "a message of kind 'part' couldn't be sent; it timed out"


@pytest.mark.parametrize("kind", ["", "x" * 41])
def test_kinds_that_are_too_short_or_long(kind):
    with pytest.raises(ValueError, match=f"^kinds of messages must have 1 to 40 characters; received {len(kind)}$"):
        header_bytes(kind, 0)


# The end


@pytest.mark.parametrize(("code", "reason"), REASONS.items())
def test_the_other_party_is_told_why(ends, code, reason):
    first, second = ends
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(first.abort, code)
        assert refused(second.receive, "part") == f"the other party ended the run: {reason}"
        # Who was told ends without a word.
        second.abort(b"failed")
        second.close()
        ending.result(5)


def test_texts_of_the_other_partys_choice_are_not_shown(ends):
    first, second = ends
    first.send("the end", b"\x1b[31m secret")
    assert refused(second.receive, "part") == "the other party ended the run: it gave no reason"


def test_the_reason_arrives_though_much_was_under_way(ends):
    """The other party is still sending when this one ends the run."""
    first, second = ends

    def talk():
        try:
            second.send("part", bytes(5_000_000))
            second.receive("part")
        finally:
            second.close()

    with ThreadPoolExecutor(1) as pool:
        talking = pool.submit(talk)
        time.sleep(0.2)
        first.abort(b"refused")
        first.close()
        assert str(talking.exception(10)) == f"the other party ended the run: {REASONS[b'refused']}"


def test_nothing_follows_half_a_message(ends):
    first, second = ends
    first._in_message = True  # as after Ctrl-C in the middle of one
    first.abort(b"interrupted")
    first.close()
    assert refused(second.receive, "part").startswith("a message of kind 'part' was expected; the connection ")


# Certificates


def test_both_must_show_the_expected_certificate(credentials, tmp_path):
    listening, calling = credentials
    stranger = write_credentials(tmp_path)[1]
    posing = Credentials(stranger.certificate, stranger.key, calling.peer)
    listeners, callers = meet(listening, posing, wait=1)
    assert str(listeners).startswith("the other party must call within 1 s; it didn't; a caller was refused: ")
    assert "the other party's certificate must be the expected one; it isn't" in str(listeners)
    assert str(callers).startswith("the other party must accept this party's certificate; it may not have: ")
    listeners, callers = meet(write_credentials(tmp_path)[0], calling, wait=1)
    assert str(callers).startswith("the other party's certificate must be the expected one; it isn't")
    assert "a caller was refused" in str(listeners)


def test_a_signature_of_the_same_authority_is_not_enough(tmp_path):
    """The pinned certificate counts, not who signed it."""
    from gpn_bayes.wire.certificates import new_authority, new_party

    authority = new_authority(1)
    for name, hosts in (("listen", ["localhost"]), ("connect", None), ("other", None)):
        new_party(authority, name, hosts, 1).write(tmp_path / f"{name}.pem", tmp_path / f"{name}_key.pem")
    listening = Credentials(tmp_path / "listen.pem", tmp_path / "listen_key.pem", tmp_path / "connect.pem")
    calling = Credentials(tmp_path / "other.pem", tmp_path / "other_key.pem", tmp_path / "listen.pem")
    listeners, callers = meet(listening, calling, wait=1)
    assert isinstance(listeners, WireError)
    assert isinstance(callers, WireError)


def test_an_expired_certificate(tmp_path):
    listening, calling = write_credentials(tmp_path, days=0)
    time.sleep(1.1)
    listeners, callers = meet(listening, calling, wait=1)
    assert "expired" in str(callers)
    assert isinstance(listeners, WireError)


def test_the_check_of_the_certificate_itself(credentials):
    """Should TLS accept a certificate that isn't the expected one, it is still refused."""

    class Shown:
        def getpeercert(self, binary_form):
            return b"another"

    with pytest.raises(WireError, match="^the other party's certificate must be the expected one; it is another$"):
        credentials[0].check_peer(Shown())


def test_strangers_are_turned_away_and_the_right_party_gets_through(credentials):
    listener = Listener((HOST, 0), credentials[0])
    message = []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(listener.accept, 5, PATIENCE, message.append)
        with socket.create_connection((HOST, listener.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionResetError):
                stranger.recv(100)
        with connect((HOST, listener.port), credentials[1], 5, PATIENCE) as second, waiting.result(5) as first:
            second.send("part", b"x")
            assert first.receive("part") == b"x"
    listener.close()
    assert message == ["a caller was refused: the other party must begin with TLS; it didn't (http request)"]


def test_old_versions_of_tls_are_refused(credentials):
    listener = Listener((HOST, 0), credentials[0])
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(listener.accept, 1, PATIENCE)
        with socket.create_connection((HOST, listener.port)) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain)
        assert "a caller was refused" in str(waiting.exception(5))
    listener.close()


def test_another_version_of_the_link(credentials, monkeypatch):
    versions = iter([b"gpn_bayes link 1", b"gpn_bayes link 2"])
    send = tls_link.TlsLink.send
    monkeypatch.setattr(tls_link.TlsLink, "send", lambda self, kind, content: send(self, kind, next(versions)))
    errors = meet(*credentials, wait=1)
    rule = "both parties must use the same version of the link; the other uses another"
    assert sum(rule in str(error) for error in errors) == 1
    for end in errors:
        if isinstance(end, tls_link.TlsLink):
            end.close()


def test_nobody_there(credentials):
    listener = Listener((HOST, 0), credentials[0])
    with pytest.raises(WireError, match="^the other party must call within 0.2 s; it didn't$"):
        listener.accept(0.2, PATIENCE)
    address = (HOST, listener.port)
    with pytest.raises(ValueError, match="^the address to listen at must be free and this machine's; "):
        Listener(address, credentials[0])
    listener.close()
    rule = rf"^the other party must listen at {HOST}:{address[1]}; it didn't for 0.5 s \(connection refused\)$"
    with pytest.raises(WireError, match=rule):
        connect(address, credentials[1], 0.5, PATIENCE)


def test_files_that_are_missing_or_unfit(credentials, tmp_path):
    good = credentials[0]
    with pytest.raises(ValueError, match="^the files of certificates and keys must exist; "):
        Credentials(good.certificate, good.key, tmp_path / "peer.pem").context(server=True)
    with pytest.raises(ValueError, match="^a key must belong to its certificate; "):
        Credentials(good.certificate, credentials[1].key, good.peer).context(server=True)


def test_idle_callers_keep_nobody_waiting(credentials):
    """More connections that say nothing than callers are heard at a time; a serial handshake takes 10 s for each."""
    here, there = credentials
    listener = Listener(("127.0.0.1", 0), here)
    idle = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(50)]
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool, closing(listener):
        accepted = pool.submit(listener.accept, 30.0, 5.0)
        with connect(("127.0.0.1", listener.port), there, 30.0, 5.0) as ours, accepted.result() as theirs:
            assert time.monotonic() - began < 5
            ours.send("hello again", b"x")
            assert theirs.receive("hello again") == b"x"
    for connection in idle:
        connection.close()


def test_a_call_that_fails_is_made_again(credentials):
    """The first to answer at the address hangs up."""
    here, there = credentials
    with socket.create_server(("127.0.0.1", 0)) as impatient:
        port = impatient.getsockname()[1]
        with ThreadPoolExecutor(2) as pool:
            calling = pool.submit(connect, ("127.0.0.1", port), there, 30.0, 5.0)
            for _ in range(2):
                impatient.accept()[0].close()
            impatient.close()
            listener = Listener(("127.0.0.1", port), here)
            with closing(listener), listener.accept(20.0, 5.0) as theirs, calling.result() as ours:
                ours.send("hello again", b"x")
                assert theirs.receive("hello again") == b"x"
