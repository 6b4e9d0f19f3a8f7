"""``gpn-bayes estimate``: what it writes and prints, what it refuses, and that it overwrites nothing."""

import os
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import gpn_bayes as gpn
from gpn_bayes.cli import main, methods
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.edge_tables import edge_table
from tests.command_line import call, read_estimate

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

ASIA = Path(__file__).parent / "reference" / "discrete" / "asia_1000.csv"
NAMES = ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"]
# With at most three parents: the best of all graphs.
OPTIMUM = -2232.998
OPTIONS = {
    "k2": ("--score", "bic"),
    "exact": ("--score", "bic"),
    "hc": ("--score", "bic"),
    "ordering": ("--score", "BIC"),
    "rbnets": ("--score", "bic", "--set", "episodes=150"),
    "pc": ("--set", "alpha=0.01", "--score", "bic"),
}
# These are tried on tables of numbers, in test_cli_equations.
OTHERS = ("notears", "notears-mlp", "dynotears")
LINEAR = "a,b,c\n" + "".join(f"{i % 7},{(i % 7) * 2 + i % 3},{i % 5}\n" for i in range(60))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of every method's results."""
    found = {}
    for method, options in OPTIONS.items():
        out = tmp_path_factory.mktemp("estimates") / method
        limit = () if method == "pc" else ("--max-parents", "3")
        with pytest.raises(SystemExit) as end:
            main(["estimate", str(ASIA), "--method", method, "--out", str(out), "-q", *limit, *options])
        assert not end.value.code
        found[method] = out
    return found


def test_every_method_is_tried_here():
    assert {*OPTIONS, *OTHERS} == set(methods.METHODS)


@pytest.mark.parametrize("method", [method for method in OPTIONS if method != "pc"])
def test_score_based_methods_write_a_good_graph_and_its_weights(method, results):
    edges, identity = read_estimate(results[method])
    assert {file.name for file in results[method].iterdir()} == {"edges.csv", "estimate.json", "report.html"}
    assert list(edges) == ["parent", "child", "type", "weight"] and set(edges["type"]) == {"directed"}
    assert identity["method"] == method and identity["variables"] == NAMES and identity["rows"] == 1000
    assert identity["edges"] == len(edges) and not identity["interrupted"] and identity["seconds"] >= 0
    assert identity["settings"]["max_parents"] == 3 and identity["settings"]["random_state"] == 1
    scorer = gpn.scores.by_name("bic").bind(ASIA)
    graph = nx.DiGraph(list(zip(edges["parent"], edges["child"], strict=True)))
    assert scorer.total(graph) == pytest.approx(identity["log_score"], abs=1e-6)
    assert identity["log_score"] == pytest.approx(OPTIMUM, abs=2 if method == "rbnets" else 1e-3)
    for row in edges.itertuples():
        parents = set(graph.predecessors(row.child))
        worth = scorer.local(row.child, parents) - scorer.local(row.child, parents - {row.parent})
        assert row.weight == pytest.approx(worth, abs=1e-5)
    assert edges["weight"].is_monotonic_decreasing


def test_the_proof_is_kept(results):
    assert read_estimate(results["exact"])[1]["gap"] == 0
    assert read_estimate(results["hc"])[1]["gap"] is None


def test_pc_writes_an_undirected_edge_as_one_row(results):
    edges, identity = read_estimate(results["pc"])
    assert list(edges) == ["parent", "child", "type"]
    pc = gpn.estimators.PC(alpha=0.01, random_state=1).fit(ASIA)
    undirected = {frozenset(edge) for edge in pc.graph_.edges if pc.graph_.has_edge(*reversed(edge))}
    directed = {edge for edge in pc.graph_.edges if frozenset(edge) not in undirected}
    rows = edges.groupby("type")[["parent", "child"]].apply(lambda own: list(map(tuple, own.to_numpy())))
    assert set(rows["directed"]) == directed and len(rows["directed"]) == len(directed) > 0
    assert set(map(frozenset, rows["undirected"])) == undirected and len(rows["undirected"]) == len(undirected) > 0
    assert identity["edges"] == len(edges) and identity["undirected"] == len(undirected)
    assert identity["settings"]["alpha"] == 0.01
    assert identity["log_score"] == pytest.approx(pc.log_score("bic"))


# The screen


def test_the_screen_shows_edges_score_and_evidence(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, shown, messages = call(
        capsys, "estimate", ASIA, "--method", "k2", "--score", "bic", "--order", ",".join(NAMES),
        "--max-parents", 3, "--out", tmp_path / "o", "--quiet",
    )  # fmt: skip
    assert code == 0 and messages == ""
    assert shown.startswith("\n8 variables, 1000 rows  K2, score BIC\n\nedge ")
    learner = gpn.estimators.K2("bic", order=NAMES, max_parents=3).fit(ASIA)
    rows = re.findall(r"^(\w+) -> (\w+) +(-?[\d.]+) +(neutral|positive|strong|very strong) *$", shown, re.M)
    assert {row[:2] for row in rows} == set(learner.graph_.edges)
    for parent, child, worth, message in rows:
        expected = learner.weights_[NAMES.index(parent), NAMES.index(child)]
        assert float(worth) == pytest.approx(expected, abs=6e-4) and message == gpn.metrics.evidence(expected)
    total = rf"^score {learner.log_score_:.3f}, {len(rows)} edges, \d+\.\d seconds$"
    assert re.search(total, shown, re.M)
    assert "The worth of an edge is the loss in score without it." in shown
    assert shown.endswith(f"In {tmp_path / 'o'}/: report.html, edges.csv, estimate.json\n")
    assert max(len(line) for line in shown.splitlines() if not line.startswith("In ")) <= 80


def test_the_screen_tells_a_proof_and_undirected_edges(tmp_path, capsys):
    _, shown, _ = call(
        capsys, "estimate", ASIA, "--method", "exact", "--max-parents", 2, "--out", tmp_path / "e", "-q",
    )  # fmt: skip
    assert (
        "Proved: no graph with at most 2 parents per variable scores higher." in shown and "Exact, score BIC" in shown
    )
    _, shown, _ = call(capsys, "estimate", ASIA, "--method", "pc", "--out", tmp_path / "p", "-q")
    edges, identity = read_estimate(tmp_path / "p")
    counts = edges["type"].value_counts()
    for sign, kind in (("->", "directed"), ("-", "undirected")):
        assert len(re.findall(rf"^\w+ {sign} \w+ *$", shown, re.M)) == counts[kind]
    message = f"{len(edges)} edges ({counts['directed']} directed, {counts['undirected']} undirected), "
    assert f"\n{message}" in shown
    assert "evidence" not in shown and identity["log_score"] is None


def test_many_edges_are_not_all_shown(tmp_path, capsys):
    dag = simulated_star(20)
    gpn.simulate.linear(dag, 300, random_seed=1).to_csv(tmp_path / "star.csv", index=False)
    code, shown, _ = call(
        capsys, "estimate", tmp_path / "star.csv", "--method", "k2", "--score", "bge", "--max-parents", 1,
        "--order", ",".join(dag), "--out", tmp_path / "o", "-q",
    )  # fmt: skip
    edges, _ = read_estimate(tmp_path / "o")
    assert code == 0 and len(edges) == 20
    assert shown.count(" -> ") == 15 and "5 more in edges.csv" in shown


def simulated_star(leaves: int) -> nx.DiGraph:
    return nx.DiGraph([("hub", f"leaf{i}") for i in range(leaves)])


def test_progress_is_shown_unless_quiet(tmp_path, capsys, progress_at_once):
    arguments = ("estimate", ASIA, "--method", "k2", "--max-parents", 1)
    assert "100%" in call(capsys, *arguments, "--out", tmp_path / "a")[2]
    assert call(capsys, *arguments, "--out", tmp_path / "b", "--quiet")[2] == ""


# Options


def test_constraints_reach_the_learner(tmp_path, capsys):
    (tmp_path / "no.csv").write_text("cause,effect\nbronc,dysp\ndysp,bronc\n", encoding="utf-8")
    (tmp_path / "tiers.csv").write_text(
        "name,tier\n" + "".join(f"{name},{int(name == 'smoke')}\n" for name in NAMES), encoding="utf-8"
    )
    (tmp_path / "order.csv").write_text("\n".join(reversed(NAMES)), encoding="utf-8")
    code, shown, _ = call(
        capsys, "estimate", ASIA, "--method", "K2", "--out", tmp_path / "o", "-q", "--required", "xray -> asia",
        "--forbidden", tmp_path / "no.csv", "--tiers", tmp_path / "tiers.csv", "--order", tmp_path / "order.csv",
    )  # fmt: skip
    assert code == 0
    edges, identity = read_estimate(tmp_path / "o")
    pairs = set(zip(edges["parent"], edges["child"], strict=True))
    assert ("xray", "asia") in pairs and not {("bronc", "dysp"), ("dysp", "bronc")} & pairs
    assert "smoke" not in set(edges["parent"])
    assert all(NAMES.index(parent) > NAMES.index(child) for parent, child in pairs)
    assert identity["settings"]["required"] == [["xray", "asia"]] and identity["settings"]["order"] == NAMES[::-1]
    # What nobody asked the data about may count against the graph, and stands last.
    assert (edges["parent"].iloc[-1], edges["child"].iloc[-1]) == ("xray", "asia") and edges["weight"].iloc[-1] < 0


def test_settings_of_a_method_are_given_by_name(tmp_path, capsys):
    code, *_ = call(
        capsys, "estimate", ASIA, "--method", "hc", "--out", tmp_path / "o", "-q", "--set", "restarts=0",
        "--set", " patience = 5 ", "--seed", 7, "--score", "bdeu",
    )  # fmt: skip
    settings = read_estimate(tmp_path / "o")[1]["settings"]
    assert code == 0 and settings["restarts"] == 0 and settings["patience"] == 5
    assert settings["random_state"] == 7 and settings["score"] == "bdeu"


def test_the_same_seed_gives_the_same_file(tmp_path, capsys):
    for name in ("a", "b"):
        call(capsys, "estimate", ASIA, "--method", "k2", "--set", "n_orders=5", "--out", tmp_path / name, "-q")
    assert (tmp_path / "a" / "edges.csv").read_bytes() == (tmp_path / "b" / "edges.csv").read_bytes()


@pytest.mark.parametrize(("limit", "largest"), [(0, 0), (1, 1), (99, 7)])
def test_any_limit_of_parents_has_a_sensible_result(limit, largest, tmp_path, capsys):
    code, shown, _ = call(
        capsys, "estimate", ASIA, "--method", "k2", "--score", "bic", "--max-parents", limit, "--out", tmp_path, "-q",
    )  # fmt: skip
    edges, _ = read_estimate(tmp_path)
    assert code == 0
    assert edges["child"].value_counts().max() <= largest if limit else len(edges) == 0
    if not limit:
        assert "score -2997.497, 0 edges" in shown and "worth" not in shown


# Refusals


def check_refused(capsys, folder: Path, arguments: list[object], expected: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    code, shown, messages = call(capsys, "estimate", *arguments, "--quiet")
    assert code == 2 and shown == ""
    assert messages.startswith("error: ") and messages.count("\n") == 1
    assert expected in messages
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--method", "magic"],
            "--method must be one of k2, exact, hc, ordering, rbnets, pc, notears, notears-mlp, dynotears; "
            "received 'magic'",
        ),
        (["--method", "hcc"], "received 'hcc': did you mean 'hc'?"),
        (["--score", "best"], "error: --score must be one of bge, gp, bic, bdeu, k2, cg; received 'best'"),
        (["--method", "pc", "--score", "bicc"], "received 'bicc': did you mean 'bic'?"),
        (["--set", "n_order=2"], "received 'n_order': did you mean 'n_orders'?"),
        (["--out", ""], "'--out': a folder must have a name; received ''"),
        (["--order", "a,b"], "an order must list every variable once; 'c' is missing"),
        (["--order", "a,b,c,a"], "an order must list every variable once; 'a' appears more than once"),
        (["--order", "a,b,z"], "--order: every name must be one of the variables; 'z' is not"),
        (["--order", "nowhere.csv"], "--order: the file must exist; 'nowhere.csv' is not a file"),
        (["--method", "hc", "--order", "a,b,c"], "--order doesn't go with --method hc"),
        (["--method", "pc", "--max-parents", "2"], "--max-parents doesn't go with --method pc"),
        (["--max-parents", "-1"], "error: --max-parents must be a whole number, 0 or more; received -1"),
        (["--max-parents", "few"], "--max-parents"),
        (["--required", "a -> z"], "'z' is not"),
        (["--required", "a -> b", "--required", "b -> a"], "must not form a cycle"),
        (["--required", "a -> b", "--forbidden", "a -> b"], "can't be required and forbidden; a -> b"),
        (["--required", "b -> a", "--order", "a,b,c"], "an order must put required parents before their children"),
        (["--required", "a -> c", "--required", "b -> c", "--max-parents", "1"], "leave room for the required"),
        (["--tiers", "nowhere.csv"], "--tiers: the file must exist"),
        (["--seed", "-1"], "--seed must be 0 or more; received -1"),
        (["--set", "restarts"], "--set takes name=value; received 'restarts'"),
        (["--set", "restarts="], "--set takes name=value; received 'restarts='"),
        (["--set", "colour=red"], "--method k2 has the settings n_orders; received 'colour'"),
        (["--set", "max-parents=2"], "--set is for settings without an option; 'max_parents' has --max-parents"),
        (["--set", "n_orders=none"], "n_orders must be a whole number, 1 or more; received 'none'"),
        (["--method", "exact", "--set", "method=best"], "method must be one of auto, dp, ilp, a-star"),
        (["--wrong"], "--wrong"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_options_are_refused_before_anything_is_written(options, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(LINEAR, encoding="utf-8")
    method = [] if "--method" in options else ["--method", "k2"]
    score = [] if {"--score", "pc"} & set(options) else ["--score", "bge"]
    arguments = [tmp_path / "data.csv", "--out", tmp_path / "out", *method, *score, *options]
    check_refused(capsys, tmp_path, arguments, expected)


@pytest.mark.parametrize(
    ("text", "score", "expected"),
    [
        ("", "bic", "is empty"),
        ("a,b\n1,2\n,3\n4,4\n", "bic", "1 is missing, in 1 of 3 rows and 1 of 2 columns ('a' in line 3)"),
        ("a,b\n1,2\n1,3\n1,4\n", "bic", "column 'a' is constant"),
        ("a,a\n1,2\n2,3\n", "bic", "'a' appears more than once"),
        ('a,b\n1,2\n"2,3\n', "bic", "can't be read as a CSV table"),
        ("a,b\n1,x\n2,y\n4,x\n", "bge", "needs numbers; column 'b' holds text such as 'x'"),
        ("a,b\n0.5,1.5\n1.5,0.25\n0.25,0.5\n", "k2", "'a', 'b' are continuous"),
    ],
    ids=["empty", "missing", "constant", "twice", "quote", "text under bge", "numbers under k2"],
)
@pytest.mark.parametrize("method", ["k2", "pc"])
def test_bad_data_are_refused_before_anything_is_written(method, text, score, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    arguments = [tmp_path / "data.csv", "--out", tmp_path / "out", "--method", method, "--score", score]
    check_refused(capsys, tmp_path, arguments, expected)


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--order", "", "the file must hold a table; it is empty"),
        ("--order", "a,b\nc\n", "every line must have as many fields as the first"),
        ("--order", "a\nb\nq\n", "every name must be one of the variables; 'q' is not"),
        ("--tiers", "a,1\nb,2\nc,late\n", "a tier must be a number; received 'late'"),
        ("--required", "cause,effect\na,q\n", "every name must be one of the variables; 'q' is not"),
        ("--forbidden", "x,y,z\na,b,c\n", "a file of edges needs the columns cause and effect"),
    ],
)
def test_broken_files_are_refused_before_anything_is_written(option, text, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(LINEAR, encoding="utf-8")
    (tmp_path / "extra.csv").write_text(text, encoding="utf-8")
    arguments = [tmp_path / "data.csv", "--out", tmp_path / "out", "--method", "k2", option, tmp_path / "extra.csv"]
    check_refused(capsys, tmp_path, arguments, f"error: {option} {tmp_path / 'extra.csv'}: {expected}")


@pytest.mark.parametrize("name", ["edges.csv", "estimate.json"])
def test_nothing_is_overwritten(name, tmp_path, capsys):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    check_refused(capsys, tmp_path, [ASIA, "--method", "k2", "--out", tmp_path], f"{name}' exists: choose another")
    (tmp_path / name).unlink()
    arguments = [ASIA, "--method", "k2", "--max-parents", 1, "--out", tmp_path]
    assert call(capsys, "estimate", *arguments, "-q")[0] == 0
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    check_refused(capsys, tmp_path, arguments, "nothing is overwritten")


def test_out_must_be_a_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    check_refused(capsys, tmp_path, [ASIA, "--method", "k2", "--out", tmp_path / "file"], "--out must be a folder")
    check_refused(capsys, tmp_path, [ASIA, "--method", "k2", "--out", tmp_path / "file" / "x"], "above it is a file")
    check_refused(capsys, tmp_path, [tmp_path / "no.csv", "--method", "k2", "--out", tmp_path / "o"], "must exist")


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(tmp_path, capsys, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: not mode & os.W_OK and access(path, mode, **more))
    check_refused(capsys, tmp_path, [ASIA, "--method", "k2", "--out", tmp_path / "o"], "a folder to write in")


def test_method_and_out_are_needed(tmp_path, capsys):
    for arguments, missing in (([ASIA, "--out", tmp_path], "--method"), ([ASIA, "--method", "k2"], "--out")):
        code, _, messages = call(capsys, "estimate", *arguments)
        assert code == 2 and missing in messages


# Interruptions, and learners to come


class _Stub(GraphEstimator):
    """A learner with coefficients for weights, which Ctrl-C may end."""

    def __init__(self, when: str = "never") -> None:
        self.when = when

    def fit(self, X, y=None):  # noqa: N803
        if self.when == "before":
            raise KeyboardInterrupt
        self.interrupted_ = self.when == "after"
        self.weights_ = np.array([[0, -2.0, 0], [0, 0, 0.5], [0, 0, 0]])
        self._keep_graph(self.weights_ != 0, X.names, None)
        return self


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "stub", "Stub")
    monkeypatch.setattr(gpn.estimators, "Stub", _Stub, raising=False)


def test_an_interrupted_search_keeps_its_best_graph(stub, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(LINEAR, encoding="utf-8")
    arguments = ("estimate", tmp_path / "data.csv", "--method", "stub", "--out", tmp_path / "o", "--set")
    code, shown, messages = call(capsys, *arguments, "when=before")
    assert code == 130 and shown == "" and "nothing was written" in messages and not (tmp_path / "o").exists()
    code, _, messages = call(capsys, *arguments, "when=after")
    assert code == 130 and messages == "interrupted; this is the best graph found so far\n"
    edges, identity = read_estimate(tmp_path / "o")
    assert len(edges) == 2 and identity["interrupted"]


def test_coefficients_are_no_evidence(stub, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(LINEAR, encoding="utf-8")
    arguments = ("estimate", tmp_path / "data.csv", "--method", "stub", "--out", tmp_path / "o", "--score", "bge")
    code, shown, messages = call(capsys, *arguments)
    # The strongest comes first, whatever its sign; and a learner that keeps no data can't be scored.
    assert code == 0 and re.search(r"weight\n.*\na -> b +-2\.000 *\nb -> c +0\.500 *\n\n2 edges, ", shown)
    assert messages.startswith("warning: _Stub keeps no data")


def test_learners_are_those_of_the_package():
    for method in methods.METHODS:
        assert isinstance(methods.find_method(method)(), BaseEstimator)


def test_edges_that_differ_by_rounding_are_sorted_by_name():
    learner = _Stub()
    learner.weights_ = np.array([[0, 1.0, 1.0 + 1e-9], [0, 0, 0], [0, 2.0, 0]])
    learner._keep_graph(learner.weights_ != 0, ["b", "a", "c"], None)
    assert edge_table(learner)[["parent", "child"]].to_numpy().tolist() == [["c", "a"], ["b", "a"], ["b", "c"]]
