"""One parent from outside the candidates: states with outside candidates, their targets, and every move."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.dag_moves import REORDER, RESAMPLE, REVERSE, TOGGLE, propose_dag, restore_outside_candidates
from gpn_bayes.mcmc.draw_dag import draw_parents
from gpn_bayes.mcmc.order import MOVES, OrderState, draw_from_order, new_order, propose_order
from gpn_bayes.mcmc.outside_candidates import redraw_outside_candidates_of_order, redraw_outside_candidates_of_partition
from gpn_bayes.mcmc.partition import PartitionState, draw_from_partition, new_partition
from gpn_bayes.mcmc.partition_moves import propose_partition
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting
from gpn_bayes.mcmc.tables import (
    ScoreTables,
    bit_of,
    build_tables,
    candidate,
    heir,
    n_candidates,
    n_heirs,
    outside_node,
    outside_place,
    set_outside_candidate,
)
from tests.outside_worlds import WORLDS, World, places_of, targets_of
from tests.scripts import assert_reversible, paths, transition_matrix

pytestmark = pytest.mark.more("samples large networks")


@pytest.mark.parametrize("name", WORLDS)
def test_each_dag_has_its_share_of_the_states(name):
    world = WORLDS[name]
    shares = [logsumexp([world.log_weight(dag, places) for places in world.outside_choices()]) for dag in world.dags]
    gaps = np.array(shares) - np.array(list(world.dags.values()))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-10)


@pytest.mark.parametrize("name", WORLDS)
def test_scores_of_states_are_sums_over_their_dags(name):
    world = WORLDS[name]
    for (blocks, places), target in targets_of(world).items():
        state = new_partition(world.with_outside(places), [sorted(block) for block in blocks])
        assert state.score.sum() == pytest.approx(target, abs=1e-9)


def test_tables_keep_track_of_who_may_be_whose_parent():
    world = WORLDS["four"]
    tables = world.tables()
    rng = np.random.default_rng(2)
    for _ in range(50):
        node = int(rng.integers(4))
        set_outside_candidate(tables, node, int(rng.integers(len(world.outside[node]))))
        for i in range(4):
            own = [int(candidate(tables, i, b)) for b in range(n_candidates(tables, i))]
            assert own == [*world.candidates[i], outside_node(tables, i, outside_place(tables, i))]
            assert [int(bit_of(tables, i, j)) for j in own] == list(range(len(own)))
            heirs = [int(heir(tables, i, h)) for h in range(n_heirs(tables, i))]
            assert heirs == [j for j in range(4) if bit_of(tables, j, i) >= 0]


def test_sums_over_sets_with_the_outside_candidate_match_brute_force():
    world = WORLDS["four"]
    tables = world.with_outside((0, 0, 0, 0))
    for node in range(4):
        table = [draw_score(world, tables, node, mask) for mask in range(8)]
        for inside in range(8):
            expected = logsumexp([table[mask] for mask in range(8) if mask & ~inside == 0])
            assert log_sum_inside(tables, node, inside) == pytest.approx(expected, abs=1e-10)
            for needed in (mask for mask in range(1, 8) if mask & ~inside == 0):
                met = [table[mask] for mask in range(8) if mask & ~inside == 0 and mask & needed]
                assert log_sum_meeting(tables, node, inside, needed) == pytest.approx(logsumexp(met), abs=1e-10)


def draw_score(world: World, tables: ScoreTables, node: int, mask: int) -> float:
    parents = frozenset(int(candidate(tables, node, b)) for b in range(n_candidates(tables, node)) if mask >> b & 1)
    outside = parents - set(world.candidates[node])
    return world.scores[node][parents] + (np.log(len(world.outside[node])) if outside else 0.0)


@pytest.mark.parametrize(("inside", "needed"), [(7, 0), (7, 4), (7, 3), (7, 1), (6, 4), (5, 5), (3, 1)])
def test_parents_are_drawn_in_proportion_to_their_scores(inside, needed):
    world = WORLDS["four"]
    tables = world.with_outside((0, 0, 0, 0))
    total = log_sum_meeting(tables, 1, inside, needed) if needed else log_sum_inside(tables, 1, inside)
    found: dict[int, float] = {}
    for probability, _, mask in paths(lambda chance: (0.0, draw_parents(chance, tables, 1, inside, needed, total))):
        found[mask] = found.get(mask, 0.0) + probability
    allowed = [m for m in range(8) if m & ~inside == 0 and (needed == 0 or m & needed)]
    scores = np.array([draw_score(world, tables, 1, mask) for mask in allowed])
    expected = np.exp(scores - logsumexp(scores))
    assert sorted(found) == allowed
    np.testing.assert_allclose([found[mask] for mask in allowed], expected, rtol=1e-10)


def partition_walk(world: World, state: tuple, move: int, beta: float) -> Iterator:
    blocks, places = state

    def run(chance: Chance) -> tuple[float, tuple]:
        tables = world.with_outside(places)
        current = new_partition(tables, [sorted(block) for block in blocks])
        log_ratio = 0.0
        if move < 0:
            redraw_outside_candidates_of_partition(chance, tables, current, beta)
        else:
            new = PartitionState(current.ints.copy(), current.score.copy())
            log_ratio = propose_partition(chance, tables, current, new, move, beta)
            current = new
        block = current.ints[2, : world.n]
        end = tuple(frozenset(np.flatnonzero(block == b).tolist()) for b in range(block.max() + 1))
        if move < 0:
            fresh = new_partition(tables, [sorted(part) for part in end])
            np.testing.assert_array_equal(current.ints[3:5, : world.n], fresh.ints[3:5, : world.n])
            np.testing.assert_array_equal(current.score, fresh.score)
        return log_ratio, (end, places_of(tables))

    return paths(run)


@pytest.mark.parametrize("beta", [1.0, 0.4])
@pytest.mark.parametrize("name", ["mixed", "none at all", "peaked"])
@pytest.mark.parametrize("move", [0, 1, 2, 3])
def test_moves_over_partitions_are_reversible_given_outside_candidates_at_any_temperature(name, move, beta):
    world = WORLDS[name]
    targets = targets_of(world)
    matrix = transition_matrix(list(targets), lambda state: partition_walk(world, state, move, beta))
    assert_reversible(matrix, beta * np.array(list(targets.values())))


@pytest.mark.parametrize("beta", [1.0, 0.4])
@pytest.mark.parametrize("name", ["mixed", "none at all", "peaked", "choice"])
def test_redrawing_outside_candidates_keeps_the_target_of_partitions(name, beta):
    world = WORLDS[name]
    targets = targets_of(world)
    matrix = transition_matrix(list(targets), lambda state: partition_walk(world, state, -1, beta))
    # One node after the other: not reversible as a whole, but the target stays.
    share = np.exp(beta * np.array(list(targets.values())))
    np.testing.assert_allclose(share @ matrix / share.sum(), share / share.sum(), atol=1e-12)
    assert np.count_nonzero(matrix) > len(matrix)


@pytest.mark.parametrize("name", ["mixed", "choice"])
@pytest.mark.parametrize("move", [-1, *range(len(MOVES))])
def test_orders_with_outside_candidates_keep_their_target(name, move):
    world = WORLDS[name]
    states, log_target = [], []
    for order in permutations(range(world.n)):
        for places in world.outside_choices():
            states.append((order, places))
            log_target.append(new_order(world.with_outside(places), np.array(order)).score.sum())

    def walk(state: tuple) -> Iterator:
        def run(chance: Chance) -> tuple[float, tuple]:
            tables = world.with_outside(state[1])
            current = new_order(tables, np.array(state[0]))
            if move < 0:
                redraw_outside_candidates_of_order(chance, tables, current, 1.0)
                return 0.0, (tuple(current.ints[0].tolist()), places_of(tables))
            new = OrderState(current.ints.copy(), current.score.copy())
            log_ratio = propose_order(chance, tables, current, new, move)
            return log_ratio, (tuple(new.ints[0].tolist()), places_of(tables))

        return paths(run)

    matrix = transition_matrix(states, walk)
    share = np.exp(np.array(log_target))
    np.testing.assert_allclose(share @ matrix / share.sum(), share / share.sum(), atol=1e-12)


@pytest.mark.parametrize("move", [TOGGLE, RESAMPLE, REVERSE, REORDER])
@pytest.mark.parametrize("name", ["mixed", "none at all", "peaked"])
def test_moves_over_dags_keep_the_target_of_dags_with_outside(name, move):
    world = WORLDS[name]
    pairs = [(dag, places) for dag in world.dags for places in world.outside_choices()]
    targets = {pair: world.log_weight(*pair) for pair in pairs if world.log_weight(*pair) > -np.inf}

    def walk(state: tuple) -> Iterator:
        dag, places = state

        def run(chance: Chance) -> tuple[float, tuple]:
            tables = world.with_outside(places)
            parents = np.array([sum(1 << int(bit_of(tables, i, j)) for j in own) for i, own in enumerate(dag)])
            new, changed = parents.copy(), np.empty(4, np.int64)
            log_ratio = propose_dag(chance, tables, parents, new, move, changed)
            bits = range(max(n_candidates(tables, i) for i in range(world.n)))
            end = (
                tuple(
                    frozenset(int(candidate(tables, i, b)) for b in bits if mask >> b & 1) for i, mask in enumerate(new)
                ),
                places_of(tables),
            )
            restore_outside_candidates(tables, changed)
            assert move == RESAMPLE or places_of(tables) == places
            return log_ratio, end

        return paths(run)

    matrix = transition_matrix(list(targets), walk)
    # What a move does to the outside candidates of a refused proposal must not count: those end where they began.
    assert_reversible(matrix, np.array(list(targets.values())))
    if move in (RESAMPLE, REVERSE) and name != "peaked":
        moved = [(a, b) for x, a in enumerate(targets) for y, b in enumerate(targets) if matrix[x, y] > 0]
        assert any(a[1] != b[1] for a, b in moved)


def test_every_outside_candidate_is_forgotten_again():
    """A chain must be able to leave any outside candidate: all occur, whatever the first were."""
    world = WORLDS["four"]
    tables = world.tables()
    rng = np.random.default_rng(7)
    state = new_partition(tables, [[0, 1], [2], [3]])
    parents = np.empty(4, np.int64)
    seen = set()
    for _ in range(300):
        redraw_outside_candidates_of_partition(Chance(rng), tables, state, 1.0)
        draw_from_partition(Chance(rng), tables, state, parents)
        seen.add(places_of(tables))
    assert seen == set(world.outside_choices())


def test_drawing_from_an_order_uses_the_outside_candidate():
    world = WORLDS["none at all"]
    tables = world.with_outside((0, 0, 0))
    state = new_order(tables, np.array([0, 1, 2]))
    rng = np.random.default_rng(8)
    parents = np.empty(3, np.int64)
    seen = set()
    for _ in range(200):
        draw_from_order(Chance(rng), tables, state, parents)
        seen.add(tuple(parents.tolist()))
    assert {(0, 1, 1), (0, 1, 0), (0, 0, 1)} <= seen


@pytest.mark.parametrize(
    ("outside", "shape", "message"),
    [
        ([[1], [0]], (1, 1), "candidates must be distinct .* node 0"),
        ([[2], []], (1, 1), "candidates must be distinct .* node 0"),
        ([[], []], (1, 2), r"node 0 needs outside scores of shape \(0, 2\)"),
        ([[]], (0, 2), "every node needs a list of outside nodes; received 1 for 2 nodes"),
    ],
)
def test_bad_outside_tables_are_refused(outside, shape, message):
    scores = [np.zeros(2), np.zeros(2)]
    with pytest.raises(ValueError, match=message):
        build_tables([[1], [0]], scores, outside, [np.zeros(shape), np.zeros((0, 2))])
