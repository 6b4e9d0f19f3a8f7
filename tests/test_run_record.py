"""The typed record of a run says what its settings say, and refuses what no run writes."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.posterior.run_record import RunRecord
from tests.draws import make

DATA = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 60, random_seed=1)
QUIET = {"score": "bge", "draws": 20, "tune": 20, "random_seed": 1, "progressbar": False}


@pytest.mark.parametrize("sampler", ["exact", "partition", "order"])
def test_the_record_of_a_run_says_what_its_settings_say(sampler):
    post = gpn.sample(DATA, sampler=sampler, tiers=[["v1"], ["v2", "v3"]], **QUIET)
    record = post.record
    for name in ("sampler", "draws", "tune", "chains", "thin", "random_seed", "data_fingerprint"):
        assert getattr(record, name) == post.settings[name], name
    assert record.temperatures == 1 and ("temperatures" in post.settings) == (sampler == "partition")
    assert record.independent == (sampler == "exact") and record.has_order_bias == (sampler == "order")
    assert [list(pair) for pair in record.prior.forbidden] == post.settings["prior"]["forbidden"]
    assert record.prior.tiers == (1.0, 2.0, 2.0)
    assert record.examined and record.tables == 1 and not record.is_imputed and not record.was_cut_short
    assert repr(record.score.make()) == record.score_text() == repr(gpn.scores.BGe())


def test_the_record_of_gaps_and_contexts():
    gaps = DATA.copy()
    gaps.iloc[:4, 1] = np.nan
    imputed = gpn.sample(gaps, missing="impute", **QUIET).record
    assert imputed.is_imputed and (imputed.missing.imputed, imputed.missing.rows_concerned) == (4, 4)
    dropped = gpn.sample(gaps, missing="drop", **QUIET).record
    assert not dropped.is_imputed and (dropped.missing.dropped, dropped.missing.rows) == (4, 60)
    contexts = DATA.assign(day=["one"] * 30 + ["two"] * 30)
    assert gpn.sample(contexts, contexts="day", **QUIET).record.interventions.unknown
    targets = DATA.assign(target=[""] * 30 + ["v2"] * 30)
    done = gpn.sample(targets, targets="target", intervention="soft", **QUIET).record.interventions
    assert (done.kind, [own.targets for own in done.experiments]) == ("soft", [("v2",)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": "many"}, "the setting draws must be a whole number; received 'many'"),
        ({"draws": True}, "the setting draws must be a whole number; received True"),
        ({"converged": 1}, "the setting converged must be true or false; received 1"),
        ({"betas": [0.5, "1"]}, "the setting betas must be a number; received '1'"),
        ({"prior": []}, r"the setting prior must be a table of names and values; received \[\]"),
        ({"prior": {"required": [[1]]}}, r"the setting prior required must be a list; received \[1\]"),
        ({"missing": {"imputed": "4"}}, "the setting missing imputed must be a whole number; received '4'"),
        ({"interventions": {"experiments": []}}, "the setting interventions must have a name; received .*"),
        ({"data_flags": ["odd"]}, "the setting data_flags must be a table of names and values; received 'odd'"),
    ],
)
def test_settings_that_no_run_writes_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        RunRecord.read(settings)
    with pytest.raises(ValueError, match=f"^{message}$"):
        make(np.zeros((2, 5), dtype=int), **settings).diagnostics()


def test_what_is_not_asked_for_is_left_aside():
    assert RunRecord.read({"moves": 3, "version": None, "prior": None, "converged": None}) == RunRecord()


def test_a_file_with_other_settings_is_refused(tmp_path):
    post = gpn.sample(DATA, **QUIET)
    for name, (settings, text) in {
        "type": ({"poor_scores": "two"}, "the setting poor_scores must be a whole number; received 'two'"),
        "pair": ({"impossible_pairs": [[0, 3]]}, "pairs that can't be joined aren't pairs of its variables"),
    }.items():
        replace(post, settings=json.loads(json.dumps(post.settings | settings))).save(tmp_path / f"{name}.nc")
        with pytest.raises(
            ValueError, match=f"^'{name}.nc' must be as GraphPosterior.save wrote it; it isn't: {text}$"
        ):
            gpn.load(tmp_path / f"{name}.nc")
