"""The main road: data -> scores -> tables -> sampler -> weights -> GraphPosterior."""

import os
import sys
import warnings
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Unpack

from gpn_bayes import scores
from gpn_bayes.candidates.space import Space
from gpn_bayes.data import TableKeywords, read_data
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.samplers import Sampler
from gpn_bayes.sampling.missing_values.completed_tables import draw_completed
from gpn_bayes.sampling.options import DEFAULTS, RunOptions, check_keywords
from gpn_bayes.sampling.preparing import PreparedRun, prepare
from gpn_bayes.sampling.result import as_posterior
from gpn_bayes.sampling.slow_scores.stages import draw_again, reweight
from gpn_bayes.sampling.stages import begin, compile_parts, draw_dags, finish, search, tabulate
from gpn_bayes.sampling.stated import stated_of
from gpn_bayes.sampling.warned import long_tails, run_warnings, warn_of_impossible_pairs
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.workers import check_executor


def sample(
    data: Any,
    score: Any = DEFAULTS.score,
    *,
    sampler: Sampler | str = "auto",
    space: Space | None = None,
    prior: Any = DEFAULTS.prior,
    required: Any = DEFAULTS.required,
    forbidden: Any = DEFAULTS.forbidden,
    tiers: Any = DEFAULTS.tiers,
    draws: int = DEFAULTS.draws,
    tune: int = DEFAULTS.tune,
    chains: int = DEFAULTS.chains,
    cores: int | None = DEFAULTS.cores,
    random_seed: int | None = DEFAULTS.random_seed,
    until: str | None = DEFAULTS.until,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progressbar: bool = True,
    **table: Unpack[TableKeywords],
) -> GraphPosterior:
    """Draw DAGs from the posterior given data.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Table, Dataset or SufficientStatistics
        Variables are columns.
    score : Score or str, default "bge"
        How to score a node given its parents: "bge" for linear relations, "gp" for unknown smooth ones; "bdeu" or "k2"
        for categories; "cg" for both in one table, with linear relations, and "gp" takes both too; "bic", which is no
        marginal likelihood but close to one of many rows, for any of these.
    sampler : Sampler or str, default "auto"
        How to draw: "exact", "partition", "order", or a sampler with options, such as
        ``gpn.samplers.Partition(temperatures=4)``; see `gpn_bayes.samplers`. "auto" is exact for up to 16 variables (15
        where scores have no closed form, such as "gp"), unless parents from outside the candidates are allowed, else
        partition.
    space : Space, optional
        Which parents each variable may have, such as ``gpn.Space(max_parents=3)``: see `gpn_bayes.Space`.
    prior : {"uniform", "fair"}, table of edge probabilities, or GraphPrior
        See `gpn_bayes.scores.GraphPrior`.
    required, forbidden : edges (parent, child)
        Edges that must, or must not, be there.
    tiers : groups of names, or mapping of names to numbers, optional
        No edge leads from a later tier to an earlier one.
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    chains : int
        Independent chains.
    cores : int, optional
        Threads; as many as there are processors by default. The result doesn't depend on it.
    random_seed : int, optional
        The same seed gives the same draws. Without one, a killed run can't go on where it stopped.
    until : {None, "converged"}
        "converged" looks at the chains after each quarter of the draws and stops as soon as they agree (on the log
        score: R-hat up to 1.05 and 400 effective draws; on every edge: within 0.05, or, once each chain has 800
        effective draws, within what chance explains of independent `draws`: 0.09 for 1000, 0.06 for 2000, 0.05 from
        3200 on). Where they don't at the end, it keeps every second draw and goes on with twice the thinning, up to 32
        times the planned length; memory stays as planned. If even that isn't enough, a warning says so.
    cache : path, optional
        An SQLite file for scores and checkpoints: a killed run, started again with the same arguments and
        seed, goes on from there to the same result.
    executor : concurrent.futures.Executor, optional
        Where to compute scores that have no closed form; threads by default.
    progressbar : bool, default True
        Whether to show progress, on stderr.
    **table
        What describes the table's rows and columns, as of `gpn_bayes.Table`: kinds, weights, missing, imputations,
        targets, intervention, contexts, target_probability, target_penalty. With ``missing="impute"`` missing values
        are drawn along with the DAGs, given that they are missing at random, under "bge", "cg", "bdeu" and "k2", whose
        chains alternate between the two, without parents from outside the candidates; and under "gp", which has a run
        of its own for each of several completed tables, drawn by the networks of "bge" (or "cg").
        `GraphPosterior.imputed` returns completed tables, and `GraphPosterior.target_probabilities` tells which
        contexts changed a variable.

    Returns
    -------
    GraphPosterior
        After Ctrl-C, with the draws made so far; a second Ctrl-C, or one while they are weighted, leaves them as draws
        under the proposal score, with a warning. Scores that are estimates have errors, which all DAGs share and more
        draws don't average out; the errors of all answers include them.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> post = gpn.sample(gpn.datasets.sachs(transform="log2"), score="bge",
    ...                   space=gpn.Space(max_parents=2), draws=100, random_seed=1, progressbar=False)
    >>> post.edge_probability("raf", "mek").value > 0.1
    True
    """
    check_executor(executor)
    check_keywords(table, sampler)
    options = RunOptions(
        score, sampler=sampler, space=space, prior=prior, required=required, forbidden=forbidden, tiers=tiers,
        draws=draws, tune=tune, chains=chains, cores=cores, random_seed=random_seed, until=until,
    )  # fmt: skip
    run = prepare(read_data(data, declared=scores.by_name(score).declared, **table), options)
    if progressbar:
        for text in filter(None, (run.kinds, run.either)):
            print(text, file=sys.stderr, flush=True)
    warn_of_impossible_pairs(run)
    if long := long_tails(run):
        # In time to stop and transform the table, not after an hour.
        warnings.warn(
            f"columns with long tails make scores take many times as long; consider logarithms of {', '.join(long)}",
            UserWarning,
            stacklevel=2,
        )
    post = draw(run, cache=cache, executor=executor, progressbar=progressbar)
    stated = stated_of(data, table)
    if stated != {}:
        post = replace(post, settings={**post.settings, "table": stated})
    for text in run_warnings(post, draws):
        warnings.warn(text, UserWarning, stacklevel=2)
    return post


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
        state = begin(run, store, executor, progressbar)
        state = compile_parts(state)
        state = search(state)
        state = tabulate(state)
        state = draw_dags(state)
        state = reweight(state)
        state = draw_again(state)
        state = finish(state, keep_checkpoints)
    return as_posterior(state)
