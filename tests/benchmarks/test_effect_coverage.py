"""How often 90% intervals of effects hold the truth: 200 linear and 60 curved networks of six variables.

True DAGs are uniform, as the prior has them. Linear networks come in three kinds, of which the posterior knows nothing:

- parameters from the prior of BGe itself, for which intervals must hold the truth as often as they say;
- weights uniform in ±(0.5, 2), each variable scaled to variance 1 as it is made;
- such weights with noise of variance 1, so that variances grow along the arrows.

Curved networks come in two: functions, noise and means from the prior of the GP score itself, and Fourier series.

With ``EFFECT_COVERAGE=folder`` every network's table is kept there, and one that is there isn't run again. Run with
``pytest -m slow -n 0 -s tests/benchmarks/test_effect_coverage.py``; the linear part takes a few minutes on one core,
the curved part about half an hour.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests.benchmarks.paper import draw, show
from tests.benchmarks.prior_networks import (
    average_slopes,
    curved_equation,
    curved_values,
    linear_equation,
    uniform_dag,
)

pytestmark = pytest.mark.slow

N, LEVEL = 6, 0.9
LINEAR, LINEAR_ROWS = 200, 200
CURVED, CURVED_ROWS, TRUTH_ROWS = 60, 300, 40_000
# Rows in which the true effects of drawn processes are simulated, with the same noise for every value of the cause. The
# prior of the noise is light-tailed, so that few networks are nearly all noise.
PRIOR_TRUTH_ROWS, NOISE_PRIOR = 4_000, (3.0, 1.0)
# The values of the cause between which `effects` takes the slopes of a curve.
POINTS = 9


def judged(post: gpn.GraphPosterior, dag: nx.DiGraph, truth: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return for every ordered pair its true effect, and whether the intervals hold it."""
    # Where there is no path, what rounding or a simulation leaves isn't an effect.
    truth = truth.where(graphs.ancestors(graphs.as_adjacency(dag, list(truth))), 0.0)
    found = post.effects(probability=LEVEL, progressbar=False).set_index(["cause", "outcome"])
    found["truth"] = [truth.loc[pair] for pair in found.index]
    found["held"] = found["truth"].between(found["lower"], found["upper"])
    found["held_given_path"] = found["truth"].between(found["lower_given_path"], found["upper_given_path"])
    found["network"] = seed
    return found.reset_index()


type Equations = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, float]]


def from_prior(parents: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return weights and the noise's standard deviation by BGe's prior."""
    return linear_equation(N, len(parents), rng)


def scaled(parents: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return weights and the noise's standard deviation such that the variable has variance 1."""
    weights, noise = unit_noise(parents, covariance, rng)
    spread = np.sqrt(weights @ covariance[np.ix_(parents, parents)] @ weights + noise**2)
    return weights / spread, noise / float(spread)


def unit_noise(parents: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return weights, noise having variance 1."""
    return rng.uniform(0.5, 2, len(parents)) * rng.choice([-1, 1], len(parents)), 1.0


def linear_network(equations: Equations, score: Any, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 1])
    dag = uniform_dag(N, rng)
    matrix = graphs.as_adjacency(dag, list(dag))
    weights, covariance, values = np.zeros((N, N)), np.zeros((N, N)), np.zeros((LINEAR_ROWS, N))
    for node in graphs.topological_order(matrix):
        parents = np.flatnonzero(matrix[:, node])
        weights[parents, node], sd = equations(parents, covariance, rng)
        values[:, node] = values @ weights[:, node] + sd * rng.standard_normal(LINEAR_ROWS)
        covariance[node] = covariance[:, node] = covariance @ weights[:, node]
        covariance[node, node] = weights[:, node] @ covariance[:, node] + sd**2
    data = pd.DataFrame(values, columns=list(dag))
    post, _ = draw(data, score)
    totals = np.linalg.inv(np.eye(N) - weights)
    return judged(post, dag, pd.DataFrame(totals, data.columns, data.columns), seed)


def curved_network(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 2])
    dag = uniform_dag(N, rng)
    source = int(rng.integers(2**32))
    data = gpn.simulate.fourier(dag, CURVED_ROWS, lam=1.0, random_seed=source)
    names = list(data.columns)
    truth = pd.DataFrame(0.0, names, names)
    for cause in names:
        column = data[cause].to_numpy()
        grid = np.linspace(column.min(), column.max(), POINTS)
        means = np.array([expected(dag, source, cause, value, names) for value in grid])
        truth.loc[cause] = average_slopes(means, grid, column)
    post, _ = draw(data, "gp")
    return judged(post, dag, truth, seed)


def curved_prior_network(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 3])
    dag = uniform_dag(N, rng)
    names = list(dag)
    equations = {name: curved_equation(dag.in_degree(name), NOISE_PRIOR, rng) for name in names}
    noise = rng.standard_normal((N, CURVED_ROWS + PRIOR_TRUTH_ROWS))
    data = pd.DataFrame(curved_values(dag, equations, noise[:, :CURVED_ROWS], {}))[names]
    truth = pd.DataFrame(0.0, names, names)
    for cause in names:
        column = data[cause].to_numpy()
        grid = np.linspace(column.min(), column.max(), POINTS)
        values = [curved_values(dag, equations, noise[:, CURVED_ROWS:], {cause: value}) for value in grid]
        means = np.array([[own[name].mean() for name in names] for own in values])
        truth.loc[cause] = average_slopes(means, grid, column)
    post, _ = draw(data, gpn.scores.GP(standardise=False, sigma=NOISE_PRIOR))
    return judged(post, dag, truth, seed)


def expected(dag: nx.DiGraph, source: int, cause: str, value: float, names: list[str]) -> np.ndarray:
    """Return the means of all variables if one is set, by simulation from the equations of the observed rows."""
    rows = {"": CURVED_ROWS, cause: TRUTH_ROWS}
    table = gpn.simulate.fourier(dag, rows, lam=1.0, random_seed=source, interventions={cause: float(value)})
    return table.loc[CURVED_ROWS:, names].mean().to_numpy()


def tables_of(kind: str, networks: int, run: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
    folder = os.environ.get("EFFECT_COVERAGE")
    tables = []
    for seed in range(networks):
        file = Path(folder) / f"{kind}_{seed}.csv" if folder else None
        if file is not None and file.exists():
            tables.append(pd.read_csv(file))
            continue
        tables.append(run(seed))
        if file is not None:
            tables[-1].to_csv(file, index=False)
    return pd.concat(tables, ignore_index=True)


def coverage(pairs: pd.DataFrame, given: str = "") -> pd.Series:
    """Return the share of intervals that hold the truth, with its standard error over networks."""
    by_network = pairs.groupby("network")[f"held{given}"].agg(["sum", "count"])
    share = by_network["sum"].sum() / by_network["count"].sum()
    left = by_network["sum"] - share * by_network["count"]
    error = np.sqrt((left**2).sum()) / by_network["count"].sum()
    width = (pairs[f"upper{given}"] - pairs[f"lower{given}"]).median()
    return pd.Series({"share": share, "error": error, "pairs": len(pairs), "median width": width})


def summary(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return how often intervals hold the truth.

    A pair without an effect is held wherever the point mass at zero reaches the interval, nearly always; so if 90% of
    all are to be held, it must be fewer of those with an effect. Given that there is a path, intervals must hold 90%.
    """
    some = pairs["truth"] != 0
    return pd.DataFrame({
        "all pairs": coverage(pairs), "with an effect, given a path": coverage(pairs[some], "_given_path"),
        "with an effect": coverage(pairs[some]), "without": coverage(pairs[~some]),
    }).T  # fmt: skip


@pytest.mark.parametrize(("kind", "networks", "run"), [
    ("linear_prior", LINEAR, partial(linear_network, from_prior, gpn.scores.BGe(standardise=False))),
    ("linear_scaled", LINEAR, partial(linear_network, scaled, "bge")),
    ("linear_unit_noise", LINEAR, partial(linear_network, unit_noise, "bge")),
    ("curved_prior", CURVED, curved_prior_network),
    ("curved", CURVED, curved_network),
])  # fmt: skip
def test_intervals_hold_the_truth(kind: str, networks: int, run: Callable[[int], pd.DataFrame]) -> None:
    pairs = tables_of(kind, networks, run)
    found = summary(pairs)
    show(f"{kind}: {networks} networks of {N} variables, 90% intervals", found)
    assert found.loc["all pairs", "share"] >= 0.85
    assert 0.85 <= found.loc["with an effect, given a path", "share"] <= 0.95
    # A negative control: intervals half as wide hold the truth far less often.
    own = pairs[pairs["truth"] != 0]
    ends = own["upper_given_path"], own["lower_given_path"]
    middle, half = 0.5 * (ends[0] + ends[1]), 0.25 * (ends[0] - ends[1])
    assert ((own["truth"] - middle).abs() <= half).mean() < 0.8
