"""Fixtures that many tests share, and the order of their files."""

import sys
from collections.abc import Iterator

import pytest

# Files that take longest begin first, so that no worker is left alone with one at the end.
LONGEST = (
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
    "test_plots",
    "test_report_network",
    "test_report_browser",
    "test_ordering_search",
    "test_gp",
    "test_cli",
    "test_posterior_files",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the tests of a file stay in their order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


@pytest.fixture(autouse=True)
def scores_of_this_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hide the scores that other files of tests define, which messages would list."""
    registry = sys.modules.get("gpn_bayes.scores.registry")
    known = {} if registry is None else registry._registered
    others = {
        name: kind
        for name, kind in known.items()
        if kind.__module__.startswith("tests.test_") and kind.__module__ != request.module.__name__
    }
    for name in others:
        del known[name]
    yield
    known.update(others)


@pytest.fixture
def progress_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick work show its progress too, which logs leave out."""
    monkeypatch.setattr("gpn_bayes._util.progress._LOG_SECONDS", 0.0)
