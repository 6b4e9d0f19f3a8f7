"""A DAG on a climb: what every change of one edge would gain, with only what a change touches computed anew."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from gpn_bayes._util.types import Adjacency, Words
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.dags import closures
from gpn_bayes.kernels.hill_climbing import REVERSE, TOGGLE, best_move, reversible


class Move(NamedTuple):
    """A change of the edge parent -> child, and by how much the score grows.

    Attributes
    ----------
    gain : float
    kind : int
        `TOGGLE` adds or deletes the edge, `REVERSE` turns it round, `NO_MOVE` is none.
    parent, child : int
    """

    gain: float
    kind: int
    parent: int
    child: int


class Climber:
    """A DAG, and the gains of all changes of one edge.

    Parameters
    ----------
    problem : Problem
        The scores and the rules.
    adjacency : ndarray
        The DAG to begin with; it must satisfy the rules.

    Attributes
    ----------
    adjacency : ndarray of int8, shape (n, n)
        The DAG.
    total : float
        Its score.
    gains : ndarray of float, shape (n, n)
        What `gpn_bayes.kernels.hill_climbing.best_move` reads; NaN where nobody asked yet.
    graph : uint64
        A number that equal DAGs share.
    """

    def __init__(self, problem: Problem, adjacency: Adjacency) -> None:
        n = problem.n
        self.problem = problem
        # The same for all runs: nothing random depends on them.
        self._keys = np.random.default_rng(0).integers(0, 2**64, (n, n), dtype=np.uint64)
        self.place_at(adjacency)

    def place_at(self, adjacency: Adjacency) -> None:
        """Go to another DAG."""
        n = self.problem.n
        self.adjacency = np.array(adjacency, dtype=np.int8)
        self.graph = np.bitwise_xor.reduce(self._keys[self.adjacency == 1], initial=np.uint64(0))
        self.gains = np.empty((n, n))
        self.locals = np.empty(n)
        self._forget(range(n))

    @property
    def total(self) -> float:
        """The score of the DAG."""
        return float(self.locals.sum())

    def find_gains(self) -> Self:
        """Compute the gains that can be asked for and aren't known, a batch of scores a node."""
        allowed = (self.adjacency == 1) | (self.adjacency.T == 1) | ~self._reach.T
        unknown = np.isnan(self.gains) & allowed
        for node in np.flatnonzero(unknown.any(axis=0)).tolist():
            others = np.flatnonzero(unknown[:, node]).tolist()
            parents = frozenset(np.flatnonzero(self.adjacency[:, node]).tolist())
            values = self.problem.store.values(node, [tuple(sorted(parents ^ {other})) for other in others])
            # What has no score is nowhere to go, also from where there is none.
            known = np.where(values == -np.inf, 0.0, values) - self.locals[node]
            self.gains[others, node] = np.where(values == -np.inf, -np.inf, known)
        return self

    def best_move(self, visited: Words) -> Move:
        """Return the best change that leads to none of the visited graphs; `find_gains` comes first."""
        return Move(*best_move(self.adjacency, self._reach, self.gains, self._keys, self.graph, visited))

    def random_move(self, rng: np.random.Generator) -> Move | None:
        """Return a random addition, deletion or reversal, with equal chances; None where there is none of its kind."""
        kind = rng.integers(3)
        absent, possible = self.adjacency == 0, self.gains > -np.inf
        if kind == 0:
            edges = np.argwhere(absent & ~self._reach.T & possible)
        elif kind == 1:
            edges = np.argwhere(~absent & possible)
        else:
            turned = np.argwhere(~absent & possible & possible.T).tolist()
            edges = np.array([(i, j) for i, j in turned if reversible(self.adjacency, self._reach, i, j)])
        if len(edges) == 0:
            return None
        parent, child = edges[rng.integers(len(edges))].tolist()
        gain = self.gains[parent, child] + (self.gains[child, parent] if kind == 2 else 0.0)
        return Move(float(gain), REVERSE if kind == 2 else TOGGLE, parent, child)

    def make(self, move: Move) -> None:
        """Change the DAG."""
        edges = [(move.parent, move.child)]
        if move.kind == REVERSE:
            edges.append((move.child, move.parent))
        for parent, child in edges:
            self.adjacency[parent, child] ^= 1
            self.graph ^= self._keys[parent, child]
        self._forget(child for _, child in edges)

    def _forget(self, nodes: Iterable[int]) -> None:
        """Forget the gains of nodes whose parents have changed, and note what the rules don't let them change."""
        problem = self.problem
        self._reach = closures(self.adjacency[None])[0]
        for node in nodes:
            parents = np.flatnonzero(self.adjacency[:, node]).tolist()
            self.locals[node] = problem.local(node, parents)
            self.gains[:, node] = np.nan
            fixed = problem.prior.forbidden[:, node] | problem.prior.required[:, node]
            if len(parents) >= problem.max_parents:
                fixed = fixed | (self.adjacency[:, node] == 0)
            self.gains[fixed, node] = -np.inf
