"""What the errors of scores do to answers: by brute force, by many noisy scores, and through files."""

import dataclasses
from itertools import permutations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.posterior.score_noise import ScoreNoise, drawn_sets
from tests.draws import DAGS, NULL, make, quick, sticky_picks, table
from tests.rough_scores import Noisy, edge_probabilities

DATA = table(NULL)


def influence_of_scores(noise, repeats=2000):
    """Return edge probabilities under many perturbations of the scores, by enumeration."""
    scorer = gpn.scores.BGe().bind(DATA)
    sets = drawn_sets(graphs.pack(DAGS)[None])
    values = np.array([scorer.local(node, parents) for node, parents in sets.keys])
    moved = values + noise * np.random.default_rng(1).normal(size=(repeats, len(values)))
    log_p = moved[:, sets.places[0]].sum(axis=-1)
    p = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    return np.einsum("rd,dij->rij", p, DAGS)


@pytest.mark.parametrize("reweight", ["auto", None])
def test_errors_of_scores_reach_the_edges(reweight):
    """The error told is the spread of the answers over many sets of scores with such errors."""
    error = 0.15
    post = quick(DATA, score=Noisy(error=error), draws=20_000, sampler=gpn.samplers.Auto(reweight=reweight))
    spread = influence_of_scores(error).std(axis=0)
    exact = (
        quick(DATA, score=Noisy(), draws=20_000, sampler=gpn.samplers.Auto(reweight=reweight))
        .summary()
        .set_index(["parent", "child"])
    )
    for row in post.summary().itertuples():
        without = exact.loc[(row.parent, row.child), "mcse"]
        noise = np.sqrt(row.mcse**2 - without**2)
        assert noise == pytest.approx(spread[post.names.index(row.parent), post.names.index(row.child)], rel=0.1)
        assert (without == 0) == (reweight is None)


@pytest.mark.parametrize("sampler", ["partition", gpn.samplers.Exact(reweight=None)])
def test_errors_cover_the_truth(sampler):
    """Over many runs, each with other draws and other noise in its scores, answers miss by as much as they say."""
    truth = edge_probabilities(gpn.scores.BGe().bind(DATA))
    missed = []
    for seed in range(40):
        score = Noisy(noise=0.15, error=0.15, seed=seed)
        post = quick(DATA, score=score, draws=300, tune=100, random_seed=seed, sampler=sampler)
        for parent, child in permutations(range(4), 2):
            found = post.edge_probability(parent, child)
            missed.append((found.value - truth[parent, child]) / found.mcse)
    assert 0.8 < np.sqrt(np.mean(np.square(missed))) < 1.2


def test_errors_of_scores_do_not_average_out():
    few, many = (quick(DATA, score=Noisy(error=0.3), draws=draws) for draws in (500, 20_000))
    for post in (few, many):
        assert post.path_probability("v1", "v2").mcse > 0.01
    without = quick(DATA, score=Noisy(), draws=20_000).path_probability("v1", "v2")
    assert without.mcse < 0.005
    assert many.path_probability("v1", "v2").ess == pytest.approx(without.ess)


def noisy_posterior():
    """Return weighted draws with errors that belong to node and parents, half of them unknown or none."""
    rng = np.random.default_rng(5)
    picks = sticky_picks(rng, (3, 60))
    post = make(picks, rng.normal(size=len(DAGS))[picks])
    sets = drawn_sets(post.parents)
    errors = abs(rng.normal(size=len(sets.keys)))
    errors[::4], errors[1::4] = 0.0, np.nan
    return dataclasses.replace(post, score_errors=errors[sets.places]), sets, errors


def test_noise_by_brute_force():
    post, sets, errors = noisy_posterior()
    plain = dataclasses.replace(post, score_errors=None)
    share = post.weights / post.weights.sum()
    for ask, feature in (
        (lambda p: p.edge_probability("a", "b"), post.adjacency[..., 0, 1]),
        (lambda p: p.path_probability("a", "b"), graphs.ancestors(post.adjacency)[..., 0, 1]),
        (lambda p: p.probability(lambda g: g.number_of_edges()), post.adjacency.sum(axis=(2, 3))),
    ):
        variance = 0.0
        for k, (node, _) in enumerate(sets.keys):
            has = sets.places[..., node] == k
            covariance = (share * feature * has).sum() - (share * feature).sum() * (share * has).sum()
            variance += (np.nan_to_num(errors[k]) * covariance) ** 2
        assert variance > 0
        assert ask(post).mcse == pytest.approx(np.hypot(ask(plain).mcse, np.sqrt(variance)))
        assert ask(post).value == ask(plain).value and ask(post).ess == ask(plain).ess


def test_noise_of_numbers_drawn_with_some_of_the_draws():
    """A DAG has the mean of its numbers, and one without any the mean of all."""
    post, sets, errors = noisy_posterior()
    places = np.arange(post.log_score.size).reshape(post.log_score.shape)[:, 1::3]
    weights = post.weights.ravel()[places]
    numbers = post.adjacency.sum(axis=(2, 3)).ravel()[places].ravel() + np.random.default_rng(2).normal(size=60)
    dags = [dag.tobytes() for dag in post.adjacency.reshape(-1, 4, 4)]
    feature = np.full(len(dags), np.average(numbers, weights=weights.ravel()))
    for k, dag in enumerate(dags):
        same = [place for place, other in enumerate(places.ravel()) if dags[other] == dag]
        if same:
            feature[k] = np.average(numbers[same], weights=weights.ravel()[same])
    share = (post.weights / post.weights.sum()).ravel()
    variance = 0.0
    for k, (node, _) in enumerate(sets.keys):
        has = (sets.places[..., node] == k).ravel()
        variance += (np.nan_to_num(errors[k]) * (share * (feature - share @ feature) * has).sum()) ** 2
    plain = dataclasses.replace(post, score_errors=None)
    expected, found = (own._drawn_moments(numbers[:, None], places.ravel(), weights) for own in (plain, post))
    assert variance > 0
    assert found.mcse == pytest.approx(np.hypot(expected.mcse, np.sqrt(variance)))


def test_large_tables_of_features_are_done_in_parts(monkeypatch):
    post, *_ = noisy_posterior()
    whole = post.summary()
    monkeypatch.setattr("gpn_bayes.posterior.score_noise._CHUNK", 1)
    again, *_ = noisy_posterior()
    pd.testing.assert_frame_equal(again.summary(), whole)


def test_the_bound_is_what_a_rarely_drawn_dag_would_have():
    """All but a share q of the draws have one DAG, the others one with other parents of every node."""
    two = np.zeros((2, 3, 3), dtype=np.int8)
    two[0, [0, 1], [1, 2]] = two[1, [1, 2], [0, 1]] = 1
    errors = np.array([0.1, 0.2, 0.4])
    q = 0.01
    both = ScoreNoise(graphs.pack(two), np.array([1 - q, q]), np.array([errors, errors]))
    one = ScoreNoise(graphs.pack(two[:1]), np.ones(1), errors[None])
    drawn = both.errors_of(np.array([[0.0], [1.0]]))
    # All three nodes have other parents there.
    np.testing.assert_allclose(drawn, q * (1 - q) * np.sqrt(2 * (errors**2).sum()))
    np.testing.assert_allclose(one.bound(np.array([q])) * (1 - q), drawn)


def test_what_was_never_drawn_still_has_an_error():
    data = gpn.simulate.linear(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")]), 300, random_seed=1)
    post = quick(data, score=Noisy(error=0.1), draws=2, chains=1, sampler=gpn.samplers.Auto(reweight=None))
    edges = post.summary()
    drawn = set(zip(*np.nonzero(post.adjacency.any(axis=(0, 1))), strict=True))
    index = post.names.index
    never = np.array([(index(p), index(c)) not in drawn for p, c in zip(edges["parent"], edges["child"], strict=True)])
    assert never.any() and (edges["probability"][never] > 0).all()
    assert (edges["mcse"][never] > 0).all()
    assert (edges["mcse"][never] <= 0.1 * np.sqrt(8) * edges["probability"][never]).all()


def test_errors_survive_the_file_and_reach_arviz(tmp_path):
    for reweight in ("auto", None):
        post = quick(DATA, score=Noisy(error=0.2), draws=100, sampler=gpn.samplers.Auto(reweight=reweight))
        post.save(tmp_path / f"{reweight}.nc")
        back = gpn.load(tmp_path / f"{reweight}.nc")
        np.testing.assert_array_equal(back.score_errors, post.score_errors)
        pd.testing.assert_frame_equal(back.summary(), post.summary())
        assert str(back.diagnostics()) == str(post.diagnostics())
        assert back.diagnostics() == post.diagnostics() or np.isnan(post.diagnostics().pareto_k)
        for tree in (post.to_arviz(), post.to_arviz(varying_only=True)):
            assert tree["score_errors"]["score_error"].dims == ("chain", "draw", "node")
            assert ("proposal_log_score" in tree["sample_stats"]) == (reweight == "auto")
