"""BIC and seconds of the searches, side by side with pyagrum's tabu search in one run.

Needs an interpreter that has pyagrum 3: give its path in ``PYAGRUM_PYTHON``, or let this file make a virtual
environment from the package index. Run with ``pytest -m slow -s tests/benchmarks/test_against_pyagrum.py``.

All search for the DAG of highest BIC with at most three parents a node, with the same levels. The BIC of pyagrum's DAG
is computed with our score, as the others' is. pyagrum's search gets its usual patience of two steps down, and a longer
one. Seconds are those after scoring: OrderingSearch scores beforehand; HillClimbing and pyagrum score on the way, so
they run twice, and what is told is the second run, which finds the scores (pyagrum's: what it remembers of them).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from gpn_bayes import graphs, scores
from gpn_bayes.estimators import HillClimbing, OrderingSearch
from gpn_bayes.estimators.problem import Problem, read_problem
from tests.learners import DISCRETE, discrete

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
MAX_PARENTS = 3
USUAL, LONG = 2, 30
OPTIMA = {"asia": -2232.998, "child": -13022.540, "alarm": -11646.289}
STRICTLY_BETTER = ("child", "alarm")


@pytest.fixture(scope="session")
def pyagrum_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("PYAGRUM_PYTHON")
    if given:
        return given
    folder = tmp_path_factory.mktemp("pyagrum")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(folder / "bin" / "pip"), "install", "-q", "pyagrum>=3,<4", "pandas"]
    if subprocess.run(install, check=False).returncode != 0:
        pytest.skip("pyagrum can't be installed here; set PYAGRUM_PYTHON")
    return str(folder / "bin" / "python")


def run_pyagrum(python: str, name: str, cardinalities: dict[str, int]) -> dict:
    request = {
        "data": str(DISCRETE / f"{name}_1000_codes.csv"),
        "cardinalities": cardinalities,
        "max_parents": MAX_PARENTS,
        "decreases": [USUAL, LONG],
    }
    done = subprocess.run(
        [python, str(HERE / "pyagrum_worker.py")], input=json.dumps(request), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def climb(problem: Problem, restarts: int) -> tuple[float, float]:
    """Return the BIC that hill climbing finds, and its seconds once all scores are known."""
    learner = HillClimbing(restarts=restarts, random_state=1)
    learner._search(problem)
    began = time.perf_counter()
    found = learner._search(problem)
    return problem.total(found), time.perf_counter() - began


@pytest.mark.parametrize("name", OPTIMA)
def test_never_worse_than_pyagrum(name: str, pyagrum_python: str) -> None:
    table, known = discrete(name)
    score = scores.BIC(known["card"])
    problem = read_problem(table, score, MAX_PARENTS)
    rows = {}
    reply = run_pyagrum(pyagrum_python, name, known["card"])
    for decreases, found in reply["found"].items():
        edges = [(parent, child) for child, parents in found["parents"].items() for parent in parents]
        total = problem.total(graphs.as_adjacency(edges, problem.names))
        rows[f"pyagrum {reply['version']} tabu, {decreases} steps down"] = (total, found["second_seconds"])
    theirs = {decreases: rows[label][0] for decreases, label in zip((USUAL, LONG), rows, strict=True)}
    climbs = {restarts: climb(problem, restarts) for restarts in (0, 10)}
    rows |= {f"HillClimbing, tabu, {restarts} restarts": found for restarts, found in climbs.items()}
    for variant in ("obs", "asobs"):
        learner = OrderingSearch(score, max_parents=MAX_PARENTS, variant=variant, random_state=1)
        learner.fit(table)  # compile
        learner.fit(table)
        rows[f"OrderingSearch, {variant}"] = (learner.log_score_, learner.search_seconds_)
    report = pd.DataFrame(rows, index=["BIC", "search seconds"]).T
    report["below the optimum"] = OPTIMA[name] - report["BIC"]
    print(f"\n{name}\n{report.to_string(float_format='{:.3f}'.format)}", file=sys.stderr)
    for found, _ in climbs.values():
        assert found >= max(theirs.values()) - 1e-6
    for variant in ("obs", "asobs"):
        found = rows[f"OrderingSearch, {variant}"][0]
        assert found >= max(theirs.values()) - 1e-6
        assert found == pytest.approx(OPTIMA[name], abs=1e-3)
        if name in STRICTLY_BETTER:
            assert found > theirs[USUAL] + 1e-6
