"""Graphs as bits: the parents of each node in 64-bit words."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.checks import MAX_VARIABLES
from gpn_bayes._util.types import Adjacency, Floats, Words
from gpn_bayes.graphs.adjacency import as_stack

_ENTRIES_AT_ONCE = 50_000_000


def _words(n: int) -> int:
    """Return how many 64-bit words hold the parents of one of n nodes."""
    if not 1 <= n <= MAX_VARIABLES:
        raise ValueError(f"packed graphs must have 1 to {MAX_VARIABLES} nodes; received {n}")
    return -(-n // 64)


def pack(adjacency: NDArray[Any]) -> Words:
    """Return the parents of each node as bits: bit i of word i >> 6 of node j is set where i -> j.

    Parameters
    ----------
    adjacency : array of shape (..., n, n)
        One graph or many, n at most 1024.

    Returns
    -------
    ndarray of uint64, shape (..., n, ceil(n / 64))

    Examples
    --------
    >>> pack(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])).tolist()
    [[0], [1], [3]]
    """
    stack = as_stack(adjacency)
    padded = np.zeros((*stack.shape[:-1], 8 * _words(stack.shape[-1])), np.uint8)
    octets = np.packbits(stack.swapaxes(-1, -2), axis=-1, bitorder="little")
    padded[..., : octets.shape[-1]] = octets
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpack(parents: NDArray[Any], n: int) -> Adjacency:
    """Return the adjacency matrices, int8 of shape (..., n, n), of packed parents.

    Examples
    --------
    >>> unpack(np.array([[0], [1], [3]], dtype=np.uint64), 3).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    parents = np.asarray(parents)
    words = _words(n)
    if parents.dtype != np.uint64 or parents.shape[-2:] != (n, words):
        raise ValueError(
            f"packed parents of {n} nodes must be uint64 of shape (..., {n}, {words}); "
            f"received {parents.dtype} of shape {parents.shape}"
        )
    if n % 64 and (parents[..., -1] >> np.uint64(n % 64)).any():
        raise ValueError(f"parents must be among the {n} nodes; received a higher bit")
    return np.ascontiguousarray(_bits(parents, n).swapaxes(-1, -2)).view(np.int8)


def unpack_in_parts(parents: NDArray[Any], n: int) -> Iterator[Adjacency]:
    """Yield the adjacency matrices of a stack of packed parents, some at a time: all at once may take gigabytes.

    Examples
    --------
    >>> dags = np.zeros((3, 2, 1), np.uint64)
    >>> [part.shape for part in unpack_in_parts(dags, 2)]
    [(3, 2, 2)]
    """
    step = max(1, _ENTRIES_AT_ONCE // n**2)
    for begin in range(0, len(parents), step):
        yield unpack(parents[begin : begin + step], n)


def parents_of(parents: Words, node: int) -> Adjacency:
    """Return which nodes are parents of one node, int8 of shape (..., n), given packed parents.

    Examples
    --------
    >>> parents_of(np.array([[0], [1], [3]], dtype=np.uint64), 2).tolist()
    [1, 1, 0]
    """
    return _bits(parents[..., node, :], parents.shape[-2]).view(np.int8)


def edge_shares(parents: Words, weights: Floats) -> Floats:
    """Return the weighted share of the DAGs of each chain that have an edge, of shape (chain, n, n), rows parents.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, n, words)
        The DAGs.
    weights : ndarray of shape (chain, draw)
        Their weights.

    Examples
    --------
    >>> edge_shares(np.array([[[[0], [1]], [[0], [0]]]], dtype=np.uint64), np.array([[3.0, 1.0]])).tolist()
    [[[0.0, 0.75], [0.0, 0.0]]]
    """
    shares = weights / weights.sum(axis=1, keepdims=True)
    # Node by node, as all adjacency matrices of a long run would take gigabytes.
    nodes = [np.einsum("cdi,cd->ci", parents_of(parents, node), shares) for node in range(parents.shape[2])]
    return np.stack(nodes, axis=2)


def _bits(words: Words, n: int) -> NDArray[np.uint8]:
    """Return the first n bits of words, along the last axis."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=n, bitorder="little")
