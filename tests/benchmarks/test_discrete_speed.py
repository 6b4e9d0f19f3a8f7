"""CPU time of the scores of all small parent sets, side by side with pgmpy in one run.

Needs an interpreter that has pgmpy, whose path is given in ``PGMPY_PYTHON``. Run with
``pytest -m slow -s tests/benchmarks/test_discrete_speed.py``.

20 variables of 2 to 4 levels, each with up to two parents among those before it, in 5,000 rows; all 100,720 sets of up
to 4 parents. pgmpy scores a random 300 of them, drawn alike from all. The scores are the same, except that pgmpy 1.1.2
counts the constant ln (r - 1)! of K2 also for configurations that weren't observed, whose other terms it leaves out.
"""

import json
import os
import subprocess
import sys
import time
from math import lgamma, prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpn_bayes import scores

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
N, ROWS, MAX_PARENTS = 20, 5000, 4
OF_PGMPY = 300
SCORES = {"BIC": scores.BIC, "K2": scores.K2, "BDeu": scores.BDeu}


def sampled_network(rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return rows of a random network, and the number of levels of its variables."""
    levels = rng.integers(2, 5, size=N)
    codes = np.zeros((ROWS, N), dtype=int)
    for i in range(N):
        parents = rng.choice(i, size=min(i, 2), replace=False)
        configuration = np.zeros(ROWS, dtype=int)
        for parent in parents:
            configuration = configuration * 4 + codes[:, parent]
        cumulative = rng.dirichlet(np.full(levels[i], 0.5), size=16).cumsum(axis=1)
        codes[:, i] = (rng.random((ROWS, 1)) > cumulative[configuration, :-1]).sum(axis=1)
    names = [f"x{i}" for i in range(N)]
    return pd.DataFrame(codes, columns=names), dict(zip(names, levels.tolist(), strict=True))


def all_scores(scorer: scores.Scorer) -> tuple[float, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the CPU seconds that all scores take, and the scores."""
    scorer.scores_up_to(0, [1, 2], 2)  # compiles
    began = time.process_time()
    found = [scorer.scores_up_to(i, [j for j in range(N) if j != i], MAX_PARENTS) for i in range(N)]
    return time.process_time() - began, found


def run_pgmpy(path: Path, cardinalities: dict[str, int], name: str, sets: list) -> dict:
    request = {"data": str(path), "cardinalities": cardinalities, "score": name, "sets": sets}
    done = subprocess.run(
        [os.environ["PGMPY_PYTHON"], str(HERE / "pgmpy_worker.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout)


def unobserved(frame: pd.DataFrame, cardinalities: dict[str, int], parents: list[str]) -> int:
    """Return how many configurations of parents don't occur."""
    return prod(cardinalities[p] for p in parents) - (len(frame[parents].drop_duplicates()) if parents else 1)


@pytest.mark.parametrize("name", SCORES)
def test_a_hundred_times_pgmpy(name: str, tmp_path: Path) -> None:
    if "PGMPY_PYTHON" not in os.environ:
        pytest.skip("set PGMPY_PYTHON to an interpreter that has pgmpy")
    rng = np.random.default_rng(1)
    frame, cardinalities = sampled_network(rng)
    frame.to_csv(tmp_path / "codes.csv", index=False)
    seconds, found = all_scores(SCORES[name](cardinalities=cardinalities).bind(frame))
    count = sum(len(values) for _, values in found)
    assert count == 100_720
    picks = [(int(i), int(rng.integers(len(found[i][1])))) for i in rng.integers(N, size=OF_PGMPY)]
    sets = [(f"x{i}", [f"x{j}" for j in found[i][0][row] if j >= 0]) for i, row in picks]
    theirs = run_pgmpy(tmp_path / "codes.csv", cardinalities, name, sets)
    expected = [found[i][1][row] for i, row in picks]
    if name == "K2":
        constants = [lgamma(cardinalities[child]) * unobserved(frame, cardinalities, own) for child, own in sets]
        expected = np.add(expected, constants)
    np.testing.assert_allclose(expected, theirs["scores"], rtol=1e-9)
    ours, other = seconds / count, theirs["cpu_seconds"] / OF_PGMPY
    print(
        f"\n{name}: {count} scores in {seconds:.2f} s CPU, {1e6 * ours:.1f} us each; pgmpy {theirs['pgmpy_version']} "
        f"{1e3 * other:.2f} ms each: {other / ours:.0f} times",
        file=sys.stderr,
    )
    assert seconds < 10
    assert other >= 100 * ours
