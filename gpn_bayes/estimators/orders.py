"""Orders of the variables: as a user gives them, and some worth trying."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.estimators.problem import Problem


def read_order(order: Any, names: Sequence[str]) -> list[int]:
    """Return an order, given by names or indices, as indices.

    Raises
    ------
    ValueError
        If it misses or repeats a variable, or names one that isn't there.

    Examples
    --------
    >>> read_order(["mek", "raf"], ["raf", "mek"])
    [1, 0]
    """
    if isinstance(order, str) or not hasattr(order, "__iter__"):
        raise ValueError(f"an order must list the variables; received {shown(order)}")
    places = [_place(node, names) for node in order]
    for place in places:
        if places.count(place) > 1:
            raise ValueError(f"an order must list every variable once; {names[place]!r} appears more than once")
    missing = set(range(len(names))) - set(places)
    if missing:
        raise ValueError(f"an order must list every variable once; {names[min(missing)]!r} is missing")
    return places


def _place(node: Any, names: Sequence[str]) -> int:
    try:
        return graphs.node_index(node, names)
    except ValueError:
        raise ValueError(f"an order must list variables of the data; {shown(node)} is not one") from None


def check_required(order: Sequence[int], problem: Problem) -> None:
    """Refuse an order that puts a variable before one of its required parents."""
    places = np.empty(problem.n, dtype=np.int64)
    places[order] = np.arange(problem.n)
    for parent, child in np.argwhere(problem.prior.required):
        if places[parent] > places[child]:
            names = problem.names
            raise ValueError(
                f"an order must put required parents before their children; {names[parent]} -> {names[child]} "
                f"is required, but {names[child]!r} comes first"
            )


def orders_to_try(problem: Problem, count: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield orders, parents of required edges first: that of the columns, one along the strongest pairs, random ones.

    Parameters
    ----------
    problem : Problem
        Its rules are kept: tiers too, since an order against them would leave edges out for nothing.
    count : int
        Number of orders.
    rng : Generator
        Where random orders come from.
    """
    earlier = _must_precede(problem)
    for number in range(count):
        if number == 0:
            urgency = -np.arange(problem.n, dtype=float)
        elif number == 1:
            urgency = _along_the_strongest_pairs(problem)
        else:
            urgency = rng.random(problem.n)
        yield _by_urgency(urgency, earlier)


def _must_precede(problem: Problem) -> Bools:
    """Return which variable comes before which: by the required edges, and where only that way is an edge allowed."""
    required: Bools = problem.prior.required
    forbidden: Bools = problem.prior.forbidden
    one_way = required | (forbidden.T & ~forbidden)
    return one_way if graphs.is_acyclic(one_way.astype(np.int8)) else required


def _by_urgency(urgency: Floats, earlier: Bools) -> list[int]:
    """Place the most urgent variable next, of those whose predecessors are all placed."""
    order: list[int] = []
    waiting = np.ones(len(urgency), dtype=bool)
    while waiting.any():
        ready = waiting & ~earlier[waiting].any(axis=0)
        order.append(int(np.argmax(np.where(ready, urgency, -np.inf))))
        waiting[order[-1]] = False
    return order


def _along_the_strongest_pairs(problem: Problem) -> Floats:
    """Return high values for variables that a tree of the strongest pairs reaches first, grown from the strongest."""
    n = problem.n
    gains = np.full((n, n), -np.inf)
    for child in range(n):
        parents = problem.allowed(child)
        alone, *paired = problem.store.values(child, [(), *((parent,) for parent in parents)])
        gains[parents, child] = np.array(paired) - alone
    strength = np.maximum(gains, gains.T)
    urgency = np.empty(n)
    reached = np.full(n, -np.inf)
    reached[np.where(np.isfinite(strength), strength, 0.0).sum(axis=0).argmax()] = np.inf
    waiting = np.ones(n, dtype=bool)
    for place in range(n):
        node = int(np.flatnonzero(waiting)[reached[waiting].argmax()])
        waiting[node] = False
        urgency[node] = -place
        reached = np.maximum(reached, strength[node])
    return urgency
