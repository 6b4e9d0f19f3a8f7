"""Fixtures that many tests share, the order of their files, and what watches over them."""

import pytest

from tests import watching

# These files begin. In the first part, two that compile much, and nothing that the other needs: else two workers would
# compile the same at the same time. In the second part, those that take longest: else a worker would be left alone with
# one at the end.
FIRST = (
    "test_rehearsal",
    "test_gp_likelihood",
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
    """Watch where tests run, and add up where they are reported."""
    watching.hear_ctrl_c()
    config.pluginmanager.register(watching.Limits())
    config.pluginmanager.register(watching.Stopwatch())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(watching.Shares(config.getoption("share_factor")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put some files first; the tests of a file stay in their order."""
    for item in items:
        watching.reason_for_later(item)  # an error where a reason is missing
    rank = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(FIRST)))


@pytest.fixture
def progress_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick work show its progress too, which logs leave out."""
    monkeypatch.setattr("gpn_bayes._util.progress._LOG_SECONDS", 0.0)
