"""Small worlds of scores with one parent from outside the candidates, by brute force."""

from itertools import combinations, product

import networkx as nx
import numpy as np
from scipy.special import logsumexp

from gpn_bayes.mcmc.tables import (
    ScoreTables,
    build_tables,
    outside_place,
    set_outside_candidate,
)

Parents = tuple[frozenset[int], ...]


class World:
    """Random scores over parent sets of some candidates and at most one other node, by brute force."""

    def __init__(self, candidates: list[list[int]], scale: float = 1.5, seed: int = 1) -> None:
        self.candidates = candidates
        self.n = n = len(candidates)
        self.outside = [[j for j in range(n) if j != i and j not in own] for i, own in enumerate(candidates)]
        rng = np.random.default_rng(seed)
        self.scores: list[dict[frozenset[int], float]] = [
            {
                frozenset(core) | extra: rng.normal(scale=scale) - 10.0
                for size in range(len(own) + 1)
                for core in combinations(own, size)
                for extra in [frozenset(), *(frozenset([z]) for z in self.outside[i])]
            }
            for i, own in enumerate(candidates)
        ]
        self.dags = {
            dag: sum(table[parents] for table, parents in zip(self.scores, dag, strict=True))
            for dag in product(*self.scores)
            if nx.is_directed_acyclic_graph(nx.DiGraph([(j, i) for i, own in enumerate(dag) for j in own]))
        }

    def tables(self) -> ScoreTables:
        """Return fresh tables, whose first outside nodes are the outside candidates."""

        def row(i: int, extra: frozenset[int]) -> list[float]:
            own = self.candidates[i]
            masks = range(1 << len(own))
            return [self.scores[i][frozenset(j for b, j in enumerate(own) if mask >> b & 1) | extra] for mask in masks]

        return build_tables(
            self.candidates,
            [np.array(row(i, frozenset())) for i in range(self.n)],
            self.outside,
            [
                np.array([row(i, frozenset([z])) for z in others]).reshape(len(others), 1 << len(self.candidates[i]))
                for i, others in enumerate(self.outside)
            ],
        )

    def with_outside(self, places: tuple[int, ...]) -> ScoreTables:
        tables = self.tables()
        for i, place in enumerate(places):
            if place >= 0:
                set_outside_candidate(tables, i, place)
        return tables

    def outside_choices(self) -> list[tuple[int, ...]]:
        """Return all combinations of outside candidates, by place; -1 where a node has none."""
        return list(product(*(range(len(others)) if others else [-1] for others in self.outside)))

    def log_weight(self, dag: Parents, places: tuple[int, ...]) -> float:
        """Return the log target of a DAG with outside candidates; minus infinity if it needs another one."""
        total = self.dags[dag]
        for i, parents in enumerate(dag):
            extra = parents - set(self.candidates[i])
            if extra and extra != {self.outside[i][places[i]]}:
                return -np.inf
            total += np.log(len(self.outside[i])) if extra else 0.0
        return float(total)


def layers(dag: Parents) -> tuple[frozenset[int], ...]:
    graph = nx.DiGraph([(j, i) for i, own in enumerate(dag) for j in own])
    graph.add_nodes_from(range(len(dag)))
    return tuple(frozenset(layer) for layer in nx.topological_generations(graph))


def places_of(tables: ScoreTables) -> tuple[int, ...]:
    return tuple(int(outside_place(tables, i)) for i in range(len(tables.layout)))


WORLDS = {
    "mixed": World([[1], [0, 2], []]),
    "none at all": World([[], [], []]),
    "peaked": World([[1], [], [0]], scale=15.0),
    "four": World([[1, 2], [0, 2], [3, 0], [1, 2]]),
    # Two outside nodes to choose from beside a candidate: sets with and without one compete.
    "choice": World([[1], [0, 2, 3], [0, 1, 3], [0, 1, 2]]),
}


def targets_of(world: World) -> dict[tuple, float]:
    """Return the log target of every state (partition, outside candidates) that has a DAG."""
    terms: dict[tuple, list[float]] = {}
    for dag in world.dags:
        for places in world.outside_choices():
            weight = world.log_weight(dag, places)
            if weight > -np.inf:
                terms.setdefault((layers(dag), places), []).append(weight)
    return {state: float(logsumexp(own)) for state, own in terms.items()}
