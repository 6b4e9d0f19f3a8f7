"""Gaussian processes with Student t noise: likelihoods, scores, equations, and what refuses them."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import gpn_bayes as gpn
from gpn_bayes.scores import GP
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.importance import importance_estimate
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.student import StudentPosterior, grid_without_parents, measured
from gpn_bayes.scores.recorded import as_setting, from_parameters
from tests.latent_reference import STUDENT_CASES, student_case, student_log_evidence

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")


def student(table, degrees=4.0, weights=None, seed=1):
    """Return the posterior of the last column given all others."""
    parents = tuple(range(table.shape[1] - 1))
    basis = Basis(table, weights=weights)
    observed = measured(basis.row_functions(parents, np.arange(len(table))), table[:, -1], degrees, weights)
    return StudentPosterior(observed, HyperPriors().for_parents(len(parents)), np.random.default_rng(seed))


def estimate(posterior, target_error=0.02):
    return importance_estimate(posterior, posterior.find_modes(), np.random.default_rng(2), target_error=target_error)


def curved(rows, outliers, seed=1):
    """Return a cause and its curved effect, in which some rows have gross errors."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, rows)
    y = np.sin(2 * x) + 0.2 * rng.normal(size=rows)
    wrong = rng.choice(rows, outliers, replace=False)
    y[wrong] += 6 * rng.choice([-1, 1], outliers)
    return pd.DataFrame({"x": x, "y": y})


@pytest.mark.parametrize("rows", [6, 9])
def test_evidence_is_that_of_brute_force(rows):
    """Draws of the prior of hyperparameters and of every row's precision, dense."""
    rng = np.random.default_rng(rows)
    table = rng.normal(size=(rows, 2))
    table[0] = [2.5, 3.0]
    found = estimate(student(table))
    distances = [(table[:, None, 0] - table[:, 0]) ** 2]
    expected, error = student_log_evidence(table[:, 1], distances, 4.0, draws=100_000)
    assert error < 0.03
    assert found.value == pytest.approx(expected, abs=4 * np.hypot(found.error, error))
    if rows > 6:
        # Noise that were normal would be noticed; six rows hardly tell.
        moments = Basis(table).moments(1, (0,))
        normal = estimate(LowRankPosterior(moments, HyperPriors().for_parents(1))).value
        assert abs(normal - expected) > 4 * np.hypot(found.error, error)


def test_draws_of_a_likelihood_agree_where_a_row_may_be_followed_or_not():
    """Estimates of few draws, each without bias, against one of many; weights of which none carries the mean."""
    posterior = student(student_case(*STUDENT_CASES[0]))
    phi = np.array([[-1.0, -0.7]])
    estimates = np.exp(posterior.log_densities(np.repeat(phi, 400, axis=0)))
    posterior.pairs = 4000
    many = np.exp(posterior.log_densities(phi)[0])
    error = estimates.std() / np.sqrt(len(estimates))
    assert error < 0.1 * many
    assert estimates.mean() == pytest.approx(many, abs=4 * np.hypot(error, 0.02 * many))


@pytest.mark.parametrize("parents", [1, 2])
def test_the_gradient_is_that_of_the_density(parents):
    posterior = student(student_case(parents, 30))
    phi = np.array([-0.7, 0.2, -0.1])[: 1 + parents]
    _, gradient = posterior.log_density_and_gradient(phi)
    steps = 1e-3 * np.eye(len(phi))
    differences = [(posterior.log_density(phi + s) - posterior.log_density(phi - s)) / 2e-3 for s in steps]
    assert gradient == pytest.approx(np.array(differences), abs=1e-2)


def test_many_degrees_of_freedom_are_normal_noise():
    table = student_case(1, 40)
    priors = HyperPriors().for_parents(1)
    normal = LowRankPosterior(Basis(table).moments(1, (0,)), priors)
    points = np.array([[-0.5, 0.1], [-1.0, 1.0], [0.3, -0.8]])
    by_student = student(table, degrees=1e8)
    # With normal noise Laplace's approximation is exact, and weights differ only where draws are t.
    assert [by_student.log_density(phi) for phi in points] == pytest.approx(normal.log_densities(points), abs=1e-3)
    by_student.pairs = 1000
    assert by_student.log_densities(points) == pytest.approx(normal.log_densities(points), abs=0.1)
    table = pd.DataFrame(table, columns=["x", "y"])
    scorers = [GP(noise="student", degrees=1e8).bind(table), GP().bind(table)]
    (many, error), (exact, other) = (
        (batch.values, batch.errors) for batch in (scorer.score_sets(1, [(), (0,)]) for scorer in scorers)
    )
    assert many[0] == pytest.approx(exact[0], abs=1e-5)
    assert many[1] == pytest.approx(exact[1], abs=4 * np.hypot(error[1], other[1]))


def test_without_parents_the_evidence_is_an_integral_over_two_numbers():
    y = np.random.default_rng(3).standard_t(3, size=12)
    log_sigma, mu = np.linspace(-3, 5, 401), np.linspace(-4, 4, 401)
    sigma = np.exp(log_sigma)[:, None]
    scale = sigma * np.sqrt(1 - 2 / 5.0)
    density = sum(stats.t(5).logpdf((value - mu) / scale) - np.log(scale) for value in y)
    density = density + stats.norm.logpdf(mu) + stats.invgamma(1, scale=1).logpdf(sigma) + log_sigma[:, None]
    expected = np.log(integrate.simpson(integrate.simpson(np.exp(density + 20), mu), log_sigma)) - 20
    found = grid_without_parents(y, HyperPriors(), 5.0).log_evidence()
    assert found == pytest.approx(expected, abs=1e-5)
    # A row of weight two is two rows.
    twice = grid_without_parents(np.append(y, y[0]), HyperPriors(), 5.0).log_evidence()
    weights = np.ones(12)
    weights[0] = 2
    assert grid_without_parents(y, HyperPriors(), 5.0, weights).log_evidence() == pytest.approx(twice, abs=1e-9)


def test_a_row_of_weight_two_is_two_rows():
    table = student_case(1, 30)
    weights = np.ones(30)
    weights[[0, 7]] = 2
    phi = np.array([-0.6, 0.1])
    twice = student(np.concatenate([table, table[[0, 7]]])).log_density(phi)
    assert student(table, weights=weights).log_density(phi) == pytest.approx(twice, abs=1e-3)


def test_outliers_hide_less_of_a_curve():
    """Of an edge that is there, and of none: a control."""
    table = curved(60, outliers=5)
    gains = [
        scorer.local("y", ["x"]) - scorer.local("y")
        for scorer in (GP(estimator="laplace", noise=noise).bind(table) for noise in ("normal", "student"))
    ]
    assert gains[1] > gains[0] + 5
    table = table.assign(x=np.random.default_rng(5).permutation(table["x"]))
    without = GP(estimator="laplace", noise="student").bind(table)
    assert without.local("y", ["x"]) < without.local("y")


def test_predictions_are_those_of_the_data_with_heavy_tails():
    table = curved(80, outliers=6)
    x, y = GP(noise="student").bind(table).values.T
    densities = {}
    for noise in ("normal", "student"):
        scorer = GP(noise=noise).bind(table)
        for parents in ((), (0,)):
            equation = scorer.equation(1, parents)
            given = x[None] if parents else np.empty((0, len(x)))
            left_out = equation.leave_one_out(y, given)
            assert (left_out.log_density <= equation.log_predictive(y, given) + 0.05).all()
            assert ((left_out.below > 0) & (left_out.below < 1)).all()
            densities[noise, len(parents)] = left_out.log_density.mean()
    assert densities["student", 1] > densities["normal", 1] + 0.1
    # The density of new values integrates to one.
    grid = np.linspace(-15, 15, 3001)
    density = np.exp(GP(noise="student").bind(table).equation(1, (0,)).log_predictive(grid, np.zeros((1, 3001))))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.01)


def test_from_a_table_to_effects_and_back_from_a_file(tmp_path):
    table = curved(60, outliers=4).assign(z=np.random.default_rng(4).choice(["a", "b"], 60))
    score = GP(estimator="laplace", noise="student", degrees=5)
    post = gpn.sample(table, score=score, draws=60, random_seed=1, required=[("x", "y")], progressbar=False)
    assert any("Student's t distribution with 5 degrees" in text for text in post.scorer.scorer.assumptions)
    effect = post.effect("x", "y", to=0.8, versus=-0.8, progressbar=False)
    assert float(effect.mean) == pytest.approx(2 * np.sin(1.6), abs=0.4)
    post.save(tmp_path / "post.nc")
    setting = gpn.load(tmp_path / "post.nc").settings["score"]
    assert setting == as_setting(score)
    assert (setting["parameters"]["noise"], setting["parameters"]["degrees"]) == ("student", 5.0)
    assert repr(from_parameters(setting["name"], setting["parameters"])) == repr(score)
    # New values have the tails of the data: more than four standard deviations away, one in 150 rather than in 16,000.
    rows = post.do({"x": 0.0}, draws=4000, progressbar=False)["y"]
    far = np.abs(rows - rows.median()) > 4 * rows.std()
    assert far.mean() > 1e-3
    # A row's own noise gives back the row.
    row = table.iloc[0]
    same = post.counterfactual(row, {"x": float(row["x"]), "z": row["z"]}, draws=20, progressbar=False)
    assert same["y"].to_numpy() == pytest.approx(row["y"], abs=1e-6)
    with pytest.raises(ValueError, match="curves need noise='normal'; received GP\\(noise='student'\\)"):
        post.curves("y")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": "cauchy"}, "noise must be one of normal, student; received 'cauchy'"),
        ({"degrees": 2.0}, "degrees must be a number above 2; received 2.0"),
        ({"degrees": "many"}, "degrees must be a number above 2; received 'many'"),
        ({"noise": "student", "kernel": "interaction"}, "kernel='interaction' needs noise='normal'"),
        ({"noise": "student", "dense": True}, "dense=True needs noise='normal'"),
        ({"noise": "student", "theta": (2.0, 0.1)}, "a prior of very short length scales needs noise='normal'"),
        ({"noise": "student", "estimator": "bridge", "posterior": "nuts"}, "posterior='nuts' needs noise='normal'"),
        ({"noise": "student", "length_scales": "shared"}, "length_scales='shared' needs noise='normal'"),
    ],
)
def test_settings_that_need_normal_noise_say_so(settings, message):
    with pytest.raises(ValueError, match=message):
        GP(**settings)


def test_what_needs_normal_noise_says_so():
    table = curved(30, outliers=0)
    with pytest.raises(ValueError, match="a PyMC model needs noise='normal'; received noise='student'"):
        GP(noise="student").pymc_model(table, "y", ["x"])
    with pytest.raises(ValueError, match="contexts, whose targets are unknown, need noise='normal'"):
        GP(noise="student").bind(table, contexts=["a", "b"] * 15).local("y", ["x"])


def test_normal_noise_is_not_recorded():
    """What normal noise doesn't use makes no other score."""
    assert "noise" not in GP(degrees=7).parameters
    assert GP().fingerprint == GP(degrees=7).fingerprint != GP(noise="student").fingerprint
