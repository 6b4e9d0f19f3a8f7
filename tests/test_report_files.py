"""Reports of every kind: no check of the data loses one, and their files are named like pages."""

import re

import networkx as nx
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.report import content
from tests.command_line import call
from tests.draws import quick

DATA = gpn.simulate.linear(nx.DiGraph([("a", "b"), ("c", "b")]), 60, random_seed=1)
FAILED = "the check of the table failed: ZeroDivisionError: broken. The answers don't depend on it"


@pytest.fixture(scope="module")
def learner():
    return gpn.estimators.HillClimbing(score="bge", random_state=1).fit(DATA)


@pytest.fixture(scope="module")
def bootstrap():
    return gpn.bootstrap(gpn.estimators.PC(), DATA, n=3, random_seed=1, progressbar=False)


@pytest.fixture
def broken(monkeypatch):
    """Let the checks of a table fail before the first."""

    def fail(*_):
        raise ZeroDivisionError("broken")

    monkeypatch.setattr("gpn_bayes.data.flags._identifiers", fail)


@pytest.mark.parametrize("kind", ["learner", "bootstrap"])
def test_a_check_of_the_data_that_fails_is_named_in_the_report(kind, request, tmp_path, monkeypatch):
    reported = request.getfixturevalue(kind)
    fine = reported.report(tmp_path / "fine.html").read_text(encoding="utf-8")
    assert "failed" not in fine  # negative control
    request.getfixturevalue("broken")
    text = reported.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert FAILED in text.replace("&#x27;", "'")


def test_a_check_of_the_data_that_fails_does_not_end_an_estimate(tmp_path, capsys, broken):
    DATA.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    command = ("estimate", tmp_path / "rows.csv", "--method", "pc", "--out", out, "--quiet")
    code, _, errors = call(capsys, *command)
    assert code == 0, errors
    assert FAILED in (out / "report.html").read_text(encoding="utf-8").replace("&#x27;", "'")
    assert len(pd.read_csv(out / "edges.csv")) == 2


@pytest.mark.parametrize("kind", ["learner", "bootstrap"])
def test_names_of_other_formats_are_refused(kind, request, tmp_path):
    reported = request.getfixturevalue(kind)
    with pytest.raises(ValueError, match=r"^the file's name must end with \.html or \.htm; received 'report\.pdf'$"):
        reported.report(tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())
    assert reported.report(tmp_path / "report.htm").exists()


def test_names_of_other_formats_are_refused_before_posteriors_are_read(tmp_path, capsys):
    folders = [tmp_path / "one", tmp_path / "two"]
    code, shown, errors = call(capsys, "compare", *folders, "--report", tmp_path / "report.pdf")
    assert (code, shown) == (2, "") and not list(tmp_path.iterdir())
    assert errors == "error: the file's name must end with .html or .htm; received 'report.pdf'\n"


def test_the_gap_between_chains_stands_before_r_hat(tmp_path):
    post = quick(DATA, score="bge", sampler="partition")
    names = [figure["name"] for figure in content.content_of(post)["trust"]["figures"]]
    assert names.index("Largest gap between chains") < names.index("R-hat of the log score")
    text = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    assert 0 < body.index("Largest gap between chains") < body.index("R-hat of the log score")
