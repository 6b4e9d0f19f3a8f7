"""The three measures of cycles against other statements of them, and their gradients against differences."""

import numpy as np
import pytest
from scipy.linalg import expm

from gpn_bayes.kernels.learners.acyclicity import exponential, log_determinant, polynomial

FUNCTIONS = {"exponential": exponential, "polynomial": polynomial, "log-det": log_determinant}


def squares(d, seed=1, radius=0.7):
    """Return random squared weights with a spectral radius inside the domain of all three."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(d, d)) ** 2 * (rng.random((d, d)) < 3 / d)
    np.fill_diagonal(matrix, 0)
    return radius * matrix / max(np.abs(np.linalg.eigvals(matrix)).max(), 1e-3)


def statement(name, matrix):
    d = len(matrix)
    if name == "exponential":
        return np.trace(expm(matrix)) - d, expm(matrix).T
    if name == "polynomial":
        base = np.eye(d) + matrix / d
        return np.trace(np.linalg.matrix_power(base, d)) - d, np.linalg.matrix_power(base, d - 1).T
    return -np.log(np.linalg.det(np.eye(d) - matrix)), np.linalg.inv(np.eye(d) - matrix).T


@pytest.mark.parametrize("d", [2, 3, 7, 20, 60])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_the_formulas(name, d):
    matrix = squares(d, seed=d)
    value, gradient = FUNCTIONS[name](matrix)
    wanted, slopes = statement(name, matrix)
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-11)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_for_weights_are_differences(name):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(6, 6)) * 0.3
    np.fill_diagonal(weights, 0)
    analytic = 2 * weights * FUNCTIONS[name](weights**2)[1]
    step = 1e-6
    for i, j in [(0, 1), (3, 2), (5, 0)]:
        up, down = weights.copy(), weights.copy()
        up[i, j] += step
        down[i, j] -= step
        difference = (FUNCTIONS[name](up**2)[0] - FUNCTIONS[name](down**2)[0]) / (2 * step)
        assert analytic[i, j] == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zero_on_dags_alone(name):
    rng = np.random.default_rng(4)
    order = rng.permutation(8)
    dag = np.triu(rng.normal(size=(8, 8)), 1)[np.ix_(order, order)]
    assert FUNCTIONS[name](dag**2)[0] == pytest.approx(0.0, abs=1e-12)
    cyclic = dag.copy()
    parent, child = np.argwhere(dag)[0]
    cyclic[child, parent] = 0.1
    assert FUNCTIONS[name](0.05 * cyclic**2)[0] > 1e-6


def test_tiny_values_keep_their_digits():
    """A cycle of weight 1e-12 twice: d plus that would round it away."""
    matrix = np.zeros((30, 30))
    matrix[0, 1] = matrix[1, 0] = 1e-12
    assert exponential(matrix)[0] == pytest.approx(1e-24, rel=1e-10)
    assert polynomial(matrix)[0] == pytest.approx(29 / 30 * 1e-24, rel=1e-10)


def test_large_weights_are_fine_on_dags():
    dag = np.triu(np.full((12, 12), 50.0), 1)
    value, gradient = exponential(dag)
    assert value == 0.0
    np.testing.assert_allclose(gradient, expm(dag).T, rtol=1e-9)


def test_outside_its_domain_the_log_determinant_is_infinite():
    matrix = squares(9, radius=1.0)
    for radius in (1.01, 1.5, 4.0, 40.0):
        assert log_determinant(radius * matrix)[0] == np.inf
        assert log_determinant(radius * matrix, s=1.1 * radius)[0] < np.inf
    assert log_determinant(np.full((2, 2), np.nan))[0] == np.inf


def test_overflow_is_infinite():
    matrix = np.full((4, 4), 1e6)
    assert exponential(matrix)[0] == np.inf
    assert polynomial(np.full((40, 40), 1e12))[0] == np.inf
    assert exponential(np.full((2, 2), np.inf))[0] == np.inf
