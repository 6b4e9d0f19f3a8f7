"""How the missing values of a table are drawn along with the DAGs, settled before the run."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpn_bayes import scores
from gpn_bayes.candidates.costs import number_of_sets
from gpn_bayes.data import Dataset
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.completing import Completion

# DAGs, after as many that are dropped, of each chain that completes these.
_WARM_UP = 300
# Completed tables that are kept of each chain.
KEPT = 5
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
        most = KEPT * options.chains
        if data.imputations > most:
            raise ValueError(f"imputations must be at most {most}, {KEPT} from each chain; received {data.imputations}")
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
