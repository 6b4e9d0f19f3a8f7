"""A value from a public table at a place of which two parties hold shares, in shares again.

The party that leads turns the table by its own share and adds a random number to all of it; the other gets, by a 1-of-L
transfer, the entry at its share. Nobody learns the place or the value.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from gpn_bayes._util.types import Ints
from gpn_bayes.secure.blocks import WORD, random_words
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import check_bits, reduced

# Entries of turned tables that are in memory at once; each such part takes one round.
_AT_ONCE = 1 << 21


class Precision(NamedTuple):
    """How numbers are written: as multiples of ``2**-fraction``, modulo ``2**bits``.

    Attributes
    ----------
    bits : int
        A multiple of 8, up to 64. Scores must be less than ``2**(bits - fraction - 1)``, of either sign.
    fraction : int
        Bits behind the binary point.

    Examples
    --------
    >>> Precision(48, 28).encode(np.array([0.5, -1.0])).tolist()
    [134217728, -268435456]
    """

    bits: int
    fraction: int

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return the nearest multiples, as whole numbers of either sign."""
        multiples: Ints = np.rint(np.ldexp(values, self.fraction)).astype(np.int64)
        return multiples


def table_length(n_rows: int) -> int:
    """Return the power of two up to which counts of rows, and one more, are looked up.

    Examples
    --------
    >>> table_length(1000), table_length(1023)
    (1024, 2048)
    """
    return 1 << (n_rows + 1).bit_length()


def log_factorials(length: int, precision: Precision) -> np.ndarray:
    """Return ln x! of 0, 1, …, length - 1 as whole numbers.

    Examples
    --------
    >>> log_factorials(4, Precision(32, 16)).tolist()
    [0, 0, 45426, 117425]
    """
    return precision.encode(gammaln(np.arange(1.0, length + 1)))


def look_up(session: Session, table: np.ndarray, places: np.ndarray, bits: int, split: str = "sum") -> np.ndarray:
    """Return this party's shares, modulo ``2**bits``, of the entries at shared places.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    table : ndarray of int64, shape (length,)
        Whole numbers of either sign; the length is a power of two. Only that of the party that leads is read.
    places : ndarray of uint64, shape (count,)
        This party's shares of the places; they are reduced modulo the length.
    bits : int
        A multiple of 8, up to 64.
    split : {"sum", "xor"}
        Whether a place is the sum of its shares modulo the length, or their XOR.

    Returns
    -------
    ndarray of uint64, shape (count,)
    """
    check_bits(bits)
    length = len(table)
    own = reduced(places, length.bit_length() - 1).astype(np.int64)
    step = max(1, _AT_ONCE // length)
    parts = [own[start : start + step] for start in range(0, len(own), step)]
    if not session.leads:
        return _joined([session.incoming.one_of_many(part, length, bits) for part in parts])
    return _joined([_offer(session, reduced(table, bits), part, bits, split) for part in parts])


def _offer(session: Session, table: np.ndarray, own: np.ndarray, bits: int, split: str) -> np.ndarray:
    masks = reduced(random_words(len(own)), bits)
    turned = _TURNS[split](own[:, None], np.arange(len(table))) & (len(table) - 1)
    session.outgoing.one_of_many(reduced(table[turned] + masks[:, None], bits), bits)
    return reduced(-masks, bits)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=WORD), *parts])


_TURNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"sum": np.add, "xor": np.bitwise_xor}
