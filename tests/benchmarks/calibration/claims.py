"""What a posterior says of a network whose truth is known: probabilities beside what is true, and ranks of the truth.

A table of claims has a row for each: the `network`, the `kind` of claim, `stated`, the probability that the posterior
states, and `held`, whether it is true. Ranks are claims too: their kind begins with "rank of", `stated` is the share of
the posterior below the truth, which must be uniform between 0 and 1, and `held` is empty.
"""

from typing import Any

import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.scores.base import Scorer
from tests.benchmarks.calibration.models import Answer, Model, Network

# Draws that ranks are among: few enough that those of a Markov chain are nearly independent.
DRAWS = 400
# Log scores this close are of equivalent networks.
_SAME_SCORE = 1e-6
# Intervals given a path are those of effects at least this probable, so that there are draws enough.
_PROBABLE_PATH = 0.2
INTERVALS = (0.5, 0.9)
COLUMNS = ["network", "kind", "stated", "held"]


def rank(truth: float, draws: np.ndarray, weights: np.ndarray, rng: np.random.Generator, same: float = 0.0) -> float:
    """Return the share of draws below the truth: uniform if it is one of them, ties being broken at random.

    That is exact where draws are independent and of equal weight, however few they are.
    """
    one = float(weights.mean()) if len(weights) else 1.0
    below = float(weights[draws < truth - same].sum())
    tied = float(weights[np.abs(draws - truth) <= same].sum()) + one
    return (below + rng.random() * tied) / (float(weights.sum()) + one)


def claims_of(
    network: Network, model: Model, post: gpn.GraphPosterior, scorer: Scorer | None, seed: int, **known: Any
) -> pd.DataFrame:
    """Return the claims of a posterior about one network.

    Parameters
    ----------
    network, model
        The truth.
    post : GraphPosterior
        The posterior.
    scorer : Scorer, optional
        The score bound to the rows, for the rank of the true DAG's log score.
    seed : int
        The number of the network; what is chosen at random follows from it.
    known : changed, complete
        What is true besides: which contexts changed which variables, a boolean DataFrame (contexts, variables); and
        the table that values are missing from.
    """
    rng = np.random.default_rng([seed, *b"claims"])
    rows = [*_of_structure(network.dag, post), *_ranks_of_structure(network.dag, post, scorer, rng)]
    if "complete" in known:
        # Effects need a complete table.
        rows.append(("rank of a missing value", _rank_of_missing(known["complete"], network.data, post, rng), np.nan))
    else:
        cause, outcome = rng.choice(model.n, 2, replace=False).tolist()
        path = bool(graphs.ancestors(network.dag)[cause, outcome])
        truth = model.effect(network, cause, outcome, rng) if path else 0.0
        rows += _of_effect(truth, path, model.asked(post, cause, outcome, DRAWS), rng)
    if "changed" in known:
        stated = post.target_probabilities().stack()
        rows += [
            ("change of a variable", p, y) for p, y in zip(stated, known["changed"].stack()[stated.index], strict=True)
        ]
    return _as_table(rows, seed)


def claims_of_structure(dag: np.ndarray, post: gpn.GraphPosterior, seed: int) -> pd.DataFrame:
    """Return the claims of a posterior about edges, directed paths and joined pairs of one network, the seed's."""
    return _as_table(_of_structure(dag, post), seed)


type Row = tuple[str, float, float]


def _as_table(rows: list[Row], seed: int) -> pd.DataFrame:
    table = pd.DataFrame([(seed, *row) for row in rows], columns=COLUMNS)
    return table.astype({"stated": float, "held": float})


def _of_structure(dag: np.ndarray, post: gpn.GraphPosterior) -> list[Row]:
    """Return edges, directed paths, and pairs with an edge in either direction."""
    n = len(dag)
    edges = post.edge_probabilities().to_numpy()
    apart = ~np.eye(n, dtype=bool)
    first, second = np.triu_indices(n, 1)
    return [
        *(("edge", p, y) for p, y in zip(edges[apart], dag[apart], strict=True)),
        *(("path", p, y) for p, y in zip(
            post.path_probabilities().to_numpy()[apart], graphs.ancestors(dag)[apart], strict=True)),
        *(("pair", p, y) for p, y in zip(
            (edges + edges.T)[first, second], (dag + dag.T)[first, second], strict=True)),
    ]  # fmt: skip


def _ranks_of_structure(
    dag: np.ndarray, post: gpn.GraphPosterior, scorer: Scorer | None, rng: np.random.Generator
) -> list[Row]:
    columns = np.linspace(0, post.log_score.shape[1] - 1, DRAWS // len(post.log_score)).round().astype(int)
    dags = graphs.unpack(post.parents[:, columns], len(dag)).reshape(-1, *dag.shape)
    weights = post.weights[:, columns].ravel()
    contrast = rng.standard_normal(dag.shape)
    quantities = {
        "number of edges": (dag.sum(), dags.sum(axis=(1, 2))),
        "number of paths": (graphs.ancestors(dag).sum(), graphs.ancestors(dags).sum(axis=(1, 2))),
        # A sum over edges with random weights: tells directions apart, too.
        "edges, weighted": ((contrast * dag).sum(), (contrast * dags).sum(axis=(1, 2))),
    }
    if scorer is not None:
        quantities["log score"] = (scorer.total(dag), post.log_score[:, columns].ravel())
    return [
        (f"rank of {name}", rank(float(truth), draws, weights, rng, _SAME_SCORE), np.nan)
        for name, (truth, draws) in quantities.items()
    ]


def _of_effect(truth: float, path: bool, answer: Answer, rng: np.random.Generator) -> list[Row]:
    """Return the rank of an effect and the claims of its intervals; where there is a path, also those given one."""
    rows: list[Row] = []
    for given in (False, True) if path else (False,):
        name = "effect given a path" if given else "effect"
        draws, weights = answer.draws(given)
        rows.append((f"rank of {name}", rank(truth, draws, weights, rng), np.nan))
        if given and answer.effect.probability < _PROBABLE_PATH:
            continue
        for level in INTERVALS:
            low, high = answer.interval(given, level)
            inside = (draws >= low) & (draws <= high)
            # An interval ends at draws of its own. Half of each lies within, unless it ends at the point mass at zero.
            ends = sum(weights[draws == end].sum() / 2 for end in (low, high) if end != 0)
            stated = float((weights[inside].sum() - ends) / weights.sum())
            rows.append((f"{level:.0%} interval of {name}", stated, float(low <= truth <= high)))
    return rows


def _rank_of_missing(complete: pd.DataFrame, data: pd.DataFrame, post: gpn.GraphPosterior, rng: Any) -> float:
    """Return the rank of one missing value, chosen at random, among completed tables."""
    row, column = rng.choice(np.argwhere(data.isna().to_numpy()))
    drawn = np.array([float(table.iat[row, column]) for table in post.imputed(20)])
    return rank(float(complete.iat[row, column]), drawn, np.ones(len(drawn)), rng)
