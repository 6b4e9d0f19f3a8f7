"""The first run on a machine: compile what it needs, in two processes at once.

A sampler takes 10 to 30 seconds of one processor to compile. numba compiles one function of a process at a time, so
that only another process can take some of that off the run; what it has compiled is found in the cache on disk.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numba import typeof

from gpn_bayes import graphs
from gpn_bayes._util.processes import interpreter, package_environment
from gpn_bayes._util.progress import progress_bar
from gpn_bayes.mcmc import chains
from gpn_bayes.mcmc.choices import no_script
from gpn_bayes.mcmc.exact_draws import draw_exact
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.mcmc.partition import PartitionState
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.mcmc.tempering import run_tempered
from gpn_bayes.sampling.chain import Plan
from gpn_bayes.sampling.chain_kinds import new_chains
from gpn_bayes.sampling.prepared_run import PreparedRun

_N = 3
_TITLE = "Compiling (first run only)"


def compile_first(run: PreparedRun, progressbar: bool = True) -> None:
    """Compile sampler and scores, if the sampler has never been compiled on this machine.

    Parameters
    ----------
    run : PreparedRun
        The run that is about to start.
    progressbar : bool
        Whether to show progress.
    """
    sampler = _Sampler.of(run.plan)
    if _is_compiled(sampler.entrance) or run.plan.cores < 2 or not sys.executable:
        return
    # Scores of a closed form are compiled in no time, so that this process can take its share of the sampler.
    ours = sampler.parts[1:] if run.scorer.closed_form else ()
    theirs = [part for part in sampler.parts if part not in ours]
    with progress_bar(_TITLE, 2 + len(ours), progressbar) as advance, _other_process(theirs) as wait:
        _rehearse_score(run)
        advance(1)
        for part in ours:
            rehearse(part)
            advance(1)
        wait()
        advance(1)


class _Sampler(NamedTuple):
    """How a sampler can be compiled.

    Attributes
    ----------
    entrance : compiled function
        The one that is compiled last.
    parts : tuple of str
        The parts it can be compiled in, the longest first.
    """

    entrance: Any
    parts: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return that of a plan."""
        if plan.sampler == "exact":
            return cls(draw_exact, ("exact draws", "exact answers"))
        if plan.sampler == "order":
            return cls(chains.run_order, ("order",))
        if plan.temperatures > 1:
            return cls(run_tempered, ("tempered", "walk"))
        return cls(chains.run_partition, ("partition", "walk"))


def _is_compiled(entrance: Any) -> bool:
    """Return whether a function has been compiled since its source was last changed, or needn't be."""
    if not hasattr(entrance, "stats"):  # numba is switched off
        return True
    source = Path(entrance.py_func.__code__.co_filename)
    kept = Path(entrance.stats.cache_path).glob(f"{source.stem}.{entrance.py_func.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


@contextmanager
def _other_process(parts: Sequence[str]) -> Iterator[Callable[[], Any]]:
    """Let another process compile parts; yields a function that waits for it. If it fails, the run compiles them."""
    lines = [f"from {__name__} import rehearse", *(f"rehearse({part!r})" for part in parts)]
    try:
        process = subprocess.Popen(
            interpreter("-c", "\n".join(lines)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=package_environment(),
        )
    except OSError:
        yield lambda: None
        return
    try:
        yield process.wait
    finally:
        process.kill()
        process.wait()


def rehearse(part: str) -> None:
    """Compile a part of a sampler by using it on three variables.

    Parameters
    ----------
    part : str
        A key of `PARTS`.

    Examples
    --------
    >>> rehearse("exact draws")
    """
    others = [[j for j in range(_N) if j != i] for i in range(_N)]
    if part.startswith("exact"):
        tables = build_tables(others, [np.zeros(4)] * _N)
    else:
        inside, outside = [own[:1] for own in others], [own[1:] for own in others]
        tables = build_tables(inside, [np.zeros(2)] * _N, outside, [np.zeros((1, 2))] * _N)
    PARTS[part](tables)


def _draw(sampler: str, temperatures: int = 1) -> Callable[[ScoreTables], None]:
    """Return a function that draws a few DAGs."""

    def draw(tables: ScoreTables) -> None:
        rng = np.random.default_rng(1)
        for chain in new_chains(sampler, temperatures, tables, np.zeros((_N, _N), bool), 1, False):
            chain.init(rng)
            chain.step(rng, 2, 2, tuning=True)

    return draw


def _walk_over_dags(tables: ScoreTables) -> None:
    """Compile what a partition chain calls to walk over DAGs."""
    state = PartitionState(np.zeros((6, _N + 1), np.int64), np.zeros(_N))
    parents, counters = np.zeros(_N, np.int64), np.zeros((len(chains.PARTITION_MOVES), 2), np.int64)
    given = (np.random.default_rng(1), no_script(), tables, state, np.ones(4), 1, parents, parents, counters)
    # It has no entrance from Python.
    chains.draw_dag.compile(tuple(map(typeof, given)))  # type: ignore[attr-defined]


def _answer(tables: ScoreTables) -> None:
    """Compile what knows edge probabilities without draws."""
    exact_probabilities(tables)


PARTS = {
    "exact draws": _draw("exact"),
    "exact answers": _answer,
    "partition": _draw("partition"),
    "tempered": _draw("partition", 2),
    "walk": _walk_over_dags,
    "order": _draw("order"),
}


def _rehearse_score(run: PreparedRun) -> None:
    """Compile the scores by computing the first few, and what DAGs are asked first."""
    few = min(len(run.scorer.names) - 1, 2)
    for scorer in (run.drawn_under, run.scorer):
        scorer.score_sets(0, [tuple(range(1, 1 + size)) for size in range(few + 1)])
        if scorer.closed_form:
            scorer.table(0, range(1, 1 + few))
    graphs.cpdag(np.zeros((1, _N, _N), np.int8))
