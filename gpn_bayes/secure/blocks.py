"""Blocks of 128 bits as pairs of 64-bit words: randomness, bytes, bits, and a hash of many at once."""

import os

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import Words

with installed_by("private"):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

BLOCK_BYTES = 16
WORD = np.dtype("<u8")


def random_words(*shape: int) -> Words:
    """Return words from the system's source of randomness."""
    return np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=WORD).reshape(shape).copy()


def random_blocks(*shape: int) -> Words:
    """Return blocks from the system's source of randomness, shape (..., 2)."""
    return random_words(*shape, 2)


def blocks_of(payload: bytes, *shape: int) -> Words:
    """Return the blocks that a message of the right length holds, shape (..., 2)."""
    return np.frombuffer(payload, dtype=WORD).reshape(*shape, 2)


def colours(blocks: Words) -> NDArray[np.uint8]:
    """Return the lowest bit of each block."""
    return (blocks[..., 0] & WORD.type(1)).astype(np.uint8)


def where_set(bits: np.ndarray, blocks: Words) -> Words:
    """Return the blocks where the bits are 1, and zeros where they are 0, without a branch."""
    return blocks & -bits.astype(WORD)[..., None]


class TweakableHash:
    """A hash of blocks that stays random where its inputs differ by one secret block.

    The construction is that of Guo, Katz, Wang & Yu (2020), tweakable and circular correlation robust where AES with a
    fixed key is a random permutation p: ``p(p(x) + i) + p(x)`` for block x and tweak i, with + bitwise. No tweak is
    used twice: both parties draw them from a counter, in the same order.

    Parameters
    ----------
    key : bytes
        16 bytes that both parties know.

    Examples
    --------
    >>> one, other = TweakableHash(bytes(16)), TweakableHash(bytes(16))
    >>> blocks = np.arange(6, dtype=np.uint64).reshape(3, 2)
    >>> bool((one(blocks, one.tweaks(3)) == other(blocks, other.tweaks(3))).all())
    True
    """

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        self._used = 0

    def tweaks(self, *shape: int) -> Words:
        """Return tweaks that weren't used before."""
        first = self._used
        self._used += int(np.prod(shape))
        return np.arange(first, self._used, dtype=WORD).reshape(shape)

    def __call__(self, blocks: Words, tweaks: Words) -> Words:
        """Return the hashes of blocks, shape (..., 2), under tweaks that broadcast to ``blocks.shape[:-1]``."""
        permuted = self._permute(blocks)
        tweaked = permuted.copy()
        tweaked[..., 0] ^= tweaks
        tweaked = self._permute(tweaked)
        tweaked ^= permuted
        return tweaked

    def _permute(self, blocks: Words) -> Words:
        content = np.ascontiguousarray(blocks, dtype=WORD)
        encrypted = self._encryptor.update(content.reshape(-1).view(np.uint8).data)
        return np.frombuffer(encrypted, dtype=WORD).reshape(blocks.shape).copy()
