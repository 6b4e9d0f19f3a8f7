"""What missing values cost: expected SHD of complete tables, of tables imputed along the way, and of complete rows.

Five linear networks of ten variables with 200 rows, of which 5 % and 15 % of the entries are missing completely at
random. Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_imputation.py``; it takes some minutes.
"""

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn

pytestmark = pytest.mark.slow

NETWORKS, N, ROWS = 5, 10, 200


def expected_shds(seed: int, share: float) -> dict[str, float]:
    """Return the expected SHD between equivalence classes, of one network by all ways."""
    rng = np.random.default_rng(seed)
    truth = gpn.simulate.random_dag(N, p=2 / (N - 1), random_seed=rng)
    complete = gpn.simulate.linear(truth, ROWS, random_seed=seed)
    gaps = complete.mask(rng.random(complete.shape) < share)
    settings = {"score": "bge", "draws": 500, "tune": 200, "random_seed": 1, "progressbar": False}
    ways = {
        "complete": gpn.sample(complete, **settings),
        "impute": gpn.sample(gaps, missing="impute", **settings),
        "drop": gpn.sample(gaps, missing="drop", **settings),
        "means": gpn.sample(gaps.fillna(gaps.mean()), **settings),
    }
    found = {way: post.expected_shd(truth, cpdag=True).value for way, post in ways.items()}
    return found | {"rows left": float(len(gaps.dropna()))}


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_imputed_tables_lose_less_than_dropped_rows(share):
    found = pd.DataFrame([expected_shds(seed, share) for seed in range(NETWORKS)])
    print(f"\n{share:.0%} missing\n{found.round(1).to_string()}\n{found.mean().round(2).to_string()}")
    means = found.mean()
    assert means["complete"] < means["impute"] < means["drop"]
