"""Check everything a run was asked for, before anything is computed or written."""

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpn_bayes
from gpn_bayes import scores
from gpn_bayes.mcmc import exact_draws
from gpn_bayes.running import Plan
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.space import candidate_lists

SAMPLERS = ("auto", "exact", "partition", "order")
# The exact sampler takes about half a minute and half a gigabyte here, and four times that for one more.
AUTO_EXACT_NODES = 16
# Counting the orders of a DAG walks through sets of nodes.
MAX_CORRECTED_NODES = 20


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A run that is sound and only needs to be drawn.

    Attributes
    ----------
    scorer : Scorer
        The score, bound to the data.
    proposal : Scorer or None
        The rougher score that DAGs are drawn under, to be weighted to `scorer`; None to draw under that itself.
    prior : GraphPrior
        The graph prior.
    candidates : list of list of int
        The candidate parents of every node.
    max_parents : int or None
        Largest number of parents of a node.
    plan : Plan
        The sampler and how long it runs.
    chains : int
        Number of chains.
    random_seed : int or None
        Where the chains' generators come from.
    settings : dict
        What defines the result, JSON-able.
    key : str
        A name for the run that is equal exactly for runs with equal results.
    """

    scorer: Scorer
    proposal: Scorer | None
    prior: GraphPrior
    candidates: list[list[int]]
    max_parents: int | None
    plan: Plan
    chains: int
    random_seed: int | None
    settings: dict[str, Any]
    key: str


def prepare(
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
) -> PreparedRun:
    """Check the arguments of `gpn_bayes.sample`, which are explained there, and bind the score to the data.

    Raises
    ------
    ValueError
        For anything that would keep the run from its end.
    """
    _check_counts(draws=draws, chains=chains, tune=tune, cores=cores, thin=thin, random_seed=random_seed)
    if reweight not in ("auto", None):
        raise ValueError(f"reweight must be 'auto' or None; received {reweight!r}")
    scorer = scores.by_name(score).bind(data)
    proposal = None if reweight is None else scorer.proposal()
    n = len(scorer.names)
    graph_prior = GraphPrior.read(prior, scorer.names, required, forbidden, tiers)
    if max_parents is None:
        max_parents = scorer.default_max_parents
    lists = candidate_lists(candidates, graph_prior, max_parents)
    sampler = _choose_sampler(sampler, n, order_bias)
    exact = sampler == "exact"
    plan = Plan(
        sampler=sampler,
        draws=draws,
        tune=0 if exact else tune,
        thin=1 if exact else 10 * n if thin == "auto" else int(thin),
        cores=min(cores or os.cpu_count() or 1, chains),
    )
    settings = {
        "score": scorer.label,
        "sampler": sampler,
        "prior": graph_prior.parameters,
        "max_parents": max_parents,
        "draws": draws,
        "tune": plan.tune,
        "chains": chains,
        "thin": plan.thin,
        "random_seed": random_seed,
        "reweight": None if proposal is None else "auto",
        "order_bias": None if sampler != "order" else "corrected" if order_bias == "correct" else "kept",
        "version": gpn_bayes.__version__,
        "data_fingerprint": scorer.data_fingerprint,
    }
    # Whole numbers of numpy aren't JSON-able, and equal runs must have equal keys.
    settings = {key: int(value) if isinstance(value, np.integer) else value for key, value in settings.items()}
    return PreparedRun(
        scorer=scorer,
        proposal=proposal,
        prior=graph_prior,
        candidates=lists,
        max_parents=max_parents,
        plan=plan,
        chains=chains,
        random_seed=random_seed,
        settings=settings,
        key=_run_key(settings, scorer, lists),
    )


def _choose_sampler(sampler: str, n: int, order_bias: str) -> str:
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}; received {sampler!r}")
    if order_bias not in ("keep", "correct"):
        raise ValueError(f"order_bias must be 'keep' or 'correct'; received {order_bias!r}")
    if sampler == "auto":
        return "exact" if n <= AUTO_EXACT_NODES else "partition"
    if sampler == "exact" and n > exact_draws.MAX_NODES:
        raise ValueError(
            f"the exact sampler takes at most {exact_draws.MAX_NODES} variables; received {n}: use 'partition'"
        )
    if sampler == "order" and order_bias == "correct" and n > MAX_CORRECTED_NODES:
        raise ValueError(
            f"order_bias='correct' takes at most {MAX_CORRECTED_NODES} variables; received {n}: use 'partition'"
        )
    return sampler


def _check_counts(**given: Any) -> None:
    smallest = {"draws": 1, "chains": 1, "tune": 0, "cores": 1, "thin": 1, "random_seed": 0}
    for name, value in given.items():
        if (value is None and name in ("cores", "random_seed")) or (value == "auto" and name == "thin"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest[name]:
            raise ValueError(f"{name} must be a whole number, {smallest[name]} or more; received {value!r}")


def _run_key(settings: dict[str, Any], scorer: Scorer, lists: list[list[int]]) -> str:
    text = json.dumps([settings, scorer.score_fingerprint, lists], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
