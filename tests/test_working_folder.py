"""Files that lie in the folder in which a user works are never carried out, whatever they are called."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes._util.processes import interpreter, package_environment
from gpn_bayes.private import PrivateK2
from gpn_bayes.sampling import rehearsal

pytestmark = pytest.mark.more("starts processes")

PACKAGE = Path(gpn.__file__).parent
ROOT = PACKAGE.parent
TRAPS = ("numpy", "pandas", "numba", "scipy", "h5py", "random", "json", "struct", "multiprocessing", "sitecustomize")


@pytest.fixture
def traps(tmp_path, monkeypatch):
    """Work in a folder of files called as modules are; return the file that any of them would write."""
    written = tmp_path / "written"
    folder = tmp_path / "work"
    folder.mkdir()
    for name in TRAPS:
        (folder / f"{name}.py").write_text(
            f"open({str(written)!r}, 'a').write({name!r})\nraise ImportError({name!r})\n"
        )
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return written


def test_the_traps_work(traps):
    """Negative control: an interpreter that looks for modules where the user works."""
    done = subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True, check=False)
    assert done.returncode and traps.read_text() != ""


@pytest.mark.parametrize("path", [None, "", f"{ROOT}:"])
def test_processes_of_our_own(traps, path, monkeypatch):
    if path is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", path)  # an empty entry stands for the folder, too
    subprocess.run(interpreter("-c", "import gpn_bayes, random, json"), env=package_environment(), check=True)
    assert not traps.exists()


def test_the_process_that_compiles(traps):
    with rehearsal._other_process("exact", ()) as wait:
        assert wait() == 0
    assert not traps.exists()


def test_the_second_party_of_private_k2(traps):
    rain = np.random.default_rng(1).integers(0, 2, 40)
    tables = pd.DataFrame({"rain": rain}), pd.DataFrame({"wet": 1 - rain})
    PrivateK2(order=["rain", "wet"], key_bits=2048).fit_pair(*tables)
    assert not traps.exists()


def test_the_process_that_opens_a_posterior(traps, tmp_path):
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 2)), columns=["a", "b"])
    post = gpn.sample(table, score="bge", draws=10, chains=1, random_seed=1, progressbar=False)
    post.save(tmp_path / "post.nc")
    gpn.load(tmp_path / "post.nc")
    assert not traps.exists()


def test_every_interpreter_is_started_in_safe_path():
    started = [
        (file, line)
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"\[\s*sys\.executable", line)
    ]
    assert len(started) == 2  # the one of this package's processes, and a file that is run as a script
    for file, line in started:
        assert '[sys.executable, "-P",' in line, file


def test_numbas_settings_are_not_those_of_the_folder(traps):
    """A folder of compiled code that such a file names would be unpickled."""
    Path(".numba_config.yaml").write_text(f"cache_dir: {Path.cwd()}\n")
    script = "from gpn_bayes.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    shown = "from numba.core import config; print(repr(config.CACHE_DIR))"
    done = [
        subprocess.run(
            interpreter("-c", text), env=clean(package_environment()), capture_output=True, text=True, check=True
        ).stdout
        for text in (script + shown, shown)
    ]
    assert done[0].splitlines()[-1] == "''"
    assert str(Path.cwd()) in done[1]  # negative control


def clean(environment):
    return {name: value for name, value in environment.items() if not name.startswith("NUMBA_")}


@pytest.mark.slow
def test_a_first_run_from_the_command_line(traps, tmp_path):
    """On a machine that has never compiled the samplers."""
    rows = np.random.default_rng(1).normal(size=(50, 3))
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_csv(tmp_path / "rows.csv", index=False)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "PYTHONPATH": str(ROOT)}
    command = ["run", tmp_path / "rows.csv", "--score", "bge", "--out", tmp_path / "out", "--cores", "2"]
    script = "from gpn_bayes.cli import main; main()"
    done = subprocess.run(
        interpreter("-c", script, *map(str, command)), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "posterior.nc").exists() and not traps.exists()
