"""Fitted functions: each parent's part against PyMC's own, averages against brute force, units, and refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats
from scipy.optimize import brentq
from threadpoolctl import threadpool_info, threadpool_limits

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.curves import fitted_curves
from gpn_bayes.report.functions import functions_of
from gpn_bayes.scores import GP, GraphPrior
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.gp.components import components
from gpn_bayes.scores.gp.laplace import log_masses
from gpn_bayes.scores.recorded import as_setting

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

NAMES = ("x", "z", "y")
ROWS = 60
GRID = np.linspace(-2, 2, 15)


def table(random_seed=1):
    rng = np.random.default_rng(random_seed)
    x, z = rng.uniform(-2, 2, (2, ROWS))
    return pd.DataFrame({"x": x, "z": 10 + 3 * z, "y": 5 + np.sin(2 * x) + 0.4 * z**2 + 0.1 * rng.normal(size=ROWS)})


def posterior(picks, data=None, score=None, **fields):
    """Return a posterior in whose draws "y" has these parents: "", "x", "z" or "xz"."""
    dags = np.zeros((1, len(picks), 3, 3), dtype=np.int8)
    for draw, names in enumerate(picks):
        for name in names:
            dags[0, draw, NAMES.index(name), 2] = 1
    data = Dataset.read(table() if data is None else data)
    score = GP() if score is None else score
    settings = {"score": as_setting(score), "data_fingerprint": data.fingerprint}
    rows = fields.pop("rows", data)
    scorer = DagScorer(score, GraphPrior(NAMES), rows)
    log_score = np.zeros((1, len(picks)))
    return GraphPosterior(NAMES, graphs.pack(dags), log_score, settings=settings, scorer=scorer, data=rows, **fields)


def pymc_component(scorer, node, parents, phi, which, points):
    """Return mean and covariance of one parent's part at points, by PyMC's `gp.conditional(…, given=…)`."""
    import pymc as pm
    import pytensor

    x, y = scorer.values[:, list(parents)], scorer.values[:, node]
    size = len(parents)
    interaction = scorer.score.kernel == "interaction" and size > 1
    theta = np.exp(phi[1 : size + 1])
    tau1, tau2 = np.exp(phi[size + 1 :]) if interaction else (1.0, 0.0)
    kernels = [pm.gp.cov.ExpQuad(size, ls=theta[k], active_dims=[k]) for k in range(size)]
    mean, sd = scorer.score.priors.mu
    with pm.Model():
        parts = [pm.gp.Marginal(cov_func=tau1 * kernel) for kernel in kernels]
        total = pm.gp.Marginal(mean_func=pm.gp.mean.Constant(mean), cov_func=pm.gp.cov.Constant(sd**2))
        for part in parts:
            total = total + part
        if interaction:
            total = total + pm.gp.Marginal(cov_func=tau2 * kernels[0] * kernels[1])
        given = {"X": x, "y": y, "sigma": np.exp(phi[0]), "gp": total}
        new = np.zeros((len(points), size))
        new[:, which] = points
        part = parts[which].conditional("part", new, given=given, jitter=0.0)
    parameters = part.owner.op.dist_params(part.owner)
    return pytensor.function([], parameters, mode="FAST_COMPILE")()


CASES = {
    "low rank": (GP(), (0, 1), np.log([0.3, 0.7, 1.9])),
    "one parent": (GP(), (1,), np.log([0.5, 0.15])),
    "rough, so dense": (GP(), (0, 1), np.log([0.3, 0.05, 1.9])),
    "other mean": (GP(mu=(0.5, 0.7)), (0, 1), np.log([0.4, 0.5, 3.0])),
    "interaction": (GP(kernel="interaction"), (0, 1), np.log([0.3, 0.7, 1.9, 0.6, 1.4])),
    "one of interaction": (GP(kernel="interaction"), (0,), np.log([0.3, 0.7])),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_those_of_pymc(name):
    score, parents, phi = CASES[name]
    scorer = score.bind(table())
    found = components(scorer, 2, parents, phi, [GRID] * len(parents), centred=False)
    for which, part in enumerate(found):
        mean, covariance = pymc_component(scorer, 2, parents, phi, which, GRID)
        np.testing.assert_allclose(part.mean, mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(part.sd, np.sqrt(np.diag(covariance)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["low rank", "interaction"])
def test_centred_parts_are_those_of_pymc_less_their_mean_over_the_rows(name):
    score, parents, phi = CASES[name]
    scorer = score.bind(table())
    found = components(scorer, 2, parents, phi, [GRID] * len(parents), centred=True)
    for which, part in enumerate(found):
        rows = scorer.values[:, parents[which]]
        mean, covariance = pymc_component(scorer, 2, parents, phi, which, np.concatenate([GRID, rows]))
        less_mean = np.eye(len(GRID) + ROWS)
        less_mean[:, len(GRID) :] -= 1 / ROWS
        mean, covariance = less_mean @ mean, less_mean @ covariance @ less_mean.T
        np.testing.assert_allclose(part.mean, mean[: len(GRID)], rtol=0, atol=1e-6)
        np.testing.assert_allclose(part.at_rows, mean[len(GRID) :], rtol=0, atol=1e-6)
        np.testing.assert_allclose(part.sd, np.sqrt(np.diag(covariance)[: len(GRID)]), rtol=0, atol=1e-6)


def test_parts_at_other_hyperparameters_differ():
    """Negative control: the comparison does see a length scale."""
    score, parents, phi = CASES["low rank"]
    scorer = score.bind(table())
    found = components(scorer, 2, parents, phi + [0, 0.01, 0], [GRID] * 2, centred=False)
    mean, _ = pymc_component(scorer, 2, parents, phi, 0, GRID)
    assert np.abs(found[0].mean - mean).max() > 1e-4


def test_a_curve_of_one_set_is_pymcs_part_at_the_modes():
    data, post = table(), posterior(["xz"] * 4)
    lines = fitted_curves(post, "y", points=15, centred=False).lines
    scorer = GP().bind(data)
    _, modes = scorer.hyper_posterior(2, (0, 1))
    shares = np.exp(log_masses(modes) - log_masses(modes).max())
    assert (shares > 0.01 * shares.sum()).sum() == 1, "the case is meant to have one mode that matters"
    for which, parent in enumerate("xz"):
        line = lines[lines["parent"] == parent]
        points = (line["x"].to_numpy() - data[parent].mean()) / data[parent].std()
        mean, covariance = pymc_component(scorer, 2, (0, 1), modes.points[0], which, points)
        np.testing.assert_allclose(line["mean"], data["y"].mean() + data["y"].std() * mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(line["sd"], data["y"].std() * np.sqrt(np.diag(covariance)), rtol=0, atol=1e-6)


def test_curves_average_over_parent_sets_and_modes():
    weights = np.array([3.0, 1.0, 2.0, 4.0])
    post = posterior(["x", "x", "xz", ""], log_weights=np.log(weights)[None])
    line = fitted_curves(post, "y", parents=["x"], points=15, probability=0.8).lines
    scorer, data = GP().bind(table()), table()
    points = (line["x"].to_numpy() - data["x"].mean()) / data["x"].std()
    shares, means, sds = [], [], []
    for parents, weight in (((0,), 4.0), ((0, 1), 2.0)):
        _, modes = scorer.hyper_posterior(2, parents)
        masses = np.exp(log_masses(modes) - log_masses(modes).max())
        for phi, mass in zip(modes.points, masses / masses.sum(), strict=True):
            part = components(scorer, 2, parents, phi, [points, np.empty(0)][: len(parents)])[0]
            shares.append(weight / 6 * mass)
            means.append(part.mean)
            sds.append(part.sd)
    shares, means, sds = np.array(shares), np.array(means), np.array(sds)

    def quantile(k, q):
        return brentq(lambda v: shares @ stats.norm.cdf(v, means[:, k], sds[:, k]) - q, -9, 9)

    mean = shares @ means
    sd = np.sqrt(shares @ (sds**2 + means**2) - mean**2)
    level, scale = data["y"].mean(), data["y"].std()
    np.testing.assert_allclose(line["mean"], level + scale * mean, atol=1e-3 * scale)
    np.testing.assert_allclose(line["sd"], scale * sd, atol=1e-3 * scale)
    for column, q in (("lower", 0.1), ("upper", 0.9)):
        expected = [level + scale * quantile(k, q) for k in range(len(points))]
        np.testing.assert_allclose(line[column], expected, atol=2e-3 * scale)
    assert line["edge_probability"].unique() == pytest.approx(0.6)


def test_a_curve_does_not_depend_on_the_others_that_are_shown():
    """Sets that hold little of one parent's probability, and more of another's, count for that other alone."""
    post = posterior(["x"] * 300 + ["xz"] * 2 + [""] * 10)
    both, alone = post.curves("y", parents=["x", "z"]), post.curves("y", parents=["x"])
    shown = both[both["parent"] == "x"].reset_index(drop=True)
    pd.testing.assert_frame_equal(shown, alone)


def test_curves_find_the_functions():
    lines = fitted_curves(posterior(["xz"] * 4), "y").lines
    for parent, true in (("x", lambda x: np.sin(2 * x)), ("z", lambda z: 0.4 * ((z - 10) / 3) ** 2)):
        line, column = lines[lines["parent"] == parent], table()[parent]
        expected = true(line["x"]) - true(column).mean() + table()["y"].mean()
        inside = (line["lower"] < expected) & (expected < line["upper"])
        assert np.abs(line["mean"] - expected).max() < 0.25
        assert inside.mean() > 0.7
        assert line["x"].min() == column.min()
        assert line["x"].max() == column.max()


def test_curves_follow_the_units():
    other = table().assign(y=lambda t: 100 - 7 * t["y"], x=lambda t: 2 * t["x"] + 1)
    one = fitted_curves(posterior(["xz"] * 4), "y", parents=["x"])
    two = fitted_curves(posterior(["xz"] * 4, other), "y", parents=["x"])
    np.testing.assert_allclose(two.lines["x"], 2 * one.lines["x"] + 1)
    np.testing.assert_allclose(two.lines["mean"], 100 - 7 * one.lines["mean"], atol=1e-5)
    np.testing.assert_allclose(two.lines["lower"], 100 - 7 * one.lines["upper"], atol=1e-5)
    np.testing.assert_allclose(two.points["adjusted"], 100 - 7 * one.points["adjusted"], atol=1e-5)


def test_adjusted_points_are_the_rows_less_the_other_parents():
    data = table()
    points = fitted_curves(posterior(["xz"] * 4), "y").points
    scorer = GP().bind(data)
    _, modes = scorer.hyper_posterior(2, (0, 1))
    parts = components(scorer, 2, (0, 1), modes.points[0], [np.empty(0)] * 2)
    for parent, other in (("x", parts[1]), ("z", parts[0])):
        own = points[points["parent"] == parent]
        np.testing.assert_allclose(own["x"], data[parent])
        np.testing.assert_allclose(own["y"], data["y"])
        np.testing.assert_allclose(own["adjusted"], data["y"] - data["y"].std() * other.at_rows, atol=1e-3)
    alone = fitted_curves(posterior(["x"] * 4), "y").points
    np.testing.assert_array_equal(alone["adjusted"], alone["y"])


def test_parents_come_by_falling_probability_down_to_a_threshold():
    post = posterior(["z"] * 17 + ["xz"] * 2 + [""])
    assert list(dict.fromkeys(post.curves("y", threshold=0.1)["parent"])) == ["z", "x"]
    assert list(dict.fromkeys(post.curves("y", threshold=0.2)["parent"])) == ["z"]
    assert list(dict.fromkeys(post.curves("y", parents=["x"], threshold=0.2)["parent"])) == ["x"]
    empty = post.curves("x")
    assert len(empty) == 0
    assert list(empty.columns) == list(post.curves("y").columns)


def test_a_posterior_knows_its_rows_unless_it_was_saved_without(tmp_path):
    data = table()[["x", "y"]]
    score = GP(estimator="laplace", theta=(3.0, 2.0))
    post = gpn.sample(data, score=score, draws=20, chains=2, random_seed=1, progressbar=False)
    known = post.curves("y", parents=["x"])
    post.save(tmp_path / "whole.nc")
    pd.testing.assert_frame_equal(gpn.load(tmp_path / "whole.nc").curves("y", parents=["x"]), known)
    post.save(tmp_path / "post.nc", data=False)
    loaded = gpn.load(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="^curves need the rows, and this posterior was saved without them; give them"):
        loaded.curves("y")
    pd.testing.assert_frame_equal(loaded.curves("y", data, parents=["x"]), known)
    with pytest.raises(ValueError, match="^data must be the table that the posterior was drawn from; received an"):
        loaded.curves("y", data + 1.0)


def test_curves_keep_linear_algebra_to_one_thread(monkeypatch):
    """With more, the small matrices of one report took four times as long."""
    seen = []

    def spy(*arguments):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return components(*arguments)

    monkeypatch.setattr("gpn_bayes.posterior.curves.components", spy)
    with threadpool_limits(2, user_api="blas"):
        posterior(["x", "xz"]).curves("y")
    assert set(seen) == {1}


def test_scorers_of_a_table_share_what_is_prepared():
    one, two, other = GP().bind(table()), GP(estimator="laplace").bind(table()), GP().bind(table(random_seed=2))
    assert one.basis is two.basis
    assert one.basis is not other.basis
    assert GP(mu=(0.0, 2.0)).bind(table()).basis is not one.basis


@pytest.mark.parametrize("theta", [0.1, 0.7, 30.0])
def test_factors_are_those_of_the_kernel(theta):
    scorer = GP().bind(table())
    x = scorer.values[:, 1]
    factor = scorer.basis.factor(1, theta)
    np.testing.assert_allclose(factor @ factor.T, np.exp(-0.5 * (np.subtract.outer(x, x) / theta) ** 2), atol=1e-12)


def test_other_scores_are_asked_for():
    post = posterior(["x"] * 4)
    linear = posterior(["x"] * 4, score=gpn.scores.BGe())
    with pytest.raises(
        ValueError, match="^a curve needs the method `hyper_posterior`, which bge doesn't have: give score="
    ):
        linear.curves("y")
    pd.testing.assert_frame_equal(linear.curves("y", score=GP()), post.curves("y"))
    with pytest.raises(ValueError, match="^score must be a gpn_bayes.scores.GP; received BGe"):
        post.curves("y", score=gpn.scores.BGe())
    post.scorer = None
    pd.testing.assert_frame_equal(post.curves("y"), linear.curves("y", score=GP()))
    theta = {"distribution": "LogNormal", "parameters": [0.5, 0.75]}
    post = replace(post, settings=post.settings | {"score": {"name": "gp", "parameters": {"theta": theta}}})
    with pytest.raises(ValueError, match="^curves need the score's settings, which this posterior doesn't have; give"):
        post.curves("y")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"probability": 1.0}, "^probability must lie between 0 and 1; received 1.0$"),
        ({"threshold": -0.1}, "^threshold must lie between 0 and 1; received -0.1$"),
        ({"points": 1}, "^points must be a whole number, 2 or more; received 1$"),
        ({"parents": ["z"]}, "^a curve needs an edge that was drawn; z -> y wasn't$"),
        ({"parents": ["x", 0]}, r"^parents must name each variable once; received \['x', 0\]$"),
        ({"parents": "xz"}, "^parents must be a list of variables; received 'xz'$"),
        ({"data": SufficientStatistics.of(Dataset.read(table()))}, "^curves need the rows; received SufficientStat"),
    ],
)
def test_refusals(settings, text):
    with pytest.raises(ValueError, match=text):
        posterior(["x"] * 4).curves("y", **settings)


# Parents that are categories


def with_groups(rows=150):
    """Return a table in which y depends on x, on a category of two levels, and most of all on one of three."""
    rng = np.random.default_rng(3)
    sex, site = rng.choice(["f", "m"], rows), rng.choice(["A", "B", "C"], rows, p=[0.5, 0.3, 0.2])
    x = rng.uniform(-2, 2, rows)
    y = np.sin(2 * x) + (sex == "m") + 3 * (site == "B") + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"x": x, "sex": sex, "site": site, "y": y})


@pytest.fixture(scope="module")
def grouped():
    required = [("x", "y"), ("sex", "y"), ("site", "y")]
    forbidden = [(a, b) for a in ("x", "sex", "site") for b in ("x", "sex", "site") if a != b]
    how = {"required": required, "forbidden": forbidden, "draws": 20, "random_seed": 1, "progressbar": False}
    return gpn.sample(with_groups(), GP(estimator="laplace"), **how)


def test_a_parent_that_is_a_category_has_a_value_for_every_level(grouped):
    lines = grouped.curves("y", points=12)
    assert lines.groupby("parent", sort=False).size().to_dict() == {"x": 12, "sex": 2, "site": 3}
    of_site = lines[lines["parent"] == "site"].set_index("x")
    assert of_site.index.tolist() == ["A", "B", "C"] and of_site["edge_probability"].tolist() == [1.0] * 3
    # The truth, levelled out over the rows, lies within four standard deviations.
    data = with_groups()
    for parent, truth in (("sex", {"f": 0, "m": 1}), ("site", {"A": 0, "B": 3, "C": 0})):
        own = lines[lines["parent"] == parent]
        level = data["y"].mean() - data[parent].map(truth).mean()
        assert (np.abs(own["mean"] - own["x"].map(truth) - level) < 4 * own["sd"]).all()
        assert (own["lower"] < own["mean"]).all() and (own["mean"] < own["upper"]).all()
    only = grouped.curves("y", parents=["site"])
    pd.testing.assert_frame_equal(only, lines[lines["parent"] == "site"].reset_index(drop=True))


def test_the_value_of_a_level_is_that_of_the_covariances_written_out(grouped):
    """With k(a, b) = exp(-d^2 / (2 theta^2)), d the distance of levels, or of standardised numbers."""
    data = Dataset.read(with_groups())
    scorer = GP(estimator="laplace").bind(data)
    _, modes = scorer.hyper_posterior(3, (0, 1, 2))
    phi = modes.points[np.argmax(log_masses(modes))]
    values, spacings = scorer.values, scorer.basis.spacings
    kernels = []
    for p, theta in zip((0, 1, 2), np.exp(phi[1:]), strict=True):
        apart = values[:, p][:, None] - values[:, p]
        squares = (apart != 0) * spacings[p] if spacings[p] else apart**2
        kernels.append(np.exp(-squares / (2 * theta**2)))
    whole = sum(kernels) + 1.0 + np.exp(2 * phi[0]) * np.eye(len(values))
    mean = kernels[2] @ np.linalg.solve(whole, values[:, 3])
    mean -= mean.mean()
    site = with_groups()["site"].to_numpy()
    expected = [data.means()[3] + data.spreads()[3] * mean[np.argmax(site == level)] for level in "ABC"]
    shares = np.exp(log_masses(modes) - log_masses(modes).max())
    assert shares.max() / shares.sum() > 0.99, "the case is meant to have one mode that matters"
    np.testing.assert_allclose(grouped.curves("y", parents=["site"])["mean"], expected, atol=0.01)


def test_levels_have_rows_and_a_panel_of_their_own(grouped):
    points = fitted_curves(grouped, "y").points
    own = points[points["parent"] == "site"]
    assert own["x"].tolist() == with_groups()["site"].tolist()
    # Other parents' effects are taken off: what is left differs by level alone.
    assert own.groupby("x")["adjusted"].std().max() < 0.45 < own.groupby("x")["y"].std().min()
    panels = grouped.plot_curves("y")
    assert [panel.get_xlabel() for panel in panels] == ["x", "sex", "site"]
    assert [text.get_text() for text in panels[2].get_xticklabels()] == ["A", "B", "C"]
    dots = np.concatenate([drawn.get_offsets() for drawn in panels[2].collections if len(drawn.get_offsets()) > 3])
    places = {"A": 0, "B": 1, "C": 2}
    assert (np.round(dots[:, 0]) == with_groups()["site"].map(places)).all()
    plt.close("all")


def test_reports_say_which_parents_have_no_curve(grouped):
    found = functions_of(grouped, None, 4)
    assert found["levels"] == {"3": [1, 2]} and [curve["parent"] for curve in found["of"]["3"]] == [0]
