"""Mean squared errors of all pairwise effects: ours, sumu's Beeps, and regressions on the parents in the best CPDAG.

The last is IDA (Maathuis, Kalisch & Bühlmann 2009) in its local form: for each cause, every set of parents that it can
have in the class, a regression on the cause and them, and the mean of the coefficients. Needs an interpreter that has
sumu, as `test_against_sumu` does. Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_effect_errors.py``.
"""

import json
import subprocess
import time
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests.benchmarks.paper import draw, mean_of, show
from tests.benchmarks.test_against_sumu import sumu_python  # noqa: F401

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
NETWORKS, ROWS, EDGES_PER_NODE = 20, 200, 1.5
# As in sumu's documentation: a single chain stays in one mode at times.
SUMU = {"chains": 16, "burn_in": 10_000, "iterations": 10_000, "thinning": 10}


def network(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of a linear network, standardised, and the true total effects in these units."""
    rng = np.random.default_rng([n, seed])
    dag = gpn.simulate.random_dag(n, edges_per_node=EDGES_PER_NODE, random_seed=rng)
    data = gpn.simulate.linear(dag, ROWS, random_seed=rng)
    spread = data.std().to_numpy()
    totals = np.linalg.inv(np.eye(n) - np.array(data.attrs["weights"])) * spread[:, None] / spread
    return (data - data.mean()) / data.std(), totals


def ours(data: pd.DataFrame) -> np.ndarray:
    post, _ = draw(data, "bge", prior="fair")
    table = post.effects(progressbar=False).pivot_table(index="cause", columns="outcome", values="mean")
    return table.loc[list(data), list(data)].fillna(0.0).to_numpy()


def ida(data: pd.DataFrame) -> np.ndarray:
    """Return the effects from the class of the best DAG, averaged over the sets of parents that a cause can have."""
    best = gpn.estimators.Exact(score="bge").fit(data).graph_
    pattern = graphs.cpdag(graphs.as_adjacency(best, list(data))).astype(bool)
    values = data.to_numpy()
    n = values.shape[1]
    effects = np.zeros((n, n))
    for x in range(n):
        sets = possible_parents(pattern, x)
        for y in range(n):
            if y != x:
                effects[x, y] = np.mean([coefficient(values, x, y, own) for own in sets])
    return effects


def possible_parents(pattern: np.ndarray, x: int) -> list[list[int]]:
    """Return the sets of parents of a node in a class: those that add no collider there."""
    sure = np.flatnonzero(pattern[:, x] & ~pattern[x])
    open_to = np.flatnonzero(pattern[:, x] & pattern[x])
    subsets = chain.from_iterable(combinations(open_to, size) for size in range(len(open_to) + 1))
    joined = pattern | pattern.T
    return [
        [*sure, *own]
        for own in subsets
        if all(joined[a, b] for a, b in combinations(own, 2)) and all(joined[a, b] for a in own for b in sure)
    ]


def coefficient(values: np.ndarray, x: int, y: int, parents: list[int]) -> float:
    if y in parents:
        return 0.0
    found, *_ = np.linalg.lstsq(values[:, [x, *parents]], values[:, y], rcond=None)
    return float(found[0])


def by_sumu(python: str, data: pd.DataFrame, file: Path) -> np.ndarray:
    data.to_csv(file, index=False)
    request = {"data": str(file), "candidates": min(data.shape[1] - 1, 10), "seed": 1} | SUMU
    done = subprocess.run(
        [python, str(HERE / "sumu_beeps_worker.py")], input=json.dumps(request), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return np.array(json.loads(done.stdout)["effects"])


@pytest.mark.parametrize("n", [10, 20])
def test_our_effects_have_the_smallest_errors(n: int, sumu_python: str, tmp_path: Path) -> None:  # noqa: F811
    rows = []
    off = ~np.eye(n, dtype=bool)
    for seed in range(NETWORKS):
        data, truth = network(n, seed)
        began = time.process_time()
        estimates = {"ours": ours(data), "CPDAG plug-in": ida(data)}
        estimates["Beeps"] = by_sumu(sumu_python, data, tmp_path / "data.csv")
        rows.append({name: float(((own - truth)[off] ** 2).mean()) for name, own in estimates.items()})
        print(n, seed, {name: round(value, 5) for name, value in rows[-1].items()}, time.process_time() - began)
    table = pd.DataFrame(rows)
    show(f"{n} variables, {ROWS} rows: mean squared error of effects, times 1,000", 1000 * table.describe().T)
    for other in ("CPDAG plug-in", "Beeps"):
        gain = mean_of(table[other] - table["ours"])
        print(f"{other} - ours: {1000 * gain.value:.2f} ± {1000 * gain.error:.2f}")
        assert gain.value > -2 * gain.error
