"""The errors that a posterior tells of its answers, and how far it says it can be trusted."""

import dataclasses
from itertools import permutations

import arviz
import numpy as np
import pytest

from gpn_bayes import graphs
from gpn_bayes.data import Flag
from gpn_bayes.posterior import Diagnostics, Estimate
from gpn_bayes.posterior.diagnostics import weight_warnings
from gpn_bayes.posterior.estimate import ess_of, r_hat_of, weighted_moments
from tests.draws import NAMES, drawn_posterior, make


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
        mcse = float(arviz.mcse(z))
        found = post.edge_probability(parent, child)
        assert found.value == pytest.approx(value)
        assert found.mcse == pytest.approx(mcse, rel=1e-9)
        assert found.ess == pytest.approx(value * (1 - value) / mcse**2, rel=1e-9)


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
    assert "The chains disagree (R-hat" in str(diagnosed)
    assert "a -> b" in diagnosed.warnings()[0]


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
        "Only 100 effective draws of the log score: draw more or thin more."
    ]


def test_exact_diagnostics():
    diagnosed = diagnostics_of(sampler="exact", chains=1, r_hat=np.nan, ess=100.0, largest_gap=0.3)
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
    few = dataclasses.replace(weighted, pareto_k=np.nan, sampler="exact")
    assert str(few) == (
        "Sampling has converged. 8000 independent draws; weighted from the proposal score to the target score, worth "
        "5000 draws (too few distinct draws for a Pareto k); 95% of the scores have errors of up to 0.02."
    )
    cut = dataclasses.replace(few, reweighted="interrupted")
    assert (cut.verdict, cut.heading) == ("poor", "Sampling was interrupted.")
    for poor in ({"pareto_k": 0.9}, {"pareto_k": np.inf}, {"weight_ess": 35.0}):
        (diagnosed,) = dataclasses.replace(weighted, **poor).warnings()
        assert diagnosed.startswith("The draws' weights can't be relied on (worth") and "Use reweight=None" in diagnosed
    # Few draws can't carry a tail that many can.
    assert weight_warnings(0.6, 8000, 8000) == []
    assert weight_warnings(0.6, 100, 100) == [
        "The draws' weights can't be relied on (worth 100 of 100 draws; Pareto k 0.60, should be below 0.50): the "
        "score they were drawn under is too far from the target. Use reweight=None to draw under the target score "
        "itself, or draw more."
    ]


def test_few_weights_make_gaps_between_chains_likely():
    assert diagnostics_of(largest_gap=0.15)._disagree
    assert not diagnostics_of(largest_gap=0.15, reweighted="yes", weight_ess=1000.0)._disagree


def test_order_bias_and_few_weights():
    diagnosed = diagnostics_of(sampler="order", order_bias=True)
    assert not diagnosed.ok
    assert "order_bias='correct'" in str(diagnosed)
    assert diagnosed.heading == "Sampling has converged, with reservations."
    diagnosed = diagnostics_of(sampler="order", weight_ess=400.0)
    assert diagnosed.warnings() == [
        "Few draws carry the weight (5% effective): use sampler='partition', which needs no correction."
    ]
    assert diagnostics_of(weight_ess=400.0).warnings() == ["Few draws carry the weight (5% effective): draw more."]
    assert make([[0, 1]], sampler="order", order_bias="kept").diagnostics().order_bias
    assert not make([[0, 1]], sampler="order", order_bias="corrected").diagnostics().order_bias


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
    assert str(mild).splitlines()[3:] == ["Checks of the data found nothing unusual.", "- a: two values."]


def test_a_posterior_that_knows_nothing_of_its_data_says_so():
    found = make([[7] * 10, [7] * 10], score="BGe(alpha_mu=1.0)").diagnostics()
    assert found.data_flags == () and found.data_verdict == "unknown"
    assert str(found).splitlines()[-1] == "The data were not examined."
    assert "What the score BGe assumes was not recorded." in found.assumptions
    assert found.assumptions[0].startswith("No hidden common causes: ")
