"""The errors that a posterior tells of its answers, and how far it says it can be trusted."""

import dataclasses
from itertools import combinations, permutations

import arviz
import networkx as nx
import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, scores
from gpn_bayes.data import Flag
from gpn_bayes.posterior import Diagnostics, Estimate
from gpn_bayes.posterior.diagnostics import weight_warnings
from gpn_bayes.posterior.estimate import ess_of, r_hat_of, weighted_moments
from tests.draws import DAGS, NAMES, drawn_posterior, make

pytestmark = pytest.mark.more("statistics that take long")


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def drawn(request):
    return drawn_posterior(request.param)


# Errors of estimates


def moments_of(features, weights, fallback_ess):
    """Return the moments of features (chain, draw, feature) of draws that are all distinct."""
    flat = features.reshape(-1, features.shape[-1])
    return weighted_moments(flat, np.arange(len(flat)).reshape(weights.shape), weights, fallback_ess)


def test_errors_follow_the_weighted_formula(drawn):
    post, _ = drawn
    w = post.weights / post.weights.mean()
    for parent, child in permutations(range(4), 2):
        f = post.adjacency[..., parent, child].astype(float)
        value = (w * f).sum() / w.sum()
        z = w * (f - value) / w.mean()
        s = float(arviz.mcse(z))
        # Three draws more, as influential as those drawn; or of the largest weight, and missed by the k that come near.
        independent = min((z**2).mean() / s**2, z.size)
        a = 3 * abs((z**3).sum()) / (z**2).sum() / independent
        k = min(f.mean(), 1 - f.mean()) * independent
        b = 3 * max(value, 1 - value) * w.max() / independent / np.sqrt(k + 1)
        found = post.edge_probability(parent, child)
        assert found.value == pytest.approx(value)
        assert found.mcse == pytest.approx(np.sqrt(s**2 + a**2 + b**2), rel=1e-9)
        assert found.ess == pytest.approx(value * (1 - value) / s**2, rel=1e-9)


def test_error_is_that_of_independent_weighted_draws():
    """Calibration: the error told is the spread of the estimate over many independent runs."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(300):
        f = rng.random((4, 100)) < 0.3
        weights = np.exp(rng.normal(0, 0.8, f.shape)) * np.where(f, 0.5, 1.0)
        found.append(moments_of(f[..., None], weights, 1.0))
    values = np.array([moments.value[0] for moments in found])
    diagnosed = np.array([moments.mcse[0] for moments in found])
    assert values.std() == pytest.approx(np.sqrt((diagnosed**2).mean()), rel=0.15)
    # The effective size is well below the 400 draws, since the weights differ.
    assert 100 < np.median([moments.ess[0] for moments in found]) < 330


@pytest.mark.parametrize(("share", "heavy"), [(0.005, 1.0), (0.01, 6.0), (0.5, 1.0)])
def test_errors_of_what_is_rare_hold_too(share, heavy):
    """Of 800 draws; those that have the feature may weigh more than others, but as often less."""
    rng = np.random.default_rng(12)
    wrong = plain = 0
    for _ in range(500):
        f = rng.random((2, 400)) < share
        weights = np.where(f, rng.choice([heavy, 1 / heavy], f.shape), 1.0)
        # The largest weight is not only that of the feature: other draws have it too.
        weights[~f] = np.where(rng.random((~f).sum()) < 0.02, heavy, 1.0)
        truth = share * (heavy + 1 / heavy) / 2
        truth /= truth + (1 - share) * (1 + 0.02 * (heavy - 1))
        moments = moments_of(f[..., None], weights, 1.0)
        if moments.status[0] == "sampled":
            off = abs(moments.value[0] - truth)
            wrong += off > 3 * moments.mcse[0]
            plain += off > 3 * np.std(weights / weights.mean() * (f - moments.value[0])) / np.sqrt(f.size)
    # By chance 0.27 %: more than 6 of 500 has a probability of 0.0004.
    assert wrong <= 6
    # The error without the allowance is too small for what is rare.
    assert plain > 6 or share == 0.5


def test_an_edge_that_chains_are_slow_to_change_is_named():
    """DAGs that differ by one edge, kept for 40 draws, while the log score changes with every draw."""
    rng = np.random.default_rng(2)
    with_edge, without = (next(k for k, dag in enumerate(DAGS) if dag.sum() == total) for total in (1, 0))
    i, j = np.argwhere(DAGS[with_edge])[0]
    scores = rng.normal(size=(4, 400))
    slow = np.repeat(rng.random((4, 10)) < 0.5, 40, axis=1)
    found = make(np.where(slow, with_edge, without), log_score=scores).diagnostics()
    assert not found.ok and found.edge_ess_edge == f"{NAMES[i]} -> {NAMES[j]}"
    # Runs of 40 draws: 40 of them, of each of which the next is independent.
    assert 20 < found.edge_ess < 80
    assert any(f"effective draws of {found.edge_ess_edge}, too few" in warning for warning in found.warnings())
    quick_ones = make(np.where(rng.random((4, 400)) < 0.5, with_edge, without), log_score=scores).diagnostics()
    assert quick_ones.ok and quick_ones.edge_ess > 1000
    # What is rare isn't slow, though its few draws stand together.
    rare = np.zeros((4, 400), dtype=bool)
    rare[:, :10] = True
    assert np.isnan(make(np.where(rare, with_edge, without), log_score=scores).diagnostics().edge_ess)


def errors_away(sampler, tables, **settings):
    """Return how many standard errors edges are from the exact posterior, in runs that are called converged."""
    unbiased = gpn.samplers.Order(bias="correct") if sampler == "order" else sampler
    off = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        names = list("abcdef")[: rng.integers(4, 7)]
        graph = nx.DiGraph([pair for pair in combinations(rng.permutation(names), 2) if rng.random() < 0.4])
        graph.add_nodes_from(names)
        data = gpn.simulate.linear(graph, int(rng.choice([25, 50, 100, 400])), random_seed=seed)[names]
        exact = gpn.sample(data, sampler="exact", draws=100, random_seed=1, progressbar=False).edge_probabilities()
        post = gpn.sample(data, sampler=unbiased, random_seed=seed, progressbar=False, **settings)
        if post.diagnostics().ok:
            found = post.summary().query("status == 'sampled'")
            known = np.array([exact.loc[row.parent, row.child] for row in found.itertuples()])
            off.append(np.abs(found["probability"] - known) / found["mcse"])
    return np.concatenate(off)


@pytest.mark.parametrize("sampler", ["order", "partition"])
def test_errors_of_short_runs_cover_the_exact_posterior(sampler):
    """Two chains of 400 draws: few edges are beyond 3 standard errors, which aren't so wide as to say nothing."""
    off = errors_away(sampler, 20, draws=400, chains=2)
    # Edges of a table err together: of some 300, two or three in place of one.
    assert len(off) > 200 and (off > 3).mean() < 0.01
    assert 0.7 < np.sqrt((off**2).mean()) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"draws": 400, "chains": 2}, {}], ids=["short", "default"])
@pytest.mark.parametrize("sampler", ["order", "partition"])
def test_errors_cover_the_exact_posterior_of_200_tables(sampler, settings):
    off = errors_away(sampler, 200, **settings)
    assert len(off) > 3000 and (off > 3).mean() < 0.005
    assert 0.7 < np.sqrt((off**2).mean()) < 1.1


def test_statuses():
    draws = 20
    features = np.zeros((3, draws, 6))
    features[:, :, 1] = 1
    features[1, :, 2] = 1  # constant within chains, not over them
    features[:, ::2, 3] = 1
    features[:, :, 4] = 2.5
    features[0, 3, 5] = 1  # one chain moved, once
    moments = moments_of(features, np.ones((3, draws)), 33.0)
    assert moments.status.tolist() == ["never", "always", "chains disagree", "sampled", "constant", "sampled"]
    np.testing.assert_allclose(moments.value, [0, 1, 1 / 3, 0.5, 2.5, 1 / 60])
    np.testing.assert_array_equal(np.isnan(moments.mcse), [True, True, True, False, True, False])
    np.testing.assert_array_equal(moments.ess[[0, 1, 4]], 33.0)
    assert np.isnan(moments.ess[2])
    assert (moments.ess[[3, 5]] > 0).all()


def test_too_few_draws_have_no_error():
    moments = moments_of(np.array([[[0.0], [1.0], [0.0]]]), np.ones((1, 3)), 3.0)
    assert moments.value[0] == pytest.approx(1 / 3)
    assert np.isnan(moments.mcse[0])
    assert np.isnan(ess_of(np.array([[1.0, 2.0, 3.0]])))
    assert np.isnan(r_hat_of(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 5.0]])))


def test_r_hat_is_arviz_and_nan_only_where_nothing_moves():
    rng = np.random.default_rng(4)
    traces = np.stack([rng.normal(size=(3, 50)), np.ones((3, 50)), np.repeat([[1.0], [2.0], [2.0]], 50, 1)])
    found = r_hat_of(traces)
    assert found[0] == pytest.approx(float(arviz.rhat(traces[0])))
    assert np.isnan(found[1:]).all()
    assert np.isnan(r_hat_of(traces[:, :1])).all()
    # As many zeros as ones: ArviZ divides zero by zero on the way, which is no one's concern here.
    balanced = np.tile([0.0, 1.0, 1.0, 0.0], (2, 5))
    assert 0.8 < r_hat_of(balanced) < 1.1


def test_summary(drawn):
    post, _ = drawn
    table = post.summary()
    assert table.columns.tolist() == [
        "edge",
        "parent",
        "child",
        "probability",
        "mcse",
        "ess",
        "r_hat",
        "status",
    ]
    assert len(table) == 12
    assert table["probability"].is_monotonic_decreasing
    for row in table.itertuples():
        assert row.edge == f"{row.parent} -> {row.child}"
        assert (row.probability, row.mcse, row.ess) == post.edge_probability(row.parent, row.child)
        trace = post.adjacency[..., NAMES.index(row.parent), NAMES.index(row.child)]
        assert row.r_hat == pytest.approx(float(arviz.rhat(trace.astype(float))))
        assert row.status == "sampled"


def test_summary_of_edges_that_never_change():
    chosen = [
        [("a", "b")],
        [("a", "b"), ("c", "d")],
        [("a", "b"), ("b", "c")],
        [("a", "b"), ("b", "c"), ("c", "d")],
    ]
    dags = np.stack([graphs.as_adjacency(edges, NAMES) for edges in chosen])
    # a -> b is always there, c -> d in the second chain only, b -> c comes and goes.
    post = make([[0, 2, 2, 0, 2], [1, 3, 1, 1, 3]], dags=dags)
    table = post.summary().set_index("edge")
    assert table.loc["a -> b", "status"] == "always"
    assert table.loc["c -> d", "status"] == "chains disagree"
    assert table.loc["b -> c", "status"] == "sampled"
    assert (table["status"] == "never").sum() == 9
    np.testing.assert_array_equal(np.isnan(table["r_hat"]), table["status"] != "sampled")
    np.testing.assert_array_equal(np.isnan(table["mcse"]), table["status"] != "sampled")


def test_estimates_in_words():
    assert str(Estimate(0.25, 0.0, np.inf)) == "0.250 (exact)"
    assert str(Estimate(0.25, 0.0123, 100.0)) == "0.250 ± 0.012"
    assert str(Estimate(1.0, np.nan, 100.0)) == "1.000"


# Diagnostics


def diagnostics_of(**changes):
    fine = Diagnostics(4, 8000, 1.002, 3000.0, 0.01, "a -> b", np.nan, 8000.0, "partition", False)
    return dataclasses.replace(fine, **changes)


def test_diagnostics_are_the_numbers_of_the_draws(drawn):
    post, _ = drawn
    found = post.diagnostics()
    assert (found.chains, found.draws, found.sampler) == (3, 180, "partition")
    assert found.r_hat == pytest.approx(float(arviz.rhat(post.log_score)))
    assert found.ess == pytest.approx(float(arviz.ess(post.log_score)))
    w = post.weights
    by_chain = np.einsum("ct,ctij->cij", w, post.adjacency) / w.sum(axis=1)[:, None, None]
    gaps = np.ptp(by_chain, axis=0)
    assert found.largest_gap == pytest.approx(gaps.max())
    i, j = (NAMES.index(name) for name in found.largest_gap_edge.split(" -> "))
    assert gaps[i, j] == gaps.max()
    assert found.weight_ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found["weight_share"] == found.weight_share == found.weight_ess / 180
    assert (found.reweighted, found.score_error, found.poor_scores) == ("no", 0, 0)
    assert found["ess"] == found.ess
    with pytest.raises(KeyError):
        found["warnings"]


def test_chains_that_agree():
    fine = diagnostics_of()
    assert fine.ok
    assert str(fine) == (
        "Sampling has converged. 4 chains agree; largest gap 0.01 (a -> b); R-hat 1.002, 3000 effective draws of the "
        "log score."
    )


@pytest.mark.parametrize("changes", [{"r_hat": 1.2}, {"largest_gap": 0.4}])
def test_chains_that_do_not_agree(changes):
    diagnosed = diagnostics_of(**changes)
    assert not diagnosed.ok
    assert str(diagnosed).startswith("Sampling has not converged. 4 chains don't agree; ")
    said = "on the log score (R-hat 1.20; largest gap 0.01 for a -> b)"
    if "largest_gap" in changes:
        said = "by 0.40 on the probability of a -> b, although their log scores are alike"
    assert diagnosed.warnings()[0] == (
        f"The chains disagree {said}: run with until='converged', which goes on, with more thinning, until they agree, "
        "or with sampler=gpn.samplers.Partition(temperatures=4), coupled copies of each chain that cross what it can't."
    )


def test_edges_lead_where_log_scores_agree():
    """Chains in two modes of equal height have an R-hat of 1.00 and a gap of 1.00."""
    (warning,) = diagnostics_of(largest_gap=1.0, r_hat=1.0).warnings()
    assert warning.startswith("The chains disagree by 1.00 on the probability of a -> b, although")
    assert "R-hat" not in warning
    both = diagnostics_of(largest_gap=0.62, r_hat=1.21).warnings()[0]
    assert both.startswith("The chains disagree by 0.62 on the probability of a -> b (R-hat of the log score 1.21): ")


def test_what_to_do_is_what_was_not_asked_for_yet():
    apart = {"largest_gap": 0.4}
    tempered = "sampler=gpn.samplers.Partition(temperatures=4), coupled copies of each chain that cross what it can't."
    waited = diagnostics_of(**apart, converged=False).warnings()
    assert waited[0].endswith(f"alike: run with {tempered}")
    assert waited[1] == (
        "The run reached its greatest length before its chains agreed as closely as it was to wait for."
    )
    (imputed,) = diagnostics_of(**apart, imputed=True).warnings()
    assert "until='converged'" in imputed and "temperatures" not in imputed
    assert tempered in diagnostics_of(**apart, sampler="order").warnings()[0]
    everything = diagnostics_of(**apart, converged=False, temperatures=4).warnings()[0]
    assert everything.endswith("run with draws=8000, a larger tune and thin, or fewer candidates.")
    assert diagnostics_of(ess=100.0, converged=False).warnings() == [
        "Only 100 effective draws of the log score, of 400 at least: run with draws=8000, or a larger thin.",
        "The run reached its greatest length before its chains agreed as closely as it was to wait for: run with "
        f"{tempered}",
    ]


@pytest.mark.parametrize(("estimator", "other"), [("importance", "bridge"), ("bridge", "importance")])
def test_imprecise_scores_name_another_estimator(estimator, other):
    (warning,) = diagnostics_of(poor_scores=3, score_error=0.3, estimator=estimator).warnings()
    assert warning.endswith(f"; score=gpn.scores.GP(estimator='{other}'), in Python, estimates them in another way.")
    assert scores.GP(estimator=other).estimator == other
    assert diagnostics_of(poor_scores=3, score_error=0.3).warnings()[0].endswith("reported errors include this.")
    post = make([[0, 1]], score={"name": "gp", "parameters": {"estimator": estimator}}, temperatures=3)
    assert (post.diagnostics().estimator, post.diagnostics().temperatures) == (estimator, 3)
    assert make([[0, 1]], betas=[1.0, 0.5]).diagnostics().temperatures == 2


def test_chains_that_disagree_are_found_in_draws():
    rng = np.random.default_rng(1)
    apart = np.stack([rng.integers(0, 60, 200), rng.integers(400, 460, 200)])
    assert "2 chains don't agree" in str(make(apart).diagnostics())
    together = make(rng.integers(0, 20, (2, 20000)), log_score=rng.normal(size=(2, 20000)))
    assert together.diagnostics().summary.startswith("2 chains agree")
    assert together.diagnostics().ok


def test_chains_that_never_move_agree_or_not():
    """R-hat can't be told of constant log scores; the edges still can be compared."""
    same = make([[7] * 10, [7] * 10]).diagnostics()
    assert np.isnan(same.r_hat)
    assert same.summary.startswith("2 chains agree; largest gap 0.00")
    assert same.ok
    assert same.largest_gap_edge == "a -> b"
    apart = make([[7] * 10, [300] * 10], log_score=np.zeros((2, 10))).diagnostics()
    assert "2 chains don't agree" in str(apart)
    assert not apart.ok


def test_one_chain():
    diagnosed = diagnostics_of(chains=1, draws=2000, r_hat=np.nan)
    assert not diagnosed.ok
    assert str(diagnosed) == (
        "Sampling may not have converged. 1 chain of 2000 draws; 3000 effective draws of the log score.\n"
        "One chain can't be compared with others; run at least two."
    )


def test_few_effective_draws():
    assert diagnostics_of(ess=100.0).heading == "Sampling may not have converged."
    assert diagnostics_of(ess=100.0).warnings() == [
        "Only 100 effective draws of the log score, of 400 at least: until='converged' goes on until there are enough."
    ]


def test_exact_diagnostics():
    diagnosed = diagnostics_of(
        sampler="exact", independent=True, exact=True, chains=1, r_hat=np.nan, ess=100.0, largest_gap=0.3
    )
    assert diagnosed.ok
    assert str(diagnosed) == (
        "Computed exactly, without sampling error. Edge probabilities sum over all networks; 8000 independent draws."
    )
    imprecise = dataclasses.replace(diagnosed, poor_scores=3)
    assert (imprecise.verdict, imprecise.heading) == ("caution", "Computed exactly, from imprecise scores.")


def test_weights_from_another_score():
    weighted = diagnostics_of(reweighted="yes", weight_ess=5000.0, pareto_k=0.3, score_error=0.02)
    assert weighted.ok
    assert str(weighted).endswith(
        "log score; weighted from the proposal score to the target score, worth 5000 draws (Pareto k 0.30); "
        "95% of the scores have errors of up to 0.02."
    )
    few = dataclasses.replace(weighted, pareto_k=np.nan, sampler="exact", independent=True)
    assert str(few) == (
        "Sampling has converged. 8000 independent draws; weighted from the proposal score to the target score, worth "
        "5000 draws (too few distinct draws for a Pareto k); 95% of the scores have errors of up to 0.02."
    )
    cut = dataclasses.replace(few, reweighted="interrupted")
    assert (cut.verdict, cut.heading) == ("poor", "Sampling was interrupted.")
    for poor in ({"pareto_k": 0.9}, {"weight_ess": 35.0}):
        (diagnosed,) = dataclasses.replace(weighted, **poor).warnings()
        assert (
            diagnosed.startswith("The draws' weights can't be relied on (worth")
            and "(reweight=None) to draw" in diagnosed
        )
    # Few draws can't carry a tail that many can.
    assert weight_warnings(0.6, 8000, 8000) == []
    assert weight_warnings(0.6, 100, 100) == [
        "The draws' weights can't be relied on (worth 100 of 100 draws; Pareto k 0.60, should be below 0.50): the "
        "score they were drawn under is too far from the target. Use sampler=gpn.samplers.Auto(reweight=None) to draw "
        "under the target score itself, or draw more."
    ]


def test_few_weights_make_gaps_between_chains_likely():
    assert diagnostics_of(largest_gap=0.15)._disagree
    assert not diagnostics_of(largest_gap=0.15, reweighted="yes", weight_ess=1000.0)._disagree


def test_order_bias_and_few_weights():
    diagnosed = diagnostics_of(sampler="order", order_bias=True)
    assert not diagnosed.ok
    assert "sampler=gpn.samplers.Order(bias='correct')" in str(diagnosed)
    assert diagnosed.heading == "Sampling has converged, with reservations."
    assert diagnostics_of(sampler="order", weight_ess=400.0).warnings() == [
        "Few draws carry the weight (5% effective): draw more, or use sampler='partition', whose draws need no weights."
    ]
    assert make([[0, 1]], sampler="order", order_bias="keep").diagnostics().order_bias
    assert not make([[0, 1]], sampler="order", order_bias="correct").diagnostics().order_bias


def test_a_run_that_waited_in_vain_for_its_chains():
    """Where chance alone may have kept them apart too."""
    diagnosed = diagnostics_of(converged=False)
    assert (diagnosed.verdict, diagnosed.heading) == ("caution", "Sampling may not have converged.")
    assert "The run reached its greatest length before its chains agreed" in diagnosed.warnings()[0]
    assert diagnostics_of(converged=True).ok


# Assumptions and data


def test_sampling_is_judged_apart_from_the_data():
    flagged = diagnostics_of(assumptions=("Rows are independent.",), data_flags=(Flag("outliers", ("a",), "a: 99."),))
    assert flagged.ok and flagged.verdict == "good" and flagged.warnings() == []
    assert flagged.data_verdict == "flagged"
    assert str(flagged).splitlines()[1:] == [
        "The answers assume:",
        "- Rows are independent.",
        "Checks of the data raised 1 flag.",
        "- a: 99.",
    ]
    mild = dataclasses.replace(flagged, data_flags=(Flag("binary", ("a",), "a: two values."),))
    assert mild.data_verdict == "clear"
    found = "Checks of the data found nothing unusual, and made 1 note."
    assert str(mild).splitlines()[3:] == [found, "- a: two values."]
    both = dataclasses.replace(flagged, data_flags=(*flagged.data_flags, *mild.data_flags))
    assert str(both).splitlines()[3:] == [
        "Checks of the data raised 1 flag and 1 note.",
        "- a: 99.",
        "- a: two values.",
    ]


def test_a_posterior_that_knows_nothing_of_its_data_says_so():
    found = make([[7] * 10, [7] * 10], score={"name": "bge", "parameters": {}}).diagnostics()
    assert found.data_flags == () and found.data_verdict == "unknown"
    assert str(found).splitlines()[-1] == "The data were not examined."
    assert "What the score BGe assumes was not recorded." in found.assumptions
    assert found.assumptions[0].startswith("No hidden common causes: ")
