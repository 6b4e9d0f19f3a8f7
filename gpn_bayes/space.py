"""The search space: which parents each node may have."""

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from gpn_bayes import graphs
from gpn_bayes.kernels.subsets import MAX_CANDIDATES
from gpn_bayes.scores.prior import GraphPrior


def candidate_lists(candidates: Any, prior: GraphPrior, max_parents: int | None = None) -> list[list[int]]:
    """Return the candidate parents of every node, by index, in the variables' order.

    Parameters
    ----------
    candidates : None, dict or networkx.DiGraph
        All other variables; or for each variable the list of its candidates (those not named have none);
        or a graph whose edges lead from candidates.
    prior : GraphPrior
        Required edges are always in the space, forbidden ones never.
    max_parents : int, optional
        Checked against the number of required parents.
    """
    names = prior.names
    allowed = _allowed_edges(candidates, list(names)) & ~prior.forbidden | prior.required
    if max_parents is not None:
        _check_max_parents(max_parents, prior)
    lists = [np.flatnonzero(allowed[:, i]).tolist() for i in range(len(names))]
    for name, chosen in zip(names, lists, strict=True):
        if len(chosen) > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents a node are supported; {name!r} has "
                f"{len(chosen)}: name fewer with candidates={{child: [parents]}}"
            )
    return lists


def _allowed_edges(candidates: Any, names: list[str]) -> np.ndarray:
    n = len(names)
    if candidates is None:
        return np.ones((n, n), dtype=bool)
    if isinstance(candidates, nx.DiGraph):
        return graphs.as_adjacency(candidates, names, acyclic=False).astype(bool)
    rule = "candidates must map each variable to its candidate parents, or be a DiGraph"
    if not isinstance(candidates, Mapping):
        raise ValueError(f"{rule}; received {type(candidates).__name__}")
    allowed = np.zeros((n, n), dtype=bool)
    for child, parents in candidates.items():
        i = graphs.node_index(child, names)
        if not isinstance(parents, Iterable):
            raise ValueError(f"{rule}; received {parents!r} for {child!r}")
        for parent in [parents] if isinstance(parents, str) else parents:
            j = graphs.node_index(parent, names)
            if i == j:
                raise ValueError(f"no variable can be its own candidate parent; {names[i]!r} is")
            allowed[j, i] = True
    return allowed


def _check_max_parents(max_parents: int, prior: GraphPrior) -> None:
    if isinstance(max_parents, bool) or not isinstance(max_parents, int | np.integer) or max_parents < 0:
        raise ValueError(f"max_parents must be a whole number, 0 or more; received {max_parents!r}")
    for name, needed in zip(prior.names, prior.required.sum(axis=0), strict=True):
        if needed > max_parents:
            raise ValueError(
                f"max_parents must leave room for the required edges; {name!r} has {needed} required "
                f"parents, max_parents is {max_parents}"
            )
