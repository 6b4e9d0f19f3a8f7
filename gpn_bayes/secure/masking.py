"""Masks that hide each client's numbers and cancel in the sum over all clients.

Every two clients share a secret. For a round, both stretch it to the same random words; the one that comes first in the
order of names adds them, the other subtracts them. Whoever lacks the secrets sees uniform words from each client, and
the true sum over all.

The words depend on the names of both clients, so that a secret that two pairs have in common gives no mask that
cancels, and on everything that was asked in the run so far, so that clients with different histories share no masks.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gpn_bayes._util.types import Words
from gpn_bayes.secure.fixed_point import WORDS, negate, total

_PURPOSE = b"gpn_bayes mask 2"
_NONCE = bytes(16)  # every key serves one stream only


def extend(transcript: bytes, request: bytes) -> bytes:
    """Return the digest of a run's requests up to and including one more.

    Parameters
    ----------
    transcript : bytes
        That of those before; before the first, the digest of the plan.
    request : bytes
        The digest of the next.

    Examples
    --------
    >>> first = extend(bytes(32), b"a")
    >>> first == extend(bytes(32), b"b"), extend(first, b"b") == extend(bytes(32), b"b")
    (False, False)
    """
    return hashlib.sha256(transcript + hashlib.sha256(request).digest()).digest()


def mask(words: Words, client: str, secrets: Mapping[str, bytes], transcript: bytes) -> Words:
    """Return a client's words, masked for one round.

    Parameters
    ----------
    words : ndarray of uint64, of shape (numbers, 2)
        What `fixed_point.encode` made of the numbers.
    client : str
        Whose numbers they are.
    secrets : dict of str to bytes
        The secret shared with each of the other clients, by its name.
    transcript : bytes
        What `extend` made of the plan and of all requests up to this round. Two different arrays must never be masked
        under one transcript. Clients that were asked different things make masks that don't cancel: their sum is noise.

    Returns
    -------
    ndarray of uint64, of shape (numbers, 2)

    Examples
    --------
    >>> from gpn_bayes.secure.fixed_point import decode, encode
    >>> ours, theirs = encode([1.0], 2), encode([2.5], 2)
    >>> masked = mask(ours, "a", {"b": bytes(32)}, b"asked"), mask(theirs, "b", {"a": bytes(32)}, b"asked")
    >>> bool((masked[0] == ours).any()), decode(total(np.stack(masked))).tolist()
    (False, [3.5])
    """
    added, subtracted = [words], [np.zeros_like(words)]
    for other, secret in secrets.items():
        stream = _stream(secret, sorted((client, other)), transcript, len(words))
        (added if client < other else subtracted).append(stream)
    return total(np.stack([total(np.stack(added)), negate(total(np.stack(subtracted)))]))


def _stream(secret: bytes, pair: list[str], transcript: bytes, numbers: int) -> Words:
    """Return the random words that two clients share in one round."""
    names = b"".join(hashlib.sha256(name.encode()).digest() for name in pair)
    key = HKDF(SHA256(), length=32, salt=transcript, info=_PURPOSE + names).derive(secret)
    encryptor = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None).encryptor()
    stream = encryptor.update(bytes(8 * WORDS * numbers))
    return np.frombuffer(stream, dtype="<u8").reshape(numbers, WORDS).astype(np.uint64, copy=False)
