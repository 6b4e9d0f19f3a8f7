"""How long whole score tables and the exact posterior take. Run with ``pytest -m slow -s tests/benchmarks``."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.exact_draws import draw_exact, layered_weights
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.scores import BGe

pytestmark = pytest.mark.slow

DATA = pd.read_csv(Path(__file__).parent.parent / "reference" / "bge" / "lin_n20_N500.csv")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def all_tables(n: int, max_parents: int | None) -> list[np.ndarray]:
    scorer = BGe().bind(DATA.iloc[:, :n])
    return [scorer.table(i, [j for j in range(n) if j != i], max_parents) for i in range(n)]


def full_tables(n: int) -> ScoreTables:
    return build_tables([[j for j in range(n) if j != i] for i in range(n)], all_tables(n, None))


def draw(tables: ScoreTables, draws: int) -> None:
    n = len(tables.layout)
    weights = layered_weights(tables)
    words = np.zeros((draws, n, 1), np.uint64)
    draw_exact(Chance(np.random.default_rng(1)), tables, weights, words, np.empty(draws))


@pytest.mark.parametrize(("n", "max_parents", "limit"), [(20, 4, 0.5), (16, None, 1.0)])
def test_bge_tables(n: int, max_parents: int | None, limit: float) -> None:
    all_tables(4, 2)  # compile
    took = min(seconds(lambda: all_tables(n, max_parents)) for _ in range(3))
    print(f"\nBGe tables, n = {n}, max_parents = {max_parents}: {took:.3f} s", file=sys.stderr)
    assert took < limit


def test_exact_edges() -> None:
    exact_probabilities(full_tables(3))  # compile
    tables = full_tables(16)
    took = seconds(lambda: exact_probabilities(tables))
    print(f"\nexact edges, n = 16: {took:.2f} s", file=sys.stderr)
    assert took < 5


@pytest.mark.parametrize(("n", "limit"), [(14, 5), (15, 20)])
def test_exact_draws(n: int, limit: float) -> None:
    draw(full_tables(3), 1)  # compile
    tables = full_tables(n)
    took = seconds(lambda: draw(tables, 1000))
    print(f"\n1000 exact draws, n = {n}: {took:.2f} s", file=sys.stderr)
    assert took < limit
