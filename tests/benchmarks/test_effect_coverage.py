"""How often 90% intervals of effects hold the truth: 200 linear and 60 curved networks of six variables.

True DAGs are uniform among those with as many edges, so that no direction within an equivalence class is favoured. With
``EFFECT_COVERAGE=folder`` every network's table is kept there, and one that is there isn't run again. Run with
``pytest -m slow -n 0 -s tests/benchmarks/test_effect_coverage.py``; the linear part takes a few minutes on one core,
the curved part about half an hour.
"""

import os
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests.benchmarks.paper import draw, show

pytestmark = pytest.mark.slow

N, EDGES_PER_NODE, LEVEL = 6, 1.5, 0.9
LINEAR, LINEAR_ROWS = 200, 200
CURVED, CURVED_ROWS, TRUTH_ROWS = 60, 300, 40_000
# The values of the cause between which `effects` takes the slopes of a curve.
POINTS = 9


def true_dag(rng: np.random.Generator) -> nx.DiGraph:
    """Return a random DAG. A random order favours DAGs with many orders, which is undone by rejection."""
    while True:
        dag = gpn.simulate.random_dag(N, edges_per_node=EDGES_PER_NODE, random_seed=rng)
        if rng.random() < 1 / graphs.count_linear_extensions(graphs.as_adjacency(dag, list(dag))):
            return dag


def judged(post: gpn.GraphPosterior, dag: nx.DiGraph, truth: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return for every ordered pair its true effect, and whether the interval holds it."""
    # Where there is no path, what rounding or a simulation leaves isn't an effect.
    truth = truth.where(graphs.ancestors(graphs.as_adjacency(dag, list(truth))), 0.0)
    found = post.effects(probability=LEVEL, progressbar=False).set_index(["cause", "outcome"])
    found["truth"] = [truth.loc[pair] for pair in found.index]
    found["held"] = (found["lower"] <= found["truth"]) & (found["truth"] <= found["upper"])
    found["network"] = seed
    return found.reset_index()


def linear_network(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 1])
    dag = true_dag(rng)
    data = gpn.simulate.linear(dag, LINEAR_ROWS, random_seed=rng)
    totals = np.linalg.inv(np.eye(N) - np.array(data.attrs["weights"]))
    post, _ = draw(data, "bge")
    return judged(post, dag, pd.DataFrame(totals, data.columns, data.columns), seed)


def curved_network(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 2])
    dag = true_dag(rng)
    source = int(rng.integers(2**32))
    data = gpn.simulate.fourier(dag, CURVED_ROWS, lam=1.0, random_seed=source)
    names = list(data.columns)
    truth = pd.DataFrame(0.0, names, names)
    for cause in names:
        column = data[cause].to_numpy()
        grid = np.linspace(column.min(), column.max(), POINTS)
        means = np.array([expected(dag, source, cause, value, names) for value in grid])
        shares = np.histogram(column, grid)[0] / len(column)
        truth.loc[cause] = shares @ (np.diff(means, axis=0) / np.diff(grid)[:, None])
    post, _ = draw(data, "gp")
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


def coverage(pairs: pd.DataFrame) -> pd.Series:
    """Return the share of intervals that hold the truth, with its standard error over networks."""
    by_network = pairs.groupby("network")["held"].agg(["sum", "count"])
    share = by_network["sum"].sum() / by_network["count"].sum()
    left = by_network["sum"] - share * by_network["count"]
    error = np.sqrt((left**2).sum()) / by_network["count"].sum()
    width = (pairs["upper"] - pairs["lower"]).median()
    return pd.Series({"share": share, "error": error, "pairs": len(pairs), "median width": width})


def summary(pairs: pd.DataFrame) -> pd.DataFrame:
    some = pairs["truth"] != 0
    return pd.DataFrame({
        "all pairs": coverage(pairs), "with an effect": coverage(pairs[some]), "without": coverage(pairs[~some]),
    }).T  # fmt: skip


@pytest.mark.parametrize(("kind", "networks", "run"), [
    ("linear", LINEAR, linear_network), ("curved", CURVED, curved_network),
])  # fmt: skip
def test_intervals_hold_the_truth(kind: str, networks: int, run: Callable[[int], pd.DataFrame]) -> None:
    pairs = tables_of(kind, networks, run)
    found = summary(pairs)
    show(f"{kind}: {networks} networks of {N} variables, 90% intervals", found)
    assert 0.85 <= found.loc["with an effect", "share"] <= 0.95
    # A pair without an effect is held wherever the point mass at zero reaches the interval, hence more often.
    assert found.loc["all pairs", "share"] >= 0.85
    # A negative control: intervals half as wide hold the truth far less often.
    middle, half = 0.5 * (pairs["upper"] + pairs["lower"]), 0.25 * (pairs["upper"] - pairs["lower"])
    some = pairs["truth"] != 0
    assert ((pairs["truth"] - middle).abs() <= half)[some].mean() < 0.8
