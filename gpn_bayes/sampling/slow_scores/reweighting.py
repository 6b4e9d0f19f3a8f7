"""Weights that turn draws under the proposal score into draws under the target score, and how far to trust them."""

from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np

from gpn_bayes._util.pareto_tails import smooth_tail, tail_size
from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.sampling.slow_scores.predicted_scores import PREDICTED, often_drawn, with_predictions
from gpn_bayes.scores.cache import ScoreCache, ScoreRecord
from gpn_bayes.scores.workers import ParentSet

# Scores that are as precise as they were meant to be, or needn't be.
_GOOD = ("exact", "ok", "bridge", PREDICTED)
# A shape fitted to fewer weights than this would mostly be its prior.
_SHORTEST_TAIL = 20


class Proposal(Protocol):
    """Scores that DAGs are drawn under."""

    def values(self, node: int, sets: Sequence[ParentSet]) -> Floats:
        """Return the scores of some parent sets of a node."""
        ...


class Reweighted(NamedTuple):
    """Weights from the proposal score q to the target score p.

    Attributes
    ----------
    log_weights : ndarray of shape (chain, draw)
        Log weights, the largest about 0; equal for equal DAGs.
    log_ratios : ndarray of shape (chain, draw)
        log p - log q of each DAG.
    pareto_k : float
        The shape of the weights' tail; NaN where they weren't smoothed.
    score_errors : ndarray of shape (chain, draw, node)
        Standard errors of the target scores.
    poor_scores : int
        How many target scores aren't as precise as they were meant to be.
    """

    log_weights: np.ndarray
    log_ratios: np.ndarray
    pareto_k: float
    score_errors: np.ndarray
    poor_scores: int


def reweight_draws(
    parents: np.ndarray,
    proposal: Proposal,
    target: ScoreCache,
    log_weights: np.ndarray | None = None,
    executor: Executor | None = None,
    progressbar: bool = True,
) -> Reweighted:
    """Compute the target scores of the parent sets that were drawn, and weight the draws to them.

    Where many sets were drawn, the target scores of the rarest are predicted; see `slow_scores.predicted_scores`.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, node, words)
        DAGs drawn under the proposal score, as parent bits.
    proposal : Proposal
        The scores they were drawn under: a `ScoreCache`, or one that was corrected.
    target : ScoreCache
        The score to weight them to.
    log_weights : ndarray of shape (chain, draw), optional
        Log weights that the draws have anyway.
    executor : concurrent.futures.Executor, optional
        Where to compute.
    progressbar : bool
        Whether to show progress.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the scores computed by then are kept in the cache.
    """
    sets = drawn_sets(parents)
    by_node = groupby(sets.keys, key=lambda key: key[0])
    q = np.concatenate([proposal.values(node, [parents for _, parents in keys]) for node, keys in by_node])
    wanted = often_drawn(sets)
    chosen = [key for key, often in zip(sets.keys, wanted, strict=True) if often]
    target.fill(chosen, executor, progressbar, description="Reweighting")
    return weigh(sets, q, with_predictions(sets, q, wanted, target.records(chosen)), log_weights)


def weigh(
    sets: DrawnSets,
    proposal_scores: np.ndarray,
    target: Sequence[ScoreRecord],
    log_weights: np.ndarray | None = None,
) -> Reweighted:
    """Weight draws from the proposal score q to the target score p; the graph prior cancels.

    Parameters
    ----------
    sets : DrawnSets
        The parent sets of the draws.
    proposal_scores : ndarray
        Scores q of these sets.
    target : sequence of ScoreRecord
        Scores p of these sets.
    log_weights : ndarray of shape (chain, draw), optional
        Log weights that the draws have anyway; both multiply.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> drawn = drawn_sets(graphs.pack(np.array([[[[0, 1], [0, 0]], [[0, 0], [0, 0]]]])))
    >>> drawn.keys
    [(0, ()), (1, ()), (1, (0,))]
    >>> target = [ScoreRecord(value, 0.0, np.nan, "exact") for value in (-3.0, -5.0, -4.0)]
    >>> weigh(drawn, np.array([-3.0, -5.5, -4.0]), target).log_weights.tolist()
    [[-0.5, 0.0]]
    """
    values = np.array([record.value for record in target])
    ratios = (values - proposal_scores)[sets.places].sum(axis=-1)
    if not (ratios > -np.inf).any():
        raise ValueError("at least one drawn DAG must have a finite target score; all of them scored minus infinity")
    combined = ratios if log_weights is None else ratios + log_weights
    smoothed, pareto_k = pareto_smooth(combined)
    return Reweighted(smoothed, ratios, pareto_k, errors_of(sets, target), poor_scores(target))


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


def errors_of(sets: DrawnSets, records: Sequence[ScoreRecord]) -> np.ndarray:
    """Return the standard error of each node's score in each draw."""
    errors: Floats = np.array([record.error for record in records])[sets.places]
    return errors


def poor_scores(records: Sequence[ScoreRecord]) -> int:
    """Return how many scores aren't as precise as they were meant to be."""
    return sum(record.status not in _GOOD for record in records)
