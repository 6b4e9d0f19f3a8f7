"""Masks that hide each client's numbers and cancel in the sum over all clients.

Every two clients share a secret. For a round, both stretch it to the same random words; the one that comes first in the
order of names adds them, the other subtracts them. Whoever lacks the secrets sees uniform words from each client, and
the true sum over all.
"""

from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gpn_bayes._util.types import Words
from gpn_bayes.secure.fixed_point import WORDS, negate, total

_PURPOSE = b"gpn_bayes mask 1"
_NONCE = bytes(16)  # every key serves one stream only


def mask(words: Words, client: str, secrets: Mapping[str, bytes], run: str, round_number: int, request: bytes) -> Words:
    """Return a client's words, masked for one round.

    Parameters
    ----------
    words : ndarray of uint64, of shape (numbers, 2)
        What `fixed_point.encode` made of the numbers.
    client : str
        Whose numbers they are.
    secrets : dict of str to bytes
        The secret shared with each of the other clients, by its name.
    run : str
        Names the run; never used for two.
    round_number : int
        The round. Two different arrays must never be masked for one round of a run.
    request : bytes
        Digest of what was asked. Clients that were asked different things make masks that don't cancel, so nobody can
        learn anything by asking them different things.

    Returns
    -------
    ndarray of uint64, of shape (numbers, 2)

    Examples
    --------
    >>> from gpn_bayes.secure.fixed_point import decode, encode
    >>> ours, theirs = encode([1.0], 2), encode([2.5], 2)
    >>> masked = mask(ours, "a", {"b": bytes(32)}, "run", 0, b""), mask(theirs, "b", {"a": bytes(32)}, "run", 0, b"")
    >>> bool((masked[0] == ours).any()), decode(total(np.stack(masked))).tolist()
    (False, [3.5])
    """
    added, subtracted = [words], [np.zeros_like(words)]
    for other, secret in secrets.items():
        stream = _stream(secret, run, round_number, request, len(words))
        (added if client < other else subtracted).append(stream)
    return total(np.stack([total(np.stack(added)), negate(total(np.stack(subtracted)))]))


def _stream(secret: bytes, run: str, round_number: int, request: bytes, numbers: int) -> Words:
    """Return the random words that two clients share in one round."""
    purpose = _PURPOSE + round_number.to_bytes(8, "little") + request
    key = HKDF(SHA256(), length=32, salt=run.encode(), info=purpose).derive(secret)
    encryptor = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None).encryptor()
    stream = encryptor.update(bytes(8 * WORDS * numbers))
    return np.frombuffer(stream, dtype="<u8").reshape(numbers, WORDS).astype(np.uint64, copy=False)
