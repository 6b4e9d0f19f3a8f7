"""Which drawn parent sets are worth a target score, and what the scores of the others probably are."""

from collections.abc import Sequence

import numpy as np

from gpn_bayes.posterior.score_noise import DrawnSets
from gpn_bayes.scores.cache import ScoreRecord

PREDICTED = "predicted"
# Of many drawn sets, the rarest, which make up this share of a node's draws, aren't worth a score: on networks of ten
# variables they would be three in four of all scores.
_RARE_SHARE, _MANY_SETS = 0.05, 200
# The ridge penalty: how far the effects of single parents are shrunk towards zero.
_RIDGE = 0.5


def often_drawn(sets: DrawnSets) -> np.ndarray:
    """Return for every drawn set whether it is worth a target score; all are where there aren't many."""
    if len(sets.keys) <= _MANY_SETS:
        return np.ones(len(sets.keys), dtype=bool)
    counts, nodes = _counts(sets), _nodes(sets)
    draws = counts[nodes == 0].sum()
    often = np.empty(len(counts), dtype=bool)
    for node in np.unique(nodes):
        own = np.flatnonzero(nodes == node)
        order = own[np.argsort(counts[own], kind="stable")]
        often[order] = np.cumsum(counts[order]) > _RARE_SHARE * draws
    return often


def with_predictions(
    sets: DrawnSets, proposal_scores: np.ndarray, known: np.ndarray, records: Sequence[ScoreRecord]
) -> list[ScoreRecord]:
    """Return the records of all sets, those of sets without one predicted from the proposal score.

    What the target score is above the proposal score is taken for a sum of effects of the single parents, for each node
    its own, and of how often a set was drawn: among equals, those that the proposal score puts too low are drawn
    rarely. The effects are found by ridge regression; the error is what predictions of known scores from the other ones
    are off by.

    Parameters
    ----------
    sets : DrawnSets
        The parent sets of the draws.
    proposal_scores : ndarray
        Their proposal scores.
    known : ndarray of bool
        Which of them have a record; at least one of every node.
    records : sequence of ScoreRecord
        The records of these.
    """
    if known.all():
        return list(records)
    gaps = np.array([record.value for record in records]) - proposal_scores[known]
    predicted, errors = _predict(sets, known, gaps)
    given = iter(records)
    return [
        next(given)
        if known[k]
        else ScoreRecord(float(proposal_scores[k] + predicted[k]), float(errors[k]), np.nan, PREDICTED)
        for k in range(len(known))
    ]


def _predict(sets: DrawnSets, known: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gaps of all sets as predicted from the known ones, and their standard errors."""
    nodes = _nodes(sets)
    features = np.zeros((len(nodes), sets.places.shape[-1] + 1))
    for row, (_, parents) in zip(features, sets.keys, strict=True):
        row[list(parents)] = 1
    features[:, -1] = np.log(_counts(sets))
    predicted, errors = np.empty(len(nodes)), np.empty(len(nodes))
    for node in np.unique(nodes):
        own = nodes == node
        values = gaps[own[known]]
        predicted[own], left_out = ridge(features[own & known], values, features[own])
        # A node's only known set can't be predicted from others of that node.
        off = left_out if len(values) > 1 else gaps - gaps.mean()
        errors[own] = np.sqrt((off**2).mean())
    return predicted, errors


def ridge(given: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ridge predictions at the wanted rows, and the leave-one-out residuals of the given ones.

    With centred features X, centred values y and penalty r, the effects are b = (X'X + r I)^-1 X'y (Hoerl & Kennard
    1970). Row i, had it been left out of the fit, would have the residual (y_i - x_i'b) / (1 - h_i), where
    h_i = x_i'(X'X + r I)^-1 x_i + 1 / rows is its leverage (Allen 1974, PRESS).

    Parameters
    ----------
    given, values : ndarray
        Features, one row each, and values.
    wanted : ndarray
        Features of the rows to predict.
    """
    centre, mean = given.mean(axis=0), values.mean()
    centred = given - centre
    inverse = np.linalg.inv(centred.T @ centred + _RIDGE * np.eye(given.shape[1]))
    effects = inverse @ centred.T @ (values - mean)
    # The mean, too, is a fitted effect: hence 1 / rows.
    leverage = np.einsum("ij,jk,ik->i", centred, inverse, centred) + 1 / len(values)
    left_out = (values - mean - centred @ effects) / np.maximum(1 - leverage, 1e-6)
    return mean + (wanted - centre) @ effects, left_out


def _counts(sets: DrawnSets) -> np.ndarray:
    return np.bincount(sets.places.ravel(), minlength=len(sets.keys))


def _nodes(sets: DrawnSets) -> np.ndarray:
    return np.array([node for node, _ in sets.keys])
