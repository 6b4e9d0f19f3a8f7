"""The machinery of tests/benchmarks/field: measures by hand-made cases, the runner, and the page made from a CSV."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics
from tests.benchmarks.field import page, programs, run
from tests.benchmarks.field.data import problem
from tests.benchmarks.field.measures import (
    as_chances,
    as_table,
    as_text,
    calibration_error,
    counts_by_class,
    expected_shd,
    measured,
)
from tests.running import ROOT

pytestmark = pytest.mark.more("measures other programs, and the papers' figures")

# 0 -> 1 <- 2, and 3 apart.
TRUTH = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
MEASURING = ROOT / "tests" / "benchmarks" / "field" / "measuring.py"

SMALL = ["--families", "linear", "--sizes", "4", "--rows", "60", "--networks", "2"]


def graph(*edges):
    found = np.zeros((4, 4), dtype=int)
    for i, j in edges:
        found[i, j] = 1
    return found


@pytest.mark.parametrize(
    ("edges", "distance"),
    [
        ([(0, 1), (2, 1)], 0),
        ([], 2),
        ([(0, 1)], 1),
        ([(1, 0), (2, 1)], 1),
        ([(0, 1), (1, 0), (2, 1)], 0.5),
        ([(0, 1), (2, 1), (0, 3)], 1),
        # An edge that isn't there counts once, directed or not.
        ([(0, 1), (2, 1), (0, 3), (3, 0)], 1),
        ([(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)], 2),
    ],
)
def test_expected_shd_of_graphs(edges, distance):
    assert expected_shd(as_chances(graph(*edges)), TRUTH) == distance


def test_expected_shd_of_a_posterior_is_the_mean_over_its_dags():
    dags = graphs.enumerate_dags(4)
    weights = np.random.default_rng(1).dirichlet(np.full(len(dags), 0.1))
    chances = np.einsum("g,gij->ij", weights, dags)
    assert expected_shd(chances, TRUTH) == pytest.approx(weights @ metrics.shd_draws(dags, TRUTH), abs=1e-12)


def test_certain_and_right_is_best():
    found = measured(TRUTH.astype(float), TRUTH)
    assert (found["eshd"], found["auroc"], found["auprc"], found["brier"]) == (0, 1, 1, 0)
    wrong = measured(TRUTH.T.astype(float), TRUTH)
    assert wrong["eshd"] == 2
    assert wrong["auroc"] < 0.5
    assert wrong["brier"] == pytest.approx(4 / 12)


def test_calibration_of_probabilities_that_are_frequencies():
    """Edges drawn with the probabilities themselves are calibrated; with other ones they aren't."""
    rng = np.random.default_rng(1)
    chances = rng.uniform(0, 1, (200, 200))
    drawn = rng.random((200, 200)) < chances
    # The error of a class is about sqrt(p (1 - p) / count), of six classes together below 0.01.
    assert calibration_error(counts_by_class(chances, drawn)) < 0.01
    assert calibration_error(counts_by_class(np.sqrt(chances), drawn)) > 0.1
    assert counts_by_class(chances, drawn)[:, 0].sum() == 200 * 199


def test_counts_are_read_as_they_were_written():
    counts = counts_by_class(as_chances(graph((0, 1), (1, 0), (2, 1))), TRUTH)
    assert as_text(counts) == "9:0:0;;2:1:1;;;1:1:1"
    np.testing.assert_array_equal(as_table(as_text(counts)), counts)


def test_effects_and_scales_of_linear_data():
    data = problem("linear", 5, 5000, 1)
    np.testing.assert_allclose(data.table.std(), 1)
    assert len(data.held_out) == 200
    assert (data.effects[~(graphs.ancestors(data.truth).astype(bool))] == 0).all()
    # A root's effect is its regression coefficient; with 5,000 rows to within a few standard errors of 0.014 or less.
    root = next(i for i in range(5) if not data.truth[:, i].any() and data.truth[i].any())
    slopes = data.table.corr().to_numpy()[root]
    others = np.arange(5) != root
    np.testing.assert_allclose(slopes[others], data.effects[root, others], atol=0.06)


@pytest.mark.parametrize("family", ["linear", "fourier", "mlp", "gp", "linear-sf", "fourier-sf"])
def test_data_depend_on_the_arguments_alone(family):
    first, again, other = (problem(family, 6, 50, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.table, again.table)
    assert not np.array_equal(first.table, other.table)
    np.testing.assert_array_equal(first.truth, problem(family, 6, 80, 1).truth)
    assert graphs.is_acyclic(first.truth)
    assert (first.effects is not None) == family.startswith("linear")


def test_sachs_is_a_subset_of_the_cells():
    data = problem("sachs", 11, 100, 1)
    assert data.table.shape == (100, 11)
    assert data.truth.sum() == 17
    with pytest.raises(ValueError, match="853 rows"):
        problem("sachs", 11, 900, 1)


def test_sizes_that_a_family_lacks_are_refused_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run.main(["--families", "linear", "sachs", "--sizes", "10", "--results", str(tmp_path / "field.csv")])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("the Sachs data have 11 variables and 853 rows; received 10, 100")


def usage(folder, limit, code):
    """Return what the launcher says of a small program."""
    file = folder / "usage.json"
    subprocess.run(
        [sys.executable, str(MEASURING), str(file), str(limit), sys.executable, "-S", "-c", code], check=False
    )
    return json.loads(file.read_text())


def test_memory_and_time_are_those_of_the_program(tmp_path):
    small = usage(tmp_path, 60, "pass")
    large = usage(tmp_path, 60, "held = b'x' * (200 << 20)")
    # This process, with all its libraries, holds more than either: nothing of it is counted.
    assert small["memory"] < 40
    assert 200 < large["memory"] < 260
    assert not small["stopped"]
    busy = usage(tmp_path, 60, "import time\nwhile time.process_time() < 0.5: pass")
    assert 0.5 <= busy["cpu"] < 2
    assert usage(tmp_path, 60, "raise SystemExit(3)")["code"] == 3


def test_the_limit_is_of_cpu_time(tmp_path):
    stopped = usage(tmp_path, 1, "while True: pass")
    assert stopped["stopped"]
    assert stopped["cpu"] < 4


FAKE = """
import json, sys
request = json.load(sys.stdin)
with open(request["data"]) as file:
    n = len(file.readline().split(","))
if request["fail"]:
    raise SystemExit("no answer today")
while request["hang"]:
    pass
json.dump({"cpdag": [[0] * n for _ in range(n)], "cpu_seconds": 0.25, "version": "7"}, sys.stdout)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put a program among the others that finds no edges, fails, or never ends."""
    (tmp_path / "fake_worker.py").write_text(FAKE)
    own = {"fail": False, "hang": False}
    program = programs.Program(
        "Nothing",
        programs.OURS,
        str(tmp_path / "fake_worker.py"),
        lambda n, linear: own,
        programs._graph,
        "finds nothing",
    )
    monkeypatch.setitem(programs.PROGRAMS, "fake", program)
    return own


def test_bootstrapped_pc_answers_with_frequencies(tmp_path):
    path = tmp_path / "field.csv"
    assert small_run(path, "--programs", "gpn-pc-boot", "--networks", "1") == 0
    ((unit, row),) = run.read(path).items()
    data = problem(unit.family, unit.n, unit.rows, unit.seed)
    found = gpn.bootstrap(gpn.estimators.PC(), data.table, n=200, random_seed=1, progressbar=False)
    assert float(row["eshd"]) == pytest.approx(
        expected_shd(found.edge_probabilities().to_numpy(), data.truth), rel=1e-3
    )


def small_run(path, *more):
    return run.main([*SMALL, "--results", str(path), *more])


def test_a_run_with_ours_and_another_and_its_page(tmp_path, fake, capsys):
    path = tmp_path / "field.csv"
    assert small_run(path, "--programs", "gpn-bge", "fake") == 0
    rows = run.read(path)
    assert len(rows) == 4
    for unit, row in rows.items():
        data = problem(unit.family, unit.n, unit.rows, unit.seed)
        assert row["outcome"] == "ok"
        assert float(row["learning_cpu"]) > 0
        assert float(row["memory"]) > 5
        if unit.program == "fake":
            assert float(row["eshd"]) == data.truth.sum()
            assert (row["learning_cpu"], row["version"], row["effect_error"]) == ("0.25", "7", "")
        else:
            post = gpn.sample(data.table, "bge", prior="fair", random_seed=1, progressbar=False)
            assert float(row["eshd"]) == pytest.approx(post.expected_shd(data.truth).value, rel=1e-3)
            assert 0 < float(row["effect_error"]) < 0.5
            assert float(row["log_predictive"]) < 0
    # A second time there is nothing to do, and one network more is two units.
    before = path.read_text()
    assert small_run(path, "--programs", "gpn-bge", "fake") == 0
    assert path.read_text() == before
    assert "0 units run" in capsys.readouterr().err
    assert small_run(path, "--programs", "fake", "--networks", "3") == 0
    assert path.read_text().startswith(before)
    assert len(run.read(path)) == 5

    page.main(["--results", str(path), "--page", str(tmp_path / "field.md")])
    text = (tmp_path / "field.md").read_text()
    assert "## 4 variables, 60 rows" in text
    medians = page.load([path]).groupby("program")["eshd"].median()
    assert f"| Nothing | **{medians['fake']:.1f}** (3) |" in text
    assert f"| gpn_bayes, BGe | {medians['gpn-bge']:.1f} (2) |" in text
    assert f"gpn_bayes, BGe has {medians['gpn-bge']:.1f} on 2 of 3 networks, where Nothing has" in text
    assert "- Nothing (7): finds nothing." in text
    assert "sumu, Gadget and Beeps" in text.partition("## Not run")[2]
    assert "{tables}" not in text


@pytest.mark.parametrize("edges", [[[0, 1.01], [0, 0]], [[0, float("nan")], [0, 0]], [[0, 1]]])
def test_replies_are_checked(edges):
    rounded = run.probabilities(programs.PROGRAMS["gpn-bge"], {"edges": [[0, 1.0002], [-0.0002, 0]]}, 2)
    np.testing.assert_array_equal(rounded, [[0, 1], [0, 0]])
    with pytest.raises(run.Failure, match="a probability for each of 2 x 2 edges"):
        run.probabilities(programs.PROGRAMS["gpn-bge"], {"edges": edges}, 2)
    no_dag = {"runs": [{"mixture": None}]}
    with pytest.raises(run.Failure, match="no particle is acyclic"):
        run.probabilities(programs.PROGRAMS["dibs-bge"], no_dag, 2)


def test_failures_and_limits_are_kept(tmp_path, fake, capsys):
    path = tmp_path / "field.csv"
    fake["fail"] = True
    small_run(path, "--programs", "fake")
    assert [row["outcome"] for row in run.read(path).values()] == ["failed", "failed"]
    assert "no answer today" in capsys.readouterr().err
    fake["fail"] = False
    small_run(path, "--programs", "fake")
    assert "0 units run" in capsys.readouterr().err
    small_run(path, "--programs", "fake", "--retry")
    assert [row["outcome"] for row in run.read(path).values()] == ["ok", "ok"]

    fake["hang"] = True
    slow = tmp_path / "slow.csv"
    small_run(slow, "--programs", "fake", "--limit", "1", "--networks", "4")
    # Two came to the limit, so the others are left out.
    assert [row["outcome"] for row in run.read(slow).values()] == ["time limit"] * 2


def test_a_page_from_a_small_csv(tmp_path):
    """Ten networks where PC is always nearer, one where it comes to the limit, and a file that adds to another."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    classes = "10:0.2:0;0:0:0;0:0:0;0:0:0;0:0:0;2:2:1"
    size = {"n": 10, "rows": 100}
    for seed in range(1, 11):
        shared = size | {"seed": seed, "outcome": "ok", "reliability": classes, "auroc": 0.5, "machine": "arm64"}
        run.append(first, shared | {"program": "gpn-bge", "family": "linear", "eshd": seed + 0.5, "learning_cpu": 7.0})
        other = {"machine": "x86_64", "learning_cpu": 3.0}
        run.append(second, shared | {"program": "pc-fisherz", "family": "linear", "eshd": float(seed)} | other)
        run.append(second, shared | {"program": "gpn-bge", "family": "gp", "eshd": 2.0})
    run.append(second, size | {"program": "pc-fisherz", "family": "gp", "seed": 1, "outcome": "time limit"})
    # The last row of a unit counts.
    run.append(second, size | {"program": "gpn-bge", "family": "gp", "seed": 1, "outcome": "failed"})
    text = page.tables(page.load([first, second]))
    assert "causal-learn, PC, Fisher z (5.5) before gpn_bayes, BGe (6.0); nearer to the truth in 10 of 10" in text
    assert "| gpn_bayes, BGe | 6.0 | **2.0** (9) |" in text
    assert "on some of the networks" not in text
    assert "| causal-learn, PC, Fisher z | **5.5** | over the limit |" in text
    # |0.2 - 0| + |2 - 1| of 12 edges, in every network alike.
    assert "| gpn_bayes, BGe | **0.100** | **0.100** (9) |" in text
    assert "Root mean squared error" not in text
    # Times of another kind of machine than that of most are marked, and don't compete.
    assert text.split("### CPU seconds of learning")[1].split("##")[0].split() == (
        "| | linear | |---|---| | gpn_bayes, BGe | **7.0** | | causal-learn, PC, Fisher z | 3.0 † |".split()
    )


def test_the_overview_compares_on_the_networks_that_ours_ran_on(tmp_path):
    path = tmp_path / "field.csv"
    auroc = {"gpn-gp": 0.9, "gpn-bge": 0.7, "bidag": 0.8, "ges-bic": 0.95}
    for seed in (1, 2, 3):
        eshd = {"gpn-gp": 3.0, "gpn-bge": 6.0, "bidag": 1.0 + 2 * seed, "ges-bic": 5.0}
        # GP lacks the third network, and GES the second.
        for name in ("gpn-gp", "gpn-bge", "bidag", "ges-bic"):
            if (name, seed) not in {("gpn-gp", 3), ("ges-bic", 2)}:
                unit = {"program": name, "family": "gp", "n": 20, "rows": 100, "seed": seed, "outcome": "ok"}
                run.append(path, unit | {"eshd": eshd[name], "auroc": auroc[name]})
    run.append(path, {"program": "gpn-bge", "family": "linear", "n": 20, "rows": 100, "seed": 1, "outcome": "ok"})
    lines = page.overview(page.load([path])).splitlines()
    rival = "BiDAG, partition MCMC"
    assert lines[2:] == [
        f"| gp, 20 variables, 100 rows | 2 | **3.0** | 6.0 | 4.0 {rival} | **0.90** | 0.70 | 0.80 {rival} |"
    ]


def test_a_picture_where_programs_ran_on_some_networks(tmp_path):
    units = page.load([run.RESULTS])
    page.draw(units, tmp_path / "field.png")
    assert (tmp_path / "field.png").read_bytes().startswith(b"\x89PNG")
    page.draw(units[units["seed"] < 3], tmp_path / "few.png")
    assert not (tmp_path / "few.png").exists()


def test_programs_without_an_interpreter_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SUMU_PYTHON", raising=False)
    path = tmp_path / "field.csv"
    assert small_run(path, "--programs", "sumu") == 0
    assert "SUMU_PYTHON" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_the_runner_ends_the_worker_and_keeps_what_is_there(ending, tmp_path):
    """The runner is a process of its own here, to be ended while its program computes without end."""
    path, seen = tmp_path / "field.csv", tmp_path / "worker"
    worker = f"""
        import json, os, sys, time
        if os.path.exists({str(path)!r}):
            open({str(seen)!r}, "w").write(str(os.getpid()))
            time.sleep(600)
        json.dump({{"edges": [[0.5] * 4] * 4, "cpu_seconds": 0}}, sys.stdout)
    """
    (tmp_path / "worker.py").write_text(textwrap.dedent(worker))
    code = f"""
        from tests.benchmarks.field import programs, run
        program = programs.PROGRAMS["gpn-bge"]._replace(worker={str(tmp_path / "worker.py")!r})
        programs.PROGRAMS["gpn-bge"] = program
        raise SystemExit(run.main({[*SMALL, "--programs", "gpn-bge", "--results", str(path)]!r}))
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    runner = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        deadline = time.monotonic() + 120
        while not (seen.exists() and seen.read_text()) and time.monotonic() < deadline:
            time.sleep(0.1)
        runner.send_signal(ending)
        _, trouble = runner.communicate(timeout=60)
    finally:
        runner.kill()
    assert runner.returncode == 130
    assert "the same command goes on from here" in trouble
    assert len(run.read(path)) == 1
    ended = Path("/proc") / seen.read_text()
    assert not ended.exists() or "State:\tZ" in (ended / "status").read_text()


def test_the_page_in_the_guide_is_made_from_the_measures(tmp_path):
    page.main(["--page", str(tmp_path / "field.md")])
    assert (tmp_path / "field.md").read_text() == page.PAGE.read_text()
