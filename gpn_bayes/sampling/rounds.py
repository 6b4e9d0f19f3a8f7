"""Rounds of short chains, between which the search space grows by parents from outside that were drawn."""

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.candidates.costs import grown_up_to, most_candidates
from gpn_bayes.candidates.growth import GrowthRule, Round
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.sampling.chain import Plan
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.prepared_run import PreparedRun
from gpn_bayes.sampling.run_chains import run_chains
from gpn_bayes.sampling.score_tables import Tabulator

# Rounds at most, and draws and tuning of each chain in a round, which needn't be precise.
MAX_ROUNDS = 10
DRAWS_OF_ROUND = 200


def grow(
    run: PreparedRun,
    lists: list[list[int]],
    tabulator: Tabulator,
    checkpoints: CheckpointStore | None = None,
    progressbar: bool = True,
) -> tuple[ParentSpace, list[Round]]:
    """Return the space to draw from, after the rounds that let it grow.

    Parameters
    ----------
    run : PreparedRun
        The run; without a threshold for parents from outside, the space stays as it is.
    lists : list of list of int
        The candidates of every node before the first round.
    tabulator : Tabulator
        Makes the tables of a space.
    checkpoints : CheckpointStore, optional
        Where rounds that were interrupted go on from.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    ParentSpace
        The space; the last one where it is not stable after ten rounds.
    list of Round
        What every round did.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the draws of the round are in the checkpoints.
    """
    space = run.parent_space(lists)
    rounds: list[Round] = []
    if run.expand is None or not any(space.outside):
        return space, rounds
    n = len(lists)
    rule = GrowthRule(run.expand, limit=most_candidates(n), most=grown_up_to(n, run.drawn_under))
    plan = _short(run.plan)
    while len(rounds) < MAX_ROUNDS:
        name = f"Round {len(rounds) + 1}"
        drawn = run_chains(run, tabulator.tables(space), checkpoints, progressbar, plan, name)
        if drawn.interrupted:
            raise KeyboardInterrupt("interrupted before the search space was found")
        dags = drawn.parents.reshape(-1, *drawn.parents.shape[2:])
        probabilities = graphs.unpack(dags, n).mean(axis=0)
        lists, done = rule.next_lists(space, np.where(run.prior.required, 1.0, probabilities))
        rounds.append(done)
        if done.added > 0:
            space = run.parent_space(lists)
        if done.is_stable(space):
            break
    return space, rounds


def _short(plan: Plan) -> Plan:
    """Return the plan of a round."""
    return plan._replace(
        draws=min(plan.draws, DRAWS_OF_ROUND),
        tune=min(plan.tune, DRAWS_OF_ROUND),
        thin=max(plan.thin // 2, 1),
        until_converged=False,
    )
