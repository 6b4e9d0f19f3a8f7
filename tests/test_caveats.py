"""Two verdicts wherever answers are shown: that sampling converged, and what is wrong with the data all the same."""

import json
import re
from dataclasses import replace
from html import unescape

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import simulate
from gpn_bayes.cli import main
from gpn_bayes.posterior.diagnostics import NETWORK_ASSUMPTIONS
from gpn_bayes.scores import GP
from tests.draws import quick
from tests.reports import made_posterior, read_numbers

pytestmark = pytest.mark.more("statistics that take long")

CHAIN = nx.DiGraph([("a", "b"), ("b", "c")])


def clean() -> pd.DataFrame:
    return simulate.linear(CHAIN, 200, random_seed=1)


def with_missing_codes() -> pd.DataFrame:
    table = clean()
    table.loc[[3, 50, 51], "c"] = -999
    return table


def with_row_numbers() -> pd.DataFrame:
    return clean().assign(tube=np.arange(1001, 1201))


def with_ethnicity() -> pd.DataFrame:
    return clean().assign(ethnicity=np.random.default_rng(1).choice(4, 200, p=[0.6, 0.2, 0.1, 0.1]))


EXAMPLES = {
    "missing codes": (with_missing_codes, "sentinel", "c: -999 in 3 rows (the first is row 4); its other values are"),
    "row numbers": (with_row_numbers, "identifier", "tube: a different whole number in every row (1001 to 1200, in"),
    "ethnicity": (with_ethnicity, "codes", "ethnicity: only the whole numbers 0, 1, 2 and 3, read as amounts. If"),
}


def run(table: pd.DataFrame, folder, capsys, *options: str) -> tuple[str, str]:
    """Run the command line on a table, and return what it showed, and its messages."""
    table.to_csv(folder / "table.csv", index=False)
    with pytest.raises(SystemExit) as end:
        main(["run", str(folder / "table.csv"), "--out", str(folder / "out"), "--draws", "50", "--quiet", *options])
    assert not end.value.code
    shown, messages = capsys.readouterr()
    return " ".join(shown.split()), messages


def page_text(path) -> str:
    """Return the words of a page."""
    html = path.read_text(encoding="utf-8")
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_fault_of_the_data_is_told_beside_sampling_that_is_fine(example, tmp_path, capsys):
    make, kind, sentences = EXAMPLES[example]
    post = quick(make(), score="bge")
    found = post.diagnostics()
    assert found.ok and found.heading == "Computed exactly, without sampling error."
    assert found.data_verdict == "flagged" and found.data_flags[0].kind == kind
    assert f"\n- {sentences}" in str(found)
    shown, messages = run(make(), tmp_path, capsys)
    assert "Computed exactly, without sampling error." in shown
    column = sentences.split(":")[0]
    assert f"Checks of the data raised 1 flag. - {column}: {kind} (see the note above)" in shown
    assert messages.startswith(f"note: {sentences}")
    page = page_text(tmp_path / "out" / "report.html")
    assert page.count("Computed exactly, without sampling error.") == 2
    assert page.count("Checks of the data raised 1 flag.") == 2 and sentences in page
    assert "relied on" not in page
    assert read_numbers(tmp_path / "out" / "report.html")["trust"]["data_verdict"] == "caution"


def test_directions_that_linear_data_cannot_tell(tmp_path, capsys):
    """Nothing is wrong with data or sampling, and yet a direction may be."""
    post = quick(clean(), score="bge")
    found = post.diagnostics()
    assert found.ok and found.data_verdict == "clear" and found.data_flags == ()
    sentences = (
        "Directions within a Markov equivalence class are not identifiable from the data: networks that join the"
    )
    here = "In the best network drawn, this leaves open the direction of a - b, b - c."
    assert f"\n- {sentences}" in str(found) and f"\n- {here}" in str(found)
    shown, messages = run(clean(), tmp_path, capsys)
    assert sentences in shown and here in shown and messages == ""
    page = page_text(tmp_path / "out" / "report.html")
    assert sentences in page and here in page and "Checks of the data found nothing unusual." in page
    assert read_numbers(tmp_path / "out" / "report.html")["trust"]["data_verdict"] == "neutral"


def test_a_collider_leaves_no_direction_open():
    data = simulate.linear(nx.DiGraph([("a", "c"), ("b", "c")]), 400, random_seed=1)
    assert not [text for text in quick(data).diagnostics().assumptions if text.startswith("In the best network")]


@pytest.mark.parametrize(
    ("score", "sentences"),
    [
        ("bge", ["linear function", "constant variance", "Markov equivalence class"]),
        (gpn.scores.BIC(kind="gaussian"), ["linear function", "constant variance", "Markov equivalence class"]),
        (
            GP(estimator="laplace"),
            ["smooth function", "no parent changes the effect", "constant variance", "straight line"],
        ),
        (
            GP(kernel="interaction", estimator="laplace"),
            ["smooth", "pairs of parents", "constant variance", "straight line"],
        ),
        (gpn.scores.Lasso(), ["variance is the same for all variables"]),
    ],
    ids=["bge", "bic", "gp", "interaction", "lasso"],
)
def test_what_scores_of_numbers_assume(score, sentences):
    assumed = quick(clean()[["a", "b"]].head(60), score=score, draws=20).diagnostics().assumptions
    assert assumed[:3] == NETWORK_ASSUMPTIONS
    own = [text for text in assumed[3:] if not text.startswith("In the best network")]
    assert len(own) == len(sentences) and all(word in text for word, text in zip(sentences, own, strict=True))


@pytest.mark.parametrize(("score", "equivalent"), [("bdeu", True), ("bic", True), ("k2", False)])
def test_what_scores_of_categories_assume(score, equivalent):
    data = simulate.discrete(CHAIN, 100, random_seed=1)
    assumed = quick(data, score=score, draws=20).diagnostics().assumptions
    assert assumed[3].startswith("Categories have no order") and assumed[4].startswith("Every combination")
    assert any("Markov equivalence class" in text for text in assumed) == equivalent


def test_codes_are_fine_where_they_are_categories():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"ethnicity": rng.integers(0, 4, 200), "x": rng.integers(0, 2, 200)})
    assert [flag.kind for flag in quick(data, score="bge").diagnostics().data_flags] == ["codes", "binary"]
    assert quick(data, score="bdeu").diagnostics().data_flags == ()


def test_residuals_are_looked_at_after_the_draws():
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    data = pd.DataFrame({"x": x, "y": x + 0.5 * rng.laplace(size=600)})
    for score in ("bge", GP(estimator="laplace")):
        post = quick(data, score=score, required=[("x", "y")])
        assert [(flag.kind, flag.columns) for flag in post.diagnostics().data_flags] == [("heavy tails", ("y",))]


def test_caveats_survive_a_file_and_leave_the_name_of_the_run_alone(tmp_path):
    post = quick(with_ethnicity())
    assert json.loads(json.dumps(post.settings)) == post.settings
    post.save(tmp_path / "posterior.nc")
    back = gpn.load(tmp_path / "posterior.nc")
    assert str(back.diagnostics()) == str(post.diagnostics())
    assert back.diagnostics().data_flags == post.diagnostics().data_flags != ()


def test_a_file_of_an_earlier_version(tmp_path):
    post = quick(with_ethnicity())
    kept = {name: value for name, value in post.settings.items() if name not in ("assumptions", "data_flags")}
    post = replace(post, settings=kept)
    post.save(tmp_path / "posterior.nc")
    back = gpn.load(tmp_path / "posterior.nc")
    assert back.diagnostics().ok
    assert str(back.diagnostics()).endswith(
        "- What the score BGe assumes was not recorded.\nThe data were not examined."
    )
    assert "The data were not examined." in page_text(back.report(tmp_path / "report.html"))


def test_statistics_have_no_rows_to_look_at():
    post = quick(gpn.SufficientStatistics.of(clean()))
    found = post.diagnostics()
    assert post.settings["data_flags"] is None and found.data_verdict == "unknown"
    assert str(found).endswith("only their means and covariances were given, without rows.")
    assert any("linear function" in text for text in found.assumptions)


def test_flags_do_not_change_what_the_settings_list():
    from gpn_bayes.report.origin import origin_of

    listed = dict(origin_of(quick(with_ethnicity()))["settings"])
    assert "score" in listed and not {"data flags", "assumptions"} & listed.keys()


def test_names_in_flags_do_no_harm(tmp_path):
    name = "</script><b>id</b>"
    post = made_posterior(
        (name, "b"), [(0, 1, 0.5)], data_flags=[{"kind": "codes", "columns": [name], "message": name}]
    )
    html = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>id</b>" not in html and "&lt;b&gt;id&lt;/b&gt;" in html


def test_flags_are_told_before_the_work_and_not_of_work_that_is_done(tmp_path, capsys):
    shown, messages = run(with_ethnicity(), tmp_path, capsys)
    assert (
        messages.startswith("note: ethnicity: only the whole numbers")
        and "--kinds ethnicity=category says so, for --score cg" in messages
    )
    # Once is enough: at the end they are named.
    assert "- ethnicity: codes (see the note above)" in shown and "only the whole numbers" not in shown
    shown, messages = run(with_ethnicity(), tmp_path, capsys)
    assert "note:" not in messages and "ethnicity: only the whole numbers" in shown
