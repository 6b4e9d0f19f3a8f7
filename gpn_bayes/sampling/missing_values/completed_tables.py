"""Missing values under scores without equations in closed form: completed tables, each with a run of its own, pooled.

The networks of a linear score complete the table, by data augmentation; each of a few completed tables is then scored
and drawn as any table is, and the draws of all of them are put together with equal weight. So the error of an answer
has two parts, that of the draws and how far answers differ between completed tables.
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.imputed_tables import completed_values
from gpn_bayes.posterior.run_record import INTERRUPTED
from gpn_bayes.sampling.missing_values.imputation import Imputation, warm_up_options
from gpn_bayes.sampling.preparing import PreparedRun, prepare
from gpn_bayes.scores.completing import MISSING_AT_RANDOM, complete_dataset
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.residuals import RESIDUAL_KINDS

# Fewer don't show how far answers differ between them.
_FEWEST = 2


def draw_completed(
    run: PreparedRun,
    imputation: Imputation,
    draw: Callable[..., GraphPosterior],
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progressbar: bool = True,
) -> GraphPosterior:
    """Draw a run on each of several completed tables; after Ctrl-C, of those that were finished.

    Parameters
    ----------
    run : PreparedRun
        What to draw.
    imputation : Imputation
        How tables are completed.
    draw : callable
        `gpn_bayes.sampling.sample.draw`.
    cache, executor, progressbar
        As for `gpn_bayes.sample`.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, where fewer than two tables were finished.
    """
    data = run.data.with_rows("completed tables have rows")
    settings: dict[str, Any] = {"cache": cache, "executor": executor, "progressbar": progressbar}
    warm = draw(prepare(data, warm_up_options(imputation)), **settings)
    if warm.record.interrupted or warm.completed is None:
        raise KeyboardInterrupt("interrupted before the first completed table")
    places = (np.arange(imputation.tables) * len(warm.completed)) // imputation.tables
    completed = warm.completed[places]
    posts: list[GraphPosterior] = []
    for number, entries in enumerate(completed):
        table = complete_dataset(data, completed_values(data, entries))
        seed = None if run.random_seed is None else _seed(run.random_seed, number)
        post = draw(prepare(table, replace(imputation.options, random_seed=seed)), **settings)
        if post.record.interrupted or post.record.reweight == INTERRUPTED:
            break
        posts.append(post)
    if len(posts) < _FEWEST:
        raise KeyboardInterrupt("interrupted before two completed tables were finished")
    return _pooled(run, imputation, posts, completed[: len(posts)])


def _seed(random_seed: int, number: int) -> int:
    return int(np.random.SeedSequence([random_seed, number]).generate_state(1)[0])


def _pooled(
    run: PreparedRun, imputation: Imputation, posts: list[GraphPosterior], completed: np.ndarray
) -> GraphPosterior:
    """Return the draws of all completed tables, each table of the same weight."""
    count = min(post.log_score.shape[1] for post in posts)

    def joined(arrays: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([array[:, :count] for array in arrays])

    weights = None
    if any(post.log_weights is not None for post in posts):
        each = [post.weights[:, :count] for post in posts]
        with np.errstate(divide="ignore"):
            weights = np.concatenate([np.log(own / own.mean()) for own in each])
    errors = None
    if any(post.score_errors is not None for post in posts):
        none = [np.zeros((*post.log_score.shape, len(post.names))) for post in posts]
        known = zip(posts, none, strict=True)
        errors = joined([zero if post.score_errors is None else post.score_errors for post, zero in known])
    known_stats = [name for name in posts[0].stats if all(name in post.stats for post in posts)]
    return GraphPosterior(
        names=run.scorer.names,
        parents=joined([post.parents for post in posts]),
        log_score=joined([post.log_score for post in posts]),
        log_weights=weights,
        stats={name: joined([post.stats[name] for post in posts]) for name in known_stats},
        settings=_settings(run, imputation, posts),
        scorer=DagScorer(run.scorer.score, run.prior, run.data),
        score_errors=errors,
        data=run.data,
        completed=completed,
    )


def _settings(run: PreparedRun, imputation: Imputation, posts: list[GraphPosterior]) -> dict[str, Any]:
    """Return those of the first table's run, but for what is of all of them, or of the worst."""
    settings = {**posts[0].settings, **{key: run.settings[key] for key in ("random_seed", "data_fingerprint")}}
    settings["missing"] = {**imputation.settings, "tables": len(posts)}
    # What is odd in what was observed, and in the residuals of the first completed table.
    known = [flag.record() for flag in run.data_flags or ()]
    settings["data_flags"] = known + [flag for flag in settings["data_flags"] or () if flag["kind"] in RESIDUAL_KINDS]
    if len(posts) < imputation.tables:
        settings["interrupted"] = True
    settings["assumptions"] = [*run.scorer.assumptions, MISSING_AT_RANDOM]
    tails = [post.record.pareto_k for post in posts if post.record.pareto_k is not None]
    if "pareto_k" in settings:
        settings["pareto_k"] = max(tails, default=None)
    if "poor_scores" in settings:
        settings["poor_scores"] = sum(post.record.poor_scores for post in posts)
    if "converged" in settings:
        settings["converged"] = all(post.record.converged for post in posts)
    return settings
