"""A real ``gpn-bayes run`` that is killed or interrupted, again and again, ends with the same edges."""

import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import gpn_bayes as gpn
from gpn_bayes.cli import main

pytestmark = pytest.mark.more("starts processes and kills them")

TIME_LIMIT = 120
PARTITION = ("--sampler", "partition", "--draws", "10000", "--tune", "500")
EXACT = ("--sampler", "exact", "--draws", "30000", "--chains", "2")
SEED = 20240607


def command(data: Path, out: Path, options: tuple[str, ...]) -> list[str]:
    return ["run", str(data), "--out", str(out), "--quiet", *options]


def start(data: Path, out: Path, options: tuple[str, ...]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "gpn_bayes.cli", *command(data, out, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(data: Path, out: Path, options: tuple[str, ...], code: int = 0) -> Path:
    """Do a run in this process, with another number of threads, and return its edges."""
    with pytest.raises(SystemExit) as end:
        main(command(data, out, (*options, "--cores", "1")))
    assert (end.value.code or 0) == code
    return out / "edges.csv"


def wait_for(condition: Callable[[], bool], process: subprocess.Popen) -> None:
    limit = time.monotonic() + TIME_LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.002)


def ask_store(out: Path, question: str) -> int:
    """Ask the file of a run something about its blocks, while it is being written."""
    store = out / "run.sqlite"
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(question).fetchone()[0]
    except sqlite3.OperationalError:  # the table isn't there yet, or the file is being set up
        return 0


def blocks(out: Path) -> int:
    return ask_store(out, "SELECT count(*) FROM blocks")


def chains_with_draws(out: Path) -> int:
    return ask_store(out, "SELECT count(DISTINCT chain) FROM blocks WHERE layout <> '[]'")


def kill_in(phase: str, data: Path, out: Path, options: tuple[str, ...], rng: random.Random) -> None:
    """Start the run and kill it in a phase of its life, while it lives."""
    before = blocks(out)
    process = start(data, out, options)
    if phase == "loading":
        time.sleep(rng.uniform(0.05, 0.6))
    elif phase == "claimed":
        wait_for((out / "run.json").exists, process)
        time.sleep(rng.uniform(0, 0.3))
    elif phase == "sampling":
        more = rng.randint(1, 14)
        wait_for(lambda: blocks(out) >= before + more, process)
        time.sleep(rng.uniform(0, 0.1))
    elif phase == "saved":
        wait_for((out / "posterior.nc").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == -signal.SIGKILL, f"{phase}: the run had already ended"
    assert not (out / "edges.csv").exists(), f"{phase}: nothing was left to lose"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dag = gpn.simulate.random_dag(8, edges_per_node=2, random_seed=1)
    path = tmp_path_factory.mktemp("data") / "eight.csv"
    gpn.simulate.linear(dag, 150, random_seed=1).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the edges of a partition run that nobody touched."""
    return finish(data, tmp_path_factory.mktemp("undisturbed"), PARTITION).read_bytes()


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(("sampling", "sampling", "saved"), id="three"),
        pytest.param(
            ("loading", "loading", "claimed", *["sampling"] * 5, "saved", "saved"), marks=pytest.mark.slow, id="ten"
        ),
    ],
)
def test_kills_change_nothing(phases, data, undisturbed, tmp_path):
    rng = random.Random(SEED)
    out = tmp_path / "results"
    drawn = 0
    for phase in phases:
        kill_in(phase, data, out, PARTITION, rng)
        if phase == "sampling":
            assert blocks(out) > drawn, "the run went back to its start"
            drawn = blocks(out)
    process = start(data, out, PARTITION)
    _, messages = process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 0
    assert "unfinished; going on" in messages
    assert (out / "edges.csv").read_bytes() == undisturbed
    assert {file.name for file in out.iterdir()} == {
        "edges.csv", "posterior.nc", "report.html", "run.json", "run.sqlite",
    }  # fmt: skip
    assert blocks(out) == 0


def test_the_edges_do_depend_on_the_draws(data, undisturbed, tmp_path):
    """Negative control: equal files mean something only if another seed gives other ones."""
    assert finish(data, tmp_path, (*PARTITION, "--seed", "2")).read_bytes() != undisturbed


def test_kills_of_the_exact_sampler_change_nothing(data, tmp_path):
    rng = random.Random(SEED)
    out, untouched = tmp_path / "results", tmp_path / "untouched"
    for phase in ("sampling", "saved"):
        kill_in(phase, data, out, EXACT, rng)
    assert finish(data, out, EXACT).read_bytes() == finish(data, untouched, EXACT).read_bytes()
    ours, theirs = (gpn.load(folder / "posterior.nc").parents for folder in (out, untouched))
    assert (ours == theirs).all()


def interrupt(process: subprocess.Popen) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    shown, messages = process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 130, messages
    assert "Traceback" not in messages
    return shown, messages


def test_ctrl_c_before_the_first_draw(data, tmp_path):
    process = start(data, tmp_path, (*PARTITION, "--tune", "1000000"))
    wait_for(lambda: blocks(tmp_path) >= 2, process)
    shown, messages = interrupt(process)
    assert messages == "interrupted before the first draw; the same command goes on from here\n"
    assert shown == ""


def test_ctrl_c_shows_what_was_drawn_and_the_run_goes_on(data, undisturbed, tmp_path):
    process = start(data, tmp_path, PARTITION)
    wait_for(lambda: chains_with_draws(tmp_path) == 4, process)
    shown, messages = interrupt(process)
    assert re.fullmatch(r"interrupted after \d+ of 10000 draws of each chain; the same command .*\n", messages)
    assert "8 variables, 150 rows" in shown and "chains" in shown
    assert not (tmp_path / "edges.csv").exists() and not (tmp_path / "posterior.nc").exists()
    assert finish(data, tmp_path, PARTITION).read_bytes() == undisturbed


def test_a_folder_serves_one_run_at_a_time(data, tmp_path, capsys):
    process = start(data, tmp_path, PARTITION)
    wait_for(lambda: blocks(tmp_path) >= 1, process)
    finish(data, tmp_path, PARTITION, code=2)
    process.kill()
    process.communicate()
    messages = capsys.readouterr().err
    assert messages.splitlines()[-1].startswith("error: ") and "in use by another run" in messages
