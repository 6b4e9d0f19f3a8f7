"""Experiments of unknown targets: every set of contexts that may have changed a variable is summed over."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import Dataset, graphs, scores
from gpn_bayes.posterior.curves import fitted_curves
from gpn_bayes.scores import base
from tests.command_line import call
from tests.test_interventions import STATEMENTS, all_families, as_taken, check_tables

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

SETTINGS = {"random_seed": 1, "progressbar": False}


def contexts_of(rows=120, change=True):
    """Return a table of four variables, of which b is changed in context x, c and d in y, and none in z."""
    rng = np.random.default_rng(3)
    labels = np.array(["", "x", "y", "z"] * (rows // 4))
    context = labels if change else np.full(rows, "")
    noise = rng.normal(size=(rows, 4))
    a = noise[:, 0]
    b = np.where(context == "x", 2.5, 0.8) * a + 0.5 * noise[:, 1]
    c = np.where(context == "y", -1.0, 1.0) * b + 0.5 * noise[:, 2]
    d = np.where(context == "y", 2.0, 0.0) + 0.7 * c + 0.5 * noise[:, 3]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), labels


def stated(formula, values, context, node, parents, log_prior):
    """Return the log of the sum over all sets of contexts, each changed one a group of its own, and the summands."""
    others = sorted(set(context) - {""})
    sets = [changed for size in range(len(others) + 1) for changed in combinations(others, size)]
    summands = [
        log_prior(len(changed))
        + formula(values[~np.isin(context, changed)], node, list(parents))
        + sum(formula(values[context == one], node, list(parents)) for one in changed)
        for changed in sets
    ]
    return logsumexp(summands), dict(zip(sets, summands, strict=True))


PRIORS = {
    "probability": ({"target_probability": 0.2}, lambda m: m * np.log(0.2) + (3 - m) * np.log(0.8)),
    "penalty": ({"target_penalty": 1.5}, lambda m: -1.5 * m),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_score_is_the_sum_over_all_sets_of_contexts(name, prior):
    score, formula = STATEMENTS[name]
    settings, log_prior = PRIORS[prior]
    table, context = contexts_of()
    table, values = as_taken(name, table)
    scorer = score.bind(table, contexts=context, **settings)
    for node, parents in all_families():
        expected, summands = stated(formula, values, context, node, parents, log_prior)
        assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-8), (node, parents)
        changed = scorer.change_probabilities(node, [parents])[0]
        for place, one in enumerate(["x", "y", "z"], start=1):
            share = np.exp(logsumexp([value for own, value in summands.items() if one in own]) - expected)
            assert changed[place] == pytest.approx(share, abs=1e-8)
        assert changed[0] == 0
    check_tables(scorer)


def test_gp_is_the_sum_over_all_sets_of_contexts():
    table, context = contexts_of()
    values = table.to_numpy()
    values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)

    def formula(rows, node, parents):
        return scores.GP(estimator="laplace", standardise=False).bind(rows).local(node, parents)

    scorer = scores.GP(estimator="laplace").bind(table, contexts=context)
    for node, parents in [(0, ()), (1, (0,)), (2, (1,)), (3, (0, 2))]:
        expected, _ = stated(formula, values, context, node, parents, lambda m: m * np.log(0.1) + (3 - m) * np.log(0.9))
        # All groups share the basis of the whole table, which is as accurate as their own.
        assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-5)


def test_a_search_finds_the_sets_of_contexts_that_count(monkeypatch):
    """Slow scores leave out sets of contexts that lie beyond negligible ones."""
    table, context = contexts_of()
    whole = scores.GP(estimator="laplace").bind(table, contexts=context)
    families = [(0, ()), (1, (0,)), (2, (1,)), (3, (2,)), (3, ())]
    expected = [whole.local(*family) for family in families]
    monkeypatch.setattr(base, "_MAX_SLOW_TERMS", 1)
    monkeypatch.setattr(base, "_NEGLIGIBLE", 8.0)
    searching = scores.GP(estimator="laplace").bind(table, contexts=context)
    assert [searching.local(*family) for family in families] == pytest.approx(expected, abs=1e-3)
    scored = {group for group in searching._parts if len(group) > 1 or group == (0,)}
    assert len(searching._terms_that_count(2, [(1,)])[0]) < 8
    assert len(scored) <= 8


def test_groups_that_hardly_count_keep_the_score_of_the_proposal(monkeypatch):
    table, context = contexts_of(rows=80)
    families = [(1, (0,)), (2, (1,)), (3, (2,))]
    scorer = scores.GP().bind(table, contexts=context)
    values = [scorer.local(*family) for family in families]
    monkeypatch.setattr(base, "_LEAST_TO_ESTIMATE", 0.0)
    everything = scores.GP().bind(table, contexts=context)
    assert values == pytest.approx([everything.local(*family) for family in families], abs=1e-4)
    # Some groups are scored by Laplace's approximation alone.
    assert len(scorer._parts) < len(everything._parts)


def test_errors_of_groups_count_by_the_weight_of_their_sets():
    table, context = contexts_of(rows=80)
    scorer = scores.GP(target_error=0.1).bind(table, contexts=np.where(context == "x", "x", ""))
    batch = scorer.score_sets(1, [(0,)])
    pooled, changed = scorer.interventions.terms(1)
    parts = {group: scorer.part(group).score_sets(1, [(0,)]) for term in (pooled, changed) for group in term.groups}
    share = scorer.change_probabilities(1, [(0,)])[0, 1]
    errors = {group: part.errors[0] for group, part in parts.items()}
    expected = np.sqrt(((1 - share) * errors[0, 1]) ** 2 + (share * errors[(0,)]) ** 2 + (share * errors[(1,)]) ** 2)
    assert batch.errors[0] == pytest.approx(expected)
    assert batch.statuses == ["ok"]


class Unsure(scores.Score):
    """Scores that are bad of all rows together, in which b depends on a in two ways."""

    name, parameters = "unsure", {}

    def _bind(self, data):
        return UnsureScorer(self, data)


class UnsureScorer(scores.Scorer):
    def __init__(self, score, data):
        super().__init__(score, data.names, data.fingerprint)
        self.whole = len(data.values) == 80

    def score_sets(self, node, parent_sets):
        k = len(parent_sets)
        value, error, status = (-90.0, np.nan, "no mode") if self.whole else (-10.0, 0.2, "ok")
        return scores.ScoreBatch(np.full(k, value), np.full(k, error), np.full(k, 0.3), [status] * k)


def test_groups_that_do_not_count_do_not_tell_how_good_a_score_is():
    table, context = contexts_of(rows=80)
    scorer = Unsure().bind(table, contexts=np.where(context == "x", "x", ""))
    batch = scorer.score_sets(1, [(0,), ()])
    assert batch.values == pytest.approx([-20 + np.log(0.1)] * 2)
    assert batch.errors == pytest.approx([np.hypot(0.2, 0.2)] * 2)
    assert batch.statuses == ["ok", "ok"]


def test_other_processes_get_the_table_and_not_its_groups():
    table, context = contexts_of(rows=80)
    scorer = scores.GP(estimator="laplace").bind(table, contexts=context)
    alone = len(pickle.dumps(scorer))
    expected = scorer.local(1, (0,))
    sent = pickle.loads(pickle.dumps(scorer))
    assert sent.cost(2) == scorer.cost(2)
    assert sent.local(1, (0,)) == pytest.approx(expected, abs=1e-9)
    assert len(pickle.dumps(scorer)) == alone


def posterior_by_enumeration(scorer, names):
    """Return the edges and the changes, summed over all DAGs and all sets of contexts for each variable."""
    dags = graphs.enumerate_dags(len(names))
    log_scores = np.array([scorer.total(dag) for dag in dags])
    weights = np.exp(log_scores - logsumexp(log_scores))
    changed = np.array(
        [
            [scorer.change_probabilities(i, [tuple(np.flatnonzero(dag[:, i]))])[0, 1:] for i in range(len(names))]
            for dag in dags
        ]
    )
    return np.einsum("g,gij->ij", weights, dags), np.einsum("g,gik->ki", weights, changed)


@pytest.mark.parametrize("sampler", ["exact", "partition"])
def test_posteriors_are_those_of_all_dags_and_all_changes(sampler):
    table, context = contexts_of(rows=40)
    scorer = scores.BGe().bind(table, contexts=context)
    edges, changes = posterior_by_enumeration(scorer, table.columns)
    post = gpn.sample(table, "bge", sampler=sampler, contexts=context, **SETTINGS)
    found = post.target_probabilities()
    assert list(found.index) == ["x", "y", "z"] and list(found.columns) == list("abcd")
    errors = post.target_probabilities(errors=True)
    if sampler == "exact":
        np.testing.assert_allclose(post.edge_probabilities(), edges, atol=1e-9)
        np.testing.assert_allclose(found, changes, atol=1e-9)
        assert (errors == 0).all(axis=None)
    else:
        assert ((found - changes).abs() < 4 * errors + 1e-4).all(axis=None)
        assert (errors > 0).any(axis=None)
    one = post.target_probability("y", "c")
    assert (one.value, one.mcse) == (found.loc["y", "c"], errors.loc["y", "c"])


def test_changes_are_found_and_nothing_else():
    table, context = contexts_of()
    found = gpn.sample(table, "bge", contexts=context, **SETTINGS).target_probabilities()
    changed = pd.DataFrame(False, index=found.index, columns=found.columns)
    for where in (("x", "b"), ("y", "c"), ("y", "d")):
        changed.loc[where] = True
    assert found.to_numpy()[changed.to_numpy()].min() > 0.9
    assert found.to_numpy()[~changed.to_numpy()].max() < 0.5
    same, context = contexts_of(change=False)
    assert gpn.sample(same, "bge", contexts=context, **SETTINGS).target_probabilities().max(axis=None) < 0.5


def test_changes_direct_edges():
    """A change of b's mechanism tells that a -> b, which observation can't."""
    table, context = contexts_of()
    pair = table[["a", "b"]]
    reference = context == ""
    observed = gpn.sample(pair[reference], "bge", **SETTINGS)
    told = gpn.sample(pair, "bge", contexts=np.where(context == "x", "x", ""), **SETTINGS)
    assert observed.cpdag_edges()["undirected"].max() > 0.9
    assert told.edge_probabilities().loc["a", "b"] > 0.9
    assert told.cpdag_edges()["undirected"].max() == 0
    assert "which ones they are" in str(told.diagnostics())


def test_names_and_order_of_contexts_do_not_matter():
    table, context = contexts_of()
    post = gpn.sample(table, "bge", contexts=context, **SETTINGS)
    renamed = pd.Series(context).map({"": None, "x": 3, "y": 1, "z": 2})
    order = np.random.default_rng(1).permutation(len(table))
    other = gpn.sample(table.iloc[order], "bge", contexts=renamed.iloc[order].tolist(), **SETTINGS)
    np.testing.assert_allclose(other.edge_probabilities(), post.edge_probabilities(), atol=1e-9)
    back = other.target_probabilities().loc[["3.0", "1.0", "2.0"]]
    np.testing.assert_allclose(back, post.target_probabilities(), atol=1e-9)


def test_the_first_context_is_the_reference_where_none_is_empty():
    table, context = contexts_of()
    empty = Dataset.read(table, contexts=context)
    named = Dataset.read(table.assign(run=np.where(context == "", "control", context)), contexts="run")
    assert named.interventions.contexts == ("control", "x", "y", "z")
    assert (named.interventions.experiment == empty.interventions.experiment).all()
    assert named.fingerprint != empty.fingerprint


def test_contexts_are_kept_in_files(tmp_path):
    table, context = contexts_of(rows=60)
    for number, (prior, _) in enumerate(PRIORS.values()):
        post = gpn.sample(table, "gp", contexts=context, draws=20, **prior, **SETTINGS)
        post.save(tmp_path / f"{number}.nc")
        loaded = gpn.load(tmp_path / f"{number}.nc")
        assert loaded.data.fingerprint == post.data.fingerprint
        pd.testing.assert_frame_equal(loaded.target_probabilities(), post.target_probabilities())
        assert loaded.settings["interventions"]["contexts"] == [{"context": name, "rows": 15} for name in "xyz"]
        assert set(fitted_curves(loaded, "d").points["y"]) < set(table["d"])


def test_reports_say_what_experiments_changed(tmp_path):
    table, context = contexts_of()
    post = gpn.sample(table, "bge", contexts=context, **SETTINGS)
    page = post.report(tmp_path / "report.html").read_text()
    assert "y probably changed how these depend on their parents: c, d." in page
    assert "z probably changed nothing." in page
    assert "contexts=contexts,\n    target_probability=0.1,\n)" in page
    assert "unknown targets of x (30 rows), y (30 rows), z (30 rows); reference without a name (30 rows)" in page
    told = gpn.sample(table, "bge", targets=np.where(context == "x", "b", "").tolist(), **SETTINGS)
    page = told.report(tmp_path / "told.html").read_text()
    assert "targets=targets,\n    intervention=&#x27;perfect&#x27;,\n)" in page or "intervention='perfect'" in page
    assert "perfect, of b (30 rows)" in page and "probably changed" not in page


def test_targets_need_unknown_ones():
    table, context = contexts_of(rows=40)
    post = gpn.sample(table, "bge", draws=10, **SETTINGS)
    with pytest.raises(ValueError, match="^targets are estimated where experiments of unknown targets are given by"):
        post.target_probabilities()
    told = gpn.sample(table, "bge", contexts=context, draws=10, **SETTINGS)
    with pytest.raises(ValueError, match="^a context must be one of 'x', 'y', 'z'; received 'w'$"):
        told.target_probability("w", "a")


def test_the_command_line_takes_a_column_of_contexts(tmp_path, capsys):
    table, context = contexts_of(rows=40)
    table.assign(run=context).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    given = ("--contexts", "run", "--target-probability", "0.2", "--score", "bge", "--out", out, "-q")
    code, _, errors = call(capsys, "run", tmp_path / "rows.csv", *given)
    assert code == 0, errors
    post = gpn.load(out / "posterior.nc")
    assert post.settings["interventions"]["target_probability"] == 0.2
    assert post.names == tuple("abcd")
    given = ("--contexts", "run", "--target-probability", "2", "--out", tmp_path / "other")
    code, _, errors = call(capsys, "run", tmp_path / "rows.csv", *given)
    assert code != 0 and "--target-probability must lie between 0 and 1; received 2.0" in errors
