"""The data beside what a posterior predicts: ranks, uniform if the model is right, residuals, and the picture."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats

import gpn_bayes as gpn
from gpn_bayes.plots import palette
from gpn_bayes.posterior.predictive_checks import predictive_checks

pytestmark = pytest.mark.more("statistics that take long")

mpl.use("Agg")
QUIET = {"random_seed": 1, "progressbar": False}


@pytest.fixture(autouse=True)
def closed_figures():
    with plt.rc_context({"figure.dpi": 50}):
        yield
    plt.close("all")


def chain(rows, seed, noise=None):
    """Return x -> y -> z, linear; `noise` draws that of z."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, rows))
    y = 0.8 * x + 0.6 * y
    return pd.DataFrame({"x": x, "y": y, "z": y + (rng.normal(size=rows) if noise is None else noise(rng))})


def curve(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, rows)
    return pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=rows)})


def ranks(post, name, **settings):
    (check,) = predictive_checks(post, [name], progressbar=False, **settings)
    return check.pit


def test_ranks_are_uniform_where_the_model_is_right():
    """Over many tables: all ranks of one table lean on the same fit, so tables and not rows are counted."""
    p_values = []
    for seed in range(30):
        post = gpn.sample(chain(60, seed), score="bge", draws=100, **QUIET)
        p_values.append(stats.kstest(ranks(post, "z"), "uniform").pvalue)
    # Ranks of left-out rows are a little too even within a table, never less so.
    assert min(p_values) > 0.01 / 30
    assert np.mean(np.array(p_values) < 0.1) < 0.25


def test_ranks_are_not_uniform_where_noise_has_heavy_tails():
    heavy = chain(200, 1, lambda rng: rng.standard_t(1.5, 200))
    post = gpn.sample(heavy, score="bge", draws=100, **QUIET)
    assert stats.kstest(ranks(post, "z"), "uniform").pvalue < 1e-3
    assert stats.kstest(ranks(post, "y"), "uniform").pvalue > 0.01


def test_ranks_of_curves_are_uniform():
    table = curve(120, 1)
    post = gpn.sample(table, score="gp", draws=100, required=[("x", "y")], **QUIET)
    assert stats.kstest(ranks(post, "y", draws=40), "uniform").pvalue > 0.01


def test_ranks_of_categories_are_uniform_among_rows_of_any_parent():
    """And not under networks that lack the edge, among rows in which the parent has one of its levels."""
    p_values = []
    for seed in range(12):
        network = gpn.simulate.discrete([[0, 1], [0, 0]], 300, random_seed=seed)
        both = {}
        known = {"edge": {"required": [("v1", "v2")]}, "none": {"forbidden": [("v1", "v2"), ("v2", "v1")]}}
        for name, settings in known.items():
            post = gpn.sample(network, score="bdeu", draws=50, **settings, **QUIET)
            _, check = predictive_checks(post, random_seed=100 + seed, progressbar=False)
            assert check.residuals is None and check.levels == ("s1", "s2")
            rows = network["v1"].to_numpy() == "s1"
            both[name] = [stats.kstest(check.pit[own], "uniform").pvalue for own in (rows, ~rows)]
        p_values.append([min(both["edge"]), min(both["none"])])
    edge, none = np.array(p_values).T
    assert edge.min() > 0.01 / 24
    assert np.sort(none)[5] < 1e-3 and none.min() < 1e-10


def test_tables_drawn_anew_have_the_levels_of_the_data():
    network = gpn.simulate.discrete([[0, 1], [0, 0]], 400, random_seed=1)
    for check in predictive_checks(gpn.sample(network, score="bdeu", draws=50, **QUIET), progressbar=False):
        shares = np.bincount(check.observed.astype(int)) / 400
        simulated = [np.bincount(own.astype(int), minlength=len(shares)) / 400 for own in check.simulated]
        np.testing.assert_allclose(np.mean(simulated, axis=0), shares, atol=0.06)


def test_residuals_are_those_of_the_fitted_network():
    table = chain(300, 2)
    post = gpn.sample(table, score="bge", draws=200, required=[("x", "y"), ("y", "z")], **QUIET)
    (check,) = predictive_checks(post, ["z"], draws=1000, progressbar=False)
    assert (check.parent, check.probability) == ("y", 1.0)
    x = np.column_stack([np.ones(300), table[["y"]]])
    expected = table["z"] - x @ np.linalg.lstsq(x, table["z"], rcond=None)[0]
    np.testing.assert_allclose(check.residuals, expected, atol=0.05)


def test_simulated_tables_look_like_the_data_and_those_of_a_wrong_model_do_not():
    """Under lines, a curve's simulated rows lose the shape; the marginal of x stays."""
    table = curve(200, 3)
    for score, like in (("gp", True), ("bge", False)):
        post = gpn.sample(table, score=score, draws=100, required=[("x", "y")], **QUIET)
        (check,) = predictive_checks(post, ["y"], draws=40, progressbar=False)
        pairs = (check.parent_simulated, check.simulated)
        high = [own[(x > 0.5) & (x < 1.1)].mean() for x, own in zip(*pairs, strict=True)]
        assert (np.mean(high) > 0.7) == like


def test_the_picture_marks_ranks_beyond_the_band():
    heavy = chain(400, 1, lambda rng: rng.standard_t(1.5, 400))
    panels = gpn.sample(heavy, score="bge", draws=100, **QUIET).plot_ppc()
    assert panels.shape == (3, 5)
    assert [panel.get_title() for panel in panels[:, 0]] == ["x", "y", "z"]
    colours = [{mpl.colors.to_hex(bar.get_facecolor()) for bar in row[-1].patches[:20]} for row in panels]
    assert palette.VERMILION.lower() in colours[2] and palette.VERMILION.lower() not in colours[1]
    assert panels[2, 1].get_xlabel() == "y" and panels[2, 1].get_xlim() == panels[2, 2].get_xlim()
    panels[0, 0].figure.canvas.draw()


def test_the_picture_of_categories():
    network = gpn.simulate.discrete([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 200, random_seed=1)
    panels = gpn.sample(network, score="bdeu", draws=50, **QUIET).plot_ppc()
    assert panels.shape == (3, 4)
    panels[0, 0].figure.canvas.draw()


def test_of_many_variables_the_least_uniform_are_drawn():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(150, 14)), columns=[f"v{k}" for k in range(14)])
    table["v9"] = rng.standard_t(1.2, 150)
    post = gpn.sample(table, score="bge", draws=20, space=gpn.Space(max_parents=1), **QUIET)
    panels = post.plot_ppc(draws=20)
    shown = [row[0].get_title() for row in panels]
    assert len(shown) == 12 and "v9" in shown
    assert shown == sorted(shown, key=lambda name: int(name[1:]))
    assert [row[0].get_title() for row in post.plot_ppc(["v3"], draws=20)] == ["v3"]


@pytest.mark.parametrize("variables", ["xy", []])
def test_variables_are_a_list(variables):
    post = gpn.sample(chain(50, 1), score="bge", draws=20, **QUIET)
    with pytest.raises(ValueError, match="^variables must be a list of one or more; received "):
        post.plot_ppc(variables)


def test_a_few_draws_are_too_few():
    post = gpn.sample(chain(50, 1), score="bge", draws=5, chains=2, **QUIET)
    with pytest.raises(ValueError, match="^leaving rows out needs 25 draws or more; received 10$"):
        post.plot_ppc()


def test_without_rows_there_is_nothing_to_check():
    statistics = gpn.SufficientStatistics.of(gpn.Dataset.read(chain(50, 1)))
    post = gpn.sample(statistics, score="bge", draws=20, **QUIET)
    with pytest.raises(ValueError, match="^predictive checks need the rows; received SufficientStatistics$"):
        post.plot_ppc()
