"""The best DAG by dynamic programming over subsets, a share of them at a time."""

import numpy as np

from gpn_bayes._util.progress import progress_bar
from gpn_bayes.estimators.exact.outcome import Clock, Outcome
from gpn_bayes.estimators.exact.start import starting_rows
from gpn_bayes.kernels.learners.parent_sets import ParentSets
from gpn_bayes.kernels.learners.subset_search import LOW_BITS, best_rows, fill_values

MAX_NODES = 25
# Blocks between two looks at the clock: about a second at most.
_STEP = 256


def check_size(n: int) -> None:
    """Refuse more variables than memory can be expected to hold the subsets of."""
    if n > MAX_NODES:
        raise ValueError(
            f"dynamic programming takes at most {MAX_NODES} variables ({_gibibytes(MAX_NODES)} GiB); {n} would take "
            f"{_gibibytes(n)} GiB: use method='ilp'"
        )


def _gibibytes(n: int) -> str:
    return f"{2.0 ** (n - 27):,.4g}"


def dynamic_programme(sets: ParentSets, clock: Clock, rng: np.random.Generator, progressbar: bool = False) -> Outcome:
    """Return the best DAG; where the time is up or Ctrl-C comes first, one found by an ordering search.

    Parameters
    ----------
    sets : ParentSets
        What the nodes choose from; at most 25 nodes.
    clock : Clock
        When to stop.
    rng : Generator
        For the ordering search.
    progressbar : bool
        Whether to show progress.
    """
    n = len(sets.starts) - 1
    values = np.empty(1 << n)
    blocks = 1 << max(n - LOW_BITS, 0)
    done, interrupted = 0, False
    try:
        with progress_bar("Subsets", blocks, progressbar) as advance:
            while done < blocks and not clock.over:
                last = min(done + _STEP, blocks)
                fill_values(sets, values, done, last)
                advance(last - done)
                done = last
    except KeyboardInterrupt:
        interrupted = True
    statistics = {"subsets": done * (len(values) // blocks)}
    if done < blocks:
        return Outcome(
            starting_rows(sets, rng, clock), float(sets.scores[sets.starts[:-1]].sum()), interrupted, statistics
        )
    return Outcome(best_rows(sets, values), float(values[-1]), False, statistics)
