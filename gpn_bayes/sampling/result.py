"""From draws to a posterior: weights, errors of scores, exact answers, and what a reader should know of the run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.data import Dataset, Flag, SufficientStatistics, checked, noise_text
from gpn_bayes.data.weights import SURVEY, are_frequencies
from gpn_bayes.mcmc.exact_posterior import ExactPosterior
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.directions import any_known, is_equivalent, known_directions
from gpn_bayes.posterior.draws import ExactAnswers
from gpn_bayes.posterior.imputed_tables import completed_values
from gpn_bayes.posterior.run_record import INTERRUPTED, RunRecord
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling.chains import Draws
from gpn_bayes.sampling.preparing import PreparedRun
from gpn_bayes.sampling.slow_scores.reweighting import Reweighted, errors_of, poor_scores
from gpn_bayes.sampling.stages import Sampled
from gpn_bayes.sampling.warned import ways_to_join
from gpn_bayes.scores.base import GroupedScorer, Scorer
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.completing import MISSING_AT_RANDOM, complete_dataset
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.recorded import as_setting
from gpn_bayes.scores.residuals import residual_flags

# Pairs whose direction is open that are named.
_LISTED_PAIRS = 8


def as_posterior(state: Sampled) -> GraphPosterior:
    """Return the posterior of a run that has its draws.

    Parameters
    ----------
    state : Sampled
        The last state of the run.
    """
    run, space = state.run, state.growth.space
    post = _draws_under_score(run, state.drawn, state.correction, _space_record(state))
    if run.proposal is None:
        known = run.plan.sampler.answers(state.tables, state.progressbar)
        post = replace(_with_errors(post, state.store), exact=_exact_answers(known, state.tables, space.lists))
    elif state.weighted is None:
        post = _under_proposal(post, run, run.proposal)
    else:
        post = _with_weights(post, state.weighted)
    return _with_caveats(post, run)


def _space_record(state: Sampled) -> dict[str, Any]:
    """Return how the search space came about, JSON-able."""
    space, rounds, audited = state.growth
    return {
        **state.candidates.report.parameters,
        "sizes": list(map(len, space.lists)),
        "plus_one": any(space.outside),
        "rounds": [done.parameters for done in rounds],
        "sets": None if audited is None else audited.parameters,
    }


def _draws_under_score(
    run: PreparedRun, drawn: Draws, correction: np.ndarray | None, space_record: dict[str, Any]
) -> GraphPosterior:
    """Return the draws as they are, before any weighting to another score.

    Parameters
    ----------
    run : PreparedRun
        What was asked for.
    drawn : Draws
        What was drawn.
    correction : ndarray or None
        Log weights that correct the order bias.
    space_record : dict
        How the search space came about, JSON-able.
    """
    settings = {**run.settings, "thin": drawn.thin, "candidates": space_record}
    settings |= {"moves": _move_table(run.plan.sampler.move_names, drawn.counters)}
    if drawn.thin != run.plan.thin:
        settings["planned_thin"] = run.plan.thin
    if drawn.converged is not None:
        settings["converged"] = drawn.converged
    if drawn.interrupted:
        settings["interrupted"] = True
    if drawn.betas.shape[1] > 1:
        tried, made = drawn.exchanges.sum(axis=0).T
        settings |= {"betas": drawn.betas.mean(axis=0).tolist(), "exchange_rates": (made / tried).tolist()}
    return GraphPosterior(
        names=run.scorer.names,
        parents=drawn.parents,
        log_score=drawn.log_scores,
        log_weights=correction,
        stats={"state_log_score": drawn.targets},
        settings=settings,
        # A scorer of one completed table would answer for all of them.
        scorer=(
            DagScorer.of(run.scorer, run.prior, run.data)
            if run.imputation is None
            else DagScorer(run.scorer.score, run.prior, run.data)
        ),
        data=run.data,
        completed=drawn.completed,
    )


def _with_errors(post: GraphPosterior, store: ScoreCache) -> GraphPosterior:
    """Return draws with the errors of the scores they were drawn under, where these have any."""
    if store.scorer.closed_form:
        return post
    sets = drawn_sets(post.parents)
    records = store.records(sets.keys)
    errors = errors_of(sets, records)
    settings = {**post.settings, "poor_scores": poor_scores(records)}
    return replace(post, score_errors=errors if (errors != 0).any() else None, settings=settings)


def _with_weights(post: GraphPosterior, weighted: Reweighted) -> GraphPosterior:
    """Return draws under the proposal score as weighted draws under the target score."""
    return replace(
        post,
        log_score=post.log_score + weighted.log_ratios,
        log_weights=weighted.log_weights,
        score_errors=weighted.score_errors if (weighted.score_errors != 0).any() else None,
        stats={**post.stats, "proposal_log_score": post.log_score},
        settings={
            **post.settings,
            "pareto_k": None if np.isnan(weighted.pareto_k) else weighted.pareto_k,
            "poor_scores": weighted.poor_scores,
        },
    )


def _under_proposal(post: GraphPosterior, run: PreparedRun, proposal: Scorer) -> GraphPosterior:
    """Return draws that were never weighted as what they are: draws under the proposal score."""
    settings = {**post.settings, "score": as_setting(proposal.score), "reweight": INTERRUPTED}
    return replace(post, settings=settings, scorer=DagScorer.of(proposal, run.prior, run.data))


def _with_caveats(post: GraphPosterior, run: PreparedRun) -> GraphPosterior:
    """Return a posterior that knows what its answers assume, and what deserves a look in the data.

    Residuals are those of the best network drawn.
    """
    best = post.parents[np.unravel_index(int(post.log_score.argmax()), post.log_score.shape)]
    adjacency = graphs.unpack(best[None], len(post.names))[0]
    flags = run.data_flags
    if flags is not None:
        parents = [tuple(np.flatnonzero(column).tolist()) for column in adjacency.T]
        flags = (*flags, *checked({"residuals": lambda: _residual_flags(post, run, parents)}))
    settings = {
        "assumptions": [
            *run.scorer.assumptions,
            *_open_directions(run, adjacency),
            *_inexact(run.data),
            *([] if run.imputation is None else [MISSING_AT_RANDOM]),
        ],
        **({"kinds": run.kinds} if run.kinds else {}),
        **({"either_kind": run.either} if run.either else {}),
        **({"impossible_pairs": run.impossible_pairs} if run.impossible_pairs else {}),
        **({"can_join": ways} if (ways := ways_to_join(run)) else {}),
        **({"excluded": excluded} if (excluded := _excluded(run)) else {}),
        "data_flags": None if flags is None else [flag.record() for flag in flags],
    }
    return replace(post, settings={**post.settings, **settings})


def _residual_flags(post: GraphPosterior, run: PreparedRun, parents: list[tuple[int, ...]]) -> tuple[Flag, ...]:
    """Return what deserves a look in the residuals; where values were missing, of the table last completed.

    Not of complete rows: whether a row is complete may depend on the node itself, by way of its effects.
    """
    data = run.data.with_rows("residuals are of rows")
    if run.imputation is None:
        return residual_flags(run.scorer, data, parents, run.data_flags or ())
    if post.completed is None or not len(post.completed):
        return ()
    table = complete_dataset(data, completed_values(data, post.completed[-1]))
    return residual_flags(run.scorer, table, parents, run.data_flags or ())


def _inexact(data: Dataset | SufficientStatistics) -> list[str]:
    """Return in words that survey weights are taken for frequencies, or statistics with noise for exact ones."""
    if data.weights is not None and not are_frequencies(data.weights):
        return [SURVEY]
    if data.noise is None:
        return []
    return [f"The statistics are taken as exact, although they carry {noise_text(data)}."]


def _excluded(run: PreparedRun) -> dict[str, list[list[int]]]:
    """Return the edges that no DAG of the run can have, beside those that the prior forbids, by what excludes them."""
    by_score, lists = run.scorer.impossible, run.space.known
    found = {} if by_score is None or not by_score.any() else {"score": np.argwhere(by_score).tolist()}
    if run.space.source == "given" and not run.outside and None not in lists:
        n = len(lists)
        pairs = [[i, j] for j, own in enumerate(lists) for i in range(n) if i != j and i not in set(own or ())]
        found |= {"candidates": pairs} if pairs else {}
    return found


def _open_directions(run: PreparedRun, adjacency: np.ndarray) -> list[str]:
    """Return in words which directions of a network no data can tell, for scores that don't tell them."""
    scorer = run.scorer
    if not is_equivalent(scorer.assumptions):
        return []
    targets = scorer.target_sets(adjacency) if isinstance(scorer, GroupedScorer) else []
    record = RunRecord.read({"prior": run.prior.parameters, "excluded": _excluded(run)})
    known = known_directions(record, len(adjacency), targets)
    pattern = graphs.mpdag(adjacency, any_known(known, len(adjacency)))
    undirected = np.argwhere(np.triu(pattern & pattern.T)).tolist()
    if not undirected:
        return []
    shown = [f"{scorer.names[i]} - {scorer.names[j]}" for i, j in undirected[:_LISTED_PAIRS]]
    more = f" and {len(undirected) - len(shown)} more" if len(undirected) > len(shown) else ""
    return [f"In the best network drawn, this leaves open the direction of {', '.join(shown)}{more}."]


def _exact_answers(exact: ExactPosterior | None, tables: ScoreTables, lists: list[list[int]]) -> ExactAnswers | None:
    """Return edge and parent-set probabilities without Monte Carlo error, where the sampler knows them."""
    if exact is None:
        return None
    spans = list(zip(exact.offsets[:-1], exact.offsets[1:], strict=True))
    return ExactAnswers(
        edges=exact.edge_probabilities,
        log_z=exact.log_z,
        candidates=lists,
        log_scores=[tables.values[begin:end].copy() for begin, end in spans],
        parent_sets=[exact.parent_set_probabilities[begin:end] for begin, end in spans],
    )


def _move_table(moves: Sequence[str], counters: np.ndarray) -> dict[str, float]:
    """Return the share of each move's steps that changed the state."""
    tried, changed = counters.sum(axis=0).T
    if len(moves) != len(tried):  # a sampler of the user's own that names none
        moves = [f"move {k}" for k in range(1, len(tried) + 1)]
    return {move: float(c / max(t, 1)) for move, t, c in zip(moves, tried, changed, strict=True)}
