"""How batches are spread: workers that don't know the scorer, that forget it, that die of a batch; and what is left."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import combinations
from queue import SimpleQueue
from weakref import WeakValueDictionary

import distributed
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from gpn_bayes.scores import GP, BGe
from gpn_bayes.scores import cache as cache_module
from gpn_bayes.scores import workers as spreading
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.gp import score as gp_module
from gpn_bayes.scores.workers import Batch, WorkersLost, spread

TABLE = np.random.default_rng(1).normal(size=(40, 4))
BATCHES = [Batch(0, ((p,),)) for p in (1, 2, 3)] * 60


class Pool(Executor):
    """Threads that are other processes as far as tasks can tell: each with its own memory, and all is pickled.

    Parameters
    ----------
    workers : int
        How many; each takes the next task when it is done with one, and a score takes a millisecond.
    forgetful : bool
        Whether the first worker forgets all after its tenth score.
    """

    def __init__(self, workers, forgetful=False):
        self.forgetful = forgetful
        self.tasks = SimpleQueue()
        self.arrivals, self.scores = [0] * workers, [0] * workers
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(workers)]
        for thread in self.threads:
            thread.start()

    def submit(self, function, task):
        assert function is spreading._carry_out
        future = Future()
        self.tasks.put((pickle.dumps(task), future))
        return future

    def work(self, i):
        memory = spreading._Memory()
        while (item := self.tasks.get()) is not None:
            task = pickle.loads(item[0])
            answer = memory.answer(task)
            self.arrivals[i] += task.scorer is not None
            if answer.scores is not None:
                time.sleep(0.001)
                self.scores[i] += 1
                if self.forgetful and i == 0 and self.scores[0] == 10:
                    memory.start_afresh()
            item[1].set_result(pickle.loads(pickle.dumps(answer)))

    def shutdown(self, wait=True, *, cancel_futures=False):
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads:
            thread.join()


def spread_through(executor, batches=BATCHES, scorer=None):
    kept, done = [], []
    spread(
        scorer or BGe().bind(TABLE),
        iter(batches),
        executor,
        lambda b, s: kept.append((b, s.values.tolist())),
        done.append,
    )
    assert [batch for batch, _ in kept] == done
    return sorted(kept)


@pytest.fixture
def expected():
    scorer = BGe().bind(TABLE)
    return sorted((batch, scorer.score_sets(batch.node, batch.sets).values.tolist()) for batch in BATCHES)


def test_every_worker_is_sent_the_scorer_and_remembers_it(expected):
    with Pool(3) as pool:
        assert spread_through(pool) == expected
        assert all(pool.arrivals) and sum(pool.arrivals) <= 9, "most of 180 tasks go without it"
        assert min(pool.scores) > 20
        before = sum(pool.arrivals)
        assert spread_through(pool) == expected
        assert sum(pool.arrivals) == before + 1, "only the first task carries it where all have it"


def test_a_worker_that_forgets_is_served_again(expected):
    with Pool(2, forgetful=True) as pool:
        assert spread_through(pool) == expected
        assert pool.arrivals[0] >= 2 and pool.scores[0] > 20
        assert sum(pool.arrivals) <= 15


def test_threads_use_the_object_itself():
    class Unpicklable(type(BGe().bind(TABLE))):
        def __reduce__(self):
            raise AssertionError("nothing must be pickled")

    scorer = BGe().bind(TABLE)
    scorer.__class__ = Unpicklable
    with ThreadPoolExecutor(3) as pool:
        assert len(spread_through(pool, scorer=scorer)) == len(BATCHES)
    assert not spreading._memory._scorers, "a finished run must not be held on to"


def test_a_memory_is_bounded_and_forgets_the_longest_unused():
    memory = spreading._Memory()
    scorers = [BGe(alpha_mu=1.0 + i).bind(TABLE) for i in range(6)]
    for i, scorer in enumerate(scorers):
        assert memory.find(str(i), None) is None
        assert memory.find(str(i), scorer) is scorer
        assert memory.find("0", scorers[0]) is scorers[0]
    assert [i for i in range(6) if memory.find(str(i), None)] == [0, 3, 4, 5]


def test_a_forked_process_starts_afresh():
    read, write = os.pipe()
    with spreading._memory.holding("key", BGe().bind(TABLE)), spreading._memory._lock:
        child = os.fork()
        if child == 0:
            known = spreading._memory.find("key", None)  # would wait for ever on the lock of its parent
            os.write(write, f"{known} {spreading._memory.worker}".encode())
            os._exit(0)
    os.waitpid(child, 0)
    known, worker = os.read(read, 100).decode().split()
    os.close(read), os.close(write)
    assert known == "None" and worker != spreading._memory.worker


def test_scores_written_at_the_prompt_are_never_mixed_up():
    class AtThePrompt(type(BGe().bind(TABLE))):
        pass

    scorer = BGe().bind(TABLE)
    assert spreading._key(scorer) == spreading._key(BGe().bind(TABLE)) != spreading._key(BGe(2.0).bind(TABLE))
    scorer.__class__ = AtThePrompt
    AtThePrompt.__module__ = "__main__"
    assert spreading._key(scorer) != spreading._key(scorer)


class Failing(Executor):
    """Computes here, but fails as `plan` says, one entry a task."""

    def __init__(self, *plan):
        self.plan = list(plan)

    def submit(self, function, task):
        future = Future()
        error = self.plan.pop(0) if self.plan else None
        if error is None:
            future.set_result(function(task))
        else:
            future.set_exception(error)
        return future


def killed():
    return distributed.KilledWorker("task", None, 3)


def test_a_batch_that_dask_gave_up_is_sent_again(expected):
    assert spread_through(Failing(None, killed(), killed(), None, killed())) == expected


def test_a_batch_that_kills_workers_again_and_again_is_named():
    scorer = BGe().bind(TABLE)
    cache = ScoreCache(scorer)
    with pytest.raises(WorkersLost, match=r"^workers died repeatedly while scoring 'v1' given \[\"v2\"\]; start"):
        cache.fill([(0, (1,))], Failing(killed(), killed(), killed()), progressbar=False)


def test_a_lost_connection_keeps_what_is_done(tmp_path):
    with ScoreCache(BGe().bind(TABLE), tmp_path / "run.sqlite") as cache:
        with pytest.raises(
            WorkersLost, match="connection to them was lost; the finished scores are kept in '.*run.sql"
        ):
            cache.fill([(0, (p,)) for p in (1, 2, 3)], Failing(None, CancelledError(), None), progressbar=False)
        assert len(cache) == 2


def test_workers_without_the_package_are_told():
    there = RuntimeError("Error during deserialization of the task graph")
    there.__cause__ = ModuleNotFoundError("No module named 'gpn_bayes.scores'")
    for error in (there, there.__cause__):
        with pytest.raises(
            ValueError, match="must have the same version of gpn_bayes; one said No module named 'gpn_bayes.scores'"
        ):
            spread_through(Failing(error))
    with pytest.raises(ModuleNotFoundError, match="pymc"):
        spread_through(Failing(ModuleNotFoundError("No module named 'pymc'")))


def test_linear_algebra_takes_one_thread_in_workers():
    seen = []

    class Watching(type(BGe().bind(TABLE))):
        def score_sets(self, node, parent_sets):
            seen.append([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
            return super().score_sets(node, parent_sets)

    scorer = BGe().bind(TABLE)
    scorer.__class__ = Watching
    spread_through(Failing(), BATCHES[:2], scorer)
    assert seen and all(threads and set(threads) == {1} for threads in seen)


# What travels


@pytest.fixture
def elsewhere(monkeypatch):
    """Return a function that makes this process forget what it has prepared, as if it were another one."""
    return lambda: monkeypatch.setattr(gp_module, "_prepared", WeakValueDictionary())


def test_a_prepared_scorer_travels_as_its_table(elsewhere):
    scorer = GP(estimator="laplace").bind(TABLE)
    fresh = len(pickle.dumps(scorer))
    before = scorer.score_sets(0, [(1, 2)])
    sent = pickle.dumps(scorer)
    assert len(sent) == fresh < TABLE.nbytes + 400_000
    elsewhere()
    received = pickle.loads(sent)
    assert received.basis is not scorer.basis and not received.basis._variables
    assert received.score_sets(0, [(1, 2)]).values == before.values


def test_the_scorers_of_a_run_share_what_they_prepare(elsewhere):
    accurate = GP().bind(TABLE)
    rough = accurate.proposal()
    assert rough.basis is accurate.basis and rough._rough is accurate._rough
    elsewhere()
    there = [pickle.loads(pickle.dumps(scorer)) for scorer in (rough, accurate)]
    assert there[0].basis is there[1].basis is not accurate.basis
    assert there[0]._rough is there[1]._rough and there[0]._rough._rows is there[0].basis._rows
    other = pickle.loads(pickle.dumps(GP(mu=(0.5, 1.0)).bind(TABLE)))
    assert other.basis is not there[0].basis


# Ctrl-C


class Finalised:
    """Presses Ctrl-C when it is thrown away."""

    def __del__(self):
        """Press it where Python swallows all exceptions."""
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("pressed_at", [3, 8], ids=["in between", "at the last batch"])
def test_no_ctrl_c_is_swallowed(pressed_at, monkeypatch):
    cache, seen = ScoreCache(BGe().bind(TABLE)), []
    keep = cache._keep

    def keep_and_press(batch, scores):
        keep(batch, scores)
        seen.append(batch)
        if len(seen) == pressed_at:
            Finalised()

    monkeypatch.setattr(cache, "_keep", keep_and_press)
    requests = [(node, parents) for node in (0, 3) for k in range(3) for parents in combinations((1, 2), k)]
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        cache.fill(requests, pool, progressbar=False, batch_size=1)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(cache) == len(seen) >= pressed_at
    cache.fill(requests, progressbar=False)
    assert len(cache) == len(requests) == 8


# Progress


def test_progress_counts_what_scores_cost(monkeypatch):
    """A bar that counts scores would say half when a tenth of the time is over."""
    bars = []

    @contextmanager
    def bar(description, total, show):
        steps = []
        bars.append((total, steps))
        yield steps.append

    monkeypatch.setattr(cache_module, "progress_bar", bar)
    scorer = GP(estimator="laplace").bind(TABLE)
    with ThreadPoolExecutor(1) as pool:
        ScoreCache(scorer).fill([(0, (1,)), (0, (1, 2)), (0, (1, 2, 3)), (1, (0, 3))], pool, batch_size=2)
    ((total, steps),) = bars
    assert total == sum(steps) == 1 + 4 + 9 + 4
    assert steps == [1 + 4, 9, 4]
    assert BGe().bind(TABLE).cost(0) == BGe().bind(TABLE).cost(3)


def test_threads_of_a_process_share_its_memory():
    """Many threads that ask at once get one scorer, whichever came first."""
    memory, found = spreading._Memory(), []
    start = threading.Barrier(8)

    def ask():
        scorer = BGe().bind(TABLE)
        start.wait()
        found.append(memory.find("key", scorer))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
