"""The SQLite file behind a run: recognise it, hold it for one writer, write it in whole transactions."""

import errno
import os
import platform
import sqlite3
import stat
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gpn_bayes._util.files import NO_LINK, new_private_file, unwritable, writing

APPLICATION_ID = 0x47504E42  # "GPNB", in the file's header: how we know our own files
SCHEMA_VERSION = 1
# What SQLite calls a disk that is full or fails, a file that may only be read, and one that can't be made.
_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)

# What it raises on damaged files; the second where the text of its own message quotes bytes that aren't UTF-8.
_SQLITE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)

_held: set[str] = set()  # the lock files of this process: POSIX locks don't exclude their own process

if sys.platform == "win32":
    import msvcrt

    def _claim(descriptor: int) -> None:
        # Locked bytes can't be read by others, so lock one far behind the owner's name.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _claim(descriptor: int) -> None:
        # lockf, not flock: forked workers would inherit a flock and keep it after this process was killed.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StoreConnection(sqlite3.Connection):
    """A connection that holds the file's lock until it is closed, collected, or its process ends."""

    _unlock: "weakref.finalize[[str, int, int], StoreConnection] | None" = None

    def hold(self, lock_path: str, descriptor: int) -> None:
        """Take over a lock, to release it with this connection."""
        self._unlock = weakref.finalize(self, _release, lock_path, descriptor, os.getpid())

    def close(self) -> None:
        """Close the file and let another run have it."""
        super().close()
        if self._unlock is not None:
            self._unlock()


def open_store(path: str | os.PathLike[str]) -> StoreConnection:
    """Open or create the file of a run for writing; everyone else may only read it meanwhile.

    Parameters
    ----------
    path : str or path
        The SQLite file. Its folder must exist. While it is open a lock file lies next to it, the same name
        plus ``.lock``; the operating system drops the lock when the process ends, however it ends.

    Returns
    -------
    StoreConnection
        In autocommit mode; write through `transaction`. To be used from one thread.

    Raises
    ------
    ValueError
        If the folder is missing, the file can't be written, is in use by another run, or isn't one of this package.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     connection = open_store(f"{folder}/run.sqlite")
    ...     with transaction(connection):
    ...         _ = connection.execute("INSERT INTO meta VALUES ('colour', 'blue')")
    ...     print(connection.execute("SELECT * FROM meta").fetchall())
    ...     connection.close()
    [('colour', 'blue')]
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"a run's file must be given by its path; received {path!r}")
    file = Path(os.path.realpath(path))
    if not file.parent.is_dir():
        raise ValueError(f"the folder of a run's file must exist; '{file.parent}' doesn't")
    if file.is_dir():
        raise ValueError(f"a run's file must be a file; '{file}' is a folder")
    lock_path = f"{file}.lock"
    with writing(file):
        descriptor = _lock(file, lock_path)
        try:
            if file.exists() and file.stat().st_size > 0:
                _check_ours(file)
            else:
                _create(file)
            connection = _connect(file)
        except BaseException as error:
            _release(lock_path, descriptor, os.getpid())
            if _can_not_write(error):
                raise unwritable(file, str(error)) from error
            raise
    connection.hold(lock_path, descriptor)
    return connection


def create_tables(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    """Create the tables that aren't there yet; all or none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     connection = open_store(f"{folder}/run.sqlite")
    ...     create_tables(connection, ["CREATE TABLE IF NOT EXISTS draws (draw INTEGER)"])
    ...     print(connection.execute("SELECT count(*) FROM draws").fetchone())
    ...     connection.close()
    (0,)
    """
    with transaction(connection):
        for statement in statements:
            connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Write all of the block's statements or, when it raises, none of them.

    Raises
    ------
    UnwritableError
        If the disk is full, or the file may not be written; what earlier transactions wrote stays.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, _SQLITE_ERRORS):
            raise _plain(connection, error) from error
        raise


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """Report what a damaged file leads SQLite to raise as one `ValueError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, closing(open_store(f"{folder}/run.sqlite")) as connection:
    ...     with reading(connection):  # doctest: +ELLIPSIS
    ...         connection.execute("SELECT * FROM absent")
    Traceback (most recent call last):
    ValueError: a run's file must be readable and writable; '...run.sqlite' isn't: no such table: absent
    """
    try:
        yield
    except _SQLITE_ERRORS as error:
        raise _plain(connection, error) from error


def _plain(connection: sqlite3.Connection, error: Exception) -> ValueError:
    try:
        file = file_of(connection)
    except _SQLITE_ERRORS:
        file = "of this run"
    return unwritable(file, str(error)) if _can_not_write(error) else _unreadable(file, error)


def _unreadable(file: str | Path, error: Exception) -> ValueError:
    # Python's own errors, which have no code, quote bytes that aren't UTF-8: those may be a key.
    reason = error if hasattr(error, "sqlite_errorcode") else "it holds bytes in place of text"
    return ValueError(f"a run's file must be readable and writable; '{file}' isn't: {reason}")


def file_of(connection: sqlite3.Connection) -> str:
    """Return the path of a connection's file."""
    path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    return path


def _can_not_write(error: BaseException) -> bool:
    # The lower byte of the code is what went wrong, the rest are details of it.
    code = getattr(error, "sqlite_errorcode", 0)  # Python's own errors, as of a text that isn't UTF-8, have none
    return isinstance(error, sqlite3.OperationalError) and code & 0xFF in _UNWRITABLE


def _connect(file: Path) -> StoreConnection:
    connection = sqlite3.connect(file, timeout=30, isolation_level=None, factory=StoreConnection)
    try:
        # A killed process loses nothing in WAL mode even with synchronous=NORMAL; only a power cut can
        # undo the last transactions, and never half of one.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except _SQLITE_ERRORS as error:
        connection.close()
        if _can_not_write(error):
            raise
        raise _unreadable(file, error) from error
    if version != SCHEMA_VERSION:
        connection.close()
        raise ValueError(f"a run's file must have layout version {SCHEMA_VERSION}; '{file}' has {version}")
    return connection


def _create(file: Path) -> None:
    """Make the file under another name first, so that under its own name it is always complete."""
    new = f"{file}.new"
    for leftover in (new, f"{new}-journal", f"{new}-wal", f"{new}-shm"):
        Path(leftover).unlink(missing_ok=True)
    os.close(new_private_file(Path(new)))
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        with transaction(connection):
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    os.replace(new, file)


def _check_ours(file: Path) -> None:
    """Refuse a file that isn't ours without touching it: not even its leftover journal is played back."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            # A run killed while it moved its log into the file leaves a file shorter than its header says;
            # without this the header of such a file couldn't be read. Opening it for real repairs it.
            connection.execute("PRAGMA writable_schema=ON")
            (identity,) = connection.execute("PRAGMA application_id").fetchone()
    except _SQLITE_ERRORS as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_NOTADB:
            raise _unreadable(file, error) from error
        raise ValueError(f"a run's file must be one that gpn_bayes wrote; '{file}' is not an SQLite file") from None
    if identity != APPLICATION_ID:
        raise ValueError(f"a run's file must be one that gpn_bayes wrote; '{file}' is an SQLite file of something else")


def _lock(file: Path, lock_path: str) -> int:
    if lock_path in _held:
        raise ValueError(f"a run's file serves one run at a time; '{file}' is in use by another run in this process")
    while True:
        descriptor = _open_lock(lock_path)
        try:
            _claim(descriptor)
        except (BlockingIOError, PermissionError):
            owner = os.read(descriptor, 200).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise ValueError(
                f"a run's file serves one run at a time; '{file}' is in use by another run (process {owner})"
            ) from None
        # The former holder may have removed the name between our open and our claim: then we hold nothing.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(lock_path)):
                break
        os.close(descriptor)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()} on {platform.node()}".encode())
    _held.add(lock_path)
    return descriptor


def _open_lock(lock_path: str) -> int:
    """Return the descriptor of a lock file; refuse one that is a link, since it is written to."""
    refused = ValueError(f"a lock file must be a file of its own, no link; '{lock_path}' is one: remove it")
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise refused from None
        raise
    seen = os.fstat(descriptor)
    # Without a name left, it was removed since by the process that held it: the caller looks for that.
    if seen.st_nlink > 1 or not stat.S_ISREG(seen.st_mode):
        os.close(descriptor)
        raise refused
    return descriptor


def _release(lock_path: str, descriptor: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked child must not take its parent's lock away
        return
    with suppress(OSError):
        os.unlink(lock_path)
    os.close(descriptor)
    _held.discard(lock_path)
