"""Every question to a posterior against brute force on its draws, or on all DAGs where it knows them."""

import dataclasses
from collections import Counter
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from tests.draws import DAGS, NAMES, drawn_posterior, exact_posterior, make


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def drawn(request):
    return drawn_posterior(request.param)


def mean_of(listed, feature):
    return sum(share * float(feature(graph)) for graph, share in listed)


# Questions


def test_edge_probabilities(drawn):
    post, listed = drawn
    table = post.edge_probabilities()
    assert table.index.tolist() == table.columns.tolist() == list(NAMES)
    assert (table.index.name, table.columns.name) == ("parent", "child")
    for parent in NAMES:
        for child in NAMES:
            expected = mean_of(listed, lambda g, p=parent, c=child: g.has_edge(p, c))
            assert table.loc[parent, child] == pytest.approx(expected, abs=1e-12)
            assert post.edge_probability(parent, child).value == pytest.approx(expected, abs=1e-12)
    assert post.edge_probability(0, "b") == post.edge_probability("a", 1)


def test_path_probabilities(drawn):
    post, listed = drawn
    table = post.path_probabilities()
    for source, target in permutations(NAMES, 2):
        expected = mean_of(listed, lambda g, s=source, t=target: nx.has_path(g, s, t))
        assert table.loc[source, target] == pytest.approx(expected, abs=1e-12)
        assert post.path_probability(source, target).value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(np.diag(table), 0)


@pytest.mark.parametrize("order", [("a", "b"), ("c", "a"), ("b", "d", "a"), ("d", "c", "b", "a")])
def test_order_probability(drawn, order):
    """An order is possible if some order of all variables has it and every parent before its children."""
    post, listed = drawn

    def allows(graph):
        return any([x for x in whole if x in order] == list(order) for whole in nx.all_topological_sorts(graph))

    assert post.order_probability(*order).value == pytest.approx(mean_of(listed, allows), abs=1e-12)


def test_order_probability_by_way_of_the_order_itself():
    # b -> c: c can't come before a and a before b at once, though neither is an ancestor of a.
    adjacency = graphs.as_adjacency([("b", "c")], NAMES)
    post = make([[0] * 5], dags=adjacency[None])
    assert post.order_probability("c", "a").value == 1
    assert post.order_probability("a", "b").value == 1
    assert post.order_probability("c", "a", "b").value == 0


def test_markov_blanket(drawn):
    post, listed = drawn

    def blanket(graph, x):
        joined = set(graph.predecessors(x)) | set(graph.successors(x))
        return (joined | {p for child in graph.successors(x) for p in graph.predecessors(child)}) - {x}

    for x in NAMES:
        series = post.markov_blanket(x)
        assert series.index.tolist() == [y for y in NAMES if y != x]
        for y, value in series.items():
            expected = mean_of(listed, lambda g, x=x, y=y: y in blanket(g, x))
            assert value == pytest.approx(expected, abs=1e-12)


def equivalence_key(graph):
    """Return skeleton and v-structures, which tell Markov equivalence classes apart."""
    skeleton = frozenset(frozenset(edge) for edge in graph.edges)
    colliders = frozenset(
        (frozenset((p, q)), child)
        for child in graph
        for p in graph.predecessors(child)
        for q in graph.predecessors(child)
        if p < q and not graph.has_edge(p, q) and not graph.has_edge(q, p)
    )
    return skeleton, colliders


def test_cpdag_edges(drawn):
    post, listed = drawn
    members = {}
    for dag in DAGS:
        graph = graphs.to_networkx(dag, NAMES)
        members.setdefault(equivalence_key(graph), []).append(set(graph.edges))
    table = post.cpdag_edges()
    assert len(table) == 12
    for row in table.itertuples():
        forward, back = (row.parent, row.child), (row.child, row.parent)

        def directed(graph, forward=forward):
            return all(forward in edges for edges in members[equivalence_key(graph)])

        def undirected(graph, forward=forward, back=back):
            own = members[equivalence_key(graph)]
            return any(forward in edges for edges in own) and any(back in edges for edges in own)

        assert row.directed == pytest.approx(mean_of(listed, directed), abs=1e-12)
        assert row.undirected == pytest.approx(mean_of(listed, undirected), abs=1e-12)


def test_parent_set_probabilities(drawn):
    post, listed = drawn
    for x in NAMES:
        expected = Counter()
        for graph, share in listed:
            expected[tuple(p for p in NAMES if graph.has_edge(p, x))] += share
        table = post.parent_set_probabilities(x)
        assert table["probability"].is_monotonic_decreasing
        found = dict(zip(table["parents"], table["probability"], strict=True))
        assert found == pytest.approx(dict(expected), abs=1e-12)


def test_probability_of_any_feature(drawn):
    post, listed = drawn
    for feature in (lambda g: nx.is_weakly_connected(g), lambda g: g.number_of_edges()):
        assert post.probability(feature).value == pytest.approx(mean_of(listed, feature), abs=1e-12)


def test_a_feature_that_never_varies_has_its_value_as_its_mean(drawn, exact):
    for post in (drawn[0], exact[-1]):
        for value in (2.5, 0.1, -7, True, np.float64(1e-3)):
            assert post.probability(lambda graph, value=value: value).value == value


def test_feature_is_asked_once_for_each_distinct_dag():
    asked = []
    make([[3, 3, 7, 3], [7, 7, 3, 3]]).probability(lambda g: asked.append(sorted(g.edges)) or 1.0)
    assert len(asked) == 2


def test_probability_and_edges_agree_with_their_errors(drawn):
    post, _ = drawn
    by_edge = post.edge_probability("a", "b")
    assert post.probability(lambda g: g.has_edge("a", "b")) == pytest.approx(by_edge)
    assert by_edge.mcse > 0


def test_expected_distances(drawn):
    post, listed = drawn
    truth = nx.DiGraph([("d", "a"), ("a", "b")])
    true = set(truth.edges)

    def apart(graph):
        pairs = {frozenset(edge) for edge in set(graph.edges) ^ true}
        return len(pairs)

    def false(graph):
        return sum(edge not in true and edge[::-1] not in true for edge in graph.edges)

    assert post.expected_shd(truth).value == pytest.approx(mean_of(listed, apart), abs=1e-12)
    assert post.expected_tp(truth).value == pytest.approx(
        mean_of(listed, lambda g: len(set(g.edges) & true)), abs=1e-12
    )
    assert post.expected_fp(truth).value == pytest.approx(mean_of(listed, false), abs=1e-12)

    def class_distance(graph):
        mine, other = (graphs.cpdag(graphs.as_adjacency(g, NAMES)) for g in (graph, truth))
        return sum((mine[i, j], mine[j, i]) != (other[i, j], other[j, i]) for i in range(4) for j in range(i))

    assert post.expected_shd(truth, cpdag=True).value == pytest.approx(mean_of(listed, class_distance))


def test_a_truth_may_be_edges_or_a_matrix(drawn):
    post, _ = drawn
    truth = nx.DiGraph([("d", "a"), ("a", "b")])
    matrix = graphs.as_adjacency(truth, NAMES)
    for same in (list(truth.edges), tuple(truth.edges), matrix, matrix.tolist()):
        assert post.expected_shd(same).value == post.expected_shd(truth).value
        assert post.expected_tp(same).value == post.expected_tp(truth).value
    with pytest.raises(ValueError, match="shape"):
        post.expected_shd([("d", "nobody")])


# Graphs


def test_map_is_the_best_drawn_dag():
    post = make([[5, 9], [2, 9]], log_score=[[-3.0, -1.5], [-2.0, -1.5]])
    best = post.map()
    assert set(best.edges) == set(graphs.to_networkx(DAGS[9], NAMES).edges)
    assert list(best) == list(NAMES)
    assert best.graph["log_score"] == -1.5


def test_median_graph(drawn):
    post, _ = drawn
    table = post.edge_probabilities()
    for threshold in (0.0, 0.25, 0.5, 1.0):
        graph = post.median_graph(threshold)
        assert list(graph) == list(NAMES)
        expected = {(p, c) for p in NAMES for c in NAMES if table.loc[p, c] > threshold}
        assert set(graph.edges) == expected
    for parent, child, data in post.median_graph(0.1).edges(data=True):
        assert data["probability"] == table.loc[parent, child]


def test_two_directions_of_one_half_are_no_cycle(drawn, monkeypatch):
    post, _ = drawn
    table = post.edge_probabilities() * 0
    table.loc["a", "b"] = table.loc["b", "a"] = np.nextafter(0.5, 1)
    table.loc["b", "c"] = 0.500001
    monkeypatch.setattr("gpn_bayes.posterior.networks.edge_probabilities", lambda asked: table)
    assert list(post.median_graph().edges) == [("b", "c")]


def test_graphs(drawn):
    post, listed = drawn
    yielded = list(post.graphs())
    assert len(yielded) == len(listed)
    for graph, (expected, share), score in zip(yielded, listed, post.log_score.flat, strict=True):
        assert set(graph.edges) == set(expected.edges)
        assert graph.graph["weight"] == pytest.approx(share * len(listed))
        assert graph.graph["log_score"] == score
    distinct = list(post.graphs(distinct=True))
    expected = Counter()
    for graph, share in listed:
        expected[frozenset(graph.edges)] += share
    found = {frozenset(graph.edges): graph.graph["probability"] for graph in distinct}
    assert len(distinct) == len(found)
    assert found == pytest.approx(dict(expected), abs=1e-12)
    probabilities = [graph.graph["probability"] for graph in distinct]
    assert probabilities == sorted(probabilities, reverse=True)


def test_log_score_gap():
    post = make([[0, 1], [2, 3]], log_score=[[-4.0, -2.5], [-9.0, -3.0]])
    with pytest.raises(ValueError, match="^this posterior has no score to compare a DAG by; sample again"):
        post.log_score_gap([("a", "b")])
    scored = dataclasses.replace(post, scorer=lambda adjacency: -10.0 - adjacency.sum())
    assert scored.log_score_gap([("a", "b")]) == pytest.approx(8.5)
    with pytest.raises(ValueError, match="^the graph must be acyclic"):
        scored.log_score_gap([("a", "b"), ("b", "a")])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.edge_probability("a", "z"), "every node must be one of the variables; 'z' is not"),
        (lambda p: p.path_probability("z", "a"), "every node must be one of the variables; 'z' is not"),
        (lambda p: p.markov_blanket("z"), "every node must be one of the variables; 'z' is not"),
        (lambda p: p.parent_set_probabilities(9), "every node must be one of the variables; 9 is not"),
        (lambda p: p.order_probability(0), "an order needs at least two variables; received 1"),
        (lambda p: p.markov_blanket(["a"]), "every node must be one of the variables; ['a'] is not"),
        (lambda p: p.edge_probability(np.int64(9), "a"), "every node must be one of the variables; 9 is not"),
        (
            lambda p: p.edge_probability(0),
            "two variables, or a text such as 'a -> b', must be given; received 0",
        ),
        (
            lambda p: p.path_probability(("a", "b")),
            "two variables, or a text such as 'a ~> b', must be given; received ('a', 'b')",
        ),
        (
            lambda p: p.edge_probability("a"),
            "a question must read 'a -> b' (edge), 'a ~> b' (path), 'a - b' (edge either way) or 'a < b < c' (order); "
            "received 'a'",
        ),
        (
            lambda p: p.order_probability("a", "b", "a"),
            "an order names each variable once; received ['a', 'b', 'a']",
        ),
        (lambda p: p.median_graph(1.5), "threshold must lie between 0 and 1; received 1.5"),
        (lambda p: p.median_graph("a"), "threshold must lie between 0 and 1; received 'a'"),
        (
            lambda p: p.probability(lambda graph: np.float64("nan")),
            "a feature must be a truth value or a finite number for every DAG; received nan",
        ),
        (
            lambda p: p.probability(lambda graph: None),
            "a feature must be a truth value or a finite number for every DAG; received None",
        ),
        (
            lambda p: p.probability(0.5),
            "a feature must be a function of a DAG, or a text such as 'a -> b'; received 0.5",
        ),
        (
            lambda p: p.probability("a -> z"),
            "every name must be one of the variables; 'z' is not (they are a, b, c, d)",
        ),
        (
            lambda p: p.expected_shd([("a", "b"), ("b", "c"), ("c", "a")]),
            "the network to compare with must be acyclic; it has the cycle a -> b -> c -> a",
        ),
        (
            lambda p: p.expected_tp([("a", "b"), ("b", "a")]),
            "the network to compare with must be acyclic; it has the cycle a -> b -> a",
        ),
        (
            lambda p: p.expected_fp(np.ones((4, 4)) - np.eye(4)),
            "the network to compare with must be acyclic; it has the cycle a -> b -> a",
        ),
        (
            lambda p: p.expected_shd([("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "b")], cpdag=True),
            "the network to compare with must be acyclic; it has the cycle b -> c -> d -> b",
        ),
    ],
)
def test_bad_questions_are_refused_in_one_line(ask, message):
    with pytest.raises(ValueError) as error:
        ask(make([[0, 1], [2, 3]]))
    assert str(error.value) == message


@pytest.mark.parametrize("weighted", [False, True])
def test_questions_in_words_are_those_asked_by_methods(weighted):
    post, _ = drawn_posterior(weighted)
    assert post.probability("a -> b") == post.edge_probability("a", "b")
    assert post.probability("a ~> d") == post.path_probability("a", "d")
    assert post.probability("a<b<c") == post.order_probability("a", "b", "c")
    assert post.edge_probability("a -> b") == post.edge_probability("a", "b")
    assert post.path_probability("a ~> d") == post.path_probability("a", "d")
    assert post.order_probability("a < b < c") == post.order_probability("a", "b", "c")
    joined = post.probability("a - c")
    assert joined.value == pytest.approx(post.probability("a -> c").value + post.probability("c -> a").value)


def test_an_undirected_network_is_compared_as_a_class():
    post = make([[0, 1], [2, 3]])
    undirected = [("a", "b"), ("b", "a")]
    matrix = graphs.as_adjacency(undirected, NAMES, acyclic=False)
    by_hand = np.mean([gpn.metrics.shd(DAGS[k], matrix, cpdag=True) for k in range(4)])
    assert post.expected_shd(undirected, cpdag=True).value == pytest.approx(by_hand)


# Exact answers


@pytest.fixture(scope="module")
def exact():
    return exact_posterior()


def test_small_exact_posteriors_answer_everything_exactly(exact):
    data, post = exact
    scorer = gpn.scores.BGe().bind(data)
    totals = np.array([scorer.total(dag) for dag in DAGS])
    shares = np.exp(totals - logsumexp(totals))
    listed = [(graphs.to_networkx(dag, NAMES), share) for dag, share in zip(DAGS, shares, strict=True)]
    for feature in (
        lambda g: nx.has_path(g, "a", "c"),
        lambda g: g.number_of_edges(),
        lambda g: g.number_of_edges() == 0,
    ):
        found = post.probability(feature)
        assert found.value == pytest.approx(mean_of(listed, feature), rel=1e-9)
        assert (found.mcse, found.ess) == (0, np.inf)
    found = post.edge_probability("a", "b")
    assert found.value == pytest.approx(mean_of(listed, lambda g: g.has_edge("a", "b")), rel=1e-9)
    assert str(found).endswith("(exact)")
    assert post.path_probability("a", "c").mcse == 0
    assert post.order_probability("a", "b", "c").mcse == 0
    truth = nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")])
    assert post.expected_shd(truth).mcse == 0
    sets = post.parent_set_probabilities("c").set_index("parents")["probability"]
    expected = mean_of(listed, lambda g: set(g.predecessors("c")) == {"b", "d"})
    assert sets[("b", "d")] == pytest.approx(expected, rel=1e-9)
    assert sets.sum() == pytest.approx(1, abs=1e-9)
    table = post.summary()
    assert set(table["status"]) == {"exact"}
    assert (table["mcse"] == 0).all()
    assert table["r_hat"].isna().all()
    assert post.log_score_gap(post.map()) == pytest.approx(0, abs=1e-9)
    assert scorer.total(post.map()) == pytest.approx(post.map().graph["log_score"], abs=1e-9)


def test_larger_exact_posteriors_know_edges_exactly_and_the_rest_by_draws():
    chain = nx.path_graph([f"x{i}" for i in range(6)], create_using=nx.DiGraph)
    data = gpn.simulate.linear(chain, 60, random_seed=3)
    post = gpn.sample(data, draws=1000, random_seed=2, progressbar=False)
    assert post.edge_probability("x0", "x1").mcse == 0
    path = post.path_probability("x0", "x5")
    assert path.mcse > 0
    # A path of length one is an edge: the draws agree with the exact answer.
    exact_edge, drawn_edge = (
        post.edge_probability("x2", "x3"),
        post.probability(lambda g: g.has_edge("x2", "x3")),
    )
    assert drawn_edge.mcse > 0
    assert abs(drawn_edge.value - exact_edge.value) < 4 * drawn_edge.mcse


def test_repr():
    assert repr(make([[0, 1], [2, 3]], score={"name": "bge", "parameters": {}})) == (
        "<GraphPosterior: 4 variables, 2 x 2 DAGs, partition sampler, score BGe>"
    )
