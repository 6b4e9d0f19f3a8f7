"""Draws whose weights are uneven are made again under the target scores that are known by then."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import gpn_bayes as gpn
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling import chains, tables
from gpn_bayes.sampling.slow_scores import predicted_scores, stages
from gpn_bayes.sampling.slow_scores.corrected_proposal import CorrectedProposal
from gpn_bayes.scores.cache import ScoreCache
from tests.rough_scores import Noisy

pytestmark = pytest.mark.more("statistics that take long")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Score no table in full, however small, and all sets that are drawn: noise of sets can't be predicted."""
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 0)
    monkeypatch.setattr(predicted_scores, "_RARE_SHARE", 0.0)


def simulated(n=7):
    dag = gpn.simulate.random_dag(n, edges_per_node=1.5, random_seed=1)
    return gpn.simulate.linear(dag, n_rows=100, random_seed=1)


def drawn(**settings):
    # A proposal that is off by about a nat at every set.
    score = Noisy(noise=0.5, rough=1.0)
    settings = {"prior": "fair", "draws": 1000, "random_seed": 1, "progressbar": False} | settings
    return gpn.sample(simulated(), score=score, **settings)


@pytest.mark.parametrize("sampler", ["exact", "partition", "order"])
def test_weights_are_even_and_probabilities_those_of_the_target(sampler, monkeypatch):
    if sampler == "order":
        sampler = gpn.samplers.Order(bias="correct")
    post = drawn(sampler=sampler)
    full = drawn(sampler=gpn.samplers.Exact(reweight=None), draws=10)
    difference = np.abs(post.edge_probabilities() - full.edge_probabilities()).to_numpy()
    names = post.names
    errors = [[0.0 if i == j else post.edge_probability(i, j).mcse for j in names] for i in names]
    assert (difference <= 4 * np.nan_to_num(np.array(errors)) + 0.01).all()
    share = post.diagnostics().weight_share
    # Negative control: drawn once, most of the draws are lost.
    monkeypatch.setattr(stages, "_EVEN_SHARE", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        once = drawn(sampler=sampler).diagnostics().weight_share
    assert share > 1.5 * once, (once, share)


def test_log_scores_are_those_of_the_target():
    post = drawn(sampler="exact")
    scorer = Noisy(noise=0.5, rough=1.0).bind(simulated())
    sets = drawn_sets(post.parents)
    values = np.array([scorer.score_sets(i, [own]).values[0] for i, own in sets.keys])
    values += [post.scorer.prior.log_table(i, own)[-1] for i, own in sets.keys]
    np.testing.assert_allclose(post.log_score, values[sets.places].sum(axis=-1))


def test_corrections_are_gaps_where_these_are_known_and_predictions_elsewhere():
    post = drawn(sampler="exact", draws=200)
    target = ScoreCache(Noisy(noise=0.5, rough=1.0).bind(simulated()))
    proposal = ScoreCache(target.scorer.proposal())
    closer = CorrectedProposal(post.parents, proposal, target)
    sets = drawn_sets(post.parents)
    for node in range(7):
        own = [parents for i, parents in sets.keys if i == node]
        np.testing.assert_allclose(closer.values(node, own), target.values(node, own))
        gaps = target.values(node, own) - proposal.values(node, own)
        others = [j for j in range(7) if j != node]
        every = [s for size in range(7) for s in combinations(others, size)]
        never = [parents for parents in every if parents not in own]
        given, wanted = (np.array([[j in s for j in range(7)] for s in some], dtype=float) for some in (own, never))
        expected = Ridge(alpha=0.5).fit(given, gaps).predict(wanted)
        np.testing.assert_allclose(closer.values(node, never), proposal.values(node, never) + expected)


def test_ctrl_c_while_drawing_again_keeps_the_draws_made_before(monkeypatch):
    run_chains = chains.run_chains

    attempts = []

    def interrupted(*arguments, name="Sampling", **settings):
        if name != "Sampling":
            attempts.append(name)
            raise KeyboardInterrupt
        return run_chains(*arguments, **settings)

    monkeypatch.setattr(chains, "run_chains", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the weights are uneven
        post = drawn(sampler="exact")
    assert post.log_score.shape == (4, 1000) and attempts == ["Sampling 2"]
    assert post.diagnostics().weight_share < 0.5
