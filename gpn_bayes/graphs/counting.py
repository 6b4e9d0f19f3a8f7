"""How many orders a DAG allows, and every DAG on a few nodes."""

from typing import Any

import numpy as np

from gpn_bayes._util.types import Adjacency, Floats, Ints, Words
from gpn_bayes.graphs.packing import pack, unpack
from gpn_bayes.graphs.structure import as_dags
from gpn_bayes.kernels.graphs import dags

MAX_ENUMERATED_NODES = 5


def count_linear_extensions(adjacency: Any) -> int:
    """Return how many orders of the nodes put every parent before its children, for at most 20 nodes.

    Examples
    --------
    >>> count_linear_extensions(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    2
    """
    return int(_extension_counts(pack(as_dags(adjacency))))


def log_linear_extensions(parents: Words) -> Floats:
    """Return the log of the number of linear extensions of each DAG, given as packed parents.

    Parameters
    ----------
    parents : ndarray of uint64, shape (..., n, 1)
        What `pack` returns, for DAGs of at most 20 nodes.

    Examples
    --------
    >>> np.exp(log_linear_extensions(pack(np.zeros((2, 4, 4))))).round().tolist()
    [24.0, 24.0]
    """
    parents = np.asarray(parents)
    if parents.ndim < 2:
        raise ValueError(f"packed parents must have shape (..., n, words); received {parents.shape}")
    as_dags(unpack(parents, parents.shape[-2]))
    return np.log(_extension_counts(parents).astype(float))


def _extension_counts(parents: Words) -> Ints:
    n = parents.shape[-2]
    most = dags.MAX_EXTENSION_NODES
    if n > most:
        raise ValueError(f"linear extensions are counted for at most {most} nodes; received {n}")
    masks = parents.astype(np.int64).reshape(-1, n)
    return dags.linear_extensions(masks).reshape(parents.shape[:-2])


def enumerate_dags(n: int) -> Adjacency:
    """Return every DAG on n labelled nodes (n at most 5), int8 of shape (count, n, n).

    Examples
    --------
    >>> [len(enumerate_dags(n)) for n in (1, 2, 3, 4)]
    [1, 3, 25, 543]
    """
    if not 1 <= n <= MAX_ENUMERATED_NODES:
        raise ValueError(f"DAGs are enumerated for 1 to {MAX_ENUMERATED_NODES} nodes; received {n}")
    first, second = np.triu_indices(n, 1)
    # Each pair of nodes has no edge (0), one forward (1) or one backward (2).
    choices = np.arange(3 ** len(first))[:, None] // 3 ** np.arange(len(first)) % 3
    graphs = np.zeros((len(choices), n, n), np.int8)
    graphs[:, first, second] = choices == 1
    graphs[:, second, first] = choices == 2
    return graphs[dags.acyclic(graphs)]
