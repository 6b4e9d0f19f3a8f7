"""Chains of slow scores that don't agree are run again, tempered, and then find all modes."""

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.sampling import chains
from gpn_bayes.sampling.chains import Draws
from gpn_bayes.scores import Score, ScoreBatch, Scorer

pytestmark = pytest.mark.more("statistics that take long")

DATA = np.random.default_rng(1).normal(size=(20, 5))
PARTITION = gpn.samplers.Partition(thin=50)
SETTINGS = {
    "sampler": PARTITION, "draws": 1000, "tune": 500, "space": gpn.Space(max_parents=4), "progressbar": False,
}  # fmt: skip


class TwoModes(Score):
    """All others before a node as its parents, or all others after it: two complete DAGs, far from each other."""

    name = "two modes"
    parameters: dict[str, float] = {}  # noqa: RUF012

    def _bind(self, data):
        return TwoModesScorer(self, data.names, data.fingerprint)


class TwoModesScorer(Scorer):
    def score_sets(self, node, parent_sets):
        modes = tuple(range(node)), tuple(range(node + 1, len(self.names)))
        return ScoreBatch.exact(np.array([len(own) * (4.0 if own in modes else -1.0) for own in parent_sets]))


class Quick(TwoModes):
    name = "two modes at once"

    def _bind(self, data):
        scorer = TwoModesScorer(self, data.names, data.fingerprint)
        scorer.closed_form = True
        return scorer


def gap(post):
    by_chain = graphs.edge_shares(post.parents, post.weights)
    return float((by_chain.max(axis=0) - by_chain.min(axis=0)).max())


def test_chains_that_disagree_are_tempered():
    alone = gpn.sample(DATA, Quick(), random_seed=3, **SETTINGS)
    assert gap(alone) > 0.9 and "betas" not in alone.settings, "the case must be one that plain chains fail at"
    post = gpn.sample(DATA, TwoModes(), random_seed=3, **SETTINGS)
    assert len(post.settings["betas"]) == 4 and post.settings["temperatures"] == 1
    assert gap(post) < 0.2
    exact = gpn.sample(
        DATA, TwoModes(), sampler="exact", space=gpn.Space(max_parents=4), random_seed=3, progressbar=False
    )
    edges, errors = post.edge_probabilities().to_numpy(), post.summary().pivot(index="parent", columns="child")["mcse"]
    apart = np.abs(edges - exact.edge_probabilities().to_numpy())
    assert (apart <= 4 * errors.fillna(0).to_numpy() + 0.01).all()


def test_the_better_of_both_is_kept(monkeypatch):
    monkeypatch.setattr(chains, "_chance_gap", lambda drawn: -1.0)
    agreeing = np.random.default_rng(1).normal(size=(50, 3))
    plain = gpn.sample(agreeing, Quick(), random_seed=1, **SETTINGS | {"space": gpn.Space(max_parents=0)})
    post = gpn.sample(agreeing, TwoModes(), random_seed=1, **SETTINGS | {"space": gpn.Space(max_parents=0)})
    assert "betas" not in post.settings, "tempered chains that agree no better aren't kept"
    np.testing.assert_array_equal(post.parents, plain.parents)


def test_what_chance_explains_depends_on_the_draws_of_each_chain_not_on_how_many_chains_there_are():
    noise = np.random.default_rng(1).normal(size=(4, 2000))
    scores = noise.copy()
    for t in range(1, 2000):
        scores[:, t] += 0.95 * scores[:, t - 1]
    four, eight, even = (
        chains._chance_gap(Draws(*[None] * 9)._replace(log_scores=own))
        for own in (scores, np.concatenate([scores, scores]), noise)
    )
    assert eight == pytest.approx(four, rel=0.05)
    # One draw in (1 + 0.95) / (1 - 0.95) = 39 counts.
    assert four == pytest.approx(np.sqrt(39) * even, rel=0.3)


def test_runs_repeat_themselves_and_resume(tmp_path):
    first = gpn.sample(DATA, TwoModes(), random_seed=3, cache=tmp_path / "run.sqlite", **SETTINGS)
    again = gpn.sample(DATA, TwoModes(), random_seed=3, **SETTINGS)
    np.testing.assert_array_equal(first.parents, again.parents)


@pytest.mark.parametrize(
    "sampler", [gpn.samplers.Partition(thin=50, temperatures=2), gpn.samplers.Order(thin=50)], ids=lambda own: own.name
)
def test_what_was_asked_for_otherwise_is_left_alone(sampler):
    post = gpn.sample(DATA, TwoModes(), random_seed=3, **SETTINGS | {"sampler": sampler, "draws": 200})
    assert len(post.settings.get("betas", [1.0])) == sampler.settings.get("temperatures", 1)
