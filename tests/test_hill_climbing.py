"""Hill climbing against all DAGs, all single changes and recomputed gains, and rules that don't fit."""

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone

from gpn_bayes import graphs, scores, simulate
from gpn_bayes.estimators import HillClimbing
from gpn_bayes.estimators.hill_climbing import Climb, Climber
from gpn_bayes.estimators.problem import read_problem
from gpn_bayes.kernels.learners.hill_climbing import NO_MOVE, REVERSE, TOGGLE
from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.bge import BGe
from tests.learners import assert_obeys, best_by_enumeration, discrete, linear_table, random_rules
from tests.rough_scores import Noisy

NOWHERE = np.empty(0, dtype=np.uint64)


def neighbours(problem, adjacency):
    """Yield every DAG that keeps the rules and is one added, deleted or reversed edge away, with what that edge is."""
    for i in range(problem.n):
        for j in range(problem.n):
            for kind in (TOGGLE, REVERSE):
                other = adjacency.copy()
                other[i, j] ^= 1
                if kind == REVERSE:
                    if not adjacency[i, j]:
                        continue
                    other[j, i] = 1
                legal = (
                    i != j
                    and graphs.is_acyclic(other)
                    and not (problem.prior.required & (other == 0)).any()
                    and not (problem.prior.forbidden & (other == 1)).any()
                    and other.sum(axis=0).max() <= problem.max_parents
                )
                if legal:
                    yield (kind, i, j), other


def assert_summit(problem, adjacency):
    total = problem.total(adjacency)
    assert all(problem.total(other) <= total + 1e-7 for _, other in neighbours(problem, adjacency))


@pytest.mark.parametrize("seed", range(6))
def test_all_dags_of_four(seed):
    table, score = linear_table(4, seed, 30), Noisy(noise=2.0, seed=seed)
    rules = random_rules(4, seed) if seed % 2 else {}
    best = best_by_enumeration(read_problem(table, score, **rules))
    found = HillClimbing(score, random_state=seed, **rules).fit(table)
    assert found.log_score_ == pytest.approx(best)
    assert found.log_score_ == pytest.approx(score.bind(table).total(found.graph_))


@pytest.mark.parametrize("seed", range(4))
def test_gains_are_those_of_recomputed_scores(seed):
    rules = random_rules(6, seed) if seed else {}
    problem = read_problem(linear_table(6), Noisy(noise=3.0), **rules)
    rng = np.random.default_rng(seed)
    climber = Climber(problem, problem.prior.required)
    made = 0
    for _ in range(40):
        move = climber.find_gains().best_move(NOWHERE)
        gains = {
            key: problem.total(other) - problem.total(climber.adjacency)
            for key, other in neighbours(problem, climber.adjacency)
        }
        if gains:
            assert move.gain == pytest.approx(max(gains.values()))
            assert gains[move[1:]] == pytest.approx(move.gain)
        else:
            assert move.kind == NO_MOVE
        chosen = climber.random_move(rng)
        if chosen is not None:
            assert chosen.gain == pytest.approx(gains[chosen[1:]])
            climber.make(chosen)
            made += 1
        assert climber.total == pytest.approx(problem.total(climber.adjacency))
        assert climber.graph == Climber(problem, climber.adjacency).graph
    assert made > 5


def test_all_kinds_of_random_moves_are_made():
    climber = Climber(read_problem(linear_table(5), "bge"), nx.to_numpy_array(nx.path_graph(5, nx.DiGraph)))
    rng = np.random.default_rng(1)
    moves = [climber.find_gains().random_move(rng) for _ in range(60)]
    made = {(m.kind, climber.adjacency[m.parent, m.child]) for m in moves}
    assert made == {(TOGGLE, 0), (TOGGLE, 1), (REVERSE, 1)}


def test_only_what_a_change_touches_is_scored_and_nothing_twice():
    problem = read_problem(linear_table(6), Noisy())
    scored = problem.store.scorer.scored
    climber = Climber(problem, np.zeros((6, 6), dtype=np.int8))
    move = climber.find_gains().best_move(NOWHERE)
    assert len(scored) == 6 + 6 * 5
    climber.make(move)
    climber.find_gains()
    new = scored[36:]
    assert {node for node, _ in new} == {move.child}
    assert {parents for _, parents in new} == {
        tuple(sorted({move.parent, other})) for other in range(6) if other not in (move.parent, move.child)
    }
    HillClimbing(Noisy(), random_state=1)._search(problem)
    assert len(scored) == len(set(scored))


def test_visited_graphs_are_not_returned_to():
    problem = read_problem(linear_table(4), "bge")
    climber = Climber(problem, np.zeros((4, 4), dtype=np.int8))
    graphs_met = [climber.graph]
    for _ in range(300):
        move = climber.find_gains().best_move(np.array(graphs_met, dtype=np.uint64))
        if move.kind == NO_MOVE:
            break
        climber.make(move)
        graphs_met.append(climber.graph)
    assert len(set(graphs_met)) == len(graphs_met) > 100


def test_a_list_forgets_what_is_longer_ago():
    climber = Climber(read_problem(linear_table(4), "bge"), np.zeros((4, 4), dtype=np.int8))
    climb = Climb(climber, tabu=3, patience=40)
    climb.climb()
    assert len(climb._visited) == 3
    assert len(climb.trace) > 40


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tabu", [0, 30])
def test_no_single_change_is_better(seed, tabu):
    rules = random_rules(7, seed) if seed else {}
    table = linear_table(7, seed)
    found = HillClimbing("bge", tabu=tabu, restarts=seed, random_state=1, **rules).fit(table)
    assert_summit(read_problem(table, "bge", **rules), found.adjacency_)


def test_a_plain_climb_only_rises_and_a_list_never_ends_lower():
    higher = 0
    for seed in range(5):
        table = linear_table(9, seed, 60)
        plain = HillClimbing(Noisy(noise=3.0), tabu=0, restarts=0).fit(table)
        assert np.all(np.diff(plain.trace_) > 0)
        assert plain.n_steps_ == len(plain.trace_) - 1
        listed = HillClimbing(Noisy(noise=3.0), restarts=0).fit(table)
        np.testing.assert_allclose(listed.trace_[: len(plain.trace_)], plain.trace_)
        assert listed.log_score_ >= plain.log_score_ - 1e-9
        assert listed.log_score_ == pytest.approx(listed.trace_.max())
        restarted = HillClimbing(Noisy(noise=3.0), random_state=1).fit(table)
        assert restarted.log_score_ >= listed.log_score_ - 1e-9
        higher += restarted.log_score_ > plain.log_score_ + 1e-6
    assert higher >= 2


@pytest.mark.parametrize(("name", "optimum"), [("asia", -2232.998), ("child", -13022.540)])
def test_reference_optima(name, optimum):
    table, known = discrete(name)
    found = HillClimbing(scores.BIC(known["card"]), max_parents=3, restarts=0).fit(table)
    assert found.log_score_ == pytest.approx(optimum, abs=1e-3)


def test_alarm_is_no_worse_than_the_reference():
    table, known = discrete("alarm")
    found = HillClimbing(scores.BIC(known["card"]), max_parents=3, restarts=3, random_state=1).fit(table)
    assert known["pyagrum_tabu_BIC"]["BIC"] <= found.log_score_ <= -11646.289 + 1e-3


@pytest.mark.parametrize("seed", range(12))
def test_rules_are_kept(seed):
    rules = random_rules(6, seed)
    found = HillClimbing("bge", restarts=2, random_state=seed, **rules).fit(linear_table(6))
    assert_obeys(found.adjacency_, rules)


def test_no_parents_give_the_empty_graph():
    found = HillClimbing("bge", max_parents=0).fit(linear_table(4))
    assert found.adjacency_.sum() == found.n_steps_ == 0


def test_it_begins_where_it_is_told_to():
    table = linear_table(6, seed=2)
    best = HillClimbing("bge", random_state=1).fit(table)
    again = HillClimbing("bge", start=best.graph_, tabu=0, restarts=0).fit(table)
    assert again.n_steps_ == 0
    np.testing.assert_array_equal(again.adjacency_, best.adjacency_)
    empty = HillClimbing("bge", tabu=0, restarts=0).fit(table)
    assert empty.trace_[0] == pytest.approx(BGe().bind(table).total([]))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([("x1", "x2")], "the start must hold the required edges; it lacks x0 -> x1"),
        ([("x0", "x1"), ("x2", "x3")], "the start must hold no forbidden edge; it has x2 -> x3"),
        (
            [("x0", "x1"), ("x0", "x3"), ("x1", "x3"), ("x4", "x3")],
            "the start must have at most 2 parents per node; 'x3' has 3",
        ),
        ([("x0", "x1"), ("x1", "x0")], "the graph must be acyclic; it contains x0 -> x1 -> x0"),
        ([("x0", "y")], "every node must be one of the variables; 'y' is not"),
    ],
)
def test_starts_that_do_not_fit(start, message):
    learner = HillClimbing("bge", start=start, max_parents=2, required=[("x0", "x1")], forbidden=[("x2", "x3")])
    with pytest.raises(ValueError) as caught:
        learner.fit(linear_table(5))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"tabu": -1}, "tabu must be a whole number, 0 or more; received -1"),
        ({"patience": 1.5}, "patience must be a whole number, 0 or more; received 1.5"),
        ({"restarts": True}, "restarts must be a whole number, 0 or more; received True"),
        ({"jump": 0}, "jump must be a whole number, 1 or more; received 0"),
        ({"max_parents": -2}, "max_parents must be a whole number, 0 or more; received -2"),
    ],
)
def test_settings_that_do_not_fit(setting, message):
    with pytest.raises(ValueError) as caught:
        HillClimbing("bge", **setting).fit(linear_table(3))
    assert str(caught.value) == message


class NeverAlone(Score):
    """BGe, but minus infinity for nodes 1 and 2 without parents, or with all others as parents."""

    name, parameters = "never alone", {}

    def _bind(self, data):
        return NeverAloneScorer(self, BGe()._bind(data))


class NeverAloneScorer(Scorer):
    def __init__(self, score, bge):
        super().__init__(score, bge.names, bge.data_fingerprint)
        self.bge = bge

    def score_sets(self, node, parent_sets):
        found = self.bge.score_sets(node, parent_sets)
        values = [
            -np.inf if node in (1, 2) and len(parents) in (0, 3) else value
            for parents, value in zip(parent_sets, found.values, strict=True)
        ]
        return found._replace(values=np.array(values))


def test_it_finds_its_way_out_of_what_has_no_score():
    table = linear_table(4, seed=3)
    found = HillClimbing(NeverAlone(), random_state=1).fit(table)
    assert found.trace_[0] == -np.inf
    assert found.log_score_ == pytest.approx(best_by_enumeration(read_problem(table, NeverAlone())))


def test_an_interruption_keeps_the_best_so_far():
    calls = []

    def act(*_):
        calls.append(1)
        if len(calls) == 40:
            raise KeyboardInterrupt

    table = linear_table(8, seed=2)
    found = HillClimbing(Noisy(act=act), random_state=1).fit(table)
    assert found.interrupted_
    assert found.log_score_ == pytest.approx(found.trace_.max())
    whole = HillClimbing(Noisy(), random_state=1).fit(table)
    assert not whole.interrupted_
    np.testing.assert_allclose(found.trace_, whole.trace_[: len(found.trace_)])


def test_many_variables():
    table = linear_table(70, n_rows=200)
    required = [("x2", "x68"), ("x69", "x1")]
    found = HillClimbing("bge", max_parents=2, tabu=0, restarts=0, required=required).fit(table)
    assert graphs.is_acyclic(found.adjacency_)
    assert set(required) <= set(found.graph_.edges)
    assert found.adjacency_.sum(axis=0).max() == 2
    problem = read_problem(table, "bge", 2, required)
    assert Climber(problem, found.adjacency_).find_gains().best_move(NOWHERE).gain <= 1e-8
    assert found.log_score_ > BGe().bind(table).total(required) + 100


def test_the_same_seed_gives_the_same_climb():
    table = linear_table(8, seed=2)
    learner = HillClimbing("bge", restarts=3, random_state=7)
    first, again = learner.fit(table).trace_, clone(learner).fit(table).trace_
    np.testing.assert_array_equal(first, again)
    by_generator = HillClimbing("bge", restarts=3, random_state=np.random.default_rng(7)).fit(table).trace_
    np.testing.assert_array_equal(first, by_generator)
    assert not np.array_equal(first, HillClimbing("bge", restarts=3, random_state=8).fit(table).trace_)


def test_scikit_learn_manners(capsys, progress_at_once):
    learner = HillClimbing("bge", tabu=7, start=[("x0", "x1")])
    assert clone(learner).get_params() == learner.get_params()
    assert learner.set_params(tabu=3).tabu == 3
    assert learner.set_params(progressbar=True).fit(linear_table(3)) is learner
    assert "Climbing" in capsys.readouterr().err


def test_a_climb_has_no_limit_of_its_own():
    """50 variables with up to seven parents: the climb ends near the true DAG, with a limit of three far below."""
    dag = simulate.random_dag(50, edges_per_node=1.2, random_seed=7)
    table = simulate.linear(dag, 1000, random_seed=7)
    truth = scores.BIC().bind(table).total(dag)
    found = HillClimbing("bic", random_state=1).fit(table)
    assert max(degree for _, degree in dag.in_degree()) == 7
    assert found.max_parents_ == 49 and found.log_score_ > truth - 5
    limited = HillClimbing("bic", max_parents=3, random_state=1).fit(table)
    assert limited.log_score_ < truth - 1000


def test_rows_limit_a_climb_over_many_variables_and_it_says_so():
    table = linear_table(30, n_rows=40)
    # Beyond 16 variables, one parent per ten rows: BIC with nearly as many parents as rows praises noise.
    with pytest.warns(UserWarning, match="has 4 parents, the limit where none is stated, since there are 40 rows"):
        found = HillClimbing("bic", restarts=0).fit(table)
    assert found.max_parents_ == found.adjacency_.sum(axis=0).max() == 4
    assert HillClimbing("bic", restarts=0, max_parents=4).fit(table).log_score_ == found.log_score_
    assert HillClimbing("bic", restarts=0).fit(table.iloc[:, :8]).max_parents_ == 7


def test_slow_scores_keep_their_limit_and_it_says_so():
    class Slow(Noisy):
        def _bind(self, data):
            scorer = super()._bind(data)
            scorer.default_max_parents = 1
            return scorer

    table = linear_table(6, seed=3)
    with pytest.warns(UserWarning, match="has 1 parents, the limit where none is stated, since sets are slow to score"):
        HillClimbing(Slow(), restarts=0).fit(table)
    HillClimbing(Slow(), restarts=0, max_parents=1).fit(table)


@pytest.mark.parametrize("patience", [0, 1])
def test_a_climb_ends_after_as_many_steps_without_a_better_graph(patience):
    """Among independent columns each further edge costs."""
    table = np.random.default_rng(2).normal(size=(500, 4))
    climb = HillClimbing(patience=patience, restarts=0).fit(table)
    assert climb.n_steps_ == climb.trace_.argmax() + patience
