"""ln x and x ln x of a shared whole number, as Lindell & Pinkas (2000) compute them, in shares again.

A garbled circuit finds the power of two next to x, so that x = 2**e (1 + d) with -1/4 <= d < 1/2, and leaves e and d in
shares. Then ln x = e ln 2 + (d - d**2 / 2 + d**3 / 3 - …), and the polynomial, cut off where it no longer matters, is
evaluated obliviously. With x below some ten thousand, d takes so few values that the cheapest way to do that is a
1-of-L transfer among all values of the polynomial, which also rounds every value in the same way: equal numbers have
equal logarithms, to the last bit. Last, x ln x comes from the shares of ln x and the bits of x by two transfers a bit.
The circuit finds e = d = 0 for x = 0, and so ln x and x ln x are 0 too.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Ints
from gpn_bayes.private.lookup import Precision, look_up
from gpn_bayes.secure.blocks import WORD
from gpn_bayes.secure.circuits import FALSE, Circuit, CircuitBuilder
from gpn_bayes.secure.garbling import compute
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import bits_of, check_bits, reduced, words_of


class Logarithms(NamedTuple):
    """One party's shares of what was computed from numbers x.

    Attributes
    ----------
    logarithms, products : ndarray of uint64, shape (count,)
        Of ln x and x ln x, modulo ``2**bits``.
    """

    logarithms: np.ndarray
    products: np.ndarray


def share_logarithms(session: Session, numbers: np.ndarray, length: int, precision: Precision) -> Logarithms:
    """Return this party's shares of ln x and x ln x.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    numbers : ndarray of uint64, shape (count,)
        This party's shares of x; they are reduced modulo the length.
    length : int
        A power of two, 4 or more, above all x.
    precision : Precision
        How the results are written.
    """
    check_bits(precision.bits)
    width = length.bit_length() - 1
    outputs = compute(session, normalising_circuit(width), bits_of(reduced(numbers, width), width))
    number, deviation, exponent = np.split(outputs, [width, 2 * width])
    powers, polynomial = _tables(length, precision)
    logarithms = look_up(session, powers, words_of(exponent), precision.bits, split="xor")
    logarithms += look_up(session, polynomial, words_of(deviation), precision.bits, split="xor")
    logarithms = reduced(logarithms, precision.bits)
    factors = WORD.type(1) << np.arange(width, dtype=WORD)[:, None]
    products = multiply_by_bits(session, number, logarithms * factors, precision.bits)
    return Logarithms(logarithms, reduced(products.sum(axis=0), precision.bits))


def multiply_by_bits(session: Session, bits_shares: np.ndarray, values: np.ndarray, bits: int) -> np.ndarray:
    """Return this party's shares of values times bits, modulo ``2**bits``.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    bits_shares : ndarray of uint8
        Shares, by XOR, of bits.
    values : ndarray of uint64, of the same shape
        Shares, modulo ``2**bits``, of what they are multiplied by.
    bits : int
        A multiple of 8, up to 64.
    """
    own, share = bits_shares.ravel(), values.ravel()
    # The bit is own + other's (1 - 2 own), with + of numbers: what the other's bit adds to our value is transferred.
    differences = reduced(np.where(own, -share, share), bits)
    total = share * own.astype(WORD)
    if session.leads:
        total += session.outgoing.additive(differences, bits)
        total += session.incoming.additive(own, bits)
    else:
        total += session.incoming.additive(own, bits)
        total += session.outgoing.additive(differences, bits)
    return reduced(total, bits).reshape(values.shape)


@lru_cache
def normalising_circuit(width: int) -> Circuit:
    """Return the circuit that adds two shares of x modulo ``2**width``, and finds e and d of x = 2**e (1 + d).

    Its outputs are x, d times ``2**width`` modulo ``2**width``, and e; d and e are 0 for 0.
    """
    builder = CircuitBuilder(width, width)
    number = builder.add(*builder.inputs)
    # Whether there is a 1 at this place or above, and whether the highest 1 is at this place.
    above = [FALSE] * (width + 1)
    for place in reversed(range(width)):
        above[place] = builder.disjunction(number[place], above[place + 1])
    highest = [builder.xor(above[place], above[place + 1]) for place in range(width)]
    shifted = _shift_to_the_top(builder, number, highest)
    # From half way between two powers on, the upper one is next: d is the number over it, less 1.
    upper = shifted[-2]
    deviation = builder.select(upper, shifted, [FALSE, *shifted[:-1]])
    n_bits = width.bit_length()
    power = [_any(builder, [one for place, one in enumerate(highest) if place >> bit & 1]) for bit in range(n_bits)]
    exponent = builder.add(power, [upper] + [FALSE] * (n_bits - 1))
    return builder.build([*number, *deviation, *exponent])


def _shift_to_the_top(builder: CircuitBuilder, number: list[int], highest: list[int]) -> list[int]:
    width = len(number)
    for bit in range((width - 1).bit_length()):
        distance = 1 << bit
        wanted = _any(builder, [one for place, one in enumerate(highest) if (width - 1 - place) >> bit & 1])
        number = builder.select(wanted, [FALSE] * distance + number[:-distance], number)
    return number


def _any(builder: CircuitBuilder, wires: list[int]) -> int:
    """Return whether one of some wires is 1, of which never more than one is."""
    parity = FALSE
    for wire in wires:
        parity = builder.xor(parity, wire)
    return parity


@lru_cache
def _tables(length: int, precision: Precision) -> tuple[np.ndarray, np.ndarray]:
    """Return e ln 2 for every e, and the polynomial of ln(1 + d) for every d, as whole numbers."""
    width = length.bit_length() - 1
    powers = precision.encode(np.log(2.0) * np.arange(1 << width.bit_length()))
    places = np.arange(length)
    deviations = np.where(places < length // 2, places, places - length) / length
    return powers, precision.encode(taylor_polynomial(deviations, degree_for(precision.fraction)))


def degree_for(fraction: int) -> int:
    """Return the least degree at which what is cut off is less than half of ``2**-fraction``.

    Examples
    --------
    >>> degree_for(28)
    24
    """
    degree = 1
    while 2.0 ** -(degree + 1) / (degree + 1) >= 2.0 ** -(fraction + 1):
        degree += 1
    return degree


def taylor_polynomial(deviations: np.ndarray, degree: int) -> np.ndarray:
    """Return d - d**2 / 2 + d**3 / 3 - … up to a degree.

    Examples
    --------
    >>> taylor_polynomial(np.array([0.5]), 3).round(4).tolist()
    [0.4167]
    """
    total = np.zeros_like(deviations)
    for power in range(degree, 0, -1):
        total = deviations * ((-1) ** (power - 1) / power + total)
    return total


def plain_logarithms(length: int, precision: Precision) -> np.ndarray:
    """Return what the shares of ln x open to, for x = 0, 1, …, length - 1: whole numbers.

    Examples
    --------
    >>> plain_logarithms(4, Precision(32, 16)).tolist()
    [0, 0, 45426, 71998]
    """
    width = length.bit_length() - 1
    powers, polynomial = _tables(length, precision)
    numbers = np.arange(length)
    # A power of two is next from 3 / 4 of it on; `frexp` tells the bits of a whole number.
    exponents = np.frexp(np.maximum(numbers, 1) * 4 // 3)[1].astype(np.int64) - 1
    deviations = np.where(numbers > 0, (numbers << width >> exponents) % length, 0)
    sums: Ints = powers[exponents] + polynomial[deviations]
    return sums
