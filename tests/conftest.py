"""Fixtures that many tests share, the order of their files, and what watches over them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import watching

# Whether only the first part runs: where neither files nor marks are asked for.
FIRST_PART = pytest.StashKey[bool]()
# In a file whose tests are all left to the second part.
ALL_LATER = re.compile(r"^pytestmark = pytest\.mark\.more\(", re.MULTILINE)

# These files begin. In the first part, one that compiles the samplers and, for the other worker meanwhile, those that
# don't need them: else both would compile the same at the same time. In the second part, those that take longest: else
# a worker would be left alone with one at the end.
FIRST = (
    "test_rehearsal",
    "test_gp_likelihood",
    "test_data",
    "test_flags",
    "test_reading",
    "test_kinds",
    "test_graphs",
    "test_wire",
    "test_tls_link",
    "test_garbling",
    "test_plots",
    "test_printed_commands",
    "test_fuzzing",
    "test_cluster",
    "test_doctests",
    "test_large_networks",
    "test_cli_kill",
    "test_space",
    "test_private_processes",
    "test_federated_processes",
    "test_cache_processes",
    "test_plots_of_runs",
    "test_report_browser",
    "test_ordering_search",
    "test_gp",
    "test_wrong_models",
    "test_posterior_files",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what CI asks for."""
    parser.addoption(
        "--share-factor",
        type=float,
        metavar="FACTOR",
        help=f"fail if a file of the first part takes more than so many times {watching.SHARE:.0f} s of processor time",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the part, watch where tests run, and add up where they are reported."""
    watching.hear_ctrl_c()
    if hasattr(config, "workerinput"):
        config.stash[FIRST_PART] = config.workerinput["first_part"]
    else:
        whole = config.args_source is not pytest.Config.ArgsSource.ARGS
        config.stash[FIRST_PART] = whole and config.option.markexpr == "not slow"
    config.pluginmanager.register(watching.Limits())
    config.pluginmanager.register(watching.Stopwatch())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(watching.Shares(config.getoption("share_factor")))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let a worker know the part."""
    node.workerinput["first_part"] = node.config.stash[FIRST_PART]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't load a file that has nothing in the first part, and all that it would import."""
    if not config.stash.get(FIRST_PART, False) or collection_path.suffix != ".py":
        return None
    return bool(ALL_LATER.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what isn't in the part, and put some files first; the tests of a file stay in their order."""
    later = [item for item in items if watching.reason_for_later(item) is not None]
    if later and config.stash.get(FIRST_PART, False):
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if watching.reason_for_later(item) is None]
    rank = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(FIRST)))


@pytest.fixture(autouse=True)
def scores_of_this_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hide the scores that other files of tests define, and that this one doesn't use: messages would list them."""
    registry = sys.modules.get("gpn_bayes.scores.registry")
    known = {} if registry is None else registry._registered

    def is_foreign(kind: type) -> bool:
        if kind.__module__ == request.module.__name__:
            return False
        if kind.__module__.startswith("tests."):
            return not any(own is kind for own in vars(request.module).values())
        # An example in a docstring defines its score as if it were one of the module's own.
        return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind

    others = {name: kind for name, kind in known.items() if is_foreign(kind)}
    for name in others:
        del known[name]
    yield
    known.update(others)


@pytest.fixture
def progress_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick work show its progress too, which logs leave out."""
    monkeypatch.setattr("gpn_bayes._util.progress._LOG_SECONDS", 0.0)
