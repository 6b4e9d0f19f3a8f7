"""Checkpoints: round trips, whole transactions, and chains that survive kills unchanged.

Run as a script it is the chain that the tests kill.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

from gpn_bayes.sampling.checkpoint import Checkpoint, CheckpointStore
from gpn_bayes.scores.base import ScoreBatch
from gpn_bayes.scores.cache import ScoreCache

RNG_STATE = np.random.default_rng(5).bit_generator.state
BLOCKS, BLOCK_DRAWS = 150, 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


class NoScorer:
    names = ("a", "b")
    data_fingerprint = "d"
    score_fingerprint = "s"
    label = "None()"

    def score_sets(self, node, parent_sets):
        n = len(parent_sets)
        return ScoreBatch(np.full(n, -1.0), np.zeros(n), np.full(n, np.nan), ["exact"] * n)


def assert_same(given, expected):
    assert list(given) == list(expected)
    for name, array in given.items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


def test_round_trip_of_every_kind_of_array(path):
    state = {
        "order": np.array([3, 1, 2], dtype=np.int16),
        "scalar": np.array(-np.inf),
        "flags": np.array([[True, False], [False, True]]),
        "words": np.array([2**64 - 1, 0], dtype=np.uint64),
        "empty": np.empty((0, 4)),
        "strided": np.arange(24.0).reshape(4, 6)[::2, ::3],
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "complex": np.array([1 + 2j, np.nan]),
        "half": np.array([0.5], dtype=np.float16),
    }
    with CheckpointStore(path) as store:
        store.save_block("run", 2, 0, {}, state, RNG_STATE)
    with CheckpointStore(path) as store:
        checkpoint = store.load("run", 2)
        assert isinstance(checkpoint, Checkpoint)
        n_blocks, draws, loaded, rng_state = checkpoint
        assert n_blocks == 1 and draws == {} and rng_state == RNG_STATE
        assert_same(loaded, state)
        loaded["order"][0] = 9  # must be writable
        assert store.load("run", 1) is None and store.load("walk", 2) is None


def test_bytes_are_little_endian_whatever_came_in(path):
    with CheckpointStore(path) as store:
        store.save_block("run", 0, 0, {"x": np.array([1, 258], dtype=">i4")}, {}, RNG_STATE)
        row = store.connection.execute("SELECT layout, draws FROM blocks").fetchone()
        assert row == ('[["x", "<i4", [2]]]', b"\x01\x00\x00\x00\x02\x01\x00\x00")
        draws = store.load("run", 0).draws["x"]
        assert draws.tolist() == [1, 258] and draws.dtype.isnative


def test_blocks_are_joined_and_chains_kept_apart(path):
    with CheckpointStore(path) as store:
        store.save_block("run", 0, 0, {}, {"x": np.array(0)}, RNG_STATE)
        for block in range(1, 12):
            draws = {"lp": np.full(2, float(block)), "edge": np.full((2, 3, 3), block, np.int8)}
            store.save_block("run", 0, block, draws, {"x": np.array(block)}, RNG_STATE)
        store.save_block("run", 1, 0, {"lp": np.array([-7.0])}, {"x": np.array(70)}, RNG_STATE)
        store.save_block("other", 0, 0, {"lp": np.array([-8.0])}, {"x": np.array(80)}, RNG_STATE)
        n_blocks, draws, state, _ = store.load("run", 0)
        assert n_blocks == 12 and state["x"] == 11
        assert draws["lp"].tolist() == [float(b) for b in range(1, 12) for _ in range(2)]
        assert draws["edge"].shape == (22, 3, 3) and draws["edge"].dtype == np.int8
        assert store.load("run", 1).draws["lp"].tolist() == [-7.0]
        store.forget("run")
        assert store.load("run", 0) is None and store.load("run", 1) is None
        assert store.load("other", 0).state["x"] == 80
        store.save_block("run", 0, 0, {"lp": np.zeros((1, 2))}, {}, RNG_STATE)
        assert store.load("run", 0).draws["lp"].shape == (1, 2)


def test_a_run_is_forgotten_with_its_rounds_and_nothing_else(path):
    with CheckpointStore(path) as store:
        for key in ("run", "run:1", "run:2:again", "run2", "runner:1", "other:run"):
            for chain in range(2):
                store.save_block(key, chain, 0, {"lp": np.zeros(3)}, {"x": np.array(1)}, RNG_STATE)
        store.forget("run")
        kept = {key for key in ("run", "run:1", "run:2:again", "run2", "runner:1", "other:run") if store.load(key, 1)}
        assert kept == {"run2", "runner:1", "other:run"}
        for table in ("blocks", "checkpoints"):
            left = {key for (key,) in store.connection.execute(f"SELECT DISTINCT run_key FROM {table}")}
            assert left == kept


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_a_restored_generator_goes_on_as_the_saved_one(path, kind):
    rng = np.random.Generator(kind(3))
    rng.normal(size=7)
    rng.integers(5, size=3, dtype=np.int32)  # may leave half a word behind, which is state too
    with CheckpointStore(path) as store:
        store.save_block("run", 0, 0, {}, {}, rng.bit_generator.state)
        restored = np.random.Generator(kind(4))
        restored.bit_generator.state = store.load("run", 0).rng_state
    expected = rng.integers(1000, size=9, dtype=np.int32), rng.normal(size=5)
    received = restored.integers(1000, size=9, dtype=np.int32), restored.normal(size=5)
    np.testing.assert_array_equal(received[0], expected[0])
    np.testing.assert_array_equal(received[1], expected[1])


def test_wrong_blocks_are_refused_and_leave_no_trace(path):
    good = {"lp": np.zeros(2), "edge": np.zeros((2, 3), np.int8)}
    with CheckpointStore(path) as store:
        store.save_block("run", 0, 0, good, {"x": np.array(1)}, RNG_STATE)

        def refused(message, block=1, draws=good, state=None, rng_state=RNG_STATE):
            with pytest.raises(ValueError, match=message):
                store.save_block("run", 0, block, draws, state or {"x": np.array(2)}, rng_state)
            n_blocks, kept, kept_state, _ = store.load("run", 0)
            assert n_blocks == 1 and kept_state["x"] == 1
            assert_same(kept, good)

        refused("blocks must be saved in order; chain 0 expects 1, received 0", block=0)
        refused("blocks must be saved in order; chain 0 expects 1, received 2", block=2)
        refused("must have draws of the same names", draws={"lp": np.zeros(2)})
        refused("must have draws of the same names", draws=good | {"edge": np.zeros((2, 4), np.int8)})
        refused("must have draws of the same names", draws=good | {"lp": np.zeros(2, np.float32)})
        refused("draws must have a first axis over draws; 'lp' has none", draws=good | {"lp": np.array(1.0)})
        refused("must hold numbers; 'names' has type <U1", state={"names": np.array(["a"])})
        refused("must hold numbers; 'any' has type object", draws=good | {"any": np.array([None])})
        refused("made of integers and arrays; received set", rng_state={"state": {1}})
        store.save_block("run", 0, 1, good, {"x": np.array(2)}, RNG_STATE)
        assert store.load("run", 0).n_blocks == 2


def test_a_block_that_fails_halfway_is_not_kept(path):
    """The draws are written first; when the state then can't be, they must go again."""
    with CheckpointStore(path) as store:
        fail = "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        store.connection.execute(f"CREATE TEMP TRIGGER fail BEFORE INSERT ON checkpoints {fail}")
        with pytest.raises(ValueError, match="^a run.s file must be readable and writable; .*: disk full$"):
            store.save_block("run", 0, 0, {"lp": np.zeros(2)}, {}, RNG_STATE)
        assert store.connection.execute("SELECT count(*) FROM blocks").fetchone() == (0,)
        assert not store.connection.in_transaction


def test_it_shares_the_file_of_a_score_cache(path):
    with ScoreCache(NoScorer(), path) as cache:
        with CheckpointStore(cache.connection) as store:
            store.save_block("run", 0, 0, {"lp": np.array([1.0])}, {}, RNG_STATE)
            cache.get(0, (1,))
        cache.get(1, ())  # the cache's connection stays open
        with pytest.raises(ValueError, match="in use by another run"):
            CheckpointStore(path)
    with CheckpointStore(path) as store:
        assert store.load("run", 0).draws["lp"].tolist() == [1.0]
    with ScoreCache(NoScorer(), path) as cache:
        assert len(cache) == 2


def test_a_score_cache_may_come_second(path):
    with CheckpointStore(path) as store:
        store.save_block("run", 0, 0, {}, {}, RNG_STATE)
    with ScoreCache(NoScorer(), path) as cache:
        cache.get(0, (1,))
        assert CheckpointStore(cache.connection).load("run", 0).n_blocks == 1


def walk(path, announce=False):
    """Run a random walk in blocks, going on where an earlier run stopped; return all draws."""
    rng = np.random.default_rng(8)
    with CheckpointStore(path) as store:
        position, first = np.zeros(2), 0
        saved = store.load("walk", 0)
        if saved is not None:
            first, position = saved.n_blocks, saved.state["position"]
            rng.bit_generator.state = saved.rng_state
        if announce:
            print("open", flush=True)
        for block in range(first, BLOCKS):
            steps = rng.normal(size=(BLOCK_DRAWS, 2)) * rng.integers(1, 4, dtype=np.int32)
            path_ = position + np.cumsum(steps, axis=0)
            position = path_[-1]
            if announce:
                time.sleep(0.002)
            store.save_block("walk", 0, block, {"x": path_}, {"position": position}, rng.bit_generator.state)
        return store.load("walk", 0).draws["x"]


@pytest.mark.more("starts processes and kills them")
def test_a_killed_chain_resumes_to_the_very_same_draws(path, tmp_path):
    expected = walk(tmp_path / "uninterrupted.sqlite")
    assert expected.shape == (BLOCKS * BLOCK_DRAWS, 2)
    moments = random.Random(20240608)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    lengths = [0]
    for _ in range(6):
        command = [sys.executable, __file__, str(path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout.readline() == "open\n"
            time.sleep(moments.uniform(0.0, 0.08))
            run.send_signal(signal.SIGKILL)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with CheckpointStore(path) as store:
            saved = store.load("walk", 0)
        if saved is not None:
            assert len(saved.draws["x"]) == saved.n_blocks * BLOCK_DRAWS
            np.testing.assert_array_equal(saved.draws["x"][-1], saved.state["position"])
            lengths.append(saved.n_blocks)
    assert lengths == sorted(lengths) and len(set(lengths)) >= 4, "the kills must hit a chain at work"
    np.testing.assert_array_equal(walk(path), expected)


if __name__ == "__main__":
    walk(sys.argv[1], announce=True)
