"""The order graph: variables are placed one after the other, and each brings the score of its best parents so far."""

import numpy as np

from gpn_bayes._util.types import Adjacency, Bools, Words
from gpn_bayes.estimators.parent_sets import adjacency_of
from gpn_bayes.kernels.learners.parent_sets import ParentSets, best_of_order, best_within, insert


class OrderGraph:
    """Where an agent walks: a state is the set of variables placed, an action the next variable.

    An action's reward is the score of the variable's best parent set among those placed, as the gain over its least set
    (the empty one, or the required parents). Rewards are standardised: each variable's highest gain is taken off, and
    all are divided by the mean of these over the variables. Since every variable is placed once, the first takes the
    same off every order, and changes no ranking; it makes 0 the best that is conceivable, so that a network that
    hasn't learned yet thinks too well of what it hasn't tried.

    Parameters
    ----------
    sets : ParentSets
        The parent sets to choose from, with the least one of every variable.
    required : ndarray of bool, shape (n, n)
        Edges that must be there, rows parents.

    Attributes
    ----------
    n : int
        Number of variables.
    least, best : ndarray of float
        The scores of every variable's least and best parent set.
    unit : float
        A reward of -1 is a loss of this many units of the score.
    """

    def __init__(self, sets: ParentSets, required: Bools) -> None:
        self.sets, self.required = sets, required
        self.n = len(required)
        self.least = np.array([self._score(node, self._words(required[:, node])) for node in range(self.n)])
        self.best = sets.scores[sets.starts[:-1]]
        # Where no variable gains from any parent every order is as good as any other.
        self.unit = float((self.best - self.least).mean()) or 1.0

    def walk(self) -> "Walk":
        """Return a new walk, with nothing placed."""
        return Walk(self)

    def score(self, order: list[int]) -> float:
        """Return the score of the best DAG of an order."""
        return best_of_order(self.sets, np.array(order), np.empty(self.n, dtype=np.int64))

    def adjacency(self, order: list[int]) -> Adjacency:
        """Return the best DAG of an order."""
        rows = np.empty(self.n, dtype=np.int64)
        best_of_order(self.sets, np.array(order), rows)
        return adjacency_of(self.sets, rows)

    def reward(self, node: int, placed: Words) -> float:
        """Return what a variable brings after those placed, given as words."""
        # The score of the least set cancels: it is in the gain and in the highest gain.
        return (self._score(node, placed) - float(self.best[node])) / self.unit

    def _score(self, node: int, placed: Words) -> float:
        return float(self.sets.scores[best_within(self.sets, node, placed)])

    def _words(self, nodes: Bools) -> Words:
        words = np.zeros(self.sets.words.shape[1], dtype=np.uint64)
        for node in np.flatnonzero(nodes):
            insert(words, int(node))
        return words


class Walk:
    """One way through the order graph.

    Attributes
    ----------
    order : list of int
        The variables placed so far.
    placed, legal : ndarray of bool, shape (n,)
        Which they are, and which may come next: those whose required parents are placed.
    """

    def __init__(self, graph: OrderGraph) -> None:
        self._graph = graph
        self._words = np.zeros(graph.sets.words.shape[1], dtype=np.uint64)
        self._missing = graph.required.sum(axis=0)
        self.order: list[int] = []
        self.placed = np.zeros(graph.n, dtype=bool)
        self.legal = self._missing == 0

    @property
    def state(self) -> bytes:
        """The set of variables placed, as a key."""
        return self._words.tobytes()

    @property
    def ended(self) -> bool:
        """Whether all variables are placed."""
        return len(self.order) == self._graph.n

    def place(self, node: int) -> float:
        """Place a variable, and return its reward."""
        reward = self._graph.reward(node, self._words)
        insert(self._words, node)
        self._missing = self._missing - self._graph.required[node]
        self.order.append(node)
        self.placed[node] = True
        self.legal = ~self.placed & (self._missing == 0)
        return reward
