"""The textbook statement of the Gaussian-process score in PyMC, against the fast one and against scipy."""

import numpy as np
import pytest
from scipy import stats

from gpn_bayes import datasets
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.dense import DensePosterior
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.priors import HyperPriors

pytestmark = pytest.mark.more("samples by PyMC")

DEFAULTS = HyperPriors()
# The dense form is off by 6e-11 or less at the points tried here; the low-rank form, made for 1e-6, by 8e-7.
TOLERANCE, LOW_RANK_TOLERANCE = 1e-8, 1e-6
SIGMAS, THETAS = (0.2, 2.0), (0.15, 20.0)


@pytest.fixture(scope="module")
def pm():
    import pymc

    return pymc


@pytest.fixture(scope="module")
def gp_pymc(pm):
    from gpn_bayes.scores.gp import pymc_model as gp_pymc

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


def as_point(phi, parents):
    """Return the values of a model's variables for phi = (log sigma, log theta_1, …, log tau1, log tau2)."""
    point = {"sigma_log__": np.array(phi[0])}
    if parents:
        point["theta_log__"] = phi[1 : parents + 1]
    rest = phi[parents + 1 :]
    return point | {f"tau{k}_log__": np.array(value) for k, value in enumerate(rest, start=1)}


def compiled_logp(model):
    """Return log p as a function of phi = (log sigma, log theta_1, …); FAST_COMPILE needs neither C nor numba."""
    function = model.compile_logp(mode="FAST_COMPILE")
    parents = len(model.coords.get("parent", ()))
    return lambda phi: float(function(as_point(phi, parents)))


def dense_log_posterior(phi, table, node, parents, priors=DEFAULTS, kernel="additive"):
    tables = priors.for_parents(len(parents), kernel)
    mean, sd = priors.mu
    posterior = DensePosterior(table[:, node] - mean, table[:, list(parents)], tables, kernel, sd)
    return posterior.log_densities(phi[None])[0]


def low_rank_log_posterior(phi, table, node, parents, priors=DEFAULTS):
    moments = Basis(table[:, [node, *parents]], 1e-10, priors.mu).moments(0, tuple(range(1, len(parents) + 1)))
    return LowRankPosterior(moments, priors.for_parents(len(parents))).log_densities(phi[None])[0]


def inverse_gamma(shape, scale):
    return stats.invgamma(shape, scale=scale)


ONE, TWO = inverse_gamma(1, 1), inverse_gamma(2, 2)


def scipy_log_posterior(phi, table, node, parents, sigma=ONE, theta=TWO, tau=ONE, mu=(0.0, 1.0), kernel="additive"):
    values, count = np.exp(phi), len(parents)
    squares = [np.subtract.outer(table[:, parent], table[:, parent]) ** 2 for parent in parents]
    kernels = [np.exp(-0.5 * square / scale**2) for square, scale in zip(squares, values[1 : count + 1], strict=True)]
    weights = values[count + 1 :] if kernel == "interaction" else np.array([1.0, 0.0])
    covariance = mu[1] ** 2 + values[0] ** 2 * np.eye(len(table))
    for i in range(count):
        covariance += weights[0] * kernels[i]
        for j in range(i):
            covariance += weights[1] * kernels[i] * kernels[j]
    value = stats.multivariate_normal.logpdf(table[:, node], np.full(len(table), mu[0]), covariance) + phi.sum()
    value += sigma.logpdf(values[0]) + theta.logpdf(values[1 : count + 1]).sum()
    return value + (tau.logpdf(weights).sum() if kernel == "interaction" else 0.0)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("parents", [(1,), (1, 3), (0, 3, 4)], ids=len)
def test_the_compiled_statements_are_the_same_model(gp_pymc, name, parents):
    table, rng = TABLES[name], np.random.default_rng(len(parents))
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 2, parents))
    for _ in range(4):
        phi = random_phi(rng, len(parents))
        value = logp(phi)
        assert value == pytest.approx(scipy_log_posterior(phi, table, 2, parents), rel=0, abs=1e-9)
        assert value == pytest.approx(dense_log_posterior(phi, table, 2, parents), rel=0, abs=TOLERANCE)
    assert value == pytest.approx(low_rank_log_posterior(phi, table, 2, parents), rel=0, abs=LOW_RANK_TOLERANCE)


@pytest.mark.parametrize("name", TABLES)
def test_without_parents(gp_pymc, name):
    table, rng = TABLES[name], np.random.default_rng(7)
    model = gp_pymc.pymc_model(table, names_of(table), 2)
    assert [variable.name for variable in model.free_RVs] == ["sigma"]
    logp = compiled_logp(model)
    for _ in range(4):
        phi = random_phi(rng, 0)
        assert logp(phi) == pytest.approx(scipy_log_posterior(phi, table, 2, ()), rel=0, abs=1e-10)


def test_other_priors(gp_pymc):
    table, phi = TABLES["normal"], random_phi(np.random.default_rng(8), 2)
    for priors in (HyperPriors((1.5, 0.7), (3.0, 2.5), mu=(0.2, 0.5)), HyperPriors(theta=(3.0, 2.5))):
        value = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), priors))(phi)
        assert value == pytest.approx(dense_log_posterior(phi, table, 0, (1, 2), priors), rel=0, abs=TOLERANCE)
        low_rank = low_rank_log_posterior(phi, table, 0, (1, 2), priors)
        assert value == pytest.approx(low_rank, rel=0, abs=LOW_RANK_TOLERANCE)


@pytest.mark.parametrize("name", ["LogNormal", "HalfNormal", "Gamma"])
def test_distributions_as_priors(pm, gp_pymc, name):
    """The model, the compiled statements and scipy, for the same distribution of sigma and of theta."""
    stated, truth = {
        "LogNormal": (pm.LogNormal.dist(0.2, 0.7), stats.lognorm(0.7, scale=np.exp(0.2))),
        "HalfNormal": (pm.HalfNormal.dist(1.3), stats.halfnorm(scale=1.3)),
        "Gamma": (pm.Gamma.dist(2.5, 3), stats.gamma(2.5, scale=1 / 3)),
    }[name]
    priors = HyperPriors(sigma=stated, theta=stated)
    table, rng = TABLES["normal"], np.random.default_rng(9)
    model = gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), priors)
    assert stated.name is None
    assert model.named_vars_to_dims["theta"] == ("parent",)
    logp = compiled_logp(model)
    for _ in range(4):
        phi = random_phi(rng, 2)
        value = logp(phi)
        expected = scipy_log_posterior(phi, table, 0, (1, 2), truth, truth)
        assert value == pytest.approx(expected, rel=0, abs=1e-8)
        assert value == pytest.approx(dense_log_posterior(phi, table, 0, (1, 2), priors), rel=0, abs=TOLERANCE)
    low_rank = low_rank_log_posterior(phi, table, 0, (1, 2), priors)
    assert value == pytest.approx(low_rank, rel=0, abs=LOW_RANK_TOLERANCE)


def test_bounded_priors_have_a_transform_of_their_own(pm, gp_pymc):
    table, phi = TABLES["normal"], np.log([0.5, 0.8, 2.0])
    priors = HyperPriors(theta=pm.Uniform.dist(0.2, 5))
    model = gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), priors)
    assert [variable.name for variable in model.value_vars] == ["theta_interval__", "sigma_log__"]
    # In log theta, in place of the logit of where theta lies between its bounds.
    theta = np.exp(phi[1:])
    share = (theta - 0.2) / 4.8
    point = {"sigma_log__": np.array(phi[0]), "theta_interval__": np.log(share / (1 - share))}
    value = model.compile_logp(mode="FAST_COMPILE")(point)
    value += np.sum(np.log(theta) - np.log(4.8 * share * (1 - share)))
    assert value == pytest.approx(dense_log_posterior(phi, table, 0, (1, 2), priors), rel=0, abs=TOLERANCE)


@pytest.mark.parametrize("parents", [(), (1,), (1, 3), (0, 3, 4)], ids=len)
@pytest.mark.parametrize("distribution", [False, True])
def test_interactions_and_the_mean(pm, gp_pymc, parents, distribution):
    table, rng = TABLES["sachs"], np.random.default_rng(10 + len(parents))
    tau, truth = (pm.LogNormal.dist(0, 1), stats.lognorm(1)) if distribution else ((1.5, 0.8), inverse_gamma(1.5, 0.8))
    priors = HyperPriors(tau=tau, mu=(0.4, 1.7))
    model = gp_pymc.pymc_model(table, names_of(table), 2, parents, priors, kernel="interaction")
    taus = [variable.name for variable in model.free_RVs if variable.name.startswith("tau")]
    assert taus == (["tau1", "tau2"] if len(parents) > 1 else [])
    logp = compiled_logp(model)
    for _ in range(4):
        phi = np.concatenate([random_phi(rng, len(parents)), rng.normal(size=len(taus))])
        expected = scipy_log_posterior(
            phi, table, 2, parents, tau=truth, mu=(0.4, 1.7), kernel="interaction" if len(parents) > 1 else "additive"
        )
        assert logp(phi) == pytest.approx(expected, rel=0, abs=1e-8)
        if parents:
            dense = dense_log_posterior(phi, table, 2, parents, priors, "interaction")
            assert logp(phi) == pytest.approx(dense, rel=0, abs=TOLERANCE)


def test_the_mean_of_the_additive_model(gp_pymc):
    table, phi = TABLES["normal"], np.log([0.6, 0.8, 1.1])
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2), HyperPriors(mu=(-1.5, 0.1))))
    assert logp(phi) == pytest.approx(scipy_log_posterior(phi, table, 0, (1, 2), mu=(-1.5, 0.1)), rel=0, abs=1e-9)
    assert abs(logp(phi) - scipy_log_posterior(phi, table, 0, (1, 2))) > 0.1


def test_the_comparison_notices_small_mistakes(gp_pymc):
    """Negative control: exchanged length scales and a slightly wrong prior are far outside the tolerance."""
    table, phi = TABLES["normal"], np.log([0.6, 0.8, 1.1])
    logp = compiled_logp(gp_pymc.pymc_model(table, names_of(table), 0, (1, 2)))
    assert abs(logp(phi[[0, 2, 1]]) - dense_log_posterior(phi, table, 0, (1, 2))) > 1e-3
    wrong = HyperPriors(theta=(2.0, 2.0001))
    assert abs(logp(phi) - dense_log_posterior(phi, table, 0, (1, 2), wrong)) > 100 * TOLERANCE


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
        (("v0", ["v1"], None, "linear"), "^kernel must be one of additive, interaction; received 'linear'$"),
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
