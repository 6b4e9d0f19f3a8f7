"""The file of a run: what is opened, what is refused untouched, and whole transactions."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from gpn_bayes._util import sqlite
from gpn_bayes._util.files import UnwritableError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


def test_a_new_file_is_in_wal_mode_and_marked_as_ours(path):
    with closing(sqlite.open_store(path)) as connection:
        for pragma, expected in [
            ("journal_mode", "wal"),
            ("synchronous", 1),
            ("application_id", sqlite.APPLICATION_ID),
            ("user_version", sqlite.SCHEMA_VERSION),
        ]:
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (expected,)
        assert os.path.exists(f"{path}.lock")
    assert os.listdir(path.parent) == ["run.sqlite"], "closing must leave the one file"


def test_a_transaction_is_written_whole_or_not_at_all(path):
    with closing(sqlite.open_store(path)) as connection:
        with sqlite.transaction(connection):
            connection.execute("INSERT INTO meta VALUES ('a', '1')")
        for error in (RuntimeError, KeyboardInterrupt):
            with pytest.raises(error), sqlite.transaction(connection):
                connection.execute("INSERT INTO meta VALUES ('b', '2')")
                raise error
        assert not connection.in_transaction
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            assert reader.execute("SELECT * FROM meta").fetchall() == [("a", "1")]


def test_a_leftover_of_a_killed_creation_is_cleared(path):
    path.with_name("run.sqlite.new").write_bytes(b"half a file")
    path.with_name("run.sqlite.new-journal").write_bytes(b"its journal")
    sqlite.open_store(path).close()
    assert os.listdir(path.parent) == ["run.sqlite"]


def test_a_file_that_is_not_sqlite_is_refused_untouched(path):
    path.write_text("erk,akt\n1.0,2.0\n" * 50)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must be one that gpn_bayes wrote; .* is not an SQLite file"):
        sqlite.open_store(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["run.sqlite"]


def test_another_programs_sqlite_file_is_refused_untouched(path):
    """Even its leftover log stays: a plain SQLite connection would move it into the file."""
    other = path.with_name("other.sqlite")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE scores (a)")
        connection.commit()
        for end in ("", "-wal"):
            shutil.copy(f"{other}{end}", f"{path}{end}")
    files = [path, path.with_name("run.sqlite-wal")]
    before = [file.read_bytes() for file in files]
    assert len(before[1]) > 0
    with pytest.raises(ValueError, match="is an SQLite file of something else"):
        sqlite.open_store(path)
    assert [file.read_bytes() for file in files] == before


def test_an_empty_file_is_taken_but_a_folder_or_a_missing_folder_is_not(path):
    path.touch()
    sqlite.open_store(path).close()
    assert path.stat().st_size > 0
    with pytest.raises(ValueError, match="must be a file; .* is a folder"):
        sqlite.open_store(path.parent)
    with pytest.raises(ValueError, match="the folder of a run's file must exist; '.*nowhere' doesn't"):
        sqlite.open_store(path.parent / "nowhere" / "run.sqlite")
    assert os.listdir(path.parent) == ["run.sqlite"]


def test_another_layout_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id={sqlite.APPLICATION_ID}")
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(ValueError, match="must have layout version 1; .* has 99"):
        sqlite.open_store(path)


def test_a_store_that_was_not_closed_frees_its_lock_when_it_is_collected(path):
    connection = sqlite.open_store(path)
    sqlite3.Connection.close(connection)  # as the garbage collector would: without our close
    assert os.path.exists(f"{path}.lock")
    with pytest.raises(ValueError, match="in use"):
        sqlite.open_store(path)
    del connection
    sqlite.open_store(path).close()
    assert not os.path.exists(f"{path}.lock")


# Files that can't be written


@pytest.mark.parametrize("name", ["run.sqlite.lock", "run.sqlite.new"])
def test_a_place_that_cannot_be_written_is_one_line(name, path):
    path.with_name(name).mkdir()
    with pytest.raises(ValueError, match=r"^a file must be writable; '.*run.sqlite' isn't: [^\n]+$"):
        sqlite.open_store(path)


def test_a_path_is_needed():
    with pytest.raises(ValueError, match="a run's file must be given by its path; received 4"):
        sqlite.open_store(4)


@pytest.mark.parametrize(
    ("pragma", "reason"),
    [("max_page_count=8", "database or disk is full"), ("query_only=ON", "attempt to write a readonly database")],
)
def test_a_transaction_that_finds_no_room_is_one_line_and_leaves_what_was_there(pragma, reason, path):
    with closing(sqlite.open_store(path)) as connection:
        with sqlite.transaction(connection):
            connection.execute("INSERT INTO meta VALUES ('a', '1')")
        connection.execute(f"PRAGMA {pragma}")
        with pytest.raises(UnwritableError, match=rf"^a file must be writable; '.*run.sqlite' isn't: {reason}$"):
            with sqlite.transaction(connection):
                connection.execute("INSERT INTO meta VALUES ('b', zeroblob(100000))")
        assert connection.execute("SELECT key FROM meta").fetchall() == [("a",)]


@pytest.mark.parametrize("block", [sqlite.transaction, sqlite.reading])
def test_a_file_without_its_tables_is_refused_in_one_line(block, path):
    with closing(sqlite.open_store(path)) as connection:
        with pytest.raises(ValueError, match="^a run's file must be readable and writable; .*: no such table: [a-z]+$"):
            with block(connection):
                connection.execute("SELECT * FROM elsewhere")
        assert not connection.in_transaction


def test_a_schema_that_is_not_text_is_refused_in_one_line(path):
    """Python fails to decode SQLite's own message about it."""
    sqlite.open_store(path).close()
    content = path.read_bytes()
    assert content.count(b"CREATE TABLE meta") == 1
    path.write_bytes(content.replace(b"CREATE TABLE meta", b"CREATE T\xff\xffLE meta"))
    with pytest.raises(
        ValueError, match="^a run's file must be readable and writable; '.*run.sqlite' isn't: "
    ) as error:
        with closing(sqlite.open_store(path)) as connection:
            sqlite.create_tables(connection, ["CREATE TABLE IF NOT EXISTS draws (draw INTEGER)"])
    assert type(error.value) is ValueError
