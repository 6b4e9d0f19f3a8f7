"""Order MCMC: exact transition matrices of every move, over all orders of 3 and 4 nodes."""

from collections.abc import Iterator

import numpy as np
import pytest

from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.chains import run_order
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.order import (
    DEFAULT_MIX,
    ORDER,
    OrderState,
    draw_from_order,
    new_order,
    propose_order,
)
from tests.scripts import (
    KINDS,
    Order,
    Path,
    Problem,
    assert_draws_follow_scores,
    assert_reversible,
    imbalance,
    is_irreducible,
    log_totals,
    make_problem,
    mixture,
    paths,
    stationary,
    transition_matrix,
)

RNG = np.random.default_rng(0)
CASES = [pytest.param(n, kind, id=f"{n} {kind}") for n in (3, 4) for kind in KINDS]
MOVES = [orders.ADJACENT_SWAP, orders.ANY_SWAP, orders.RELOCATE]


def state_of(problem: Problem, order: Order) -> OrderState:
    return new_order(problem.tables, np.array(order))


def walk(problem: Problem, order: Order, move: int) -> Iterator[Path]:
    current = state_of(problem, order)

    def run(chance: Chance) -> tuple[float, Order]:
        new = OrderState(current.ints.copy(), current.score.copy())
        log_ratio = propose_order(chance, problem.tables, current, new, move)
        end = tuple(new.ints[ORDER].tolist())
        fresh = state_of(problem, end)
        # What a move brings up to date must be what a fresh start gives.
        np.testing.assert_array_equal(new.ints, fresh.ints)
        np.testing.assert_array_equal(new.score, fresh.score)
        return log_ratio, end

    return paths(run)


def matrix_of(problem: Problem, move: int) -> np.ndarray:
    return transition_matrix(list(problem.orders), lambda order: walk(problem, order, move))


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_scores_are_the_sums_over_the_dags_of_an_order(n, kind):
    problem = make_problem(n, kind)
    scored = [state_of(problem, order).score.sum() for order in problem.orders]
    np.testing.assert_allclose(scored, log_totals(problem.orders), rtol=0.0, atol=1e-10)
    by_node = [problem.order_log_score(order) for order in problem.orders]
    np.testing.assert_allclose(scored, by_node, rtol=0.0, atol=1e-10)
    assert len(problem.orders) == {3: 6, 4: 24}[n] or "required" in kind


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_every_move_is_reversible(n, kind):
    problem = make_problem(n, kind)
    target = np.array([problem.order_log_score(order) for order in problem.orders])
    for move in MOVES:
        matrix = matrix_of(problem, move)
        assert_reversible(matrix, target)
        assert np.count_nonzero(matrix) > len(matrix) or len(matrix) == 1


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_the_mixture_has_the_one_right_stationary_distribution(n, kind):
    problem = make_problem(n, kind)
    target = log_totals(problem.orders)
    matrix = mixture([matrix_of(problem, move) for move in MOVES], DEFAULT_MIX)
    assert is_irreducible(matrix)
    assert np.diag(matrix).max() > 0.0  # which makes an irreducible chain aperiodic
    if kind != "peaked":  # there the chain's gap is too narrow for linear algebra
        np.testing.assert_allclose(stationary(matrix), np.exp(target - np.logaddexp.reduce(target)), atol=1e-9)


def test_the_proposal_of_a_swap_is_uniform():
    problem = make_problem(4, "asymmetric")
    start = (2, 0, 3, 1)
    adjacent = [end for _, _, end in walk(problem, start, orders.ADJACENT_SWAP)]
    assert sorted(adjacent) == [(0, 2, 3, 1), (2, 0, 1, 3), (2, 3, 0, 1)]
    ends = [end for _, _, end in walk(problem, start, orders.ANY_SWAP)]
    assert len(set(ends)) == 6 and all(ends.count(end) == 2 for end in ends)
    assert {probability for probability, _, _ in walk(problem, start, orders.ANY_SWAP)} == {1 / 4 * (1 / 3)}


@pytest.mark.parametrize("move", MOVES)
def test_a_wrong_target_is_rejected(move):
    problem, other = make_problem(3, "asymmetric"), make_problem(3, "asymmetric", seed=2)
    matrix = matrix_of(problem, move)
    assert imbalance(matrix, log_totals(problem.orders)) < 1e-9
    assert imbalance(matrix, log_totals(other.orders)) > 0.1
    with pytest.raises(AssertionError):
        assert_reversible(matrix, log_totals(other.orders))


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_the_dag_drawn_from_an_order_has_its_conditional_distribution(n, kind):
    problem = make_problem(n, kind)
    for order, dags in problem.orders.items():
        state = state_of(problem, order)

        def run(chance: Chance, state: OrderState = state) -> tuple[float, tuple[int, ...]]:
            parents = np.empty(n, np.int64)
            draw_from_order(chance, problem.tables, state, parents)
            return 0.0, tuple(parents.tolist())

        assert_draws_follow_scores(run, dags)


def test_a_single_node_stays_where_it_is():
    problem = Problem([[]], [np.array([-3.0])])
    for move in (orders.ADJACENT_SWAP, orders.ANY_SWAP):
        assert [path[1] for path in walk(problem, (0,), move)] == [-np.inf]
    words, log_scores, targets = np.zeros((5, 1, 1), np.uint64), np.empty(5), np.empty(5)
    counters = np.zeros((3, 2), np.int64)
    state = state_of(problem, (0,))
    run_order(Chance(RNG), problem.tables, state, DEFAULT_MIX, 10, words, log_scores, targets, counters)
    assert counters[:, 0].sum() == 50 and counters[:, 1].sum() == 0
    assert not words.any() and (log_scores == -3.0).all() and (targets == -3.0).all()
