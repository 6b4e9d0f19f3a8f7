"""The options of a run: one place for their defaults and checks; and the score in its settings."""

import inspect
import json
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import gpn_bayes as gpn
from gpn_bayes._util.checks import check_choice, check_share
from gpn_bayes._util.options import flag_of, options_of
from gpn_bayes.cli.run import run_demo, run_file
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.report.origin import origin_of
from gpn_bayes.sampling.options import DEFAULTS, RunOptions, all_options
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.scores import GraphPrior
from tests.command_line import call
from tests.draws import LINEAR, REFERENCE, asked, quick, table
from tests.rough_scores import Noisy

DATA = table(LINEAR)


def defaults_of(function):
    return {name: own.default for name, own in inspect.signature(function).parameters.items()}


def test_sample_has_the_options_and_their_defaults():
    elsewhere = {"data", "cache", "executor", "progressbar", "table"}
    in_sample = {name: own for name, own in defaults_of(gpn.sample).items() if name not in elsewhere}
    assert in_sample == {own.name: own.default for own in fields(RunOptions)}


def test_options_of_objects_are_those_of_their_signatures():
    for kind in (gpn.Space, *gpn.samplers.BUILT_IN.values()):
        known = {name: all_options()[name][1] for name in options_of(kind)}
        assert known == {name: own for name, own in defaults_of(kind).items() if name != "moves"}


@pytest.mark.parametrize("command", [run_file, run_demo])
def test_every_option_of_a_run_is_one_of_the_command_line(command):
    typed = defaults_of(command).keys()
    known = {flag_of(name, own).removeprefix("--").replace("-", "_") for name, (own, _) in all_options().items()}
    assert known <= typed if command is run_file else len(known & typed) == 9


class Bare(gpn.samplers.Sampler):
    name = "bare"

    def chains(self, tables, required, count, progressbar=False):
        return []


@dataclass(frozen=True)
class Walk(Bare):
    name: ClassVar[str] = "walk"
    thin: int = 1


MOVED = [
    ({"max_parents": 3}, "max_parents=3 is now space=gpn.Space(max_parents=3)"),
    ({"candidates": "pc"}, "candidates='pc' is now space=gpn.Space(candidates='pc')"),
    ({"candidates": {name: list("abcdef") for name in "abc"}}, "candidates=… is now space=gpn.Space(candidates=…)"),
    ({"plus_one": True}, "plus_one=True is now space=gpn.Space(plus_one=True)"),
    ({"expand": 0.1}, "expand=0.1 is now space=gpn.Space(expand=0.1)"),
    ({"temperatures": 4}, "temperatures=4 is now sampler=gpn.samplers.Partition(temperatures=4)"),
    ({"thin": 5}, "thin=5 is now sampler=gpn.samplers.Auto(thin=5)"),
    ({"reweight": None}, "reweight=None is now sampler=gpn.samplers.Auto(reweight=None)"),
    ({"order_bias": "correct"}, "order_bias='correct' is now sampler=gpn.samplers.Order(bias='correct')"),
    ({"sampler": "order", "thin": 5}, "thin=5 is now sampler=gpn.samplers.Order(thin=5)"),
    (
        {"sampler": gpn.samplers.Order(bias="correct"), "thin": 5},
        "thin=5 is now sampler=gpn.samplers.Order(bias='correct', thin=5)",
    ),
    (
        {"sampler": gpn.samplers.Partition(thin=3), "reweight": None},
        "reweight=None is now sampler=gpn.samplers.Partition(thin=3, reweight=None)",
    ),
    (
        {"sampler": gpn.samplers.Exact(), "reweight": None},
        "reweight=None is now sampler=gpn.samplers.Exact(reweight=None)",
    ),
    ({"sampler": "exact", "thin": 5}, "independent draws have no thinning; received thin=5 with the Exact sampler"),
    (
        {"sampler": gpn.samplers.Exact(), "thin": 5},
        "independent draws have no thinning; received thin=5 with the Exact sampler",
    ),
    ({"sampler": Walk(), "thin": 5}, "thin=5 is now sampler=Walk(thin=5)"),
    ({"sampler": Bare(), "thin": 5}, "thin must be an option of the sampler; received thin=5, which Bare lacks"),
    (
        {"moves": [("relocation", 0.2)]},
        "moves belong to a sampler: use sampler=gpn.samplers.Partition(moves=[('relocation', 0.2)])",
    ),
    ({"drop": "a"}, "drop says how to read a table: use gpn.Table(data, drop='a') as data"),
    ({"cashe": "run.sqlite"}, "sample takes no argument 'cashe': did you mean 'cache'?"),
    ({"wieghts": "n"}, "sample takes no argument 'wieghts': did you mean 'weights'?"),
    ({"drawss": 3}, "sample takes no argument 'drawss': did you mean 'draws'?"),
    ({"burnin": 3}, "sample takes no argument 'burnin'"),
]


@pytest.mark.parametrize(("given", "message"), MOVED)
def test_old_and_unknown_names_are_refused_in_one_line(given, message):
    with pytest.raises(ValueError) as refused:
        gpn.sample(DATA, **given)
    assert str(refused.value) == message


def test_an_option_chooses_its_sampler_on_the_command_line_and_is_refused_beside_another(tmp_path, capsys):
    given = ["run", REFERENCE / f"{LINEAR}.csv", "--out", tmp_path / "out", "--temperatures", 4]
    code, _, messages = call(capsys, *given, "--sampler", "order")
    assert code == 2
    assert messages == "error: --temperatures must go with another sampler; received --sampler order\n"
    code, _, messages = call(capsys, *given, "--order-bias", "correct")
    assert code == 2
    assert messages == "error: options must be of one sampler; --order-bias and --temperatures are of different ones\n"
    code, _, messages = call(capsys, *given, "--draws", 40, "--tune", 10, "--quiet")
    found = gpn.load(tmp_path / "out" / "posterior.nc").settings
    assert code == 0 and (found["sampler"], found["temperatures"]) == ("partition", 4)
    assert (DEFAULTS.score, DEFAULTS.draws, DEFAULTS.tune, DEFAULTS.chains) == ("bge", 2000, 1000, 4)


@pytest.mark.parametrize("command", [run_file, run_demo])
def test_the_command_line_has_the_same_defaults(command):
    """None stands for an option that wasn't typed; a run can only go on with a seed; the demo is of the GP score."""
    known = {name: default for name, (_, default) in all_options().items()}
    typed = {name: own for name, own in defaults_of(command).items() if name in known and own is not None}
    assert typed.keys() >= {"score", "sampler", "draws", "tune", "chains", "thin"}
    expected = {name: known[name] for name in typed}
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
        ({"sampler": "best"}, "sampler must be a Sampler or one of auto, exact, partition, order; received 'best'"),
        ({"reweight": "always"}, "reweight must be 'auto' or None; received 'always'"),
        ({"until": "bored"}, "until must be 'converged' or None; received 'bored'"),
        ({"bias": "fix"}, "bias must be 'keep' or 'correct'; received 'fix'"),
        ({"plus_one": "two"}, "plus_one must be True, False or 'auto'; received 'two'"),
        ({"expand": 1.5}, "expand must be True, False, 'auto' or a probability; received 1.5"),
        ({"expand": None}, "expand must be True, False, 'auto' or a probability; received None"),
    ],
)  # fmt: skip
def test_what_no_data_could_make_right_is_refused_without_any(wrong, message):
    with pytest.raises(ValueError) as refused:
        RunOptions(**asked(**wrong))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: gpn.Space(maxparents=3), "Space has no option 'maxparents': did you mean 'max_parents'?"),
        (lambda: gpn.Space(3), "Space takes options by name, such as candidates=; received 3 without one"),
        (lambda: gpn.samplers.Exact(thin=3), "Exact has no option 'thin'"),
        (lambda: gpn.samplers.Auto(temperatures=3), "Auto has no option 'temperatures'"),
        (lambda: gpn.samplers.Partition(4), "Partition takes options by name, such as thin=; received 4 without one"),
        (lambda: gpn.samplers.Order(order_bias="keep"), "Order has no option 'order_bias'"),
        (
            lambda: quick(DATA, space=gpn.Space(expand=True, plus_one="auto"), sampler="exact"),
            "candidates can only grow by parents from outside; received expand=True without them: "
            "use space=gpn.Space(plus_one=True, expand=True)",
        ),
        (
            lambda: quick(DATA.mask(DATA > 2), missing="impute", sampler=gpn.samplers.Order(bias="correct")),
            "missing='impute' takes the order sampler without correction; received "
            "sampler=gpn.samplers.Order(bias='correct')",
        ),
    ],
)
def test_options_that_go_nowhere_are_refused_as_they_were_given(wrong, message):
    with pytest.raises(ValueError) as refused:
        wrong()
    assert str(refused.value) == message


def test_values_that_are_right():
    right = RunOptions(
        cores=None,
        random_seed=np.int64(0),
        sampler=gpn.samplers.Auto(thin="auto"),
        space=gpn.Space(expand=0.2, plus_one=True),
        tune=0,
    )
    assert (right.sampler.thin, right.space.expand) == ("auto", 0.2)


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


def test_the_score_is_shown_by_its_class():
    post = quick(DATA)
    assert "score BGe(alpha_mu=1.0, alpha_w=None, t0=None)" in repr(post)
    assert "score=gpn.scores.BGe(" in origin_of(post)["call"] and post.record.score_title() == "BGe"


def test_scores_of_ones_own_are_named_but_not_made_again():
    record = RunRecord.read(prepare(DATA, RunOptions(Noisy())).settings)
    assert record.score_title() == "noisy" and record.score_text().startswith("noisy(noise=0.0, error=0.0")
    with pytest.raises(ValueError, match="^the score must be one of bge, gp, .*; received 'noisy'$"):
        record.score.make()
    own = RunRecord.read({"score": {"name": "my own score"}})
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
        (lambda: RunOptions(space=gpn.Space(expand=np.float64(1.5))), "1.5"),
        (lambda: RunOptions(draws=np.float64(0.5)), "0.5"),
        (lambda: RunOptions(chains=np.int64(0)), "0"),
        (lambda: RunOptions(sampler=gpn.samplers.Partition(temperatures=np.int32(-1))), "-1"),
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
