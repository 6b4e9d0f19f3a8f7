"""The main road: data -> scores -> tables -> sampler -> weights -> GraphPosterior."""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from gpn_bayes._util.progress import progress_bar, shares
from gpn_bayes.candidates.costs import grown_up_to, most_candidates
from gpn_bayes.candidates.growth import DRAWS_OF_ROUND, Round, expand
from gpn_bayes.candidates.methods import SpaceContext
from gpn_bayes.candidates.parent_space import ParentSpace, with_outsiders
from gpn_bayes.candidates.spaces import FoundCandidates, find_candidates
from gpn_bayes.mcmc import exact_draws
from gpn_bayes.mcmc.tables import ScoreTables
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.diagnostics import (
    EXCUSED_FROM,
    GAP_LIMIT,
    INTERRUPTED,
    REWEIGHTING_INTERRUPTED,
    Diagnostics,
    weight_ess,
    weight_warnings,
)
from gpn_bayes.sampling.chain import Plan
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.options import PreparedRun, prepare
from gpn_bayes.sampling.result import (
    draws_under_score,
    exact_answers,
    order_correction,
    under_proposal,
    with_caveats,
    with_errors,
    with_weights,
)
from gpn_bayes.sampling.reweighting import reweight_draws
from gpn_bayes.sampling.run_chains import Draws, run_chains
from gpn_bayes.sampling.score_tables import Tabulator
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.workers import check_executor


def sample(
    data: Any,
    score: Any = "bge",
    *,
    sampler: str = "auto",
    draws: int = 2000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    random_seed: int | None = None,
    thin: int | str = "auto",
    until: str | None = None,
    temperatures: int = 1,
    prior: Any = "uniform",
    required: Any = (),
    forbidden: Any = (),
    tiers: Any = None,
    max_parents: int | None = None,
    candidates: Any = None,
    plus_one: bool | str = "auto",
    expand: float | bool | str = "auto",
    reweight: str | None = "auto",
    order_bias: str = "keep",
    missing: str = "error",
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
        for categories; "bic", which is no marginal likelihood but close to one of many rows, for either.
    sampler : {"auto", "exact", "partition", "order"}
        "exact" draws independently and, unless the draws are weighted to another score, knows edge
        probabilities without Monte Carlo error, for up to 17 variables (at 17 it takes a gigabyte);
        "partition" is MCMC under the uniform prior over DAGs; "order" is MCMC that favours DAGs with
        many orders, unless corrected. "auto" is exact for up to 16 variables, unless parents from outside the
        candidates are allowed, else partition.
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    chains : int
        Independent chains.
    cores : int, optional
        Threads; as many as there are processors by default. The result doesn't depend on it.
    random_seed : int, optional
        The same seed gives the same draws. Without one, a killed run can't go on where it stopped.
    thin : int or "auto"
        Steps of a chain before each draw; ten a variable by default.
    until : {None, "converged"}
        "converged" looks at the chains after each quarter of the draws and stops as soon as they agree (on the log
        score: R-hat up to 1.05 and 400 effective draws; on every edge: within 0.05, or, once each chain has 800
        effective draws, within what chance explains of independent `draws`: 0.09 for 1000, 0.06 for 2000, 0.05 from
        3200 on). Where they don't at the end, it keeps every second draw and goes on with twice the thinning, up to 32
        times the planned length; memory stays as planned. If even that isn't enough, a warning says so.
    temperatures : int, default 1
        More than one couples every chain of the partition sampler to copies of itself under flattened scores, which
        cross what it can't; each takes as long as the chain. Try 4 to 8 where chains don't agree.
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
        By default the exact sampler takes all others, and MCMC too where they are at most 14 (20 for "gp"). Beyond,
        those found by "pc" and "greedy", or only "greedy" for "gp" and for categories, for which other methods have no
        numbers; they are filled up by the score, to 14 of up to 27 variables under "bge" and fewer where there are more
        or scores take longer. Parents that aren't candidates have probability zero, unless `plus_one` lets them in.
    plus_one : bool or "auto"
        Whether every variable may also have one parent that isn't among its candidates; "auto" for those variables
        whose candidates are found by a method or an estimate.
    expand : bool, float or "auto"
        Whether to draw in rounds before: parents from outside whose probability reaches 0.05, or the number given,
        become candidates, until a round finds no more. "auto" where `plus_one` is on.
    reweight : {"auto", None}
        "auto" draws DAGs under a quicker, rougher score where `score` offers one ("gp" offers Laplace's approximation),
        computes `score` itself only for the parent sets that were drawn, and weights the draws by the ratio of the two.
        None computes `score` for all subsets of the candidates and draws under it: slower, but the exact sampler then
        knows edge probabilities without Monte Carlo error. For n variables these are n 2^(n - 1) scores, 32 for 4 and
        11264 for 11, or fewer with `max_parents` and `candidates`.
    order_bias : {"keep", "correct"}
        For order MCMC: "correct" weights each draw by one over the number of its orders.
    missing : {"error", "drop"}
        Whether to refuse missing values or to drop the rows that have some; the settings of the posterior then tell how
        many. `Dataset.read` has further settings for reading a table.
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
        under the rough score, with a warning. Scores that are estimates have errors, which all DAGs share and more
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
    run = prepare(
        data, score, sampler=sampler, draws=draws, tune=tune, chains=chains, cores=cores, random_seed=random_seed,
        thin=thin, until=until, temperatures=temperatures, prior=prior, required=required, forbidden=forbidden,
        tiers=tiers, max_parents=max_parents, candidates=candidates, plus_one=plus_one, expand=expand,
        reweight=reweight, order_bias=order_bias, missing=missing,
    )  # fmt: skip
    post = draw(run, cache=cache, executor=executor, progressbar=progressbar)
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
    with ScoreCache(run.scorer, cache) as store:
        rough = store
        if run.proposal is not None:
            rough = ScoreCache(run.proposal, store.connection, table="proposal_scores")
        checkpoints = None
        if store.connection is not None and run.random_seed is not None:
            checkpoints = CheckpointStore(store.connection)
        found = find_candidates(run.space, SpaceContext(run.data, rough, executor, progressbar))
        tabulator = Tabulator(rough, run.prior, executor, progressbar)
        space, rounds = _expanded(run, found, tabulator, checkpoints, progressbar)
        tables = tabulator.tables(space)
        drawn = _run_chains(run, tables, checkpoints, progressbar)
        correction = order_correction(drawn) if run.settings["order_bias"] == "corrected" else None
        weighted = None
        if run.proposal is not None:
            with suppress(KeyboardInterrupt):  # what was drawn is worth more than an exception
                weighted = reweight_draws(drawn.parents, rough, store, correction, executor, progressbar)
        complete = not drawn.interrupted and (run.proposal is None or weighted is not None)
        if checkpoints is not None and complete and not keep_checkpoints:
            checkpoints.forget(run.key)
    told = found.report.parameters | {"sizes": list(map(len, space.lists)), "plus_one": any(space.outsiders)}
    told |= {"max_with_outsider": space.max_with_outsider, "rounds": [done.parameters for done in rounds]}
    post = draws_under_score(run, drawn, correction, told)
    if run.proposal is None:
        answers = exact_answers(tables, space.lists, progressbar) if run.plan.sampler == "exact" else None
        post = replace(with_errors(post, store), exact=answers)
    elif weighted is None:
        post = under_proposal(post, run, run.proposal)
    else:
        post = with_weights(post, weighted)
    return with_caveats(post, run)


def run_warnings(post: GraphPosterior, draws: int) -> list[str]:
    """Return in words what a user should hear at once.

    Parameters
    ----------
    post : GraphPosterior
        What `draw` returned.
    draws : int
        How many draws of each chain were asked for.
    """
    told = []
    if post.settings.get("interrupted"):
        told.append(f"interrupted: {post.log_score.shape[1]} of {draws} draws of each chain were made")
    elif post.settings.get("converged") is False:
        found = post.diagnostics()
        told.append("\n".join([f"not converged: {found.summary}", *found.warnings()]) + _too_few(found))
    if post.settings["reweight"] == INTERRUPTED:
        told.append(REWEIGHTING_INTERRUPTED)
    elif post.settings["reweight"] is not None:
        pareto_k = post.settings["pareto_k"]
        pareto_k = np.nan if pareto_k is None else pareto_k
        told += weight_warnings(pareto_k, weight_ess(post.weights), post.log_score.size)
    return told


def _too_few(found: Diagnostics) -> str:
    """Return in words that a gap is no more than chance, but draws are too few to call that agreement."""
    if not GAP_LIMIT < found.largest_gap <= found.gap_limit:
        return ""
    few = found.ess < EXCUSED_FROM * found.chains
    more = f"well over {EXCUSED_FROM} of each chain" if few else "more, or thin more"
    return f"\nChance may explain the gap, but would hide one as large: draw {more}."


def _expanded(
    run: PreparedRun,
    found: FoundCandidates,
    tabulator: Tabulator,
    checkpoints: CheckpointStore | None,
    progressbar: bool,
) -> tuple[ParentSpace, list[Round]]:
    """Return the space to draw from, after the rounds that let it grow."""

    def rebuild(lists: list[list[int]]) -> ParentSpace:
        return with_outsiders(lists, run.prior, run.max_parents, tabulator.store.scorer, run.plus_one, run.closed)

    def draw_round(space: ParentSpace, number: int) -> np.ndarray:
        plan = run.plan._replace(
            draws=min(run.plan.draws, DRAWS_OF_ROUND),
            tune=min(run.plan.tune, DRAWS_OF_ROUND),
            thin=max(run.plan.thin // 2, 1),
            until_converged=False,
        )
        drawn = _run_chains(run, tabulator.tables(space), checkpoints, progressbar, plan, f"Round {number + 1}")
        if drawn.interrupted:
            raise KeyboardInterrupt("interrupted before the search space was found")
        return drawn.parents.reshape(-1, *drawn.parents.shape[2:])

    space = rebuild(found.lists)
    if run.expand is None or not any(space.outsiders):
        return space, []
    n, scorer = len(found.lists), tabulator.store.scorer
    limits = most_candidates(n), grown_up_to(n, scorer)
    return expand(space, draw_round, rebuild, run.expand, *limits, run.prior.required)


def _run_chains(
    run: PreparedRun,
    tables: ScoreTables,
    checkpoints: CheckpointStore | None,
    progressbar: bool,
    plan: Plan | None = None,
    name: str = "Sampling",
) -> Draws:
    """Run the chains; under another name than that of the final run with randomness of their own."""
    plan = run.plan if plan is None else plan
    weights = _layered_weights(tables, progressbar) if plan.sampler == "exact" else None
    entropy: int | list[int] | None = run.random_seed
    if name != "Sampling" and run.random_seed is not None:
        entropy = [run.random_seed, *name.encode()]
    sequence = np.random.SeedSequence(entropy)
    rngs = [np.random.default_rng(seed) for seed in sequence.spawn(run.chains)]
    key = run.key if name == "Sampling" else f"{run.key}:{name}"
    return run_chains(plan, tables, rngs, _start_orders(run.prior), weights, checkpoints, key, progressbar, name)


def _layered_weights(tables: ScoreTables, progressbar: bool) -> exact_draws.LayeredWeights:
    with progress_bar("Summing", 1.0, progressbar) as advance:
        return exact_draws.layered_weights(tables, shares(advance))


def _start_orders(prior: GraphPrior) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that draws an order in which the required edges lead forward."""
    required = nx.from_numpy_array(prior.required.astype(int), create_using=nx.DiGraph)

    def start_order(rng: np.random.Generator) -> np.ndarray:
        priority = rng.permutation(len(prior.names))
        return np.array(list(nx.lexicographical_topological_sort(required, key=lambda node: priority[node])))

    return start_order
