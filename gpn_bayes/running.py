"""Run chains side by side: threads, progress, checkpoints, and a clean stop on Ctrl-C."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes.checkpoint import CheckpointStore
from gpn_bayes.mcmc import chains as chain_runs
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.choices import no_script
from gpn_bayes.mcmc.exact_draws import LayeredWeights, draw_exact
from gpn_bayes.mcmc.order import OrderState, new_order
from gpn_bayes.mcmc.partition import PartitionState
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.progress import progress_bar

# A block is what Ctrl-C waits for and what a kill can lose, in seconds.
_BLOCK_SECONDS = 0.3
_FIRST_BLOCK = 5


class Plan(NamedTuple):
    """How long to run, and from where."""

    sampler: str
    draws: int
    tune: int
    thin: int
    cores: int


class Draws(NamedTuple):
    """What chains have drawn: arrays over (chain, draw), and counts of moves over (chain, move, 2)."""

    parents: np.ndarray
    log_scores: np.ndarray
    targets: np.ndarray
    counters: np.ndarray
    interrupted: bool


@dataclass
class _Chain:
    """One chain: where it stands, and how to draw the next block."""

    plan: Plan
    tables: ScoreTables
    rng: np.random.Generator
    weights: LayeredWeights | None
    state: OrderState | PartitionState | None
    counters: np.ndarray
    done: int = 0
    blocks: int = 0
    block_size: int = _FIRST_BLOCK

    @property
    def total(self) -> int:
        return self.plan.tune + self.plan.draws

    def draw_block(self) -> tuple[int, dict[str, np.ndarray]]:
        """Draw a block, and return its size and what to keep of it.

        Its size follows the clock, which doesn't change what is drawn.
        """
        # A block doesn't reach across the end of tuning, so that it is kept whole or not at all.
        limit = self.plan.tune if self.done < self.plan.tune else self.total
        count = min(self.block_size, limit - self.done)
        n = len(self.tables.layout)
        words = np.zeros((count, n, (n + 63) // 64), dtype=np.uint64)
        log_scores, targets = np.empty(count), np.empty(count)
        began = time.perf_counter()
        script = no_script()
        if self.weights is not None:
            draw_exact(self.rng, script, self.tables, self.weights, words, log_scores)
            targets[:] = log_scores
        elif isinstance(self.state, OrderState):
            chain_runs.run_order(
                self.rng, script, self.tables, self.state, orders.DEFAULT_MIX, self.plan.thin,
                words, log_scores, targets, self.counters,
            )  # fmt: skip
        elif isinstance(self.state, PartitionState):
            chain_runs.run_partition(
                self.rng, script, self.tables, self.state, chain_runs.PARTITION_MIX, self.plan.thin,
                words, log_scores, targets, self.counters,
            )  # fmt: skip
        took = max(time.perf_counter() - began, 1e-6)
        self.block_size = int(np.clip(count * _BLOCK_SECONDS / took, 1, 2 * self.block_size))
        tuning = self.done < self.plan.tune
        self.done += count
        self.blocks += 1
        return count, {} if tuning else {"parents": words, "log_scores": log_scores, "targets": targets}

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what the chain needs to go on."""
        snapshot = {"done": np.array([self.done]), "counters": self.counters}
        if self.state is not None:
            snapshot |= {"ints": self.state.ints, "score": self.state.score}
        return snapshot

    def resume(self, blocks: int, snapshot: dict[str, np.ndarray], rng_state: dict[str, Any]) -> None:
        """Go back to where a snapshot was taken."""
        self.blocks = blocks
        self.done = int(snapshot["done"][0])
        self.counters[:] = snapshot["counters"]
        if self.state is not None:
            self.state.ints[:] = snapshot["ints"]
            self.state.score[:] = snapshot["score"]
        self.rng.bit_generator.state = rng_state


def run_chains(
    plan: Plan,
    tables: ScoreTables,
    rngs: Sequence[np.random.Generator],
    start_order: Callable[[np.random.Generator], np.ndarray],
    weights: LayeredWeights | None = None,
    store: CheckpointStore | None = None,
    run_key: str = "",
    progressbar: bool = True,
) -> Draws:
    """Run one chain for each generator, in threads; the result doesn't depend on their number.

    Parameters
    ----------
    plan : Plan
        How long to run.
    tables : ScoreTables
        The scores.
    rngs : sequence of Generator
        One a chain.
    start_order : callable
        Draws an order in which required edges lead forward, for a chain to start from.
    weights : LayeredWeights, optional
        Given for the exact sampler.
    store : CheckpointStore, optional
        Takes a checkpoint after every block; a run of the same key goes on from there.
    run_key : str
        Names the run in the store.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    Draws
        After Ctrl-C, what all chains had drawn by then.
    """
    all_chains = [_new_chain(plan, tables, rng, start_order, weights) for rng in rngs]
    kept: list[list[dict[str, np.ndarray]]] = [[] for _ in all_chains]
    if store is not None:
        for c, chain in enumerate(all_chains):
            found = store.load(run_key, c)
            if found is not None:
                chain.resume(found.n_blocks, found.state, found.rng_state)
                if found.draws:
                    kept[c].append(found.draws)

    def keep(c: int, draws: dict[str, np.ndarray]) -> None:
        chain = all_chains[c]
        if store is not None:
            store.save_block(run_key, c, chain.blocks - 1, draws, chain.snapshot(), chain.rng.bit_generator.state)
        if draws:
            kept[c].append(draws)

    interrupted = _work_through(all_chains, plan.cores, keep, progressbar)
    return _collect(plan, all_chains, kept, interrupted)


def _new_chain(
    plan: Plan,
    tables: ScoreTables,
    rng: np.random.Generator,
    start_order: Callable[[np.random.Generator], np.ndarray],
    weights: LayeredWeights | None,
) -> _Chain:
    if plan.sampler == "exact":
        return _Chain(plan, tables, rng, weights, None, np.zeros((0, 2), np.int64))
    order = start_order(rng)
    if plan.sampler == "order":
        return _Chain(plan, tables, rng, None, new_order(tables, order), np.zeros((len(orders.MOVES), 2), np.int64))
    state = chain_runs.start_partition(rng, no_script(), tables, order)
    return _Chain(plan, tables, rng, None, state, np.zeros((len(chain_runs.PARTITION_MOVES), 2), np.int64))


def _work_through(
    all_chains: list[_Chain],
    cores: int,
    keep: Callable[[int, dict[str, np.ndarray]], None],
    progressbar: bool,
) -> bool:
    """Let all chains draw to their end; returns whether Ctrl-C cut them short."""
    running: dict[Future, int] = {}
    waiting = [c for c, chain in enumerate(all_chains) if chain.done < chain.total]
    total = sum(chain.total for chain in all_chains)
    with (
        progress_bar("Sampling", total, progressbar) as advance,
        ThreadPoolExecutor(cores, thread_name_prefix="chain") as pool,
        _interrupts() as interrupts,
    ):
        advance(sum(chain.done for chain in all_chains))
        while running or (waiting and not interrupts):
            while waiting and len(running) < cores and not interrupts:
                c = waiting.pop(0)
                running[pool.submit(all_chains[c].draw_block)] = c
            # The blocks under way are short: after Ctrl-C they end, and are kept.
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                c = running.pop(future)
                count, draws = future.result()
                keep(c, draws)
                advance(count)
                if all_chains[c].done < all_chains[c].total:
                    waiting.append(c)
    return any(chain.done < chain.total for chain in all_chains)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C in a list instead of raising, so that nothing drawn is lost; a second one raises."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)


def _collect(plan: Plan, all_chains: list[_Chain], kept: list[list[dict[str, np.ndarray]]], interrupted: bool) -> Draws:
    """Join the blocks of every chain, cut to the same length."""
    count = min(plan.draws, *(sum(len(block["log_scores"]) for block in blocks) for blocks in kept))
    if count == 0:
        raise KeyboardInterrupt("interrupted before the first draw was kept")

    def joined(name: str) -> np.ndarray:
        return np.stack([np.concatenate([block[name] for block in blocks])[:count] for blocks in kept])

    counters = np.stack([chain.counters for chain in all_chains])
    return Draws(joined("parents"), joined("log_scores"), joined("targets"), counters, interrupted)
