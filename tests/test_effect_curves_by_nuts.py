"""Curves of effects against the same network in PyMC: hyperparameters by NUTS, functions with every matrix dense."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from arviz_stats.base import array_stats

import gpn_bayes as gpn
from gpn_bayes.scores.gp.pymc_model import pymc_model

pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c"]
PARENTS = {"b": ["a"], "c": ["a", "b"]}
POINTS, DRAWS, CHAINS, JITTER = 7, 600, 2, 1e-9


def table(rows=60):
    """Return rows of a -> b -> c and a -> c, of which the direct and the indirect effect of a differ in shape."""
    rng = np.random.default_rng(4)
    a = rng.uniform(-2, 2, rows)
    b = np.sin(1.5 * a) + 0.4 * rng.normal(size=rows)
    c = 0.4 * a + np.cos(2 * b) + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"a": 20 + 3 * a, "b": b, "c": 10 * c})


def kernel(x, z, theta):
    return np.exp(-0.5 * ((x[:, None] - z) / theta) ** 2)


def drawn_functions(x, y, phi, grids, rng):
    """Draw the mean and a function of each parent, on a grid each, given hyperparameters: (mean, [values, …])."""
    sigma, thetas = phi["sigma"], phi["theta"]
    at_rows = [kernel(own, own, theta) for own, theta in zip(x.T, thetas, strict=True)]
    covariance = sum(at_rows) + 1.0 + sigma**2 * np.eye(len(y))
    ends = np.cumsum([1, *(len(grid) for grid in grids)])
    # What is wanted: the mean, then every function on its grid; a priori they are independent.
    prior = np.zeros((ends[-1], ends[-1]))
    prior[0, 0] = 1.0
    crossed = np.ones((ends[-1], len(y)))
    for begin, end, grid, own, theta in zip(ends[:-1], ends[1:], grids, x.T, thetas, strict=True):
        prior[begin:end, begin:end] = kernel(grid, grid, theta)
        crossed[begin:end] = kernel(grid, own, theta)
    solved = np.linalg.solve(covariance, crossed.T)
    left = prior - crossed @ solved
    root = np.linalg.cholesky(left + JITTER * np.eye(len(left)))
    values = solved.T @ y + root @ rng.standard_normal(len(left))
    return values[0], np.split(values[1:], ends[1:-1] - 1)


def hyperparameters(values, node, seed):
    """Draw a node's hyperparameters by NUTS: a list of them, chain by chain."""
    with pymc_model(values, NAMES, node, PARENTS[node]):
        found = pm.sample(
            DRAWS, tune=600, chains=CHAINS, cores=1, random_seed=seed, progressbar=False, target_accept=0.9
        )
    sigma, theta = (found.posterior[name].to_numpy() for name in ("sigma", "theta"))
    return [
        {"sigma": own, "theta": scales}
        for own, scales in zip(sigma.ravel(), theta.reshape(-1, theta.shape[-1]), strict=True)
    ]


def curves_by_nuts(data, grid):
    """Return draws of E[c | do(a)], of shape (draw, point), and those of them without the path by way of b."""
    values = ((data - data.mean()) / data.std()).to_numpy()
    a, b, c = values.T
    at = (grid - data["a"].mean()) / data["a"].std()
    wide = np.linspace(b.min() - 3, b.max() + 3, 161)
    rng = np.random.default_rng(8)
    whole, direct = [], []
    for of_b, of_c in zip(hyperparameters(values, "b", 1), hyperparameters(values, "c", 2), strict=True):
        mean_b, (f,) = drawn_functions(a[:, None], b, of_b, [at], rng)
        mean_c, (g, h) = drawn_functions(np.column_stack([a, b]), c, of_c, [at, wide], rng)
        noise = of_b["sigma"] * rng.standard_normal(200)
        through = np.interp(mean_b + f[:, None] + noise, wide, h).mean(axis=1)
        whole.append(mean_c + g + through)
        direct.append(mean_c + g + np.interp(b, wide, h).mean())
    return (data["c"].mean() + data["c"].std() * np.array(drawn) for drawn in (whole, direct))


def test_curves_agree_with_nuts():
    data = table()
    required = [(parent, child) for child, own in PARENTS.items() for parent in own]
    forbidden = [(x, y) for x in NAMES for y in NAMES if x != y and (x, y) not in required]
    post = gpn.sample(
        data, score="gp", required=required, forbidden=forbidden, draws=500, random_seed=1, progressbar=False
    )
    effect = post.effect("a", "c", points=POINTS, draws=2000, progressbar=False)
    grid = effect.mean["cause"].to_numpy()
    by_nuts, direct = curves_by_nuts(data, grid)
    errors = [
        array_stats.mcse(own.reshape(CHAINS, DRAWS), chain_axis=0, draw_axis=1, method="mean") for own in by_nuts.T
    ]
    error = np.hypot(effect.mcse.to_numpy(), errors)
    gap = np.abs(effect.mean.to_numpy() - by_nuts.mean(axis=0)) / error
    print("differences in standard errors:", gap.round(2))
    print("standard deviations, ours and NUTS':", effect.sd.to_numpy().round(2), by_nuts.std(axis=0).round(2))
    assert (gap < 4).all()
    np.testing.assert_allclose(effect.sd, by_nuts.std(axis=0), rtol=0.15)
    # A negative control: a curve without the path through b is clearly different.
    assert (np.abs(direct.mean(axis=0) - by_nuts.mean(axis=0)) > 4 * error).sum() > POINTS // 2
