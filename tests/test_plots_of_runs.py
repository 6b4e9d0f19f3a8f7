"""Pictures of several runs, of chains and of fitted functions; and odd cases, drawn whole and without a warning."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

import gpn_bayes as gpn
from gpn_bayes import graphs, plots
from gpn_bayes.data import Dataset
from gpn_bayes.plots import functions, lettering, palette
from gpn_bayes.posterior import Comparison, GraphPosterior
from gpn_bayes.scores.recorded import as_setting
from tests.draws import NAMES, make, sticky_picks
from tests.pictures import chain_of, drawn, everything, legend_of, texts

pytestmark = pytest.mark.more("draws figures of every kind of run")

mpl.use("Agg")


@pytest.fixture(autouse=True)
def small_figures():
    with plt.rc_context({"figure.dpi": 50}):
        yield
    plt.close("all")


def remark(ax):
    """Return what is written in empty axes, in one line."""
    (text,) = texts(ax)
    return text.replace("\n", " ")


# Two posteriors


def test_runs_are_matched_by_name():
    first = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    turned_round = drawn(NAMES[::-1], chain_of(1.0, 0.5, 0.2))
    ax = first.plot_runs(turned_round)
    points = {tuple(map(float, np.round(point, 3))) for point in ax.collections[-1].get_offsets()}
    assert points == {(1.0, 0.0), (0.5, 0.0), (0.2, 0.0), (0.0, 1.0), (0.0, 0.5), (0.0, 0.2), (0.0, 0.0)}
    named = legend_of(ax)
    assert named[0] == "largest gap 1.000"
    assert {"a → b", "d → c"} <= set(named)
    with pytest.raises(ValueError, match="^both must have the same variables; 'd' is in only one of the two$"):
        first.plot_runs(drawn(NAMES[:3], chain_of(1.0, 0.5)))


def test_equal_runs_name_no_edge():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    assert legend_of(post.plot_runs(post)) == ["largest gap 0.000", "within 0.05"]


def test_comparisons_show_the_largest_differences_first():
    first = drawn(NAMES, chain_of(1.0, 0.5, 0.2), score={"name": "gp", "parameters": {}})
    second = drawn(NAMES, chain_of(0.9, 0.0, 0.8))
    ax = first.plot_comparison(second, truth=[("b", "c")], edges=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c → d", "b → c"]
    gp, bge = (collection.get_offsets()[:, 0].tolist() for collection in ax.collections[1:3])
    assert gp == pytest.approx([0.2, 0.5])
    assert bge == pytest.approx([0.8, 0.0])
    assert legend_of(ax)[1:] == ["GP", "BGe", "in the known network"]
    marks = [line for line in ax.lines if line.get_gid() == "truth"]
    assert marks[0].get_ydata() == [ax.get_yticks()[1]]
    assert ax.get_xlabel() == "edge probability\n10 more edges differ by 0.1 at most"
    assert legend_of(second.plot_comparison(second))[1:] == ["BGe, first", "BGe, second"]


def test_comparisons_refuse_what_they_cannot_show():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    with pytest.raises(ValueError, match="^edges must be a whole number, 1 or more; received 0$"):
        post.plot_comparison(post, edges=0)
    for labels in (["one"], "GP", [1, 2]):
        with pytest.raises(ValueError, match="^labels must be two texts, one for each posterior; received "):
            post.plot_comparison(post, labels=labels)


def test_comparisons_show_both_where_they_agree():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    ax = post.plot_comparison(post, labels=["_gp", "$bge$"])
    first, second = ax.collections[1:3]
    assert len(first.get_facecolors()) == 1 and len(second.get_facecolors()) == 0
    assert legend_of(ax)[1:] == ["_gp", "$bge$"]


def test_comparisons_count_known_edges_that_are_not_shown():
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    label = post.plot_comparison(post, truth=[("a", "b"), ("d", "a"), ("d", "b")], edges=3).get_xlabel()
    assert label == "edge probability\n9 more edges differ by 0 at most\n2 of these in the known network"
    assert post.plot_comparison(post, edges=11).get_xlabel().endswith("\n1 more edge differs by 0 at most")
    counted = gpn.bootstrap(gpn.estimators.PC(), gpn.simulate.linear(chain_of(1, 1, 1), 50, random_seed=1), n=3)
    named = drawn(counted.names, chain_of(1.0, 0.5, 0.2))
    assert named.plot_comparison(counted, edges=12).get_xlabel() == "edge probability or frequency"


def test_rows_of_a_comparison_are_as_high_as_their_labels():
    ax = random_chain(MIXED).plot_comparison(random_chain(MIXED))
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert max(lower.y1 - upper.y0 for upper, lower in pairwise(boxes)) <= 1


# Chains


@pytest.fixture(scope="module")
def chains():
    return make(sticky_picks(np.random.default_rng(1), (3, 60)))


def test_traces_are_the_log_scores(chains):
    ax = chains.plot_trace()
    assert len(ax.lines) == 3
    for line, own in zip(ax.lines, chains.log_score, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), own)
    assert [line.get_color() for line in ax.lines] == list(palette.SERIES[:3])
    assert legend_of(ax)[1:] == ["chain 0", "chain 1", "chain 2"]


@pytest.mark.parametrize("kind", ["plot_trace", "plot_rank"])
def test_many_chains_are_told_apart(kind):
    post = make(sticky_picks(np.random.default_rng(1), (8, 60)))
    ax = getattr(post, kind)()
    shown = [(line.get_color(), line.get_linestyle()) for line in ax.lines if len(line.get_xdata()) > 2]
    listed = [(line.get_color(), line.get_linestyle()) for line in ax.get_legend().get_lines()]
    assert shown == listed and len(set(listed)) == 8


def test_a_single_draw_is_seen():
    ax = drawn("abc", chain_of(1.0, 1.0), draws=1).plot_trace()
    assert {line.get_marker() for line in ax.lines} == {"."}


def test_ranks_of_chains_sum_to_nothing(chains):
    ax = chains.plot_rank()
    lines = [line for line in ax.lines if len(line.get_xdata()) > 2]
    assert len(lines) == 3
    assert np.abs(np.mean([np.interp(0.5, line.get_xdata(), line.get_ydata()) for line in lines])) < 0.05
    assert any(text.startswith("p=") for text in texts(ax))


def test_chains_that_disagree_leave_zero():
    """Negative control: ranks do show it."""
    rng = np.random.default_rng(1)
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2), draws=50)
    post.log_score = rng.normal(size=(2, 50)) + [[0.0], [3.0]]
    assert max(np.abs(line.get_ydata()).max() for line in post.plot_rank().lines) > 0.3


@pytest.mark.parametrize("shift", [0.5, 3.0])
def test_marks_of_ranks_are_whole(shift):
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2), draws=500)
    post.log_score = np.random.default_rng(1).normal(size=(2, 500)) + [[0.0], [shift]]
    ax = post.plot_rank()
    ax.figure.canvas.draw()
    (marks,) = (collection for collection in ax.collections if len(collection.get_offsets()))
    # An area in points squared, of which the root is a width.
    radius = np.sqrt(marks.get_sizes().max()) / 2 * ax.figure.dpi / 72
    heights = ax.transData.transform(marks.get_offsets())[:, 1]
    assert ax.bbox.y0 + radius < heights.min()
    assert heights.max() < ax.bbox.y1 - radius


def test_running_probabilities_are_weighted_means(chains):
    rng = np.random.default_rng(2)
    post = GraphPosterior(NAMES, chains.parents, chains.log_score, rng.normal(size=chains.log_score.shape))
    ax = post.plot_running(edges=[("a", "b"), ("c", "b")])
    assert len(ax.lines) == 6
    for k, (i, j) in enumerate([(0, 1), (2, 1)]):
        for chain in range(3):
            weights, edge = post.weights[chain], post.adjacency[chain, :, i, j]
            expected = [np.average(edge[: t + 1], weights=weights[: t + 1]) for t in range(len(edge))]
            np.testing.assert_allclose(ax.lines[3 * k + chain].get_ydata(), expected)
    assert legend_of(ax)[1:] == ["a → b", "c → b"]


def test_running_shows_the_edges_that_chains_differ_on():
    dags = np.zeros((2, 10, 4, 4), dtype=np.int8)
    dags[0, :, 0, 1] = 1
    dags[:, ::2, 1, 2] = 1
    post = GraphPosterior(NAMES, graphs.pack(dags), np.zeros((2, 10)))
    assert legend_of(post.plot_running())[1:] == ["a → b", "b → c"]


def test_running_of_one_chain_shows_the_edges_that_are_most_open():
    post = drawn("abcdefgh", chain_of(0.05, 0.5, 0.95, 0.4, 0.7, 0.1, 0.45), chains=1)
    assert legend_of(post.plot_running())[1:] == ["b → c", "g → h", "d → e", "e → f", "f → g"]


@pytest.mark.parametrize("edges", [[], "ab", ["a -> b"], [("a",)], ("a", "b"), [("a", "a")]], ids=repr)
def test_running_refuses_what_is_no_edge(edges):
    post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
    rule = r"^edges must be pairs \(parent, child\) of two variables, one pair or more; received "
    with pytest.raises(ValueError, match=rule):
        post.plot_running(edges=edges)


# Fitted functions


def sine():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (60, 2))
    return Dataset.read(np.column_stack([x, np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.2 * rng.normal(size=60)]))


@pytest.fixture(scope="module")
def fitted():
    post = drawn(("v1", "v2", "v3"), [[0, 0, 1.0], [0, 0, 0.5], [0, 0, 0]], score=as_setting(gpn.scores.GP()))
    post.data = sine()
    return post


def test_panels_show_lines_bands_and_rows(fitted):
    panels = fitted.plot_curves("v3")
    lines = fitted.curves("v3")
    assert [panel.get_xlabel() for panel in panels] == ["v1", "v2"]
    assert [panel.get_title() for panel in panels] == ["edge probability 1", "edge probability 0.50"]
    assert panels[0].get_ylabel() == "v3\n(other parents' effects taken off)"
    for panel, parent in zip(panels, ("v1", "v2"), strict=True):
        own = lines[lines["parent"] == parent]
        np.testing.assert_array_equal(panel.lines[0].get_ydata(), own["mean"])
        band = panel.collections[-1].get_paths()[0].vertices
        assert {*own["lower"], *own["upper"]} <= {*band[:, 1]}
    dots = fitted.plot_curves("v3", dots="data")[0].collections[0].get_offsets()
    np.testing.assert_array_equal(dots, sine().values[:, [0, 2]])
    assert len(fitted.plot_curves("v3", dots="none")[0].collections) == 1


def test_of_very_many_rows_some_are_shown_and_it_is_said():
    _, ax = plt.subplots()
    rows = pd.DataFrame({"x": np.arange(5000.0), "y": 1.0, "adjusted": 0.0})
    functions._draw_dots(ax, rows, "adjusted")
    assert texts(ax) == ["1667 of 5000 rows shown"]
    np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 0], np.arange(0.0, 5000.0, 3))


def test_panels_go_where_they_are_told(fitted):
    _, axes = plt.subplots(1, 2)
    assert list(fitted.plot_curves("v3", ax=axes)) == list(axes)
    assert fitted.plot_curves("v3", ax=axes[0], threshold=0.9)[0] is axes[0]
    with pytest.raises(ValueError, match="^every parent needs axes of its own; 2 parents, received 1$"):
        fitted.plot_curves("v3", ax=axes[0])
    with pytest.raises(ValueError, match="^dots must be one of adjusted, data, none; received 'rows'$"):
        fitted.plot_curves("v3", dots="rows")


def test_a_node_without_parents_says_so(fitted):
    (panel,) = fitted.plot_curves("v1")
    assert remark(panel) == "No parent of v1 is probable enough to be shown."
    assert remark(fitted.plot_curves("v3", parents=[])[0]) == "No parent of v3 was asked for."


def test_names_with_signs_of_formulas_are_written_as_they_are():
    post = drawn((r"x$\foo$", "b"), np.zeros((2, 2)), score=as_setting(gpn.scores.GP()))
    post.data = Dataset.read(pd.DataFrame(sine().values[:, :2], columns=list(post.names)))
    (panel,) = post.plot_curves(0)
    panel.figure.canvas.draw()
    assert remark(panel) == r"No parent of x$\foo$ is probable enough to be shown."


# Odd cases


LONG = [f"the concentration of phosphorylated protein number {k:02d} here"[:60].ljust(60, "x") for k in range(6)]
MIXED = ["a", "b", "c", *LONG[:2], "d", "e"]
UNICODE = ["β-catenin", "Ö₂", "蛋白质", "日本語", "$x_1$ & $", "tab\tname"]


def random_chain(names):
    return drawn(names, chain_of(*np.linspace(0.2, 1.0, len(names) - 1)))


CASES = {
    "one edge, always": lambda: drawn("ab", chain_of(1.0)),
    "one edge, at times": lambda: drawn("ab", chain_of(0.5)),
    "no edge": lambda: drawn("abcde", np.zeros((5, 5))),
    "one draw": lambda: drawn("abc", chain_of(1.0, 1.0), draws=1),
    "one chain": lambda: drawn("abc", chain_of(1.0, 0.5), chains=1),
    "long names": lambda: random_chain(LONG),
    "Unicode names": lambda: random_chain(UNICODE),
    "hundred nodes": lambda: random_chain([f"gene{k}" for k in range(100)]),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_cases_are_drawn_whole_and_without_warnings(case):
    post = CASES[case]()
    for name, ax in everything(post, truth=[(post.names[0], post.names[1])]).items():
        ax.figure.canvas.draw()
        assert _inside(ax.xaxis.label, ax.figure), name
        if name in ("network", "edges", "counts"):
            found = texts(ax) if name == "network" else [label.get_text() for label in ax.get_yticklabels()]
            written = {text.replace("\n", "").replace(" ", "") for text in found}
            for variable in post.names:
                assert lettering.drawable(variable).replace(" ", "") in written, (name, variable)
            ticks = [] if name == "network" else [*ax.get_yticklabels(), *ax.get_xticklabels()]
            assert [text for text in (*ax.texts, *ticks) if not _inside(text, ax.figure)] == []


def _inside(text, figure):
    box, page = text.get_window_extent(), figure.bbox
    return box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1 and box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1


def test_what_cannot_be_drawn_is_said():
    never = drawn("abc", np.zeros((3, 3)))
    assert legend_of(never.plot_network())[0] == "No two variables to join"
    assert remark(never.plot_running()) == "Every edge is in all draws or in none: no probability has to settle."
    assert remark(never.plot_rank()) == "The log score is the same in all draws: there is nothing to rank."
    single = drawn("abc", chain_of(1.0, 0.5), chains=1)
    assert remark(single.plot_rank()) == "Ranks compare two chains or more, of 4 draws or more: 1 x 20 drawn."


def test_names_without_glyphs_stay_apart():
    private = [chr(0xE000), chr(0xE001)]
    assert [lettering.drawable(name) for name in private] == ["[E000]", "[E001]"]
    assert lettering.drawable("α\tβ") == "α β"


@pytest.mark.parametrize("colour", palette.SERIES)
def test_colours_stand_out_on_white_and_on_black(colour):
    own = palette.luminance(colour) + 0.05
    assert 1.05 / own >= 3
    assert own / (palette.luminance("#111111") + 0.05) >= 3


def test_dark_styles_are_followed():
    with plt.style.context("dark_background"):
        post = drawn(NAMES, chain_of(1.0, 0.5, 0.2))
        boxes = [patch for patch in post.plot_network().patches if not patch.get_gid()]
        assert boxes[0].get_facecolor() == to_rgba("black")
        assert post.plot_edges().images[0].get_cmap()(0.0) == to_rgba("black")
        assert post.plot_edges().texts[-1].get_color() == "white"


@pytest.mark.parametrize("name", plots.__all__)
def test_every_picture_is_a_method_or_drawn_by_one_that_says_so(name):
    assert getattr(plots, name).__doc__
    method = Comparison.plot if name == "plot_elpd" else getattr(GraphPosterior, name)
    assert method is getattr(plots, name) or f"gpn_bayes.plots.{name}" in method.__doc__


@pytest.mark.parametrize("name", ["network", "edges", "trace", "rank", "running", "parent_counts"])
def test_pictures_are_only_drawn_in_axes(name):
    """As where the name of a variable is given, which none of these takes."""
    post = drawn(NAMES, chain_of(0.9, 0.5, 0.2))
    with pytest.raises(ValueError, match="^ax must be Axes of matplotlib; received 'a'$"):
        getattr(post, f"plot_{name}")(ax="a")


def test_only_posteriors_are_compared():
    post = drawn(NAMES, chain_of(0.9, 0.5, 0.2))
    rule = "^other must be a GraphPosterior or a BootstrapResult; received DataFrame$"
    for picture in (post.plot_comparison, post.plot_runs):
        with pytest.raises(ValueError, match=rule):
            picture(post.edge_probabilities())
