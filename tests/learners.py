"""Data, rules and brute force for the tests of point estimates."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from gpn_bayes import graphs, simulate
from gpn_bayes.estimators.parent_sets import gather, scored_nodes

DISCRETE = Path(__file__).parent / "reference" / "discrete"


def discrete(name):
    """Return a discrete reference table and what is known of it."""
    return pd.read_csv(DISCRETE / f"{name}_1000_codes.csv"), json.loads((DISCRETE / f"{name}_results.json").read_text())


def linear_table(n, seed=1, n_rows=100):
    """Return linear data from a random DAG with named columns."""
    dag = simulate.random_dag(n, edges_per_node=min(1.5, (n - 1) / 2), random_seed=seed)
    table = simulate.linear(dag, n_rows, random_seed=seed)
    return table.set_axis([f"x{i}" for i in range(n)], axis=1)


def all_parent_sets(problem):
    """Return every parent set within the limit that holds the required edges: nothing is pruned."""
    return gather([known for _, known in scored_nodes(problem)], problem.n)


def random_rules(n, seed):
    """Return required and forbidden edges, tiers and a parent limit that don't contradict each other."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(n)]
    tier = rng.integers(0, 3, n) if rng.random() < 0.5 else np.zeros(n, dtype=int)
    # A hidden order, along the tiers, that the required edges follow.
    place = np.argsort(np.lexsort([rng.random(n), tier]))
    along = place[:, None] < place[None, :]
    required = along & (rng.random((n, n)) < 0.15)
    forbidden = ~required & ~np.eye(n, dtype=bool) & (rng.random((n, n)) < 0.2)
    return {
        "required": [(names[i], names[j]) for i, j in np.argwhere(required)],
        "forbidden": [(names[i], names[j]) for i, j in np.argwhere(forbidden)],
        "tiers": dict(zip(names, tier.tolist(), strict=True)),
        "max_parents": int(max(required.sum(axis=0).max(), rng.integers(0, n))),
    }


def assert_obeys(adjacency, rules):
    """Check that a graph is a DAG and keeps the rules."""
    assert graphs.is_acyclic(adjacency)
    tier = np.array(list(rules["tiers"].values()))
    edges = {(f"x{i}", f"x{j}") for i, j in np.argwhere(adjacency)}
    assert set(rules["required"]) <= edges
    assert not set(rules["forbidden"]) & edges
    assert all(tier[i] <= tier[j] for i, j in np.argwhere(adjacency))
    assert adjacency.sum(axis=0).max() <= rules["max_parents"]


def best_by_enumeration(problem):
    """Return the highest score of all DAGs that keep a problem's rules."""
    dags = graphs.enumerate_dags(problem.n)
    allowed = (
        ~(problem.prior.required & (dags == 0)).any(axis=(1, 2))
        & ~(problem.prior.forbidden & (dags == 1)).any(axis=(1, 2))
        & (dags.sum(axis=1).max(axis=1) <= problem.max_parents)
    )
    return max(problem.total(dag) for dag in dags[allowed])
