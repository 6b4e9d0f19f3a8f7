"""Pictures of one posterior: the network and the heat maps show what the draws say."""

from dataclasses import replace
from itertools import pairwise
from time import process_time

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

import gpn_bayes as gpn
from gpn_bayes.estimators.bootstrapping import BootstrapResult
from gpn_bayes.plots import layout, palette
from gpn_bayes.plots.network import links
from tests.draws import NAMES
from tests.pictures import by_gid, chain_of, drawn, legend_of, texts, turned
from tests.reports import LONG, crowded_posterior, made_posterior

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
    ("forth", "direction", "face"), [(0.95, "clear", palette.BLUE), (0.75, "likelier", "white"), (0.5, "open", None)]
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
        assert "direction undetermined" in legend_of(ax)
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
    legend = legend_of(post.plot_network(threshold=0.6))[0]
    assert legend.endswith("2 more pairs, below 0.6, not drawn")
    with pytest.raises(ValueError, match="^threshold must lie between 0 and 1; received 2$"):
        post.plot_network(threshold=2)


def test_given_axes_are_used_and_letters_fit_them():
    figure, axes = plt.subplots(1, 2, figsize=(3, 2))
    ax = drawn(NAMES, chain_of(1.0, 0.5, 0.2)).plot_network(ax=axes[1])
    assert ax is axes[1]
    assert ax.texts[0].get_fontsize() < 9
    assert not axes[0].patches


NETWORKS = {
    "5": lambda: crowded_posterior("abcde"),
    "11": lambda: crowded_posterior([f"v{k}" for k in range(11)]),
    "11, long names": lambda: crowded_posterior(LONG[:11]),
    "30, long names": crowded_posterior,
    "30, long names, tiers": lambda: crowded_posterior(tiers=[1 + k // 8 for k in range(30)]),
}


def inside(inner, outer, slack=1.0):
    """Return whether a box lies within another, but for some pixels."""
    corners = inner.x0 - outer.x0, inner.y0 - outer.y0, outer.x1 - inner.x1, outer.y1 - inner.y1
    return min(corners) >= -slack


@pytest.mark.more("draws many figures")
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("size", [(3, 3), (5, 5), (12, 8)], ids=str)
@pytest.mark.parametrize("network", NETWORKS)
def test_everything_stays_within_axes_of_any_size(network, size, constrained):
    post = NETWORKS[network]()
    figure, ax = plt.subplots(figsize=size, dpi=200, layout="constrained" if constrained else None)
    post.plot_network(ax=ax)
    figure.canvas.draw()
    texts_drawn = [text.get_window_extent() for text in ax.texts]
    legend = ax.get_legend().get_window_extent()
    boxes = [patch.get_window_extent() for patch in ax.patches if patch.get_gid() is None]
    assert len(boxes) == len(post.names)
    for k, own in enumerate(texts_drawn):
        assert inside(own, ax.bbox) and not own.overlaps(legend)
        assert not any(own.overlaps(other) for other in texts_drawn[:k])
    # The names of tiers come first.
    for text, box in zip(texts_drawn[-len(boxes) :], boxes, strict=True):
        assert inside(text, box) and inside(box, ax.bbox)
    assert inside(legend, figure.bbox)


@pytest.mark.more("draws many figures")
@pytest.mark.parametrize(("size", "names", "least"), [((5, 5), 11, 7.0), ((12, 8), 30, 7.0), ((5, 5), 30, 3.0)])
def test_letters_are_as_large_as_the_axes_let_them(size, names, least):
    figure, ax = plt.subplots(figsize=size)
    crowded_posterior([f"v{k}" for k in range(names)] if names == 11 else LONG).plot_network(ax=ax)
    figure.canvas.draw()
    assert min(text.get_fontsize() for text in ax.texts) >= least


def test_letters_follow_axes_that_change_their_size():
    figure, ax = plt.subplots(figsize=(8, 8))
    crowded_posterior(LONG[:11]).plot_network(ax=ax)
    figure.canvas.draw()
    before = ax.texts[0].get_fontsize()
    figure.set_size_inches(4, 4)
    figure.canvas.draw()
    assert ax.texts[0].get_fontsize() == pytest.approx(before / 2, rel=0.01)


def test_tiers_are_bands_from_the_top():
    tiers = [2005, 2005, 2010, 2010.5]
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    assert not by_gid(post.plot_network(), "tier 2005"), "without tiers, or in a file that has none, there are no bands"
    post = replace(post, settings=post.settings | {"prior": {"kind": "uniform", "tiers": tiers}})
    ax = post.plot_network()
    assert texts(ax)[:3] == ["tier 2005", "tier 2010", "tier 2010.5"]
    bands = {label: by_gid(ax, label)[0].get_window_extent() for label in texts(ax)[:3]}
    tops = [bands[label].y1 for label in bands]
    assert tops == sorted(tops, reverse=True)
    boxes = [patch.get_window_extent() for patch in ax.patches if patch.get_gid() is None]
    for box, tier in zip(boxes, tiers, strict=True):
        assert inside(box, bands[f"tier {tier:g}"], slack=0)


def test_tiers_of_a_run_reach_its_picture(tmp_path):
    data = gpn.simulate.linear(chain_of(1, 1, 1), 60, random_seed=1)
    tiers = [["v3"], ["v1", "v4"], ["v2"]]
    post = gpn.sample(data, score="bge", draws=20, tiers=tiers, random_seed=1, progressbar=False)
    post.save(tmp_path / "post.nc")
    ax = gpn.load(tmp_path / "post.nc").plot_network()
    assert texts(ax)[:3] == ["tier 1", "tier 2", "tier 3"]
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert heights["v3"] > heights["v1"] > heights["v2"]


def test_improbable_pairs_leave_nodes_where_they_are():
    """They may be many: what they join would else stand far apart, in small letters."""
    strong = [(k, k + 1, 1.0) for k in range(9)]
    weak = [(i, j, 0.3) for i in range(10) for j in range(i + 2, 10)]
    few, many = (
        made_posterior([f"v{k}" for k in range(10)], edges).plot_network() for edges in (strong, strong + weak)
    )
    assert len(by_gid(many, "v0 -> v9")) == 1
    assert [text.get_position() for text in few.texts] == [text.get_position() for text in many.texts]


def test_lines_between_nodes_side_by_side_stay_inside():
    """Two nodes that only an improbable pair joins may stand in the last layer."""
    edges = [(0, k, 1.0) for k in range(1, 6)] + [(i, j, 0.3) for i in range(1, 6) for j in range(i + 1, 6)]
    ax = made_posterior("abcdef", edges, shape=(2, 40)).plot_network()
    legend = ax.get_legend().get_window_extent()
    lines = [patch.get_window_extent() for patch in ax.patches if patch.get_gid()]
    assert len(lines) > 15 and not any(line.overlaps(legend) for line in lines)


def test_arrowheads_at_a_node_stand_apart():
    names = [*"abcdef", "x"]
    ax = made_posterior(names, [(k, 6, 1.0) for k in range(6)]).plot_network()
    heads = sorted(by_gid(ax, f"{name} -> x head")[0].get_xy()[:, 0].tolist() for name in names[:6])
    ends = sorted((min(corners), max(corners)) for corners in heads)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_layers_keep_to_the_room_and_tiers_apart():
    rng = np.random.default_rng(2)
    pairs = [(i, j) for i in range(24) for j in range(i + 1, 24) if rng.random() < 0.08]
    widths, tiers = rng.uniform(0.5, 2.0, 24), np.repeat([0, 1, 2], 8)
    found = layout.layered_layout(pairs, np.arange(24), widths, 0.3, tiers, room=6.0)
    for number in range(found.layer.max() + 1):
        own = np.flatnonzero(found.layer == number)
        assert widths[own].sum() + 0.3 * (len(own) - 1) <= 6.0 and len(set(tiers[own])) == 1
    assert all(found.layer[i] < found.layer[j] for i, j in pairs)
    free = layout.layered_layout(pairs, np.arange(24), widths, 0.3)
    assert free.layer.max() < found.layer.max()


def test_parts_that_nothing_joins_stand_close():
    pairs = [(0, 4), (0, 5), (1, 6), (1, 7), (6, 7), (2, 8), (2, 9), (3, 10)]
    parts = [0, 4, 5], [1, 6, 7], [2, 8, 9], [3, 10]
    found = layout.layered_layout(pairs, np.arange(11), np.ones(11), 0.3)
    ends = sorted((found.x[own].min() - 0.5, found.x[own].max() + 0.5) for own in parts)
    assert max(after[0] - before[1] for before, after in pairwise(ends)) <= 0.3 + 1e-9


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


@pytest.mark.more("draws many figures")
@pytest.mark.parametrize(("n", "edges"), [(12, 8), (20, 10), (100, 12)])
def test_sweeps_order_layers_by_the_places_of_neighbours(n, edges):
    down = joined(n, edges, n)
    layers = layout._Layers(down, np.ones(n), 0.3, np.inf)
    layers.fill(list(range(n)))
    grid = layout._Grid(list(range(n)), down, layers.numbered(), np.ones(n), 0.3)
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
