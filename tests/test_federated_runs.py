"""Whole runs over loopback with mutual TLS: results, ledger, restarts, lost clients, configurations, command line."""

import json
import logging
import socket

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.data import read_part
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.client import take_part
from gpn_bayes.federated.processes.config import read_client, read_coordinator
from gpn_bayes.federated.processes.coordinator import coordinate
from gpn_bayes.federated.programs import PROGRAMS
from tests.command_line import call
from tests.federation import DESCENT, Background, Parties, clients_in_threads, in_memory, tables

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
PARTS = dict(zip(NAMES, tables((40, 30, 25), 4), strict=True))
COLUMNS = list(PARTS["a"].columns)
POOLED = gpn.SufficientStatistics.of(gpn.Dataset.read(pd.concat(PARTS.values())))


@pytest.fixture(autouse=True)
def descent(monkeypatch):
    monkeypatch.setitem(PROGRAMS, "descent", DESCENT)


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def client_file(parties, name):
    return parties.homes[name] / "client.toml"


def check_statistics(path):
    found = gpn.SufficientStatistics.load(path)
    assert found.n == POOLED.n and found.names == POOLED.names
    np.testing.assert_allclose(found.mean, POOLED.mean, rtol=1e-12)
    np.testing.assert_allclose(found.cov, POOLED.cov, rtol=1e-12)


def test_statistics_from_the_command_line(tmp_path, capsys):
    code, shown, errors = call(
        capsys,
        "federate",
        "certs",
        "--out",
        tmp_path / "parties",
        "--clients",
        "a,b,c",
        "--variables",
        ",".join(COLUMNS),
    )
    assert code == 0 and "coordinator, a, b, c" in shown and errors == ""
    parties = Parties(tmp_path / "run", NAMES, COLUMNS, "statistics")
    with parties.coordinator_file.open("a") as file:
        file.write('[posterior]\nsampler = "exact"\ndraws = 10\nchains = 1\n')
    # A client may have further columns, in any order.
    shuffled = PARTS | {"b": PARTS["b"].assign(extra=1.0)[["extra", *COLUMNS[::-1]]]}
    with clients_in_threads(parties, shuffled):
        code, shown, errors = call(capsys, "federate", "coordinator", "--config", parties.coordinator_file, "--quiet")
    assert code == 0 and errors == ""
    assert "statistics.npz, posterior.nc, edges.csv" in shown
    out = parties.coordinator_file.parent / "results"
    check_statistics(out / "statistics.npz")
    expected = gpn.sample(
        POOLED, score="bge", sampler="exact", draws=10, chains=1, random_seed=1, progressbar=False
    ).edge_probabilities()
    np.testing.assert_allclose(gpn.load(out / "posterior.nc").edge_probabilities(), expected, rtol=0, atol=1e-9)
    # Started again when all is done, it needs no clients.
    (out / "statistics.npz").unlink()
    check_statistics(coordinate(parties.coordinator()))


def test_a_client_from_the_command_line(tmp_path, capsys):
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics")
    coordinator = Background(coordinate, parties.coordinator())
    PARTS["c"].to_csv(tmp_path / "rows.csv", index=False)
    edit(client_file(parties, "c"), f"127.0.0.1:{parties.port}", "nowhere:1")
    with clients_in_threads(parties, {name: PARTS[name] for name in "ab"}):
        code, shown, errors = call(
            capsys, "federate", "client", "--data", tmp_path / "rows.csv", "--coordinator", f"127.0.0.1:{parties.port}",
            "--cert", parties.homes["c"] / "certificate.pem", "--state", tmp_path / "mine.sqlite", "--quiet",
        )  # fmt: skip
    assert (code, shown, errors) == (0, "", "the run is over\n")
    assert (tmp_path / "mine.sqlite").exists()
    check_statistics(coordinator.result())


def test_a_table_is_summed_once_unless_its_user_says_otherwise(tmp_path, caplog):
    caplog.set_level(logging.INFO, "gpn_bayes")
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics", patience_seconds=20)
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, PARTS):
        check_statistics(coordinator.result())
    run = next(record.args[0] for record in caplog.records if record.msg == "new run %s")
    # A new run without client c: the difference would be c's own statistics.
    for name in ("a", "b"):
        edit(client_file(parties, name), "programs", "fewest = 2\nthe_other_client_learns_my_sums = true\nprograms")
    edit(parties.coordinator_file, 'out = "results"', 'out = "second"')
    text = parties.coordinator_file.read_text()
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith('"c" =')]
    parties.coordinator_file.write_text("".join(lines))
    coordinator = Background(coordinate, parties.coordinator())
    for name in ("a", "b"):
        expected = (
            rf"^a table is summed once, whatever the program: two sums .* was part of run {run} \(statistics over "
            r"a, b, c\) \(--again allows one more run\)$"
        )
        with pytest.raises(ValueError, match=expected):
            take_part(parties.client(name), read_part(PARTS[name]))
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "client 'a' refuses: its table was part of another run" in errors
    clients = [Background(take_part, parties.client(name), read_part(PARTS[name]), True) for name in ("a", "b")]
    second = gpn.SufficientStatistics.load(coordinator.result())
    for client in clients:
        client.result()
    assert second.n == 70
    assert any("a sum over 2 clients hides little" in record.getMessage() for record in caplog.records)
    difference = (
        f"this table was part of run {run} (statistics over a, b, c): that run's sums and this one's differ by "
    )
    assert any(record.getMessage() == f"{difference}those of c" for record in caplog.records)


def test_two_programs_do_not_single_out_a_client(tmp_path, caplog):
    """Statistics over four clients, then NOTEARS over three: their centring would give away the fourth's sums."""
    caplog.set_level(logging.INFO, "gpn_bayes")
    parts = PARTS | {"d": tables((35,), 4, seed=9)[0]}
    parties = Parties(tmp_path, tuple(parts), COLUMNS, "statistics", patience_seconds=20)
    for name in "abc":
        edit(
            client_file(parties, name), 'programs = ["statistics"]', 'fewest = 3\nprograms = ["statistics", "notears"]'
        )
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, parts):
        coordinator.result()
    edit(parties.coordinator_file, 'program = "statistics"', 'program = "notears"\nout = "second"')
    lines = parties.coordinator_file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(('"d" =', 'out = "results"'))]
    parties.coordinator_file.write_text("".join(kept) + "max_rounds = 3\n")
    coordinator = Background(coordinate, parties.coordinator())
    for name in "abc":
        with pytest.raises(ValueError, match=r"was part of run \w+ \(statistics over a, b, c, d\) \(--again allows"):
            take_part(parties.client(name), read_part(parts[name]))
    refusals = [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()]
    assert refusals == [f"client {name!r} refuses: its table was part of another run" for name in "abc"]
    assert not list((parties.coordinator_file.parent / "second").glob("*.npz"))
    # Their users may allow it.
    clients = [Background(take_part, parties.client(name), read_part(parts[name]), True) for name in "abc"]
    assert coordinator.result().name == "notears.npz"
    for client in clients:
        client.result()


@pytest.mark.parametrize("secure", [True, False])
def test_many_rounds_are_those_in_memory(tmp_path, secure):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 15")
    if not secure:
        edit(parties.coordinator_file, "secure = true", "secure = false")
        for name in NAMES:
            edit(client_file(parties, name), "programs", "secure = false\nprograms")
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, PARTS):
        results = dict(np.load(coordinator.result()))
    expected = in_memory(list(PARTS.values()), {"rounds": 15}, secure=secure)
    np.testing.assert_array_equal(results["weights"], expected["weights"])


def test_a_client_that_is_lost_for_too_long(tmp_path, capsys, caplog):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3", patience_seconds=1.0, silence_seconds=0.2)
    code, shown, errors = call(capsys, "federate", "coordinator", "--config", parties.coordinator_file, "--quiet")
    assert code == 1 and shown == ""
    assert errors.splitlines()[-1].startswith("error: client 'a' must join; nothing was heard from it for ")
    assert "start it and this run again, or a new run without it" in errors
    assert "waiting for client 'a' to join; nothing heard from it" in caplog.text


def test_a_coordinator_that_is_lost_for_too_long(tmp_path, capsys):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3", patience_seconds=0.3)
    PARTS["a"].to_csv(tmp_path / "rows.csv", index=False)
    code, _, errors = call(
        capsys, "federate", "client", "--config", client_file(parties, "a"), "--data", tmp_path / "rows.csv", "--quiet"
    )
    assert code == 1
    assert "must be reachable; it wasn't for 0.3 seconds" in errors.splitlines()[-1]


def test_a_client_at_work_is_not_taken_for_lost(tmp_path, monkeypatch):
    def run(folder):
        limits = {"heartbeat_seconds": 0.2, "silence_seconds": 0.4, "patience_seconds": 0.8}
        parties = Parties(folder, NAMES, COLUMNS, "descent", "rounds = 1\npause = 1.5", **limits)
        coordinator = Background(coordinate, parties.coordinator())
        clients = [Background(take_part, parties.client(name), read_part(PARTS[name])) for name in NAMES]
        return coordinator, clients

    coordinator, clients = run(tmp_path / "with")
    for waiting in (coordinator, *clients):
        waiting.result()
    # Negative control: without heartbeats it is.
    monkeypatch.setattr("gpn_bayes.wire.dialler.Dialler.beat", lambda dialler: None)
    coordinator, clients = run(tmp_path / "without")
    with pytest.raises(ConnectionError, match="^client '[abc]' must answer round 0; nothing was heard from it for 1 s"):
        coordinator.result()
    for client in clients:
        with pytest.raises(ConnectionError, match="must be reachable; it wasn't for 0.8 seconds"):
            client.result()


def test_a_program_that_fails_is_told_to_the_clients(tmp_path, monkeypatch):
    def fail(channel, plan):
        channel.sum("gradient", {"weights": np.zeros((4, 4))})
        raise ValueError("no more")

    monkeypatch.setitem(PROGRAMS, "descent", type(DESCENT)(fail, DESCENT.participant))
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent")
    coordinator = Background(coordinate, parties.coordinator())
    clients = [Background(take_part, parties.client(name), read_part(PARTS[name])) for name in NAMES]
    with pytest.raises(ValueError, match="^no more$"):
        coordinator.result()
    for client in clients:
        with pytest.raises(ConnectionError, match="^the coordinator must complete the run; it gave up: the coord"):
            client.result()


def test_clients_that_were_not_told_the_end_are_told_after_a_restart(tmp_path, monkeypatch):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3")

    def die(channel, finished, reason=""):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("gpn_bayes.federated.processes.grpc_channel.GrpcChannel.end", die)
        coordinator = Background(coordinate, parties.coordinator())
        clients = [Background(take_part, parties.client(name), read_part(PARTS[name])) for name in NAMES]
        with pytest.raises(RuntimeError, match="^killed$"):
            coordinator.result()
    path = Background(coordinate, parties.coordinator()).result()
    for client in clients:
        client.result()
    weights = np.load(path)["weights"]
    np.testing.assert_array_equal(weights, in_memory(list(PARTS.values()), {"rounds": 3})["weights"])
    assert Background(coordinate, parties.coordinator()).result(5) == path  # nobody is waited for any more


def test_a_folder_serves_one_run(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3")
    coordinator = Background(coordinate, parties.coordinator())
    with clients_in_threads(parties, PARTS):
        coordinator.result()
    edit(parties.coordinator_file, "rounds = 3", "rounds = 4")
    with pytest.raises(
        ValueError, match="^nothing is overwritten; .*results' holds a run with another program, other set"
    ):
        coordinate(parties.coordinator())


def test_a_port_that_is_taken(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", parties.port))
        taken.listen()
        with pytest.raises(ValueError, match=r"^the coordinator must be able to listen at '127.0.0.1:\d+'; it can't"):
            coordinate(parties.coordinator())


# Configurations


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('program = "descent"\n', "", "^coordinator.toml: 'program' must be given; it isn't$"),
        ("secure = true", "secure = 1", "^coordinator.toml: 'secure' must be of type bool; received 1$"),
        ("secure = true", "sekure = true", "^coordinator.toml: every entry must be known; received 'sekure'$"),
        ("listen = ", "listen = 'x' #", "^coordinator.toml: listen must be host:port; received 'x'$"),
        ('variables = ["x0"', "variables = [3", "^coordinator.toml: variables must be a list of names; "),
        ('"a" = "', '"a" = "0', "^coordinator.toml: clients must be given as name = SHA-256 .*; that of 'a' isn't$"),
        ('"a" = ', '"a b" = ', "^a party's name must be letters"),
        ("heartbeat_seconds", "hartbeat", "^coordinator.toml: limits are deadline_seconds, .*; received 'hartbeat'$"),
        ('key = "key.pem"', "", "^coordinator.toml: tls must name the file of the key; it doesn't$"),
        (
            'key = "key.pem"',
            'key = "key.pem"\nca = "x"',
            "^coordinator.toml: every entry must be known; received 'ca' in",
        ),
        ('"authority.pem"', '"none.pem"', "^the files of certificates and keys must exist; .*none.pem' is not a file$"),
        ("secure = true", "secure = ", "^coordinator.toml can't be read as TOML: "),
    ],
)
def test_wrong_configurations_are_told(tmp_path, old, new, message):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent", "rounds = 3")
    edit(parties.coordinator_file, old, new)
    with pytest.raises(ValueError, match=message):
        read_coordinator(parties.coordinator_file)


def test_a_client_must_know_itself(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "descent")
    text = client_file(parties, "a").read_text().replace('"a" =', '"z" =')
    client_file(parties, "a").write_text(text)
    with pytest.raises(
        ValueError, match="^client.toml: clients must list this client's own certificate; 'a' isn't it$"
    ):
        read_client(client_file(parties, "a"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certs", "--out", "{}", "--clients", "a,a"], "clients must have different names, none of them 'coordinator'"),
        (["certs", "--out", "{}", "--clients", "a,../b"], "a party's name must be letters"),
        (["certs", "--out", "{}", "--clients", "a,b", "--program", "x"], "program must be one of statistics, "),
        (["client", "--data", "{}/rows.csv"], "--config FILE or --cert FILE must be given; received neither"),
        (["client", "--data", "x.csv", "--config", "{}/none.toml"], "the configuration file must exist; "),
        (["coordinator", "--config", "{}/none.toml"], "the configuration file must exist; "),
    ],
)
def test_the_command_line_refuses_in_one_line(tmp_path, capsys, arguments, message):
    code, shown, errors = call(capsys, "federate", *(argument.format(tmp_path) for argument in arguments))
    assert code == 2 and shown == ""
    assert errors.startswith("error: ") and errors.count("\n") == 1 and message in errors
    assert list(tmp_path.iterdir()) == []


def test_parties_are_not_overwritten(tmp_path, capsys):
    arguments = ("federate", "certs", "--out", tmp_path, "--clients", "a,b,c")
    code, _, errors = call(capsys, *arguments)
    assert code == 0 and errors == "fill in 'variables' in coordinator.toml: the columns to use\n"
    code, _, errors = call(capsys, *arguments)
    assert code == 2 and "nothing is overwritten" in errors
    assert not list(tmp_path.rglob("*authority*key*"))


def test_a_missing_package_names_the_extra(monkeypatch, tmp_path, capsys):
    def missing(*arguments):
        raise ModuleNotFoundError("No module named 'grpc'", name="grpc")

    monkeypatch.setattr("gpn_bayes.federated.processes.setup_files.write_parties", missing)
    code, _, errors = call(capsys, "federate", "certs", "--out", tmp_path, "--clients", "a,b,c")
    assert (code, errors) == (2, 'error: grpc must be installed; use pip install "gpn_bayes[federated]"\n')
    monkeypatch.setattr("gpn_bayes._util.lazy.import_module", missing)
    # Other tests may have looked the name up, and left it there.
    monkeypatch.delitem(vars(gpn.federated), "secure_statistics", raising=False)
    with pytest.raises(ImportError, match=r'^grpc must be installed; use pip install "gpn_bayes\[federated\]"$'):
        gpn.federated.secure_statistics  # noqa: B018


def notears_plan(settings):
    return Plan("run", "notears", json.dumps(settings), (), NAMES, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "mlp", "hidden": 10**8}, "hidden must be at most 1000; received 100000000"),
        ({"lags": 10**6, "model": "dynamic"}, "lags must be at most 100; received 1000000"),
        ({"max_rounds": 10**9}, "max_rounds must be at most 10000; received 1000000000"),
    ],
)
def test_settings_that_would_fill_a_client_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        PROGRAMS["notears"].participant(read_part(PARTS["a"]), notears_plan(settings))


def test_networks_that_would_fill_a_client_are_refused():
    wide = pd.DataFrame(np.random.default_rng(1).normal(size=(10, 100)))
    with pytest.raises(ValueError, match="^networks must have 5000000 weights at most; 1000 hidden units for each of"):
        PROGRAMS["notears"].participant(read_part(wide), notears_plan({"model": "mlp", "hidden": 1000}))


@pytest.mark.parametrize("settings", ["[" * 100_000, '{"a":' * 100_000, "[1]", "{", "null"])
def test_settings_that_are_no_object_are_refused(settings):
    plan = Plan("run", "notears", settings, ("x",), ("a", "b", "c"), True)
    with pytest.raises(ValueError, match="^a program's settings must be a JSON object; received something else$"):
        _ = plan.options
