"""Check everything a run was asked for, before anything is computed or written."""

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpn_bayes
from gpn_bayes import scores
from gpn_bayes._util.checks import check_choice, check_count
from gpn_bayes.candidates.costs import AUTO_EXACT_NODES
from gpn_bayes.candidates.growth import THRESHOLD
from gpn_bayes.candidates.spaces import SearchSpace, read_space
from gpn_bayes.data import Dataset, Flag, SufficientStatistics, data_flags, read_data
from gpn_bayes.mcmc import exact_draws
from gpn_bayes.sampling.chain import Plan
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.prior import GraphPrior

SAMPLERS = ("auto", "exact", "partition", "order")
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
    data : Dataset or SufficientStatistics
        The data.
    space : SearchSpace
        The candidate parents of every node, or how to find them.
    plus_one : bool
        Whether a node may have one parent from outside its candidates.
    closed : frozenset of int
        Nodes that may not even so: those whose candidates the user named.
    expand : float or None
        The probability at which such a parent becomes a candidate; None to leave the space as it is.
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
    data_flags : tuple of Flag, or None
        What deserves a look in the data; None where there are no rows to look at.
    """

    scorer: Scorer
    proposal: Scorer | None
    prior: GraphPrior
    data: Dataset | SufficientStatistics
    space: SearchSpace
    plus_one: bool
    closed: frozenset[int]
    expand: float | None
    max_parents: int | None
    plan: Plan
    chains: int
    random_seed: int | None
    settings: dict[str, Any]
    key: str
    data_flags: tuple[Flag, ...] | None


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
) -> PreparedRun:
    """Check the arguments of `gpn_bayes.sample`, which are explained there, and bind the score to the data.

    Raises
    ------
    ValueError
        For anything that would keep the run from its end.
    """
    _check_counts(
        draws=draws,
        chains=chains,
        tune=tune,
        cores=cores,
        thin=thin,
        random_seed=random_seed,
        temperatures=temperatures,
    )
    if reweight not in ("auto", None):
        raise ValueError(f"reweight must be 'auto' or None; received {reweight!r}")
    if until not in ("converged", None):
        raise ValueError(f"until must be 'converged' or None; received {until!r}")
    checked = read_data(data, missing=missing)
    scorer = scores.by_name(score).bind(checked)
    proposal = None if reweight is None else scorer.proposal()
    n = len(scorer.names)
    graph_prior = GraphPrior.read(prior, scorer.names, required, forbidden, tiers)
    if max_parents is None:
        max_parents = scorer.default_max_parents
    largest_exact = {"exact": exact_draws.MAX_NODES, "auto": 0 if plus_one is True else AUTO_EXACT_NODES}
    steps_per_draw = 10 * n if thin == "auto" else int(thin)
    space = read_space(
        candidates,
        graph_prior,
        max_parents,
        checked,
        scorer if proposal is None else proposal,
        exact=n <= largest_exact.get(sampler, 0),
        steps=chains * (draws + tune) * steps_per_draw,
    )
    closed = space.named if plus_one == "auto" else frozenset()
    plus_one, threshold = _read_growth(plus_one, expand, space.estimated)
    sampler = _choose_sampler(sampler, n, order_bias, plus_one)
    exact = sampler == "exact"
    if exact and plus_one:
        raise ValueError("the exact sampler takes no parents from outside the candidates; use 'partition'")
    if temperatures > 1 and sampler != "partition":
        raise ValueError(f"more than one temperature takes the partition sampler; received {sampler!r}")
    plan = Plan(
        sampler=sampler,
        draws=draws,
        tune=0 if exact else tune,
        thin=1 if exact else steps_per_draw,
        cores=min(cores or os.cpu_count() or 1, chains),
        temperatures=temperatures,
        until_converged=until is not None and not exact,
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
        "until": until,
        "temperatures": temperatures,
        "plus_one": "not named" if plus_one and closed else plus_one,
        "expand": threshold,
        "random_seed": random_seed,
        "reweight": None if proposal is None else "auto",
        "order_bias": None if sampler != "order" else "corrected" if order_bias == "correct" else "kept",
        "version": gpn_bayes.__version__,
        "data_fingerprint": scorer.data_fingerprint,
    }
    if isinstance(checked, Dataset) and checked.rows_dropped:
        rows = checked.n_rows + checked.rows_dropped
        settings["missing"] = {"dropped": checked.rows_dropped, "rows": rows}
    # Whole numbers of numpy aren't JSON-able, and equal runs must have equal keys.
    settings = {key: int(value) if isinstance(value, np.integer) else value for key, value in settings.items()}
    return PreparedRun(
        scorer=scorer,
        proposal=proposal,
        prior=graph_prior,
        data=checked,
        space=space,
        plus_one=plus_one,
        closed=closed,
        expand=threshold,
        max_parents=max_parents,
        plan=plan,
        chains=chains,
        random_seed=random_seed,
        settings=settings,
        key=_run_key(settings, scorer, space),
        data_flags=data_flags(checked, numbers=not scorer.discrete) if isinstance(checked, Dataset) else None,
    )


def _choose_sampler(sampler: str, n: int, order_bias: str, plus_one: bool) -> str:
    check_choice("sampler", sampler, SAMPLERS)
    if order_bias not in ("keep", "correct"):
        raise ValueError(f"order_bias must be 'keep' or 'correct'; received {order_bias!r}")
    if sampler == "auto":
        # The exact sampler has no way to parents from outside the candidates.
        return "exact" if n <= AUTO_EXACT_NODES and not plus_one else "partition"
    if sampler == "exact" and n > exact_draws.MAX_NODES:
        raise ValueError(
            f"the exact sampler takes at most {exact_draws.MAX_NODES} variables; received {n}: use 'partition'"
        )
    if sampler == "order" and order_bias == "correct" and n > MAX_CORRECTED_NODES:
        raise ValueError(
            f"order_bias='correct' takes at most {MAX_CORRECTED_NODES} variables; received {n}: use 'partition'"
        )
    return sampler


def _read_growth(plus_one: Any, expand: Any, estimated: bool) -> tuple[bool, float | None]:
    """Return whether parents from outside are allowed, and the probability at which they become candidates."""
    if plus_one not in (True, False, "auto"):
        raise ValueError(f"plus_one must be True, False or 'auto'; received {plus_one!r}")
    allowed = estimated if plus_one == "auto" else bool(plus_one)
    if expand is False or (expand == "auto" and not allowed):
        return allowed, None
    if expand is True or expand == "auto":
        expand = THRESHOLD
    if isinstance(expand, str) or not 0 < expand < 1:
        raise ValueError(f"expand must be True, False, 'auto' or a probability; received {expand!r}")
    if not allowed:
        raise ValueError("candidates can only grow by parents from outside; received expand with plus_one=False")
    return True, float(expand)


def _check_counts(**given: Any) -> None:
    smallest = {"draws": 1, "chains": 1, "tune": 0, "cores": 1, "thin": 1, "random_seed": 0, "temperatures": 1}
    for name, value in given.items():
        if (value is None and name in ("cores", "random_seed")) or (value == "auto" and name == "thin"):
            continue
        check_count(name, value, smallest[name])


def _run_key(settings: dict[str, Any], scorer: Scorer, space: SearchSpace) -> str:
    # What tiers forbid is among the forbidden edges; runs of version 0.1.0 didn't name the tiers.
    prior = {name: value for name, value in settings["prior"].items() if name != "tiers"}
    known = [{**settings, "prior": prior}, scorer.score_fingerprint, space.parameters]
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
