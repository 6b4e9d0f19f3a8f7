"""Gaussian noise for differential privacy: how much is needed, and that draws have the distribution they claim."""

import math
import random

import numpy as np
import pytest
from scipy import integrate, stats

from gpn_bayes.secure import discrete_gaussian as sampler
from gpn_bayes.secure.gaussian_mechanism import log_delta, noise_multiplier

pytestmark = pytest.mark.more("statistics that take long")


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    monkeypatch.setattr(sampler, "randbelow", random.Random(7).randrange)


# Roots of Balle & Wang's equation by mpmath with 60 digits. Of (1, 1e-5), their own program gives 3.730632.
ROOTS = {
    (1e-6, 1e-15): 5412218.0409495693,
    (1e-3, 1e-12): 5412.3021938439272,
    (0.1, 1e-6): 36.304690426195785,
    (0.5, 1e-5): 7.0318266755824914,
    (1.0, 1e-5): 3.7306316348159418,
    (1.0, 1e-12): 6.5578220674588501,
    (3.0, 1e-6): 1.5438614177756401,
    (10.0, 1e-15): 0.8289598747219692,
    (100.0, 0.1): 0.07700940212232786,
}


@pytest.mark.parametrize(("guarantee", "root"), ROOTS.items())
def test_the_noise_is_the_least_that_is_needed(guarantee, root):
    multiplier = noise_multiplier(*guarantee)
    assert root < multiplier < root * (1 + 2e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_delta_is_the_expected_excess_of_the_privacy_loss(epsilon):
    """By numerical integration: the loss is normal with mean 1 / 2s^2 and variance 1 / s^2."""
    multiplier = noise_multiplier(epsilon, 1e-4)
    loss = stats.norm(1 / (2 * multiplier**2), 1 / multiplier)
    excess, _ = integrate.quad(
        lambda x: -math.expm1(epsilon - x) * loss.pdf(x), epsilon, epsilon + 20 / multiplier, epsabs=0, epsrel=1e-10
    )
    assert excess == pytest.approx(1e-4, rel=1e-7)
    assert math.exp(log_delta(epsilon, multiplier)) == pytest.approx(excess, rel=1e-7)
    assert math.exp(log_delta(epsilon, multiplier / 10)) > 0.1  # negative control


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_the_classic_noise_is_larger(epsilon, delta):
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert noise_multiplier(epsilon, delta) < classic


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("shift", [1, 3, 7])
def test_a_grid_costs_no_more_delta_than_is_subtracted(epsilon, shift):
    """Coarse grids, where it costs something: delta of a discrete Gaussian that is shifted by whole points."""
    for width in (1.5, 3.0, 10.0):
        points = np.arange(-400, 400 + shift)
        chances = [np.exp(-((points - centre) ** 2) / (2 * width**2)) for centre in (shift, 0)]
        ours, theirs = (own / own.sum() for own in chances)
        discrete = np.maximum(ours - math.exp(epsilon) * theirs, 0).sum()
        multiplier = width / shift
        continuous = math.exp(log_delta(epsilon, multiplier))
        assert discrete <= continuous + (1 + multiplier**-2) / (8 * width**2)


def probabilities(variance, size):
    points = np.arange(-size, size + 1)
    weights = np.exp(-(points**2) / (2 * variance))
    return points, weights / weights.sum()


def p_value(drawn, points, expected):
    counts = np.array([np.sum(np.asarray(drawn) == point) for point in points], dtype=float)
    assert counts.sum() == len(drawn)
    kept = expected * len(drawn) >= 5
    counts = np.append(counts[kept], counts[~kept].sum())
    chances = np.append(expected[kept], expected[~kept].sum())
    return stats.chisquare(counts, chances * len(drawn)).pvalue


@pytest.mark.parametrize("variance", [1, 3, 20])
def test_draws_have_the_probabilities_of_the_discrete_gaussian(variance):
    points, expected = probabilities(variance, 60)
    drawn = sampler.discrete_gaussian(variance, 10_000)
    assert p_value(drawn, points, expected) > 1e-3
    # Negative control: a variance that is off by 20% is noticed.
    assert p_value(drawn, points, probabilities(1.2 * variance, 60)[1]) < 1e-3


def test_draws_of_a_fine_grid_are_normal():
    deviation = 2**45 + 12345
    drawn = np.array(sampler.discrete_gaussian(deviation**2, 8000), dtype=float) / deviation
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert stats.kstest(drawn, stats.laplace(scale=1.0).cdf).pvalue < 1e-6  # negative control: what it is drawn from
    low = np.array([x & 15 for x in sampler.discrete_gaussian(deviation**2, 4000)])
    assert stats.chisquare(np.bincount(low, minlength=16)).pvalue > 1e-3  # the last digits have no holes


def test_noise_is_from_the_operating_system(monkeypatch):
    """No seed of Python or numpy repeats it."""
    monkeypatch.undo()

    def drawn():
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        return sampler.discrete_gaussian(10**30, 3)

    assert drawn() != drawn()
