"""Search over orders against all DAGs, all moves and plain statements; and the search for promising parent sets."""

import time
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone

from gpn_bayes import graphs, scores
from gpn_bayes.estimators import HillClimbing, OrderingSearch, ordering, parent_sets
from gpn_bayes.estimators.parent_sets import adjacency_of, gather, members
from gpn_bayes.estimators.pops import potentially_optimal_sets
from gpn_bayes.estimators.problem import read_problem
from gpn_bayes.estimators.set_search import _Explorer, anytime_parent_sets
from gpn_bayes.kernels.learners.ordering import (
    OrderState,
    acyclic_selection,
    linear_extension,
    local_search,
    perturb,
    random_order,
    total_score,
)
from gpn_bayes.kernels.learners.parent_sets import best_of_order, undominated
from gpn_bayes.scores.bge import BGe
from tests.learners import all_parent_sets, assert_obeys, best_by_enumeration, discrete, linear_table, random_rules
from tests.rough_scores import Noisy

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

OPTIMA = {"asia": -2232.998, "child": -13022.540, "alarm": -11646.289}


def random_state(rng, sets):
    n = len(sets.starts) - 1
    state = OrderState(np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64))
    random_order(rng, sets, state)
    return state


def score_of(sets, order):
    return best_of_order(sets, np.array(order), np.empty(len(order), dtype=np.int64))


def score_for(n):
    """Return a score with no symmetries, or a quick one where there are many sets."""
    return Noisy(noise=3.0) if n < 10 else "bge"


def moved(order, place, target):
    rest = [*order[:place], *order[place + 1 :]]
    return [*rest[:target], order[place], *rest[target:]]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variant", ["obs", "asobs"])
@pytest.mark.parametrize("moves", ["insertion", "swap"])
def test_all_dags_of_four(seed, variant, moves):
    table, score = linear_table(4, seed, 30), Noisy(noise=2.0, seed=seed)
    rules = random_rules(4, seed) if seed % 2 else {}
    best = best_by_enumeration(read_problem(table, score, **rules))
    learner = OrderingSearch(score, variant=variant, moves=moves, patience=30, random_state=1, **rules)
    found = learner.fit(table)
    assert found.log_score_ == pytest.approx(best)
    assert found.trace_[-1] == pytest.approx(best)


@pytest.mark.parametrize("n", [7, 66])
@pytest.mark.parametrize("by_insertion", [True, False])
def test_no_single_move_is_better(n, by_insertion):
    required = [("x1", "x0"), (f"x{n - 1}", "x2")]
    sets = all_parent_sets(read_problem(linear_table(n), score_for(n), 2, required))
    rng = np.random.default_rng(1)
    for _ in range(3 if n < 10 else 1):
        state = random_state(rng, sets)
        before = score_of(sets, state.order)
        score = local_search(rng, sets, state, by_insertion, False)
        assert sorted(state.order) == list(range(n))
        assert score == pytest.approx(score_of(sets, state.order))
        assert score > before
        for place in range(n) if n < 10 else rng.permutation(n)[:20].tolist():
            targets = range(n) if by_insertion else range(max(place - 1, 0), min(place + 2, n))
            for target in targets:
                assert score_of(sets, moved(state.order.tolist(), place, target)) <= score + 1e-7


def test_insertions_find_the_best_of_all_orders():
    sets = all_parent_sets(read_problem(linear_table(6, seed=4, n_rows=500), "bge"))
    rng = np.random.default_rng(1)
    found = [local_search(rng, sets, random_state(rng, sets), True, False) for _ in range(30)]
    best = max(found)
    assert best == pytest.approx(max(score_of(sets, order) for order in permutations(range(6))))
    assert np.mean(np.isclose(found, best)) > 0.3


def plain_selection(sets, order):
    """Choose parents last to first with networkx watching for cycles."""
    graph, total = nx.DiGraph(), 0.0
    graph.add_nodes_from(range(len(order)))
    for node in reversed(order):
        for row in range(sets.starts[node], sets.starts[node + 1]):
            parents = members(sets.words[row])
            if not set(parents) & nx.descendants(graph, node):
                break
        graph.add_edges_from((parent, node) for parent in parents)
        total += sets.scores[row]
    return graph, total


@pytest.mark.parametrize("n", [8, 66])
def test_acyclic_selection(n):
    required = [("x1", "x0"), (f"x{n - 1}", "x3")]
    sets = all_parent_sets(read_problem(linear_table(n), score_for(n), 2, required))
    rng = np.random.default_rng(2)
    gains = []
    for _ in range(10):
        order = random_state(rng, sets).order
        rows = np.empty(n, dtype=np.int64)
        total = acyclic_selection(sets, order, rows)
        graph, expected = plain_selection(sets, order.tolist())
        assert total == pytest.approx(expected)
        adjacency = adjacency_of(sets, rows)
        assert set(map(tuple, np.argwhere(adjacency))) == set(graph.edges)
        assert graphs.is_acyclic(adjacency)
        gains.append(total - score_of(sets, order))
    assert min(gains) >= -1e-9
    assert max(gains) > 1


def test_linear_extensions_put_parents_first_and_differ():
    sets = all_parent_sets(read_problem(linear_table(7), "bge", 1))
    rng = np.random.default_rng(1)
    state = random_state(rng, sets)
    dag = adjacency_of(sets, state.rows)
    orders = set()
    for _ in range(50):
        order = np.empty(7, dtype=np.int64)
        linear_extension(rng, sets, state.rows, order)
        places = np.argsort(order)
        assert all(places[i] < places[j] for i, j in np.argwhere(dag))
        orders.add(tuple(order.tolist()))
    assert len(orders) > 1


def test_random_orders_and_moves_leave_every_node_a_set():
    required = [("x0", "x1"), ("x1", "x2"), ("x5", "x2")]
    sets = all_parent_sets(read_problem(linear_table(6), "bge", required=required))
    rng = np.random.default_rng(1)
    orders = set()
    for _ in range(60):
        state = random_state(rng, sets)
        orders.add(tuple(state.order.tolist()))
        perturb(rng, sets, state, 4)
        places = np.argsort(state.order)
        assert places[0] < places[1] < places[2] > places[5]
        assert total_score(sets, state.rows) == pytest.approx(score_of(sets, state.order))
    assert len(orders) > 30


@pytest.mark.parametrize("name", OPTIMA)
@pytest.mark.parametrize("variant", ["obs", "asobs"])
def test_reference_optima(name, variant):
    table, known = discrete(name)
    learner = OrderingSearch(scores.BIC(known["card"]), max_parents=3, variant=variant, random_state=1)
    began = time.process_time()
    found = learner.fit(table)
    assert found.log_score_ == pytest.approx(OPTIMA[name], abs=1e-3)
    assert found.search_seconds_ > 0
    assert time.process_time() - began < 100  # nothing hangs, the compiler included


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sets", ["all", "anytime"])
def test_rules_are_kept(seed, sets):
    rules = random_rules(6, seed)
    learner = OrderingSearch(
        "bge", sets=sets, variant=["obs", "asobs"][seed % 2], patience=5, random_state=seed, **rules
    )
    found = learner.fit(linear_table(6))
    assert_obeys(found.adjacency_, rules)
    places = [found.order_.index(f"x{i}") for i in range(6)]
    assert all(places[i] < places[j] for i, j in np.argwhere(found.adjacency_))


def test_no_parents_give_the_empty_graph():
    assert OrderingSearch("bge", max_parents=0).fit(linear_table(4)).adjacency_.sum() == 0


@pytest.mark.parametrize("variant", ["obs", "asobs"])
def test_many_variables(variant):
    table = linear_table(70, n_rows=200)
    required = [("x2", "x68"), ("x69", "x1")]
    learner = OrderingSearch(
        "bge", max_parents=2, variant=variant, restarts=1, patience=3, required=required, random_state=1
    )
    found = learner.fit(table)
    assert set(required) <= set(found.graph_.edges)
    assert graphs.is_acyclic(found.adjacency_)
    assert found.log_score_ == pytest.approx(BGe().bind(table).total(found.graph_))
    assert found.log_score_ == pytest.approx(found.trace_[-1])
    assert found.log_score_ > BGe().bind(table).total(required) + 100


def test_the_trace_rises_and_restarts_go_on_where_patience_ends():
    found = OrderingSearch("bge", moves="swap", restarts=4, patience=2, jump=2, random_state=1).fit(linear_table(10))
    assert np.all(np.diff(found.trace_) >= 0)
    assert found.trace_[-1] > found.trace_[0]
    # A restart makes one search, and two more that find nothing.
    assert len(found.trace_) >= 4 * 3
    assert len(OrderingSearch("bge", restarts=4, patience=0).fit(linear_table(10)).trace_) == 4


def test_time_ends_the_search():
    table = linear_table(6)
    found = OrderingSearch("bge", max_seconds=1e-9, random_state=1).fit(table)
    assert len(found.trace_) == 1
    assert not found.interrupted_
    began = time.monotonic()
    found = OrderingSearch("bge", max_seconds=0.3, patience=10**9).fit(table)
    assert 0.3 <= found.search_seconds_
    assert time.monotonic() - began < 60


def test_an_interruption_keeps_the_best_so_far(monkeypatch):
    found = []

    def interrupted(*arguments):
        if len(found) == 3:
            raise KeyboardInterrupt
        found.append(local_search(*arguments))
        return found[-1]

    monkeypatch.setattr(ordering, "local_search", interrupted)
    learner = OrderingSearch("bge", moves="swap", random_state=1).fit(linear_table(9))
    assert learner.interrupted_
    assert learner.log_score_ == pytest.approx(max(found))
    assert len(learner.trace_) == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"variant": "aobs"}, "variant must be one of obs, asobs; received 'aobs': did you mean 'asobs'?"),
        ({"moves": ("swap",)}, "moves must be one of insertion, swap; received ('swap',)"),
        ({"sets": "some"}, "sets must be one of all, anytime; received 'some'"),
        ({"sets_per_variable": 0}, "sets_per_variable must be a whole number, 1 or more; received 0"),
        ({"restarts": 0}, "restarts must be a whole number, 1 or more; received 0"),
        ({"patience": -1}, "patience must be a whole number, 0 or more; received -1"),
        ({"jump": 0}, "jump must be a whole number, 1 or more; received 0"),
        ({"max_seconds": -2}, "max_seconds must be a positive number or None; received -2"),
        ({"max_seconds": "1"}, "max_seconds must be a positive number or None; received '1'"),
        ({"max_parents": 1.5}, "max_parents must be a whole number, 0 or more; received 1.5"),
    ],
)
def test_settings_that_do_not_fit(setting, message):
    with pytest.raises(ValueError) as caught:
        OrderingSearch("bge", **setting).fit(linear_table(3))
    assert str(caught.value) == message


def test_the_same_seed_gives_the_same_search():
    table = linear_table(10, seed=2)
    learner = OrderingSearch("bge", moves="swap", patience=3, random_state=7)
    first, again = learner.fit(table), clone(learner).fit(table)
    np.testing.assert_array_equal(first.trace_, again.trace_)
    assert first.order_ == again.order_
    other = OrderingSearch("bge", moves="swap", patience=3, random_state=8).fit(table)
    assert other.order_ != first.order_


def test_scikit_learn_manners(capsys, progress_at_once):
    learner = OrderingSearch("bge", jump=7)
    assert clone(learner).get_params() == learner.get_params()
    assert learner.set_params(jump=3).jump == 3
    assert learner.set_params(progressbar=True).fit(linear_table(3)) is learner
    assert "Searching" in capsys.readouterr().err


def as_dict(sets, node):
    rows = range(sets.starts[node], sets.starts[node + 1])
    return {tuple(members(sets.words[row])): sets.scores[row] for row in rows}


def test_undominated_sets():
    rng = np.random.default_rng(1)
    # Whole numbers, so that there are ties.
    scored = {s: float(rng.integers(0, 6)) for size in range(4) for s in combinations([0, 2, 3, 65], size)}
    padded = np.full((len(scored), 3), -1, dtype=np.int16)
    for row, chosen in zip(padded, scored, strict=True):
        row[: len(chosen)] = chosen
    alone = (np.array([[-1]]), np.array([0.0]))
    sets = gather([alone, (padded, np.array(list(scored.values()))), *[alone] * 64], 66)
    kept = undominated(sets)
    expected = {
        chosen
        for chosen, value in scored.items()
        if not any(set(other) < set(chosen) and scored[other] >= value for other in scored)
    }
    rows = range(sets.starts[1], sets.starts[2])
    assert {tuple(members(sets.words[row])) for row in rows if kept[row]} == expected
    assert 1 < len(expected) < len(scored)
    assert kept[[0, -1]].all()


@pytest.mark.parametrize("score", ["bge", "bic"])
def test_with_room_for_all_sets_none_is_left_out(score):
    if score == "bge":
        table, required = linear_table(6), [("x0", "x1"), ("x3", "x1")]
    else:
        table, required = discrete("asia")[0], [("tub", "either")]
    problem = read_problem(table, score, 3, required=required)
    (found, _), expected = anytime_parent_sets(problem, 10**6), potentially_optimal_sets(problem)
    for node in range(problem.n):
        assert as_dict(found, node) == pytest.approx(as_dict(expected, node))


def test_no_more_sets_are_scored_than_there_is_room_for():
    problem = read_problem(linear_table(9), Noisy(), 5, required=[("x0", "x1")])
    adjacency = HillClimbing(tabu=0, restarts=0)._search(problem)
    singles = [(i, (j,)) for i in range(9) for j in range(9) if i not in (j, 1)]
    problem.store.fill([*singles, *((1, (0, j)) for j in range(2, 9))], progressbar=False)
    scored = problem.store.scorer.scored
    before = len(scored)
    sets, order = anytime_parent_sets(problem, 20)
    assert len(scored) == len(set(scored)) == before + 9 * 20
    assert all(0 in parents for node, parents in scored if node == 1)
    assert score_of(sets, order) >= problem.total(adjacency) - 1e-9


def test_promising_sets_keep_the_rules_whatever_else_was_scored():
    problem = read_problem(linear_table(5), "bge", 2, required=[("x0", "x1")], forbidden=[("x2", "x3")])
    problem.store.fill([(1, ()), (1, (2,)), (3, (2,)), (4, (0, 1, 2))], progressbar=False)
    sets, _ = anytime_parent_sets(problem, 10**6)
    assert all(0 in parents for parents in as_dict(sets, 1))
    assert not any(2 in parents for parents in as_dict(sets, 3))
    assert max(map(len, as_dict(sets, 4))) <= 2


@pytest.mark.parametrize(("score", "most"), [("bic", 4), ("k2", 4)])
def test_promising_sets_are_better_than_the_rest(score, most):
    """Most of a node's best sets are among the tenth of all that is scored."""
    table, known = discrete("child")
    problem = read_problem(table, {"bic": scores.BIC, "k2": scores.K2}[score](known["card"]), most)
    caught = []
    for node in range(0, 20, 4):
        sets, values = problem.store.scorer.scores_up_to(node, problem.allowed(node), most)
        best = {tuple(int(i) for i in sets[row] if i >= 0) for row in np.argsort(-values)[:20]}
        explorer = _Explorer(problem, node)
        explorer.explore(len(values) // 10)
        assert len(explorer.known) == 20 + len(values) // 10
        caught.append(len(best & explorer.known.keys()))
    assert np.mean(caught) > 12


def test_guesses_of_pairs_are_the_formula():
    table, known = discrete("asia")
    scorer = scores.BIC(known["card"]).bind(table)
    problem = read_problem(table, scores.BIC(known["card"]), 2)
    explorer = _Explorer(problem, 0)
    explorer.explore(1)
    ((guess, pair, _, _), *_) = sorted(explorer._queue)
    a, b = pair
    # Independence selection: the sum of the parts, and what BIC charges them too little when put together.
    inter = 0.5 * np.log(1000) * 1 * (2 + 2 - 4 - 1) - scorer.local(0)
    assert -guess == pytest.approx(scorer.local(0, [a]) + scorer.local(0, [b]) + inter)


def test_promising_sets_serve_wide_networks():
    table = linear_table(70, n_rows=200)
    found = OrderingSearch(
        "bge", sets="anytime", sets_per_variable=150, max_parents=6, restarts=1, patience=2, random_state=1
    ).fit(table)
    climb = HillClimbing("bge", max_parents=6, tabu=0, restarts=0).fit(table)
    assert found.log_score_ > climb.log_score_ + 1
    assert found.adjacency_.sum(axis=0).max() > 2


def test_what_a_climb_meets_is_searched_where_sets_are_too_many(monkeypatch):
    """A parent set beyond the tables' limit: without the climb's sets the search couldn't have it."""
    monkeypatch.setattr(parent_sets, "MOST_SETS", 400)
    rng = np.random.default_rng(4)
    table = linear_table(24, seed=3, n_rows=300)
    table["x23"] = table[["x1", "x4", "x7", "x9", "x12"]].sum(axis=1) + 0.3 * rng.normal(size=300)
    settings = {"score": "bge", "restarts": 1, "patience": 2, "random_state": 1}
    with pytest.warns(UserWarning, match="of up to 2 parents were"):
        found = OrderingSearch(**settings).fit(table)
    assert (found.searched_up_to_, found.max_parents_) == (2, 23)
    within = OrderingSearch(**settings, max_parents=2).fit(table)
    assert within.searched_up_to_ is None
    climbed = HillClimbing("bge", tabu=0, restarts=0).fit(table)
    assert climbed.max_parents_ == 23 and climbed.adjacency_[:, 23].sum() >= 5
    assert found.log_score_ >= climbed.log_score_ - 1e-6 and climbed.log_score_ > within.log_score_ + 100
    anytime = OrderingSearch(**settings, sets="anytime", sets_per_variable=100).fit(table)
    assert anytime.searched_up_to_ is None and anytime.log_score_ >= climbed.log_score_ - 1e-6
