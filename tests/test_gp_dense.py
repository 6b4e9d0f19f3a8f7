"""The dense Gaussian-process posterior against scipy, differences, the low-rank form, and data made for it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import invgamma, multivariate_normal, qmc
from threadpoolctl import threadpool_info, threadpool_limits

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes.kernels.gaussian_process import dense as gp_dense
from gpn_bayes.kernels.gaussian_process.priors import log_prior
from gpn_bayes.scores import GP
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.dense import LARGEST_DENSE, DensePosterior
from gpn_bayes.scores.gp.importance import importance_estimate
from gpn_bayes.scores.gp.laplace import laplace_estimate
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.modes import first_inverse
from gpn_bayes.scores.gp.priors import HyperPriors

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

PRIORS = HyperPriors()
REFERENCE = Path(__file__).parent / "reference" / "gp" / "fourier_n4_N100_seed101.csv"
KERNELS = ["additive", "interaction"]


def standardise(values):
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


@pytest.fixture(scope="module")
def reference():
    return standardise(pd.read_csv(REFERENCE).to_numpy())


@pytest.fixture(scope="module", autouse=True)
def quick_scipy():
    """On a busy machine scipy's threads would wait for each other, too."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def posterior_of(values, node, parents, kernel="additive"):
    priors = PRIORS.for_parents(len(parents), kernel)
    return DensePosterior(values[:, node], values[:, list(parents)], priors, kernel)


def textbook(phi, x, y, kernel, mu_sd):
    """Return log N(y; 0, C), every term of C by its name."""
    parents = x.shape[1]
    thetas = np.exp(phi[1 : parents + 1])
    kernels = [np.exp(-(np.subtract.outer(c, c) ** 2) / (2 * t**2)) for c, t in zip(x.T, thetas, strict=True)]
    tau1 = np.exp(phi[parents + 1]) if kernel == "interaction" and parents > 1 else 1.0
    covariance = tau1 * sum(kernels) + mu_sd**2 + np.exp(2 * phi[0]) * np.eye(len(y))
    if kernel == "interaction" and parents > 1:
        covariance += np.exp(phi[parents + 2]) * sum(a * b for a, b in combinations(kernels, 2))
    return multivariate_normal.logpdf(y, cov=covariance)


def example(parents, kernel, n_rows=60, seed=0):
    rng = np.random.default_rng([seed, parents])
    x, y = rng.normal(size=(n_rows, parents)), rng.normal(size=n_rows)
    return x, y, rng.uniform(-1, 1, size=(4, gp_dense.size_of_phi(parents, kernel == "interaction")))


# With 300 rows the kernels are computed in several pieces.
@pytest.mark.parametrize("n_rows", [60, 300])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("parents", [1, 2, 3])
def test_value_is_the_textbooks(parents, kernel, n_rows):
    x, y, points = example(parents, kernel, n_rows)
    posterior = DensePosterior(y, x, PRIORS.for_parents(parents, kernel), kernel, mu_sd=0.7)
    for phi, value in zip(points, posterior.log_densities(points), strict=True):
        shapes = [1.0] + [2.0] * parents + [1.0] * (len(phi) - parents - 1)
        prior = (invgamma(shapes, scale=shapes).logpdf(np.exp(phi)) + phi).sum()
        assert value == pytest.approx(textbook(phi, x, y, kernel, 0.7) + prior, abs=1e-8)
        assert posterior.log_density_and_gradient(phi)[0] == value


def test_comparison_notices_small_mistakes():
    x, y, points = example(3, "interaction")
    work = gp_dense.new_workspace(x)
    value = gp_dense.log_likelihood(points[0], x, y, True, 0.49, work)
    for k in range(len(points[0])):
        wrong = points[0] + 1e-4 * np.eye(len(points[0]))[k]
        assert abs(textbook(wrong, x, y, "interaction", 0.7) - value) > 1e-6
    assert abs(textbook(points[0], x, y, "interaction", 0.7001) - value) > 1e-6


@pytest.mark.parametrize("n_rows", [60, 300])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("parents", [1, 2, 3])
def test_gradient_equals_differences(parents, kernel, n_rows):
    x, y, points = example(parents, kernel, n_rows)
    posterior = DensePosterior(y, x, PRIORS.for_parents(parents, kernel), kernel)
    for phi in points[:2]:
        _, gradient = posterior.log_density_and_gradient(phi)
        for k, step in enumerate(1e-3 * np.eye(len(phi))):
            # Five points: the error is of fourth order in the step.
            up, down, far_up, far_down = posterior.log_densities(phi + np.outer([1, -1, 2, -2], step))
            assert gradient[k] == pytest.approx((8 * (up - down) - (far_up - far_down)) / 12e-3, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("parents", [(0,), (0, 3), (0, 2, 3)])
def test_additive_values_are_those_of_the_low_rank_form(reference, parents):
    dense = posterior_of(reference, 1, parents)
    low_rank = LowRankPosterior(Basis(reference, 1e-10).moments(1, parents), PRIORS.for_parents(len(parents)))
    points = np.random.default_rng(1).uniform(np.log(0.2), np.log(4), size=(10, 1 + len(parents)))
    # The less noise, the more the low-rank form's tables are off; the modes lie within this range.
    points[:, 0] = np.linspace(np.log(0.5), np.log(1.5), 10)
    np.testing.assert_allclose(dense.log_densities(points), low_rank.log_densities(points), rtol=0, atol=1e-6)
    for phi in points:
        ours, theirs = dense.log_density_and_gradient(phi)[1], low_rank.log_density_and_gradient(phi)[1]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("node", "parents", "count"), [(1, (0, 3), 2), (0, (1, 3), 2), (0, (1,), 1), (2, (0, 1, 3), 1)]
)
def test_modes_are_those_of_the_low_rank_form(reference, node, parents, count):
    ours = posterior_of(reference, node, parents).find_modes()
    moments = Basis(reference, 1e-10).moments(node, parents)
    theirs = LowRankPosterior(moments, PRIORS.for_parents(len(parents))).find_modes()
    assert len(ours.points) == count
    np.testing.assert_allclose(ours.points, theirs.points, atol=1e-4)
    np.testing.assert_allclose(ours.heights, theirs.heights, atol=1e-6)
    np.testing.assert_allclose(ours.hessians, theirs.hessians, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("node", "parents"), [(1, (0, 3)), (2, (0, 1, 3))])
def test_modes_with_interactions_are_flat_distinct_and_all_that_random_starts_find(reference, node, parents):
    posterior = posterior_of(reference, node, parents, "interaction")
    modes = posterior.find_modes()
    assert len(modes.points) == 2 and modes.heights[0] > modes.heights[1]
    assert np.abs(modes.points[0] - modes.points[1]).max() > 0.05
    for mode, height, hessian in zip(*modes, strict=True):
        value, gradient = posterior.log_density_and_gradient(mode)
        assert value == height and np.abs(gradient).max() < 1e-5
        assert np.linalg.eigvalsh(hessian)[0] > 0
    rng = np.random.default_rng(3)
    for _ in range(12):
        start = rng.uniform(np.log(0.2), np.log(4), size=posterior.size)
        end, _ = posterior._climb(start, first_inverse(posterior.size, len(posterior.y)), 1e-10)
        assert np.abs(modes.points - end).max(axis=1).min() < 0.01


def test_integral_with_a_weighted_kernel_is_the_mean_likelihood_over_the_prior():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 2))
    values = standardise(np.column_stack([x, x[:, 0] * x[:, 1] + 0.5 * rng.normal(size=12)]))
    posterior = posterior_of(values, 2, (0, 1), "interaction")
    modes = posterior.find_modes()
    # Of sigma, two theta and two tau, four times over by scrambled Sobol points; a few rows leave all of them open.
    shapes = np.array([1.0, 2.0, 2.0, 1.0, 1.0])
    means = []
    for scramble in range(4):
        points = np.log(invgamma.ppf(qmc.Sobol(5, seed=scramble).random_base2(13), shapes, scale=shapes))
        priors = np.array([log_prior(point, posterior.priors) for point in points])
        means.append(np.exp(posterior.log_densities(points) - np.maximum(priors, -1e6)).mean())
    expected, error = np.log(np.mean(means)), np.std(means, ddof=1) / np.mean(means) / 2
    assert error < 0.02
    estimate = importance_estimate(posterior, modes, np.random.default_rng(5), target_error=0.02)
    assert abs(estimate.value - expected) < 4 * np.hypot(estimate.error, error)
    # Laplace is near, but not the integral.
    assert 0.05 < abs(laplace_estimate(modes).value - expected) < 1.5


def scores_of(values, node, parents):
    return [laplace_estimate(posterior_of(values, node, parents, kernel).find_modes()).value for kernel in KERNELS]


def test_a_product_of_parents_needs_interactions():
    rng = np.random.default_rng(6)
    x, noise = rng.normal(size=(100, 2)), 0.3 * rng.normal(size=100)
    additive, interaction = scores_of(standardise(np.column_stack([x, x[:, 0] * x[:, 1] + noise])), 2, (0, 1))
    assert interaction > additive + 50
    # Negative control: a sum of parents doesn't.
    additive, interaction = scores_of(
        standardise(np.column_stack([x, np.sin(2 * x[:, 0]) + x[:, 1] + noise])), 2, (0, 1)
    )
    assert interaction < additive + 3


def test_length_scales_below_a_tenth_are_found():
    rng = np.random.default_rng(7)
    x = np.linspace(0, 1, 150)
    y = np.sin(75 * x) + 0.2 * rng.normal(size=150)
    modes = posterior_of(standardise(np.column_stack([x, y])), 1, (0,)).find_modes()
    sigma, theta = np.exp(modes.points[0])
    assert theta < 0.09 and sigma < 0.5
    # Seen from afar, all of it is noise: another mode.
    assert np.exp(modes.points[-1, 1]) > 0.5 and modes.heights[-1] < modes.heights[0] - 20
    # Negative control: the same values in any order.
    shuffled = posterior_of(standardise(np.column_stack([x, rng.permutation(y)])), 1, (0,)).find_modes()
    assert np.exp(shuffled.points[:, 1]).min() > 0.3


@pytest.mark.parametrize("kernel", KERNELS)
def test_twenty_parents_have_modes(kernel):
    values = np.random.default_rng(8).normal(size=(30, 21))
    posterior = posterior_of(values, 20, range(20), kernel)
    modes = posterior.find_modes()
    assert np.isfinite(laplace_estimate(modes).value)
    assert all(np.abs(posterior.log_density_and_gradient(mode)[1]).max() < 1e-5 for mode in modes.points)


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_parents_only_the_noise_is_left(kernel):
    y = np.random.default_rng(9).normal(size=50)
    posterior = DensePosterior(y, np.empty((50, 0)), PRIORS.for_parents(0, kernel), kernel)
    covariance = 1.0 + np.exp(0.6) * np.eye(50)
    expected = multivariate_normal.logpdf(y, cov=covariance) + invgamma(1.0).logpdf(np.exp(0.3)) + 0.3
    assert posterior.log_densities(np.array([[0.3]]))[0] == pytest.approx(expected, abs=1e-8)
    assert posterior.find_modes().points.shape == (1, 1)


def test_noiseless_and_repeated_data_have_modes():
    x = np.random.default_rng(10).normal(size=(60, 1))
    values = standardise(np.column_stack([x, x, np.sin(x)]))
    for kernel in KERNELS:
        posterior = posterior_of(values, 2, (0, 1), kernel)
        modes = posterior.find_modes()
        assert np.isfinite(laplace_estimate(modes).value)
        assert np.abs(posterior.log_density_and_gradient(modes.points[0])[1]).max() < 1e-5


def test_priors_that_rule_out_the_usual_starts_are_searched_from_their_medians():
    x, y, _ = example(1, "additive")
    priors = PRIORS.for_parents(1)
    thetas = np.exp(priors.lowest + priors.step * np.arange(priors.log_density.shape[1]))
    possible = (thetas > 0.1) & (thetas < 0.25)
    log_density, cumulative = priors.log_density.copy(), priors.cumulative.copy()
    log_density[1, ~possible] = -np.inf
    cumulative[1] = np.cumsum(possible) / possible.sum()
    modes = DensePosterior(y, x, priors._replace(log_density=log_density, cumulative=cumulative)).find_modes()
    assert len(modes.points) == 1 and 0.1 < np.exp(modes.points[0, 1]) < 0.25


def test_a_covariance_that_is_not_positive_definite_has_no_likelihood():
    x, y, gradient = np.zeros((50, 1)), np.arange(50.0), np.zeros(2)
    work, phi = gp_dense.new_workspace(x), np.array([-30.0, 0.0])
    assert np.isnan(gp_dense.log_likelihood(phi, x, y, False, 1.0, work))
    assert np.isnan(gp_dense.log_likelihood_and_gradient(phi, x, y, False, 1.0, work, gradient))
    assert np.isnan(gradient).all()


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_keeps_to_one_thread_until_the_last_leaves():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_blas_thread)
        second.enter_context(one_blas_thread)
        assert blas_threads() == {1}
        first.close()
        assert blas_threads() == {1}
        second.close()
        assert blas_threads() == before


def test_blas_keeps_to_one_thread_whichever_thread_enters_and_leaves():
    with threadpool_limits(limits=2, user_api="blas"), ThreadPoolExecutor(1) as other:
        before = blas_threads()
        with one_blas_thread:
            assert blas_threads() == {1}
        other.submit(one_blas_thread.__enter__).result()
        assert blas_threads() == {1}
        one_blas_thread.__exit__()
        assert blas_threads() == before


@pytest.mark.parametrize(("place", "outside"), [(0, -7), (0, 7), (1, -7), (1, 9.3), (4, -7), (4, np.nan)])
def test_outside_the_box_the_density_is_zero(place, outside):
    x, y, _ = example(2, "interaction")
    posterior = DensePosterior(y, x, PRIORS.for_parents(2, "interaction"), "interaction")
    points = np.array([np.zeros(5), (6.9, 9.2, 9.2, 9.2, 9.2)])
    points[0, place] = outside
    values = posterior.log_densities(points)
    assert values[0] == -np.inf and np.isfinite(values[1])
    value, gradient = posterior.log_density_and_gradient(points[0])
    assert value == -np.inf and np.isnan(gradient).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros(LARGEST_DENSE + 1), np.zeros((LARGEST_DENSE + 1, 1)), PRIORS.for_parents(1)),
            "^a dense Gaussian process takes at most 5000 rows; received 5001$",
        ),
        (
            (np.zeros(9), np.zeros((9, 1)), PRIORS.for_parents(1), "linear"),
            "^kernel must be one of additive, interaction; received 'linear'$",
        ),
        (
            (np.zeros(9), np.zeros((8, 1)), PRIORS.for_parents(1)),
            r"^x must have one row for every value of y; received \(8, 1\) and \(9,\)$",
        ),
        (
            (np.zeros(9), np.zeros((9, 2)), PRIORS.for_parents(2), "interaction"),
            "^5 hyperparameters need as many priors; received 3$",
        ),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        DensePosterior(*arguments)


def test_a_single_parent_has_no_interactions():
    """Its score is the additive kernel's, draw for draw, and takes no longer; that of two parents is another."""
    table = np.random.default_rng(3).normal(size=(60, 3))
    additive, interaction = (GP(kernel=kernel).bind(table) for kernel in KERNELS)
    assert interaction.local("v1", ["v2"]) == additive.local("v1", ["v2"])
    assert isinstance(interaction.hyper_posterior(0, (1,))[0], LowRankPosterior)
    assert abs(interaction.local("v1", ["v2", "v3"]) - additive.local("v1", ["v2", "v3"])) > 0.1
