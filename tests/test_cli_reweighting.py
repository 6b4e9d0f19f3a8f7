"""Weighted draws on the command line: the option, what is shown, and Ctrl-C while weighting."""

import signal
import time

import pytest

import gpn_bayes as gpn
from gpn_bayes.scores import registry
from tests.command_line import call, check_refused
from tests.draws import NULL, REFERENCE, quick, table
from tests.rough_scores import Noisy

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

DATA = REFERENCE / f"{NULL}.csv"
QUICK = ("--score", "noisy", "--draws", 100, "--quiet")


@pytest.fixture
def noisy(monkeypatch):
    """Make a score with errors and a proposal known by name."""

    def know(**settings):
        def noisy():
            return Noisy(error=0.1, **settings)

        monkeypatch.setitem(registry._registered, "noisy", noisy)

    know()
    return know


def test_weighted_and_direct_runs_are_those_of_sample(noisy, tmp_path, capsys):
    for text, reweight in (("auto", "auto"), ("none", None)):
        out = tmp_path / text
        code, shown, _ = call(capsys, "run", DATA, "--out", out, *QUICK, "--reweight", text)
        assert code == 0
        post = gpn.load(out / "posterior.nc")
        expected = quick(
            table(NULL),
            score=Noisy(error=0.1),
            sampler=gpn.samplers.Auto(reweight=reweight),
            draws=100,
            chains=4,
            random_seed=1,
        )
        assert post.edge_probabilities().equals(expected.edge_probabilities())
        assert ("weighted from the proposal score" in " ".join(shown.split())) == (text == "auto")
        assert ("Computed exactly" in shown) == (text == "none")
    answers = call(capsys, "query", tmp_path / "none", "v1 -> v2", "v1 - v2")[1].splitlines()
    assert all(line.endswith("error of the scores") for line in answers)
    edge, pair = (float(line.split("±")[1].split()[0]) for line in answers)
    assert 0 < edge < pair
    check_refused(capsys, tmp_path, [DATA, "--out", tmp_path / "auto", *QUICK, "--reweight", "none"], "another run")
    check_refused(
        capsys, tmp_path, [DATA, "--out", tmp_path / "o", "--reweight", "best"], "--reweight must be auto or none"
    )


def test_what_to_do_is_told_in_options(noisy, tmp_path, capsys):
    noisy(rough=4.0)
    shown = " ".join(call(capsys, "run", DATA, "--out", tmp_path / "out", *QUICK)[1].split())
    assert "weights can't be relied on" in shown and "Use --sampler exact --reweight none to draw" in shown


def test_ctrl_c_while_weighting_and_the_run_goes_on(noisy, tmp_path, capsys):
    pressed = []

    def press(done):
        if done >= 10:
            pressed.append(done)
            if len(pressed) == 1:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)

    noisy(act=press)
    out = tmp_path / "out"
    code, shown, messages = call(capsys, "run", DATA, "--out", out, *QUICK)
    assert code == 130
    assert messages == "interrupted while weighting the draws; the same command goes on from here\n"
    assert "Reweighting was interrupted" in shown
    assert not (out / "posterior.nc").exists()
    noisy()
    assert call(capsys, "run", DATA, "--out", out, *QUICK)[0] == 0
    assert call(capsys, "run", DATA, "--out", tmp_path / "whole", *QUICK)[0] == 0
    assert (out / "edges.csv").read_bytes() == (tmp_path / "whole" / "edges.csv").read_bytes()
