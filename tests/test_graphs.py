import math
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from gpn_bayes import graphs

NAMES = ["raf", "mek", "erk", "akt"]
CHAIN = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def random_dags(rng, count, n, p):
    upper = np.triu(rng.random((count, n, n)) < p, 1)
    orders = [rng.permutation(n) for _ in range(count)]
    return np.array([graph[np.ix_(order, order)] for graph, order in zip(upper, orders, strict=True)], np.int8)


@pytest.mark.parametrize(
    "graph",
    [
        nx.DiGraph([("mek", "erk"), ("raf", "mek")]),
        [("raf", "mek"), ("mek", "erk")],
        {(0, 1), ("mek", 2)},
        CHAIN,
        CHAIN.astype(bool),
        CHAIN.astype(float),
        pd.DataFrame(CHAIN, index=NAMES, columns=NAMES).loc[NAMES[::-1], ["mek", "akt", "raf", "erk"]],
    ],
)
def test_every_form_of_a_graph_gives_the_same_adjacency(graph):
    found = graphs.as_adjacency(graph, NAMES)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, CHAIN)


def test_adjacency_is_a_copy():
    given = np.array([[0, 1], [0, 0]], dtype=np.int8)
    graphs.as_adjacency(given, ["a", "b"])[0, 1] = 0
    assert given[0, 1] == 1


def test_whole_number_names_are_never_positions():
    np.testing.assert_array_equal(graphs.as_adjacency([(1, 2)], [2, 1]), [[0, 0], [1, 0]])
    with pytest.raises(ValueError, match="0 is not"):
        graphs.as_adjacency([(0, 1)], [2, 1])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([("raf", "jnk")]), "'jnk' is not"),
        (nx.Graph([("raf", "mek")]), "must be directed"),
        ([("raf", "jnk")], "'jnk' is not"),
        ([(0, 4)], "4 is not"),
        ([("raf", "mek", "erk")], "pair"),
        (["raf"], "pair"),
        ("raf", "DiGraph"),
        (3, "DiGraph"),
        (np.zeros((3, 3)), r"shape \(4, 4\); received \(3, 3\)"),
        (2 * CHAIN, "0 and 1 only; received 2"),
        (CHAIN * np.nan, "0 and 1 only; received nan"),
        (pd.DataFrame(CHAIN, index=NAMES, columns=[*NAMES[:3], "jnk"]), "columns.*'akt' is in only one"),
        (pd.DataFrame(CHAIN, columns=NAMES), "rows.*must be the variables"),
        (np.eye(4), "own parent; 'raf'"),
        ([("raf", "mek"), ("mek", "erk"), ("erk", "raf")], "acyclic; it contains raf -> mek -> erk -> raf"),
    ],
)
def test_bad_graphs_are_named(graph, message):
    with pytest.raises(ValueError, match=message):
        graphs.as_adjacency(graph, NAMES)


def test_repeated_names_are_refused():
    with pytest.raises(ValueError, match="'raf' appears more than once"):
        graphs.as_adjacency([], ["raf", "mek", "raf"])


def test_cycles_pass_where_asked():
    both_ways = graphs.as_adjacency([("raf", "mek"), ("mek", "raf")], NAMES, acyclic=False)
    assert both_ways[0, 1] == both_ways[1, 0] == 1


def test_networkx_round_trip_keeps_all_nodes_in_order():
    graph = graphs.to_networkx(CHAIN, NAMES)
    assert list(graph.nodes) == NAMES
    assert set(graph.edges) == {("raf", "mek"), ("mek", "erk")}
    np.testing.assert_array_equal(graphs.as_adjacency(graph, NAMES), CHAIN)


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 130, 256, 1024])
def test_pack_sets_the_bits_it_says_and_unpack_reads_them(n):
    adjacency = np.random.default_rng(n).integers(0, 2, size=(2, 3, n, n)).astype(np.int8)
    packed = graphs.pack(adjacency)
    assert packed.dtype == np.uint64 and packed.shape == (2, 3, n, math.ceil(n / 64))
    for j in {0, n // 2, n - 1}:
        parents = [i for i in range(n) if int(packed[1, 2, j, i >> 6]) >> (i & 63) & 1]
        assert parents == np.flatnonzero(adjacency[1, 2, :, j]).tolist()
    unpacked = graphs.unpack(packed, n)
    assert unpacked.dtype == np.int8
    np.testing.assert_array_equal(unpacked, adjacency)


def test_pack_and_unpack_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="1 to 1024 nodes; received 1025"):
        graphs.pack(np.zeros((1025, 1025)))
    with pytest.raises(ValueError, match=r"received int64 of shape \(3, 1\)"):
        graphs.unpack(np.zeros((3, 1), np.int64), 3)
    with pytest.raises(ValueError, match="higher bit"):
        graphs.unpack(np.full((3, 1), 8, np.uint64), 3)
    with pytest.raises(ValueError, match=r"shape \(..., n, n\); received \(2, 3\)"):
        graphs.pack(np.zeros((2, 3)))


def test_closure_and_acyclicity_agree_with_networkx():
    stack = np.random.default_rng(1).random((40, 7, 7)) < 0.13
    stack[:, range(7), range(7)] = False
    reach, acyclic = graphs.ancestors(stack), graphs.is_acyclic(stack)
    assert 0 < acyclic.sum() < 40
    for graph, closure, answer in zip(stack, reach, acyclic, strict=True):
        known = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        assert answer == nx.is_directed_acyclic_graph(known)
        expected = nx.to_numpy_array(nx.transitive_closure(known, reflexive=False), nodelist=range(7))
        np.testing.assert_array_equal(closure, expected != 0)
    np.testing.assert_array_equal(graphs.ancestors(stack.reshape(8, 5, 7, 7)).reshape(40, 7, 7), reach)


def test_topological_order_puts_parents_first():
    for dag in random_dags(np.random.default_rng(2), 20, 9, 0.4):
        place = np.argsort(graphs.topological_order(dag))
        parents, children = np.nonzero(dag)
        assert (place[parents] < place[children]).all()
    with pytest.raises(ValueError, match="acyclic"):
        graphs.topological_order(np.array([[0, 1], [1, 0]]))


def skeleton_and_v_structures(dag):
    """Return the two things that equivalent DAGs share (Verma and Pearl)."""
    adjacent = (dag | dag.T) != 0
    colliders = [
        (a, c, b) for c in range(len(dag)) for a, b in combinations(np.flatnonzero(dag[:, c]), 2) if not adjacent[a, b]
    ]
    return adjacent.tobytes(), tuple(colliders)


@pytest.mark.parametrize(("n", "classes"), [(3, 11), (4, 185), (5, 8782)])
def test_cpdag_is_the_union_of_the_equivalence_class(n, classes):
    dags = graphs.enumerate_dags(n)
    members = {}
    for place, dag in enumerate(dags):
        members.setdefault(skeleton_and_v_structures(dag), []).append(place)
    assert len(members) == classes
    found = graphs.cpdag(dags)
    for places in members.values():
        expected = dags[places].max(axis=0)
        assert (found[places] == expected).all()


def test_cpdag_refuses_cycles():
    with pytest.raises(ValueError, match="acyclic"):
        graphs.cpdag(np.array([[0, 1], [1, 0]]))


def test_markov_blankets_agree_with_their_definition():
    stack = random_dags(np.random.default_rng(3), 10, 8, 0.3)
    for dag, blankets in zip(stack, graphs.markov_blankets(stack), strict=True):
        graph = graphs.to_networkx(dag)
        for node in graph:
            children = set(graph.successors(node))
            expected = set(graph.predecessors(node)) | children
            expected |= {parent for child in children for parent in graph.predecessors(child)} - {node}
            assert set(np.flatnonzero(blankets[node])) == expected


def test_markov_blankets_survive_256_common_children():
    dag = np.zeros((258, 258), np.int8)
    dag[:2, 2:] = 1
    assert graphs.markov_blankets(dag)[0, 1]


def test_d_separation_on_names_numbers_and_bad_sets():
    collider = nx.DiGraph([("raf", "erk"), ("mek", "erk"), ("erk", "akt")])
    assert graphs.d_separated(collider, "raf", "mek")
    assert not graphs.d_separated(collider, "raf", ["mek"], given="akt")
    assert graphs.d_separated(CHAIN, 0, 2, given=1)
    assert graphs.d_separated(CHAIN, "raf", "erk", {"mek"}, names=pd.Index(NAMES))
    assert not graphs.d_separated(CHAIN, ["raf", "akt"], "erk", names=NAMES)
    with pytest.raises(ValueError, match="'jnk' is not"):
        graphs.d_separated(collider, "raf", "jnk")
    with pytest.raises(ValueError, match="they share 'raf'"):
        graphs.d_separated(collider, "raf", "mek", given=["raf"])
    with pytest.raises(ValueError, match="acyclic"):
        graphs.d_separated(nx.DiGraph([("a", "b"), ("b", "a")]), "a", "b")


def test_linear_extensions_agree_with_permutations():
    dags = graphs.enumerate_dags(4)
    places = np.argsort(list(permutations(range(4))), axis=1)
    expected = [(places[:, dag.nonzero()[0]] < places[:, dag.nonzero()[1]]).all(axis=1).sum() for dag in dags]
    assert [graphs.count_linear_extensions(dag) for dag in dags] == expected
    logs = graphs.log_linear_extensions(graphs.pack(dags.reshape(3, 181, 4, 4)))
    np.testing.assert_allclose(logs.ravel(), np.log(expected), rtol=1e-14)


def test_linear_extensions_agree_with_networkx_on_larger_dags():
    stack = random_dags(np.random.default_rng(4), 15, 8, 0.35)
    expected = [sum(1 for _ in nx.all_topological_sorts(graphs.to_networkx(dag))) for dag in stack]
    assert [graphs.count_linear_extensions(dag) for dag in stack] == expected


def test_linear_extensions_of_twenty_nodes_with_known_answers():
    assert graphs.count_linear_extensions(np.zeros((20, 20))) == math.factorial(20)
    assert graphs.count_linear_extensions(np.eye(20, k=1)) == 1
    two_layers = np.zeros((20, 20))
    two_layers[:10, 10:] = 1
    assert graphs.count_linear_extensions(two_layers) == math.factorial(10) ** 2
    rng = np.random.default_rng(5)
    for _ in range(5):
        tree = np.zeros((20, 20), np.int8)
        for node in range(1, 20):
            tree[rng.integers(node), node] = 1
        # The hook formula of a rooted tree: n! divided by the sizes of all subtrees.
        sizes = graphs.ancestors(tree).sum(axis=1) + 1
        expected = math.factorial(20) // math.prod(sizes.tolist())
        shuffle = rng.permutation(20)
        assert graphs.count_linear_extensions(tree[np.ix_(shuffle, shuffle)]) == expected
        assert graphs.count_linear_extensions(tree.T) == expected


def test_a_batch_forgets_each_dag_before_the_next():
    stack = random_dags(np.random.default_rng(6), 30, 12, 0.2)
    singly = [math.log(graphs.count_linear_extensions(dag)) for dag in stack]
    np.testing.assert_allclose(graphs.log_linear_extensions(graphs.pack(stack)), singly, rtol=1e-14)


def test_linear_extensions_refuse_large_and_cyclic_graphs():
    with pytest.raises(ValueError, match="at most 20 nodes; received 21"):
        graphs.count_linear_extensions(np.zeros((21, 21)))
    with pytest.raises(ValueError, match="at most 20 nodes; received 65"):
        graphs.log_linear_extensions(graphs.pack(np.zeros((65, 65))))
    with pytest.raises(ValueError, match="acyclic"):
        graphs.log_linear_extensions(graphs.pack(np.array([[0, 1], [1, 0]])))
    with pytest.raises(ValueError, match="shape"):
        graphs.log_linear_extensions(np.zeros(3, np.uint64))


def test_enumeration_is_complete_and_without_repeats():
    for n, count in [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)]:
        dags = graphs.enumerate_dags(n)
        assert len(dags) == count == len(np.unique(dags.reshape(count, -1), axis=0))
        assert graphs.is_acyclic(dags).all()
    with pytest.raises(ValueError, match="1 to 5 nodes; received 6"):
        graphs.enumerate_dags(6)


def test_functions_take_networkx_graphs_too():
    graph = nx.DiGraph([("raf", "mek"), ("mek", "erk")])
    assert graphs.is_acyclic(graph)
    assert graphs.ancestors(graph)[0, 2]
    assert graphs.cpdag(graph).sum() == 4
    assert graphs.count_linear_extensions(graph) == 1


@pytest.mark.parametrize("n", [3, 64, 70])
def test_parents_of_a_node_and_shares_of_edges_are_those_of_the_matrices(n):
    rng = np.random.default_rng(n)
    adjacency = rng.integers(0, 2, size=(2, 5, n, n)).astype(np.int8)
    weights = rng.random((2, 5))
    packed = graphs.pack(adjacency)
    for node in (0, n - 1):
        np.testing.assert_array_equal(graphs.parents_of(packed, node), adjacency[..., node])
    expected = np.einsum("cdij,cd->cij", adjacency, weights) / weights.sum(axis=1)[:, None, None]
    np.testing.assert_allclose(graphs.edge_shares(packed, weights), expected, atol=1e-12)
