"""Weights from the proposal score to the target score: against enumeration, with errors that hold, and after Ctrl-C."""

import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.pareto_tails import smooth_tail
from gpn_bayes.posterior.diagnostics import weight_warnings
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling import sample as sampling
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.slow_scores.reweighting import pareto_smooth, weigh
from gpn_bayes.scores.cache import ScoreCache, ScoreRecord
from gpn_bayes.scores.dag_scorer import DagScorer
from tests.draws import DAGS, NULL, assert_same_draws, make, quick, table
from tests.rough_scores import Noisy, deviate, edge_probabilities

ROOT = Path(__file__).parents[1]
DATA = table(NULL)
SAMPLERS = [gpn.samplers.Exact(), gpn.samplers.Partition(), gpn.samplers.Order(bias="correct")]


def worst(post, expected):
    """Return the largest distance from the expected edge probabilities, in reported errors."""
    summary = post.summary()
    truth = pd.DataFrame(expected, post.names, post.names).stack()[
        pd.MultiIndex.from_frame(summary[["parent", "child"]])
    ]
    truth = truth.to_numpy()
    return (abs(summary["probability"] - truth) / (summary["mcse"].fillna(0) + 1 / summary["ess"])).max()


# Parent sets


@pytest.mark.parametrize("n", [4, 70])
def test_drawn_sets_are_the_parent_sets_of_the_draws(n):
    rng = np.random.default_rng(1)
    dags = np.triu(rng.random((2, 30, n, n)) < 2 / n, 1).astype(np.int8)
    sets = drawn_sets(graphs.pack(dags))
    assert len(sets.keys) == len(set(sets.keys))
    assert set(sets.places.ravel().tolist()) == set(range(len(sets.keys)))
    for chain, draw, node in np.ndindex(2, 30, n):
        expected = node, tuple(np.flatnonzero(dags[chain, draw, :, node]).tolist())
        assert sets.keys[sets.places[chain, draw, node]] == expected


# Weights


def test_weights_are_the_ratio_of_the_scores():
    picks = np.array([[3, 3, 40, 500], [40, 7, 3, 3]])
    sets = drawn_sets(graphs.pack(DAGS[picks]))
    q = np.array([deviate(1, *key) for key in sets.keys])
    p = np.array([deviate(2, *key) for key in sets.keys])
    other = np.random.default_rng(1).normal(size=len(DAGS))[picks]
    found = weigh(sets, q, [ScoreRecord(value, 0.1 * k, 0.2, "ok") for k, value in enumerate(p)], other)
    place = {key: k for k, key in enumerate(sets.keys)}
    for chain, draw in np.ndindex(2, 4):
        dag = DAGS[picks[chain, draw]]
        own = [place[i, tuple(np.flatnonzero(dag[:, i]).tolist())] for i in range(4)]
        assert found.log_ratios[chain, draw] == pytest.approx((p - q)[own].sum())
        np.testing.assert_allclose(found.score_errors[chain, draw], 0.1 * np.array(own))
    combined = found.log_ratios + other
    np.testing.assert_allclose(found.log_weights, combined - combined.max())
    assert np.isnan(found.pareto_k)


def test_a_score_of_minus_infinity_weighs_nothing():
    sets = drawn_sets(graphs.pack(DAGS[[[0, 1, 2, 500]]]))
    nothing = [ScoreRecord(-np.inf if parents else 0.0, 0.0, np.nan, "ok") for _, parents in sets.keys]
    found = weigh(sets, np.zeros(len(sets.keys)), nothing)
    has_edges = DAGS[[0, 1, 2, 500]].any(axis=(1, 2))
    assert has_edges.any() and not has_edges.all()
    np.testing.assert_array_equal(np.exp(found.log_weights[0]), ~has_edges)
    with pytest.raises(ValueError, match="^at least one drawn DAG must have a finite target score; all of them scored"):
        weigh(sets, np.zeros(len(sets.keys)), [record._replace(value=-np.inf) for record in nothing])


@pytest.mark.parametrize("k", [0.2, 0.5, 1.2])
def test_smoothing_tells_the_tail_and_keeps_the_order(k):
    """Weights u^-k of uniform u have a Pareto tail of shape k."""
    u = np.random.default_rng(3).random((4, 5000))
    weights, found = pareto_smooth(-k * np.log(u))
    assert found == pytest.approx(k, abs=0.15)
    # Largest ratio, largest weight: the sign is right. The body of the weights is untouched.
    np.testing.assert_array_equal(np.argsort(weights.ravel()), np.argsort(-u.ravel()))
    body = u > np.sort(u.ravel())[500]
    differences = (weights + k * np.log(u))[body]
    assert np.ptp(differences) < 1e-9


def test_smoothing_helps_where_the_tail_is_heavy():
    rng = np.random.default_rng(5)
    plain, smoothed = [], []
    for _ in range(300):
        ratios = -0.8 * np.log(rng.random(400))  # the mean of the weights is 1 / (1 - 0.8) = 5
        plain.append(np.exp(ratios).mean())
        weights, _ = pareto_smooth(ratios)
        body = np.argsort(ratios)[:200]
        smoothed.append(np.exp(weights + (ratios - weights)[body].mean()).mean())
    assert np.sqrt(np.mean((np.array(smoothed) - 5) ** 2)) < 0.8 * np.sqrt(np.mean((np.array(plain) - 5) ** 2))


def test_ties_are_not_smoothed():
    rng = np.random.default_rng(4)
    values = -0.9 * np.log(rng.random(40))
    ratios = values[rng.integers(40, size=(2, 1000))]
    weights, k_hat = pareto_smooth(ratios)
    np.testing.assert_array_equal(weights, ratios - ratios.max())
    assert np.isnan(k_hat)
    for few in (np.zeros((2, 500)), rng.normal(size=(2, 49)), np.where(np.arange(1000) < 5, 0.0, -np.inf)):
        weights, k_hat = pareto_smooth(few)
        np.testing.assert_array_equal(weights, few - few.max())
        assert np.isnan(k_hat)


def test_a_tail_that_begins_with_ties_has_no_shape():
    """A third of the tail's draws are one DAG, of its smallest weight: nothing speaks against these weights."""
    rng = np.random.default_rng(4)
    body, tail = -rng.random(7600), 0.1 + 0.2 * rng.random(180)
    ratios = np.concatenate([body, np.full(220, 0.1), tail]).reshape(4, 2000)
    weights, k_hat = pareto_smooth(ratios)
    np.testing.assert_array_equal(weights, ratios - ratios.max())
    assert np.isnan(k_hat)
    assert weight_warnings(k_hat, effective_size(np.exp(weights)), 8000) == []
    # All but a few weights vanish: that is said by what the draws are worth.
    few = np.where(np.arange(8000) < 100, rng.random(8000), -800.0 - rng.random(8000))
    weights, k_hat = pareto_smooth(few)
    assert np.isnan(k_hat)
    (text,) = weight_warnings(k_hat, effective_size(np.exp(weights)), 8000)
    assert "worth 9" in text and "Pareto" not in text and "inf" not in text


def test_a_tail_without_a_shape_is_no_finding():
    post = make_weighted(pareto_k=None)
    found = post.diagnostics()
    assert np.isnan(found.pareto_k) and found.ok
    assert "inf" not in found.summary and "too few distinct draws for a Pareto k" in found.summary
    assert not make_weighted(pareto_k=0.9).diagnostics().ok


def make_weighted(**settings):
    """Return draws of a few DAGs, weighted to another score."""
    rng = np.random.default_rng(1)
    picks = rng.integers(len(DAGS), size=(2, 900))
    return make(
        picks,
        rng.normal(scale=0.1, size=picks.shape),
        rng.normal(size=picks.shape),
        reweight="auto",
        sampler="exact",
        independent=True,
        **settings,
    )


def test_weights_stay_a_function_of_the_dag_where_some_draws_repeat():
    rng = np.random.default_rng(4)
    ratios = -0.9 * np.log(rng.random(1500))[rng.integers(1500, size=2000)]
    weights, k_hat = pareto_smooth(ratios)
    assert 0.5 < k_hat < 1.3
    values, inverse = np.unique(ratios, return_inverse=True)
    assert len(values) < 1300
    for k in range(len(values)):
        assert np.ptp(weights[inverse == k]) == 0
    # Each has the mean of what its draws have when smoothed one by one, so that often drawn DAGs gain nothing by it.
    alone, k_alone = smooth_tail(np.exp(ratios - ratios.max()))
    assert k_hat == k_alone
    means = [alone[inverse == k].mean() for k in range(len(values))]
    np.testing.assert_allclose(np.exp(weights), np.array(means)[inverse], rtol=1e-12)


# The posterior


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda own: own.name)
def test_weighted_draws_agree_with_enumeration(sampler):
    post = quick(DATA, score=Noisy(rough=0.7), draws=3000, tune=300, chains=4, sampler=sampler)
    expected = edge_probabilities(gpn.scores.BGe().bind(DATA))
    assert post.exact is None
    assert worst(post, expected) < 4
    # Negative control: without their weights the draws are those of another score.
    unweighted = dataclasses.replace(post, log_weights=None)
    assert worst(unweighted, expected) > 8
    if sampler.name == "exact":
        rough = edge_probabilities(Noisy(rough=0.7).bind(DATA).proposal())
        assert worst(unweighted, rough) < 4


def test_only_the_drawn_sets_are_scored_and_the_scores_are_the_accurate_ones():
    run = prepare(
        DATA,
        RunOptions(Noisy(rough=1.0), draws=40, chains=1, random_seed=3, prior="fair", space=gpn.Space(max_parents=2)),
    )
    post = sampling.draw(run, progressbar=False)
    drawn = {(i, tuple(np.flatnonzero(dag[:, i]).tolist())) for dag in post.adjacency[0] for i in range(4)}
    assert sorted(run.scorer.scored) == sorted(drawn)
    assert len(drawn) < len(run.proposal.scored) == 4 * 7
    prior = gpn.scores.GraphPrior.read("fair", post.names, (), (), None)
    accurate, rough = (DagScorer.of(scorer, prior, run.data) for scorer in (run.scorer, run.proposal))
    np.testing.assert_allclose(post.log_score[0], [accurate(dag) for dag in post.adjacency[0]])
    np.testing.assert_allclose(post.stats["proposal_log_score"][0], [rough(dag) for dag in post.adjacency[0]])
    np.testing.assert_allclose(
        np.diff(post.log_weights), np.diff(post.log_score - post.stats["proposal_log_score"]), atol=1e-9
    )
    assert post.log_score_gap(post.map()) == pytest.approx(0, abs=1e-9)


def test_nothing_changes_for_scores_without_a_proposal():
    one, other = quick(DATA), quick(DATA, sampler=gpn.samplers.Auto(reweight=None))
    assert_same_draws(one, other)
    assert one.settings["reweight"] is None and one.exact is not None and one.score_errors is None


def test_the_two_routes_agree_and_the_direct_one_is_exact():
    score = Noisy(noise=0.3, error=0.3, rough=0.5)
    weighted, direct = (
        quick(DATA, score=score, draws=3000, sampler=gpn.samplers.Auto(reweight=reweight))
        for reweight in ("auto", None)
    )
    expected = edge_probabilities(score.bind(DATA))
    np.testing.assert_allclose(direct.edge_probabilities(), expected, atol=1e-9)
    assert np.abs(weighted.edge_probabilities().to_numpy() - expected).max() < 0.05
    edges = direct.summary()
    assert (edges["status"] == "exact").all() and (edges["ess"] == np.inf).all()
    # Both know BGe's own answer within the errors that the noise of the scores leaves.
    truth = edge_probabilities(gpn.scores.BGe().bind(DATA))
    errors = edges["mcse"].to_numpy()
    assert (errors > 0.01).any()
    for post in (weighted, direct):
        assert worst(post, truth) < 4


# Trust


def test_diagnostics_of_good_weights():
    post = quick(DATA, score=Noisy(error=0.02, rough=0.2), draws=2000)
    found = post.diagnostics()
    assert found.reweighted == "yes" and found.ok
    share = post.weights / post.weights.sum()
    assert found.weight_ess == found["weight_ess"] == pytest.approx(1 / (share**2).sum())
    assert found["weight_share"] == found.weight_share == pytest.approx(found.weight_ess / 4000)
    assert 0.8 < found.weight_share < 1
    assert found.score_error == 0.02 and found.poor_scores == 0
    assert "weighted from the proposal score to the target score, worth" in str(found)
    assert "Exact" not in str(found)


def test_the_tail_is_told_where_there_are_many_dags():
    data = np.random.default_rng(2).normal(size=(30, 8))
    post = quick(data, score=Noisy(rough=0.2), space=gpn.Space(max_parents=2), draws=1000)
    assert 0 < abs(post.diagnostics().pareto_k) < 0.7
    assert f"Pareto k {post.diagnostics().pareto_k:.2f}" in str(post.diagnostics())


def test_poor_weights_are_told_with_what_to_do():
    data = np.random.default_rng(2).normal(size=(30, 8))
    with pytest.warns(
        UserWarning,
        match=r"^The draws' weights can't be relied on \(worth \d+ of 2000 draws; Pareto k .*"
        r"should be below 0\.\d+\): the score .* Use sampler=gpn.samplers.Exact\(reweight=None\) to draw under",
    ) as reported:
        post = quick(data, score=Noisy(rough=1.5), space=gpn.Space(max_parents=2), draws=1000)
    assert len(reported) == 1
    assert str(reported[0].message) in post.diagnostics().warnings()
    assert not post.diagnostics().ok


def test_imprecise_scores_are_told():
    for reweight in ("auto", None):
        post = quick(
            DATA, score=Noisy(error=0.4, rough=0.1, status="imprecise"), sampler=gpn.samplers.Auto(reweight=reweight)
        )
        reported = post.diagnostics()
        assert reported.poor_scores == len(drawn_sets(post.parents).keys)
        assert reported.warnings() == [
            f"{reported.poor_scores} scores are less precise than they were meant to be (95% have errors of up to 0.40)"
            ": reported errors include this."
        ]


def test_exact_answers_with_errors_in_words():
    post = quick(DATA, score=Noisy(error=0.1), sampler=gpn.samplers.Auto(reweight=None))
    assert post.diagnostics().summary == (
        "Edge probabilities sum over all networks; 120 independent draws; 95% of the scores have errors of up to 0.1."
    )
    assert "±" in str(post.edge_probability("v1", "v2"))
    unknown = quick(DATA, score=Noisy(error=np.nan, rough=0))
    assert "scores are approximations of unknown error" in str(unknown.diagnostics())
    assert unknown.edge_probability("v1", "v2").mcse == 0


# Settings


def test_reweight_is_part_of_the_run():
    keys = {
        reweight: prepare(DATA, RunOptions(Noisy(), sampler=gpn.samplers.Auto(reweight=reweight))).key
        for reweight in ("auto", None)
    }
    assert keys["auto"] != keys[None]
    assert (
        prepare(DATA, RunOptions("bge")).key
        == prepare(DATA, RunOptions("bge", sampler=gpn.samplers.Auto(reweight=None))).key
    )
    with pytest.raises(ValueError, match="^reweight must be 'auto' or None; received 'always'$"):
        prepare(DATA, RunOptions("bge", sampler=gpn.samplers.Auto(reweight="always")))


# The file, Ctrl-C and kills


def rows(path, text):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(text).fetchall()


def test_one_file_holds_both_scores(tmp_path):
    path = tmp_path / "run.sqlite"
    post = quick(DATA, score=Noisy(error=0.1), cache=path)
    assert_same_draws(post, quick(DATA, score=Noisy(error=0.1)))
    assert rows(path, "SELECT count(*) FROM proposal_scores") == [(32,)]
    assert rows(path, "SELECT count(*) FROM scores") == [(len(drawn_sets(post.parents).keys),)]
    assert rows(path, "SELECT DISTINCT error, status FROM scores") == [(0.1, "ok")]
    # The other route takes what is known, and adds to it.
    direct = quick(DATA, score=Noisy(error=0.1), cache=path, sampler=gpn.samplers.Auto(reweight=None))
    assert_same_draws(direct, quick(DATA, score=Noisy(error=0.1), sampler=gpn.samplers.Auto(reweight=None)))
    assert rows(path, "SELECT count(*) FROM scores") == [(32,)]
    assert_same_draws(quick(DATA, score=Noisy(error=0.1), cache=path), post)
    with pytest.raises(ValueError, match="was made from another score: it holds Noisy"):
        quick(DATA, score=Noisy(error=0.2), cache=path)
    with pytest.raises(ValueError, match="the table must be one of scores, proposal_scores; received 'more'"):
        ScoreCache(Noisy().bind(DATA), path, table="more")
    with ScoreCache(Noisy(error=0.1).bind(DATA), path) as cache:
        with pytest.raises(ValueError, match="was made from another score: it holds Noisy.*received Noisy"):
            ScoreCache(Noisy("rough", noise=3).bind(DATA), cache.connection, table="proposal_scores")
        assert cache.connection is not None and len(cache) == 32
        cache.connection.execute("SELECT 1")


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda own: own.name)
def test_ctrl_c_while_weighting_keeps_draws_and_scores(sampler, tmp_path):
    path = tmp_path / "run.sqlite"
    whole = quick(DATA, score=Noisy(error=0.1), sampler=sampler)

    pressed = []

    def press(done):
        if done >= 10:
            pressed.append(done)
            if len(pressed) == 1:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)

    with pytest.warns(UserWarning, match="^Reweighting was interrupted: all answers are those of the proposal score"):
        part = quick(DATA, score=Noisy(error=0.1, act=press), cache=path, sampler=sampler)
    np.testing.assert_array_equal(part.parents, whole.parents)
    np.testing.assert_array_equal(part.log_score, whole.stats["proposal_log_score"])
    assert part.settings["score"]["parameters"]["noise"] == 0.5 and part.exact is None
    assert (part.log_weights is None) == (sampler.name != "order")
    assert any("interrupted" in text for text in part.diagnostics().warnings())
    kept = rows(path, "SELECT count(*) FROM scores")[0][0]
    assert kept > 0 and rows(path, "SELECT count(*) FROM blocks")[0][0] > 0
    run = prepare(DATA, RunOptions(Noisy(error=0.1), draws=60, tune=20, chains=2, random_seed=3, sampler=sampler))
    assert_same_draws(sampling.draw(run, cache=path, progressbar=False), whole)
    assert len(run.scorer.scored) == len(drawn_sets(whole.parents).keys) - kept
    assert run.proposal.scored == []
    assert rows(path, "SELECT count(*) FROM blocks") == [(0,)]


def test_ctrl_c_while_drawing_still_weights_what_was_drawn(tmp_path, monkeypatch):
    save, seen = CheckpointStore.save_block, []

    def save_block(self, *arguments):
        save(self, *arguments)
        seen.append(arguments)
        if len(seen) == 7:
            signal.raise_signal(signal.SIGINT)

    settings = {"score": Noisy(error=0.1), "sampler": "partition", "draws": 300, "tune": 10, "cores": 1}
    whole = quick(DATA, **settings)
    monkeypatch.setattr(CheckpointStore, "save_block", save_block)
    monkeypatch.setattr("gpn_bayes.sampling.chains._BLOCK_GROWTH", 1)
    with pytest.warns(UserWarning, match=r"^interrupted: \d+ of 300 draws"):
        part = quick(DATA, cache=tmp_path / "run.sqlite", **settings)
    kept = part.log_score.shape[1]
    assert 0 < kept < 300
    np.testing.assert_array_equal(part.parents, whole.parents[:, :kept])
    np.testing.assert_array_equal(part.log_score, whole.log_score[:, :kept])
    assert part.diagnostics().reweighted == "yes"
    assert_same_draws(quick(DATA, cache=tmp_path / "run.sqlite", **settings), whole)


KILLED = """
import os, time
from tests.draws import quick
from tests.test_reweighting import DATA, Noisy

def die(done):
    if done >= 10:
        time.sleep(0.5)  # for what is done to be stored
        os._exit(9)

quick(DATA, score=Noisy(error=0.1, act=die), cache={path!r})
"""


@pytest.mark.more("starts processes and kills them")
def test_a_run_killed_while_weighting_goes_on(tmp_path):
    path = str(tmp_path / "run.sqlite")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", KILLED.format(path=path)], env=environment, timeout=120)
    assert done.returncode == 9
    kept = rows(path, "SELECT count(*) FROM scores")[0][0]
    assert kept > 0
    run = prepare(DATA, RunOptions(Noisy(error=0.1), draws=60, tune=20, chains=2, random_seed=3))
    assert_same_draws(sampling.draw(run, cache=path, progressbar=False), quick(DATA, score=Noisy(error=0.1)))
    assert len(run.scorer.scored) <= 32 - kept and run.proposal.scored == []


def test_progress_of_the_weighting_is_shown(capfd, progress_at_once):
    quick(DATA, score=Noisy(), progressbar=True)
    err = capfd.readouterr().err
    assert "Scoring" in err and "Reweighting" in err


# Gaussian processes


@pytest.mark.more("compiles and integrates Gaussian processes")
def test_the_two_routes_agree_for_gaussian_processes(tmp_path):
    data = pd.read_csv(ROOT / "tests" / "reference" / "gp" / "fourier_n4_N100_seed101.csv")
    settings = {"score": gpn.scores.GP(), "cache": tmp_path / "run.sqlite", "draws": 2000, "chains": 4}
    weighted, direct = (
        quick(data, sampler=gpn.samplers.Auto(reweight=reweight), **settings) for reweight in ("auto", None)
    )
    assert rows(settings["cache"], "SELECT count(*) FROM proposal_scores") == [(32,)]
    expected = direct.edge_probabilities().to_numpy()
    assert worst(weighted, expected) < 4
    assert (direct.summary()["mcse"] > 0).any()
    # Negative control: Laplace's approximation alone gives another answer.
    assert worst(dataclasses.replace(weighted, log_weights=None), expected) > 6
    assert gpn.scores.GP(estimator="laplace").bind(data).proposal() is None
