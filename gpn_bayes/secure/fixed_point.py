"""Numbers as integers modulo 2^128, so that masks hide them fully and sums of them are exact.

A number x becomes round(2^64 x), in two's complement, as two 64-bit words, the low one first. The scale is the same for
everybody and no secret. Numbers are kept below 2^62 / K in size, K the number of summands, so no sum can wrap around.
"""

import numpy as np
from numpy.typing import ArrayLike

from gpn_bayes._util.types import Floats, Words

FRACTION_BITS = 64
WORDS = 2
_MAGNITUDE_BITS = 62
_WORD = 2.0**64
_HALF_BITS = np.uint64(32)
_HALF = np.uint64(0xFFFFFFFF)


def largest(summands: int) -> float:
    """Return the size below which every number must stay when this many are added."""
    return 2.0**_MAGNITUDE_BITS / summands


def encode(values: ArrayLike, summands: int) -> Words:
    """Return numbers as words of the ring.

    Parameters
    ----------
    values : array of floats
        What to encode, of any shape.
    summands : int
        How many such arrays will be added.

    Returns
    -------
    ndarray of uint64, of the shape of `values` and a last axis of length 2

    Raises
    ------
    ValueError
        For NaN, or a number that is too large; the text doesn't tell the number.

    Examples
    --------
    >>> words = np.stack([encode([1.5, -2.0], 2), encode([0.25, 0.5], 2)])
    >>> decode(total(words)).tolist()
    [1.75, -1.5]
    """
    numbers = np.asarray(values, dtype=float)
    # Written so that NaN is refused too.
    if not (np.abs(numbers) < largest(summands)).all():
        raise ValueError(
            f"every number of a sum over {summands} clients must be below {largest(summands):.3g} in size; "
            "received a larger one, or NaN"
        )
    size = np.rint(np.ldexp(np.abs(np.atleast_1d(numbers)), FRACTION_BITS))
    high = np.floor(size / _WORD)
    words = np.stack([size - high * _WORD, high], axis=-1).astype(np.uint64)
    words = np.where((np.atleast_1d(numbers) < 0)[..., None], negate(words), words)
    return words.reshape(*numbers.shape, WORDS)


def decode(words: Words) -> Floats:
    """Return the numbers that words of the ring stand for, as floats."""
    flat = words.reshape(-1, WORDS)
    negative = flat[:, 1] >> np.uint64(63) == 1
    size = np.where(negative[:, None], negate(flat), flat).astype(float)
    numbers = np.ldexp(size[:, 1] * _WORD + size[:, 0], -FRACTION_BITS)
    decoded: Floats = np.where(negative, -numbers, numbers).reshape(words.shape[:-1])
    return decoded


def total(summands: Words) -> Words:
    """Return the sum in the ring over the first axis, of fewer than 2^31 summands."""
    # Halves of words are added first, and carried over once at the end.
    low, high = summands & _HALF, summands >> _HALF_BITS
    quarters = [half[..., word].sum(axis=0, dtype=np.uint64) for word in range(WORDS) for half in (low, high)]
    for place in range(1, 2 * WORDS):
        quarters[place] = quarters[place] + (quarters[place - 1] >> _HALF_BITS)
    return np.stack([q[0] & _HALF | q[1] << _HALF_BITS for q in (quarters[:2], quarters[2:])], axis=-1)


def negate(words: Words) -> Words:
    """Return what adds up to zero with the words."""
    low = ~words[..., 0:1] + np.uint64(1)
    return np.concatenate([low, ~words[..., 1:2] + (low == 0).astype(np.uint64)], axis=-1)
