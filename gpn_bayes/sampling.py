"""The main road: data -> scores -> tables -> sampler -> weights -> GraphPosterior."""

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from gpn_bayes import graphs
from gpn_bayes.checkpoint import CheckpointStore
from gpn_bayes.kernels.subsets import members_of
from gpn_bayes.mcmc import chains as chain_runs
from gpn_bayes.mcmc import exact_draws
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.diagnostics import (
    INTERRUPTED,
    REWEIGHTING_INTERRUPTED,
    WEIGHT_ESS_LIMIT,
    weight_ess,
    weight_warnings,
)
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.preparing import PreparedRun, prepare
from gpn_bayes.progress import progress_bar
from gpn_bayes.reweighting import Reweighted, errors_of, poor_scores, reweight_draws
from gpn_bayes.running import Draws, run_chains
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.prior import GraphPrior

# Closed-form scores are stored up to here; beyond, computing them again is quicker than reading them.
_MAX_STORED_CLOSED_FORM = 200_000


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
    prior: Any = "uniform",
    required: Any = (),
    forbidden: Any = (),
    tiers: Any = None,
    max_parents: int | None = None,
    candidates: Any = None,
    reweight: str | None = "auto",
    order_bias: str = "keep",
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
        How to score a node given its parents: "bge" for linear relations, "gp" for unknown smooth ones.
    sampler : {"auto", "exact", "partition", "order"}
        "exact" draws independently and, unless the draws are weighted to another score, knows edge
        probabilities without Monte Carlo error, for up to 17 variables;
        "partition" is MCMC under the uniform prior over DAGs; "order" is MCMC that favours DAGs with
        many orders, unless corrected. "auto" is exact for up to 16 variables, else partition.
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
    prior : {"uniform", "fair"}, table of edge probabilities, or GraphPrior
        See `gpn_bayes.scores.GraphPrior`.
    required, forbidden : edges (parent, child)
        Edges that must, or must not, be there.
    tiers : groups of names, or mapping of names to numbers, optional
        No edge leads from a later tier to an earlier one.
    max_parents : int, optional
        Largest number of parents of a node; 5 by default for the "gp" score, no limit for "bge".
    candidates : dict or networkx.DiGraph, optional
        Candidate parents of each variable; all others by default. At most 20 each.
    reweight : {"auto", None}
        "auto" draws DAGs under a quicker, rougher score where `score` offers one ("gp" offers Laplace's approximation),
        computes `score` itself only for the parent sets that were drawn, and weights the draws by the ratio of the two.
        None computes `score` for all subsets of the candidates and draws under it: slower, but the exact sampler then
        knows edge probabilities without Monte Carlo error. For n variables these are n 2^(n - 1) scores, 32 for 4 and
        11264 for 11, or fewer with `max_parents` and `candidates`.
    order_bias : {"keep", "correct"}
        For order MCMC: "correct" weights each draw by one over the number of its orders.
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
    run = prepare(
        data, score, sampler=sampler, draws=draws, tune=tune, chains=chains, cores=cores, random_seed=random_seed,
        thin=thin, prior=prior, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents,
        candidates=candidates, reweight=reweight, order_bias=order_bias,
    )  # fmt: skip
    post = draw(run, cache=cache, executor=executor, progressbar=progressbar)
    kept = post.log_score.shape[1]
    if kept < draws:
        warnings.warn(f"interrupted: {kept} of {draws} draws of each chain were made", UserWarning, stacklevel=2)
    for text in _weighting_warnings(post):
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
        tables = _score_tables(run, rough, executor, progressbar)
        checkpoints = None
        if store.connection is not None and run.random_seed is not None:
            checkpoints = CheckpointStore(store.connection)
        drawn = _run_chains(run, tables, checkpoints, progressbar)
        correction = _order_correction(drawn) if run.settings["order_bias"] == "corrected" else None
        weighted = None
        if run.proposal is not None:
            with suppress(KeyboardInterrupt):  # what was drawn is worth more than an exception
                weighted = reweight_draws(drawn.parents, rough, store, correction, executor, progressbar)
        complete = not drawn.interrupted and (run.proposal is None or weighted is not None)
        if checkpoints is not None and complete and not keep_checkpoints:
            checkpoints.forget(run.key)
    post = GraphPosterior(
        names=run.scorer.names,
        parents=drawn.parents,
        log_score=drawn.log_scores,
        log_weights=correction,
        stats={"state_log_score": drawn.targets},
        settings={**run.settings, "moves": _move_table(run.plan.sampler, drawn.counters)},
        scorer=_dag_scorer(run.scorer, run.prior),
    )
    if run.proposal is None:
        answers = _exact_answers(tables, run.candidates, progressbar) if run.plan.sampler == "exact" else None
        return replace(_with_errors(post, store), exact=answers)
    if weighted is None:
        return _under_proposal(post, run.proposal, run.prior)
    return _with_weights(post, weighted)


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
    """Return draws under the rough score as weighted draws under the accurate one."""
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


def _under_proposal(post: GraphPosterior, proposal: Scorer, prior: GraphPrior) -> GraphPosterior:
    """Return draws that were never weighted as what they are: draws under the rough score."""
    settings = {**post.settings, "score": proposal.label, "reweight": INTERRUPTED}
    return replace(post, settings=settings, scorer=_dag_scorer(proposal, prior))


def _weighting_warnings(post: GraphPosterior) -> list[str]:
    """Return in words what speaks against the weights from one score to another."""
    if post.settings["reweight"] is None:
        return []
    if post.settings["reweight"] == INTERRUPTED:
        return [REWEIGHTING_INTERRUPTED]
    pareto_k = post.settings["pareto_k"]
    return weight_warnings(np.nan if pareto_k is None else pareto_k, weight_ess(post.weights), post.log_score.size)


def _score_tables(run: PreparedRun, store: ScoreCache, executor: Executor | None, progressbar: bool) -> ScoreTables:
    """Return the scores of all subsets of the candidates, prior included."""
    lists = run.candidates
    node_scores = _node_scores(store, lists, run.max_parents, executor, progressbar)
    return build_tables(lists, [table + run.prior.log_table(i, lists[i]) for i, table in enumerate(node_scores)])


def _run_chains(run: PreparedRun, tables: ScoreTables, checkpoints: CheckpointStore | None, progressbar: bool) -> Draws:
    weights = _layered_weights(tables, progressbar) if run.plan.sampler == "exact" else None
    rngs = [np.random.default_rng(seed) for seed in np.random.SeedSequence(run.random_seed).spawn(run.chains)]
    return run_chains(run.plan, tables, rngs, _start_orders(run.prior), weights, checkpoints, run.key, progressbar)


def _node_scores(
    store: ScoreCache,
    lists: list[list[int]],
    max_parents: int | None,
    executor: Executor | None,
    progressbar: bool,
) -> list[np.ndarray]:
    """Return for every node the scores of all subsets of its candidates."""
    scorer = store.scorer
    limits = [len(chosen) if max_parents is None else min(max_parents, len(chosen)) for chosen in lists]
    wanted = sum(1 << len(chosen) for chosen in lists)
    if scorer.closed_form and (store.connection is None or wanted > _MAX_STORED_CLOSED_FORM):
        return [scorer.table(i, chosen, limit) for i, (chosen, limit) in enumerate(zip(lists, limits, strict=True))]
    sets = [_subsets(chosen, limit) for chosen, limit in zip(lists, limits, strict=True)]
    store.fill(((i, parents) for i, own in enumerate(sets) for parents in own.values()), executor, progressbar)
    tables = []
    for i, own in enumerate(sets):
        table = np.full(1 << len(lists[i]), -np.inf)
        table[list(own)] = store.values(i, list(own.values()))
        tables.append(table)
    return tables


def _subsets(chosen: Sequence[int], limit: int) -> dict[int, tuple[int, ...]]:
    """Return the subsets of at most `limit` candidates, by local mask."""
    return {
        mask: tuple(chosen[bit] for bit in members_of(mask))
        for mask in range(1 << len(chosen))
        if mask.bit_count() <= limit
    }


def _layered_weights(tables: ScoreTables, progressbar: bool) -> exact_draws.LayeredWeights:
    with progress_bar("Summing", 1.0, progressbar) as advance:
        return exact_draws.layered_weights(tables, _shares(advance))


def _exact_answers(tables: ScoreTables, lists: list[list[int]], progressbar: bool) -> ExactAnswers:
    with progress_bar("Edges", 1.0, progressbar) as advance:
        found = exact_probabilities(tables, _shares(advance))
    spans = list(zip(found.offsets[:-1], found.offsets[1:], strict=True))
    return ExactAnswers(
        edges=found.edge_probabilities,
        log_z=found.log_z,
        candidates=lists,
        log_scores=[tables.values[begin:end].copy() for begin, end in spans],
        parent_sets=[found.parent_set_probabilities[begin:end] for begin, end in spans],
    )


def _shares(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Turn a bar that moves by steps into one that is told the share done."""
    done = 0.0

    def move_to(share: float) -> None:
        nonlocal done
        advance(share - done)
        done = share

    return move_to


def _start_orders(prior: GraphPrior) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that draws an order in which the required edges lead forward."""
    required = nx.from_numpy_array(prior.required.astype(int), create_using=nx.DiGraph)

    def start_order(rng: np.random.Generator) -> np.ndarray:
        priority = rng.permutation(len(prior.names))
        return np.array(list(nx.lexicographical_topological_sort(required, key=lambda node: priority[node])))

    return start_order


def _order_correction(drawn: Draws) -> np.ndarray:
    """Return log weights of one over the number of orders of each DAG."""
    flat = drawn.parents.reshape(drawn.log_scores.size, *drawn.parents.shape[2:])
    distinct, inverse = np.unique(flat, axis=0, return_inverse=True)
    log_weights = -graphs.log_linear_extensions(distinct)[inverse.reshape(-1)].reshape(drawn.log_scores.shape)
    weights = np.exp(log_weights - log_weights.max())
    share = weights.sum() ** 2 / (weights**2).sum() / weights.size
    if share < WEIGHT_ESS_LIMIT:
        warnings.warn(
            f"correcting the order bias leaves {share:.1%} of the draws effective; sampler='partition' needs "
            "no correction",
            UserWarning,
            stacklevel=4,
        )
    return log_weights


def _move_table(sampler: str, counters: np.ndarray) -> dict[str, float]:
    """Return the share of each move's steps that changed the state."""
    if sampler == "exact":
        return {}
    moves = orders.MOVES if sampler == "order" else chain_runs.PARTITION_MOVES
    tried, changed = counters.sum(axis=0).T
    return {move: float(c / max(t, 1)) for move, t, c in zip(moves, tried, changed, strict=True)}


def _dag_scorer(scorer: Scorer, prior: GraphPrior) -> Callable[[np.ndarray], float]:
    """Return the function that gives any DAG the log score of the draws, prior included."""

    def log_score(adjacency: np.ndarray) -> float:
        if (prior.required & (adjacency == 0)).any():
            return -np.inf
        total = scorer.total(adjacency)
        for i in range(len(prior.names)):
            total += float(prior.log_table(i, np.flatnonzero(adjacency[:, i]).tolist())[-1])
        return total

    return log_score
