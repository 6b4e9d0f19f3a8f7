"""What a Gaussian process says of each parent's own part of a node, given its hyperparameters.

The node is y = mu + sum_p f_p(x_p) + noise, all of them independent a priori. Given y, f_p at a point x is normal with
mean k' C^-1 (y - mu_0) and variance K_p(x, x) - k' C^-1 k, where k has the covariances of f_p(x) with the rows and C is
the covariance matrix of the rows. A level can move between mu and the f_p without a trace in the data; a centred part,
f_p(x) less its mean over the rows, is free of that. It has the same moments with k less its mean over the rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.dense import Hyperparameters, read_phi
from gpn_bayes.kernels.gaussian_process.low_rank import LOWEST_THETA
from gpn_bayes.scores.gp.basis import Basis, PartOfBasis, by_weight, squared_distances, squared_exponential
from gpn_bayes.scores.gp.priors import HyperPriors

# Rounding may leave a variance that is nothing below zero.
_LEAST_VARIANCE = 1e-18


class KernelSettings(Protocol):
    """The settings of a Gaussian-process score that the covariance matrix depends on; see `gpn_bayes.scores.GP`."""

    @property
    def kernel(self) -> str:
        """The name of the kernel."""

    @property
    def priors(self) -> HyperPriors:
        """The priors of the hyperparameters."""


class BoundGP(Protocol):
    """What is needed of a Gaussian-process score that is bound to data."""

    @property
    def score(self) -> KernelSettings:
        """Its settings."""

    @property
    def values(self) -> np.ndarray:
        """The standardised rows."""

    @property
    def weights(self) -> np.ndarray | None:
        """How many rows each row stands for, where that isn't one."""

    @property
    def basis(self) -> Basis | PartOfBasis:
        """What was prepared of them for the low-rank form."""


class Component(NamedTuple):
    """One parent's part of a node, in standard deviations of the node.

    Attributes
    ----------
    mean, sd : ndarray of shape (points,)
        Posterior mean and standard deviation at the points.
    at_rows : ndarray of shape (rows,)
        Posterior mean at the rows.
    """

    mean: Floats
    sd: Floats
    at_rows: Floats


class _Covariance(NamedTuple):
    """C and its parts, as what can be done with them.

    Attributes
    ----------
    solve : callable
        C^-1 times one vector or several, as columns.
    times : list of callable
        For each parent, the covariance matrix of its part times a vector.
    """

    solve: Callable[[Floats], Floats]
    times: list[Callable[[Floats], Floats]]


def components(
    scorer: BoundGP,
    node: int,
    parents: tuple[int, ...],
    phi: Floats,
    points: Sequence[Floats],
    centred: bool = True,
) -> list[Component]:
    """Return every parent's own part of a node; with the interaction kernel, what pairs of parents add isn't in it.

    Parameters
    ----------
    scorer : GPScorer
        The score, bound to data.
    node : int
        The variable's index.
    parents : tuple of int
        Those of its parents.
    phi : ndarray
        log sigma, log theta_1, …, and with the interaction kernel, from two parents on, log tau1 and log tau2.
    points : sequence of ndarray
        Where to ask for each parent's part: standardised values of the parent.
    centred : bool, default True
        Whether the mean over the rows is taken off.

    Examples
    --------
    >>> from gpn_bayes.scores import GP
    >>> x = np.linspace(-1, 1, 50)
    >>> scorer = GP().bind(np.column_stack([x, x**2 + 0.01 * np.cos(40 * x)]))
    >>> (part,) = components(scorer, 1, (0,), np.log([0.1, 1.0]), [np.array([-1.5, 0.0, 1.5])])
    >>> part.mean.round(1)
    array([ 1.4, -1.1,  1.4])
    """
    hyper, covariance = _covariance_of(scorer, parents, phi)
    weights = covariance.solve(scorer.values[:, node] - scorer.score.priors.mu[0])
    own = _weights_of(scorer)
    share = own / own.sum()
    parts = []
    for p, theta, times, at in zip(parents, hyper.thetas, covariance.times, points, strict=True):
        with_rows = hyper.tau1 * _kernel(at, scorer.values[:, p], theta, scorer.basis.spacings[p])
        variance = np.full(len(at), hyper.tau1)
        at_rows = times(weights)
        if centred:
            # The covariances of the part's mean over the rows with the part at the rows.
            with_mean = times(share)
            variance += share @ with_mean - 2.0 * with_rows @ share
            with_rows -= with_mean
            at_rows -= share @ at_rows
        variance -= (with_rows * covariance.solve(with_rows.T).T).sum(axis=1)
        parts.append(Component(with_rows @ weights, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)), at_rows))
    return parts


def noise(scorer: BoundGP, node: int, parents: tuple[int, ...], phi: Floats) -> Floats:
    """Return the posterior mean of a node's noise at the rows, sigma^2 C^-1 (y - mu_0): what its parents don't explain.

    Parameters
    ----------
    scorer, node, parents, phi
        As of `components`; pairs of parents count in, with the interaction kernel.

    Examples
    --------
    >>> from gpn_bayes.scores import GP
    >>> x = np.linspace(-1, 1, 50)
    >>> scorer = GP().bind(np.column_stack([x, x**2 + 0.01 * np.cos(40 * x)]))
    >>> print(f"{noise(scorer, 1, (0,), np.log([0.1, 1.0])).std():.2f} of {scorer.values[:, 1].std():.2f}")
    0.03 of 0.99
    """
    hyper, covariance = _covariance_of(scorer, parents, phi)
    weights = covariance.solve(scorer.values[:, node] - scorer.score.priors.mu[0])
    left: Floats = hyper.noise * weights / _weights_of(scorer)
    return left


def _weights_of(scorer: BoundGP) -> Floats:
    return np.ones(len(scorer.values)) if scorer.weights is None else scorer.weights


def _covariance_of(scorer: BoundGP, parents: tuple[int, ...], phi: Floats) -> tuple[Hyperparameters, _Covariance]:
    """Return the hyperparameters and the covariance matrix of the rows, in the form that is quickest."""
    interaction = scorer.score.kernel == "interaction" and len(parents) > 1
    hyper = read_phi(phi, len(parents), interaction)
    low_rank = not interaction and hyper.thetas.min(initial=np.inf) >= LOWEST_THETA
    return hyper, (_low_rank if low_rank else _dense)(scorer, parents, hyper, scorer.score.priors.mu[1] ** 2)


def _kernel(a: Floats, b: Floats, theta: float, spacing: float) -> Floats:
    return squared_exponential(squared_distances(a, b, spacing), theta)


def _low_rank(scorer: BoundGP, parents: tuple[int, ...], hyper: Hyperparameters, mu_variance: float) -> _Covariance:
    """With C = B B' + sigma^2 I, or the noise over the weights of rows, at a cost that grows as the rows."""
    factors = [scorer.basis.factor(p, theta) for p, theta in zip(parents, hyper.thetas, strict=True)]
    whole = np.column_stack([np.full(len(scorer.values), np.sqrt(mu_variance)), *factors])
    weighted = by_weight(whole, scorer.weights)
    inner = cho_factor(weighted.T @ whole + hyper.noise * np.eye(whole.shape[1]))
    precision = _weights_of(scorer) / hyper.noise

    def solve(vectors: Floats) -> Floats:
        left: Floats = vectors - whole @ cho_solve(inner, weighted.T @ vectors)
        return (precision * left.T).T

    return _Covariance(solve, [partial(_twice, factor) for factor in factors])


def _twice(factor: Floats, vector: Floats) -> Floats:
    product: Floats = factor @ (factor.T @ vector)
    return product


def _dense(scorer: BoundGP, parents: tuple[int, ...], hyper: Hyperparameters, mu_variance: float) -> _Covariance:
    """With C written out, at a cost that grows as the rows cubed."""
    kernels = [
        _kernel(scorer.values[:, p], scorer.values[:, p], theta, scorer.basis.spacings[p])
        for p, theta in zip(parents, hyper.thetas, strict=True)
    ]
    pairs = sum((kernels[i] * kernels[j] for j in range(len(kernels)) for i in range(j)), start=np.zeros(()))
    noise_of_rows = np.diag(hyper.noise / _weights_of(scorer))
    whole = hyper.tau1 * sum(kernels) + hyper.tau2 * pairs + mu_variance + noise_of_rows
    factor = cho_factor(whole)
    return _Covariance(
        lambda vectors: cho_solve(factor, vectors),
        [partial(np.matmul, hyper.tau1 * kernel) for kernel in kernels],
    )
