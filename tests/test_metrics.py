import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy, mannwhitneyu

from gpn_bayes import graphs, metrics

NAMES = ["a", "b", "c", "d"]
TRUTH = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")])


@pytest.mark.parametrize(
    ("edges", "distance", "counts"),
    [
        ([("a", "b"), ("b", "c"), ("c", "d")], 0, (3, 0, 0, 0)),
        ([], 3, (0, 0, 3, 0)),
        ([("b", "a"), ("b", "c"), ("c", "d")], 1, (2, 0, 0, 1)),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], 1, (3, 1, 0, 0)),
        ([("a", "b"), ("d", "c"), ("d", "a")], 3, (1, 1, 1, 1)),
        # An undirected edge differs from the directed one, but counts as true.
        ([("a", "b"), ("b", "a"), ("b", "c"), ("c", "d")], 1, (3, 0, 0, 0)),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("d", "a")], 1, (3, 1, 0, 0)),
    ],
)
def test_hand_counted_graphs(edges, distance, counts):
    estimate = nx.DiGraph(edges)
    assert metrics.shd(estimate, TRUTH) == distance
    assert metrics.confusion(estimate, TRUTH) == counts
    tp, fp, fn, back = counts
    assert metrics.tpr(estimate, TRUTH) == tp / 3
    assert metrics.fdr(estimate, TRUTH) == pytest.approx((fp + back) / max(tp + fp + back, 1))
    assert metrics.confusion(estimate, TRUTH, skeleton=True) == (tp + back, fp, fn, 0)
    assert metrics.tpr(estimate, TRUTH, skeleton=True) == (tp + back) / 3


def test_skeleton_fdr_forgives_reversals():
    reversed_truth = TRUTH.reverse()
    assert metrics.fdr(reversed_truth, TRUTH) == 1.0
    assert metrics.fdr(reversed_truth, TRUTH, skeleton=True) == 0.0


def test_a_directed_edge_agrees_with_an_undirected_truth():
    undirected = np.array([[0, 1], [1, 0]])
    assert metrics.confusion(np.array([[0, 0], [1, 0]]), undirected) == (1, 0, 0, 0)


def test_empty_graphs():
    assert np.isnan(metrics.tpr(np.zeros((2, 2)), np.zeros((2, 2))))
    assert metrics.fdr(np.zeros((2, 2)), np.zeros((2, 2))) == 0.0


def test_named_graphs_are_matched_by_name():
    shuffled = nx.DiGraph()
    shuffled.add_nodes_from(["d", "b", "c", "a"])
    shuffled.add_edges_from(TRUTH.edges)
    frame = pd.DataFrame(graphs.as_adjacency(TRUTH, NAMES), index=NAMES, columns=NAMES)
    assert metrics.shd(shuffled, TRUTH) == 0
    assert metrics.shd(frame.loc[NAMES[::-1], NAMES[::-1]], shuffled) == 0
    assert metrics.shd(frame.to_numpy(), TRUTH) == 0
    # In the order of its own nodes the shuffled graph is another one.
    assert metrics.shd(graphs.as_adjacency(shuffled, list(shuffled)), frame.to_numpy()) > 0
    with pytest.raises(ValueError, match="'x' is not"):
        metrics.shd(nx.DiGraph([("a", "x")]), TRUTH)


def test_cpdag_distance_is_zero_exactly_for_equivalent_dags():
    dags = graphs.enumerate_dags(4)
    classes = graphs.cpdag(dags)
    for place in range(0, len(dags), 37):
        equivalent = (classes == classes[place]).all(axis=(1, 2))
        distance = metrics.shd_draws(dags, dags[place], cpdag=True)
        np.testing.assert_array_equal(distance == 0, equivalent)
        assert metrics.shd(classes[place], dags[place], cpdag=True) == 0


def test_cpdag_distance_by_hand():
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    collider = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    assert metrics.shd(collider, chain) == 1
    # a - b - c against a -> b <- c: both pairs differ.
    assert metrics.shd(collider, chain, cpdag=True) == 2


def test_draws_agree_with_single_graphs_and_an_edge_set_definition():
    dags = graphs.enumerate_dags(3)
    truth = dags[17]
    true = {tuple(edge) for edge in np.argwhere(truth)}
    for place, dag in enumerate(dags):
        found = {tuple(edge) for edge in np.argwhere(dag)}
        back = {(j, i) for i, j in found}
        expected = (
            len(found & true),
            len(found - true - {(j, i) for i, j in true}),
            len(true - found - back),
            len(back & true),
        )
        counts = metrics.confusion_draws(dags, truth)
        assert tuple(column[place] for column in counts) == expected == metrics.confusion(dag, truth)
        assert metrics.shd_draws(dags, truth)[place] == sum(expected[1:]) == metrics.shd(dag, truth)


def test_draw_vectors_keep_leading_dimensions_and_average_by_weight():
    dags = graphs.enumerate_dags(4)[:540].reshape(4, 135, 4, 4)
    truth = graphs.as_adjacency(TRUTH, NAMES)
    assert metrics.shd_draws(dags, truth, cpdag=True).shape == (4, 135)
    weights = np.random.default_rng(1).dirichlet(np.ones(540)).reshape(4, 135)
    edges = np.tensordot(weights, dags, axes=2)
    # Expected counts of directed edges are sums of edge probabilities.
    assert (weights * metrics.tp_draws(dags, truth)).sum() == pytest.approx((edges * truth).sum())
    strangers = (truth | truth.T) == 0
    assert (weights * metrics.fp_draws(dags, truth)).sum() == pytest.approx((edges * strangers).sum())


def test_draws_are_matched_with_a_named_truth():
    order = ["d", "b", "c", "a"]
    draws = graphs.as_adjacency(TRUTH, order)[None]
    assert metrics.shd_draws(draws, TRUTH, names=order).tolist() == [0]
    assert metrics.shd_draws(draws, TRUTH).tolist() != [0]
    with pytest.raises(ValueError, match="same nodes; received 3 and 4"):
        metrics.shd_draws(np.zeros((5, 3, 3)), TRUTH)


def test_reverse_kl_agrees_with_scipy_and_normalises():
    rng = np.random.default_rng(2)
    q, p = rng.dirichlet(np.ones(25)), rng.dirichlet(np.ones(25))
    assert metrics.reverse_kl(np.log(q) - 900, np.log(p) + 7) == pytest.approx(entropy(q, p))
    assert metrics.reverse_kl(np.log(q), np.log(p)) != pytest.approx(entropy(p, q))
    assert metrics.reverse_kl(np.log(q), np.log(q)) == pytest.approx(0, abs=1e-12)


def test_reverse_kl_with_zero_probabilities():
    half, sure = np.log([0.5, 0.5]), np.array([0.0, -np.inf])
    assert metrics.reverse_kl(sure, half) == pytest.approx(np.log(2))
    assert metrics.reverse_kl(half, sure) == np.inf
    assert metrics.reverse_kl(sure, sure) == 0.0


@pytest.mark.parametrize("bad", [[0.0, np.nan], [-np.inf, -np.inf], [0.0, np.inf], [[0.0]], []])
def test_reverse_kl_refuses_what_is_no_distribution(bad):
    with pytest.raises(ValueError, match="log_p must be a vector"):
        metrics.reverse_kl([0.0, 0.0], bad)
    with pytest.raises(ValueError, match="same DAGs; received 2 and 3"):
        metrics.reverse_kl([0.0, 0.0], np.zeros(3))


def test_auroc_is_the_rank_statistic():
    scores = pd.DataFrame(np.random.default_rng(3).random((4, 4)), index=NAMES, columns=NAMES)
    truth = graphs.as_adjacency(TRUTH, NAMES)
    pairs = ~np.eye(4, dtype=bool)
    hits, misses = scores.to_numpy()[pairs & (truth == 1)], scores.to_numpy()[pairs & (truth == 0)]
    expected = mannwhitneyu(hits, misses).statistic / (hits.size * misses.size)
    assert metrics.auroc(scores, truth) == pytest.approx(expected)
    assert metrics.auroc(scores.loc[NAMES[::-1], NAMES[::-1]], TRUTH) == pytest.approx(expected)
    with pytest.raises(ValueError, match="needs a true edge"):
        metrics.auroc(scores, np.zeros((4, 4)))
    with pytest.raises(ValueError, match="finite matrix"):
        metrics.auroc(np.full((4, 4), np.nan), TRUTH)
