"""Metropolis-coupled chains: copies under flattened scores, which cross what the chain itself can't.

Copy t has the target score^beta_t over partitions (and outside candidates), beta_0 = 1 > beta_1 > …; neighbours
exchange their states by Metropolis-Hastings. Only copy 0 is drawn from, and only it walks over DAGs: to flatten the
score of a partition isn't to flatten the scores of its DAGs.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints, Words
from gpn_bayes.kernels.compiled import compiled, inner
from gpn_bayes.mcmc.chains import accept, draw_dag, share_of_walk, split_mix, steps_over_partitions
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.draw_dag import store_parents
from gpn_bayes.mcmc.partition import PartitionState
from gpn_bayes.mcmc.tables import ScoreTables, log_score_of

# Exchanges are tried this many times before each draw.
EXCHANGES = 10
# What tuning aims at: the share of exchanges that succeed.
_TARGET_RATE = 0.3


class Ladder(NamedTuple):
    """The copies, coldest first.

    Attributes
    ----------
    layouts : ndarray of int64, shape (copies, n, columns)
        `ScoreTables.layout` of each, since the outside candidates are part of its state.
    ints, scores : ndarray
        `PartitionState` of each.
    betas : ndarray of float64, shape (copies,)
        The powers of the score.
    exchanges : ndarray of int64, shape (copies - 1, 2)
        Counts exchanges tried between neighbours, and made.
    progress : ndarray of int64, shape (2,)
        Which pairs are tried next, the even or the odd ones; how often the ladder was adapted.
    """

    layouts: Ints
    ints: Ints
    scores: Floats
    betas: Floats
    exchanges: Ints
    progress: Ints


def new_ladder(tables: ScoreTables, state: PartitionState, copies: int, ratio: float = 0.9) -> Ladder:
    """Return a ladder of copies of one state, with betas 1, ratio, ratio^2, …."""
    return Ladder(
        np.repeat(tables.layout[None], copies, axis=0),
        np.repeat(state.ints[None], copies, axis=0),
        np.repeat(state.score[None], copies, axis=0),
        ratio ** np.arange(copies, dtype=np.float64),
        np.zeros((copies - 1, 2), np.int64),
        np.zeros(2, np.int64),
    )


@compiled
def run_tempered(
    chance: Chance,
    tables: ScoreTables,
    ladder: Ladder,
    mix: Floats,
    thin: int,
    adapt: bool,
    words: Words,
    log_scores: Floats,
    targets: Floats,
    counters: Ints,
) -> None:
    """Run coupled chains for a block of draws, `thin` steps of each copy before each; as `chains.run_partition`.

    Parameters
    ----------
    ladder : Ladder
        Where the copies stand; moved on in place. `tables` only gives the scores.
    adapt : bool
        Whether to adapt the ladder: in tuning only, since it leaves the target otherwise.
    """
    n = ladder.scores.shape[1]
    spare = PartitionState(ladder.ints[0].copy(), ladder.scores[0].copy())
    parents, new_parents = np.empty(n, np.int64), np.empty(n, np.int64)
    shares, dag_shares = split_mix(mix)
    walk = share_of_walk(mix, thin)
    unused = np.zeros_like(counters)
    for draw in range(len(log_scores)):
        for turn in range(EXCHANGES):
            steps = (thin - walk) * (turn + 1) // EXCHANGES - (thin - walk) * turn // EXCHANGES
            for t in range(len(ladder.betas)):
                own = ScoreTables(ladder.layouts[t], tables.values, tables.ranked)
                state = PartitionState(ladder.ints[t], ladder.scores[t])
                counts = counters if t == 0 else unused
                steps_over_partitions(chance, own, state, spare, shares, steps, ladder.betas[t], counts)
            _exchange(chance.rng, ladder, adapt)
        coldest = ScoreTables(ladder.layouts[0], tables.values, tables.ranked)
        state = PartitionState(ladder.ints[0], ladder.scores[0])
        draw_dag(chance, coldest, state, dag_shares, walk, parents, new_parents, counters)
        store_parents(coldest, parents, words[draw])
        log_scores[draw] = log_score_of(coldest, parents)
        targets[draw] = state.score.sum()


@compiled
def _exchange(rng: np.random.Generator, ladder: Ladder, adapt: bool) -> None:
    """Try to exchange neighbours, the even pairs and the odd ones in turn."""
    first = ladder.progress[0]
    ladder.progress[0] = 1 - first
    total, pairs = 0.0, 0
    for t in range(first, len(ladder.betas) - 1, 2):
        gap = ladder.scores[t + 1].sum() - ladder.scores[t].sum()
        log_ratio = exchange_ratio(ladder.betas[t], ladder.betas[t + 1], gap)
        ladder.exchanges[t, 0] += 1
        total += min(1.0, np.exp(min(log_ratio, 0.0)))
        pairs += 1
        if accept(rng, log_ratio):
            ladder.exchanges[t, 1] += 1
            _swap_copies(ladder, t)
    if adapt and pairs > 0:
        _adapt(ladder, total / pairs)


@inner
def exchange_ratio(beta: float, hotter: float, gap: float) -> float:
    """Return the log acceptance ratio of an exchange; `gap` is the hotter copy's log score less the other's."""
    return (beta - hotter) * gap


@inner
def _swap_copies(ladder: Ladder, t: int) -> None:
    for array in (ladder.layouts, ladder.ints):
        kept = array[t].copy()
        array[t] = array[t + 1]
        array[t + 1] = kept
    kept_scores = ladder.scores[t].copy()
    ladder.scores[t] = ladder.scores[t + 1]
    ladder.scores[t + 1] = kept_scores


@inner
def _adapt(ladder: Ladder, rate: float) -> None:
    """Change the ratio of neighbouring betas a little, less and less, towards the target rate of exchanges."""
    ladder.progress[1] += 1
    cooling = -np.log(ladder.betas[1])
    cooling *= np.exp((rate - _TARGET_RATE) / ladder.progress[1] ** 0.6)
    cooling = min(cooling, 2.0)
    for t in range(len(ladder.betas)):
        ladder.betas[t] = np.exp(-cooling * t)
