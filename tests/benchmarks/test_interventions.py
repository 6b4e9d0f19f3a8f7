"""What experiments add: simulated networks with and without them, known targets and unknown ones."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import gpn_bayes as gpn

pytestmark = pytest.mark.slow

NETWORKS = 20
OBSERVED, PER_TARGET, TARGETS = 500, 50, 5


def simulated(seed):
    """Return a network of ten variables, and rows of which some come from experiments that shift a variable."""
    truth = gpn.simulate.random_dag(10, edges_per_node=1.5, random_seed=seed)
    chosen = np.random.default_rng(seed).choice(list(truth.nodes), TARGETS, replace=False)
    n_rows = {"": OBSERVED} | dict.fromkeys(chosen, PER_TARGET)
    return truth, chosen, n_rows


@pytest.mark.parametrize("score", ["bge", "gp"])
def test_experiments_bring_the_posterior_nearer_to_the_truth(score):
    rows = []
    for seed in range(1, NETWORKS + 1):
        truth, chosen, n_rows = simulated(seed)
        for done, kind in (("noise", "perfect"), ("shift", "soft")):
            given = {"n_rows": n_rows, "interventions": dict.fromkeys(chosen, done), "random_seed": seed}
            table = (
                gpn.simulate.linear(truth, **given) if score == "bge" else gpn.simulate.fourier(truth, lam=1.0, **given)
            )
            names = list(truth.nodes)
            settings = {"score": score, "prior": "fair", "random_seed": 1, "progressbar": False}
            # the observed rows are the same, whatever the experiments did: one posterior serves both
            observed = {"observed rows": (table[table["target"] == ""][names], {})} if done == "noise" else {}
            readings = observed | {
                "all rows, pooled": (table[names], {}),
                "known targets": (table, {"targets": "target", "intervention": kind}),
                "unknown targets": (table, {"contexts": "target"}),
            }
            for name, (data, reading) in readings.items():
                if name == "unknown targets" and done == "noise":
                    continue
                start = time.process_time()
                post = gpn.sample(data, **reading, **settings)
                row = {"done": done, "rows": name, "shd": post.expected_shd(truth).value, "seed": seed}
                row["cpu"] = time.process_time() - start
                if name == "unknown targets":
                    found = post.target_probabilities()
                    real = np.array([[context == name for name in found.columns] for context in found.index])
                    row["auroc"] = roc_auc_score(real.ravel(), found.to_numpy().ravel())
                rows.append(row)
        print(seed, pd.DataFrame(rows).groupby(["done", "rows"])[["shd", "cpu"]].mean().round(2).to_dict(), flush=True)
    results = pd.DataFrame(rows)
    print(results.groupby(["done", "rows"])[["shd", "auroc", "cpu"]].agg(["mean", "sem"]).round(3).to_string())
    shd = results.pivot_table(index=["done", "seed"], columns="rows", values="shd")
    for done in ("noise", "shift"):
        gain = shd.loc["noise", "observed rows"] - shd.loc[done, "known targets"]
        assert gain.mean() > 2 * gain.sem()
    assert results["auroc"].mean() > 0.9
