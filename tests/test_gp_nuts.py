"""Draws by NUTS: against exact moments, one compilation for a length of phi, seeds and threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import multivariate_t

from gpn_bayes.scores.gp import nuts as gp_nuts
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.modes import Modes
from gpn_bayes.scores.gp.nuts import nuts_draws
from gpn_bayes.scores.gp.priors import HyperPriors

pytestmark = pytest.mark.more("samples by PyMC")


class Normal:
    """A posterior that is normal within a box, with modes where it is told."""

    def __init__(self, mean, covariance, box=np.inf):
        self.mean, self.precision, self.box = np.array(mean), np.linalg.inv(covariance), box
        self.calls = 0

    def log_density_and_gradient(self, phi):
        self.calls += 1
        if np.abs(phi - self.mean).max() > self.box:
            return -np.inf, np.full(len(phi), np.nan)
        gradient = -self.precision @ (phi - self.mean)
        return 0.5 * gradient @ (phi - self.mean), gradient


def modes_at(*points, heights=None, curvature=np.nan):
    points = np.array(points, dtype=float)
    heights = np.zeros(len(points)) if heights is None else np.array(heights, dtype=float)
    return Modes(points, heights, np.array([np.diag(np.full(points.shape[1], curvature))] * len(points)))


NORMAL = Normal([0.3, -1.0], [[0.04, 0.03], [0.03, 0.5]])
AT_NORMAL = modes_at([0.3, -1.0])


def a_posterior(parents, rows=80, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, parents))
    y = np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=rows)
    values = np.column_stack([y, x])
    values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    return LowRankPosterior(Basis(values).moments(0, tuple(range(1, parents + 1))), HyperPriors().for_parents(parents))


def grid_moments(posterior, low, high, count=120):
    """Return the means and variances of a posterior of two coordinates, by summing over a grid."""
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = posterior.log_densities(points)
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, weights @ (points - mean) ** 2


def distances(draws, mean, variance):
    """Return how many standard errors the draws' means and variances are off."""
    found = []
    for k in range(draws.shape[-1]):
        for values, expected in ((draws[..., k], mean[k]), ((draws[..., k] - mean[k]) ** 2, variance[k])):
            effective = array_stats.ess(values, method="mean")
            found.append(abs(values.mean() - expected) / (values.std() / np.sqrt(effective)))
    return np.array(found)


def test_moments_are_those_of_a_grid():
    posterior = a_posterior(1)
    modes = posterior.find_modes()
    draws = nuts_draws(posterior, modes, 3000, np.random.default_rng(1))
    spread = draws.reshape(-1, 2).std(axis=0)
    mean, variance = grid_moments(posterior, modes.points[0] - 8 * spread, modes.points[0] + 8 * spread)
    assert distances(draws, mean, variance).max() < 4
    # Negative control: other rows.
    other = grid_moments(a_posterior(1, seed=4), modes.points[0] - 8 * spread, modes.points[0] + 8 * spread)
    assert distances(draws, *other).max() > 4


def test_moments_of_a_correlated_normal():
    draws = nuts_draws(NORMAL, AT_NORMAL, 3000, np.random.default_rng(2))
    assert distances(draws, NORMAL.mean, np.array([0.04, 0.5])).max() < 4
    product = (draws - NORMAL.mean).prod(axis=-1)
    error = product.std() / np.sqrt(array_stats.ess(product, method="mean"))
    assert abs(product.mean() - 0.03) < 4 * error
    assert 4 * error < 0.03


def test_nothing_is_drawn_where_the_density_is_zero():
    posterior = Normal([0.0, 0.0], np.eye(2), box=0.7)
    draws = nuts_draws(posterior, modes_at([0.0, 0.0]), 1500, np.random.default_rng(3))
    assert np.abs(draws).max() <= 0.7
    axis = np.linspace(-0.7, 0.7, 2001)
    weights = np.exp(-0.5 * axis**2)
    variance = weights @ axis**2 / weights.sum()
    assert distances(draws, np.zeros(2), np.full(2, variance)).max() < 4


def test_compiled_once_for_a_length_of_phi(monkeypatch):
    compile_model, compiled = gp_nuts.nutpie.compile_pymc_model, []

    def counted(model):
        compiled.append(model)
        return compile_model(model)

    monkeypatch.setattr(gp_nuts.nutpie, "compile_pymc_model", counted)
    gp_nuts._compile.cache_clear()
    for seed in range(3):
        posterior = a_posterior(1, rows=30, seed=seed)
        nuts_draws(posterior, posterior.find_modes(), 20, np.random.default_rng(seed), tune=20)
    assert len(compiled) == 1
    nuts_draws(Normal([0.0], [[1.0]]), modes_at([0.0]), 20, np.random.default_rng(5), tune=20)
    assert len(compiled) == 2


def test_the_same_seed_gives_the_same_draws():
    first, again, other = (nuts_draws(NORMAL, AT_NORMAL, 60, np.random.default_rng(s), tune=50) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[0], first[1])


def test_threads_draw_from_their_own_posteriors():
    posteriors = [Normal([float(k), -float(k)], np.eye(2)) for k in range(6)]

    def draw(posterior):
        return nuts_draws(posterior, modes_at(posterior.mean), 60, np.random.default_rng(1), tune=50)

    alone = [draw(posterior) for posterior in posteriors]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(draw, posteriors))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
    assert len({a.tobytes() for a in alone}) == len(alone)
    assert not gp_nuts._posteriors


@pytest.mark.parametrize(
    ("heights", "chains"), [([0.0], 2), ([0, -1], 2), ([0, -1, -2], 3), ([0, -1, -11], 2), ([0, -1, -2, -3, -4, -5], 4)]
)
def test_chains_start_near_modes_that_matter(heights, chains):
    points = np.column_stack([np.arange(len(heights)), np.zeros(len(heights))])
    modes = modes_at(*points, heights=heights, curvature=1e4)
    posterior = Normal([0.0, 0.0], np.eye(2))
    assert nuts_draws(posterior, modes, 41, np.random.default_rng(1), tune=5).shape == (chains, -(-41 // chains), 2)
    starts = gp_nuts._starts(posterior, modes, np.random.default_rng(1))
    kept = np.flatnonzero(np.array(heights) > -10)[:4]
    assert np.array_equal(np.rint(starts[:, 0]), np.resize(kept, chains))
    assert 0.0 < np.abs(starts - np.rint(starts)).max() < 0.05


def test_starts_have_a_density():
    posterior = Normal([0.0, 0.0], np.eye(2), box=0.01)
    starts = gp_nuts._starts(posterior, modes_at([0.0, 0.0]), np.random.default_rng(1))
    assert 1e-5 < np.abs(starts).max() <= 0.01


def test_every_start_is_used():
    seen = []

    class Watched(Normal):
        def log_density_and_gradient(self, phi):
            seen.append(tuple(phi))
            return super().log_density_and_gradient(phi)

    modes = modes_at([0.5, 0.25], [-0.5, 2.0])
    posterior = Watched([0.0, 0.0], np.eye(2))
    starts = gp_nuts._starts(posterior, modes, np.random.default_rng(1))
    seen.clear()
    nuts_draws(posterior, modes, 4, np.random.default_rng(1), tune=5)
    # Once when it was chosen, and again by its chain.
    assert all(seen.count(tuple(start)) >= 2 for start in starts)


def test_refusals():
    with pytest.raises(ValueError, match="^NUTS needs a mode to start from; received none$"):
        nuts_draws(NORMAL, Modes(np.empty((0, 2)), np.empty(0), np.empty((0, 2, 2))), 10, np.random.default_rng(1))
    with pytest.raises(ValueError, match="^draws and tune must be 1 or more; received 0 and 300$"):
        nuts_draws(NORMAL, AT_NORMAL, 0, np.random.default_rng(1))


def test_a_posterior_that_fails_is_forgotten():
    class Broken(Normal):
        def log_density_and_gradient(self, phi):
            return np.nan, np.full(len(phi), np.nan)

    with pytest.raises(RuntimeError):
        nuts_draws(Broken([0.0, 0.0], np.eye(2)), AT_NORMAL, 10, np.random.default_rng(1), tune=5)
    assert not gp_nuts._posteriors


@pytest.mark.slow
@pytest.mark.parametrize("parents", [2, 3])
def test_moments_are_those_of_importance_sampling(parents):
    posterior = a_posterior(parents)
    modes = posterior.find_modes()
    draws = nuts_draws(posterior, modes, 4000, np.random.default_rng(1))
    # A wide proposal first, then one that fits what it found.
    mean, spread = modes.points[0], 4 * np.linalg.inv(modes.hessians[0])
    for _ in range(2):
        proposal = multivariate_t(mean, spread, df=4, seed=2)
        points = proposal.rvs(60_000)
        log_weights = posterior.log_densities(points) - proposal.logpdf(points)
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean, spread = weights @ points, np.cov(points.T, aweights=weights)
    assert 1 / (weights**2).sum() > 8000
    assert distances(draws, mean, np.diag(spread)).max() < 4
