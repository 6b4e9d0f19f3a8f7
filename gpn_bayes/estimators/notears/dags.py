"""From weights to DAGs: cycles broken at their weakest entries, small weights cut off, orders read off."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.kernels.graphs.dags import topological_order


class Removed(NamedTuple):
    """An entry that was set to zero: its places and its weight."""

    parent: int
    child: int
    weight: float


def removed_table(removed: Sequence[Removed], names: Sequence[str]) -> pd.DataFrame:
    """Return removed entries with the names of their ends.

    Examples
    --------
    >>> removed_table([Removed(1, 0, 0.5)], ["raf", "mek"]).values.tolist()
    [['mek', 'raf', 0.5]]
    """
    rows = [(names[entry.parent], names[entry.child], entry.weight) for entry in removed]
    return pd.DataFrame(rows, columns=["parent", "child", "weight"])


def break_cycles(weights: Floats, required: Bools) -> tuple[Floats, list[Removed]]:
    """Set the weakest entry that lies on a cycle to zero until there is no cycle; return what is left, and the entries.

    Parameters
    ----------
    weights : ndarray, shape (d, d)
        Rows are parents; not modified.
    required : ndarray of bool, shape (d, d)
        Entries to keep, which form no cycle; they count as edges even where their weight is zero.

    Examples
    --------
    >>> kept, removed = break_cycles(np.array([[0.0, 2.0], [0.5, 0.0]]), np.zeros((2, 2), dtype=bool))
    >>> kept.tolist(), removed
    ([[0.0, 2.0], [0.0, 0.0]], [Removed(parent=1, child=0, weight=0.5)])
    """
    kept = weights.copy()
    removed: list[Removed] = []
    while True:
        _, component = connected_components((kept != 0) | required, directed=True, connection="strong")
        # An entry lies on a cycle if both of its ends lie in one strongly connected component.
        on_cycle = (kept != 0) & ~required & (component[:, None] == component[None, :])
        if not on_cycle.any():
            return kept, removed
        weakest = np.where(on_cycle, np.abs(kept), np.inf).argmin()
        parent, child = np.unravel_index(weakest, kept.shape)
        removed.append(Removed(int(parent), int(child), float(kept[parent, child])))
        kept[parent, child] = 0.0


def order_of(weights: Floats, required: Bools) -> Ints:
    """Return an order of the variables in which parents stand first, once the weakest cycle-closing entries are gone.

    Examples
    --------
    >>> order_of(np.array([[0.0, 0.5], [2.0, 0.0]]), np.zeros((2, 2), dtype=bool)).tolist()
    [1, 0]
    """
    kept, _ = break_cycles(weights, required)
    order = np.empty(len(kept), np.int64)
    topological_order(((kept != 0) | required).astype(np.int8), order)
    return order


def with_required_first(order: Ints, required: Bools) -> Ints:
    """Return an order as near as may be to the one given that puts required parents before their children.

    Examples
    --------
    >>> required = np.zeros((3, 3), dtype=bool)
    >>> required[2, 0] = True
    >>> with_required_first(np.array([0, 1, 2]), required).tolist()
    [1, 2, 0]
    """
    left, placed = list(order), []
    while left:
        following = next(node for node in left if not required[left, node].any())
        left.remove(following)
        placed.append(following)
    return np.array(placed, dtype=np.int64)


def cut(weights: Floats, threshold: float, required: Bools) -> Floats:
    """Return the weights with those below the threshold in magnitude set to zero, except required ones.

    Examples
    --------
    >>> cut(np.array([[0.0, 0.2], [-0.4, 0.0]]), 0.3, np.zeros((2, 2), dtype=bool)).tolist()
    [[0.0, 0.0], [-0.4, 0.0]]
    """
    return np.where((np.abs(weights) >= threshold) | required, weights, 0.0)
