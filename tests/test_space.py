"""The search space: every way to ask for it, what the methods find, and what is refused."""

import warnings
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, simulate
from gpn_bayes.candidates.costs import filled_up_to
from gpn_bayes.candidates.methods import ALPHA, METHODS, POOL, SpaceContext
from gpn_bayes.candidates.parent_space import with_parents_from_outside
from gpn_bayes.candidates.pc_skeleton import dual_pc_skeleton, pc_skeleton
from gpn_bayes.candidates.screening import distance_correlations, forward_selection, strongest
from gpn_bayes.candidates.spaces import (
    DEFAULT_CANDIDATES,
    NotNamed,
    SpaceReport,
    candidate_lists,
    find_candidates,
    read_space,
)
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.mcmc.tables import MAX_TABULATED
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.scores import BGe, GraphPrior
from gpn_bayes.scores.cache import ScoreCache
from tests.test_screening import SlowScore

pytestmark = pytest.mark.more("samples large networks")

N = 25
NAMES = [f"v{i + 1}" for i in range(N)]
DAG = simulate.random_dag(N, edges_per_node=1.5, random_seed=1)
DATA = simulate.linear(DAG, 400, random_seed=2)
OFF = ~np.eye(N, dtype=bool)


def context_of(data=DATA, score=None):
    checked = data if isinstance(data, SufficientStatistics) else Dataset.read(data)
    return SpaceContext(checked, ScoreCache((score or BGe()).bind(checked)), progressbar=False)


def found_by(candidates, prior=None, data=DATA, score=None, **settings):
    context = context_of(data, score)
    space = read_space(candidates, prior or GraphPrior(NAMES), None, context.data, context.store.scorer, **settings)
    return find_candidates(space, context)


def as_sets(lists):
    return [set(own) for own in lists]


def expected_of(method):
    correlation = np.corrcoef(DATA.to_numpy(), rowvar=False)
    if method in ("pc", "dual-pc"):
        skeleton = {"pc": pc_skeleton, "dual-pc": dual_pc_skeleton}[method](correlation, len(DATA), ALPHA)
        return strongest(skeleton.strengths, skeleton.adjacent, DEFAULT_CANDIDATES)
    if method == "greedy":
        pools = [[j for j in range(N) if j != i] for i in range(N)]
        return forward_selection(ScoreCache(BGe().bind(DATA)), pools, limit=DEFAULT_CANDIDATES, progressbar=False)
    strengths = np.abs(correlation) if method == "correlation" else distance_correlations(DATA.to_numpy())
    return strongest(strengths, OFF, DEFAULT_CANDIDATES)


# What the methods find


@pytest.mark.parametrize("method", METHODS)
def test_methods_find_what_they_say(method):
    found = found_by(method)
    assert found.lists == [sorted(own) for own in expected_of(method)]
    assert found.report.method == method
    assert found.report.sizes == tuple(map(len, found.lists))
    assert candidate_lists(method, GraphPrior(NAMES), context=context_of()) == found.lists


@pytest.mark.parametrize("candidates", ["pc+greedy", " pc + greedy", ["pc", "greedy"], ("greedy", "pc", "pc")], ids=str)
def test_several_methods_give_their_union(candidates):
    found = found_by(candidates)
    union = [set(a) | set(b) for a, b in zip(expected_of("pc"), expected_of("greedy"), strict=True)]
    for name, own, both in zip(NAMES, as_sets(found.lists), union, strict=True):
        assert own <= both
        assert len(both) - len(own) == found.report.cut.get(name, 0) == max(len(both) - DEFAULT_CANDIDATES, 0)
    assert sum(found.report.cut.values()) < 3
    assert as_sets(found_by("pc").lists) != as_sets(found.lists) != as_sets(found_by("greedy").lists)


def test_many_candidates_are_cut_to_the_strongest_of_each_method():
    found = found_by(["correlation", "distance-correlation"])
    first, second = expected_of("correlation"), expected_of("distance-correlation")
    for i, name in enumerate(NAMES):
        union = list(dict.fromkeys(j for pair in zip(first[i], second[i], strict=True) for j in pair))
        assert found.lists[i] == sorted(union[:DEFAULT_CANDIDATES])
        assert found.report.cut.get(name, 0) == len(union) - DEFAULT_CANDIDATES
    assert found.report.cut


def method_for(n, score=None, max_parents=None, **settings):
    """Return how the candidates of the first n variables come about by default."""
    context = context_of(DATA[NAMES[:n]], score)
    space = read_space(None, GraphPrior(NAMES[:n]), max_parents, context.data, context.store.scorer, **settings)
    assert (None in space.known) == (space.source != "all others") == space.estimated
    return space.source


def test_by_default_all_others_are_candidates_while_a_step_stays_cheap():
    assert [method_for(n) for n in (3, MAX_TABULATED + 1)] == ["all others"] * 2
    assert [method_for(n) for n in (MAX_TABULATED + 2, MAX_CANDIDATES + 1, N)] == ["pc+greedy"] * 3
    assert [method_for(n, exact=True) for n in (MAX_TABULATED + 2, 17)] == ["all others"] * 2


def test_slow_scores_keep_all_others_as_long_as_quick_ones():
    assert [method_for(n, SlowScore(), max_parents=5) for n in (3, MAX_TABULATED + 1)] == ["all others"] * 2
    assert [method_for(n, SlowScore(), max_parents=5) for n in (MAX_TABULATED + 2, 20, N)] == ["greedy"] * 3
    for n, sampler in ((15, "exact"), (16, "partition")):
        assert (
            prepare(DATA[NAMES[:n]], RunOptions(SlowScore(), space=gpn.Space(max_parents=5))).plan.sampler.name
            == sampler
        )


def test_forward_selection_under_slow_scores_stops_at_the_largest_number_of_parents():
    """More than two are worth it for some variables, as the same score shows where it has a closed form."""
    found = {}
    for score in (SlowScore(), BGe()):
        context = context_of(DATA, score)
        space = read_space("greedy", GraphPrior(NAMES), 2, context.data, context.store.scorer)
        found[score.name] = find_candidates(space, context).lists
    slow, quick = found.values()
    assert max(map(len, slow)) == 2 < max(map(len, quick))


@pytest.mark.parametrize(
    ("sampler", "n", "chosen"),
    [
        ("auto", 16, ("exact", "all others")), ("exact", 17, ("exact", "all others")),
        ("auto", 17, ("partition", "pc+greedy")), ("partition", 15, ("partition", "all others")),
        ("partition", 16, ("partition", "pc+greedy")), ("order", 17, ("order", "pc+greedy")),
    ],
)  # fmt: skip
def test_the_sampler_decides_on_the_space(sampler, n, chosen):
    run = prepare(DATA[NAMES[:n]], RunOptions(sampler=sampler))
    assert (run.settings["sampler"], run.space.source) == chosen
    assert run.outside == (chosen[1] != "all others")


def test_what_is_found_by_default_is_filled_up_by_the_score():
    found = found_by(None)
    size = filled_up_to(N, BGe().bind(DATA))
    assert found.report.sizes == (size,) * N
    assert size > max(map(len, found_by("pc+greedy").lists))
    pools = [[j for j in range(N) if j != i] for i in range(N)]
    store = ScoreCache(BGe().bind(DATA))
    ranked = forward_selection(store, pools, limit=size, at_least=size, progressbar=False)
    for own, best, favoured in zip(found.lists, ranked, found_by("pc+greedy").lists, strict=True):
        assert set(favoured) <= set(own)
        # The rest are the best by the score, as far as there is room.
        assert set(own) - set(favoured) <= set(best)


def test_a_node_with_few_allowed_parents_keeps_them_all():
    """Tiers leave the first variables with few others, which no method needs to choose from."""
    prior = GraphPrior(NAMES, tiers=[NAMES[:6], NAMES[6:]])
    lists = found_by(None, prior).lists
    assert [lists[i] for i in range(6)] == [[j for j in range(6) if j != i] for i in range(6)]
    assert {len(own) for own in lists[6:]} == {filled_up_to(N, BGe().bind(DATA))}


def test_the_methods_find_the_true_parents():
    lists = found_by("pc+greedy").lists
    truth = graphs.as_adjacency(DAG, NAMES)
    assert np.mean([i in lists[j] for i, j in np.argwhere(truth)]) > 0.97
    # Negative control: the lists are nowhere near holding everyone.
    assert np.mean(list(map(len, lists))) < N / 2


# Variables that aren't named


def test_variables_not_named_have_their_default():
    few = GraphPrior(NAMES[:5])
    found = found_by({"v2": ["v1"], "v3": []}, few, DATA[NAMES[:5]])
    assert found.lists == [[1, 2, 3, 4], [0], [], [0, 1, 2, 4], [0, 1, 2, 3]]
    assert found.report.method == "given"
    assert found.report.not_named == NotNamed(3, 5, "all others")
    assert found.report.parameters["not_named"] == 3 and found.report.parameters["not_named_method"] == "all others"
    assert str(found.report).endswith("; 3 of 5 variables aren't named; their candidates: all others")
    assert found_by({name: ["v1"] if name != "v1" else [] for name in NAMES[:5]}, few).report.not_named is None


def test_variables_not_named_are_found_where_all_others_are_too_many():
    named = {"v2": ["v1"], "v3": []}
    found, default = found_by(named), found_by(None)
    assert found.lists[1:3] == [[0], []]
    assert found.lists[3:] == default.lists[3:] and found.lists[0] == default.lists[0]
    assert found.report.not_named == NotNamed(N - 2, N, "pc+greedy")
    assert found.report.cut.keys().isdisjoint(named)


def test_a_graph_leaves_no_default_to_anyone():
    found = found_by(nx.DiGraph([("v1", "v2")]))
    assert found.lists == [[], [0], *[[]] * (N - 2)]
    assert found.report.not_named == NotNamed(N - 2, N, "none")
    whole = nx.DiGraph([("v1", "v2")])
    whole.add_nodes_from(NAMES)
    assert found_by(whole).report.not_named is None


def test_only_variables_not_named_take_parents_from_outside_unless_asked():
    named = {"v2": ["v1"], "v3": []}
    run = prepare(DATA, RunOptions(space=gpn.Space(candidates=named)))
    assert run.outside and run.closed == {1, 2} and run.settings["plus_one"] == "not named"
    asked = prepare(DATA, RunOptions(space=gpn.Space(candidates=named, plus_one=True)))
    assert asked.outside and not asked.closed and asked.settings["plus_one"] is True
    assert run.key != asked.key
    lists = found_by(named).lists
    space = with_parents_from_outside(lists, run.prior, None, True, run.closed)
    assert [space.outside[1], space.outside[2]] == [[], []]
    assert all(len(own) + len(others) == N - 1 for own, others in zip(lists[3:], space.outside[3:], strict=True))


def test_sampling_keeps_to_what_was_named():
    named = {"v2": ["v1"], "v3": []}
    post = quick(named, expand=False, max_parents=2)
    edges = post.edge_probabilities()
    assert edges["v3"].sum() == 0 and edges["v2"].drop("v1").sum() == 0
    assert (edges.drop(columns=["v2", "v3"]) > 0).any().sum() > N / 2
    found_candidates = post.settings["candidates"]
    assert (
        found_candidates["not_named"] == N - 2
        and found_candidates["not_named_method"] == "pc+greedy"
        and found_candidates["plus_one"] is True
    )


@pytest.mark.parametrize("k", [1, 3, np.int64(5)])
def test_a_number_is_the_longest_list_of_the_default_method(k):
    found = found_by(k)
    assert max(map(len, found.lists)) == k
    assert found.report.method == "pc+greedy"
    assert found.report.cut
    full = found_by(None).lists
    # Forward selection and the tests rank; what is kept was found without the limit too.
    assert all(set(own) <= set(whole) for own, whole in zip(found.lists, full, strict=True))


def test_a_number_that_holds_all_others_means_them():
    found = found_by(4, GraphPrior(NAMES[:5]), DATA[NAMES[:5]])
    assert found.report.method == "all others"
    assert found.lists == [[j for j in range(5) if j != i] for i in range(5)]


def test_slow_scores_choose_among_the_nearest():
    found = found_by(None, score=SlowScore())
    assert found.report.method == "greedy"
    pools = strongest(distance_correlations(DATA.to_numpy()), OFF, POOL)
    store = ScoreCache(BGe().bind(DATA))
    expected = forward_selection(store, pools, limit=DEFAULT_CANDIDATES, progressbar=False)
    assert as_sets(found.lists) == as_sets(expected)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "distance-correlation"])
def test_statistics_are_enough_for_most_methods(method):
    statistics = SufficientStatistics.of(Dataset.read(DATA))
    assert found_by(method, data=statistics).lists == found_by(method).lists
    assert found_by(method, data=statistics, score=SlowScore()).lists


def test_text_is_left_to_the_score():
    table = DATA.assign(v1=np.where(DATA["v1"] > 0, "high", "low"))
    checked = Dataset.read(table)
    # No score here reads text yet; one that does brings its own forward selection.
    space = read_space(None, GraphPrior(NAMES), None, checked, BGe().bind(DATA))
    assert space.methods == ("greedy",)
    for method in ("pc", "distance-correlation"):
        with pytest.raises(ValueError, match=f"^the method '{method}' needs numbers; column 'v1' holds text such as"):
            read_space(method, GraphPrior(NAMES), None, checked, BGe().bind(DATA))


@pytest.mark.parametrize("candidates", [*METHODS, None, 2, "pc+correlation"], ids=str)
def test_required_edges_are_always_there_and_forbidden_ones_never(candidates):
    truth = [(a, b) for a, b in DAG.edges][:5]
    required = [("v1", name) for name in NAMES[1:] if (name, "v1") not in truth and ("v1", name) not in truth]
    required = [edge for edge in required if not nx.has_path(DAG, edge[1], "v1")]
    prior = GraphPrior(NAMES, required=required, forbidden=truth)
    found = found_by(candidates, prior)
    for j, own in enumerate(found.lists):
        assert set(np.flatnonzero(prior.required[:, j])) <= set(own)
        assert not set(np.flatnonzero(prior.forbidden[:, j])) & set(own)
        assert own == sorted(set(own))
        assert len(own) <= {2: 2, None: MAX_TABULATED}.get(candidates, DEFAULT_CANDIDATES)
    assert len(required) > 5


def test_required_edges_stay_beyond_the_limit():
    prior = GraphPrior(NAMES, required=[(name, "v1") for name in NAMES[1:6]])
    assert found_by(2, prior).lists[0] == [1, 2, 3, 4, 5]


# Estimators


def estimator(**results):
    return SimpleNamespace(**results)


WEIGHTS = np.array([[0, 0.5, 0, 0], [0, 0, -2.0, 0], [0, 0, 0, 0], [0, 1e-9, 0, 0]])
FOUR = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "fitted",
    [
        estimator(adjacency_=WEIGHTS),
        estimator(adjacency_=(WEIGHTS != 0).astype(np.int8)),
        estimator(adjacency_=pd.DataFrame(WEIGHTS, FOUR, FOUR).loc[::-1, ["b", "d", "a", "c"]]),
        estimator(graph_=graphs.to_networkx(WEIGHTS != 0, FOUR)),
        estimator(graph_=graphs.to_networkx(WEIGHTS != 0, FOUR), adjacency_="not looked at"),
        estimator(graph_=graphs.to_networkx(WEIGHTS != 0, FOUR).to_undirected()),
    ],
    ids=["weights", "zeros and ones", "table", "graph", "both", "undirected"],
)
def test_both_ends_of_an_estimated_edge_are_candidates(fitted):
    assert candidate_lists(fitted, GraphPrior(FOUR)) == [[1], [0, 2, 3], [1], [1]]
    prior = GraphPrior(FOUR, required=[("a", "d")], forbidden=[("b", "a")])
    assert candidate_lists(fitted, prior) == [[], [0, 2, 3], [1], [0, 1]]


def test_hubs_of_an_estimate_keep_the_heaviest_and_parents_before_children():
    weights = np.zeros((N, N))
    weights[1:9, 0] = np.linspace(1, 2, 8)
    weights[0, 9:] = np.linspace(3, 4, 16)
    found = found_by(estimator(adjacency_=weights))
    # All eight parents, and the four heaviest of sixteen children.
    assert found.lists[0] == [*range(1, 9), *range(21, 25)]
    assert found.report == SpaceReport("estimate by SimpleNamespace", (12, *[1] * 24), {"v1": 12})


# What is refused


class Unfitted:
    def fit(self, data):
        return self


OTHER = "an estimator must be over the data's variables; for SimpleNamespace,"
LIST = f"methods to find candidates are {', '.join(METHODS)}; received"
COUNT = f"the number of candidates must be a whole number from 1 to {MAX_CANDIDATES}; received"
KINDS = (
    "candidates must be a number, methods, a mapping of each variable to its candidate parents, a DiGraph or a fitted "
    "estimator; received"
)
NONE_LEFT = "candidates must leave at least one edge possible; these leave none"
REFUSED = [
    ("lasso", f"{LIST} 'lasso'"),
    ("pc+", f"{LIST} ''"),
    (["pc", "ges"], f"{LIST} 'ges'"),
    (["pc", 3], f"{LIST} 3"),
    ([["v1"], ["v2"]], f"{LIST} ['v1']"),
    ([], f"{LIST} none"),
    (0, f"{COUNT} 0"),
    (-3, f"{COUNT} -3"),
    (MAX_CANDIDATES + 1, f"{COUNT} 21"),
    (True, f"{COUNT} True"),
    (2.5, f"{KINDS} float"),
    ({"v1", "v2"}, f"{KINDS} set"),
    (nx.Graph([("v1", "v2")]), f"{KINDS} Graph"),
    ({"v1": ["x9"]}, "every node must be one of the variables; 'x9' is not"),
    ({"x9": ["v1"]}, "every node must be one of the variables; 'x9' is not"),
    (nx.DiGraph([("v1", "x9")]), "every node must be one of the variables; 'x9' is not"),
    ({"v1": ["v1"]}, "no variable can be its own candidate parent; 'v1' is"),
    (nx.DiGraph([("v1", "v1")]), "no node may be its own parent; 'v1' is"),
    (
        {"v1": NAMES[1:]},
        "at most 20 candidate parents per node are supported; 'v1' has 24: name fewer with "
        "space=gpn.Space(candidates={child: [parents]})",
    ),
    (dict.fromkeys(NAMES, ()), NONE_LEFT),
    (nx.empty_graph(NAMES, nx.DiGraph), NONE_LEFT),
    (estimator(adjacency_=np.zeros((N, N))), NONE_LEFT),
    (Unfitted(), "an estimator must be fitted to give candidates; Unfitted isn't: call fit first"),
    (estimator(graph_=None), "an estimator must be fitted to give candidates; SimpleNamespace isn't: call fit first"),
    (estimator(graph_=nx.path_graph([*NAMES, "x9"], nx.DiGraph)), f"{OTHER} 'x9' is in only one of the two"),
    (estimator(graph_=nx.path_graph(NAMES[:-1], nx.DiGraph)), f"{OTHER} 'v25' is in only one of the two"),
    (
        estimator(adjacency_=pd.DataFrame(np.eye(N), [*NAMES[1:], "x9"], NAMES)),
        f"{OTHER} 'v1' is in only one of the two",
    ),
    (
        estimator(adjacency_=WEIGHTS),
        "an estimator must be over the data's variables; SimpleNamespace has a matrix of shape (4, 4) for 25 of them",
    ),
    (
        estimator(adjacency_=np.full((N, N), np.nan)),
        "an estimator's weights must be finite; SimpleNamespace has NaN or infinity",
    ),
    (estimator(adjacency_=np.diag([0, 0, -1, *[0] * 22])), "no variable can be its own candidate parent; 'v3' is"),
]


@pytest.mark.parametrize(("candidates", "message"), REFUSED, ids=[message[-40:] for _, message in REFUSED])
def test_bad_candidates_are_refused_before_anything_is_computed(candidates, message):
    with pytest.raises(ValueError) as error:
        prepare(DATA, RunOptions(space=gpn.Space(candidates=candidates)))
    assert str(error.value) == message


def test_forbidding_all_that_was_named_leaves_nothing():
    with pytest.raises(ValueError, match=f"^{NONE_LEFT}$"):
        candidate_lists(nx.DiGraph([("v2", "v1")]), GraphPrior(NAMES, forbidden=[("v2", "v1")]))


def test_too_many_required_edges_are_refused():
    prior = GraphPrior(NAMES, required=[(name, "v25") for name in NAMES[:21]])
    message = "at most 20 candidate parents per node are supported; 'v25' has 21 required ones"
    for candidates in ("correlation", {"v1": ["v2"]}):
        with pytest.raises(ValueError) as error:
            prepare(DATA, RunOptions(prior=prior, space=gpn.Space(candidates=candidates)))
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("data", "candidates", "message"),
    [
        (
            SufficientStatistics.of(Dataset.read(DATA)),
            "greedy+distance-correlation",
            "distance correlations need the rows; received SufficientStatistics",
        ),
        (
            DATA[:26],
            "dual-pc",
            "the dual PC algorithm needs two rows more than variables; received 26 rows of 25 variables: use 'pc'",
        ),
        (DATA[:3], "pc", "the method 'pc' needs at least 4 rows; received 3"),
        (DATA[:3], "distance-correlation", "the method 'distance-correlation' needs at least 4 rows; received 3"),
    ],
    ids=["rows", "few rows for complements", "few rows", "few rows for distances"],
)
def test_methods_that_the_data_do_not_allow_are_refused(data, candidates, message):
    with pytest.raises(ValueError) as error:
        prepare(data, RunOptions(space=gpn.Space(candidates=candidates)))
    assert str(error.value) == message


def test_methods_need_data():
    with pytest.raises(ValueError, match="^candidates must be named where there are no data; received 'pc'$"):
        candidate_lists("pc", GraphPrior(NAMES))
    context = context_of()
    space = read_space("pc", GraphPrior(NAMES), None, context.data, context.store.scorer)
    with pytest.raises(ValueError, match="^the methods pc need data; received none$"):
        find_candidates(space)


def test_the_report_tells_it_in_a_line():
    assert str(SpaceReport("all others", (2, 2, 2), {})) == "candidate parents by all others: 2.0 a node, at most 2"
    assert str(SpaceReport("pc", (1, 12), {"a": 2, "b": 1})) == (
        "candidate parents by pc: 6.5 a node, at most 12; 3 were left out at 2 nodes"
    )


# The whole road


def quick(candidates, data=DATA, cache=None, **asked):
    space = gpn.Space(candidates=candidates, **asked)
    return gpn.sample(
        data, space=space, draws=20, tune=20, chains=2, random_seed=1, cache=cache, progressbar=False
    )  # fmt: skip


@pytest.mark.parametrize(
    "candidates", ["pc", 8, ["pc", "greedy"], None, estimator(graph_=DAG)], ids=["pc", "8", "two", "none", "estimate"]
)
def test_sampling_stays_within_the_space(candidates, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        post = quick(candidates, plus_one=False)
    # Lists that are filled up are shorter for a short run: 2 chains of 40 draws, ten steps a variable before each.
    lists = found_by(candidates, steps=2 * 40 * 10 * N).lists
    assert post.settings["candidates"]["sizes"] == list(map(len, lists))
    for graph in post.graphs():
        for parent, child in graph.edges:
            assert NAMES.index(parent) in lists[NAMES.index(child)]
    post.save(tmp_path / "run.nc")
    assert gpn.load(tmp_path / "run.nc").settings["candidates"] == post.settings["candidates"]


def test_runs_are_told_apart_by_what_was_asked_for():
    keys = [
        prepare(DATA, RunOptions(space=gpn.Space(candidates=candidates), random_seed=1)).key
        for candidates in (None, 8, "pc", "greedy", {"v1": ["v2"]}, {"v1": ["v3"]})
    ]
    assert len(set(keys)) == len(keys)
    assert keys[2] == prepare(DATA, RunOptions(space=gpn.Space(candidates=["pc"]), random_seed=1)).key


def test_a_run_that_found_its_space_goes_on_where_it_stopped(tmp_path, monkeypatch):
    from gpn_bayes.sampling.checkpoint import CheckpointStore

    # From a cache as well: single scores and whole tables differ in the last digit.
    some = DATA[NAMES[:12]]
    whole = quick("pc+greedy", some, cache=tmp_path / "whole.sqlite")
    save, seen = CheckpointStore.save_block, []

    def save_block(self, *arguments):
        save(self, *arguments)
        seen.append(arguments)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save_block", save_block)
        with pytest.raises(RuntimeError, match="killed"):
            quick("pc+greedy", some, cache=tmp_path / "run.sqlite")
    assert seen
    resumed = quick("pc+greedy", some, cache=tmp_path / "run.sqlite")
    np.testing.assert_array_equal(resumed.parents, whole.parents)
