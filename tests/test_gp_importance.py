"""Importance sampling of Gaussian-process scores: against a reference by grids, and its parts against scipy."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import invgamma, multivariate_t

from gpn_bayes.kernels import gp_importance
from gpn_bayes.kernels.gp_modes import find_modes
from gpn_bayes.scores import importance
from gpn_bayes.scores.gp_basis import Basis
from gpn_bayes.scores.importance import importance_estimate

REFERENCE = Path(__file__).parent / "reference" / "gp"
PRIORS = np.array([1.0, 1.0, 2.0, 2.0])


@pytest.fixture(scope="module")
def basis():
    table = np.loadtxt(REFERENCE / "fourier_n4_N100_seed101.csv", delimiter=",", skiprows=1)
    return Basis((table - table.mean(axis=0)) / table.std(axis=0, ddof=1))


@pytest.fixture(scope="module")
def known():
    entries = json.loads((REFERENCE / "gp_truth.json").read_text())["scores"]
    return {(entry["node"], tuple(entry["parents"])): entry["log_score"] for entry in entries if entry["parents"]}


@pytest.fixture(scope="module")
def estimates(basis, known):
    rng = np.random.default_rng(1)
    result = {}
    for node, parents in known:
        moments = basis.moments(node, parents)
        result[node, parents] = importance_estimate(
            moments, PRIORS, *find_modes(moments, PRIORS), rng, target_error=0.025
        )
    return result


def a_mixture():
    roots = np.array([[[0.5, 0.0], [0.2, 0.3]], [[0.4, 0.0], [-0.1, 0.8]]])
    return gp_importance.Mixture(np.array([[-0.5, 0.2], [0.1, 1.5]]), roots, np.array([0.5, 0.3]))


def test_scores_are_the_reference(estimates, known):
    off = np.array([estimates[key].value - known[key] for key in known])
    assert len(off) == 28
    assert np.abs(off).max() < 0.06
    assert np.sqrt((off**2).mean()) < 0.025


def test_errors_are_as_large_as_they_say(estimates, known):
    z = np.array([(estimates[key].value - known[key]) / estimates[key].error for key in known])
    assert abs(z.mean()) < 0.6
    assert 0.6 < z.std(ddof=1) < 1.6


def test_status_tells_whether_the_aim_was_reached(estimates):
    for estimate in estimates.values():
        reached = estimate.error <= 1.5 * 0.025 and estimate.k_hat <= importance.LARGEST_K_HAT
        assert estimate.status == ("ok" if reached else "imprecise")
    assert sum(estimate.status == "ok" for estimate in estimates.values()) >= 27
    assert np.median([estimate.error for estimate in estimates.values()]) < 0.025


def test_same_seed_same_value(basis):
    moments = basis.moments(0, (1, 3))
    modes = find_modes(moments, PRIORS)
    first, again, other = (
        importance_estimate(moments, PRIORS, *modes, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert first == again
    assert first.value != other.value


def test_an_aim_out_of_reach_is_imprecise(basis):
    moments = basis.moments(0, (1,))
    modes = find_modes(moments, PRIORS)
    estimate = importance_estimate(moments, PRIORS, *modes, np.random.default_rng(1), target_error=1e-4, repeats=1)
    assert estimate.status == "imprecise"
    assert estimate.draws == 150 + 300 + 2400 + 2400


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
    np.testing.assert_allclose(densities[:, 2], 0.2 * prior, rtol=1e-10, atol=1e-300)


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
    assert gp_importance.variance_of_sum(weights, components) == pytest.approx(expected)


def test_hessians_that_are_no_minima_are_repaired():
    hessians = np.array([[[4.0, 0.0], [0.0, -1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
    mixture = gp_importance.laplace_mixture(np.zeros((2, 2)), np.zeros(2), hessians)
    scales = mixture.roots @ mixture.roots.transpose(0, 2, 1)
    np.testing.assert_allclose(scales[0], np.diag([0.25, 4.0]))
    np.testing.assert_allclose(scales[1], np.eye(2))
    assert mixture.shares.sum() == pytest.approx(0.9)


def test_fitting_moves_a_proposal_to_where_the_weights_are():
    rng = np.random.default_rng(4)
    first = gp_importance.laplace_mixture(np.array([[0.0, 0.5]]), np.zeros(1), 4 * np.eye(2)[None])
    points, _ = gp_importance.draw_points(first, PRIORS, 2000, rng)
    log_weights = -0.5 * (((points - [0.3, 0.9]) / [0.2, 0.4]) ** 2).sum(axis=1)
    log_weights -= np.log(gp_importance.component_densities(points, first, PRIORS).sum(axis=1))
    fitted = gp_importance.adapted_mixture(points, np.exp(log_weights), first, PRIORS)
    # The fitted components come first; those of the first proposal stay behind them, with the smaller share.
    count = len(first.shares)
    np.testing.assert_array_equal(fitted.centres[count:], first.centres)
    assert fitted.shares.sum() == pytest.approx(0.9) and fitted.shares[:count].sum() > fitted.shares[count:].sum()
    mean = (fitted.shares[:count] / fitted.shares[:count].sum()) @ fitted.centres[:count]
    np.testing.assert_allclose(mean, [0.3, 0.9], atol=0.05)
    assert fitted.shares.sum() == pytest.approx(0.9)
    assert np.diagonal(fitted.roots, axis1=1, axis2=2).min(axis=0) == pytest.approx([0.2, 0.4], rel=0.25)


def test_tail_shape_tells_heavy_tails_from_light_ones():
    rng = np.random.default_rng(5)
    assert importance.tail_shape(np.log(rng.random(500))) < 0.3
    assert importance.tail_shape(rng.standard_exponential(2000) * 1.2) > importance.LARGEST_K_HAT
    assert importance.tail_shape(np.where(np.arange(500) < 20, 0.0, -np.inf)) == np.inf
    assert importance.tail_shape(np.zeros(500)) == 0


def test_a_missing_mode_shows(basis, known):
    # Node 1 with parents 0 and 3 has two modes. Without the second, the unfitted proposal's error is larger, and the
    # fitted proposal, which hardly looks there, is further off. A single estimate's error and k needn't show it:
    # importance sampling doesn't make up for a mode that wasn't found.
    moments = basis.moments(1, (0, 3))
    every = find_modes(moments, PRIORS)
    best = tuple(part[:1] for part in every)
    assert len(every[0]) == 2
    errors, distances = [], []
    for modes in (every, best):
        mixture = gp_importance.laplace_mixture(*modes)
        rngs = [np.random.default_rng(seed) for seed in range(12)]
        rounds = [importance._draw_round(mixture, moments, PRIORS, 400, rng) for rng in rngs]
        errors.append(np.mean([importance._mean_of([drawn])[1] for drawn in rounds]))
        fitted = [importance_estimate(moments, PRIORS, *modes, rng, repeats=0) for rng in rngs]
        off = np.array([estimate.value for estimate in fitted]) - known[1, (0, 3)]
        distances.append(np.sqrt((off**2).mean()))
    assert errors[1] > 2 * errors[0]
    assert distances[1] > 2 * distances[0]
    assert distances[0] < 0.06
