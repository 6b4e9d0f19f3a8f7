"""The score cache among processes: one writer, pools, Ctrl-C and kills.

Run as a script it is the other process of the tests below.
"""

import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from itertools import chain, combinations
from multiprocessing import get_context

import numpy as np
import pytest

from gpn_bayes.scores.base import ScoreBatch
from gpn_bayes.scores.cache import ScoreCache

pytestmark = pytest.mark.more("starts processes and kills them")

NAMES = tuple(f"x{i}" for i in range(9))
REQUESTS = [
    (node, parents)
    for node in range(9)
    for parents in chain.from_iterable(combinations([i for i in range(9) if i != node], k) for k in range(9))
]  # 9 * 2**8 = 2304
FEW = REQUESTS[:40]


def true_value(node, parents):
    return -math.inf if parents == (2, 3) else -100.0 / (node + 1) - sum((p + 1) ** 2 / 7 for p in parents)


class FakeScorer:
    """Scores by formula and writes to its log what it computed, and which process did."""

    names = NAMES
    data_fingerprint = "d" * 8
    score_fingerprint = "s" * 8
    label = "Fake()"

    def __init__(self, log=None, pause=0.002):
        self.log = log
        self.pause = pause

    def cost(self, size):
        return 1.0

    def score_sets(self, node, parent_sets):
        if self.log is not None:
            time.sleep(self.pause)
            with open(self.log, "a") as file:
                file.write("".join(json.dumps([os.getpid(), node, s]) + "\n" for s in parent_sets))
        n = len(parent_sets)
        values = np.array([true_value(node, s) for s in parent_sets])
        return ScoreBatch(values, np.zeros(n), np.full(n, np.nan), ["exact"] * n)


def start(mode, path, log="", **options):
    """Start this file as a script, in a process group of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, __file__, mode, str(path), str(log)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True, **options
    )


def stored(path):
    """Check the file as another program would and return the requests it holds."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        keys = connection.execute("SELECT node, parents FROM scores").fetchall()
    return {(NAMES.index(node), tuple(map(NAMES.index, json.loads(parents)))) for node, parents in keys}


def logged(log):
    """Return the working processes' numbers and the requests they computed."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return {pid for pid, _, _ in lines}, [(node, tuple(parents)) for _, node, parents in lines]


def assert_right(cache, requests):
    assert {key: record.value for key, record in cache.items()} == {key: true_value(*key) for key in requests}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def test_one_writer_at_a_time(path):
    with ScoreCache(FakeScorer(), path):
        with pytest.raises(ValueError, match="serves one run at a time; .* is in use by another run"):
            ScoreCache(FakeScorer(), path)
        link = path.parent / "link.sqlite"
        link.symlink_to(path)
        with pytest.raises(ValueError, match="is in use by another run"):
            ScoreCache(FakeScorer(), link)
        refused = start("hold", path, stderr=subprocess.PIPE)
        _, message = refused.communicate(timeout=60)
        assert refused.returncode == 1
        assert f"is in use by another run (process {os.getpid()} on " in message
    ScoreCache(FakeScorer(), path).close()


@pytest.mark.parametrize("mode", ["hold", "hold-forked"])
def test_the_lock_vanishes_with_its_killed_holder(path, mode):
    """Also when forked workers outlive it, as those of a process pool do."""
    holder = start(mode, path)
    try:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(ValueError, match=f"in use by another run \\(process {holder.pid} on "):
            ScoreCache(FakeScorer(), path)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(timeout=60)
        with ScoreCache(FakeScorer(), path) as cache:
            assert cache.lookup(0, ()).value == true_value(0, ())
            assert stored(path) == {(0, ())}
    finally:
        if mode == "hold-forked":
            os.killpg(holder.pid, signal.SIGKILL)
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_processes_and_threads_agree(path, log):
    """The pool of processes is in a script because its workers must be able to import the scorer."""
    process = start("processes", path, log)
    process.communicate(timeout=120)
    assert process.returncode == 0
    workers, computed = logged(log)
    assert workers and process.pid not in workers
    assert sorted(computed) == sorted(FEW)
    with ScoreCache(FakeScorer(), path) as there, ThreadPoolExecutor(3) as pool:
        here = ScoreCache(FakeScorer())
        here.fill(FEW, executor=pool, progressbar=False)
        assert_right(here, FEW)
        assert_right(there, FEW)


def test_killed_runs_resume_without_loss_or_corruption(path, tmp_path):
    moments = random.Random(20240607)
    known, kills_at_work = set(), 0
    for attempt in range(5):
        run = start("fill", path, tmp_path / f"log{attempt}")
        assert run.stdout.readline() == "open\n"
        time.sleep(moments.uniform(0.0, 0.12))
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
        now = stored(path)
        _, computed = logged(tmp_path / f"log{attempt}")
        assert known <= now, "nothing that was written may be lost"
        assert known.isdisjoint(computed), "known scores must not be computed again"
        kills_at_work += len(known) < len(now) < len(REQUESTS)
        known = now
    assert kills_at_work >= 2, "the kills must hit runs at work"
    run = start("fill", path, tmp_path / "last")
    assert run.communicate(timeout=120)[0] == "open\ndone\n"
    assert stored(path) == set(REQUESTS)
    with ScoreCache(FakeScorer(), path) as cache:
        assert_right(cache, REQUESTS)


def test_ctrl_c_ends_a_run_quickly_and_keeps_its_work(path, log):
    run = start("fill-slowly", path, log, stderr=subprocess.DEVNULL)
    assert run.stdout.readline() == "open\n"
    # At work, and seconds from done, however busy the machine is.
    while not log.exists() or log.read_text().count("\n") < 100:
        time.sleep(0.002)
    os.kill(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0 and output == ""
    assert not os.path.exists(f"{path}.lock") and not os.path.exists(f"{path}-wal")
    kept, computed = stored(path), set(logged(log)[1])
    assert 0 < len(kept) < len(REQUESTS)
    assert kept <= computed and len(computed - kept) <= 4 * 6


def main(mode, path, log):
    with ScoreCache(FakeScorer(log or None, pause=0.05 if mode == "fill-slowly" else 0.002), path) as cache:
        if mode == "processes":
            with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                cache.fill(FEW, executor=pool, progressbar=False, batch_size=2)
        elif mode in ("fill", "fill-slowly"):
            print("open", flush=True)
            with ThreadPoolExecutor(2) as pool:  # two, so that the run lasts on any machine
                cache.fill(REQUESTS, executor=pool, progressbar=False, batch_size=4)
            print("done", flush=True)
        else:
            cache.get(0, ())
            if mode == "hold-forked" and os.fork() == 0:
                time.sleep(120)
            print("open", flush=True)
            time.sleep(120)


if __name__ == "__main__":
    main(*sys.argv[1:])
