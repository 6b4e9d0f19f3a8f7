"""Partially directed graphs against lists of all DAGs: Meek's rules, extensions, counts, and draws."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from gpn_bayes import graphs
from gpn_bayes.graphs.equivalence import (
    consistent_extension,
    count_extensions,
    meek_closure,
    nearest_dag,
    random_extension,
)

SQUARE = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=np.int8)


def classes(n):
    """Return all DAGs of n nodes by their CPDAG."""
    found = {}
    dags = graphs.enumerate_dags(n)
    for dag, graph in zip(dags, graphs.cpdag(dags), strict=True):
        found.setdefault(graph.tobytes(), (graph, []))[1].append(dag)
    return [(graph, np.array(members)) for graph, members in found.values()]


def knowledge(n, count):
    """Yield CPDAGs with some of their undirected edges directed, and the DAGs that agree."""
    rng = np.random.default_rng(1)
    for graph, members in classes(n):
        lines = np.argwhere(np.triu(graph & graph.T))
        for _ in range(count if len(lines) else 0):
            known, agreeing = graph.copy(), members
            for i, j in rng.permutation(lines)[: rng.integers(1, 3)]:
                parent, child = (i, j) if rng.random() < 0.5 else (j, i)
                known[child, parent] = 0
                agreeing = agreeing[agreeing[:, parent, child] == 1]
            yield known, agreeing


def test_rules_direct_what_all_dags_agree_on():
    checked = 0
    for known, agreeing in knowledge(4, 4):
        if len(agreeing):
            assert (meek_closure(known).pdag == agreeing.max(axis=0)).all()
            assert meek_closure(known).clashes == []
            checked += 1
    assert checked > 200


def test_what_is_known_directs_what_all_dags_that_agree_share():
    """All DAGs of four nodes, each with random forbidden and required edges that it has none and all of."""
    rng = np.random.default_rng(2)
    members = [(members, dag) for _, members in classes(4) for dag in members]
    more_than_cpdag = more_than_known = 0
    for same, dag in members * 6:
        forbidden = (rng.random((4, 4)) < rng.choice([0.1, 0.3, 0.6])) & (dag == 0)
        required = (rng.random((4, 4)) < 0.2) & (dag == 1)
        agreeing = same[((same & forbidden) == 0).all(axis=(1, 2)) & (same >= required).all(axis=(1, 2))]
        found = graphs.mpdag(dag, forbidden | required)
        # The union of the DAGs: an edge that all have one way stands alone.
        assert (found == agreeing.max(axis=0)).all()
        more_than_cpdag += bool((found != graphs.cpdag(dag)).any())
        pairs = forbidden | forbidden.T | required | required.T
        more_than_known += bool((found != np.where(pairs, dag, graphs.cpdag(dag))).any())
    # Not by chance: in many the rules had something to do.
    assert more_than_cpdag > 500 and more_than_known > 100


def test_what_is_known_of_larger_graphs_is_what_the_rules_in_plain_numpy_say():
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(300):
        order = rng.permutation(9)
        drawn.append(np.triu(rng.random((9, 9)) < rng.uniform(0.2, 0.9), 1)[np.ix_(order, order)].astype(np.int8))
    for known in (rng.random((9, 9)) < share for share in (0.02, 0.1, 0.3)):
        pairs = known | known.T
        expected = [meek_closure(np.where(pairs, dag, graphs.cpdag(dag))).pdag for dag in drawn]
        assert (graphs.mpdag(np.array(drawn), known) == np.array(expected)).all()


def test_rule_four_is_needed_and_there():
    """A diamond whose three arrows need the fourth rule: no CPDAG alone has it."""
    i, j, c, d = range(4)
    graph = np.zeros((4, 4), dtype=np.int8)
    for a, b in ((i, j), (i, c), (i, d)):
        graph[a, b] = graph[b, a] = 1
    graph[c, d] = graph[d, j] = 1
    closed = meek_closure(graph).pdag
    assert closed[i, j] == 1
    assert closed[j, i] == 0


def test_an_edge_that_rules_direct_both_ways_stays_undirected_whatever_the_order():
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[0, 1] = graph[1, 2] = graph[2, 1] = graph[3, 2] = 1
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        closed, clashes = meek_closure(graph[np.ix_(order, order)])
        middle = sorted(order.index(node) for node in (1, 2))
        assert clashes == [tuple(middle)]
        assert closed[*middle] == closed[*middle[::-1]] == 1
        assert consistent_extension(closed) is None


@pytest.mark.parametrize("n", [3, 4])
def test_classes_are_extended_and_counted(n):
    for graph, members in classes(n):
        assert count_extensions(graph) == len(members)
        dag = consistent_extension(graph)
        assert any((dag == member).all() for member in members)


def test_what_is_known_beforehand_is_respected():
    for known, agreeing in knowledge(4, 2):
        if len(agreeing):
            closed = meek_closure(known).pdag
            assert count_extensions(closed) == len(agreeing)
            drawn = random_extension(closed, np.random.default_rng(2))
            assert any((drawn == dag).all() for dag in agreeing)


def test_a_large_clique_is_counted_at_once():
    clique = (1 - np.eye(15)).astype(np.int8)
    assert count_extensions(clique) == 1307674368000
    assert graphs.is_acyclic(random_extension(clique, np.random.default_rng(1)))


@pytest.mark.parametrize("known", [(), ((0, 1),)])
def test_every_member_is_drawn_as_often(known):
    graph = np.array([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]], dtype=np.int8)
    for parent, child in known:
        graph[child, parent] = 0
    graph = meek_closure(graph).pdag
    rng = np.random.default_rng(3)
    counts = Counter(random_extension(graph, rng).tobytes() for _ in range(400))
    assert len(counts) == count_extensions(graph)
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_the_test_of_equal_shares_would_notice():
    """Negative control: taking a random sink after the other, as one might, isn't uniform."""
    graph = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=np.int8)
    rng = np.random.default_rng(3)
    counts = Counter(nearest_dag(graph, rng).tobytes() for _ in range(400))
    assert len(counts) == count_extensions(graph)
    assert chisquare(list(counts.values())).pvalue < 1e-4


def test_without_an_extension_there_is_none():
    assert consistent_extension(SQUARE) is None
    assert random_extension(SQUARE, np.random.default_rng(1)) is None
    assert count_extensions(SQUARE) == 0


def test_the_nearest_dag_joins_the_same_pairs():
    rng = np.random.default_rng(1)
    for _ in range(50):
        graph = (rng.random((6, 6)) < 0.4).astype(np.int8)
        np.fill_diagonal(graph, 0)
        dag = nearest_dag(graph, rng)
        assert graphs.is_acyclic(dag)
        assert ((dag | dag.T) == (graph | graph.T)).all()


def test_the_nearest_dag_keeps_arrows_and_adds_few_colliders():
    square = nearest_dag(SQUARE, np.random.default_rng(1))
    assert sorted(square.sum(axis=0).tolist()) == [0, 1, 1, 2]
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    assert (nearest_dag(chain, np.random.default_rng(1)) == chain).all()
