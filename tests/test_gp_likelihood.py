"""The low-rank Gaussian-process likelihood against the dense one, and its gradient against differences."""

import functools

import numpy as np
import pytest
from scipy import stats

from gpn_bayes import datasets
from gpn_bayes.kernels.gaussian_process.low_rank import log_likelihood, log_likelihood_and_gradient, new_workspace
from gpn_bayes.scores.gp.basis import Basis


def standardise(values):
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def dense(log_sigma, log_thetas, x, y):
    """Return log N(y; 0, C) the textbook way."""
    covariance = np.exp(2 * log_sigma) * np.eye(len(y)) + 1.0
    for column, log_theta in zip(x.T, log_thetas, strict=True):
        covariance += np.exp(-0.5 * ((column[:, None] - column[None, :]) / np.exp(log_theta)) ** 2)
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, y)
    return -0.5 * white @ white - np.log(np.diag(factor)).sum() - 0.5 * len(y) * np.log(2 * np.pi)


def table(kind, n_rows):
    rng = np.random.default_rng(7)
    x = rng.standard_t(2, size=(n_rows, 3)) if kind == "heavy tails" else rng.normal(size=(n_rows, 3))
    if kind == "outlier":
        x[0] = 50
    if kind == "ties":
        x[:, 0] = rng.integers(0, 2, n_rows)
        x[:, 1] = rng.integers(0, 7, n_rows)
    if kind == "sachs":
        return standardise(datasets.sachs(transform="log2").to_numpy()[:n_rows, :4])
    y = np.sin(2 * x[:, 0]) + 0.3 * x.sum(axis=1) + 0.5 * rng.normal(size=n_rows)
    return standardise(np.column_stack([x, y]))


CASES = [(kind, 120) for kind in ("normal", "heavy tails", "outlier", "ties", "sachs")] + [
    ("normal", 50),
    ("sachs", 500),
]


@pytest.fixture(scope="module")
def basis_of():
    """Return a function that makes the basis of a table, each once."""

    @functools.cache
    def make(kind, n_rows, tolerance):
        return Basis(table(kind, n_rows), tolerance)

    return make


@pytest.mark.parametrize(("tolerance", "error"), [(1e-5, 1e-3), (1e-10, 1e-6)])
@pytest.mark.parametrize(("kind", "n_rows"), CASES)
@pytest.mark.parametrize("parents", [(0,), (0, 1), (0, 1, 2)])
def test_low_rank_equals_dense(basis_of, kind, n_rows, parents, tolerance, error):
    basis = basis_of(kind, n_rows, tolerance)
    moments = basis.moments(3, parents)
    work = new_workspace(moments)
    rng = np.random.default_rng(11)
    for low, high in ((0.1, 1), (0.1, 1000), (1, 10)):
        log_sigma = rng.uniform(np.log(0.2), np.log(1.5))
        log_thetas = rng.uniform(np.log(low), np.log(high), size=len(parents))
        expected = dense(log_sigma, log_thetas, basis.values[:, parents], basis.values[:, 3])
        assert log_likelihood(log_sigma, log_thetas, moments, work) == pytest.approx(expected, abs=error)


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "error"), [(1e-6, 1e-3), (1e-11, 1e-6)])
@pytest.mark.parametrize("n_rows", [1000, 2000])
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "outlier", "ties"])
def test_low_rank_equals_dense_on_many_rows(basis_of, kind, n_rows, tolerance, error):
    basis = basis_of(kind, n_rows, tolerance)
    moments = basis.moments(3, (0, 1, 2))
    work = new_workspace(moments)
    for theta in (0.1, 0.12, 0.25, 0.6, 1.3, 4.0, 30.0, 1000.0):
        for sigma in (0.2, 0.5):
            log_thetas = np.log(theta * np.array([1.0, 1.1, 1.3]))
            expected = dense(np.log(sigma), log_thetas, basis.values[:, :3], basis.values[:, 3])
            ours = log_likelihood(np.log(sigma), log_thetas, moments, work)
            assert ours == pytest.approx(expected, abs=error)


def test_another_prior_of_the_mean():
    values = table("normal", 60)
    moments = Basis(values, 1e-10, mu=(0.3, 2.0)).moments(3, (0, 1))
    covariance = 0.25 * np.eye(60) + 4.0
    for column in values[:, :2].T:
        covariance += np.exp(-0.5 * (column[:, None] - column[None, :]) ** 2)
    expected = stats.multivariate_normal(np.full(60, 0.3), covariance).logpdf(values[:, 3])
    ours = log_likelihood(np.log(0.5), np.zeros(2), moments, new_workspace(moments))
    assert ours == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("parents", [(0,), (0, 1), (0, 1, 2)])
def test_gradient_equals_differences(parents):
    moments = Basis(table("normal", 100)).moments(3, parents)
    work = new_workspace(moments)
    gradient = np.empty(len(parents) + 1)
    for phi in np.random.default_rng(3).uniform(-0.9, 0.9, size=(5, len(parents) + 1)):
        value = log_likelihood_and_gradient(phi[0], phi[1:], moments, work, gradient)
        assert value == log_likelihood(phi[0], phi[1:], moments, work)
        for k in range(len(phi)):
            # Five points: the error is of fourth order in the step.
            step = 1e-3 * np.eye(len(phi))[k]
            near, far = (
                [log_likelihood(p[0], p[1:], moments, work) for p in (phi + size * step, phi - size * step)]
                for size in (1, 2)
            )
            slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / 12e-3
            assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_a_wrong_covariance_is_noticed():
    values = table("normal", 60)
    moments = Basis(values).moments(3, (0,))
    ours = log_likelihood(0.0, np.zeros(1), moments, new_workspace(moments))
    assert abs(ours - dense(0.0, np.array([0.01]), values[:, :1], values[:, 3])) > 1e-4


def test_a_binary_variable_needs_two_functions():
    rng = np.random.default_rng(1)
    values = standardise(np.column_stack([rng.integers(0, 2, 50), rng.normal(size=50)]))
    assert Basis(values).moments(1, (0,)).cells[0, :, 0].max() == 2


def test_rougher_is_quicker():
    basis = Basis(table("normal", 200))
    fine, rough = basis.moments(3, (0,)), basis.rougher(1e-3).moments(3, (0,))
    assert (rough.cells[0, :, 0] <= fine.cells[0, :, 0]).all()
    assert rough.cells[0, 0, 0] < 0.8 * fine.cells[0, 0, 0]
    values = [log_likelihood(-0.7, np.array([0.0]), moments, new_workspace(moments)) for moments in (fine, rough)]
    assert values[0] != values[1]
    assert values[0] == pytest.approx(values[1], abs=0.1)
