"""Scalar products of bits that two parties hold, as shares (Wright & Yang 2004, section 3.2).

The key holder encrypts her bits. The helper multiplies the ciphertexts of the rows where his bit is 1, which adds up
the bits they hold, adds an encrypted mask R of his own, and returns the result. She decrypts x.y + R, he keeps -R:
shares of x.y modulo a power of two. The mask is 40 bits longer than a number of rows, so that x.y + R tells her next to
nothing (a statistical distance below 2^-40 for each masked number), and its randomiser is fresh, so that the ciphertext
doesn't tell which rows he took.
An encrypted vector serves all its products, and many bits and many products share a ciphertext; see `product_plan`.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.extras import installed_by
from gpn_bayes.private.product_plan import (
    Block,
    Bundle,
    Label,
    Pair,
    Sizes,
    plaintexts,
    plan_answers,
    plan_bundles,
)
from gpn_bayes.secure.link import Link
from gpn_bayes.secure.paillier import Integer, PrivateKey, check_key_bits, read_public_key
from gpn_bayes.secure.parts import receive_in_parts, send_in_parts
from gpn_bayes.secure.randomisers import RandomiserPool

with installed_by("private"):
    import gmpy2

_KEY = "paillier key"
_BITS = "encrypted bits"
_PRODUCTS = "masked products"

type Vectors = Callable[[Label], np.ndarray]


class ScalarProducts(ABC):
    """One party's side of all scalar products of a run; see `KeyHolder` and `Helper`.

    Both parties ask for the same products in the same order. What was asked for once is remembered.

    Attributes
    ----------
    rows, modulus : int
        Length of the vectors; shares are from 0 to modulus - 1.
    encryptions, answers : int
        How many ciphertexts the key holder and the helper have sent so far.
    """

    #: Whether this party holds the key.
    holds_key: bool

    def __init__(self, link: Link, sizes: Sizes, modulus: int, pool: RandomiserPool) -> None:
        self.rows = sizes.rows
        self.modulus = modulus
        self.encryptions = 0
        self.answers = 0
        self._link = link
        self._sizes = sizes
        self._pool = pool
        self._bundles: list[Bundle] = []
        self._shares: dict[Pair, int] = {}

    def shares(self, pairs: Sequence[Pair], vectors: Vectors) -> list[int]:
        """Return this party's shares of scalar products.

        Parameters
        ----------
        pairs : sequence of (label, label)
            The key holder's vector, and the helper's; labels are known to both.
        vectors : callable
            Gives this party's vector of zeros and ones for one of its own labels.
        """
        wanted = [pair for pair in dict.fromkeys(pairs) if pair not in self._shares]
        if wanted:
            encrypted = {label for bundle in self._bundles for label in bundle.labels}
            fresh = plan_bundles([pair for pair in wanted if pair[0] not in encrypted], self._sizes)
            answers = plan_answers([*self._bundles, *fresh], wanted, self._sizes)
            self._exchange(fresh, answers, vectors)
            self._bundles += fresh
            self.encryptions += sum(bundle.ciphertexts(self.rows) for bundle in fresh)
            self.answers += len(answers)
        return [self._shares[pair] for pair in pairs]

    def close(self) -> None:
        """Stop work in the background."""
        self._pool.close()

    @abstractmethod
    def _exchange(self, fresh: Sequence[Bundle], answers: Sequence[Sequence[Block]], vectors: Vectors) -> None:
        """Encrypt the fresh bundles, answer, and note the shares."""

    def _vector(self, label: Label, vectors: Vectors) -> NDArray[np.uint8]:
        vector = np.asarray(vectors(label))
        if vector.shape != (self.rows,) or not np.isin(vector, (0, 1)).all():
            raise ValueError(f"a vector must be {self.rows} zeros and ones; received something else")
        return vector.astype(np.uint8)

    def _note(self, blocks: Sequence[Block], slots: int, sign: int) -> None:
        """Take the shares out of an answer's slots."""
        mask = (1 << self._sizes.slot_bits) - 1
        for block in blocks:
            for j, label in enumerate(block.bundle.labels):
                value = slots >> (block.bundle.first_wanted + j) * self._sizes.slot_bits & mask
                # Of a product that was there before, the shares are kept.
                self._shares.setdefault((label, block.label), sign * value % self.modulus)
            slots >>= block.bundle.slots * self._sizes.slot_bits


class KeyHolder(ScalarProducts):
    """The party that encrypts its bits; the one with fewer columns had better be it.

    Parameters
    ----------
    link : Link
        To the helper.
    pool : RandomiserPool
        Of this party's private key; it may be filling since long before.
    rows : int
        Length of all vectors.
    modulus : int
        A power of two above `rows`, at most 2^40 times as large.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.secure.link import memory_links
    >>> from gpn_bayes.secure.paillier import generate_keys
    >>> alices_end, bobs_end = memory_links()
    >>> bobs = []
    >>> def bob():
    ...     side = Helper(bobs_end, rows=3, modulus=8, key_bits=2048)
    ...     bobs.extend(side.shares([("x", "y")], {"y": [1, 0, 1]}.get))
    >>> thread = Thread(target=bob)
    >>> thread.start()
    >>> alice = KeyHolder(alices_end, RandomiserPool(generate_keys(2048)), rows=3, modulus=8)
    >>> alices = alice.shares([("x", "y")], {"x": [1, 1, 1]}.get)
    >>> thread.join()
    >>> (alices[0] + bobs[0]) % 8
    2
    """

    holds_key = True

    def __init__(self, link: Link, pool: RandomiserPool, rows: int, modulus: int) -> None:
        if not isinstance(pool.key, PrivateKey):
            raise ValueError("the key holder's pool must be of a private key; received one of a public key")
        check_modulus(rows, modulus)
        self._key = pool.key
        super().__init__(link, Sizes(rows, self._key.bits), modulus, pool)
        link.send(_KEY, int(self._key.n).to_bytes(self._key.bits // 8, "big"))

    def _exchange(self, fresh: Sequence[Bundle], answers: Sequence[Sequence[Block]], vectors: Vectors) -> None:
        self._pool.reserve(sum(bundle.ciphertexts(self.rows) for bundle in fresh))
        for bundle in fresh:
            bits = [self._vector(label, vectors) for label in bundle.labels]
            numbers = plaintexts(bits, bundle.rows_each, self._sizes.slot_bits)
            encrypted = (self._key.to_bytes(self._pool.encrypt(number)) for number in numbers)
            send_in_parts(self._link, _BITS, encrypted)
        for blocks in answers:
            (ciphertext,) = self._key.from_bytes(self._link.receive(_PRODUCTS, self._key.ciphertext_bytes))
            self._note(blocks, self._key.decrypt(ciphertext), 1)


class Helper(ScalarProducts):
    """The party that computes with encrypted bits and knows its own.

    Parameters
    ----------
    link : Link
        To the key holder, whose key is awaited.
    rows, modulus : int
        As of the key holder.
    key_bits : int, default 3072
        Length of the key holder's key: 3072, or 2048 for 112-bit security.
    """

    holds_key = False

    def __init__(self, link: Link, rows: int, modulus: int, key_bits: int = 3072) -> None:
        check_key_bits(key_bits)
        check_modulus(rows, modulus)
        self._key = read_public_key(link.receive(_KEY, key_bits // 8), key_bits)
        self._ciphertexts: dict[Bundle, list[Integer]] = {}
        super().__init__(link, Sizes(rows, key_bits), modulus, RandomiserPool(self._key))

    def _exchange(self, fresh: Sequence[Bundle], answers: Sequence[Sequence[Block]], vectors: Vectors) -> None:
        self._pool.reserve(len(answers))
        for bundle in fresh:
            count = bundle.ciphertexts(self.rows)
            parts = receive_in_parts(self._link, _BITS, self._key.ciphertext_bytes, count)
            self._ciphertexts[bundle] = [ciphertext for part in parts for ciphertext in self._key.from_bytes(part)]
        for blocks in answers:
            self._link.send(_PRODUCTS, self._key.to_bytes(self._answer(blocks, vectors)))

    def _answer(self, blocks: Sequence[Block], vectors: Vectors) -> Integer:
        total = gmpy2.mpz(1)
        for block in reversed(blocks):
            total = self._key.shift(total, block.bundle.slots * self._sizes.slot_bits)
            total = self._key.add(total, self._product(block, self._vector(block.label, vectors)))
        masks = _pack_masks(sum(block.bundle.slots for block in blocks), self._sizes)
        self._note(blocks, masks, -1)
        return self._key.add(total, self._pool.encrypt(masks))

    def _product(self, block: Block, bits: NDArray[np.uint8]) -> Integer:
        """Return the encrypted products of one vector with a bundle, by Horner's rule over the rows of a ciphertext."""
        bundle, ciphertexts = block.bundle, self._ciphertexts[block.bundle]
        total = gmpy2.mpz(1)
        for r in range(bundle.rows_each):
            if r:
                total = self._key.shift(total, len(bundle.labels) * self._sizes.slot_bits)
            total = self._key.add(total, self._chosen(ciphertexts, bits[r :: bundle.rows_each].tolist()))
        return total

    def _chosen(self, ciphertexts: Sequence[Integer], bits: Iterable[int]) -> Integer:
        """Return the product of the ciphertexts whose bit is 1; the others are multiplied too, to take as long."""
        products = [gmpy2.mpz(1), gmpy2.mpz(1)]
        # Fewer bits than ciphertexts remain where the last ciphertext isn't full.
        for bit, ciphertext in zip(bits, ciphertexts, strict=False):
            products[bit] = self._key.add(products[bit], ciphertext)
        return products[1]


def _pack_masks(slots: int, sizes: Sizes) -> int:
    masks = 0
    for _ in range(slots):
        masks = masks << sizes.slot_bits | secrets.randbits(sizes.mask_bits)
    return masks


def check_modulus(rows: int, modulus: int) -> None:
    """Refuse a number of rows, or a modulus of shares, that can't serve.

    Examples
    --------
    >>> check_modulus(1000, 512)
    Traceback (most recent call last):
    ValueError: the modulus of shares must be a power of two from 1024 to 2^50 for 1000 rows; received 512
    """
    check_count("rows", rows, 1)
    check_count("modulus", modulus, 2)
    bits = rows.bit_length()
    largest = Sizes(rows, 0).mask_bits
    if modulus & (modulus - 1) or not 1 << bits <= modulus <= 1 << largest:
        raise ValueError(
            f"the modulus of shares must be a power of two from {1 << bits} to 2^{largest} for {rows} rows; "
            f"received {modulus}"
        )
