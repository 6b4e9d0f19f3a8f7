"""Greedy search over DAGs by changes of one edge, with a tabu list and restarts."""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency, Bools, Floats, Words
from gpn_bayes.estimators.base import ScoreBasedEstimator
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.graphs.dags import closures
from gpn_bayes.kernels.learners.hill_climbing import NO_MOVE, REVERSE, TOGGLE, best_move, reversible
from gpn_bayes.kernels.learners.parent_sets import LEAST_GAIN


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
        What `gpn_bayes.kernels.learners.hill_climbing.best_move` reads; NaN where nobody asked yet.
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
            if len(parents) >= problem.greedy_limit:
                fixed = fixed | (self.adjacency[:, node] == 0)
            self.gains[fixed, node] = -np.inf


class HillClimbing(ScoreBasedEstimator):
    """Search over DAGs: add, delete or reverse the edge that gains most, until nothing has gained for a while.

    A step also goes down where nothing gains, but never to one of the last `tabu` graphs, so that it leaves a
    local maximum by a different path. The best graph met is kept; no change of one edge makes it better. A restart
    continues from there after some random changes.

    Only the gains of nodes whose parents have changed are computed anew, and none of edges that would close a cycle:
    slow scores are asked for as late as possible, and never twice.

    Parameters
    ----------
    score : Score or str, default "bic"
        What to maximise.
    max_parents : int, optional
        Maximum number of parents per node. By default there is none up to 16 variables, and one per ten rows beyond:
        only sets that a step may lead to are scored. Under slow scores, such as GP, it is what the score takes by
        itself. A warning says so where a node has as many.
    tabu : int, default 100
        Number of recent graphs it must not return to; 0 stops at the first local maximum.
    patience : int, default 20
        Number of steps without a better graph that end a climb.
    restarts : int, default 10
        Number of further climbs.
    jump : int, optional
        Number of random changes before a further climb; by default half as many as variables, and at least 4.
    start : graph, optional
        The DAG to begin with, as in `gpn_bayes.graphs.as_adjacency`; by default the required edges.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for the random changes.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_, weights_, log_score_, max_parents_
        As in every score-based learner.
    n_steps_ : int
        Number of changes made.
    trace_ : ndarray of float
        The score of the graph after each step; the first entry is that of the start.
    interrupted_ : bool
        Whether Ctrl-C ended the search; the best graph so far is kept.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators import HillClimbing
    >>> climb = HillClimbing(score="bge", random_state=1).fit(datasets.sachs(transform="log2"))
    >>> climb.graph_.number_of_edges(), bool(climb.log_score_ > climb.trace_[0])
    (6, True)
    """

    n_steps_: int
    trace_: Floats
    interrupted_: bool

    def __init__(
        self,
        score: Any = "bic",
        *,
        max_parents: int | None = None,
        tabu: int = 100,
        patience: int = 20,
        restarts: int = 10,
        jump: int | None = None,
        start: Any = None,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.score = score
        self.max_parents = max_parents
        self.tabu = tabu
        self.patience = patience
        self.restarts = restarts
        self.jump = jump
        self.start = start
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def _search(self, problem: Problem) -> Adjacency:
        for name in ("tabu", "patience", "restarts"):
            check_count(name, getattr(self, name))
        if self.jump is not None:
            check_count("jump", self.jump, 1)
        self.max_parents_ = problem.greedy_limit
        rng = generator("random_state", self.random_state)
        climber = Climber(problem, _first_graph(problem, self.start))
        climb = Climb(climber, self.tabu, self.patience)
        self.interrupted_ = False
        try:
            with progress_bar("Climbing", self.restarts + 1, self.progressbar) as advance:
                climb.climb()
                advance(1)
                for _ in range(self.restarts):
                    climb.jump(rng, max(4, problem.n // 2) if self.jump is None else self.jump)
                    climb.climb()
                    advance(1)
        except KeyboardInterrupt:
            self.interrupted_ = True
        self.trace_ = np.array(climb.trace)
        self.n_steps_ = len(climb.trace) - 1
        return climb.best


class Climb:
    """A search in progress: the graphs not to return to, the best, and the score after each step.

    Parameters
    ----------
    climber : Climber
        Where to begin.
    tabu, patience : int
        As of `HillClimbing`; without them a climb ends at the first DAG that no change of one edge makes better.
    """

    def __init__(self, climber: Climber, tabu: int = 0, patience: int = 0) -> None:
        self.climber = climber
        self.best, self.best_total = climber.adjacency.copy(), climber.total
        self.trace = [climber.total]
        self._goes_down = tabu > 0
        self._patience = patience
        self._visited: deque[np.uint64] = deque(maxlen=tabu)

    def climb(self) -> None:
        """Take steps until none leads anywhere, or the patience is over."""
        summit, idle = self.climber.total, 0
        self._visited.append(self.climber.graph)
        while True:
            move = self.climber.find_gains().best_move(np.array(self._visited, dtype=np.uint64))
            gains = move.gain > LEAST_GAIN
            if move.kind == NO_MOVE or not (gains or (self._goes_down and idle < self._patience)):
                return
            self.climber.make(move)
            self._note()
            idle += 1
            if self.climber.total > summit + LEAST_GAIN:
                summit, idle = self.climber.total, 0

    def jump(self, rng: np.random.Generator, changes: int) -> None:
        """Go back to the best graph, and from there as many random changes away."""
        self.climber.place_at(self.best)
        for _ in range(changes):
            move = self.climber.find_gains().random_move(rng)
            if move is not None:
                self.climber.make(move)
                self._note()

    def _note(self) -> None:
        self._visited.append(self.climber.graph)
        self.trace.append(self.climber.total)
        if self.climber.total > self.best_total + LEAST_GAIN:
            self.best, self.best_total = self.climber.adjacency.copy(), self.climber.total


def _first_graph(problem: Problem, start: Any) -> Adjacency:
    required: Bools = problem.prior.required
    forbidden: Bools = problem.prior.forbidden
    if start is None:
        return required.astype(np.int8)
    adjacency = graphs.as_adjacency(start, problem.names)
    for edges, rule in (
        (required & (adjacency == 0), "hold the required edges; it lacks"),
        (forbidden & (adjacency == 1), "hold no forbidden edge; it has"),
    ):
        if edges.any():
            parent, child = (problem.names[i] for i in np.argwhere(edges)[0])
            raise ValueError(f"the start must {rule} {parent} -> {child}")
    most = int(adjacency.sum(axis=0).argmax())
    if problem.stated and adjacency[:, most].sum() > problem.max_parents:
        raise ValueError(
            f"the start must have at most {problem.max_parents} parents per node; "
            f"{problem.names[most]!r} has {adjacency[:, most].sum()}"
        )
    return adjacency
