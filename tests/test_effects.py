"""Effects of setting a variable, against closed forms averaged over all DAGs."""

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.posterior.draws import choose
from gpn_bayes.posterior.effect import Effect, weighted_quantiles
from gpn_bayes.posterior.effects import _average_slopes as average_slopes
from gpn_bayes.scores import GP, BGe
from gpn_bayes.scores.gp.components import components
from gpn_bayes.scores.gp.curve_equation import CurveEquation
from tests.draws import make

REFERENCE = Path(__file__).parent / "reference" / "effects"
NAMES = ["a", "b", "c", "d"]
QUIET = {"random_seed": 1, "progressbar": False}


def linear_table(rows=60, seed=1):
    """Return few rows of a small network, so that many DAGs are possible; columns have units of their own."""
    noise = np.random.default_rng(seed).normal(size=(rows, 4))
    a = noise[:, 0]
    b = 0.5 * a + noise[:, 1]
    c = 0.4 * a - 0.5 * b + noise[:, 2]
    d = 0.4 * c + noise[:, 3]
    return pd.DataFrame({"a": 3 * a + 10, "b": b, "c": 0.1 * c, "d": d - 5})


def categories(rows=80, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.7, a > 0, rng.random(rows) < 0.5).astype(int)
    c = np.where(rng.random(rows) < 0.6, b, rng.integers(0, 2, rows))
    return pd.DataFrame(
        {"a": np.array(["low", "middle", "tall"])[a], "b": np.array(["no", "yes"])[b], "c": c.astype(str)}
    )


def weighed_dags(scorer):
    """Return all DAGs and their posterior probabilities under a uniform prior."""
    dags = np.array(list(graphs.enumerate_dags(len(scorer.names))))
    scores = np.array([scorer.total(dag) for dag in dags])
    return dags, np.exp(scores - logsumexp(scores))


def moments_of_totals(scorer, dag, source):
    """Return means and second moments of the total effects of one variable, given a DAG, in standardised units.

    The coefficients of different nodes are independent a posteriori, so the moments follow down the order:
    t_j = sum_k b_kj t_k.
    """
    n = len(dag)
    mean, second = np.zeros(n), np.zeros((n, n))
    mean[source], second[source, source] = 1.0, 1.0
    seen = []
    for j in graphs.topological_order(dag):
        parents = tuple(np.flatnonzero(dag[:, j]).tolist())
        if j != source and parents:
            line = scorer.equation(int(j), parents)
            own = list(parents)
            covariance = line.residual / line.df * line.spread * line.df / (line.df - 2)
            mean[j] = line.mean @ mean[own]
            for m in seen:
                second[j, m] = second[m, j] = line.mean @ second[own, m]
            second[j, j] = ((np.outer(line.mean, line.mean) + covariance) * second[np.ix_(own, own)]).sum()
        seen.append(j)
    return mean, np.diag(second)


def test_coefficients_and_plug_in_effects_are_those_of_another_program():
    table = np.log2(gpn.datasets.sachs() + 0.5)
    scorer = BGe().bind(table)
    known = pd.read_csv(REFERENCE / "sachs853_consensus17_bge_coefficients.csv")
    dag = graphs.as_adjacency(gpn.datasets.sachs_consensus(17), scorer.names)
    b = np.zeros(dag.shape)
    for child, rows in known.groupby("child"):
        node = scorer.index(child)
        parents = tuple(np.flatnonzero(dag[:, node]).tolist())
        line = scorer.equation(node, parents)
        b[list(parents), node] = line.mean
        for row in rows.itertuples():
            place = parents.index(scorer.index(row.parent))
            assert (line.mean[place], line.scale[place], line.df) == pytest.approx(
                (row.mu, row.scale, row.df), abs=1e-8
            )
    assert len(known) == 17
    totals = pd.DataFrame(np.linalg.inv(np.eye(11) - b), scorer.names, scorer.names)
    plug_in = pd.read_csv(REFERENCE / "sachs853_consensus17_bge_total_effects_plugin.csv", index_col=0)
    pd.testing.assert_frame_equal(totals.loc[plug_in.index, plug_in.columns], plug_in.astype(float), atol=1e-8, rtol=0)


@pytest.mark.parametrize("score", ["bge", "bic"])
def test_linear_effects_average_over_all_dags(score):
    table = linear_table()
    post = gpn.sample(table, score=score, draws=4000, **QUIET)
    scorer = post.scorer.scorer
    dags, probabilities = weighed_dags(scorer)
    scale = table.std().to_numpy()
    found = post.effects().set_index(["cause", "outcome"])
    checked = 0
    for i, cause in enumerate(NAMES):
        moments = [moments_of_totals(scorer, dag, i) for dag in dags]
        mean = probabilities @ np.array([own for own, _ in moments]) * scale / scale[i]
        second = probabilities @ np.array([own for _, own in moments]) * (scale / scale[i]) ** 2
        for j, outcome in enumerate(NAMES):
            if i == j:
                continue
            row = found.loc[cause, outcome]
            assert abs(row["mean"] - mean[j]) < 4 * row["mcse"]
            sd = np.sqrt(second[j] - mean[j] ** 2)
            assert row["sd"] == pytest.approx(sd, rel=0.06)
            path = probabilities @ graphs.ancestors(dags)[:, i, j]
            assert abs(row["path_probability"] - path) < 4 * np.sqrt(path * (1 - path) / post.log_score.size) + 1e-9
            checked += 1
    assert checked == 12
    # A negative control: the wrong units are noticed.
    wrong = found["mean"] * 1.2
    assert (np.abs(wrong - found["mean"]) > 4 * found["mcse"]).any()


def test_an_effect_says_what_its_draws_say():
    post = gpn.sample(linear_table(), score="bge", draws=1000, **QUIET)
    effect = post.effect("a", "c")
    assert isinstance(effect, Effect)
    assert effect.draws.dims == ("chain", "draw")
    assert effect.draws.shape == (4, 1000)
    draws = effect.draws.to_numpy()
    assert effect.mean == pytest.approx(draws.mean())
    assert effect.sd == pytest.approx(draws.std())
    assert effect.interval(0.8) == pytest.approx(tuple(np.quantile(draws, [0.1, 0.9])), abs=0.003)
    path = post.path_probability("a", "c")
    assert effect.probability == pytest.approx((draws != 0).mean())
    assert abs(effect.probability - path.value) < 4 * np.sqrt(0.25 / draws.size)
    given = effect.given_path
    assert given.probability == 1.0
    assert given.mean == pytest.approx(effect.mean / effect.probability)
    assert given.interval(0.8) == pytest.approx(tuple(np.quantile(draws[draws != 0], [0.1, 0.9])), abs=0.003)
    assert given.given_path is given
    row = post.effects(probability=0.8).set_index(["cause", "outcome"]).loc["a", "c"]
    assert row["mean_given_path"] == pytest.approx(given.mean)
    assert (row["lower_given_path"], row["upper_given_path"]) == pytest.approx(given.interval(0.8))
    contrast = post.effect("a", "c", to=12.0, versus=9.0)
    np.testing.assert_allclose(contrast.draws, 3 * draws)
    assert contrast.given_path.slope.mean == pytest.approx(given.mean)
    assert contrast.slope.mean == effect.mean
    assert "from 9 to 12" in str(contrast)
    assert str(effect).startswith("effect of a on c, for each unit of a: ")
    assert f"any effect with probability {effect.probability:.2f}" in str(effect)
    assert repr(effect) == f"<Effect: {effect}>"
    assert effect._repr_html_() == f"<p>{effect}</p>"


def test_weights_count():
    """Draws that weigh nothing leave the answer to the others, and errors grow with uneven weights."""
    post = gpn.sample(linear_table(), score="bge", draws=1000, **QUIET)
    path = graphs.ancestors(post.adjacency)[..., 0, 2]
    weighted = gpn.GraphPosterior(
        post.names, post.parents, post.log_score, np.where(path, 0.0, -np.inf), scorer=post.scorer, data=post.data
    )
    own, plain = weighted.effect("a", "c"), post.effect("a", "c")
    assert own.probability == 1.0
    assert own.mean == pytest.approx(plain.mean / plain.probability)
    expected = np.quantile(plain.draws.to_numpy()[path], [0.05, 0.95])
    assert own.interval(0.9) == pytest.approx(tuple(expected), abs=0.01)
    uneven = gpn.GraphPosterior(
        post.names,
        post.parents,
        post.log_score,
        np.random.default_rng(1).normal(size=post.log_score.shape) * 1.5,
        scorer=post.scorer,
        data=post.data,
    )
    assert uneven.effect("a", "c").mcse > 1.5 * plain.mcse


def test_the_table_of_all_effects_counts_weights():
    post = gpn.sample(linear_table(), score="bge", draws=300, **QUIET)
    log_weights = 2.0 * graphs.ancestors(post.adjacency)[..., 0, 2] * np.random.default_rng(1).random((4, 300))
    weighted = gpn.GraphPosterior(
        post.names, post.parents, post.log_score, log_weights, scorer=post.scorer, data=post.data
    )
    row, single = weighted.effects().set_index(["cause", "outcome"]).loc[("a", "c")], weighted.effect("a", "c")
    given = single.given_path
    agreeing = np.average(single.draws * np.sign(single.mean) > 0, weights=single.weights)
    assert row["path_probability"] == pytest.approx(single.probability) and 0.1 < single.probability < 0.9
    assert row["probability"] == pytest.approx(agreeing)
    assert (row["mean"], row["sd"], row["mcse"]) == pytest.approx((single.mean, single.sd, single.mcse))
    assert (row["lower"], row["upper"]) == pytest.approx(single.interval(0.9))
    assert row["mean_given_path"] == pytest.approx(given.mean)
    assert (row["lower_given_path"], row["upper_given_path"]) == pytest.approx(given.interval(0.9))


def test_errors_of_scores_reach_effects():
    post = gpn.sample(linear_table(), score="bge", draws=1000, **QUIET)
    noisy = gpn.GraphPosterior(
        post.names,
        post.parents,
        post.log_score,
        score_errors=np.full(post.parents.shape[:3], 0.3),
        scorer=post.scorer,
        data=post.data,
    )
    assert noisy.effect("a", "c").mcse > 2 * post.effect("a", "c").mcse


def test_effects_are_the_same_after_saving_in_another_order_and_of_a_subset(tmp_path):
    post = gpn.sample(linear_table(), score="bge", draws=300, **QUIET)
    first = post.effect("a", "c", random_seed=3).draws
    post.save(tmp_path / "post.nc")
    again = gpn.load(tmp_path / "post.nc")
    again.effect("b", "d", random_seed=3)
    assert first.identical(again.effect("a", "c", random_seed=3).draws)
    assert not first.equals(post.effect("a", "c", random_seed=4).draws)
    assert post.effect("a", "c", draws=100).draws.shape == (4, 25)


def test_statistics_are_enough_for_linear_effects():
    table = linear_table()
    settings = {"score": "bge", "draws": 200} | QUIET
    rows = gpn.sample(table, **settings).effect("a", "c")
    statistics = gpn.sample(gpn.SufficientStatistics.of(table), **settings).effect("a", "c")
    np.testing.assert_allclose(rows.draws, statistics.draws, atol=1e-9)


def test_changed_rows_do_not_count_for_effects():
    """A variable that was set from outside says nothing of its own equation."""
    table = linear_table(rows=400)
    table.loc[300:, "c"] = np.random.default_rng(2).normal(size=100)
    targets = ["c" if row >= 300 else "" for row in range(400)]
    required = [("a", "c"), ("b", "c")]
    forbidden = [(x, y) for x in NAMES for y in NAMES if x != y and (x, y) not in required]
    settings = {"score": "bge", "required": required, "forbidden": forbidden, "draws": 500} | QUIET
    known = gpn.sample(table, targets=targets, **settings).effect("a", "c")
    pooled = gpn.sample(table, **settings).effect("a", "c")
    honest = gpn.sample(table.iloc[:300], **settings).effect("a", "c")
    assert abs(known.mean - honest.mean) < 0.05 * honest.sd + 4 * np.hypot(known.mcse, honest.mcse)
    assert abs(pooled.mean - honest.mean) > 2 * honest.sd


# Categories


def test_tables_average_over_all_dags():
    """Tables of different nodes are independent a posteriori, so mean tables give the mean of P(y | do(x))."""
    table = categories()
    post = gpn.sample(table, score="bdeu", draws=3000, **QUIET)
    scorer = post.scorer.scorer
    dags, probabilities = weighed_dags(scorer)
    effect = post.effect("a", "c")
    expected = np.zeros((3, 2))
    for dag, probability in zip(dags, probabilities, strict=True):
        tables = {}
        for v in range(3):
            alpha = scorer.equation(v, tuple(np.flatnonzero(dag[:, v]).tolist())).concentrations
            tables[v] = alpha / alpha.sum(axis=-1, keepdims=True)
        for x in range(3):
            for b in range(2):
                for c in range(2):
                    codes = (x, b, c)
                    product = 1.0
                    for v in (1, 2):
                        product *= tables[v][tuple(codes[p] for p in np.flatnonzero(dag[:, v])) + (codes[v],)]
                    expected[x, c] += probability * product
    assert effect.mean.dims == ("cause", "outcome")
    assert effect.mean["cause"].to_numpy().tolist() == ["low", "middle", "tall"]
    assert (np.abs(effect.mean - expected) < 4 * effect.mcse + 1e-12).all()
    np.testing.assert_allclose(effect.draws.sum("outcome"), 1.0)
    change = post.effect("a", "c", to="tall", versus="low")
    xr.testing.assert_allclose(change.mean, effect.mean.sel(cause="tall") - effect.mean.sel(cause="low"))
    assert "<table" in change._repr_html_()


def test_variables_may_be_called_as_the_draws_are():
    table = categories().set_axis(["chain", "draw", "mean"], axis=1)
    effect = gpn.sample(table, score="bdeu", draws=50, **QUIET).effect("chain", "mean")
    assert effect.draws.dims == ("chain", "draw", "cause", "outcome")
    assert effect.table().columns.tolist() == ["cause", "outcome", "mean", "sd", "lower", "upper", "mcse"]
    assert effect._repr_html_().count("<th>mean</th>") == 2


def test_counts_and_imagined_rows_make_a_table():
    table = categories()
    counts = pd.crosstab([table["a"], table["b"]], table["c"]).to_numpy().reshape(3, 2, 2)
    for score, imagined in ((gpn.scores.BDeu(ess=6), 0.5), (gpn.scores.K2(), 1.0), (gpn.scores.BIC(), 1.0)):
        np.testing.assert_allclose(score.bind(table).equation(2, (0, 1)).concentrations, counts + imagined)


# Gaussian processes


def curved(rows=150, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, rows)
    y = np.sin(1.5 * x) + 0.2 * rng.normal(size=rows)
    return pd.DataFrame({"x": 5 + 2 * x, "y": 10 * y})


def chain(names):
    required = list(pairwise(names))
    forbidden = [(a, b) for a in names for b in names if a != b and (a, b) not in required]
    return {"required": required, "forbidden": forbidden}


def test_drawn_functions_have_the_moments_of_the_process():
    """Given the hyperparameters, against the normal posterior with the covariance matrix written out."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.3 * rng.normal(size=80)
    scorer = GP(standardise=False).bind(np.column_stack([x, y]))
    equation = scorer.equation(2, (0, 1))
    assert isinstance(equation, CurveEquation)
    thetas, sigma = np.array([0.8, 2.0]), 0.3
    draws = 4000
    values, intercept = equation._functions(np.log([sigma, *thetas]), draws, np.random.default_rng(2))
    inside = [slice(120, 281, 40)] * 2
    points = [grid[part] for grid, part in zip(equation.grids, inside, strict=True)]
    parts = components(scorer, 2, (0, 1), np.log([sigma, *thetas]), points, centred=False)
    for p, part in enumerate(parts):
        drawn = values[:, p, inside[p]]
        np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - part.mean), 4.5 * part.sd / np.sqrt(draws))
        np.testing.assert_allclose(drawn.std(axis=0), part.sd, rtol=0.06)
    # The sum is known far better than its parts, whose levels can move between them.
    total = intercept + values[:, 0, 200] + values[:, 1, 200]
    assert total.std() < 0.3 * min(intercept.std(), values[:, 0, 200].std())


def test_a_curve_is_found_in_the_units_of_the_table():
    post = gpn.sample(curved(), score="gp", draws=200, **chain(["x", "y"]), **QUIET)
    effect = post.effect("x", "y", points=15, progressbar=False)
    grid = effect.mean["cause"].to_numpy()
    truth = 10 * np.sin(1.5 * (grid - 5) / 2)
    assert effect.quantity == "curve"
    assert effect.probability == 1.0
    assert effect.given_path is effect
    none = post.effect("y", "x", points=3, progressbar=False)
    assert (none.probability, none.given_path) == (0.0, None)
    backwards = post.effects(draws=40, progressbar=False).set_index(["cause", "outcome"]).loc["y", "x"]
    assert backwards[["mean_given_path", "lower_given_path", "upper_given_path"]].isna().all()
    assert (np.abs(effect.mean - truth) < 4 * effect.sd + 0.3).all()
    lower, upper = effect.interval(0.9)
    inside = ((lower < truth) & (truth < upper)).mean()
    assert inside > 0.5
    narrow, wide = (upper - lower).mean(), np.subtract(*effect.outcome_interval(0.9)[::-1]).mean()
    assert wide > 2 * narrow
    contrast = post.effect("x", "y", to=6.0, versus=4.0, progressbar=False)
    expected = 10 * (np.sin(0.75) - np.sin(-0.75))
    assert abs(contrast.mean - expected) < 4 * contrast.sd
    assert contrast.sd < 1.5


def test_a_linear_truth_gives_the_linear_slope():
    rng = np.random.default_rng(1)
    a = rng.normal(size=300)
    b = 0.8 * a + 0.5 * rng.normal(size=300)
    c = -0.7 * b + 0.5 * rng.normal(size=300)
    table = pd.DataFrame({"a": a, "b": b, "c": c})
    effects = {
        score: gpn.sample(table, score=score, draws=200, **chain(["a", "b", "c"]), **QUIET).effect(
            "a", "c", progressbar=False
        )
        for score in ("bge", "gp")
    }
    slope = effects["gp"].slope
    lower, upper = slope.interval(0.95)
    assert lower < effects["bge"].mean < upper
    assert abs(slope.mean + 0.56) < 3 * slope.sd
    assert slope.sd < 0.06


def test_without_a_path_a_curve_is_flat_and_the_effect_zero():
    table = curved().assign(z=np.random.default_rng(5).normal(size=150))
    names = ["x", "y", "z"]
    settings = {"required": [("x", "y")], "forbidden": [(a, b) for a in names for b in names if (a, b) != ("x", "y")]}
    settings["forbidden"] = [(a, b) for a, b in settings["forbidden"] if a != b]
    post = gpn.sample(table, score="gp", draws=50, **settings, **QUIET)
    effect = post.effect("z", "y", progressbar=False)
    assert effect.probability == 0.0
    assert (effect.slope.draws == 0).all()
    assert np.ptp(effect.draws.to_numpy(), axis=-1).max() == 0.0


def test_all_slopes_are_those_of_single_curves():
    rng = np.random.default_rng(1)
    a = rng.normal(size=120)
    b = np.tanh(a) + 0.3 * rng.normal(size=120)
    c = b**2 / 2 + 0.3 * rng.normal(size=120)
    table = pd.DataFrame({"a": a, "b": b, "c": c})
    post = gpn.sample(table, score="gp", draws=60, **chain(["a", "b", "c"]), **QUIET)
    found = post.effects(progressbar=False).set_index(["cause", "outcome"])
    for pair in (("a", "b"), ("b", "c")):
        slope = post.effect(*pair, progressbar=False).slope
        assert found.loc[pair, "mean"] == pytest.approx(slope.mean, abs=0.1 * abs(slope.mean) + slope.sd)
    assert found.loc[("c", "a"), "mean"] == found.loc[("c", "a"), "sd"] == 0.0


def test_draws_that_are_chosen_have_their_own_weights():
    post = make(np.arange(60).reshape(2, 30), np.log(1.0 + np.arange(60).reshape(2, 30)))
    chosen = choose(post, 10)
    assert chosen.shape == (2, 5) and chosen.places.tolist() == [0, 7, 14, 22, 29, 30, 37, 44, 52, 59]
    np.testing.assert_allclose(chosen.weights.ravel(), (1 + chosen.places) / (1 + chosen.places).mean())


def test_slopes_of_curves_are_averaged_over_weighted_rows():
    """The slopes between points 0, 1, 2, 3 are 1, 3, 5; a row on a point belongs to what follows it."""
    grid, means = np.arange(4.0), np.array([[0.0, 1.0, 4.0, 9.0], [0.0, 2.0, 8.0, 18.0]])
    column, weights = np.array([0.5, 1.0, 1.5, 2.5]), np.array([4.0, 0.0, 1.0, 3.0])
    found = average_slopes(means, grid, column, weights)
    np.testing.assert_allclose(found, np.array([1, 2]) * (4 * 1 + 1 * 3 + 3 * 5) / 8)
    repeated = np.repeat(column, weights.astype(int))
    np.testing.assert_allclose(average_slopes(means, grid, repeated, None), found)
    np.testing.assert_allclose(average_slopes(means, grid, column, None), np.array([1, 2]) * (1 + 3 + 3 + 5) / 4)


def test_slopes_of_curves_of_weighted_rows_are_those_of_repeated_rows():
    rng = np.random.default_rng(1)
    a = rng.uniform(-2, 2, 60)
    # Steep on the right, where the rows weigh most.
    table = pd.DataFrame({"a": a, "b": np.exp(a) + 0.3 * rng.normal(size=60), "n": np.where(a > 1, 6, 1)})
    repeated = table.loc[table.index.repeat(table["n"]), ["a", "b"]]
    settings = {"score": "gp", "draws": 60, **chain(["a", "b"]), **QUIET}
    post = gpn.sample(table, weights="n", **settings)
    weighted = post.effect("a", "b", progressbar=False).slope
    alone = gpn.sample(table[["a", "b"]], **settings).effect("a", "b", progressbar=False).slope
    expected = gpn.sample(repeated, **settings).effect("a", "b", progressbar=False).slope
    error = 4 * np.hypot(weighted.mcse, expected.mcse) + 0.02 * expected.mean
    assert weighted.mean == pytest.approx(expected.mean, abs=error)
    assert expected.mean - alone.mean > 4 * error
    # Weights of surveys aren't repetitions. Of all pairs, curves have fewer points.
    with pytest.warns(UserWarning, match="survey weights"):
        survey = gpn.sample(table.assign(n=table["n"] / 4), weights="n", **settings)
    assert survey.data.weights is not None and post.data.weights is None
    every = survey.effects(progressbar=False).set_index(["cause", "outcome"])
    for found in (survey.effect("a", "b", progressbar=False).slope.mean, every.loc[("a", "b"), "mean"]):
        assert found == pytest.approx(expected.mean, abs=0.3 * (expected.mean - alone.mean))


# What users get wrong


def test_bad_questions_are_refused_in_one_line():
    post = gpn.sample(linear_table(), score="bge", draws=50, **QUIET)
    discrete = gpn.sample(categories(), score="bdeu", draws=50, **QUIET)
    without = gpn.GraphPosterior(post.names, post.parents, post.log_score)
    for call, message in (
        (lambda: post.effect("a", "a"), "an effect is that of one variable on another; received 'a' twice"),
        (lambda: post.effect("a", "b", to=3), "a contrast needs both values, to= and versus=; received one of them"),
        (
            lambda: post.effect("a", "b", to="x", versus=1),
            "a variable of numbers is set to a finite number; received 'x'",
        ),
        (lambda: post.effect("a", "z"), "z"),
        (lambda: post.effect("a", "b").interval(1.5), "probability must"),
        (
            lambda: post.effect("a", "b").outcome_interval(),
            "intervals of outcomes are those of a curve or of means; this is a slope",
        ),
        (
            lambda: discrete.effect("a", "b", to="high", versus="low"),
            "'a' must be one of its levels, low, middle, tall",
        ),
        (lambda: discrete.effects(), "a table of all effects needs numbers; received categories"),
        (lambda: without.effect("a", "b"), "effects need the score, and this posterior doesn't have it; sample again"),
    ):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")) as refusal:
            call()
        assert "\n" not in str(refusal.value)


def test_interactions_have_no_drawn_equations():
    post = gpn.sample(curved(40), score=GP(kernel="interaction", estimator="laplace"), draws=20, **QUIET)
    with pytest.raises(ValueError, match="equations are drawn under the additive kernel only"):
        post.effect("x", "y", progressbar=False)


def test_quantiles_count_weights():
    values = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 6.0]])
    assert weighted_quantiles(values, [np.array([1.0, 0.0, 0.0])], [0.5])[0, 0].tolist() == [1.0, 5.0]
    assert weighted_quantiles(values, [np.ones(3)], [0.5])[0, 0].tolist() == [2.0, 5.0]


# Adjustment


def blocked_by_paths(dag, cause, outcome, given):
    """Return whether a set satisfies the back-door criterion, path by path."""
    graph = nx.DiGraph(dag)
    descendants = nx.descendants(graph, cause)
    if set(given) & (descendants | {cause, outcome}):
        return False
    for path in nx.all_simple_paths(graph.to_undirected(), cause, outcome):
        if not dag[path[1], cause]:
            continue
        open_path = True
        for before, node, after in zip(path, path[1:], path[2:], strict=False):
            collider = dag[before, node] and dag[after, node]
            reached = {node} | nx.descendants(graph, node)
            open_path &= bool(reached & set(given)) if collider else node not in given
        if open_path:
            return False
    return True


def test_back_door_sets_by_paths():
    seen = set()
    for dag in graphs.enumerate_dags(4):
        for given in ([], [2], [3], [2, 3]):
            expected = blocked_by_paths(dag, 0, 1, given)
            assert graphs.is_back_door_set(dag, 0, 1, given) == expected
            seen.add((len(given), expected))
        for members in graphs.minimal_back_door_sets(dag, 0, 1):
            assert blocked_by_paths(dag, 0, 1, members)
            assert not any(blocked_by_paths(dag, 0, 1, set(members) - {one}) for one in members)
    assert len(seen) == 6


def test_adjustment_sets_have_their_probability_over_all_dags():
    post = gpn.sample(linear_table(), score="bge", draws=500, **QUIET)
    dags, probabilities = weighed_dags(post.scorer.scorer)
    valid = [graphs.is_back_door_set(dag, 1, 2, [0]) for dag in dags]
    answer = post.is_adjustment_set("b", "c", ["a"])
    assert answer.value == pytest.approx(probabilities @ valid)
    assert answer.mcse == 0.0
    table = post.adjustment_sets("b", "c", most=3)
    assert len(table) == 3
    assert table["probability"].is_monotonic_decreasing
    assert ("a",) in table["adjustment_set"].tolist()
    with pytest.raises(ValueError, match="variables must be a list of variables; received 'a'"):
        post.is_adjustment_set("b", "c", "a")


def test_adjustment_sets_are_those_of_probable_dags_not_of_frequent_ones():
    """Eighteen draws with a common cause d weigh less than two with a common cause a."""
    dags = np.zeros((2, 4, 4), dtype=np.int8)
    dags[:, 1, 2] = dags[0, 3, 1:3] = dags[1, 0, 1:3] = 1
    post = make([[0] * 18 + [1] * 2], np.array([[0.0] * 18 + [3.0] * 2]), dags=dags, names=tuple(NAMES))
    (found,) = post.adjustment_sets("b", "c", most=1).itertuples()
    assert found.adjustment_set == ("a",)
    assert found.probability == pytest.approx(2 * np.exp(3) / (2 * np.exp(3) + 18))
