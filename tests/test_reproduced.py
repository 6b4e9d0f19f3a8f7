"""The machinery of tests/benchmarks/reproduced: the runner, what is published, and the page made from a CSV."""

import csv
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.benchmarks.reproduced import page, run
from tests.benchmarks.reproduced.experiments import EXPERIMENTS, Experiment
from tests.benchmarks.reproduced.published import COLUMNS, READINGS, read_published
from tests.benchmarks.test_paper_figure1 import GRIDS, PRIORS, TRUTHS
from tests.running import ROOT

pytestmark = pytest.mark.more("measures other programs, and the papers' figures")


def tiny(calls):
    """Return an experiment that writes down its calls; one of its settings isn't random, and one fails."""

    def measure(value, seed, folder):
        with calls.open("a") as file:
            file.write(f"{value} {seed} {folder.is_dir()} {os.getpid()}\n")
        if value == 3:
            raise ValueError("no answer today")
        return {"twice": 2 * value + seed, "erk -> akt": 0.5}

    return Experiment({"one": 1, "two": 2, "three": 3}, (5, 6), measure, once=["two"])


def tiny_run(tmp_path, *options):
    experiments = {"tiny": tiny(tmp_path / "calls")}
    return run.main(["--results", str(tmp_path / "own" / "reproduced.csv"), *options], experiments)


def calls(tmp_path):
    return [line.split()[:2] for line in (tmp_path / "calls").read_text().splitlines()]


def test_units_are_kept_and_run_once(tmp_path, capsys):
    path = tmp_path / "own" / "reproduced.csv"
    assert tiny_run(tmp_path) == 1
    assert calls(tmp_path) == [["1", "5"], ["2", "5"], ["3", "5"], ["1", "6"], ["3", "6"]]
    assert "no answer today" in capsys.readouterr().err
    rows = run.read(path)
    assert list(rows) == [("tiny", "one", 5), ("tiny", "two", 5), ("tiny", "one", 6)]
    assert run.unpacked(rows[("tiny", "one", 6)]["measures"]) == {"twice": 8.0, "erk -> akt": 0.5}
    assert all(float(row["cpu"]) >= 0 for row in rows.values())
    # What failed is tried again, what is there is not.
    before = path.read_text()
    assert tiny_run(tmp_path) == 1
    assert path.read_text() == before
    assert calls(tmp_path)[5:] == [["3", "5"], ["3", "6"]]
    # Lost rows are measured again, and nothing else.
    path.write_text("".join(line for line in before.splitlines(keepends=True) if ",two," not in line))
    tiny_run(tmp_path)
    assert calls(tmp_path)[7:] == [["2", "5"], ["3", "5"], ["3", "6"]]
    # All units of a run share a process, which isn't this one.
    lines = (tmp_path / "calls").read_text().splitlines()
    assert {line.split()[2] for line in lines} == {"True"}
    assert len({line.split()[3] for line in lines[:5]}) == 1
    assert lines[0].split()[3] != str(os.getpid())


def test_the_first_seeds_of_all_experiments_come_first(tmp_path):
    experiments = {"a": tiny(tmp_path)._replace(settings={"one": 1}), "b": tiny(tmp_path)._replace(seeds=(7,))}
    order = [(unit.experiment, unit.setting, unit.seed) for unit in run.units(experiments, ["a", "b"])]
    assert order == [("a", "one", 5), ("b", "one", 7), ("b", "two", 7), ("b", "three", 7), ("a", "one", 6)]


def test_nothing_begins_after_the_time(tmp_path, capsys):
    assert tiny_run(tmp_path, "--minutes", "0") == 0
    assert "0 units run, 0 failed" in capsys.readouterr().err
    assert not (tmp_path / "calls").exists()


def test_a_process_that_dies_costs_one_unit(tmp_path, capsys):
    def measure(value, seed, folder):
        if value:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"seed": seed}

    experiments = {"fragile": Experiment({"dies": True, "lives": False}, (1, 2), measure)}
    path = tmp_path / "reproduced.csv"
    assert run.main(["--results", str(path)], experiments) == 1
    assert [unit.setting for unit in run.read(path)] == ["lives", "lives"]
    assert "2 units run, 2 failed" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_the_runner_ends_the_worker_and_keeps_what_is_there(ending, tmp_path):
    """The runner is a process of its own here, to be ended while a learner works that takes Ctrl-C for its own."""
    path, seen = tmp_path / "reproduced.csv", tmp_path / "worker"
    code = f"""
        import os, time
        from pathlib import Path
        from tests.benchmarks.reproduced import run
        from tests.benchmarks.reproduced.experiments import Experiment

        def measure(value, seed, folder):
            if seed == 2:
                Path({str(seen)!r}).write_text(str(os.getpid()))
                try:
                    time.sleep(600)
                except KeyboardInterrupt:
                    pass
            return {{"value": value}}

        experiments = {{"slow": Experiment({{"one": 1}}, (1, 2, 3), measure)}}
        raise SystemExit(run.main(["--results", {str(path)!r}], experiments))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    runner = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (seen.exists() and seen.read_text()) and time.monotonic() < deadline:
            time.sleep(0.1)
        # As the terminal does: to the whole group.
        os.killpg(runner.pid, ending)
        _, trouble = runner.communicate(timeout=60)
    finally:
        runner.kill()
    assert runner.returncode == 130
    assert "the same command goes on from here" in trouble
    assert list(run.read(path)) == [("slow", "one", 1)]
    ended = Path("/proc") / seen.read_text()
    assert not ended.exists() or "State:\tZ" in (ended / "status").read_text()


def test_the_committed_measures_are_of_known_units():
    with run.RESULTS.open(newline="", encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == run.COLUMNS
    known = set(run.units(EXPERIMENTS, EXPERIMENTS))
    rows = run.read(run.RESULTS)
    assert rows
    assert set(rows) <= known
    assert all(run.unpacked(row["measures"]) for row in rows.values())
    assert run.RESULTS.stat().st_size < 100_000


def test_published_figures_have_a_source_and_a_counterpart():
    table = read_published()
    assert tuple(table.columns) == COLUMNS
    assert set(table["experiment"]) == set(EXPERIMENTS)
    assert set(table["read"]) <= set(READINGS)
    assert (table["paper"] != "").all() and (table["place"] != "").all()
    # A number is a printed one, and nothing else has one.
    assert ((table["read"] == "printed") == table["value"].notna()).all()
    for row in table[table["setting"] != ""].itertuples():
        assert row.setting in EXPERIMENTS[row.experiment].settings


def test_the_page_says_what_is_not_measured(tmp_path):
    path = tmp_path / "reproduced.csv"
    answers = {"SHD": 16.0, "TP": 5.0, "FP": 4.0, "erk -> akt": 1.0, "no erk -> pka": 0.5, "error of SHD": 0.25}
    run.append(path, run.Unit("gpn-table1", "GP, partition", 1), 100.0, answers)
    for seed, shd in enumerate((1.0, 3.0)):
        run.append(path, run.Unit("admm-original", "d = 10, 2 clients", seed), 1.0, {"SHD": shd, "SHD original": 2.0})
    text = page.built(path)
    assert "| GP, partition | E-SHD | 14.5 | 16.00 ± 0.25 |" in text
    assert "| GP, partition | TP | 7.2 | 5.00 |" in text
    assert "| BGe, order | E-SHD | 15.3 | not measured yet |" in text
    assert "Measured so far: 1 of 9 runs." in text
    # The mean of 1 and 3, with the standard error of two.
    assert re.search(r"\| d = 10, 2 clients \| 2\.0 ± 0\.0 \| 2\.0 ± 1\.0 \|.* 2 of 10 \|", text)
    assert re.search(r"figure 1 \(a plot, .*\)\.\n\nOurs: not measured yet\.", text)
    assert not re.search(r"\{[a-z]", text)


def test_figure_1_is_compared_at_each_scores_best_and_alike(tmp_path):
    """Two networks with made-up distances: BGe is best at one of its sample sizes, the process at odds of 1/10."""
    path = tmp_path / "reproduced.csv"
    settings = [("GP", prior) for prior in PRIORS] + [("BGe", name) for name in (*PRIORS, *GRIDS["BGe"])]
    best = {("GP", "odds 1/10"): 5.0, ("BGe", "alpha_mu 0.1"): 8.0}
    for seed in (0, 1):
        distances = {f"{m}|{s}|{truth}": best.get((m, s), 10.0) + seed for m, s in settings for truth in TRUTHS}
        run.append(path, run.Unit("gpn-figure1", "lambda 1", seed), 1.0, distances)
    run.append(path, run.Unit("gpn-figure1", "lambda 0", 0), 1.0, distances)
    text = page.section(page.load(path), "gpn-figure1")
    # Distances 5 and 6 against 8 and 9: means with an error of 0.5, and the same gap in both networks.
    line = "| 1 | {} | 5.5 ± 0.5 | {} | {} | 5.5 ± 0.5 | {} | {} | 2 |"
    assert line.format("odds 1/10; alpha_mu 0.1", *["8.5 ± 0.5", "-3.0 ± 0.0"] * 2) in text
    assert line.format("odds 1/10", *["10.5 ± 0.5", "-5.0 ± 0.0"] * 2) in text
    assert "\n| 0 |" not in text
    assert "Measured so far: 3 of 60 runs." in text


def test_learners_are_compared_with_the_best_score(tmp_path):
    path = tmp_path / "reproduced.csv"
    for seed, bic in ((1, -103.0), (2, -105.0)):
        run.append(path, run.Unit("rbnets", "asia, RBNets", seed), 1.0, {"BIC": bic, "CPU s": 2.0})
    run.append(path, run.Unit("rbnets", "asia, Exact", 1), 1.0, {"BIC": -100.0, "CPU s": 0.5, "proved": True})
    text = page.section(page.load(path), "rbnets")
    assert "| RBNets | 4.0 ± 1.0; 2.0 s (2) | not measured yet |" in text
    assert "| Exact | 0.0, proved; 0.5 s (1) | not measured yet |" in text


def test_divergences_and_excesses(tmp_path):
    path = tmp_path / "reproduced.csv"
    kinds = ("weighted", "laplace", "direct", "bge")
    for seed, value in enumerate((0.1, 0.3)):
        found = {f"{kind}|{count}": value for kind in kinds for count in (100, 1600)}
        run.append(path, run.Unit("gpn-figure3", "four nodes", seed), 1.0, found)
        excesses = {"excess, search over orders": -1e-16, "excess, augmented Lagrangian": value}
        run.append(path, run.Unit("notears-minimum", "ER2, n = 20, lambda 0", seed), 1.0, {"least": 4.0, **excesses})
    figures = page.load(path)
    assert f"| 1,600 |{' 0.2000 ± 0.1000 |' * 4}" in page.section(figures, "gpn-figure3")
    assert "Means over 2 data sets." in page.section(figures, "gpn-figure3")
    text = page.section(figures, "notears-minimum")
    assert "| ER2, n = 20, lambda 0 | 4.00 ± 0.00 | 0.00%, 0.00% | 20.00%, 30.00% | 2 |" in text
    assert "| SF4, n = 20, lambda 0 | not measured yet |" in text


def test_every_experiment_has_its_place_on_the_page():
    text = page.TEXT.read_text(encoding="utf-8")
    assert sorted(re.findall(r"\{([a-z0-9-]+)\}", text)) == sorted(EXPERIMENTS) == sorted(page.TABLES)
    assert set(re.findall(r"\{from ([^}]*)\}", text)) <= set(EXPERIMENTS)


def test_conclusions_wait_for_the_figures(tmp_path):
    path = tmp_path / "reproduced.csv"
    text = "First.\n\n{from admm-reference}\nBoth find the same.\n\nLast.\n"
    for place, setting in enumerate(EXPERIMENTS["admm-reference"].settings):
        assert page.concluded(page.load(path), text) == "First.\n\nLast.\n", place
        run.append(path, run.Unit("admm-reference", setting, 0), 1.0, {"SHD": 2.0})
    assert page.concluded(page.load(path), text) == "First.\n\nBoth find the same.\n\nLast.\n"


def test_the_page_in_the_guide_is_made_from_the_measures(tmp_path):
    page.main(["--page", str(tmp_path / "reproduced.md")])
    assert (tmp_path / "reproduced.md").read_text() == page.PAGE.read_text()
