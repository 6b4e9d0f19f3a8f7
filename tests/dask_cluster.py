"""A real dask cluster on this machine, made of processes that tests may kill."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from distributed import Client, Security

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
TIME_LIMIT = 120


def wait_for(condition: Callable[[], object]) -> None:
    """Wait till something is so."""
    limit = time.monotonic() + TIME_LIMIT
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class DaskCluster:
    """A scheduler and its workers, one thread each.

    Parameters
    ----------
    workers : int
        How many to start.
    tls : tuple of path, optional
        Certificate authority, certificate and key.
    """

    def __init__(self, workers: int, tls: Sequence[Path] = ()) -> None:
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{free_port()}"
        names = ("--tls-ca-file", "--tls-cert", "--tls-key")
        self._tls = [str(word) for pair in zip(names, tls, strict=False) for word in pair]
        self.security = Security(
            **dict(zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), map(str, tls), strict=False))
        )
        self.scheduler = self._start("scheduler", "--host", self.address)
        self.workers: list[subprocess.Popen] = []
        self.add_workers(workers)

    def add_workers(self, count: int) -> None:
        """Start workers."""
        self.workers += [self._start("worker", self.address, "--nthreads=1", "--no-nanny") for _ in range(count)]

    def client(self) -> Client:
        """Return a client, once all workers are there."""
        client = Client(self.address, security=self.security, timeout=TIME_LIMIT, set_as_default=False)
        client.wait_for_workers(len(self.workers), timeout=TIME_LIMIT)
        return client

    def kill(self, worker: subprocess.Popen) -> None:
        """Kill a worker that has no chance to say goodbye."""
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options, "--no-dashboard", *self._tls]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=quiet, stderr=quiet)
