"""NOTEARS: minima at least as good as other programs', DAGs always, constraints, losses, scale, bad input."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes
from gpn_bayes import SufficientStatistics, graphs, metrics, simulate
from gpn_bayes.data import Dataset
from gpn_bayes.estimators import NOTEARS
from gpn_bayes.estimators.notears import orders
from gpn_bayes.estimators.notears.continuous import augmented_lagrangian
from gpn_bayes.estimators.notears.dags import break_cycles
from gpn_bayes.estimators.notears.objective import read_linear_problem
from gpn_bayes.estimators.notears.scale import varsortability
from tests.notears_reference import (
    CASES,
    LAMBDA1,
    acyclic_objective,
    exact_minimum,
    load_case,
    plain_objective,
    reference_weights,
)

QUICK = {"check_scale": False, "rounds": 10, "random_state": 1}


@pytest.fixture(scope="module")
def table():
    dag = simulate.random_dag(8, edges_per_node=1.5, random_seed=3)
    return simulate.linear(dag, 400, random_seed=3)


# Minima


@pytest.mark.parametrize("case", CASES)
def test_no_higher_than_the_best_reference(case):
    values, truth = load_case(case)
    learner = NOTEARS(LAMBDA1, check_scale=False, random_state=1).fit(values)
    problem = read_linear_problem(values, "l2", LAMBDA1)
    found = reference_weights(case)
    assert found
    best = min(acyclic_objective(problem, weights) for weights in found.values())
    assert acyclic_objective(problem, learner.raw_weights_) <= best + 1e-4
    assert learner.h_ < 1e-8
    assert learner.objective_ == pytest.approx(plain_objective(values, learner.raw_weights_, LAMBDA1), rel=1e-9)
    reference_shds = [metrics.shd((np.abs(w) >= 0.3).astype(int), truth) for w in found.values()]
    assert metrics.shd(learner.adjacency_, truth) <= min(reference_shds)


def test_the_minimum_that_is_known_to_be_reachable():
    values, _ = load_case(CASES[0])
    assert NOTEARS(LAMBDA1, check_scale=False, random_state=2).fit(values).objective_ == pytest.approx(
        14.29344, abs=1e-4
    )


@pytest.mark.parametrize("lambda1", [0.0, 0.5])
@pytest.mark.parametrize("n_rows", [20, 1000])
def test_the_exact_minimum_of_small_networks(lambda1, n_rows):
    dag = simulate.random_dag(8, edges_per_node=2, random_seed=n_rows)
    values = simulate.linear(dag, n_rows, random_seed=n_rows).to_numpy()
    least = exact_minimum(values, lambda1)
    found = NOTEARS(lambda1, check_scale=False, random_state=1).fit(values).objective_
    assert least - 1e-8 <= found <= 1.0001 * least


def test_every_start_is_told_and_the_lowest_kept(table):
    starts = ("variance", "equal-variance", "lambda-path", "central-path", "augmented-lagrangian", "random")
    learner = NOTEARS(starts=starts, **QUICK).fit(table)
    assert tuple(learner.starts_["start"]) == starts
    assert (learner.starts_["objective"] <= learner.starts_["objective_at_start"] + 1e-10).all()
    assert learner.objective_ <= learner.starts_["objective"].min() + 1e-10


def test_no_insertion_improves(table):
    """The answer is a minimum: no variable has a better place in its order."""
    learner = NOTEARS(**QUICK).fit(table)
    problem = read_linear_problem(table, "l2", 0.1)
    order = graphs.topological_order((learner.raw_weights_ != 0).astype(int))
    search = orders.order_search(problem, np.random.default_rng(0))
    for place in range(8):
        for target in range(8):
            moved = np.insert(np.delete(order, place), target, order[place])
            assert search.begin(moved, climb=False)[2] >= learner.objective_ - 1e-8


# DAGs and constraints


def test_always_a_dag_and_weights_agree_with_the_graph(table):
    for threshold in (0.0, 0.3, 2.0):
        learner = NOTEARS(threshold=threshold, **QUICK).fit(table)
        assert nx.is_directed_acyclic_graph(learner.graph_)
        np.testing.assert_array_equal(learner.adjacency_, learner.weights_ != 0)
        kept = learner.weights_ != 0
        np.testing.assert_array_equal(learner.weights_[kept], learner.raw_weights_[kept])
        assert (np.abs(learner.weights_[kept]) >= threshold).all()
        assert learner.threshold_ == threshold


def test_cycles_are_broken_at_their_weakest_entries():
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 2], weights[2, 0], weights[3, 0], weights[1, 0] = 2.0, -0.4, 0.9, 0.1, 0.5
    kept, removed = break_cycles(weights, np.zeros((4, 4), dtype=bool))
    assert [tuple(entry) for entry in removed] == [(1, 2, -0.4), (1, 0, 0.5)]
    assert kept[3, 0] == 0.1
    required = np.zeros((4, 4), dtype=bool)
    required[1, 2] = True
    kept, removed = break_cycles(weights, required)
    assert [tuple(entry) for entry in removed] == [(1, 0, 0.5), (2, 0, 0.9)]
    assert weights[1, 0] == 0.5


def test_removed_entries_are_told(table, monkeypatch):
    """An augmented Lagrangian stopped after its first round is cyclic: what is dropped stands in removed_."""

    def stopped(*arguments):
        yield next(augmented_lagrangian(*arguments))

    monkeypatch.setattr("gpn_bayes.estimators.notears.linear.augmented_lagrangian", stopped)
    learner = NOTEARS(method="augmented-lagrangian", threshold=0.05, check_scale=False).fit(table)
    assert len(learner.removed_)
    assert nx.is_directed_acyclic_graph(learner.graph_)
    for parent, child, weight in learner.removed_.itertuples(index=False):
        assert not learner.graph_.has_edge(parent, child)
        names = list(table.columns)
        assert learner.raw_weights_[names.index(parent), names.index(child)] == weight


@pytest.mark.parametrize("method", ["auto", "central-path", "augmented-lagrangian"])
def test_constraints_hold(table, method):
    free = NOTEARS(**QUICK).fit(table)
    (parent, child), other = list(free.graph_.edges)[0], list(free.graph_.edges)[1]
    absent = next(
        (a, b)
        for a in table.columns
        for b in table.columns
        if a != b and not nx.has_path(free.graph_, a, b) and (a, b) != (child, parent) and (b, a) != other
    )
    required = [(child, parent), absent] if absent != (parent, child) else [(child, parent)]
    if not nx.is_directed_acyclic_graph(nx.DiGraph(required)):
        required = [(child, parent)]
    learner = NOTEARS(method=method, required=required, forbidden=[other], **QUICK).fit(table)
    assert set(required) <= set(learner.graph_.edges)
    assert other not in learner.graph_.edges
    names = list(table.columns)
    assert learner.raw_weights_[names.index(other[0]), names.index(other[1])] == 0
    assert nx.is_directed_acyclic_graph(learner.graph_)


def test_tiers_hold(table):
    names = list(table.columns)
    learner = NOTEARS(tiers=[names[4:], names[:4]], **QUICK).fit(table)
    assert not [edge for edge in learner.graph_.edges if edge[0] in names[:4] and edge[1] in names[4:]]


def test_required_edges_have_no_penalty(table):
    a, b = table.columns[:2]
    learner = NOTEARS(1e6, required=[(a, b)], **QUICK).fit(table)
    assert list(learner.graph_.edges) == [(a, b)]
    slope = np.polyfit(table[a], table[b], 1)[0]
    assert learner.weights_[0, 1] == pytest.approx(slope, rel=1e-8)


# Choosing the penalty and the threshold


def test_penalty_and_threshold_by_a_score(table):
    learner = NOTEARS("bic", threshold="auto", **QUICK).fit(table)
    truth = simulate.random_dag(8, edges_per_node=1.5, random_seed=3)
    assert metrics.shd(learner.graph_, truth) <= 2
    assert learner.lambda1_ in learner.path_["lambda1"].to_numpy()
    assert learner.path_["score"].max() <= learner.log_score("bic") + 1.0
    assert learner.path_["edges"].iloc[0] == 0


def test_the_threshold_is_the_best_of_all(table):
    settings = {"starts": ["variance"], **QUICK}
    learner = NOTEARS(0.01, threshold="auto", score="bge", **settings).fit(table)
    best = learner.log_score("bge")
    for size in np.abs(learner.raw_weights_[learner.raw_weights_ != 0]):
        other = NOTEARS(0.01, threshold=float(size), **settings).fit(table)
        assert other.log_score("bge") <= best + 1e-9


# Scale


def test_varsortability_counts_pairs_by_length():
    """A fork of lengths one and two: 0 -> 1 -> 2, 0 -> 2."""
    adjacency = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert varsortability(adjacency, np.array([1.0, 3.0, 2.0])) == 3 / 4
    assert varsortability(adjacency, np.array([1.0, 1.0, 1.0])) == 1 / 2
    assert np.isnan(varsortability(np.zeros((3, 3)), np.ones(3)))


def test_an_answer_that_hinges_on_scale_is_told():
    values, truth = load_case(CASES[0])
    with pytest.warns(
        UserWarning, match="^the estimate depends on the units of the variables: with every column scaled"
    ):
        learner = NOTEARS(LAMBDA1, rounds=5, random_state=1).fit(values)
    reported = learner.diagnostics_
    assert reported["hinges_on_scale"]
    assert reported["varsortability"] > 0.9
    assert reported["shd_standardised"] == metrics.shd(learner.adjacency_, reported["standardised_adjacency"])
    assert metrics.shd(reported["standardised_adjacency"], truth) > 2 * metrics.shd(learner.adjacency_, truth)


def test_an_answer_that_does_not_is_left_alone(table):
    """Standardised already: both answers are the same, and nothing is warned of."""
    standardised = (table - table.mean()) / table.std(ddof=0)
    learner = NOTEARS(rounds=30, random_state=1).fit(standardised)
    assert learner.diagnostics_["shd_standardised"] == 0
    assert not learner.diagnostics_["hinges_on_scale"]


@pytest.mark.parametrize("ddof", [0, 1])
def test_graphs_that_share_a_minimum_are_not_taken_for_answers_that_hinge_on_scale(ddof):
    """On standardised columns directions may be a matter of chance: of several searches, some end in other graphs."""
    dag = simulate.random_dag(8, edges_per_node=1, random_seed=1)
    numbers = simulate.fourier(dag, n_rows=200, lam=0.5, random_seed=1)
    learners = [NOTEARS(rounds=20, random_state=seed).fit(numbers / numbers.std(ddof=ddof)) for seed in range(12)]
    assert len({learner.adjacency_.tobytes() for learner in learners}) > 1
    assert np.ptp([learner.objective_ for learner in learners]) < 1e-9
    assert {learner.diagnostics_["shd_standardised"] for learner in learners} == {0}


def test_penalty_and_threshold_are_chosen_anew_for_the_other_scale(table):
    """In thousandths of the units, the penalty that suits is another one; the graph by a score need not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        learner = NOTEARS("bic", "auto", rounds=5, random_state=1).fit(table * 1000)
    assert learner.lambda1_ > 100
    assert learner.diagnostics_["standardised_adjacency"].any()


# Data


def test_statistics_do_as_well_as_rows(table):
    by_rows = NOTEARS(**QUICK).fit(table)
    by_statistics = NOTEARS(**QUICK).fit(SufficientStatistics.of(Dataset.read(table)))
    np.testing.assert_allclose(by_statistics.raw_weights_, by_rows.raw_weights_, atol=1e-9)
    assert by_statistics.objective_ == pytest.approx(by_rows.objective_, rel=1e-12)


def test_means_do_not_matter_and_the_input_is_left_alone(table):
    moved = table + 100.0
    before = moved.copy()
    learner = NOTEARS(**QUICK).fit(moved)
    pd.testing.assert_frame_equal(moved, before)
    np.testing.assert_allclose(learner.raw_weights_, NOTEARS(**QUICK).fit(table).raw_weights_, atol=1e-8)


def test_same_seed_same_answer(table):
    first, second = (NOTEARS(rounds=20, check_scale=False, random_state=7).fit(table) for _ in range(2))
    np.testing.assert_array_equal(first.raw_weights_, second.raw_weights_)
    pd.testing.assert_frame_equal(first.starts_, second.starts_)


def test_more_variables_than_rows():
    dag = simulate.random_dag(15, edges_per_node=1, random_seed=5)
    for lambda1 in (0.0, 0.1):
        learner = NOTEARS(lambda1, **QUICK).fit(simulate.linear(dag, 8, random_seed=5))
        assert nx.is_directed_acyclic_graph(learner.graph_)
        assert np.isfinite(learner.raw_weights_).all()
        assert 0 <= learner.objective_ < np.inf


def test_duplicated_columns(table):
    doubled = table.assign(copy=table.iloc[:, 2])
    with pytest.warns(UserWarning, match="are identical: the data can't distinguish them"):
        learner = NOTEARS(**QUICK).fit(doubled)
    assert nx.is_directed_acyclic_graph(learner.graph_)
    assert learner.graph_.has_edge(table.columns[2], "copy") or learner.graph_.has_edge("copy", table.columns[2])


def test_scores_of_the_estimate(table):
    learner = NOTEARS(**QUICK).fit(table)
    empty = NOTEARS(1e6, **QUICK).fit(table)
    assert empty.graph_.number_of_edges() == 0
    assert learner.log_score("bge") > empty.log_score("bge")
    assert learner.get_params()["lambda1"] == 0.1


def test_the_estimate_seeds_a_sampler_and_is_compared_with_its_draws(table):
    learner = NOTEARS(**QUICK).fit(table)
    post = gpn_bayes.sample(
        table,
        "bge",
        space=gpn_bayes.Space(candidates=learner, plus_one=False),
        draws=200,
        tune=100,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    drawn = post.edge_probabilities().to_numpy()
    neighbours = (learner.adjacency_ | learner.adjacency_.T) == 1
    assert not drawn[~neighbours].any() and drawn[neighbours].any()
    best = max(graph.graph["log_score"] for graph in post.graphs())
    assert post.log_score_gap(learner.graph_) == pytest.approx(best - learner.log_score("bge"), abs=1e-6)


def test_ctrl_c_leaves_the_best_so_far(table, monkeypatch):
    calls = 0
    kicked = orders.OrderSearch.kicked

    def interrupt(search, state):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return kicked(search, state)

    monkeypatch.setattr(orders.OrderSearch, "kicked", interrupt)
    learner = NOTEARS(rounds=50, check_scale=False, random_state=1).fit(table)
    assert learner.interrupted_
    assert nx.is_directed_acyclic_graph(learner.graph_)
    assert not NOTEARS(rounds=0, check_scale=False, random_state=1).fit(table).interrupted_


def test_ctrl_c_during_the_scale_check_leaves_the_estimate(table, monkeypatch):
    def interrupt(problem):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpn_bayes.estimators.notears.objective.LinearProblem.standardised", interrupt)
    learner = NOTEARS(rounds=5, random_state=1).fit(table)
    assert learner.interrupted_
    assert set(learner.graph_.edges) == set(NOTEARS(**QUICK).fit(table).graph_.edges)


def test_progress_is_shown(table, capsys, progress_at_once):
    NOTEARS(rounds=2, check_scale=False, random_state=1, progressbar=True).fit(table)
    assert "Orders" in capsys.readouterr().err


# What can't be


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambda1": -1}, "lambda1 must be 'bic' or a number, 0 or more; received -1"),
        ({"lambda1": "aic"}, "lambda1 must be 'bic' or a number, 0 or more; received 'aic'"),
        ({"threshold": np.nan}, "threshold must be 'auto' or a number, 0 or more; received nan"),
        ({"loss": "huber"}, "loss must be one of l2, logistic, poisson; received 'huber'"),
        (
            {"acyclicity": "trace"},
            "acyclicity must be one of auto, exponential, polynomial, log-det; received 'trace'",
        ),
        (
            {"method": "adam"},
            "method must be one of auto, order-search, central-path, augmented-lagrangian; received 'adam'",
        ),
        ({"solver": "newton"}, "solver must be one of orthant-wise, proximal; received 'newton'"),
        (
            {"starts": ["variance", "zero"]},
            "starts must be 'auto' or some of variance, equal-variance, lambda-path, central-path, "
            "augmented-lagrangian, random; received 'zero'",
        ),
        (
            {"starts": "variance"},
            "starts must be 'auto' or some of variance, equal-variance, lambda-path, central-path, "
            "augmented-lagrangian, random; received 'variance'",
        ),
        ({"rounds": -1}, "rounds must be a whole number, 0 or more; received -1"),
        ({"required": [("v1", "v2"), ("v2", "v1")]}, "required edges must not form a cycle; received v1 -> v2 -> v1"),
    ],
)
def test_bad_settings_are_told(table, settings, message):
    with pytest.raises(ValueError) as error:
        NOTEARS(**settings).fit(table)
    assert str(error.value) == message


def test_bad_data_are_told(table):
    constant = table.assign(v3=1.0)
    with pytest.raises(ValueError, match="^every column must vary; column 'v3' is constant: "):
        NOTEARS().fit(constant)
    with pytest.raises(ValueError, match="^a table needs at least two rows; received 1$"):
        NOTEARS().fit(table.iloc[:1])
    missing = table.copy()
    missing.iloc[0, 0] = np.nan
    with pytest.raises(ValueError, match="^every value must be present; 1 is missing, .*'v1' in row "):
        NOTEARS().fit(missing)
    with pytest.raises(ValueError, match="^NOTEARS needs numbers; column 'v1' holds text such as 'a': "):
        NOTEARS().fit(table.assign(v1=["a", "b"] * 200))
    with pytest.raises(ValueError, match=r"^the logistic loss needs columns of 0 and 1; column 'v1' holds -?\d"):
        NOTEARS(loss="logistic").fit(table)
    with pytest.raises(ValueError, match=r"^the poisson loss needs columns of counts 0, 1, 2, …; column 'v1' holds "):
        NOTEARS(loss="poisson").fit(table)
    with pytest.raises(ValueError, match="^the logistic loss needs rows; received SufficientStatistics$"):
        NOTEARS(loss="logistic").fit(SufficientStatistics.of(Dataset.read(table)))
