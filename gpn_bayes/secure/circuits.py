"""Boolean circuits of XOR and AND gates, in layers: how to build them, and what they compute in the clear.

XOR gates are free to garble and AND gates are not, so every builder here uses as few AND gates as is known: one for
each bit that is added, compared or selected.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Ints

# Wires that every circuit has; no gate writes them.
FALSE, TRUE = 0, 1

Bits = Sequence[int]
# A number, and its place among others.
_Numbered = tuple[Bits, Bits]


class Layer(NamedTuple):
    """Gates that depend only on earlier layers: numbers of their two input wires and of their output wire.

    Attributes
    ----------
    xor, conjunction : ndarray of int64, shape (3, gates)
        First input, second input, output.
    """

    xor: np.ndarray
    conjunction: np.ndarray


class Circuit(NamedTuple):
    """A circuit between two parties.

    Attributes
    ----------
    n_inputs : tuple of int
        How many bits come from the party that leads, and from the other. Theirs are the wires from 2 on.
    n_wires : int
        All wires, with the two constant ones.
    layers : tuple of Layer
    outputs : ndarray of int64
        Wires whose bits are the result.
    """

    n_inputs: tuple[int, int]
    n_wires: int
    layers: tuple[Layer, ...]
    outputs: Ints

    @property
    def n_conjunctions(self) -> int:
        """The number of AND gates, each of which costs 32 bytes and six hashes."""
        return sum(layer.conjunction.shape[1] for layer in self.layers)

    def evaluate(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return what the circuit computes from the parties' bits, of shape (bits, batch) each.

        Examples
        --------
        >>> builder = CircuitBuilder(2, 2)
        >>> circuit = builder.build(builder.add(*builder.inputs))
        >>> circuit.evaluate(np.array([[1], [1]]), np.array([[1], [0]])).ravel().tolist()
        [0, 0]
        """
        wires: NDArray[np.uint8] = np.zeros((self.n_wires, first.shape[1]), dtype=np.uint8)
        wires[TRUE] = 1
        wires[2 : 2 + sum(self.n_inputs)] = np.concatenate([first, second])
        for layer in self.layers:
            for (one, other, out), operation in zip(layer, (np.bitwise_xor, np.bitwise_and), strict=True):
                wires[out] = operation(wires[one], wires[other])
        return wires[self.outputs]


class CircuitBuilder:
    """A circuit while it grows. Wires are numbers, and numbers are sequences of wires, lowest bit first.

    Parameters
    ----------
    n_first, n_second : int
        How many bits come from the party that leads, and from the other.

    Attributes
    ----------
    inputs : tuple of two lists of int
        The wires of either party.

    Examples
    --------
    >>> builder = CircuitBuilder(1, 1)
    >>> (mine,), (yours,) = builder.inputs
    >>> circuit = builder.build([builder.conjunction(mine, builder.negation(yours))])
    >>> circuit.evaluate(np.array([[0, 0, 1, 1]]), np.array([[0, 1, 0, 1]])).tolist()
    [[0, 0, 1, 0]]
    """

    def __init__(self, n_first: int, n_second: int) -> None:
        self._n_inputs = (n_first, n_second)
        wires = list(range(2, 2 + n_first + n_second))
        self.inputs = (wires[:n_first], wires[n_first:])
        self._depths = [0] * (2 + len(wires))
        # Gates by layer: those of XOR, and those of AND.
        self._gates: list[tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]] = []

    def xor(self, one: int, other: int) -> int:
        """Return a wire for one bit plus another."""
        if one == other:
            return FALSE
        if FALSE in (one, other):
            return max(one, other)
        return self._add_gate(one, other, 0)

    def negation(self, wire: int) -> int:
        """Return a wire for the opposite of a bit."""
        return self.xor(wire, TRUE)

    def conjunction(self, one: int, other: int) -> int:
        """Return a wire for one bit times another."""
        if FALSE in (one, other):
            return FALSE
        if one == other or TRUE in (one, other):
            return max(one, other)
        return self._add_gate(one, other, 1)

    def disjunction(self, one: int, other: int) -> int:
        """Return a wire that is 1 where any of two bits is."""
        return self.xor(self.xor(one, other), self.conjunction(one, other))

    def _add_gate(self, one: int, other: int, kind: int) -> int:
        out = len(self._depths)
        depth = max(self._depths[one], self._depths[other])
        if depth == len(self._gates):
            self._gates.append(([], []))
        self._gates[depth][kind].append((one, other, out))
        self._depths.append(depth + 1)
        return out

    def add(self, first: Bits, second: Bits) -> list[int]:
        """Return the sum of two numbers of one length, modulo that length."""
        return self._add_with_carry(first, second, FALSE)

    def subtract(self, first: Bits, second: Bits) -> list[int]:
        """Return the difference of two numbers of one length, modulo that length."""
        return self._add_with_carry(first, [self.negation(bit) for bit in second], TRUE)

    def _add_with_carry(self, first: Bits, second: Bits, carry: int) -> list[int]:
        total = []
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            total.append(self.xor(self.xor(one, other), carry))
            if place < len(first) - 1:
                both = self.conjunction(self.xor(one, carry), self.xor(other, carry))
                carry = self.xor(carry, both)
        return total

    def greater(self, first: Bits, second: Bits) -> int:
        """Return a wire that is 1 where the first number, without sign, is greater than the second."""
        larger = FALSE
        for one, other in zip(first, second, strict=True):
            # The higher bits decide; where they agree, what was found below stays.
            larger = self.xor(one, self.conjunction(self.xor(one, larger), self.xor(other, larger)))
        return larger

    def select(self, condition: int, first: Bits, second: Bits) -> list[int]:
        """Return the first number where the condition is 1, and otherwise the second."""
        return [
            self.xor(other, self.conjunction(condition, self.xor(one, other)))
            for one, other in zip(first, second, strict=True)
        ]

    def argmax(self, numbers: Sequence[Bits]) -> list[int]:
        """Return the place of the greatest number, without sign; of equal ones, of the first."""
        width = (len(numbers) - 1).bit_length()
        standing: list[_Numbered] = [(number, _constant(place, width)) for place, number in enumerate(numbers)]
        while len(standing) > 1:
            pairs = zip(standing[::2], standing[1::2], strict=False)
            winners: list[_Numbered] = [self._better(earlier, later, len(standing) == 2) for earlier, later in pairs]
            standing = winners + standing[len(standing) & ~1 :]
        return list(standing[0][1])

    def _better(self, earlier: _Numbered, later: _Numbered, last: bool) -> _Numbered:
        wins = self.greater(later[0], earlier[0])
        number = earlier[0] if last else self.select(wins, later[0], earlier[0])
        return number, self.select(wins, later[1], earlier[1])

    def build(self, outputs: Bits) -> Circuit:
        """Return the circuit that computes these wires."""
        layers = tuple(Layer(_columns(xor), _columns(conjunction)) for xor, conjunction in self._gates)
        return Circuit(self._n_inputs, len(self._depths), layers, np.array(outputs, dtype=np.int64))


def _constant(value: int, width: int) -> list[int]:
    return [TRUE if value >> place & 1 else FALSE for place in range(width)]


def _columns(gates: list[tuple[int, int, int]]) -> Ints:
    return np.array(gates, dtype=np.int64).reshape(-1, 3).T.copy()
