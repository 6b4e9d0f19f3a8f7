"""Marginal likelihoods under Gaussian processes of categories, and of numbers with Student t noise, by plain numpy.

Nothing of the package is used. Of categories, the hyperparameters are integrated out by quasi-random draws of their
prior; given them, processes at the rows by weighted draws from a normal distribution about their mode, found by
Newton's method on the dense covariance matrix. Or, where parents have few values, by Gauss-Hermite quadrature.
"""

import itertools

import numpy as np
from scipy import optimize, stats
from scipy.special import expit, log_expit, log_softmax, logsumexp

LOGISTIC, GUMBEL = np.pi / np.sqrt(3), np.pi / np.sqrt(6)
# Categories as children: levels, whether they are ordered, parents (the last variable is a category), rows.
CATEGORY_CASES = [
    (cardinality, ordered, parents, rows)
    for cardinality, ordered in ((2, True), (3, True), (3, False))
    for parents, rows in (((0,), 50), ((0,), 200), ((0, 2), 100), ((0, 1, 2), 100))
]
# The squared distance between any two levels of the last variable.
SPACING = 3.0
# Numbers with Student t noise: parents, rows.
STUDENT_CASES = [(1, 40), (2, 40)]
DEGREES = 4.0


def category_case(cardinality, ordered, parents, rows):
    """Return the parents' values, the levels of the child, and the squared distances of each parent."""
    rng = np.random.default_rng([rows, cardinality, ordered, len(parents)])
    values = np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 3, rows)])
    behind = 2 * np.sin(2 * values[:, 0]) + values[:, 1] + (values[:, 2] == 1) + rng.logistic(size=rows)
    if ordered:
        levels = np.searchsorted(np.quantile(behind, np.arange(1, cardinality) / cardinality), behind)
    else:
        utilities = np.column_stack([behind, 1.5 * values[:, 1], np.zeros(rows)]) + rng.gumbel(size=(rows, 3))
        levels = utilities.argmax(axis=1)
    distances = [
        SPACING * (own[:, None] != own) if p == 2 else (own[:, None] - own) ** 2
        for p, own in ((p, values[:, p]) for p in parents)
    ]
    return values, levels, distances


def student_case(parents, rows):
    """Return a standardised table, the node last: heavy tails, outliers, and a row of its own place and value."""
    rng = np.random.default_rng([rows, parents])
    x = rng.normal(size=(rows, parents))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, -1] + 0.2 * rng.standard_t(3, size=rows)
    # Given the others, the first may be followed or not.
    x[0, 0], y[0] = 3.5, 2.5
    y[1] += 3.0
    table = np.column_stack([x, y])
    return (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)


def student_log_likelihood(y, processes, sigma):
    """Return that of numbers given processes, (…, rows), sigma being the standard deviation of their noise."""
    scale = sigma * np.sqrt(1 - 2 / DEGREES)
    return stats.t(DEGREES).logpdf((y - processes) / scale).sum(axis=-1) - len(y) * np.log(scale[..., 0])


def student_log_evidence(y, distances, degrees, draws, seed=0):
    """Return the log marginal likelihood of few numbers with Student t noise, and its standard error.

    Hyperparameters and the precision of every row's noise are drawn from the prior; given these, numbers are normal.
    """
    rng = np.random.default_rng(seed)
    sigma = stats.invgamma(1, scale=1).rvs(draws, random_state=rng)
    thetas = stats.invgamma(2, scale=2).rvs((draws, len(distances)), random_state=rng)
    precisions = rng.gamma(0.5 * degrees, 2 / degrees, (draws, len(y)))
    whole = 1 + sum(np.exp(-0.5 * own / thetas[:, i, None, None] ** 2) for i, own in enumerate(distances))
    whole = whole + (sigma[:, None] ** 2 * (1 - 2 / degrees) / precisions)[:, :, None] * np.eye(len(y))
    roots = np.linalg.cholesky(whole)
    white = np.linalg.solve(roots, np.broadcast_to(y[:, None], (draws, len(y), 1)))[..., 0]
    logs = -0.5 * (white**2).sum(axis=1) - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    shares = np.exp(logs - logs.max())
    value = logs.max() + np.log(shares.mean()) - 0.5 * len(y) * np.log(2 * np.pi)
    return float(value), float(shares.std() / shares.mean() / np.sqrt(draws))


def hyper_draws(parents, log2, seed):
    """Return quasi-random draws of sigma, given that it's at most 1, and of a theta for every parent."""
    uniform = stats.qmc.Sobol(1 + parents, seed=seed).random_base2(log2)
    sigma_prior, theta_prior = stats.invgamma(1, scale=1), stats.invgamma(2, scale=2)
    return np.column_stack([sigma_prior.ppf(uniform[:, :1] * sigma_prior.cdf(1)), theta_prior.ppf(uniform[:, 1:])])


def covariance(distances, thetas):
    """Return that of mu + f at the rows, given squared distances of each parent."""
    return 1 + sum(np.exp(-0.5 * own / theta**2) for own, theta in zip(distances, thetas, strict=True))


def log_between(lower, upper):
    """Return the log probability of a logistic number between two bounds, however small it is."""
    return log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper))


def log_likelihood(levels, cardinality, ordered, processes, sigma):
    """Return the log likelihood of every draw of processes, of shape (draws, rows) or (draws, rows, levels)."""
    shares = np.bincount(levels, minlength=cardinality) / len(levels)
    if ordered:
        below = np.cumsum(shares)[:-1]
        cuts = np.concatenate([[-np.inf], np.log(below / (1 - below)) / LOGISTIC, [np.inf]])
        upper, lower = (LOGISTIC / sigma * (cuts[levels + k] - processes) for k in (1, 0))
        return log_between(lower, upper).sum(axis=-1)
    logits = GUMBEL / sigma * (np.log(shares) / GUMBEL + processes)
    return np.take_along_axis(log_softmax(logits, axis=-1), levels[None, :, None], axis=-1)[..., 0].sum(axis=-1)


def derivatives(levels, cardinality, ordered, process, sigma, step=1e-4):
    """Return slopes and minus second derivatives of each row's log likelihood in its own processes, by differences."""
    count = 1 if ordered else cardinality
    flat = process.reshape(len(levels), count)

    def of_rows(values):
        return log_rows(levels, cardinality, ordered, values, sigma)

    slopes, curvatures = np.empty(flat.shape), np.empty((len(levels), count, count))
    moves = step * np.eye(count)
    for a in range(count):
        slopes[:, a] = (of_rows(flat + moves[a]) - of_rows(flat - moves[a])) / (2 * step)
        for b in range(count):
            corners = [s * t * of_rows(flat + s * moves[a] + t * moves[b]) for s in (1, -1) for t in (1, -1)]
            curvatures[:, a, b] = -sum(corners) / (4 * step**2)
    return slopes, curvatures


def log_rows(levels, cardinality, ordered, values, sigma):
    """Return the log likelihood of each row on its own."""
    shares = np.bincount(levels, minlength=cardinality) / len(levels)
    if ordered:
        below = np.cumsum(shares)[:-1]
        cuts = np.concatenate([[-np.inf], np.log(below / (1 - below)) / LOGISTIC, [np.inf]])
        upper, lower = (LOGISTIC / sigma * (cuts[levels + k] - values[:, 0]) for k in (1, 0))
        return log_between(lower, upper)
    logits = log_softmax(GUMBEL / sigma * (np.log(shares) / GUMBEL + values), axis=-1)
    return logits[np.arange(len(levels)), levels]


def log_evidence(levels, cardinality, ordered, distances, log2=9, inner=16, seed=0):
    """Return the log marginal likelihood and its standard error."""
    rng = np.random.default_rng(seed)
    count = 1 if ordered else cardinality
    logs = []
    for sigma, *thetas in hyper_draws(len(distances), log2, seed):
        prior = np.kron(covariance(distances, thetas), np.eye(count)) + 1e-9 * np.eye(count * len(levels))
        root = np.linalg.cholesky(prior)
        white = np.zeros(len(prior))
        for _ in range(50):
            slopes, curvatures = derivatives(levels, cardinality, ordered, root @ white, sigma)
            blocks = np.zeros_like(prior)
            for n, block in enumerate(curvatures):
                own = slice(n * count, (n + 1) * count)
                blocks[own, own] = 0.5 * (block + block.T)
            precision = np.eye(len(prior)) + root.T @ blocks @ root
            change = np.linalg.solve(precision, root.T @ slopes.ravel() - white)
            white = white + min(1.0, 3.0 / max(np.abs(change).max(), 1e-9)) * change
            if np.abs(change).max() < 1e-3:
                break
        factor = np.linalg.cholesky(precision)
        normal = rng.standard_normal((len(prior), inner))
        normal = np.hstack([normal, -normal])
        drawn = white[:, None] + np.linalg.solve(factor.T, normal)
        processes = (root @ drawn).T.reshape(2 * inner, len(levels), count)
        likelihood = log_likelihood(levels, cardinality, ordered, processes[..., 0] if ordered else processes, sigma)
        weights = likelihood - 0.5 * (drawn**2).sum(axis=0) + 0.5 * (normal**2).sum(axis=0)
        logs.append(logsumexp(weights) - np.log(2 * inner) - np.log(np.diag(factor)).sum())
    shares = np.exp(np.array(logs) - np.max(logs))
    return float(np.max(logs) + np.log(shares.mean())), float(shares.std() / shares.mean() / np.sqrt(len(shares)))


def log_evidence_of_two_levels(levels):
    """Return the log marginal likelihood of a category of two levels without parents: sums over sigma and mu."""
    log_sigma, mu = np.linspace(-6, 0, 601)[:, None], np.linspace(-8, 8, 1601)
    sigma, sigma_prior = np.exp(log_sigma), stats.invgamma(1, scale=1)
    share = np.mean(levels)
    behind = LOGISTIC / sigma * (mu - np.log((1 - share) / share) / LOGISTIC)
    ones, zeros = levels.sum(), (1 - levels).sum()
    totals = ones * log_expit(behind) + zeros * log_expit(-behind) + stats.norm.logpdf(mu)
    totals = totals + sigma_prior.logpdf(sigma) + log_sigma - np.log(sigma_prior.cdf(1))
    # The trapezoidal rule: the density of log sigma ends at 0, where sigma is 1.
    totals[-1] -= np.log(2)
    return logsumexp(totals) + np.log((log_sigma[1, 0] - log_sigma[0, 0]) * (mu[1] - mu[0]))


def log_evidence_by_quadrature(counts, ordered, kernel_of, log2=8, nodes=12, shares=None):
    """Return the log marginal likelihood where the parent has few values, a row of `counts` each, one length scale.

    Processes there are integrated out by a product of Gauss-Hermite rules, centred on the mode and scaled by the
    curvature there; for unordered levels, their differences from the last one are. Cuts are those of `shares`, or of
    what was observed.
    """
    values, cardinality = counts.shape
    shares = counts.sum(axis=0) / counts.sum() if shares is None else shares
    contrasts = 1 if ordered else cardinality - 1
    size = values * contrasts
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.array(list(itertools.product(points, repeat=size)))
    log_weights = np.array(list(itertools.product(np.log(weights), repeat=size))).sum(axis=1)
    logs = []
    for sigma, theta in hyper_draws(1, log2, seed=1):
        between = np.eye(1) if ordered else np.eye(contrasts) + 1
        root = np.linalg.cholesky(np.kron(1 + kernel_of(theta), between) + 1e-12 * np.eye(size))

        def log_joint(white, sigma=sigma, root=root):
            processes = (white @ root.T).reshape(*white.shape[:-1], values, contrasts)
            if ordered:
                below = np.cumsum(shares)[:-1]
                cuts = np.concatenate([[-np.inf], np.log(below / (1 - below)) / LOGISTIC, [np.inf]])
                chances = np.diff(expit(LOGISTIC / sigma * (cuts - processes)), axis=-1)
                log_chances = np.log(np.maximum(chances, 1e-300))
            else:
                logits = np.concatenate([processes, np.zeros((*processes.shape[:-1], 1))], axis=-1)
                log_chances = log_softmax(GUMBEL / sigma * (np.log(shares) / GUMBEL + logits), axis=-1)
            prior = -0.5 * (white**2).sum(axis=-1) - 0.5 * size * np.log(2 * np.pi)
            return (counts * log_chances).sum(axis=(-2, -1)) + prior

        found = optimize.minimize(lambda white, of=log_joint: -of(white), np.zeros(size), method="BFGS")
        steps = 1e-3 * np.eye(size)
        curvature = -np.array(
            [
                [sum(a * b * log_joint(found.x + a * s + b * t) for a in (1, -1) for b in (1, -1)) for s in steps]
                for t in steps
            ]
        ) / (4 * 1e-3**2)
        scale = np.linalg.cholesky(np.linalg.inv(curvature))
        values_there = log_joint(found.x + grid @ scale.T) + 0.5 * (grid**2).sum(axis=1)
        logs.append(logsumexp(log_weights + values_there) + np.log(np.diag(scale)).sum())
    return float(logsumexp(logs) - np.log(len(logs)))
