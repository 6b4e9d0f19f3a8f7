"""Missing values, drawn along with the DAGs: data augmentation.

A chain alternates between DAGs given a completed table, by the steps of the partition or the order sampler under the
scores of that table, and, given the DAG last drawn, its parameters and then the missing entries. Given the DAG, entries
don't depend on the partition or the order, so that each keeps the joint posterior of DAGs and entries as it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpn_bayes import graphs, scores
from gpn_bayes.candidates.costs import number_of_sets
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.data import Dataset
from gpn_bayes.mcmc.tables import ScoreTables, candidate, n_candidates, rescored
from gpn_bayes.samplers.chains import Block, ChainInfo, MarkovChain, WalkingChain
from gpn_bayes.samplers.stored_chains import Arrays, check_arrays, require
from gpn_bayes.sampling.chain import Plan
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.completing import Completion
from gpn_bayes.scores.prior import GraphPrior

# DAGs, after as many that are dropped, of each chain that completes these.
_WARM_UP = 300
# Completed tables that are kept of each chain.
_KEPT = 5
# Tables of scores are made anew for every completed table: in this time, and all of them in this CPU time.
_SECONDS_PER_TABLE = 0.1
_SECONDS = 300.0
# Sorting a score among the others of its table, and summing them.
_TABULATING_SECONDS = 4e-7
# What a table of scores takes whatever its size.
_SECONDS_PER_NODE = 1e-4
# As many candidates are worth a limit of as many parents.
_WORTH, _FEW_PARENTS = 8, 3
_MOST_CANDIDATES = 12


@dataclass(frozen=True, eq=False)
class Imputation:
    """How missing values are drawn along.

    Attributes
    ----------
    completion : Completion
        How tables are completed.
    options : RunOptions
        The options of the run, those that were left open decided.
    scorer : Scorer
        The score bound to a first completed table, whose missing entries are drawn from their columns.
    first : Dataset
        That table.
    period : int
        DAGs that are drawn of each completed table.
    tables : int
        Where scores have no closed form, the completed tables that each has a run of its own; else 0.
    """

    completion: Completion
    options: RunOptions
    scorer: Scorer
    first: Dataset
    period: int
    tables: int

    @property
    def settings(self) -> dict[str, Any]:
        """What the settings of a posterior say of it."""
        missing = self.completion.missing
        said = {
            "imputed": int(missing.sum()),
            "rows_concerned": int(missing.any(axis=1).sum()),
            "columns_concerned": int(missing.any(axis=0).sum()),
            "rows": len(missing),
        }
        return said | ({"tables": self.tables} if self.tables else {"draws_per_table": self.period})


def plan_imputation(data: Dataset, options: RunOptions) -> Imputation:
    """Settle how the missing values of a table are drawn along.

    Parameters
    ----------
    data : Dataset
        The table.
    options : RunOptions
        What was asked for.

    Raises
    ------
    ValueError
        For a score that has no way to do it, and for options that don't go with it.
    """
    score = scores.by_name(options.score)
    completion: Completion = score.complete(data)
    slow = completion.template.score is not score  # another one completes tables for it
    rng = np.random.default_rng(None if options.random_seed is None else [options.random_seed, *b"first table"])
    values = completion.begin(rng)
    first = completion.dataset(values)
    if slow:
        most = _KEPT * options.chains
        if data.imputations > most:
            raise ValueError(
                f"imputations must be at most {most}, {_KEPT} from each chain; received {data.imputations}"
            )
        return Imputation(completion, options, score.bind(first), first, 1, data.imputations)
    scorer = completion.scorer(values)
    scorer.score, scorer.data_fingerprint = score, first.fingerprint
    options = _settled(options, scorer)
    seconds = _seconds_per_table(scorer, len(data.names), options) * options.chains * (options.draws + options.tune)
    return Imputation(completion, options, scorer, first, max(1, math.ceil(seconds / _SECONDS)), 0)


def warm_up_options(imputation: Imputation) -> RunOptions:
    """Return the options of the run that completes tables for a score that has no equations in closed form."""
    asked = imputation.options
    return RunOptions(
        imputation.completion.template.score, draws=_WARM_UP, tune=_WARM_UP, chains=asked.chains, cores=asked.cores,
        random_seed=asked.random_seed, prior=asked.prior, required=asked.required, forbidden=asked.forbidden,
        tiers=asked.tiers,
    )  # fmt: skip


def _settled(options: RunOptions, scorer: Scorer) -> RunOptions:
    """Return the options with a sampler and a search space that go with tables of scores that change."""
    asked = options.space
    for name, wrong in (("plus_one", asked.plus_one is True), ("expand", asked.expand not in (False, "auto"))):
        if wrong:
            received = f"{name}={getattr(asked, name)!r}"
            raise ValueError(f"with missing='impute', {name} must be False; received {received}")
    options = replace(options, sampler=options.sampler.imputing()).with_space(plus_one=False, expand=False)
    n = len(scorer.names)
    limit = scorer.default_max_parents if asked.max_parents is None else asked.max_parents
    if asked.candidates is not None:
        return options.with_space(max_parents=limit)
    fitting = _most_candidates(scorer, n, limit)
    if fitting < min(n - 1, _WORTH) and asked.max_parents is None:
        limit = _FEW_PARENTS if limit is None else min(limit, _FEW_PARENTS)
        fitting = _most_candidates(scorer, n, limit)
    return options.with_space(max_parents=limit, candidates=None if fitting >= n - 1 else fitting)


def _most_candidates(scorer: Scorer, n: int, max_parents: int | None) -> int:
    """Return how many candidates each node can have for tables to be made quickly."""
    per_set = scorer.seconds_per_set + _TABULATING_SECONDS
    sizes = range(2, min(n - 1, _MOST_CANDIDATES) + 1)
    fitting = (k for k in sizes if n * number_of_sets(k, max_parents) * per_set <= _SECONDS_PER_TABLE)
    return max(fitting, default=min(n - 1, 2))


def _seconds_per_table(scorer: Scorer, n: int, options: RunOptions) -> float:
    """Return about how long it takes to make the tables of scores of a completed table."""
    asked = options.space
    k = asked.candidates if isinstance(asked.candidates, int) else min(n - 1, _MOST_CANDIDATES)
    sets = n * number_of_sets(k, asked.max_parents)
    return sets * (scorer.seconds_per_set + _TABULATING_SECONDS) + n * _SECONDS_PER_NODE


class ImputingChain(MarkovChain):
    """A chain of DAGs and completed tables.

    Parameters
    ----------
    walker : WalkingChain
        The chain of DAGs given a table.
    imputation : Imputation
        How tables are completed.
    space : ParentSpace
        The parent sets that have a score.
    prior : GraphPrior
        The graph prior.
    spacing : int
        Draws between completed tables that are kept.
    """

    def __init__(
        self, walker: WalkingChain, imputation: Imputation, space: ParentSpace, prior: GraphPrior, spacing: int
    ) -> None:
        super().__init__(walker.tables, walker.required)
        self.walker, self.counters = walker, walker.counters
        self.completion, self.period, self.spacing = imputation.completion, imputation.period, spacing
        self.space = space
        self.log_prior = [
            np.where(self.completion.too_large(i, np.array(own)), -np.inf, prior.log_table(i, own))
            for i, own in enumerate(space.lists)
        ]
        n, missing = len(space.lists), int(self.completion.missing.sum())
        self.dag = np.zeros((n, -(-n // 64)), np.uint64)
        self.counts = np.zeros(2, np.int64)  # of DAGs drawn, and of those that were kept
        self.kept = np.zeros((_KEPT, missing))
        self.values = np.zeros(self.completion.missing.shape)

    def init(self, rng: np.random.Generator) -> None:
        """Fill in observed values at random, and start where the DAGs of that table have high scores."""
        self.values = self.completion.begin(rng)
        self.walker.tables = self._scored()
        self.walker.init(rng)

    def _scored(self) -> ScoreTables:
        """Return the tables of scores of the completed table."""
        scorer = self.completion.scorer(self.values)
        parts = [
            scorer.table(i, own, self.space.limit(i)) + log_prior
            for i, (own, log_prior) in enumerate(zip(self.space.lists, self.log_prior, strict=True))
        ]
        return rescored(self.tables, parts)

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        for place in range(len(block.log_scores)):
            # Each DAG by itself, so that what is drawn doesn't depend on the size of blocks.
            if self.counts[0] > 0 and self.counts[0] % self.period == 0:
                adjacency = graphs.unpack(self.dag[None], len(self.dag))[0]
                self.completion.draw(rng, self.values, adjacency)
                self.walker.rescore(self._scored())
            one = self.walker.step(rng, 1, thin, tuning)
            for target, drawn in zip(block, one, strict=True):
                target[place] = drawn[0]
            self.dag = one.parents[0]
            self.counts += (1, not tuning)
            if not tuning and self.counts[1] % self.spacing == 0:
                slot = (self.counts[1] // self.spacing - 1) % _KEPT
                self.kept[slot] = self.values[self.completion.missing]

    def state(self) -> Arrays:
        """Return the walker's state, the missing entries, the last DAG, and the tables that were kept."""
        own = {
            "entries": self.values[self.completion.missing], "dag": self.dag, "drawn": self.counts, "kept": self.kept
        }  # fmt: skip
        return self.walker.state() | {name: array.copy() for name, array in own.items()}

    def restore(self, state: Arrays) -> None:
        """Go to a completed table, and to where the walker was."""
        found: Arrays = {name: state[name] for name in ("entries", "dag", "drawn", "kept") if name in state}
        missing = self.completion.missing
        expected = {"entries": self.kept[0], "dag": self.dag, "drawn": self.counts, "kept": self.kept}
        check_arrays(found, expected, "the missing entries of a chain")
        self.values = self.completion.begin(np.random.default_rng(1))
        for entries in (found["entries"], *found["kept"]):
            require(self.completion.may_be(entries), "the missing entries of a chain")
        self.values[missing] = found["entries"]
        dag = graphs.unpack(found["dag"][None], len(self.dag))[0]
        require(bool(graphs.is_acyclic(dag)), "the DAG of a chain")
        require(bool((found["drawn"] >= 0).all()), "the counts of a chain")
        self.dag, self.counts, self.kept = (found[name].copy() for name in ("dag", "drawn", "kept"))
        self.walker.tables = self._scored()
        self.walker.restore({name: array for name, array in state.items() if name not in found})

    def info(self) -> ChainInfo:
        """Return what the walker has counted, and the completed tables that were kept, as the table has its values."""
        filled = min(int(self.counts[1]) // self.spacing, _KEPT)
        completed = np.empty((filled, self.kept.shape[1]))
        for place in range(filled):
            values = self.values.copy()
            values[self.completion.missing] = self.kept[place]
            completed[place] = self.completion.entries(values)
        return ChainInfo(self.counters, np.zeros((0, 2), np.int64), np.ones(1), completed)


def imputing_chains(
    imputation: Imputation,
    plan: Plan,
    tables: ScoreTables,
    prior: GraphPrior,
    space_of: Callable[[list[list[int]]], ParentSpace],
    count: int,
) -> list[ImputingChain]:
    """Return chains that have not started yet.

    Parameters
    ----------
    imputation : Imputation
        How tables are completed.
    plan : Plan
        The sampler, and how long it runs.
    tables : ScoreTables
        The scores of some completed table, from which the candidates are taken.
    prior : GraphPrior
        The graph prior.
    space_of : callable
        Returns the parent sets that candidates allow.
    count : int
        How many chains.
    """
    lists = [[int(candidate(tables, i, b)) for b in range(n_candidates(tables, i))] for i in range(len(tables.layout))]
    space = space_of(lists)
    spacing = max(plan.draws // _KEPT, 1)
    chains = []
    for walker in plan.sampler.chains(tables, prior.required, count):
        if not isinstance(walker, WalkingChain):
            raise ValueError(
                "with missing='impute', a sampler's chains must be WalkingChain, which other scores leave where they "
                f"are; those of {plan.sampler.name!r} are {type(walker).__name__}"
            )
        chains.append(ImputingChain(walker, imputation, space, prior, spacing))
    return chains
