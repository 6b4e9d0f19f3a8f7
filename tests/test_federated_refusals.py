"""Over loopback with mutual TLS: what a coordinator must refuse is refused and logged, and the run unharmed."""

import resource
import time
from contextlib import suppress
from dataclasses import replace

import grpc
import numpy as np
import pandas as pd
import pytest

from gpn_bayes.data import read_part
from gpn_bayes.federated.combining import most_bytes
from gpn_bayes.federated.interface import Channel
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.coordinator import coordinate
from gpn_bayes.federated.processes.translation import (
    key_to_message,
    keys_from_message,
    plan_from_message,
    request_from_message,
)
from gpn_bayes.federated.programs import PROGRAMS
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.secure import fixed_point
from gpn_bayes.secure.key_exchange import fingerprint
from gpn_bayes.wire import arrays, service
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.certificates import new_authority, new_party
from gpn_bayes.wire.dialler import Dialler, Refused
from gpn_bayes.wire.limits import Limits
from gpn_bayes.wire.server import Server
from tests.federation import (
    DESCENT,
    Background,
    DescentParticipant,
    Parties,
    Script,
    changed,
    check_log,
    check_refused,
    clients_in_threads,
    in_memory,
    tables,
)
from tests.raw_calls import RawCalls

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
PARTS = dict(zip(NAMES, tables((20, 30, 25), 3), strict=True))
COLUMNS = list(PARTS["a"].columns)
ROUNDS = 4


@pytest.fixture(autouse=True)
def descent(monkeypatch):
    monkeypatch.setitem(PROGRAMS, "descent", DESCENT)


def expected():
    return in_memory(list(PARTS.values()), {"rounds": ROUNDS})


def new_parties(folder, **limits):
    return Parties(folder, NAMES, COLUMNS, "descent", f"rounds = {ROUNDS}", **limits)


def dial(parties, name, identity=None, **limits):
    config = parties.client(name)
    credentials = config.credentials
    return Dialler(
        config.coordinator, identity or credentials.identity, credentials.authority, config.coordinator_name,
        replace(config.limits, **limits),
    )  # fmt: skip


class ByHand:
    """Client c, step by step."""

    def __init__(self, parties):
        self.parties = parties
        self.dialler = dial(parties, "c")
        self.session = None

    def instruction(self, kind):
        """Wait for an instruction of a kind."""
        for _ in range(100):
            poll = messages.Poll()
            if self.session is not None:
                poll = messages.Poll(run=self.session.plan.run, keyed=self.session.keyed)
            found = self.dialler.next(poll)
            if found.WhichOneof("kind") == kind:
                return getattr(found, kind)
            assert found.WhichOneof("kind") == "wait"
        raise AssertionError(f"no {kind} came")

    def open_session(self):
        plan = plan_from_message(self.instruction("plan"))
        self.session = ClientSession(plan, "c", DescentParticipant(read_part(PARTS["c"]), {}))
        return self.session

    def announcement(self, session=None):
        session = session or self.session
        return key_to_message(session.plan.run, session.signed_key(self.parties.signer("c")))

    def join(self):
        self.open_session()
        self.dialler.announce(self.announcement())
        self.take_keys()

    def take_keys(self):
        self.session.accept_keys(
            keys_from_message(self.instruction("keys")), self.parties.client("c").credentials.fingerprints
        )

    def answer(self):
        task = self.instruction("task")
        return self.session.answer(task.round, request_from_message(task))

    def finish(self, rounds):
        for _ in range(rounds):
            self.dialler.submit(self.answer())
        assert self.instruction("end").finished
        self.dialler.close()


def test_strangers_and_impostors_are_refused(tmp_path, caplog):
    parties = new_parties(tmp_path)
    coordinator = Background(coordinate, parties.coordinator())
    stranger = dial(parties, "c", new_party(new_authority(), "c"), patience_seconds=0.5, deadline_seconds=0.5)
    with pytest.raises(
        ConnectionError, match="^the coordinator at 127.0.0.1:[0-9]+ must be reachable; it wasn't for 0.5"
    ):
        stranger.next(messages.Poll())
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours = ByHand(parties)
        ours.open_session()
        # Client b with its own certificate, and a key in the name of c.
        impostor = dial(parties, "b")
        check_refused(impostor.announce, ours.announcement(), "and from the client that sends it; received another")
        impostor.close()
        ours.join()
        ours.finish(ROUNDS)
    stranger.close()
    np.testing.assert_array_equal(np.load(coordinator.result())["weights"], expected()["weights"])
    check_log(caplog, "refused Announce from client 'b': a key must be for the current run and from the client")


def test_a_certificate_of_the_same_authority_that_is_not_pinned(tmp_path, caplog):
    authority = new_authority()
    known = {name: new_party(authority, name) for name in ("a", "b")}
    other = new_party(authority, "a")  # the same name, signed by the same authority; but not that certificate
    host = Script([])
    limits = Limits(deadline_seconds=5, patience_seconds=5)
    coordinator = new_party(authority, "coordinator", hosts=("localhost",))
    pinned = {name: fingerprint(identity.der) for name, identity in known.items()}
    server = Server(host, "127.0.0.1:0", coordinator, authority.certificate_pem, pinned, limits)
    target = f"127.0.0.1:{server.port}"
    try:
        for identity in (other, new_party(authority, "mallory")):
            dialler = Dialler(target, identity, authority.certificate_pem, "coordinator", limits)
            check_refused(
                dialler.next, messages.Poll(), "the certificate must be one of those that the coordinator knows"
            )
            dialler.close()
        dialler = Dialler(target, known["a"], authority.certificate_pem, "coordinator", limits)
        assert dialler.next(messages.Poll()).WhichOneof("kind") == "end"
        dialler.close()
        # A client's certificate doesn't make a coordinator, nor does another name.
        dialler = Dialler(
            target, known["a"], authority.certificate_pem, "someone", replace(limits, patience_seconds=0.2)
        )
        with pytest.raises(ConnectionError):
            dialler.next(messages.Poll())
        dialler.close()
    finally:
        server.close()
    check_log(caplog, "refused Next from a caller whose certificate isn't known")


def test_a_client_certificate_does_not_make_a_coordinator():
    authority = new_authority()
    client = new_party(authority, "a")
    limits = Limits(deadline_seconds=1, patience_seconds=0.3)
    server = Server(
        Script([]), "127.0.0.1:0", new_party(authority, "coordinator"), authority.certificate_pem, {}, limits
    )
    dialler = Dialler(f"127.0.0.1:{server.port}", client, authority.certificate_pem, "coordinator", limits)
    with pytest.raises(ConnectionError):
        dialler.next(messages.Poll())
    dialler.close()
    server.close()


def test_keys_that_are_unsigned_swapped_or_changed(tmp_path, caplog):
    parties = new_parties(tmp_path)
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours = ByHand(parties)
        session = ours.open_session()
        right = ours.announcement()
        announce = ours.dialler.announce
        other = ClientSession(session.plan, "c", session.participant)
        check_refused(announce, changed(right, signature=b""), "must be signed by its certificate")
        check_refused(announce, changed(right, public_key=ours.announcement(other).public_key), "must be signed")
        check_refused(announce, changed(right, certificate=parties.signer("b").certificate), "fingerprint is known")
        check_refused(announce, changed(right, run="another"), "must be for the current run")
        announce(right)
        announce(right)
        check_refused(announce, ours.announcement(other), "the key of a client must not change during a run")
        ours.session.accept_keys(
            keys_from_message(ours.instruction("keys")), parties.client("c").credentials.fingerprints
        )
        ours.finish(ROUNDS)
    np.testing.assert_array_equal(np.load(coordinator.result())["weights"], expected()["weights"])
    check_log(caplog, "refused Announce from client 'c': the key of client 'c' must be signed")


def test_answers_that_do_not_fit(tmp_path, caplog):
    parties = new_parties(tmp_path, message_megabytes=0.25)
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours = ByHand(parties)
        ours.join()
        submit = ours.dialler.submit
        first = ours.answer()
        submit(first)
        second = messages.Answer.FromString(ours.answer())
        check_refused(submit, first, "an answer to round 1 is due; received one to round 0")
        skipped = changed(second, round=2)
        check_refused(submit, skipped.SerializeToString(), "an answer to round 1 is due; received one to round 2")
        misshapen = changed(second)
        misshapen.values[2].shape[:] = [9, 1, 2]
        check_refused(submit, misshapen.SerializeToString(), "the expected names and shapes; received others")
        floats = changed(second)
        floats.values[0].type = messages.FLOAT64
        floats.values[0].data = np.full(2, np.nan).tobytes()
        check_refused(submit, floats.SerializeToString(), "every number must be finite; array 'loss' holds NaN")
        unknown = changed(second)
        unknown.values[0].type = 7
        check_refused(submit, unknown.SerializeToString(), "must hold float64, int64 or uint64; received type 7")
        check_refused(submit, b"\xff\xff\xff", "messages must be of the agreed schema; received another")
        for megabytes in (0.4, 0.6, 3.0):  # within twice the limit, and beyond
            large = changed(second)
            large.values[0].data = bytes(int(megabytes * 2**20))
            check_refused(submit, large.SerializeToString(), "refused Submit: .*(at most|larger)")
        submit(second.SerializeToString())
        ours.finish(ROUNDS - 2)
    np.testing.assert_array_equal(np.load(coordinator.result())["weights"], expected()["weights"])
    check_log(
        caplog,
        "refused Submit from client 'c': an answer to round 1 is due; received one to round 0",
        "refused Submit from client 'c': every number must be finite; array 'loss' holds NaN or infinity",
        "refused Submit from client 'c': messages of this kind must have 8176 bytes at most; received 4",
    )


def test_an_answer_before_the_first_task(tmp_path):
    parties = new_parties(tmp_path)
    coordinator = Background(coordinate, parties.coordinator())
    ours = ByHand(parties)
    run = ours.open_session().plan.run
    early = messages.Answer(run=run).SerializeToString()
    check_refused(ours.dialler.submit, early, "an answer must follow a task; received one before the first")
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours.join()
        ours.finish(ROUNDS)
    coordinator.result()


def test_an_internal_failure_tells_nobody_what_it_holds(tmp_path, caplog):
    parties = new_parties(tmp_path)
    host, config = Script([lambda script: 1 / 0]), parties.coordinator()
    credentials = config.credentials
    server = Server(
        host, config.listen, credentials.identity, credentials.authority, credentials.fingerprints, config.limits
    )
    ours = dial(parties, "c")
    check_refused(ours.next, messages.Poll(), "^the coordinator refused Next: the coordinator failed; see its log$")
    ours.close()
    server.close()
    check_log(caplog, "Next from client 'c' failed: ZeroDivisionError")


def test_one_client_can_not_keep_the_others_waiting(tmp_path, caplog):
    """A hundred calls of c that all wait for instructions: a and b join meanwhile, and the run goes on."""
    parties = new_parties(tmp_path, heartbeat_seconds=3.0)
    coordinator = Background(coordinate, parties.coordinator())
    ours = ByHand(parties)
    run = ours.open_session().plan.run
    ours.dialler.announce(ours.announcement())
    floods = [dial(parties, "c", patience_seconds=0.1) for _ in range(10)]
    calls = [Background(flood.next, messages.Poll(run=run)) for flood in floods for _ in range(10)]
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours.take_keys()
        # Before the end of the run: a call that hears of it would be taken for ours, and the server would be gone.
        for call in calls:
            with suppress(ConnectionError, Refused):
                call.result()
        ours.finish(ROUNDS)
    np.testing.assert_array_equal(np.load(coordinator.result())["weights"], expected()["weights"])
    for flood in floods:
        flood.close()
    check_log(caplog, "refused Next from client 'c': a client must have 4 calls under way at most; received another")


def test_a_message_of_many_empty_parts_is_refused_before_it_is_read(tmp_path):
    parties = new_parties(tmp_path)
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        ours = ByHand(parties)
        ours.join()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flood = messages.Answer(values=[messages.Array()]).SerializeToString() * 25_000_000
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        check_refused(ours.dialler.submit, flood, "larger than max|be no larger than the run needs")
        flood = flood[:5_000_000]
        check_refused(ours.dialler.submit, flood, "messages of this kind must have 4194304 bytes at most; received 5")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown < 400_000, f"{before}, {grown} kB before"
        long = messages.Poll(run="x" * 100_000)
        check_refused(ours.dialler.next, long, "messages of this kind must have 65536 bytes at most")
        ours.finish(ROUNDS)
    coordinator.result()


# One client's calls, and the others


class Waiting(Script):
    """A coordinator that has nothing to do yet."""

    def next(self, client, poll):
        return messages.Instruction(wait=messages.Wait())


@pytest.fixture
def listening(tmp_path):
    """Return a function that starts a coordinator's server for clients a, b and c, and who they are."""
    authority = new_authority()
    identities = {name: new_party(authority, name) for name in NAMES}
    pinned = {name: fingerprint(identity.der) for name, identity in identities.items()}
    coordinator = new_party(authority, "coordinator", hosts=("localhost",))
    servers = []

    def start(limits, largest=None):
        listen = "127.0.0.1:0"
        servers.append(Server(Waiting([]), listen, coordinator, authority.certificate_pem, pinned, limits, largest))
        return servers[-1]

    def dialler(server, name):
        found = Dialler(
            f"127.0.0.1:{server.port}", identities[name], authority.certificate_pem, "coordinator",
            Limits(deadline_seconds=5, patience_seconds=5),
        )  # fmt: skip
        found.next(messages.Poll())
        return found

    yield start, dialler, identities
    for server in servers:
        server.close()


def resident():
    """Return how much memory this process holds, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def test_messages_that_never_end_hold_up_nobody_else(listening, tmp_path, caplog):
    start, dialler, identities = listening
    server = start(Limits(deadline_seconds=1.5))
    others = dialler(server, "b")
    with RawCalls(server.port, identities["c"], tmp_path) as attack:
        begun = time.monotonic()
        # More than there are threads for all clients together; on another connection, the same client is the same.
        calls = [attack.begin("Submit", 1000, b"x") for _ in range(8)]
        attack.listen(0.2)
        assert len(attack.over) == 4, "four are waited for, the others refused unread"
        (tmp_path / "second").mkdir()
        with RawCalls(server.port, identities["c"], tmp_path / "second") as more:
            rest = {more.begin(call, 1000, b"x") for call in ("Submit", "Beat", "Next", "Announce") for _ in range(5)}
            more.listen(0.3)
            assert rest == more.over
        for _ in range(3):
            others.next(messages.Poll())
            others._calls["Beat"](b"", timeout=1.0)
        assert time.monotonic() - begun < 1.5, "too slow to show anything"
        attack.listen(2.0)
        assert attack.over == set(calls), "those that were waited for are given up"
    others.close()
    check_log(
        caplog,
        "refused Submit from client 'c': a client must have 4 calls under way at most; received another",
        "refused Submit from client 'c': a message must come whole within 1.5 seconds, and be no larger than the run",
    )


def test_no_more_is_kept_of_messages_than_a_run_needs(listening, tmp_path):
    start, _, identities = listening
    megabyte = bytes(2**20)
    taken = {}
    for largest in (10_000, 64 * 2**20):
        server = start(Limits(deadline_seconds=10), largest)
        folder = tmp_path / str(largest)
        folder.mkdir()
        before = resident()
        with RawCalls(server.port, identities["c"], folder) as attack:
            calls = [attack.begin("Submit", 127 * 2**20) for _ in range(16)]
            attack.listen(0.2)
            sent = sum(attack.send(number, megabyte) for number in calls for _ in range(12))
            taken[largest] = sent / 2**20, resident() - before
    assert taken[10_000][0] < 16 and taken[10_000][1] < 20, taken
    assert taken[64 * 2**20][0] >= 40, taken  # negative control: a run that needs more


def test_a_small_message_does_not_unpack_to_a_large_one(listening):
    start, dialler, identities = listening
    server = start(Limits(deadline_seconds=5), 100_000)
    dialler(server, "b").close()
    authority, identity = dialler(server, "c")._authority, identities["c"]
    channel = grpc.secure_channel(
        f"127.0.0.1:{server.port}",
        grpc.ssl_channel_credentials(authority, identity.key_pem, identity.certificate_pem),
        [("grpc.ssl_target_name_override", "coordinator"), ("grpc.max_send_message_length", -1)],
        grpc.Compression.Gzip,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content = bytes(100 * 2**20)  # 100 kB when it is packed
    packing = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(service.path("Submit"))(content, timeout=10)
    channel.close()
    assert refused.value.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - packing < 150_000, f"{before}, {packing} kB before"


SERIES = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 4)), columns=list("wxyz"))


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize(
    ("program", "settings"),
    [
        ("statistics", "{}"),
        ("notears", '{"model": "linear"}'),
        ("notears", '{"model": "mlp", "hidden": 3}'),
        ("notears", '{"model": "dynamic", "lags": 2}'),
    ],
)
def test_the_largest_answer_of_a_run_is_known(program, settings, secure):
    """As large as it is, with its names, and no larger."""
    plan = Plan("r", program, settings, tuple(SERIES.columns), NAMES, secure)
    most = most_bytes(PROGRAMS[program].largest(plan), secure)
    channel = MeasuringChannel(plan, read_part(SERIES))
    PROGRAMS[program].coordinate(channel, plan)
    assert most - 10_000 < max(channel.sizes) <= most


class MeasuringChannel(Channel):
    """Three clients with the same rows; writes down how large their answers are as messages."""

    def __init__(self, plan, data):
        self.clients = NAMES
        self._plan, self._one, self.sizes = plan, PROGRAMS[plan.program].participant(data, plan), []

    def sum(self, task, values, shapes=None):
        answer = self._one.answer(task, {name: np.asarray(value) for name, value in values.items()})
        sent = {name: np.asarray(value, dtype=float) for name, value in answer.items()}
        if self._plan.secure:
            sent = {name: fixed_point.encode(value, 3) for name, value in sent.items()}
        message = messages.Answer(run="r" * 32, round=9999, request=bytes(32), values=arrays.to_messages(sent))
        self.sizes.append(len(message.SerializeToString()))
        return {name: 3 * np.asarray(value, dtype=float) for name, value in answer.items()}
