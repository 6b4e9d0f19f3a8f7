"""K2 against reference totals, a plain statement of it, and orders and rules that don't fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpn_bayes import scores
from gpn_bayes.estimators import K2, k2
from gpn_bayes.estimators.orders import orders_to_try
from gpn_bayes.estimators.problem import read_problem
from gpn_bayes.scores import BGe
from tests.learners import assert_obeys, discrete, linear_table, random_rules
from tests.rough_scores import Noisy


def plain_k2(scorer, order, most):
    """State the algorithm with loops."""
    adjacency = np.zeros((len(order), len(order)), dtype=np.int8)
    for place, node in enumerate(order):
        parents, score = [], scorer.local(node)
        while len(parents) < most:
            best, added = score, None
            for other in sorted(set(order[:place]) - set(parents)):
                value = scorer.local(node, [*parents, other])
                if value > best + 1e-8:
                    best, added = value, other
            if added is None:
                break
            parents, score = [*parents, added], best
        adjacency[parents, node] = 1
    return adjacency


@pytest.mark.parametrize("name", ["asia", "child", "alarm"])
def test_reference_totals(name):
    table, known = discrete(name)
    entry = known["ref_K2alg_K2score_trueorder_u3"]
    found = K2(scores.K2(known["card"]), order=known["order"], max_parents=3).fit(table)
    assert found.log_score_ == pytest.approx(entry["K2"], abs=1e-8)
    assert {child: sorted(found.graph_.predecessors(child)) for child in found.graph_} == {
        child: sorted(parents) for child, parents in entry["parents"].items()
    }
    assert found.order_ == known["order"]


@pytest.mark.parametrize("most", [0, 1, 2, 6, 99])
@pytest.mark.parametrize("score", [BGe(), Noisy(noise=5.0)], ids=["bge", "noisy"])
def test_plain_statement(score, most):
    table = linear_table(7, seed=3)
    order = np.random.default_rng(most).permutation(7).tolist()
    found = K2(score, order=order, max_parents=most).fit(table)
    np.testing.assert_array_equal(found.adjacency_, plain_k2(score.bind(table), order, most))
    assert found.log_score_ == pytest.approx(score.bind(table).total(found.graph_))
    assert found.max_parents_ == min(most, 6)


def test_no_parents_give_the_empty_graph():
    assert K2("bge", max_parents=0).fit(linear_table(4)).adjacency_.sum() == 0


def test_ties_go_to_the_lower_index_and_no_gain_is_no_edge():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 200)
    # The second column is the first with its labels changed, so that both say the same of the third.
    child = np.where(rng.random(200) < 0.9, first, 1 - first)
    table = pd.DataFrame({"first": first, "second": 1 - first, "child": child})
    for order in (["first", "second", "child"], ["second", "first", "child"]):
        found = K2(order=order).fit(table)
        assert list(found.graph_.predecessors("child")) == ["first"]


def test_order_by_index_is_that_by_name():
    table = linear_table(5)
    by_name = K2("bge", order=["x3", "x1", "x0", "x4", "x2"]).fit(table)
    by_index = K2("bge", order=np.array([3, 1, 0, 4, 2])).fit(table)
    np.testing.assert_array_equal(by_name.adjacency_, by_index.adjacency_)
    assert by_index.order_ == ["x3", "x1", "x0", "x4", "x2"]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["x0", "x1"], "an order must list every variable once; 'x2' is missing"),
        (["x0", "x1", "x2", "x1"], "an order must list every variable once; 'x1' appears more than once"),
        (["x0", "x1", "y"], "an order must list variables of the data; 'y' is not one"),
        ([0, 1, 3], "an order must list variables of the data; 3 is not one"),
        ("x0x1x2", "an order must list the variables; received 'x0x1x2'"),
        (7, "an order must list the variables; received 7"),
        (
            ["x2", "x1", "x0"],
            "an order must put required parents before their children; x0 -> x1 is required, but 'x1' comes first",
        ),
    ],
)
def test_orders_that_do_not_fit(order, message):
    with pytest.raises(ValueError) as caught:
        K2("bge", order=order, required=[("x0", "x1")]).fit(linear_table(3))
    assert str(caught.value) == message


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "ten"])
def test_numbers_of_orders_that_do_not_fit(count):
    with pytest.raises(ValueError, match="^n_orders must be a whole number, 1 or more; received"):
        K2("bge", n_orders=count).fit(linear_table(3))


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="^max_parents must be a whole number, 0 or more; received -1$"):
        K2("bge", max_parents=-1).fit(linear_table(3))


@pytest.mark.parametrize("seed", range(12))
def test_rules_are_kept(seed):
    rules = random_rules(6, seed)
    assert_obeys(K2("bge", n_orders=4, random_state=seed, **rules).fit(linear_table(6)).adjacency_, rules)


def test_required_parents_are_there_from_the_start():
    table = linear_table(5, seed=2)
    free = K2("bge", order=range(5), max_parents=1).fit(table)
    useless = next(i for i in range(4) if not free.adjacency_[i, 4])
    found = K2("bge", order=range(5), max_parents=1, required=[(useless, 4)]).fit(table)
    assert np.flatnonzero(found.adjacency_[:, 4]).tolist() == [useless]


def test_orders_follow_tiers_and_required_edges():
    table = linear_table(6)
    tiers = [["x3", "x5"], ["x0", "x1"], ["x2", "x4"]]
    problem = read_problem(table, "bge", required=[("x1", "x0")], tiers=tiers)
    orders = list(orders_to_try(problem, 12, np.random.default_rng(1)))
    assert len({tuple(order) for order in orders}) == 4
    for order in orders:
        assert [set(order[:2]), set(order[2:4]), set(order[4:])] == [{3, 5}, {0, 1}, {2, 4}]
        assert order.index(1) < order.index(0)


def test_the_first_orders_are_the_columns_and_the_strongest_pairs():
    rng = np.random.default_rng(1)
    chain = np.cumsum(rng.normal(size=(300, 4)), axis=1)
    table = pd.DataFrame(chain[:, [2, 0, 3, 1]], columns=["c", "a", "d", "b"])
    columns, strongest = orders_to_try(read_problem(table, "bge"), 2, rng)
    assert columns == [0, 1, 2, 3]
    # The pair c - d is the strongest, c has the most strength around it, and each next is nearest to those before.
    assert strongest == [0, 2, 3, 1]


def test_best_of_several_orders():
    table = linear_table(8, seed=5)
    found = K2("bge", n_orders=10, random_state=4).fit(table)
    problem = read_problem(table, "bge", 3)
    totals = [
        problem.total(k2.greedy_parents(problem, order)[0])
        for order in orders_to_try(problem, 10, np.random.default_rng(4))
    ]
    assert found.log_score_ == pytest.approx(max(totals))
    assert max(totals) > min(totals) + 1
    again = K2("bge", order=found.order_).fit(table)
    np.testing.assert_array_equal(found.adjacency_, again.adjacency_)
    np.testing.assert_array_equal(found.adjacency_, clone(found).fit(table).adjacency_)


def test_an_interruption_keeps_the_best_so_far(monkeypatch):
    table, tried, greedy = linear_table(6), [], k2.greedy_parents

    def interrupted(problem, order):
        if len(tried) == 3:
            raise KeyboardInterrupt
        tried.append(greedy(problem, order))
        return tried[-1]

    assert not K2("bge", random_state=1).fit(table).interrupted_
    monkeypatch.setattr(k2, "greedy_parents", interrupted)
    found = K2("bge", random_state=1).fit(table)
    assert found.interrupted_
    assert found.log_score_ == pytest.approx(max(score for _, score in tried))
    tried[:] = [None] * 3
    with pytest.raises(KeyboardInterrupt):
        K2("bge").fit(table)


def test_many_variables():
    table = linear_table(70)
    found = K2("bge", order=[f"x{i}" for i in range(70)], max_parents=2).fit(table)
    np.testing.assert_array_equal(found.adjacency_, plain_k2(BGe().bind(table), list(range(70)), 2))


def test_scikit_learn_manners():
    learner = K2("bge", order=["x0", "x1"], max_parents=2)
    assert clone(learner).get_params() == learner.get_params()
    assert learner.set_params(max_parents=1).max_parents == 1
    assert K2().get_params()["score"] == "k2"
    table = linear_table(4)
    before = table.copy()
    K2("bge").fit(table)
    pd.testing.assert_frame_equal(table, before)


def test_progress_is_shown_when_asked(capsys, progress_at_once):
    K2("bge", progressbar=True, n_orders=2).fit(linear_table(3))
    assert "Trying" in capsys.readouterr().err
    K2("bge", n_orders=2).fit(linear_table(3))
    assert capsys.readouterr().err == ""
