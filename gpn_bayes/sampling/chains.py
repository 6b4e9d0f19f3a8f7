"""Chains, one of them block by block and all side by side: threads, checkpoints, when to stop, Ctrl-C.

Those of slow scores that don't agree are run again, coupled to copies of themselves, which costs little beside the
scores.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.checks import shown
from gpn_bayes._util.interrupts import noting_interrupts
from gpn_bayes._util.progress import progress_bar
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.posterior.diagnostics import chain_gap, gap_limit, have_converged
from gpn_bayes.posterior.estimate import ess_of
from gpn_bayes.samplers.chains import MarkovChain
from gpn_bayes.samplers.stored_chains import Arrays, check_arrays, check_draws, require
from gpn_bayes.sampling.checkpoint import Checkpoint, CheckpointStore
from gpn_bayes.sampling.missing_values.imputing_chains import imputing_chains
from gpn_bayes.sampling.preparing import Plan, PreparedRun

# What progress bars call the chains whose draws are kept, as opposed to those of rounds.
FINAL = "Sampling"
# A run until it has converged is looked at this often within its planned length.
_CHECKS = 4
# A block is what Ctrl-C waits for and what a kill can lose, in seconds.
_BLOCK_SECONDS = 0.3
_FIRST_BLOCK = 5
# The first blocks are too short to tell how long many draws take: none is more than this many times the one before.
_BLOCK_GROWTH = 8
# A run until it has converged doubles its thinning at most this many times: then it is 32 times as long as planned.
_MAX_EXTENSIONS = 5
# Coupled copies of every chain: they take four times as long as the chains alone.
_TEMPERATURES = 4


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

        Raises
        ------
        ValueError
            If a DAG that is kept, or the state it was drawn from, has no finite log score.
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
        self.block_size = int(np.clip(count * _BLOCK_SECONDS / took, 1, _BLOCK_GROWTH * self.block_size))
        self.done += count
        self.blocks += 1
        if kept < 0:
            return count, {}
        for values in (block.log_scores, block.targets):
            if not np.isfinite(values).all():
                received = shown(values[~np.isfinite(values)][0])
                raise ValueError(f"a chain must draw DAGs of finite log score; received {received}")
        return count, block._asdict()

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
        longest = self.plan.tune + self.plan.length_of(_MAX_EXTENSIONS if self.plan.until_converged else 0)
        require(0 <= done <= longest and bool((counts["counters"] >= 0).all()), "the counts of a chain")
        check_draws(checkpoint.draws, len(self.chain.tables.layout), max(done - self.plan.tune, 0))
        try:
            self.rng.bit_generator.state = checkpoint.rng_state
        except (ValueError, TypeError, KeyError, OverflowError):
            require(False, "the generator of a chain")
        self.chain.restore(state)
        self.chain.counters[:] = counts["counters"]
        self.blocks, self.done, self.started = checkpoint.n_blocks, done, True


class Draws(NamedTuple):
    """What chains have drawn.

    Attributes
    ----------
    parents, log_scores, targets : ndarray over (chain, draw)
        The DAGs, their log scores, and those of the states they were drawn from.
    counters : ndarray of shape (chains, moves, 2)
        Counts moves tried, and moves that changed the state.
    exchanges : ndarray of shape (chains, temperatures - 1, 2)
        Counts exchanges between coupled copies tried, and made.
    betas : ndarray of shape (chains, temperatures)
        The powers of the score that the copies had.
    thin : int
        Steps before each draw.
    interrupted : bool
        Whether Ctrl-C cut it short.
    converged : bool or None
        Whether the chains agreed in the end; None where this wasn't looked at.
    completed : ndarray of shape (tables, missing entries), or None
        What was drawn for missing entries, at some of the draws of each chain; None where none are missing.
    """

    parents: np.ndarray
    log_scores: np.ndarray
    targets: np.ndarray
    counters: np.ndarray
    exchanges: np.ndarray
    betas: np.ndarray
    thin: int
    interrupted: bool
    converged: bool | None
    completed: np.ndarray | None = None


def run_chains(
    run: PreparedRun,
    tables: ScoreTables,
    store: CheckpointStore | None = None,
    progressbar: bool = True,
    plan: Plan | None = None,
    name: str = FINAL,
    title: str | None = None,
) -> Draws:
    """Run the chains of a run, in threads; the result doesn't depend on their number.

    Parameters
    ----------
    run : PreparedRun
        The number of chains, their seed, and the edges that every DAG has.
    tables : ScoreTables
        The scores.
    store : CheckpointStore, optional
        Takes a checkpoint after every block; the same run goes on from there.
    progressbar : bool
        Whether to show progress.
    plan : Plan, optional
        How long to run; as the run has it by default.
    name : str
        Under another name than the default, chains have random numbers and checkpoints of their own.
    title : str, optional
        What the progress bar calls it; by default the name.

    Returns
    -------
    Draws
        After Ctrl-C, what all chains had drawn by then. With `until_converged` the planned number of draws, or fewer
        where the chains agreed sooner; where they didn't, of a longer run, of which every 2nd, 4th, … draw was kept.
    """
    plan = run.plan if plan is None else plan
    run_key = run.key if name == FINAL else f"{run.key}:{name}"
    chains: Sequence[MarkovChain]
    if run.imputation is None:
        chains = plan.sampler.chains(tables, run.prior.required, run.chains, progressbar)
        if len(chains) != run.chains:
            raise ValueError(f"a sampler must return {run.chains} chains; {plan.sampler.name!r} returned {len(chains)}")
        for chain in chains:
            if not isinstance(chain, MarkovChain):
                received = f"{plan.sampler.name!r} returned {type(chain).__name__}"
                raise ValueError(f"a sampler must return chains that are MarkovChain; {received}")
    else:
        chains = imputing_chains(run.imputation, plan, tables, run.prior, run.parent_space, run.chains)
    generators = _generators(run.random_seed, name, run.chains)
    chain_runs = [ChainRun(plan, chain, rng) for chain, rng in zip(chains, generators, strict=True)]
    kept: list[list[Arrays]] = [[] for _ in chain_runs]
    if store is not None:
        for c, chain_run in enumerate(chain_runs):
            checkpoint = store.load(run_key, c)
            if checkpoint is not None:
                chain_run.resume(checkpoint)
                if checkpoint.draws:
                    kept[c].append(checkpoint.draws)

    def keep(c: int, draws: Arrays) -> None:
        own = chain_runs[c]
        if store is not None:
            store.save_block(run_key, c, own.blocks - 1, draws, own.snapshot(), own.rng.bit_generator.state)
        if draws:
            kept[c].append(draws)

    converged = None
    for extension in range(_MAX_EXTENSIONS + 1 if plan.until_converged else 1):
        goals = _goals(plan, extension)
        interrupted = False
        part = title or name if extension == 0 else f"Thin {plan.thin << extension}"
        with progress_bar(part, len(chain_runs) * goals[-1], progressbar) as advance:
            advance(sum(min(chain.done, goals[-1]) for chain in chain_runs))
            for goal in goals:
                interrupted = _work_through(chain_runs, plan.cores, goal, keep, advance)
                if interrupted:
                    break
                if plan.until_converged:
                    converged = have_converged(*_joined(plan, kept, goal - plan.tune), planned=plan.draws)
                    if converged:
                        break
        if interrupted or converged:
            break
    return _collect(plan, chain_runs, kept, goal - plan.tune, interrupted, converged)


def run_agreeing_chains(
    run: PreparedRun,
    tables: ScoreTables,
    checkpoints: CheckpointStore | None = None,
    progressbar: bool = True,
    name: str = FINAL,
) -> Draws:
    """Run the chains of a run; of slow scores once more, tempered, if they don't agree on every edge.

    Parameters
    ----------
    run, tables, checkpoints, progressbar, name
        As for `run_chains`.

    Returns
    -------
    Draws
        Of the second time only if its chains agree better.
    """
    drawn = run_chains(run, tables, checkpoints, progressbar, name=name)
    coupled = run.plan.sampler.coupled(_TEMPERATURES)
    if drawn.interrupted or run.scorer.closed_form or coupled is None or chain_gap(drawn.parents) <= _chance_gap(drawn):
        return drawn
    plan = run.plan._replace(sampler=coupled)
    tempered = run_chains(run, tables, checkpoints, progressbar, plan, f"{name}, tempered")
    return tempered if not tempered.interrupted and chain_gap(tempered.parents) < chain_gap(drawn.parents) else drawn


def _chance_gap(drawn: Draws) -> float:
    """Return the largest gap that says nothing."""
    return gap_limit(ess_of(drawn.log_scores), drawn.log_scores.size, len(drawn.log_scores))


def _generators(random_seed: int | None, name: str, count: int) -> list[np.random.Generator]:
    """Return independent generators, different ones for every name."""
    entropy = random_seed if random_seed is None or name == FINAL else [random_seed, *name.encode()]
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(entropy).spawn(count)]


def _goals(plan: Plan, extension: int) -> list[int]:
    """Return how many DAGs each chain has drawn, tuning included, when the run is looked at."""
    if extension > 0 or not plan.until_converged:
        return [plan.tune + plan.length_of(extension)]
    return sorted({plan.tune + max(plan.draws * check // _CHECKS, 1) for check in range(1, _CHECKS + 1)})


def _work_through(
    chain_runs: list[ChainRun],
    cores: int,
    goal: int,
    keep: Callable[[int, Arrays], None],
    advance: Callable[[float], None],
) -> bool:
    """Let all chains draw up to a goal; returns whether Ctrl-C cut them short."""
    running: dict[Future[tuple[int, Arrays]], int] = {}
    waiting = [c for c, chain in enumerate(chain_runs) if chain.done < goal]
    interrupts: list[bool] = []
    with ThreadPoolExecutor(cores, "chain") as pool, noting_interrupts(lambda: interrupts.append(True)):
        while running or (waiting and not interrupts):
            while waiting and len(running) < cores and not interrupts:
                c = waiting.pop(0)
                running[pool.submit(chain_runs[c].draw_block, goal)] = c
            # The blocks under way are short: after Ctrl-C they end, and are kept.
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                c = running.pop(future)
                count, draws = future.result()
                keep(c, draws)
                advance(count)
                if chain_runs[c].done < goal:
                    waiting.append(c)
    return any(chain.done < goal for chain in chain_runs)


def _joined(plan: Plan, kept: list[list[Arrays]], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the DAGs and log scores of all chains up to a number of draws, thinned alike."""
    return _stacked(plan, kept, "parents", count), _stacked(plan, kept, "log_scores", count)


def _stacked(plan: Plan, kept: list[list[Arrays]], name: str, count: int) -> np.ndarray:
    """Join the blocks of every chain, cut to the same length; of what came before an extension keep every second."""
    rows = []
    for blocks in kept:
        everything = np.concatenate([block[name] for block in blocks])[:count]
        own = everything[: plan.draws]
        for extension in range(1, plan.extension_at(count - 1) + 1):
            own = np.concatenate([own[1::2], everything[plan.length_of(extension - 1) : plan.length_of(extension)]])
        rows.append(own)
    return np.stack(rows)


def _collect(
    plan: Plan,
    chain_runs: list[ChainRun],
    kept: list[list[Arrays]],
    wanted: int,
    interrupted: bool,
    converged: bool | None,
) -> Draws:
    """Return what the chains have drawn, at the same thinning and of the same length."""
    count = min(wanted, *(sum(len(block["log_scores"]) for block in blocks) for blocks in kept))
    if count == 0:
        raise KeyboardInterrupt("interrupted before the first draw was kept")
    infos = [own.chain.info() for own in chain_runs]
    return Draws(
        parents=_stacked(plan, kept, "parents", count),
        log_scores=_stacked(plan, kept, "log_scores", count),
        targets=_stacked(plan, kept, "targets", count),
        counters=np.stack([info.counters for info in infos]),
        exchanges=np.stack([info.exchanges for info in infos]),
        betas=np.stack([info.betas for info in infos]),
        thin=plan.thin << plan.extension_at(count - 1),
        interrupted=interrupted,
        converged=converged,
        completed=None if infos[0].completed is None else np.concatenate([info.completed for info in infos]),
    )
