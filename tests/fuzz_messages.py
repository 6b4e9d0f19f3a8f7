"""Readers of what other parties send that are fuzzed: plans, settings, messages, and what they leave on disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from tests.fuzz_parts import JSON, TEXTS, changed_sql, deep
from tests.fuzzing import Target, damaged, fault_of

# Settings, plans and messages of federated runs.

CLIENTS = ("ann", "ben", "cem")
_OPTIONS = st.one_of(
    JSON,
    st.dictionaries(
        st.sampled_from(
            ["model", "lambda1", "lambda2", "rho", "threshold", "lagged_threshold", "hidden", "lags", "intercepts"]
            + ["diagonal", "required", "forbidden", "tiers", "tolerance", "max_rounds", "random_state"]
        ),
        st.one_of(
            JSON, st.sampled_from(["mlp", "dynamic", "linear", "shared", "free", "masked"]),
            st.lists(st.lists(st.sampled_from(["x0", "x1", "x2", "y"]), max_size=3), max_size=3),
        ),
        max_size=3,
    ),
)  # fmt: skip


def _rows() -> Any:
    from gpn_bayes.data import read_part
    from tests.federation import tables

    return read_part(tables((20,), 3)[0])


def plans(folder: Path) -> Target:
    """Read a plan from JSON, and its program's settings."""
    from gpn_bayes.federated.notears.bounds import Bounds
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.programs import find_program

    data = _rows()
    whole = Plan("r1", "notears", '{"model": "mlp", "hidden": 3}', data.names, CLIENTS, True)
    plain = Plan("r2", "statistics", "{}", data.names, CLIENTS, True)
    noise = {"epsilon": 1.0, "delta": 1e-6, "bounds": {name: [-4, 4] for name in data.names}, "radius": 1.0}
    noisy = Plan("r3", "statistics", json.dumps(noise), data.names, CLIENTS, True)

    def run(content: bytes, folder: Path) -> Any:
        plan = Plan.from_json(content.decode("utf-8", "surrogateescape"))
        program = find_program(plan.program)
        return plan.digest, program.bounded(program.participant(data, plan), plan, Bounds())

    def made(drawn: tuple[str, str, str, Any]) -> bytes:
        program, settings, field, value = drawn
        fields = json.loads(whole.to_json()) | {"program": program, "settings": settings}
        return json.dumps(fields | ({field: value} if field else {})).encode()

    fields = st.sampled_from(["", "", "", "run", "program", "settings", "variables", "clients", "secure", "other"])
    programs = st.sampled_from(["notears", "notears", "statistics"])
    structured = st.tuples(programs, deep(_OPTIONS), fields, JSON).map(made)
    return Target([plan.to_json().encode() for plan in (whole, plain, noisy)], run, structured)


def toml(folder: Path) -> Target:
    """Read the configuration files of clients and coordinators."""
    from gpn_bayes.federated.processes.config import read_client, read_coordinator
    from gpn_bayes.federated.processes.setup_files import write_parties

    coordinator, client, *_ = write_parties(folder / "parties", CLIENTS, ["x", "y"])
    limits = b"\n[limits]\nheartbeat_seconds = 2.5\n"
    whole = (client / "client.toml").read_bytes() + limits
    other = (coordinator / "coordinator.toml").read_bytes() + limits + b"[settings]\nmodel = 'mlp'\n"

    def run(content: bytes, folder: Path) -> Any:
        if content.startswith(b"program"):
            (coordinator / "case.toml").write_bytes(content)
            return read_coordinator(coordinator / "case.toml").plan("r1")
        (client / "case.toml").write_bytes(content)
        return read_client(client / "case.toml")

    values = st.sampled_from(
        ["1", "-1", "1e999", "nan", "''", "[]", "{}", "true", "1979-05-27", "'x'", "[1]", "{a=1}", "9" * 5000]
        + ["[" * 2000 + "]" * 2000, "'/dev/zero'", "'..'", "'a\\u0000b'", '"\\u0000"', "['x', 'x']", "[['x']]"]
    )  # fmt: skip
    names = ["coordinator", "coordinator_name", "state", "secure", "programs", "fewest", "program", "listen", "out"]
    names += [
        "variables",
        "authority",
        "certificate",
        "key",
        "ann",
        "ben",
        "heartbeat_seconds",
        "limits",
        "tls",
        "clients",
    ]
    names += ["settings", "posterior", "the_other_client_learns_my_sums"]

    @st.composite
    def changed(draw: Any) -> bytes:
        lines = draw(st.sampled_from([whole, other])).decode().splitlines()
        place = draw(st.integers(0, len(lines) - 1))
        name = draw(st.sampled_from(names))
        old = lines[place].partition("=")[0].strip() if "=" in lines[place] else name
        lines[place] = f"{draw(st.sampled_from([old, old, name]))} = {draw(values)}"
        return "\n".join(lines).encode()

    return Target([whole, other], run, changed())


def certificates(folder: Path) -> Target:
    """Read certificates and keys from PEM files."""
    from gpn_bayes.wire.certificates import common_name, new_authority, new_party, read_certificate, read_identity

    party = new_party(new_authority(), "ann")
    party.write(folder / "certificate.pem", folder / "key.pem")
    whole = [(folder / "certificate.pem").read_bytes(), (folder / "key.pem").read_bytes()]

    def run(content: bytes, folder: Path) -> Any:
        (folder / "case.pem").write_bytes(content)
        if b"PRIVATE" in content:
            return read_identity(folder / "certificate.pem", folder / "case.pem")
        read_identity(folder / "case.pem", folder / "key.pem")
        return common_name(read_certificate(folder / "case.pem"))

    return Target(whole, run)


@st.composite
def array_messages(draw: Any) -> Any:
    """Return arrays as messages, whose shapes and types may not fit their bytes."""
    from gpn_bayes.wire import federation_pb2 as messages

    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 2**16, 2**32 - 1]), max_size=9))
    size = int(np.prod([float(length) for length in shape]))
    fits = size <= 100 and draw(st.integers(0, 3)) > 0
    number = draw(st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, 1.7e308, np.nan, np.inf, 0.1]))
    data = np.full(size, number).tobytes() if fits else draw(st.binary(max_size=32))
    name = draw(st.sampled_from(["shared", "rho", "last_rho", "rows", "centre", "digits", "x", "a" * 300]))
    return messages.Array(name=name, type=draw(st.integers(0, 4)), shape=shape, data=data)


def _named(name: str, value: Any) -> Any:
    from gpn_bayes.wire import arrays as wire

    return wire.to_messages({name: np.asarray(value, dtype=float)})[0]


class _Dialler:
    """A coordinator that says what it was given to say, and then that the run is over."""

    def __init__(self, instructions: list[Any]) -> None:
        self.instructions = instructions

    def next(self, poll: Any) -> Any:
        from gpn_bayes.wire import federation_pb2 as messages

        over = messages.Instruction(end=messages.End(run=poll.run, finished=True))
        return self.instructions.pop(0) if self.instructions else over

    def announce(self, announcement: Any) -> None:
        self.announced = announcement

    def submit(self, answer: bytes) -> None:
        self.answer = answer

    def refuse(self, run: str, reason: Any) -> None:
        self.refused = reason


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _unframed(content: bytes) -> list[bytes]:
    parts = []
    while len(content) >= 4:
        length = int.from_bytes(content[:4], "big")
        parts.append(content[4 : 4 + length])
        content = content[4 + length :]
    return parts


def instructions(folder: Path) -> Target:
    """Follow a coordinator's instructions, as a client does."""
    from google.protobuf.message import DecodeError

    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes import client
    from gpn_bayes.federated.processes.client_store import ClientStore
    from gpn_bayes.federated.processes.config import read_client
    from gpn_bayes.federated.processes.setup_files import write_parties
    from gpn_bayes.federated.processes.translation import plan_to_message
    from gpn_bayes.wire import federation_pb2 as messages

    data = _rows()
    _, home, *_ = write_parties(folder / "parties", CLIENTS, data.names)
    text = (home / "client.toml").read_text().replace("[tls]", "secure = false\n[tls]", 1)
    (home / "client.toml").write_text(text.replace('["statistics"]', '["statistics", "notears"]'))
    config = read_client(home / "client.toml")

    def plan(**changes: Any) -> Any:
        fields = {"run": "r1", "program": "notears", "settings": "{}", "variables": data.names, "clients": CLIENTS}
        return messages.Instruction(plan=plan_to_message(Plan(**fields | {"secure": False} | changes)))

    def task(*values: Any, round: int = 0, name: str = "round") -> Any:
        return messages.Instruction(task=messages.Task(run="r1", round=round, name=name, values=values))

    shared = [_named("rho", 0.1), _named("last_rho", 0.1), _named("rows", 60)]
    asked = [*shared, _named("shared", np.zeros((3, 3)))]
    then = [_named("rho", 0.125), *asked[1:]]
    mlp = plan(settings='{"model": "mlp", "hidden": 2}')
    runs = [
        [plan(settings='{"rho": 0.1}'), task(name="rows"), task(*asked, round=1), task(*then, round=2)],
        [plan(program="statistics"), task(name="moments")],
        [mlp, task(name="rows"), task(*shared, _named("shared", np.zeros(33)), round=1)],
        [
            plan(secure=True),
            messages.Instruction(keys=messages.Keys(run="r1")),
            messages.Instruction(wait=messages.Wait()),
        ],
    ]
    valid = [_framed([one.SerializeToString() for one in run]) for run in runs[:3]]

    def follow(content: bytes, folder: Path) -> Any:
        try:
            received = [messages.Instruction.FromString(part) for part in _unframed(content)[:8]]
        except DecodeError:  # which gRPC reports by itself
            return None
        for leftover in folder.glob("state.sqlite*"):
            leftover.unlink(missing_ok=True)  # SQLite removes some of them itself
        with mock.patch.object(client, "_PAUSE", 0.0), ClientStore(folder / "state.sqlite") as store:
            store._connection.execute("PRAGMA synchronous=OFF")
            client._Client(config, data, False, _Dialler(received), store, lambda text: None).run()

    @st.composite
    def changed(draw: Any) -> bytes:
        run = [type(one).FromString(one.SerializeToString()) for one in draw(st.sampled_from(runs))]
        which = draw(st.integers(0, len(run) - 1))
        kind = run[which].WhichOneof("kind")
        if kind == "plan":
            own = run[which].plan
            how = draw(st.sampled_from(["settings", "variables", "clients", "program", "run"]))
            if how in ("variables", "clients"):
                del getattr(own, how)[:]
                names = st.sampled_from([*data.names, *CLIENTS, "", "é" * 100])
                getattr(own, how).extend(draw(st.lists(names, max_size=6)))
            else:
                given = draw(deep(_OPTIONS) if how == "settings" else TEXTS)
                setattr(own, how, given.encode("utf-8", "replace").decode())
        elif kind == "task":
            own = run[which].task
            own.round = draw(st.sampled_from([own.round, own.round, 0, 5, 2**63, 2**64 - 1]))
            if draw(st.booleans()) and len(own.values):
                place = draw(st.integers(0, len(own.values) - 1))
                shape = list(own.values[place].shape)
                number = draw(st.sampled_from([0.0, -1.0, 1e-300, 1e300, 1.7e308, np.nan, 1e-12, 1e12]))
                own.values[place].CopyFrom(_named(own.values[place].name, np.zeros(shape)))
                own.values[place].data = np.full(shape, number).tobytes()
            else:
                own.values.append(draw(array_messages()))
        elif kind == "keys":
            for _ in range(draw(st.integers(0, 4))):
                run[which].keys.announcements.add(
                    run="r1", client=draw(st.sampled_from([*CLIENTS, "x"])), public_key=draw(st.binary(max_size=33)),
                    signature=draw(st.binary(max_size=8)), certificate=draw(st.binary(max_size=8)),
                )  # fmt: skip
        return _framed([one.SerializeToString() for one in run])

    return Target(valid, follow, changed(), (ValueError, ConnectionError))


def answers(folder: Path) -> Target:
    """Take what clients send, as a coordinator does."""
    from google.protobuf.message import DecodeError

    from gpn_bayes.federated.combining import RoundSum
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes.rendezvous import Rendezvous
    from gpn_bayes.federated.requests import Request
    from gpn_bayes.wire import federation_pb2 as messages
    from gpn_bayes.wire.limits import Limits

    request = Request.of("gradient", {"x": 1.0})
    plan = Plan("r1", "notears", "{}", ("x", "y"), CLIENTS, False)
    whole = messages.Answer(run="r1", round=0, request=request.digest, values=[_named("step", np.ones((2, 2)))])
    joined = messages.Announcement(run="r1", client="ann")
    valid = [_framed([joined.SerializeToString(), whole.SerializeToString()])]

    def take(content: bytes, folder: Path) -> Any:
        announced, *submitted = _unframed(content)[:5] or [b""]
        for secure, shapes in ((False, {"step": (2, 2)}), (False, None), (True, None)):
            own = Plan(plan.run, plan.program, plan.settings, plan.variables, plan.clients, secure)
            meeting = Rendezvous(own, dict.fromkeys(CLIENTS, "0" * 64), Limits(heartbeat_seconds=0.001), {})
            meeting._round = round_sum = RoundSum(own, 0, request, shapes)
            try:
                meeting.next("ann", messages.Poll.FromString(announced))
                meeting.refuse("ann", messages.Refusal.FromString(announced))
                meeting.announce("ann", messages.Announcement.FromString(announced))
            except DecodeError:
                pass
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
            try:
                for client, part in zip(CLIENTS, submitted * 3, strict=False):
                    meeting.submit(client, messages.Answer.FromString(part))
            except DecodeError:
                continue
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
            try:
                if not round_sum.missing:
                    round_sum.total()
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
        return None

    @st.composite
    def changed(draw: Any) -> bytes:
        answer = messages.Answer(run="r1", round=draw(st.sampled_from([0, 0, 0, 1, 2**64 - 1])), request=request.digest)
        answer.values.extend(draw(st.lists(array_messages(), max_size=3)))
        if draw(st.booleans()):
            numbers = draw(st.sampled_from([0, 1, 2**63, 2**64 - 1]))
            words = np.full((2, 2, draw(st.sampled_from([1, 2, 3]))), numbers, dtype=np.uint64)
            answer.values.append(
                messages.Array(name="step", type=messages.UINT64, shape=words.shape, data=words.tobytes())
            )
        key = messages.Announcement(
            run="r1", client="ann", public_key=draw(st.binary(max_size=33)), signature=draw(st.binary(max_size=70)),
            certificate=draw(st.binary(max_size=20)), possession=draw(st.binary(max_size=64)),
        )  # fmt: skip
        return _framed([key.SerializeToString(), answer.SerializeToString()])

    return Target(valid, take, changed())


def stores(folder: Path) -> Target:
    """Resume a federated run from the files of a client and of the coordinator."""
    from gpn_bayes.federated.notears.bounds import Bounds
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes.client_store import ClientStore
    from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
    from gpn_bayes.federated.processes.rendezvous import Rendezvous
    from gpn_bayes.federated.programs import find_program
    from gpn_bayes.federated.requests import Request
    from gpn_bayes.federated.session import ClientSession
    from gpn_bayes.wire import federation_pb2 as messages
    from gpn_bayes.wire.limits import Limits

    data = _rows()
    plan = Plan("r1", "notears", "{}", data.names, CLIENTS, False)
    request = Request.of("rows", {})

    def participant() -> Any:
        program = find_program(plan.program)
        return program.bounded(program.participant(data, plan), plan, Bounds())

    session = ClientSession(plan, "ann", participant())
    session.answer(0, request)
    with ClientStore(folder / "whole.sqlite") as store:
        store.save(session, data.fingerprint)
    with CoordinatorStore(folder / "sums.sqlite") as sums:
        sums.start(plan)
        announced = {name: messages.Announcement(run="r1", client=name).SerializeToString() for name in CLIENTS}
        sums.save_announcements(announced)
        sums.save_sums(0, request.digest, {"rows": np.array(60.0)})
    valid = [b"c" + (folder / "whole.sqlite").read_bytes(), b"s" + (folder / "sums.sqlite").read_bytes()]

    def resume(content: bytes, folder: Path) -> Any:
        for leftover in folder.glob("case.sqlite*"):
            leftover.unlink(missing_ok=True)  # SQLite removes some of them itself
        path = folder / "case.sqlite"
        path.write_bytes(content[1:])
        if content[:1] == b"c":
            with ClientStore(path) as store:
                store.earlier_releases(data.fingerprint, "r2")
                resumed = store.load(plan, "ann", data.fingerprint, participant, {})
                if resumed is not None:
                    resumed.answer(0, request)
                    store.save(resumed, data.fingerprint)
                    store.finish("r1")
                return resumed
        with CoordinatorStore(path) as store:
            known = store.plan()
            Rendezvous(plan, dict.fromkeys(CLIENTS, ""), Limits(), store.announcements())
            return known, store.ended() if known else None, store.sums(0, request.digest)

    columns = {
        "c": {"sessions": ["run", "plan", "data_fingerprint", "finished", "private_key", "keys", "round", "request"]
              + ["answer", "state"], "ledger": ["run"], "meta": ["value"]},
        "s": {"plan": ["plan", "ended"], "announcements": ["client", "announcement"],
              "rounds": ["round", "request", "sums"]},
    }  # fmt: skip

    @st.composite
    def changed(draw: Any) -> bytes:
        whole = draw(st.sampled_from(valid))
        return whole[:1] + changed_sql(draw, whole[1:], columns[whole[:1].decode()], folder)

    from gpn_bayes.secure.link import ProtocolError

    return Target(valid, resume, changed(), (ValueError, ProtocolError))


# Two parties.


class _Stream:
    """A connection on which bytes have arrived, and no more come."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def settimeout(self, seconds: float) -> None:
        pass

    def recv(self, most: int) -> bytes:
        part, self._content = self._content[:most], self._content[most:]
        return part


def frames(folder: Path) -> Target:
    """Receive messages from a stream of bytes."""
    from gpn_bayes.wire.framing import WireError, header_bytes, receive_content, receive_header

    def sent(kind: str, payload: bytes) -> bytes:
        return header_bytes(kind, len(payload)) + payload

    def receive(content: bytes, folder: Path) -> Any:
        stream, received = _Stream(content), []
        for due, length in (("settings", None), ("key nonce", 32), ("encrypted bits", 2**31), ("settings", None)):
            header = receive_header(stream, due, 1.0)
            known = length if header.kind == due else None
            received.append(receive_content(stream, header, known, 1.0))
            if not stream._content:
                break
        return received

    lengths = st.one_of(st.integers(0, 70), st.sampled_from([2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1]))
    kinds = st.sampled_from([b"settings", b"key nonce", b"encrypted bits", b"", b"\xff\xfe", b"a" * 41, b"a\nb"])

    def made(drawn: tuple[bytes, int, int, bytes]) -> bytes:
        kind, extra, length, payload = drawn
        return bytes([min(len(kind) + extra, 255)]) + length.to_bytes(4, "big") + kind + payload

    structured = st.lists(
        st.tuples(kinds, st.sampled_from([0, 0, 0, 1, 200]), lengths, st.binary(max_size=70)).map(made), max_size=3
    ).map(b"".join)
    valid = [sent("settings", b"{}") + sent("key nonce", bytes(32)), sent("settings", b"x" * 500)]
    return Target(valid, receive, structured, (WireError,))


def private(folder: Path) -> Target:
    """Learn a network with a party of which one message is changed."""
    from gpn_bayes.secure.link import ProtocolError
    from tests.private_runs import learn_pair, random_table, settings

    codes, order = random_table(1, n=4, rows=20)
    codes["id"] = range(len(codes))
    first, second = codes[[*order[:2], "id"]], codes[[*order[2:], "id"]]

    class Spoiled:
        """A link that changes the message of a given number."""

        def __init__(self, end: Any, place: int, change: Callable[[str, bytes], tuple[str, bytes]]) -> None:
            self._end, self._left, self._change = end, place, change
            self.sent = 0

        def send(self, kind: str, payload: bytes) -> None:
            self._left -= 1
            self._end.send(*(self._change(kind, payload) if self._left == -1 else (kind, payload)))

        def receive(self, kind: str, length: int | None = None) -> bytes:
            return self._end.receive(kind, length)

    def learn(content: bytes, folder: Path) -> Any:
        given = json.loads(content)
        align = "intersection" if given["intersection"] else "digest"

        def change(kind: str, payload: bytes) -> tuple[str, bytes]:
            how = given["how"]
            if how == "settings" and kind == "settings":
                return kind, given["text"].encode("utf-8", "surrogatepass")
            if how == "kind":
                return given["text"][:40], payload
            if how == "fill":
                return kind, bytes([given["seed"] % 256]) * len(payload)
            if how == "length":
                return kind, damaged(payload, given["seed"])
            changed = damaged(payload, given["seed"])[: len(payload)]
            return kind, changed.ljust(len(payload), b"\0")

        wraps = {"wrap_alice" if given["seed"] % 2 else "wrap_bob": lambda end: Spoiled(end, given["place"], change)}
        known = settings(order, max_parents=1, align=align)
        refused = None
        for found in learn_pair(first, second, known, key="id", **wraps):
            if isinstance(found, Exception):
                if fault_of(found, (ValueError, ProtocolError)):
                    raise found
                refused = found
        if refused is not None:
            raise refused

    model = {"version": 1, "order": order, "max_parents": 1, "score": "exact", "key_bits": 512, "align": "digest"}
    model |= {"rows": 20, "first": True, "columns": order[:2]}
    texts = st.one_of(
        deep(JSON),
        st.tuples(st.sampled_from(sorted(model)), JSON).map(lambda drawn: json.dumps(model | {drawn[0]: drawn[1]})),
    )
    entry = st.fixed_dictionaries(
        {
            "how": st.sampled_from(["bytes", "bytes", "fill", "length", "kind", "settings"]),
            "place": st.integers(0, 14), "seed": st.integers(0, 2**40), "intersection": st.booleans(), "text": texts,
        }
    )  # fmt: skip
    settings_only = st.builds(lambda given: given | {"how": "settings", "place": 0}, entry)
    structured = st.one_of(entry, entry, settings_only).map(lambda given: json.dumps(given).encode())
    unchanged = {"how": "bytes", "place": 99, "seed": 0, "intersection": False, "text": ""}
    return Target([json.dumps(unchanged).encode()], learn, structured, (ValueError, ProtocolError), damage=False)
