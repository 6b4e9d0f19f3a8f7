"""NOTEARS by its continuous methods, and with the logistic and Poisson losses."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from gpn_bayes import simulate
from gpn_bayes.estimators import NOTEARS
from gpn_bayes.estimators.notears.continuous import augmented_lagrangian, central_path
from gpn_bayes.estimators.notears.objective import read_linear_problem
from gpn_bayes.estimators.quasi_newton import SOLVERS
from tests.notears_reference import CASES, LAMBDA1, load_case

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

QUICK = {"check_scale": False, "rounds": 10, "random_state": 1}


@pytest.fixture(scope="module")
def table():
    dag = simulate.random_dag(8, edges_per_node=1.5, random_seed=3)
    return simulate.linear(dag, 400, random_seed=3)


# The continuous methods


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("acyclicity", ["exponential", "polynomial", "log-det"])
def test_augmented_lagrangian_recovers_an_easy_graph(acyclicity, solver):
    dag = nx.DiGraph([("v1", "v2"), ("v2", "v3"), ("v1", "v4")])
    data = simulate.linear(dag, 500, random_seed=1)
    learner = NOTEARS(
        method="augmented-lagrangian", acyclicity=acyclicity, solver=solver, check_scale=False, random_state=1
    ).fit(data)
    assert set(learner.graph_.edges) == set(dag.edges)
    assert 0 <= learner.h_ < 1e-8
    best = NOTEARS(**QUICK).fit(data).objective_
    # The constraint is met up to a tolerance, so F may lie a little below that of exactly acyclic weights.
    assert learner.objective_ == pytest.approx(best, rel=1e-2)
    assert (learner.raw_weights_ == 0).sum() > 4


def test_augmented_lagrangian_finds_what_the_original_finds():
    values, _ = load_case(CASES[0])
    learner = NOTEARS(LAMBDA1, method="augmented-lagrangian", check_scale=False).fit(values)
    assert learner.objective_ == pytest.approx(14.6136, abs=2e-3)
    assert learner.h_ < 1e-8
    assert nx.is_directed_acyclic_graph(learner.graph_)


def test_central_path_ends_acyclic(table):
    learner = NOTEARS(method="central-path", check_scale=False).fit(table)
    assert learner.h_ == 0.0
    assert learner.objective_ <= 1.01 * NOTEARS(**QUICK).fit(table).objective_
    assert learner.starts_["start"].tolist() == ["central-path"]


@pytest.mark.parametrize("loss", ["l2", "logistic", "poisson"])
def test_gradients_of_losses_are_differences(loss):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 2, size=(50, 4)).astype(float)
    problem = read_linear_problem(values, loss, 0.1)
    weights = 0.3 * rng.normal(size=problem.shape)
    _, gradient = problem.loss_and_gradient(weights)
    for i, j in [(0, 1), (2, 3), (problem.shape[0] - 1, 0)]:
        up, down = weights.copy(), weights.copy()
        up[i, j] += 1e-6
        down[i, j] -= 1e-6
        difference = (problem.loss_and_gradient(up)[0] - problem.loss_and_gradient(down)[0]) / 2e-6
        assert gradient[i, j] == pytest.approx(difference, rel=1e-6, abs=1e-8)


# Other losses


def chain_of_counts(loss, n_rows=800, seed=4):
    """Return rows of v1 -> v2 -> v3 <- v4."""
    rng = np.random.default_rng(seed)

    def draw(predictor):
        return rng.random(n_rows) < expit(predictor) if loss == "logistic" else rng.poisson(np.exp(predictor))

    slope = 2.5 if loss == "logistic" else 0.5
    first = draw(np.zeros(n_rows)).astype(float)
    last = draw(np.zeros(n_rows)).astype(float)
    second = draw(slope * first - 1.0).astype(float)
    third = draw(slope * second - slope * last).astype(float)
    return pd.DataFrame({"v1": first, "v2": second, "v3": third, "v4": last})


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_other_losses_recover_an_easy_graph(loss):
    data = chain_of_counts(loss)
    learner = NOTEARS(0.02, threshold=0.2, loss=loss, **QUICK).fit(data)
    skeleton = {frozenset(edge) for edge in learner.graph_.edges}
    assert skeleton == {frozenset(("v1", "v2")), frozenset(("v2", "v3")), frozenset(("v3", "v4"))}
    if loss == "poisson":
        assert set(learner.graph_.edges) == {("v1", "v2"), ("v2", "v3"), ("v4", "v3")}
    weights = np.vstack([learner.raw_weights_, learner.intercepts_])
    problem = read_linear_problem(data, loss, 0.02)
    assert learner.objective_ == pytest.approx(problem.objective(weights))
    # At the minimum, the gradient is that of the penalty where there are weights, and zero for intercepts.
    gradient = problem.loss_and_gradient(weights)[1]
    used = learner.raw_weights_ != 0
    np.testing.assert_allclose(gradient[:4][used], -0.02 * np.sign(learner.raw_weights_[used]), atol=1e-5)
    np.testing.assert_allclose(gradient[4], 0, atol=1e-5)
    assert set(learner.diagnostics_) == {"varsortability"}


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_other_losses_take_the_continuous_methods_too(loss):
    data = chain_of_counts(loss)
    best = NOTEARS(0.02, loss=loss, random_state=1).fit(data).objective_
    for method in ("central-path", "augmented-lagrangian"):
        learner = NOTEARS(0.02, loss=loss, method=method).fit(data)
        assert learner.h_ < 1e-8
        # Weights that are acyclic up to a tolerance only can do a little better.
        assert 0.999 * best <= learner.objective_ <= 1.02 * best


def test_paths_of_the_continuous_methods_end(table):
    """Each yields its rounds one by one; the last is what the learner takes."""
    problem = read_linear_problem(table, "l2", 0.1)
    assert 2 <= len(list(central_path(problem, "log-det", "orthant-wise"))) <= 10
    assert 2 <= len(list(augmented_lagrangian(problem, "exponential", "orthant-wise"))) <= 100
