"""Rounds of short chains, between which the search space and the scored sets grow by what was drawn.

They stand on the road that all take, since under BGe, too, a space grows by the draws. Where scores are slow, the same
draws also tell which sets to score next, so that neither can be done without the other; which sets these are, and what
the others hold, is found in `sampling.slow_scores`.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Floats
from gpn_bayes.candidates.costs import grown_up_to, most_candidates
from gpn_bayes.candidates.growth import THRESHOLD, GrowthRule, Round
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.sampling.chains import Draws, run_chains
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.preparing import Plan, PreparedRun
from gpn_bayes.sampling.slow_scores.neglected_mass import Audit, audit
from gpn_bayes.sampling.slow_scores.scored_sets import drawn_contexts
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores.workers import ParentSet

# Sets are settled when no more than this share of the nodes of a DAG have one that had no score a round before, and an
# audit expects no more than the second number of the posterior of a node's parents in sets without a score.
_SETTLED = 0.002
_NEGLECTED = 0.005
# DAGs are also drawn under scores to this power: they show what is probable where the chains aren't, as in other DAGs
# of an equivalence class. There, sets of a probability below the second number don't count. On linear data (nine
# variables, 300 rows), 0 to 11 % of the posterior was left out without this, and up to 0.1 % with it.
_FLAT = 0.25
_LOG_NEGLIGIBLE_FLAT = np.log(0.01)
INTERRUPTED = "interrupted before the search space was found"
# Rounds at most, and draws and tuning of each chain in a round, which needn't be precise.
MAX_ROUNDS = 10
DRAWS_OF_ROUND = 200


class Scouted(NamedTuple):
    """What chains under another score drew.

    Attributes
    ----------
    sets : list of (int, tuple of int)
        Nodes and parent sets that were drawn more than rarely.
    probabilities : ndarray of shape (n, n)
        Probabilities of edges, rows parents.
    """

    sets: list[tuple[int, ParentSet]]
    probabilities: Floats


class Growth(NamedTuple):
    """What rounds lead to.

    Attributes
    ----------
    space : ParentSpace
        The space to draw from.
    rounds : list of Round
        What every round did to it.
    audit : Audit or None
        What is known of the sets without a score; None where all have one.
    """

    space: ParentSpace
    rounds: list[Round]
    audit: Audit | None


def grow(
    run: PreparedRun,
    lists: list[list[int]],
    tabulator: Tabulator,
    checkpoints: CheckpointStore | None = None,
    progressbar: bool = True,
    scouted: Scouted | None = None,
) -> Growth:
    """Return the space to draw from, after the rounds that let it grow.

    Parameters
    ----------
    run : PreparedRun
        The run; without a threshold for parents from outside, the candidates stay as they are.
    lists : list of list of int
        The candidates of every node before the first round.
    tabulator : Tabulator
        Makes the tables of a space; where these leave sets out, those that count in the draws are scored.
    checkpoints : CheckpointStore, optional
        Where rounds that were interrupted go on from.
    progressbar : bool
        Whether to show progress.
    scouted : Scouted, optional
        Where to look first: sets to score before the first round, if the space holds them when their parents have
        become candidates as far as it may grow.

    Returns
    -------
    Growth
        The space, the last one where it is not stable after ten rounds, and what was done.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the draws of the round are in the checkpoints.
    """
    space = run.parent_space(lists)
    rounds: list[Round] = []
    expands = run.expand is not None and any(space.outside)
    if not expands and not tabulator.leaves_out(space):
        return Growth(space, rounds, None)
    n = len(lists)
    rule = GrowthRule(run.expand or THRESHOLD, limit=most_candidates(n), most=grown_up_to(n, run.drawn_under))
    plan = short(run.plan)
    audited = None
    if scouted is not None:
        if expands:
            # Candidates stay, whatever their probability under the other score.
            listed = [np.isin(np.arange(n), own) for own in space.lists]
            lists, _ = rule.next_lists(space, np.where(np.transpose(listed), 1.0, scouted.probabilities))
            space = run.parent_space(lists)
        if tabulator.leaves_out(space):
            tabulator.scored.begin(space)
            tabulator.scored.add((i, parents) for i, parents in scouted.sets if space.holds(i, set(parents)))
    counts = [0] * n
    while len(rounds) < MAX_ROUNDS:
        name = f"Round {len(rounds) + 1}"
        # Rounds end when the space is stable, or when there were this many.
        most = f" of at most {MAX_ROUNDS}"
        leaves_out = tabulator.leaves_out(space)
        drawn = run_chains(run, tabulator.tables(space), checkpoints, progressbar, plan, name, name + most)
        if drawn.interrupted:
            raise KeyboardInterrupt(INTERRUPTED)
        done = Round(0, 0, 0)
        if expands:
            lists, done = rule.next_lists(space, np.where(run.prior.required, 1.0, edge_frequencies(drawn)))
        rounds.append(done)
        if done.added > 0:
            space = run.parent_space(lists)
        stable = done.is_stable(space) and tabulator.leaves_out(space) == leaves_out
        if leaves_out:
            contexts = drawn_contexts(drawn.parents)
            used = tabulator.scored.drawn_since(drawn.parents, counts)
            counts = tabulator.scored.counts
            tables, title = tabulator.tables(space, _FLAT), f"{name}{most}, flat"
            flat = run_chains(run, tables, checkpoints, progressbar, plan, f"{name}, flat", title)
            if flat.interrupted:
                raise KeyboardInterrupt(INTERRUPTED)
            tabulator.scored.extend(space, drawn_contexts(flat.parents), _LOG_NEGLIGIBLE_FLAT)
            stable &= used + tabulator.scored.extend(space, contexts) <= _SETTLED * n
            if stable or len(rounds) == MAX_ROUNDS:
                rng = np.random.default_rng(None if run.random_seed is None else [run.random_seed, len(rounds)])
                audited = audit(tabulator.scored, contexts, run.max_parents, rng)
                stable &= audited.neglected_mass <= _NEGLECTED
        if stable:
            break
    return Growth(space, rounds, audited)


def edge_frequencies(drawn: Draws) -> Floats:
    """Return how often DAGs drawn by all chains together have each edge, rows parents."""
    shares: Floats = graphs.edge_shares(drawn.parents, np.ones(drawn.parents.shape[:2])).mean(axis=0)
    return shares


def short(plan: Plan) -> Plan:
    """Return the plan of a round, from that of a run."""
    return plan._replace(
        draws=min(plan.draws, DRAWS_OF_ROUND),
        tune=min(plan.tune, DRAWS_OF_ROUND),
        thin=max(plan.thin // 2, 1),
        until_converged=False,
    )
