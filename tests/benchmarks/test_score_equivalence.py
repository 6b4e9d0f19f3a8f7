"""Score equivalence: on linear data the Gaussian-process score hardly tells x -> y from y -> x; on curves it does.

Standardised linear Gaussian data look the same either way, so the gap log S(true direction) - log S(other direction)
must be zero on average; how far single data sets stray is what "approximately score equivalent" means (figure A.1 of
the paper). BGe is score equivalent on any data.

Run with ``pytest -m slow -s tests/benchmarks/test_score_equivalence.py``.
"""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from tests.benchmarks.paper import Mean, mean_of, show

pytestmark = pytest.mark.slow

DATA_SETS = 100
ROWS = (100, 400)
LAMBDAS = (0.0, 0.5, 1.0)
CHAIN = nx.DiGraph([("x", "y"), ("y", "z")])
FORK = nx.DiGraph([("y", "x"), ("y", "z")])
COLLIDER = nx.DiGraph([("x", "y"), ("z", "y")])


def gap(score: gpn.scores.Score, data: pd.DataFrame) -> float:
    """Return by how much the direction of the data outscores the other one."""
    scorer = score.bind(data)
    # Both scores standardise, so that x alone and y alone score the same.
    return scorer.local("y", ["x"]) - scorer.local("x", ["y"])


def gaps(score: gpn.scores.Score, lam: float, n_rows: int, data_sets: int = DATA_SETS) -> np.ndarray:
    seeds = np.random.SeedSequence([n_rows, round(10 * lam)]).spawn(data_sets)
    edge = nx.DiGraph([("x", "y")])
    return np.array([gap(score, gpn.simulate.fourier(edge, n_rows, lam, random_seed=seed)) for seed in seeds])


def median_of(values: np.ndarray) -> Mean:
    """Return a median and its standard error, from the spread of the order statistics around it."""
    ordered, half = np.sort(values), np.sqrt(len(values)) / 2
    low, high = (ordered[int(np.clip(len(values) / 2 + side * half, 0, len(values) - 1))] for side in (-1, 1))
    return Mean(float(np.median(values)), float(high - low) / 2)


@pytest.fixture(scope="module")
def found() -> dict[tuple[int, float], np.ndarray]:
    return {(n_rows, lam): gaps(gpn.scores.GP(), lam, n_rows) for n_rows in ROWS for lam in LAMBDAS}


def test_two_nodes(found: dict[tuple[int, float], np.ndarray]) -> None:
    table = {
        key: {
            "mean gap": mean_of(own),
            "median |gap|": median_of(np.abs(own)),
            "90% of |gap| below": np.quantile(np.abs(own), 0.9),
            "true direction wins": mean_of(own > 0),
        }
        for key, own in found.items()
    }
    show("Score equivalence, GP, true direction minus the other", pd.DataFrame(table).T.rename_axis(["rows", "lambda"]))
    for n_rows in ROWS:
        lines, curves = table[n_rows, 0.0], table[n_rows, 1.0]
        # Nothing to tell on lines, and the more to tell the more the relation bends.
        assert abs(lines["mean gap"].value) < 4 * lines["mean gap"].error
        assert curves["mean gap"].value > 4 * curves["mean gap"].error
        assert lines["median |gap|"].value < 1
        (typical, error), (at_most, other) = curves["median |gap|"], lines["median |gap|"]
        assert typical - at_most > 2 * np.hypot(error, other)


def test_the_gap_grows_with_the_rows_on_curves_alone(found: dict[tuple[int, float], np.ndarray]) -> None:
    few, many = ROWS
    lines, curves = ([median_of(np.abs(found[n_rows, lam])) for n_rows in (few, many)] for lam in (0.0, 1.0))
    assert curves[1].value > 2 * curves[0].value
    assert lines[1].value < 2 * lines[0].value + 4 * lines[1].error


def test_bge_is_equivalent_on_any_data() -> None:
    for lam in LAMBDAS:
        assert np.abs(gaps(gpn.scores.BGe(), lam, ROWS[0], 50)).max() < 1e-9


def test_three_nodes() -> None:
    """A chain and a fork are equivalent, a collider isn't: only the first two score alike on linear data."""
    rows = []
    for seed in np.random.SeedSequence(3).spawn(30):
        scorer = gpn.scores.GP().bind(gpn.simulate.linear(CHAIN, 100, random_seed=seed))
        chain, fork, collider = (scorer.total(graph) for graph in (CHAIN, FORK, COLLIDER))
        rows.append({"fork": chain - fork, "collider": chain - collider})
    table = pd.DataFrame(rows)
    show("Chain minus its equal and its unequal, GP, linear data", table.describe())
    assert abs(table["fork"].mean()) < 4 * mean_of(table["fork"]).error
    assert table["fork"].abs().median() < 1
    assert table["collider"].median() > 10
