"""``gpn-bayes federate``: certificates, coordinator and clients of a run over rows that can't be pooled."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.files import write_whole
from gpn_bayes._util.printable import printable
from gpn_bayes.cli import inputs, screen
from gpn_bayes.cli.options import Quiet, folder_option, reads_table
from gpn_bayes.cli.run import INTERRUPTED

if TYPE_CHECKING:
    from gpn_bayes.federated.processes.config import ClientConfig

app = typer.Typer(
    help="Learn from rows that several parties hold and don't share.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command("certs")
def make_certificates(
    out: Annotated[Path, folder_option("Folder for the parties' folders; nothing in it is overwritten.")],
    clients: Annotated[str | None, typer.Option(help="Names of the clients, 'a,b,c'.", show_default=False)] = None,
    request: Annotated[
        list[Path] | None,
        typer.Option(help="Signing request of a party, from 'key'; once for each, instead of --clients."),
    ] = None,
    address: Annotated[
        str, typer.Option(help="Address at which clients reach the coordinator, host:port.")
    ] = "127.0.0.1:50051",
    variables: Annotated[str | None, typer.Option(help="Columns to use, 'x,y,z'.", show_default=False)] = None,
    program: Annotated[str, typer.Option(help="What the run does.")] = "statistics",
    days: Annotated[int, typer.Option(help="Validity of the certificates, in days.", min=1)] = 365,
) -> None:
    """Make certificates and configuration files, one folder to hand to each party.

    With --clients it makes all keys too, which is for trials: whoever runs this has them. For real use every party
    makes its own with 'key', and passes on its signing request.
    """
    with _plain_messages():
        from gpn_bayes.federated.processes.setup_files import sign_parties, write_parties
        from gpn_bayes.federated.programs import find_program
        from gpn_bayes.wire.certificates import read_request

        find_program(program)
        if (clients is None) == (not request):
            raise ValueError("either --clients or --request must be given; received " + ("both" if request else "none"))
        columns = [name.strip() for name in (variables or "").split(",") if name.strip()]
        if request:
            signed = [read_request(path) for path in request]
            homes = sign_parties(out, signed, columns, address, program, days)
        else:
            names = [name.strip() for name in (clients or "").split(",") if name.strip()]
            homes = write_parties(out, names, columns, address, program, days)
        screen.show_files(out, homes)
        if request:
            screen.note("each party moves its files next to its key, and compares fingerprints with the others")
        if not columns:
            screen.note("fill in 'variables' in coordinator.toml: the columns to use")


@app.command("key")
def make_key(
    out: Annotated[Path, folder_option("Folder for the key and the request; nothing in it is overwritten.")],
    name: Annotated[str, typer.Option(help="This party's name; 'coordinator' for the coordinator.")],
) -> None:
    """Make a party's own key, and a request to have it signed.

    Writes key.pem, which stays here, and request.pem, to pass on to whoever runs 'certs --request'.
    """
    with _plain_messages():
        from gpn_bayes.federated.processes.setup_files import KEY
        from gpn_bayes.wire.certificates import write_request

        out.mkdir(parents=True, exist_ok=True)
        files = [out / KEY, out / "request.pem"]
        write_request(name, files[1], files[0])
        screen.show_files(out, files)


@app.command("coordinator")
def run_coordinator(
    config: Annotated[Path, typer.Option(help="The coordinator's configuration, coordinator.toml.")],
    quiet: Quiet = False,
) -> None:
    """Start or resume a run, and wait for clients to connect.

    Writes <program>.npz. Where it holds statistics, gpn.sample and the learners take it as data.
    """
    with _plain_messages(), _logging(quiet):
        from gpn_bayes._util.progress import status_line
        from gpn_bayes.federated.processes.config import read_coordinator
        from gpn_bayes.federated.processes.coordinator import coordinate

        settings = read_coordinator(config)
        with status_line(not quiet) as tell:
            results = coordinate(settings, tell)
        files = [results]
        if settings.posterior is not None:
            files += _sample(results, settings.posterior, quiet)
        screen.show_files(settings.out, files)


@app.command("client")
@reads_table(draws=False)
def run_client(
    data: Annotated[Path, typer.Option(help="This client's rows, a CSV, Excel (.xlsx) or Parquet table.")],
    config: Annotated[
        Path | None,
        typer.Option(help="The client's configuration; client.toml next to the certificate if that is given."),
    ] = None,
    coordinator: Annotated[str | None, typer.Option(help="The coordinator's address, host:port.")] = None,
    cert: Annotated[Path | None, typer.Option(help="This client's certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    authority: Annotated[
        Path | None, typer.Option(help="Certificate of the authority that signed all others (PEM).")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="File that stores this client's runs.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Allow one more run with a table that was part of another, of any program.")
    ] = False,
    quiet: Quiet = False,
    *,
    table: dict[str, str],
) -> None:
    """Take part in a coordinator's run until it ends; if restarted, resume.

    Options take the place of entries in the configuration.
    """
    with _plain_messages(), _logging(quiet):
        from gpn_bayes._util.progress import status_line
        from gpn_bayes.federated.processes.client import take_part

        settings = _client_config(config, {
            "coordinator": coordinator, "certificate": cert, "key": key, "authority": authority, "state": state,
        })  # fmt: skip
        rows = inputs.read_part(data, table)
        with status_line(not quiet) as tell:
            take_part(settings, rows, again, tell)
        screen.note("the run is over")


def _client_config(config: Path | None, overrides: dict[str, Any]) -> "ClientConfig":
    from gpn_bayes.federated.processes.config import read_client

    if config is None:
        if overrides["certificate"] is None:
            raise ValueError("--config FILE or --cert FILE must be given; received neither")
        config = overrides["certificate"].parent / "client.toml"
    return read_client(config, overrides)


def _sample(statistics: Path, options: dict[str, Any], quiet: bool) -> list[Path]:
    """Draw from the posterior of networks, given the statistics; return the files."""
    from gpn_bayes.cli.folder import edges_csv
    from gpn_bayes.sampling.options import nested
    from gpn_bayes.sampling.sample import sample

    settings: dict[str, Any] = {"score": "bge", "random_seed": 1, "progressbar": not quiet} | options
    post = sample(statistics, **nested(settings))
    files = [statistics.with_name("posterior.nc"), statistics.with_name("edges.csv")]
    post.save(files[0])
    write_whole(files[1], edges_csv(post.summary()))
    return files


@contextmanager
def _plain_messages() -> Iterator[None]:
    """Show errors in one line, also for a missing package; after Ctrl-C the run can be resumed."""
    # gRPC writes every failed handshake to the terminal otherwise; what matters of it is in the log.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with screen.plain_messages():
        try:
            with installed_by("federated"):
                yield
        except ImportError as error:
            raise ValueError(str(error)) from None
        except KeyboardInterrupt:
            screen.note("interrupted; give the same command again to resume")
            raise typer.Exit(INTERRUPTED) from None


class _PlainLines(logging.Formatter):
    """One line for every message, whatever the others wrote into it."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(printable(super().format(record)).split())


@contextmanager
def _logging(quiet: bool) -> Iterator[None]:
    """Send the package's log to stderr inside the block; only warnings if quiet."""
    logger = logging.getLogger("gpn_bayes")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines("%(asctime)s %(levelname)s %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
