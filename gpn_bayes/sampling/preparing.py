"""From options and data to a run that only needs to be drawn: all that could be refused is refused here."""

import hashlib
import json
import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import gpn_bayes
from gpn_bayes import scores
from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Bools
from gpn_bayes.candidates.growth import THRESHOLD
from gpn_bayes.candidates.parent_space import ParentSpace, with_parents_from_outside
from gpn_bayes.candidates.space import Space
from gpn_bayes.candidates.spaces import SearchSpace, read_space
from gpn_bayes.data import Data, Dataset, Flag, SufficientStatistics, checked, data_flags, read_data, warn_of_noise
from gpn_bayes.data.weights import are_frequencies
from gpn_bayes.posterior.impossible_pairs import impossible_pairs
from gpn_bayes.samplers import Sampler
from gpn_bayes.sampling.missing_values.imputation import Imputation, plan_imputation
from gpn_bayes.sampling.options import DEFAULTS, RunOptions
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.mixed import either_in_words, kinds_in_words
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.recorded import as_setting


class Plan(NamedTuple):
    """The sampler and how long to run it.

    Attributes
    ----------
    sampler : Sampler
        How DAGs are drawn.
    draws, tune : int
        DAGs to keep of each chain, and DAGs to drop before.
    thin : int
        Steps before each of them.
    cores : int
        Threads.
    until_converged : bool
        Whether to stop early if the chains agree, and to go on, `thin` doubled, if they don't.
    """

    sampler: Sampler
    draws: int
    tune: int
    thin: int
    cores: int
    until_converged: bool = False

    def extension_at(self, kept: int) -> int:
        """Return how often the run has been extended by the time a chain has drawn `kept` DAGs after tuning."""
        return 0 if kept < self.draws else 1 + (kept - self.draws) // self.half

    def length_of(self, extensions: int) -> int:
        """Return how many DAGs a chain has drawn, after tuning, at the end of some extensions."""
        return self.draws + extensions * self.half

    @property
    def half(self) -> int:
        """How many DAGs an extension draws: with every second one from before they are as many as planned."""
        return max(self.draws // 2, 1)


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
    outside : bool
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
        What deserves a look in the data; None where there are no rows to look at, or not all of their values.
    imputation : Imputation or None
        How missing values are drawn along; None where there are none.
    """

    scorer: Scorer
    proposal: Scorer | None
    prior: GraphPrior
    data: Dataset | SufficientStatistics
    space: SearchSpace
    outside: bool
    closed: frozenset[int]
    expand: float | None
    max_parents: int | None
    plan: Plan
    chains: int
    random_seed: int | None
    settings: dict[str, Any]
    key: str
    data_flags: tuple[Flag, ...] | None
    imputation: Imputation | None = None

    @property
    def complete_data(self) -> Data:
        """The data, or a first completed table."""
        return self.data if self.imputation is None else self.imputation.first

    @property
    def kinds(self) -> str:
        """In words, what the columns of a mixed table are taken for; empty for other tables."""
        return kinds_in_words(self.scorer, self.data)

    @property
    def either(self) -> str:
        """In words, which columns the score could as well take for the other kind; empty where there are none."""
        return either_in_words(self.scorer, self.data)

    @property
    def forbidden(self) -> Bools:
        """The edges that the user forbade, also by tiers, rows parents: those without a score are not among them."""
        forbidden: Bools = np.zeros((len(self.scorer.names),) * 2, dtype=bool)
        for parent, child in self.settings["prior"]["forbidden"]:
            forbidden[parent, child] = True
        return forbidden

    @property
    def impossible_pairs(self) -> list[list[int]]:
        """The pairs that the score and the constraints together leave without an edge in either direction."""
        return impossible_pairs(self.scorer.impossible, self.forbidden)

    @property
    def drawn_under(self) -> Scorer:
        """The score that DAGs are drawn under."""
        return self.scorer if self.proposal is None else self.proposal

    def parent_space(self, lists: list[list[int]]) -> ParentSpace:
        """Return the parent sets that these candidates allow, with parents from outside where the run has them."""
        return with_parents_from_outside(lists, self.prior, self.max_parents, self.outside, self.closed)


def prepare(data: Any, options: RunOptions = DEFAULTS) -> PreparedRun:
    """Bind the score to the data, and settle what the options leave open.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Table, Dataset or SufficientStatistics
        Variables are columns.
    options : RunOptions
        What to run.

    Raises
    ------
    ValueError
        For anything that would keep the run from its end.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> run = prepare(datasets.sachs(), RunOptions("bge", draws=500, random_seed=1))
    >>> run.plan.sampler.name, run.plan.draws, run.plan.tune
    ('exact', 500, 0)
    """
    score = scores.by_name(options.score)
    table = read_data(data, declared=score.declared)
    warn_of_noise(table)
    imputation = None
    if table.missing is not None:
        imputation = plan_imputation(table.with_rows("missing values are of rows"), options)
        options = imputation.options
    scorer = scores.by_name(options.score).bind(table) if imputation is None else imputation.scorer
    proposal = None if options.sampler.reweight is None else scorer.proposal()
    n, asked = len(scorer.names), options.space
    prior = GraphPrior.read(options.prior, scorer.names, options.required, options.forbidden, options.tiers)
    described = prior.parameters  # without what the score forbids by itself
    prior = prior.without(scorer.impossible)
    max_parents = scorer.default_max_parents if asked.max_parents is None else asked.max_parents
    thin = options.sampler.steps(n)
    space = read_space(
        asked.candidates,
        prior,
        max_parents,
        table if imputation is None else imputation.first,
        scorer if proposal is None else proposal,
        exact=options.sampler.takes_all(n, scorer.closed_form, asked.plus_one is True),
        steps=options.chains * (options.draws + options.tune) * thin,
    )
    if imputation is not None and not imputation.tables:
        # Without parents from outside, lists are as long as they may be.
        space = replace(space, at_least=space.limit)
    outside, threshold = _parents_from_outside(asked, space.estimated)
    closed = space.named if asked.plus_one == "auto" else frozenset()
    plan = _plan(options, n, outside, thin)
    settings = {
        "score": as_setting(scorer.score),
        **plan.sampler.settings,
        "prior": described,
        "max_parents": max_parents,
        "draws": options.draws,
        "tune": plan.tune,
        "chains": options.chains,
        "thin": plan.thin,
        "until": options.until,
        "plus_one": "not named" if outside and closed else outside,
        "expand": threshold,
        "random_seed": options.random_seed,
        "reweight": None if proposal is None else "auto",
        "version": gpn_bayes.__version__,
        "data_fingerprint": scorer.data_fingerprint if imputation is None else table.fingerprint,
    }
    if table.noise is not None:
        settings["privacy"] = {
            "epsilon": table.noise.epsilon,
            "delta": table.noise.delta,
            "correlation_sd": table.largest_noise,
        }
    if table.rows_dropped:
        settings["missing"] = {"dropped": table.rows_dropped, "rows": table.n_rows + table.rows_dropped}
    if imputation is not None:
        settings["missing"] = imputation.settings
    if table.repeated or table.weights is not None:
        whole = table.weights is None or are_frequencies(table.weights)
        settings["row_weights"] = "frequencies" if whole else "survey weights"
    if table.interventions is not None:
        own = table.experiments
        settings["interventions"] = table.interventions.summary(table.names, None if own is None else own.n)
    # Whole numbers of numpy aren't JSON-able, and equal runs must have equal keys.
    settings = {key: int(value) if isinstance(value, np.integer) else value for key, value in settings.items()}
    return PreparedRun(
        scorer=scorer,
        proposal=proposal,
        prior=prior,
        data=table,
        space=space,
        outside=outside,
        closed=closed,
        expand=threshold,
        max_parents=max_parents,
        plan=plan,
        chains=options.chains,
        random_seed=options.random_seed,
        settings=settings,
        key=_run_key(settings, scorer, space),
        data_flags=None if table.table is None else _flags(table.table, scorer),
        imputation=imputation,
    )


def _flags(table: Dataset, scorer: Scorer) -> tuple[Flag, ...]:
    """Return what should be checked in a table, as the score reads it."""
    categories = [name for name, own in zip(scorer.names, scorer.categories, strict=True) if own]
    return checked({"the table": lambda: data_flags(table, numbers=not scorer.discrete, categories=categories)})


def _parents_from_outside(asked: Space, estimated: bool) -> tuple[bool, float | None]:
    """Return whether parents from outside are allowed, and the probability at which they become candidates."""
    allowed = estimated if asked.plus_one == "auto" else bool(asked.plus_one)
    if asked.expand is False or (asked.expand == "auto" and not allowed):
        return allowed, None
    if not allowed:
        received = f"expand={shown(asked.expand)}"
        advice = f"use space=gpn.Space(plus_one=True, {received})"
        beside = "without them" if asked.plus_one == "auto" else "with plus_one=False"
        raise ValueError(f"candidates can only grow by parents from outside; received {received} {beside}: {advice}")
    return True, THRESHOLD if asked.expand in (True, "auto") else float(asked.expand)


def _plan(options: RunOptions, n: int, outside: bool, thin: int) -> Plan:
    """Return the sampler and how long it runs."""
    sampler = options.sampler.settle(n, outside)
    return Plan(
        sampler=sampler,
        draws=options.draws,
        tune=0 if sampler.independent else options.tune,
        thin=1 if sampler.independent else thin,
        cores=min(options.cores or os.cpu_count() or 1, options.chains),
        until_converged=options.until is not None and not sampler.independent,
    )


def _run_key(settings: dict[str, Any], scorer: Scorer, space: SearchSpace) -> str:
    known = [settings, scorer.score_fingerprint, space.parameters]
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
