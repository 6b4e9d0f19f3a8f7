"""What is encrypted together and answered together in a batch of scalar products; both parties compute the same plan.

A ciphertext of the key holder's holds g of her vectors at k rows each, in slots: vector j at row r stands in slot
j + g r. The helper's bit at row r shifts it by g (k - 1 - r) slots, so that of g (2k - 1) slots the g middle ones, from
g (k - 1) on, hold the products and the others what nobody needs. Many rows a ciphertext save encryptions, many vectors
save answers; the plan weighs one against the other.
"""

from collections.abc import Hashable, Iterable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STATISTICAL_BITS = 40
# Times in multiplications modulo n^2, for each bit of the key, as measured with gmpy2.
_HOLDER_ENCRYPTION = 0.3
_HELPER_RANDOMISER = 1.0
_DECRYPTION = 0.35

type Label = Hashable
type Pair = tuple[Label, Label]


class Sizes(NamedTuple):
    """What both parties know of all products: the rows, and the length of the key."""

    rows: int
    key_bits: int

    @property
    def mask_bits(self) -> int:
        """Length of a mask, which hides any number of rows but for 2^-40."""
        return self.rows.bit_length() + STATISTICAL_BITS

    @property
    def slot_bits(self) -> int:
        """Length of a slot, in which a number of rows and its mask can't overflow."""
        return self.mask_bits + 1


class Bundle(NamedTuple):
    """Vectors of the key holder's that are encrypted together, and the rows in one ciphertext."""

    labels: tuple[Label, ...]
    rows_each: int

    @property
    def slots(self) -> int:
        """Slots of one answer."""
        return len(self.labels) * (2 * self.rows_each - 1)

    @property
    def first_wanted(self) -> int:
        """The slot of an answer that holds the first vector's product."""
        return len(self.labels) * (self.rows_each - 1)

    def ciphertexts(self, rows: int) -> int:
        """How many ciphertexts hold all rows."""
        return ceil(rows / self.rows_each)


class Block(NamedTuple):
    """The products of one of the helper's vectors with a bundle: part of an answer."""

    bundle: Bundle
    label: Label


def plaintexts(vectors: Sequence[NDArray[np.uint8]], rows_each: int, slot_bits: int) -> list[int]:
    """Return the numbers that hold vectors of bits, by slots; see the module's text.

    Examples
    --------
    >>> [bin(x) for x in plaintexts([np.array([1, 0, 1]), np.array([0, 1, 1])], rows_each=2, slot_bits=4)]
    ['0b1000000000001', '0b10001']
    """
    g, rows = len(vectors), len(vectors[0])
    count = ceil(rows / rows_each)
    bits = np.zeros((count * rows_each, g, slot_bits), dtype=np.uint8)
    bits[:rows, :, 0] = np.stack(vectors, axis=1)
    packed = np.packbits(bits.reshape(count, rows_each * g * slot_bits), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def plan_bundles(pairs: Sequence[Pair], sizes: Sizes) -> list[Bundle]:
    """Return the bundles that give these products in the shortest time.

    Parameters
    ----------
    pairs : sequence of (label, label)
        The key holder's and the helper's vector of each product.
    sizes : Sizes
        What both parties know.
    """
    labels = list(dict.fromkeys(mine for mine, _ in pairs))
    slots = (sizes.key_bits - 1) // sizes.slot_bits
    # Bundles of as equal sizes as can be, each size once.
    widths = {ceil(len(labels) / parts) for parts in range(1, len(labels) + 1)}
    plans = [
        [Bundle(tuple(labels[i : i + g]), k) for i in range(0, len(labels), g)]
        for g in sorted(widths)
        for k in range(1, (slots // g + 1) // 2 + 1)
    ]
    return min(plans, key=lambda bundles: work_of(bundles, pairs, sizes), default=[])


def plan_answers(bundles: Iterable[Bundle], pairs: Sequence[Pair], sizes: Sizes) -> list[list[Block]]:
    """Return the blocks that hold these products, as many to an answer as fit."""
    wanted: dict[Label, list[Label]] = {}
    for mine, theirs in pairs:
        wanted.setdefault(mine, []).append(theirs)
    slots = (sizes.key_bits - 1) // sizes.slot_bits
    answers: list[list[Block]] = []
    room = 0
    for bundle in bundles:
        for label in dict.fromkeys(theirs for mine in bundle.labels for theirs in wanted.get(mine, ())):
            if room < bundle.slots:
                answers.append([])
                room = slots
            answers[-1].append(Block(bundle, label))
            room -= bundle.slots
    return answers


def work_of(bundles: Sequence[Bundle], pairs: Sequence[Pair], sizes: Sizes) -> float:
    """Return what products take with these bundles, by both parties, in multiplications modulo n^2."""
    encryptions = sum(bundle.ciphertexts(sizes.rows) for bundle in bundles)
    answers = plan_answers(bundles, pairs, sizes)
    shifted = sum(block.bundle.slots + block.bundle.first_wanted for blocks in answers for block in blocks)
    multiplied = sizes.rows * sum(map(len, answers))
    per_bit = _HOLDER_ENCRYPTION * encryptions + (_HELPER_RANDOMISER + _DECRYPTION) * len(answers)
    return sizes.key_bits * per_bit + shifted * sizes.slot_bits + multiplied
