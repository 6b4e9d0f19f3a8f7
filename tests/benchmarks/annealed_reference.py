"""Marginal likelihoods of categories under a Gaussian process, by annealed importance sampling: plain numpy, dense.

Particles are drawn from the prior of hyperparameters and processes, and carried to the posterior through powers of the
likelihood (Neal 2001): given the hyperparameters by elliptical slice sampling (Murray, Adams & MacKay 2010), and these
by Metropolis steps. The mean of the weights estimates the integral without bias, and there is nothing of Laplace's
approximation in it.
"""

import numpy as np
from scipy import stats

from tests.latent_reference import covariance, log_likelihood


def log_evidence(levels, cardinality, ordered, distances, rng, particles=48, steps=400):
    """Return the log marginal likelihood and its standard error."""
    count = 1 if ordered else cardinality
    rows = len(levels)
    sigma_prior, theta_prior = stats.invgamma(1, scale=1), stats.invgamma(2, scale=2)

    def root_of(theta):
        return np.linalg.cholesky(covariance(distances, theta) + 1e-8 * np.eye(rows))

    def log_prior(sigma, theta):
        # Of log sigma, given that it's at most 0, and of the log thetas.
        if sigma > 1:
            return -np.inf
        return sigma_prior.logpdf(sigma) + np.log(sigma) + (theta_prior.logpdf(theta) + np.log(theta)).sum()

    def likelihood(root, white, sigma):
        processes = root @ white
        return float(
            log_likelihood(levels, cardinality, ordered, (processes[:, 0] if ordered else processes)[None], sigma)[0]
        )

    powers = np.linspace(0, 1, steps + 1) ** 4
    logs = np.zeros(particles)
    for p in range(particles):
        sigma = float(sigma_prior.ppf(rng.random() * sigma_prior.cdf(1)))
        theta = theta_prior.rvs(size=len(distances), random_state=rng)
        root, white = root_of(theta), rng.standard_normal((rows, count))
        value = likelihood(root, white, sigma)
        for before, power in zip(powers[:-1], powers[1:], strict=True):
            logs[p] += (power - before) * value
            value, white = _slice(
                lambda w, root=root, sigma=sigma: likelihood(root, w, sigma), value, white, power, rng
            )
            new_sigma = sigma * np.exp(0.3 * rng.standard_normal())
            new_theta = theta * np.exp(0.3 * rng.standard_normal(len(theta)))
            change = log_prior(new_sigma, new_theta) - log_prior(sigma, theta)
            if change == -np.inf:
                continue
            new_root = root_of(new_theta)
            new_value = likelihood(new_root, white, new_sigma)
            if np.log(rng.random()) < change + power * (new_value - value):
                sigma, theta, root, value = new_sigma, new_theta, new_root, new_value
    shares = np.exp(logs - logs.max())
    return float(logs.max() + np.log(shares.mean())), float(shares.std() / shares.mean() / np.sqrt(particles))


def _slice(log_likelihood_of, value, white, power, rng):
    """Return the next state of an elliptical slice sampler for a power of the likelihood."""
    other = rng.standard_normal(white.shape)
    height = power * value + np.log(rng.random())
    angle = rng.uniform(0, 2 * np.pi)
    low, high = angle - 2 * np.pi, angle
    while True:
        proposed = white * np.cos(angle) + other * np.sin(angle)
        found = log_likelihood_of(proposed)
        if power * found > height:
            return found, proposed
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)
