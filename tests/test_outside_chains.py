"""Chains with one parent from outside the candidates draw DAGs in proportion to their scores."""

import networkx as nx
import numpy as np
import pytest
from scipy.special import logsumexp

from gpn_bayes.mcmc.chains import PARTITION_MIX, run_order, run_partition, start_partition
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.order import DEFAULT_MIX, new_order
from gpn_bayes.mcmc.tables import (
    ScoreTables,
)
from gpn_bayes.mcmc.tempering import Ladder, new_ladder, run_tempered
from tests.outside_worlds import WORLDS, Parents, World

pytestmark = pytest.mark.more("samples large networks")

# A walk over DAGs before each draw would make up for what tempering might get wrong.
ONLY_PARTITIONS = np.where(np.arange(8) < 4, PARTITION_MIX, 0.0)


def dag_key(words: np.ndarray) -> Parents:
    return tuple(frozenset(j for j in range(len(words)) if int(own[0]) >> j & 1) for own in words)


def assert_draws_follow(world: World, words: np.ndarray, log_scores: np.ndarray, extensions: bool = False) -> None:
    """Assert that draws, taken as half as many independent ones, have the frequencies of the world's DAGs."""
    log_target = dict(world.dags)
    if extensions:
        for dag in log_target:
            graph = nx.DiGraph([(j, i) for i, own in enumerate(dag) for j in own])
            graph.add_nodes_from(range(world.n))
            log_target[dag] += np.log(sum(1 for _ in nx.all_topological_sorts(graph)))
    keys = [dag_key(own) for own in words]
    np.testing.assert_allclose(log_scores, [world.dags[key] for key in keys], atol=1e-9)
    total = logsumexp(list(log_target.values()))
    counts = {dag: 0 for dag in log_target}
    for key in keys:
        counts[key] += 1
    effective = len(keys) / 2
    for dag, log_score in log_target.items():
        p = np.exp(log_score - total)
        assert abs(counts[dag] / len(keys) - p) < 5 * np.sqrt(p * (1 - p) / effective) + 5 / effective


def new_blocks(draws: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((draws, n, 1), np.uint64), np.empty(draws), np.empty(draws)


@pytest.mark.parametrize("name", ["mixed", "four"])
def test_a_partition_chain_draws_dags_in_proportion_to_their_scores(name):
    world = WORLDS[name]
    rng = np.random.default_rng(3)
    tables = world.tables()
    state = start_partition(Chance(rng), tables, np.arange(world.n))
    words, log_scores, targets = new_blocks(20_000, world.n)
    counters = np.zeros((8, 2), np.int64)
    run_partition(Chance(rng), tables, state, PARTITION_MIX, 40, words, log_scores, targets, counters)
    assert_draws_follow(world, words, log_scores)


def test_an_order_chain_favours_dags_of_many_orders_and_nothing_else():
    world = WORLDS["mixed"]
    rng = np.random.default_rng(4)
    tables = world.tables()
    words, log_scores, targets = new_blocks(20_000, world.n)
    state = new_order(tables, np.arange(world.n))
    counters = np.zeros((3, 2), np.int64)
    run_order(Chance(rng), tables, state, DEFAULT_MIX, 20, words, log_scores, targets, counters)
    assert_draws_follow(world, words, log_scores, extensions=True)


def tempered_draws(world: World, ladder: Ladder, tables: ScoreTables, draws: int) -> tuple[np.ndarray, np.ndarray]:
    words, log_scores, targets = new_blocks(draws, world.n)
    counters = np.zeros((8, 2), np.int64)
    rng = np.random.default_rng(5)
    run_tempered(Chance(rng), tables, ladder, ONLY_PARTITIONS, 40, False, words, log_scores, targets, counters)
    return words, log_scores


def test_coupled_chains_draw_the_same_dags():
    world = WORLDS["mixed"]
    rng = np.random.default_rng(6)
    tables = world.tables()
    ladder = new_ladder(tables, start_partition(Chance(rng), tables, np.arange(world.n)), 3, ratio=0.5)
    words, log_scores = tempered_draws(world, ladder, tables, 20_000)
    assert_draws_follow(world, words, log_scores)
    tried, made = ladder.exchanges.sum(axis=0)
    assert 0.3 * tried < made < tried


def test_the_test_of_coupled_chains_notices_a_chain_that_is_too_warm():
    world = WORLDS["mixed"]
    rng = np.random.default_rng(6)
    tables = world.tables()
    ladder = new_ladder(tables, start_partition(Chance(rng), tables, np.arange(world.n)), 3, ratio=0.5)
    ladder.betas[0] = 0.7
    words, log_scores = tempered_draws(world, ladder, tables, 20_000)
    with pytest.raises(AssertionError):
        assert_draws_follow(world, words, log_scores)
