"""Equations that are linear or curved: scores, what is drawn and predicted, and what refuses them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes.scores import GP, BGe
from gpn_bayes.scores.recorded import as_setting, from_parameters

pytestmark = pytest.mark.more("statistics that take long")

EITHER = {"equations": "linear or curved"}


def table(kind, rows=60, seed=1):
    """Return two causes and their effect, linear or curved."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    both = x @ [0.8, -0.6] if kind == "linear" else np.sin(2 * x[:, 0]) + np.abs(x[:, 1])
    return np.column_stack([x, both + 0.4 * rng.normal(size=rows)])


@pytest.mark.parametrize("estimator", ["importance", "laplace"])
@pytest.mark.parametrize("standardise", [True, False])
def test_scores_are_averages_of_both(estimator, standardise):
    data = table("linear")
    settings = {"estimator": estimator, "standardise": standardise}
    either, curved = (GP(**settings, **more).bind(data) for more in (EITHER, {}))
    linear = BGe(standardise=standardise).bind(data)
    sets = [(), (0,), (0, 1)]
    found, curves, lines = (scorer.score_sets(2, sets) for scorer in (either, curved, linear))
    np.testing.assert_allclose(found.values, np.logaddexp(curves.values, lines.values) - np.log(2), rtol=1e-12)
    share = np.exp(curves.values - np.logaddexp(curves.values, lines.values))
    np.testing.assert_allclose(found.errors, share * curves.errors, rtol=1e-9)


def test_weights_are_repetitions():
    data = pd.DataFrame(table("linear", 30), columns=["a", "b", "c"])
    counts = np.random.default_rng(2).integers(1, 4, 30)
    weighted = GP(estimator="laplace", **EITHER).bind(data.assign(w=counts), weights="w")
    repeated = GP(estimator="laplace", **EITHER).bind(data.loc[data.index.repeat(counts)].reset_index(drop=True))
    assert weighted.local("c", ["a", "b"]) == pytest.approx(repeated.local("c", ["a", "b"]), abs=1e-6)


@pytest.mark.parametrize(("kind", "low", "high"), [("linear", 0.9, 1.0), ("curved", 0.0, 0.01)])
def test_rows_tell_whether_an_equation_is_linear(kind, low, high):
    assert low <= GP(**EITHER).bind(table(kind)).equation(2, (0, 1)).straight <= high


def undecided():
    """Return a scorer and an equation of which a few rows don't tell whether it is linear."""
    scorer = GP(standardise=False, target_error=0.005, **EITHER).bind(table("linear", 12, seed=2))
    equation = scorer.equation(2, (0,))
    assert 0.2 < equation.straight < 0.8
    return scorer, equation


def test_draws_have_the_predictive_density():
    scorer, equation = undecided()
    count = 4000
    drawn = equation.draw(count, np.random.default_rng(1))
    values, parents = np.array([-1.0, 0.2, 1.5]), np.array([[0.5, -1.0, 1.0]])
    means = np.array([drawn.expected(k, parents) for k in range(count)])
    given = -0.5 * ((values - means) / drawn.sigma[:, None]) ** 2 - np.log(drawn.sigma[:, None] * np.sqrt(2 * np.pi))
    density = np.exp(given)
    # Hyperparameters of curves are drawn a few dozen times only, here and there: a few percent of the density.
    np.testing.assert_allclose(
        logsumexp(given, axis=0) - np.log(count),
        equation.log_predictive(values, parents),
        atol=0.08 + 4 * (density.std(axis=0) / density.mean(axis=0)).max() / np.sqrt(count),
    )


def test_draws_are_lines_as_often_as_equations_are_linear():
    _, equation = undecided()
    count = 4000
    drawn = equation.draw(count, np.random.default_rng(2))
    # Far from all rows, too.
    apart = np.array([[-40.0, 0.0, 40.0]])
    bends = np.array([np.diff(drawn.expected(k, apart), 2)[0] for k in range(count)])
    lines = np.abs(bends) < 1e-9
    assert (lines == drawn.straight).all()
    assert lines.mean() == pytest.approx(equation.straight, abs=4 * np.sqrt(0.25 / count))


@pytest.mark.parametrize("straight", [0.0, 1.0])
def test_draws_where_only_one_kind_is_possible(straight):
    _, equation = undecided()
    drawn = replace(equation, straight=straight).draw(50, np.random.default_rng(3))
    assert (drawn.straight == straight).all()
    assert np.isfinite([drawn.expected(k, np.array([[0.5]])) for k in range(50)]).all()
    assert (drawn.sigma > 0).all()


def test_leaving_a_row_out_is_the_ratio_of_scores():
    """p(row | others) = p(all) / p(others), each by a score of its own, as closely as for curves alone.

    Hyperparameters of curves are drawn a few dozen times given all rows, so that an outlying one is off.
    """
    data = table("linear", 12, seed=2)
    wrong = {}
    for equations in ("curved", "linear or curved"):
        score = GP(standardise=False, target_error=0.005, equations=equations)
        scorer = score.bind(data)
        found = scorer.equation(2, (0,)).leave_one_out(data[:, 2], data[:, [0]].T)
        assert ((found.below > 0) & (found.below < 1)).all()
        left_out = [score.bind(np.delete(data, row, axis=0)).local(2, [0]) for row in range(len(data))]
        wrong[equations] = np.abs(found.log_density - scorer.local(2, [0]) + left_out)
    assert (wrong["linear or curved"] <= wrong["curved"] + 0.01).all()
    assert np.median(wrong["linear or curved"]) < 0.02
    assert np.sort(wrong["linear or curved"])[-2] < 0.1  # all rows but the outlying one


def test_directions_of_lines_stay_open():
    """Two variables on a line: the data can't tell the direction, and the posterior hardly does."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=200)
    data = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200)})
    post = gpn.sample(data, score=GP(**EITHER), draws=200, random_seed=1, progressbar=False)
    edges = post.edge_probabilities()
    assert edges.loc["x", "y"] + edges.loc["y", "x"] > 0.99
    assert 0.4 < edges.loc["x", "y"] < 0.6
    slope = post.effect("x", "y").given_path
    assert slope is not None


def test_effects_and_predictions_of_curves():
    data = pd.DataFrame(table("curved", 100), columns=["a", "b", "c"])
    post = gpn.sample(data, score=GP(**EITHER), draws=200, random_seed=1, progressbar=False)
    assert post.edge_probabilities().loc["a", "c"] > 0.95
    assert np.isfinite(post.effect("a", "c").draws.to_numpy()).all()


def test_settings_are_kept():
    score = GP(**EITHER)
    assert score.parameters["equations"] == "linear or curved"
    assert "equations" not in GP().parameters
    setting = as_setting(score)
    assert repr(from_parameters(setting["name"], setting["parameters"])) == repr(score)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": "student"}, "needs noise='normal'"),
        ({"length_scales": "shared"}, "needs equations='curved'"),
    ],
)
def test_settings_that_exclude_each_other(settings, message):
    with pytest.raises(ValueError, match=message):
        GP(**EITHER, **settings)


def test_what_needs_curves():
    with pytest.raises(ValueError, match="equations must be one of"):
        GP(equations="linear")
    data = pd.DataFrame(table("linear"), columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="a PyMC model needs equations='curved'"):
        GP(**EITHER).pymc_model(data, "c", ["a"])
    with pytest.raises(ValueError, match="needs columns that are numbers; received the category 'd'"):
        GP(**EITHER).bind(data.assign(d=["x", "y"] * 30))
    post = gpn.sample(data, score=GP(estimator="laplace", **EITHER), draws=100, random_seed=1, progressbar=False)
    with pytest.raises(
        ValueError, match=r"curves need equations='curved'; received GP\(equations='linear or curved'\)"
    ):
        post.curves("c")
