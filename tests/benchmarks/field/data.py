"""The data that all programs get: families of networks, each a function of the number of variables, rows and a seed.

Every column is centred and scaled by the rows that are learned from, so that no program can read an order off the
variances. 200 further rows, in the same units, are held out. The families:

- ``linear``, ``fourier``, ``mlp``: our simulators on Erdős-Rényi DAGs with 1.5 edges per variable;
- ``gp``: functions drawn from a Gaussian process, on the same kind of DAG;
- ``linear-sf``, ``fourier-sf``: on scale-free DAGs with two edges per variable;
- ``arco``: ARCO-GP's own simulator, non-linear, with its own Erdős-Rényi DAGs (four neighbours per variable);
- ``dibs``: DiBS's own simulator of neural networks, with its own Erdős-Rényi DAGs (two edges per variable);
- ``sachs``: cells drawn from the Sachs data without replacement (11 proteins), against the consensus of 17 edges.
"""

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests.benchmarks.asking import ask
from tests.benchmarks.field.programs import OURS, interpreter

HELD_OUT = 200
EDGES_PER_NODE = {"er": 1.5, "sf": 2}
OTHERS_SIMULATORS = {"arco": ("ARCO_GP_PYTHON", "arco_gp_worker.py"), "dibs": ("DIBS_PYTHON", "dibs_worker.py")}
FAMILIES = ("linear", "fourier", "mlp", "gp", "linear-sf", "fourier-sf", "arco", "dibs", "sachs")
_WAVES = 500


class Problem(NamedTuple):
    """Rows to learn from, rows held out, the true DAG, and the true total effects where relations are linear."""

    table: pd.DataFrame
    held_out: pd.DataFrame
    truth: np.ndarray
    effects: np.ndarray | None


def simulator(family: str) -> str:
    """Return the environment variable that names the interpreter which draws a family."""
    return OTHERS_SIMULATORS[family][0] if family in OTHERS_SIMULATORS else OURS


def problem(family: str, n: int, rows: int, seed: int) -> Problem:
    """Return the data of a family; the same arguments give the same data."""
    if family in OTHERS_SIMULATORS:
        return _scaled(*_by_others(family, n, rows, seed), rows)
    if family == "sachs":
        return _sachs(n, rows, seed)
    relation, _, kind = family.partition("-")
    # Not from the family and the rows: the DAGs of a seed are the same in all families, and its equations for any rows.
    rng = np.random.default_rng([n, seed])
    kind = kind or "er"
    dag = gpn.simulate.random_dag(n, kind, edges_per_node=EDGES_PER_NODE[kind], random_seed=rng)
    # A network without edges has no ROC curve; none of ours is that sparse but by chance.
    while not dag.number_of_edges():
        dag = gpn.simulate.random_dag(n, kind, edges_per_node=EDGES_PER_NODE[kind], random_seed=rng)
    total = rows + HELD_OUT
    if relation == "gp":
        table = _gp(dag, total, rng)
    else:
        settings: dict[str, Any] = {"lam": 1.0} if relation == "fourier" else {}
        table = getattr(gpn.simulate, relation)(dag, total, random_seed=rng, **settings)
    truth = graphs.as_adjacency(dag, list(table))
    weights = np.array(table.attrs["weights"]) if relation == "linear" else None
    return _scaled(table, truth, weights, rows)


def _scaled(table: pd.DataFrame, truth: np.ndarray, weights: np.ndarray | None, rows: int) -> Problem:
    learned = table.iloc[:rows]
    spread = learned.std()
    scaled = (table - learned.mean()) / spread
    scaled.attrs = {}
    effects = None
    if weights is not None:
        totals = np.linalg.inv(np.eye(len(truth)) - weights) - np.eye(len(truth))
        effects = totals * spread.to_numpy()[:, None] / spread.to_numpy()
    return Problem(scaled.iloc[:rows], scaled.iloc[rows:], np.asarray(truth), effects)


def _gp(dag: nx.DiGraph, rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return data whose every edge is a function drawn from a Gaussian process of its scaled parent.

    The kernel is squared exponential with unit variance and a length scale uniform in (0.7, 1.5); it is drawn as a sum
    of random waves. The standard deviation of the noise is uniform in (0.4, 0.8).
    """
    spreads = dict(zip(dag, rng.uniform(0.4, 0.8, len(dag)), strict=True))
    waves = {
        edge: (rng.standard_normal(_WAVES) / rng.uniform(0.7, 1.5), rng.uniform(0, 2 * np.pi, _WAVES))
        for edge in dag.edges
    }
    values: dict[str, np.ndarray] = {}
    for node in nx.topological_sort(dag):
        own = spreads[node] * rng.standard_normal(rows)
        for parent in dag.predecessors(node):
            frequencies, phases = waves[parent, node]
            scaled = (values[parent] - values[parent].mean()) / values[parent].std()
            own = own + np.sqrt(2 / _WAVES) * np.cos(scaled[:, None] * frequencies + phases).sum(axis=1)
        values[node] = own
    return pd.DataFrame(values)[list(dag)]


def _by_others(family: str, n: int, rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, None]:
    variable, worker = OTHERS_SIMULATORS[family]
    python = interpreter(variable)
    if python is None:
        raise ValueError(f"the family {family!r} comes from another program: set {variable} to its interpreter")
    reply = ask(python, worker, {"simulate": n, "rows": rows + HELD_OUT, "seed": seed})
    truth = np.array(reply["truth"])
    return pd.DataFrame(reply["rows"], columns=[f"v{i + 1}" for i in range(n)]), truth, None


def _sachs(n: int, rows: int, seed: int) -> Problem:
    cells = gpn.datasets.sachs(transform="log2")
    if n != cells.shape[1] or rows > len(cells):
        raise ValueError(f"the Sachs data have {cells.shape[1]} variables and {len(cells)} rows; received {n}, {rows}")
    order = np.random.default_rng([n, seed]).permutation(len(cells))
    truth = graphs.as_adjacency(gpn.datasets.sachs_consensus(17), list(cells))
    return _scaled(cells.iloc[order[: rows + HELD_OUT]].reset_index(drop=True), truth, None, rows)
