"""What the coordinator remembers on disk: the plan, the clients' keys, and the sums of all rounds so far."""

import os
from collections.abc import Mapping
from typing import Self

import numpy as np

from gpn_bayes._util import sqlite
from gpn_bayes.federated.packing import pack, unpack
from gpn_bayes.federated.plan import Plan

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS plan (plan TEXT NOT NULL, ended INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS announcements (client TEXT PRIMARY KEY, announcement BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS rounds (round INTEGER PRIMARY KEY, request BLOB NOT NULL, sums BLOB NOT NULL)",
)


class CoordinatorStore:
    """The coordinator's file of one run; to be used from one thread.

    Parameters
    ----------
    path : str or path
        The SQLite file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._connection = sqlite.open_store(path)
        sqlite.create_tables(self._connection, _SCHEMA)

    def plan(self) -> Plan | None:
        """Return the run's plan; None if there is none yet."""
        with sqlite.reading(self._connection):
            row = self._connection.execute("SELECT plan FROM plan").fetchone()
        return None if row is None else Plan.from_json(row[0])

    def start(self, plan: Plan) -> None:
        """Record the run's plan."""
        with sqlite.transaction(self._connection) as connection:
            connection.execute("INSERT INTO plan VALUES (?, 0)", (plan.to_json(),))

    def ended(self) -> bool:
        """Return whether the clients know that the run is over."""
        with sqlite.reading(self._connection):
            return bool(self._connection.execute("SELECT coalesce(max(ended), 0) FROM plan").fetchone()[0])

    def end(self) -> None:
        """Record that the clients know that the run is over."""
        with sqlite.transaction(self._connection) as connection:
            connection.execute("UPDATE plan SET ended = 1")

    def announcements(self) -> dict[str, bytes]:
        """Return the clients' announcements, by name."""
        with sqlite.reading(self._connection):
            return dict(self._connection.execute("SELECT client, announcement FROM announcements"))

    def save_announcements(self, announcements: Mapping[str, bytes]) -> None:
        """Write down the announcements of all clients."""
        with sqlite.transaction(self._connection) as connection:
            connection.executemany("INSERT OR REPLACE INTO announcements VALUES (?, ?)", announcements.items())

    def sums(self, number: int, request: bytes) -> dict[str, np.ndarray] | None:
        """Return the sums of a round that is done; None if it isn't.

        Raises
        ------
        ValueError
            If the clients were asked something else in that round.
        """
        with sqlite.reading(self._connection):
            row = self._connection.execute("SELECT request, sums FROM rounds WHERE round = ?", (number,)).fetchone()
        if row is None:
            return None
        if row[0] != request:
            raise ValueError(
                f"a resumed run must repeat its requests; round {number} differs (another version of the "
                "program, or another machine?): start a new run"
            )
        return unpack(row[1])

    def save_sums(self, number: int, request: bytes, sums: Mapping[str, np.ndarray]) -> None:
        """Write down the sums of a round."""
        with sqlite.transaction(self._connection) as connection:
            connection.execute("INSERT INTO rounds VALUES (?, ?, ?)", (number, request, pack(sums)))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the store itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store, whatever happened."""
        self.close()
