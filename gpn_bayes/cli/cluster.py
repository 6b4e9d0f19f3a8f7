"""``--dask``: scores are computed by the workers of a dask scheduler."""

import logging
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpn_bayes.cli import screen

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 5  # seconds that a scheduler has to answer


@dataclass(frozen=True)
class Cluster:
    """Where a scheduler is, and the files that prove who is who.

    Parameters
    ----------
    address : str
        ``tcp://host:port``, ``tls://host:port`` or ``host:port``.
    ca, certificate, key : path, optional
        PEM files: who signed the certificates, and this side's own. With them nothing is sent that isn't encrypted.
    """

    address: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Connect, and yield what computes scores there; the connection is closed at the end.

        Raises
        ------
        ValueError
            If distributed isn't installed, or no scheduler answers.
        """
        client = self._connect()
        try:
            if not client.nthreads():
                screen.note(f"the scheduler at {self.address} has no workers yet; scores wait for them")
            yield client.get_executor()
        finally:
            client.close(timeout=_PATIENCE)

    def _connect(self) -> "Client":
        try:
            import distributed
        except ModuleNotFoundError:
            raise ValueError("--dask needs the package distributed; install gpn_bayes[dask]") from None
        # One line of ours replaces its long messages on stderr.
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        address, security = self.address.removeprefix("tcp://"), None
        if self.ca is not None:
            address = f"tls://{address.removeprefix('tls://')}"
            security = distributed.Security(
                require_encryption=True,
                tls_ca_file=str(self.ca),
                tls_client_cert=str(self.certificate),
                tls_client_key=str(self.key),
            )
        try:
            return distributed.Client(address, security=security, timeout=_PATIENCE, set_as_default=False)
        except OSError as error:
            raise ValueError(
                f"--dask must be the address of a running scheduler; received {self.address!r}, where none answered "
                f"within {_PATIENCE} seconds{_reason(error)}"
            ) from None


def _reason(error: BaseException) -> str:
    """Return what an error says at its root, in brackets; nothing if it says nothing."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).rpartition("Error: ")[2].partition("\n")[0]
    return f" ({text})" if text else ""


def read_cluster(address: str | None, ca: Path | None, certificate: Path | None, key: Path | None) -> Cluster | None:
    """Check the options ``--dask``, ``--tls-ca``, ``--tls-cert`` and ``--tls-key``, which belong together."""
    files = {"--tls-ca": ca, "--tls-cert": certificate, "--tls-key": key}
    given = {option: path for option, path in files.items() if path is not None}
    if address is None:
        if given:
            raise ValueError(f"{next(iter(given))} goes with --dask ADDRESS; received no address")
        return None
    if not re.fullmatch(r"(t(cp|ls)://)?[^/\s]+:\d+", address):
        raise ValueError(f"--dask takes tcp://host:port or tls://host:port; received {address!r}")
    if given and len(given) < len(files):
        missing = next(option for option in files if option not in given)
        raise ValueError(f"--tls-ca, --tls-cert and --tls-key go together; received no {missing}")
    if address.startswith("tls://") and not given:
        raise ValueError(f"an address tls:// needs --tls-ca, --tls-cert and --tls-key; received {address!r} alone")
    for option, path in given.items():
        if not path.is_file():
            raise ValueError(f"{option}: the file must exist; received {str(path)!r}")
    return Cluster(address, ca, certificate, key)
