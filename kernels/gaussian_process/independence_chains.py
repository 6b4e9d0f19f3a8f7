"""Chains of an independence sampler."""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled


@compiled
def independence_chain(log_weights: Floats, log_chances: Floats) -> Ints:
    """Return which proposal a Metropolis-Hastings chain that starts at the first one is at after each step.

    Parameters
    ----------
    log_weights : ndarray of shape (steps,)
        Log of target over proposal density at every proposal, drawn independently of the chain.
    log_chances : ndarray of shape (steps,)
        Logs of uniform random numbers.
    """
    places = np.zeros(len(log_weights), np.int64)
    for s in range(1, len(log_weights)):
        now = places[s - 1]
        # Accepted with probability min(1, weight of s / weight of now).
        places[s] = s if log_chances[s] < log_weights[s] - log_weights[now] else now
    return places
