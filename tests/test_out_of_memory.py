"""A command that runs out of memory half-way ends in one line, and what it had finished is kept."""

import errno

import numpy as np
import pandas as pd
import pytest

from tests.command_line import call

LINE = "error: this needs more memory than the process may have (see ulimit -v)\n"
QUICK = ("--score", "bge", "--draws", 20, "--tune", 10, "--sampler", "partition", "--quiet")


def too_large(*_, **__):
    """Ask for more than any machine has, as numpy does it."""
    return np.empty(1 << 55)


def without_a_word(*_, **__):
    raise MemoryError


def of_the_system(*_, **__):
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def said_otherwise(*_, **__):
    """Fail as a library does that takes what it couldn't do for a fault of its input."""
    try:
        too_large()
    except MemoryError as error:
        raise ValueError("the input must be fit") from error


FAILURES = [too_large, without_a_word, of_the_system, said_otherwise]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    values = np.random.default_rng(1).normal(size=(40, 3))
    pd.DataFrame(values, columns=["a", "b", "c"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize("cores", [1, 2])
def test_a_run_without_memory_is_one_line(fail, cores, rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gpn_bayes.samplers.chains.PartitionChain._fill", fail)
    out = tmp_path / "out"
    assert call(capsys, "run", rows, "--out", out, "--cores", cores, *QUICK) == (1, "", LINE)
    monkeypatch.undo()
    code, shown, errors = call(capsys, "run", rows, "--out", out, "--cores", cores, *QUICK)
    assert code == 0 and errors.endswith("out holds this run, unfinished; going on\n") and "a -> b" in shown


@pytest.mark.parametrize(
    "place",
    [
        "gpn_bayes.scores.bge.BGeScorer.score_sets",
        "gpn_bayes.cli.folder.edges_csv",
        "gpn_bayes.report.writing.content_of",
    ],
)
def test_wherever_in_a_run_it_is_one_line(place, rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(place, too_large)
    code, _, errors = call(capsys, "run", rows, "--out", tmp_path / "out", *QUICK)
    assert (code, errors) == (1, LINE)


def test_bars_leave_nothing_behind(rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gpn_bayes.samplers.chains.PartitionChain._fill", too_large)
    code, shown, errors = call(capsys, "run", rows, "--out", tmp_path / "out", *QUICK[:-1])
    assert (code, shown) == (1, "") and errors.splitlines()[-1] == LINE.strip() and "Traceback" not in errors


def test_an_estimate_without_memory_is_one_line(rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gpn_bayes.estimators.hill_climbing.HillClimbing._search", too_large)
    command = ("estimate", rows, "--method", "hc", "--out", tmp_path / "out", "--quiet")
    assert call(capsys, *command) == (1, "", LINE)
    assert not (tmp_path / "out").exists()


def test_other_errors_are_not_taken_for_it(rows, tmp_path, capsys, monkeypatch):
    """Negative control."""
    monkeypatch.setattr("gpn_bayes.samplers.chains.PartitionChain._fill", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call(capsys, "run", rows, "--out", tmp_path / "out", *QUICK)
