"""Every party makes its own key, and accepts one coordinator: the one whose certificate its file states."""

import stat

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner

from gpn_bayes.cli import app
from gpn_bayes.data import read_part
from gpn_bayes.federated.processes.client import take_part
from gpn_bayes.federated.processes.config import read_client, read_coordinator
from gpn_bayes.federated.processes.coordinator import coordinate
from gpn_bayes.federated.processes.setup_files import sign_parties
from gpn_bayes.wire.certificates import SigningRequest, new_authority, new_party, read_request, write_request
from gpn_bayes.wire.pinning import WrongCertificate, pinned_certificate
from gpn_bayes.wire.server import Server
from tests.federation import Background, Parties, Script, free_port, tables

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
TABLES = dict(zip(NAMES, tables((20, 30, 25), 3), strict=True))
COLUMNS = list(TABLES["a"].columns)


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, " ".join(done.output.split())


def own_keys(folder, parties=("coordinator", *NAMES)):
    for name in parties:
        assert run("federate", "key", "--name", name, "--out", folder / name)[0] == 0
    return [argument for name in parties for argument in ("--request", folder / name / "request.pem")]


def test_a_federation_of_parties_that_made_their_own_keys(tmp_path):
    """From the commands to the result; whoever signs never sees a key."""
    requests = own_keys(tmp_path / "homes")
    port = free_port()
    code, said = run(
        "federate", "certs", "--out", tmp_path / "signed", "--variables", ",".join(COLUMNS),
        "--address", f"127.0.0.1:{port}", *requests,
    )  # fmt: skip
    assert code == 0 and "compares fingerprints" in said
    assert not list((tmp_path / "signed").rglob("key.pem"))
    for signed in (tmp_path / "signed").iterdir():
        for file in signed.iterdir():
            file.rename(tmp_path / "homes" / signed.name / file.name)
    homes = tmp_path / "homes"
    coordinator = Background(coordinate, read_coordinator(homes / "coordinator/coordinator.toml"))
    clients = [
        Background(take_part, read_client(homes / name / "client.toml"), read_part(TABLES[name])) for name in NAMES
    ]
    for client in clients:
        client.result()
    results = coordinator.result()
    with np.load(results) as found:
        assert found["n"] == 75
        np.testing.assert_allclose(found["cov"], np.cov(np.vstack(list(TABLES.values())).T), rtol=1e-12)


def test_a_key_stays_where_it_was_made(tmp_path):
    own_keys(tmp_path, ["a"])
    assert stat.S_IMODE((tmp_path / "a/key.pem").stat().st_mode) == 0o600
    assert b"PRIVATE" not in (tmp_path / "a/request.pem").read_bytes()
    code, said = run("federate", "key", "--name", "a", "--out", tmp_path / "a")
    assert code == 2 and "nothing is overwritten" in said
    code, said = run("federate", "key", "--name", "a b", "--out", tmp_path / "other")
    assert code == 2 and "a party's name must be letters" in said


def test_certificates_are_for_all_parties_once(tmp_path):
    requests = own_keys(tmp_path)
    out = ("--out", tmp_path / "signed")
    for given, message in (
        ((), "either --clients or --request must be given; received none"),
        (("--clients", "a,b,c", *requests), "either --clients or --request must be given; received both"),
        (requests[2:], "one signing request must be of 'coordinator'; received a, b, c"),
        (requests[:2], "clients must have different names, none of them 'coordinator'; received none"),
        ((*requests, *requests[2:4]), "clients must have different names"),
        ((*requests, *requests[:2]), "every party must have made a key of its own"),
        (("--request", tmp_path / "a/key.pem"), "a signing request must be a PEM file of 'federate key'"),
        (("--request", tmp_path / "none.pem"), "is not a file"),
    ):
        code, said = run("federate", "certs", *out, *given)
        assert code == 2 and message in said, said
    assert not (tmp_path / "signed").exists()


def test_a_copied_key_gets_no_second_certificate(tmp_path):
    own_keys(tmp_path)
    requests = [read_request(tmp_path / name / "request.pem") for name in ("coordinator", *NAMES)]
    requests[3] = SigningRequest("c", requests[1].public_key)
    with pytest.raises(ValueError, match="^every party must have made a key of its own; two signing requests have"):
        sign_parties(tmp_path / "signed", requests)


def test_requests_must_be_signed_by_their_own_key(tmp_path):
    path = tmp_path / "request.pem"
    write_request("a", path, tmp_path / "key.pem")
    signed = x509.load_pem_x509_csr(path.read_bytes()).public_bytes(Encoding.DER)
    forged = x509.load_der_x509_csr(signed[:-1] + bytes([signed[-1] ^ 1]))
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    other = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, SHA256())
    nameless = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, SHA256())
    for request in (forged, other, nameless):
        path.write_bytes(request.public_bytes(Encoding.PEM))
        with pytest.raises(ValueError, match="^a signing request must be a PEM file of 'federate key'; .* isn't$"):
            read_request(path)


# One coordinator


@pytest.mark.parametrize("pinned", [True, False])
def test_a_certificate_of_the_authority_is_not_enough(tmp_path, pinned):
    """Without the fingerprint, whoever has the authority's key can pose as the coordinator."""
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics")
    config, home = parties.coordinator(), parties.homes["a"]
    authority = new_authority()
    impostor = new_party(authority, "coordinator", hosts=("localhost",))
    (home / "authority.pem").write_bytes(authority.certificate_pem)
    if not pinned:
        lines = (home / "client.toml").read_text().splitlines()
        (home / "client.toml").write_text("\n".join(line for line in lines if "coordinator_finger" not in line))
    host, credentials = Script([]), config.credentials
    server = Server(host, config.listen, impostor, credentials.authority, credentials.fingerprints, config.limits)
    try:
        if pinned:
            with pytest.raises(WrongCertificate, match="^the coordinator's certificate must be the one whose fingerp"):
                take_part(parties.client("a"), read_part(TABLES["a"]))
        else:
            take_part(parties.client("a"), read_part(TABLES["a"]))
    finally:
        server.close()


def test_a_server_that_is_not_there_is_waited_for(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics", patience_seconds=0.5)
    with pytest.raises(ConnectionError, match="^the coordinator at .* must be reachable; it wasn't for 0.5 seconds"):
        take_part(parties.client("a"), read_part(TABLES["a"]))


def test_the_pinned_certificate_is_the_one_that_is_shown(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics")
    config = parties.coordinator()
    credentials = config.credentials
    server = Server(
        Script([]), config.listen, credentials.identity, credentials.authority, credentials.fingerprints, config.limits
    )
    try:
        pinned = parties.client("a").coordinator_fingerprint
        assert pinned_certificate(config.listen, pinned, 5.0) == credentials.identity.certificate_pem
        with pytest.raises(WrongCertificate):
            pinned_certificate(config.listen, "0" * 64, 5.0)
    finally:
        server.close()


def test_a_fingerprint_is_64_digits(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "statistics")
    file = parties.homes["a"] / "client.toml"
    file.write_text(file.read_text().replace('coordinator_fingerprint = "', 'coordinator_fingerprint = "x'))
    with pytest.raises(
        ValueError, match="^client.toml: coordinator_fingerprint must be the SHA-256 of its certificate"
    ):
        parties.client("a")
