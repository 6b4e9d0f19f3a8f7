"""Chains of an independence sampler, and how many independent draws a chain is worth."""

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
        places[s] = s if log_chances[s] < log_weights[s] - log_weights[now] else now
    return places


@compiled
def _autocovariance(series: Floats, means: Floats, lag: int) -> float:
    """Return the autocovariance at a lag, averaged over chains."""
    chains, count = series.shape
    total = 0.0
    for c in range(chains):
        for s in range(count - lag):
            total += (series[c, s] - means[c]) * (series[c, s + lag] - means[c])
    average: float = total / (chains * count)
    return average


@compiled
def effective_size(series: Floats) -> float:
    """Return how many independent draws give the mean of the series as precisely: shape (chains, draws).

    Autocorrelations are summed by Geyer's (1992) initial monotone sequence, with the variance between chains included
    as in Vehtari et al. (2021). Never more than the number of draws, which is also what a constant series gives.
    """
    chains, count = series.shape
    means = np.empty(chains)
    for c in range(chains):
        means[c] = series[c].mean()
    within = _autocovariance(series, means, 0) * count / (count - 1.0)
    total = within * (count - 1.0) / count
    if chains > 1:
        total += means.var() * chains / (chains - 1.0)
    if not total > 0.0:
        return float(chains * count)
    before, time = np.inf, -1.0
    for lag in range(0, count - 1, 2):
        pair = 0.0
        for each in (lag, lag + 1):
            # At lag zero the autocorrelation is one whatever the chains' means are.
            pair += 1.0 if each == 0 else 1.0 - (within - _autocovariance(series, means, each)) / total
        if pair <= 0.0:
            break
        before = min(before, pair)
        time += 2.0 * before
    size: float = chains * count / max(time, 1.0)
    return size
