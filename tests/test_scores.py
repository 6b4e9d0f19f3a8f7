"""The score interface, the rule that all scores follow, and the BGe score against other statements of it."""

import json
from itertools import chain, combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_t

from gpn_bayes import Dataset, graphs, scores
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.scores import BIC, K2, BDeu, BGe, Score, ScoreBatch, Scorer, registry

REFERENCE = Path(__file__).parent / "reference" / "bge"
REFERENCES = {
    "lin_n5_N200": "bge_exact_lin_n5_N200.json",
    "null_n4_N50": "bge_exact_null_n4_N50.json",
}


def subsets(items):
    items = list(items)
    return list(chain.from_iterable(combinations(items, k) for k in range(len(items) + 1)))


def by_masks(items):
    return [tuple(x for bit, x in enumerate(items) if mask >> bit & 1) for mask in range(1 << len(items))]


class Formula(Score):
    """A score by formula, to try what a score without a table of its own inherits."""

    name = "formula"

    @property
    def parameters(self):
        return {"base": 10}

    def _bind(self, data):
        return FormulaScorer(self, data.names, data.fingerprint)


class FormulaScorer(Scorer):
    def score_sets(self, node, parent_sets):
        values = np.array([-(10.0**node) - sum((p + 1) ** 2 / 7 for p in s) for s in parent_sets])
        assert all(list(s) == sorted(set(s)) for s in parent_sets)
        k = len(values)
        return ScoreBatch(values, np.zeros(k), np.full(k, np.nan), ["formula"] * k)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(40, 4))
    x[:, 2] += x[:, 0] - 0.5 * x[:, 1]
    x[:, 3] += 0.4 * x[:, 2]
    return pd.DataFrame(3 * x + [5, 0, -2, 100], columns=["a", "b", "c", "d"])


# The rule


def linear_example(n_rows, rng):
    """Return a table, and the mutual information of cause and effect in nats."""
    slope = 1.5
    cause, noise, error = rng.normal(size=(3, n_rows))
    return pd.DataFrame({"cause": cause, "effect": slope * cause + error, "noise": noise}), 0.5 * np.log(1 + slope**2)


def discrete_example(n_rows, rng):
    odds = 0.1
    cause, noise = rng.integers(2, size=(2, n_rows))
    effect = np.where(rng.random(n_rows) < odds, 1 - cause, cause)
    nats = np.log(2) + odds * np.log(odds) + (1 - odds) * np.log(1 - odds)
    return pd.DataFrame({"cause": cause, "effect": effect, "noise": noise}).replace({0: "no", 1: "yes"}), nats


EXAMPLES = {
    "bge": [linear_example],
    "gp": [linear_example],
    "bic": [linear_example, discrete_example],
    "bdeu": [discrete_example],
    "k2": [discrete_example],
    "cg": [linear_example, discrete_example],
}


def test_every_score_has_an_example():
    assert EXAMPLES.keys() == set(registry.names()[:6])


@pytest.mark.parametrize(("name", "example"), [(name, example) for name in EXAMPLES for example in EXAMPLES[name]])
def test_every_score_is_a_natural_log_and_higher_is_better(name, example):
    """A parent that explains its child gains the mutual information, in nats, a row; noise loses."""
    n_rows = 800
    table, nats = example(n_rows, np.random.default_rng(3))
    scorer = scores.by_name(name).bind(table)
    gain = scorer.local("effect", ["cause"]) - scorer.local("effect")
    # A log to the base 2 would give 1.44 times as much, a log likelihood of the wrong sign a loss.
    assert gain / n_rows == pytest.approx(nats, rel=0.1)
    assert scorer.local("effect", ["noise"]) < scorer.local("effect")
    assert scorer.local("effect", ["cause", "noise"]) < scorer.local("effect", ["cause"])
    true, empty = nx.DiGraph([("cause", "effect")]), nx.DiGraph()
    assert scorer.total(true) - scorer.total(empty) == pytest.approx(gain, rel=1e-9)


def test_scores_by_name():
    assert isinstance(scores.by_name("BGe"), BGe)
    score = BGe(alpha_mu=2.0)
    assert scores.by_name(score) is score
    for wrong in ("best", None, BGe):
        with pytest.raises(ValueError, match="^score must be a Score or one of bge[^\n]*; received [^\n]*$"):
            scores.by_name(wrong)


# The interface


@pytest.fixture(scope="module")
def categories(frame):
    return (frame > frame.median()).assign(c=pd.qcut(frame["c"], 3, labels=["low", "mid", "high"]))


SCORES = {
    "bge": (BGe(), "frame"),
    "formula": (Formula(), "frame"),
    "gaussian bic": (BIC(), "frame"),
    "discrete bic": (BIC(), "categories"),
    "bdeu": (BDeu(ess=3.0), "categories"),
    "k2": (K2(), "categories"),
    "k2 stirling": (K2(form="stirling"), "categories"),
}


@pytest.fixture(params=SCORES)
def any_scorer(request):
    score, data = SCORES[request.param]
    return score.bind(request.getfixturevalue(data))


def test_local_total_and_table_agree(frame, any_scorer):
    scorer = any_scorer
    for node in range(4):
        candidates = [i for i in (2, 3, 0, 1) if i != node]
        expected = [scorer.local(node, s) for s in by_masks(candidates)]
        np.testing.assert_allclose(scorer.table(node, candidates), expected, rtol=1e-12)
        names = [frame.columns[i] for i in candidates]
        np.testing.assert_array_equal(scorer.table(frame.columns[node], names), scorer.table(node, candidates))
    dag = [("a", "c"), ("b", "c"), ("c", "d")]
    expected = sum(scorer.local(x, p) for x, p in [("a", ""), ("b", ""), ("c", "ab"), ("d", "c")])
    assert scorer.total(dag) == pytest.approx(expected, rel=1e-12)
    assert scorer.total(nx.DiGraph(dag)) == scorer.total(graphs.as_adjacency(dag, "abcd")) == scorer.total(dag)
    assert scorer.local("c", ["a", "b"]) == scorer.local(2, [1, 0])


def test_table_of_a_score_without_its_own(frame):
    scorer = Formula().bind(frame)
    expected = [-100.0 - sum((p + 1) ** 2 / 7 for p in s) for s in by_masks([3, 0])]
    np.testing.assert_allclose(scorer.table("c", ["d", "a"]), expected, rtol=1e-15)
    np.testing.assert_array_equal(scorer.table("c", ["d", "a"]), scorer.score_sets(2, [(), (3,), (0,), (0, 3)]).values)


def test_all_sets_up_to_a_size_have_their_scores(any_scorer):
    for limit in (0, 2, 3, 9):
        sets, values = any_scorer.scores_up_to(1, [3, 0, 2], limit)
        members = [tuple(int(i) for i in row if i >= 0) for row in sets]
        assert sorted(members) == sorted(s for s in subsets([0, 2, 3]) if len(s) <= limit)
        np.testing.assert_allclose(values, any_scorer.score_sets(1, members).values, rtol=1e-12)
        assert sets.shape[1] == min(limit, 3)
        # Padding comes last.
        assert all(
            list(row[len(own) :]) == [-1] * (len(row) - len(own)) for row, own in zip(sets, members, strict=True)
        )


def test_max_parents_leaves_minus_infinity(any_scorer):
    scorer = any_scorer
    full = scorer.table("a", ["b", "c", "d"])
    sizes = np.array([mask.bit_count() for mask in range(8)])
    for limit in range(4):
        table = scorer.table("a", ["b", "c", "d"], limit)
        np.testing.assert_array_equal(table[sizes > limit], -np.inf)
        np.testing.assert_allclose(table[sizes <= limit], full[sizes <= limit], rtol=1e-13)
    np.testing.assert_array_equal(scorer.table("a", ["b", "c", "d"], 9), full)
    np.testing.assert_array_equal(scorer.table("a", []), [scorer.local("a")])


BAD_CALLS = {
    "unknown node": (lambda s: s.local("e"), "every node must be one of the variables; 'e' is not"),
    "unknown parent": (lambda s: s.local("a", ["e"]), "every node must be one of the variables; 'e' is not"),
    "index": (lambda s: s.local(4), "every node must be one of the variables; 4 is not"),
    "negative index": (lambda s: s.local(-1), "every node must be one of the variables; -1 is not"),
    "own parent": (
        lambda s: s.local("a", ["b", "a"]),
        "parents must be distinct and differ from the node 'a'; received ['b', 'a']",
    ),
    "twice": (
        lambda s: s.local("a", ["b", 1]),
        "parents must be distinct and differ from the node 'a'; received ['b', 'b']",
    ),
    "own candidate": (
        lambda s: s.table("a", ["a"]),
        "candidates must be distinct and differ from the node 'a'",
    ),
    "candidate twice": (
        lambda s: s.table("a", ["b", "b"]),
        "candidates must be distinct and differ from the node 'a'",
    ),
    "max_parents": (lambda s: s.table("a", ["b"], -1), "max_parents must be 0 or more; received -1"),
    "cycle": (
        lambda s: s.total([("a", "b"), ("b", "a")]),
        "the graph must be acyclic; it contains a -> b -> a",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_calls_are_refused_in_one_line(frame, call, message):
    with pytest.raises(ValueError) as error:
        call(BGe().bind(frame))
    assert str(error.value) == message


def test_too_many_candidates_are_refused():
    scorer = BGe().bind(np.random.default_rng(1).normal(size=(9, MAX_CANDIDATES + 2)))
    message = f"at most {MAX_CANDIDATES} candidate parents per node are supported; 'v1' has {MAX_CANDIDATES + 1}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        scorer.table(0, range(1, MAX_CANDIDATES + 2))


def test_fingerprints_and_repr(frame):
    assert repr(BGe(t0=0.5)) == "BGe(alpha_mu=1.0, alpha_w=None, t0=0.5)"
    assert BGe().fingerprint == BGe(alpha_mu=1.0).fingerprint
    assert len({BGe(**s).fingerprint for s in ({}, {"alpha_mu": 2.0}, {"alpha_w": 9.0}, {"t0": 1.0})}) == 4
    scorer = BGe().bind(frame)
    assert scorer.names == ("a", "b", "c", "d")
    assert scorer.data_fingerprint == Dataset.read(frame).fingerprint
    assert (scorer.score_fingerprint, scorer.label) == (BGe().fingerprint, repr(BGe()))


# BGe


def log_marginal(x, n, alpha_mu, alpha_w, t0):
    """Sum the log predictive densities, multivariate t, of the rows of some of n variables in turn."""
    size = x.shape[1]
    mean, kappa = np.zeros(size), alpha_mu
    scale, nu = t0 * np.eye(size), alpha_w - n + size
    total = 0.0
    for row in x:
        df = nu - size + 1
        total += multivariate_t.logpdf(row, mean, scale * (kappa + 1) / (kappa * df), df)
        gap = row - mean
        scale = scale + kappa / (kappa + 1) * np.outer(gap, gap)
        mean = (kappa * mean + row) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    return total


@pytest.mark.parametrize("settings", [{}, {"alpha_mu": 0.3, "alpha_w": 7.5, "t0": 1.7}], ids=["default", "given"])
def test_bge_is_the_ratio_of_marginal_likelihoods(frame, settings):
    x = (frame - frame.mean()) / frame.std(ddof=1)
    prior = {"n": 4, "alpha_mu": 1.0, "alpha_w": 6.0, "t0": 0.5} | settings
    marginal = {frozenset(s): log_marginal(x.to_numpy()[:, list(s)], **prior) if s else 0.0 for s in subsets(range(4))}
    scorer = BGe(**settings).bind(frame)
    for node in range(4):
        for parents in subsets(i for i in range(4) if i != node):
            expected = marginal[frozenset({*parents, node})] - marginal[frozenset(parents)]
            assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-8)


def test_bge_does_not_depend_on_units(frame):
    scaled = frame * [1e-6, 1.0, 50.0, -3.0] + [0.0, 7.0, 1e4, 0.0]
    for node in range(4):
        others = [i for i in range(4) if i != node]
        np.testing.assert_allclose(
            BGe().bind(scaled).table(node, others), BGe().bind(frame).table(node, others), rtol=0, atol=1e-7
        )


def test_bge_scores_equivalent_dags_alike(frame):
    scorer = BGe().bind(frame)
    dags = graphs.enumerate_dags(4)
    classes = {}
    for dag, pattern in zip(dags, graphs.cpdag(dags), strict=True):
        classes.setdefault(pattern.tobytes(), []).append(scorer.total(dag))
    assert len(classes) == 185
    assert max(np.ptp(totals) for totals in classes.values()) < 1e-9
    # Negative control: different classes do differ.
    firsts = np.sort([totals[0] for totals in classes.values()])
    assert np.diff(firsts).min() > 1e-7


@pytest.mark.parametrize(("table", "numbers"), REFERENCES.items(), ids=REFERENCES)
def test_bge_gives_the_reference_scores(table, numbers):
    reference = json.loads((REFERENCE / numbers).read_text())
    scorer = BGe().bind(REFERENCE / f"{table}.csv")
    n = reference["n"]
    assert len(reference["local_scores"]) == n * 2 ** (n - 1)
    for entry in reference["local_scores"]:
        assert scorer.local(entry["node"], entry["parents"]) == pytest.approx(entry["score"], abs=1e-8)
    for best in reference["top10"]:
        assert scorer.total(np.array(best["adj"])) == pytest.approx(best["logscore"], abs=1e-8)


BAD_SETTINGS = {
    "alpha_mu": (lambda d: BGe(alpha_mu=0), "alpha_mu must be positive and finite; received 0"),
    "nan": (lambda d: BGe(alpha_mu=np.nan), "alpha_mu must be positive and finite; received nan"),
    "t0": (lambda d: BGe(t0=-1.0), "t0 must be positive and finite; received -1.0"),
    "alpha_w": (lambda d: BGe(alpha_w=3.0).bind(d), "alpha_w must be more than n - 1 = 3; received 3.0"),
    "alpha_w nan": (lambda d: BGe(alpha_w=np.nan), "alpha_w must be positive and finite; received nan"),
    "alpha_w without t0": (
        lambda d: BGe(alpha_w=4.5).bind(d),
        "the default t0 needs alpha_w above n + 1 = 5; received alpha_w = 4.5",
    ),
    "text": (
        lambda d: BGe().bind(d.assign(a=["x", "y"] * 20)),
        "the BGe score needs numbers; column 'a' holds text such as 'x': gpn.Table(data, drop=['a']) leaves it out, "
        "or score='cg' and score='gp' take both",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_bad_bge_settings_are_refused_in_one_line(frame, make, message):
    with pytest.raises(ValueError) as error:
        make(frame)
    assert str(error.value) == message


def test_bge_with_a_small_alpha_w_and_a_given_t0(frame):
    assert np.isfinite(BGe(alpha_w=3.5, t0=0.5).bind(frame).table(0, [1, 2, 3])).all()


def test_bge_with_more_variables_than_rows_and_identical_columns():
    x = np.random.default_rng(2).normal(size=(5, 4))
    with pytest.warns(UserWarning, match="identical"):
        scorer = BGe().bind(np.hstack([x, x]))
    table = scorer.table(0, range(1, 8))
    assert np.isfinite(table).all()
    assert int(table[[1 << bit for bit in range(7)]].argmax()) == 3  # its copy is its best parent
