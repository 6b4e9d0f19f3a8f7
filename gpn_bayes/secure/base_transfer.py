"""The first oblivious transfers, by public keys on the ed25519 curve; all later ones are extended from them.

The protocol of Chou & Orlandi (2015), for parties who follow it: the sender shows A = aG, the receiver R = bG for
choice 0 or R = bG + A for choice 1; the keys are hashes of aR and a(R - A), of which the receiver knows that of bA.
"""

import hashlib
import os

import numpy as np

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import Words
from gpn_bayes.secure.blocks import BLOCK_BYTES, WORD
from gpn_bayes.secure.link import Link, ProtocolError

with installed_by("private"):
    from nacl import bindings, exceptions

_POINT_BYTES = 32


def send_base(link: Link, count: int) -> tuple[Words, bytes]:
    """Agree on pairs of random keys, of which the other party learns one each.

    Returns
    -------
    keys : ndarray of uint64, shape (count, 2, 2)
        Both keys of each pair, as blocks.
    transcript : bytes
        A digest of what was sent, the same for both parties and new in every run.
    """
    secret = _random_scalar()
    public = bindings.crypto_scalarmult_ed25519_base_noclamp(secret)
    link.send("base transfer offer", public)
    replies = _points(link.receive("base transfer reply", count * _POINT_BYTES))
    keys = b""
    for place, reply in enumerate(replies):
        if reply == public:
            # Its second key would be that of the neutral point.
            raise ProtocolError("a reply to an offer of keys must not repeat the offer")
        shifted = bindings.crypto_core_ed25519_sub(reply, public)
        keys += _key(place, public, reply, _multiple(secret, reply))
        keys += _key(place, public, reply, _multiple(secret, shifted))
    return np.frombuffer(keys, dtype=WORD).reshape(count, 2, 2), _digest(public, *replies)


def receive_base(link: Link, choices: np.ndarray) -> tuple[Words, bytes]:
    """Agree on random keys, one of each of the other party's pairs.

    Parameters
    ----------
    link : Link
        The way to the other party, who calls `send_base`.
    choices : ndarray of 0 and 1
        Which key of each pair to learn.

    Returns
    -------
    keys : ndarray of uint64, shape (count, 2)
    transcript : bytes
        As of `send_base`.
    """
    (public,) = _points(link.receive("base transfer offer", _POINT_BYTES))
    secrets = [_random_scalar() for _ in choices]
    replies = []
    for choice, secret in zip(choices, secrets, strict=True):
        # Both are computed, so that time tells nothing of the choice.
        plain = bindings.crypto_scalarmult_ed25519_base_noclamp(secret)
        shifted = bindings.crypto_core_ed25519_add(plain, public)
        replies.append((plain, shifted)[int(choice)])
    link.send("base transfer reply", b"".join(replies))
    keys = b"".join(
        _key(place, public, reply, _multiple(secret, public))
        for place, (reply, secret) in enumerate(zip(replies, secrets, strict=True))
    )
    return np.frombuffer(keys, dtype=WORD).reshape(len(choices), 2), _digest(public, *replies)


def _random_scalar() -> bytes:
    return bindings.crypto_core_ed25519_scalar_reduce(os.urandom(64))


def _points(payload: bytes) -> list[bytes]:
    """Return the points of a message; refuse any that isn't on the curve, of prime order and written in the one way."""
    points = [payload[start : start + _POINT_BYTES] for start in range(0, len(payload), _POINT_BYTES)]
    if not all(map(bindings.crypto_core_ed25519_is_valid_point, points)):
        raise ProtocolError("points must be on the curve and of its prime order; received one that isn't")
    return points


def _multiple(scalar: bytes, point: bytes) -> bytes:
    try:
        return bindings.crypto_scalarmult_ed25519_noclamp(scalar, point)
    except exceptions.RuntimeError:
        raise ProtocolError("a multiple of a point must not be the neutral one") from None


def _key(place: int, *points: bytes) -> bytes:
    return _digest(place.to_bytes(4, "little"), *points)[:BLOCK_BYTES]


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
