"""Run chains side by side: threads, progress, checkpoints, when to stop, and a clean stop on Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.progress import progress_bar
from gpn_bayes.mcmc.exact_draws import LayeredWeights
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.mcmc.tempering import Ladder
from gpn_bayes.posterior.diagnostics import have_converged
from gpn_bayes.sampling.chain import MAX_EXTENSIONS, Arrays, Chain, Plan
from gpn_bayes.sampling.checkpoint import CheckpointStore

# A run until it has converged is looked at this often within its planned length.
_CHECKS = 4


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


def run_chains(
    plan: Plan,
    tables: ScoreTables,
    rngs: Sequence[np.random.Generator],
    start_order: Callable[[np.random.Generator], np.ndarray],
    weights: LayeredWeights | None = None,
    store: CheckpointStore | None = None,
    run_key: str = "",
    progressbar: bool = True,
    name: str = "Sampling",
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
    name : str
        What the progress bar calls it.

    Returns
    -------
    Draws
        After Ctrl-C, what all chains had drawn by then. With `until_converged` the planned number of draws, or fewer
        where the chains agreed sooner; where they didn't, of a longer run, of which every 2nd, 4th, … draw was kept.
    """
    all_chains = [Chain(plan, tables, rng, start_order, weights) for rng in rngs]
    kept: list[list[Arrays]] = [[] for _ in all_chains]
    if store is not None:
        for c, chain in enumerate(all_chains):
            found = store.load(run_key, c)
            if found is not None:
                chain.resume(found.n_blocks, found.state, found.rng_state)
                if found.draws:
                    kept[c].append(found.draws)

    def keep(c: int, draws: Arrays) -> None:
        chain = all_chains[c]
        if store is not None:
            store.save_block(run_key, c, chain.blocks - 1, draws, chain.snapshot(), chain.rng.bit_generator.state)
        if draws:
            kept[c].append(draws)

    converged = None
    for extension in range(MAX_EXTENSIONS + 1 if plan.until_converged else 1):
        goals = _goals(plan, extension)
        interrupted = False
        title = name if extension == 0 else f"Thin {plan.thin << extension}"
        with progress_bar(title, len(rngs) * goals[-1], progressbar) as advance:
            advance(sum(min(chain.done, goals[-1]) for chain in all_chains))
            for goal in goals:
                interrupted = _work_through(all_chains, plan.cores, goal, keep, advance)
                if interrupted:
                    break
                if plan.until_converged:
                    converged = have_converged(*_joined(plan, kept, goal - plan.tune), planned=plan.draws)
                    if converged:
                        break
        if interrupted or converged:
            break
    return _collect(plan, all_chains, kept, goal - plan.tune, interrupted, converged)


def _goals(plan: Plan, extension: int) -> list[int]:
    """Return how many DAGs each chain has drawn, tuning included, when the run is looked at."""
    if extension > 0 or not plan.until_converged:
        return [plan.tune + plan.length_of(extension)]
    return sorted({plan.tune + max(plan.draws * check // _CHECKS, 1) for check in range(1, _CHECKS + 1)})


def _work_through(
    all_chains: list[Chain],
    cores: int,
    goal: int,
    keep: Callable[[int, Arrays], None],
    advance: Callable[[float], None],
) -> bool:
    """Let all chains draw up to a goal; returns whether Ctrl-C cut them short."""
    running: dict[Future[tuple[int, Arrays]], int] = {}
    waiting = [c for c, chain in enumerate(all_chains) if chain.done < goal]
    with ThreadPoolExecutor(cores, thread_name_prefix="chain") as pool, _interrupts() as interrupts:
        while running or (waiting and not interrupts):
            while waiting and len(running) < cores and not interrupts:
                c = waiting.pop(0)
                running[pool.submit(all_chains[c].draw_block, goal)] = c
            # The blocks under way are short: after Ctrl-C they end, and are kept.
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                c = running.pop(future)
                count, draws = future.result()
                keep(c, draws)
                advance(count)
                if all_chains[c].done < goal:
                    waiting.append(c)
    return any(chain.done < goal for chain in all_chains)


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
    all_chains: list[Chain],
    kept: list[list[Arrays]],
    wanted: int,
    interrupted: bool,
    converged: bool | None,
) -> Draws:
    """Return what the chains have drawn, at the same thinning and of the same length."""
    count = min(wanted, *(sum(len(block["log_scores"]) for block in blocks) for blocks in kept))
    if count == 0:
        raise KeyboardInterrupt("interrupted before the first draw was kept")
    ladders = [chain.state for chain in all_chains if isinstance(chain.state, Ladder)]
    copies = plan.temperatures
    return Draws(
        parents=_stacked(plan, kept, "parents", count),
        log_scores=_stacked(plan, kept, "log_scores", count),
        targets=_stacked(plan, kept, "targets", count),
        counters=np.stack([chain.counters for chain in all_chains]),
        exchanges=np.array([ladder.exchanges for ladder in ladders]).reshape(len(ladders), copies - 1, 2),
        betas=np.array([ladder.betas for ladder in ladders]).reshape(len(ladders), copies),
        thin=plan.thin << plan.extension_at(count - 1),
        interrupted=interrupted,
        converged=converged,
    )
