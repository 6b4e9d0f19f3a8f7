"""Before a run: which pairs it can't join in either direction, and what could."""

import warnings
from pathlib import Path

from gpn_bayes.candidates.costs import gp_seconds
from gpn_bayes.data.kinds import NUMBER
from gpn_bayes.data.problems import argument
from gpn_bayes.posterior.impossible_pairs import impossible_pairs, listed_pairs, reason, remedy
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.sampling.prepared_run import PreparedRun

_PACKAGE = (str(Path(__file__).parents[1]),)
# Shorter runs need no warning of their length.
_LONG = 600.0


def warn_of_impossible_pairs(run: PreparedRun) -> None:
    """Warn that the score and the constraints leave pairs without an edge, in time to choose others.

    Parameters
    ----------
    run : PreparedRun
        What is going to be drawn.
    """
    pairs = [(i, j) for i, j in run.impossible_pairs]
    if not pairs:
        return
    record = RunRecord.read({**run.settings, "impossible_pairs": pairs})
    several = len(pairs) > 1
    counted = f"{len(pairs)} pairs of variables" if several else "1 pair of variables"
    ways = " or ".join(_ways_out(run, pairs))
    warnings.warn(
        f"{counted} can't be joined in either direction: {listed_pairs(pairs, run.scorer.names)}: "
        f"{reason(record)}; all answers take for granted that {'they have' if several else 'it has'} no edge"
        + (f"; {ways} can join {'them' if several else 'it'}" if ways else ""),
        UserWarning,
        skip_file_prefixes=_PACKAGE,
    )


def _ways_out(run: PreparedRun, pairs: list[tuple[int, int]]) -> list[str]:
    """Return what would allow an edge: another score, with the time it takes, or categories of 0 and 1 as numbers."""
    if not remedy(RunRecord.read(run.settings)):
        return []
    data, categories = run.data, run.scorer.categories
    levels = [len(own) for own in run.scorer.levels if own]
    seconds = gp_seconds(data.n_rows, int((~categories).sum()), levels)
    ways = ["score='gp'" + (f" (about {_duration(seconds)} of CPU time)" if seconds > _LONG else "")]
    concerned = sorted({v for pair in pairs for v in pair if categories[v]})
    left = categories.copy()
    left[concerned] = False
    if all(data.kinds[v] == "integer" for v in concerned) and not impossible_pairs(
        ~left[:, None] & left, run.forbidden
    ):
        ways.append(f"{argument('kinds', {data.names[v]: NUMBER for v in concerned})}")
    return ways


def _duration(seconds: float) -> str:
    hours = seconds / 3600
    return (
        f"{seconds / 60:.0f} minutes" if hours < 2 else f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days"
    )
