"""Pictures of one posterior: the network and the heat maps show what the draws say."""

from time import process_time

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

from gpn_bayes.bootstrapping import BootstrapResult
from gpn_bayes.plots import layout, palette
from gpn_bayes.plots.network import links
from tests.draws import NAMES
from tests.pictures import by_gid, chain_of, drawn, legend_of, texts, turned

mpl.use("Agg")


@pytest.fixture(autouse=True)
def small_figures():
    with plt.rc_context({"figure.dpi": 50}):
        yield
    plt.close("all")


# The network


def test_lines_are_as_wide_and_opaque_as_they_are_probable():
    ax = drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_network()
    lines = [by_gid(ax, name)[0] for name in ("a -> b", "b -> c", "c -> d")]
    widths, opacities = [line.get_linewidth() for line in lines], [line.get_alpha() for line in lines]
    np.testing.assert_allclose(np.diff(widths) / np.diff([1.0, 0.5, 0.2]), 3.4)
    assert opacities == sorted(opacities, reverse=True)
    assert opacities[0] == 1.0
    assert opacities[2] > 0.3


def test_causes_stand_above_effects_and_heads_touch_the_effect():
    ax = drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_network()
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert heights["a"] > heights["b"] > heights["c"] > heights["d"]
    tip = by_gid(ax, "a -> b head")[0].get_xy()[0]
    boxes = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches if not patch.get_gid()]
    box = boxes[1]
    assert tip[1] > box.y1, "the head must not be covered by the node"
    assert tip[1] - box.y1 < 0.1
    assert box.x0 < tip[0] < box.x1


@pytest.mark.parametrize(
    ("forth", "direction", "face"), [(0.95, "told", palette.BLUE), (0.75, "likelier", "white"), (0.5, "open", None)]
)
def test_directions_are_shown_as_far_as_they_are_told(forth, direction, face):
    post = turned(NAMES, forth)
    ax = post.plot_network()
    assert [link.direction for link in links(post.edge_probabilities().to_numpy(), 0.1)] == [direction]
    line, heads = by_gid(ax, "a -> b")[0], by_gid(ax, "a -> b head")
    assert line.get_linewidth() == pytest.approx(4.0), "they are always joined"
    if face is None:
        assert not heads
        assert line.get_edgecolor()[:3] == to_rgba(palette.VERMILION)[:3]
        assert "direction can't be told" in legend_of(ax)
    else:
        assert heads[0].get_facecolor()[:3] == to_rgba(face)[:3]
        assert line.get_edgecolor()[:3] == to_rgba(palette.BLUE)[:3]


def test_an_arrow_against_the_order_has_its_head_on_the_right_end():
    ax = turned(NAMES, 0.05).plot_network()
    tip = by_gid(ax, "b -> a head")[0].get_xy()[0]
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert abs(tip[1] - places["a"][1]) < abs(tip[1] - places["b"][1])


def test_what_is_left_out_is_counted():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    assert not any("not drawn" in text for text in legend_of(post.plot_network()))
    told = legend_of(post.plot_network(threshold=0.6))[0]
    assert told.endswith("2 more pairs, below 0.6, not drawn")
    with pytest.raises(ValueError, match="^threshold must lie between 0 and 1; received 2$"):
        post.plot_network(threshold=2)


def test_given_axes_are_used_and_letters_fit_them():
    figure, axes = plt.subplots(1, 2, figsize=(3, 2))
    ax = drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_network(ax=axes[1])
    assert ax is axes[1]
    assert ax.texts[0].get_fontsize() < 9
    assert not axes[0].patches


def test_no_two_nodes_overlap_and_no_line_crosses_a_node():
    rng = np.random.default_rng(3)
    matrix = np.triu(rng.random((30, 30)) < 0.08, 1).astype(float)
    ax = drawn([f"variable {k}" for k in range(30)], matrix).plot_network()
    boxes = [p.get_window_extent() for p in ax.patches if p.get_gid() is None]
    assert len(boxes) == 30
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i])
    for line in (p for p in ax.patches if p.get_gid() and not p.get_gid().endswith("head")):
        path = line.get_transform().transform_path(line.get_path()).interpolated(1)
        points = np.concatenate(path.to_polygons(closed_only=False))
        assert not any(box.padded(-1).contains(*point) for box in boxes for point in points), line.get_gid()


def test_the_averaged_order_is_that_of_ancestors():
    post = drawn(NAMES, np.rot90(chain_of(1.0, 0.5, 0.2), 2))
    paths = post.path_probabilities().to_numpy()
    expected = np.argsort(paths.sum(axis=0) - paths.sum(axis=1), kind="stable")
    np.testing.assert_array_equal(layout.averaged_order(post), expected)


def test_a_cycle_of_arrows_has_its_weakest_one_backward():
    order = layout.drawing_order([(0, 1), (1, 2), (2, 0)], np.array([2, 1, 0])).tolist()
    assert order == [0, 1, 2]


def joined(n, edges, seed):
    """Return a chain of nodes, and edges that leap over some of them."""
    rng = np.random.default_rng(seed)
    leaps = [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(edges)]
    return sorted({*((i, i + 1) for i in range(n - 1)), *leaps})


def swept(rows, sides, downwards):
    """Return what a sweep makes of layers, by its definition: all places are looked up anew for every layer."""
    rows = [row[:] for row in rows]
    for row in rows if downwards else rows[::-1]:
        place = {item: k for own in rows for k, item in enumerate(own)}
        row.sort(key=lambda item: np.mean([place[near] for near in sides[item]] or place[item]))
    return rows


def crossed(rows, below):
    """Return how many pairs of lines cross, looking at each pair."""
    place = {item: k for row in rows for k, item in enumerate(row)}
    lines = [[(place[i], place[j]) for i in row for j in below[i]] for row in rows]
    return sum((a - c) * (b - d) < 0 for own in lines for k, (a, b) in enumerate(own) for c, d in own[:k])


@pytest.mark.parametrize(("n", "edges"), [(12, 8), (20, 10), (100, 12)])
def test_sweeps_order_layers_by_the_places_of_neighbours(n, edges):
    down = joined(n, edges, n)
    grid = layout._Grid(list(range(n)), down, layout._layers(down, np.arange(n)), np.ones(n), 0.3)
    moved = False
    for downwards in (True, False, True, False):
        expected = swept(grid.rows, grid.above if downwards else grid.below, downwards)
        moved |= expected != grid.rows
        grid._sweep(downwards)
        assert grid.rows == expected
        assert grid._crossings() == crossed(grid.rows, grid.below)
    assert moved


def test_a_deep_network_has_its_places_soon():
    """A sweep that looks all places up for every layer takes five times as long."""
    down = joined(250, 30, 1)
    start = process_time()
    layout.layered_layout(down, np.arange(250), np.ones(250), 0.3)
    assert process_time() - start < 2.5


def test_bootstrap_frequencies_are_called_so():
    boot = BootstrapResult(NAMES, drawn(NAMES, chain_of(1.0, 0.5, 0.2), chains=1).parents, "PC()")
    assert legend_of(boot.plot_network())[0].startswith("Width and opacity: frequency that two are joined")
    assert boot.plot_edges().figure.axes[-1].get_ylabel() == "edge frequency"


# Heat maps


def test_cells_hold_the_probabilities_and_ticks_the_names():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    ax = post.plot_edges()
    shown = np.ma.getdata(ax.images[0].get_array())
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(shown[off], post.edge_probabilities().to_numpy()[off])
    assert np.ma.getmaskarray(ax.images[0].get_array()).tolist() == np.eye(4, dtype=bool).tolist()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [label.get_text() for label in labels] == list(NAMES)
    assert {text.get_position(): text.get_text() for text in ax.texts} == {(1, 0): "1", (2, 1): ".50", (3, 2): ".20"}


def test_numbers_never_round_to_never_or_always():
    matrix = chain_of(0.999, 0.001, 0.5)
    assert set(texts(drawn(NAMES, matrix, draws=1000).plot_edges())) == {">.99", "<.01", ".50"}


def test_the_truth_is_framed():
    ax = drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_edges(truth=[("a", "b"), ("d", "a")])
    centres = {(frame.get_x() + 0.42, frame.get_y() + 0.42) for frame in by_gid(ax, "truth")}
    assert {(round(x), round(y)) for x, y in centres} == {(1, 0), (0, 3)}, "x is the child, y the parent"
    assert "edge of the known network" in legend_of(ax)
    with pytest.raises(ValueError, match="^every node must be one of the variables; 'e' is not$"):
        drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_edges(truth=[("e", "a")])


def test_parent_counts_are_those_of_the_draws():
    matrix = np.zeros((4, 4))
    matrix[0, 2], matrix[1, 2], matrix[2, 3] = 1.0, 0.25, 0.5
    ax = drawn(NAMES, matrix).plot_parent_counts()
    np.testing.assert_allclose(ax.images[0].get_array(), [[1, 0, 0], [1, 0, 0], [0, 0.75, 0.25], [0.5, 0.5, 0]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]
    assert [label.get_text() for label in ax.get_yticklabels()] == list(NAMES)
