"""A Gaussian process' marginal likelihood by bridge sampling between posterior draws and a proposal fitted to them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.arviz_stats import array_stats
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process import proposals as gp_importance
from gpn_bayes.kernels.gaussian_process.independence_chains import independence_chain
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes
from gpn_bayes.scores.gp.proposal import PILOT, Proposal, without_prior

# Given a number of draws, returns at least as many draws of the posterior: (chains, draws of each, size).
PosteriorDraws = Callable[[int, np.random.Generator], Floats]

# A round whose error exceeds the target by more than a tolerated factor is followed by one planned with this margin, at
# most this many times, none larger than this many times the first; only the last enters the estimate.
_TOLERATED, _MARGIN, _REPEATS, _LARGEST_ROUND = 1.25, 1.2, 1, 8
# Draws of the proposal for every posterior draw in the iteration.
_PROPOSAL_DRAWS = 2
_MOST_STEPS, _TOLERANCE = 1000, 1e-10


class BridgeEstimate(NamedTuple):
    """A log marginal likelihood and how well it is known.

    Attributes
    ----------
    value : float
        The log marginal likelihood.
    error : float
        Its standard error: the relative error of the marginal likelihood.
    effective : float
        How many independent draws the posterior draws in the iteration are worth.
    status : str
        "ok", or "imprecise" if the aim wasn't reached.
    draws : int
        How many times the posterior density was evaluated, apart from what `posterior_draws` did.
    """

    value: float
    error: float
    effective: float
    status: str
    draws: int


class _Sample(NamedTuple):
    """Posterior draws (chains, draws, size) and their log densities (chains, draws)."""

    points: Floats
    values: Floats


def bridge_estimate(
    posterior: HyperPosterior,
    modes: Modes,
    rng: np.random.Generator,
    *,
    draws: int = 600,
    target_error: float = 0.03,
    posterior_draws: PosteriorDraws | None = None,
) -> BridgeEstimate:
    """Estimate the log of the integral of likelihood times prior over a node's hyperparameters by bridge sampling.

    The first half of every chain of posterior draws serves to fit a proposal, the second half and twice as many draws
    of the proposal to find the fixed point of Meng & Wong's (1996) optimal bridge, with posterior draws counted as what
    they are effectively worth. The error is Frühwirth-Schnatter's (2004).

    The proposal is a mixture of t's, several a mode, rather than one normal: posteriors of length scales are skewed and
    often have two modes. It is fitted to weighted pilot draws too, which know how much mass each mode has even if the
    chains don't. Twice as many proposal draws, because they contribute most of the error and cost least. A round whose
    error is clearly above its target is followed by a larger one, planned from it, that replaces it.

    Parameters
    ----------
    posterior : HyperPosterior
        The posterior whose integral is wanted.
    modes : Modes
        Its modes.
    rng : numpy.random.Generator
        The source of all randomness.
    draws : int, default 600
        Posterior draws of the first round.
    target_error : float, default 0.03
        The standard error to aim at.
    posterior_draws : callable, optional
        `posterior_draws(count, rng)` returns at least `count` draws of the posterior of phi, warmed up, as an array of
        shape (chains, draws of each, size). By default draws come from a Metropolis-Hastings chain that proposes
        independently from the mixture that `importance_estimate` uses.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> from gpn_bayes.scores.gp.low_rank import LowRankPosterior
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> moments = Basis(np.random.default_rng(1).normal(size=(50, 2))).moments(0, (1,))
    >>> posterior = LowRankPosterior(moments, HyperPriors().for_parents(1))
    >>> bridge_estimate(posterior, posterior.find_modes(), np.random.default_rng(2)).status
    'ok'
    """
    proposal = Proposal(posterior, modes, rng)
    # Two rounds: a chain that proposes from a first fit may hardly see a shoulder that its pilot draws missed.
    proposal.draw(PILOT)
    proposal.draw(PILOT)
    return bridge_from(proposal, rng, draws=draws, target_error=target_error, posterior_draws=posterior_draws)


def bridge_from(
    proposal: Proposal,
    rng: np.random.Generator,
    *,
    draws: int = 600,
    target_error: float = 0.03,
    posterior_draws: PosteriorDraws | None = None,
) -> BridgeEstimate:
    """Estimate as `bridge_estimate` does, with what a proposal has learned from earlier draws."""
    count = draws
    for _ in range(_REPEATS + 1):
        # What was known before these draws: a proposal fitted to all of them would know those of the iteration.
        lessons = proposal.lessons()
        if posterior_draws is None:
            sample = _independence_sample(proposal, count, rng)
        else:
            sample = _given_sample(proposal, posterior_draws(count, rng))
        value, error, effective = _bridge(proposal, lessons, sample)
        if error <= _TOLERATED * target_error:
            return BridgeEstimate(value, error, effective, "ok", proposal.evaluations)
        needed = _MARGIN * count * (error / target_error) ** 2 if np.isfinite(error) else 2 * count
        count = int(np.clip(needed, count, _LARGEST_ROUND * draws))
    return BridgeEstimate(value, error, effective, "imprecise", proposal.evaluations)


def _independence_sample(proposal: Proposal, count: int, rng: np.random.Generator) -> _Sample:
    drawn = proposal.draw(count)
    # A round's draws come component by component; a chain must meet them in no order.
    order = rng.permutation(count)
    places = order[independence_chain(drawn.log_weights[order], np.log(rng.random(count)))]
    values = drawn.log_weights + np.log(drawn.densities.sum(axis=1))
    return _Sample(drawn.points[places][None], values[places][None])


def _given_sample(proposal: Proposal, points: Floats) -> _Sample:
    chains, count, size = points.shape
    values = proposal.posterior.log_densities(np.ascontiguousarray(points, float).reshape(-1, size))
    proposal.evaluations += chains * count
    return _Sample(points, values.reshape(chains, count))


def _bridge(proposal: Proposal, lessons: tuple[Floats, Floats], sample: _Sample) -> tuple[float, float, float]:
    """Return the log integral, its error, and the effective number of posterior draws that entered."""
    priors = proposal.posterior.priors
    chains, count, size = sample.points.shape
    half = count // 2
    mixture = _fitted_proposal(proposal, lessons, sample.points[:, :half])
    rest = np.ascontiguousarray(sample.points[:, half:]).reshape(-1, size)
    densities = gp_importance.component_densities(rest, mixture, priors).sum(axis=1)
    at_posterior = sample.values[:, half:] - np.log(densities).reshape(chains, -1)
    at_proposal = proposal.draw_from(mixture, _PROPOSAL_DRAWS * len(rest)).log_weights
    return bridge_of_ratios(at_posterior, at_proposal)


def _fitted_proposal(proposal: Proposal, lessons: tuple[Floats, Floats], points: Floats) -> gp_importance.Mixture:
    """Return t components fitted to earlier weighted draws and to chains, each counting as what it's worth."""
    size = points.shape[2]
    worth = min(_effective_size(points[:, :, i]) for i in range(size))
    drawn = points.reshape(-1, size)
    everything = np.concatenate([lessons[0], drawn])
    weights = np.concatenate([lessons[1], np.full(len(drawn), worth / len(drawn))])
    fitted = gp_importance.fitted_mixture(everything, weights, proposal.first, proposal.posterior.priors)
    return without_prior(fitted)


def bridge_of_ratios(at_posterior: Floats, at_proposal: Floats) -> tuple[float, float, float]:
    """Return the optimal bridge estimate of a log integral from log ratios of posterior to proposal density.

    Parameters
    ----------
    at_posterior : ndarray of shape (chains, draws)
        The ratios at posterior draws, which may be correlated within chains.
    at_proposal : ndarray of shape (draws,)
        The ratios at independent draws of the proposal.

    Returns
    -------
    tuple of float
        The log integral, its standard error, and the effective number of posterior draws.
    """
    if not np.isfinite(at_posterior).all() or not np.isfinite(at_proposal).any():
        return -np.inf, np.inf, 0.0
    effective = _effective_size(at_posterior)
    own = effective / (effective + len(at_proposal))
    value = float(np.median(at_posterior))
    for _ in range(_MOST_STEPS):
        of_proposal, of_posterior = _terms(at_proposal - value, own)[0], _terms(at_posterior - value, own)[1]
        step = float(np.log(of_proposal.mean() / of_posterior.mean()))
        value += step
        if abs(step) < _TOLERANCE:
            break
    of_proposal, of_posterior = _terms(at_proposal - value, own)[0], _terms(at_posterior - value, own)[1]
    squared = _relative_variance(of_proposal) / len(at_proposal)
    squared += _relative_variance(of_posterior) / _effective_size(of_posterior)
    return value, float(np.sqrt(squared)), effective


def _terms(log_ratios: Floats, own: float) -> tuple[Floats, Floats]:
    """Return p / (s p + (1 - s) g) and g / (s p + (1 - s) g) for posterior p, proposal g and share s, stably."""
    smaller = np.exp(-np.abs(log_ratios))
    below = log_ratios < 0
    share_p, share_g = np.where(below, smaller, 1.0), np.where(below, 1.0, smaller)
    bottom = own * share_p + (1.0 - own) * share_g
    return share_p / bottom, share_g / bottom


def _relative_variance(terms: Floats) -> float:
    return float(terms.var(ddof=1) / terms.mean() ** 2)


def _effective_size(series: Floats) -> float:
    """Return how many independent draws give the mean of a series (chains, draws) as precisely: no more than it has."""
    return min(float(array_stats().ess(series, method="identity")), series.size)
