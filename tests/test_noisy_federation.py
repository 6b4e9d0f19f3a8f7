"""Differential privacy over loopback with mutual TLS: whole runs, restarts, and plans that a client refuses."""

import json
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.data import read_part
from gpn_bayes.federated.processes.coordinator import coordinate
from gpn_bayes.federated.processes.translation import key_to_message, plan_to_message, task_to_message
from gpn_bayes.federated.programs import PROGRAMS
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.wire import federation_pb2 as messages
from tests.federation import Background, Parties, clients_in_threads, play, tables

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
PARTS = dict(zip(NAMES, tables((900, 800, 700), 3), strict=True))
COLUMNS = list(PARTS["a"].columns)
SETTINGS = "epsilon = 2.0\ndelta = 1e-6\nbounds = {x0 = [-5, 5], x1 = [-5.0, 5.0], x2 = [-5, 5]}"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("gpn_bayes.federated.processes.client._PAUSE", 0.0)


def private_parties(folder, limits=""):
    parties = Parties(folder, NAMES, COLUMNS, "statistics", SETTINGS)
    file = parties.homes["c"] / "client.toml"
    file.write_text(f"{file.read_text()}\n{limits}\n")
    return parties


def test_a_run_gives_statistics_that_carry_their_noise(tmp_path):
    parties = private_parties(tmp_path, "[privacy]\nlargest_epsilon = 2\nlargest_delta = 1e-6")
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, PARTS):
        path = coordinator.result()
    pooled = gpn.SufficientStatistics.load(path)
    exact = gpn.SufficientStatistics.of(pd.concat(PARTS.values()))
    assert (pooled.noise.epsilon, pooled.noise.delta, pooled.names) == (2.0, 1e-6, exact.names)
    assert 0 < np.abs(pooled.cov - exact.cov).max()
    assert (np.abs(pooled.cov - exact.cov) < 7 * pooled.noise.sd).all() and abs(pooled.n - 2400) < 100
    # A coordinator that is started again doesn't ask for other noise.
    assert Background(coordinate, parties.coordinator()).result() == path
    assert gpn.SufficientStatistics.load(path).fingerprint == pooled.fingerprint


def participant(name, plan):
    return PROGRAMS["statistics"].participant(read_part(PARTS[name]), plan)


def script(parties, tasks=1, run="run 7"):
    """Return a plan and the instructions of a run in which client c is asked."""
    plan = parties.coordinator().plan(run)
    others = {name: ClientSession(plan, name, participant(name, plan)) for name in "ab"}
    signed = [key_to_message(run, session.signed_key(parties.signer(name))) for name, session in others.items()]

    def keys(script):
        ours = script.announced.result()
        script.announced = Future()
        return messages.Instruction(keys=messages.Keys(run=run, announcements=[ours, *signed]))

    request = Request.of("moments", {})
    asked = [messages.Instruction(task=task_to_message(run, number, request)) for number in range(tasks)]
    return [messages.Instruction(plan=plan_to_message(plan)), keys, *asked]


def test_a_client_that_is_killed_answers_with_the_same_noise(tmp_path, monkeypatch):
    parties = private_parties(tmp_path)
    instructions = script(parties)
    drawn = []

    def killed(dialler, answer):
        drawn.append(answer)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("gpn_bayes.wire.dialler.Dialler.submit", killed)
        with pytest.raises(RuntimeError, match="^killed$"):
            play(parties, "c", instructions, read_part(PARTS["c"]))
    table = read_part(PARTS["c"])
    # The same keys again, as the coordinator has them on disk: the client brings its own back.
    heard = play(parties, "c", [instructions[0], instructions[1], instructions[2], instructions[2]], table)
    answers = [one for one in heard if isinstance(one, bytes)]
    assert [messages.Answer.FromString(one) for one in answers] == [messages.Answer.FromString(drawn[0])] * 2
    # Negative control: another client in its place draws other noise.
    plan = parties.coordinator().plan("run 7")
    digits = [participant("c", plan).answer("moments", {})["digits"] for _ in range(2)]
    assert not np.array_equal(*digits)


def test_a_client_does_not_draw_noise_twice_in_a_run(tmp_path):
    """Of many answers with different noise, the average would have little of it."""
    parties, heard = private_parties(tmp_path), []
    with pytest.raises(ValueError, match="^statistics are summed once in a run; received the task again$"):
        play(parties, "c", script(parties, tasks=2), read_part(PARTS["c"]), heard)
    assert len([one for one in heard if isinstance(one, bytes)]) == 1 and heard[-1] == messages.ANSWER


LIMITS = "[privacy]\nlargest_epsilon = 1.0\nlargest_delta = 1e-6"
ONLY = "a run must be differentially private, as this client's file asks; the coordinator plans none$"
MOST = "epsilon and delta must be at most 1 and 1e-06, as this client's file asks; the coordinator plans"


def settings(**changes):
    return json.dumps({"epsilon": 1.0, "delta": 1e-6, "bounds": {name: [-5, 5] for name in COLUMNS}} | changes)


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        (LIMITS, {"settings": "{}"}, ONLY),
        (LIMITS, {"program": "notears", "settings": "{}"}, ONLY),
        (LIMITS, {"settings": settings(epsilon=1.01)}, f"{MOST} 1.01 and 1e-06$"),
        (LIMITS, {"settings": settings(delta=1e-5)}, f"{MOST} 1 and 1e-05$"),
        ("", {"settings": settings(epsilon=float("nan"))}, "epsilon must lie between 1e-06 and 100; received nan$"),
        (
            "",
            {"settings": settings(depth=3)},
            "settings of statistics are epsilon, delta, bounds, radius; received 'dep",
        ),
        ("", {"secure": False}, "privacy needs secure sums: plain ones show each client's answer, "),
    ],
)
def test_a_client_refuses_less_privacy_than_its_file_asks_for(tmp_path, file, changes, message):
    parties = private_parties(tmp_path, file)
    config = parties.client("c")
    allowing = replace(config, secure=False, programs=("statistics", "notears"))
    parties.client = lambda name: allowing
    plan = replace(parties.coordinator().plan("run 7"), **changes)
    heard = []
    with pytest.raises(ValueError, match=f"^{message}"):
        play(parties, "c", [messages.Instruction(plan=plan_to_message(plan))], read_part(PARTS["c"]), heard)
    assert heard == [messages.PLAN]


def test_a_client_takes_part_in_what_is_private_enough(tmp_path):
    parties = private_parties(tmp_path, LIMITS)
    plan = replace(parties.coordinator().plan("run 7"), settings=settings())
    assert play(parties, "c", [messages.Instruction(plan=plan_to_message(plan))], read_part(PARTS["c"])) == ["key"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "largest_epsilon = 1.0",
            "privacy must have the entries largest_epsilon and largest_delta; received largest_eps",
        ),
        ("", "privacy must have the entries largest_epsilon and largest_delta; received none$"),
        ("largest_epsilon = nan\nlargest_delta = 1e-6", "largest_epsilon must be a positive number; received nan$"),
        ("largest_epsilon = 1\nlargest_delta = true", "largest_delta must be a positive number; received True$"),
        ("largest_epsilon = 1\nlargest_delta = '1'", "largest_delta must be a positive number; received '1'$"),
    ],
)
def test_a_client_s_file_must_say_what_it_means(tmp_path, table, message):
    with pytest.raises(ValueError, match=f"^client.toml: {message}"):
        private_parties(tmp_path, f"[privacy]\n{table}").client("c")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 2.0", "epsilon = -2.0", "^epsilon must lie between 1e-06 and 100; received -2.0$"),
        ("secure = true", "secure = false", "^privacy needs secure sums: "),
    ],
)
def test_a_coordinator_refuses_its_own_file(tmp_path, old, new, message):
    parties = private_parties(tmp_path)
    parties.coordinator_file.write_text(parties.coordinator_file.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        Background(coordinate, parties.coordinator()).result(20)
