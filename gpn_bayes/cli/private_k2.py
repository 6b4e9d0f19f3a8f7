"""``gpn-bayes private-k2``: one of two parties that learn a network over their joined columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from gpn_bayes.cli import inputs, screen
from gpn_bayes.cli.folder import check_free
from gpn_bayes.cli.options import Quiet, folder_option
from gpn_bayes.cli.private_results import result_files, show_network, write_network
from gpn_bayes.cli.run import INTERRUPTED

if TYPE_CHECKING:
    from gpn_bayes.private.settings import Settings
    from gpn_bayes.private.tables import PartyTable
    from gpn_bayes.wire.tls_link import Credentials, TlsLink

ROLES = ("listen", "connect")
_CONNECTION = "Connection"
_LOST = 1

app = typer.Typer(
    help="Learn a network over the joined columns of two parties, without sharing rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Data = Annotated[Path, typer.Option(help="This party's columns, a CSV or Parquet table; two values in each.")]
Key = Annotated[str, typer.Option(help="Column that identifies the rows, by keys that both parties use.")]
Order = Annotated[str, typer.Option(help="All variables of both parties, parents first: 'a,b,c' or a CSV file.")]
Out = Annotated[Path, folder_option("Folder for the results; nothing in it is overwritten.")]
Certificate = Annotated[
    Path, typer.Option("--cert", help="This party's certificate (PEM); see 'certs'.", rich_help_panel=_CONNECTION)
]
CertificateKey = Annotated[
    Path | None,
    typer.Option("--cert-key", help="Its private key; key.pem next to it by default.", rich_help_panel=_CONNECTION),
]
Peer = Annotated[
    Path | None,
    typer.Option(
        help="The other party's certificate, the only one accepted; by default peer.pem next to this party's.",
        rich_help_panel=_CONNECTION,
    ),
]
Wait = Annotated[float, typer.Option(help="Seconds to wait for the other party.", min=0.1, rich_help_panel=_CONNECTION)]
MaxParents = Annotated[int, typer.Option(help="Maximum number of parents per variable.")]
Score = Annotated[str, typer.Option(help="exact (K2's own) or paper (the function g of Wright & Yang 2004).")]
KeyBits = Annotated[int, typer.Option(help="Length of the encryption key: 3072, or 2048 for 112-bit security.")]
Align = Annotated[
    str,
    typer.Option(help="digest: both tables have the same keys; intersection: use the rows whose keys both have."),
]


@dataclass(frozen=True)
class _Party:
    """The command-line options of one party."""

    role: str
    table: "PartyTable"
    settings: "Settings"
    credentials: "Credentials"
    address: tuple[str, int]
    out: Path
    quiet: bool

    @property
    def first(self) -> bool:
        """Whether this party's columns come first: those of the listening party."""
        return self.role == ROLES[0]


@app.command("listen")
def listen(
    data: Data,
    key: Key,
    order: Order,
    out: Out,
    cert: Certificate,
    cert_key: CertificateKey = None,
    peer: Peer = None,
    address: Annotated[
        str, typer.Option(help="Address to listen at, host:port.", rich_help_panel=_CONNECTION)
    ] = "0.0.0.0:50052",
    wait: Wait = 600.0,
    max_parents: MaxParents = 3,
    score: Score = "exact",
    key_bits: KeyBits = 3072,
    align: Align = "digest",
    quiet: Quiet = False,
) -> None:
    """Wait for the other party, learn the network with it, and write its edges.

    Both parties give the same order, limit of parents, score, key length and alignment.
    Writes edges.csv, and private_k2.json with settings and costs.
    """
    with _plain_messages():
        from gpn_bayes.wire.tls_link import Listener

        settings = (order, max_parents, score, key_bits, align)
        party = _read_party("listen", data, key, settings, out, (cert, cert_key, peer), address, quiet)

        def meet() -> "TlsLink":
            from gpn_bayes.private.meeting import PATIENCE

            listener = Listener(party.address, party.credentials)
            screen.note(f"listening at {party.address[0]}:{listener.port}")
            try:
                return listener.accept(wait, PATIENCE, screen.note)
            finally:
                listener.close()

        _take_part(party, meet)


@app.command("connect")
def connect(
    data: Data,
    key: Key,
    order: Order,
    out: Out,
    cert: Certificate,
    address: Annotated[
        str, typer.Option(help="Address of the listening party, host:port.", rich_help_panel=_CONNECTION)
    ],
    cert_key: CertificateKey = None,
    peer: Peer = None,
    wait: Wait = 600.0,
    max_parents: MaxParents = 3,
    score: Score = "exact",
    key_bits: KeyBits = 3072,
    align: Align = "digest",
    quiet: Quiet = False,
) -> None:
    """Connect to the listening party, learn the network with it, and write its edges.

    Both parties give the same order, limit of parents, score, key length and alignment.
    Writes edges.csv, and private_k2.json with settings and costs.
    """
    with _plain_messages():
        from gpn_bayes.private.meeting import PATIENCE
        from gpn_bayes.wire.tls_link import connect as call

        settings = (order, max_parents, score, key_bits, align)
        party = _read_party("connect", data, key, settings, out, (cert, cert_key, peer), address, quiet)
        _take_part(party, lambda: call(party.address, party.credentials, wait, PATIENCE))


@app.command("certs")
def make_certificates(
    out: Annotated[Path, folder_option("Folder to write to; nothing in it is overwritten.")],
    role: Annotated[
        str | None,
        typer.Option(help="listen or connect: only this party's; by default both, for a trial.", show_default=False),
    ] = None,
    days: Annotated[int, typer.Option(help="Validity of the certificates, in days.", min=1)] = 365,
) -> None:
    """Make certificates and keys: one folder for the party that listens, and one for the party that connects.

    For real use each party runs this with its own --role, and sends only certificate.pem to the other, who saves it as
    peer.pem next to its own; both compare the fingerprints by another way.
    """
    with _plain_messages():
        from gpn_bayes._util.files import write_whole
        from gpn_bayes.wire.certificates import new_authority, new_party

        if role is not None and role not in ROLES:
            raise ValueError(f"--role must be listen or connect; received {role!r}")
        roles = ROLES if role is None else (role,)
        check_free(out, [out / name for name in roles])
        # Signatures aren't checked: each party knows the other's certificate. So the authority isn't kept.
        authority = new_authority(days)
        hosts = {"listen": ["localhost"], "connect": None}
        identities = {name: new_party(authority, name, hosts[name], days) for name in roles}
        for name, identity in identities.items():
            (out / name).mkdir(parents=True)
            identity.write(out / name / "certificate.pem", out / name / "key.pem")
            for other in set(identities) - {name}:
                write_whole(out / name / "peer.pem", identities[other].certificate_pem)
            screen.note(f"{name}: {_fingerprint(identity.der)}")
        screen.show_files(out, [out / name for name in roles])


def _fingerprint(der: bytes) -> str:
    import hashlib

    return hashlib.sha256(der).hexdigest()


def _read_party(
    role: str,
    data: Path,
    key: str,
    settings: tuple[str, int, str, int, str],
    out: Path,
    files: tuple[Path, Path | None, Path | None],
    address: str,
    quiet: bool,
) -> _Party:
    """Read and check all that one party can check alone, before it contacts the other."""
    from gpn_bayes.data.reading import read_frame
    from gpn_bayes.private.settings import Settings
    from gpn_bayes.private.tables import read_table
    from gpn_bayes.wire.tls_link import Credentials

    check_free(out, result_files(out))
    frame = read_frame(data, texts=[key])
    order = inputs.read_names(settings[0], list(frame.columns), "--order")
    agreed = Settings(tuple(order), *settings[1:])
    agreed.check()
    table = read_table(frame, key, chosen=order)
    left_out = [name for name in frame.columns if name != key and name not in table.columns]
    if left_out:
        screen.note(f"not in --order, and left out: {', '.join(left_out)}")
    cert, cert_key, peer = files
    credentials = Credentials(cert, cert_key or cert.with_name("key.pem"), peer or cert.with_name("peer.pem"))
    credentials.context(server=role == "listen")
    return _Party(role, table, agreed, credentials, _read_address(address), out, quiet)


def _read_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdigit() and int(port) < 1 << 16):
        raise ValueError(f"--address must be host:port; received {text!r}")
    return host.strip("[]"), int(port)


def _take_part(party: _Party, meet: Callable[[], "TlsLink"]) -> None:
    from gpn_bayes._util.progress import progress_bar
    from gpn_bayes.private.meeting import learn_over_tls
    from gpn_bayes.private.protocol import make_pool

    started = perf_counter()
    _show_expectations(party)
    pool = make_pool(party.table, party.settings, first=party.first)
    try:
        link = meet()
        met = perf_counter()
        with progress_bar("Private K2", 1.0, not party.quiet) as advance:
            result = learn_over_tls(link, party.table, party.settings, pool, first=party.first, advance=advance)
    finally:
        if pool is not None:
            pool.close()
    show_network(result, perf_counter() - met)
    own = {"role": party.role, "settings": asdict(party.settings), "own_variables": list(party.table.columns)}
    write_network(party.out, result, own, perf_counter() - started)
    screen.show_files(party.out, result_files(party.out))


def _show_expectations(party: _Party) -> None:
    from gpn_bayes.private.schedule import expectations

    mine = len(party.table.columns)
    fewer, more = sorted((mine, max(1, len(party.settings.order) - mine)))
    expected = expectations(party.settings, fewer, more, party.table.rows).values()
    seconds, megabytes = sum(part.seconds for part in expected), sum(part.bytes for part in expected) / 1e6
    screen.note(f"once both are connected, this takes roughly {seconds:.0f} s and {megabytes:.0f} MB")


@contextmanager
def _plain_messages() -> Iterator[None]:
    """Show errors in one line, also those of the other party and of a missing package."""
    with screen.plain_messages():
        try:
            from gpn_bayes.private import meeting as _  # noqa: F401 (a missing package is reported first)
            from gpn_bayes.secure.link import ProtocolError
        except ImportError as error:
            raise ValueError(str(error)) from None
        try:
            yield
        except ProtocolError as error:
            screen.tell("error", str(error))
            raise typer.Exit(_LOST) from None
        except KeyboardInterrupt:
            screen.note("interrupted; nothing was written, and a new run starts from the beginning")
            raise typer.Exit(INTERRUPTED) from None
