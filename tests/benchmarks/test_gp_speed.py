"""How long Gaussian-process scores take: a score, many rows, and whole runs.

Run with ``pytest -m slow -s tests/benchmarks/test_gp_speed.py`` on a machine that does nothing else.
"""

import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpn_bayes.scores import GP

pytestmark = pytest.mark.slow

DATA = pd.read_csv(Path(__file__).parents[1] / "reference" / "gp" / "fourier_n4_N100_seed101.csv")
LIMITS = {"laplace": 0.010, "importance": 0.100, "bridge": 0.200}

WHOLE_RUN = """
import sys, time
began = time.perf_counter()
import gpn_bayes as gpn
if sys.argv[1] == "sachs":
    data = gpn.datasets.sachs(transform="log2")
else:
    dag = gpn.simulate.random_dag(10, p=0.2, random_seed=1)
    data = gpn.simulate.fourier(dag, 100, lam=1.0, random_seed=2)
post = gpn.sample(data, score="gp", random_seed=1, progressbar=False)
print(post.diagnostics())
print(time.perf_counter() - began)
"""


def seconds_a_score(scorer, node, largest):
    """Return the times of the scores of a node given all sets of up to a number of parents, by their number."""
    others = [i for i in range(len(scorer.names)) if i != node]
    times = {}
    for size in range(1, largest + 1):
        times[size] = []
        for parents in combinations(others, size):
            began = time.perf_counter()
            scorer.score_sets(node, [parents])
            times[size].append(time.perf_counter() - began)
    return times


@pytest.mark.parametrize("estimator", LIMITS)
def test_a_score(estimator):
    scorer = GP(estimator=estimator).bind(DATA)
    seconds_a_score(scorer, 0, 3)
    times = [seconds_a_score(scorer, node, 3) for node in range(4)]
    by_size = {size: [second for part in times for second in part[size]] for size in (1, 2, 3)}
    everything = np.concatenate(list(by_size.values()))
    medians = "  ".join(f"{size}: {1e3 * np.median(values):6.1f}" for size, values in by_size.items())
    print(
        f"\n{estimator:10s} ms a score, median by number of parents  {medians}  all: {1e3 * np.median(everything):6.1f}"
    )
    assert np.median(everything) < LIMITS[estimator]


def test_the_time_of_a_score_does_not_grow_with_the_rows():
    medians = {}
    for n_rows in (1_000, 10_000, 100_000):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(n_rows, 3))
        y = np.sin(2 * x[:, 0]) + 0.3 * x.sum(axis=1) + 0.5 * rng.normal(size=n_rows)
        scorer = GP(estimator="laplace").bind(np.column_stack([x, y]))
        began = time.perf_counter()
        scorer.score_sets(3, [(0, 1, 2)])
        prepared = time.perf_counter() - began
        times = [seconds_a_score(scorer, 3, 3) for _ in range(3)]
        medians[n_rows] = np.median([second for part in times for values in part.values() for second in values])
        print(f"\n{n_rows:7d} rows: {1e3 * medians[n_rows]:6.1f} ms a Laplace score, prepared once in {prepared:.1f} s")
    assert max(medians.values()) < 2 * min(medians.values())


def seconds_of_run(name, compiled_code):
    """Return how long a fresh process takes for a whole run, its start included."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_RUN, name],
        env={**os.environ, "NUMBA_CACHE_DIR": str(compiled_code)},
        capture_output=True,
        text=True,
        check=True,
    )
    took = time.perf_counter() - began
    print(f"\n{name}: {took:.0f} s\n{done.stdout}")
    return took


def test_sachs_from_a_cold_start(tmp_path):
    """Nothing is compiled and nothing is cached before."""
    assert seconds_of_run("sachs", tmp_path) < 600


def test_a_network_of_10(tmp_path):
    cold, warm = (seconds_of_run("network of 10", tmp_path) for _ in range(2))
    print(f"\n{cold - warm:.0f} s of the first run were compilation, which happens once on a machine")
    assert warm < 60
