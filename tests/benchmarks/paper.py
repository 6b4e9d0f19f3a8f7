"""What the benchmarks of the paper (Giudice, Kuipers & Moffa 2023) share: networks, quiet runs, means and tables."""

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.cache import ScoreCache

# What the program behind the paper took off Laplace's approximation for a node's first and each further parent.
FIRST_PARENT, FURTHER_PARENT = 3.9, 0.7


class Mean(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Show both."""
        return f"{self.value:.2f} ± {self.error:.2f}"


def mean_of(values: Sequence[float] | np.ndarray | pd.Series) -> Mean:
    sample = np.asarray(values, dtype=float)
    return Mean(float(sample.mean()), float(sample.std(ddof=1) / math.sqrt(len(sample))))


def random_network(seed: int, n: int, p: float, n_rows: int, lam: float) -> tuple[nx.DiGraph, pd.DataFrame]:
    """Return a random DAG and data from it; the DAG of a seed is the same for every lambda."""
    rng = np.random.default_rng(seed)
    dag = gpn.simulate.random_dag(n, p=p, random_seed=rng)
    return dag, gpn.simulate.fourier(dag, n_rows, lam, random_seed=rng)


def draw(data: pd.DataFrame, score: Any, **settings: Any) -> tuple[GraphPosterior, bool]:
    """Return a posterior, and whether it came without a warning; a long benchmark goes on after one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        post = gpn.sample(data, score, **{"random_seed": 1, "progressbar": False} | settings)
    return post, not caught


def shares_of(post: GraphPosterior, dags: np.ndarray, draws: int | None = None, weighted: bool = True) -> np.ndarray:
    """Return the weight of every listed DAG among the first draws of each chain, as a share."""
    place = {key.tobytes(): i for i, key in enumerate(graphs.pack(dags))}
    keys = post.parents[:, :draws]
    found = [place[key.tobytes()] for chain in keys for key in chain]
    weights = post.weights[:, :draws].ravel() if weighted else None
    counts = np.bincount(found, weights, minlength=len(dags))
    return counts / counts.sum()


def log_totals(local: Callable[[int, tuple[int, ...]], float], dags: np.ndarray) -> np.ndarray:
    """Return the log score of every listed DAG, from what a node scores given its parents."""
    places = range(dags.shape[-1])
    return np.array([sum(local(i, tuple(np.flatnonzero(dag[:, i]).tolist())) for i in places) for dag in dags])


def show(title: str, table: pd.DataFrame, digits: int = 2) -> None:
    """Print a table where pytest -s shows it."""
    text = table.map(lambda cell: str(cell) if isinstance(cell, Mean) else cell)
    print(f"\n{title}\n{text.to_string(float_format=f'{{:.{digits}f}}'.format)}", file=sys.stderr, flush=True)


class Imitated(Score):
    """Laplace's approximation, from a cache as far as it has it, with the hidden cost of parents."""

    name = "imitated"

    def __init__(self, known: ScoreCache) -> None:
        self.known = known

    @property
    def parameters(self) -> dict[str, Any]:
        return {"first": FIRST_PARENT, "further": FURTHER_PARENT}

    def _bind(self, data: Any) -> Scorer:
        return ImitatedScorer(self, self.known.scorer.names, data.fingerprint)


class ImitatedScorer(Scorer):
    """Scores of `Imitated`."""

    default_max_parents = 5

    def __init__(self, score: Imitated, names: Sequence[str], data_fingerprint: str) -> None:
        super().__init__(score, names, data_fingerprint)
        self.known = score.known

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        records = [self.known.lookup(node, parents) for parents in parent_sets]
        # A run scores the sets that matter under its own score; with another cost others may.
        further = [parents for parents, record in zip(parent_sets, records, strict=True) if record is None]
        computed = iter(self.known.scorer.score_sets(node, further).values if further else ())
        values = np.array([next(computed) if record is None else record.value for record in records])
        sizes = np.array([len(parents) for parents in parent_sets])
        cost = np.where(sizes > 0, FIRST_PARENT + FURTHER_PARENT * (sizes - 1), 0.0)
        count = len(parent_sets)
        return ScoreBatch(values - cost, np.zeros(count), np.full(count, np.nan), ["ok"] * count)


@contextmanager
def imitated(score: Score, data: pd.DataFrame, cache: Path) -> Iterator[Imitated]:
    """Yield the score of the program behind the paper, from the file of a run that was drawn and weighted."""
    accurate = score.bind(data)
    rough = accurate.proposal()
    assert rough is not None
    with ScoreCache(accurate, cache) as store:
        yield Imitated(ScoreCache(rough, store.connection, table="proposal_scores"))
