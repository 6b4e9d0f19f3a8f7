"""A run's file that somebody has changed: one message, and never a crash or a result that says more than was drawn."""

import json
import subprocess
from contextlib import closing

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes._util import sqlite
from gpn_bayes.sampling.checkpoint import CheckpointStore
from tests.draws import asked
from tests.running import ROOT, STRICT_PYTHON

pytestmark = pytest.mark.more("starts processes and kills them")

DATA = np.random.default_rng(1).normal(size=(40, 6)).cumsum(axis=1)
# Without tuning, so that even the first block has draws, and with one thread, so that both chains have some.
SETTINGS = {"draws": 60, "tune": 0, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
KINDS = {
    "exact": {"sampler": "exact"},
    "order": {"sampler": "order", "thin": 10},
    "partition": {"sampler": "partition", "thin": 10},
    "outside": {"sampler": "partition", "thin": 10, "candidates": 2, "plus_one": True, "expand": False},
    "tempered": {"sampler": "partition", "thin": 10, "temperatures": 3},
}
# In a process of its own: without the checks some of these end it.
RESUME = """
import json, sys
import numpy as np
import gpn_bayes as gpn
from tests.draws import asked
data = np.random.default_rng(1).normal(size=(40, 6)).cumsum(axis=1)
try:
    post = gpn.sample(data, "bge", cache=sys.argv[1], **asked(**json.loads(sys.argv[2])))
    print(post.log_score.shape)
except ValueError as error:
    print("ValueError", error)
"""


class Stop(Exception):
    """Ends a run half-way."""


def half_done(path, kind, monkeypatch, blocks=4):
    """Leave the checkpoints of a run that was cut short."""
    saved = 0
    save = CheckpointStore.save_block

    def stop(self, *given):
        nonlocal saved
        saved += 1
        if saved > blocks:
            raise Stop
        save(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save_block", stop)
        with pytest.raises(Stop):
            gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS[kind]))


def change_state(path, change, table="checkpoints", column="state"):
    """Change the arrays of chain 0's state, or of its last block of draws."""
    with closing(sqlite.open_store(path)) as connection:
        _change_arrays(connection, change, table, column)


def _change_arrays(connection, change, table, column):
    where = "chain = 0 AND layout <> '[]' ORDER BY rowid DESC LIMIT 1"
    layout, data, row = connection.execute(f"SELECT layout, {column}, rowid FROM {table} WHERE {where}").fetchone()
    arrays, offset = {}, 0
    for name, dtype, shape in json.loads(layout):
        view = np.ndarray(shape, dtype, buffer=data, offset=offset)
        arrays[name] = view.copy()
        offset += view.nbytes
    change(arrays)
    layout = json.dumps([[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()])
    data = b"".join(array.tobytes() for array in arrays.values())
    with sqlite.transaction(connection):
        connection.execute(f"UPDATE {table} SET layout = ?, {column} = ? WHERE rowid = ?", (layout, data, row))


def resumed(path, kind):
    """Return what a run says that goes on from a file."""
    settings = json.dumps(SETTINGS | KINDS[kind])
    command = [*STRICT_PYTHON, "-W", "ignore::UserWarning", "-c", RESUME, str(path), settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def set_to(name, place, value):
    def change(arrays):
        arrays[name][place] = value

    return change


def drop(name):
    return lambda arrays: arrays.pop(name)


def retype(name, dtype):
    def change(arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


CHANGES = {
    "exact": {"done": set_to("done", 0, 10**12), "negative": set_to("done", 0, -5)},
    "order": {
        "done": set_to("done", 0, 10**12),
        "wild node": set_to("ints", (0, 0), 10**9),
        "repeated node": set_to("ints", (0, 0), 0),
        "wild mask": set_to("ints", (2, 1), 1 << 40),
        "score": set_to("score", 0, np.nan),
        "other type": retype("ints", np.int32),
        "missing": drop("ints"),
        "counters": drop("counters"),
    },
    "partition": {
        "wild node": set_to("ints", (0, 0), -(10**12)),
        "wild start": set_to("ints", (1, 1), 10**9),
        "wild block": set_to("ints", (2, 0), 10**9),
        "wild count": set_to("ints", (5, 0), 10**9),
        "count beyond memory": set_to("ints", (5, 0), 2**48),
        "wild mask": set_to("ints", (3, 0), -1),
        "score": set_to("score", 0, np.inf),
        "wider": lambda arrays: arrays.update(ints=np.zeros((6, 100), np.int64)),
    },
    "outside": {
        "wild place": set_to("guests", 0, 10**9),
        "no place": set_to("guests", 0, -1),
        "score of other parents": set_to("score", 0, -3.0),
    },
    "tempered": {
        "wild copy": set_to("ints", (1, 2, 0), 10**9),
        "betas": set_to("betas", 1, np.nan),
        "place": set_to("guests", (1, 0), 5),
        "progress": set_to("progress", 0, 10**9),
        "fewer copies": lambda arrays: arrays.update(betas=arrays["betas"][:2]),
    },
}


@pytest.mark.parametrize(("kind", "change"), [(kind, change) for kind in CHANGES for change in CHANGES[kind]])
def test_states_that_cannot_be_are_refused(kind, change, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, kind, monkeypatch)
    change_state(path, CHANGES[kind][change])
    with pytest.raises(ValueError, match="^a run's checkpoints must be as they were written; damaged: .+; use another"):
        gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_file_resumes(kind, tmp_path, monkeypatch):
    """Negative control."""
    path = tmp_path / "run.sqlite"
    half_done(path, kind, monkeypatch)
    change_state(path, lambda arrays: None)
    post = gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS[kind]))
    np.testing.assert_array_equal(post.parents, gpn.sample(DATA, "bge", **asked(**SETTINGS | KINDS[kind])).parents)


DRAWS = {
    "cycle": lambda arrays: arrays["parents"].__setitem__((0, slice(2), 0), np.array([2, 1], np.uint64)),
    "bit of no node": set_to("parents", (0, 0, 0), 1 << 40),
    "scores": set_to("log_scores", 0, np.nan),
    "fewer": lambda arrays: arrays.update(log_scores=arrays["log_scores"][:-1]),
    "missing": drop("targets"),
}


@pytest.mark.parametrize("change", DRAWS)
def test_draws_that_cannot_be_are_refused(change, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, "order", monkeypatch)
    change_state(path, DRAWS[change], "blocks", "draws")
    with pytest.raises(ValueError, match="^a run's checkpoints must be as they were written; damaged: "):
        gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS["order"]))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checkpoints SET layout = replace(layout, '<i8', '|O')",
        "UPDATE checkpoints SET layout = replace(layout, '<i8', '<U2')",
        "UPDATE checkpoints SET state = x'00'",
        "UPDATE checkpoints SET layout = '[' || layout || ']'",
        "UPDATE checkpoints SET layout = 17",
        "UPDATE checkpoints SET layout = replace(hex(zeroblob(100000)), '00', '[')",
        "UPDATE checkpoints SET n_blocks = n_blocks + 1000",
        "UPDATE checkpoints SET rng_state = '{}'",
        "UPDATE checkpoints SET rng_state = replace(rng_state, 'PCG64', 'MT19937')",
        'UPDATE checkpoints SET rng_state = \'{"dtype": "|O", "values": [1]}\'',
        "UPDATE blocks SET draws = x'', layout = '[[\"parents\", \"<u8\", [1000000000000, 6, 1]]]'",
    ],
)
def test_a_crafted_file_ends_in_one_message(statement, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, "partition", monkeypatch)
    with closing(sqlite.open_store(path)) as connection, sqlite.transaction(connection):
        connection.execute(statement)
    said = resumed(path, "partition")
    assert said.startswith("ValueError a run's checkpoints must be as they were written; damaged: "), said
    assert "\n" not in said


@pytest.mark.parametrize(
    "change",
    [
        "value = 'text'",
        "value = x'00'",
        "value = 9e999",
        "value = -9223372036854775808.0",
        "error = 'text'",
        "status = x'ff'",
        "parents = 5",
        "parents = '5'",
        "parents = '[[1]]'",
        "parents = x'ff'",
        "parents = replace(hex(zeroblob(100000)), '00', '[')",
        """parents = '["' || node || '"]'""",
    ],
)
def test_scores_that_cannot_be_are_refused(change, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, "order", monkeypatch)
    with closing(sqlite.open_store(path)) as connection, sqlite.transaction(connection):
        connection.execute(f"UPDATE OR REPLACE scores SET {change}")
    with pytest.raises(ValueError, match="^a score file must be intact; '.*run.sqlite' is damaged: ") as error:
        gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS["order"]))
    assert type(error.value) is ValueError


@pytest.mark.parametrize("value", ["-1e12", "-1e12 * (length(parents) % 2)", "-1e6", "-9e999"])
@pytest.mark.parametrize("kind", ["partition", "tempered"])
def test_extreme_scores_do_not_end_the_process(kind, value, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, kind, monkeypatch)
    with closing(sqlite.open_store(path)) as connection, sqlite.transaction(connection):
        connection.execute(f"UPDATE scores SET value = {value}")
    assert resumed(path, kind).startswith(("(2, 60)", "ValueError"))


@pytest.mark.parametrize("value", ["5", "'' ", "x'ff'", "replace(hex(zeroblob(100000)), '00', '[')"])
def test_a_file_whose_description_makes_no_sense_is_refused_in_one_line(value, tmp_path, monkeypatch):
    path = tmp_path / "run.sqlite"
    half_done(path, "order", monkeypatch)
    with closing(sqlite.open_store(path)) as connection, sqlite.transaction(connection):
        connection.execute(f"UPDATE meta SET value = {value}")
    with pytest.raises(ValueError, match="^a score file must come from the same data and score; ") as error:
        gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS["order"]))
    assert type(error.value) is ValueError and len(str(error.value)) < 600
