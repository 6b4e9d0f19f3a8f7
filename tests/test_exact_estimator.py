"""Exact search finds the best DAG, by each of its methods, and says truly what is proved."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpn_bayes import graphs, simulate
from gpn_bayes.estimators import Exact, parent_sets
from gpn_bayes.estimators.describing import describe
from gpn_bayes.estimators.exact import a_star, dp, integer_programme
from gpn_bayes.estimators.exact.outcome import Clock
from gpn_bayes.estimators.exact.start import starting_rows
from gpn_bayes.estimators.parent_sets import adjacency_of
from gpn_bayes.estimators.pops import potentially_optimal_sets
from gpn_bayes.estimators.problem import read_problem
from gpn_bayes.scores import BIC

REFERENCE = Path(__file__).parent / "reference" / "discrete"
METHODS = ("dp", "ilp", "a-star")
NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"]
CONSTRAINTS = [
    {},
    {"required": [("a", "b"), ("d", "b")], "forbidden": [("c", "d"), ("e", "a")]},
    {"tiers": [["c", "e"], ["a", "b", "d"]], "required": [("e", "d")]},
]


def gaussian_table(seed, n, rows=100, density=0.5):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    values = rng.normal(size=(rows, n)) @ np.linalg.inv(np.eye(n) - weights)
    mixed = rng.permutation(n)
    return pd.DataFrame(values[:, mixed], columns=NAMES[:n])


def discrete_table(seed, n, rows=200):
    return (gaussian_table(seed, n, rows) > 0).astype(int)


def reference(name):
    """Return a reference table, its score and its optimum with at most three parents."""
    table = pd.read_csv(REFERENCE / f"{name}_1000_codes.csv")
    results = json.loads((REFERENCE / f"{name}_results.json").read_text())
    return table, BIC(results["card"])


def best_of_all(problem):
    """Return the best score over all DAGs that keep the constraints."""
    stack = graphs.enumerate_dags(problem.n).astype(bool)
    kept = ~(stack & problem.prior.forbidden).any(axis=(1, 2)) & ~(~stack & problem.prior.required).any(axis=(1, 2))
    kept &= stack.sum(axis=1).max(axis=1) <= problem.max_parents
    return max(problem.total(adjacency) for adjacency in stack[kept])


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("score", ["bge", "bic", "bdeu"])
def test_every_method_equals_enumeration(score, constraints):
    table = gaussian_table(1, 5) if score == "bge" else discrete_table(1, 5)
    for max_parents in (4, 2):
        best = best_of_all(read_problem(table, score, max_parents, **constraints))
        for method in METHODS:
            found = Exact(score, max_parents, method, **constraints).fit(table)
            assert found.log_score_ == pytest.approx(best, abs=1e-8)
            assert found.log_score(score) == pytest.approx(found.log_score_, abs=1e-8)
            assert nx.is_directed_acyclic_graph(found.graph_)
            assert set(constraints.get("required", ())) <= set(found.graph_.edges)
            assert not set(constraints.get("forbidden", ())) & set(found.graph_.edges)
            assert (found.proved_, found.gap_, found.method_, found.interrupted_) == (True, 0.0, method, False)
            assert found.bound_ == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_small_networks(n):
    table = gaussian_table(2, n)
    best = best_of_all(read_problem(table, "bge"))
    for method in METHODS:
        assert Exact("bge", method=method).fit(table).log_score_ == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("n", [8, 10, 12])
@pytest.mark.parametrize("score", ["bge", "bic"])
def test_methods_agree(n, score):
    table = gaussian_table(n, n, density=0.3) if score == "bge" else discrete_table(n, n)
    found = {method: Exact(score, 3, method).fit(table) for method in METHODS}
    assert all(one.proved_ for one in found.values())
    assert found["ilp"].log_score_ == pytest.approx(found["dp"].log_score_, abs=1e-6)
    assert found["a-star"].log_score_ == pytest.approx(found["dp"].log_score_, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("score", ["bge", "bic"])
def test_methods_agree_on_sixteen(seed, score):
    table = gaussian_table(seed, 16, density=0.2) if score == "bge" else discrete_table(seed, 16, rows=500)
    found = {method: Exact(score, method=method).fit(table) for method in METHODS}
    assert all(one.proved_ for one in found.values())
    assert found["ilp"].log_score_ == pytest.approx(found["dp"].log_score_, abs=1e-6)
    assert found["a-star"].log_score_ == pytest.approx(found["dp"].log_score_, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "method", "optimum"),
    [("asia", method, -2232.998) for method in METHODS]
    + [("child", method, -13022.540) for method in METHODS]
    + [("alarm", "ilp", -11646.289)],
)
def test_reference_networks(name, method, optimum):
    table, score = reference(name)
    found = Exact(score, max_parents=3, method=method).fit(table)
    assert found.proved_
    assert found.log_score_ == pytest.approx(optimum, abs=1e-3)
    assert found.seconds_ + found.statistics_["scoring_seconds"] < 180


def test_auto_takes_the_integer_programme_for_many_variables():
    asia, score = reference("asia")
    assert Exact(score, 2).fit(asia).method_ == "dp"
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(100, 70)))
    table[69] += table[3]
    found = Exact("bge", 1).fit(table)
    assert (found.method_, found.proved_) == ("ilp", True)
    linked = nx.to_undirected(found.graph_)
    assert linked.has_edge("3", "69")
    # With one parent each, the best DAG is the best forest: BGe gives both directions of an edge the same gain.
    gains = nx.Graph()
    problem = read_problem(table, "bge", 1)
    for i in range(70):
        for j in range(i):
            gains.add_edge(i, j, weight=max(problem.local(i, [j]) - problem.local(i, []), 0.0))
    forest = nx.maximum_spanning_tree(gains).size("weight")
    assert found.log_score_ == pytest.approx(forest + problem.total(np.zeros((70, 70))), abs=1e-6)


def check_gap(found, optimum):
    """Check that the truth lies between what was found and the bound."""
    assert found.log_score_ - 1e-6 <= optimum <= found.bound_ + 1e-6
    assert found.gap_ == pytest.approx(found.bound_ - found.log_score_, abs=1e-6)
    assert not found.proved_


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_leaves_a_sound_gap(method):
    table = discrete_table(5, 13)
    optimum = Exact(max_parents=3).fit(table).log_score_
    found = Exact(max_parents=3, method=method, time_limit=1e-9).fit(table)
    check_gap(found, optimum)
    assert not found.interrupted_
    assert nx.is_directed_acyclic_graph(found.graph_)


@pytest.mark.parametrize("method", ["ilp", "a-star"])
def test_a_gap_ends_the_search_early(method, monkeypatch):
    monkeypatch.setattr(a_star, "_STEP", 10)
    table = gaussian_table(6, 12, density=0.3)
    proved = Exact("bge", 3, method).fit(table)
    early = Exact("bge", 3, method, gap=60.0).fit(table)
    check_gap(early, proved.log_score_)
    assert early.gap_ <= 60.0
    effort = {"ilp": "cuts", "a-star": "expanded"}[method]
    assert early.statistics_[effort] < proved.statistics_[effort]


def test_a_star_stops_when_memory_is_full():
    table = discrete_table(5, 13)
    sets = potentially_optimal_sets(read_problem(table, "bic", 3))
    optimum = Exact(max_parents=3).fit(table).log_score_
    start = starting_rows(sets, np.random.default_rng(0), Clock(0.0))
    full = a_star.search_orders(sets, start, Clock(None), 0.0, lambda line: None, most=64)
    assert full.statistics["states"] <= 32
    assert sets.scores[full.rows].sum() - 1e-6 <= optimum <= full.bound
    whole = a_star.search_orders(sets, start, Clock(None), 0.0, lambda line: None)
    assert whole.bound == pytest.approx(optimum, abs=1e-6)


def test_starting_rows_are_a_dag_with_the_required_edges():
    problem = read_problem(discrete_table(3, 8), "bic", 3, required=[("h", "a"), ("a", "c")])
    sets = potentially_optimal_sets(problem)
    for seed in range(5):
        adjacency = adjacency_of(sets, starting_rows(sets, np.random.default_rng(seed), Clock(0.0)))
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(adjacency, create_using=nx.DiGraph))
        assert adjacency[7, 0] == adjacency[0, 2] == 1


def interrupt(*args):
    raise KeyboardInterrupt


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    table = discrete_table(5, 13)
    optimum = Exact(max_parents=3).fit(table).log_score_
    monkeypatch.setattr(dp, "fill_values", interrupt)
    monkeypatch.setattr(integer_programme, "grown", interrupt)
    for method in ("dp", "ilp"):
        found = Exact(max_parents=3, method=method).fit(table)
        check_gap(found, optimum)
        assert found.interrupted_
    monkeypatch.undo()
    monkeypatch.setattr(a_star, "search", interrupt)
    found = Exact(max_parents=3, method="a-star").fit(table)
    check_gap(found, optimum)
    assert found.interrupted_


def test_progress_is_shown(capsys, progress_at_once):
    table = discrete_table(5, 8)
    for method in METHODS:
        Exact(method=method, progressbar=True).fit(table)
        assert "Scoring" in capsys.readouterr().err
    Exact().fit(table)
    assert capsys.readouterr().err == ""


def test_settings_are_kept():
    learner = Exact("bdeu", 2, "ilp", time_limit=9.0, gap=1.0, random_state=3)
    assert clone(learner).get_params() == learner.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "method must be one of auto, dp, ilp, a-star; received 'magic'"),
        ({"time_limit": 0}, "time_limit must be a positive number or None; received 0"),
        ({"gap": -1.0}, "gap must be a number, 0 or more; received -1.0"),
        ({"max_parents": -1}, "max_parents must be a whole number, 0 or more; received -1"),
        (
            {"max_parents": 0, "required": [("a", "b")]},
            "max_parents must leave room for the required edges; received 0, but 'b' has 1 required parent",
        ),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError) as error:
        Exact("bge", **settings).fit(gaussian_table(1, 3))
    assert str(error.value) == message


def test_too_many_variables():
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 30)))
    message = "dynamic programming takes at most 25 variables (0.25 GiB); 30 would take 8 GiB: use method='ilp'"
    with pytest.raises(ValueError) as error:
        Exact("bge", 1, "dp").fit(table)
    assert str(error.value) == message
    with pytest.raises(ValueError) as error:
        a_star.check_size(63)
    assert str(error.value) == "A* takes at most 62 variables; received 63: use method='ilp'"


def test_no_parents_allowed():
    for method in METHODS:
        found = Exact("bge", 0, method).fit(gaussian_table(1, 4))
        assert found.graph_.number_of_edges() == 0
        assert found.proved_


def test_nothing_is_called_proved_that_holds_under_a_limit_only(monkeypatch):
    monkeypatch.setattr(parent_sets, "MOST_SETS", 100)
    table = gaussian_table(8, 12, density=0.3)
    best = Exact("bge", max_parents=11).fit(table)
    with pytest.warns(UserWarning, match="all of up to 2 parents were") as said:
        found = Exact("bge").fit(table)
    assert said[0].filename == __file__
    assert (found.gap_, found.proved_, found.searched_up_to_) == (0.0, False, 2)
    assert describe(found).facts == (
        "No graph with at most 2 parents per variable scores higher; larger sets weren't all searched.",
    )
    stated = Exact("bge", max_parents=2).fit(table)
    assert (stated.proved_, stated.searched_up_to_) == (True, None)
    assert describe(stated).facts == ("Proved: no graph with at most 2 parents per variable scores higher.",)
    # The sets that a climb met count too.
    assert stated.log_score_ < found.log_score_ <= best.log_score_ + 1e-6


def test_all_sets_of_twenty_variables():
    """A variable with seven parents: a limit of six, which was once the default, proves a worse DAG."""
    dag = simulate.random_dag(20, edges_per_node=2, random_seed=5)
    table = simulate.linear(dag, 300, random_seed=5)
    found, within = Exact().fit(table), Exact(max_parents=6).fit(table)
    assert (found.proved_, found.max_parents_, found.searched_up_to_) == (True, 19, None)
    assert found.log_score_ >= BIC().bind(table).total(dag)
    # What is proved of at most six parents is so of these only.
    assert within.proved_ and found.log_score_ > within.log_score_ + 1
