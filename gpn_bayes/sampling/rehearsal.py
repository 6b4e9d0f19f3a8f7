"""The first run on a machine: compile what it needs, in two processes at once.

A sampler takes 10 to 30 seconds of one processor to compile. numba compiles one function of a process at a time, so
that only another process can take some of that off the run; what it has compiled is found in the cache on disk.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.processes import interpreter, package_environment
from gpn_bayes._util.progress import progress_bar
from gpn_bayes.sampling.preparing import PreparedRun

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
    sampler = run.plan.sampler
    if sampler.compiled is None or _is_compiled(sampler.compiled[0]) or run.plan.cores < 2 or not sys.executable:
        return
    parts = sampler.compiled[1]
    # Scores of a closed form are compiled in no time, so that this process can take its share of the sampler.
    ours = parts[1:] if run.scorer.closed_form else ()
    theirs = [part for part in parts if part not in ours]
    with progress_bar(_TITLE, 2 + len(ours), progressbar) as advance, _other_process(sampler.name, theirs) as wait:
        _rehearse_score(run)
        advance(1)
        for part in ours:
            sampler.rehearse(part)
            advance(1)
        wait()
        advance(1)


def _is_compiled(entrance: Any) -> bool:
    """Return whether a function has been compiled since its source was last changed, or needn't be."""
    if not hasattr(entrance, "stats"):  # numba is switched off
        return True
    source = Path(entrance.py_func.__code__.co_filename)
    kept = Path(entrance.stats.cache_path).glob(f"{source.stem}.{entrance.py_func.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


@contextmanager
def _other_process(name: str, parts: Sequence[str]) -> Iterator[Callable[[], Any]]:
    """Let another process compile parts of a sampler; yields what waits for it. If it fails, the run compiles them."""
    lines = ["from gpn_bayes.samplers import by_name", *(f"by_name({name!r}).rehearse({part!r})" for part in parts)]
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


def _rehearse_score(run: PreparedRun) -> None:
    """Compile the scores by computing the first few, and what DAGs are asked first."""
    few = min(len(run.scorer.names) - 1, 2)
    for scorer in (run.drawn_under, run.scorer):
        scorer.score_sets(0, [tuple(range(1, 1 + size)) for size in range(few + 1)])
        if scorer.closed_form:
            scorer.table(0, range(1, 1 + few))
    graphs.cpdag(np.zeros((1, 3, 3), np.int8))
