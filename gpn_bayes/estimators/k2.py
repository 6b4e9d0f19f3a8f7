"""K2 (Cooper & Herskovits 1992): with the order known, each variable gathers parents greedily."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency
from gpn_bayes.estimators.base import ScoreBasedEstimator
from gpn_bayes.estimators.orders import check_required, orders_to_try, read_order
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.kernels.learners.parent_sets import LEAST_GAIN


class K2(ScoreBasedEstimator):
    """Greedy parents among the predecessors in an order.

    A variable begins with its required parents, and adds the predecessor that improves its score most, until none does
    or the limit is reached. Of equal ones the first column is added.

    Parameters
    ----------
    score : Score or str, default "k2"
        What to maximise.
    order : sequence of str or int, optional
        All variables, by name or index, parents first. By default several orders are tried: that of the columns, one
        along the strongest pairs, and random ones, all in keeping with the required edges and the tiers.
    n_orders : int, default 20
        How many, when no order is given.
    max_parents : int or None, default 3
        Maximum number of parents per node.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for random orders.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_, weights_, log_score_, max_parents_
        As in every score-based learner.
    order_ : list of str
        The order of the estimate.
    interrupted_ : bool
        Whether Ctrl-C ended the search; the best of the orders that were tried is kept.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators import K2
    >>> sachs = datasets.sachs(transform="log2")
    >>> learner = K2(score="bge", order=["raf", "mek", *sachs.columns.drop(["raf", "mek"])]).fit(sachs)
    >>> learner.graph_.has_edge("raf", "mek"), learner.order_[:2]
    (True, ['raf', 'mek'])
    """

    order_: list[str]
    interrupted_: bool

    def __init__(
        self,
        score: Any = "k2",
        *,
        order: Sequence[str | int] | None = None,
        n_orders: int = 20,
        max_parents: int | None = 3,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.score = score
        self.order = order
        self.n_orders = n_orders
        self.max_parents = max_parents
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def _search(self, problem: Problem) -> Adjacency:
        self.max_parents_ = problem.greedy_limit
        best, best_score = None, -np.inf
        orders, count = self._orders(problem)
        self.interrupted_ = False
        with progress_bar("Trying", count, self.progressbar) as advance:
            try:
                for order in orders:
                    adjacency, score = greedy_parents(problem, order)
                    if best is None or score > best_score + LEAST_GAIN:
                        best, best_score = adjacency, score
                        self.order_ = [problem.names[i] for i in order]
                    advance(1)
            except KeyboardInterrupt:
                if best is None:
                    raise
                self.interrupted_ = True
        assert best is not None  # at least one order was tried
        return best

    def _orders(self, problem: Problem) -> tuple[Iterable[list[int]], int]:
        if self.order is not None:
            order = read_order(self.order, problem.names)
            check_required(order, problem)
            return [order], 1
        check_count("n_orders", self.n_orders, 1)
        return orders_to_try(problem, self.n_orders, generator("random_state", self.random_state)), self.n_orders


def greedy_parents(problem: Problem, order: Sequence[int]) -> tuple[Adjacency, float]:
    """Return the DAG that K2 finds for an order, and its score.

    Parameters
    ----------
    problem : Problem
        The scores and the rules.
    order : sequence of int
        All nodes; required parents come before their children.
    """
    adjacency = np.zeros((problem.n, problem.n), dtype=np.int8)
    total = 0.0
    for place, node in enumerate(order):
        allowed = set(problem.allowed(node)).intersection(order[:place])
        parents, score = _gather_parents(problem, node, allowed)
        adjacency[parents, node] = 1
        total += score
    return adjacency, total


def _gather_parents(problem: Problem, node: int, allowed: set[int]) -> tuple[list[int], float]:
    parents = problem.required(node)
    score = problem.local(node, parents)
    while len(parents) < problem.greedy_limit:
        others = sorted(allowed.difference(parents))
        if not others:
            break
        values = problem.store.values(node, [tuple(sorted([*parents, other])) for other in others])
        if not values.max() > score + LEAST_GAIN:
            break
        # The first of those that tie, whichever way they were rounded.
        chosen = int(np.argmax(values >= values.max() - LEAST_GAIN))
        parents = [*parents, others[chosen]]
        score = float(values[chosen])
    return parents, score
