"""What watches over the tests does; and the first part, which everyone runs, has tests of every room."""

import ast
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import watching
from tests.running import ROOT
from tests.test_house import packages

pytest_plugins = "pytester"

# Rooms that users, and tests, reach by a public name without importing anything of theirs.
REACHED_BY = {"pymc_network": "gpn_bayes.network_models", "export": "gpn_bayes.exports"}


class TestFile(NamedTuple):
    """What is known of a file of tests without running it."""

    __test__ = False
    functions: dict[str, ast.FunctionDef]
    imported: dict[str, str]
    later: bool

    def rooms(self) -> set[str]:
        """Return what is imported by tests of the first part, by way of the file's own functions and fixtures too."""
        if self.later:
            return set()
        waiting = [
            name
            for name, body in self.functions.items()
            if name.startswith("test_") and not is_marked(body.decorator_list)
        ]
        seen, used = set(), set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            names = used_in(self.functions[name])
            used |= {places[x] for places in (self.imported, REACHED_BY) for x in names & places.keys()}
            waiting += names & self.functions.keys()
        return used


def used_in(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function uses, those of fixtures and attributes among them."""
    kinds = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr"}
    return {getattr(node, kinds[type(node)]) for node in ast.walk(function) if type(node) in kinds}


def is_marked(nodes: list[ast.expr]) -> bool:
    """Tell whether marks leave a test to later."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("more", "slow")
        for mark in nodes
        if "parametrize" not in ast.dump(mark)  # there they leave one case to later
        for node in ast.walk(mark)
    )


def read(path: Path) -> TestFile:
    """Read a file of tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name: alias.name for alias in node.names}
    marks = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets)
    ]
    return TestFile(functions, imported, is_marked(marks))


def home_of(name: str) -> str:
    """Return the package in which a module, or something in one, lies."""
    while name not in packages_by_name():
        name = name.rpartition(".")[0]
        if not name:
            return ""
    return name


@cache
def packages_by_name() -> frozenset[str]:
    return frozenset(packages())


def test_the_first_part_has_tests_of_every_room():
    used = set().union(*(read(path).rooms() for path in sorted((ROOT / "tests").glob("test_*.py"))))
    # Shelves of kernels, and what only some runs enter, are mostly tested by way of those who call them.
    shelves = {name for name in packages_by_name() if name.startswith(("gpn_bayes.kernels", "gpn_bayes.sampling."))}
    homes = {home_of(name) for name in used}
    assert packages_by_name() - shelves <= homes and len(shelves & homes) >= 3


def test_a_room_without_tests_is_noticed(tmp_path):
    """Negative control: only imported, used by what is left to later, used by way of a fixture."""
    path = tmp_path / "test_three.py"
    path.write_text(
        "from pytest import fixture, mark\nfrom one import a\nfrom two import b\nfrom three import c\n"
        "@fixture\ndef given():\n    return c\n"
        "@mark.more('starts processes')\ndef test_b():\n    b()\n"
        "def test_c(given):\n    pass\n"
    )
    assert read(path).rooms() == {"pytest.fixture", "three.c"}
    path.write_text(path.read_text() + "pytestmark = mark.more('starts processes')\n")
    assert read(path).rooms() == set()


# Limits


CONFTEST = """
from tests import watching
from tests.conftest import pytest_addoption, pytest_collection_modifyitems

def pytest_configure(config):
    config.addinivalue_line("markers", "more(why): later")
    config.addinivalue_line("markers", "slow: by hand")
    config.pluginmanager.register(watching.Limits(LIMIT, LIMIT))
    config.pluginmanager.register(watching.Stopwatch())
    config.pluginmanager.register(watching.Shares(config.getoption("share_factor"), share=0.2))
"""


# Plugins that tests of tests needn't load.
UNUSED = ("cacheprovider", "xdist", "hypothesispytest", "zarr", "anyio", "pytest_cov")
WITHOUT_UNUSED = [part for name in UNUSED for part in ("-p", f"no:{name}")]


@pytest.fixture
def watched(pytester):
    """Return a function that runs a file of tests under watch, with a small share, in this process."""

    def run(text: str, *options: str, limit: int = 60) -> pytest.RunResult:
        pytester.makeconftest(CONFTEST.replace("LIMIT", str(limit)))
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess(*WITHOUT_UNUSED, *options)

    return run


@pytest.mark.more("waits until limits are reached")
@pytest.mark.parametrize(
    "waiting",
    [
        "time.sleep(60)",
        "threading.Event().wait()",
        "subprocess.run(['sleep', '60'])",
        "while_true()",
        "try:\n        time.sleep(60)\n    finally:\n        time.sleep(60)",
    ],
)
def test_no_test_waits_without_a_limit(waiting, watched):
    begin = "import subprocess, threading, time\ndef while_true():\n    while True:\n        pass\n"
    ran = watched(f"{begin}def test_one():\n    {waiting}\ndef test_two():\n    pass\n", limit=4)
    ran.assert_outcomes(failed=1, passed=1)
    ran.stdout.fnmatch_lines(["*waited without end? *::test_one has taken 4 seconds*"])


@pytest.mark.more("waits until limits are reached")
def test_fixtures_have_the_limit_too_and_tests_run_by_hand_have_none(watched):
    ran = watched(
        "import pytest, time\n@pytest.fixture\ndef given():\n    time.sleep(60)\ndef test_one(given):\n    pass\n"
        "@pytest.mark.slow\ndef test_two():\n    time.sleep(1.5)\n",
        limit=4,
    )
    ran.assert_outcomes(errors=1, passed=1)


@pytest.mark.more("waits until limits are reached")
def test_code_that_never_returns_is_ended_with_its_process(pytester):
    pytester.makeconftest(CONFTEST.replace("Limits(LIMIT, LIMIT)", "Limits(1, 1, 1)"))
    pytester.makepyfile("import itertools\ndef test_one():\n    sum(itertools.repeat(0))\n")
    # pytester runs it in its own folder, from where the tests aren't found.
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", *WITHOUT_UNUSED]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, timeout=300)
    assert ended.returncode == 1 and b"passed" not in ended.stdout and b"failed" not in ended.stdout


# Ctrl-C


@pytest.fixture
def _ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


HANDLER = [sys.executable, "-S", "-c", "import signal; print(signal.getsignal(signal.SIGINT))"]


def handler_of_a_child() -> str:
    return subprocess.run(HANDLER, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.usefixtures("_ignored")
def test_ctrl_c_is_heard_where_a_script_ignores_it():
    signal.raise_signal(signal.SIGINT)
    assert "default_int_handler" not in handler_of_a_child()
    watching.hear_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert "default_int_handler" in handler_of_a_child()


# Shares

SPINS = """
import subprocess, sys, time
def spin():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
"""


def test_a_file_above_its_share_is_reported(watched):
    ran = watched(f"{SPINS}def test_one():\n    spin()\n")
    assert ran.ret == 0
    ran.stdout.fnmatch_lines(["*files that took more than*", "* s  test_a_file_above_its_share_is_reported.py"])


@pytest.mark.parametrize(("factor", "ends"), [(1.0, 1), (100.0, 0)])
def test_it_fails_only_where_asked(factor, ends, watched):
    assert watched(f"{SPINS}def test_one():\n    spin()\n", "--share-factor", str(factor)).ret == ends


@pytest.mark.parametrize("mark", ["more('for a reason')", "slow"])
def test_what_is_left_to_later_has_no_share(mark, watched):
    ran = watched(f"{SPINS}import pytest\n@pytest.mark.{mark}\ndef test_one():\n    spin()\n", "--share-factor", "1")
    assert ran.ret == 0
    ran.stdout.no_fnmatch_line("*files that took more than*")


def test_processes_count_and_compilation_does_not(watched):
    started = (
        f"import subprocess, sys\ndef test_one():\n    subprocess.run([sys.executable, '-c', {SPINS + 'spin()'!r}])\n"
    )
    assert watched(started, "--share-factor", "1").ret == 1
    compiles = "from numba import njit\ndef test_one():\n    assert njit(lambda a: a.sum(axis=0) + a.mean())"
    ran = watched(f"import numpy as np\n{compiles}(np.ones((2, 2))) is not None\n", "--share-factor", "1")
    assert ran.ret == 0


def test_a_mark_says_why(watched):
    ran = watched("import pytest\n@pytest.mark.more\ndef test_one():\n    pass\n")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*must say why*test_one*"])
