"""Numbers modulo a power of two, as both parties add them: reduced, masked, and packed for a message."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Ints, Words
from gpn_bayes.secure.blocks import WORD

MAX_BITS = 64


def check_bits(bits: int) -> None:
    """Refuse a number of bits that doesn't fill whole bytes of a word.

    Examples
    --------
    >>> check_bits(12)
    Traceback (most recent call last):
    ValueError: bits must be a multiple of 8 between 8 and 64; received 12
    """
    if bits not in range(8, MAX_BITS + 1, 8):
        raise ValueError(f"bits must be a multiple of 8 between 8 and 64; received {shown(bits)}")


def reduced(values: np.ndarray, bits: int) -> Words:
    """Return whole numbers of either sign modulo ``2**bits``, as words.

    Examples
    --------
    >>> reduced(np.array([-1, 256, 3]), 8).tolist()
    [255, 0, 3]
    """
    return np.asarray(values).astype(WORD) & WORD.type((1 << bits) - 1)


def signed(words: Words, bits: int) -> Ints:
    """Return words modulo ``2**bits`` as the numbers of either sign that they stand for.

    Examples
    --------
    >>> signed(np.array([255, 0, 3], dtype=np.uint64), 8).tolist()
    [-1, 0, 3]
    """
    shift = WORD.type(MAX_BITS - bits)
    return (reduced(words, bits) << shift).view(np.int64) >> np.int64(MAX_BITS - bits)


def summed(parts: Iterable[np.ndarray], bits: int) -> np.ndarray:
    """Return the sum of all words in some arrays, modulo ``2**bits``, as an array without axes.

    Examples
    --------
    >>> int(summed([np.array([250, 7], dtype=np.uint64), np.array([[1]], dtype=np.uint64)], 8))
    2
    """
    # The sum of an array wraps around; that of two single words would warn.
    return reduced(np.asarray(np.concatenate([part.ravel() for part in parts]).sum(dtype=WORD)), bits)


def pack(words: Words, bits: int) -> bytes:
    """Return words modulo ``2**bits`` in as few bytes as hold them."""
    return np.ascontiguousarray(words, dtype=WORD)[..., None].view(np.uint8)[..., : bits // 8].tobytes()


def unpack(payload: bytes, bits: int, *shape: int) -> Words:
    """Return the words of a message of the right length; the inverse of `pack`."""
    content = np.frombuffer(payload, dtype=np.uint8).reshape(*shape, bits // 8)
    padded = np.zeros((*shape, 8), dtype=np.uint8)
    padded[..., : bits // 8] = content
    return padded.view(WORD)[..., 0]


def bits_of(words: Words, bits: int) -> NDArray[np.uint8]:
    """Return the lowest bits of words, lowest first, along a new first axis.

    Examples
    --------
    >>> bits_of(np.array([6, 1], dtype=np.uint64), 3).tolist()
    [[0, 1], [1, 0], [1, 0]]
    """
    places = np.arange(bits, dtype=WORD).reshape(-1, *[1] * np.ndim(words))
    return ((words >> places) & WORD.type(1)).astype(np.uint8)


def words_of(bits: NDArray[np.uint8]) -> Words:
    """Return the words whose bits, lowest first, stand along the first axis; the inverse of `bits_of`."""
    places = np.arange(len(bits), dtype=WORD).reshape(-1, *[1] * (bits.ndim - 1))
    words: Words = np.bitwise_or.reduce(bits.astype(WORD) << places, axis=0)
    return words
