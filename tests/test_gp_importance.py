"""Importance sampling of Gaussian-process scores: against a reference by grids, and its parts against scipy."""

import functools

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import genpareto, invgamma, multivariate_t

from gpn_bayes._util.pareto_tails import smooth_tail
from gpn_bayes.kernels.algebra.tails import pareto_fit
from gpn_bayes.kernels.gaussian_process import proposals as gp_importance
from gpn_bayes.scores.gp import importance
from gpn_bayes.scores.gp.importance import importance_estimate, mean_weight
from gpn_bayes.scores.gp.importance_weights import controlled_mean, variance_of_sum
from gpn_bayes.scores.gp.modes import Modes
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.proposal import Proposal, adapted_mixture, laplace_mixture, prior_moments
from tests.hyper_posteriors import KNOWN, KnownPosterior, estimates_of_reference, reference_posterior

pytestmark = pytest.mark.more("statistics that take long")

PRIORS = HyperPriors().for_parents(1)
TARGET = 0.025


def estimate_all(seed):
    return estimates_of_reference(functools.partial(importance_estimate, target_error=TARGET), seed)


@pytest.fixture(scope="module")
def estimates():
    return estimate_all(1)


def a_mixture():
    roots = np.array([[[0.5, 0.0], [0.2, 0.3]], [[0.4, 0.0], [-0.1, 0.8]]])
    return gp_importance.Mixture(np.array([[-0.5, 0.2], [0.1, 1.5]]), roots, np.array([0.5, 0.3]))


def test_scores_are_the_reference(estimates):
    off, _, _ = estimates
    assert len(off) == 28
    assert np.abs(off).max() < 0.06
    assert np.sqrt((off**2).mean()) < 0.025


def test_errors_are_as_large_as_they_say(estimates):
    off, errors, _ = estimates
    z = off / errors
    assert abs(z.mean()) < 0.6
    assert 0.6 < z.std(ddof=1) < 1.6


@pytest.mark.slow
def test_errors_are_as_large_as_they_say_over_many_seeds():
    offs, errors, _ = zip(*(estimate_all(seed) for seed in range(10, 22)), strict=True)
    z = np.concatenate(offs) / np.concatenate(errors)
    assert abs(z.mean()) < 0.2
    assert 0.85 < z.std() < 1.15
    assert np.abs(z).max() < 5
    assert 0.55 < (np.abs(z) < 1).mean() < 0.8
    assert np.sqrt((np.concatenate(offs) ** 2).mean()) < 0.025


def test_status_tells_whether_the_aim_was_reached(estimates):
    _, _, found = estimates
    for estimate in found:
        reached = estimate.error <= 1.5 * TARGET and estimate.k_hat <= importance.LARGEST_K_HAT
        assert estimate.status in (("ok",) if reached else ("bridge", "imprecise"))
    assert sum(estimate.status == "ok" for estimate in found) >= 27
    assert np.median([estimate.error for estimate in found]) < TARGET
    # Pilot, second round, and a third that is no larger than it has to be.
    assert np.mean([estimate.draws for estimate in found]) < 1500


def test_same_seed_same_value():
    posterior, modes = reference_posterior(0, (1, 3))
    first, again, other = (importance_estimate(posterior, modes, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert first == again
    assert first.value != other.value


def test_an_aim_out_of_reach_is_imprecise():
    posterior, modes = reference_posterior(0, (1,))
    estimate = importance_estimate(posterior, modes, np.random.default_rng(1), target_error=1e-5, repeats=1)
    assert estimate.status == "imprecise"
    # Importance sampling's rounds, then bridge sampling's: 600 posterior and 600 proposal draws, then eight times that.
    assert estimate.draws == 200 + 200 + 2400 + 2400 + 1200 + 9600
    assert estimate.value == pytest.approx(KNOWN[0, (1,)], abs=0.02)


def test_bridge_sampling_takes_over_where_the_weights_have_a_heavy_tail(monkeypatch):
    posterior, modes = reference_posterior(1, (0, 3))
    monkeypatch.setattr(importance, "LARGEST_K_HAT", -5.0)
    estimate = importance_estimate(posterior, modes, np.random.default_rng(1), repeats=0)
    assert estimate.status == "bridge"
    assert estimate.k_hat > -5
    assert estimate.value == pytest.approx(KNOWN[1, (0, 3)], abs=4 * estimate.error)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_known_integral_is_found(size):
    posterior = KnownPosterior(size)
    found = [importance_estimate(posterior, posterior.modes(), np.random.default_rng(seed)) for seed in range(12)]
    z = np.array([(each.value - posterior.log_integral) / each.error for each in found])
    assert np.abs(z).max() < 4
    assert np.sqrt((z**2).mean()) < 1.7
    assert max(each.error for each in found) < 0.05


def test_a_posterior_without_known_modes_is_still_integrated():
    posterior = KnownPosterior(2, distance=1.0)
    nothing = Modes(np.empty((0, 2)), np.empty(0), np.empty((0, 2, 2)))
    estimate = importance_estimate(posterior, nothing, np.random.default_rng(1))
    assert estimate.value == pytest.approx(posterior.log_integral, abs=4 * estimate.error)


def test_nowhere_a_density_is_no_estimate():
    posterior, modes = reference_posterior(0, (1,))

    class Nowhere:
        priors = posterior.priors

        def log_densities(self, points):
            return np.full(len(points), -np.inf)

    estimate = importance_estimate(Nowhere(), modes, np.random.default_rng(1))
    assert estimate.value == -np.inf and estimate.status == "imprecise"


def test_densities_are_scipys():
    mixture = a_mixture()
    points, _ = gp_importance.draw_points(mixture, PRIORS, 50, np.random.default_rng(1))
    densities = gp_importance.component_densities(points, mixture, PRIORS)
    for k in range(2):
        shape = mixture.roots[k] @ mixture.roots[k].T
        expected = mixture.shares[k] * multivariate_t(mixture.centres[k], shape, df=5).pdf(points)
        np.testing.assert_allclose(densities[:, k], expected, rtol=1e-10)
    sigma, theta = np.exp(points.T)
    prior = invgamma(1, scale=1).pdf(sigma) * sigma * invgamma(2, scale=2).pdf(theta) * theta
    np.testing.assert_allclose(densities[:, 2], 0.2 * prior, rtol=0.02)
    # Draws of the prior are those of a histogram, whose density is known exactly.
    expected = 0.2
    for values, distribution in ((points[:, 0], invgamma(1, scale=1)), (points[:, 1], invgamma(2, scale=2))):
        edges = PRIORS.lowest + PRIORS.step * (np.floor((values - PRIORS.lowest) / PRIORS.step) + [[0], [1]])
        within = np.diff(distribution.cdf([1e-3, 1e4]))
        expected = expected * np.diff(distribution.cdf(np.exp(edges)), axis=0)[0] / (PRIORS.step * within)
    np.testing.assert_allclose(densities[:, 2], expected, rtol=1e-6)


def test_draws_have_the_density_they_are_given():
    mixture = a_mixture()
    count = 40_000
    points, components = gp_importance.draw_points(mixture, PRIORS, count, np.random.default_rng(2))
    assert np.abs(np.bincount(components) - count * np.array([0.5, 0.3, 0.2])).max() <= 1
    density = gp_importance.component_densities(points, mixture, PRIORS).sum(axis=1)
    # A wide normal integrates to one whatever the proposal is, if the draws are the proposal's.
    target = np.exp(-0.5 * ((points - [0.0, 0.7]) ** 2 / [0.5, 0.9]).sum(axis=1)) / (2 * np.pi * np.sqrt(0.45))
    weights = target / density
    error = weights.std() / np.sqrt(count)
    assert error < 0.01
    assert abs(weights.mean() - 1) < 4 * error
    assert abs((2 * weights)[components < 2].sum() / count - 1) > 4 * error


def test_variance_of_sum_is_the_strata_s():
    rng = np.random.default_rng(3)
    components = np.repeat([0, 1, 2, 3], [40, 30, 4, 5])
    weights = rng.random(79) + components
    expected = 40 * weights[:40].var(ddof=1) + 30 * weights[40:70].var(ddof=1) + 9 * weights[70:].var(ddof=1)
    assert variance_of_sum(weights, components) == pytest.approx(expected)


def test_control_variates_take_out_what_the_components_explain():
    mixture = a_mixture()
    count = 400
    means, errors, plain = [], [], []
    for seed in range(100):
        points, components = gp_importance.draw_points(mixture, PRIORS, count, np.random.default_rng(seed))
        densities = gp_importance.component_densities(points, mixture, PRIORS)
        bump = np.exp(-0.5 * ((points - [0.0, 0.6]) ** 2).sum(axis=1) / 0.3) / (2 * np.pi * 0.3)
        weights = (0.2 * bump + densities[:, 0] / 0.5 * 0.8) / densities.sum(axis=1)
        mean, error = controlled_mean(weights, densities, mixture.shares, components)
        means.append(mean)
        errors.append(error)
        plain.append(np.sqrt(variance_of_sum(weights, components)) / count)
    assert np.mean(errors) < 0.85 * np.mean(plain)
    z = (np.array(means) - 1.0) / errors
    assert abs(z.mean()) < 0.4
    assert 0.8 < z.std() < 1.25
    # What is a mixture of the components alone has no error at all; a weight too many shows.
    exact = (0.3 * densities[:, 0] / 0.5 + 0.7 * densities[:, 1] / 0.3) / densities.sum(axis=1)
    mean, error = controlled_mean(exact, densities, mixture.shares, components)
    assert mean == pytest.approx(1.0, abs=1e-6) and error < 1e-6
    assert controlled_mean(1.1 * exact, densities, mixture.shares, components)[0] == pytest.approx(1.1, abs=1e-6)


def test_the_error_is_that_of_draws_predicted_from_the_others():
    """Each draw's term is what a regression on all others leaves of it: with few draws, more than its own residual."""
    mixture, count = a_mixture(), 30
    points, components = gp_importance.draw_points(mixture, PRIORS, count, np.random.default_rng(4))
    densities = gp_importance.component_densities(points, mixture, PRIORS)
    weights = np.exp(-(points**2).sum(axis=1)) / densities.sum(axis=1)
    ratios = densities[:, :2] / mixture.shares / densities.sum(axis=1, keepdims=True) - 1
    design = np.column_stack([np.ones(count), ratios])
    mapped = np.linalg.pinv(design)[0]
    refits = [np.linalg.lstsq(np.delete(design, i, 0), np.delete(weights, i), rcond=None)[0] for i in range(count)]
    left = np.array([weights[i] - design[i] @ refits[i] for i in range(count)])
    _, error = controlled_mean(weights, densities, mixture.shares, components)
    assert error == pytest.approx(np.sqrt(variance_of_sum(mapped * left, components)), rel=1e-5)
    own = weights - design @ np.linalg.lstsq(design, weights, rcond=None)[0]
    assert error > 1.05 * np.sqrt(variance_of_sum(mapped * own, components))


def test_the_controlled_mean_is_that_of_least_squares():
    mixture = a_mixture()
    points, components = gp_importance.draw_points(mixture, PRIORS, 300, np.random.default_rng(1))
    densities = gp_importance.component_densities(points, mixture, PRIORS)
    weights = np.exp(-(points**2).sum(axis=1)) / densities.sum(axis=1)
    ratios = densities[:, :2] / mixture.shares / densities.sum(axis=1, keepdims=True) - 1
    design = np.column_stack([np.ones(300), ratios])
    expected = np.linalg.lstsq(design, weights, rcond=None)[0][0]
    assert controlled_mean(weights, densities, mixture.shares, components)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3, 0.9])
@pytest.mark.parametrize("count", [30, 70, 400])
def test_the_pareto_fit_and_the_smoothing_are_arvizs(shape, count):
    rng = np.random.default_rng(count)
    excesses = np.sort(genpareto(shape, scale=0.7).rvs(count, random_state=rng))
    np.testing.assert_allclose(pareto_fit(excesses), array_stats._gpdfit(excesses), rtol=1e-9)
    log_weights = np.log(0.2 + genpareto(shape, scale=0.7).rvs(3 * count, random_state=rng))
    smoothed, k_hat = smooth_tail(np.exp(log_weights))
    expected, expected_k = array_stats.psislw(-log_weights)
    assert k_hat == pytest.approx(float(expected_k), rel=1e-9)
    np.testing.assert_allclose(smoothed / smoothed.sum(), np.exp(expected), rtol=1e-9)
    assert (smoothed != np.exp(log_weights)).sum() > 0.5 * min(3 * np.sqrt(3 * count), 0.6 * count) - 2


def test_tails_that_cannot_be_fitted_stay():
    for weights, expected in (
        (np.ones(500), 0),
        (np.where(np.arange(500) < 20, 1.0, 0.0), np.inf),
        (np.ones(9), np.inf),
    ):
        smoothed, k_hat = smooth_tail(weights)
        assert k_hat == expected
        np.testing.assert_array_equal(smoothed, weights)


def test_the_tail_tells_heavy_weights_from_light_ones():
    rng = np.random.default_rng(5)
    assert smooth_tail(rng.random(500))[1] < 0.3
    assert smooth_tail(np.exp(rng.standard_exponential(2000) * 1.2))[1] > importance.LARGEST_K_HAT


def test_hessians_that_are_no_minima_are_repaired():
    hessians = np.array([[[4.0, 0.0], [0.0, -1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
    mixture = laplace_mixture(Modes(np.zeros((2, 2)), np.zeros(2), hessians), PRIORS)
    scales = mixture.roots @ mixture.roots.transpose(0, 2, 1)
    np.testing.assert_allclose(scales[0], np.diag([0.25, 4.0]))
    np.testing.assert_allclose(scales[1], np.eye(2))
    assert mixture.shares.sum() == pytest.approx(0.9)


def test_shoulders_are_as_wide_as_the_prior():
    moments = prior_moments(HyperPriors().for_parents(2))
    for row, (shape, scale) in zip(moments, [(1, 1), (2, 2), (2, 2)], strict=True):
        draws = np.log(invgamma(shape, scale=scale).rvs(200_000, random_state=1))
        np.testing.assert_allclose(row, [draws.mean(), draws.std()], atol=0.01)
    hessian = np.array([[9.0, 1.0, 0.5], [1.0, 16.0, 2.0], [0.5, 2.0, 25.0]])
    mode = np.array([-0.5, 0.3, 1.0])
    mixture = laplace_mixture(Modes(mode[None], np.zeros(1), hessian[None]), HyperPriors().for_parents(2))
    assert len(mixture.shares) == 4
    for i in (1, 2):
        scale = mixture.roots[1 + i] @ mixture.roots[1 + i].T
        assert mixture.centres[1 + i, i] == moments[i, 0] and np.sqrt(scale[i, i]) == pytest.approx(moments[i, 1])
        others = [k for k in range(3) if k != i]
        np.testing.assert_array_equal(mixture.centres[1 + i, others], mode[others])
        expected = 1.5 * np.linalg.inv(hessian)[np.ix_(others, others)]
        np.testing.assert_allclose(scale[np.ix_(others, others)], expected)


def test_fitting_moves_a_proposal_to_where_the_weights_are():
    rng = np.random.default_rng(4)
    first = laplace_mixture(Modes(np.array([[0.0, 0.5]]), np.zeros(1), 4 * np.eye(2)[None]), PRIORS)
    points, _ = gp_importance.draw_points(first, PRIORS, 2000, rng)
    log_weights = -0.5 * (((points - [0.3, 0.9]) / [0.2, 0.4]) ** 2).sum(axis=1)
    log_weights -= np.log(gp_importance.component_densities(points, first, PRIORS).sum(axis=1))
    fitted = adapted_mixture(points, np.exp(log_weights), first, PRIORS)
    # The fitted components come first; those of the first proposal stay behind them, with the smaller share.
    count = len(first.shares)
    np.testing.assert_array_equal(fitted.centres[count:], first.centres)
    assert fitted.shares.sum() == pytest.approx(0.9) and fitted.shares[:count].sum() > fitted.shares[count:].sum()
    mean = (fitted.shares[:count] / fitted.shares[:count].sum()) @ fitted.centres[:count]
    np.testing.assert_allclose(mean, [0.3, 0.9], atol=0.05)
    assert fitted.shares.sum() == pytest.approx(0.9)
    assert np.diagonal(fitted.roots, axis1=1, axis2=2).min(axis=0) == pytest.approx([0.2, 0.4], rel=0.25)


def test_a_missing_mode_is_found_by_the_shoulders():
    # Node 1 with parents 0 and 3 has two modes. Without the second, the unfitted proposal's error is larger, but
    # components as wide as the prior along one length scale find the second mode for the fit.
    posterior, every = reference_posterior(1, (0, 3))
    best = Modes(*(part[:1] for part in every))
    assert len(every.points) == 2
    errors = []
    for modes in (every, best):
        rngs = [np.random.default_rng(seed) for seed in range(12)]
        errors.append(np.mean([mean_weight(Proposal(posterior, modes, rng).draw(400))[1] for rng in rngs]))
        found = [importance_estimate(posterior, modes, rng, repeats=0) for rng in rngs]
        off = np.array([estimate.value for estimate in found]) - KNOWN[1, (0, 3)]
        assert np.sqrt((off**2).mean()) < 0.04
    assert errors[1] > 2 * errors[0]


def test_a_mode_that_nothing_points_to_is_not_made_up_for():
    # Two modes apart in all coordinates: nothing but the prior's few draws looks at the one that isn't told.
    posterior = KnownPosterior(5, distance=6.0)
    best = Modes(*(part[:1] for part in posterior.modes()))
    rngs = [np.random.default_rng(seed) for seed in range(6)]
    missed = np.array([importance_estimate(posterior, best, rng).value for rng in rngs]) - posterior.log_integral
    found = [importance_estimate(posterior, posterior.modes(), rng).value for rng in rngs]
    assert np.median(np.abs(missed)) > 0.2
    np.testing.assert_allclose(found, posterior.log_integral, atol=0.1)
