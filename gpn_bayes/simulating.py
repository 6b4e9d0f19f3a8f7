"""What simulators share: reading the DAG they are given, and drawing weights."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from gpn_bayes import graphs


def read_dag(dag: Any) -> tuple[np.ndarray, list[Hashable]]:
    """Return the adjacency matrix and the names of a DAG; the nodes of an array are named v1, v2, ….

    Examples
    --------
    >>> read_dag([[0, 1], [0, 0]])[1]
    ['v1', 'v2']
    """
    names = graphs.graph_names(dag)
    if names is None:
        dag = np.asarray(dag)
        names = [f"v{i + 1}" for i in range(len(dag))]
    return graphs.as_adjacency(dag, names), names


def signed_uniform(
    rng: np.random.Generator, shape: tuple[int, ...], magnitudes: tuple[float, float], name: str = "weight_range"
) -> np.ndarray:
    """Return numbers with uniform magnitudes and random signs; `name` is what an error calls the magnitudes.

    Examples
    --------
    >>> np.abs(signed_uniform(np.random.default_rng(1), (3,), (2.0, 2.0))).tolist()
    [2.0, 2.0, 2.0]
    """
    low, high = magnitudes
    if not 0 <= low <= high < math.inf:
        raise ValueError(f"{name} must be (low, high) with 0 <= low <= high; received {magnitudes}")
    return rng.uniform(low, high, size=shape) * rng.choice([-1.0, 1.0], size=shape)
