"""The stages of a run that is drawn under another score than its own: weights, and draws that need fewer of them."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from gpn_bayes._util.effective_size import effective_size
from gpn_bayes.sampling.chains import run_agreeing_chains
from gpn_bayes.sampling.slow_scores.corrected_proposal import CorrectedProposal
from gpn_bayes.sampling.slow_scores.reweighting import Reweighted, reweight_draws
from gpn_bayes.sampling.stages import Sampled

# Where weights leave a smaller share of the draws, DAGs are drawn again, at most this often, under the target scores
# that are known by then.
_EVEN_SHARE = 0.8
_MAX_ATTEMPTS = 2


def reweight(state: Sampled) -> Sampled:
    """Weight draws under the proposal score to the run's own; after Ctrl-C they stay without weights."""
    run, weighted = state.run, None
    if run.proposal is not None:
        # What was drawn is worth more than an exception.
        with suppress(KeyboardInterrupt), state.stages.stage("Reweighting"):
            weighted = reweight_draws(
                state.drawn.parents,
                state.proposal_store,
                state.store,
                state.correction,
                state.executor,
                state.progressbar,
            )
    return replace(state, weighted=weighted)


def draw_again(state: Sampled) -> Sampled:
    """Draw again, under a closer proposal, where weights are uneven; after Ctrl-C the best draws before it stay."""
    run, store, seen = state.run, state.store, state.drawn.parents
    with suppress(KeyboardInterrupt):  # ends the attempts; the draws made before stay
        for attempt in range(_MAX_ATTEMPTS if state.growth.audit is not None else 0):
            if state.weighted is None or _effective_share(state.weighted) >= _EVEN_SHARE:
                break
            closer = CorrectedProposal(seen, state.proposal_store, store)
            with state.stages.stage("Sampling"):
                tables = state.tabulator.tables(state.growth.space, correction=closer)
                name = f"Sampling {attempt + 2}"
                again = run_agreeing_chains(run, tables, state.checkpoints, state.progressbar, name)
            if again.interrupted:
                break
            with state.stages.stage("Reweighting"):
                bias = run.plan.sampler.log_weights(again.parents)
                weighted = reweight_draws(again.parents, closer, store, bias, state.executor, state.progressbar)
            seen = np.concatenate([seen, again.parents], axis=1)
            if _effective_share(weighted) > _effective_share(state.weighted):
                state = replace(state, drawn=again, correction=bias, weighted=weighted)
    return state


def _effective_share(weighted: Reweighted) -> float:
    """Return what share of the draws the weights leave."""
    weights = np.exp(weighted.log_weights)
    return effective_size(weights) / weights.size
