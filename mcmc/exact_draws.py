"""Independent draws from the exact posterior over DAGs of a small network.

Every DAG has one layering: block 0 holds the roots; a node in a later block has all its parents in earlier
blocks and at least one in the block just before. F(U, L), the total weight of the DAGs on U whose last
block is L, follows from smaller sets in 4^n steps, all terms positive:

    F(V + L, L) = sum over blocks B in V of F(V, B) prod over i in L of (beta_i(V) - beta_i(V - B)),

and F(L, L) is the product of beta_i(no node). A draw walks back: the last block, the block before it, and so
on, and for each node parents that fit. Sets of nodes and beta_i are as in `gpn_bayes.mcmc.exact_posterior`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.mcmc.choices import Chance, is_scripted, note, prescribed
from gpn_bayes.mcmc.draw_dag import draw_parents, store_parents
from gpn_bayes.mcmc.exact_posterior import (
    check_size,
    in_chunks,
    local_mask,
    lowest_bit,
    require_a_dag,
    spread_sums,
)
from gpn_bayes.mcmc.sums import log_sum_meeting
from gpn_bayes.mcmc.tables import ScoreTables, log_score_of

# 3^n doubles: 1 GB at the limit.
MAX_NODES = 17
# A smaller share of the DAGs on a set is dropped: no DAG of larger posterior probability needs it. It also
# keeps all products above the range where doubles get slow.
_NEGLIGIBLE = 1e-40


class LayeredWeights(NamedTuple):
    """The weights of the DAGs on each set of nodes by their last block.

    Attributes
    ----------
    log_beta : ndarray of float64, shape (n, 2^n)
        log of beta_i(R), relative to all nodes.
    ternary : ndarray of int64, shape (2^n,)
        The sum of 3^i over the members of each set.
    shares : ndarray of float64, shape (3^n,)
        F(U, L) / Z(U), at ``ternary[U] + ternary[L]``. Until U is reached, log F(U, L), relative.
    log_z : ndarray of float64, shape (2^n,)
        log Z(U), the log of F(U, L) summed over L, relative.
    log_scale : float
        What was divided out, so that the log weight of all DAGs is ``log_z[-1] + log_scale``.
    """

    log_beta: Floats
    ternary: Ints
    shares: Floats
    log_z: Floats
    log_scale: float


def layered_weights(tables: ScoreTables, progress: Callable[[float], None] | None = None) -> LayeredWeights:
    """Return the weights from which `draw_exact` draws.

    Parameters
    ----------
    tables : ScoreTables
        The scores of at most 17 nodes.
    progress : callable, optional
        Called now and then with the share of the work that is done.
    """
    n = check_size(tables, MAX_NODES)
    log_beta, log_scale = spread_sums(tables)
    ternary = np.zeros(1 << n, dtype=np.int64)
    for i in range(n):
        ternary[1 << i : 2 << i] = ternary[: 1 << i] + 3**i
    weights = LayeredWeights(log_beta, ternary, np.full(3**n, -np.inf), np.full(1 << n, -np.inf), log_scale)
    for first, last in in_chunks(1 << n, 4**n, progress):
        _add_blocks(weights, first, last)
    require_a_dag(weights.log_z[-1] != -np.inf)
    return weights


@compiled
def draw_exact(
    chance: Chance, tables: ScoreTables, weights: LayeredWeights, out_words: Words, out_log_score: Floats
) -> None:
    """Draw independent DAGs from the posterior.

    Parameters
    ----------
    chance : Chance
        The source of randomness.
    tables : ScoreTables
        The scores.
    weights : LayeredWeights
        What `layered_weights` returned for them.
    out_words : ndarray of uint64, shape (draws, n, words)
        Filled with the parents of each node as bits.
    out_log_score : ndarray of float64, shape (draws,)
        Filled with the log scores.
    """
    parents = np.zeros(len(tables.layout), dtype=np.int64)
    for draw in range(len(out_log_score)):
        rest = len(weights.log_z) - 1
        block = _draw_block(chance, weights, rest, 0)
        while block != rest:
            rest &= ~block
            before = _draw_block(chance, weights, rest, block)
            for i in range(len(parents)):
                if (block >> i) & 1:
                    inside, needed = local_mask(tables, i, rest), local_mask(tables, i, before)
                    log_total = log_sum_meeting(tables, i, inside, needed)
                    parents[i] = draw_parents(chance, tables, i, inside, needed, log_total)
            block = before
        for i in range(len(parents)):
            if (block >> i) & 1:
                parents[i] = 0
        store_parents(tables, parents, out_words[draw])
        out_log_score[draw] = log_score_of(tables, parents)


@inner
def _meeting_share(log_beta: Floats, node: int, members: int, block: int) -> float:
    """Return the share of beta_i(V) that is due to parent sets which meet a block."""
    difference = log_beta[node, members & ~block] - log_beta[node, members]
    if difference < -40.0:
        return 1.0
    share: float = max(1.0 - np.exp(difference), 0.0)
    return share


@compiled
def _add_blocks(weights: LayeredWeights, first: int, last: int) -> None:
    """Sum up Z(V), then compute F(V | L, L) for all L, for the sets V from `first` to before `last`."""
    log_beta, ternary, log_f, log_z, _ = weights
    n, count = log_beta.shape
    sums, products = np.empty(count), np.empty(count)
    log_products, places = np.empty(count), np.empty(count, dtype=np.int64)
    nodes = np.empty(n, dtype=np.int64)
    for members in range(first, last):
        log_z[members] = _settle_shares(weights, members)
        if log_z[members] == -np.inf:
            continue
        free, size = 0, 1
        log_products[0], places[0] = log_z[members], ternary[members]
        for i in range(n):
            log_value = log_beta[i, members]
            if not (members >> i) & 1 and log_value != -np.inf:
                nodes[free] = i
                free += 1
                for k in range(size):
                    log_products[size + k] = log_products[k] + log_value
                    places[size + k] = places[k] + 2 * ternary[1 << i]
                size *= 2
        if free == 0:
            continue
        _sum_blocks(weights, members, nodes[:free], products, sums)
        for k in range(1, size):
            if sums[k] > 0.0:
                log_f[places[k]] = log_products[k] + np.log(sums[k])


@inner
def _settle_shares(weights: LayeredWeights, members: int) -> float:
    """Turn log F(V, L) into shares of Z(V), for all L, and return log Z(V)."""
    if members == 0:
        return 0.0
    own = weights.shares[weights.ternary[members] :]
    top, total = -np.inf, 0.0
    block = members
    while block:
        top = max(top, own[weights.ternary[block]])
        block = (block - 1) & members
    block = members
    while block:
        place = weights.ternary[block]
        own[place] = np.exp(own[place] - top) if own[place] != -np.inf else 0.0
        total += own[place]
        block = (block - 1) & members
    block = members
    while block:
        place = weights.ternary[block]
        own[place] = own[place] / total if own[place] > _NEGLIGIBLE else 0.0
        block = (block - 1) & members
    return top + np.log(total) if total > 0.0 else -np.inf


@inner
def _sum_blocks(weights: LayeredWeights, members: int, nodes: Ints, products: Floats, sums: Floats) -> None:
    """Fill sums[L] with the share of the DAGs on V, L hung below, where all of L meets the last block."""
    free = len(nodes)
    half = 1 << (free - 1)
    if members == 0:
        sums[: 2 * half] = 1.0
        return
    sums[: 2 * half] = 0.0
    shares = np.empty(free)
    base = weights.ternary[members]
    block = members
    while block:
        share = weights.shares[base + weights.ternary[block]]
        if share > 0.0:
            for k in range(free):
                shares[k] = _meeting_share(weights.log_beta, nodes[k], members, block)
            _add_products(share, shares, products, sums)
        block = (block - 1) & members


@inner
def _add_products(start: float, factors: Floats, products: Floats, sums: Floats) -> None:
    """Add to sums[L] the product of `start` and the factors of L, for all L."""
    products[0] = start
    size = 1
    for b in range(len(factors) - 1):
        factor = factors[b]
        for k in range(size):
            products[size + k] = products[k] * factor
        size *= 2
    factor = factors[-1]
    for k in range(size):
        sums[k] += products[k]
        sums[size + k] += products[k] * factor


@inner
def _draw_block(chance: Chance, weights: LayeredWeights, members: int, below: int) -> int:
    """Draw the last block of the DAG on a set, given the block below it (0: none)."""
    scripted = is_scripted(chance)
    wanted = prescribed(chance) if scripted else -1
    target = 0.0 if scripted else chance.rng.random()
    total = _share_meeting_last(weights, members, below)
    base = weights.ternary[members]
    reached, chosen_probability = 0.0, 0.0
    options, chosen = 0, -1
    block = members
    while block:
        probability = weights.shares[base + weights.ternary[block]] / total
        left = below
        while left and probability > 0.0:
            i = lowest_bit(left)
            probability *= _meeting_share(weights.log_beta, i, members, block)
            left &= left - 1
        if probability > 0.0:
            if not scripted or options == wanted:
                chosen, chosen_probability = block, probability
            options += 1
            reached += probability
            if not scripted and target < reached:
                return block
        block = (block - 1) & members
    # Reached when scripted, or when rounding left the sum of probabilities just short of the target.
    if scripted:
        note(chance, options, chosen_probability)
    return chosen


@inner
def _share_meeting_last(weights: LayeredWeights, members: int, below: int) -> float:
    """Return the share of the DAGs on V, L hung below, where all of L meets the last block."""
    if below == 0:
        return 1.0
    both = members | below
    log_share = weights.log_z[both] - weights.log_z[members]
    for i in range(len(weights.log_beta)):
        if (below >> i) & 1:
            log_share -= weights.log_beta[i, members]
    share: float = weights.shares[weights.ternary[both] + weights.ternary[below]] * np.exp(log_share)
    return share
