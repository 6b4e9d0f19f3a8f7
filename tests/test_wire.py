"""Messages and certificates: arrays there and back, files, names, limits."""

import base64
import datetime
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from gpn_bayes.wire import arrays, certificates, service
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.dialler import Dialler
from gpn_bayes.wire.limits import Limits

AUTHORITY = certificates.new_authority()


# Arrays


@given(
    st.sampled_from([np.float64, np.int64, np.uint64]),
    st.lists(st.integers(0, 4), max_size=4),
    st.integers(0, 2**32),
)
def test_arrays_there_and_back(dtype, shape, seed):
    bits = np.random.default_rng(seed).integers(0, 2**62, size=shape, dtype=np.uint64)
    array = np.asarray(bits).astype(dtype)
    sent = messages.Answer(values=arrays.to_messages({"x": array, "a": np.array(1.5)})).SerializeToString()
    found = arrays.from_messages(messages.Answer.FromString(sent).values)
    assert list(found) == ["a", "x"] and found["x"].dtype == dtype
    np.testing.assert_array_equal(found["x"], array)


def test_bytes_are_little_endian_whatever_the_memory():
    values = np.arange(6.0).reshape(2, 3)
    plain = arrays.to_messages({"x": values})[0].SerializeToString()
    for other in (values.astype(">f8"), np.asfortranarray(values), values[::1, ::1]):
        assert arrays.to_messages({"x": other})[0].SerializeToString() == plain


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": 0}, "^arrays must hold float64, int64 or uint64; received type 0$"),
        ({"type": 9}, "^arrays must hold float64, int64 or uint64; received type 9$"),
        ({"shape": [3]}, r"^an array's shape must fit its bytes; received \(3,\), 16 bytes$"),
        ({"shape": [2, 2**31, 2**31]}, "^an array's shape must fit its bytes; "),
        ({"shape": [1] * 8 + [2]}, "^an array's shape must fit its bytes; "),
        ({"data": b""}, "^an array's shape must fit its bytes; received .*, 0 bytes$"),
        ({"data": np.array([1, np.nan]).tobytes()}, "^every number must be finite; array 'x' holds NaN or infinity$"),
        ({"data": np.array([1, np.inf]).tobytes()}, "^every number must be finite; array 'x' holds NaN or infinity$"),
        ({"name": "y" * 201}, "^names of arrays must differ and have 200 characters at most$"),
        ({"name": "first"}, "^names of arrays must differ and have 200 characters at most$"),
    ],
)
def test_messages_that_are_no_arrays_are_refused(changes, message):
    fields = {"name": "x", "type": messages.FLOAT64, "shape": [2], "data": bytes(16)} | changes
    with pytest.raises(ValueError, match=message):
        arrays.from_messages([*arrays.to_messages({"first": np.zeros(1)}), messages.Array(**fields)])


@pytest.mark.parametrize("array", [np.zeros(2, np.float32), np.array(["a"]), np.array([None]), np.array([True])])
def test_other_types_are_not_sent(array):
    with pytest.raises(ValueError, match="^arrays must hold float64, int64 or uint64; 'x' holds "):
        arrays.to_messages({"x": array})


def test_nan_is_not_sent():
    with pytest.raises(ValueError, match="^every number must be finite; array 'x' holds NaN or infinity$"):
        arrays.to_messages({"x": np.array([np.nan])})


def test_the_calls_are_those_of_the_schema():
    methods = messages.DESCRIPTOR.services_by_name["Federation"].methods
    assert {m.name: (m.input_type.name, m.output_type.name) for m in methods} == {
        name: (request.DESCRIPTOR.name, reply.DESCRIPTOR.name) for name, (request, reply) in service.CALLS.items()
    }


def test_the_generated_code_is_that_of_the_schema(tmp_path):
    protoc = pytest.importorskip("grpc_tools.protoc", exc_type=ImportError)
    source = "gpn_bayes/wire/federation.proto"
    root = Path(service.__file__).parents[2]
    assert protoc.main(["", f"-I{root}", f"--python_out={tmp_path}", source]) == 0
    generated = [folder / "gpn_bayes/wire/federation_pb2.py" for folder in (root, tmp_path)]
    # The line that holds the schema; others tell the version of the compiler.
    ours, fresh = (re.search("^DESCRIPTOR = .*$", file.read_text(), re.MULTILINE) for file in generated)
    assert ours[0] == fresh[0]


# Certificates


def test_identities_there_and_back(tmp_path):
    party = certificates.new_party(AUTHORITY, "a")
    party.write(tmp_path / "a.pem", tmp_path / "a.key")
    found = certificates.read_identity(tmp_path / "a.pem", tmp_path / "a.key")
    assert found.der == party.der and certificates.common_name(found.certificate) == "a"
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert repr(found) == "Identity('a')"
    found.certificate.verify_directly_issued_by(AUTHORITY.certificate)


def test_certificates_say_what_they_are_for():
    client = certificates.new_party(AUTHORITY, "a", days=3).certificate
    server = certificates.new_party(AUTHORITY, "coordinator", hosts=("localhost", "127.0.0.1")).certificate
    usages = [c.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value for c in (client, server)]
    oids = x509.oid.ExtendedKeyUsageOID
    assert [list(usage) for usage in usages] == [[oids.CLIENT_AUTH], [oids.SERVER_AUTH]]
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["coordinator", "localhost"]
    left = client.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(days=2) < left <= datetime.timedelta(days=3)


def test_files_that_are_no_certificates_are_refused(tmp_path):
    for name in ("a", "b"):
        certificates.new_party(AUTHORITY, name).write(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
    (tmp_path / "text").write_text("hello")
    for certificate, key, message in (
        ("a.pem", "b.key", "^a key must belong to its certificate; .*b.key' doesn't belong to .*a.pem'$"),
        ("text", "a.key", "^a certificate must be a PEM file; .*text' isn't$"),
        ("a.pem", "text", "^a key must be a PEM file without a password; .*text' isn't$"),
        ("nowhere", "a.key", "^the files of certificates and keys must exist; .*nowhere' is not a file$"),
    ):
        with pytest.raises(ValueError, match=message):
            certificates.read_identity(tmp_path / certificate, tmp_path / key)


@pytest.mark.parametrize("name", ["", "a b", "../a", "a" * 64, "-a", "ä"])
def test_names_that_could_be_something_else_are_refused(name):
    with pytest.raises(ValueError, match="^a party's name must be letters, digits, '_', '.' and '-', 63 at most; "):
        certificates.new_party(AUTHORITY, name)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "5", True])
def test_limits_must_be_positive_numbers(value):
    with pytest.raises(ValueError, match="^limits must be positive numbers; received heartbeat_seconds = "):
        Limits(heartbeat_seconds=value)


def test_calls_to_somebody_who_never_answers_have_a_deadline():
    limits = Limits(heartbeat_seconds=0.1, deadline_seconds=0.1, patience_seconds=0.5)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        party = certificates.new_party(AUTHORITY, "a")
        target = f"127.0.0.1:{mute.getsockname()[1]}"
        dialler = Dialler(target, party, AUTHORITY.certificate_pem, "coordinator", limits)
        with pytest.raises(
            ConnectionError, match=f"^the coordinator at {target} must be reachable; it wasn't for 0.5 sec"
        ):
            dialler.next(messages.Poll())
        dialler.beat()
        dialler.close()


def test_two_threads_may_make_the_first_call_at_once(monkeypatch):
    """A channel that takes its time to offer its calls: the second thread waits for them."""
    opened = []

    class SlowChannel:
        def unary_unary(self, path, *_):
            time.sleep(0.02)
            return lambda request, timeout: path

        def close(self):
            pass

    monkeypatch.setattr(grpc, "secure_channel", lambda *_, **__: opened.append(SlowChannel()) or opened[-1])
    party = certificates.new_party(AUTHORITY, "a")
    dialler = Dialler("127.0.0.1:1", party, AUTHORITY.certificate_pem, "coordinator", Limits())
    with ThreadPoolExecutor(4) as threads:
        replies = list(threads.map(lambda _: dialler.next(messages.Poll()), range(4)))
    assert replies == [service.path("Next")] * 4
    assert len(opened) == 1
    dialler.close()


def with_bytes_replaced(pem, old, new):
    """Return a PEM file whose content has some bytes in place of others of the same number."""
    first, *lines, last = pem.decode().strip().splitlines()
    der = base64.b64decode("".join(lines))
    assert old in der and len(old) == len(new)
    body = base64.encodebytes(der.replace(old, new)).decode()
    return f"{first}\n{body}{last}\n".encode()


# What says that a key is of an elliptic curve, which curve, and that a name follows.
CURVE_KEY, P256, COMMON_NAME = (
    bytes.fromhex("2a8648ce3d0201"),
    bytes.fromhex("2a8648ce3d030107"),
    b"\x06\x03\x55\x04\x03",
)


@pytest.mark.parametrize(
    ("which", "old", "new", "message"),
    [
        ("key.pem", CURVE_KEY, CURVE_KEY[:-1] + b"\x07", "^a key must be a PEM file without a password; "),
        ("certificate.pem", CURVE_KEY, CURVE_KEY[:-1] + b"\x07", "^a key must belong to its certificate; "),
        ("certificate.pem", P256, P256[:-1] + b"\x63", "^a key must belong to its certificate; "),
        ("certificate.pem", COMMON_NAME, COMMON_NAME[:-1] + b"\x05", "^a certificate must be made out to a name; "),
    ],
)
def test_keys_and_certificates_of_unknown_kinds_are_refused(which, old, new, message, tmp_path):
    certificates.new_party(AUTHORITY, "ann").write(tmp_path / "certificate.pem", tmp_path / "key.pem")
    path = tmp_path / which
    path.write_bytes(with_bytes_replaced(path.read_bytes(), old, new))
    with pytest.raises(ValueError, match=message):
        identity = certificates.read_identity(tmp_path / "certificate.pem", tmp_path / "key.pem")
        certificates.common_name(identity.certificate)
