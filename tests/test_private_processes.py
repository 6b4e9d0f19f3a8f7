"""Private K2 between real processes over TLS: the learner, the command line, and parties that vanish."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpn_bayes
from gpn_bayes.private import PrivateK2, estimator, second_party
from gpn_bayes.private.meeting import learn_over_tls
from gpn_bayes.private.protocol import make_pool
from gpn_bayes.private.settings import Settings, agree
from gpn_bayes.private.tables import read_table
from gpn_bayes.wire.framing import WireError, header_bytes
from gpn_bayes.wire.tls_link import connect
from tests.command_line import call
from tests.private_runs import plain_k2, random_table, whole_number_score
from tests.tls_parties import HOST, write_credentials

pytestmark = pytest.mark.more("starts processes")

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60


@pytest.fixture(scope="module")
def joined():
    codes, order = random_table(30, n=4, rows=60)
    codes.index = [f"patient-{4000 + i}" for i in range(60)]
    return codes, order


# The learner


def test_both_on_one_machine(joined):
    codes, order = joined
    found = PrivateK2(order, key_bits=2048, max_parents=2).fit_pair(codes.iloc[:, :2], codes.iloc[::-1, 2:])
    expected = plain_k2(codes, order, 2, whole_number_score(60, "exact"))[0]
    assert {name: sorted(found.graph_.predecessors(name)) for name in codes} == expected
    assert list(found.feature_names_in_) == list(codes.columns)
    assert found.n_rows_ == 60
    assert list(found.costs_.index)[0] == "start"
    assert found.bytes_sent_ == found.costs_[["bytes_sent", "bytes_received"]].sum().sum() > 100_000
    assert found.costs_["seconds"].sum() <= found.seconds_
    with pytest.raises(ValueError, match="^PrivateK2 keeps no data; pass some to log_score"):
        found.log_score("k2")
    table = codes.astype(str)
    assert found.log_score("k2", data=table) == gpn_bayes.scores.K2().bind(table).total(found.graph_)
    assert clone(found).get_params() == found.get_params()


def test_the_public_name():
    assert gpn_bayes.private.PrivateK2 is PrivateK2
    assert dir(gpn_bayes.private) == ["PrivateK2"]
    with pytest.raises(AttributeError, match="^module 'gpn_bayes.private' has no attribute 'PrivateK3'$"):
        gpn_bayes.private.PrivateK3  # noqa: B018


@pytest.mark.parametrize(
    ("first", "second", "order", "further", "message"),
    [
        ("ab", "bc", "abc", {}, "every variable must belong to one party; 'b' is in both tables"),
        ("ab", "c", "ab", {}, "an order must list every variable once; 'c' is missing"),
        ("a", "b", "abc", {}, "an order must list variables of the data; 'c' is not one"),
        ("a", "b", "ab", {"key_bits": 1024}, "key_bits must be 2048 (112-bit security) or 3072 (128-bit security)"),
        ("a", "b", "ab", {"key": "id"}, "the key must be a column of the table; 'id' is not one"),
        ("a", "n", "an", {}, "every column must have two different values; column 'n' has 3"),
    ],
)
def test_what_one_can_see_before(first, second, order, further, message):
    table = pd.DataFrame({"a": [0, 1, 0], "b": [1, 0, 0], "c": [0, 1, 1], "n": [1, 2, 3]})
    learner = PrivateK2(list(order), **further)
    with pytest.raises(ValueError) as errors:
        learner.fit_pair(table[list(first)], table[list(second)])
    assert message in str(errors.value)
    assert not hasattr(learner, "graph_")


def test_what_only_both_can_see_is_told_in_the_same_words(joined):
    codes, order = joined
    learner = PrivateK2(order, key_bits=2048)
    with pytest.raises(ValueError, match="^both tables must have the same number of rows; 60 here, 59 there$"):
        learner.fit_pair(codes.iloc[:, :2], codes.iloc[1:, 2:])
    assert not hasattr(learner, "graph_")


@pytest.fixture
def started(monkeypatch):
    """Return the list of processes that are started from now on."""
    processes, popen = [], subprocess.Popen

    def start(*arguments, **settings):
        processes.append(popen(*arguments, **settings))
        return processes[-1]

    monkeypatch.setattr(estimator.subprocess, "Popen", start)
    return processes


def test_a_second_party_that_is_killed(joined, started, monkeypatch):
    """Killed when the parties have met, and before they agree."""
    codes, order = joined

    def kill_and_agree(*arguments, **settings):
        started[0].kill()
        return agree(*arguments, **settings)

    monkeypatch.setattr("gpn_bayes.private.protocol.agree", kill_and_agree)
    learner = PrivateK2(order, key_bits=2048)
    with pytest.raises(ConnectionError, match="the connection (ended|broke)"):
        learner.fit_pair(codes.iloc[:, :2], codes.iloc[:, 2:])
    assert started[0].returncode is not None
    assert not hasattr(learner, "graph_")


def test_ctrl_c_leaves_no_process(joined, started, monkeypatch):
    codes, order = joined

    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpn_bayes.private.protocol.align_rows", interrupt)
    with pytest.raises(KeyboardInterrupt):
        PrivateK2(order, key_bits=2048).fit_pair(codes.iloc[:, :2], codes.iloc[:, 2:])
    assert started[0].returncode is not None


def test_a_second_party_that_does_not_start(joined, monkeypatch):
    codes, order = joined
    monkeypatch.setattr(second_party, "instructions", lambda *errors: "{}")
    with pytest.raises(ConnectionError, match="^the second party's process must start; it ended: KeyError: 'columns'$"):
        PrivateK2(order, key_bits=2048).fit_pair(codes.iloc[:, :2], codes.iloc[:, 2:])


# The command line


@pytest.fixture
def files(joined, tmp_path):
    """Write what both parties need, and return the arguments of each."""
    codes, order = joined
    first, second = write_credentials(tmp_path)
    arguments = {}
    for role, credentials, columns in (("listen", first, slice(0, 2)), ("connect", second, slice(2, 4))):
        data = tmp_path / f"{role}.csv"
        codes.iloc[:, columns].rename_axis("id").reset_index().to_csv(data, index=False)
        arguments[role] = [
            "private-k2", role, "--data", data, "--key", "id", "--order", ",".join(order), "--key-bits", 2048,
            "--cert", credentials.certificate, "--cert-key", credentials.key, "--peer", credentials.peer,
            "--out", tmp_path / f"{role}_out", "--wait", 30, "--score", "exact",
        ]  # fmt: skip
    return arguments, (first, second)


def start(arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "gpn_bayes.cli", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_listening(arguments):
    """Start a party that listens at a free port; return it and the port."""
    process = start([*arguments, "--address", f"{HOST}:0"])
    for line in process.stderr:
        if line.startswith("listening at "):
            return process, int(line.rpartition(":")[2])
    process.communicate(timeout=SECONDS)
    raise AssertionError("the party doesn't listen")


def end_of(process):
    """Return how a party ended: its exit code, and what it printed."""
    try:
        shown, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, shown, errors


def test_two_command_lines(joined, files, tmp_path, capsys):
    codes, order = joined
    arguments, _ = files
    listening, port = start_listening(arguments["listen"])
    connecting = end_of(start([*arguments["connect"], "--address", f"{HOST}:{port}", "--quiet"]))
    listened = end_of(listening)
    assert (connecting[0], listened[0]) == (0, 0), connecting[2] + listened[2]
    assert connecting[1].partition(" edge")[0] == listened[1].partition(" edge")[0]
    tables = [pd.read_csv(tmp_path / f"{role}_out" / "edges.csv") for role in ("listen", "connect")]
    pd.testing.assert_frame_equal(*tables)
    expected = plain_k2(codes, order, 3, whole_number_score(60, "exact"))[0]
    found = set(tables[0].itertuples(index=False, name=None))
    assert found == {(parent, child) for child, parents in expected.items() for parent in parents}
    errors = json.loads((tmp_path / "listen_out" / "private_k2.json").read_text())
    others = json.loads((tmp_path / "connect_out" / "private_k2.json").read_text())
    assert errors["settings"] == others["settings"]
    assert errors["settings"]["order"] == order
    assert errors["variables"] == others["variables"] == list(codes.columns)
    assert errors["costs"]["scores"]["bytes_sent"] == others["costs"]["scores"]["bytes_received"] > 0
    everything = listened[1] + listened[2] + connecting[1] + connecting[2] + json.dumps(errors)
    assert "patient" not in everything
    code, _, refused = call(capsys, *arguments["listen"], "--address", f"{HOST}:0")
    assert code == 2
    assert refused.startswith("error: nothing is overwritten; ")


def peer(port, credentials, action):
    """Be the other party of a command line, and do something else than it should."""
    with connect((HOST, port), credentials, 30, 20) as link:
        return action(link)


def refusal(arguments, action):
    """Run a party that listens against an odd one; return its exit code, its last line, and what the other met."""
    (errors, (_, second)) = arguments
    process, port = start_listening(errors["listen"])
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(peer, port, second, action)
        code, shown, messages = end_of(process)
        met = other.exception(SECONDS)
    assert "edge" not in shown
    assert not Path(str(errors["listen"][errors["listen"].index("--out") + 1])).exists()
    assert "patient" not in messages
    assert "Traceback" not in messages
    return code, messages.splitlines()[-1], met


def agreed(link, joined):
    """Go through the agreement as the second party."""
    codes, order = joined
    agree(link, Settings(tuple(order), key_bits=2048), list(codes.columns[2:]), len(codes), first=False)


def test_a_party_that_hangs_up(joined, files):
    code, errors, met = refusal(files, lambda link: agreed(link, joined))
    assert code == 1
    assert errors.startswith("error: a message of kind 'key ")
    assert "; the connection " in errors
    assert met is None


def test_a_party_that_sends_garbage(joined, files):
    def chatter(link):
        agreed(link, joined)
        link._stream.sendall(os.urandom(1000))
        link.receive("anything")

    code, errors, met = refusal(files, chatter)
    assert code == 1
    assert errors.startswith("error: a message of kind 'key nonce' ")
    assert isinstance(met, WireError)


def test_a_message_that_is_cut_off(joined, files):
    def cut(link):
        agreed(link, joined)
        link._stream.sendall(header_bytes("key nonce", 32) + bytes(10))

    code, errors, _ = refusal(files, cut)
    assert code == 1
    assert errors.startswith("error: a message of kind 'key nonce' must have 32 bytes; the connection ")


def other_party(joined, change=None, **further):
    """Be a second party that keeps to the protocol, with another table or other settings."""
    codes, order = joined
    table = read_table((change or (lambda frame: frame))(codes.iloc[:, 2:]))
    known = Settings(tuple(order), **{"key_bits": 2048} | further)
    pool = make_pool(table, known, first=False)
    return lambda link: learn_over_tls(link, table, known, pool, first=False)


@pytest.mark.parametrize(
    ("change", "further", "rule"),
    [
        (None, {"max_parents": 1}, "both parties must have the same max_parents; 3 here, 1 there"),
        (
            lambda frame: frame.rename(index={"patient-4001": "patient-1"}),
            {},
            "both tables must have the same keys; the digests of the keys differ",
        ),
    ],
    ids=["settings", "keys"],
)
def test_parties_that_do_not_fit(joined, files, change, further, rule):
    code, errors, met = refusal(files, other_party(joined, change, **further))
    assert (code, errors) == (2, f"error: {rule}")
    assert type(met) is ValueError
    assert str(met).partition(";")[0] == rule.partition(";")[0]


def test_ctrl_c_ends_both(joined, files):
    """One party waits for a message when its user has enough."""
    arguments, (_, second) = files
    process, port = start_listening(arguments["listen"])

    def silent(link):
        agreed(link, joined)
        link.receive("key nonce", 32)
        # By then it has left the sending of that message, which nothing can follow while it lasts.
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        link.receive("key digest", 32)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(peer, port, second, silent)
        code, _, errors = end_of(process)
        assert str(other.exception(SECONDS)) == "the other party ended the run: it was interrupted"
    assert code == 130
    assert errors.splitlines()[-1].startswith("interrupted; nothing was written")


def test_a_stranger_is_refused(files, tmp_path):
    arguments, _ = files
    stranger = write_credentials(tmp_path, names=("a", "b"))[1]
    process, port = start_listening([*arguments["listen"], "--wait", 2])
    started = time.monotonic()
    with pytest.raises(WireError, match="^the other party's certificate must be the expected one; it isn't"):
        peer(port, stranger, lambda link: None)
    code, _, errors = end_of(process)
    assert time.monotonic() - started < SECONDS
    assert code == 1
    assert errors.splitlines()[-1].startswith(
        "error: the other party must call within 2 s; it didn't; a caller was refused"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--data": "nothing.csv"}, "the data file must exist; 'nothing.csv' is not a file"),
        ({"--key": "identity"}, "the key must be a column of the table; 'identity' is not one"),
        ({"--order": "x,y"}, "a party's table must have a variable of the order besides the key; received none"),
        ({"--order": "x,x"}, "an order must list every variable once; 'x' appears more than once"),
        ({"--cert": "nothing.pem"}, "the files of certificates and keys must exist; 'nothing.pem' is not a file"),
        ({"--address": "here"}, "--address must be host:port; received 'here'"),
        ({"--score": "bic"}, "--score must be one of exact, paper; received 'bic'"),
    ],
)
def test_what_is_told_before_anyone_is_called(files, capsys, changed, message):
    arguments = [*files[0]["connect"], "--address", f"{HOST}:1"]
    for option, value in changed.items():
        arguments[arguments.index(option) + 1] = value
    code, shown, errors = call(capsys, *arguments)
    assert (code, shown) == (2, "")
    assert errors == f"error: {message}\n"


def test_a_column_that_is_not_binary(files, tmp_path, capsys):
    data = tmp_path / "connect.csv"
    table = pd.read_csv(data)
    name = table.columns[1]
    table.assign(**{name: np.arange(60)}).to_csv(data, index=False)
    code, _, errors = call(capsys, *files[0]["connect"], "--address", f"{HOST}:1")
    assert (code, errors) == (2, f"error: every column must have two different values; column {name!r} has 60\n")


def test_certificates(tmp_path, capsys):
    out = tmp_path / "certificates"
    code, _, errors = call(capsys, "private-k2", "certs", "--out", out)
    assert code == 0
    assert [line.partition(":")[0] for line in errors.splitlines()] == ["listen", "connect"]
    assert (out / "listen" / "peer.pem").read_bytes() == (out / "connect" / "certificate.pem").read_bytes()
    assert (out / "connect" / "key.pem").stat().st_mode & 0o077 == 0
    code, _, errors = call(capsys, "private-k2", "certs", "--out", out, "--role", "connect")
    assert code == 2
    assert "nothing is overwritten" in errors
    code, _, errors = call(capsys, "private-k2", "certs", "--out", out / "mine", "--role", "listen")
    assert code == 0
    assert sorted(path.name for path in (out / "mine" / "listen").iterdir()) == ["certificate.pem", "key.pem"]
    code, _, errors = call(capsys, "private-k2", "certs", "--out", out, "--role", "mediator")
    assert (code, errors) == (2, "error: --role must be listen or connect; received 'mediator'\n")


@pytest.mark.parametrize("package", ["gmpy2", "nacl", "cryptography"])
def test_a_missing_package_is_named(package):
    code = (
        f"import sys; sys.modules[{package!r}] = None; from gpn_bayes.cli import main; "
        "main(['private-k2', 'certs', '--out', 'nowhere'])"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 2
    assert ended.stderr == f'error: {package} must be installed; use pip install "gpn_bayes[private]"\n'
