"""A Gaussian process' marginal likelihood by importance sampling around the modes of its hyperparameters."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.pareto_tails import smooth_tail
from gpn_bayes.scores.gp.bridge import bridge_from
from gpn_bayes.scores.gp.importance_weights import controlled_mean
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes
from gpn_bayes.scores.gp.proposal import PILOT, Draws, Proposal

# A larger Pareto k says that a few draws carry the estimate (Vehtari et al. 2024).
LARGEST_K_HAT = 0.7
# The size of a round is planned from the error of the one before with this margin, and it is repeated only if its own
# error exceeds the target by more than a tolerated factor: stopping as soon as the error happens to look small would
# favour rounds in which large weights are missing, and so estimates that are too low.
MARGIN, TOLERATED = 1.2, 1.5
# No round has more than this many times the draws of the second.
_LARGEST_ROUND = 12


class ImportanceEstimate(NamedTuple):
    """A log marginal likelihood and how well it is known.

    Attributes
    ----------
    value : float
        The log marginal likelihood.
    error : float
        Its standard error.
    k_hat : float
        The shape of the weights' upper tail; infinite where there are too few weights to tell.
    status : str
        "ok"; "bridge" if bridge sampling had to finish it; "imprecise" if the aim wasn't reached either way.
    draws : int
        How many times the posterior density was evaluated.
    """

    value: float
    error: float
    k_hat: float
    status: str
    draws: int


def importance_estimate(
    posterior: HyperPosterior,
    modes: Modes,
    rng: np.random.Generator,
    target_error: float = 0.03,
    pilot: int = PILOT,
    draws: int = 200,
    repeats: int = 2,
) -> ImportanceEstimate:
    """Estimate the log of the integral of likelihood times prior over a node's hyperparameters.

    Pilot draws from a mixture around the modes serve to fit the mixture to the posterior, draws from the fitted mixture
    to tell how many are needed, and only the round planned so enters the estimate: the mean of its Pareto-smoothed
    weights, with the mixture's components as control variates. A round with a heavy tail or too large an error is
    repeated, better fitted and larger; if that doesn't help, bridge sampling takes over.

    Parameters
    ----------
    posterior : HyperPosterior
        The posterior whose integral is wanted.
    modes : Modes
        Its modes.
    rng : numpy.random.Generator
        The source of all randomness.
    target_error : float, default 0.03
        The standard error to aim at.
    pilot, draws : int
        Draws of the first two rounds; later ones have at least as many as the second.
    repeats : int, default 2
        How often a planned round may be repeated.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> from gpn_bayes.scores.gp.low_rank import LowRankPosterior
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> moments = Basis(np.random.default_rng(1).normal(size=(50, 2))).moments(0, (1,))
    >>> posterior = LowRankPosterior(moments, HyperPriors().for_parents(1))
    >>> importance_estimate(posterior, posterior.find_modes(), np.random.default_rng(2)).status
    'ok'
    """
    proposal = Proposal(posterior, modes, rng)
    proposal.draw(pilot)
    count, planned = draws, False
    for _ in range(repeats + 2):
        value, error, k_hat = mean_weight(proposal.draw(count))
        if planned and error <= TOLERATED * target_error and k_hat <= LARGEST_K_HAT:
            return ImportanceEstimate(value, error, k_hat, "ok", proposal.evaluations)
        needed = MARGIN * count * (error / target_error) ** 2 if np.isfinite(error) else 2 * count
        if k_hat > LARGEST_K_HAT:
            # The error of a few large weights isn't to be trusted.
            needed = max(needed, 2 * count)
        count, planned = int(np.clip(needed, draws, _LARGEST_ROUND * draws)), True
    bridge = bridge_from(proposal, rng, target_error=target_error)
    status = "bridge" if bridge.status == "ok" else "imprecise"
    return ImportanceEstimate(bridge.value, bridge.error, k_hat, status, proposal.evaluations)


def mean_weight(drawn: Draws) -> tuple[float, float, float]:
    """Return the log of the expected weight, its standard error, and the Pareto k of the weights."""
    top = drawn.log_weights.max()
    if top == -np.inf:
        return -np.inf, np.inf, np.inf
    # Smoothing does neither harm nor much good where the tail is as light as the prior's share makes it.
    weights, k_hat = smooth_tail(np.exp(drawn.log_weights - top))
    mean, error = controlled_mean(weights, drawn.densities, drawn.shares, drawn.components)
    if mean <= 0:
        return -np.inf, np.inf, k_hat
    return float(top + np.log(mean)), float(error / mean), float(k_hat)
