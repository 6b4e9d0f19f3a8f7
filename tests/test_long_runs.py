"""Long runs of both samplers against exact posteriors, with the error that their own ESS allows."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from gpn_bayes import graphs
from gpn_bayes.mcmc.chains import PARTITION_MIX, run_order, run_partition, start_partition
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.order import DEFAULT_MIX, new_order
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.scores.bge import BGe
from tests.scripts import make_problem

pytestmark = pytest.mark.more("samples large networks")

REFERENCE = Path(__file__).parent / "reference" / "bge"
NULL, LINEAR = "null_n4_N50", "lin_n5_N200"
CHAINS = 4
UNIFORM, ORDER_MODULAR = "edge_posterior_uniform_dag_prior", "edge_posterior_order_modular"


class Run(NamedTuple):
    """Draws [chain, draw, parent, child], the log scores of DAGs and of states, and the move counts."""

    edges: np.ndarray
    log_scores: np.ndarray
    targets: np.ndarray
    counters: np.ndarray


def exact_answers(name: str) -> dict[str, Any]:
    return json.loads((REFERENCE / f"bge_exact_{name}.json").read_text())


def bge_scorer(name: str) -> Any:
    return BGe().bind(pd.read_csv(REFERENCE / f"{name}.csv"))


def full_tables(scorer: Any) -> ScoreTables:
    n = len(scorer.names)
    candidates = [[j for j in range(n) if j != i] for i in range(n)]
    return build_tables(candidates, [scorer.table(i, candidates[i]) for i in range(n)])


def run_chains(
    sampler: str, tables: ScoreTables, draws: int, thin: int, seed: int, mix: np.ndarray | None = None
) -> Run:
    """Run four chains from random orders, the first tenth thrown away."""
    n, parts = len(tables.layout), []
    for rng in np.random.default_rng(seed).spawn(CHAINS):
        chance = Chance(rng)
        order = rng.permutation(n)
        while new_order(tables, order).score.sum() == -np.inf:
            order = rng.permutation(n)
        words, log_scores = np.zeros((draws, n, 1), np.uint64), np.empty(draws)
        targets, counters = np.empty(draws), np.zeros((8, 2), np.int64)
        if sampler == "partition":
            state, moves, run = start_partition(chance, tables, order), PARTITION_MIX, run_partition
        else:
            state, moves, run = new_order(tables, order), DEFAULT_MIX, run_order
        moves = moves if mix is None else mix
        run(chance, tables, state, moves, thin, words, log_scores, targets, counters)
        kept = slice(draws // 10, None)
        parts.append((graphs.unpack(words[kept], n), log_scores[kept], targets[kept], counters))
    return Run(*(np.array(part) for part in zip(*parts, strict=True)))


def gaps(features: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return |frequency - probability| of each feature [chain, draw, feature] over what its ESS allows."""
    total = features.shape[0] * features.shape[1]
    varies = (features != features[:1, :1]).any(axis=(0, 1))
    ess = np.array([
        array_stats.ess(features[:, :, f].astype(float)) if varies[f] else np.nan
        for f in range(features.shape[2])
    ])  # fmt: skip
    # A feature that never varied has no ESS of its own: it gets that of the slowest one.
    ess = np.minimum(np.where(varies, ess, np.nanmin(ess, initial=total)), total)
    expected = np.minimum(expected, 1.0)
    allowed = 4.0 * np.sqrt(expected * (1.0 - expected) / ess) + 4.0 / ess
    return np.abs(features.mean(axis=(0, 1)) - expected) / allowed


def edge_gaps(run: Run, expected: Any) -> np.ndarray:
    n = run.edges.shape[-1]
    pairs = ~np.eye(n, dtype=bool)
    return gaps(run.edges[:, :, pairs], np.asarray(expected)[pairs])


@pytest.mark.parametrize("name", [NULL, LINEAR])
def test_local_scores_are_the_reference(name):
    scorer = bge_scorer(name)
    for entry in exact_answers(name)["local_scores"]:
        assert scorer.local(entry["node"], entry["parents"]) == pytest.approx(entry["score"], abs=1e-8)


@pytest.mark.parametrize("name", [NULL, LINEAR])
@pytest.mark.parametrize(("sampler", "prior"), [("partition", UNIFORM), ("order", ORDER_MODULAR)])
def test_edge_probabilities_match_the_exact_posterior(name, sampler, prior):
    exact = exact_answers(name)
    run = run_chains(sampler, full_tables(bge_scorer(name)), draws=5000, thin=20, seed=1)
    worst = edge_gaps(run, exact[prior]).max()
    assert worst < 1.0
    # Negative control: neither sampler answers for the other one's prior.
    other = UNIFORM if prior == ORDER_MODULAR else ORDER_MODULAR
    assert edge_gaps(run, exact[other]).max() > 1.5


def test_the_empty_graph_is_as_probable_as_it_should_be():
    exact = exact_answers(NULL)
    tables = full_tables(bge_scorer(NULL))
    for sampler, agrees in (("partition", True), ("order", False)):
        run = run_chains(sampler, tables, draws=5000, thin=20, seed=2)
        empty = ~run.edges.any(axis=(2, 3))
        gap = gaps(empty[:, :, None], np.array([exact["p_empty_dag"]]))[0]
        assert (gap < 1.0) == agrees and (agrees or gap > 1.5)


def all_dags(scorer: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return every DAG and its log score, from the scorer and not from the tables."""
    dags = graphs.enumerate_dags(n)
    total = np.zeros(len(dags))
    for i in range(n):
        keys = dags[:, :, i] @ (1 << np.arange(n))
        for key in np.unique(keys):
            total[keys == key] += scorer.local(i, [j for j in range(n) if key >> j & 1])
    return dags, total


def strong_network() -> pd.DataFrame:
    """Return 100,000 rows of a linear network whose every edge is beyond doubt."""
    rng = np.random.default_rng(20)
    rows = 100_000
    x0 = rng.normal(size=rows)
    x1 = 1.5 * x0 + rng.normal(size=rows)
    x2 = -1.2 * x1 + rng.normal(size=rows)
    x3 = 0.9 * x1 + rng.normal(size=rows)
    x4 = 1.1 * x2 + 1.4 * x3 + rng.normal(size=rows)
    return pd.DataFrame({"a": x0, "b": x1, "c": x2, "d": x3, "e": x4})


@pytest.mark.parametrize("sampler", ["partition", "order"])
def test_strong_edges_where_sums_all_but_cancel(sampler):
    scorer = BGe().bind(strong_network())
    tables = full_tables(scorer)
    dags, log_scores = all_dags(scorer, 5)
    weights = np.exp(log_scores - logsumexp(log_scores))
    if sampler == "order":
        weights = weights * np.exp(graphs.log_linear_extensions(graphs.pack(dags)))
        weights /= weights.sum()
    expected = np.tensordot(weights, dags, axes=1)
    # Nothing is known for sure, and every table spans thousands of nats.
    assert np.ptp(tables.values[:80]) > 1e4 and (np.abs(expected - 0.5) < 0.45).sum() >= 4
    run = run_chains(sampler, tables, draws=5000, thin=30, seed=3)
    assert edge_gaps(run, expected).max() < 1.0
    # The DAGs themselves, not only their edges: the most probable ones.
    best = np.argsort(-weights)[:6]
    drawn = np.stack([(run.edges == dags[d]).all(axis=(2, 3)) for d in best], axis=-1)
    assert gaps(drawn, weights[best]).max() < 1.0


@pytest.mark.parametrize("kind", ["restricted", "few parents", "required", "required chain"])
def test_restricted_problems_match_the_enumeration(kind):
    problem = make_problem(4, kind, seed=3)
    weights = np.exp(np.array(list(problem.dags.values())) - logsumexp(list(problem.dags.values())))
    expected = np.zeros((4, 4))
    for dag, weight in zip(problem.dags, weights, strict=True):
        for parent, child in problem.graph(dag).edges:
            expected[parent, child] += weight
    run = run_chains("partition", problem.tables, draws=5000, thin=15, seed=4)
    assert edge_gaps(run, expected).max() < 1.0
    wrong = expected.copy()
    wrong[expected > 0.05] *= 0.8
    assert edge_gaps(run, wrong).max() > 1.5


# One move alone may leave states unreached, hence always with one that reaches all.
MIXES = {
    "split or join": (0, 0.9), "swaps": (1, 0.8), "any swap": (2, 0.8), "relocation": (3, 0.9),
    "edge toggle": (4, 0.9), "parents redrawn": (5, 0.8), "edge reversal": (6, 0.8), "reordering": (7, 0.9),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("thin", [1, 2, 7, 40])
@pytest.mark.parametrize("move", MIXES)
def test_any_mix_and_thinning_gives_the_same_answer(move, thin):
    place, share = MIXES[move]
    mix = np.full(8, (1.0 - share) / 7)
    mix[place] = share
    exact = exact_answers(LINEAR)
    tables = full_tables(bge_scorer(LINEAR))
    run = run_chains("partition", tables, draws=400_000 // (thin + 1), thin=thin, seed=5 + place, mix=mix)
    assert edge_gaps(run, exact[UNIFORM]).max() < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("sampler", "prior"), [("partition", UNIFORM), ("order", ORDER_MODULAR)])
def test_a_hundred_thousand_draws(sampler, prior, seed):
    run = run_chains(sampler, full_tables(bge_scorer(LINEAR)), draws=25_000, thin=20, seed=100 + seed)
    assert edge_gaps(run, exact_answers(LINEAR)[prior]).max() < 1.0


def test_scores_targets_and_counts_belong_to_the_draws():
    scorer = bge_scorer(LINEAR)
    tables = full_tables(scorer)
    for sampler, mix in (("partition", PARTITION_MIX), ("order", DEFAULT_MIX)):
        run = run_chains(sampler, tables, draws=200, thin=25, seed=6)
        for edges, log_score in zip(run.edges[0][:20], run.log_scores[0], strict=False):
            assert scorer.total(edges) == pytest.approx(log_score, abs=1e-8)
        # A state's weight is the sum over its DAGs, the drawn one among them.
        assert (run.targets >= run.log_scores - 1e-9).all()
        tried = run.counters[:, :, 0].sum(axis=0)
        assert (run.counters[:, :, 0].sum(axis=1) == 25 * 200).all()
        assert (run.counters[:, :, 1] <= run.counters[:, :, 0]).all() and (run.counters[:, : len(mix), 1] > 0).all()
        share = tried[: len(mix)] / tried.sum()
        np.testing.assert_allclose(share, mix, atol=4.0 * np.sqrt(0.25 / tried.sum()))


def test_an_order_that_allows_no_dag_is_refused():
    needs_the_other = np.array([-np.inf, 0.0])
    tables = build_tables([[1], []], [needs_the_other, np.zeros(1)])
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match=r"must allow a DAG; nodes \[0\] have no parent set"):
        start_partition(Chance(rng), tables, np.array([0, 1]))
    assert start_partition(Chance(rng), tables, np.array([1, 0])).score.sum() == 0.0


def test_draws_depend_on_the_generator_alone():
    tables = full_tables(bge_scorer(LINEAR))
    for sampler in ("partition", "order"):
        first, again = (run_chains(sampler, tables, 200, 10, seed=7) for _ in range(2))
        other = run_chains(sampler, tables, 200, 10, seed=8)
        for one, two in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, two)
        assert not np.array_equal(first.edges, other.edges)
