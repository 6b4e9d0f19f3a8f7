"""The data that all programs get: families of networks, each a function of the number of variables, rows and a seed.

Every column is centred and scaled by the rows that are learned from, so that no program can read an order off the
variances. 200 further rows, in the same units, are held out. The families:

- ``linear``, ``fourier``, ``mlp``: our simulators on Erdős-Rényi DAGs with 1.5 edges per variable;
- ``gp``: functions drawn from a Gaussian process, on the same kind of DAG;
- ``heavy-tails``, ``uneven-noise``, ``outliers``, ``hidden-causes``: the same with noise that is Student t with two
  degrees of freedom, or whose standard deviation grows by a factor of e for each standard deviation of the parents'
  mean; with 3% of the values off by five to ten standard deviations, as wrong measurements are; or with a common cause
  of two variables that isn't measured, one for every four variables;
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
# Functions drawn from a Gaussian process, with one thing that no score of numbers assumes.
WRONG = ("heavy-tails", "uneven-noise", "outliers", "hidden-causes")
FAMILIES = ("linear", "fourier", "mlp", "gp", *WRONG, "linear-sf", "fourier-sf", "arco", "dibs", "sachs")
_WAVES = 500
_DEGREES_OF_FREEDOM = 2
_SHARE_OF_OUTLIERS, _OFF_BY = 0.03, (5.0, 10.0)
_VARIABLES_PER_HIDDEN_CAUSE = 4


class Problem(NamedTuple):
    """Rows to learn from, rows held out, the true DAG, and the true total effects where relations are linear."""

    table: pd.DataFrame
    held_out: pd.DataFrame
    truth: np.ndarray
    effects: np.ndarray | None


def simulator(family: str) -> str:
    """Return the environment variable that names the interpreter which draws a family."""
    return OTHERS_SIMULATORS[family][0] if family in OTHERS_SIMULATORS else OURS


def check_size(family: str, n: int, rows: int) -> None:
    """Refuse sizes that a family doesn't have."""
    if family == "sachs":
        most, variables = gpn.datasets.sachs().shape
        if n != variables or rows > most:
            raise ValueError(f"the Sachs data have {variables} variables and {most} rows; received {n}, {rows}")


def problem(family: str, n: int, rows: int, seed: int) -> Problem:
    """Return the data of a family; the same arguments give the same data."""
    check_size(family, n, rows)
    if family in OTHERS_SIMULATORS:
        return _scaled(*_by_others(family, n, rows, seed), rows)
    if family == "sachs":
        return _sachs(n, rows, seed)
    relation, _, kind = (family, "", "") if family in WRONG else family.partition("-")
    # Not from the family and the rows: the DAGs of a seed are the same in all families, and its equations for any rows.
    rng = np.random.default_rng([n, seed])
    kind = kind or "er"
    dag = gpn.simulate.random_dag(n, kind, edges_per_node=EDGES_PER_NODE[kind], random_seed=rng)
    # A network without edges has no ROC curve; none of ours is that sparse but by chance.
    while not dag.number_of_edges():
        dag = gpn.simulate.random_dag(n, kind, edges_per_node=EDGES_PER_NODE[kind], random_seed=rng)
    table = rows_of(relation, dag, rows + HELD_OUT, rng)
    truth = graphs.as_adjacency(dag, list(table))
    weights = np.array(table.attrs["weights"]) if relation == "linear" else None
    return _scaled(table, truth, weights, rows)


def rows_of(relation: str, dag: nx.DiGraph, rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of a DAG with relations of a kind, in the units in which they are made."""
    if relation == "hidden-causes":
        return _gp(_with_hidden_causes(dag, rng), rows, rng)[list(dag)]
    if relation == "outliers":
        return _with_outliers(_gp(dag, rows, rng), rng)
    if relation == "gp" or relation in WRONG:
        return _gp(dag, rows, rng, relation)
    settings: dict[str, Any] = {"lam": 1.0} if relation == "fourier" else {}
    table: pd.DataFrame = getattr(gpn.simulate, relation)(dag, rows, random_seed=rng, **settings)
    return table


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


def _gp(dag: nx.DiGraph, rows: int, rng: np.random.Generator, noise: str = "gp") -> pd.DataFrame:
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
        scaled = {parent: _standardised(values[parent]) for parent in dag.predecessors(node)}
        spread = spreads[node]
        if noise == "uneven-noise" and scaled:
            spread = spread * np.exp(_standardised(sum(scaled.values())))
        heavy = noise == "heavy-tails"
        own = spread * (rng.standard_t(_DEGREES_OF_FREEDOM, rows) if heavy else rng.standard_normal(rows))
        for parent, column in scaled.items():
            frequencies, phases = waves[parent, node]
            own = own + np.sqrt(2 / _WAVES) * np.cos(column[:, None] * frequencies + phases).sum(axis=1)
        values[node] = own
    return pd.DataFrame(values)[list(dag)]


def _standardised(column: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = (column - column.mean()) / column.std()
    return scaled


def _with_outliers(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of which some values were measured wrongly, after they had their effects."""
    wrong = rng.random(table.shape) < _SHARE_OF_OUTLIERS
    off = rng.uniform(*_OFF_BY, table.shape) * rng.choice([-1.0, 1.0], table.shape)
    return table + np.where(wrong, off, 0.0) * table.std().to_numpy()


def _with_hidden_causes(dag: nx.DiGraph, rng: np.random.Generator) -> nx.DiGraph:
    """Return a DAG in which pairs of variables have common causes of their own."""
    whole = dag.copy()
    for k in range(-(-len(dag) // _VARIABLES_PER_HIDDEN_CAUSE)):
        pair = rng.choice(len(dag), 2, replace=False)
        whole.add_edges_from((f"hidden {k + 1}", list(dag)[i]) for i in pair)
    return whole


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
    order = np.random.default_rng([n, seed]).permutation(len(cells))
    truth = graphs.as_adjacency(gpn.datasets.sachs_consensus(17), list(cells))
    return _scaled(cells.iloc[order[: rows + HELD_OUT]].reset_index(drop=True), truth, None, rows)
