"""What a client remembers on disk: its place in each run, and which tables it has given sums of."""

import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from google.protobuf.message import DecodeError

from gpn_bayes._util import sqlite
from gpn_bayes.federated.packing import pack, unpack
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.translation import keys_from_message, keys_to_message
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.secure.key_exchange import SignedKey
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.wire import federation_pb2 as messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpn_bayes.federated.interface import Participant

# `request` holds the digest of all requests so far.
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS sessions (
        run TEXT PRIMARY KEY, plan TEXT NOT NULL, data_fingerprint TEXT NOT NULL, finished INTEGER NOT NULL,
        private_key BLOB, keys BLOB, round INTEGER NOT NULL, request BLOB NOT NULL, answer BLOB NOT NULL,
        state BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS ledger (
        data_fingerprint TEXT, program TEXT, run TEXT, PRIMARY KEY (data_fingerprint, program, run))""",
)
_FORGET = "UPDATE sessions SET finished = 1, private_key = NULL, keys = NULL, answer = x'', state = x''"


class Release(NamedTuple):
    """A run that opened sums over this client's rows: by which program, and over which clients."""

    run: str
    program: str
    clients: tuple[str, ...]


class ClientStore:
    """A client's file; only its owner may read it, for it holds keys while a run is on.

    Parameters
    ----------
    path : str or path
        The SQLite file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._connection = sqlite.open_store(path)
        for file in Path(path).parent.glob(f"{glob.escape(Path(path).name)}*"):
            file.chmod(0o600)
        # An answer that has left must still be there after a power cut: another one under the same mask would give both
        # away.
        self._connection.execute("PRAGMA synchronous=FULL")
        # Keys of runs that are over must not linger in unused parts of the file.
        self._connection.execute("PRAGMA secure_delete=ON")
        sqlite.create_tables(self._connection, _SCHEMA)

    def earlier_releases(self, data_fingerprint: str, run: str) -> list[Release]:
        """Return the other runs in which this table was summed, whatever their program, the first one first."""
        with sqlite.reading(self._connection):
            rows = self._connection.execute(
                "SELECT ledger.run, ledger.program, plan FROM ledger LEFT JOIN sessions ON sessions.run = ledger.run "
                "WHERE ledger.data_fingerprint = ? AND ledger.run <> ? ORDER BY ledger.rowid",
                (data_fingerprint, run),
            ).fetchall()
        return [
            Release(str(other), str(program), () if plan is None else Plan.from_json(plan).clients)
            for other, program, plan in rows
        ]

    def save(self, session: ClientSession, data_fingerprint: str) -> None:
        """Write down where a session stands, and that it has used the table; both or neither."""
        keys = keys_to_message(session.plan.run, session.signed_keys).SerializeToString()
        row = (
            session.plan.run, session.plan.to_json(), data_fingerprint, 0, session.private_key, keys,
            session.last_round, session.transcript, session.last_answer, pack(session.participant.state()),
        )  # fmt: skip
        with sqlite.transaction(self._connection) as connection:
            # Whoever joins a run has left all others.
            connection.execute(f"{_FORGET} WHERE run <> ? AND NOT finished", (session.plan.run,))
            connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            if session.last_round >= 0:
                connection.execute(
                    "INSERT OR IGNORE INTO ledger VALUES (?, ?, ?)",
                    (data_fingerprint, session.plan.program, session.plan.run),
                )

    def load(
        self,
        plan: Plan,
        client: str,
        data_fingerprint: str,
        make_participant: Callable[[], "Participant"],
        fingerprints: "Mapping[str, str]",
    ) -> ClientSession | None:
        """Return the session of a run as it was saved; None if there was none.

        Raises
        ------
        ProtocolError
            If the run is over, or was about something else.
        ValueError
            If the table is another than when the client joined.
        """
        with sqlite.reading(self._connection):
            row = self._connection.execute(
                "SELECT plan, data_fingerprint, finished, private_key, keys, round, request, answer, state "
                "FROM sessions WHERE run = ?",
                (plan.run,),
            ).fetchone()
        if row is None:
            return None
        known, known_data, finished, private_key, keys, round_number, transcript, answer, state = row
        if known != plan.to_json():
            raise ProtocolError("a run's plan must not change after this client joined; received another")
        if known_data != data_fingerprint:
            raise ValueError("a client's table must stay the same during a run; received another")
        if finished:
            raise ProtocolError("this run is over for this client; start a new one")
        signed_keys = _checked_keys(private_key, keys, round_number, transcript, answer)
        session = ClientSession(plan, client, make_participant(), private_key)
        session.participant.restore(unpack(state))
        if signed_keys:
            session.accept_keys(signed_keys, fingerprints)
        session.last_round, session.transcript, session.last_answer = round_number, transcript, answer
        return session

    def finish(self, run: str) -> None:
        """Forget the keys, the answer and the state of a run that is over; it can't be joined again."""
        with sqlite.transaction(self._connection) as connection:
            connection.execute(f"{_FORGET} WHERE run = ?", (run,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the store itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store, whatever happened."""
        self.close()


def _checked_keys(private_key: Any, keys: Any, round_number: Any, transcript: Any, answer: Any) -> list[SignedKey]:
    """Return the keys of a session that was saved; refuse it if it can't have been."""
    sound = all(isinstance(value, bytes) and len(value) == 32 for value in (private_key, transcript))
    sound = sound and isinstance(round_number, int) and round_number >= -1
    try:
        if sound:
            messages.Answer.FromString(answer)
            return keys_from_message(messages.Keys.FromString(keys))
    except (DecodeError, TypeError):
        pass
    raise ValueError("a client's file must be as it was written; this one is damaged: start a new run")
