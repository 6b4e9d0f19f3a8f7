"""Private K2 as a learner: both parties on one machine, in two processes."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from time import perf_counter
from typing import Self

import pandas as pd

from gpn_bayes._util.processes import interpreter, package_environment
from gpn_bayes._util.progress import progress_bar
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.orders import read_order
from gpn_bayes.private import second_party
from gpn_bayes.private.costs import Cost, cost_table
from gpn_bayes.private.meeting import PATIENCE, learn_over_tls
from gpn_bayes.private.protocol import Learned, make_pool
from gpn_bayes.private.settings import Settings
from gpn_bayes.private.tables import PartyTable, read_table
from gpn_bayes.wire.certificates import new_authority, new_party
from gpn_bayes.wire.tls_link import Credentials, connect

_HOST = "127.0.0.1"
_WAIT = 60.0
_LAST_SECONDS = 5.0


class PrivateK2(GraphEstimator):
    """K2 over the columns of two parties, which reveal to each other only the network as it grows.

    Each party's process gets its own table only, and talks to the other over mutual TLS as it would from another
    machine; for that, see ``gpn-bayes private-k2``. SECURITY.md says what is protected, and what isn't.

    Parameters
    ----------
    order : sequence of str
        All variables of both tables, parents first.
    max_parents : int, default 3
        Maximum number of parents per node.
    score : {"exact", "paper"}
        K2's score, or the function g that Wright & Yang (2004) put in its place; see SECURITY.md for what g does.
    key_bits : int, default 3072
        Length of the encryption key: 3072, or 2048 for 112-bit security.
    align : {"digest", "intersection"}
        Whether both tables must have the same keys, or the rows whose keys both have are taken, by private set
        intersection.
    key : str, optional
        The column that identifies the rows in both tables; by default their indices do.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_
        The network, over the columns of the first table, then of the second.
    n_rows_ : int
        Rows of the joined table.
    costs_ : DataFrame
        Seconds, bytes and messages of each sub-protocol, as the first party saw them, and the share in the time.
    bytes_sent_ : int
        By both parties together.
    seconds_ : float
        In all, with the generation of the key.

    Examples
    --------
    >>> import numpy as np
    >>> from gpn_bayes.private import PrivateK2
    >>> rain = np.random.default_rng(1).integers(0, 2, 60)
    >>> learner = PrivateK2(order=["rain", "wet"], key_bits=2048).fit_pair(
    ...     pd.DataFrame({"rain": rain}), pd.DataFrame({"wet": 1 - rain})
    ... )
    >>> list(learner.graph_.edges)
    [('rain', 'wet')]
    """

    n_rows_: int
    costs_: pd.DataFrame
    bytes_sent_: int
    seconds_: float

    def __init__(
        self,
        order: Sequence[str],
        *,
        max_parents: int = 3,
        score: str = "exact",
        key_bits: int = 3072,
        align: str = "digest",
        key: str | None = None,
        progressbar: bool = False,
    ) -> None:
        self.order = order
        self.max_parents = max_parents
        self.score = score
        self.key_bits = key_bits
        self.align = align
        self.key = key
        self.progressbar = progressbar

    def fit_pair(self, table_a: pd.DataFrame, table_b: pd.DataFrame) -> Self:
        """Learn the network.

        Parameters
        ----------
        table_a, table_b : DataFrame
            The columns of either party, with two different values each.

        Raises
        ------
        ValueError
            For tables or settings that don't fit, and for rows that don't.
        ConnectionError
            If one of the processes is lost.
        """
        started = perf_counter()
        mine, theirs = (read_table(table, self.key) for table in (table_a, table_b))
        settings = self._settings([*mine.columns, *theirs.columns])
        result, before = _run_both(mine, theirs, settings, self.progressbar)
        self._keep_graph(result.adjacency, result.variables, None)
        self.n_rows_ = result.rows
        self.costs_ = cost_table({"start": Cost(before), **result.costs})
        self.bytes_sent_ = int(self.costs_[["bytes_sent", "bytes_received"]].to_numpy().sum())
        self.seconds_ = perf_counter() - started
        return self

    def _settings(self, names: list[str]) -> Settings:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"every variable must belong to one party; {name!r} is in both tables")
        order = tuple(names[place] for place in read_order(self.order, names))
        settings = Settings(order, self.max_parents, vars(self)["score"], self.key_bits, self.align)
        settings.check()
        return settings


def _run_both(mine: PartyTable, theirs: PartyTable, settings: Settings, progressbar: bool) -> tuple[Learned, float]:
    """Be the first party, with the second in a process of its own; return also the seconds before they met."""
    started = perf_counter()
    with tempfile.TemporaryDirectory(prefix="gpn_bayes_") as folder:
        credentials, others = _throw_away_credentials(Path(folder))
        payload = second_party.instructions(theirs, settings, others, _WAIT)
        with _process(payload, Path(folder) / "errors") as process:
            pool = make_pool(mine, settings, first=True)
            with closing(pool) if pool is not None else nullcontext():
                link = connect((_HOST, _port(process, Path(folder) / "errors")), credentials, _WAIT, PATIENCE)
                before = perf_counter() - started
                with progress_bar("Private K2", 1.0, progressbar) as advance:
                    return learn_over_tls(link, mine, settings, pool, first=True, advance=advance), before


def _throw_away_credentials(folder: Path) -> tuple[Credentials, Credentials]:
    """Write certificates for this run only: the first party's calls, the second's is called."""
    authority = new_authority(days=1)
    files = []
    for name, hosts in (("first", None), ("second", [_HOST])):
        files.append((folder / f"{name}.pem", folder / f"{name}_key.pem"))
        new_party(authority, name, hosts, days=1).write(*files[-1])
    (first, first_key), (second, second_key) = files
    return Credentials(first, first_key, second), Credentials(second, second_key, first)


@contextmanager
def _process(payload: str, errors: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the second party, and see to it that it doesn't outlive the first."""
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            interpreter("-m", "gpn_bayes.private.second_party"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=package_environment(),
        )
        with process:
            try:
                assert process.stdin is not None
                with suppress(BrokenPipeError):  # it has ended; the reason is reported when its port is asked for
                    process.stdin.write(payload)
                    process.stdin.close()
                yield process
                process.wait(_LAST_SECONDS)
            finally:
                process.kill()


def _port(process: subprocess.Popen[str], errors: Path) -> int:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        process.wait(_LAST_SECONDS)
        *_, reason = ["", *errors.read_text(encoding="utf-8", errors="replace").splitlines()]
        raise ConnectionError(f"the second party's process must start; it ended: {reason or 'no error output'}")
    return int(line)
