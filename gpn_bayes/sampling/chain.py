"""One chain: where it stands, how it draws its next block, and what of it a checkpoint keeps."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpn_bayes.mcmc import chains as chain_runs
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.annealing import LEVELS, SWEEPS, anneal
from gpn_bayes.mcmc.choices import no_script
from gpn_bayes.mcmc.exact_draws import LayeredWeights, draw_exact
from gpn_bayes.mcmc.order import ORDER, OrderState, new_order
from gpn_bayes.mcmc.partition import PartitionState
from gpn_bayes.mcmc.tables import ScoreTables, guest_places, own_copy, set_guests
from gpn_bayes.mcmc.tempering import Ladder, new_ladder, run_tempered

Arrays = dict[str, np.ndarray]

# A block is what Ctrl-C waits for and what a kill can lose, in seconds.
_BLOCK_SECONDS = 0.3
_FIRST_BLOCK = 5
# A run until it has converged doubles its thinning at most so often: then it is 32 times as long as planned.
MAX_EXTENSIONS = 5


class Plan(NamedTuple):
    """How long to run, and from where.

    Attributes
    ----------
    sampler : str
        "exact", "partition" or "order".
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    thin : int
        Steps before each of them.
    cores : int
        Threads.
    temperatures : int
        Coupled copies of each chain; 1 for none but itself.
    until_converged : bool
        Whether to stop early if the chains agree, and to go on, `thin` doubled, if they don't.
    """

    sampler: str
    draws: int
    tune: int
    thin: int
    cores: int
    temperatures: int = 1
    until_converged: bool = False

    def extension_at(self, kept: int) -> int:
        """Return how often the run has been extended when a chain has drawn so many DAGs to keep."""
        return 0 if kept < self.draws else 1 + (kept - self.draws) // self.half

    def length_of(self, extensions: int) -> int:
        """Return how many DAGs a chain has drawn, after tuning, at the end of some extensions."""
        return self.draws + extensions * self.half

    @property
    def half(self) -> int:
        """How many DAGs an extension draws: with every second one from before they are as many as planned."""
        return max(self.draws // 2, 1)


@dataclass
class Chain:
    """One chain; its state is None until it has found a start.

    Parameters
    ----------
    plan : Plan
        What to run.
    tables : ScoreTables
        The scores; the chain makes its own copy of what changes.
    rng : Generator
        Its randomness.
    start_order : callable
        Draws an order in which required edges lead forward.
    weights : LayeredWeights, optional
        Given for the exact sampler.
    """

    plan: Plan
    tables: ScoreTables
    rng: np.random.Generator
    start_order: Callable[[np.random.Generator], np.ndarray]
    weights: LayeredWeights | None = None
    state: OrderState | PartitionState | Ladder | None = field(default=None, init=False)
    counters: np.ndarray = field(init=False)
    done: int = field(default=0, init=False)
    blocks: int = field(default=0, init=False)
    block_size: int = field(default=_FIRST_BLOCK, init=False)

    def __post_init__(self) -> None:
        """Make what belongs to this chain alone."""
        moves = {"exact": (), "order": orders.MOVES, "partition": chain_runs.PARTITION_MOVES}[self.plan.sampler]
        self.counters = np.zeros((len(moves), 2), np.int64)
        self.tables = own_copy(self.tables)

    def draw_block(self, end: int) -> tuple[int, Arrays]:
        """Draw a block, not beyond the `end`-th DAG; return its size and what to keep of it.

        Its size follows the clock, which doesn't change what is drawn.
        """
        if self.state is None and self.weights is None:
            self.state = self._start()
        kept = self.done - self.plan.tune
        extension = self.plan.extension_at(kept) if kept >= 0 else 0
        # A block reaches neither across the end of tuning nor into another thinning: it is kept whole or not at all.
        limit = self.plan.tune if kept < 0 else self.plan.tune + self.plan.length_of(extension)
        count = min(self.block_size, limit - self.done, end - self.done)
        began = time.perf_counter()
        drawn = self._draw(count, self.plan.thin << extension, tuning=kept < 0)
        took = max(time.perf_counter() - began, 1e-6)
        self.block_size = int(np.clip(count * _BLOCK_SECONDS / took, 1, 2 * self.block_size))
        self.done += count
        self.blocks += 1
        return count, {} if kept < 0 else drawn

    def _start(self) -> OrderState | PartitionState | Ladder:
        """Return a state where scores are high, to save the chain from being caught where they aren't."""
        order = new_order(self.tables, self.start_order(self.rng))
        if order.score.sum() > -np.inf:
            anneal(self.rng, no_script(), self.tables, order, LEVELS, SWEEPS)
        if self.plan.sampler == "order":
            return order
        state = chain_runs.start_partition(self.rng, no_script(), self.tables, order.ints[ORDER])
        return state if self.plan.temperatures == 1 else new_ladder(self.tables, state, self.plan.temperatures)

    def _draw(self, count: int, thin: int, tuning: bool) -> Arrays:
        n = len(self.tables.layout)
        words = np.zeros((count, n, (n + 63) // 64), dtype=np.uint64)
        log_scores, targets = np.empty(count), np.empty(count)
        script = no_script()
        if self.weights is not None:
            draw_exact(self.rng, script, self.tables, self.weights, words, log_scores)
            targets[:] = log_scores
        elif isinstance(self.state, OrderState):
            chain_runs.run_order(
                self.rng, script, self.tables, self.state, orders.DEFAULT_MIX, thin,
                words, log_scores, targets, self.counters,
            )  # fmt: skip
        elif isinstance(self.state, PartitionState):
            chain_runs.run_partition(
                self.rng, script, self.tables, self.state, chain_runs.PARTITION_MIX, thin,
                words, log_scores, targets, self.counters,
            )  # fmt: skip
        elif isinstance(self.state, Ladder):
            run_tempered(
                self.rng, script, self.tables, self.state, chain_runs.PARTITION_MIX, thin, tuning,
                words, log_scores, targets, self.counters,
            )  # fmt: skip
        return {"parents": words, "log_scores": log_scores, "targets": targets}

    def snapshot(self) -> Arrays:
        """Return what the chain needs to go on."""
        snapshot = {"done": np.array([self.done]), "counters": self.counters}
        if isinstance(self.state, Ladder):
            layouts = self.state.layouts
            guests = np.array([guest_places(self.tables._replace(layout=layout)) for layout in layouts])
            snapshot |= self.state._asdict() | {"guests": guests}
            del snapshot["layouts"]
        elif self.state is not None:
            snapshot |= self.state._asdict() | {"guests": guest_places(self.tables)}
        return snapshot

    def resume(self, blocks: int, snapshot: Arrays, rng_state: dict[str, Any]) -> None:
        """Go back to where a snapshot was taken."""
        self.blocks = blocks
        self.done = int(snapshot["done"][0])
        self.counters[:] = snapshot["counters"]
        self.rng.bit_generator.state = rng_state
        if self.plan.sampler == "exact":
            return
        parts = {name: value.copy() for name, value in snapshot.items() if name not in ("done", "counters", "guests")}
        guests = snapshot["guests"]
        if self.plan.temperatures > 1:
            copies = [own_copy(self.tables) for _ in guests]
            for tables, own in zip(copies, guests, strict=True):
                set_guests(tables, own)
            self.state = Ladder(layouts=np.stack([tables.layout for tables in copies]), **parts)
        else:
            set_guests(self.tables, guests)
            self.state = (OrderState if self.plan.sampler == "order" else PartitionState)(**parts)
