"""Over loopback with mutual TLS: a client refuses and logs what it must, names a reason, and the run goes on."""

import sqlite3
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from gpn_bayes.data import read_part
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.translation import (
    key_to_message,
    plan_to_message,
    task_to_message,
)
from gpn_bayes.federated.programs import PROGRAMS
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.wire import federation_pb2 as messages
from tests import federation
from tests.federation import (
    DESCENT,
    DescentParticipant,
    Parties,
    changed,
    check_log,
    tables,
)

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
PARTS = dict(zip(NAMES, tables((20, 30, 25), 3), strict=True))
COLUMNS = list(PARTS["a"].columns)


@pytest.fixture(autouse=True)
def descent(monkeypatch):
    monkeypatch.setitem(PROGRAMS, "descent", DESCENT)


def new_parties(folder):
    return Parties(folder, NAMES, COLUMNS, "descent", "rounds = 4")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("gpn_bayes.federated.processes.client._PAUSE", 0.0)


def play(parties, instructions, heard=None, table=lambda: read_part(PARTS["c"]), again=False):
    """Let client c follow a script; return what the coordinator heard, also in a list of the caller's."""
    return federation.play(parties, "c", instructions, table(), heard, again)


def task(plan, number, value=0.0, shape=(3, 3)):
    request = Request.of("gradient", {"weights": np.full(shape, value)})
    return messages.Instruction(task=task_to_message(plan.run, number, request))


def test_a_client_refuses_what_a_coordinator_must_not_send(tmp_path, caplog):
    parties = new_parties(tmp_path)
    plan = parties.coordinator().plan("run 7")
    others = {name: ClientSession(plan, name, DescentParticipant(read_part(PARTS[name]), {})) for name in "ab"}
    signed = {name: key_to_message(plan.run, s.signed_key(parties.signer(name))) for name, s in others.items()}

    def keys(**swapped):
        def instruction(script):
            sent = {"c": script.announced.result(), **signed, **swapped}
            return messages.Instruction(keys=messages.Keys(run=plan.run, announcements=sent.values()))

        return instruction

    foreign = key_to_message(
        plan.run, ClientSession(plan, "a", others["a"].participant).signed_key(parties.signer("b"))
    )
    poisoned = task(plan, 0)
    poisoned.task.values[0].data = np.full(9, np.nan).tobytes()
    heard = play(parties, [
        messages.Instruction(wait=messages.Wait()),
        messages.Instruction(plan=plan_to_message(plan)),
        task(plan, 0),                                       # before the keys
        keys(a=changed(signed["a"], signature=b"")),
        keys(a=foreign),
        keys(),
        task(plan, 1),                                       # skipped
        poisoned,
        task(plan, 0),
        task(plan, 0),                                       # sent again
        task(plan, 0, value=0.5),                            # something else in the same round
        task(Plan("run 8", "descent", "{}", (), NAMES, True), 1),
        task(plan, 1),
        task(plan, 0),                                       # replayed
    ])  # fmt: skip
    assert heard[0] == "key"
    reasons = [reason for reason in heard if isinstance(reason, int)]
    assert reasons == [messages.TASK] + [messages.KEYS] * 2 + [messages.TASK] * 5
    check_log(caplog, *(f"refused: {reason}" for reason in (
        "keys must be exchanged before the first round; they weren't",
        "the key of client 'a' must be signed by its certificate, for this run; it isn't",
        "the key of client 'a' must come with the certificate whose fingerprint is known; it has another",
        "round 0 is due; received a task of round 1",
        "every number must be finite; array 'weights' holds NaN or infinity",
        "round 0 was answered; a different task in it is refused",
        "an instruction must be for the run that this client has joined; received another",
        "round 2 is due; received a task of round 0",
    )))  # fmt: skip
    answers = [messages.Answer.FromString(sent) for sent in heard if isinstance(sent, bytes)]
    assert [answer.round for answer in answers] == [0, 0, 1]
    assert answers[0].SerializeToString() == answers[1].SerializeToString()


def test_a_client_that_can_not_answer_has_left_the_run(tmp_path):
    """Whether it can says something of its rows; asked often enough, everything."""
    parties = new_parties(tmp_path)
    plan = parties.coordinator().plan("run 7")
    others = {name: ClientSession(plan, name, DescentParticipant(read_part(PARTS[name]), {})) for name in "ab"}
    signed = {name: key_to_message(plan.run, s.signed_key(parties.signer(name))) for name, s in others.items()}

    def keys(script):
        sent = {"c": script.announced.result(), **signed}
        return messages.Instruction(keys=messages.Keys(run=plan.run, announcements=sent.values()))

    joining = [messages.Instruction(plan=plan_to_message(plan)), keys]
    with pytest.raises(ValueError, match="^weights must be a square matrix"):
        play(parties, [*joining, task(plan, 0, shape=(2, 3)), task(plan, 0)])
    assert stored_keys(parties) == 0
    host = []
    with pytest.raises(ValueError, match="^instructions must be valid; the last wasn't: this run is over for this"):
        play(parties, [*joining[:1] * 20, task(plan, 0)], host)
    assert not [heard for heard in host if isinstance(heard, bytes)]


def stored_keys(parties):
    """Return how many private keys are in the file of client c."""
    with closing(sqlite3.connect(parties.client("c").state)) as connection:
        return connection.execute("SELECT count(*) FROM sessions WHERE private_key IS NOT NULL").fetchone()[0]


def test_a_run_that_ends_in_any_way_leaves_no_keys(tmp_path):
    parties = new_parties(tmp_path)
    plan, second = (parties.coordinator().plan(run) for run in ("run 7", "run 8"))
    join = messages.Instruction(plan=plan_to_message(plan))
    end = messages.Instruction(end=messages.End(run=plan.run, finished=False, reason="no more money"))
    with pytest.raises(ConnectionError, match="it gave up: no more money$"):
        play(parties, [join, end])
    assert stored_keys(parties) == 0
    # A run that nobody ended, and then another: one key, of that one.
    third = replace(plan, run="run 9")
    for started in (second, third):
        with pytest.raises(ValueError, match="^instructions must be valid"):
            play(parties, [messages.Instruction(plan=plan_to_message(started)), *[task(plan, 0)] * 20])
    assert stored_keys(parties) == 1
    with pytest.raises(ValueError, match="this run is over for this client"):
        play(parties, [messages.Instruction(plan=plan_to_message(second))] * 20)


def whole_run(parties, run, program="descent"):
    """Return the instructions of a run of one round."""
    plan = replace(parties.coordinator().plan(run), program=program)
    others = {name: ClientSession(plan, name, DescentParticipant(read_part(PARTS[name]), {})) for name in "ab"}
    signed = [key_to_message(run, session.signed_key(parties.signer(name))) for name, session in others.items()]

    def keys(script):
        ours = script.announced.result()
        script.announced = Future()
        return messages.Instruction(keys=messages.Keys(run=run, announcements=[ours, *signed]))

    return [messages.Instruction(plan=plan_to_message(plan)), keys, task(plan, 0)]


def answered(host):
    """Return the runs in which a client has answered."""
    return [messages.Answer.FromString(sent).run for sent in host if isinstance(sent, bytes)]


SUMMED = r"^a table is summed once, whatever the program: .* was part of run .* \(--again allows one more run\)$"


def test_one_more_run_is_one(tmp_path):
    """A coordinator that plans one run after the other, while the client's process lives."""
    parties = new_parties(tmp_path)
    host = []
    play(parties, whole_run(parties, "first"), host)
    with pytest.raises(ValueError, match=SUMMED):
        play(parties, [*whole_run(parties, "second"), *whole_run(parties, "third")], host, again=True)
    assert answered(host) == ["first", "second"] and host[-1] == messages.SUMMED_BEFORE


def test_one_more_run_is_one_with_a_table_never_used_before(tmp_path):
    """Its first run needs no permission, and uses the one that was given for this start nevertheless."""
    parties = new_parties(tmp_path)
    host = []
    with pytest.raises(ValueError, match=SUMMED):
        play(parties, [*whole_run(parties, "first"), *whole_run(parties, "second")], host, again=True)
    assert answered(host) == ["first"] and host[-1] == messages.SUMMED_BEFORE
    play(parties, whole_run(parties, "third"), host, again=True)
    assert answered(host) == ["first", "third"]


def test_a_run_that_was_only_joined_takes_no_permission(tmp_path):
    """The coordinator may have lost its folder before the first round."""
    parties = new_parties(tmp_path)
    host = []
    play(parties, whole_run(parties, "first"), host)
    play(parties, [*whole_run(parties, "second")[:2], *whole_run(parties, "third")], host, again=True)
    assert answered(host) == ["first", "third"]


def test_another_program_sums_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setitem(PROGRAMS, "ascent", DESCENT)
    parties = new_parties(tmp_path)
    file = parties.homes["c"] / "client.toml"
    file.write_text(file.read_text().replace('"descent"', '"descent", "ascent"'))
    host = []
    play(parties, whole_run(parties, "first"), host)
    with pytest.raises(ValueError, match=SUMMED):
        play(parties, whole_run(parties, "second", "ascent"), host)
    assert answered(host) == ["first"] and host[-1] == messages.SUMMED_BEFORE
    # Negative control: other rows.
    play(parties, whole_run(parties, "third", "ascent"), host, lambda: read_part(PARTS["a"]))
    assert answered(host) == ["first", "third"]


def test_a_refusal_holds_nothing_of_the_table(tmp_path):
    """A column of text, of which the message to the user shows a cell."""
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics")
    text = PARTS["c"].assign(x1="A-patient-000")
    host = []
    plan = parties.coordinator().plan("run 7")
    with pytest.raises(ValueError, match="A-patient-000"):
        play(parties, [messages.Instruction(plan=plan_to_message(plan))], host, lambda: read_part(text))
    assert not any("A-patient" in str(heard) for heard in host)
    assert set(messages.Refusal.DESCRIPTOR.fields_by_name) == {"run", "reason"}
    assert messages.Refusal.DESCRIPTOR.fields_by_name["reason"].enum_type is not None


def test_a_client_gives_up_on_a_coordinator_that_talks_nonsense(tmp_path):
    parties = new_parties(tmp_path)
    plan = parties.coordinator().plan("run 7")
    with pytest.raises(ValueError, match="^instructions must be valid; the last wasn't: an instruction"):
        play(parties, [task(plan, 0)] * 20)


def refusing_plan(parties, **changes):
    plan = replace(parties.coordinator().plan("run 7"), **changes)
    return [messages.Instruction(plan=plan_to_message(plan))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"secure": False}, "^sums must be secure; the coordinator plans plain ones"),
        (
            {"program": "statistics"},
            "^programs must be those of the configuration; the coordinator plans 'statistics'$",
        ),
        ({"clients": ("a", "c", "eve")}, "^the clients of a run must be known; 'eve' isn't$"),
        ({"clients": ("a", "c")}, "^a run must be over at least 3 clients; the coordinator plans one over 2 "),
        ({"variables": ("x0", "age")}, "^the table must have all columns of the run; 'age' isn't there$"),
        ({"clients": ("c",)}, "^a secure sum needs at least 2 clients"),
        ({"settings": "[1]"}, "^a program's settings must be a JSON object; received something else$"),
    ],
)
def test_a_client_does_not_join_what_its_user_has_not_agreed_to(tmp_path, changes, message):
    parties = new_parties(tmp_path)
    instructions = refusing_plan(parties, **{k: v for k, v in changes.items() if k != "clients" or len(v) > 1})
    if changes.get("clients") == ("c",):
        del instructions[0].plan.clients[:2]
    with pytest.raises(ValueError, match=message):
        play(parties, instructions)


def test_a_run_of_two_takes_a_line_that_says_what_it_reveals(tmp_path, caplog):
    parties = new_parties(tmp_path)
    file = parties.homes["c"] / "client.toml"
    text = file.read_text()
    file.write_text(f"fewest = 2\n{text}")
    with pytest.raises(ValueError, match="at least 3 clients, .* received 2 .the_other_client_learns_my_sums = true"):
        parties.client("c")
    file.write_text(f"fewest = 2\nthe_other_client_learns_my_sums = true\n{text}")
    assert play(parties, refusing_plan(parties, clients=("a", "c"))) == ["key"]
    check_log(caplog, "a sum over 2 clients hides little: anyone who knows the numbers of one")
