"""Groups of rows of a changed mechanism that share its length scales."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes.scores import GP
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.dense import DensePosterior
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.shared_scales import SharedScalesPosterior
from gpn_bayes.scores.recorded import as_setting, from_parameters

OBSERVED, CHANGED = 40, 25
TARGETS = [""] * OBSERVED + ["v2"] * CHANGED


def changed_curve(seed=1):
    """Return a table in which experiments turned v2 = sin(2 v1) into a cosine, with more noise; v3 is a bystander."""
    rng = np.random.default_rng(seed)
    x, other, noise = rng.normal(size=(3, len(TARGETS)))
    before = np.array([not target for target in TARGETS])
    y = np.where(before, np.sin(2 * x) + 0.3 * noise, np.cos(2 * x) + 0.6 * noise)
    return np.column_stack([x, y, other])


def log_likelihoods(x, y, sigmas, theta):
    """Return log N(y; 0, K_theta + 1 1' + sigma^2 I) for each sigma."""
    covariance = np.exp(-0.5 * ((x[:, None] - x) / theta) ** 2) + 1.0
    values, vectors = np.linalg.eigh(covariance)
    spectra = np.maximum(values, 0.0) + sigmas[:, None] ** 2
    parts = (vectors.T @ y) ** 2
    return -0.5 * (np.log(2 * np.pi * spectra) + parts / spectra).sum(axis=1)


def by_quadrature(groups):
    """Return log of the integral over theta of p(theta) times the product of the groups' integrals over their sigma."""
    log_sigmas, log_thetas = np.linspace(-4, 4, 401), np.linspace(-2.3, 9, 453)
    sigmas = np.exp(log_sigmas)
    sigma_prior = stats.invgamma(1, scale=1).logpdf(sigmas) + log_sigmas + np.log(log_sigmas[1] - log_sigmas[0])
    total = stats.invgamma(2, scale=2).logpdf(np.exp(log_thetas)) + log_thetas + np.log(log_thetas[1] - log_thetas[0])
    for x, y in groups:
        total += [logsumexp(sigma_prior + log_likelihoods(x, y, sigmas, theta), axis=0) for theta in np.exp(log_thetas)]
    return logsumexp(total)


def test_score_is_the_joint_integral():
    table = changed_curve()
    values = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    groups = [(part[:, 0], part[:, 1]) for part in (values[:OBSERVED], values[OBSERVED:])]
    expected = by_quadrature(groups)
    own = sum(by_quadrature([group]) for group in groups)
    assert abs(expected - own) > 0.5  # sharing makes a difference that the test could miss otherwise
    for settings in ({}, {"dense": True}, {"estimator": "bridge"}):
        scorer = GP(length_scales="shared", **settings).bind(table, targets=TARGETS, intervention="soft")
        batch = scorer.score_sets(1, [(0,)])
        assert batch.errors[0] < 0.04
        assert abs(batch.values[0] - expected) < 4 * batch.errors[0]
        assert abs(scorer.proposal().local("v2", ["v1"]) - expected) < 0.5


@pytest.mark.parametrize("kernel", ["low rank", "additive", "interaction"])
def test_gradient_is_that_of_the_density(kernel):
    table = changed_curve()
    parts = np.split(table, [20, 45])
    if kernel == "low rank":
        priors = HyperPriors().for_parents(2)
        groups = [LowRankPosterior(Basis(part).moments(1, (0, 2)), priors) for part in parts]
    else:
        priors = HyperPriors().for_parents(2, kernel)
        groups = [DensePosterior(part[:, 1], part[:, [0, 2]], priors, kernel) for part in parts]
    posterior = SharedScalesPosterior(groups)
    phi = np.log(np.linspace(0.4, 1.3, posterior.size))
    value, gradient = posterior.log_density_and_gradient(phi)
    assert posterior.size == len(priors.kinds) + 2
    assert value == pytest.approx(posterior.log_density(phi), abs=1e-9)
    steps = 1e-5 * np.eye(posterior.size)
    slopes = (posterior.log_densities(phi + steps) - posterior.log_densities(phi - steps)) / 2e-5
    np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-4)


def test_outside_the_box_there_is_no_density():
    groups = [
        LowRankPosterior(Basis(part).moments(1, (0,)), HyperPriors().for_parents(1))
        for part in np.split(changed_curve(), 2 * [32])[::2]
    ]
    posterior = SharedScalesPosterior(groups)
    outside = np.log([0.5, 0.01, 0.5])
    assert posterior.log_density(outside) == -np.inf
    value, gradient = posterior.log_density_and_gradient(outside)
    assert value == -np.inf
    assert np.isnan(gradient).all()


def test_nothing_is_shared_where_a_node_was_not_changed():
    table = changed_curve()
    own, shared = (
        GP(length_scales=given).bind(table, targets=TARGETS, intervention="soft") for given in ("own", "shared")
    )
    assert shared.local("v1", ["v3"]) == own.local("v1", ["v3"])
    assert shared.local("v2") == pytest.approx(own.local("v2"), abs=1e-12)
    assert shared.local("v2", ["v1"]) != own.local("v2", ["v1"])


def test_posteriors_take_it_and_files_keep_it(tmp_path):
    score = GP(estimator="laplace", length_scales="shared")
    post = gpn.sample(changed_curve(), score=score, targets=TARGETS, intervention="soft", draws=50, progressbar=False)
    assert post.edge_probability("v1", "v2").value > 0.9
    post.save(tmp_path / "post.nc")
    assert gpn.load(tmp_path / "post.nc").settings["score"]["parameters"]["length_scales"] == "shared"
    assert from_parameters(**as_setting(score)).fingerprint == score.fingerprint != GP(estimator="laplace").fingerprint


def test_unknown_targets_and_other_words_are_refused():
    with pytest.raises(ValueError, match='length_scales="shared" needs known targets; received contexts'):
        GP(length_scales="shared").bind(changed_curve(), contexts=["b" if target else "a" for target in TARGETS])
    with pytest.raises(ValueError, match="length_scales must be one of own, shared; received 'common'"):
        GP(length_scales="common")
