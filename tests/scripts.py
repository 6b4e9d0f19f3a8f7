"""Walk through every path of a move, and the brute-force targets that its transition matrix must keep."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import permutations, product
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from gpn_bayes.mcmc.choices import CURSOR, OPTIONS, OUTCOME, PROBABILITY, Chance, new_script
from gpn_bayes.mcmc.tables import ScoreTables, build_tables

Order = tuple[int, ...]
Dag = tuple[int, ...]  # local parent masks
Partition = tuple[frozenset[int], ...]
Path = tuple[float, float, Hashable]

KINDS = (
    "asymmetric", "restricted", "one way", "few parents", "required", "required chain", "peaked",
    "unlikely parents",
)  # fmt: skip
_MAX_CHOICES = 64
_RNG = np.random.default_rng(0)


def paths(run: Callable[[Chance], tuple[float, Hashable]]) -> Iterator[Path]:
    """Run a scripted function along every path of outcomes it can take.

    Parameters
    ----------
    run : callable
        Takes a scripted `Chance`; returns the log acceptance ratio and the resulting state. Starts afresh each time.

    Yields
    ------
    tuple
        The probability of the path, the log acceptance ratio and the state at its end.
    """
    outcomes: list[int] = []
    while True:
        script = new_script(outcomes, _MAX_CHOICES)
        log_ratio, state = run(Chance(_RNG, script))
        used = int(script[CURSOR, 0])
        yield float(script[PROBABILITY, :used].prod()), log_ratio, state
        outcomes = script[OUTCOME, :used].astype(int).tolist()
        while outcomes and outcomes[-1] + 1 >= script[OPTIONS, len(outcomes) - 1]:
            outcomes.pop()
        if not outcomes:
            return
        outcomes[-1] += 1


def transition_matrix(states: Sequence[Any], walk: Callable[[Any], Iterator[Path]]) -> np.ndarray:
    """Return the Metropolis-Hastings transition matrix of a move, with what is rejected on the diagonal."""
    place = {state: i for i, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for probability, log_ratio, end in walk(state):
            accepted = np.exp(min(0.0, log_ratio))
            assert 0.0 <= accepted <= 1.0
            if accepted > 0.0:
                matrix[i, place[end]] += probability * accepted
            matrix[i, i] += probability * (1.0 - accepted)
    return matrix


def imbalance(matrix: np.ndarray, log_target: np.ndarray) -> float:
    """Return the worst relative difference between the flow from i to j and that from j to i."""
    flow = np.exp(log_target - logsumexp(log_target))[:, None] * matrix
    larger = np.maximum(flow, flow.T)
    return float((np.abs(flow - flow.T) / np.where(larger > 0.0, larger, 1.0)).max())


def assert_reversible(matrix: np.ndarray, log_target: np.ndarray) -> None:
    """Assert that the rows sum to one and that the flows balance, the smallest ones too."""
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    flow = np.exp(log_target - logsumexp(log_target))[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=0.0, atol=1e-12)
    assert imbalance(matrix, log_target) < 1e-9


def is_irreducible(matrix: np.ndarray) -> bool:
    """Tell whether every state can be reached from every other."""
    return int(connected_components(matrix > 0.0, connection="strong")[0]) == 1


def stationary(matrix: np.ndarray) -> np.ndarray:
    """Return the one stationary vector of an irreducible chain, by linear algebra."""
    n = len(matrix)
    equations = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0]


class Problem:
    """Candidates and raw scores, with everything about them by brute force.

    Parameters
    ----------
    candidates : list of list of int
        Candidate parents of each node.
    scores : list of ndarray
        Log scores of all subsets of the candidates, in bitmask order.
    """

    def __init__(self, candidates: list[list[int]], scores: list[np.ndarray]) -> None:
        self.candidates = candidates
        self.scores = scores
        self.n = len(candidates)

    @cached_property
    def tables(self) -> ScoreTables:
        """What the samplers read."""
        return build_tables(self.candidates, self.scores)

    def parents_of(self, node: int, mask: int) -> frozenset[int]:
        """Return the parents that a local mask stands for."""
        return frozenset(j for b, j in enumerate(self.candidates[node]) if mask >> b & 1)

    def graph(self, dag: Dag) -> nx.DiGraph:
        """Return local masks as a graph."""
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.n))
        graph.add_edges_from((j, i) for i, mask in enumerate(dag) for j in self.parents_of(i, mask))
        return graph

    def layering(self, dag: Dag) -> Partition:
        """Return the layers of a DAG: nodes by the length of the longest path that ends in them."""
        return tuple(frozenset(layer) for layer in nx.topological_generations(self.graph(dag)))

    @cached_property
    def dags(self) -> dict[Dag, float]:
        """Every DAG of finite score with its log score."""
        possible = [np.flatnonzero(np.isfinite(table)).tolist() for table in self.scores]
        return {
            dag: float(sum(self.scores[i][mask] for i, mask in enumerate(dag)))
            for dag in product(*possible)
            if nx.is_directed_acyclic_graph(self.graph(dag))
        }

    @cached_property
    def partitions(self) -> dict[Partition, dict[Dag, float]]:
        """The DAGs of each ordered partition that has any, with their log scores."""
        found: dict[Partition, dict[Dag, float]] = {}
        for dag, log_score in self.dags.items():
            found.setdefault(self.layering(dag), {})[dag] = log_score
        return found

    @cached_property
    def orders(self) -> dict[Order, dict[Dag, float]]:
        """The DAGs that each order allows, for orders that allow any, with their log scores."""
        found: dict[Order, dict[Dag, float]] = {}
        for order in permutations(range(self.n)):
            before = {node: frozenset(order[:p]) for p, node in enumerate(order)}
            allowed = {
                dag: log_score
                for dag, log_score in self.dags.items()
                if all(self.parents_of(i, mask) <= before[i] for i, mask in enumerate(dag))
            }
            if allowed:
                found[order] = allowed
        return found

    def order_log_score(self, order: Order) -> float:
        """Return the product over nodes of the sum over the parent sets among their predecessors."""
        total = 0.0
        for p, node in enumerate(order):
            inside = [
                score for mask, score in enumerate(self.scores[node]) if self.parents_of(node, mask) <= set(order[:p])
            ]
            total += logsumexp(inside)
        return float(total)


def log_totals(members: dict[Hashable, dict[Dag, float]]) -> np.ndarray:
    """Return the log sum of the scores of the DAGs of each state."""
    return np.array([logsumexp(list(dags.values())) for dags in members.values()])


def make_problem(n: int, kind: str, seed: int = 1) -> Problem:
    """Return random scores of one of `KINDS`; no two nodes, sets or directions are alike."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    candidates = [[int(j) for j in rng.permutation(n) if j != i] for i in range(n)]
    if kind == "restricted":
        candidates = [[j for j in chosen if rng.random() < 0.6] for chosen in candidates]
    if kind == "one way":
        # The later nodes are no one's candidates.
        candidates = [[j for j in chosen if j < (n + 1) // 2] for chosen in candidates]
    scores = []
    for i, chosen in enumerate(candidates):
        masks = np.arange(1 << len(chosen))
        sizes = np.array([int(mask).bit_count() for mask in masks])
        table = rng.normal(scale=20.0 if kind == "peaked" else 1.5, size=len(masks)) - 100.0
        if kind == "unlikely parents":
            # The sets that a later block needs weigh next to nothing beside the empty set.
            table -= 25.0 * sizes
        if kind == "few parents":
            table[sizes > n // 2] = -np.inf
        if kind == "required" and i == 2:
            table[(masks >> chosen.index(0)) & 1 == 0] = -np.inf
        if kind == "required chain" and i in (1, 2):
            table[(masks >> chosen.index(i - 1)) & 1 == 0] = -np.inf
        scores.append(table)
    return Problem(candidates, scores)


def mixture(matrices: list[np.ndarray], mix: np.ndarray) -> np.ndarray:
    """Return the transition matrix of a step that takes each move as often as the mix says."""
    return np.tensordot(mix / mix.sum(), np.array(matrices), axes=1)


def assert_draws_follow_scores(run: Callable[[Chance], tuple[float, Dag]], dags: dict[Dag, float]) -> None:
    """Assert that a scripted draw ends in exactly these DAGs, each in proportion to its score."""
    drawn = {end: probability for probability, _, end in paths(run)}
    assert drawn.keys() == dags.keys()
    log_total = np.logaddexp.reduce(list(dags.values()))
    for dag, log_score in dags.items():
        np.testing.assert_allclose(drawn[dag], np.exp(log_score - log_total), rtol=1e-9)
