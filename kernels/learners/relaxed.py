"""A fractional choice of parent sets: the clusters of nodes that run in circles in it, and an order that comes near.

In a DAG every cluster C of nodes has one whose parents all lie outside C. A point x of the relaxed problem, with
x(i, P) the share in which node i has the parents P, breaks that rule for C where the shares of the sets that avoid C,
summed over the nodes of C, stay below 1.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Bools, Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.learners.parent_sets import ParentSets, contains, insert


@inner
def _meets(first: Words, second: Words) -> bool:
    """Tell whether two sets of nodes have a node in common."""
    shared = np.uint64(0)
    for word in range(len(first)):
        shared |= first[word] & second[word]
    meets: bool = shared != np.uint64(0)
    return meets


@compiled
def rows_avoiding(sets: ParentSets, cluster: Words) -> NDArray[np.int32]:
    """Return the rows of the parent sets of a cluster's nodes that have no member in the cluster."""
    rows = np.empty(len(sets.scores), np.int32)
    count = 0
    for node in range(len(sets.starts) - 1):
        if not contains(cluster, node):
            continue
        for row in range(sets.starts[node], sets.starts[node + 1]):
            if not _meets(sets.words[row], cluster):
                rows[count] = row
                count += 1
    return rows[:count].copy()


@inner
def _gains(nodes: Ints, words: Words, shares: Floats, cluster: Words, gains: Floats) -> None:
    """Write by how much the shares of sets that meet the cluster grow with each node that joins it."""
    # gain_k = sum of x(k, P) over P that meet C, and of x(i, P) over i in C and P that hold k and avoid C.
    gains[:] = 0.0
    for row in range(len(nodes)):
        inside = contains(cluster, nodes[row])
        meets = _meets(words[row], cluster)
        if meets and not inside:
            gains[nodes[row]] += shares[row]
        elif inside and not meets:
            for member in range(len(gains)):
                if contains(words[row], member):
                    gains[member] += shares[row]


@inner
def _next_member(gains: Floats, cluster: Words) -> int:
    best = -1
    for node in range(len(gains)):
        if not contains(cluster, node) and (best < 0 or gains[node] > gains[best]):
            best = node
    return best


@inner
def _grow(nodes: Ints, words: Words, shares: Floats, cluster: Words, outside: float, gains: Floats) -> float:
    """Let a cluster take in the node that helps most until its rule is broken, and then while that makes it worse.

    `outside` is what the sets that avoid the cluster sum to; returns that sum for the grown cluster.
    """
    for _ in range(len(gains)):
        _gains(nodes, words, shares, cluster, gains)
        node = _next_member(gains, cluster)
        if node < 0 or (outside < 1.0 and gains[node] <= 1.0 + 1e-9) or gains[node] < 0.5:
            break
        insert(cluster, node)
        # With S(C) = sum over i in C of sum of x(i, P) over P that avoid C: S(C + k) = S(C) + 1 - gain_k.
        outside += 1.0 - gains[node]
    return outside


@compiled
def grown_clusters(n: int, nodes: Ints, words: Words, shares: Floats, tolerance: float) -> tuple[Words, Floats]:
    """Look for clusters whose rule is broken, one from every edge with a share of its own.

    Parameters
    ----------
    n : int
        Number of nodes.
    nodes, words, shares : ndarray
        The parent sets with a positive share: whose they are, their members, and the share. Empty sets may be left out.
    tolerance : float
        By how much a rule must be broken.

    Returns
    -------
    clusters : ndarray of uint64, shape (found, words)
        The clusters, some perhaps more than once.
    outside : ndarray of float
        What the sets that avoid each of them sum to: below 1 - tolerance.
    """
    clusters = np.zeros((64, words.shape[1]), np.uint64)
    sums = np.empty(64)
    gains = np.empty(n)
    cluster = np.empty(words.shape[1], np.uint64)
    count = 0
    for row in range(len(nodes)):
        for member in range(n):
            if not contains(words[row], member):
                continue
            cluster[:] = 0
            insert(cluster, nodes[row])
            _gains(nodes, words, shares, cluster, gains)
            insert(cluster, member)
            # S({i}) = 1, so S({i, k}) = 2 - gain_k.
            outside = _grow(nodes, words, shares, cluster, 2.0 - gains[member], gains)
            if outside >= 1.0 - tolerance:
                continue
            if count == len(sums):
                clusters = np.concatenate((clusters, np.zeros_like(clusters)))
                sums = np.concatenate((sums, sums))
            clusters[count] = cluster
            sums[count] = outside
            count += 1
    return clusters[:count].copy(), sums[:count].copy()


@compiled
def order_of_shares(sets: ParentSets, shares: Floats) -> Ints:
    """Return the order in which every next node has the largest share of sets within the nodes before it."""
    n = len(sets.starts) - 1
    order = np.empty(n, np.int64)
    placed = np.zeros(sets.words.shape[1], np.uint64)
    for place in range(n):
        best, chosen = -np.inf, -1
        for node in range(n):
            if contains(placed, node):
                continue
            # The sum of x(i, P) over P within those placed.
            # A node without any set within those placed must wait, whatever its shares.
            share, possible = 0.0, False
            for row in range(sets.starts[node], sets.starts[node + 1]):
                outside = np.uint64(0)
                for word in range(len(placed)):
                    outside |= sets.words[row, word] & ~placed[word]
                if outside == np.uint64(0):
                    share += shares[row]
                    possible = True
            if not possible:
                share -= 2.0
            if share > best:
                best, chosen = share, node
        order[place] = chosen
        insert(placed, chosen)
    return order


@compiled
def edge_shares(sets: ParentSets, shares: Floats) -> Floats:
    """Return the share of every edge, rows parents."""
    n = len(sets.starts) - 1
    edges = np.zeros((n, n))
    for node in range(n):
        for row in range(sets.starts[node], sets.starts[node + 1]):
            # The share of j -> i is the sum of x(i, P) over P that hold j.
            if shares[row] > 0.0:
                for parent in range(n):
                    if contains(sets.words[row], parent):
                        edges[parent, node] += shares[row]
    return edges


@compiled
def sets_against_order(sets: ParentSets, before: Bools) -> Bools:
    """Tell of each parent set whether it holds a node that its own comes before."""
    n = len(sets.starts) - 1
    against = np.zeros(len(sets.scores), np.bool_)
    for node in range(n):
        for later in range(n):
            if before[node, later]:
                for row in range(sets.starts[node], sets.starts[node + 1]):
                    against[row] |= contains(sets.words[row], later)
    return against
