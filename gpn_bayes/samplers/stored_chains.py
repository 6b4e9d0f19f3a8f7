"""Whether what a file says of a chain can be so: compiled code trusts every index, and files needn't be ours."""

from collections.abc import Mapping

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.mcmc.order import ORDER as PLACES
from gpn_bayes.mcmc.order import OrderState, new_order
from gpn_bayes.mcmc.partition import BLOCK, COUNT, INSIDE, NEEDED, ORDER, START, PartitionState, partition_from_depths
from gpn_bayes.mcmc.tables import ScoreTables, outside_counts

Arrays = dict[str, np.ndarray]
# Scores that are brought up to date step by step differ from those summed anew by rounding.
_ROUNDING = 1e-6


def require(holds: bool, what: str) -> None:
    """Refuse a checkpoint of which something doesn't hold.

    Examples
    --------
    >>> require(False, "the order of a chain")
    Traceback (most recent call last):
    ValueError: a run's checkpoints must be as they were written; damaged: the order of a chain; use another file
    """
    if not holds:
        raise ValueError(f"a run's checkpoints must be as they were written; damaged: {what}; use another file")


def check_arrays(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], what: str) -> None:
    """Refuse arrays whose names, types or shapes aren't those of others."""
    require(found.keys() == expected.keys(), what)
    for name, array in expected.items():
        require(found[name].dtype == array.dtype and found[name].shape == array.shape, f"{what} ({name})")


def check_draws(draws: Arrays, n: int, count: int) -> None:
    """Refuse draws that can't come from a chain over n nodes.

    Parameters
    ----------
    draws : dict of str to ndarray
        The fields of a `Block`; empty where there are none.
    n : int
        Number of nodes.
    count : int
        How many there must be.
    """
    empty = {
        "parents": np.empty((count, n, -(-n // 64)), np.uint64),
        "log_scores": np.empty(count),
        "targets": np.empty(count),
    }
    check_arrays(draws, empty if count else {}, "draws")
    if count == 0:
        return
    require(bool(np.isfinite(draws["log_scores"]).all() and np.isfinite(draws["targets"]).all()), "scores of draws")
    parents = draws["parents"]
    require(n % 64 == 0 or not (parents[..., -1] >> np.uint64(n % 64)).any(), "parents of drawn DAGs")
    for dags in graphs.unpack_in_parts(parents, n):
        require(bool(np.all(graphs.is_acyclic(dags))), "a drawn DAG with a cycle")


def check_places(tables: ScoreTables, places: np.ndarray) -> None:
    """Refuse outside candidates that nodes don't have."""
    counts = outside_counts(tables)
    require(places.dtype == np.int64 and places.shape == counts.shape, "parents from outside")
    require(
        bool(((places >= 0) == (counts > 0)).all() and (places < np.maximum(counts, 0)).all()), "parents from outside"
    )


def checked_order(tables: ScoreTables, state: Arrays) -> OrderState:
    """Return the state of an order chain, if it is one."""
    n = len(tables.layout)
    check_arrays(state, {"ints": np.empty((3, n), np.int64), "score": np.empty(n)}, "the state of a chain")
    given = OrderState(state["ints"].copy(), state["score"].copy())
    require(np.array_equal(np.sort(given.ints[PLACES]), np.arange(n)), "the order of a chain")
    true = new_order(tables, given.ints[PLACES].copy())
    require(np.array_equal(given.ints, true.ints), "the order of a chain")
    require(bool(_close(given.score, true.score).all()), "the score of a chain")
    return given


def checked_partition(tables: ScoreTables, state: Arrays) -> PartitionState:
    """Return the state of a partition chain, if it is one."""
    n = len(tables.layout)
    check_arrays(state, {"ints": np.empty((6, n + 1), np.int64), "score": np.empty(n)}, "the state of a chain")
    given = PartitionState(state["ints"].copy(), state["score"].copy())
    depth = given.ints[BLOCK, :n].copy()
    blocks = int(given.ints[COUNT, 0])
    # How many there are is looked at first: their numbers might not fit into memory.
    require(0 < blocks <= n and np.array_equal(np.unique(depth), np.arange(blocks)), "the partition of a chain")
    true = partition_from_depths(tables, depth)
    order = given.ints[ORDER, :n]
    require(np.array_equal(np.sort(order), np.arange(n)), "the partition of a chain")
    # The order within a block is free.
    same = [np.array_equal(depth[order], np.sort(depth))]
    same += [np.array_equal(given.ints[row, :n], true.ints[row, :n]) for row in (INSIDE, NEEDED)]
    same += [np.array_equal(given.ints[START, : blocks + 1], true.ints[START, : blocks + 1])]
    require(all(same), "the partition of a chain")
    require(bool(_close(given.score, true.score).all()), "the score of a chain")
    return given


def _close(given: Floats, true: Floats) -> Bools:
    return np.isclose(given, true, rtol=_ROUNDING, atol=_ROUNDING)
