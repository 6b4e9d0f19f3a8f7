"""The one certificate that a server may show, found by its fingerprint."""

import hashlib
import socket
import ssl

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate


class WrongCertificate(ValueError):
    """A server has shown another certificate than the one that is expected."""


def pinned_certificate(address: str, expected: str, seconds: float) -> bytes:
    """Return the certificate (PEM) that a server shows, if it is the expected one.

    To trust this certificate alone, and no authority, is to accept no other from then on.

    Parameters
    ----------
    address : str
        ``host:port``.
    expected : str
        The SHA-256 of the certificate, 64 hexadecimal digits.
    seconds : float
        How long to wait for it.

    Raises
    ------
    WrongCertificate
        If it shows another.
    OSError
        If it can't be reached, or doesn't talk TLS.
    """
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Whoever it is: nothing is sent, and the certificate is compared below.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as connection,
        context.wrap_socket(connection) as stream,
    ):
        shown = stream.getpeercert(binary_form=True) or b""
    if hashlib.sha256(shown).hexdigest() != expected:
        raise WrongCertificate(
            "the coordinator's certificate must be the one whose fingerprint this client's file states; it has another"
        )
    return load_der_x509_certificate(shown).public_bytes(Encoding.PEM)
