"""Everything a trial run needs: certificates of all parties, and configuration files that fit them."""

import json
from collections.abc import Sequence
from pathlib import Path

from gpn_bayes.federated.processes.config import COORDINATOR
from gpn_bayes.secure.key_exchange import fingerprint
from gpn_bayes.wire.certificates import DAYS, Identity, check_name, new_authority, new_party

_TLS = '[tls]\nauthority = "authority.pem"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'


def write_parties(
    folder: Path,
    clients: Sequence[str],
    variables: Sequence[str] = (),
    address: str = "127.0.0.1:50051",
    program: str = "statistics",
    days: int = DAYS,
) -> list[Path]:
    """Make a certificate authority, and one folder per party: its certificate, key and configuration file.

    The authority's key isn't kept: nobody can add a party later. Whoever makes all keys could pose as anybody, so this
    is for trials; for real use every party makes its own key, and passes on the fingerprint of its certificate.

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
    for name in clients:
        check_name(name)
    if len(set(clients)) < len(clients) or COORDINATOR in clients or not clients:
        raise ValueError(
            f"clients must have different names, none of them {COORDINATOR!r}; received {', '.join(clients) or 'none'}"
        )
    homes = [folder / name for name in (COORDINATOR, *clients)]
    for home in homes:
        if home.exists():
            raise ValueError(f"nothing is overwritten; {str(home)!r} exists: choose another --out")
    host, _, port = address.rpartition(":")
    authority = new_authority(days)
    coordinator = new_party(authority, COORDINATOR, hosts=("localhost", host), days=days)
    identities = {name: new_party(authority, name, days=days) for name in clients}
    prints = "[clients]\n" + "".join(f'"{n}" = "{fingerprint(i.der)}"\n' for n, i in identities.items())
    entries = (
        f'program = "{program}"\nlisten = "0.0.0.0:{port}"\nout = "results"\nsecure = true\n'
        f"variables = {json.dumps(list(variables), ensure_ascii=False)}\n\n"
    )
    _write_party(homes[0], coordinator, authority, "coordinator.toml", entries + _TLS + "\n" + prints)
    for home, identity in zip(homes[1:], identities.values(), strict=True):
        entries = f'coordinator = "{address}"\nstate = "state.sqlite"\nprograms = ["{program}"]\n\n'
        _write_party(home, identity, authority, "client.toml", entries + _TLS + "\n" + prints)
    return homes


def _write_party(home: Path, identity: Identity, authority: Identity, config: str, text: str) -> None:
    home.mkdir(parents=True)
    (home / "authority.pem").write_bytes(authority.certificate_pem)
    identity.write(home / "certificate.pem", home / "key.pem")
    (home / config).write_text(text, encoding="utf-8")
