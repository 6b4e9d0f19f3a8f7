"""Runs with a cache: what the file holds, Ctrl-C, and going on to the same result."""

import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.sampling.checkpoint import CheckpointStore
from tests.draws import LINEAR, NULL, assert_same_draws, quick, table

SAMPLERS = ("exact", "partition", "order")


def rows(path, text):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(text).fetchall()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_cache_holds_the_scores_and_changes_nothing(sampler, tmp_path):
    path = tmp_path / "run.sqlite"
    data = table(LINEAR)
    plain, cached = quick(data, sampler=sampler), quick(data, sampler=sampler, cache=path)
    np.testing.assert_array_equal(plain.parents, cached.parents)
    np.testing.assert_allclose(plain.log_score, cached.log_score, rtol=1e-12)
    stored = rows(path, "SELECT node, parents, value FROM scores")
    assert len(stored) == 5 * 16
    scorer = gpn.scores.BGe().bind(data)
    for node, parents, value in stored:
        assert value == pytest.approx(scorer.local(node, json.loads(parents)), abs=1e-9)
    # The run is over: what it needed to go on is gone, and the scores serve the next.
    assert rows(path, "SELECT count(*) FROM checkpoints") == rows(path, "SELECT count(*) FROM blocks") == [(0,)]
    assert_same_draws(quick(data, sampler=sampler, cache=path), cached)


def test_cache_of_other_data_is_refused(tmp_path):
    quick(table(NULL), cache=tmp_path / "run.sqlite")
    with pytest.raises(ValueError, match="^[^\n]+$"):
        quick(table(LINEAR), cache=tmp_path / "run.sqlite")


def interrupt_at(monkeypatch, block, times=1, chains=1):
    """Send Ctrl-C when a given number of blocks has been stored, and draws of a given number of chains among them.

    Blocks stay as small as the first.
    """
    monkeypatch.setattr("gpn_bayes.sampling.chains._BLOCK_GROWTH", 1)
    save, seen, drawn, sent = CheckpointStore.save_block, [], set(), []

    def save_block(self, key, chain, number, draws, *others):
        save(self, key, chain, number, draws, *others)
        seen.append(number)
        if draws:
            drawn.add(chain)
        if len(seen) >= block and len(drawn) >= chains and not sent:
            for _ in range(times):
                sent.append(True)
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(CheckpointStore, "save_block", save_block)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("cores", [1, 2])
def test_interrupted_runs_resume_to_the_same_result(sampler, cores, tmp_path, monkeypatch):
    data = table(LINEAR)
    settings = {
        "sampler": sampler,
        "tune": 10,
        "draws": 300,
        "cores": cores,
        "cache": tmp_path / "run.sqlite",
    }
    whole = quick(data, **settings | {"cache": tmp_path / "whole.sqlite"})
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 7, chains=whole.log_score.shape[0])
        with pytest.warns(UserWarning, match=r"^interrupted: \d+ of 300 draws of each chain were made$"):
            part = quick(data, **settings)
    assert signal.getsignal(signal.SIGINT) is before
    kept = part.log_score.shape[1]
    assert 0 < kept < 300
    np.testing.assert_array_equal(part.parents, whole.parents[:, :kept])
    assert rows(settings["cache"], "SELECT count(*) FROM blocks")[0][0] >= 7
    assert_same_draws(quick(data, **settings), whole)
    assert rows(settings["cache"], "SELECT count(*) FROM blocks") == [(0,)]


def test_interrupts_before_the_first_draw_and_twice(tmp_path, monkeypatch):
    data, path = table(LINEAR), tmp_path / "run.sqlite"
    settings = {"sampler": "partition", "tune": 100, "cores": 1}
    whole = quick(data, **settings)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 1, chains=0)
        with pytest.raises(KeyboardInterrupt, match="before the first draw"):
            quick(data, cache=path, **settings)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2, times=2, chains=0)
        with pytest.raises(KeyboardInterrupt):
            quick(data, cache=path, **settings)
    resumed = quick(data, cache=path, **settings)
    np.testing.assert_array_equal(resumed.parents, whole.parents)


def test_a_run_with_another_seed_does_not_resume(tmp_path, monkeypatch):
    data, path = table(LINEAR), tmp_path / "run.sqlite"
    other = quick(data, sampler="partition", tune=0, random_seed=8)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3, chains=other.log_score.shape[0])
        with pytest.warns(UserWarning, match="^interrupted"):
            quick(data, sampler="partition", tune=0, cache=path)
    np.testing.assert_array_equal(
        quick(data, sampler="partition", tune=0, random_seed=8, cache=path).parents, other.parents
    )


def test_ctrl_c_from_outside_ends_a_run_within_a_moment():
    data, before = table(LINEAR), signal.getsignal(signal.SIGINT)

    def press():
        # Only once the run listens: else this would end the tests.
        while signal.getsignal(signal.SIGINT) is before and not over.is_set():
            time.sleep(0.01)
        if not over.wait(2):
            os.kill(os.getpid(), signal.SIGINT)

    over = threading.Event()
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.warns(UserWarning, match=r"^interrupted: \d+ of 10000000 draws of each chain were made$"):
            post = quick(data, sampler="partition", tune=0, draws=10**7)
    finally:
        over.set()
        presser.join()
    assert post.log_score.shape[1] > 0
    assert graphs.is_acyclic(post.adjacency).all()
    assert signal.getsignal(signal.SIGINT) is before
