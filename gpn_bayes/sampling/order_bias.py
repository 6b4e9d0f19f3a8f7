"""The bias of order MCMC towards DAGs with many orders, and the weights that correct it.

Order MCMC draws an order and then a DAG that agrees with it, so that a DAG G is drawn with a probability proportional
to p(G | data) e(G), where e(G) is the number of its linear extensions: the orders in which all its edges lead forward.
Weighted by 1 / e(G), the draws represent p(G | data) (Ellis & Wong 2008, Learning causal Bayesian network structures
from experimental data, Journal of the American Statistical Association 103).
"""

import warnings

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes.posterior.diagnostics import WEIGHT_ESS_LIMIT


def log_order_bias_weights(parents: np.ndarray) -> np.ndarray:
    """Return log(1 / e(G)) of each DAG G, e(G) being the number of its linear extensions.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, node, words)
        DAGs drawn by order MCMC, as parent bits.

    Returns
    -------
    ndarray of shape (chain, draw)

    Warns
    -----
    UserWarning
        Where the weights leave few draws effective.

    Examples
    --------
    A DAG without edges over two nodes has two orders, one with an edge has one:

    >>> dags = np.array([[[[0, 0], [0, 0]], [[0, 1], [0, 0]]]])
    >>> np.exp(log_order_bias_weights(graphs.pack(dags))).round(3).tolist()
    [[0.5, 1.0]]
    """
    flat = parents.reshape(-1, *parents.shape[2:])
    distinct, inverse = np.unique(flat, axis=0, return_inverse=True)
    log_weights = -graphs.log_linear_extensions(distinct)[inverse.reshape(-1)].reshape(parents.shape[:2])
    weights = np.exp(log_weights - log_weights.max())
    share = effective_size(weights) / weights.size
    if share < WEIGHT_ESS_LIMIT:
        warnings.warn(
            f"correcting the order bias leaves {share:.1%} of the draws effective; sampler='partition' needs "
            "no correction",
            UserWarning,
            stacklevel=4,
        )
    return log_weights
