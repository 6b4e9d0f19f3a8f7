"""What a run warns of: before it, pairs that can't be joined and columns that take long; after it, what went wrong."""

import warnings
from pathlib import Path

import numpy as np

from gpn_bayes._util.effective_size import effective_size
from gpn_bayes.data.kinds import NUMBER
from gpn_bayes.data.problems import argument
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.diagnostics import (
    EXCUSED_FROM,
    GAP_LIMIT,
    REWEIGHTING_INTERRUPTED,
    Diagnostics,
    weight_warnings,
)
from gpn_bayes.posterior.impossible_pairs import OF_MIXED, impossible_pairs, listed_pairs, reason
from gpn_bayes.posterior.run_record import INTERRUPTED, RunRecord
from gpn_bayes.sampling.preparing import PreparedRun
from gpn_bayes.scores.slower import gp_seconds, in_words

_PACKAGE = (str(Path(__file__).parents[1]),)
# Shorter runs need no warning of their length.
_LONG = 600.0
# Standard deviations from the mean beyond which an outlier makes a long tail.
_LONG_TAIL = 10.0


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
    record = RunRecord.read({**run.settings, "impossible_pairs": pairs, "can_join": ways_to_join(run)})
    several = len(pairs) > 1
    counted = f"{len(pairs)} pairs of variables" if several else "1 pair of variables"
    warnings.warn(
        f"{counted} can't be joined in either direction: {listed_pairs(pairs, run.scorer.names)}: "
        f"{reason(record)}; all answers take for granted that {'they have' if several else 'it has'} no edge"
        + (f"; {record.can_join} can join {'them' if several else 'it'}" if record.can_join else ""),
        UserWarning,
        skip_file_prefixes=_PACKAGE,
    )


def long_tails(run: PreparedRun) -> list[str]:
    """Return the columns whose farthest outliers leave all else within a small part of their range.

    Parameters
    ----------
    run : PreparedRun
        What is going to be drawn; only slow scores care.
    """
    table = run.data.table
    if run.scorer.closed_form or table is None or run.imputation is not None:
        return []
    flagged = {name for flag in run.data_flags or () if flag.kind == "outliers" for name in flag.columns}
    columns = zip(table.names, table.values.T, strict=True)
    return [
        name
        for name, column in columns
        if name in flagged and np.abs(column - column.mean()).max() > _LONG_TAIL * column.std()
    ]


def run_warnings(post: GraphPosterior, draws: int) -> list[str]:
    """Return what the user should be warned of at once, in words.

    Parameters
    ----------
    post : GraphPosterior
        What `draw` returned.
    draws : int
        The number of draws of each chain that were asked for.
    """
    texts = []
    if post.record.interrupted:
        texts.append(f"interrupted: {post.log_score.shape[1]} of {draws} draws of each chain were made")
    elif post.record.converged is False:
        diagnostics = post.diagnostics()
        texts.append(
            "\n".join([f"not converged: {diagnostics.summary}", *diagnostics.warnings()]) + _too_few(diagnostics)
        )
    if post.record.reweight == INTERRUPTED:
        texts.append(REWEIGHTING_INTERRUPTED)
    elif post.record.reweight is not None:
        pareto_k = np.nan if post.record.pareto_k is None else post.record.pareto_k
        texts += weight_warnings(pareto_k, effective_size(post.weights), post.log_score.size, post.record.sampler)
    return texts


def ways_to_join(run: PreparedRun) -> str:
    """Return what can join its impossible pairs: another score, with the time it takes, or 0 and 1 as numbers.

    Parameters
    ----------
    run : PreparedRun
        What is drawn.
    """
    pairs = run.impossible_pairs
    if not pairs or RunRecord.read(run.settings).score_name not in OF_MIXED:
        return ""
    data, categories = run.data, run.scorer.categories
    levels = [len(own) for own in run.scorer.levels if own]
    seconds = gp_seconds(data.n_rows, int((~categories).sum()), levels)
    ways = ["score='gp'" + (f" ({in_words(seconds)})" if seconds > _LONG else "")]
    concerned = sorted({v for pair in pairs for v in pair if categories[v]})
    left = categories.copy()
    left[concerned] = False
    if all(data.kinds[v] == "integer" for v in concerned) and not impossible_pairs(
        ~left[:, None] & left, run.forbidden
    ):
        ways.append(argument("kinds", {data.names[v]: NUMBER for v in concerned}))
    return " or ".join(ways)


def _too_few(diagnostics: Diagnostics) -> str:
    """Return in words that a gap is no more than chance, but draws are too few to call that agreement."""
    if not GAP_LIMIT < diagnostics.largest_gap <= diagnostics.gap_limit:
        return ""
    few = diagnostics.ess < EXCUSED_FROM * diagnostics.chains
    more = f"well over {EXCUSED_FROM} of each chain" if few else "more, or thin more"
    return f"\nChance may explain the gap, but would hide one as large: draw {more}."
