"""Chains that don't agree are run again, coupled to copies of themselves, where that costs little beside the scores."""

from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.posterior.diagnostics import chain_gap, gap_limit
from gpn_bayes.posterior.estimate import ess_of
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.prepared_run import PreparedRun
from gpn_bayes.sampling.run_chains import FINAL, Draws, run_chains

# Coupled copies of every chain: they take four times as long as the chains alone.
_TEMPERATURES = 4


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
    if drawn.interrupted or run.scorer.closed_form or coupled is None or chain_gap(drawn.parents) <= _limit(drawn):
        return drawn
    plan = run.plan._replace(sampler=coupled)
    tempered = run_chains(run, tables, checkpoints, progressbar, plan, f"{name}, tempered")
    return tempered if not tempered.interrupted and chain_gap(tempered.parents) < chain_gap(drawn.parents) else drawn


def _limit(drawn: Draws) -> float:
    """Return the largest gap that says nothing."""
    return gap_limit(ess_of(drawn.log_scores), drawn.log_scores.size, len(drawn.log_scores))
