"""Pareto smoothing of importance weights.

The largest weights are replaced by expected order statistics of a generalised Pareto distribution fitted to them; its
shape k tells how far the weights can be trusted (Vehtari, Simpson, Gelman, Yao & Gabry 2024, Pareto smoothed importance
sampling, Journal of Machine Learning Research 25).
"""

import numpy as np

from gpn_bayes._util.arviz_stats import array_stats

# A shape fitted to fewer weights than this would mostly be its prior.
_SHORTEST_TAIL = 20


def pareto_smooth(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Pareto-smoothed log weights, the largest about 0, and k, the estimated shape of their tail.

    Weights are a function of the DAG. Where most of the tail's draws repeat, each of its weights is known as it is, and
    a tail fitted to their ties would mean nothing: then they are returned as they are, with the shape NaN. Otherwise
    draws of one DAG share the mean of their smoothed weights.

    Parameters
    ----------
    log_ratios : ndarray
        Log importance ratios; equal for equal DAGs.

    Examples
    --------
    >>> pareto_smooth(np.array([[-1.0, 0.5], [0.5, -1.0]]))
    (array([[-1.5,  0. ],
           [ 0. , -1.5]]), nan)
    """
    flat = log_ratios.ravel()
    plain = log_ratios - flat.max()
    size = _tail_size(len(flat))
    tail = np.sort(flat)[len(flat) - size :]
    if size < _SHORTEST_TAIL or tail[0] == -np.inf or 2 * len(np.unique(tail)) < size:
        return plain, float("nan")
    # Far below the largest, weights are zero; the fit takes logs of them in passing.
    with np.errstate(all="ignore"):
        fitted, k_hat = array_stats().psislw(-flat)
    if not np.isfinite(k_hat):
        return plain, float("nan" if np.isnan(k_hat) else "inf")
    _, dag = np.unique(flat, return_inverse=True)
    weights = np.exp(fitted - fitted.max())
    means = np.bincount(dag, weights) / np.bincount(dag)
    with np.errstate(divide="ignore"):
        return np.log(means[dag]).reshape(log_ratios.shape), float(k_hat)


def _tail_size(draws: int) -> int:
    """Return how many of the largest weights ArviZ fits the tail to."""
    return int(3 * np.sqrt(draws)) if draws > 225 else draws // 5
