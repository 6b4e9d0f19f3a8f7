"""``gpn-bayes estimate`` with the learners of structural equations: weights, lagged edges, the warning of units."""

import re
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

import gpn_bayes as gpn
from tests.command_line import call, read_estimate

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "numbers.csv"
    dag = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "d")])
    gpn.simulate.linear(dag, 300, random_seed=2).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("method", "learner", "options"),
    [
        ("notears", gpn.estimators.NOTEARS(0.05, check_scale=False), ("lambda1=0.05", "check_scale=False")),
        ("notears-mlp", gpn.estimators.NOTEARSMLP(0.02, starts=1), ("lambda1=0.02", "starts=1")),
    ],
)
def test_weights_of_equations_are_written(method, learner, options, numbers, tmp_path, capsys):
    settings = [part for option in options for part in ("--set", option)]
    code, shown, messages = call(
        capsys, "estimate", numbers, "--method", method, "--out", tmp_path / "o", "-q", "--score", "bge", *settings
    )
    assert code == 0 and messages == ""
    edges, identity = read_estimate(tmp_path / "o")
    learner.set_params(random_state=1).fit(numbers)
    assert set(zip(edges["parent"], edges["child"], strict=True)) == set(learner.graph_.edges)
    names = list("abcd")
    for row in edges.itertuples():
        expected = learner.weights_[names.index(row.parent), names.index(row.child)]
        assert row.weight == pytest.approx(expected, abs=1e-6)
    assert edges["weight"].abs().is_monotonic_decreasing
    assert identity["log_score"] == pytest.approx(learner.log_score("bge"))
    assert re.search(r"^a -> b +-?\d\.\d{3} *$", shown, re.M) and "evidence" not in shown


def test_an_estimate_that_hinges_on_scale_warns_on_screen(numbers, tmp_path, capsys):
    table = pd.read_csv(numbers) * [1, 1000, 1, 0.001]
    table.to_csv(tmp_path / "scaled.csv", index=False)
    code, _, messages = call(
        capsys, "estimate", tmp_path / "scaled.csv", "--method", "notears", "--out", tmp_path / "o", "-q"
    )
    assert code == 0
    assert messages.startswith("warning: the estimate depends on the units of the variables")


def test_lagged_edges_are_written_with_their_times(tmp_path, capsys):
    dag = nx.DiGraph([("rain", "flow")])
    series = gpn.simulate.svar(dag, [[[1, 0], [0, 1]], [[0, 1], [0, 0]]], [200, 300], random_seed=2)
    table = pd.concat([one.assign(river=name) for one, name in zip(series, ("Elbe", "Oder"), strict=True)])
    table.to_csv(tmp_path / "rivers.csv", index=False)
    code, shown, messages = call(
        capsys, "estimate", tmp_path / "rivers.csv", "--method", "dynotears", "--out", tmp_path / "o", "-q",
        "--set", "lags=2", "--set", "series=river",
    )  # fmt: skip
    assert code == 0 and messages == ""
    edges, identity = read_estimate(tmp_path / "o")
    pairs = list(zip(edges["parent"], edges["child"], strict=True))
    # First what acts at once, last what acts latest.
    assert pairs[0] == ("rain[t]", "flow[t]") and pairs[3:] == [("rain[t-2]", "flow[t]")]
    assert set(pairs[1:3]) == {("rain[t-1]", "rain[t]"), ("flow[t-1]", "flow[t]")}
    assert edges["weight"].abs().tolist()[1:3] == sorted(edges["weight"].abs().tolist()[1:3], reverse=True)
    assert identity["variables"] == ["rain", "flow"]
    assert "2 variables, 500 rows  DYNOTEARS" in shown and "rain[t-2] -> flow[t]" in shown
