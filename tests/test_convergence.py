"""When chains have converged: chance stops no run of enough draws, and excuses neither true gaps nor tiny runs."""

import numpy as np
import pytest

from gpn_bayes import graphs
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.diagnostics import chance_gap, diagnose, have_converged
from gpn_bayes.posterior.estimate import ess_of
from gpn_bayes.sampling.warned import run_warnings

pytestmark = pytest.mark.more("statistics that take long")

TIMES = 40
NODES = 10


def independent(rng, chains, draws, gap=0.0, likely=0.5):
    """Return draws of edges that are each as likely in all chains, but for one of the first chain, and log scores."""
    probabilities = np.full((chains, 1, NODES, NODES), likely) * np.triu(np.ones((NODES, NODES)), 1)
    probabilities[..., 0, 1] -= gap / 2
    probabilities[0, :, 0, 1] += gap
    dags = rng.random((chains, draws, NODES, NODES)) < probabilities
    return graphs.pack(dags.astype(np.int8)), rng.normal(size=(chains, draws))


def sticky(rng, chains, draws, stay):
    """Return the same, where draws often repeat the one before."""
    parents, log_scores = independent(rng, chains, draws)
    fresh = rng.random((chains, draws)) >= stay
    fresh[:, 0] = True
    last = np.maximum.accumulate(np.where(fresh, np.arange(draws), 0), axis=1)
    own = np.arange(chains)[:, None]
    return parents[own, last], log_scores[own, last]


def share(make, *settings, **more):
    """Return how often chains are said to have converged."""
    rng = np.random.default_rng(1)
    return np.mean([have_converged(*make(rng, *settings, **more)) for _ in range(TIMES)])


def largest_gap(parents):
    by_chain = np.array([graphs.unpack(own, NODES).mean(axis=0) for own in parents])
    return np.ptp(by_chain, axis=0).max()


@pytest.mark.parametrize(("chains", "draws"), [(2, 1000), (4, 1000), (4, 2000)])
def test_chains_of_one_distribution_converge(chains, draws):
    """45 edges of probability 1/2 are what chance parts most."""
    assert share(independent, chains, draws) > 0.9


def test_chance_does_part_them_by_more_than_the_limit():
    """Negative control: it is the allowance for chance that lets them pass."""
    rng = np.random.default_rng(1)
    gaps = [largest_gap(independent(rng, 4, 1000)[0]) for _ in range(TIMES)]
    assert np.mean(np.array(gaps) > 0.05) > 0.9
    assert np.mean(np.array(gaps) > chance_gap(1000)) < 0.1


@pytest.mark.parametrize(("make", "settings"), [(independent, {}), (sticky, {"stay": 0.5})])
def test_chance_excuses_only_what_all_the_draws_asked_for_would_leave_open(make, settings):
    """Before they are there, or where they repeat each other, more draws or longer strides are the cure."""
    rng = np.random.default_rng(1)
    parents, log_scores = make(rng, 4, 1000 if make is independent else 4000, **settings)
    effective = min(ess_of(log_scores) / 4, 1000)
    assert effective > 800 and 0.05 < largest_gap(parents) < chance_gap(effective)
    assert not have_converged(parents, log_scores, planned=4000)
    assert have_converged(*independent(rng, 4, 4000), planned=4000)


@pytest.mark.parametrize(("chains", "draws"), [(2, 1000), (4, 1000), (4, 2000)])
def test_a_true_gap_does_not_pass(chains, draws):
    assert share(independent, chains, draws, gap=0.15) < 0.1


def test_chains_in_different_modes_do_not_pass():
    rng = np.random.default_rng(1)
    parents, log_scores = independent(rng, 4, 4000, likely=0.0)
    assert have_converged(parents, log_scores)
    parents[0, :, 1, 0] = 1
    assert not have_converged(parents, log_scores)


@pytest.mark.parametrize("draws", [4, 40, 150, 500])
def test_few_draws_are_excused_no_gap(draws):
    rng = np.random.default_rng(1)
    parents, log_scores = independent(rng, 4, draws)
    assert 0.05 < largest_gap(parents) < chance_gap(draws)
    assert not have_converged(parents, log_scores)


def test_few_effective_draws_are_excused_no_gap_either():
    rng = np.random.default_rng(1)
    parents, log_scores = sticky(rng, 4, 2000, stay=0.8)
    effective = ess_of(log_scores)
    assert 400 < effective < 4 * 800
    assert 0.05 < largest_gap(parents) < chance_gap(effective / 4)
    assert not have_converged(parents, log_scores)


def test_sure_edges_need_no_more_draws_than_before():
    parents, log_scores = independent(np.random.default_rng(1), 4, 150, likely=0.001)
    assert have_converged(parents, log_scores)
    assert not have_converged(parents[:, :80], log_scores[:, :80])


def test_a_constant_log_score_leaves_it_to_the_edges():
    rng = np.random.default_rng(1)
    for draws, expected in ((1000, True), (500, False)):
        parents, log_scores = independent(rng, 2, draws)
        assert largest_gap(parents) > 0.05
        assert have_converged(parents, np.zeros_like(log_scores)) == expected


def test_chains_that_converged_are_said_to_agree():
    """Both judge by the same allowance."""
    rng = np.random.default_rng(2)
    names = tuple("abcdefghij")
    for _ in range(10):
        parents, log_scores = independent(rng, 4, 1000)
        found = diagnose(GraphPosterior(names, parents, log_scores, settings={"sampler": "partition"}))
        assert found.gap_limit == chance_gap(min(found.ess / 4, 1000))
        assert have_converged(parents, log_scores) == ("4 chains agree" in str(found))


def test_what_too_few_draws_leave_open_is_said():
    settings = {"sampler": "partition", "converged": False, "reweight": None}
    message = "\nChance may explain the gap, but would hide one as large: draw well over 800 of each chain."

    def warned(parents, log_scores):
        (text,) = run_warnings(GraphPosterior(tuple("abcdefghij"), parents, log_scores, settings=settings), 500)
        assert text.startswith("not converged: 4 chains ")
        return text

    rng = np.random.default_rng(1)
    assert warned(*independent(rng, 4, 500)).endswith(message)
    assert message not in warned(*independent(rng, 4, 500, gap=0.4))
    assert message not in warned(*independent(rng, 4, 500, likely=0.001))
    assert warned(*sticky(np.random.default_rng(1), 4, 4000, stay=0.5)).endswith("as large: draw more, or thin more.")
