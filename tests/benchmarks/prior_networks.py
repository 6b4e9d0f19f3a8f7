"""Networks drawn from the priors that posteriors assume: uniform DAGs, and equations of BGe, BDeu and GP."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
from scipy.stats import invgamma, wishart

import gpn_bayes as gpn
from gpn_bayes import graphs

# Draws of a process are sums of this many waves.
WAVES = 1_000


def uniform_dag(n: int, rng: np.random.Generator) -> nx.DiGraph:
    """Return a uniform DAG: a random order favours DAGs with many orders, which is undone by rejection."""
    while True:
        dag = gpn.simulate.random_dag(n, p=0.5, random_seed=rng)
        if rng.random() < 1 / graphs.count_linear_extensions(graphs.as_adjacency(dag, list(dag))):
            return dag


def linear_equation(n: int, parents: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return weights and the noise's standard deviation by BGe's prior: those of a node in a Wishart precision."""
    # By default it has n + 2 degrees of freedom, and the parametric matrix is half of the identity.
    whole = np.linalg.inv(wishart(n + 2, 2 * np.eye(n), seed=rng).rvs())
    own, last = np.arange(parents), parents
    weights = np.linalg.solve(whole[np.ix_(own, own)], whole[own, last]) if len(own) else np.empty(0)
    return weights, float(np.sqrt(whole[last, last] - whole[last, own] @ weights))


def probability_table(levels: int, parents: Sequence[int], imagined: float, rng: np.random.Generator) -> np.ndarray:
    """Return probabilities of a node's levels, along the last axis, for those of its parents, with Dirichlet priors."""
    return rng.dirichlet(np.full(levels, imagined), size=tuple(parents))


class CurvedEquation(NamedTuple):
    """Functions of parents as sums of waves, (parents, waves), and the mean and the noise of a node."""

    frequencies: np.ndarray
    phases: np.ndarray
    mean: float
    sigma: float

    def values(self, parents: Sequence[np.ndarray], noise: np.ndarray) -> np.ndarray:
        """Return the node's values for those of its parents, with noise in units of `sigma`."""
        own = self.mean + self.sigma * noise
        for column, frequencies, phases in zip(parents, self.frequencies, self.phases, strict=True):
            waves = np.cos(column[:, None] * frequencies + phases)
            own = own + np.sqrt(2 / WAVES) * waves.sum(axis=1)
        return own


class StraightEquation(NamedTuple):
    """Weights of parents, and the mean and the noise of a node."""

    weights: np.ndarray
    mean: float
    sigma: float

    def values(self, parents: Sequence[np.ndarray], noise: np.ndarray) -> np.ndarray:
        """Return the node's values for those of its parents, with noise in units of `sigma`."""
        own = self.mean + self.sigma * noise
        return own + sum(weight * column for weight, column in zip(self.weights, parents, strict=True))


def curved_equation(parents: int, noise_prior: tuple[float, float], rng: np.random.Generator) -> CurvedEquation:
    """Return an equation drawn from the prior of the GP score, in which only that of the noise isn't the default."""
    theta = invgamma(2, scale=2).rvs(size=(parents, 1), random_state=rng)
    shape, scale = noise_prior
    return CurvedEquation(
        rng.standard_normal((parents, WAVES)) / theta, rng.uniform(0, 2 * np.pi, (parents, WAVES)),
        float(rng.standard_normal()), float(invgamma(shape, scale=scale).rvs(random_state=rng)),
    )  # fmt: skip


def curved_values(
    dag: nx.DiGraph,
    equations: Mapping[str, CurvedEquation | StraightEquation],
    noise: np.ndarray,
    setting: dict[str, float],
) -> dict[str, np.ndarray]:
    """Return the values of all variables, one of them set; noise has a row for each variable."""
    values: dict[str, np.ndarray] = {}
    for name in nx.topological_sort(dag):
        parents = [values[parent] for parent in dag.predecessors(name)]
        own = equations[name].values(parents, noise[list(dag).index(name)])
        values[name] = np.full(noise.shape[1], setting[name]) if name in setting else own
    return values


def average_slopes(means: np.ndarray, grid: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the slopes of all variables' means between values of the cause, averaged over the rows."""
    shares = np.histogram(column, grid)[0] / len(column)
    return shares @ (np.diff(means, axis=0) / np.diff(grid)[:, None])
