"""Measure what the papers measured, and keep a row of figures for each unit of work.

A unit is an experiment, a setting and a seed. Units run one after the other in a process of their own, on one thread.
Its row is appended to the CSV as soon as a unit ends; units that the file has aren't run again, so that a run can be
stopped (Ctrl-C) and resumed, or extended::

    python -m tests.benchmarks.reproduced.run
    python -m tests.benchmarks.reproduced.run --experiments gpn-table1 rbnets --minutes 30

``python -m tests.benchmarks.reproduced`` takes the same options, and writes the guide's page afterwards.
"""

import argparse
import csv
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from gpn_bayes._util.blas_threads import one_blas_thread
from tests.benchmarks.reproduced.experiments import EXPERIMENTS, Experiment

RESULTS = Path(__file__).parent / "results" / "reproduced.csv"
UNIT = ("experiment", "setting", "seed")
COLUMNS = (*UNIT, "cpu", "measures")


class Unit(NamedTuple):
    """What is run once."""

    experiment: str
    setting: str
    seed: int


class Failure(Exception):
    """A unit ended without measures."""


def units(experiments: Mapping[str, Experiment], names: Iterable[str]) -> Iterator[Unit]:
    """Yield all units of the experiments named: the first seed of all, then the second, and so on.

    So every table fills evenly, and its settings stay comparable, while some units are still to be run.
    """
    names = list(names)
    for together in zip_longest(*(experiments[name].rounds() for name in names), fillvalue=()):
        for name, own in zip(names, together, strict=True):
            yield from (Unit(name, setting, seed) for setting, seed in own)


def packed(measures: Mapping[str, Any]) -> str:
    """Return measures as text."""
    return ";".join(f"{name}={float(value):.7g}" for name, value in measures.items())


def unpacked(text: str) -> dict[str, float]:
    """Return measures from text."""
    return {name: float(value) for name, _, value in (part.rpartition("=") for part in text.split(";"))}


def read(path: Path) -> dict[Unit, dict[str, str]]:
    """Return the rows of a file by unit; the last one where a unit has several."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {Unit(row["experiment"], row["setting"], int(row["seed"])): row for row in rows}


def append(path: Path, unit: Unit, cpu: float, measures: Mapping[str, Any]) -> None:
    """Append a row, whole; the header first where there is no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([*unit, f"{cpu:.4g}", packed(measures)])


def _cpu_seconds() -> float:
    """Return those of this process and of the ones that it has waited for."""
    return sum(os.times()[:4])


def _work(experiments: Mapping[str, Experiment], connection: Connection, folder: Path) -> None:
    """Answer units with their CPU seconds and measures, or with what went wrong, until there are no more."""
    # A session of its own: Ctrl-C reaches the runner alone, which ends this process. Learners that are interrupted
    # would return what they have so far, as if it were the answer.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    prepared = set()
    with one_blas_thread:
        while (unit := connection.recv()) is not None:
            experiment = experiments[unit.experiment]
            try:
                if experiment.prepare is not None and experiment.prepare not in prepared:
                    experiment.prepare()
                    prepared.add(experiment.prepare)
                began = _cpu_seconds()
                measures = experiment.measure(experiment.settings[unit.setting], unit.seed, folder)
                connection.send((_cpu_seconds() - began, {name: float(value) for name, value in measures.items()}))
            except Exception:
                connection.send(traceback.format_exc())


class Worker:
    """A process that measures; use in a `with` statement, which ends it."""

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self.experiments = experiments
        self.folder = tempfile.TemporaryDirectory()
        self._process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> "Worker":
        """Return the worker, which starts when it is asked."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and all that it has started."""
        self._end()
        self.folder.cleanup()

    def measure(self, unit: Unit) -> tuple[float, dict[str, float]]:
        """Return the CPU seconds and the measures of a unit."""
        if self._process is None:
            self._start()
        self._connection.send(unit)
        try:
            reply = self._connection.recv()
        except (EOFError, ConnectionError):
            self._end()
            raise Failure("the process ended") from None
        if isinstance(reply, str):
            raise Failure(reply)
        return reply

    def _start(self) -> None:
        # Forked, so that what is imported here, which takes seconds, needn't be imported again.
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(self.experiments, theirs, Path(self.folder.name)))
        self._process.start()
        theirs.close()

    def _end(self) -> None:
        if self._process is None:
            return
        assert self._process.pid is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            # It has ended, or has no session of its own yet.
            self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = None


def run(experiments: Mapping[str, Experiment], names: Iterable[str], path: Path, minutes: float) -> tuple[int, int]:
    """Run the units missing from the file, starting none once the minutes are up; return how many ran and failed."""
    todo = list(units(experiments, names))
    known = read(path)
    count = failed = 0
    last = time.monotonic() + 60 * minutes
    with Worker(experiments) as worker:
        for place, unit in enumerate(todo, 1):
            if unit in known:
                continue
            if time.monotonic() >= last:
                break
            label = f"[{place}/{len(todo)}] {unit.experiment}: {unit.setting}, {unit.seed}"
            print(label, end=": ", file=sys.stderr, flush=True)
            try:
                cpu, measures = worker.measure(unit)
            except Failure as trouble:
                failed += 1
                print(f"failed\n{trouble}", file=sys.stderr, flush=True)
                continue
            append(path, unit, cpu, measures)
            count += 1
            print(f"{cpu:.1f} s", file=sys.stderr, flush=True)
    return count, failed


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None, experiments: Mapping[str, Experiment] = EXPERIMENTS) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Measure what the papers measured.")
    parser.add_argument("--experiments", nargs="+", choices=experiments, default=list(experiments))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no unit after this time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    # Whoever ends the runner ends its worker with it.
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        count, failed = run(experiments, given.experiments, given.results, given.minutes)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    print(f"{count} units run, {failed} failed; {given.results}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
