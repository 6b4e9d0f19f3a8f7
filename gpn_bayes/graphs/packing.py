"""Graphs as bits: the parents of each node in 64-bit words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Adjacency, Words
from gpn_bayes.graphs.adjacency import as_stack

MAX_NODES = 256


def _words(n: int) -> int:
    """Return how many 64-bit words hold the parents of one of n nodes."""
    if not 1 <= n <= MAX_NODES:
        raise ValueError(f"packed graphs must have 1 to {MAX_NODES} nodes; received {n}")
    return -(-n // 64)


def pack(adjacency: NDArray[Any]) -> Words:
    """Return the parents of each node as bits: bit i of word i >> 6 of node j is set where i -> j.

    Parameters
    ----------
    adjacency : array of shape (..., n, n)
        One graph or many, n at most 256.

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
    octets = np.ascontiguousarray(parents, dtype="<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, count=n, bitorder="little")
    return np.ascontiguousarray(bits.swapaxes(-1, -2)).view(np.int8)
