"""PC against d-separation in all small DAGs, against lists of DAGs, and against tests that contradict each other."""

import warnings
import zlib
from functools import lru_cache

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics, simulate
from gpn_bayes.estimators import PC
from gpn_bayes.estimators.independence import HSIC, FisherZ
from gpn_bayes.estimators.pc_orientation import COLLIDER_RULES

ROWS = np.random.default_rng(0).normal(size=(5, 8))
# Pairs of tables and tests in which no DAG may agree with the result.
no_dag_is_fine = pytest.mark.filterwarnings("ignore:no DAG has these edges")


def oracle(dag):
    """Return the test that knows the DAG behind the data: its p-values are zero and one."""
    names = [f"v{i + 1}" for i in range(len(dag))]
    graph = graphs.to_networkx(dag, names)

    @lru_cache(None)
    def separated(x, y, given):
        return float(nx.is_d_separator(graph, {x}, {y}, set(given)))

    return lambda table, x, y, given: separated(x, y, given)


def random_dag(rng, n):
    order = rng.permutation(n)
    return np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.7), 1)[np.ix_(order, order)].astype(np.int8)


class TestWithAnOracle:
    def test_every_equivalence_class_of_four_nodes_is_found(self):
        dags = graphs.enumerate_dags(4)
        classes = {graph.tobytes(): (dag, graph) for dag, graph in zip(dags, graphs.cpdag(dags), strict=True)}
        assert len(classes) == 185
        for k, (dag, graph) in enumerate(classes.values()):
            found = PC(test=oracle(dag), colliders=COLLIDER_RULES[k % 3]).fit(ROWS[:, :4])
            assert (found.cpdag_ == graph).all()
            assert found.ambiguous_ == found.conflicts_ == found.undecided_ == []

    @pytest.mark.parametrize("rule", COLLIDER_RULES)
    def test_and_those_of_larger_dags(self, rule):
        rng = np.random.default_rng(1)
        for _ in range(12):
            dag = random_dag(rng, 7)
            found = PC(test=oracle(dag), colliders=rule).fit(ROWS[:, :7])
            assert (found.cpdag_ == graphs.cpdag(dag)).all()
            assert (graphs.cpdag(graphs.as_adjacency(found.dag_, found.feature_names_in_)) == found.cpdag_).all()
            assert metrics.shd(found.graph_, graphs.to_networkx(dag, found.feature_names_in_), cpdag=True) == 0

    def test_separating_sets_separate(self):
        dag = random_dag(np.random.default_rng(2), 6)
        found = PC(test=oracle(dag)).fit(ROWS[:, :6])
        assert len(found.separating_sets_) == 15 - np.triu(dag | dag.T).sum()
        for (x, y), given in found.separating_sets_.items():
            assert oracle(dag)(None, x, y, given) == 1

    def test_what_is_known_directs_what_all_agreeing_dags_have(self):
        rng = np.random.default_rng(3)
        dags = graphs.enumerate_dags(4)
        classes = graphs.cpdag(dags)
        names = [f"v{i + 1}" for i in range(4)]
        for _ in range(40):
            dag = random_dag(rng, 4)
            tier = rng.integers(2, size=4)
            tier[graphs.topological_order(dag)] = np.sort(tier)
            edges = np.argwhere(dag)
            required = [tuple(names[k] for k in edge) for edge in edges[: rng.integers(2)]]
            tiers = dict(zip(names, tier.tolist(), strict=True))
            found = PC(test=oracle(dag), required=required, tiers=tiers).fit(ROWS[:, :4])
            agreeing = (classes == graphs.cpdag(dag)).all(axis=(1, 2))
            agreeing &= ~(dags & (tier[:, None] > tier)).any(axis=(1, 2))
            for parent, child in edges[: len(required)]:
                agreeing &= dags[:, parent, child] == 1
            assert (found.cpdag_ == dags[agreeing].max(axis=0)).all()

    def test_a_limit_leaves_more_edges(self):
        dag = graphs.as_adjacency([(0, 1), (0, 2), (1, 3), (2, 3)], range(4))
        assert PC(test=oracle(dag), max_conditioning=1).fit(ROWS[:, :4]).p_values_[0, 3] == 0
        assert PC(test=oracle(dag)).fit(ROWS[:, :4]).separating_sets_["v1", "v4"] == ("v2", "v3")


class TestKnowledge:
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 300, random_seed=1)

    def test_without_any_a_chain_has_no_direction(self):
        assert (PC().fit(self.data).cpdag_ == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]).all()

    def test_required_edges_are_there_whatever_the_tests_say(self):
        found = PC(required=[("c", "a")]).fit(self.data)
        assert found.graph_.has_edge("c", "a")
        assert not found.graph_.has_edge("a", "c")
        assert np.isnan(found.p_values_[0, 2])

    def test_forbidden_edges_are_not(self):
        both = PC(forbidden=[("a", "b"), ("b", "a")]).fit(self.data)
        assert not both.graph_.has_edge("a", "b")
        assert not both.graph_.has_edge("b", "a")
        one = PC(forbidden=[("b", "a")]).fit(self.data)
        assert sorted(one.graph_.edges) == [("a", "b"), ("b", "c")]

    def test_contradictions_are_refused(self):
        with pytest.raises(ValueError, match="^an edge can't be required and forbidden; a -> b is both$"):
            PC(required=[("a", "b")], forbidden=[("a", "b")]).fit(self.data)

    def test_a_collider_against_what_is_known_is_left_out_and_told(self):
        data = simulate.linear(nx.DiGraph([("a", "c"), ("b", "c")]), 300, random_seed=2)
        found = PC(required=[("c", "a")]).fit(data)
        assert found.conflicts_ == [("a", "c", "b")]
        assert found.graph_.has_edge("c", "a")
        assert not found.graph_.has_edge("a", "c")


def contradictory(seed):
    """Return a test whose answers have nothing to do with each other; they depend on the names alone."""

    def p_value(table, x, y, given):
        key = " ".join([str(seed), *sorted([x, y]), "|", *sorted(given)])
        return (zlib.crc32(key.encode()) % 100_003) / 100_003

    return p_value


@no_dag_is_fine
class TestContradictoryTests:
    table = pd.DataFrame(ROWS[:, :6], columns=list("abcdef"))

    @pytest.mark.parametrize("rule", COLLIDER_RULES)
    def test_there_is_either_a_class_or_none(self, rule):
        without, reported = 0, 0
        for seed in range(30):
            found = PC(alpha=0.95, test=contradictory(seed), colliders=rule).fit(self.table)
            reported += bool(found.conflicts_ or found.ambiguous_ or found.undecided_)
            if found.dag_ is None:
                without += 1
                with pytest.raises(ValueError, match="^only DAGs have a score; no DAG agrees with the edges and coll"):
                    found.log_score("bge", self.table)
            else:
                assert (graphs.cpdag(graphs.as_adjacency(found.dag_, list("abcdef"))) == found.cpdag_).all()
        assert 0 < without < 30
        assert reported > 5

    def test_the_order_of_the_columns_does_not_matter(self):
        rng = np.random.default_rng(4)
        for seed in range(15):
            order = list(rng.permutation(list("abcdef")))
            one = PC(alpha=0.95, test=contradictory(seed)).fit(self.table)
            other = PC(alpha=0.95, test=contradictory(seed)).fit(self.table[order])
            assert set(one.graph_.edges) == set(other.graph_.edges)
            assert (one.dag_ is None) == (other.dag_ is None)


@pytest.mark.parametrize(("p_first", "p_second", "winner"), [(0.3, 0.6, 1), (0.6, 0.3, 0)])
def test_of_colliders_that_contradict_each_other_the_one_with_the_larger_p_value_stays(p_first, p_second, winner):
    """v1 - v2 - v3 - v4, where v2 and v3 can't both be colliders."""
    p_values = {("v1", "v3"): p_first, ("v2", "v4"): p_second, ("v1", "v4"): 0.9}

    def test(table, x, y, given):
        pair = tuple(sorted((x, y)))
        return 0.0 if given and pair != ("v1", "v4") else p_values.get(pair, 0.0)

    found = PC(test=test).fit(ROWS[:, :4])
    triples = [("v1", "v2", "v3"), ("v2", "v3", "v4")]
    x, z, y = triples[winner]
    assert {(x, z), (y, z)} <= set(found.graph_.edges)
    assert (z, x) not in found.graph_.edges and (z, y) not in found.graph_.edges
    assert found.conflicts_ == [triples[1 - winner]]


def test_a_result_without_a_dag_is_told():
    square = {frozenset("ac"), frozenset("bd")}

    def p_value(table, x, y, given):
        return float(frozenset([x, y]) in square and len(given) == 2)

    table = pd.DataFrame(ROWS[:, :4], columns=list("abcd"))
    with pytest.warns(UserWarning, match="^no DAG has these edges and colliders: the tests contradict each other"):
        found = PC(test=p_value).fit(table)
    assert found.dag_ is None
    assert found.graph_.number_of_edges() == 8


@pytest.mark.parametrize("test", ["fisher-z", "hsic", "distance-correlation"])
def test_columns_may_stand_in_any_order(test):
    data = simulate.fourier(simulate.random_dag(6, p=0.4, random_seed=3), 80, 0.5, random_seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one, other = (PC(test=test).fit(table) for table in (data, data[data.columns[::-1]]))
    assert set(one.graph_.edges) == set(other.graph_.edges)
    assert np.allclose(one.p_values_, other.p_values_[::-1, ::-1], equal_nan=True)


class TestData:
    def test_discrete_tables_get_g_squared(self):
        rng = np.random.default_rng(2)
        a, b = rng.integers(2, size=(2, 800))
        c = (a + b + (rng.random(800) < 0.1)) % 3
        d = np.where(rng.random(800) < 0.8, c, rng.integers(3, size=800))
        table = pd.DataFrame({"a": a.astype(bool), "b": b, "c": pd.Categorical(c), "d": d.astype(str)})
        assert sorted(PC(alpha=0.01).fit(table).graph_.edges) == [("a", "c"), ("b", "c"), ("c", "d")]

    def test_non_linear_relations_need_a_kernel(self):
        rng = np.random.default_rng(6)
        a, b = rng.uniform(-2, 2, size=(2, 150))
        table = pd.DataFrame({"a": a, "b": b, "c": a**2 + b**2 + 0.3 * rng.normal(size=150)})
        for test in ("hsic", HSIC(), "distance-correlation"):
            found = PC(test=test, alpha=0.01, colliders="separating-set").fit(table)
            assert sorted(found.graph_.edges) == [("a", "c"), ("b", "c")]
        assert not PC(test="fisher-z", alpha=0.01).fit(table).graph_.edges
        # Given c, whose curves of a and b are flat, residuals of the two are as independent as without it.
        assert PC(test="hsic", alpha=0.01).fit(table).ambiguous_ == [("a", "c", "b")]

    def test_permutations_follow_the_seed(self):
        data = simulate.fourier(simulate.random_dag(4, p=0.5, random_seed=1), 40, 1.0, random_seed=1)
        p = [
            PC(test="hsic", null="permutation", permutations=30, random_state=seed).fit(data).p_values_
            for seed in (1, 1, 2)
        ]
        assert np.array_equal(p[0], p[1], equal_nan=True)
        assert not np.array_equal(p[0], p[2], equal_nan=True)

    def test_statistics_do_for_correlations(self):
        data = simulate.linear(simulate.random_dag(5, p=0.5, random_seed=2), 100, random_seed=2)
        statistics = gpn.SufficientStatistics.of(gpn.Dataset.read(data))
        assert (PC().fit(statistics).cpdag_ == PC(test=FisherZ()).fit(data).cpdag_).all()

    def test_mixed_tables_are_refused(self):
        table = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "b": list("xyxy")})
        with pytest.raises(ValueError, match="^columns must be all categories or all numbers; column 'b' holds text"):
            PC().fit(table)

    def test_data_are_left_alone(self):
        data = simulate.linear(simulate.random_dag(3, p=0.5, random_seed=2), 50, random_seed=2)
        before = data.copy()
        PC(test="hsic").fit(data)
        pd.testing.assert_frame_equal(data, before)


class TestLearner:
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 200, random_seed=1)

    def test_a_dag_of_the_class_is_scored(self):
        found = PC().fit(self.data)
        assert found.log_score("bge") == pytest.approx(gpn.scores.BGe().bind(self.data).total([(0, 1), (1, 2)]))
        with pytest.raises(
            ValueError, match="^a learner must be fitted before it is scored; PC isn't: call fit first$"
        ):
            PC().log_score("bge")

    def test_it_is_a_scikit_learn_estimator(self):
        made = clone(PC(alpha=0.2, test=FisherZ(), tiers=[["a"], ["b", "c"]]))
        assert made.get_params()["alpha"] == 0.2
        assert made.fit(self.data).n_features_in_ == 3
        assert made.feature_names_in_.tolist() == ["a", "b", "c"]

    def test_it_can_seed_a_search_space(self):
        settings = {"draws": 20, "random_seed": 1, "progressbar": False}
        post = gpn.sample(self.data, "bge", space=gpn.Space(candidates=PC().fit(self.data), plus_one=False), **settings)
        assert post.edge_probability("a", "c").value == 0

    def test_progress_can_be_shown(self, capsys, progress_at_once):
        PC(test="hsic", progressbar=True).fit(self.data[:30])
        assert "Given 0" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"alpha": 0}, "^alpha must lie between 0 and 1; received 0$"),
            ({"alpha": 1.0}, "^alpha must lie between 0 and 1; received 1.0$"),
            (
                {"test": "t"},
                "^test must be a test, a function or one of auto, fisher-z, g2, hsic, distance-corr.* 't'$",
            ),
            ({"test": None}, "^test must be a test, a function or one of .*; received None$"),
            ({"max_conditioning": -1}, "^max_conditioning must be a whole number, 0 or more; received -1$"),
            ({"max_conditioning": 1.5}, "^max_conditioning must be a whole number, 0 or more; received 1.5$"),
            ({"colliders": "all"}, "^colliders must be one of majority, conservative, separating-set; received 'all'$"),
            ({"test": "hsic", "null": "t"}, "^null must be one of gamma, permutation; received 't'$"),
            ({"required": [("a", "z")]}, "^required edges: every node must be one of the variables; 'z' is not$"),
        ],
    )
    def test_what_is_refused(self, settings, message):
        with pytest.raises(ValueError, match=message):
            PC(**settings).fit(self.data)
