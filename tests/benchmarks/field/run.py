"""Run programs on the same data, and keep a row of measures for each unit of work.

A unit is a program, a family, a number of variables, a number of rows and a seed. Each runs in processes of its own,
one at a time, on one thread. Its row is appended to the CSV as soon as it ends; units that the file has aren't run
again, so that a run can be stopped (Ctrl-C) and resumed, or extended::

    python -m tests.benchmarks.field.run
    python -m tests.benchmarks.field.run --programs gpn-bge sumu --families linear --sizes 10 --rows 100

A unit that needs more CPU time than the limit is kept as such. Once the first two of a program, family and size have
come to that, the others are left out.
"""

import argparse
import csv
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.asking import ONE_THREAD
from tests.benchmarks.field.data import FAMILIES, Problem, check_size, problem, simulator
from tests.benchmarks.field.measures import as_text, counts_by_class, measured
from tests.benchmarks.field.programs import PROGRAMS, WORKERS, Program, interpreter

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "field.csv"
UNIT = ("program", "family", "n", "rows", "seed")
COLUMNS = (
    *UNIT, "outcome", "eshd", "auroc", "auprc", "brier", "effect_error", "log_predictive", "learning_cpu", "memory",
    "machine", "version", "reliability",
)  # fmt: skip
OK, STOPPED, FAILED = "ok", "time limit", "failed"
# Once this many units of one program, family and size have hit the limit, the remaining ones are skipped.
HOPELESS = 2


class Unit(NamedTuple):
    """What is run once."""

    program: str
    family: str
    n: int
    rows: int
    seed: int


class Failure(Exception):
    """A program ended without an answer."""


def units(
    programs: Iterable[str], families: Iterable[str], sizes: Iterable[int], rows: Iterable[int], networks: int
) -> Iterator[Unit]:
    """Yield all units, one program and size after the other, so that what is measured first is comparable."""
    for program, n, count, seed, family in product(programs, sizes, rows, range(1, networks + 1), families):
        yield Unit(program, family, n, count, seed)


def read(path: Path) -> dict[Unit, dict[str, str]]:
    """Return the rows of a file by unit; the last one where a unit has several."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            Unit(row["program"], row["family"], int(row["n"]), int(row["rows"]), int(row["seed"])): row
            for row in csv.DictReader(file)
        }


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append what the file keeps of a row, at once; the header first where there is no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        if new:
            writer.writeheader()
        writer.writerow({name: _text(value) for name, value in row.items()})


def _text(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def left_out(unit: Unit, known: Mapping[Unit, Mapping[str, str]]) -> bool:
    """Return whether earlier units like this one came to the limit."""
    alike = [row for other, row in known.items() if other[:4] == unit[:4]]
    return sum(row["outcome"] == STOPPED for row in alike) >= HOPELESS


def measure(unit: Unit, program: Program, limit: int) -> dict[str, Any]:
    """Run a unit, and return its row."""
    data = problem(unit.family, unit.n, unit.rows, unit.seed)
    row: dict[str, Any] = unit._asdict()
    reply, usage = _asked(program, data, limit)
    row |= {"cpu": usage["cpu"], "memory": round(usage["memory"]), "machine": platform.machine()}
    if usage["stopped"]:
        return row | {"outcome": STOPPED}
    try:
        if isinstance(reply, Failure):
            raise reply
        chances = probabilities(program, reply, unit.n)
    except Failure as trouble:
        print(f"    {trouble}", file=sys.stderr)
        return row | {"outcome": FAILED}
    row |= measured(chances, data.truth) | {"learning_cpu": float(reply["cpu_seconds"]), "outcome": OK}
    row["version"] = reply.get("version", "")
    row["reliability"] = as_text(counts_by_class(chances, data.truth))
    if "log_predictive" in reply:
        row["log_predictive"] = reply["log_predictive"]
    if data.effects is not None and "effects" in reply:
        pairs = ~np.eye(unit.n, dtype=bool)
        row["effect_error"] = float(np.sqrt(np.mean((np.array(reply["effects"]) - data.effects)[pairs] ** 2)))
    return row


def probabilities(program: Program, reply: Mapping[str, Any], n: int) -> np.ndarray:
    """Return the edge probabilities in a reply, checked."""
    try:
        chances = np.array(program.read(reply), dtype=float)
    except ValueError as trouble:
        raise Failure(str(trouble)) from None
    # Sums in single precision can miss the ends by rounding, and no more.
    if chances.shape != (n, n) or not ((chances > -1e-3) & (chances < 1 + 1e-3)).all():
        raise Failure(f"the reply must be a probability for each of {n} x {n} edges")
    return np.clip(chances, 0.0, 1.0)


def _asked(program: Program, data: Problem, limit: int) -> tuple[Any, dict[str, Any]]:
    """Return a worker's reply, or why there is none, and what it took."""
    python = interpreter(program.variable)
    assert python is not None
    with tempfile.TemporaryDirectory() as folder:
        places = {name: str(Path(folder) / f"{name}.csv") for name in ("data", "held_out")}
        data.table.to_csv(places["data"], index=False)
        data.held_out.to_csv(places["held_out"], index=False)
        request = places | program.request(data.table.shape[1], data.effects is not None)
        usage = Path(folder) / "usage.json"
        worker = WORKERS / program.worker
        command = [sys.executable, str(HERE / "measuring.py"), str(usage), str(limit), python, str(worker)]
        # Our worker imports this checkout first; what PYTHONPATH already names stays available to it.
        path = os.pathsep.join([str(HERE.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        ours = {"PYTHONPATH": path} if python == sys.executable else {}
        # A session of its own: Ctrl-C reaches the runner alone, which then ends the worker.
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | ONE_THREAD | ours, start_new_session=True,
        )  # fmt: skip
        try:
            output, trouble = started.communicate(json.dumps(request))
        except BaseException:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            raise
        taken = json.loads(usage.read_text())
    if taken["code"] != 0:
        lines = trouble.strip().splitlines() or [f"ended with status {taken['code']}"]
        return Failure(lines[-1][:200]), taken
    return json.loads(output), taken


def run(todo: Iterable[Unit], path: Path, limit: int, retry: bool = False) -> int:
    """Run what the file doesn't have; return how many units were run."""
    todo = list(todo)
    known = read(path)
    count = 0
    for place, unit in enumerate(todo, 1):
        program = PROGRAMS[unit.program]
        there = known.get(unit)
        if there is not None and not (retry and there["outcome"] == FAILED):
            continue
        if interpreter(program.variable) is None or left_out(unit, known):
            continue
        label = f"[{place}/{len(todo)}] {unit.program}, {unit.family}, n = {unit.n}, N = {unit.rows}, {unit.seed}"
        print(label, end=": ", file=sys.stderr, flush=True)
        row = measure(unit, program, limit)
        append(path, row)
        known[unit] = {name: str(row.get(name, "")) for name in COLUMNS}
        count += 1
        shown = f"E-SHD {row['eshd']:.1f}, " if row["outcome"] == OK else f"{row['outcome']}, "
        print(f"{shown}{row['cpu']:.1f} s, {row['memory']} MiB", file=sys.stderr, flush=True)
    return count


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Run programs on the same data.")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=["linear", "fourier", "gp"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10])
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds of a unit")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--retry", action="store_true", help="run units again that failed")
    given = parser.parse_args(arguments)
    try:
        for size in product(given.families, given.sizes, given.rows):
            check_size(*size)
    except ValueError as trouble:
        parser.error(str(trouble))
    families = [family for family in given.families if interpreter(simulator(family))]
    variables = {PROGRAMS[name].variable for name in given.programs} | {simulator(family) for family in given.families}
    missing = sorted(variable for variable in variables if not interpreter(variable))
    if missing:
        print(f"not set, so their programs and data are left out: {', '.join(missing)}", file=sys.stderr)
    todo = units(given.programs, families, given.sizes, given.rows, given.networks)
    # Whoever ends the runner ends its worker with it.
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        count = run(todo, given.results, given.limit, given.retry)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    print(f"{count} units run; {given.results}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
