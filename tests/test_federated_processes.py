"""A real run: a coordinator and three clients, each a process, over loopback with mutual TLS; killed and restarted."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpn_bayes import simulate
from gpn_bayes.federated import FederatedNOTEARS
from tests.federation import TIME_LIMIT, Parties, in_memory, tables

pytestmark = pytest.mark.more("starts processes")

ROOT = Path(__file__).resolve().parents[1]
D = 20
ROUNDS = 30
PAUSE = 0.03
OVERHEAD = 0.05


class Run:
    """The processes of a run."""

    def __init__(self, folder: Path, program: str, settings: str, parts: Sequence[pd.DataFrame]) -> None:
        self.parts = dict(zip("abcd", parts, strict=False))
        self.program = program
        self.parties = Parties(folder, tuple(self.parts), list(self.parts["a"].columns), program, settings)
        self.store = self.parties.coordinator_file.parent / "results" / "run.sqlite"
        self.processes: dict[str, subprocess.Popen] = {}
        for name, part in self.parts.items():
            part.to_csv(self.parties.homes[name] / "rows.csv", index=False)

    def start(self, name: str) -> None:
        if name == "coordinator":
            arguments = ["coordinator", "--config", self.parties.coordinator_file]
        else:
            home = self.parties.homes[name]
            arguments = ["client", "--config", home / "client.toml", "--data", home / "rows.csv"]
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "tests.federation_worker", "federate", *map(str, arguments), "--quiet"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def kill(self, name: str) -> None:
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=TIME_LIMIT)
        assert process.returncode == -signal.SIGKILL, f"{name} had already ended"

    def done(self) -> int:
        """Return how many rounds are done."""
        if not self.store.exists():
            return 0
        try:
            with closing(sqlite3.connect(f"{self.store.as_uri()}?mode=ro", uri=True)) as connection:
                return connection.execute("SELECT count(*) FROM rounds").fetchone()[0]
        except sqlite3.OperationalError:  # the table isn't there yet, or the file is being set up
            return 0

    def wait_for(self, rounds: int) -> None:
        limit = time.monotonic() + TIME_LIMIT
        while self.done() < rounds:
            for name, process in self.processes.items():
                assert process.poll() is None, f"{name} ended: {process.communicate()[1]}"
            assert time.monotonic() < limit, "waited too long"
            time.sleep(0.005)

    def finish(self) -> dict[str, np.ndarray]:
        """Wait for the end of all, and return the results."""
        for name, process in self.processes.items():
            _, message = process.communicate(timeout=TIME_LIMIT)
            assert process.returncode == 0, f"{name}: {message}"
            assert "Traceback" not in message
        with np.load(self.store.with_name(f"{self.program}.npz")) as results:
            return dict(results)


PARTS = tables((40, 55, 60), D)


def descent(rounds: int = ROUNDS, pause: float = PAUSE) -> tuple[str, str, list[pd.DataFrame]]:
    return "descent", f"rounds = {rounds}\npause = {pause}", PARTS


@contextmanager
def new_run(folder: Path, program: str, settings: str, parts: Sequence[pd.DataFrame]) -> Iterator[Run]:
    """Start all processes of a run; none is left when the block ends."""
    run = Run(folder, program, settings, parts)
    try:
        for name in ("coordinator", *run.parts):
            run.start(name)
        yield run
    finally:
        for process in run.processes.values():
            process.kill()
            process.communicate()


def test_kills_of_a_client_and_of_the_coordinator_change_nothing(tmp_path):
    with new_run(tmp_path, *descent()) as run:
        run.wait_for(8)
        run.kill("b")
        run.start("b")
        run.wait_for(16)
        run.kill("coordinator")
        assert run.done() < ROUNDS, "nothing was left to lose"
        run.start("coordinator")
        results = run.finish()
    expected = in_memory(PARTS, {"rounds": ROUNDS})
    np.testing.assert_array_equal(results["weights"], expected["weights"])
    np.testing.assert_array_equal(results["losses"], expected["losses"])
    # Replayed rounds take no time. Of the others the quickest tells: whatever else the machine does only adds to it.
    seconds = results["seconds"][results["seconds"] > PAUSE]
    assert seconds.min() - PAUSE < OVERHEAD
    other = in_memory(PARTS[:2], {"rounds": ROUNDS})
    assert np.abs(other["weights"] - expected["weights"]).max() > 1e-3  # negative control: every client counts


def test_notears_between_processes_is_notears_in_one(tmp_path):
    dag = simulate.random_dag(D, edges_per_node=1, random_seed=1)
    table = simulate.linear(dag, 400, random_seed=1)
    parts = [table[:120], table[120:230], table[230:]]
    with new_run(tmp_path, "notears", 'model = "linear"', parts) as run:
        run.wait_for(15)
        run.kill("c")
        run.start("c")
        results = run.finish()
    found = FederatedNOTEARS().fit(parts)
    assert results["state"] == "converged" and len(results["history"]) == found.rounds_ > 40
    np.testing.assert_array_equal(results["raw_weights"], found.raw_weights_)
    np.testing.assert_array_equal(results["adjacency"], found.adjacency_)
    assert found.graph_.number_of_edges() > 10


@pytest.mark.slow
def test_many_kills_at_any_moment(tmp_path):
    rng = random.Random(20241101)
    with new_run(tmp_path, *descent(rounds=120)) as run:
        for _ in range(15):
            run.wait_for(min(run.done() + rng.randint(0, 5), 110))
            time.sleep(rng.uniform(0, 0.1))
            name = rng.choice(("coordinator", *run.parts))
            run.kill(name)
            run.start(name)
        results = run.finish()
        np.testing.assert_array_equal(results["weights"], in_memory(PARTS, {"rounds": 120})["weights"])


@pytest.mark.slow
def test_overhead_of_a_round(tmp_path, capsys):
    parts = tables((40, 55, 60, 45), D)
    with new_run(tmp_path, "descent", "rounds = 200\npause = 0.0", parts) as run:
        seconds = run.finish()["seconds"]
    with capsys.disabled():
        print(f"\nd = {D}, {len(parts)} clients: {1000 * np.median(seconds):.1f} ms a round (median of {len(seconds)})")
    assert np.median(seconds) < OVERHEAD
