"""Tests of claims: whether what was said with probability p happened as often, and whether ranks are uniform.

Claims about one network depend on each other, so that networks are what is counted: a test is one of the mean of
independent vectors, one a network, which is zero if the posterior is calibrated. Intervals are one a network.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from tests.benchmarks.paper import Mean

# Bins of stated probabilities; neighbours are put together until this much variance is expected in each.
EDGES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0])
_LEAST_VARIANCE = 15.0
# Bins of ranks.
RANK_BINS = 10


def p_values(claims: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each test: `kind` of claim, `test`, number of `networks`, `p_value`."""
    rows = [
        (kind, test, own["network"].nunique(), p)
        for kind, own in claims.groupby("kind", sort=False)
        for test, p in (_of_ranks(own) if str(kind).startswith("rank of") else _of_probabilities(own, str(kind)))
    ]
    return pd.DataFrame(rows, columns=["kind", "test", "networks", "p_value"])


def _of_ranks(own: pd.DataFrame) -> Iterator[tuple[str, float]]:
    ranks = own["stated"].to_numpy()
    counts = np.histogram(ranks, RANK_BINS, (0, 1))[0]
    yield "bins", float(stats.chisquare(counts).pvalue)
    yield "Kolmogorov-Smirnov", float(stats.kstest(ranks, "uniform").pvalue)


def _of_probabilities(own: pd.DataFrame, kind: str) -> Iterator[tuple[str, float]]:
    if "interval" in kind:
        yield "count", _of_count(own["stated"].to_numpy(), int(own["held"].sum()))
        return
    gap = own["held"] - own["stated"]
    # A pair has an edge as often as there is one: in sum, that is the same as for edges.
    if kind != "pair":
        yield "sum", _of_mean(_sums(gap, own["network"]))
    # What is stated with too much confidence happens less often the nearer to one it is stated.
    yield "confidence", _of_mean(_sums(gap * (2 * own["stated"] - 1), own["network"]))
    in_bins = np.eye(len(EDGES))[bins_of(own["stated"])] * gap.to_numpy()[:, None]
    sums = pd.DataFrame(in_bins).groupby(own["network"].to_numpy()).sum().to_numpy()
    yield "bins", _of_means(sums[:, sums.any(axis=0)])


def bins_of(stated: pd.Series) -> np.ndarray:
    """Return the bin of each probability, bins being wide enough for claims of either outcome."""
    edges = [0.0]
    for upper in EDGES[1:]:
        inside = stated[(stated > edges[-1]) & (stated <= upper)]
        if (inside * (1 - inside)).sum() >= _LEAST_VARIANCE:
            edges.append(float(upper))
    # The last bin reaches up to one.
    return np.digitize(stated, edges[1:-1] if len(edges) > 1 else [], right=True)


def _of_count(stated: np.ndarray, held: int) -> float:
    """Return the exact p-value of how many independent claims held, one a network: few don't, too few for a t-test."""
    chances = np.ones(1)
    for p in stated:
        chances = np.convolve(chances, [1 - p, p])
    return float(min(1.0, 2 * min(chances[: held + 1].sum(), chances[held:].sum())))


def _sums(values: pd.Series, network: pd.Series) -> np.ndarray:
    return values.groupby(network).sum().to_numpy()


def _of_mean(values: np.ndarray) -> float:
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def _of_means(vectors: np.ndarray) -> float:
    """Return the p-value of Hotelling's test that vectors have mean zero."""
    count, size = vectors.shape
    mean = vectors.mean(axis=0)
    squared = count * mean @ np.linalg.solve(np.atleast_2d(np.cov(vectors.T)), mean)
    return float(stats.f.sf(squared * (count - size) / (size * (count - 1)), size, count - size))


def nats_per_edge(claims: pd.DataFrame) -> Mean:
    """Return the constant for each edge that scores lack, as numbers of edges tell it: zero if they are right.

    A nat more for each edge moves their expected number by its posterior variance, which is the expected square of the
    gap to the truth. So this is one step of Newton's method, and falls short of large errors.
    """
    edges = claims[claims["kind"] == "edge"]
    gaps = _sums(edges["held"] - edges["stated"], edges["network"])
    return Mean(float(gaps.mean() / gaps.var()), float(1 / np.sqrt(len(gaps) * gaps.var())))


def reliability(claims: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return by bins what was stated and how often it held, with the standard error over networks of their gap."""
    own = claims[claims["kind"] == kind].reset_index(drop=True)
    rows = []
    for _, part in own.groupby(bins_of(own["stated"])):
        gaps = _sums(part["held"] - part["stated"], part["network"])
        error = np.sqrt((gaps**2).sum()) / len(part)
        rows.append((part["stated"].mean(), part["held"].mean(), error, len(part)))
    return pd.DataFrame(rows, columns=["stated", "held", "error", "claims"])
