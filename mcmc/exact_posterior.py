"""Exact posterior probabilities of the parent sets and edges of a small network.

With S_i(P) the score of node i with parents P, and beta_i(R) the sum of S_i over the parent sets inside R,
two passes of 3^n steps over the sets of nodes: Z(U), the total weight of the DAGs on U, by inclusion and
exclusion over their sinks; and D(R), the total weight of the ways to complete a DAG on R, over the sources
outside R. K running through sets that aren't empty,

    Z(U) = sum over K in U of (-1)^(|K| + 1) Z(U - K) prod over i in K of beta_i(U - K),    Z(no node) = 1,
    D(R) = sum over K outside R of (-1)^(|K| + 1) D(R + K) prod over i in K of beta_i(R),    D(all nodes) = 1.

A set of nodes is an integer with n bits, and each beta_i is relative to beta_i(all nodes).

The signed sums are benign: an error in one term enters the result with the weight of the DAGs it concerns.
Numbers are kept as a double and a power of two, since scores may differ by any number of nats.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.kernels.graphs.subsets import superset_sums
from gpn_bayes.mcmc.sums import log_sum_inside
from gpn_bayes.mcmc.tables import ScoreTables, candidate, n_candidates, scores_of

# 2^n n doubles: 170 MB at the limit.
MAX_NODES = 20
_LOG_2 = np.log(2.0)
_NEVER = -(1 << 40)
# Factors outside these powers of two don't arise, or are too small to matter: see _references.
_LOWEST, _HIGHEST = -200, 128
_POWERS = 2.0 ** np.arange(_LOWEST, _HIGHEST + 1)
_STEPS_PER_CHUNK = 1 << 27


class ExactPosterior(NamedTuple):
    """Exact posterior probabilities.

    Attributes
    ----------
    log_z : float
        Log of the sum of the scores of all DAGs.
    parent_set_probabilities : ndarray of float64
        Probability of each parent set: the 2^k of node 0 in bitmask order, then those of node 1, …
    offsets : ndarray of int64, shape (n + 1,)
        Where each node's parent sets begin.
    edge_probabilities : ndarray of float64, shape (n, n)
        Probability of each edge, rows parents, columns children.
    condition : float
        Sum of the absolute terms of the last signed sum over its value, at most 2^n - 1.
    rounding : float
        Measured rounding error: how far a node's parent set probabilities are from summing to one, or
        how far the two passes differ in `log_z`, whichever is worst.
    """

    log_z: float
    parent_set_probabilities: Floats
    offsets: Ints
    edge_probabilities: Floats
    condition: float
    rounding: float


def exact_probabilities(tables: ScoreTables, progress: Callable[[float], None] | None = None) -> ExactPosterior:
    """Return the exact probability of every parent set and every edge.

    Parameters
    ----------
    tables : ScoreTables
        The scores of at most 20 nodes.
    progress : callable, optional
        Called now and then with the share of sets that are done.

    Examples
    --------
    >>> from gpn_bayes.mcmc.tables import build_tables
    >>> exact = exact_probabilities(build_tables([[1], [0]], [np.zeros(2), np.zeros(2)]))
    >>> round(float(np.exp(exact.log_z)), 9)  # no edge, 0 -> 1, 1 -> 0
    3.0
    """
    n = check_size(tables, MAX_NODES)
    log_beta, log_scale = spread_sums(tables)
    z_power, d_power = _references(log_beta)
    everything = (1 << n) - 1
    require_a_dag(z_power[everything] != _NEVER)
    z, d = np.zeros(1 << n), np.zeros(1 << n)
    z[0], d[everything] = 1.0, 1.0
    for first, last in in_chunks(1 << n, 3**n, progress, end=0.5):
        _push_sinks(log_beta, z_power, z, first, last)
    offsets = _offsets(tables)
    inside = np.zeros(offsets[-1])
    for first, last in in_chunks(1 << n, 3**n, progress, begin=0.5):
        down_from, down_to = (1 << n) - first, (1 << n) - last
        _pull_sources(tables, offsets, log_beta, z_power, z, d_power, d, inside, down_to, down_from)
    sets, edges = _parent_probabilities(tables, offsets, inside)
    log_z = np.log(z[everything]) + z_power[everything] * _LOG_2
    totals = np.add.reduceat(sets, offsets[:-1])
    rounding = max(abs(np.log(d[0]) + d_power[0] * _LOG_2 - log_z), np.abs(totals - 1.0).max())
    condition = _condition(log_beta, z_power, z, log_z)
    sets, edges = np.minimum(sets, 1.0), np.minimum(edges, 1.0)
    return ExactPosterior(float(log_z + log_scale), sets, offsets, edges, float(condition), float(rounding))


def check_size(tables: ScoreTables, limit: int) -> int:
    """Return the number of nodes, which mustn't exceed a limit."""
    n = len(tables.layout)
    if n > limit:
        raise ValueError(f"the exact posterior is for at most {limit} nodes; received {n}")
    return n


def require_a_dag(exists: bool) -> None:
    """Refuse scores that no DAG survives."""
    if not exists:
        raise ValueError("the scores must allow at least one DAG; every DAG has a node with score -inf")


def in_chunks(
    sets: int, steps: int, progress: Callable[[float], None] | None, begin: float = 0.0, end: float = 1.0
) -> Iterator[tuple[int, int]]:
    """Cut 0, …, sets - 1 into runs short enough to be interrupted between them, and report progress.

    Parameters
    ----------
    sets, steps : int
        How many sets, and how many elementary steps they take in all.
    progress : callable, optional
        Called after each run with a share that goes from `begin` to `end`.
    begin, end : float
        See `progress`.

    Yields
    ------
    tuple of int
        The first set of the run, and the one after its last.
    """
    size = max(sets // (1 + steps // _STEPS_PER_CHUNK), 1)
    for first in range(0, sets, size):
        last = min(first + size, sets)
        yield first, last
        if progress is not None:
            progress(begin + (end - begin) * last / sets)


@compiled
def _offsets(tables: ScoreTables) -> Ints:
    """Return where each node's parent sets begin when all are laid end to end."""
    offsets = np.zeros(len(tables.layout) + 1, dtype=np.int64)
    for i in range(len(tables.layout)):
        offsets[i + 1] = offsets[i] + (1 << n_candidates(tables, i))
    return offsets


@inner
def local_mask(tables: ScoreTables, node: int, members: int) -> int:
    """Return the candidates of a node that are in a set, as local bits."""
    mask = 0
    for b in range(n_candidates(tables, node)):
        mask |= ((members >> candidate(tables, node, b)) & 1) << b
    return mask


@compiled
def spread_sums(tables: ScoreTables) -> tuple[Floats, float]:
    """Return log beta_i(R) for all sets R, relative to all nodes, and the log of what was divided out."""
    n = len(tables.layout)
    log_beta = np.empty((n, 1 << n))
    log_scale = 0.0
    for i in range(n):
        top = log_sum_inside(tables, i, (1 << n_candidates(tables, i)) - 1)
        log_scale += top
        for members in range(1 << n):
            log_beta[i, members] = log_sum_inside(tables, i, local_mask(tables, i, members)) - top
    return log_beta, log_scale


@compiled
def _references(log_beta: Floats) -> tuple[Ints, Ints]:
    """Return powers of two that bring all Z(U) and D(R) into the range of a double.

    Let b(U) be the weight of the best way to build U node by node. Then b(U) <= Z(U) <= |U|! b(U), and no
    term of the signed sum exceeds Z(U); the same holds for D from above. Divided by the power of two next
    below b, all sums of this file lie within 1 and 2 n!, and Z(U) is zero just where b(U) is.
    """
    n, count = log_beta.shape
    best_z, best_d = np.full(count, -np.inf), np.full(count, -np.inf)
    best_z[0], best_d[-1] = 0.0, 0.0
    for members in range(count):
        other = count - 1 - members
        for i in range(n):
            less, more = members & ~(1 << i), other | (1 << i)
            if less != members:
                best_z[members] = max(best_z[members], best_z[less] + log_beta[i, less])
            if more != other:
                best_d[other] = max(best_d[other], best_d[more] + log_beta[i, other])
    return _floor_powers(best_z), _floor_powers(best_d)


@inner
def _floor_powers(log_values: Floats) -> Ints:
    powers = np.full(len(log_values), _NEVER, dtype=np.int64)
    for index in range(len(log_values)):
        if log_values[index] != -np.inf:
            powers[index] = int(np.floor(log_values[index] / _LOG_2))
    return powers


@inner
def _signed_products(log_beta: Floats, members: int, terms: Floats, powers: Ints, sets: Ints) -> int:
    """Fill in, for the sets K outside R with a positive product, what the signed sums multiply.

    The first entry (K empty) is given; entry K gets terms = (-1)^|K| terms[0] times the mantissas of
    beta_i(R) over K, powers = powers[0] plus their exponents, and sets = R | K. Returns their number.
    """
    size = 1
    sets[0] = members
    for i in range(len(log_beta)):
        log_value = log_beta[i, members]
        if (members >> i) & 1 or log_value == -np.inf:
            continue
        power = int(np.floor(log_value / _LOG_2))
        factor = -np.exp(log_value - power * _LOG_2)
        bit = 1 << i
        for k in range(size):
            terms[size + k] = terms[k] * factor
            powers[size + k] = powers[k] + power
            sets[size + k] = sets[k] | bit
        size *= 2
    return size


@compiled
def _push_sinks(log_beta: Floats, z_power: Ints, z: Floats, first: int, last: int) -> None:
    """Add to Z(R | K) its term with sinks K, for all K and the sets R from `first` to before `last`."""
    count = len(z)
    terms = np.empty(count)
    powers, sets = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for members in range(first, last):
        if z_power[members] == _NEVER:
            continue
        terms[0], powers[0] = -z[members], z_power[members]
        size = _signed_products(log_beta, members, terms, powers, sets)
        for k in range(1, size):
            power = powers[k] - z_power[sets[k]]
            if power >= _LOWEST:
                z[sets[k]] += terms[k] * _POWERS[power - _LOWEST]


@compiled
def _pull_sources(
    tables: ScoreTables,
    offsets: Ints,
    log_beta: Floats,
    z_power: Ints,
    z: Floats,
    d_power: Ints,
    d: Floats,
    inside: Floats,
    first: int,
    last: int,
) -> None:
    """Compute D(R) for the sets R from `last` - 1 down to `first`, and what the parents need of it.

    The terms of D(R) whose K contains i sum to the weight of the completions with i as the only source
    outside R, so that R is exactly what doesn't descend from i (i left out). The probability of that is
    added to `inside`, at the candidates of i in R.
    """
    count = len(z)
    terms = np.empty(count)
    powers, sets = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for members in range(min(last, count - 1) - 1, first - 1, -1):
        if z_power[members] == _NEVER or d_power[members] == _NEVER:
            continue
        terms[0], powers[0] = -1.0, 0
        size = _signed_products(log_beta, members, terms, powers, sets)
        terms[0] = 0.0
        for k in range(1, size):
            power = powers[k] + d_power[sets[k]] - d_power[members]
            terms[k] *= d[sets[k]] * _POWERS[power - _LOWEST] if power >= _LOWEST else 0.0
        power = max(z_power[members] + d_power[members] - z_power[-1], _LOWEST)
        share = z[members] / z[-1] * _POWERS[power - _LOWEST]
        # Fold the highest node away, time after time: what is folded is the sum over the K that hold it.
        while size > 1:
            size //= 2
            only_source = 0.0
            for k in range(size):
                only_source += terms[size + k]
                terms[k] += terms[size + k]
            i = lowest_bit(sets[size] ^ members)
            # A true zero can come out a little below it.
            inside[offsets[i] + local_mask(tables, i, members)] += max(only_source, 0.0) * share
        d[members] = terms[0]


@inner
def lowest_bit(mask: int) -> int:
    """Return the position of the lowest bit set."""
    position = 0
    while not (mask >> position) & 1:
        position += 1
    return position


@compiled
def _parent_probabilities(tables: ScoreTables, offsets: Ints, inside: Floats) -> tuple[Floats, Floats]:
    """Return P(parents = P) = S_i(P) sum over R that contain P of P(R) / beta_i(R), and the edges."""
    n = len(tables.layout)
    sets, edges = np.zeros(len(inside)), np.zeros((n, n))
    for i in range(n):
        scores = scores_of(tables, i)
        own = inside[offsets[i] : offsets[i + 1]]
        top = log_sum_inside(tables, i, len(own) - 1)
        ratios = np.full(len(own), -np.inf)
        for mask in range(len(own)):
            if own[mask] > 0.0:
                ratios[mask] = np.log(own[mask]) - (log_sum_inside(tables, i, mask) - top)
        ratios = superset_sums(ratios)
        for mask in range(len(own)):
            probability = np.exp(ratios[mask] + (scores[mask] - top))
            sets[offsets[i] + mask] = probability
            for b in range(n_candidates(tables, i)):
                if (mask >> b) & 1:
                    edges[candidate(tables, i, b), i] += probability
    return sets, edges


@compiled
def _condition(log_beta: Floats, z_power: Ints, z: Floats, log_z: float) -> float:
    """Return the sum of the absolute terms of Z(all nodes) over its value."""
    total = 0.0
    for members in range(len(z) - 1):
        if z_power[members] != _NEVER:
            log_term = np.log(z[members]) + z_power[members] * _LOG_2 - log_z
            for i in range(len(log_beta)):
                if not (members >> i) & 1:
                    log_term += log_beta[i, members]
            total += np.exp(log_term)
    return total
