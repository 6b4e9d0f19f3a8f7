"""The lasso score against coordinate descent, optimality conditions and an exhaustive search."""

from itertools import chain, combinations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso as SklearnLasso

from gpn_bayes import SufficientStatistics, simulate
from gpn_bayes.data import Dataset
from gpn_bayes.scores import Lasso


@pytest.fixture(scope="module")
def table():
    dag = simulate.random_dag(7, edges_per_node=2, random_seed=2)
    return simulate.linear(dag, 60, random_seed=2) + 5.0


def subsets(items):
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


@pytest.mark.parametrize("lambda1", [0.02, 0.5, 5.0])
def test_scores_are_the_minima_that_scikit_learn_finds(table, lambda1):
    values = table.to_numpy() - table.to_numpy().mean(axis=0)
    scorer = Lasso(lambda1).bind(table)
    for node, parents in [(0, (1, 2)), (3, (0, 1, 2, 4, 5, 6)), (6, (5,)), (2, ())]:
        minimum = 0.5 * np.mean(values[:, node] ** 2)
        if parents:
            model = SklearnLasso(alpha=lambda1, fit_intercept=False, tol=1e-12, max_iter=200_000)
            fit = model.fit(values[:, parents], values[:, node])
            residual = values[:, node] - values[:, parents] @ fit.coef_
            minimum = 0.5 * np.mean(residual**2) + lambda1 * np.abs(fit.coef_).sum()
        assert scorer.local(node, parents) == pytest.approx(-minimum, rel=1e-8)


def test_without_a_penalty_it_is_least_squares(table):
    values = table.to_numpy() - table.to_numpy().mean(axis=0)
    residual = values[:, 0] - values[:, 1:] @ np.linalg.lstsq(values[:, 1:], values[:, 0])[0]
    assert Lasso(0.0).bind(table).local(0, range(1, 7)) == pytest.approx(-0.5 * np.mean(residual**2), rel=1e-9)


def test_tables_are_the_scores_of_sets(table):
    scorer = Lasso(0.3).bind(table)
    candidates = [4, 0, 5, 2]
    found = scorer.table(1, candidates, max_parents=3)
    for mask in range(16):
        chosen = [c for bit, c in enumerate(candidates) if mask >> bit & 1]
        wanted = scorer.local(1, chosen) if len(chosen) <= 3 else -np.inf
        assert found[mask] == pytest.approx(wanted, rel=1e-10)


def test_more_parents_never_score_less(table):
    scorer = Lasso(0.3).bind(table)
    for parents in subsets(range(1, 5)):
        assert scorer.local(0, (*parents, 6)) >= scorer.local(0, parents) - 1e-10


def test_statistics_do_as_well_as_rows(table):
    statistics = SufficientStatistics.of(Dataset.read(table))
    graph = nx.DiGraph([(table.columns[0], table.columns[1]), (table.columns[0], table.columns[2])])
    assert Lasso(0.2).bind(statistics).total(graph) == pytest.approx(Lasso(0.2).bind(table).total(graph), rel=1e-10)


def test_the_total_is_minus_the_objective_of_notears(table):
    """With the weights of the fits, F = 1/(2n) ||X - XW||^2 + lambda |W|_1."""
    graph = nx.DiGraph([(table.columns[0], table.columns[1]), (table.columns[2], table.columns[1])])
    values = table.to_numpy() - table.to_numpy().mean(axis=0)
    model = SklearnLasso(alpha=0.2, fit_intercept=False, tol=1e-12).fit(values[:, [0, 2]], values[:, 1])
    weights = np.zeros((7, 7))
    weights[[0, 2], 1] = model.coef_
    objective = 0.5 * np.sum((values - values @ weights) ** 2) / len(values) + 0.2 * np.abs(weights).sum()
    assert Lasso(0.2).bind(table).total(graph) == pytest.approx(-objective, rel=1e-8)


def test_collinear_parents_and_more_variables_than_rows():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(6, 12))
    values[:, 3] = values[:, 1] + values[:, 2]
    scorer = Lasso(0.05).bind(values)
    model = SklearnLasso(alpha=0.05, tol=1e-13, max_iter=500_000)
    centred = values - values.mean(axis=0)
    fit = model.fit(centred[:, 1:], centred[:, 0])
    residual = centred[:, 0] - centred[:, 1:] @ fit.coef_
    minimum = 0.5 * np.mean(residual**2) + 0.05 * np.abs(fit.coef_).sum()
    assert scorer.local(0, range(1, 12)) == pytest.approx(-minimum, rel=1e-6)
    assert Lasso(0.0).bind(values).local(0, range(1, 12)) == pytest.approx(0.0, abs=1e-9)


def test_scores_say_what_they_are():
    assert repr(Lasso(0.5)) == "Lasso(lambda1=0.5)"
    assert Lasso(0.5).fingerprint != Lasso(0.1).fingerprint


@pytest.mark.parametrize("lambda1", [-0.1, np.nan, np.inf])
def test_bad_penalties_are_told(lambda1):
    with pytest.raises(ValueError, match=f"^lambda1 must be a number, 0 or more; received {lambda1}$"):
        Lasso(lambda1)


def test_text_is_told():
    frame = pd.DataFrame({"x": ["a", "b", "a"], "y": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match="^the lasso score needs numbers; column 'x' holds text such as 'a'$"):
        Lasso().bind(frame)
