"""The best of several scores of which two parties hold shares; only its index is opened."""

from functools import lru_cache

import numpy as np

from gpn_bayes.secure.circuits import Circuit, CircuitBuilder
from gpn_bayes.secure.garbling import compute
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import bits_of, check_bits, reduced, words_of


def best_candidates(session: Session, shares: np.ndarray, bits: int) -> np.ndarray:
    """Return the place of the greatest number of each column, the first of equal ones; both parties learn it.

    In K2 the first row holds a node's score as it is, and the others, in the order of the columns of the data, what it
    would be with one parent more. Place 0 then means to stop: no parent improves the score. That is the rule of
    `gpn_bayes.estimators.K2`, which also takes scores for equal that differ by rounding.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    shares : ndarray of uint64, shape (candidates, batch)
        This party's shares, modulo ``2**bits``, of numbers from ``-2**(bits - 1)`` to ``2**(bits - 1) - 1``. Columns
        with fewer candidates can repeat their first row, which then never wins.
    bits : int
        A multiple of 8, up to 64.

    Returns
    -------
    ndarray of int64, shape (batch,)

    Raises
    ------
    ProtocolError
        If the opened index is out of range.
    """
    check_bits(bits)
    candidates, batch = shares.shape
    if candidates == 1:
        return np.zeros(batch, dtype=np.int64)
    own = bits_of(reduced(shares, bits), bits).transpose(1, 0, 2).reshape(candidates * bits, batch)
    opened = session.open_bits(compute(session, argmax_circuit(candidates, bits), own))
    places = words_of(opened).astype(np.int64)
    if places.max(initial=0) >= candidates:
        raise ProtocolError("the opened index must be that of a candidate; it is out of range")
    return places


@lru_cache
def argmax_circuit(candidates: int, bits: int) -> Circuit:
    """Return the circuit that adds two shares of each number, with sign, and finds the place of the greatest."""
    builder = CircuitBuilder(candidates * bits, candidates * bits)
    numbers = []
    for place in range(candidates):
        first, second = (wires[place * bits : (place + 1) * bits] for wires in builder.inputs)
        *low, sign = builder.add(first, second)
        # Numbers with sign are in the order of those without, once the highest bit is turned.
        numbers.append([*low, builder.negation(sign)])
    return builder.build(builder.argmax(numbers))
