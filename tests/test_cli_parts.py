"""The parts of the command line: reading questions and files, errors of differences, what is written."""

import io
import logging
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import typer

import gpn_bayes as gpn
import gpn_bayes.cli
from gpn_bayes import scores
from gpn_bayes.cli import federate, screen
from gpn_bayes.cli.compare import difference_table, expected_distance
from gpn_bayes.cli.folder import edges_csv
from gpn_bayes.cli.inputs import read_pairs, read_prior, read_tiers
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.questions import Question, read_question
from gpn_bayes.scores.recorded import as_setting

pytestmark = pytest.mark.more("reads files that are messy in every way")

NAMES = ["TNF-α", "IL 6", "erk", "akt", "mek", "p-38"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("erk -> akt", Question("->", ("erk", "akt"))),
        ("erk->akt", Question("->", ("erk", "akt"))),
        ("erk~>akt", Question("~>", ("erk", "akt"))),
        ("  TNF-α  ~>  IL 6 ", Question("~>", ("TNF-α", "IL 6"))),
        ("TNF-α - p-38", Question("-", ("TNF-α", "p-38"))),
        ("TNF-α-p-38", Question("-", ("TNF-α", "p-38"))),
        ("TNF-α->p-38", Question("->", ("TNF-α", "p-38"))),
        ("mek < erk < akt", Question("<", ("mek", "erk", "akt"))),
        ("mek<erk", Question("<", ("mek", "erk"))),
        ("a -> b -> c", Question("->", ("a -> b", "c"))),
        ("erk → akt", Question("->", ("erk", "akt"))),
        ("x→y -> c", Question("->", ("x→y", "c"))),
    ],
)
def test_questions_are_read(text, expected):
    assert read_question(text, [*NAMES, "a -> b", "c", "x→y"]) == expected


def test_a_question_of_two_meanings_is_refused():
    with pytest.raises(ValueError, match="one meaning"):
        read_question("a-b-c", ["a", "b-c", "a-b", "c"])


def test_joint_errors():
    """An edge always drawn counts with one over its effective draws; where chains disagree none is known."""
    rng = np.random.default_rng(1)
    dags = np.zeros((2, 400, 3, 3), np.int8)
    dags[..., 0, 1] = 1
    dags[0, :, 0, 2] = 1  # one chain always, the other never
    dags[..., 1, 2] = rng.random((2, 400)) < 0.3
    post = GraphPosterior(("a", "b", "c"), gpn.graphs.pack(dags), rng.normal(size=(2, 400)))
    table = difference_table(post, post).set_index("edge")
    assert (table["difference"] == 0).all()
    sampled = post.edge_probability("b", "c")
    assert table.loc["b -> c", "mcse"] == pytest.approx(np.sqrt(2) * sampled.mcse)
    always = post.edge_probability("a", "b")
    assert table.loc["a -> b", "mcse"] == pytest.approx(np.sqrt(2) / always.ess)
    assert np.isnan(table.loc["a -> c", "mcse"])


def test_expected_distance_is_the_mean_over_pairs_of_draws():
    stacks = np.array(
        [nx.to_numpy_array(gpn.simulate.random_dag(5, p=0.4, random_seed=seed)) for seed in range(24)], int
    ).reshape(2, 12, 5, 5)
    mean = np.mean([gpn.metrics.shd(a, b) for a in stacks[0] for b in stacks[1]])
    assert expected_distance(stacks[0].mean(axis=0), stacks[1].mean(axis=0)) == pytest.approx(mean)


def test_files_of_pairs_without_a_header(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("erk, akt\nmek, erk\n", encoding="utf-8")
    assert read_pairs(path, NAMES, "--required") == [("erk", "akt"), ("mek", "erk")]
    path.write_text("from,to\nerk,akt\n", encoding="utf-8-sig")
    assert read_pairs(path, NAMES, "--required") == [("erk", "akt")]
    path.write_text("erk,1\nakt,2.5\n", encoding="utf-8")
    assert read_tiers(path, ["erk", "akt"]) == {"erk": 1, "akt": 2.5}


def test_both_shapes_of_prior_say_the_same(tmp_path):
    listed, square = tmp_path / "list.csv", tmp_path / "square.csv"
    listed.write_text("parent,child,probability\na,b,0.9\n", encoding="utf-8")
    square.write_text(",b,a\na,0.9,\nb,,0.5\n", encoding="utf-8")
    priors = [gpn.scores.GraphPrior.read(read_prior(str(f), ["a", "b"]), ["a", "b"], (), (), None)
              for f in (listed, square)]  # fmt: skip
    assert priors[0].parameters == priors[1].parameters
    assert priors[0].parameters["log_odds"] == [[0, pytest.approx(np.log(9))], [0, 0]]


def test_edges_are_written_in_one_fixed_way():
    summary = pd.DataFrame(
        {
            "edge": ["x", "y", "z"],
            "parent": ["b", "a", "c"],
            "child": ["a", "b", "a"],
            "probability": [0.3 + 1e-12, 0.3, 1.0],
            "mcse": [np.nan, 0.0123456789, 0.0],
            "ess": [4000.04, 1.26, np.inf],
            "r_hat": [np.nan, 1.00004, np.nan],
            "status": ["always", "sampled", "exact"],
        }
    )
    assert edges_csv(summary).splitlines()[1:] == [
        "c,a,1.000000,0.000000,inf,,exact",
        "a,b,0.300000,0.012346,1.3,1.0000,sampled",
        "b,a,0.300000,,4000.0,,always",
    ]


def test_bars_and_errors_without_unicode(monkeypatch):
    out = screen.console()
    assert screen.bar(0.5, out) == "█" * 10
    monkeypatch.setattr(type(out), "encoding", "ascii")
    assert screen.bar(0.5, out) == "#" * 10 and screen.error_heading(out) == "+/-"


# The edges on screen


def shown_edges(probabilities: list[float], capsys, monkeypatch) -> list[list[str]]:
    """Return the rows of the table of a posterior whose edges have such probabilities, split at wide gaps."""
    monkeypatch.setenv("COLUMNS", "80")
    n = next(n for n in range(2, 99) if n * (n - 1) // 2 >= len(probabilities))
    dags = np.zeros((1, 1000, n, n), np.int8)
    for (i, j), p in zip(zip(*np.triu_indices(n, 1), strict=True), probabilities, strict=False):
        dags[0, : round(1000 * p), i, j] = 1
    names = tuple(f"v{i}" for i in range(n))
    settings = {"score": as_setting(scores.BGe()), "sampler": "partition", "reweight": None}
    log_score = np.random.default_rng(1).normal(size=(1, 1000))
    screen.show_run(GraphPosterior(names, gpn.graphs.pack(dags), log_score, settings=settings), rows=50)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    table = lines[lines.index(next(line for line in lines if line.startswith("──"))) + 1 :]
    return [re.split(r" {2,}", line.strip()) for line in table[: table.index("")]]


def test_uncertain_edges_are_shown_however_many_are_certain(capsys, monkeypatch):
    uncertain = [0.9, 0.6, 0.5, 0.4, 0.1]
    rows = shown_edges([1.0] * 40 + uncertain + [0.04] * 10, capsys, monkeypatch)
    assert [row[1] for row in rows[:10]] == ["1.000"] * 10
    assert rows[10][:2] == ["30 more", "1.000"]
    assert [float(row[1]) for row in rows[11:16]] == uncertain
    assert rows[16][0].endswith(" more") and rows[16][1] == "up to 0.040" and len(rows) == 17
    total = 10 + 30 + 5 + int(rows[16][0].split()[0])
    assert total == 11 * 10, "every edge is shown or counted"


def test_certain_edges_are_shown_however_many_are_uncertain(capsys, monkeypatch):
    uncertain = [0.94 - 0.01 * k for k in range(60)]
    rows = shown_edges([0.99] * 8 + uncertain, capsys, monkeypatch)
    assert [row[1] for row in rows[:5]] == ["0.990"] * 5 and rows[5][:2] == ["3 more", "0.990"]
    assert [float(row[1]) for row in rows[6:16]] == pytest.approx(uncertain[:10])
    assert rows[16][:2] == ["50 more", "0.350 to 0.840"] and rows[17][1] == "0.000" and len(rows) == 18


def test_few_edges_are_all_shown(capsys, monkeypatch):
    rows = shown_edges([1.0, 0.97, 0.5, 0.3, 0.06], capsys, monkeypatch)
    assert [row[1] for row in rows] == ["1.000", "0.970", "0.500", "0.300", "0.060", "0.000"]
    assert rows[-1][0] == "7 more"


def test_the_most_probable_of_unlikely_edges_are_shown(capsys, monkeypatch):
    rows = shown_edges([0.04, 0.03, 0.02, 0.005, 0.004], capsys, monkeypatch)
    assert [row[1] for row in rows] == ["0.040", "0.030", "0.020", "up to 0.005"]


def test_undirected_edges_of_a_file_are_read_both_ways(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("parent,child,type\nerk,akt,directed\nmek,erk,undirected\n", encoding="utf-8")
    for option in ("--candidates", "--forbidden"):
        assert read_pairs(path, NAMES, option) == [("erk", "akt"), ("mek", "erk"), ("erk", "mek")]
    with pytest.raises(ValueError, match=f"^--required {path}: a required edge must have a direction; mek - erk is"):
        read_pairs(path, NAMES, "--required")


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-log10(p)", "@SUM(A1)", "\t=1"])
def test_names_in_csv_files_are_no_formulas(name):
    summary = pd.DataFrame(
        {"edge": "", "parent": [name], "child": ["erk"], "probability": 0.5, "mcse": 0.0, "ess": np.inf}
        | {"r_hat": np.nan, "status": "exact"}
    )
    written = pd.read_csv(io.StringIO(edges_csv(summary)))
    assert written.loc[0, "parent"] == f"'{name}" and written.loc[0, "child"] == "erk"


def test_messages_are_broken_between_words_in_a_terminal_and_nowhere_else(capsys, monkeypatch):
    text = "grade: only the whole numbers 1, 2 and 3, read as amounts. " * 3 + "kinds=" + "x" * 100
    screen.tell("note", text)
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr(screen, "_terminal_width", lambda: 80)
    screen.tell("note", text)
    screen.note(text)
    screen.tell("error", f"two problems:\n  {text}\n  short")
    lines = capsys.readouterr().err.splitlines()
    assert all(len(line) <= 80 or line.split() == [text.split()[-1]] for line in lines)
    assert sum("short" in line for line in lines) == 1
    # No word is in two lines.
    assert {word for line in lines for word in line.split()} == set(f"note: error: two problems: {text} short".split())


def test_nothing_that_is_printed_moves_the_cursor(capsys):
    hostile = "erk\x1b[2J\x9b1A\r\u202e\x07"
    screen.tell("error", f"a column must be known; received {hostile}")
    screen.note(f"run {hostile} is over")
    out = screen.console()
    out.print(hostile)
    table = screen.plain_table()
    table.add_column(hostile)
    table.add_row(hostile)
    out.print(table)
    shown = "".join(capsys.readouterr())
    assert shown.count("erk?[2J?1A") == 5
    assert all(c.isprintable() or c == "\n" for c in shown)


def test_a_log_line_is_one_line():
    run = "r1\n2026-01-01 INFO all is well\x1b[1A"
    record = logging.LogRecord("gpn_bayes", logging.INFO, "", 0, "joined run %s", (run,), None)
    assert federate._PlainLines("%(message)s").format(record) == "joined run r1 2026-01-01 INFO all is well?[1A"


def test_the_help_names_every_score():
    command = typer.main.get_command(gpn_bayes.cli.app).commands["run"]
    (text,) = [parameter.help for parameter in command.params if parameter.name == "score"]
    assert {name for name in scores.names() if re.search(rf"\b{name}\b", text)} == set(scores.names())
