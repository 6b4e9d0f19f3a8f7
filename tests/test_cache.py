"""The score cache within one process: round trips, refusals, executors, interrupts."""

import math
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from itertools import chain, combinations

import numpy as np
import pytest

from gpn_bayes.scores import workers
from gpn_bayes.scores.base import ScoreBatch
from gpn_bayes.scores.cache import ScoreCache, ScoreRecord

NAMES = ("erk", "akt, total", 'p"38"', "pkc\u03b1", "raf")


def true_value(node, parents):
    if node == 3 and parents == (0, 4):
        return -math.inf
    return -100.0 / (node + 1) - sum((p + 1) ** 2 / 7 for p in parents)


class FakeScorer:
    """Scores by formula."""

    def __init__(self, data="d" * 8, score="s" * 8, names=NAMES, label="Fake(a=1)", delay=0.0):
        self.names = names
        self.data_fingerprint = data
        self.score_fingerprint = score
        self.label = label
        self.delay = delay

    def cost(self, size):
        return 1.0

    def score_sets(self, node, parent_sets):
        assert isinstance(parent_sets, list)
        assert all(list(s) == sorted(set(s)) and node not in s for s in parent_sets)
        time.sleep(self.delay)
        values = np.array([true_value(node, s) for s in parent_sets])
        return ScoreBatch(
            values,
            np.array([0.25 if len(s) % 2 else math.nan for s in parent_sets]),
            np.array([math.nan if len(s) % 2 else 0.5 for s in parent_sets]),
            ["ok" if len(s) % 2 else "exact" for s in parent_sets],
        )


class Counting(FakeScorer):
    """Remembers its calls and hands each to `act`, which may raise or spoil the result."""

    def __init__(self, act=lambda call, batch: batch, **settings):
        super().__init__(**settings)
        self.act = act
        self.calls = []
        self.guard = threading.Lock()

    def score_sets(self, node, parent_sets):
        with self.guard:
            self.calls.append((node, tuple(parent_sets)))
            call = len(self.calls)
        return self.act(call, super().score_sets(node, parent_sets))

    @property
    def scored(self):
        return [(node, s) for node, sets in self.calls for s in sets]


def all_requests(n=5):
    for node in range(n):
        others = [i for i in range(n) if i != node]
        for parents in chain.from_iterable(combinations(others, k) for k in range(len(others) + 1)):
            yield node, parents


def assert_right(cache, requests):
    requests = list(requests)
    assert len(cache) == len(requests)
    for node, parents in requests:
        record = cache.lookup(node, parents)
        odd = len(parents) % 2
        expected = (true_value(node, parents), 0.25 if odd else math.nan, math.nan if odd else 0.5)
        np.testing.assert_array_equal(record[:3], expected)
        assert record.status == ("ok" if odd else "exact")


def rows(path):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM scores").fetchall()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


# Memory


def test_get_computes_once_and_sorts_parents():
    scorer = Counting()
    cache = ScoreCache(scorer)
    assert cache.lookup(1, (2, 0)) is None
    assert (1, (0, 2)) not in cache
    assert cache.get(1, (2, 0)) == true_value(1, (0, 2))
    assert cache.get(1, [0, 2]) == cache.get(1, np.array([2, 0])) == true_value(1, (0, 2))
    assert (1, (2, 0)) in cache and (2, (1, 0)) not in cache
    assert len(cache) == 1
    assert scorer.scored == [(1, (0, 2))]


def test_values_reads_many_and_computes_the_missing():
    scorer = Counting()
    cache = ScoreCache(scorer)
    cache.fill([(0, (1,)), (0, (2,))], progressbar=False)
    sets = [(2,), (3, 1), [1], (), (1, 3)]
    expected = [true_value(0, s) for s in [(2,), (1, 3), (1,), (), (1, 3)]]
    np.testing.assert_array_equal(cache.values(0, sets), expected)
    np.testing.assert_array_equal(cache.values(0, sets), expected)
    assert sorted(scorer.scored) == [(0, ()), (0, (1,)), (0, (1, 3)), (0, (2,))]
    assert cache.values(0, []).shape == (0,)


def test_items_lists_everything():
    cache = ScoreCache(FakeScorer())
    cache.fill([(1, (2, 0)), (0, ())], progressbar=False)
    keys = {key: record.value for key, record in cache.items()}
    assert keys == {(1, (0, 2)): true_value(1, (0, 2)), (0, ()): true_value(0, ())}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ((5, ()), "a node must be an index from 0 to 4; received 5"),
        ((-1, ()), "a node must be an index from 0 to 4; received -1"),
        ((0, (5,)), r"parents must be indices from 0 to 4; received \(5,\)"),
        ((0, (-1, 2)), "parents must be indices"),
        ((0, (0, 1)), "parents must be distinct and differ from the node 0"),
        ((0, (1, 1)), "parents must be distinct"),
    ],
)
def test_bad_requests_are_refused(request_, message):
    cache = ScoreCache(FakeScorer())
    with pytest.raises(ValueError, match=message):
        cache.get(*request_)
    with pytest.raises(ValueError, match=message):
        cache.fill([request_], progressbar=False)
    with pytest.raises(ValueError, match="batch_size must be 1 or more; received 0"):
        cache.fill([(0, ())], batch_size=0)


# Filling


def test_fill_skips_the_known_and_duplicates():
    scorer = Counting()
    cache = ScoreCache(scorer)
    cache.fill([(0, (1,)), (0, (2, 1)), (0, (1, 2)), (4, ())], progressbar=False)
    cache.fill(all_requests(), progressbar=False)
    assert len(scorer.scored) == len(set(scorer.scored)) == 5 * 2**4
    assert_right(cache, all_requests())


def test_batches_hold_one_node_and_do_not_depend_on_the_executor():
    scorers = [Counting(), Counting()]
    ScoreCache(scorers[0]).fill(all_requests(), progressbar=False, batch_size=7)
    with ThreadPoolExecutor(1) as pool:
        ScoreCache(scorers[1]).fill(all_requests(), executor=pool, progressbar=False, batch_size=7)
        assert pool.submit(int, "3").result() == 3, "the caller's executor must stay open"
    assert sorted(scorers[0].calls) == sorted(scorers[1].calls)
    assert sorted(map(len, (sets for _, sets in scorers[0].calls))) == [2] * 5 + [7] * 10


def test_batches_in_flight_are_bounded(monkeypatch):
    monkeypatch.setattr(workers, "MAX_IN_FLIGHT", 6)
    outstanding, peaks, guard = [0], [0], threading.Lock()

    class Watching(Executor):
        def submit(self, *task):
            with guard:
                outstanding[0] += 1
                peaks.append(outstanding[0])
            future = pool.submit(*task)
            future.add_done_callback(self.done)
            return future

        def done(self, future):
            with guard:
                outstanding[0] -= 1

    with ThreadPoolExecutor(2) as pool:
        cache = ScoreCache(FakeScorer(delay=0.001))
        cache.fill(all_requests(), executor=Watching(), progressbar=False, batch_size=1)
    assert max(peaks) == 6
    assert len(cache) == 80


def test_progress_bar_ends_full(capsys, progress_at_once):
    cache = ScoreCache(FakeScorer())
    cache.fill(all_requests(), progressbar=True)
    shown = capsys.readouterr()
    assert "Scoring" in shown.err and "100%" in shown.err and shown.out == ""
    cache.fill(all_requests(), progressbar=True)
    ScoreCache(FakeScorer()).fill(all_requests(), progressbar=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("singular matrix")])
def test_interrupt_or_failure_keeps_earlier_batches(path, error):
    def act(call, batch):
        if call >= 5:
            raise error
        return batch

    scorer = Counting(act, delay=0.002)
    with ScoreCache(scorer, path) as cache, ThreadPoolExecutor(1) as pool:
        with pytest.raises(type(error) if isinstance(error, Exception) else error) as caught:
            cache.fill(all_requests(), executor=pool, progressbar=False, batch_size=2)
        pool.submit(int).result()
        assert len(scorer.calls) < 20, "waiting batches must be cancelled"
        assert len(cache) == 8
        if isinstance(error, Exception):
            assert caught.value.__notes__ == [
                'while scoring \'erk\' given ["p\\"38\\"", "pkc\u03b1"] or ["p\\"38\\"", "raf"]'
            ]
    again = Counting()
    with ScoreCache(again, path) as cache:
        cache.fill(all_requests(), progressbar=False)
        assert_right(cache, all_requests())
    assert set(again.scored).isdisjoint(s for node, sets in scorer.calls[:4] for s in [(node, x) for x in sets])
    assert len(again.scored) == 80 - 8


def test_batches_that_finished_next_to_a_failing_one_are_kept(path, monkeypatch):
    monkeypatch.setattr(workers, "_FIRST_IN_FLIGHT", 80)

    class Inline(Executor):
        """Finishes every batch before the next is sent."""

        def submit(self, *task):
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(*task)

    def act(call, batch):
        if call == 1:
            raise RuntimeError("singular matrix")
        return spoil(call, batch) if call == 2 else batch

    with ScoreCache(Counting(act), path) as cache:
        with pytest.raises(RuntimeError, match="singular matrix"):
            cache.fill(all_requests(), executor=Inline(), progressbar=False, batch_size=1)
        assert len(cache) == 78
    assert len(rows(path)) == 78


def test_default_threads_stop_at_a_failure(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def act(call, batch):
        raise RuntimeError("no")

    scorer = Counting(act, delay=0.002)
    with pytest.raises(RuntimeError, match="no"):
        ScoreCache(scorer).fill(all_requests(), progressbar=False, batch_size=1)
    assert len(scorer.calls) < 40


def shorten(call, batch):
    return batch._replace(values=batch.values[:-1])


def spoil(call, batch):
    values = batch.values.copy()
    values[-1] = np.nan
    return batch._replace(values=values)


def explode(call, batch):
    return batch._replace(values=np.full(len(batch.values), np.inf))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            shorten,
            r"a score for each of 2 parent sets; received 1\nwhile scoring 'raf' given \[\] or \[\"erk\", \"akt, tot",
        ),
        (
            spoil,
            r"every score must be a number.*; 'raf' given \[\"erk\", \"akt, total\"\] scored nan \(exact\)",
        ),
        (explode, r"every score must be a number.*; 'raf' given \[\] scored inf"),
    ],
)
def test_wrong_results_are_refused_by_name(path, act, message):
    with ScoreCache(Counting(act), path) as cache:
        with pytest.raises(ValueError, match=message):
            cache.fill([(4, ()), (4, (0, 1))], progressbar=False, batch_size=2)
        with pytest.raises(ValueError):
            cache.values(4, [(), (0, 1)])
        assert len(cache) == 0
    assert rows(path) == []


# The file


def test_round_trip_with_nan_and_minus_infinity(path):
    with ScoreCache(FakeScorer(), path) as cache:
        cache.fill(all_requests(), progressbar=False)
        cache_values = cache.values(3, [(0, 4), ()])
    scorer = Counting()
    with ScoreCache(scorer, str(path)) as cache:
        assert_right(cache, all_requests())
        np.testing.assert_array_equal(cache.values(3, [(0, 4), ()]), cache_values)
        assert cache.get(3, (0, 4)) == -math.inf
        assert isinstance(cache.lookup(3, (0, 4)), ScoreRecord)
    assert scorer.calls == []
    assert sorted(os.listdir(path.parent)) == ["run.sqlite"], "closing must leave the one file"


def test_get_is_kept_in_the_file_and_memory_survives_closing(path):
    with ScoreCache(FakeScorer(), path) as cache:
        cache.get(0, (3, 1))
    assert cache.connection is None
    assert cache.get(0, (1, 3)) == true_value(0, (1, 3))
    assert [row[:2] for row in rows(path)] == [("erk", '["akt, total", "pkc\u03b1"]')]


@pytest.mark.more("starts processes")
def test_the_file_reads_well_in_a_shell_while_it_is_written(path):
    shell = shutil.which("sqlite3")
    with ScoreCache(FakeScorer(), path) as cache:
        cache.fill([(4, (0, 1))], progressbar=False)
        cache.fill([(3, (0, 4))], progressbar=False)
        expected = [
            ("pkc\u03b1", '["erk", "raf"]', -math.inf, None, 0.5, "exact"),
            ("raf", '["erk", "akt, total"]', true_value(4, (0, 1)), None, 0.5, "exact"),
        ]
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT * FROM scores").fetchall() == expected
            cache.fill([(0, ())], progressbar=False)
            assert reader.execute("SELECT count(*) FROM scores").fetchone() == (2,)
            reader.execute("COMMIT")
            assert reader.execute("SELECT count(*) FROM scores").fetchone() == (3,)
        if shell:
            command = [shell, str(path), "SELECT count(*) FROM scores"]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "3\n"
        cache.fill(all_requests(), progressbar=False)
    assert len(rows(path)) == 80


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"data": "e" * 8}, "other data"),
        ({"names": (*NAMES[:4], "mek")}, "other data"),
        ({"score": "t" * 8, "label": "Fake(a=2)"}, "another score"),
        ({"data": "e" * 8, "score": "t" * 8, "label": "Fake(a=2)"}, "other data and another score"),
    ],
)
def test_a_file_of_other_data_or_score_is_refused(path, change, what):
    with ScoreCache(FakeScorer(), path) as cache:
        cache.fill(all_requests(), progressbar=False)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"was made from {what}: it holds Fake\\(a=1\\)") as caught:
        ScoreCache(FakeScorer(**change), path)
    assert change.get("label", "Fake(a=1)") in str(caught.value).split("received")[1]
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    with ScoreCache(FakeScorer(), path) as cache:
        assert_right(cache, all_requests())


def test_a_damaged_file_is_named(path):
    with ScoreCache(FakeScorer(), path) as cache:
        cache.fill(all_requests(), progressbar=False)
    content = bytearray(path.read_bytes())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="run.sqlite' is damaged"):
        ScoreCache(FakeScorer(), path)
    assert not os.path.exists(f"{path}.lock")


def test_a_run_killed_while_its_log_was_moved_into_the_file_is_recognised(path):
    """Then the file is shorter than its header says, until its log is played back."""
    with ScoreCache(FakeScorer(), path) as cache:
        cache.fill(all_requests(), progressbar=False)
        crashed = path.parent / "crashed.sqlite"
        shutil.copy(f"{path}-wal", f"{crashed}-wal")
        cache.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        crashed.write_bytes(path.read_bytes()[:4096])
    with ScoreCache(FakeScorer(), crashed) as cache:
        assert_right(cache, all_requests())
