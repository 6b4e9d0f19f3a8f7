"""Where the nodes of a large network stand: in rows from causes to effects, as near to their neighbours as may be."""

from collections.abc import Sequence

import numpy as np

_SWEEPS = 12
# Nodes stand a little off their places, by these shares of the room they have: lines that pass behind others' nodes
# would look as if they ended there.
_ASIDE, _UP_OR_DOWN = 0.1, 0.2


def compact_places(
    pairs: Sequence[tuple[int, int]],
    order: np.ndarray,
    width: float,
    height: float,
    aspect: float = 1.0,
    tiers: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of nodes in rows of about the same length.

    Parameters
    ----------
    pairs : sequence of (int, int)
        The nodes that are joined.
    order : ndarray of int
        All nodes, from causes to effects: cut into rows from the top down.
    width, height : float
        What a node takes up, with the space around it.
    aspect : float, default 1
        The width of all, over its height.
    tiers : ndarray, optional
        The tier of each node, which must not fall along the order: no row holds nodes of two tiers.

    Returns
    -------
    x, y : ndarray
        By node.

    Examples
    --------
    >>> x, y = compact_places([(0, 3), (1, 2)], np.array([0, 1, 2, 3]), 1.0, 1.0)
    >>> y.round().tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> bool((x[0] < x[1]) == (x[3] < x[2]))
    True
    """
    n = len(order)
    columns = max(1, round(np.sqrt(aspect * n * height / width)))
    groups = [order] if tiers is None else [order[tiers[order] == tier] for tier in np.unique(tiers)]
    rows = [row.tolist() for group in groups for row in np.array_split(group, -(-len(group) // columns))]
    near: dict[int, list[int]] = {int(node): [] for node in order}
    for i, j in pairs:
        near[i].append(j)
        near[j].append(i)
    x = np.zeros(n)
    for row in rows:
        _set(row, x)
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = {node: float(np.mean(x[near[node]])) if near[node] else float(x[node]) for node in row}
            row.sort(key=wanted.__getitem__)
            _set(row, x)
    y = np.empty(n)
    for level, row in enumerate(rows):
        y[row] = level
    aside, up_or_down = np.random.default_rng(0).uniform(-1, 1, (2, n))
    return (x + _ASIDE * aside) * width, (y + _UP_OR_DOWN * up_or_down) * height


def _set(row: list[int], x: np.ndarray) -> None:
    """Place a row's nodes side by side, its middle at 0."""
    x[row] = np.arange(len(row)) - (len(row) - 1) / 2
