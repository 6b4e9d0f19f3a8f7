"""Which score finds networks of numbers and categories: fifteen variables, half of them categories, 1,000 rows.

Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_mixed_tables.py``. With CAUSAL_LEARN_PYTHON, an interpreter that
has causal-learn, its PC takes part, with a randomised test of conditional independence that takes any kind of column.
The networks are those of `mixed_networks`. SHD counts a reversed edge once; an edge that PC leaves undirected counts
half where the truth has it. The SHD of a posterior is its expected value.
"""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics
from tests.benchmarks.asking import ask
from tests.benchmarks.field.measures import as_chances, expected_shd
from tests.benchmarks.mixed_networks import mixed_network

pytestmark = pytest.mark.slow

NETWORKS = int(os.environ.get("MIXED_NETWORKS", "5"))
QUIET = {"random_seed": 1, "progressbar": False, "draws": 500}
PEER = os.environ.get("CAUSAL_LEARN_PYTHON")


def by_posterior(table, truth, **settings):
    post = gpn.sample(table, **QUIET, **settings)
    return post.expected_shd(truth).value, post.edge_probabilities().to_numpy()


def by_graph(edges, truth):
    chances = as_chances(edges)
    return expected_shd(chances, truth), chances


def hill_climbing(table, truth):
    graph = gpn.estimators.HillClimbing(score="bic", random_state=1).fit(table).adjacency_
    return by_graph(np.asarray(graph, dtype=bool), truth)


def by_peer(table, truth, folder):
    path = Path(folder) / "table.csv"
    coded = table.apply(lambda own: own if own.dtype.kind == "f" else pd.factorize(own, sort=True)[0].astype(float))
    coded.to_csv(path, index=False)
    reply = ask(PEER, "causal_learn_worker.py", {"data": str(path), "method": "pc-rcit"})
    return by_graph(np.array(reply["cpdag"], dtype=bool), truth)


@pytest.mark.parametrize("curved", [True, False], ids=["curved", "linear"])
def test_mixed_networks(curved, tmp_path):
    rows = []
    for seed in range(NETWORKS):
        table, dag = mixed_network(15, 1000, curved, seed)
        truth = graphs.as_adjacency(dag, tuple(table)).astype(bool)
        ways = {
            "gp": lambda t, g: by_posterior(t, g, score="gp"),
            "cg": lambda t, g: by_posterior(t, g, score="cg"),
            "bdeu, cut": lambda t, g: by_posterior(gpn.Dataset.read(t, discretise=3), g, score="bdeu"),
            "bic-cg": hill_climbing,
        }
        if PEER:
            ways["pc"] = lambda t, g: by_peer(t, g, tmp_path)
        for way, run in ways.items():
            began = time.process_time()
            shd, chances = run(table, truth)
            spent = time.process_time() - began
            rows.append({"seed": seed, "way": way, "shd": shd, "auroc": metrics.auroc(chances, truth), "cpu": spent})
            print(rows[-1], flush=True)
    found = pd.DataFrame(rows)
    means = found.groupby("way")[["shd", "auroc", "cpu"]].agg(["mean", "sem"])
    print(f"\n{'curved' if curved else 'linear'}\n{means.round(3).to_string()}")
    gp = means.loc["gp", ("shd", "mean")]
    assert gp <= means[("shd", "mean")].drop("gp").min() if curved else gp < means.loc["bdeu, cut", ("shd", "mean")]
