"""The command line: what it writes and prints, and that it keeps its hands off other runs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpn_bayes as gpn
from gpn_bayes.cli import app, main
from gpn_bayes.posterior.questions import Question
from gpn_bayes.sampling import sample as sampling
from tests.command_line import call, check_refused
from tests.running import STRICT_PYTHON

NAMES = ["TNF-α", "IL 6", "erk", "akt", "mek", "p-38"]
QUICK = ("--sampler", "partition", "--draws", "200", "--tune", "50", "--quiet")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    dag = nx.DiGraph([("TNF-α", "IL 6"), ("IL 6", "erk"), ("erk", "akt"), ("mek", "erk"), ("akt", "p-38")])
    return gpn.simulate.linear(dag, 120, random_seed=3)[NAMES]


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "cells.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def results(table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of a partition and of an exact run."""
    folders = {"partition": QUICK, "exact": ("--draws", "200", "--quiet")}
    for name, options in folders.items():
        out = tmp_path_factory.mktemp("results") / name
        with pytest.raises(SystemExit) as end:
            main(["run", str(table), "--out", str(out), *options])
        assert not end.value.code
        folders[name] = out
    return folders


# Running


@pytest.mark.more("repeats whole runs from the command line")
@pytest.mark.parametrize("score", ["bdeu", "k2", "bic"])
def test_run_on_text_takes_a_score_of_categories(score, tmp_path, capsys):
    path = Path(__file__).parent / "reference" / "discrete" / "asia_1000.csv"
    code, shown, _ = call(capsys, "run", path, "--score", score, "--out", tmp_path / "out", "--draws", "50", "--quiet")
    assert code == 0 and "dysp" in shown
    edges = pd.read_csv(tmp_path / "out" / "edges.csv").set_index(["parent", "child"])["probability"]
    assert edges["bronc", "dysp"] + edges["dysp", "bronc"] > 0.9


def test_run_writes_what_sample_finds(results, frame):
    out = results["partition"]
    post = gpn.sample(frame, sampler="partition", draws=200, tune=50, random_seed=1, progressbar=False, cores=1)
    kept = gpn.load(out / "posterior.nc")
    assert (kept.parents == post.parents).all()
    edges = pd.read_csv(out / "edges.csv")
    assert list(edges) == ["parent", "child", "probability", "mcse", "ess", "r_hat", "status"]
    assert len(edges) == 6 * 5
    for row in edges.itertuples():
        assert row.probability == pytest.approx(post.edge_probability(row.parent, row.child).value, abs=1e-6)
    ranked = sorted(zip(-edges["probability"], edges["parent"], edges["child"], strict=True))
    assert list(zip(-edges["probability"], edges["parent"], edges["child"], strict=True)) == ranked
    assert {file.name for file in out.iterdir()} == {
        "posterior.nc", "edges.csv", "report.html", "run.json", "run.sqlite",
    }  # fmt: skip
    identity = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert identity["variables"] == NAMES and identity["rows"] == 120
    later = ("moves", "candidates", "assumptions", "data_flags")
    assert identity["settings"] == {k: v for k, v in kept.settings.items() if k not in later}
    assert str(kept.diagnostics()) == str(post.diagnostics())


def test_a_finished_run_is_shown_again_and_not_done_again(results, table, capsys):
    out = results["partition"]
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in out.iterdir()}
    code, shown, messages = call(capsys, "run", table, "--out", out, *QUICK)
    assert code == 0 and "nothing was computed again" in messages
    assert "erk -> akt" in shown
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in out.iterdir()} == before


@pytest.mark.more("repeats whole runs from the command line")
@pytest.mark.parametrize("kind", ["partition", "exact"])
@pytest.mark.parametrize("name", ["edges.csv", "report.html"])
def test_lost_files_are_written_again_from_the_draws(results, kind, name, table, capsys):
    out = results[kind]
    options = QUICK if kind == "partition" else ("--draws", "200", "--quiet")
    before = (out / name).read_bytes()
    (out / name).unlink()
    code, _, messages = call(capsys, "run", table, "--out", out, *options)
    assert code == 0 and "unfinished; going on" in messages
    assert (out / name).read_bytes() == before


def test_the_summary_fits_eighty_columns(results, table, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = call(capsys, "run", table, "--out", results["partition"], *QUICK)[1]
    lines = shown.splitlines()
    assert max(len(line) for line in lines if not line.startswith("In ")) <= 80  # a path stays in one piece
    assert re.search(r"^6 variables, 120 rows  score BGe, partition sampler, 4 x 200 draws$", shown, re.M)
    edge = re.search(r"^erk -> akt +(0\.\d{3}|1\.000) +(0\.\d{3}|-) +█+.? *$", shown, re.M)
    assert edge, shown
    verdict = r"^Sampling (has|may not have|has not) converged\. 4 chains (agree|don't agree); largest gap 0\.\d\d"
    assert re.search(verdict, shown, re.M)
    assert re.search(r"^The answers assume:\n- No hidden common causes: ", shown, re.M)
    assert re.search(r"^Checks of the data (raised|found) ", shown, re.M)
    assert "report.html, posterior.nc, edges.csv" in shown


@pytest.mark.more("repeats whole runs from the command line")
def test_constraints_reach_the_sampler(table, tmp_path, capsys):
    (tmp_path / "no.csv").write_text("effect,cause,why\nmek,erk,order\n", encoding="utf-8")
    (tmp_path / "tiers.csv").write_text(
        "name,tier\n" + "".join(f"{name},{int(name == 'p-38')}\n" for name in NAMES), encoding="utf-8"
    )
    pairs = [(a, b) for a in NAMES for b in NAMES if a != b and {a, b} != {"TNF-α", "akt"}]
    (tmp_path / "pairs.csv").write_text("parent,child\n" + "".join(f"{a},{b}\n" for a, b in pairs), encoding="utf-8")
    out = tmp_path / "out"
    code, *_ = call(
        capsys, "run", table, "--out", out, "--draws", 20, "--quiet", "--required", "IL 6 -> TNF-α",
        "--forbidden", tmp_path / "no.csv", "--forbidden", "akt->erk", "--tiers", tmp_path / "tiers.csv",
        "--candidates", tmp_path / "pairs.csv", "--max-parents", 2, "--prior", "fair",
    )  # fmt: skip
    assert code == 0
    p = gpn.load(out / "posterior.nc").edge_probabilities()
    assert p.loc["IL 6", "TNF-α"] == pytest.approx(1)
    for parent, child in [("erk", "mek"), ("akt", "erk"), ("TNF-α", "akt"), *(("p-38", n) for n in NAMES)]:
        assert p.loc[parent, child] == 0
    assert p.loc["mek", "erk"] > 0 and p.loc["erk", "p-38"] > 0
    settings = gpn.load(out / "posterior.nc").settings
    assert settings["max_parents"] == 2 and settings["prior"]["kind"] == "fair"


@pytest.mark.more("repeats whole runs from the command line")
def test_candidates_of_those_not_named_stay_as_they_are(table, tmp_path, capsys):
    (tmp_path / "pairs.csv").write_text("parent,child\nmek,erk\nIL 6,erk\n,akt\n", encoding="utf-8")
    out = tmp_path / "out"
    code, _, messages = call(
        capsys, "run", table, "--out", out, "--draws", 20, "--quiet", "--candidates", tmp_path / "pairs.csv"
    )
    assert code == 0
    assert "--candidates: 4 of 6 variables aren't named; their candidates: all others" in messages
    post = gpn.load(out / "posterior.nc")
    p = post.edge_probabilities()
    assert p["akt"].sum() == 0 and p["erk"].drop(["mek", "IL 6"]).sum() == 0
    assert (p.drop(columns=["akt", "erk"]).sum() > 0).all()
    assert post.settings["candidates"]["not_named"] == 4
    assert "not_named 4, not_named_method all others" in (out / "report.html").read_text("utf-8")


@pytest.mark.more("repeats whole runs from the command line")
def test_the_command_of_a_report_gives_the_same_networks(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(table, "-my cells.csv")
    given = [
        "run", "./-my cells.csv", "-q", "--cores", 1, "--out", "first", "--draws", 20, "--required",
        "IL 6 -> TNF-α", "--required=mek->erk", "--candidates", 3, "--no-plus-one", "--seed", 7,
    ]  # fmt: skip
    assert call(capsys, *given)[0] == 0
    shown = re.search(
        r"<h3>On the command line</h3><pre><code>(.+?)</code>", Path("first/report.html").read_text("utf-8")
    )
    command = shlex.split(unescape(shown[1]))
    assert command[:2] == ["gpn-bayes", "run"] and not {"-q", "--quiet", "--cores"} & set(command)
    assert call(capsys, *(["second" if word == "first" else word for word in command[1:]]), "--quiet")[0] == 0
    first, second = (gpn.load(f"{out}/posterior.nc") for out in ("first", "second"))
    assert (first.parents == second.parents).all() and first.settings == second.settings


@pytest.mark.more("repeats whole runs from the command line")
def test_parquet_is_the_same_data(frame, results, tmp_path, capsys):
    frame.to_parquet(tmp_path / "cells.parquet")
    code, _, messages = call(capsys, "run", tmp_path / "cells.parquet", "--out", results["partition"], *QUICK)
    assert code == 0 and "nothing was computed again" in messages


@pytest.mark.more("repeats whole runs from the command line")
@pytest.mark.parametrize("saved", [True, False])
def test_the_table_is_saved_with_the_draws_unless_refused(saved, frame, table, tmp_path, capsys):
    options = ["--draws", "20", "--quiet", "--out", tmp_path / "out", *([] if saved else ["--no-save-data"])]
    code, _, _ = call(capsys, "run", table, *options)
    kept = gpn.load(tmp_path / "out" / "posterior.nc")
    assert code == 0 and (kept.data is not None) == saved
    if saved:
        np.testing.assert_allclose(kept.data.values, frame.to_numpy())


@pytest.mark.more("repeats whole runs from the command line")
def test_identical_columns_are_a_warning(frame, tmp_path, capsys):
    frame.assign(twin=frame["erk"]).to_csv(tmp_path / "twins.csv", index=False)
    code, _, messages = call(capsys, "run", tmp_path / "twins.csv", "--out", tmp_path / "o", "--draws", 5, "-q")
    assert code == 0
    assert messages.startswith("warning: columns 'erk' and 'twin' are identical: the data can't distinguish them\n")
    assert "note: erk and twin: a correlation of 1. The data can't distinguish their roles: keep one" in messages
    assert (tmp_path / "o" / "edges.csv").exists()


@pytest.mark.more("repeats whole runs from the command line")
@pytest.mark.parametrize("options", [["--max-parents", 1], ["--score", "bge", "--max-parents", 2]], ids=["gp", "bge"])
def test_demo_answers_the_question(options, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, shown, _ = call(capsys, "demo", "--draws", 50, *options, "-q")
    assert code == 0
    assert shown.startswith(f"\n11 variables, 853 rows  score {'BGe' if 'bge' in options else 'GP'}")
    post = gpn.load(tmp_path / "gpn-bayes-demo" / "posterior.nc")
    direct, path = post.edge_probability("erk", "akt"), post.path_probability("erk", "pka")
    assert shown.splitlines()[-1] == f"Paper's question: P(erk -> akt) = {direct}, P(erk ~> pka) = {path}"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--draws", "201"], "with --draws 200 instead of 201"),
        (["--seed", "2", "--tune", "60"], "with --seed 1 instead of 2, --tune 50 instead of 60"),
        (["--score", "bic"], "with --score bge instead of bic"),
        # Neither the limit of parents nor the reweighting that come with this score were typed.
        (["--score", "gp"], "with --score bge instead of gp"),
        (["--sampler", "exact"], "with --sampler partition instead of exact"),
        (["--sampler", "order", "--order-bias", "correct"], "with --sampler partition instead of order"),
        (["--reweight", "none", "--chains", "3"], "with --chains 4 instead of 3"),
        (["--max-parents", "2"], "with no --max-parents instead of 2"),
        (["--until", "converged"], "with no --until instead of converged"),
        (["--plus-one", "--expand", "0.1"], "with --no-plus-one instead of --plus-one"),
        (["--candidates", "3"], "with other --candidates"),
        (["--prior", "fair"], "with --prior uniform instead of fair"),
        (["--required", "erk -> akt"], "with other --required edges"),
        (["--forbidden", "erk -> akt"], "with other --forbidden edges or --tiers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_folder_of_another_run_is_refused(options, found, results, table, capsys):
    out = results["partition"]
    check_refused(capsys, out, [table, "--out", out, *QUICK, *options], f"holds another run, {found}: choose another")


@pytest.mark.more("repeats whole runs from the command line")
def test_settings_that_are_kept_in_other_words_are_shown_as_options(table, tmp_path, capsys):
    order = (table, "--sampler", "order", "--draws", 20, "--tune", 0)
    assert call(capsys, "run", *order, "--plus-one", "--out", tmp_path / "out", "-q")[0] == 0
    for options, found in (
        (["--plus-one", "--order-bias", "correct"], "with --order-bias keep instead of correct"),
        (["--plus-one", "--expand", "0"], "with --expand 0.05 instead of 0"),
    ):
        check_refused(capsys, tmp_path, [*order, *options, "--out", tmp_path / "out"], f"another run, {found}: choose")


def test_the_folder_of_other_data_is_refused(frame, results, tmp_path, capsys):
    frame.iloc[1:].to_csv(tmp_path / "fewer.csv", index=False)
    arguments = [tmp_path / "fewer.csv", "--out", results["partition"], *QUICK]
    check_refused(capsys, tmp_path, arguments, "holds another run, on other data, 6 variables and 120 rows")


# Help


def test_help_and_version():
    runner = CliRunner()
    for command in ([], ["run"], ["demo"], ["query"], ["compare"], ["estimate"]):
        shown = runner.invoke(app, [*command, "--help"])
        assert shown.exit_code == 0 and "Usage: gpn-bayes" in shown.output.replace("root", "gpn-bayes")
    assert runner.invoke(app, ["--version"]).output == f"gpn-bayes {gpn.__version__}\n"
    assert "compare" in runner.invoke(app, []).output


def test_the_help_of_estimate_names_every_score_it_maximises():
    text = " ".join(CliRunner().invoke(app, ["estimate", "--help"]).output.replace("│", " ").split())
    assert "Score to maximise: bic, bdeu, k2, bge, cg or gp" in text


def test_the_help_of_run_names_every_score():
    text = " ".join(CliRunner().invoke(app, ["run", "--help"]).output.replace("│", " ").split())
    described = text[text.index("How to score a variable") : text.index("as the data are")]
    assert {"bge", "gp", "bdeu", "k2", "cg", "bic"} <= set(re.findall(r"\w+", described))


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom gpn_bayes.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'pandas', 'numba', 'scipy', 'arviz_base') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


# Questions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("erk -> nothing", "'nothing' is not"),
        ("erk->nothing", "'nothing' is not"),
        ("erk < akt < no", "'no' is not"),
        ("erk", "a question must read"),
        ("erk -> ", "a question must read"),
        ("", "a question must read"),
        ("erk -> erk", "names each variable once"),
    ],
)
def test_what_is_no_question_is_refused(text, expected, results, capsys):
    code, shown, messages = call(capsys, "query", results["exact"], "erk -> akt", text)
    assert code == 2 and shown == ""
    assert messages.startswith("error: ") and messages.count("\n") == 1 and expected in messages


@pytest.mark.parametrize("kind", ["partition", "exact"])
def test_answers_are_those_of_the_posterior(kind, results, capsys):
    post = gpn.load(results[kind] / "posterior.nc")
    p = post.edge_probabilities()
    for sign, expected in {
        "->": p.loc["erk", "akt"],
        "~>": post.probability(lambda g: nx.has_path(g, "erk", "akt")).value,
        "<": 1 - post.probability(lambda g: nx.has_path(g, "akt", "erk")).value,
        "-": p.loc["erk", "akt"] + p.loc["akt", "erk"],
    }.items():
        assert post.probability(Question(sign, ("erk", "akt"))).value == pytest.approx(expected, abs=1e-12)
    code, shown, _ = call(capsys, "query", results[kind], "erk -> akt", "TNF-α ~> p-38")
    assert code == 0
    first, second = shown.splitlines()
    assert first.startswith(f"erk -> akt     {p.loc['erk', 'akt']:.4f}  ")
    assert ("exact" in first) == (kind == "exact")
    assert re.fullmatch(r"TNF-α ~> p-38  \d\.\d{4}  ± \d\.\d{4}  \d+ effective draws", second)


def test_json_answers(results, capsys):
    file = results["partition"] / "posterior.nc"
    code, shown, _ = call(capsys, "query", file, "--json", "erk->akt", "p-38 < TNF-α")
    one, two = json.loads(shown)
    estimate = gpn.load(file).edge_probability("erk", "akt")
    assert code == 0 and not one["exact"] and one["question"] == "erk -> akt"
    assert one["probability"] == estimate.value and two["question"] == "p-38 < TNF-α"
    exact = json.loads(call(capsys, "query", results["exact"], "--json", "erk - akt")[1])
    assert exact[0]["exact"] and exact[0]["mcse"] == 0 and exact[0]["ess"] is None


def test_what_is_no_posterior_is_refused(table, tmp_path, capsys):
    for path, expected in (
        (tmp_path, "must hold posterior.nc"),
        (table, "netCDF"),
        (tmp_path / "x", "must exist"),
    ):
        code, _, messages = call(capsys, "query", path, "a -> b")
        assert code == 2 and messages.count("\n") == 1 and expected in messages


# Comparison


def test_compare_shows_both_runs(results, capsys):
    one, two = (gpn.load(results[kind] / "posterior.nc") for kind in ("exact", "partition"))
    code, shown, _ = call(capsys, "compare", results["exact"], results["partition"], "--threshold", 0.2, "--top", 0)
    assert code == 0
    p, q = one.edge_probabilities(), two.edge_probabilities()
    rows = re.findall(r"^(.+?) -> (.+?)  +(\d\.\d{3}) +(\d\.\d{3}) +([+-]\d\.\d{3}) +(\S+) *$", shown, re.M)
    wanted = {(a, b) for a in NAMES for b in NAMES if a != b and max(p.loc[a, b], q.loc[a, b]) >= 0.2}
    assert {(parent, child) for parent, child, *_ in rows} == wanted
    for parent, child, first, second, difference, _ in rows:
        assert float(first) == pytest.approx(p.loc[parent, child], abs=6e-4)
        assert float(second) == pytest.approx(q.loc[parent, child], abs=6e-4)
        assert float(difference) == pytest.approx(q.loc[parent, child] - p.loc[parent, child], abs=6e-4)
    sizes = [abs(float(row[4])) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert f"mean absolute difference {np.abs(p - q).to_numpy().sum() / 30:.4f}" in shown


@pytest.mark.more("repeats whole runs from the command line")
def test_compare_shows_how_well_each_predicts(results, tmp_path, capsys):
    page = tmp_path / "page.html"
    code, shown, messages = call(capsys, "compare", results["exact"], results["partition"], "--report", page)
    assert (code, messages) == (0, "")
    found = gpn.compare({k: gpn.load(results[k] / "posterior.nc") for k in ("exact", "partition")}, progressbar=False)
    pattern = r"^({}) +(-[\d,.]+) +(-[\d,.]+) +([+-][\d.]+) +([\d.]+) *$"
    rows = re.findall(pattern.format("|".join(NAMES)), shown, re.M)
    assert [row[0] for row in rows] == list(NAMES)
    wide = found.by_variable.pivot(index="variable", columns="model", values="elpd")
    for name, first, second, difference, _ in rows:
        one, two = (float(value.replace(",", "")) for value in (first, second))
        assert one == pytest.approx(wide.loc[name, "exact"], abs=0.06)
        assert two == pytest.approx(wide.loc[name, "partition"], abs=0.06)
        assert float(difference) == pytest.approx(wide.loc[name, "partition"] - wide.loc[name, "exact"], abs=0.06)
    (whole,) = re.findall(pattern.format("whole rows"), shown, re.M)
    assert float(whole[1].replace(",", "")) == pytest.approx(found.table.loc["exact", "elpd"], abs=0.06)
    text = page.read_text(encoding="utf-8")
    assert 'id="prediction"' in text and "predict rows left out about equally well" in text
    code, _, messages = call(capsys, "compare", results["exact"], results["partition"], "--report", page)
    assert code == 2 and "exists" in messages and messages.count("\n") == 1


@pytest.mark.more("repeats whole runs from the command line")
def test_compare_without_predictions(results, tmp_path, capsys):
    code, shown, _ = call(capsys, "compare", results["exact"], results["partition"], "--no-prediction")
    assert code == 0 and "whole rows" not in shown
    settings = ["--no-prediction", "--report", tmp_path / "page.html"]
    code, shown, messages = call(capsys, "compare", results["exact"], results["partition"], *settings)
    assert code == 2 and shown == ""
    assert messages == "error: --report needs the predictions; received --no-prediction with it\n"


@pytest.mark.more("repeats whole runs from the command line")
def test_compare_says_why_predictions_are_not_compared(results, frame, tmp_path, capsys):
    (2 * frame).to_csv(tmp_path / "doubled.csv", index=False)
    call(capsys, "run", tmp_path / "doubled.csv", "--out", tmp_path / "o", "--draws", 5, "-q")
    code, shown, messages = call(capsys, "compare", results["exact"], tmp_path / "o")
    assert code == 0 and "mean absolute difference" in shown and "whole rows" not in shown
    assert "predictions weren't compared: compared posteriors must be of the same rows in the same units" in messages


def test_compare_limits_what_it_shows(results, capsys):
    shown = call(capsys, "compare", results["exact"], results["partition"], "--threshold", 0, "--top", 3)[1]
    assert shown.count(" -> ") == 3
    differences = sorted((abs(float(found)) for found in re.findall(r"[+-]\d\.\d{3}", shown)), reverse=True)
    shown_limit = re.search(r"27 more edges differ by at most (\d\.\d{3}); --top 0 --threshold 0 shows all", shown)
    assert float(shown_limit[1]) <= differences[-1]


@pytest.mark.more("repeats whole runs from the command line")
def test_compare_refuses_other_variables(results, frame, tmp_path, capsys):
    frame.rename(columns={"erk": "ERK"}).to_csv(tmp_path / "renamed.csv", index=False)
    call(capsys, "run", tmp_path / "renamed.csv", "--out", tmp_path / "o", "--draws", 5, "-q")
    code, shown, messages = call(capsys, "compare", results["exact"], tmp_path / "o")
    assert code == 2 and shown == ""
    assert messages == ("error: both posteriors must be over the same variables; 'ERK' is only in the second\n")


@pytest.mark.more("repeats whole runs from the command line")
def test_compare_aligns_variables_by_name(results, frame, tmp_path, capsys):
    frame[NAMES[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    call(capsys, "run", tmp_path / "turned.csv", "--out", tmp_path / "o", "--draws", 5, "-q")
    _, shown, messages = call(capsys, "compare", results["exact"], tmp_path / "o")
    assert "mean absolute difference 0.0000, correlation 1.0000" in shown
    assert "different data" in messages


@pytest.mark.more("compiles every sampler and score")
def test_warm_up_runs_every_sampler(capsys, monkeypatch):
    samplers = set()
    draw = sampling.draw
    monkeypatch.setattr(sampling, "draw", lambda run, **rest: samplers.add(run.plan.sampler.name) or draw(run, **rest))
    code, shown, messages = call(capsys, "warm-up")
    assert code == 0 and shown == "" and re.search(r"compiled in \d+ s; later runs need not\n$", messages)
    assert samplers == {"exact", "partition", "order"}


@pytest.mark.slow
def test_after_warm_up_runs_compile_nothing(tmp_path):
    """With an empty cache: as many files after runs of three kinds as before."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [*STRICT_PYTHON, "-m", "gpn_bayes.cli"]
    subprocess.run([*command, "warm-up"], check=True, env=environment, cwd=tmp_path)
    compiled = sorted(tmp_path.rglob("*.nbc"))
    assert len(compiled) > 100
    gpn.datasets.sachs().to_csv(tmp_path / "sachs.csv", index=False)
    gpn.datasets.sachs()[["raf", "mek", "erk"]].to_csv(tmp_path / "three.csv", index=False)
    for run in (["sachs.csv"], ["sachs.csv", "--candidates", "3"], ["three.csv", "--score", "gp"]):
        subprocess.run([*command, "run", *run, "--draws", "20", "--tune", "20"], env=environment, cwd=tmp_path)
    assert sorted(tmp_path.rglob("*.nbc")) == compiled
