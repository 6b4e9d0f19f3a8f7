"""The parts of the command line: reading questions and files, errors of differences, what is written."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.cli import screen
from gpn_bayes.cli.compare import difference_table, expected_distance
from gpn_bayes.cli.folder import edges_csv
from gpn_bayes.cli.inputs import read_pairs, read_prior, read_tiers
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.questions import Question, read_question

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
    assert read_tiers(path, NAMES) == {"erk": 1, "akt": 2.5}


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
