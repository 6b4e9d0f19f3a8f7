"""How far edge probabilities are from the true DAG, by one rule for all programs.

A program answers with a matrix: the probability of each directed edge. A graph is such a matrix of zeros and ones, in
which an edge without a direction counts half each way.
"""

import numpy as np
from sklearn.metrics import average_precision_score

from gpn_bayes import metrics

# Upper ends of the classes that probabilities are sorted into, to compare them with frequencies.
BINS = np.array([0.05, 0.25, 0.5, 0.75, 0.95, 1.0])


def as_chances(edges: np.ndarray) -> np.ndarray:
    """Return the edge probabilities that stand for a graph, whose undirected edges are set both ways."""
    present = np.asarray(edges) != 0
    return np.where(present & present.T, 0.5, present.astype(float))


def expected_shd(chances: np.ndarray, truth: np.ndarray) -> float:
    """Return the expected structural Hamming distance from the true DAG.

    A pair of variables that isn't joined in truth counts with the probability that it is; a pair that is, with the
    probability that the true edge isn't there, whether it is absent or reversed. Over draws of DAGs this is the mean of
    their SHD, since no DAG has both directions; a DAG has its SHD, and an undirected edge over a true one counts half.
    """
    true = np.asarray(truth) != 0
    joined = true | true.T
    return float(np.sum(chances[~joined]) + np.sum(1 - chances[true]))


def counts_by_class(chances: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return, for each class of probabilities, how many edges are in it, their sum, and how many are true."""
    pairs = ~np.eye(len(truth), dtype=bool)
    values, true = chances[pairs], truth[pairs] != 0
    place = np.minimum(np.searchsorted(BINS, values), len(BINS) - 1)
    return np.array([np.bincount(place, weights, len(BINS)) for weights in (None, values, true)], dtype=float).T


def as_text(table: np.ndarray) -> str:
    """Return such counts as a file keeps them: semicolons between classes, colons within; nothing for empty ones."""
    return ";".join(f"{int(count)}:{total:.4g}:{int(true)}" if count else "" for count, total, true in table)


def as_table(text: str) -> np.ndarray:
    """Return a table of numbers that a file keeps like that."""
    return np.array([(row or "0:0:0").split(":") for row in text.split(";")], dtype=float)


def calibration_error(table: np.ndarray) -> float:
    """Return the mean distance of probabilities from frequencies over classes, weighted by the edges in each."""
    count, expected, true = np.asarray(table, dtype=float).T
    return float(np.abs(expected - true).sum() / count.sum())


def measured(chances: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return all measures of edge probabilities against the true DAG."""
    pairs = ~np.eye(len(truth), dtype=bool)
    values, true = chances[pairs], truth[pairs] != 0
    return {
        "eshd": expected_shd(chances, truth),
        "auroc": metrics.auroc(chances, truth),
        "auprc": float(average_precision_score(true, values)),
        "brier": float(np.mean((values - true) ** 2)),
    }
