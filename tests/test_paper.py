"""The paper's findings (Giudice, Kuipers & Moffa 2023) in quick form; at length they are in tests/benchmarks."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics
from tests.benchmarks.paper import draw, log_totals, mean_of, shares_of
from tests.benchmarks.test_score_equivalence import gaps

pytestmark = pytest.mark.more("measures other programs, and the papers' figures")

REFERENCE = Path(__file__).parent / "reference" / "gp"
DAGS = graphs.enumerate_dags(4)


@pytest.fixture(scope="module")
def data():
    return pd.read_csv(REFERENCE / "fourier_n4_N100_seed101.csv")


@pytest.fixture(scope="module")
def log_p():
    """Return the log posterior of all DAGs of four nodes, from scores by quadrature."""
    scores = json.loads((REFERENCE / "gp_truth.json").read_text())["scores"]
    known = {(row["node"], tuple(row["parents"])): row["log_score"] for row in scores}
    return log_totals(lambda node, parents: known[node, parents], DAGS)


def divergence(post, log_p, draws=None, weighted=True):
    with np.errstate(divide="ignore"):
        return metrics.reverse_kl(np.log(shares_of(post, DAGS, draws, weighted)), log_p)


# Figure 3


def test_weighted_draws_come_closest_to_the_enumerated_posterior(data, log_p):
    post, _ = draw(data, "gp", draws=4000)
    bge, _ = draw(data, "bge", draws=4000)
    weighted, laplace = divergence(post, log_p), divergence(post, log_p, weighted=False)
    assert weighted < 0.5 * laplace
    assert laplace < 0.1 * divergence(bge, log_p)
    # What is left is mostly the number of draws: half as many leave more, while other scores stay where they are.
    assert divergence(post, log_p, 1000) > 2 * weighted
    assert divergence(bge, log_p, 1000) < 1.2 * divergence(bge, log_p)


def test_shares_are_those_of_the_draws(data):
    post, _ = draw(data, "gp", draws=50)
    shares = dict(zip(map(bytes, DAGS), shares_of(post, DAGS), strict=True))
    for graph in post.graphs(distinct=True):
        key = bytes(graphs.as_adjacency(graph, post.names).astype(np.int8))
        assert shares.pop(key) == pytest.approx(graph.graph["probability"])
    assert not any(shares.values())


# Score equivalence


def test_directions_score_alike_on_lines_and_not_on_curves():
    score = gpn.scores.GP(target_error=0.05)
    lines, curves = (gaps(score, lam, n_rows=100, data_sets=25) for lam in (0.0, 1.0))
    assert np.median(np.abs(lines)) < 1
    assert np.median(np.abs(curves)) > np.median(np.abs(lines))
    # Standardised linear data look the same either way; curves tell the true direction.
    assert abs(lines.mean()) < 4 * mean_of(lines).error
    assert curves.mean() > 2 * mean_of(curves).error


def test_bge_scores_directions_alike_on_any_data():
    for lam in (0.0, 1.0):
        assert np.abs(gaps(gpn.scores.BGe(), lam, n_rows=100, data_sets=5)).max() < 1e-9
