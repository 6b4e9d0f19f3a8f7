"""Spread batches of parent sets over an Executor's workers, each of which is sent the scorer once.

A task names its scorer by a key, and workers remember the last scorers they met. One that doesn't know the key says so,
and its batch is sent again, with the scorer. No worker is ever addressed: threads, processes, dask and MPI are alike,
and a worker that joins late, or takes the place of a dead one, is served like the first.
"""

import hashlib
import json
import os
import sys
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.interrupts import noting_interrupts
from gpn_bayes.scores.base import ScoreBatch, Scorer

ParentSet = tuple[int, ...]

# Few tasks are sent at first, since most would come back from workers without the scorer: enough for the threads of
# this machine, two more for every worker that is met without it, and one more for every batch that is done.
MAX_IN_FLIGHT = 256
_FIRST_IN_FLIGHT = max(8, 2 * (os.cpu_count() or 1))
# The scorers a worker remembers: a run's two, and those of another run.
_REMEMBERED = 4
# dask gives a batch up when several workers have died with it, even one that only waited there.
_GIVEN_UP = 3

_to_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would build an encoder every time


class WorkersLost(ConnectionError):
    """The workers that compute scores are gone for good."""


def check_executor(executor: Any) -> None:
    """Refuse what can't compute scores elsewhere; None stands for threads of this process.

    Examples
    --------
    >>> check_executor(4)
    Traceback (most recent call last):
    ValueError: executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor(4), or None; received 4
    """
    if executor is not None and not isinstance(executor, Executor):
        hint = ": use its get_executor()" if hasattr(executor, "get_executor") else ""
        raise ValueError(
            "executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor(4), or None; "
            f"received {executor!r}{hint}"
        )


class Batch(NamedTuple):
    """Parent sets of one node, to be scored together."""

    node: int
    sets: tuple[ParentSet, ...]


class _Answer(NamedTuple):
    """What a worker, known by its own name, says to a task: scores, or None where it lacks the scorer."""

    worker: str
    scores: ScoreBatch | None


@dataclass(frozen=True)
class _Task:
    """A batch on its way to a worker; with the scorer, or only its key."""

    key: str
    batch: Batch
    scorer: Scorer | None
    ticket: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __dask_tokenize__(self) -> str:
        """Tell dask that no two tasks are the same, not even a batch that is sent again."""
        return self.ticket


class _Memory:
    """The scorers that a worker process has met, the last few of them."""

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget everything, under a new name."""
        self.worker = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._scorers: dict[str, Scorer] = {}

    def find(self, key: str, sent: Scorer | None) -> Scorer | None:
        """Return the scorer of a key, and remember the one that was sent where none is known."""
        with self._lock:
            scorer = self._scorers.pop(key, sent)
            if scorer is not None:
                self._scorers[key] = scorer  # the last used is the last to go
            while len(self._scorers) > _REMEMBERED:
                del self._scorers[next(iter(self._scorers))]
        return scorer

    def answer(self, task: _Task) -> _Answer:
        """Score a task's batch, if its scorer is known or came with it."""
        scorer = self.find(task.key, task.scorer)
        return _Answer(self.worker, None if scorer is None else score_batch(scorer, *task.batch))

    @contextmanager
    def holding(self, key: str, scorer: Scorer) -> Iterator[None]:
        """Hold a scorer inside the block, for tasks that run in threads of this process."""
        with self._lock:
            self._scorers.pop(key, None)
        self.find(key, scorer)
        try:
            yield
        finally:
            with self._lock:
                self._scorers.pop(key, None)


_memory = _Memory()
if hasattr(os, "register_at_fork"):
    # What a forked process inherits may be locked by a thread that it doesn't have.
    os.register_at_fork(after_in_child=_memory.start_afresh)


def parents_text(names: Sequence[str], parents: ParentSet) -> str:
    """Return a parent set by name, as JSON."""
    return _to_json([names[parent] for parent in parents])


def describe(names: Sequence[str], batch: Batch) -> str:
    """Return a batch in words, for messages."""
    shown = " or ".join(parents_text(names, parents) for parents in batch.sets[:3])
    more = f" or {len(batch.sets) - 3} more" if len(batch.sets) > 3 else ""
    return f"{names[batch.node]!r} given {shown}{more}"


def score_batch(scorer: Scorer, node: int, sets: Sequence[ParentSet]) -> ScoreBatch:
    """Score parent sets of one node, with one thread for linear algebra; refuse what isn't a batch of their scores."""
    with one_blas_thread:
        found: Any = scorer.score_sets(node, list(sets))
    return ScoreBatch.checked(found, len(sets))


def spread(
    scorer: Scorer,
    batches: Iterator[Batch],
    executor: Executor,
    keep: Callable[[Batch, ScoreBatch], None],
    advance: Callable[[Batch], None],
) -> None:
    """Have batches scored by an executor's workers.

    Parameters
    ----------
    scorer : Scorer
        What scores them; it can be pickled unless all workers are threads.
    batches : iterator of Batch
        Taken as workers come free.
    executor : concurrent.futures.Executor
        Where to compute; it is not shut down.
    keep : callable
        Called here, with every batch and its scores, in the order they are finished. Also with those that are finished
        when anything fails.
    advance : callable
        Called with every batch that was kept.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    WorkersLost
        If a pool of processes is broken, the connection to a scheduler is lost, or workers die of a batch again and
        again.
    """
    key = _key(scorer)
    work = _Spread(scorer, key, executor, keep)
    with _memory.holding(key, scorer):
        try:
            with noting_interrupts(work.interrupt):
                work.through(batches, advance)
            if work.interrupted:  # also in the very last moment
                raise KeyboardInterrupt
        except BaseException as error:
            work.abandon()
            if isinstance(error, BrokenExecutor):
                raise WorkersLost("a worker process died, and its pool with it") from error
            if isinstance(error, CancelledError):
                raise WorkersLost("the workers were shut down, or the connection to them was lost") from error
            raise


class _Spread:
    """The batches that are under way."""

    def __init__(self, scorer: Scorer, key: str, executor: Executor, keep: Callable[[Batch, ScoreBatch], None]) -> None:
        self._scorer = scorer
        self._key = key
        self._executor = executor
        self._keep = keep
        self.interrupted = False
        self._room = _FIRST_IN_FLIGHT
        self._in_flight: dict[Future[_Answer], Batch] = {}
        self._finished: SimpleQueue[Future[_Answer] | None] = SimpleQueue()  # None: interrupted
        self._given_back: Counter[str] = Counter()
        self._given_up: Counter[Batch] = Counter()

    def through(self, batches: Iterator[Batch], advance: Callable[[Batch], None]) -> None:
        """Send batches, and collect their scores, to the end or until interrupted."""
        attach = True
        while True:
            for batch in islice(batches, max(0, min(self._room, MAX_IN_FLIGHT) - len(self._in_flight))):
                self._send(batch, attach)
                attach = False
            if not self._in_flight:
                return
            future = self._finished.get()
            if future is None:
                return
            batch = self._in_flight[future]
            kept = self._collect(future, batch)
            del self._in_flight[future]  # only now: an interrupt up to here still finds it among the unkept
            if kept:
                self._room += 1
                advance(batch)

    def interrupt(self) -> None:
        """Have `through` return once it has kept what is finished by now."""
        self.interrupted = True
        self._finished.put(None)

    def abandon(self) -> None:
        """Cancel what waits and keep what is finished."""
        for future in self._in_flight:
            future.cancel()
        for future, batch in self._in_flight.items():
            if future.done():
                with suppress(BaseException):  # the first failure is the one to report
                    scores = future.result().scores
                    if scores is not None:
                        self._keep(batch, scores)

    def _send(self, batch: Batch, attach: bool) -> None:
        task = _Task(self._key, batch, self._scorer if attach else None)
        with warnings.catch_warnings() if attach else nullcontext():
            if attach:  # dask warns of a large task, in case all are
                warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            future = self._executor.submit(_carry_out, task)
        self._in_flight[future] = batch
        future.add_done_callback(self._finished.put)

    def _collect(self, future: "Future[_Answer]", batch: Batch) -> bool:
        """Keep a batch's scores, or send it again; tell whether they were kept."""
        try:
            worker, scores = future.result()
            if scores is not None:
                self._given_back.pop(worker, None)
                self._keep(batch, scores)
                return True
        except Exception as error:
            if not _killed_workers(error):
                _tell_if_missing(error)
                error.add_note(f"while scoring {describe(self._scorer.names, batch)}")
                raise
            self._given_up[batch] += 1
            if self._given_up[batch] == _GIVEN_UP:
                what = describe(self._scorer.names, batch)
                raise WorkersLost(f"workers died repeatedly while scoring {what}") from error
            self._send(batch, attach=False)
            return False
        if worker not in self._given_back:
            self._room += 2
        self._given_back[worker] += 1
        # Tasks can't be addressed: another worker may take this one. So the scorer goes out again, ever more rarely.
        self._send(batch, attach=self._given_back[worker].bit_count() == 1)
        return False


def _carry_out(task: _Task) -> _Answer:
    """Answer a task in a worker; at module level so that other processes can find it."""
    return _memory.answer(task)


def _key(scorer: Scorer) -> str:
    """Return a name that is equal for scorers that are."""
    parts = [scorer.data_fingerprint, scorer.score_fingerprint, *scorer.names]
    if type(scorer).__module__ == "__main__":
        parts.append(uuid.uuid4().hex)  # written at the prompt, the next of that name may score otherwise
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _tell_if_missing(error: BaseException) -> None:
    """Explain an error that comes of a worker, or a scheduler, without this package, or with an older one."""
    for cause in (error, error.__cause__):
        if isinstance(cause, ImportError) and "gpn_bayes" in str(cause):
            raise ValueError(
                f"workers and their scheduler must have the same version of gpn_bayes; one said {cause}"
            ) from error


def _killed_workers(error: Exception) -> bool:
    """Tell whether dask gave a task up because workers died with it."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(error, distributed.KilledWorker)
