"""Rows predicted from all others, with parameters integrated out: against refits, enumeration, and ArviZ."""

import warnings
from dataclasses import replace
from functools import cache

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs, scores
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes.posterior import comparing
from gpn_bayes.posterior.densities import RowDensities, RowsLeftOut, rows_left_out
from gpn_bayes.scores import GP, BGe
from tests.test_effects import weighed_dags
from tests.test_predictive_densities import FAMILIES, categories, numbers

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

QUIET = {"random_seed": 1, "progressbar": False}


def linear_table(rows, seed=1):
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, rows))
    b, d = b + 0.7 * a, d + 0.5 * a
    return pd.DataFrame({"a": a, "b": b, "c": c + 0.4 * b - 0.3 * d, "d": d})


def share_below(equation, value, parents):
    """Return the probability of a smaller value, by summing the density far out on a grid."""
    grid = np.linspace(value - 60, value, 60_001)
    density = np.exp(equation.log_predictive(grid, np.repeat(parents[:, None], len(grid), axis=1)))
    return float(np.trapezoid(density, grid))


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
def test_linear_rows_left_out_are_those_of_refits(node, parents):
    values, score = numbers(), BGe(standardise=False)
    y, x = values[:, node], values[:, list(parents)].T
    found = score.bind(values).equation(node, parents).leave_one_out(y, x)
    for i in range(len(values)):
        refit = score.bind(np.delete(values, i, 0)).equation(node, parents)
        assert found.log_density[i] == pytest.approx(refit.log_predictive(y[i : i + 1], x[:, i : i + 1])[0], abs=1e-9)
        assert found.below[i] == pytest.approx(share_below(refit, y[i], x[:, i]), abs=1e-4)


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
@pytest.mark.parametrize("score", [scores.BDeu(ess=6), scores.K2()])
def test_levels_left_out_are_those_of_refits(score, node, parents):
    table = categories()
    codes = table.apply(lambda column: column.astype("category").cat.codes).to_numpy(dtype=np.int64)
    y, x = codes[:, node], codes[:, list(parents)].T
    found = score.bind(table).equation(node, parents).leave_one_out(y, x)
    for i in range(len(table)):
        refit = score.bind(table.drop(index=i)).equation(node, parents)
        assert found.log_density[i] == pytest.approx(refit.log_predictive(y[i : i + 1], x[:, i : i + 1])[0], abs=1e-9)
        earlier = np.arange(y[i])
        log_shares = refit.log_predictive(earlier, np.repeat(x[:, i : i + 1], len(earlier), axis=1))
        assert found.below[i] == pytest.approx(np.exp(log_shares).sum(), abs=1e-9)


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
def test_curves_left_out_are_those_of_refits(node, parents):
    """Evidences with and without each of 30 rows, by bridge sampling: their ratios have errors of their own."""
    values, score = numbers(30), GP(estimator="bridge", standardise=False)
    names = list("abc")
    own = [names[p] for p in parents]
    y, x = values[:, node], values[:, list(parents)].T
    whole = score.bind(pd.DataFrame(values, columns=names))
    left_out = whole.equation(node, parents).leave_one_out(y, x)
    found = left_out.log_density
    refits = [
        score.bind(pd.DataFrame(np.delete(values, i, 0), columns=names)).local(names[node], own) for i in range(30)
    ]
    ratios = whole.local(names[node], own) - np.array(refits)
    apart = found - ratios
    # Few hyperparameters stand for all, which is felt at rows that tell much about them.
    assert np.abs(apart).max() < (0.4 if parents else 1e-3)
    assert np.median(np.abs(apart)) < 0.04
    assert abs(apart.sum()) < 0.6
    # Shares below: Gaussian processes without the row, of hyperparameters of their own.
    for i in range(0, 30, 6):
        refit = score.bind(pd.DataFrame(np.delete(values, i, 0), columns=names)).equation(node, parents)
        below = share_below(refit, y[i], x[:, i])
        assert left_out.below[i] == pytest.approx(below, abs=0.03 if parents else 1e-3)
    # A negative control: densities of the same rows that were not left out are too high.
    seen = whole.equation(node, parents).log_predictive(y, x)
    assert (seen - ratios).sum() > 1


def exact_left_out(table, i):
    """Return log p(row i | all others), over all 543 DAGs of four variables, each weighed by the others."""
    standard = (table - table.mean()) / table.std()
    scorer = BGe(standardise=False).bind(standard.drop(index=i))
    dags, probabilities = weighed_dags(scorer)
    row = standard.to_numpy()[i : i + 1]

    @cache
    def density(v, parents):
        return scorer.equation(v, parents).log_predictive(row[:, v], row[:, list(parents)].T)[0]

    joint = [sum(density(v, tuple(np.flatnonzero(dag[:, v]).tolist())) for v in range(4)) for dag in dags]
    return logsumexp(joint, b=probabilities) - np.log(table.std()).sum()


def quiet_loo(tree):
    """Ties between DAGs make some k large."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        return az.loo(tree, pointwise=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_arviz_finds_the_exact_sum_over_all_dags(seed):
    table = linear_table(40, seed)
    exact = np.array([exact_left_out(table, i) for i in range(40)])
    posts = {str(k): gpn.sample(table, score="bge", draws=8000, random_seed=k, progressbar=False) for k in (1, 2)}
    tree = posts["1"].to_arviz(log_likelihood=True)
    found = quiet_loo(tree)
    assert found.elpd == pytest.approx(exact.sum(), abs=0.05)
    np.testing.assert_allclose(found.elpd_i, exact, atol=0.02)
    both = gpn.compare(posts).table
    assert (np.abs(both["elpd"] - exact.sum()) < 2 * both["mcse"]).all()
    assert (both["mcse"] < 0.03).all()
    # A negative control: DAGs weighed by all rows, the one to be predicted among them, are too good.
    log_likelihood = tree["log_likelihood"]["rows"].to_numpy().reshape(-1, 40)
    assert logsumexp(log_likelihood, axis=0, b=1 / 32000).sum() - exact.sum() > 0.5


def test_two_runs_of_one_posterior_predict_about_equally_well():
    """Variables differ by how often each end of an edge was drawn as the parent: by chance, which the error tells."""
    table = linear_table(60)[["a", "b"]]
    posts = {str(k): gpn.sample(table, score="bge", draws=100, random_seed=k, progressbar=False) for k in (1, 2)}
    found = gpn.compare(posts)
    assert "predict rows left out about equally well, a difference of " in str(found)
    own = found.by_variable[found.by_variable["model"] != found.best]
    assert (own["elpd_diff"].abs() < 4 * np.hypot(own["dse"], own["mcse"])).all() and (own["mcse"] > 0.1).all()
    with pytest.raises(ValueError, match="^draws must be a whole number, 1 or more; received 0$"):
        gpn.compare(posts, draws=0)


def test_the_error_of_a_variable_follows_from_what_each_draw_moves():
    rng = np.random.default_rng(1)
    by_set, places, log_weights = rng.normal(size=(4, 6)), rng.integers(4, size=(30, 1)), rng.normal(size=(30, 6))
    log_weights -= np.log(np.exp(log_weights).sum(axis=0))

    def total(counts):
        weights = counts[:, None] * np.exp(log_weights)
        return np.log((weights * np.exp(by_set[places[:, 0]])).sum(axis=0) / weights.sum(axis=0)).sum()

    slopes = [(total(1 + 1e-5 * one) - total(1 - 1e-5 * one)) / 2e-5 for one in np.eye(30)]
    rows = RowsLeftOut(RowDensities(by_set, places), np.zeros((30, 6)), log_weights, None, 0.5)
    assert comparing._of_variable(rows, 0).mcse == pytest.approx(30 * np.std(slopes) / np.sqrt(15), rel=1e-6)


def test_draws_that_repeat_tell_no_more():
    """Each draw four times over has the error of the draws, not half of it."""
    post = gpn.sample(linear_table(60), score="bge", draws=500, **QUIET)
    again = {name: np.repeat(getattr(post, name), 4, axis=1) for name in ("parents", "log_score")}
    repeated = replace(post, stats={}, exact=None, **again)
    once, four = (rows_left_out(own, own.log_score.size, progressbar=False) for own in (post, repeated))
    assert four.share == pytest.approx(0.25, rel=0.3) and once.share > 0.8
    for node in range(4):
        one, other = (comparing._of_variable(found, node).mcse for found in (once, four))
        assert one > 0 and other == pytest.approx(one, rel=0.25)
    one, other = (comparing._mcse(found.joint, found.share) for found in (once, four))
    assert other == pytest.approx(one, rel=0.25)


def test_weighted_draws_are_those_of_their_own_chains():
    """Two chains of one DAG each: resampling by weights leaves both in their places, and the weights count."""
    table, rng = linear_table(60)[["a", "b"]], np.random.default_rng(1)
    post = gpn.sample(table, score="bge", draws=100, chains=2, **QUIET)
    dags = np.zeros((2, 100, 2, 2), dtype=np.int8)
    dags[1, :, 0, 1] = 1
    weighted = replace(
        post,
        parents=graphs.pack(dags),
        log_score=rng.normal(size=(2, 100)),
        log_weights=rng.normal(scale=2.0, size=(2, 100)),
        stats={},
        exact=None,
    )
    found = rows_left_out(weighted, 200, progressbar=False)
    without, with_edge = found.joint.reshape(2, 100, -1)
    # Of ties, one is lowered by 1e-10.
    np.testing.assert_allclose(without, without[:1].repeat(100, axis=0), atol=1e-9)
    np.testing.assert_allclose(with_edge, with_edge[:1].repeat(100, axis=0), atol=1e-9)
    assert np.abs(without[0] - with_edge[0]).max() > 0.1
    assert found.share == pytest.approx(effective_size(weighted.weights) / 200) and found.share < 0.3
    # So they do where the log score never changes, as in an equivalence class.
    alike = rows_left_out(replace(weighted, log_score=np.zeros((2, 100))), 200, progressbar=False)
    assert alike.share == found.share


def test_draws_that_all_agree_are_no_error():
    """Where one DAG has all of the mass, ArviZ would raise "All tail values are the same"."""
    x = np.random.default_rng(1).normal(size=200)
    table = pd.DataFrame({"x": x, "y": x + 0.01 * np.random.default_rng(2).normal(size=200)})
    post = gpn.sample(table, score="bge", required=[("x", "y")], draws=300, **QUIET)
    found = quiet_loo(post.to_arviz(log_likelihood=True))
    assert np.isnan(found.pareto_k).all()
    exact = post.scorer.scorer
    values = ((table - table.mean()) / table.std()).to_numpy()
    rows = exact.equation(0, ()).leave_one_out(values[:, 0], np.empty((0, 200))).log_density
    rows = rows + exact.equation(1, (0,)).leave_one_out(values[:, 1], values[:, :1].T).log_density
    rows = rows - np.log(table.std()).sum()
    np.testing.assert_allclose(found.elpd_i, rows, atol=1e-9)


def test_weighted_draws_are_resampled_and_say_so():
    table = pd.DataFrame(numbers(40), columns=list("abc"))
    post = gpn.sample(table, score="gp", draws=100, space=gpn.Space(max_parents=1), **QUIET)
    weighted = post.to_arviz(log_likelihood=True, resample=False, progressbar=False)
    plain = "equal" if post.log_weights is None else "log_weights"
    assert weighted["log_likelihood"].attrs["weights"] == plain
    expected = "equal" if post.log_weights is None else "resampled"
    assert post.to_arviz(log_likelihood=True, progressbar=False)["log_likelihood"].attrs["weights"] == expected


def test_predictions_are_calibrated_and_arviz_sees_when_not():
    """PIT of each variable given its parents: uniform under the model, not where noise has heavy tails."""
    table = linear_table(150)
    good = gpn.sample(table, score="bge", draws=500, **QUIET)
    tails = table.assign(d=table["a"] + np.random.default_rng(5).standard_t(1.5, 150))
    bad = gpn.sample(tails, score="bge", draws=500, **QUIET)
    for post, uniform in ((good, True), (bad, False)):
        tree = post.to_arviz(log_likelihood=True, posterior_predictive=True, variable="d")
        pit = az.loo_pit(tree)["d"].to_numpy()
        assert (stats.kstest(pit, "uniform").pvalue > 0.01) == uniform


def test_arviz_draws_what_it_is_given():
    table = linear_table(60).rename(columns={"a": "draw", "b": "<b>"})
    tree = gpn.sample(table, score="bge", draws=100, **QUIET).to_arviz(posterior_predictive=True)
    assert list(tree["observed_data"]) == ["draw_", "<b>", "c", "d"]
    assert tree["posterior_predictive"]["c"].dims == ("chain", "draw", "row")
    az.plot_ppc_dist(tree, var_names=["c"])
    plt.close("all")


def test_tables_drawn_anew_look_like_the_old_one():
    table = linear_table(300)
    post = gpn.sample(table, score="bge", draws=500, **QUIET)
    new = post.sample_predictive(300, tables=200)
    spread = new.groupby("table").std()
    assert (np.abs(spread.mean() - table.std()) < 4 * spread.std() / np.sqrt(200) + 0.1 * table.std()).all()
    correlations = new.groupby("table").corr().unstack()[("c", "b")]
    assert table.corr().loc["b", "c"] == pytest.approx(correlations.mean(), abs=3 * correlations.std())
    assert post.sample_predictive(7).shape == (7, 4)
    levels = gpn.sample(categories(), score="bdeu", draws=100, **QUIET).sample_predictive(5, tables=2)
    assert set(levels["a"]) <= {"0", "1", "2"}
    with pytest.raises(ValueError, match="^tables must be a whole number, 1 or more; received 0$"):
        post.sample_predictive(5, tables=0)


def test_a_variable_is_predicted_from_its_parents_or_from_all():
    """Under one DAG: from a known line, and from the joint density by Bayes' rule."""
    table = linear_table(200)
    edges = [("a", "b"), ("b", "c")]
    nothing = [(x, y) for x in "abcd" for y in "abcd" if x != y and (x, y) not in edges]
    post = gpn.sample(table, score="bge", required=edges, forbidden=nothing, draws=2000, **QUIET)
    new = linear_table(5, seed=9)
    scorer = post.scorer.scorer
    unit, centre = table.std(), table.mean()
    line = scorer.equation(1, (0,))
    standard = (new - centre) / unit
    mean = line.level + line.mean[0] * (standard["a"] - line.centre[0])
    found = post.predict(new.drop(columns="b"), "b")
    np.testing.assert_allclose(found["mean"], centre["b"] + unit["b"] * mean, atol=0.01)
    leverage = 1 / line.rows + line.spread[0, 0] * (standard["a"] - line.centre[0]) ** 2
    scale = unit["b"] * np.sqrt(line.residual / line.df * (1 + leverage))
    np.testing.assert_allclose(found["sd"], scale, rtol=0.03)
    np.testing.assert_allclose(found["upper"] - found["lower"], 2 * scale * stats.t.ppf(0.95, line.df), rtol=0.1)
    known = post.predict(new, "b", given="all")
    grid = np.linspace(-6, 6, 4001)
    for i in range(5):
        rows = pd.DataFrame([new.iloc[i]] * len(grid)).assign(b=grid)
        weights = np.exp(post.log_predictive(rows, draws=1).log_density.to_numpy())
        exact = np.average(grid, weights=weights)
        assert known["mean"].iloc[i] == pytest.approx(exact, abs=1e-3)
        sd = np.sqrt(np.average((grid - exact) ** 2, weights=weights))
        assert known["sd"].iloc[i] == pytest.approx(sd, rel=1e-3)
        within = np.interp(known[["lower", "upper"]].iloc[i], grid, np.cumsum(weights) / weights.sum())
        np.testing.assert_allclose(within, [0.05, 0.95], atol=2e-3)
    # c tells of b what a doesn't.
    assert (known["sd"] < 0.99 * found["sd"]).all()


def test_levels_are_predicted_by_their_probabilities():
    table = categories()
    post = gpn.sample(table, score="bdeu", draws=300, **QUIET)
    rows = pd.DataFrame({"a": ["0", "2"], "c": ["1", "0"]})
    for given in ("parents", "all"):
        found = post.predict(rows, "b", given=given)
        assert list(found) == ["0", "1"]
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    both = [np.exp(post.log_predictive(rows.assign(b=level)).log_density.to_numpy()) for level in "01"]
    np.testing.assert_allclose(found["1"], both[1] / (both[0] + both[1]))


def test_curves_predict_better_than_lines_where_they_are_curves():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, 120)
    table = pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.2 * rng.normal(size=120), "z": rng.normal(size=120)})
    posts = {s: gpn.sample(table[:90], score=s, draws=100, **QUIET) for s in ("bge", "gp")}
    found = gpn.compare(posts, progressbar=False)
    assert found.best == "gp" and found.rows == 90
    assert found.table.loc["bge", "elpd_diff"] < -4 * found.table.loc["bge", "dse"]
    by = found.by_variable.set_index(["variable", "model"])
    assert by.loc[("y", "bge"), "elpd_diff"] < -4 * by.loc[("y", "bge"), "dse"]
    assert abs(by.loc[("z", "bge"), "elpd_diff"]) < 3
    assert "gp predicts rows left out better than bge, by " in str(found) and "<table" in found._repr_html_()
    assert found.plot().get_legend_handles_labels()[1] == ["bge - gp"]
    plt.close("all")
    # Rows held out agree.
    new = {s: float(post.log_predictive(table[90:], progressbar=False).log_density.sum()) for s, post in posts.items()}
    assert new["gp"] > new["bge"] + 10


def test_what_can_not_be_compared_is_refused():
    table = linear_table(60)
    post = gpn.sample(table, score="bge", draws=50, **QUIET)
    others = {
        "^comparisons need two posteriors or more; received 1$": {},
        "^compared posteriors must be over the same variables; 'd' is only in 'x'$": table[["a", "b", "c"]],
        "^compared posteriors must be of the same rows in the same units, .*; those of 'x' and 'y' differ$": table * 2,
    }
    for message, other in others.items():
        pair = {"x": post} | ({"y": gpn.sample(other, score="bge", draws=50, **QUIET)} if len(other) else {})
        with pytest.raises(ValueError, match=message):
            gpn.compare(pair)
    rule = "^posteriors must map names to what gpn.sample returned, as in {'gp': post_gp, 'bge': post_bge}; received "
    for wrong, received in (([post, post], "a list"), (post, "a GraphPosterior"), ({"x": post, "y": 3}, "3 for 'y'")):
        with pytest.raises(ValueError, match=f"{rule}{received}$"):
            gpn.compare(wrong)
    cut = gpn.sample(gpn.Dataset.read(table, discretise=3), score="bdeu", draws=50, **QUIET)
    with pytest.raises(ValueError, match="^densities of numbers and probabilities of categories can't be compared; "):
        gpn.compare({"x": post, "y": cut})
    of_sums = gpn.sample(gpn.SufficientStatistics.of(table), score="bge", draws=50, **QUIET)
    with pytest.raises(ValueError, match="need the rows; received SufficientStatistics$"):
        of_sums.to_arviz(log_likelihood=True)
    # Another order of columns is the same table.
    turned = gpn.sample(table[list("dcba")], score="bge", draws=50, **QUIET)
    assert len(gpn.compare({"x": post, "y": turned}).table) == 2
