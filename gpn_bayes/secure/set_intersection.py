"""Private set intersection by Diffie and Hellman's commuting powers, on the curve ed25519.

Each party multiplies the points its items hash to by a secret scalar of its own, and what the other sends by the same.
Points that were multiplied by both scalars are equal where the items are. Both learn the common items and the size of
the other's set, and nothing else of it under the decisional Diffie-Hellman assumption, with the hash a random oracle.
"""

import hashlib
import secrets
from collections.abc import Collection

from gpn_bayes._util.extras import installed_by
from gpn_bayes.secure.link import Link, ProtocolError
from gpn_bayes.secure.parts import receive_in_parts, send_in_parts

with installed_by("private"):
    from nacl import bindings

POINT_BYTES = bindings.crypto_core_ed25519_BYTES
_SIZE = "set size"
_POINTS = "blinded points"
_RETURNED = "returned points"
_SIZE_BYTES = 8
_DOMAIN = b"gpn_bayes private set intersection, ed25519, version 1"


def intersect(link: Link, items: Collection[bytes], first: bool, most: int) -> set[bytes]:
    """Return the items that both parties hold.

    Parameters
    ----------
    link : Link
        To the other party.
    items : collection of bytes
        This party's set.
    first : bool
        Whether this party sends first; the other doesn't.
    most : int
        How many items the other's set may have.

    Raises
    ------
    ProtocolError
        For a set that is too large, a point that isn't on the curve or is of small order, and one that comes twice.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> thread = Thread(target=intersect, args=(bob, {b"2", b"3", b"4"}, False, 100))
    >>> thread.start()
    >>> sorted(intersect(alice, {b"1", b"2", b"3"}, True, 100))
    [b'2', b'3']
    >>> thread.join()
    """
    if len(set(items)) < len(items):
        raise ValueError("the items of a set must be different; received some twice")
    scalar = _random_scalar()
    # In the order of their blinded points, which says nothing of the items.
    blinded = sorted((_multiply(scalar, hash_to_point(item)), item) for item in items)
    mine = [point for point, _ in blinded]
    theirs_blinded = _swap_points(link, mine, first, most)
    theirs = [_multiply(scalar, point) for point in theirs_blinded]
    returned = _swap_returned(link, theirs, len(mine), first)
    common = set(theirs)
    return {item for point, (_, item) in zip(returned, blinded, strict=True) if point in common}


def hash_to_point(item: bytes) -> bytes:
    """Return the point an item hashes to: the sum of two points by Elligator's map, which is uniform on the subgroup.

    Examples
    --------
    >>> bindings.crypto_core_ed25519_is_valid_point(hash_to_point(b"patient 17"))
    True
    """
    digest = hashlib.sha512(_DOMAIN + item).digest()
    halves = (bindings.crypto_core_ed25519_from_uniform(half) for half in (digest[:32], digest[32:]))
    return bindings.crypto_core_ed25519_add(*halves)


def _random_scalar() -> bytes:
    # 512 bits modulo the order of the group are as good as uniform; 0 has a probability of 2^-252.
    return bindings.crypto_core_ed25519_scalar_reduce(secrets.token_bytes(64))


def _multiply(scalar: bytes, point: bytes) -> bytes:
    return bindings.crypto_scalarmult_ed25519_noclamp(scalar, point)


def _swap_points(link: Link, mine: list[bytes], first: bool, most: int) -> list[bytes]:
    # One after the other: two long messages at once could wait for each other forever.
    if first:
        _send_points(link, mine)
        return _receive_points(link, most)
    theirs = _receive_points(link, most)
    _send_points(link, mine)
    return theirs


def _send_points(link: Link, points: list[bytes]) -> None:
    link.send(_SIZE, len(points).to_bytes(_SIZE_BYTES, "big"))
    send_in_parts(link, _POINTS, points)


def _receive_points(link: Link, most: int) -> list[bytes]:
    size = int.from_bytes(link.receive(_SIZE, _SIZE_BYTES), "big")
    if size > most:
        raise ProtocolError(f"a set must have {most} items at most; received one of more")
    return _read_points(b"".join(receive_in_parts(link, _POINTS, POINT_BYTES, size)))


def _swap_returned(link: Link, theirs: list[bytes], size: int, first: bool) -> list[bytes]:
    if not first:
        send_in_parts(link, _RETURNED, theirs)
    returned = _read_points(b"".join(receive_in_parts(link, _RETURNED, POINT_BYTES, size)))
    if first:
        send_in_parts(link, _RETURNED, theirs)
    return returned


def _read_points(payload: bytes) -> list[bytes]:
    points = [payload[i : i + POINT_BYTES] for i in range(0, len(payload), POINT_BYTES)]
    if not all(bindings.crypto_core_ed25519_is_valid_point(point) for point in points):
        raise ProtocolError("a point must be on the curve and of prime order; received one that isn't")
    if len(set(points)) < len(points):
        raise ProtocolError("the points of a set must be different; received some twice")
    return points
