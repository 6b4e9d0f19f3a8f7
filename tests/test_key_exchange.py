"""Keys between clients: signed, checked against known certificates, and never taken from somebody else."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from gpn_bayes.secure import key_exchange
from gpn_bayes.secure.key_exchange import (
    SignedKey,
    Signer,
    check_key,
    fingerprint,
    new_key,
    public_key,
    shared_secret,
    sign_key,
)
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.wire.certificates import new_authority, new_party

AUTHORITY = new_authority()


def signer(name):
    identity = new_party(AUTHORITY, name)
    return Signer(identity.der, identity.private_key)


ANNA, BERT = signer("anna"), signer("bert")
KEY = new_key()
SIGNED = sign_key(KEY, "anna", b"plan", ANNA)


def test_a_signed_key_is_taken():
    check_key(SIGNED, b"plan", fingerprint(ANNA.certificate))
    assert SIGNED.public_key == public_key(KEY)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"signature": b""}, "must be signed by its certificate, for this run; it isn't"),
        ({"signature": SIGNED.signature[:-1] + bytes([SIGNED.signature[-1] ^ 1])}, "must be signed"),
        ({"public_key": public_key(new_key())}, "must be signed"),
        ({"client": "bert"}, "must be signed"),
        ({"possession": b""}, "must be signed by the private key that belongs to it; it isn't"),
        ({"public_key": b"short"}, "must have 32 bytes; received 5"),
        ({"certificate": BERT.certificate}, "whose fingerprint is known; it has another"),
    ],
)
def test_another_key_is_refused(change, reason):
    with pytest.raises(ProtocolError, match=reason):
        check_key(replace(SIGNED, **change), b"plan", fingerprint(ANNA.certificate))


def test_a_key_for_another_run_is_refused():
    with pytest.raises(
        ProtocolError, match="^the key of client 'anna' must be signed by its certificate, for this run"
    ):
        check_key(SIGNED, b"another plan", fingerprint(ANNA.certificate))


def test_a_key_signed_by_somebody_else_is_refused():
    forged = replace(sign_key(new_key(), "anna", b"plan", BERT), certificate=ANNA.certificate)
    with pytest.raises(ProtocolError, match="must be signed"):
        check_key(forged, b"plan", fingerprint(ANNA.certificate))


def test_a_key_that_makes_a_known_secret_is_refused():
    with pytest.raises(ProtocolError, match="^a public key must be a point of large order; received another$"):
        shared_secret(KEY, bytes(32))


def test_nothing_secret_is_printed():
    assert repr(ANNA) == f"Signer({fingerprint(ANNA.certificate)[:16]}…)"
    assert key_exchange.fingerprint(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_copied_key_is_refused():
    """Bert signs Anna's key as his own; what he can't do is to sign with it."""
    statement = key_exchange._statement("bert", b"plan", SIGNED.public_key, BERT.certificate)
    signature = BERT.private_key.sign(statement, ec.ECDSA(SHA256()))
    copied = SignedKey("bert", SIGNED.public_key, SIGNED.possession, signature, BERT.certificate)
    with pytest.raises(ProtocolError, match="^the key of client 'bert' must be signed by the private key"):
        check_key(copied, b"plan", fingerprint(BERT.certificate))
