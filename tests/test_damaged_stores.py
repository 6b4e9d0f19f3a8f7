"""Files of a federated run that somebody has changed, and values that no round has: one message each."""

import json
import zipfile
from contextlib import closing
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from gpn_bayes._util import sqlite
from gpn_bayes.data import read_part
from gpn_bayes.federated.combining import RoundSum
from gpn_bayes.federated.notears.bounds import Bounds
from gpn_bayes.federated.packing import pack, unpack
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.client_store import ClientStore
from gpn_bayes.federated.processes.config import read_client, read_coordinator
from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
from gpn_bayes.federated.processes.rendezvous import Rendezvous
from gpn_bayes.federated.processes.setup_files import write_parties
from gpn_bayes.federated.programs import find_program
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.wire import arrays
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.limits import Limits
from tests.federated import asked
from tests.federation import tables

pytestmark = pytest.mark.more("starts processes and kills them")

NAMES = ("ann", "ben", "cem")
DATA = read_part(tables((20,), 3)[0])
PLAN = Plan("r1", "notears", "{}", DATA.names, NAMES, False)
REQUEST = Request.of("rows", {})


def participant(settings="{}"):
    return find_program("notears").participant(DATA, replace(PLAN, settings=settings))


def bounded():
    return find_program("notears").bounded(participant(), PLAN, Bounds())


def state(**changes):
    """Return the state of a client that has counted its rows, with changes."""
    client = bounded()
    client.answer("rows", {})
    return pack(client.state() | {name.replace("_", " "): value for name, value in changes.items()})


def change(path, statement, *values):
    with closing(sqlite.open_store(path)) as connection, sqlite.transaction(connection):
        connection.execute(statement, values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("private_key", "text"),
        ("private_key", b"short"),
        ("keys", b"\xff\xff"),
        ("keys", 5),
        ("round", "first"),
        ("round", -7),
        ("request", 3),
        ("answer", b"\xff\xff"),
        ("answer", "text"),
        ("state", b"no archive"),
        ("state", "text"),
        ("state", pack({"own": np.zeros(0)})),
        ("state", state(own_own=np.zeros(3))),
        ("state", state(own_multipliers=np.full((3, 3), np.nan))),
        ("state", state(rounds=np.array(10**6))),
        ("state", state(rounds=np.array("first"))),
        ("state", state(rhos=np.array([0.1, np.nan]))),
    ],
)
def test_a_client_s_damaged_file_is_refused_in_one_line(column, value, tmp_path):
    path = tmp_path / "state.sqlite"
    session = ClientSession(PLAN, "ann", bounded())
    session.answer(0, REQUEST)
    with ClientStore(path) as store:
        store.save(session, DATA.fingerprint)
        assert store.load(PLAN, "ann", DATA.fingerprint, bounded, {}).last_round == 0
    change(path, f"UPDATE sessions SET {column} = ?", value)
    with ClientStore(path) as store, pytest.raises(ValueError, match="must be as (it was|they were) ") as error:
        store.load(PLAN, "ann", DATA.fingerprint, bounded, {})
    assert type(error.value) is ValueError and "\n" not in str(error.value)


def test_a_key_that_became_text_is_not_quoted(tmp_path):
    """Python's message about text that isn't UTF-8 holds the text."""
    session = ClientSession(PLAN, "ann", participant(), b"\xff" + b"secret".ljust(31))
    with ClientStore(tmp_path / "state.sqlite") as store:
        store.save(session, DATA.fingerprint)
    change(tmp_path / "state.sqlite", "UPDATE sessions SET private_key = CAST(private_key AS TEXT)")
    with ClientStore(tmp_path / "state.sqlite") as store:
        with pytest.raises(ValueError, match="^a run's file must be .*: it holds bytes in place of text$") as error:
            store.load(PLAN, "ann", DATA.fingerprint, participant, {})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("plan", ["", "[]", "{}", "5", "[" * 100_000, PLAN.to_json().replace("run", "ran")])
def test_a_plan_that_no_run_wrote_is_refused(plan, tmp_path):
    with CoordinatorStore(tmp_path / "run.sqlite") as store:
        store.start(PLAN)
        assert store.plan() == PLAN
    change(tmp_path / "run.sqlite", "UPDATE plan SET plan = ?", plan)
    with CoordinatorStore(tmp_path / "run.sqlite") as store:
        with pytest.raises(ValueError, match="^a plan must be one that a run wrote; received another text$"):
            store.plan()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variables": ["x0", "x0"]}, "^variables must have different names; received one twice$"),
        ({"variables": [["x0"], "x1"]}, "^a plan must be made of texts and a truth value; received something else$"),
        ({"settings": {}}, "^a plan must be made of texts and a truth value; received something else$"),
        ({"secure": 1}, "^a plan must be made of texts and a truth value; received something else$"),
    ],
)
def test_plans_of_other_things_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Plan.from_json(json.dumps(json.loads(PLAN.to_json()) | changes))


def test_settings_with_unprintable_names_are_refused():
    plan = Plan("r1", "statistics", json.dumps({"two\nlines": 1}), DATA.names, NAMES, True)
    with pytest.raises(ValueError, match="^the names of a program's settings must be printable; received one that isn"):
        _ = plan.options


def test_a_plain_sum_that_overflows_is_refused():
    request = Request.of("rows", {})
    taken = RoundSum(PLAN, 0, request)
    for name in NAMES:
        values = arrays.to_messages({"x": np.array([1.0, 1.7e308])})
        taken.take(name, messages.Answer(run="r1", round=0, request=request.digest, values=values))
    with pytest.raises(ValueError, match="^sums over clients must be finite; that of 'x' isn't$"):
        taken.total()


@pytest.mark.parametrize("announcement", [b"\xff\xff", "text"])
def test_damaged_keys_are_refused(announcement):
    with pytest.raises(ValueError, match="^clients' keys must be as they were saved; one is damaged: start a new run$"):
        Rendezvous(PLAN, dict.fromkeys(NAMES, ""), Limits(), {"ann": announcement})


def test_a_store_without_its_table_is_refused(tmp_path):
    CoordinatorStore(tmp_path / "run.sqlite").close()
    with CoordinatorStore(tmp_path / "run.sqlite") as store:
        with sqlite.transaction(store._connection) as connection:
            connection.execute("DROP TABLE rounds")
        with pytest.raises(ValueError, match="^a run's file must be readable and writable; .*: no such table: rounds$"):
            store.sums(0, b"")


def test_arrays_that_unpack_to_more_than_their_bytes_are_refused():
    content = BytesIO()
    np.savez_compressed(content, x=np.zeros(1 << 20))
    with pytest.raises(
        ValueError, match="^the arrays of a checkpoint must be as they were written; received something"
    ):
        unpack(content.getvalue())
    raw = BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("x.npy", b"no array")
    with pytest.raises(
        ValueError, match="^the arrays of a checkpoint must be as they were written; received something"
    ):
        unpack(raw.getvalue())


@pytest.mark.parametrize("value", ["[" * 2000 + "]" * 2000, "9" * 5000], ids=["nested", "digits"])
def test_toml_that_python_gives_up_on_is_refused_in_one_line(value, tmp_path):
    _, home, *_ = write_parties(tmp_path / "parties", NAMES, ["x", "y"])
    file = home / "client.toml"
    file.write_text(f"fewest = {value}\n{file.read_text()}")
    # How deeply Python reads depends on a limit that libraries raise.
    rule = "( can't be read as TOML|: 'fewest' must be of type int; received)"
    with pytest.raises(ValueError, match=f"^client.toml{rule}[^\n]{{,200}}$") as error:
        read_client(file)
    assert type(error.value) is ValueError


def test_dates_among_a_program_s_settings_are_refused(tmp_path):
    home, *_ = write_parties(tmp_path / "parties", NAMES, ["x", "y"])
    file = home / "coordinator.toml"
    file.write_text(f"{file.read_text()}\n[settings]\nrho = 1979-05-27\n")
    with pytest.raises(
        ValueError, match="^coordinator.toml: settings must be texts, numbers or lists; received a date$"
    ):
        read_coordinator(file)


def test_a_name_too_long_for_a_file_is_refused(tmp_path):
    _, home, *_ = write_parties(tmp_path / "parties", NAMES, ["x", "y"])
    file = home / "client.toml"
    file.write_text(file.read_text().replace("key.pem", "k" * 5000))
    with pytest.raises(ValueError, match="^the files of certificates and keys must exist; "):
        read_client(file)


@pytest.mark.parametrize("settings", ["{}", '{"model": "mlp", "hidden": 2}'], ids=["linear", "mlp"])
@pytest.mark.parametrize("number", [1e300, -1.7e308])
def test_a_round_of_numbers_that_overflow_is_refused(settings, number):
    client = participant(settings)
    shape = (3, 3) if settings == "{}" else (33,)
    client.answer("round", asked(np.zeros(shape), 0.1, 0.1, 60))
    with pytest.raises(ValueError, match="^a round's values must lead to finite parameters; these don't$") as error:
        client.answer("round", asked(np.full(shape, number), 0.1, 1e300, 60))
    assert type(error.value) is ValueError
