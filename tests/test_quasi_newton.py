"""The quasi-Newton method with exact zeros, and the augmented Lagrangian on top of it."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from gpn_bayes.estimators import quasi_newton
from gpn_bayes.estimators.lagrangian import augmented_lagrangian
from gpn_bayes.estimators.quasi_newton import SOLVERS, minimise, steepest


def regression(seed, rows=80, columns=12):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))
    y = x[:, :3].sum(axis=1) + rng.normal(size=rows)
    gram, linear = x.T @ x / rows, x.T @ y / rows
    return x, y, lambda w: (0.5 * w @ gram @ w - linear @ w, gram @ w - linear)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [0.01, 0.3])
def test_the_lasso(seed, penalty, solver):
    x, y, function = regression(seed)
    truth = Lasso(penalty, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(x, y).coef_
    found = minimise(function, np.zeros(12), np.full(12, penalty), 1e-14, solver)
    assert found.x == pytest.approx(truth, abs=1e-3)
    assert found.value == pytest.approx(function(truth)[0] + penalty * np.abs(truth).sum(), rel=1e-9)
    # Exact zeros, and no others.
    assert ((found.x == 0) == (truth == 0)).all()
    assert found.value == pytest.approx(function(found.x)[0] + penalty * np.abs(found.x).sum())


def test_coordinates_without_penalty_cross_zero():
    x, y, function = regression(1)
    penalties = np.r_[np.zeros(6), np.full(6, 1e6)]
    start = -np.linalg.lstsq(x[:, :6], y, rcond=None)[0]
    found = minimise(function, np.r_[start, np.zeros(6)], penalties, tolerance=1e-15)
    assert found.x[:6] == pytest.approx(-start, abs=1e-5)
    assert not found.x[6:].any()


def test_a_penalised_coordinate_can_change_its_sign():
    found = minimise(lambda x: (float((x - 2) @ (x - 2)), 2 * (x - 2)), np.array([-5.0]), np.array([1.0]))
    assert found.x == pytest.approx([1.5])


def test_a_valley_that_bends():
    def rosenbrock(x):
        a, b = 1 - x[0], x[1] - x[0] ** 2
        return a * a + 100 * b * b, np.array([-2 * a - 400 * x[0] * b, 200 * b])

    found = minimise(rosenbrock, np.array([-1.2, 1.0]), np.zeros(2), tolerance=1e-16)
    assert found.x == pytest.approx([1, 1], abs=1e-5)
    assert found.evaluations < 200


def test_outside_the_domain_steps_are_halved():
    def barrier(x):
        if x[0] <= 0:
            return np.inf, np.full(1, np.nan)
        return float(x[0] - 1e-3 * np.log(x[0])), 1 - 1e-3 / x

    assert minimise(barrier, np.array([5.0]), np.zeros(1), tolerance=1e-15).x == pytest.approx([1e-3], rel=1e-4)


def test_the_start_is_left_alone_and_steps_are_limited():
    _, _, function = regression(2)
    start = np.ones(12)
    stopped = minimise(function, start, np.zeros(12), most_steps=2)
    assert (start == 1).all()
    assert minimise(function, start, np.zeros(12)).value < stopped.value < function(start)[0]


def test_it_begins_again_where_the_curvature_misleads(monkeypatch):
    """A memory of nonsense is dropped; the minimum is found all the same."""
    x, y, function = regression(3)
    kept = quasi_newton._Curvature.add
    calls = []

    def lie(self, step, change):
        calls.append(1)
        if len(calls) == 3:
            self.pairs.append((1e30 * np.ones_like(step), np.ones_like(change), 1e-30))
        else:
            kept(self, step, change)

    monkeypatch.setattr(quasi_newton._Curvature, "add", lie)
    found = minimise(function, np.zeros(12), np.zeros(12), tolerance=1e-15)
    assert found.x == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0], abs=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_meet_the_optimality_conditions(solver):
    rng = np.random.default_rng(1)
    root = rng.normal(size=(40, 25))
    hessian, linear, penalties = root.T @ root / 40, rng.normal(size=25), np.full(25, 0.4)
    penalties[:3] = 0.0
    x = minimise(
        lambda x: (0.5 * x @ hessian @ x - linear @ x, hessian @ x - linear), np.zeros(25), penalties, 1e-15, solver
    ).x
    gradient = hessian @ x - linear
    assert np.abs(steepest(gradient, x, penalties)).max() < 1e-4
    assert 3 < (x == 0).sum() < 22


def saddle(x):
    """Return (x y)^2: one of the two must vanish."""
    product = x[0] * x[1]
    return float(product**2), 2 * product * x[::-1]


def distance(x):
    away = x - np.array([2.0, 1.0])
    return float(away @ away), 2 * away


def exactly(function, start):
    return minimise(function, start, np.zeros(2), 1e-14)


def test_constraint():
    rounds = list(augmented_lagrangian(distance, saddle, np.ones(2), 1e-9, exactly))
    assert rounds[-1].h == saddle(rounds[-1].x)[0] <= 1e-9
    assert rounds[-1].x == pytest.approx([2, 0], abs=1e-3)
    assert (np.diff([found.h for found in rounds]) < 0).all()


def test_a_constraint_that_cannot_be_met_ends():
    def above(x):
        return 1.0 + float(x @ x), 2 * x

    rounds = list(augmented_lagrangian(distance, above, np.ones(2), 1e-9, exactly))
    assert rounds[-1].h >= 1.0
