"""Files that are written: nobody else can read them, and no link leads them elsewhere."""

import os
import stat
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes._util import sqlite
from gpn_bayes._util.files import write_whole
from gpn_bayes._util.printable import no_formulas
from tests.command_line import call

pytestmark = pytest.mark.more("starts processes")


@pytest.fixture(autouse=True)
def open_mask():
    """Work as most users do, whose files everybody may read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def victim(tmp_path):
    """Return a file elsewhere that somebody wants to have overwritten."""
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "precious"
    path.write_text("precious")
    return path


def test_a_file_is_its_owners_unless_it_was_others_before(tmp_path):
    path = tmp_path / "edges.csv"
    write_whole(path, "a")
    assert mode(path) == 0o600
    path.chmod(0o640)
    write_whole(path, "b")
    assert mode(path) == 0o640 and path.read_text() == "b"


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_what_is_being_written_leads_nowhere(link, tmp_path, victim):
    link(victim, tmp_path / ".run.json.part")
    write_whole(tmp_path / "run.json", "{}")
    assert victim.read_text() == "precious"
    assert (tmp_path / "run.json").read_text() == "{}" and not (tmp_path / "run.json").is_symlink()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_a_lock_is_refused(link, tmp_path, victim):
    link(victim, tmp_path / "run.sqlite.lock")
    with pytest.raises(
        ValueError, match=r"^a lock file must be a file of its own, no link; '.*run.sqlite.lock' is one"
    ):
        sqlite.open_store(tmp_path / "run.sqlite")
    assert victim.read_text() == "precious"
    (tmp_path / "run.sqlite.lock").unlink()
    sqlite.open_store(tmp_path / "run.sqlite").close()


def test_a_lock_that_leads_to_no_file_makes_none(tmp_path):
    os.symlink(tmp_path / "new", tmp_path / "run.sqlite.lock")
    with pytest.raises(ValueError, match="^a lock file must be a file of its own"):
        sqlite.open_store(tmp_path / "run.sqlite")
    assert not (tmp_path / "new").exists()


def test_a_link_in_place_of_a_new_store_leads_nowhere(tmp_path, victim):
    os.symlink(victim, tmp_path / "run.sqlite.new")
    sqlite.open_store(tmp_path / "run.sqlite").close()
    assert victim.read_text() == "precious"


def test_all_files_of_a_run_are_their_owners(tmp_path, capsys):
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 3)), columns=["a", "b", "c"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    command = ["run", tmp_path / "rows.csv", "--score", "bge", "--draws", 20, "--chains", 1, "--out", out, "--quiet"]
    assert call(capsys, *command)[0] == 0
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {"posterior.nc", "edges.csv", "report.html"} <= {path.name for path in files}
    assert {path.name: oct(mode(path)) for path in files if mode(path) != 0o600} == {}
    with closing(sqlite.open_store(tmp_path / "scores.sqlite")):
        stores = list(tmp_path.glob("scores.sqlite*"))
        assert stores and all(mode(path) == 0o600 for path in stores)
    gpn.SufficientStatistics.of(gpn.Dataset.read(rows)).save(tmp_path / "statistics.npz")
    assert mode(tmp_path / "statistics.npz") == 0o600


def test_names_that_begin_like_formulas_in_any_width():
    signs = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
    assert no_formulas(sign + "1+1" for sign in signs) == [f"'{sign}1+1" for sign in signs]
    others = ["erk", "\uff21bc", "\u00e9t\u00e9", "1=1", ""]  # negative control: also a full-width letter
    assert no_formulas(others) == others
