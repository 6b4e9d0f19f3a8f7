"""Marginal likelihoods of categories under a Gaussian process, by annealed particles: plain numpy, dense.

Particles are drawn from the prior of hyperparameters and processes, and carried to the posterior through powers of the
likelihood, with resampling (Del Moral, Doucet & Jasra 2006). At each power they move: processes by elliptical slice
sampling (Murray, Adams & MacKay 2010), hyperparameters by Metropolis steps, with the processes kept in three ways. The
product of the mean weights estimates the integral, and there is nothing of Laplace's approximation in it.

``python -m tests.benchmarks.annealed_reference out.csv`` writes the reference of `tests/test_gp_categories.py`; it
takes about forty minutes of one core.
"""

import csv
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import optimize, stats
from scipy.special import logsumexp

from tests.latent_reference import CATEGORY_CASES, category_case, log_likelihood

PARTICLES, RUNS = 256, 8
_SIGMA, _THETA = stats.invgamma(1, scale=1), stats.invgamma(2, scale=2)
# The share of particles that weights may be worth fewer after a step in the power, and rounds of moves after each.
_LOSS, _ROUNDS = 0.1, 6


def run_of_case(number, run):
    """Return an estimate of the log marginal likelihood of one case."""
    cardinality, ordered, parents, rows = CATEGORY_CASES[number]
    _, levels, distances = category_case(cardinality, ordered, parents, rows)

    def log_likelihood_of(processes, sigma):
        if ordered:
            return log_likelihood(levels, cardinality, ordered, processes[..., 0], sigma[:, None])
        return log_likelihood(levels, cardinality, ordered, processes, sigma[:, None, None])

    rng = np.random.default_rng([number, run])
    return one_run(log_likelihood_of, 1 if ordered else cardinality, distances, rng)


def one_run(log_likelihood_of, count, distances, rng, largest_sigma=1.0, particles=PARTICLES):
    """Return an estimate of a log marginal likelihood, given squared distances of each parent.

    `log_likelihood_of` takes processes, (particle, row, process), and the sigma of each particle.
    """
    rows = len(distances[0])
    # Exponentials take most of the time: once for each distance that occurs.
    once = [np.unique(own, return_inverse=True) for own in distances]

    def covariance(thetas):
        kernels = (np.exp(-0.5 * own / t**2)[places] for (own, places), t in zip(once, thetas, strict=True))
        return 1 + sum(kernels)

    def roots_of(thetas):
        return np.linalg.cholesky(np.array([covariance(own) for own in thetas]) + 1e-8 * np.eye(rows))

    def likelihoods(roots, white, sigma):
        return log_likelihood_of(roots @ white, sigma)

    def log_prior(logs):
        # Of log sigma, given how large sigma is at most, and of the log thetas.
        sigma, thetas = np.exp(logs[:, 0]), np.exp(logs[:, 1:])
        density = _SIGMA.logpdf(sigma) + _THETA.logpdf(thetas).sum(axis=1) + logs.sum(axis=1)
        return np.where(sigma <= largest_sigma, density, -np.inf)

    sigma = _SIGMA.ppf(rng.random((particles, 1)) * _SIGMA.cdf(largest_sigma))
    hyper = np.log(np.hstack([sigma, _THETA.rvs(size=(particles, len(distances)), random_state=rng)]))
    roots, white = roots_of(np.exp(hyper[:, 1:])), rng.standard_normal((particles, rows, count))
    values = likelihoods(roots, white, np.exp(hyper[:, 0]))
    power = total = 0.0
    while power < 1:
        before, power = power, _next_power(values, power)
        weights = (power - before) * values
        total += logsumexp(weights) - np.log(particles)
        chances = np.exp(weights - logsumexp(weights))
        places = (rng.random() + np.arange(particles)) / particles
        kept = np.minimum(np.searchsorted(np.cumsum(chances), places), particles - 1)
        hyper, roots, white, values = hyper[kept], roots[kept], white[kept], values[kept]
        for _ in range(_ROUNDS):
            values, white = _slice(
                lambda own, w, roots=roots, hyper=hyper: likelihoods(roots[own], w, np.exp(hyper[own, 0])),
                values, white, power, rng,
            )  # fmt: skip
            step = 1.7 / np.sqrt(hyper.shape[1]) * (hyper.std(axis=0) + 0.01)
            # Both, with the whitened processes as they are.
            proposed = hyper + step * rng.standard_normal(hyper.shape)
            new_roots = roots_of(np.exp(proposed[:, 1:]))
            new_values = likelihoods(new_roots, white, np.exp(proposed[:, 0]))
            change = log_prior(proposed) - log_prior(hyper) + power * (new_values - values)
            taken = np.log(rng.random(particles)) < change
            hyper[taken], roots[taken], values[taken] = proposed[taken], new_roots[taken], new_values[taken]
            # The noise, with the processes in its units as they are.
            proposed = hyper.copy()
            proposed[:, 0] += 0.1 * rng.standard_normal(particles)
            larger = proposed[:, 0] - hyper[:, 0]
            moved = white * np.exp(larger)[:, None, None]
            new_values = likelihoods(roots, moved, np.exp(proposed[:, 0]))
            change = log_prior(proposed) - log_prior(hyper) + power * (new_values - values)
            change += rows * count * larger - 0.5 * (moved**2 - white**2).sum(axis=(1, 2))
            taken = np.log(rng.random(particles)) < change
            hyper[taken], white[taken], values[taken] = proposed[taken], moved[taken], new_values[taken]
            # The length scales, with the processes as they are.
            proposed = hyper.copy()
            proposed[:, 1:] += 0.2 * step[1:] * rng.standard_normal((particles, len(distances)))
            new_roots = roots_of(np.exp(proposed[:, 1:]))
            moved = np.linalg.solve(new_roots, roots @ white)
            change = log_prior(proposed) - log_prior(hyper) + count * _log_determinants(roots, new_roots)
            change -= 0.5 * (moved**2 - white**2).sum(axis=(1, 2))
            taken = np.log(rng.random(particles)) < change
            hyper[taken], roots[taken], white[taken] = proposed[taken], new_roots[taken], moved[taken]
    return total


def _log_determinants(above, below):
    """Return the log ratios of determinants of triangular matrices."""
    return np.log(np.diagonal(above, axis1=1, axis2=2) / np.diagonal(below, axis1=1, axis2=2)).sum(axis=1)


def _next_power(values, power):
    """Return the power at which weights are worth as many particles as they may."""
    aim = (1 - _LOSS) * len(values)

    def worth(following):
        weights = (following - power) * values
        return np.exp(2 * logsumexp(weights) - logsumexp(2 * weights)) - aim

    return 1.0 if worth(1.0) >= 0 else float(optimize.brentq(worth, power, 1.0))


def _slice(log_likelihoods_of, values, white, power, rng):
    """Return the next state of an elliptical slice sampler for a power of the likelihood, of every particle."""
    other = rng.standard_normal(white.shape)
    heights = power * values + np.log(rng.random(len(values)))
    angles = rng.uniform(0, 2 * np.pi, len(values))
    low, high = angles - 2 * np.pi, angles.copy()
    values, white = values.copy(), white.copy()
    start, left = white.copy(), np.arange(len(values))
    while len(left):
        angle = angles[left, None, None]
        proposed = start[left] * np.cos(angle) + other[left] * np.sin(angle)
        found = log_likelihoods_of(left, proposed)
        taken = power * found > heights[left]
        values[left[taken]], white[left[taken]] = found[taken], proposed[taken]
        left = left[~taken]
        below = angles[left] < 0
        low[left[below]], high[left[~below]] = angles[left[below]], angles[left[~below]]
        angles[left] = rng.uniform(low[left], high[left])
    return values, white


def main():
    """Write the reference: estimates of all cases, and their standard errors from independent runs."""
    tasks = [(number, run) for number in range(len(CATEGORY_CASES)) for run in range(RUNS)]
    tasks.sort(key=lambda task: -CATEGORY_CASES[task[0]][3])
    with ProcessPoolExecutor() as pool:
        found = dict(zip(tasks, pool.map(run_of_case, *zip(*tasks, strict=True)), strict=True))
    with open(sys.argv[1], "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["levels", "ordered", "parents", "rows", "log_evidence", "error", "runs"])
        for number, (cardinality, ordered, parents, rows) in enumerate(CATEGORY_CASES):
            logs = np.array([found[number, run] for run in range(RUNS)])
            shares = np.exp(logs - logs.max())
            value, error = logs.max() + np.log(shares.mean()), shares.std(ddof=1) / shares.mean() / np.sqrt(RUNS)
            out.writerow([cardinality, ordered, len(parents), rows, f"{value:.4f}", f"{error:.4f}", RUNS])


if __name__ == "__main__":
    main()
