"""Partition MCMC: exact transition matrices of the moves of a partition, over all of 3 and 4 nodes."""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from gpn_bayes.mcmc import partition_moves
from gpn_bayes.mcmc.chains import PARTITION_MIX, run_partition, start_partition
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.partition import (
    BLOCK,
    COUNT,
    INSIDE,
    NEEDED,
    ORDER,
    START,
    PartitionState,
    draw_from_partition,
    new_partition,
)
from gpn_bayes.mcmc.partition_moves import propose_partition
from tests.scripts import (
    KINDS,
    Partition,
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
MOVES = [
    partition_moves.SPLIT_OR_JOIN,
    partition_moves.ADJACENT_SWAP,
    partition_moves.ANY_SWAP,
    partition_moves.RELOCATE,
]
SWAPS = MOVES[1:3]


def state_of(problem: Problem, partition: Partition) -> PartitionState:
    return new_partition(problem.tables, [sorted(block) for block in partition])


def blocks_of(state: PartitionState) -> Partition:
    """Return the blocks, which both accounts of them in the state must agree on."""
    ints, n = state.ints, len(state.score)
    starts = ints[START, : ints[COUNT, 0] + 1]
    blocks = [frozenset(ints[ORDER, first:end].tolist()) for first, end in zip(starts, starts[1:], strict=False)]
    assert starts[0] == 0 and starts[-1] == n and all(blocks)
    assert [node in blocks[ints[BLOCK, node]] for node in range(n)] == [True] * n
    return tuple(blocks)


def walk(problem: Problem, partition: Partition, move: int) -> Iterator[Path]:
    current = state_of(problem, partition)

    def run(chance: Chance) -> tuple[float, Partition]:
        new = PartitionState(current.ints.copy(), current.score.copy())
        log_ratio = propose_partition(chance, problem.tables, current, new, move, 1.0)
        end = blocks_of(new)
        if log_ratio > -np.inf:
            # What a move brings up to date must be what a fresh start gives.
            fresh = state_of(problem, end)
            for row in (BLOCK, INSIDE, NEEDED):
                np.testing.assert_array_equal(new.ints[row, :-1], fresh.ints[row, :-1])
            np.testing.assert_array_equal(new.score, fresh.score)
        return log_ratio, end

    return paths(run)


def matrix_of(problem: Problem, move: int) -> np.ndarray:
    return transition_matrix(list(problem.partitions), lambda partition: walk(problem, partition, move))


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_scores_are_the_sums_over_the_dags_of_a_partition(n, kind):
    problem = make_problem(n, kind)
    scored = [state_of(problem, partition).score.sum() for partition in problem.partitions]
    np.testing.assert_allclose(scored, log_totals(problem.partitions), rtol=0.0, atol=1e-10)
    if kind in ("asymmetric", "peaked", "unlikely parents"):
        assert len(problem.partitions) == {3: 13, 4: 75}[n]


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_every_move_is_reversible(n, kind):
    problem = make_problem(n, kind)
    target = log_totals(problem.partitions)
    for move in MOVES:
        assert_reversible(matrix_of(problem, move), target)


@pytest.mark.parametrize("n", [3, 4])
def test_each_move_reaches_what_it_should(n):
    problem = make_problem(n, "asymmetric")
    states = list(problem.partitions)
    matrices = {move: matrix_of(problem, move) for move in MOVES}
    for i, here in enumerate(states):
        for j, there in enumerate(states):
            sizes, others = [len(block) for block in here], [len(block) for block in there]
            if i == j:
                continue
            joined = [here[:b] + (here[b] | here[b + 1],) + here[b + 2 :] for b in range(len(here) - 1)]
            split = [there[:b] + (there[b] | there[b + 1],) + there[b + 2 :] for b in range(len(there) - 1)]
            assert (matrices[MOVES[0]][i, j] > 0.0) == (there in joined or here in split)
            moved = [b for b in range(len(here)) if sizes == others and here[b] != there[b]]
            swap = len(moved) == 2 and len(here[moved[0]] - there[moved[0]]) == 1
            assert (matrices[MOVES[2]][i, j] > 0.0) == swap
            assert (matrices[MOVES[1]][i, j] > 0.0) == (swap and moved[1] == moved[0] + 1)
            assert (matrices[MOVES[3]][i, j] > 0.0) == any(
                [block - {v} for block in here if block - {v}] == [block - {v} for block in there if block - {v}]
                for v in range(n)
            )


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_the_mixture_keeps_the_target(n, kind):
    problem = make_problem(n, kind)
    target = log_totals(problem.partitions)
    matrix = mixture([matrix_of(problem, move) for move in MOVES], PARTITION_MIX[:4])
    assert np.diag(matrix).min() > 0.0
    if "required" not in kind:  # required edges may need the moves over DAGs
        assert is_irreducible(matrix)
        if kind not in ("peaked", "unlikely parents"):
            expected = np.exp(target - np.logaddexp.reduce(target))
            np.testing.assert_allclose(stationary(matrix), expected, atol=1e-9)


def test_one_block_counts_as_a_step_that_stays():
    problem = make_problem(4, "asymmetric")
    one_block = (frozenset(range(4)),)
    place = list(problem.partitions).index(one_block)
    for move in SWAPS:
        assert list(walk(problem, one_block, move)) == [(1.0, -np.inf, one_block)]
        assert matrix_of(problem, move)[place, place] == 1.0


def run_chain(problem: Problem, state: PartitionState, mix: np.ndarray, thin: int, draws: int) -> tuple:
    words, log_scores = np.zeros((draws, problem.n, 1), np.uint64), np.empty(draws)
    targets, counters = np.empty(draws), np.zeros((8, 2), np.int64)
    run_partition(
        Chance(RNG), problem.tables, state, mix, thin, words, log_scores, targets, counters
    )  # fmt: skip
    return words, log_scores, targets, counters


def test_the_chain_counts_the_steps_that_stay():
    problem = make_problem(4, "asymmetric")
    state = state_of(problem, (frozenset(range(4)),))
    mix = np.array([0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    words, _, _, counters = run_chain(problem, state, mix, 7, 10)
    assert counters[:, 0].sum() == 70 and counters[1:3, 0].min() > 0
    assert counters[:, 1].sum() == 0 and not words.any()


@pytest.mark.parametrize("candidates", [[[]], [[], [], []]], ids=["one node", "no candidates"])
def test_networks_without_a_possible_edge_stay_empty(candidates):
    problem = Problem(candidates, [np.array([-2.0]) for _ in candidates])
    state = start_partition(Chance(RNG), problem.tables, np.arange(problem.n))
    words, log_scores, targets, counters = run_chain(problem, state, PARTITION_MIX, 25, 20)
    assert not words.any() and blocks_of(state) == (frozenset(range(problem.n)),)
    assert counters[:, 0].sum() == 500 and counters[:, 1].sum() == 0
    np.testing.assert_array_equal(log_scores, -2.0 * problem.n)
    np.testing.assert_array_equal(targets, -2.0 * problem.n)


@pytest.mark.parametrize(("n", "kind"), CASES)
def test_the_dag_drawn_from_a_partition_has_its_conditional_distribution(n, kind):
    problem = make_problem(n, kind)
    for partition, dags in problem.partitions.items():
        state = state_of(problem, partition)

        def run(chance: Chance, state: PartitionState = state) -> tuple[float, tuple[int, ...]]:
            parents = np.empty(n, np.int64)
            draw_from_partition(chance, problem.tables, state, parents)
            return 0.0, tuple(parents.tolist())

        assert_draws_follow_scores(run, dags)


@pytest.mark.parametrize("move", MOVES)
def test_a_wrong_target_is_rejected(move):
    problem, other = make_problem(3, "asymmetric"), make_problem(3, "asymmetric", seed=2)
    matrix = matrix_of(problem, move)
    assert imbalance(matrix, log_totals(problem.partitions)) < 1e-9
    assert imbalance(matrix, log_totals(other.partitions)) > 0.1
    with pytest.raises(AssertionError):
        assert_reversible(matrix, log_totals(other.partitions))


def split_or_join(
    problem: Problem, partition: Partition, target: dict[Partition, float], faulty: bool
) -> Iterator[Path]:
    """Split or join in plain Python; the faulty one splits off single nodes, whatever it claims to do."""
    n = problem.n
    for gap in range(1, n):
        ends = np.cumsum([len(block) for block in partition])
        b = int(np.searchsorted(ends, gap))
        if gap == ends[b]:
            end = partition[:b] + (partition[b] | partition[b + 1],) + partition[b + 2 :]
            log_q = -math.log(math.comb(len(end[b]), len(partition[b])))
            ways = [end]
        else:
            block = partition[b]
            c = gap - int(ends[b]) + len(block)
            log_q = math.log(math.comb(len(block), c))
            firsts = [frozenset(first) for first in combinations(sorted(block), 1 if faulty else c)]
            ways = [partition[:b] + (first, block - first) + partition[b + 1 :] for first in firsts]
        for way in ways:
            log_ratio = log_q + target.get(way, -np.inf) - target[partition]
            yield 1.0 / (n - 1) / len(ways), log_ratio, way


@pytest.mark.parametrize("n", [3, 4])
def test_a_faulty_split_is_caught_and_the_right_one_is_the_compiled_one(n):
    problem = make_problem(n, "asymmetric")
    log_target = log_totals(problem.partitions)
    target = dict(zip(problem.partitions, log_target.tolist(), strict=True))
    states = list(problem.partitions)
    right = transition_matrix(states, lambda state: split_or_join(problem, state, target, faulty=False))
    np.testing.assert_allclose(right, matrix_of(problem, partition_moves.SPLIT_OR_JOIN), atol=1e-12)
    wrong = transition_matrix(states, lambda state: split_or_join(problem, state, target, faulty=True))
    np.testing.assert_allclose(wrong.sum(axis=1), 1.0)
    assert imbalance(wrong, log_target) > 0.1
    with pytest.raises(AssertionError):
        assert_reversible(wrong, log_target)
