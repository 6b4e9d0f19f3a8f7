"""The main road: data -> scores -> tables -> sampler -> weights -> GraphPosterior."""

import os
import sys
import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from gpn_bayes import scores
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.progress import Stages
from gpn_bayes.candidates.methods import SpaceContext
from gpn_bayes.candidates.spaces import find_candidates
from gpn_bayes.data import Dataset, read_data
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.diagnostics import (
    EXCUSED_FROM,
    GAP_LIMIT,
    REWEIGHTING_INTERRUPTED,
    Diagnostics,
    weight_warnings,
)
from gpn_bayes.posterior.run_record import INTERRUPTED
from gpn_bayes.sampling.agreeing_chains import run_agreeing_chains
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.completed_tables import draw_completed
from gpn_bayes.sampling.corrected_proposal import CorrectedProposal
from gpn_bayes.sampling.linear_scouts import scout
from gpn_bayes.sampling.options import DEFAULTS, RunOptions
from gpn_bayes.sampling.order_bias import log_order_bias_weights
from gpn_bayes.sampling.prepared_run import PreparedRun, prepare
from gpn_bayes.sampling.rehearsal import compile_first
from gpn_bayes.sampling.result import (
    draws_under_score,
    exact_answers,
    under_proposal,
    with_caveats,
    with_errors,
    with_weights,
)
from gpn_bayes.sampling.reweighting import Reweighted, reweight_draws
from gpn_bayes.sampling.rounds import grow
from gpn_bayes.sampling.score_tables import Tabulator
from gpn_bayes.sampling.unjoinable import warn_of_impossible_pairs
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.workers import check_executor

# Where weights leave a smaller share of the draws, DAGs are drawn again, at most this often, under the target scores
# that are known by then.
_EVEN_SHARE = 0.8
_MAX_ATTEMPTS = 2
# Standard deviations from the mean beyond which an outlier makes a long tail.
_LONG_TAIL = 10.0


def sample(
    data: Any,
    score: Any = DEFAULTS.score,
    *,
    sampler: str = DEFAULTS.sampler,
    draws: int = DEFAULTS.draws,
    tune: int = DEFAULTS.tune,
    chains: int = DEFAULTS.chains,
    cores: int | None = DEFAULTS.cores,
    random_seed: int | None = DEFAULTS.random_seed,
    thin: int | str = DEFAULTS.thin,
    until: str | None = DEFAULTS.until,
    temperatures: int = DEFAULTS.temperatures,
    prior: Any = DEFAULTS.prior,
    required: Any = DEFAULTS.required,
    forbidden: Any = DEFAULTS.forbidden,
    tiers: Any = DEFAULTS.tiers,
    max_parents: int | None = DEFAULTS.max_parents,
    candidates: Any = DEFAULTS.candidates,
    plus_one: bool | str = DEFAULTS.plus_one,
    expand: float | bool | str = DEFAULTS.expand,
    reweight: str | None = DEFAULTS.reweight,
    order_bias: str = DEFAULTS.order_bias,
    missing: str = DEFAULTS.missing,
    imputations: int = DEFAULTS.imputations,
    kinds: Mapping[str, Any] | None = None,
    targets: Any = None,
    intervention: str | None = None,
    contexts: Any = None,
    target_probability: float | None = None,
    target_penalty: float | None = None,
    weights: Any = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progressbar: bool = True,
) -> GraphPosterior:
    """Draw DAGs from the posterior given data.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Dataset or SufficientStatistics
        Variables are columns.
    score : Score or str, default "bge"
        How to score a node given its parents: "bge" for linear relations, "gp" for unknown smooth ones; "bdeu" or "k2"
        for categories; "cg" for both in one table, with linear relations, and "gp" takes both too; "bic", which is no
        marginal likelihood but close to one of many rows, for any of these.
    sampler : {"auto", "exact", "partition", "order"}
        "exact" draws independently and, unless the draws are weighted to another score, knows edge
        probabilities without Monte Carlo error, for up to 17 variables (at 17 it takes a gigabyte);
        "partition" is MCMC under the uniform prior over DAGs; "order" is MCMC that favours DAGs with
        many orders, unless corrected. "auto" is exact for up to 16 variables (15 where scores have no closed form,
        such as "gp"), unless parents from outside the candidates are allowed, else partition.
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    chains : int
        Independent chains.
    cores : int, optional
        Threads; as many as there are processors by default. The result doesn't depend on it.
    random_seed : int, optional
        The same seed gives the same draws. Without one, a killed run can't go on where it stopped.
    thin : int or "auto"
        Steps of a chain before each draw; ten per variable by default.
    until : {None, "converged"}
        "converged" looks at the chains after each quarter of the draws and stops as soon as they agree (on the log
        score: R-hat up to 1.05 and 400 effective draws; on every edge: within 0.05, or, once each chain has 800
        effective draws, within what chance explains of independent `draws`: 0.09 for 1000, 0.06 for 2000, 0.05 from
        3200 on). Where they don't at the end, it keeps every second draw and goes on with twice the thinning, up to 32
        times the planned length; memory stays as planned. If even that isn't enough, a warning says so.
    temperatures : int, default 1
        More than one couples every chain of the partition sampler to copies of itself under flattened scores, which
        cross what it can't; each takes as long as the chain. Try 4 to 8 where chains don't agree. Chains under slow
        scores, such as "gp", are coupled to 4 by themselves if they don't.
    prior : {"uniform", "fair"}, table of edge probabilities, or GraphPrior
        See `gpn_bayes.scores.GraphPrior`.
    required, forbidden : edges (parent, child)
        Edges that must, or must not, be there.
    tiers : groups of names, or mapping of names to numbers, optional
        No edge leads from a later tier to an earlier one.
    max_parents : int, optional
        Largest number of parents of a node. By default 5 for the "gp" score and no limit for others, except that
        scores of categories take as many as keep their time to minutes, and at least 3.
    candidates : dict, networkx.DiGraph, fitted estimator, str, list of str, or int, optional
        Candidate parents of each variable, at most 20 each, by name: ``{"erk": ["mek", "pka"], "raf": []}`` gives raf
        none, and leaves those not named with what they have by default. A graph names all there are: variables that
        aren't in it, or have no edge to them, have none. Or an estimate, whose edges make both their ends candidates of
        each other; or how to find them, up to 12 each: "pc", "dual-pc", "greedy" (forward selection under the score),
        "correlation", "distance-correlation", or several of these; or how many to begin with.
        By default the exact sampler takes all others, and MCMC too where they are at most 14. Beyond,
        those found by "pc" and "greedy", or only "greedy" for "gp" and for categories, for which other methods have no
        numbers; they are filled up by the score, to 14 of up to 27 variables under "bge" and fewer where there are more
        or scores take longer. Parents that aren't candidates have probability zero, unless `plus_one` lets them in.
    plus_one : bool or "auto"
        Whether every variable may also have one parent that isn't among its candidates; "auto" for those variables
        whose candidates are found by a method or an estimate.
    expand : bool, float or "auto"
        Whether to draw in rounds before: parents from outside whose probability reaches 0.05, or the number given,
        become candidates, until a round finds no more. "auto" where `plus_one` is on. Under "gp" a short run under
        "bge" comes first, on tables of numbers.
    reweight : {"auto", None}
        "auto" draws DAGs under a quicker, rougher score where `score` offers one ("gp" offers Laplace's approximation),
        computes `score` itself only for the parent sets that were drawn, and weights the draws by the ratio of the two.
        None draws under `score` itself: slower, but the exact sampler then knows edge probabilities without Monte Carlo
        error. Scores without a closed form are computed for all parent sets where there are up to a thousand; where
        there are more, for those that count, and the diagnostics say about how much the others hold.
    order_bias : {"keep", "correct"}
        For order MCMC: "correct" weights each draw by one over the number of its orders.
    missing : {"error", "drop", "impute"}
        Whether to refuse missing values, to drop the rows that have some, or to draw the values along with the DAGs,
        given that they are missing at random; the settings of the posterior say how many there were. "impute" is for
        "bge", "cg", "bdeu" and "k2", whose chains alternate between DAGs and missing values, without parents from
        outside the candidates; and for "gp", which has a run of its own for each of several completed tables, drawn by
        the networks of "bge" (or "cg"). `GraphPosterior.imputed` returns completed tables. `Dataset.read` has further
        settings for reading a table.
    imputations : int, default 5
        How many completed tables these are: 2 or more, at most five per chain.
    kinds : mapping of str to str or sequence, optional
        What columns are, whatever they look like: "number", "category", "binary" or "ordered", or a list of the levels
        of an ordered column, the lowest first.
    targets : str or sequence, optional
        Which variables an experiment changed in each row: the name of a column, which is then no variable, or a
        sequence with an entry for each row. An entry is empty where all variables were only observed, a name, several
        names joined by ";", or a list of names.
    intervention : {"perfect", "soft"}, optional
        What it did to them: "perfect", the default, set them from outside, so these rows tell nothing of their parents;
        "soft" changed how they depend on the same parents, so these rows have parameters of their own.
    contexts : str or sequence, optional
        Where it isn't known what experiments changed: the experiment of each row, given as targets are. Rows without
        one are the reference, in which nothing was changed; if there are none, those of the first row's experiment.
        All sets of contexts (at most 12 besides the reference) that may have changed a variable are summed over, and
        `GraphPosterior.target_probabilities` tells which ones did.
    target_probability : float, optional
        The prior probability that a context changed a variable; 0.1 by default.
    target_penalty : float, optional
        Instead, what each change costs: this much is subtracted from the log score.
    weights : str or sequence, optional
        How many rows each row stands for: the name of a column, which is then no variable, or a sequence with a number
        for each row. Whole numbers are frequencies, and the answers those of a table in which each row stands that many
        times. Any others are survey weights, scaled to add up to the number of rows; see `Dataset.read`.
    cache : path, optional
        An SQLite file for scores and checkpoints: a killed run, started again with the same arguments and
        seed, goes on from there to the same result.
    executor : concurrent.futures.Executor, optional
        Where to compute scores that have no closed form; threads by default.
    progressbar : bool, default True
        Whether to show progress, on stderr.

    Returns
    -------
    GraphPosterior
        After Ctrl-C, with the draws made so far; a second Ctrl-C, or one while they are weighted, leaves them as draws
        under the proposal score, with a warning. Scores that are estimates have errors, which all DAGs share and more
        draws don't average out; the errors of all answers include them.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> post = gpn.sample(gpn.datasets.sachs(transform="log2"), score="bge", max_parents=2,
    ...                   draws=100, random_seed=1, progressbar=False)
    >>> post.edge_probability("raf", "mek").value > 0.1
    True
    """
    check_executor(executor)
    options = RunOptions(
        score, sampler=sampler, draws=draws, tune=tune, chains=chains, cores=cores, random_seed=random_seed,
        thin=thin, until=until, temperatures=temperatures, prior=prior, required=required, forbidden=forbidden,
        tiers=tiers, max_parents=max_parents, candidates=candidates, plus_one=plus_one, expand=expand,
        reweight=reweight, order_bias=order_bias, missing=missing, imputations=imputations,
    )  # fmt: skip
    reading = {
        "kinds": kinds, "targets": targets, "intervention": intervention, "contexts": contexts,
        "target_probability": target_probability, "target_penalty": target_penalty, "weights": weights,
    }  # fmt: skip
    if any(given is not None for given in reading.values()):
        data = read_data(data, declared=scores.by_name(score).declared, missing=missing, **reading)
    run = prepare(data, options)
    if progressbar:
        for text in filter(None, (run.kinds, run.either)):
            print(text, file=sys.stderr, flush=True)
    warn_of_impossible_pairs(run)
    if long := _long_tails(run):
        # In time to stop and transform the table, not after an hour.
        warnings.warn(
            f"columns with long tails make scores take many times as long; consider logarithms of {', '.join(long)}",
            UserWarning,
            stacklevel=2,
        )
    post = draw(run, cache=cache, executor=executor, progressbar=progressbar)
    for text in run_warnings(post, draws):
        warnings.warn(text, UserWarning, stacklevel=2)
    return post


def _long_tails(run: PreparedRun) -> list[str]:
    """Return the columns whose farthest outliers leave all else within a small part of their range."""
    if run.scorer.closed_form or not isinstance(run.data, Dataset) or run.imputation is not None:
        return []
    flagged = {name for flag in run.data_flags or () if flag.kind == "outliers" for name in flag.columns}
    columns = zip(run.data.names, run.data.values.T, strict=True)
    return [
        name
        for name, column in columns
        if name in flagged and np.abs(column - column.mean()).max() > _LONG_TAIL * column.std()
    ]


def draw(
    run: PreparedRun,
    *,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progressbar: bool = True,
    keep_checkpoints: bool = False,
) -> GraphPosterior:
    """Draw a prepared run; with fewer draws than planned after Ctrl-C.

    Parameters
    ----------
    run : PreparedRun
        What to draw.
    cache, executor, progressbar
        As for `sample`.
    keep_checkpoints : bool, default False
        Whether the draws stay in the cache at the end, for a caller that has yet to write them elsewhere.
    """
    if run.imputation is not None and run.imputation.tables:
        return draw_completed(run, run.imputation, draw, cache, executor, progressbar)
    with ScoreCache(run.scorer, cache) as store:
        proposal_store = store
        if run.proposal is not None:
            proposal_store = ScoreCache(run.proposal, store.connection, table="proposal_scores")
        checkpoints = None
        if store.connection is not None and run.random_seed is not None:
            checkpoints = CheckpointStore(store.connection)
        stages = Stages(progressbar)
        with stages.stage("Compiling"):
            compile_first(run, progressbar)
        with stages.stage("Candidates"):
            candidates = find_candidates(
                run.space, SpaceContext(run.complete_data, proposal_store, executor, progressbar)
            )
            scouted = scout(run, checkpoints, progressbar)
        tabulator = Tabulator(proposal_store, run.prior, executor, progressbar)
        with stages.stage("Scores"):
            space, rounds, audited = grow(run, candidates.lists, tabulator, checkpoints, progressbar, scouted)
            tables = tabulator.tables(space)
        with stages.stage("Sampling"):
            drawn = run_agreeing_chains(run, tables, checkpoints, progressbar)
        correction = log_order_bias_weights(drawn.parents) if run.settings["order_bias"] == "corrected" else None
        weighted = None
        if run.proposal is not None:
            # What was drawn is worth more than an exception.
            with suppress(KeyboardInterrupt), stages.stage("Reweighting"):
                weighted = reweight_draws(drawn.parents, proposal_store, store, correction, executor, progressbar)
        seen = drawn.parents
        with suppress(KeyboardInterrupt):  # ends the attempts; the draws made before stay
            for attempt in range(_MAX_ATTEMPTS if audited is not None else 0):
                if weighted is None or _effective_share(weighted) >= _EVEN_SHARE:
                    break
                closer = CorrectedProposal(seen, proposal_store, store)
                with stages.stage("Sampling"):
                    tables = tabulator.tables(space, correction=closer)
                    again = run_agreeing_chains(run, tables, checkpoints, progressbar, f"Sampling {attempt + 2}")
                if again.interrupted:
                    break
                with stages.stage("Reweighting"):
                    bias = log_order_bias_weights(again.parents) if correction is not None else None
                    reweighted = reweight_draws(again.parents, closer, store, bias, executor, progressbar)
                seen = np.concatenate([seen, again.parents], axis=1)
                if _effective_share(reweighted) > _effective_share(weighted):
                    drawn, correction, weighted = again, bias, reweighted
        stages.finish()
        complete = not drawn.interrupted and (run.proposal is None or weighted is not None)
        if checkpoints is not None and complete and not keep_checkpoints:
            checkpoints.forget(run.key)
    space_record = {
        **candidates.report.parameters,
        "sizes": list(map(len, space.lists)),
        "plus_one": any(space.outside),
        "rounds": [done.parameters for done in rounds],
        "sets": None if audited is None else audited.parameters,
    }
    post = draws_under_score(run, drawn, correction, space_record)
    if run.proposal is None:
        answers = exact_answers(tables, space.lists, progressbar) if run.plan.sampler == "exact" else None
        post = replace(with_errors(post, store), exact=answers)
    elif weighted is None:
        post = under_proposal(post, run, run.proposal)
    else:
        post = with_weights(post, weighted)
    return with_caveats(post, run)


def _effective_share(weighted: Reweighted) -> float:
    """Return what share of the draws the weights leave."""
    weights = np.exp(weighted.log_weights)
    return effective_size(weights) / weights.size


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
    if post.settings.get("interrupted"):
        texts.append(f"interrupted: {post.log_score.shape[1]} of {draws} draws of each chain were made")
    elif post.settings.get("converged") is False:
        diagnostics = post.diagnostics()
        texts.append(
            "\n".join([f"not converged: {diagnostics.summary}", *diagnostics.warnings()]) + _too_few(diagnostics)
        )
    if post.settings["reweight"] == INTERRUPTED:
        texts.append(REWEIGHTING_INTERRUPTED)
    elif post.settings["reweight"] is not None:
        pareto_k = post.settings["pareto_k"]
        pareto_k = np.nan if pareto_k is None else pareto_k
        texts += weight_warnings(pareto_k, effective_size(post.weights), post.log_score.size)
    return texts


def _too_few(diagnostics: Diagnostics) -> str:
    """Return in words that a gap is no more than chance, but draws are too few to call that agreement."""
    if not GAP_LIMIT < diagnostics.largest_gap <= diagnostics.gap_limit:
        return ""
    few = diagnostics.ess < EXCUSED_FROM * diagnostics.chains
    more = f"well over {EXCUSED_FROM} of each chain" if few else "more, or thin more"
    return f"\nChance may explain the gap, but would hide one as large: draw {more}."
