"""What the exact sampler knows beyond its draws: probabilities without Monte Carlo error."""

from dataclasses import dataclass

import numpy as np

from gpn_bayes import graphs

# Up to this many variables every DAG is listed, so that any feature has an exact probability.
MAX_LISTED = 5


@dataclass(frozen=True)
class ExactAnswers:
    """Exact posterior probabilities of edges and parent sets, and the scores behind them.

    Attributes
    ----------
    edges : ndarray of shape (n, n)
        Edge probabilities, rows parents.
    log_z : float
        Log of the sum of the scores of all DAGs.
    candidates : list of list of int
        The candidate parents of each node.
    log_scores, parent_sets : list of ndarray
        For each node the log score and the probability of every subset of its candidates, bitmask order.
    """

    edges: np.ndarray
    log_z: float
    candidates: list[list[int]]
    log_scores: list[np.ndarray]
    parent_sets: list[np.ndarray]

    def log_score(self, adjacency: np.ndarray) -> np.ndarray:
        """Return the log score of each DAG of a stack; minus infinity outside the search space."""
        total = np.zeros(adjacency.shape[:-2])
        for node, chosen in enumerate(self.candidates):
            column = adjacency[..., node].astype(np.int64)
            mask = column[..., chosen] @ (1 << np.arange(len(chosen)))
            outside = column.sum(axis=-1) > column[..., chosen].sum(axis=-1)
            total += np.where(outside, -np.inf, self.log_scores[node][mask])
        return total

    def all_dags(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return every DAG of positive probability with it, for networks small enough; else None."""
        n = len(self.candidates)
        if n > MAX_LISTED:
            return None
        dags = graphs.enumerate_dags(n)
        probabilities = np.exp(self.log_score(dags) - self.log_z)
        possible = probabilities > 0
        return dags[possible], probabilities[possible]
