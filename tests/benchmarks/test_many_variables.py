"""Networks of 25 to 200 variables: whether chains agree, how long it takes, how much memory, and how right it is.

Every run is a process of its own. Run with ``pytest -m slow -s tests/benchmarks/test_many_variables.py`` on a machine
that does nothing else; the BGe part takes about twenty minutes on two cores, the GP part about as long.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.benchmarks.paper import show

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[1] / "reference" / "bge" / "lin_n40_N1000.csv"
# The best total BGe score that BiDAG found there in a short run.
BIDAG_BEST = -35342.04

RUN = """
import json, resource, sys, time, warnings
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.posterior.diagnostics import diagnose

request = json.loads(sys.argv[1])
n, truth = request["n"], None
if "file" in request:
    data = pd.read_csv(request["file"])
else:
    truth = gpn.simulate.random_dag(n, p=request["degree"] / (n - 1), random_seed=1)
    simulate = gpn.simulate.fourier if request["score"] == "gp" or request.get("fourier") else gpn.simulate.linear
    more = {"lam": 1.0} if simulate is gpn.simulate.fourier else {}
    data = simulate(truth, request["rows"], random_seed=2, **more)
began = time.perf_counter()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    seed = request.get("seed", 1)
    post = gpn.sample(data, request["score"], random_seed=seed, progressbar=False, **request["settings"])
seconds = time.perf_counter() - began
found = diagnose(post)
figures = {
    "seconds": seconds, "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "gap": found.largest_gap,
    "r_hat": found.r_hat, "ess": found.ess, "best": float(post.log_score.max()), "thin": post.settings["thin"],
    "candidates": float(np.mean(post.settings["candidates"]["sizes"])),
    "rounds": len(post.settings["candidates"]["rounds"]),
}
if truth is not None:
    off = ~np.eye(n, dtype=bool)
    edges = post.edge_probabilities().to_numpy()
    adjacency = graphs.as_adjacency(truth, list(data.columns))
    figures["auroc"] = roc_auc_score(adjacency[off], edges[off])
    # What the data can tell: which edges the truth's CPDAG has, either way where it is undirected.
    some, weights = post.adjacency[0][::10], post.weights[0][::10]
    drawn = np.average([graphs.cpdag(dag) != 0 for dag in some], axis=0, weights=weights)
    figures["auroc_cpdag"] = roc_auc_score(graphs.cpdag(adjacency)[off] != 0, drawn[off])
print(json.dumps(figures))
"""


def run(**request: Any) -> dict[str, float]:
    request = {"score": "bge", "rows": 1000, "degree": 4, "settings": {}} | request
    done = subprocess.run([sys.executable, "-c", RUN, json.dumps(request)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


CONVERGED = {"until": "converged", "draws": 4000, "tune": 500}


def test_forty_variables_of_the_reference() -> None:
    found = run(n=40, file=str(REFERENCE), settings=CONVERGED)
    show("40 variables", pd.DataFrame([found]))
    assert found["best"] > BIDAG_BEST
    assert found["gap"] < 0.05 and found["r_hat"] < 1.05 and found["seconds"] < 60


@pytest.mark.parametrize("n", [80, 100])
def test_chains_agree_on_every_edge(n: int) -> None:
    found = run(n=n, settings=CONVERGED)
    show(f"{n} variables", pd.DataFrame([found]))
    assert found["gap"] < 0.05 and found["r_hat"] < 1.05 and found["seconds"] < 300


def test_how_time_and_memory_grow() -> None:
    table = pd.DataFrame({n: run(n=n) for n in (25, 50, 100, 200)}).T
    show("BGe, 1,000 rows, default settings", table)
    assert table.loc[100, "seconds"] < 600 and table.loc[100, "GB"] < 4


def test_fifty_variables_of_non_linear_relations() -> None:
    request = {"n": 50, "rows": 500, "degree": 3, "fourier": True}
    gp, bge = run(score="gp", **request), run(**request)
    show("Fourier network, 50 variables, 500 rows", pd.DataFrame({"gp": gp, "bge": bge}).T)
    # Non-linear relations tell directions: the DAGs of GP are held against whatever of BGe is better.
    assert gp["seconds"] < 1800 and gp["auroc"] > max(bge["auroc"], bge["auroc_cpdag"])
