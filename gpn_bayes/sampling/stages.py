"""The stages of a run, from a state to the next: what to compile, candidates, scores, DAGs.

A state has all that the one before had, and what its own stage found. Two more stages, of runs that are drawn under
another score than their own, stand in `sampling.slow_scores.stages`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from gpn_bayes._util.progress import Stages
from gpn_bayes.candidates.methods import SpaceContext
from gpn_bayes.candidates.spaces import FoundCandidates, find_candidates
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.sampling.chains import Draws, run_agreeing_chains
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.preparing import PreparedRun
from gpn_bayes.sampling.rehearsal import compile_first
from gpn_bayes.sampling.rounds import Growth, Scouted, grow
from gpn_bayes.sampling.slow_scores.linear_scouts import scout
from gpn_bayes.sampling.slow_scores.reweighting import Reweighted
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores.cache import ScoreCache


@dataclass(frozen=True, eq=False)
class Begun:
    """A run whose scores have a place.

    Attributes
    ----------
    run : PreparedRun
        The run.
    store, proposal_store : ScoreCache
        The scores, and those that DAGs are drawn under: the same ones unless the run has a proposal.
    checkpoints : CheckpointStore or None
        Where chains that were interrupted go on from; None where they can't.
    executor : Executor or None
        Where to compute scores.
    progressbar : bool
        Whether to show progress.
    stages : Stages
        The lines that show it, one of each stage.
    """

    run: PreparedRun
    store: ScoreCache
    proposal_store: ScoreCache
    checkpoints: CheckpointStore | None
    executor: Executor | None
    progressbar: bool
    stages: Stages


@dataclass(frozen=True, eq=False)
class Searched(Begun):
    """A run that knows where to begin.

    Attributes
    ----------
    candidates : FoundCandidates
        The candidate parents of every node before any round.
    scouted : Scouted or None
        Where slow scores look first.
    """

    candidates: FoundCandidates
    scouted: Scouted | None


@dataclass(frozen=True, eq=False)
class Tabulated(Searched):
    """A run that has its scores.

    Attributes
    ----------
    tabulator : Tabulator
        Makes tables of them.
    growth : Growth
        The space to draw from, and how it came about.
    tables : ScoreTables
        Its tables.
    """

    tabulator: Tabulator
    growth: Growth
    tables: ScoreTables


@dataclass(frozen=True, eq=False)
class Sampled(Tabulated):
    """A run that has its draws.

    Attributes
    ----------
    drawn : Draws
        The DAGs.
    correction : ndarray or None
        Log weights that correct the order bias.
    weighted : Reweighted or None
        Weights from the proposal score to the run's own; None where there is no proposal, or Ctrl-C came before.
    """

    drawn: Draws
    correction: np.ndarray | None
    weighted: Reweighted | None = None


def begin(run: PreparedRun, store: ScoreCache, executor: Executor | None = None, progressbar: bool = True) -> Begun:
    """Return the first state of a run.

    Parameters
    ----------
    run : PreparedRun
        What to draw.
    store : ScoreCache
        The scores; the file behind it, if there is one, takes those of the proposal and checkpoints too.
    executor, progressbar
        As for `gpn_bayes.sample`.
    """
    proposal_store = store
    if run.proposal is not None:
        proposal_store = ScoreCache(run.proposal, store.connection, table="proposal_scores")
    checkpoints = None
    if store.connection is not None and run.random_seed is not None:
        checkpoints = CheckpointStore(store.connection)
    return Begun(run, store, proposal_store, checkpoints, executor, progressbar, Stages(progressbar))


def compile_parts(state: Begun) -> Begun:
    """Compile what the run needs, the first time on a machine."""
    with state.stages.stage("Compiling"):
        compile_first(state.run, state.progressbar)
    return state


def search(state: Begun) -> Searched:
    """Find the candidate parents, and where slow scores look first."""
    run = state.run
    with state.stages.stage("Candidates"):
        context = SpaceContext(run.complete_data, state.proposal_store, state.executor, state.progressbar)
        candidates = find_candidates(run.space, context)
        scouted = scout(run, state.checkpoints, state.progressbar)
    return Searched(**vars(state), candidates=candidates, scouted=scouted)


def tabulate(state: Searched) -> Tabulated:
    """Compute the scores, and let the space grow by what short chains draw under them."""
    run, checkpoints, progressbar = state.run, state.checkpoints, state.progressbar
    tabulator = Tabulator(state.proposal_store, run.prior, state.executor, progressbar)
    with state.stages.stage("Scores"):
        growth = grow(run, state.candidates.lists, tabulator, checkpoints, progressbar, state.scouted)
        tables = tabulator.tables(growth.space)
    return Tabulated(**vars(state), tabulator=tabulator, growth=growth, tables=tables)


def draw_dags(state: Tabulated) -> Sampled:
    """Draw the DAGs; after Ctrl-C, those made so far."""
    with state.stages.stage("Sampling"):
        drawn = run_agreeing_chains(state.run, state.tables, state.checkpoints, state.progressbar)
    return Sampled(**vars(state), drawn=drawn, correction=state.run.plan.sampler.log_weights(drawn.parents))


def finish(state: Sampled, keep_checkpoints: bool = False) -> Sampled:
    """Say what took the time, and forget where the chains of a run that is complete stood.

    Parameters
    ----------
    state : Sampled
        The last state.
    keep_checkpoints : bool
        Whether to remember it all the same.
    """
    state.stages.finish()
    complete = not state.drawn.interrupted and (state.run.proposal is None or state.weighted is not None)
    if state.checkpoints is not None and complete and not keep_checkpoints:
        state.checkpoints.forget(state.run.key)
    return state
