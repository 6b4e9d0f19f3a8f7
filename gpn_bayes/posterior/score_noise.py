"""How the errors of scores reach probabilities: all DAGs share them, so that more draws don't average them out."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats

# Entries of the largest table that is made at a time.
_CHUNK = 10_000_000


class DrawnSets(NamedTuple):
    """The distinct parent sets of draws.

    Attributes
    ----------
    keys : list of (int, tuple of int)
        Each node with each of its parent sets.
    places : ndarray of int, shape (chain, draw, node)
        Which of them a node has in a draw.
    """

    keys: list[tuple[int, tuple[int, ...]]]
    places: np.ndarray


def drawn_sets(parents: np.ndarray) -> DrawnSets:
    """Return the distinct parent sets of DAGs.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> dags = np.array([[[[0, 1], [0, 0]], [[0, 0], [0, 0]]]])
    >>> sets = drawn_sets(graphs.pack(dags))
    >>> sets.keys
    [(0, ()), (1, ()), (1, (0,))]
    >>> sets.places.tolist()
    [[[0, 2], [0, 1]]]
    """
    n, words = parents.shape[2:]
    keys: list[tuple[int, tuple[int, ...]]] = []
    places = np.empty(parents.shape[:3], dtype=np.int64)
    for node in range(n):
        rows, inverse = np.unique(parents[:, :, node].reshape(-1, words), axis=0, return_inverse=True)
        places[..., node] = inverse.reshape(places.shape[:2]) + len(keys)
        bits = (rows[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        which, members = np.nonzero(bits.reshape(len(rows), -1))
        ends = np.searchsorted(which, np.arange(1, len(rows))).tolist()
        numbers = members.tolist()
        keys += [(node, tuple(numbers[a:b])) for a, b in pairwise([0, *ends, len(numbers)])]
    return DrawnSets(keys, places)


class ScoreNoise:
    """The errors of the scores behind some DAGs, and what they do to weighted means over these DAGs.

    Where the score of node i given parent set s is off by a little, DAGs in which i has the parents s weigh more or
    less, and the mean of f moves by that much times Cov(f, 1[i has parents s]). The scores' errors are independent, so
    the squares add up.

    Parameters
    ----------
    parents : ndarray of uint64, shape (dag, node, words)
        Distinct DAGs.
    weights : ndarray of shape (dag,)
        Their weights, any scale.
    errors : ndarray of shape (dag, node)
        Standard error of each node's score; one that is unknown counts for nothing.
    """

    def __init__(self, parents: np.ndarray, weights: np.ndarray, errors: np.ndarray) -> None:
        from scipy import sparse

        self._shares = weights / weights.sum()
        sets = drawn_sets(parents[None])
        known = np.where(np.isfinite(errors), errors, 0.0)
        dag, node = np.nonzero(known)
        entries = known[dag, node] * self._shares[dag]
        shape = len(sets.keys), len(weights)
        self._influence = sparse.csr_matrix((entries, (sets.places[0, dag, node], dag)), shape)
        self._largest = np.sqrt(2 * (known.max(axis=0) ** 2).sum())

    def errors_of(self, features: np.ndarray) -> np.ndarray:
        """Return the standard error that the scores leave in the mean of each feature.

        Parameters
        ----------
        features : ndarray of shape (dag, feature)
            Values of the features.
        """
        step = max(1, _CHUNK // max(self._influence.shape))
        parts = []
        for begin in range(0, features.shape[1], step):
            part = np.asarray(features[:, begin : begin + step], dtype=float)
            moved = self._influence @ (part - self._shares @ part)
            parts.append(np.sqrt((moved**2).sum(axis=0)))
        return np.concatenate(parts) if parts else np.zeros(0)

    def bound(self, distance: np.ndarray) -> np.ndarray:
        """Return the largest error that the scores can leave in the mean of a feature that these DAGs all share.

        Weighted by how far it is from there in other DAGs, and in all DAGs, a node has the parents s with probabilities
        whose squared differences sum to at most 2 over all s; times the distance these are the covariances.

        Parameters
        ----------
        distance : ndarray
            How far the mean over all DAGs is from the value in these.
        """
        largest: Floats = np.abs(distance) * self._largest
        return largest
