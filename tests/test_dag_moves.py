"""The walks over DAGs of partition MCMC: exact transition matrices over all DAGs of 3 and 4 nodes."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

from gpn_bayes.mcmc import dag_moves, partition_moves
from gpn_bayes.mcmc.chains import PARTITION_MIX
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.dag_moves import longest_paths, propose_dag
from gpn_bayes.mcmc.partition import BLOCK, PartitionState, new_partition
from gpn_bayes.mcmc.partition_moves import propose_partition
from tests.scripts import (
    KINDS,
    Dag,
    Partition,
    Path,
    Problem,
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

MOVES = [dag_moves.TOGGLE, dag_moves.RESAMPLE, dag_moves.REVERSE, dag_moves.REORDER]
SMALL = [pytest.param(3, kind, id=f"3 {kind}") for kind in KINDS] + [
    pytest.param(4, kind, id=f"4 {kind}") for kind in ("restricted", "one way", "required chain")
]
LARGE = [pytest.param(4, kind, id=f"4 {kind}") for kind in KINDS if ("4 " + kind) not in [case.id for case in SMALL]]


def walk(problem: Problem, dag: Dag, move: int) -> Iterator[Path]:
    parents = np.array(dag)

    def run(chance: Chance) -> tuple[float, Dag]:
        new = parents.copy()
        log_ratio = propose_dag(chance, problem.tables, parents, new, move, np.empty(4, np.int64))
        assert tuple(parents.tolist()) == dag
        return log_ratio, tuple(new.tolist())

    return paths(run)


def matrix_of(problem: Problem, move: int) -> np.ndarray:
    return transition_matrix(list(problem.dags), lambda dag: walk(problem, dag, move))


def onto_partitions(problem: Problem, over_dags: np.ndarray) -> np.ndarray:
    """Return P(L, L'): draw a DAG of L by its score, move it, and take the layering of where it ends."""
    place = {dag: i for i, dag in enumerate(problem.dags)}
    draw = np.zeros((len(problem.partitions), len(place)))
    layer = np.zeros((len(place), len(problem.partitions)))
    for row, dags in enumerate(problem.partitions.values()):
        members = [place[dag] for dag in dags]
        log_scores = np.array(list(dags.values()))
        draw[row, members] = np.exp(log_scores - np.logaddexp.reduce(log_scores))
        layer[members, row] = 1.0
    return draw @ over_dags @ layer


def check_move(problem: Problem, move: int) -> None:
    matrix = matrix_of(problem, move)
    assert_reversible(matrix, np.array(list(problem.dags.values())))
    assert_reversible(onto_partitions(problem, matrix), log_totals(problem.partitions))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("n", "kind"), SMALL)
def test_every_move_is_reversible(n, kind, move):
    check_move(make_problem(n, kind), move)


@pytest.mark.parametrize("move", MOVES[:3])
def test_the_cheap_moves_are_reversible_over_all_dags_of_four_nodes(move):
    problem = make_problem(4, "asymmetric")
    assert len(problem.dags) == 543
    check_move(problem, move)


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("n", "kind"), LARGE)
def test_every_move_is_reversible_over_all_dags_of_four_nodes(n, kind, move):
    check_move(make_problem(n, kind), move)


@pytest.mark.parametrize(("n", "kind"), SMALL)
def test_the_walk_alone_reaches_every_dag(n, kind):
    problem = make_problem(n, kind)
    target = np.array(list(problem.dags.values()))
    matrix = mixture([matrix_of(problem, move) for move in MOVES], PARTITION_MIX[4:])
    assert is_irreducible(matrix) and np.diag(matrix).max() > 0.0
    if kind not in ("peaked", "unlikely parents"):
        np.testing.assert_allclose(stationary(matrix), np.exp(target - np.logaddexp.reduce(target)), atol=1e-9)


def neighbours(problem: Problem, dag: Dag, move: int) -> set[Dag]:
    return {
        end for probability, log_ratio, end in walk(problem, dag, move) if probability * np.exp(log_ratio) > 0.0
    } - {dag}


def test_each_move_reaches_what_it_should():
    problem = make_problem(3, "asymmetric")
    for dag in problem.dags:
        edges = set(problem.graph(dag).edges)
        toggled, redrawn, reversed_ = set(), set(), set()
        for other in problem.dags:
            changed = {i for i in range(3) if other[i] != dag[i]}
            flipped = [(i, j) for i, j in edges if (j, i) in problem.graph(other).edges and changed <= {i, j}]
            toggled |= {other} if len(edges ^ set(problem.graph(other).edges)) == 1 else set()
            redrawn |= {other} if len(changed) == 1 else set()
            reversed_ |= {other} if flipped else set()
        assert neighbours(problem, dag, dag_moves.TOGGLE) == toggled
        assert neighbours(problem, dag, dag_moves.RESAMPLE) == redrawn
        assert neighbours(problem, dag, dag_moves.REVERSE) == reversed_


@pytest.mark.parametrize("move", MOVES)
def test_a_wrong_target_is_rejected(move):
    problem, other = make_problem(3, "asymmetric"), make_problem(3, "asymmetric", seed=2)
    matrix = matrix_of(problem, move)
    # Candidates are shuffled too: look the same graphs up in the other problem.
    edges = {frozenset(other.graph(dag).edges): score for dag, score in other.dags.items()}
    wrong = np.array([edges[frozenset(problem.graph(dag).edges)] for dag in problem.dags])
    assert imbalance(matrix, np.array(list(problem.dags.values()))) < 1e-9
    assert imbalance(matrix, wrong) > 0.1
    with pytest.raises(AssertionError):
        assert_reversible(matrix, wrong)


def test_reordering_without_its_correction_is_caught():
    problem = make_problem(3, "asymmetric")

    def biased(dag: Dag) -> Iterator[Path]:
        return ((probability, 0.0, end) for probability, _, end in walk(problem, dag, dag_moves.REORDER))

    matrix = transition_matrix(list(problem.dags), biased)
    assert imbalance(matrix, np.array(list(problem.dags.values()))) > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_longest_paths_are_the_layers(kind):
    problem = make_problem(4, kind)
    for dag in list(problem.dags)[::7]:
        depth = longest_paths(problem.tables, np.array(dag))
        for layer, nodes in enumerate(nx.topological_generations(problem.graph(dag))):
            assert (depth[nodes] == layer).all()


def partition_matrix(problem: Problem, move: int) -> np.ndarray:
    def walk_partition(partition: Partition) -> Iterator[Path]:
        current = new_partition(problem.tables, [sorted(block) for block in partition])

        def run(chance: Chance) -> tuple[float, Partition]:
            new = PartitionState(current.ints.copy(), current.score.copy())
            log_ratio = propose_partition(chance, problem.tables, current, new, move, 1.0)
            depth = new.ints[BLOCK, : problem.n]
            return log_ratio, tuple(frozenset(np.flatnonzero(depth == b).tolist()) for b in range(depth.max() + 1))

        return paths(run)

    return transition_matrix(list(problem.partitions), walk_partition)


PARTITION_MOVES = [
    partition_moves.SPLIT_OR_JOIN,
    partition_moves.ADJACENT_SWAP,
    partition_moves.ANY_SWAP,
    partition_moves.RELOCATE,
]


def torn_problem() -> Problem:
    """Return X -> Y -> Z and B -> C required, X -> B optional: nodes 0, 1, 2 and 3, 4."""
    required = np.array([-np.inf, -1.5])
    return Problem(
        [[], [0], [1], [0], [3]],
        [np.array([-1.0]), required, required + 0.3, np.array([-0.7, -0.2]), required - 0.4],
    )


def test_required_edges_tear_the_partitions_apart_and_the_walks_join_them():
    problem = torn_problem()
    x, y, z, b, c = range(5)
    apart = (frozenset({x, b}), frozenset({y, c}), frozenset({z}))
    linked = (frozenset({x}), frozenset({y, b}), frozenset({z, c}))
    assert set(problem.partitions) == {apart, linked}
    target = log_totals(problem.partitions)
    of_partitions = [partition_matrix(problem, move) for move in PARTITION_MOVES]
    for matrix in of_partitions:
        np.testing.assert_allclose(matrix, np.eye(2), atol=1e-12)
        assert matrix[0, 1] == 0.0 and matrix[1, 0] == 0.0
    of_dags = [onto_partitions(problem, matrix_of(problem, move)) for move in MOVES]
    for matrix in of_dags:
        assert_reversible(matrix, target)
    assert not is_irreducible(mixture(of_partitions, PARTITION_MIX[:4]))
    whole = mixture(of_partitions + of_dags, PARTITION_MIX)
    assert is_irreducible(whole) and np.diag(whole).min() > 0.0
    np.testing.assert_allclose(stationary(whole), np.exp(target - np.logaddexp.reduce(target)), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_as_the_chain_takes_it_has_the_one_right_stationary_distribution(kind):
    problem = make_problem(3, kind)
    target = log_totals(problem.partitions)
    of_partitions = mixture([partition_matrix(problem, move) for move in PARTITION_MOVES], PARTITION_MIX[:4])
    of_dags = mixture([matrix_of(problem, move) for move in MOVES], PARTITION_MIX[4:])
    # Some steps over partitions, then a walk of some steps over DAGs from a fresh draw.
    walked = onto_partitions(problem, np.linalg.matrix_power(of_dags, 3))
    sweep = np.linalg.matrix_power(of_partitions, 2) @ walked
    assert is_irreducible(sweep) and np.diag(sweep).max() > 0.0
    expected = np.exp(target - np.logaddexp.reduce(target))
    np.testing.assert_allclose(expected @ sweep, expected, atol=1e-12)
    if kind not in ("peaked", "unlikely parents"):
        np.testing.assert_allclose(stationary(sweep), expected, atol=1e-9)
