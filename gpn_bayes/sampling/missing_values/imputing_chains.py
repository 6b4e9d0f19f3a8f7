"""Missing values, drawn along with the DAGs: data augmentation.

A chain alternates between DAGs given a completed table, by the steps of the partition or the order sampler under the
scores of that table, and, given the DAG last drawn, its parameters and then the missing entries. Given the DAG, entries
don't depend on the partition or the order, so that each keeps the joint posterior of DAGs and entries as it is.
"""

from collections.abc import Callable

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.mcmc.tables import ScoreTables, candidate, n_candidates, rescored
from gpn_bayes.samplers.chains import Block, ChainInfo, MarkovChain, WalkingChain
from gpn_bayes.samplers.stored_chains import Arrays, check_arrays, require
from gpn_bayes.sampling.missing_values.imputation import KEPT, Imputation
from gpn_bayes.sampling.preparing import Plan
from gpn_bayes.scores.prior import GraphPrior


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
        self.kept = np.zeros((KEPT, missing))
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
                slot = (self.counts[1] // self.spacing - 1) % KEPT
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
        filled = min(int(self.counts[1]) // self.spacing, KEPT)
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
    spacing = max(plan.draws // KEPT, 1)
    chains = []
    for walker in plan.sampler.chains(tables, prior.required, count):
        if not isinstance(walker, WalkingChain):
            raise ValueError(
                "with missing='impute', a sampler's chains must be WalkingChain, which other scores leave where they "
                f"are; those of {plan.sampler.name!r} are {type(walker).__name__}"
            )
        chains.append(ImputingChain(walker, imputation, space, prior, spacing))
    return chains
