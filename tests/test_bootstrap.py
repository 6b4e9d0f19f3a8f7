"""The bootstrap against counting by hand, with learners that return what they are told to."""

import threading

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics, simulate
from gpn_bayes.estimators import PC, bootstrapping
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.bootstrapping import BootstrapResult
from gpn_bayes.posterior.graph_posterior import GraphQuestions

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

DATA = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")]), 80, random_seed=1)
QUIET = {"progressbar": False, "random_seed": 1}


class Told(GraphEstimator):
    """Returns a fixed graph; keeps the data that any copy of it was fitted to."""

    seen: list = []

    def __init__(self, graph=(), random_state=None):
        self.graph = graph
        self.random_state = random_state

    def fit(self, X, y=None):
        self.seen.append((X, self.random_state))
        self._keep_graph(graphs.as_adjacency(list(self.graph), X.names, acyclic=False), X.names, X)
        return self


class Interrupted(Told):
    """Is interrupted in its fifth fit, or its first."""

    def fit(self, X, y=None):
        if len(self.seen) == self.graph:
            raise KeyboardInterrupt
        self.seen.append(X)
        self._keep_graph(np.zeros((len(X.names),) * 2), X.names, X)
        return self


@pytest.fixture(autouse=True)
def nothing_seen():
    Told.seen.clear()


@pytest.fixture(scope="module")
def boot():
    return gpn.bootstrap(PC(alpha=0.1), DATA, n=40, **QUIET)


class TestCounts:
    def test_frequencies_are_those_of_the_graphs(self, boot):
        drawn = list(boot.graphs())
        assert len(drawn) == boot.resamples == 40
        stack = np.array([graphs.as_adjacency(graph, boot.names) for graph in drawn])
        table = boot.edge_probabilities()
        assert np.allclose(table, stack.mean(axis=0))
        assert table.index.tolist() == table.columns.tolist() == list("abcd")
        place = np.unravel_index(np.abs(stack.mean(axis=0) - 0.5).argmin(), (4, 4))
        some = boot.edge_probability(*(int(k) for k in place))
        assert some.value == stack[:, *place].mean()
        assert some.mcse == pytest.approx(stack[:, *place].std(ddof=1) / np.sqrt(40))
        assert some.ess == 40

    def test_comparisons_are_means_over_the_graphs(self, boot):
        truth = nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")])
        drawn = list(boot.graphs())
        for cpdag in (False, True):
            by_hand = np.mean([metrics.shd(graph, truth, cpdag) for graph in drawn])
            assert boot.expected_shd(truth, cpdag=cpdag).value == pytest.approx(by_hand)
        counts = [metrics.confusion(graph, truth) for graph in drawn]
        assert boot.expected_tp(truth).value == pytest.approx(np.mean([one.tp for one in counts]))
        assert boot.expected_fp(truth).value == pytest.approx(np.mean([one.fp for one in counts]))
        reached = np.mean([nx.has_path(graph, "a", "c") for graph in drawn])
        assert boot.path_probabilities().loc["a", "c"] == pytest.approx(reached)
        assert boot.probability(lambda graph: nx.has_path(graph, "a", "c")).value == pytest.approx(reached)

    def test_distinct_graphs_have_their_frequency(self, boot):
        shares = [graph.graph["frequency"] for graph in boot.graphs(distinct=True)]
        assert sum(shares) == pytest.approx(1)
        assert shares == sorted(shares, reverse=True)
        assert len(shares) < 40

    def test_it_answers_what_a_posterior_answers(self, boot):
        post = gpn.sample(DATA, "bge", draws=20, random_seed=1, progressbar=False)
        truth = nx.DiGraph([("a", "b")])
        questions = {
            "edge_probabilities": (), "edge_probability": ("a", "b"), "probability": (len,), "path_probabilities": (),
            "path_probability": ("a", "c"), "order_probability": ("a", "b"), "markov_blanket": ("a",),
            "cpdag_edges": (), "median_graph": (), "expected_shd": (truth,), "expected_tp": (truth,),
            "expected_fp": (truth,),
        }  # fmt: skip
        drawn_or_written = ("plot_", "to_", "export")
        assert questions.keys() == {
            name for name in vars(GraphQuestions) if name[0] != "_" and not name.startswith(drawn_or_written)
        }
        for name, asked in questions.items():
            ours, theirs = getattr(boot, name)(*asked), getattr(post, name)(*asked)
            assert type(ours) is type(theirs)
            if isinstance(ours, pd.DataFrame):
                assert ours.columns.tolist() == theirs.columns.tolist()
                assert ours.shape == theirs.shape

    def test_it_calls_itself_a_bootstrap(self, boot):
        assert repr(boot) == "<bootstrap frequencies of PC(alpha=0.1), 40 resamples>"
        table = boot.summary()
        assert table.attrs["title"] == "bootstrap frequencies of PC(alpha=0.1), 40 resamples"
        assert table.columns.tolist() == ["edge", "parent", "child", "frequency", "mcse", "status"]
        assert table.frequency.is_monotonic_decreasing
        assert len(table) == 12
        assert not isinstance(boot, gpn.GraphPosterior)

    def test_the_summary_has_the_numbers_of_each_edge(self, boot):
        for row in boot.summary().itertuples():
            asked = boot.edge_probability(row.parent, row.child)
            assert row.edge == f"{row.parent} -> {row.child}"
            assert (row.frequency, row.mcse) == pytest.approx((asked.value, asked.mcse), nan_ok=True)

    def test_constant_features_have_no_error(self):
        found = gpn.bootstrap(Told([("a", "b")]), DATA, n=3, **QUIET)
        table = found.summary().set_index("edge")
        assert table.loc["a -> b", "status"] == "always"
        assert table.loc["b -> a", "status"] == "never"
        assert table.mcse.isna().all()
        assert found.expected_shd(nx.DiGraph([("a", "b"), ("a", "c"), ("c", "d")])).value == 2

    def test_one_resample_has_no_error_either(self):
        assert np.isnan(gpn.bootstrap(Told(), DATA, n=1, **QUIET).edge_probability("a", "b").mcse)


class TestResamples:
    def test_rows_are_drawn_with_replacement(self):
        gpn.bootstrap(Told(), DATA, n=5, **QUIET)
        rows = {row.tobytes() for row in DATA.to_numpy()}
        for sample, _ in Told.seen:
            drawn = [row.tobytes() for row in sample.values]
            assert len(drawn) == 80
            assert 40 < len(set(drawn)) < 62
            assert set(drawn) <= rows
        assert len({sample.fingerprint for sample, _ in Told.seen}) == 5

    def test_every_copy_has_a_seed_of_its_own(self):
        learner = Told()
        gpn.bootstrap(learner, DATA, n=5, **QUIET)
        assert len({seed for _, seed in Told.seen}) == 5
        assert learner.random_state is None
        assert not hasattr(learner, "graph_")

    @pytest.mark.parametrize("learner", [PC(alpha=0.2), PC(test="hsic", null="permutation", permutations=20)], ids=repr)
    def test_the_result_follows_from_the_seed_alone(self, learner):
        data = DATA[:40]
        one, two, other = (
            gpn.bootstrap(learner, data, n=8, random_seed=seed, cores=cores, progressbar=False)
            for seed, cores in ((1, 1), (1, 3), (2, 1))
        )
        assert (one.parents == two.parents).all()
        assert (one.parents != other.parents).any()

    def test_levels_stay(self):
        table = pd.DataFrame({"a": list("xyzw") * 2, "b": [1, 2, 3, 4] * 2, "c": [True, False] * 4})
        gpn.bootstrap(Told(), table, n=10, **QUIET)
        assert all(sample.levels == (tuple("wxyz"), (1, 2, 3, 4), (False, True)) for sample, _ in Told.seen)
        assert any(len(np.unique(sample.values[:, 0])) < 4 for sample, _ in Told.seen)

    def test_samples_with_a_constant_column_are_drawn_again(self):
        table = pd.DataFrame({"a": np.arange(20) + 0.5, "b": [1.0] + [0.0] * 19})
        gpn.bootstrap(Told(), table, n=30, **QUIET)
        assert all(np.ptp(sample.values, axis=0).min() > 0 for sample, _ in Told.seen)

    def test_but_not_for_ever(self, monkeypatch):
        monkeypatch.setattr(bootstrapping, "MAX_REDRAWS", 1)
        table = pd.DataFrame({"a": np.arange(20) + 0.5, "b": [1.0] + [0.0] * 19})
        with pytest.raises(ValueError, match="^every column must vary in a resample; column 'b' was constant in 1 of"):
            gpn.bootstrap(Told(), table, n=30, **QUIET)

    def test_the_data_are_left_alone(self):
        before = DATA.copy()
        gpn.bootstrap(PC(), DATA, n=2, **QUIET)
        pd.testing.assert_frame_equal(DATA, before)


class TestUndirectedEdges:
    def test_each_way_counts_half(self):
        found = gpn.bootstrap(Told([("a", "b"), ("b", "a")]), DATA, n=200, **QUIET)
        there, back = found.edge_probability("a", "b").value, found.edge_probability("b", "a").value
        assert there + back == pytest.approx(1)
        assert abs(there - 0.5) < 4 * np.sqrt(0.25 / 200)
        edges = found.cpdag_edges().set_index(["parent", "child"])
        assert edges.loc[("a", "b"), "undirected"] == 1
        assert found.inconsistent == 0

    def test_classes_are_those_that_pc_found(self):
        """Drawn DAGs go back to the CPDAG that each resample gave."""
        found = gpn.bootstrap(PC(alpha=0.05), DATA, n=5, **QUIET)
        for rng, graph in zip(np.random.default_rng(1).spawn(5), found.graphs(), strict=True):
            sample = bootstrapping._resample(gpn.Dataset.read(DATA), rng)
            assert metrics.shd(PC(alpha=0.05).fit(sample).graph_, graph, cpdag=True) == 0

    def test_graphs_that_no_dag_agrees_with_are_counted(self):
        square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
        found = gpn.bootstrap(Told([*square, *(edge[::-1] for edge in square)]), DATA, n=6, **QUIET)
        assert found.inconsistent == 6
        assert all(graph.number_of_edges() == 4 and nx.is_directed_acyclic_graph(graph) for graph in found.graphs())


class TestInterruption:
    def test_what_is_done_is_kept(self):
        with pytest.warns(UserWarning, match="^the bootstrap was interrupted: 5 of 2000 resamples are kept$"):
            found = gpn.bootstrap(Interrupted(5), DATA, n=2000, cores=1, **QUIET)
        assert found.resamples == 5

    def test_nothing_is_kept_of_nothing(self):
        with pytest.raises(KeyboardInterrupt):
            gpn.bootstrap(Interrupted(0), DATA, n=3, cores=1, **QUIET)

    def test_no_thread_is_left(self):
        with pytest.warns(UserWarning, match="interrupted"):
            gpn.bootstrap(Interrupted(2), DATA, n=2000, cores=2, **QUIET)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("bootstrap")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pc", DATA), "^the estimator must be a learner of gpn_bayes.estimators; received 'pc'$"),
        ((Told(), DATA, 0), "^n must be a whole number, 1 or more; received 0$"),
        ((Told(), DATA, 2.5), "^n must be a whole number, 1 or more; received 2.5$"),
        ((Told(), DATA, 2, None, 0), "^cores must be a whole number, 1 or more; received 0$"),
        (
            (Told(), gpn.SufficientStatistics(9, [0, 0], np.eye(2), ["a", "b"])),
            "^a bootstrap needs the rows; received SufficientStatistics$",
        ),
        ((PC(alpha=2), DATA), "^alpha must lie between 0 and 1; received 2$"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        gpn.bootstrap(*arguments, progressbar=False)


def test_progress_is_shown_once(capsys, progress_at_once):
    gpn.bootstrap(PC(test="hsic", progressbar=True), DATA[:20], n=2, random_seed=1)
    shown = capsys.readouterr().err
    assert "Bootstrap" in shown
    assert "Given" not in shown


def test_any_result_type_is_the_documented_one():
    assert isinstance(gpn.bootstrap(Told(), DATA, n=2, **QUIET), BootstrapResult)
