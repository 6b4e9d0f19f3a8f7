"""Priors of hyperparameters: tables against scipy, what a user may state, what travels to workers."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gpn_bayes.kernels.gaussian_process.priors import add_prior_gradient, draw_prior, log_drawn_density, log_prior
from gpn_bayes.scores.gp.priors import HyperPriors

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

ROOT = Path(__file__).resolve().parents[1]
RULE = "must have a continuous prior of one positive number with constant parameters, unnamed and in no model"
PAIRS = {"default": (2.0, 2.0), "heavy": (0.6, 0.5), "narrow": (50.0, 30.0)}


@pytest.fixture(scope="module")
def pm():
    import pymc

    return pymc


def in_pymc(pm, name):
    return {
        "LogNormal": lambda: pm.LogNormal.dist(0.5, 0.75),
        "HalfNormal": lambda: pm.HalfNormal.dist(0.8),
        "Gamma": lambda: pm.Gamma.dist(2.5, 3),
        "Exponential": lambda: pm.Exponential.dist(2.0),
        "Weibull": lambda: pm.Weibull.dist(1.5, 2.0),
        "HalfStudentT": lambda: pm.HalfStudentT.dist(3, 1),
        "Uniform": lambda: pm.Uniform.dist(0.2, 5),
        "TruncatedNormal": lambda: pm.Truncated.dist(pm.Normal.dist(1, 1), lower=0.1),
        "TruncatedGamma": lambda: pm.Truncated.dist(pm.Gamma.dist(2, 2), upper=3.0),
        "Mixture": lambda: pm.Mixture.dist([0.3, 0.7], [pm.LogNormal.dist(0.5, 0.75), pm.Gamma.dist(2.5, 3)]),
    }[name]()


class Folded:
    """The positive half of a symmetric distribution."""

    def __init__(self, whole):
        self.whole = whole

    def logpdf(self, x):
        return self.whole.logpdf(x) + np.log(2)

    def cdf(self, x):
        return 2 * self.whole.cdf(x) - 1


class Cut:
    """A distribution below a limit."""

    def __init__(self, whole, limit):
        self.whole, self.limit = whole, limit

    def logpdf(self, x):
        return np.where(x <= self.limit, self.whole.logpdf(x) - self.whole.logcdf(self.limit), -np.inf)

    def cdf(self, x):
        return np.minimum(self.whole.cdf(x) / self.whole.cdf(self.limit), 1)


class Mixed:
    """A mixture."""

    def __init__(self, shares, parts):
        self.shares, self.parts = shares, parts

    def logpdf(self, x):
        return np.log(sum(share * part.pdf(x) for share, part in zip(self.shares, self.parts, strict=True)))

    def cdf(self, x):
        return sum(share * part.cdf(x) for share, part in zip(self.shares, self.parts, strict=True))


LOG_NORMAL, GAMMA = stats.lognorm(0.75, scale=np.exp(0.5)), stats.gamma(2.5, scale=1 / 3)
IN_SCIPY = {
    "LogNormal": LOG_NORMAL,
    "HalfNormal": stats.halfnorm(scale=0.8),
    "Gamma": GAMMA,
    "Exponential": stats.expon(scale=0.5),
    "Weibull": stats.weibull_min(1.5, scale=2.0),
    "HalfStudentT": Folded(stats.t(3)),
    "Uniform": stats.uniform(0.2, 4.8),
    "TruncatedNormal": stats.truncnorm(-0.9, np.inf, loc=1, scale=1),
    "TruncatedGamma": Cut(stats.gamma(2, scale=0.5), 3.0),
    "Mixture": Mixed([0.3, 0.7], [LOG_NORMAL, GAMMA]),
}
BOUNDS = {"Uniform": (0.2, 5.0), "TruncatedNormal": (0.1, 1e4), "TruncatedGamma": (1e-3, 3.0)}
# PyMC computes constants of these in single precision.
IN_SINGLE = {"HalfStudentT", "Weibull", "TruncatedNormal", "TruncatedGamma", "Mixture"}


def theta_of(prior):
    """Return the tables with the given prior for the only coordinate of phi."""
    priors = HyperPriors(theta=prior).for_parents(1)
    return priors._replace(kinds=np.array([1]))


def points_in(distribution, name=""):
    low, high = BOUNDS.get(name, (1e-3, 1e4))
    grid = np.exp(np.random.default_rng(3).uniform(np.log(low), np.log(high), 400))
    # Where the density is of any interest: the rest is checked for being negligible.
    return grid[distribution.logpdf(grid) + np.log(grid) > -60]


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_inverse_gamma(name):
    shape, scale = PAIRS[name]
    priors, truth = theta_of((shape, scale)), stats.invgamma(shape, scale=scale)
    for x in points_in(truth):
        phi, gradient = np.log([x]), np.ones(1)
        assert log_prior(phi, priors) == pytest.approx(truth.logpdf(x) + np.log(x), abs=1e-9)
        add_prior_gradient(phi, priors, gradient)
        assert gradient[0] == pytest.approx(1 + scale / x - shape, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", IN_SCIPY)
def test_distributions_of_pymc_are_those_of_scipy(pm, name):
    priors, truth = theta_of(in_pymc(pm, name)), IN_SCIPY[name]
    tolerance = 1e-6 if name in IN_SINGLE else 1e-9
    for x in points_in(truth, name):
        phi, gradient = np.log([x]), np.ones(1)
        assert log_prior(phi, priors) == pytest.approx(truth.logpdf(x) + np.log(x), abs=tolerance)
        add_prior_gradient(phi, priors, gradient)
        steps = x * np.exp([-1e-5, 1e-5])
        if np.isfinite(truth.logpdf(steps)).all():
            slope = 2 + np.diff(truth.logpdf(steps))[0] / 2e-5
            assert gradient[0] == pytest.approx(slope, rel=1e-5, abs=1e-5)
    knots = np.exp(priors.lowest + priors.step * np.arange(priors.cumulative.shape[1]))
    assert np.abs(truth.cdf(knots) - priors.cumulative[1]).max() < 0.002
    lost = truth.cdf(knots[0]) + 1 - truth.cdf(knots[-1])
    within = (truth.cdf(knots) - truth.cdf(knots[0])) / (1 - lost)
    assert np.abs(within - priors.cumulative[1]).max() < (1e-7 if name in IN_SINGLE else 1e-11)


def test_the_comparison_notices_small_mistakes(pm):
    """Negative control: a parameter wrong in the fifth digit is far outside the tolerance."""
    priors, truth = theta_of(pm.LogNormal.dist(0.5, 0.75001)), IN_SCIPY["LogNormal"]
    gaps = [log_prior(np.log([x]), priors) - truth.logpdf(x) - np.log(x) for x in points_in(truth)]
    assert np.abs(gaps).max() > 1e-5


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_kept_to_rounding(pm, name):
    priors, truth = theta_of(in_pymc(pm, name)), IN_SCIPY[name]
    low, high = np.log(BOUNDS[name])
    for inside, outside in ((low + 1e-12, low - 1e-12), (high - 1e-12, high + 1e-12)):
        x = np.exp(inside)
        assert log_prior(np.array([inside]), priors) == pytest.approx(truth.logpdf(x) + inside, rel=1e-9, abs=1e-6)
        assert log_prior(np.array([outside]), priors) == -np.inf
        gradient = np.zeros(1)
        add_prior_gradient(np.array([outside]), priors, gradient)
        assert np.isnan(gradient[0])


@pytest.mark.parametrize("name", ["LogNormal", "Uniform", "TruncatedGamma"])
def test_draws_have_the_density_they_say(pm, name):
    priors, truth = theta_of(in_pymc(pm, name)), IN_SCIPY[name]
    rng, phi = np.random.default_rng(5), np.empty(1)
    drawn, ratios = np.empty(4000), np.empty(4000)
    for s in range(len(drawn)):
        draw_prior(phi, priors, rng)
        drawn[s] = phi[0]
        ratios[s] = np.exp(log_prior(phi, priors) - log_drawn_density(phi, priors))
    assert stats.kstest(np.exp(drawn), truth.cdf).pvalue > 1e-4
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios)) + 1e-5


def test_nothing_is_drawn_beyond_the_tables():
    priors = theta_of((2.0, 2.0))
    assert log_drawn_density(np.log([0.999e-3]), priors) == -np.inf
    assert log_drawn_density(np.log([1.001e4]), priors) == -np.inf
    assert log_prior(np.log([0.999e-3]), priors) == -np.inf
    assert np.isfinite(log_prior(np.array([priors.bounds[1, 1]]), priors))


def test_phi_has_the_layout_of_the_kernel():
    priors = HyperPriors()
    layouts = [priors.for_parents(p, kernel).kinds.tolist() for kernel in ("additive", "interaction") for p in range(4)]
    assert layouts == [[0], [0, 1], [0, 1, 1], [0, 1, 1, 1], [0], [0, 1], [0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 2]]
    with pytest.raises(ValueError, match="^kernel must be one of additive, interaction; received 'linear'$"):
        priors.for_parents(1, "linear")


def test_parameters_tell_priors_apart(pm):
    def key(**priors):
        return json.dumps(HyperPriors(**priors).parameters, sort_keys=True)

    assert HyperPriors().parameters == {"sigma": [1.0, 1.0], "theta": [2.0, 2.0], "tau": [1.0, 1.0], "mu": [0.0, 1.0]}
    assert key(sigma=(1, 1)) == key() == key(sigma=pm.InverseGamma.dist(1, 1), mu=pm.Normal.dist(0, 1))
    equal = [key(theta=in_pymc(pm, "Mixture")) for _ in range(2)] + [key(theta=pm.Gamma.dist(mu=1.0, sigma=0.5))]
    assert equal[0] == equal[1]
    assert equal[2] == key(theta=pm.Gamma.dist(4, 4))
    different = [key(), key(tau=(2, 2)), key(mu=(0, 2)), key(sigma=pm.LogNormal.dist(0, 1)), *equal[1:]]
    different += [key(theta=pm.LogNormal.dist(0, 1)), key(theta=pm.LogNormal.dist(0, 1.1)), key(theta=(2, 2.1))]
    assert len(set(different)) == len(different)
    assert HyperPriors(sigma=pm.TruncatedNormal.dist(1, 2, lower=0)).parameters["sigma"] == {
        "distribution": "TruncatedNormal",
        "parameters": [1.0, 2.0, 0.0, "inf"],
    }
    assert repr(HyperPriors(mu=(1, 2))) == (
        "HyperPriors(sigma=[1.0, 1.0], theta=[2.0, 2.0], tau=[1.0, 1.0], mu=[1.0, 2.0])"
    )


def test_probability_below():
    assert HyperPriors().probability_below("theta", 0.1) == pytest.approx(stats.invgamma(2, scale=2).cdf(0.1), rel=1e-3)
    assert HyperPriors(sigma=(3, 1)).probability_below("sigma", 0.5) == pytest.approx(
        stats.invgamma(3, scale=1).cdf(0.5), rel=1e-3
    )


def test_pairs_need_no_pymc_and_pickles_neither(pm, tmp_path):
    priors = HyperPriors(theta=pm.LogNormal.dist(0, 1), sigma=in_pymc(pm, "Uniform"))
    (tmp_path / "priors").write_bytes(pickle.dumps(priors))
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "from gpn_bayes.scores.gp.priors import HyperPriors\n"
        "HyperPriors((2, 2), (3, 3)).for_parents(2)\n"
        f"tables = pickle.loads(Path({str(tmp_path / 'priors')!r}).read_bytes()).for_parents(2)\n"
        "assert 'pymc' not in sys.modules and 'pytensor' not in sys.modules\n"
        "print(repr(float(tables.log_density[:2, 2500].sum())))"
    )
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert float(printed) == priors.for_parents(2).log_density[:2, 2500].sum()
    again = pickle.loads(pickle.dumps(priors))
    assert again.parameters == priors.parameters
    assert again.stated("theta").owner.op.name == "lognormal"


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"theta": (1, -2)}, r"theta must have a positive shape and scale, .*LogNormal.*; received \(1, -2\)"),
        ({"sigma": 3}, "sigma must have a positive shape and scale, or a PyMC distribution .*; received 3"),
        ({"tau": "wide"}, "tau must have a positive shape and scale, or a PyMC distribution .*; received 'wide'"),
        ({"sigma": (0.1, 0.1)}, r"sigma must have 99% .* 0.001 and 10000; InverseGamma\(0.1, 0.1\) has 0.668 there"),
        ({"mu": (0, 0)}, r"mu must have a mean and a positive standard deviation, or be .*; received \(0.0, 0.0\)"),
        ({"mu": 2}, "mu must have a mean and a positive standard deviation, or be a pm.Normal.dist .*; received 2"),
    ],
)
def test_refused_numbers(priors, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        HyperPriors(**priors)


def a_named_variable(pm):
    with pm.Model():
        return pm.LogNormal("s", 0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda pm: pm.Normal.dist(5, 1), f"theta {RULE}; received Normal"),
        (lambda pm: pm.Poisson.dist(3), f"theta {RULE}; received Poisson"),
        (lambda pm: pm.Uniform.dist(-0.01, 1), f"theta {RULE}; received Uniform"),
        (lambda pm: pm.Flat.dist(), f"theta {RULE}; received Flat"),
        (lambda pm: pm.Gamma.dist(2, 2, shape=3), f"theta {RULE}; received Gamma with 1 dimension"),
        (lambda pm: pm.CustomDist.dist(1.0, logp=lambda x, rate: -rate * x), f"theta {RULE}; received CustomDist"),
        (lambda pm: pm.Censored.dist(pm.LogNormal.dist(0, 1), 0.1, 3), f"theta {RULE}; received Censored"),
        (lambda pm: pm.math.exp(pm.Normal.dist(0, 1)), f"theta {RULE}; received an expression of PyTensor"),
        (a_named_variable, f"theta {RULE}; received the variable 's'"),
        (
            lambda pm: pm.LogNormal.dist(pm.Normal.dist(0, 1), 1),
            f"theta {RULE}; received LogNormal with a parameter that may vary",
        ),
        (
            lambda pm: pm.Mixture.dist([0.5, 0.5], [pm.Uniform.dist(0.1, 1), pm.Uniform.dist(2, 3)]),
            f"theta {RULE}; received Mixture",
        ),
        (
            lambda pm: pm.LogNormal.dist(0, -1),
            "theta must have a prior with sigma > 0; received {'distribution': 'LogNormal', 'parameters': .*",
        ),
        (lambda pm: pm.HalfFlat.dist(), r"theta must have 99% .*; HalfFlat has 1e\+04 there"),
        (lambda pm: pm.Exponential.dist(20), "theta must have 99% .*; Exponential has 0.98 there"),
        (
            lambda pm: pm.Uniform.dist(0.99, 1),
            "theta must have a prior density .* one interval .* factor of 1.02 wide or more; received Uniform",
        ),
        (lambda pm: pm.LogNormal, "theta must have a positive shape and scale, .*; received <class '.*LogNormal'>"),
    ],
)
def test_refused_distributions(pm, make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        HyperPriors(theta=make(pm))


def test_refused_distributions_of_mu(pm):
    for wrong in (pm.HalfNormal.dist(1), pm.Normal.dist(0, 1, shape=2), pm.Normal.dist(pm.Normal.dist(0, 1), 1)):
        with pytest.raises(ValueError, match="^mu must have a mean and a positive standard deviation, or be a"):
            HyperPriors(mu=wrong)
    assert HyperPriors(mu=pm.Normal.dist(0.3, tau=4)).mu == (0.3, 0.5)
