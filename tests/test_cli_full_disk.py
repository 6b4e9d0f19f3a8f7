"""``gpn-bayes run`` on a disk without room: one line, and the same command goes on to the same result."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpn_bayes._util import sqlite
from tests.command_line import call

pytestmark = pytest.mark.more("starts processes and kills them")

ROWS = "a,b,c\n" + "".join(f"{i % 7},{(i % 7) * 2 + i % 3},{i % 5}\n" for i in range(60))
OPTIONS = ("--sampler", "partition", "--draws", "1000", "--tune", "100", "--cores", "1", "--quiet")
KEPT = "; what is finished is kept, and the same command goes on from there\n"


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def undisturbed(data, tmp_path, capsys) -> bytes:
    assert call(capsys, "run", data, "--out", tmp_path / "whole", *OPTIONS)[0] == 0
    return (tmp_path / "whole" / "edges.csv").read_bytes()


def test_a_run_that_finds_the_disk_full_goes_on_when_there_is_room(data, undisturbed, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        connect = sqlite._connect

        def small(file):
            connection = connect(file)
            connection.execute("PRAGMA max_page_count=40")  # SQLite says of it what it says of a full disk
            return connection

        patch.setattr(sqlite, "_connect", small)
        code, shown, messages = call(capsys, "run", data, "--out", out, *OPTIONS)
    assert code == 2 and shown == ""
    assert messages == f"error: a file must be writable; '{out / 'run.sqlite'}' isn't: database or disk is full{KEPT}"
    with closing(sqlite3.connect(out / "run.sqlite")) as store:
        assert store.execute("SELECT count(*) FROM blocks").fetchone()[0] > 0, "nothing was done before"
    code, _, messages = call(capsys, "run", data, "--out", out, *OPTIONS)
    assert code == 0 and "unfinished; going on" in messages
    assert (out / "edges.csv").read_bytes() == undisturbed


@pytest.mark.parametrize("name", ["posterior.nc", "edges.csv", "report.html"])
def test_results_that_find_no_room_are_written_by_the_same_command(
    name, data, undisturbed, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    replace = Path.replace

    def full(part, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, "what libraries say of a full disk, in many words")
        return replace(part, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)  # files get their names when they are complete
        code, shown, messages = call(capsys, "run", data, "--out", out, *OPTIONS)
    assert code == 2 and shown == ""
    assert messages == f"error: a file must be writable; '{out / name}' isn't: No space left on device{KEPT}"
    assert not (out / name).exists()
    assert call(capsys, "run", data, "--out", out, *OPTIONS)[0] == 0
    assert (out / "edges.csv").read_bytes() == undisturbed and (out / "report.html").exists()
