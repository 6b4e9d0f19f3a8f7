"""Everything a run needs: certificates of all parties, and configuration files that fit them."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from gpn_bayes._util.files import write_whole
from gpn_bayes.federated.processes.config import COORDINATOR
from gpn_bayes.secure.key_exchange import fingerprint
from gpn_bayes.wire.certificates import (
    DAYS,
    SigningRequest,
    check_name,
    new_authority,
    new_private_key,
    sign_party,
    write_key,
)

ADDRESS = "127.0.0.1:50051"
KEY = "key.pem"
_TLS = f'[tls]\nauthority = "authority.pem"\ncertificate = "certificate.pem"\nkey = "{KEY}"\n'


def write_parties(
    folder: Path,
    clients: Sequence[str],
    variables: Sequence[str] = (),
    address: str = ADDRESS,
    program: str = "statistics",
    days: int = DAYS,
) -> list[Path]:
    """Make a certificate authority, and one folder per party: its certificate, key and configuration file.

    The authority's key isn't kept: nobody can add a party later. Whoever makes all keys could pose as anybody, so this
    is for trials; for real use every party makes its own key, and `sign_parties` makes the rest.

    Parameters
    ----------
    folder : path
        Where to write; nothing in it is overwritten.
    clients : sequence of str
        Their names.
    variables : sequence of str
        The columns that the run is about; to be filled in later by default.
    address : str
        Where the coordinator is reached, ``host:port``.
    program : str
        What the run does; the clients agree to this only.
    days : int, default 365
        How long the certificates hold.

    Returns
    -------
    list of path
        The folders: the coordinator's, then the clients'.
    """
    _check_clients(clients)
    keys = {name: new_private_key() for name in (COORDINATOR, *clients)}
    homes = _write_folders(
        folder, {name: key.public_key() for name, key in keys.items()}, variables, address, program, days
    )
    for home, key in zip(homes, keys.values(), strict=True):
        write_key(key, home / KEY)
    return homes


def sign_parties(
    folder: Path,
    requests: Sequence[SigningRequest],
    variables: Sequence[str] = (),
    address: str = ADDRESS,
    program: str = "statistics",
    days: int = DAYS,
) -> list[Path]:
    """Make a certificate authority that signs the keys of all parties, and one folder per party, without its key.

    A party moves what is in its folder next to its key. Whoever signs can't pose as another party, as every party's
    file states the fingerprints of the certificates; provided that the parties compare these over another channel.

    Parameters
    ----------
    folder, variables, address, program, days
        As for `write_parties`.
    requests : sequence of SigningRequest
        One of each client, and one of the coordinator, whose name is "coordinator".

    Returns
    -------
    list of path
        The folders: the coordinator's, then the clients'.
    """
    keys = {request.name: request.public_key for request in requests}
    if COORDINATOR not in keys:
        raise ValueError(f"one signing request must be of {COORDINATOR!r}; received {', '.join(keys) or 'none'}")
    coordinators = keys.pop(COORDINATOR)
    _check_clients([request.name for request in requests if request.name != COORDINATOR])
    numbers = {key.public_numbers() for key in (coordinators, *keys.values())}
    if len(numbers) < len(requests):
        raise ValueError("every party must have made a key of its own; two signing requests have the same, or a name")
    return _write_folders(folder, {COORDINATOR: coordinators} | keys, variables, address, program, days)


def _check_clients(clients: Sequence[str]) -> None:
    for name in clients:
        check_name(name)
    if len(set(clients)) < len(clients) or COORDINATOR in clients or not clients:
        raise ValueError(
            f"clients must have different names, none of them {COORDINATOR!r}; received {', '.join(clients) or 'none'}"
        )


def _write_folders(
    folder: Path,
    keys: Mapping[str, EllipticCurvePublicKey],
    variables: Sequence[str],
    address: str,
    program: str,
    days: int,
) -> list[Path]:
    """Write what a party needs besides its key; the coordinator comes first."""
    homes = {name: folder / name for name in keys}
    for home in homes.values():
        if os.path.lexists(home):
            raise ValueError(f"nothing is overwritten; {str(home)!r} exists: choose another --out")
    host, _, port = address.rpartition(":")
    authority = new_authority(days)
    hosts = {COORDINATOR: ("localhost", host)}
    signed = {name: sign_party(authority, name, key, hosts.get(name), days) for name, key in keys.items()}
    prints = {name: fingerprint(certificate.public_bytes(Encoding.DER)) for name, certificate in signed.items()}
    clients = "[clients]\n" + "".join(f'"{name}" = "{prints[name]}"\n' for name in keys if name != COORDINATOR)
    coordinators = (
        f'program = "{program}"\nlisten = "0.0.0.0:{port}"\nout = "results"\nsecure = true\n'
        f"variables = {json.dumps(list(variables), ensure_ascii=False)}\n"
    )
    every_clients = (
        f'coordinator = "{address}"\ncoordinator_fingerprint = "{prints[COORDINATOR]}"\nstate = "state.sqlite"\n'
        f'programs = ["{program}"]\n'
    )
    for name, home in homes.items():
        file, entries = ("coordinator.toml", coordinators) if name == COORDINATOR else ("client.toml", every_clients)
        home.mkdir(parents=True)
        write_whole(home / "authority.pem", authority.certificate_pem)
        write_whole(home / "certificate.pem", signed[name].public_bytes(Encoding.PEM))
        write_whole(home / file, f"{entries}\n{_TLS}\n{clients}")
    return list(homes.values())
