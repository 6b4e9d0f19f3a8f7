"""PC and dual PC against plain statements of both, oracles, and tables that don't behave."""

import time
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy.stats import norm

from gpn_bayes import graphs, simulate
from gpn_bayes.candidates.pc_skeleton import dual_pc_skeleton, pc_skeleton
from gpn_bayes.kernels.independence.partial_correlations import weakest_partials

ALGORITHMS = {"pc": pc_skeleton, "dual-pc": dual_pc_skeleton}


def partial(correlation, i, j, given):
    chosen = [i, j, *given]
    precision = np.linalg.inv(correlation[np.ix_(chosen, chosen)])
    return -precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])


def z_of(correlation, n_rows, i, j, given):
    return np.sqrt(n_rows - len(given) - 3) * abs(np.arctanh(partial(correlation, i, j, given)))


def sets_of_level(algorithm, others, size, everyone):
    """Yield the conditioning sets of a level, written down as the papers have it."""
    if size <= len(others):
        yield from combinations(others, size)
    if algorithm == "dual-pc" and size == 0:
        yield everyone
    elif algorithm == "dual-pc" and size <= len(others):
        yield tuple(others)
        for left_out in combinations(others, size):
            yield tuple(x for x in others if x not in left_out)


def plain_skeleton(algorithm, correlation, n_rows, alpha, largest=None):
    """State both algorithms with loops; return the skeleton and the weakest z of each pair."""
    n = len(correlation)
    near = {i: set(range(n)) - {i} for i in range(n)}
    weakest = np.full((n, n), np.inf)
    size = 0
    while any(len(near[i]) > size for i in near) and (largest is None or size <= largest):
        for i in range(n):
            for j in near[i]:
                everyone = tuple(x for x in range(n) if x not in (i, j))
                for given in sets_of_level(algorithm, sorted(near[i] - {j}), size, everyone):
                    z = z_of(correlation, n_rows, i, j, given)
                    weakest[i, j] = weakest[j, i] = min(z, weakest[i, j])
        near = {i: {j for j in near[i] if 2 * norm.sf(weakest[i, j]) < alpha} for i in near}
        size += 1
    adjacent = np.zeros((n, n), dtype=bool)
    for i, own in near.items():
        adjacent[i, list(own)] = True
    return adjacent, weakest


def data_of(n, n_rows, seed, edges_per_node=1.5):
    dag = simulate.random_dag(n, edges_per_node=edges_per_node, random_seed=seed)
    return np.corrcoef(simulate.linear(dag, n_rows, weight_range=(0.3, 1.0), random_seed=seed).to_numpy(), rowvar=False)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("n", "n_rows", "alpha", "largest"), [(6, 60, 0.05, None), (8, 300, 0.2, None), (9, 100, 0.5, 1)]
)
def test_skeletons_are_those_of_the_plain_statement(algorithm, n, n_rows, alpha, largest):
    for seed in range(4):
        correlation = data_of(n, n_rows, seed, edges_per_node=2)
        adjacent, weakest = plain_skeleton(algorithm, correlation, n_rows, alpha, largest)
        found = ALGORITHMS[algorithm](correlation, n_rows, alpha, largest)
        np.testing.assert_array_equal(found.adjacent, adjacent)
        off = ~np.eye(n, dtype=bool)
        np.testing.assert_allclose(found.strengths[off], weakest[off], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.p_values[off], 2 * norm.sf(weakest[off]), rtol=1e-6, atol=1e-12)
        # Every separating set separates, as nearly as the weakest test says.
        pairs = {(i, j) for i, j in combinations(range(n), 2) if not adjacent[i, j]}
        assert found.separating_sets.keys() == pairs
        for (i, j), given in found.separating_sets.items():
            assert z_of(correlation, n_rows, i, j, given) == pytest.approx(weakest[i, j], rel=1e-6, abs=1e-9)
            assert weakest[i, j] <= norm.isf(alpha / 2)


def test_the_two_algorithms_differ():
    """Negative control: the comparison above would notice if one stood in for the other."""
    correlation = data_of(8, 60, 2, edges_per_node=2)
    assert (plain_skeleton("pc", correlation, 60, 0.2)[0] != plain_skeleton("dual-pc", correlation, 60, 0.2)[0]).any()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_kernel_goes_through_all_sets_and_their_complements(size):
    correlation = data_of(6, 100, 5, edges_per_node=2)
    precision = np.linalg.inv(correlation)
    scale = np.sqrt(np.diag(precision))
    for matrix, complement in ((correlation, False), (precision / np.outer(scale, scale), True)):
        weakest, sets = weakest_partials(matrix, size)
        for j in range(1, 6):
            others = [x for x in range(1, 6) if x != j]
            squares = {
                chosen: partial(correlation, 0, j, [x for x in others if x not in chosen] if complement else chosen)
                ** 2
                for chosen in combinations(others, size)
            }
            assert weakest[j] == pytest.approx(min(squares.values()), rel=1e-8, abs=1e-15)
            assert squares[tuple(sets[j].tolist())] == pytest.approx(weakest[j], rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_order_of_the_variables_does_not_matter(algorithm):
    correlation = data_of(20, 150, 3, edges_per_node=2)
    found = ALGORITHMS[algorithm](correlation, 150, 0.1)
    for seed in range(5):
        shuffle = np.random.default_rng(seed).permutation(20)
        again = ALGORITHMS[algorithm](correlation[np.ix_(shuffle, shuffle)], 150, 0.1)
        np.testing.assert_array_equal(again.adjacent, found.adjacent[np.ix_(shuffle, shuffle)])
        moved = {
            tuple(sorted((int(shuffle[i]), int(shuffle[j])))): sorted(shuffle[list(given)].tolist())
            for (i, j), given in again.separating_sets.items()
        }
        assert moved == {pair: sorted(given) for pair, given in found.separating_sets.items()}


def population_correlation(dag, names, seed):
    matrix = graphs.as_adjacency(dag, names)
    rng = np.random.default_rng(seed)
    weights = matrix * rng.uniform(0.4, 0.9, matrix.shape) * rng.choice([-1, 1], matrix.shape)
    paths = np.linalg.inv(np.eye(len(names)) - weights)
    covariance = paths.T @ paths
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_all_the_rows_in_the_world_the_skeleton_is_the_true_one(algorithm, seed):
    names = [f"v{i + 1}" for i in range(15)]
    dag = simulate.random_dag(15, edges_per_node=1.5, names=names, random_seed=seed)
    found = ALGORITHMS[algorithm](population_correlation(dag, names, seed), n_rows=10**12, alpha=0.01)
    truth = graphs.as_adjacency(dag, names).astype(bool)
    np.testing.assert_array_equal(found.adjacent, truth | truth.T)
    assert found.complete
    for (i, j), given in found.separating_sets.items():
        assert nx.is_d_separator(dag, {names[i]}, {names[j]}, {names[x] for x in given})


def test_alpha_and_the_largest_set_are_heeded():
    correlation = data_of(15, 200, 4, edges_per_node=2)
    few, many = pc_skeleton(correlation, 200, 0.001), pc_skeleton(correlation, 200, 0.3)
    assert few.adjacent.sum() < many.adjacent.sum()
    marginal = pc_skeleton(correlation, 200, 0.05, max_conditioning=0)
    z = np.sqrt(197) * np.abs(np.arctanh(correlation - np.eye(15)))
    np.testing.assert_array_equal(marginal.adjacent, 2 * norm.sf(z) < 0.05)
    assert marginal.largest_set == 0
    assert not marginal.complete


def test_levels_of_too_many_tests_are_not_begun():
    rng = np.random.default_rng(1)
    dense = np.corrcoef(rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 30)), rowvar=False)
    found = pc_skeleton(dense, 500, 0.2, max_tests=400_000)
    assert found.largest_set == 2
    assert not found.complete
    np.testing.assert_array_equal(found.adjacent, pc_skeleton(dense, 500, 0.2, max_conditioning=2).adjacent)


def test_few_rows_end_the_levels():
    rng = np.random.default_rng(1)
    dense = np.corrcoef(rng.normal(size=(6, 1)) + 0.01 * rng.normal(size=(6, 10)), rowvar=False)
    found = pc_skeleton(dense, 6, 0.9)
    assert found.largest_set <= 2
    assert np.isfinite(found.strengths[~np.eye(10, dtype=bool)]).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", ["twins", "sum", "negative twins", "all the same"])
def test_variables_that_determine_each_other_keep_their_neighbours(algorithm, kind):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 6))
    x[:, 5] = x[:, 0] + 0.5 * rng.normal(size=300)
    x[:, 4] = {"twins": x[:, 0], "sum": x[:, 0] + x[:, 1], "negative twins": -2 * x[:, 0], "all the same": x[:, 3]}[
        kind
    ]
    if kind == "all the same":
        x = np.repeat(x[:, :1], 6, axis=1)
    found = ALGORITHMS[algorithm](np.corrcoef(x, rowvar=False), 300)
    off = ~np.eye(6, dtype=bool)
    assert np.isfinite(found.strengths[off]).all()
    if "twins" in kind:
        assert found.adjacent[[0, 0, 4], [4, 5, 5]].all()
    if kind == "sum":
        assert found.adjacent[[0, 1], [4, 4]].all()
    if kind == "all the same":
        assert found.adjacent[off].all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_identity_has_no_neighbours(algorithm):
    found = ALGORITHMS[algorithm](np.eye(5), 50)
    assert not found.adjacent.any()
    # All sets separate equally well, so the first does.
    assert set(found.separating_sets) == set(combinations(range(5), 2))


RULE = "correlations must be a symmetric matrix with ones on its diagonal; received"


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"correlation": np.ones(3)}, f"{RULE} the shape (3,)"),
        ({"correlation": np.full((3, 3), np.nan)}, f"{RULE} NaN or infinity"),
        ({"correlation": 2 * np.eye(3)}, f"{RULE} another"),
        ({"correlation": np.eye(3) + np.eye(3, k=1)}, f"{RULE} another"),
        ({"n_rows": 3}, "tests of independence need at least 4 rows; received 3"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1; received 1.0"),
        ({"max_conditioning": -1}, "max_conditioning must be 0 or more; received -1"),
    ],
)
def test_bad_input_is_refused_in_one_line(algorithm, settings, message):
    with pytest.raises(ValueError) as error:
        algorithm(**{"correlation": np.eye(3), "n_rows": 100} | settings)
    assert str(error.value) == message


def test_the_dual_algorithm_needs_more_rows_than_variables():
    with pytest.raises(ValueError) as error:
        dual_pc_skeleton(np.eye(10), 11)
    assert str(error.value) == (
        "the dual PC algorithm needs two rows more than variables; received 11 rows of 10 variables: use 'pc'"
    )
    assert not dual_pc_skeleton(np.eye(10), 12).adjacent.any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_hundred_variables_take_little_time(algorithm):
    correlation = data_of(100, 1000, 1, edges_per_node=2)
    begin = time.perf_counter()
    found = ALGORITHMS[algorithm](correlation, 1000, 0.2)
    print(
        f"{algorithm}, 100 variables: {time.perf_counter() - begin:.2f} s, {found.adjacent.sum() / 100:.1f} neighbours"
    )
    assert found.complete
