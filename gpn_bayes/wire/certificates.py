"""Certificates of the parties of a run: an authority that signs them, their files and fingerprints."""

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpn_bayes._util.files import write_whole

DAYS = 365
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key; printing one shows neither."""

    certificate: x509.Certificate
    private_key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        """Return whose it is."""
        return f"Identity({common_name(self.certificate)!r})"

    @property
    def der(self) -> bytes:
        """The certificate's bytes."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as text."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as text."""
        return _key_pem(self.private_key)

    def write(self, certificate: Path, key: Path) -> None:
        """Write both files; only their owner may read the key."""
        write_whole(certificate, self.certificate_pem)
        write_key(self.private_key, key)


def check_name(name: str) -> str:
    """Return a party's name, or say what a name may be made of.

    Examples
    --------
    >>> check_name("a b")
    Traceback (most recent call last):
    ValueError: a party's name must be letters, digits, '_', '.' and '-', 63 at most; received 'a b'
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a party's name must be letters, digits, '_', '.' and '-', 63 at most; received {name!r}")
    return name


def new_private_key() -> ec.EllipticCurvePrivateKey:
    """Return a fresh key."""
    return ec.generate_private_key(ec.SECP256R1())


def write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> None:
    """Write a key to a file that only its owner may read, whoever could read what was there before."""
    write_whole(path, _key_pem(key), secret=True)


def new_authority(days: int = DAYS) -> Identity:
    """Return an authority that can sign certificates."""
    key = new_private_key()
    name = _distinguished("gpn_bayes test authority")
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _builder(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return Identity(builder.sign(key, SHA256()), key)


def new_party(authority: Identity, name: str, hosts: Sequence[str] | None = None, days: int = DAYS) -> Identity:
    """Return a party's certificate and key, signed by the authority; parameters as for `sign_party`."""
    key = new_private_key()
    return Identity(sign_party(authority, name, key.public_key(), hosts, days), key)


def sign_party(
    authority: Identity,
    name: str,
    public_key: ec.EllipticCurvePublicKey,
    hosts: Sequence[str] | None = None,
    days: int = DAYS,
) -> x509.Certificate:
    """Return the certificate of a party that has made its own key.

    Parameters
    ----------
    authority : Identity
        From `new_authority`.
    name : str
        The party's name.
    public_key : EllipticCurvePublicKey
        Its key.
    hosts : sequence of str, optional
        Names and addresses at which the party is reached. Only a party with hosts can be a server, only one without can
        be a client.
    days : int, default 365
        How long the certificate holds.
    """
    check_name(name)
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if hosts is None else ExtendedKeyUsageOID.SERVER_AUTH
    builder = (
        _builder(_distinguished(name), authority.certificate.subject, public_key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in (name, *(hosts or ()))]), critical=False)
    )
    return builder.sign(authority.private_key, SHA256())


@dataclass(frozen=True)
class SigningRequest:
    """What a party that has made its own key asks an authority to sign."""

    name: str
    public_key: ec.EllipticCurvePublicKey


def write_request(name: str, request: Path, key: Path) -> None:
    """Make a key, write it to a file that only its owner may read, and a request to have it signed to another.

    Raises
    ------
    ValueError
        If one of the files exists.
    """
    check_name(name)
    for path in (request, key):
        if os.path.lexists(path):
            raise ValueError(f"nothing is overwritten; {str(path)!r} exists: choose another folder")
    private = new_private_key()
    write_key(private, key)
    signed = x509.CertificateSigningRequestBuilder().subject_name(_distinguished(name)).sign(private, SHA256())
    write_whole(request, signed.public_bytes(Encoding.PEM))


def read_request(path: Path) -> SigningRequest:
    """Read a request that `write_request` wrote, and check that whoever wrote it has the key.

    Raises
    ------
    ValueError
        If the file is missing or holds something else.
    """
    content = _read(path)
    try:
        request = x509.load_pem_x509_csr(content)
        name, key, valid = common_name(request), request.public_key(), request.is_signature_valid
    except (ValueError, IndexError, UnsupportedAlgorithm):
        valid = False
    if not valid or not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"a signing request must be a PEM file of 'federate key'; {str(path)!r} isn't")
    return SigningRequest(check_name(name), key)


def read_identity(certificate: Path, key: Path) -> Identity:
    """Read a certificate and its private key from their files.

    Raises
    ------
    ValueError
        If a file is missing or holds something else, or the two don't belong together.
    """
    loaded, content = read_certificate(certificate), _read(key)
    try:
        private = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(f"a key must be a PEM file without a password; {str(key)!r} isn't") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError(f"a key must be one of an elliptic curve; that in {str(key)!r} isn't")
    if private.public_key() != _public_key(loaded):
        raise ValueError(f"a key must belong to its certificate; {str(key)!r} doesn't belong to {str(certificate)!r}")
    return Identity(loaded, private)


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate from its PEM file."""
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"a certificate must be a PEM file; {str(path)!r} isn't") from None


def common_name(certificate: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """Return the name a certificate was, or is to be, made out to."""
    try:
        return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (ValueError, IndexError):
        raise ValueError("a certificate must be made out to a name; this one isn't") from None


def _public_key(certificate: x509.Certificate) -> object:
    """Return the key of a certificate; None if it is of an unknown kind."""
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else _absent(path)
    except OSError:  # as of a name that is too long
        return _absent(path)


def _absent(path: Path) -> NoReturn:
    raise ValueError(f"the files of certificates and keys must exist; {str(path)!r} is not a file") from None


def _distinguished(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # The clocks of the parties may differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
