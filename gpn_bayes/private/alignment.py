"""Two parties bring their rows into the same order by a key that both tables have."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from gpn_bayes.private.settings import MAX_ROWS
from gpn_bayes.secure.link import Link
from gpn_bayes.secure.set_intersection import intersect

_NONCE = "key nonce"
_DIGEST = "key digest"
_NONCE_BYTES = 32
_DIGEST_BYTES = 32


def align_rows(link: Link, keys: Iterable[Any], *, first: bool, intersection: bool = False) -> np.ndarray:
    """Return the rows to take, in an order that both parties agree on.

    Parameters
    ----------
    link : Link
        To the other party.
    keys : iterable of str or int
        The key of each row of this party's table; a number is the same key as its decimal text.
    first : bool
        Whether this party sends first; the other doesn't.
    intersection : bool, default False
        Whether to take the rows whose keys both have; each party learns how many rows the other has, and which keys
        are common. Otherwise both must hold the same keys, and each learns whether they do.

    Returns
    -------
    ndarray of int
        Positions in this party's table.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> thread = Thread(target=align_rows, args=(bob, [7, 8, 9]), kwargs={"first": False, "intersection": True})
    >>> thread.start()
    >>> align_rows(alice, ["9", "5", "7"], first=True, intersection=True).tolist()
    [2, 0]
    >>> thread.join()
    """
    rows = {key: row for row, key in enumerate(encode_keys(keys))}
    if intersection:
        chosen = sorted(intersect(link, rows, first, MAX_ROWS))
        if not chosen:
            raise ValueError("the two tables must have keys in common; they have none")
    else:
        chosen = sorted(rows)
        _compare_digests(link, chosen, first)
    return np.array([rows[key] for key in chosen], dtype=np.int64)


def encode_keys(keys: Iterable[Any]) -> list[bytes]:
    """Return keys as bytes; refuse other types than texts and whole numbers, and keys that come twice.

    Examples
    --------
    >>> encode_keys([7, "8"])
    [b'7', b'8']
    """
    encoded = [_key_bytes(key) for key in keys]
    if len(set(encoded)) < len(encoded):
        raise ValueError("every row must have its own key; received some keys twice")
    if not encoded:
        raise ValueError("a table must have rows; received none")
    return encoded


def _key_bytes(key: Any) -> bytes:
    if isinstance(key, bool | np.bool_) or not isinstance(key, str | Integral):
        raise ValueError(f"keys must be texts or whole numbers; received one of type {type(key).__name__}")
    return str(key).encode("utf-8", "surrogatepass")


def _compare_digests(link: Link, keys: list[bytes], first: bool) -> None:
    """Refuse sets of keys that differ; both parties' nonces go in, so that no digest can be made beforehand."""
    mine = secrets.token_bytes(_NONCE_BYTES)
    link.send(_NONCE, mine)
    theirs = link.receive(_NONCE, _NONCE_BYTES)
    nonces = mine + theirs if first else theirs + mine
    # The digests of the two parties differ, so that one can't be sent back as the other.
    link.send(_DIGEST, _digest(keys, nonces, first))
    if not hmac.compare_digest(link.receive(_DIGEST, _DIGEST_BYTES), _digest(keys, nonces, not first)):
        raise ValueError("both tables must have the same keys; the digests of the keys differ")


def _digest(keys: list[bytes], nonces: bytes, of_first: bool) -> bytes:
    state = hmac.new(nonces, b"first" if of_first else b"second", hashlib.sha256)
    for key in keys:
        # With its length, so that no two lists of keys read alike.
        state.update(len(key).to_bytes(8, "big") + key)
    return state.digest()
