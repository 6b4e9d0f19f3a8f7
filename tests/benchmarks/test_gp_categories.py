"""Gaussian processes behind categories: four variables against enumeration, and the time per score.

Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_gp_categories.py``.
"""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests import latent_reference

pytestmark = pytest.mark.slow


def test_four_variables_are_those_of_enumeration():
    """All local scores and all edge probabilities, where two of four variables are 0/1 columns."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=40)
    b = (2 * x + rng.logistic(size=40) > 0).astype(int)
    y = np.sin(2 * x) + b + 0.5 * rng.normal(size=40)
    c = (y**2 - 1 + rng.logistic(size=40) > 0).astype(int)
    table = pd.DataFrame({"x": x, "y": y, "b": b, "c": c})
    scorer = gpn.scores.GP().bind(table)
    reference, errors = np.empty((4, 16)), []
    for node in range(4):
        for mask in range(16):
            if mask >> node & 1:
                continue
            parents = tuple(p for p in range(4) if mask >> p & 1)
            distances = [(scorer.values[:, None, p] - scorer.values[:, p]) ** 2 for p in parents]
            batch = scorer.score_sets(node, [parents])
            if node < 2:
                estimates = [number_log_evidence(scorer.values[:, node], distances, seed) for seed in (1, 2)]
                expected, uncertain = np.mean(estimates), np.ptp(estimates) / 2
            elif not parents:
                expected, uncertain = latent_reference.log_evidence_of_two_levels(table.iloc[:, node]), 0.0
            else:
                expected, uncertain = precise_log_evidence(table.iloc[:, node].to_numpy(), distances)
            reference[node, mask] = expected
            errors.append((batch.values[0] - expected, np.hypot(batch.errors[0], uncertain)))
    off, stated = np.array(errors).T
    ratios = np.abs(off) / stated
    print(
        f"largest difference of a score {np.abs(off).max():.3f}, mean {np.abs(off).mean():.3f}; in stated errors: "
        f"largest {ratios.max():.1f}, within one {np.mean(ratios < 1):.2f}, within two {np.mean(ratios < 2):.2f}"
    )
    assert np.abs(off).max() < 0.1
    assert ratios.max() < 4
    dags = graphs.enumerate_dags(4)
    masks = (dags * (1 << np.arange(4))[None, :, None]).sum(axis=1)
    totals = reference[np.arange(4), masks].sum(axis=1)
    weights = np.exp(totals - logsumexp(totals))
    expected = np.tensordot(weights, dags, axes=1)
    post = gpn.sample(table, score="gp", sampler=gpn.samplers.Exact(reweight=None), random_seed=1, progressbar=False)
    found = post.edge_probabilities().to_numpy()
    print(f"largest difference of an edge probability {np.abs(found - expected).max():.3f}")
    assert np.abs(found - expected).max() < 0.03


def precise_log_evidence(levels, distances):
    """Return that of a category of two levels, with more and more draws until its error is a fifth of the bound's."""
    for log2 in (9, 11, 13):
        estimates = [
            latent_reference.log_evidence(levels, 2, True, distances, log2=log2, inner=32, seed=seed)[0]
            for seed in (1, 2, 3)
        ]
        expected, uncertain = np.mean(estimates), np.std(estimates, ddof=1) / np.sqrt(3)
        if uncertain < 0.02:
            break
    return expected, uncertain


def number_log_evidence(y, distances, seed, log2=12):
    """Return that of a number, by quasi-random draws of the prior."""
    uniform = stats.qmc.Sobol(1 + len(distances), seed=seed).random_base2(log2)
    sigma, thetas = stats.invgamma(1, scale=1).ppf(uniform[:, 0]), stats.invgamma(2, scale=2).ppf(uniform[:, 1:])
    logs = []
    for s, own in zip(sigma, thetas, strict=True):
        root = np.linalg.cholesky(latent_reference.covariance(distances, own) + s**2 * np.eye(len(y)))
        white = np.linalg.solve(root, y)
        logs.append(-0.5 * white @ white - np.log(np.diag(root)).sum() - 0.5 * len(y) * np.log(2 * np.pi))
    return float(logsumexp(logs) - np.log(len(logs)))


@pytest.mark.parametrize("rows", [100, 1000, 10_000])
def test_time_per_score(rows):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, 3))
    behind = 2 * np.sin(2 * x[:, 0]) + x[:, 1] + rng.logistic(size=rows)
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(
        ill=(behind > 0).astype(int), site=np.array(["u", "v", "w"])[np.searchsorted([-1, 1], behind)]
    )
    for estimator in ("laplace", "importance"):
        scorer = gpn.scores.GP(estimator=estimator).bind(table)
        for node in ("ill", "site"):
            scorer.local(node, ["a"])  # compiled, and the rows prepared
            spent = []
            for parents in (["a"], ["a", "b"], ["a", "b", "c"]):
                began = time.process_time()
                scorer.score_sets(scorer.index(node), [tuple(scorer.index(p) for p in parents)])
                spent.append(time.process_time() - began)
            print(f"{rows} rows, {node}, {estimator}: " + " / ".join(f"{s:.2f} s" for s in spent))
            assert max(spent) < 600
