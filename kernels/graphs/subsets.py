"""Sums over the subset lattice, in log space: the tables every sampler reads."""

from collections.abc import Iterator

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner

MAX_CANDIDATES = 20
# Below this difference the smaller term changes nothing in double precision.
_NEGLIGIBLE = -40.0


def members_of(mask: int) -> Iterator[int]:
    """Yield the positions of the bits set in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@inner
def log_add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b)) without overflow."""
    if a < b:
        a, b = b, a
    # Also catches a = -inf, where the difference would be NaN.
    if b == -np.inf or b - a < _NEGLIGIBLE:
        return a
    # log(e^a + e^b) = a + log(1 + e^(b - a)), with a the larger.
    total: float = a + np.log1p(np.exp(b - a))
    return total


@compiled
def subset_sums(log_values: Floats) -> Floats:
    """Return log sum over Q subset of P of exp(log_values[Q]), for every mask P (zeta transform)."""
    sums = log_values.copy()
    size = len(sums)
    step = 1
    while step < size:
        for start in range(0, size, 2 * step):
            for low in range(start, start + step):
                # Of P with the bit, Q may have it or not: S(P + bit) = log(e^S(P + bit) + e^S(P)).
                sums[low + step] = log_add(sums[low + step], sums[low])
        step *= 2
    return sums


@compiled
def superset_sums(log_values: Floats) -> Floats:
    """Return log sum over Q superset of P of exp(log_values[Q]), for every mask P."""
    sums = log_values.copy()
    size = len(sums)
    step = 1
    while step < size:
        for start in range(0, size, 2 * step):
            for low in range(start, start + step):
                # Of P without the bit, Q may have it or not: S(P) = log(e^S(P) + e^S(P + bit)).
                sums[low] = log_add(sums[low], sums[low + step])
        step *= 2
    return sums


@compiled
def without_bit(mask: int, bit: int) -> int:
    """Squeeze a bit out of a mask: the higher bits move one place down."""
    low = mask & ((1 << bit) - 1)
    return low | ((mask >> (bit + 1)) << bit)


@compiled
def sums_containing(log_values: Floats, bit: int) -> Floats:
    """Return log sum over Q subset of P with `bit` in Q, indexed by P without that bit.

    Every term is positive, so nothing cancels, unlike in the difference of two subset sums.
    """
    half = np.empty(len(log_values) // 2)
    for mask in range(len(log_values)):
        if (mask >> bit) & 1:
            half[without_bit(mask, bit)] = log_values[mask]
    return subset_sums(half)


@inner
def popcount(mask: int) -> int:
    """Return the number of bits set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
