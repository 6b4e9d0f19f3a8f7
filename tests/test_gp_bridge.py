"""Bridge sampling: against known integrals, the reference by grids, and its parts against ArviZ and formulas."""

import functools
import time

import numpy as np
import pytest

from gpn_bayes.kernels.gaussian_process.independence_chains import independence_chain
from gpn_bayes.scores.gp.bridge import bridge_estimate, bridge_of_ratios
from gpn_bayes.scores.gp.importance import importance_estimate
from tests.hyper_posteriors import KNOWN, KnownPosterior, estimates_of_reference, reference_posterior

pytestmark = pytest.mark.more("statistics that take long")

TARGET = 0.02


def estimate_all(seed):
    return estimates_of_reference(functools.partial(bridge_estimate, target_error=TARGET), seed)


@pytest.fixture(scope="module")
def estimates():
    return estimate_all(1)


def test_scores_are_the_reference(estimates):
    off, _, found = estimates
    assert len(off) == 28
    assert np.abs(off).max() < 0.06
    assert np.sqrt((off**2).mean()) < 0.025
    assert sum(each.status == "ok" for each in found) >= 26


def test_errors_are_as_large_as_they_say(estimates):
    off, errors, _ = estimates
    z = off / errors
    assert abs(z.mean()) < 0.6
    assert 0.6 < z.std(ddof=1) < 1.6


@pytest.mark.slow
def test_errors_are_as_large_as_they_say_over_many_seeds():
    offs, errors, _ = zip(*(estimate_all(seed) for seed in range(10, 20)), strict=True)
    z = np.concatenate(offs) / np.concatenate(errors)
    assert abs(z.mean()) < 0.2
    assert 0.85 < z.std() < 1.15
    assert np.abs(z).max() < 5
    assert 0.55 < (np.abs(z) < 1).mean() < 0.8
    assert np.sqrt((np.concatenate(offs) ** 2).mean()) < 0.025


@pytest.mark.parametrize("source", ["independence", "given"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_known_integral_is_found(size, source):
    posterior = KnownPosterior(size)
    draws = posterior.draw if source == "given" else None
    rngs = np.random.default_rng(size).spawn(12)
    found = [bridge_estimate(posterior, posterior.modes(), rng, posterior_draws=draws) for rng in rngs]
    z = np.array([(each.value - posterior.log_integral) / each.error for each in found])
    assert np.abs(z).max() < 4
    assert np.sqrt((z**2).mean()) < 1.7
    assert max(each.error for each in found) <= 1.25 * 0.03
    assert all(each.status == "ok" for each in found)


def test_draws_are_asked_for_until_the_error_is_small_enough():
    posterior = KnownPosterior(3)
    asked = []

    def draws(count, rng):
        asked.append(count)
        return posterior.draw(count, rng, chains=3)

    found = bridge_estimate(
        posterior, posterior.modes(), np.random.default_rng(1), draws=90, target_error=0.015, posterior_draws=draws
    )
    assert found.status == "ok"
    assert asked[0] == 90 and 90 < asked[1] <= 8 * 90
    del asked[:]
    found = bridge_estimate(
        posterior, posterior.modes(), np.random.default_rng(1), draws=90, target_error=1e-4, posterior_draws=draws
    )
    assert found.status == "imprecise"
    assert asked == [90, 720]
    # Two pilot rounds; posterior draws in chains of three, and as many of the proposal.
    assert found.draws == 400 + 2 * (90 + 720)


def test_same_seed_same_value():
    posterior, modes = reference_posterior(0, (1, 3))
    first, again, other = (bridge_estimate(posterior, modes, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert first == again
    assert first.value != other.value


def test_importance_and_bridge_agree(estimates):
    _, errors, found = estimates
    others = estimates_of_reference(importance_estimate, 3)
    gaps = [one.value - other.value for one, other in zip(found, others[2], strict=True)]
    z = np.array(gaps) / np.hypot(errors, others[1])
    assert np.abs(z).max() < 4 and np.sqrt((z**2).mean()) < 1.6


def test_draws_of_another_distribution_give_another_value():
    posterior = KnownPosterior(3)

    def shifted(count, rng):
        return posterior.draw(count, rng) + 0.7

    found = [
        bridge_estimate(posterior, posterior.modes(), np.random.default_rng(seed), posterior_draws=shifted)
        for seed in range(6)
    ]
    assert min(abs(each.value - posterior.log_integral) / each.error for each in found) > 4


def test_chains_that_are_stuck_in_different_modes_do_not_mislead():
    # Half of the draws are in the mode that has a tenth of the mass. The pilot draws know that.
    posterior = KnownPosterior(3, shares=(0.9, 0.1), distance=6.0)
    stuck = functools.partial(posterior.draw, shares="stuck")
    rngs = np.random.default_rng(4).spawn(8)
    found = [bridge_estimate(posterior, posterior.modes(), rng, posterior_draws=stuck) for rng in rngs]
    for each in found:
        assert abs(each.value - posterior.log_integral) < 4 * each.error
        assert each.error < 0.05 or each.status == "imprecise"


def test_the_bridge_of_two_normals():
    rng = np.random.default_rng(1)
    gap, z = 1.0, []
    for _ in range(200):
        x, y = rng.normal(size=(2, 150)), gap + rng.normal(size=300)
        # Log of exp(2) N(0, 1) over N(1, 1).
        ratios = [2.0 - 0.5 * v**2 + 0.5 * (v - gap) ** 2 for v in (x, y)]
        value, error, effective = bridge_of_ratios(*ratios)
        assert 150 < effective <= 300
        z.append((value - 2.0) / error)
    assert abs(np.mean(z)) < 0.3
    assert 0.85 < np.std(z) < 1.15


def test_the_iteration_ends_where_meng_and_wong_say():
    rng = np.random.default_rng(2)
    at_posterior, at_proposal = rng.normal(size=(1, 200)), rng.normal(size=200) - 0.5
    value, _, effective = bridge_of_ratios(at_posterior, at_proposal)
    share, ratio = effective / (effective + 200), np.exp(value)
    l1, l2 = np.exp(at_posterior[0]), np.exp(at_proposal)
    top = (l2 / (share * l2 + (1 - share) * ratio)).mean()
    bottom = (1 / (share * l1 + (1 - share) * ratio)).mean()
    assert ratio == pytest.approx(top / bottom, rel=1e-8)


def test_correlated_draws_count_for_less_and_give_a_larger_error():
    rng = np.random.default_rng(3)
    at_posterior = rng.normal(size=(2, 200))
    at_proposal = rng.normal(size=400) - 1.0
    repeated = np.repeat(at_posterior[:, :40], 5, axis=1)
    _, error, effective = bridge_of_ratios(at_posterior, at_proposal)
    _, larger, fewer = bridge_of_ratios(repeated, at_proposal)
    assert fewer < 0.4 * effective
    assert larger > 1.2 * error


def test_no_density_no_estimate():
    assert bridge_of_ratios(np.array([[0.0, -np.inf]]), np.zeros(2))[:2] == (-np.inf, np.inf)
    assert bridge_of_ratios(np.zeros((1, 2)), np.full(2, -np.inf))[:2] == (-np.inf, np.inf)


def test_the_independence_chain_visits_proposals_in_proportion_to_their_weights():
    rng = np.random.default_rng(7)
    chances = np.array([0.6, 0.3, 0.1])
    proposals = rng.integers(3, size=60_000)
    visited = proposals[independence_chain(np.log(chances)[proposals], np.log(rng.random(60_000)))]
    frequencies = np.bincount(visited) / len(visited)
    np.testing.assert_allclose(frequencies, chances, atol=0.012)
    # By hand: a certain step up, a refused step down, an accepted one, and no step to where there is no density.
    log_weights = np.array([-np.inf, 0.0, -1.0, -0.5, -np.inf])
    assert independence_chain(log_weights, np.log([0.5, 0.9, 0.5, 0.5, 1e-9])).tolist() == [0, 1, 1, 3, 3]


@pytest.mark.slow
def test_nuts_and_the_independence_sampler_agree(estimates):
    pytest.importorskip("pymc")
    from gpn_bayes.scores.gp.nuts import nuts_draws

    _, errors, found = estimates
    z = []
    for i, key in enumerate(KNOWN):
        posterior, modes = reference_posterior(*key)
        draws = functools.partial(nuts_draws, posterior, modes)
        by_nuts = bridge_estimate(
            posterior,
            modes,
            np.random.default_rng(i),
            target_error=TARGET,
            posterior_draws=draws,
        )
        z.append((by_nuts.value - found[i].value) / np.hypot(by_nuts.error, errors[i]))
    assert np.abs(z).max() < 4
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.6


@pytest.mark.slow
def test_a_score_takes_less_than_a_fifth_of_a_second():
    seconds = []
    for key in KNOWN:
        posterior, modes = reference_posterior(*key)
        bridge_estimate(posterior, modes, np.random.default_rng(1), target_error=TARGET)
        begin = time.process_time()
        bridge_estimate(posterior, modes, np.random.default_rng(2), target_error=TARGET)
        seconds.append(time.process_time() - begin)
    assert np.median(seconds) < 0.2
