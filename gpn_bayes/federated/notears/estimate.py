"""From the last round of a run to a graph: the diagonal dropped, small weights cut off, cycles broken."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes.estimators.notears.dags import Removed, break_cycles, cut
from gpn_bayes.federated.notears.building import graph_prior, shared_model
from gpn_bayes.federated.notears.consensus import Round
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.kernels.learners.acyclicity import exponential


class Estimate(NamedTuple):
    """What a run found.

    Attributes
    ----------
    raw_weights, weights : ndarray, shape (d, d)
        Weights of the variables on each other, before and after the threshold; the latter are those of a DAG.
    raw_lagged_weights, lagged_weights : ndarray, shape (lags, d, d)
        Those of the past; no lags but for time series.
    intercepts : ndarray, shape (d,)
        Those of linear models whose clients share them, else zero.
    adjacency : ndarray of int8, shape (d, d)
        The DAG, required edges among it.
    h : float
        tr exp(W * W) - d of the raw weights.
    removed : list of Removed
        Entries above the threshold that were dropped to break cycles.
    """

    raw_weights: np.ndarray
    weights: np.ndarray
    raw_lagged_weights: np.ndarray
    lagged_weights: np.ndarray
    intercepts: np.ndarray
    adjacency: np.ndarray
    h: float
    removed: list[Removed]


def estimate(last: Round, names: tuple[str, ...], settings: Settings) -> Estimate:
    """Return the graph in the shared parameters of a round.

    Parameters
    ----------
    last : Round
        Where the run ended.
    names : tuple of str
        The variables.
    settings : Settings
        Those of the run.
    """
    d, required = len(names), graph_prior(names, settings).required
    raw = shared_model(names, settings).strengths(last.shared)
    np.fill_diagonal(raw, 0.0)
    weights, removed = break_cycles(cut(raw, settings.threshold, required), required)
    linear = settings.model != "mlp"
    lagged = (last.shared[d:] if linear else np.zeros((0, d))).reshape(-1, d, d)
    intercepts = np.zeros(d)
    if linear and last.centre is not None:
        intercepts = last.centre[:d] - last.centre @ np.concatenate([raw, *lagged])
    return Estimate(
        raw,
        weights,
        lagged.copy(),
        cut(lagged, settings.lagged_threshold, np.zeros(1, dtype=bool)),
        intercepts,
        ((weights != 0) | required).astype(np.int8),
        float(exponential(raw**2)[0]),
        removed,
    )


def history(rounds: list[Round]) -> pd.DataFrame:
    """Return a table with a row per round."""
    columns = ["round", "h", "consensus", "rho1", "rho2"]
    table = pd.DataFrame([(r.number, r.h, r.consensus, r.rho1, r.rho2) for r in rounds], columns=columns)
    return table.set_index("round")
