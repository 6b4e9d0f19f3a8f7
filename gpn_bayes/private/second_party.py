"""The second party as a process of its own on the same machine; `PrivateK2.fit_pair` starts it.

It reads what it is to do from its standard input, as JSON, and writes the port at which it listens.
"""

import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes.private.meeting import PATIENCE, learn_over_tls
from gpn_bayes.private.protocol import make_pool
from gpn_bayes.private.settings import Settings
from gpn_bayes.private.tables import PartyTable
from gpn_bayes.wire.tls_link import Credentials, Listener

_HOST = "127.0.0.1"


def instructions(table: PartyTable, settings: Settings, credentials: Credentials, wait: float) -> str:
    """Return what the process reads."""
    content = {
        "columns": {name: "".join(map(str, bits.tolist())) for name, bits in table.columns.items()},
        "keys": table.keys,
        "settings": asdict(settings),
        "credentials": {name: str(path) for name, path in asdict(credentials).items()},
        "wait": wait,
    }
    return json.dumps(content)


def main() -> None:
    """Take part in one run."""
    # Ctrl-C reaches both processes; the first party ends the run for both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    payload: dict[str, Any] = json.loads(sys.stdin.read())
    bits = {name: np.frombuffer(text.encode(), dtype=np.uint8) - ord("0") for name, text in payload["columns"].items()}
    table = PartyTable(bits, payload["keys"])
    settings = Settings(**payload["settings"] | {"order": tuple(payload["settings"]["order"])})
    credentials = Credentials(**{name: Path(path) for name, path in payload["credentials"].items()})
    pool = make_pool(table, settings, first=False)
    listener = Listener((_HOST, 0), credentials)
    try:
        print(listener.port, flush=True)
        link = listener.accept(payload["wait"], PATIENCE)
        learn_over_tls(link, table, settings, pool, first=False)
    finally:
        listener.close()
        if pool is not None:
            pool.close()


if __name__ == "__main__":
    main()
