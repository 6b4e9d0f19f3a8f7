"""The options of a run: one place for their defaults and checks; and the score in its settings."""

import inspect
import json
from dataclasses import fields, replace

import numpy as np
import pytest
import xarray as xr

import gpn_bayes as gpn
from gpn_bayes._util.checks import check_choice, check_share
from gpn_bayes.cli.run import run_demo, run_file
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.report.origin import origin_of
from gpn_bayes.sampling.options import DEFAULTS, RunOptions
from gpn_bayes.sampling.prepared_run import prepare
from gpn_bayes.scores import GraphPrior
from tests.draws import LINEAR, quick, table
from tests.rough_scores import Noisy

DATA = table(LINEAR)
# Of three runs, as version 0.1.0 computed them.
KEYS = ["8fc25f003f1486aed39e7677ff31ee8f", "3a68bd47e9a586e4ccdd0af276ddf603", "29a72b2d01bd37b9c87d178327a37e5e"]


def defaults_of(function):
    return {name: own.default for name, own in inspect.signature(function).parameters.items()}


def test_sample_has_the_options_and_their_defaults():
    elsewhere = {"data", "cache", "executor", "progressbar"}
    in_sample = {name: own for name, own in defaults_of(gpn.sample).items() if name not in elsewhere}
    of_tables = defaults_of(gpn.Dataset.read)
    for name in ("kinds", "targets", "intervention", "contexts", "target_probability", "target_penalty", "weights"):
        assert in_sample.pop(name) == of_tables[name]
    assert in_sample == {own.name: own.default for own in fields(RunOptions)}
    assert (DEFAULTS.score, DEFAULTS.draws, DEFAULTS.tune, DEFAULTS.chains) == ("bge", 2000, 1000, 4)


@pytest.mark.parametrize("command", [run_file, run_demo])
def test_the_command_line_has_the_same_defaults(command):
    """None stands for an option that wasn't typed; a run can only go on with a seed; the demo is of the GP score."""
    typed = {name: own for name, own in defaults_of(command).items() if hasattr(DEFAULTS, name) and own is not None}
    assert typed.keys() >= {"score", "sampler", "draws", "tune", "chains", "thin"}
    expected = {name: getattr(DEFAULTS, name) for name in typed}
    assert typed == expected | ({"score": "gp"} if command is run_demo else {})
    assert defaults_of(command)["seed"] == 1 and DEFAULTS.random_seed is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"draws": 0}, "draws must be a whole number, 1 or more; received 0"),
        ({"tune": -1}, "tune must be a whole number, 0 or more; received -1"),
        ({"chains": 2.0}, "chains must be a whole number, 1 or more; received 2.0"),
        ({"cores": 0}, "cores must be a whole number, 1 or more; received 0"),
        ({"thin": "often"}, "thin must be a whole number, 1 or more; received 'often'"),
        ({"random_seed": -1}, "random_seed must be a whole number, 0 or more; received -1"),
        ({"temperatures": True}, "temperatures must be a whole number, 1 or more; received True"),
        ({"imputations": 1}, "imputations must be a whole number, 2 or more; received 1"),
        ({"sampler": "best"}, "sampler must be one of auto, exact, partition, order; received 'best'"),
        ({"reweight": "always"}, "reweight must be 'auto' or None; received 'always'"),
        ({"until": "bored"}, "until must be 'converged' or None; received 'bored'"),
        ({"order_bias": "fix"}, "order_bias must be 'keep' or 'correct'; received 'fix'"),
        ({"plus_one": "two"}, "plus_one must be True, False or 'auto'; received 'two'"),
        ({"expand": 1.5}, "expand must be True, False, 'auto' or a probability; received 1.5"),
        ({"expand": None}, "expand must be True, False, 'auto' or a probability; received None"),
    ],
)  # fmt: skip
def test_what_no_data_could_make_right_is_refused_without_any(wrong, message):
    with pytest.raises(ValueError) as refused:
        RunOptions(**wrong)
    assert str(refused.value) == message


def test_values_that_are_right():
    right = RunOptions(cores=None, random_seed=np.int64(0), thin="auto", expand=0.2, plus_one=True, tune=0)
    assert (right.thin, right.expand) == ("auto", 0.2)


# The score in the settings


def test_settings_keep_the_score_by_name_and_parameters(tmp_path):
    score = gpn.scores.BGe(alpha_mu=0.5)
    post = quick(DATA, score=score)
    assert post.settings["score"] == {"name": score.name, "parameters": score.parameters}
    assert repr(post.record.score.make()) == repr(score)
    post.save(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        written = tree["posterior"].attrs["settings"]
    assert json.loads(written)["score"] == post.settings["score"] and "BGe(" not in written
    assert repr(gpn.load(tmp_path / "run.nc").scorer.score) == repr(score)


def test_the_label_of_older_runs_reads_as_the_same_score():
    """Version 0.1.0 kept the text; readers answer alike, and keys of its runs are as they were."""
    new, old = quick(DATA), quick(DATA)
    old = replace(old, settings=old.settings | {"score": repr(gpn.scores.BGe())})
    assert repr(new) == repr(old) and "score BGe(alpha_mu=1.0, alpha_w=None, t0=None)" in repr(new)
    assert origin_of(new) == origin_of(old) and "score=gpn.scores.BGe(" in origin_of(new)["call"]
    assert new.record.score_title() == old.record.score_title() == "BGe"


def test_keys_of_runs_are_those_of_version_0_1_0(monkeypatch):
    """With other keys, a run that was killed would start again, and a finished one be another's."""
    monkeypatch.setattr(gpn, "__version__", "0.1.0")
    columns = gpn.datasets.sachs()[["raf", "mek", "erk"]]
    keys = [
        prepare(columns, RunOptions(random_seed=1)).key,
        prepare(columns, RunOptions(gpn.scores.GP(estimator="laplace"), sampler="order", random_seed=2)).key,
        prepare(columns, RunOptions(tiers=[["raf"], ["mek", "erk"]], candidates=1, random_seed=3)).key,
    ]
    assert keys == KEYS


def test_scores_of_ones_own_are_named_but_not_made_again():
    record = RunRecord.read(prepare(DATA, RunOptions(Noisy())).settings)
    assert record.score_title() == "noisy" and record.score_text().startswith("noisy(noise=0.0, error=0.0")
    with pytest.raises(ValueError, match="^the score must be one of bge, gp, .*; received 'noisy'$"):
        record.score.make()
    own = RunRecord.read({"score": "my own score"})
    assert own.score_text() == own.score_title() == "my own score"
    assert RunRecord.read({}).score_text() == "unknown"


def test_a_call_is_only_shown_if_the_parameters_tell_all_of_the_score():
    """A prior given as a PyMC distribution is kept by its name, from which it can't be made again."""
    post = quick(DATA)
    assert origin_of(post)["call"] is not None
    distribution = {"distribution": "LogNormal", "parameters": [0.5, 0.75]}
    score = {"name": "gp", "parameters": {"theta": distribution}}
    assert origin_of(replace(post, settings=post.settings | {"score": score}))["call"] is None


# Numbers of numpy are shown as numbers


@pytest.mark.parametrize(
    ("call", "received"),
    [
        (lambda: RunOptions(expand=np.float64(1.5)), "1.5"),
        (lambda: RunOptions(draws=np.float64(0.5)), "0.5"),
        (lambda: RunOptions(chains=np.int64(0)), "0"),
        (lambda: RunOptions(temperatures=np.int32(-1)), "-1"),
        (lambda: check_share("threshold", np.float32(1.5)), "1.5"),
        (lambda: check_choice("dots", [np.int64(3)], ("none",)), "[3]"),
        (lambda: GraphPrior(["a", "b"], required=[("a", np.float64(0.5))]), "0.5"),
        (lambda: gpn.simulate.random_dag(3, kind=np.int64(1)), "1"),
        (lambda: gpn.Dataset.read({"a": np.float64(1)}), "dict"),
    ],
)
def test_numbers_of_numpy_are_shown_as_numbers(call, received):
    with pytest.raises(ValueError) as refusal:
        call()
    assert received in str(refusal.value) and "np." not in str(refusal.value)
