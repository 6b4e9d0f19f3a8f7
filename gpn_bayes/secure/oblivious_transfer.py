"""Oblivious transfers in any number, from 128 base transfers and fast ciphers.

The extension of Ishai, Kilian, Nissim & Petrank (2003), for parties who follow the protocol. The sender holds a secret
block, the offset s. Of each transfer the sender gets a block q, and the receiver, whose choice is r, gets q + r s
(bitwise); this costs 16 bytes and is what wire labels need. Hashes of q and q + s are two keys of which the receiver
knows one; XORs of such keys, hashed again, are one key for each of many messages (Naor & Pinkas 1999).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import Ints, Words
from gpn_bayes.secure.base_transfer import receive_base, send_base
from gpn_bayes.secure.blocks import BLOCK_BYTES, WORD, TweakableHash, random_blocks
from gpn_bayes.secure.link import Link
from gpn_bayes.secure.words import bits_of, pack, reduced, unpack

with installed_by("private"):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_COLUMNS = 8 * BLOCK_BYTES
# Messages of one-of-many transfers in one go, and columns of bits turned at once: what fits a cache.
_AT_ONCE = 1 << 17
_TURNED_AT_ONCE = 1 << 10


class TransferSender:
    """The party that offers messages.

    Parameters
    ----------
    link : Link
        The way to the other party, who makes a `TransferReceiver` at the same time.

    Attributes
    ----------
    offset : ndarray of uint64, shape (2,)
        The secret block by which the two blocks of every transfer differ; its lowest bit is 1.
    hash : TweakableHash
        A hash that the other party has too.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> def offer():
    ...     TransferSender(alice).one_of_many(np.array([[10, 11, 12, 13]], dtype=np.uint64), 8)
    >>> thread = Thread(target=offer)
    >>> thread.start()
    >>> TransferReceiver(bob).one_of_many(np.array([2]), 4, 8).tolist()
    [12]
    >>> thread.join()
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.offset = random_blocks(1)[0]
        self.offset[0] |= WORD.type(1)
        self._choices = np.unpackbits(self.offset.view(np.uint8), bitorder="little")
        keys, transcript = receive_base(link, self._choices)
        self._streams = [_stream(key) for key in keys]
        self.hash = TweakableHash(transcript[:BLOCK_BYTES])

    def correlated(self, count: int) -> Words:
        """Return the blocks that the receiver gets for choice 0; those for choice 1 differ by the offset."""
        width = _bytes_for(count)
        content = self._link.receive("transfer columns", _COLUMNS * width)
        columns = np.frombuffer(content, dtype=np.uint8).reshape(_COLUMNS, width)
        chosen = columns & -self._choices[:, None]
        return _turned(_next_bytes(self._streams, width) ^ chosen, count)

    def keys(self, count: int) -> tuple[Words, Words]:
        """Return the random keys that the receiver gets for choice 0 and for choice 1, each of shape (count, 2)."""
        blocks = self.correlated(count)
        tweaks = self.hash.tweaks(count)
        return self.hash(blocks, tweaks), self.hash(blocks ^ self.offset, tweaks)

    def one_of_many(self, messages: Words, bits: int) -> None:
        """Let the receiver learn one message of each row.

        Parameters
        ----------
        messages : ndarray of uint64, shape (count, size)
            Numbers below ``2**bits``; the size is a power of two, 2 or more.
        bits : int
            A multiple of 8.
        """
        count, size = messages.shape
        levels = _levels(size)
        keys = np.stack(self.keys(levels * count)).reshape(2, levels, count, 2)
        for rows in _slices(count, size):
            combined = _all_combinations(keys[:, :, rows])
            pads = self.hash(combined, self.hash.tweaks(*combined.shape[:2]))[..., 0]
            self._link.send("transfer messages", pack(messages[rows] ^ pads, bits))

    def additive(self, differences: Words, bits: int) -> Words:
        """Return numbers x modulo ``2**bits`` such that the receiver's are -x for choice 0, difference - x for 1."""
        zeros, ones = (reduced(keys[:, 0], bits) for keys in self.keys(len(differences)))
        self._link.send("transfer corrections", pack(differences + zeros - ones, bits))
        return reduced(-zeros, bits)


class TransferReceiver:
    """The party that chooses among messages; see `TransferSender`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        keys, transcript = send_base(link, _COLUMNS)
        self._streams = [[_stream(key) for key in keys[:, choice]] for choice in (0, 1)]
        self.hash = TweakableHash(transcript[:BLOCK_BYTES])

    def correlated(self, choices: NDArray[np.uint8]) -> Words:
        """Return the sender's blocks, plus the sender's offset where the choice is 1."""
        width = _bytes_for(len(choices))
        zeros, ones = (_next_bytes(streams, width) for streams in self._streams)
        wanted = np.packbits(choices.astype(np.uint8), bitorder="little")
        self._link.send("transfer columns", (zeros ^ ones ^ wanted).tobytes())
        return _turned(zeros, len(choices))

    def keys(self, choices: NDArray[np.uint8]) -> Words:
        """Return, of each of the sender's pairs of random keys, the chosen one; shape (count, 2)."""
        return self.hash(self.correlated(choices), self.hash.tweaks(len(choices)))

    def one_of_many(self, choices: Ints, size: int, bits: int) -> Words:
        """Return one message of each of the sender's rows.

        Parameters
        ----------
        choices : ndarray of int
            Which message of each row, 0 to size - 1.
        size, bits : int
            As the sender has them.
        """
        count, levels = len(choices), _levels(size)
        wanted = bits_of(choices.astype(WORD), levels)
        keys = np.bitwise_xor.reduce(self.keys(wanted.ravel()).reshape(levels, count, 2), axis=0)
        chosen = np.empty(count, dtype=WORD)
        for rows in _slices(count, size):
            here = np.arange(len(choices[rows]))
            payload = self._link.receive("transfer messages", len(here) * size * bits // 8)
            places = (here, choices[rows])
            pads = self.hash(keys[rows], self.hash.tweaks(len(here), size)[places])[:, 0]
            chosen[rows] = reduced(unpack(payload, bits, len(here), size)[places] ^ pads, bits)
        return chosen

    def additive(self, choices: NDArray[np.uint8], bits: int) -> Words:
        """Return numbers that are, with the sender's, 0 for choice 0 and the sender's difference for choice 1."""
        keys = self.keys(choices)[:, 0]
        payload = self._link.receive("transfer corrections", len(choices) * bits // 8)
        corrections = unpack(payload, bits, len(choices))
        return reduced(keys + choices.astype(WORD) * corrections, bits)


def _stream(key: Words) -> Any:
    return Cipher(algorithms.AES(key.tobytes()), modes.CTR(bytes(BLOCK_BYTES))).encryptor()


def _next_bytes(streams: list[Any], width: int) -> NDArray[np.uint8]:
    """Return the next bytes of each stream as a row."""
    nothing = bytes(width)
    return np.frombuffer(b"".join(stream.update(nothing) for stream in streams), dtype=np.uint8).reshape(-1, width)


def _bytes_for(count: int) -> int:
    return -(-count // 8)


def _turned(columns: NDArray[np.uint8], count: int) -> Words:
    """Return the first rows of a matrix of bits that is given by columns, as blocks."""
    blocks = np.empty((count, 2), dtype=WORD)
    for start in range(0, count, 8 * _TURNED_AT_ONCE):
        part = columns[:, start // 8 : start // 8 + _TURNED_AT_ONCE]
        bits = np.unpackbits(part, axis=1, bitorder="little")
        rows = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little").view(WORD)
        blocks[start : start + 8 * _TURNED_AT_ONCE] = rows[: count - start]
    return blocks


def _levels(size: int) -> int:
    """Return how many binary choices make one among `size`."""
    if size < 2 or size & (size - 1):
        raise ValueError(f"the number of messages must be a power of two, 2 or more; received {size}")
    return size.bit_length() - 1


def _slices(count: int, size: int) -> list[slice]:
    step = max(1, _AT_ONCE // size)
    return [slice(start, start + step) for start in range(0, count, step)]


def _all_combinations(keys: Words) -> Words:
    """Return the XOR of one key of each pair, for every choice; shape (count, size, 2)."""
    combined = np.zeros((keys.shape[2], 1, 2), dtype=WORD)
    for zeros, ones in zip(*keys, strict=True):
        combined = np.concatenate([combined ^ zeros[:, None], combined ^ ones[:, None]], axis=1)
    return combined
