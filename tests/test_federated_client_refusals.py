"""Over loopback with mutual TLS: what a client must refuse is refused, logged and told, and the run unharmed."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_bayes.data import read_part
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.client import take_part
from gpn_bayes.federated.processes.translation import (
    key_to_message,
    plan_to_message,
    task_to_message,
)
from gpn_bayes.federated.programs import PROGRAMS
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.server import Server
from tests.federation import (
    DESCENT,
    DescentParticipant,
    Parties,
    Script,
    changed,
    check_log,
    tables,
)

NAMES = ("a", "b", "c")
PARTS = dict(zip(NAMES, tables((20, 30, 25), 3), strict=True))
COLUMNS = list(PARTS["a"].columns)


@pytest.fixture(autouse=True)
def descent(monkeypatch):
    monkeypatch.setitem(PROGRAMS, "descent", DESCENT)


def new_parties(folder):
    return Parties(folder, NAMES, COLUMNS, "descent", "rounds = 4")


def play(parties, instructions):
    """Let client c follow a script; return what the coordinator heard."""
    host, config = Script(instructions), parties.coordinator()
    credentials = config.credentials
    server = Server(
        host, config.listen, credentials.identity, credentials.authority, credentials.fingerprints, config.limits
    )  # fmt: skip
    try:
        take_part(parties.client("c"), read_part(PARTS["c"]))
    finally:
        server.close()
    return host.heard


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
        task(plan, 0, shape=(2, 3)),                         # refused by the participant, whose state is kept
        task(plan, 0),
        task(plan, 0),                                       # sent again
        task(plan, 0, value=0.5),                            # something else in the same round
        task(Plan("run 8", "descent", "{}", (), NAMES, True), 1),
        task(plan, 1),
        task(plan, 0),                                       # replayed
    ])  # fmt: skip
    assert heard[0] == "key"
    reasons = [reason for reason in heard if isinstance(reason, str)][1:]
    assert reasons == [
        "keys must be exchanged before the first round; they weren't",
        "the key of client 'a' must be signed by its certificate, for this run; it isn't",
        "the key of client 'a' must come with the certificate whose fingerprint is known; it has another",
        "round 0 is due; received a task of round 1",
        "every number must be finite; array 'weights' holds NaN or infinity",
        "weights must be a square matrix; received something else",
        "round 0 was answered; a different task in it is refused",
        "an instruction must be for the run that this client has joined; received another",
        "round 2 is due; received a task of round 0",
    ]
    answers = [messages.Answer.FromString(sent) for sent in heard if isinstance(sent, bytes)]
    assert [answer.round for answer in answers] == [0, 0, 1]
    assert answers[0].SerializeToString() == answers[1].SerializeToString()
    check_log(caplog, *(f"refused: {reason}" for reason in reasons))


def test_a_client_gives_up_on_a_coordinator_that_talks_nonsense(tmp_path, monkeypatch):
    monkeypatch.setattr("gpn_bayes.federated.processes.client._PAUSE", 0.0)
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


def test_a_run_of_two_is_warned_of(tmp_path, caplog):
    parties = new_parties(tmp_path)
    assert play(parties, refusing_plan(parties, clients=("a", "c"))) == ["key"]
    check_log(caplog, "a sum over 2 clients hides little: anyone who knows the numbers of one")
