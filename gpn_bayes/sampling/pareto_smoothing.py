"""Pareto smoothing of the weights of drawn DAGs, which repeat."""

import numpy as np

from gpn_bayes._util.pareto_tails import smooth_tail, tail_size

# A shape fitted to fewer weights than this would mostly be its prior.
_SHORTEST_TAIL = 20


def pareto_smooth(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Pareto-smoothed log weights, the largest about 0, and k, the estimated shape of their tail.

    Weights are a function of the DAG. Where most of the tail's draws repeat, each of its weights is known as it is, and
    a tail fitted to their ties would mean nothing: then they are returned as they are, with the shape NaN. So they are
    where no shape can be fitted, as when a quarter of the tail's draws have its smallest weight, or when all but a few
    weights vanish. Otherwise draws of one DAG share the mean of their smoothed weights.

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
    size = tail_size(len(flat))
    tail = np.sort(flat)[len(flat) - size :]
    if size < _SHORTEST_TAIL or tail[0] == -np.inf or 2 * len(np.unique(tail)) < size:
        return plain, float("nan")
    weights, k_hat = smooth_tail(np.exp(flat - flat.max()))
    if not np.isfinite(k_hat):
        # Not a heavy tail, but none to speak of; what the weights are worth is known without it.
        return plain, float("nan")
    _, dag = np.unique(flat, return_inverse=True)
    means = np.bincount(dag, weights) / np.bincount(dag)
    with np.errstate(divide="ignore"):
        return np.log(means[dag]).reshape(log_ratios.shape), float(k_hat)
