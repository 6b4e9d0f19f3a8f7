"""Certificates of two parties and connections between them on this machine."""

from concurrent.futures import ThreadPoolExecutor

from gpn_bayes.wire.certificates import new_authority, new_party
from gpn_bayes.wire.tls_link import Credentials, Listener, connect

HOST = "127.0.0.1"
WAIT = 5.0
PATIENCE = 3.0


def write_credentials(folder, names=("listen", "connect"), days=1):
    """Write certificates of a party that listens and one that connects, and return the credentials of both."""
    authority = new_authority(days)
    files = {}
    for name, hosts in zip(names, (["localhost"], None), strict=True):
        files[name] = (folder / f"{name}.pem", folder / f"{name}_key.pem")
        new_party(authority, name, hosts, days).write(*files[name])
    (first, first_key), (second, second_key) = files.values()
    return Credentials(first, first_key, second), Credentials(second, second_key, first)


def meet(listening, calling, wait=WAIT, patience=PATIENCE):
    """Return both ends of a connection, or the errors that kept the parties from it."""
    listener = Listener((HOST, 0), listening)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(listener.accept, wait, patience),
            pool.submit(connect, (HOST, listener.port), calling, wait, patience),
        ]
        ends = [job.exception(wait + 20) or job.result() for job in jobs]
    listener.close()
    return ends
