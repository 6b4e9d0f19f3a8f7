"""The Gaussian-process score: modes, Laplace, the case without parents, and odd data."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize

import gpn_bayes as gpn
from gpn_bayes.kernels.gaussian_process.low_rank import new_workspace
from gpn_bayes.kernels.gaussian_process.modes import LOWEST_LOG_THETA, hessian_at
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.scores import GP
from gpn_bayes.scores.gp.curve_equation import LevelEquation
from gpn_bayes.scores.gp.dense import LARGEST_DENSE, DensePosterior
from gpn_bayes.scores.gp.laplace import laplace_estimate
from gpn_bayes.scores.gp.modes import Modes
from gpn_bayes.scores.gp.priors import HyperPriors

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

FOLDER = Path(__file__).parent / "reference" / "gp"
DATA = pd.read_csv(FOLDER / "fourier_n4_N100_seed101.csv")
TRUTH = json.loads((FOLDER / "gp_truth.json").read_text())["scores"]
WITH_PARENTS = [entry for entry in TRUTH if entry["parents"]]


def label(entry):
    return f"{entry['node']}|{','.join(map(str, entry['parents']))}"


@pytest.fixture(scope="module")
def laplace():
    return GP(estimator="laplace").bind(DATA)


@pytest.mark.parametrize("entry", [entry for entry in TRUTH if not entry["parents"]], ids=label)
def test_without_parents_the_integral_is_exact(laplace, entry):
    y = laplace.basis.values[:, entry["node"]]

    def density(log_sigma):
        # Up to the factor exp(140): the textbook covariance, sigma ~ IG(1, 1), and the Jacobian.
        covariance = np.exp(2 * log_sigma) * np.eye(len(y)) + 1.0
        log_det = np.linalg.slogdet(covariance)[1]
        likelihood = -0.5 * (log_det + y @ np.linalg.solve(covariance, y) + len(y) * np.log(2 * np.pi))
        return np.exp(likelihood - log_sigma - np.exp(-log_sigma) + 140)

    grid = np.linspace(-1.2, 1.2, 241)
    expected = np.log(integrate.simpson([density(log_sigma) for log_sigma in grid], x=grid)) - 140
    assert laplace.local(entry["node"]) == pytest.approx(expected, abs=1e-8)
    assert laplace.local(entry["node"]) == pytest.approx(entry["log_score"], abs=2e-3)


@pytest.mark.parametrize("entry", WITH_PARENTS, ids=label)
def test_modes_and_laplace_equal_those_of_an_independent_search(laplace, entry):
    node, parents = entry["node"], tuple(entry["parents"])
    posterior, (modes, heights, hessians) = laplace.hyper_posterior(node, parents)

    def log_density(phi):
        return posterior.log_densities(phi[None])[0]

    rng = np.random.default_rng(5)
    best = -np.inf
    for _ in range(20):
        start = np.concatenate([rng.uniform(-1, 0.3, 1), rng.uniform(np.log(0.2), np.log(5), len(parents))])
        found = optimize.minimize(lambda phi: -log_density(phi), start, method="Nelder-Mead")
        best = max(best, -found.fun)
    assert heights[0] == pytest.approx(best, abs=1e-3)
    # Every mode is one: by five-point formulas, the gradient vanishes and the Hessian is as said.
    for mode, height, hessian in zip(modes, heights, hessians, strict=True):
        step = 1e-2
        for k in range(len(mode)):
            moved = step * np.eye(len(mode))[k]
            sides = [log_density(mode + size * moved) for size in (1, -1, 2, -2)]
            assert abs(8 * (sides[0] - sides[1]) - (sides[2] - sides[3])) / (12 * step) < 1e-3
            second = (16 * (sides[0] + sides[1]) - (sides[2] + sides[3]) - 30 * height) / (12 * step**2)
            assert hessian[k, k] == pytest.approx(-second, rel=1e-3, abs=1e-3)
    terms = heights + 0.5 * len(modes[0]) * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(hessians)[1]
    assert laplace.local(node, parents) == pytest.approx(np.logaddexp.reduce(terms), abs=1e-9)


def test_laplace_is_close_but_not_exact(laplace):
    gaps = np.array([laplace.local(e["node"], e["parents"]) - e["log_score"] for e in WITH_PARENTS])
    assert np.abs(gaps).max() < 1.0
    # The approximation errs by some tenths of a nat: it is not the integral under another name.
    assert 0.05 < np.sqrt((gaps**2).mean()) < 0.5


@pytest.mark.parametrize("estimator", ["importance", "bridge"])
def test_importance_and_bridge_are_the_integral(estimator):
    scorer = GP(estimator=estimator).bind(DATA)
    batches = [scorer.score_sets(e["node"], [tuple(e["parents"])]) for e in WITH_PARENTS]
    gaps = np.array([b.values[0] - e["log_score"] for b, e in zip(batches, WITH_PARENTS, strict=True)])
    errors = np.array([batch.errors[0] for batch in batches])
    assert np.abs(gaps).max() < 0.06
    assert np.sqrt((gaps**2).mean()) < 0.025
    assert (errors > 0).all() and 0.5 < np.sqrt(((gaps / errors) ** 2).mean()) < 1.6


def test_two_modes_are_both_found(laplace):
    _, modes = laplace.hyper_posterior(1, (0, 3))
    assert sorted(np.exp(modes.points[:, 1]).round(1).tolist()) == [0.4, 2.9]


def test_posterior_over_all_dags_is_that_of_the_reference():
    post = gpn.sample(
        DATA, score=GP(), sampler=gpn.samplers.Auto(reweight=None), random_seed=1, draws=10, chains=1, progressbar=False
    )
    known = {(e["node"], tuple(e["parents"])): e["log_score"] for e in TRUTH}
    dags = gpn.graphs.enumerate_dags(4)
    log_p = np.array([sum(known[i, tuple(np.flatnonzero(dag[:, i]))] for i in range(4)) for dag in dags])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    q = np.exp(post.exact.log_score(dags) - post.exact.log_z)
    assert 0.5 * np.abs(p - q).sum() < 0.03


def test_scores_do_not_depend_on_order_or_batch():
    one, other = GP().bind(DATA), GP().bind(DATA)
    sets = [(1,), (1, 2), (3,)]
    together = one.score_sets(0, sets)
    apart = [other.score_sets(0, [parents]) for parents in reversed(sets)][::-1]
    assert together.values.tolist() == [batch.values[0] for batch in apart]
    assert GP(seed=1).bind(DATA).local(0, [1]) != together.values[0]


def odd_tables():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    yield "duplicated column", np.column_stack([x, x[:, 0] + 0.0])
    yield "binary column", np.column_stack([x, x[:, 0] > 0])
    yield "outlier", np.vstack([x, [50, 0, 0]])
    yield "eight rows", x[:8]
    yield "noiseless", np.column_stack([x, np.sin(x[:, 0])])


@pytest.mark.filterwarnings("ignore:columns .* are identical")
@pytest.mark.parametrize(("kind", "values"), list(odd_tables()), ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("estimator", ["laplace", "importance", "bridge"])
def test_odd_data_get_finite_scores(kind, values, estimator):
    scorer = GP(estimator=estimator).bind(values.astype(float))
    last = values.shape[1] - 1
    scores = [scorer.local(last, parents) for parents in [(), (0,), (0, 1), tuple(range(last))]]
    assert np.isfinite(scores).all()


def test_twenty_parents_get_a_finite_score():
    values = np.random.default_rng(4).normal(size=(20, 21))
    assert np.isfinite(GP(estimator="laplace").bind(values).local(20, range(20)))


def rough_table(rows, waves):
    x = np.linspace(-1.7, 1.7, rows)
    return np.column_stack([x, np.sin(waves * x) + 0.05 * np.random.default_rng(3).normal(size=rows)])


@pytest.mark.parametrize("estimator", ["laplace", "importance", "bridge"])
def test_a_relation_too_rough_for_the_low_rank_form_is_scored_by_the_dense_one(estimator):
    for waves, dense in ((14, False), (20, True)):
        scorer = GP(estimator=estimator).bind(rough_table(150, waves))
        batch = scorer.score_sets(1, [(0,)])
        assert isinstance(scorer.hyper_posterior(1, (0,))[0], DensePosterior) == dense
        written_out = GP(estimator=estimator, dense=True, seed=1).bind(rough_table(150, waves)).score_sets(1, [(0,)])
        errors = np.nan_to_num([batch.errors[0], written_out.errors[0]])
        # Laplace's has no error of its own but that of the search.
        assert batch.values[0] == pytest.approx(written_out.values[0], abs=4 * np.hypot(*errors) + 1e-4)
        # Taken for noise, the relation would have the score of no relation.
        assert batch.values[0] > scorer.local(1) + 50


def test_a_relation_too_rough_for_the_low_rank_form_is_refused_with_many_rows():
    rough = rough_table(LARGEST_DENSE + 1, 30)
    with pytest.raises(ValueError, match=f"length scales below 0.1, which 'v2' .* received {LARGEST_DENSE + 1}"):
        GP(estimator="laplace").bind(rough).local("v2", ["v1"])


def test_the_hessian_at_the_edge_of_the_box_is_not_made_up(laplace):
    moments = laplace.basis.moments(0, (1,))
    edge = np.array([0.0, LOWEST_LOG_THETA])
    hessian = hessian_at(edge, moments, new_workspace(moments), HyperPriors().for_parents(1))
    assert np.isnan(hessian[1, 1]) and np.isfinite(hessian[0, 0])
    assert laplace_estimate(Modes(edge[None], np.zeros(1), hessian[None])).status == "failed"


def test_bad_settings():
    for settings in (
        {"estimator": "guess"},
        {"target_error": 0},
        {"sigma": (1,)},
        {"theta": (0, 1)},
        {"posterior": "mcmc"},
    ):
        with pytest.raises(ValueError, match="received"):
            GP(**settings)
    with pytest.raises(ValueError, match="needs the rows"):
        GP().bind(gpn.SufficientStatistics(10, [0, 0], [[1, 0], [0, 1]], ["a", "b"]))


def test_a_pickled_scorer_gives_the_same_scores():
    import pickle

    scorer = GP(estimator="laplace").bind(DATA)
    assert pickle.loads(pickle.dumps(scorer)).local(0, [1, 2]) == scorer.local(0, [1, 2])


def test_large_parent_sets_are_not_scored_unasked():
    values = np.random.default_rng(6).normal(size=(30, 8))
    prepared = prepare(values, RunOptions(GP(estimator="laplace")))
    assert prepared.max_parents == 5
    assert prepare(values, RunOptions(GP(), space=gpn.Space(max_parents=2))).max_parents == 2
    assert prepare(values, RunOptions("bge")).max_parents is None


def test_pymc_model_states_the_score():
    pytest.importorskip("pymc")
    model = GP(theta=(3.0, 2.0)).pymc_model(DATA, 1, [0, 3])
    assert {variable.name for variable in model.free_RVs} == {"sigma", "theta"}


def test_without_a_mode_inside_the_bounds_laplace_makes_way():
    x = np.linspace(-1.7, 1.7, 80)
    wavy = np.column_stack([x, np.sin(6 * x) + 0.1 * np.random.default_rng(5).normal(size=80)])
    # Length scales of some tenths are excluded, so that the density is highest at the lower bound.
    import pymc as pm

    priors = pm.Uniform.dist(2.0, 5.0)
    batch = GP(estimator="laplace", theta=priors).bind(wavy).score_sets(1, [(0,)])
    accurate = GP(theta=priors, seed=1).bind(wavy).score_sets(1, [(0,)])
    assert batch.statuses == ["no mode: importance"]
    assert batch.values[0] == pytest.approx(accurate.values[0], abs=4 * np.hypot(batch.errors[0], accurate.errors[0]))


# Equations


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5])])
def test_a_node_without_parents_is_that_of_integrals_over_mean_and_noise(weights):
    """With so few rows the prior of the mean counts as much as they do."""
    y, counts = np.array([0.9, -0.5, 1.4]), np.ones(3) if weights is None else weights
    equation = LevelEquation(y, HyperPriors(mu=(-0.5, 0.4)), weights)
    mu, log_sigma = np.meshgrid(np.linspace(-3, 3, 1201), np.linspace(-5, 6, 1101), indexing="ij")
    sigma = np.exp(log_sigma)
    # sigma ~ IG(1, 1), with the Jacobian.
    log_density = -0.5 * ((mu + 0.5) / 0.4) ** 2 - log_sigma - 1 / sigma
    for value, count in zip(y, counts, strict=True):
        log_density = log_density + count * (-0.5 * ((value - mu) / sigma) ** 2 - log_sigma)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    drawn = equation.draw(40_000, np.random.default_rng(1))
    for draws, values in ((drawn.intercept, mu), (np.log(drawn.sigma), log_sigma)):
        mean = (density * values).sum()
        sd = np.sqrt((density * (values - mean) ** 2).sum())
        # Four standard errors; those of a standard deviation for tails no heavier than those of exponentials.
        assert draws.mean() == pytest.approx(mean, abs=4 * sd / 200)
        assert draws.std() == pytest.approx(sd, rel=4 * np.sqrt(2) / 200)
    new = np.array([-1.0, 0.2, 2.5])
    each = np.exp(-0.5 * ((new[:, None, None] - mu) / sigma) ** 2) / sigma / np.sqrt(2 * np.pi)
    found = equation.log_predictive(new, np.empty((0, 3)))
    np.testing.assert_allclose(found, np.log((each * density).sum(axis=(1, 2))), atol=1e-3)
