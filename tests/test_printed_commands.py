"""Every command and code block of the README and the guide runs as printed, from top to bottom, in an empty folder.

They run on fewer columns and with fewer draws; `pytest -m slow` runs them on what is printed.
Commands that install the package need the package index and some minutes: `pytest -m slow` runs those.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.running import ROOT, STRICT_PYTHON

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
RUNNER = Path(__file__).with_name("printed_commands.py")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIME_LIMIT = 900
INSTALL_TIME_LIMIT = 1800


class Block(NamedTuple):
    """A fenced block: its language, its text, and where it stands."""

    language: str
    text: str
    place: str

    @property
    def installs(self) -> bool:
        """Whether it needs the package index and a copy of the repository."""
        return "pip install" in self.text


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], f"{page.name}, line {text.count('\n', 0, found.start()) + 2}")
        for found in FENCE.finditer(text)
    ]


def as_a_user(folder: Path) -> dict[str, str]:
    """Return the environment of somebody who has activated .venv, which stands in the folder."""
    (folder / ".venv").symlink_to(sys.prefix)
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "NO_COLOR": "1"}


def run(given: list[Block], folder: Path, small: bool = True) -> subprocess.CompletedProcess:
    """Run blocks in a process group of their own, so that whatever they leave in the background ends with them."""
    command = [*STRICT_PYTHON, "-P", str(RUNNER), *["small"] * small]
    with (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=as_a_user(folder), stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )  # fmt: skip
        try:
            process.communicate(json.dumps(given), timeout=TIME_LIMIT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, output.read())


# What a page promises to leave behind.
WRITTEN = {
    "README.md": ["report.html", "sachs.nc", "linear/edges.csv"],
    "federated.md": [
        "parties/coordinator/results/statistics.npz",
        "results/report.html",
        "own/a/key.pem",
        "own/a/client.toml",
    ],
    "machines.md": ["scores.sqlite", "results/edges.csv"],
    "one_graph.md": ["estimate/edges.csv"],
    "tables.md": ["results/report.html", "discrete/edges.csv"],
    "private_k2.md": ["mine/edges.csv", "theirs/edges.csv"],
}


@pytest.mark.more("runs the pages of the guide")
@pytest.mark.parametrize("small", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["small", "full"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_as_printed(page, small, tmp_path):
    pytest.importorskip("distributed", reason='the guide needs all extras: pip install "gpn_bayes[test]"')
    ran = run([block for block in blocks(page) if not block.installs], tmp_path, small)
    assert ran.returncode == 0, ran.stdout
    missing = [name for name in WRITTEN.get(page.name, []) if not (tmp_path / name).exists()]
    assert not missing, ran.stdout


@pytest.mark.more("runs the pages of the guide")
def test_a_block_that_fails_is_noticed(tmp_path):
    good, bad = Block("python", "x = 1\n", "good"), Block("python", "assert x == 2\n", "bad")
    ran = run([good, bad], tmp_path)
    assert ran.returncode != 0
    assert "--- bad" in ran.stdout
    assert "AssertionError" in ran.stdout


@pytest.mark.more("runs the pages of the guide")
def test_a_command_that_fails_is_noticed(tmp_path):
    ran = run([Block("bash", "gpn-bayes query nothing/ 'a -> b'\ntrue\n", "bad")], tmp_path)
    assert ran.returncode != 0


@pytest.mark.more("runs the pages of the guide")
def test_a_block_without_a_language_is_noticed(tmp_path):
    assert "a block must be python or bash" in run([Block("", "x\n", "none")], tmp_path).stdout


def test_what_installs_is_known():
    """Lists what the test above doesn't run, so that nothing hides there."""
    lines = [line for page in PAGES for block in blocks(page) if block.installs for line in block.text.splitlines()]
    left = [line.split(" && ")[-1] for line in lines]
    assert left == [
        ".venv/bin/gpn-bayes demo",
        ".venv/bin/python -m pytest",
        ".venv/bin/python vignettes/build.py",
        ".venv/bin/python docs/build.py",
    ]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for target in targets:
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.slow
def test_commands_that_install_run_as_printed(tmp_path):
    """As on a fresh machine: a copy of the repository, a new environment, the commands in the order of the README."""
    kept_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "build", "html", ".*_cache")
    clone = shutil.copytree(ROOT, tmp_path / "clone", ignore=kept_out)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for block in blocks(ROOT / "README.md"):
        # The tests themselves are what runs this one.
        if block.installs and "pytest" not in block.text:
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text], cwd=clone, env=plain, check=True,
                timeout=INSTALL_TIME_LIMIT,
            )  # fmt: skip
    for name in ("gpn-bayes-demo/report.html", "vignettes/html/index.html", "docs/html/index.html"):
        assert (clone / name).exists(), name
