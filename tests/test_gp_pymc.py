"""The textbook statement of the Gaussian-process score in PyMC, against the fast one and against scipy."""

import numpy as np
import pytest
from scipy.stats import invgamma, multivariate_normal

from gpn_bayes import datasets
from gpn_bayes.kernels.gp import new_workspace
from gpn_bayes.kernels.gp_modes import log_posterior
from gpn_bayes.scores.gp_basis import Basis

DEFAULTS = np.array([1.0, 1.0, 2.0, 2.0])
# At the points tried here the low-rank form is off by 3e-10 or less. Over 2,400 other draws from the ranges below
# it was off by 7e-9 at most, and at its worst points (sigma = 0.2, theta = 12, where a level begins) by 2.5e-8.
TOLERANCE = 1e-8
SIGMAS, THETAS = (0.2, 2.0), (0.15, 20.0)


@pytest.fixture(scope="module")
def pm():
    import pymc

    return pymc


@pytest.fixture(scope="module")
def gp_pymc(pm):
    from gpn_bayes.scores import gp_pymc

    return gp_pymc


def standardised(table):
    return (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)


def tables():
    rng = np.random.default_rng(20260)
    sachs = datasets.sachs(transform="log2").to_numpy()
    rows = rng.choice(len(sachs), 50, replace=False)
    return {
        "normal": standardised(rng.normal(size=(60, 5))),
        "sachs": standardised(sachs[rows]),
    }


TABLES = tables()


def names_of(table):
    return [f"v{i}" for i in range(table.shape[1])]


def random_phi(rng, parents):
    return np.concatenate([rng.uniform(*np.log(SIGMAS), 1), rng.uniform(*np.log(THETAS), parents)])


def as_point(phi):
    point = {"sigma_log__": np.array(phi[0])}
    if len(phi) > 1:
        point["theta_log__"] = phi[1:]
    return point


def compiled_logp(model):
    """Return log p as a function of phi = (log sigma, log theta_1, …); FAST_COMPILE needs neither C nor numba."""
    function = model.compile_logp(mode="FAST_COMPILE")
    return lambda phi: float(function(as_point(phi)))


def fast_log_posterior(phi, table, node, parents, priors=DEFAULTS):
    moments = Basis(table).moments(node, parents)
    return log_posterior(phi, moments, new_workspace(moments), priors)


def scipy_log_posterior(phi, table, node, parents, priors=DEFAULTS):
    sigma, thetas = np.exp(phi[0]), np.exp(phi[1:])
    covariance = 1.0 + sigma**2 * np.eye(len(table))
    for parent, theta in zip(parents, thetas, strict=True):
        x = table[:, parent]
        covariance += np.exp(-0.5 * (np.subtract.outer(x, x) / theta) ** 2)
    value = multivariate_normal.logpdf(table[:, node], cov=covariance) + phi.sum()
    return (
        value
        + invgamma.logpdf(sigma, priors[0], scale=priors[1])
        + invgamma.logpdf(thetas, priors[2], scale=priors[3]).sum()
    )


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("parents", [(1,), (1, 3), (0, 3, 4)], ids=len)
def test_the_fast_statement_is_the_same_model(gp_pymc, name, parents):
    table, rng = TABLES[name], np.random.default_rng(len(parents))
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 2, parents))
    for _ in range(8):
        phi = random_phi(rng, len(parents))
        assert logp(phi) == pytest.approx(fast_log_posterior(phi, table, 2, parents), rel=0, abs=TOLERANCE)
        assert logp(phi) == pytest.approx(scipy_log_posterior(phi, table, 2, parents), rel=0, abs=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_without_parents(gp_pymc, name):
    table, rng = TABLES[name], np.random.default_rng(7)
    model = gp_pymc.pymc_model(table, names_of(table), 2)
    assert [variable.name for variable in model.free_RVs] == ["sigma"]
    logp = compiled_logp(model)
    for _ in range(4):
        phi = random_phi(rng, 0)
        assert logp(phi) == pytest.approx(scipy_log_posterior(phi, table, 2, ()), rel=0, abs=1e-10)
        assert logp(phi) == pytest.approx(fast_log_posterior(phi, table, 2, ()), rel=0, abs=1e-10)


def test_other_priors(gp_pymc):
    table, rng = TABLES["normal"], np.random.default_rng(8)
    priors = {"sigma": (1.5, 0.7), "theta": (3.0, 2.5)}
    phi = random_phi(rng, 2)
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), priors))
    given = fast_log_posterior(phi, table, 0, (1, 2), np.array([1.5, 0.7, 3.0, 2.5]))
    assert logp(phi) == pytest.approx(given, rel=0, abs=TOLERANCE)
    only_theta = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), {"theta": (3.0, 2.5)}))
    given = fast_log_posterior(phi, table, 0, (1, 2), np.array([1.0, 1.0, 3.0, 2.5]))
    assert only_theta(phi) == pytest.approx(given, rel=0, abs=TOLERANCE)


def test_the_comparison_notices_small_mistakes(gp_pymc):
    """Negative control: exchanged length scales and a slightly wrong prior are far outside the tolerance."""
    table, phi = TABLES["normal"], np.log([0.6, 0.8, 1.1])
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2)))
    assert abs(logp(phi[[0, 2, 1]]) - fast_log_posterior(phi, table, 0, (1, 2))) > 1e-3
    wrong = np.array([1.0, 1.0, 2.0, 2.0001])
    assert abs(logp(phi) - fast_log_posterior(phi, table, 0, (1, 2), wrong)) > 100 * TOLERANCE


def test_parents_keep_their_names_and_order(gp_pymc):
    table, phi = TABLES["normal"], np.log([0.6, 0.4, 3.0])
    model = gp_pymc.pymc_model(table, names_of(table), "v0", ["v3", "v1"])
    assert model.coords["parent"] == ("v3", "v1")
    assert model.named_vars_to_dims["theta"] == ("parent",)
    assert compiled_logp(model)(phi) == pytest.approx(scipy_log_posterior(phi, table, 0, (3, 1)), rel=0, abs=1e-9)


def test_other_rows_can_be_set(pm, gp_pymc):
    table, phi = TABLES["normal"], np.log([0.6, 0.4])
    fewer = standardised(table[:35])
    model = gp_pymc.pymc_model(table, names_of(table), 0, [1])
    logp = compiled_logp(model)
    before = logp(phi)
    pm.set_data({"y_data": fewer[:, 0], "x_data": fewer[:, [1]]}, model=model)
    assert logp(phi) == pytest.approx(scipy_log_posterior(phi, fewer, 0, (1,)), rel=0, abs=1e-9)
    assert abs(logp(phi) - before) > 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("v0", ["v0"]), r"^parents must be distinct and differ from the node 'v0'; received \['v0'\]$"),
        (("v0", ["v1", 1]), r"^parents must be distinct and differ from the node 'v0'; received \['v1', 'v1'\]$"),
        (("v0", ["w"]), "^every node must be one of the variables; 'w' is not$"),
        (("v0", [], {"mu": (1, 1)}), "^priors must be of 'sigma' or 'theta'; received 'mu'$"),
        (("v0", [], {"sigma": (1, 0)}), r"^a prior must be a shape and a scale, both positive; 'sigma' has \(1, 0\)$"),
    ],
)
def test_refusals(gp_pymc, arguments, message):
    table = TABLES["normal"]
    with pytest.raises(ValueError, match=message):
        gp_pymc.pymc_model(table, names_of(table), *arguments)


def test_values_must_match_the_names(gp_pymc):
    with pytest.raises(
        ValueError, match=r"^values must have one column per name; received shape \(60, 5\) for 2 names$"
    ):
        gp_pymc.pymc_model(TABLES["normal"], ["a", "b"], 0)
