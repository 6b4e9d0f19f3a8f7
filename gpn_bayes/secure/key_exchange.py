"""Secrets between every two clients, by keys that are signed, so that whoever relays them can't swap them.

A key is one of Ed25519, which stands for a key of X25519 too: with the former a client proves that it has the private
key and didn't copy somebody's public one, with the latter it shares secrets.
"""

import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from gpn_bayes._util.extras import installed_by
from gpn_bayes.secure.link import ProtocolError

with installed_by("federated"):
    from nacl import bindings
    from nacl.exceptions import CryptoError

_PURPOSE = b"gpn_bayes key 2"
KEY_BYTES = 32


@dataclass(frozen=True)
class Signer:
    """A client's certificate (DER) and the private key that belongs to it.

    Printing one shows neither.
    """

    certificate: bytes
    private_key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        """Return whose it is, by fingerprint."""
        return f"Signer({fingerprint(self.certificate)[:16]}…)"


@dataclass(frozen=True)
class SignedKey:
    """A client's public key for one run, with the proofs that it has the private one, and that it is that client."""

    client: str
    public_key: bytes
    possession: bytes
    signature: bytes
    certificate: bytes


def fingerprint(certificate: bytes) -> str:
    """Return the SHA-256 of a certificate (DER) in hexadecimal digits."""
    return hashlib.sha256(certificate).hexdigest()


def new_key() -> bytes:
    """Return a fresh private key."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key(private_key: bytes) -> bytes:
    """Return the public key that belongs to a private one."""
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def sign_key(private_key: bytes, client: str, plan: bytes, signer: Signer) -> SignedKey:
    """Return the public key of a private one, signed for one client and one run.

    Parameters
    ----------
    private_key : bytes
        From `new_key`.
    client : str
        The client's name.
    plan : bytes
        Digest of what the run is about. Clients with different plans won't accept each other's keys.
    signer : Signer
        The client's certificate and its key.
    """
    public = public_key(private_key)
    statement = _statement(client, plan, public, signer.certificate)
    possession = Ed25519PrivateKey.from_private_bytes(private_key).sign(statement)
    signature = signer.private_key.sign(statement, ec.ECDSA(SHA256()))
    return SignedKey(client, public, possession, signature, signer.certificate)


def check_key(signed: SignedKey, plan: bytes, known: str) -> None:
    """Refuse a key that isn't signed by itself, and by the certificate with the known fingerprint, for this run.

    Raises
    ------
    ProtocolError
        Naming the client, and no key.
    """
    whose = f"the key of client {signed.client!r}"
    if fingerprint(signed.certificate) != known:
        raise ProtocolError(f"{whose} must come with the certificate whose fingerprint is known; it has another")
    if len(signed.public_key) != KEY_BYTES:
        raise ProtocolError(f"{whose} must have {KEY_BYTES} bytes; received {len(signed.public_key)}")
    public = x509.load_der_x509_certificate(signed.certificate).public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise ProtocolError(f"{whose} must come with a certificate of an elliptic curve; it has another kind")
    statement = _statement(signed.client, plan, signed.public_key, signed.certificate)
    try:
        public.verify(signed.signature, statement, ec.ECDSA(SHA256()))
    except InvalidSignature:
        raise ProtocolError(f"{whose} must be signed by its certificate, for this run; it isn't") from None
    try:
        Ed25519PublicKey.from_public_bytes(signed.public_key).verify(signed.possession, statement)
    except (InvalidSignature, ValueError):
        raise ProtocolError(f"{whose} must be signed by the private key that belongs to it; it isn't") from None


def shared_secret(private_key: bytes, other: bytes) -> bytes:
    """Return what two clients share: each from its own private key and the other's public key.

    Examples
    --------
    >>> ours, theirs = new_key(), new_key()
    >>> shared_secret(ours, public_key(theirs)) == shared_secret(theirs, public_key(ours))
    True
    """
    own = bindings.crypto_sign_ed25519_sk_to_curve25519(private_key + public_key(private_key))
    try:
        point = X25519PublicKey.from_public_bytes(bindings.crypto_sign_ed25519_pk_to_curve25519(other))
        return X25519PrivateKey.from_private_bytes(own).exchange(point)
    except (ValueError, CryptoError):
        # Points of small order would make a secret that everybody knows.
        raise ProtocolError("a public key must be a point of large order; received another") from None


def _statement(client: str, plan: bytes, public_key: bytes, certificate: bytes) -> bytes:
    """Return what is signed by both keys; the parts have fixed lengths but for the name, which is last."""
    digests = hashlib.sha256(plan).digest() + hashlib.sha256(certificate).digest()
    return _PURPOSE + digests + public_key + client.encode()
