"""One chain on its way: how long it runs, how it draws its next block, and what of it a checkpoint keeps."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpn_bayes.samplers import Sampler
from gpn_bayes.samplers.chains import MarkovChain
from gpn_bayes.samplers.stored_chains import Arrays, check_arrays, check_draws, require
from gpn_bayes.sampling.checkpoint import Checkpoint

# A block is what Ctrl-C waits for and what a kill can lose, in seconds.
_BLOCK_SECONDS = 0.3
_FIRST_BLOCK = 5
# A run until it has converged doubles its thinning at most this many times: then it is 32 times as long as planned.
MAX_EXTENSIONS = 5


class Plan(NamedTuple):
    """The sampler and how long to run it.

    Attributes
    ----------
    sampler : Sampler
        How DAGs are drawn.
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    thin : int
        Steps before each of them.
    cores : int
        Threads.
    until_converged : bool
        Whether to stop early if the chains agree, and to go on, `thin` doubled, if they don't.
    """

    sampler: Sampler
    draws: int
    tune: int
    thin: int
    cores: int
    until_converged: bool = False

    def extension_at(self, kept: int) -> int:
        """Return how often the run has been extended by the time a chain has drawn `kept` DAGs after tuning."""
        return 0 if kept < self.draws else 1 + (kept - self.draws) // self.half

    def length_of(self, extensions: int) -> int:
        """Return how many DAGs a chain has drawn, after tuning, at the end of some extensions."""
        return self.draws + extensions * self.half

    @property
    def half(self) -> int:
        """How many DAGs an extension draws: with every second one from before they are as many as planned."""
        return max(self.draws // 2, 1)


@dataclass
class ChainRun:
    """One chain on its way through a plan, block by block.

    Parameters
    ----------
    plan : Plan
        How long to run.
    chain : MarkovChain
        The chain, which has not started yet.
    rng : Generator
        Its source of randomness.
    """

    plan: Plan
    chain: MarkovChain
    rng: np.random.Generator
    started: bool = field(default=False, init=False)
    done: int = field(default=0, init=False)
    blocks: int = field(default=0, init=False)
    block_size: int = field(default=_FIRST_BLOCK, init=False)

    def draw_block(self, end: int) -> tuple[int, Arrays]:
        """Draw a block, not beyond the `end`-th DAG; return its size and what to keep of it.

        Its size follows the clock, which doesn't change what is drawn.
        """
        if not self.started:
            self.chain.init(self.rng)
            self.started = True
        kept = self.done - self.plan.tune
        extension = self.plan.extension_at(kept) if kept >= 0 else 0
        # A block reaches neither across the end of tuning nor into another thinning: it is kept whole or not at all.
        limit = self.plan.tune if kept < 0 else self.plan.tune + self.plan.length_of(extension)
        count = min(self.block_size, limit - self.done, end - self.done)
        began = time.perf_counter()
        block = self.chain.step(self.rng, count, self.plan.thin << extension, tuning=kept < 0)
        took = max(time.perf_counter() - began, 1e-6)
        self.block_size = int(np.clip(count * _BLOCK_SECONDS / took, 1, 2 * self.block_size))
        self.done += count
        self.blocks += 1
        return count, {} if kept < 0 else block._asdict()

    def snapshot(self) -> Arrays:
        """Return what the chain needs to go on."""
        return {"done": np.array([self.done]), "counters": self.chain.counters} | self.chain.state()

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go back to where a checkpoint was taken.

        Raises
        ------
        ValueError
            If it can't have been taken of this chain.
        """
        state = dict(checkpoint.state)
        counts = {name: state.pop(name, np.empty(0)) for name in ("done", "counters")}
        check_arrays(counts, {"done": np.empty(1, np.int64), "counters": self.chain.counters}, "the counts of a chain")
        done = int(counts["done"][0])
        longest = self.plan.tune + self.plan.length_of(MAX_EXTENSIONS if self.plan.until_converged else 0)
        require(0 <= done <= longest and bool((counts["counters"] >= 0).all()), "the counts of a chain")
        check_draws(checkpoint.draws, len(self.chain.tables.layout), max(done - self.plan.tune, 0))
        try:
            self.rng.bit_generator.state = checkpoint.rng_state
        except (ValueError, TypeError, KeyError, OverflowError):
            require(False, "the generator of a chain")
        self.chain.restore(state)
        self.chain.counters[:] = counts["counters"]
        self.blocks, self.done, self.started = checkpoint.n_blocks, done, True
