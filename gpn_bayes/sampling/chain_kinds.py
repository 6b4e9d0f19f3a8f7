"""The chains of all samplers in one shape: init, step, state, info.

Exact draws are a chain too, one without memory.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import networkx as nx
import numpy as np

from gpn_bayes._util.progress import progress_bar, shares
from gpn_bayes.mcmc import chains as chain_runs
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.annealing import LEVELS, SWEEPS, anneal
from gpn_bayes.mcmc.choices import no_script
from gpn_bayes.mcmc.exact_draws import LayeredWeights, draw_exact, layered_weights
from gpn_bayes.mcmc.order import ORDER, OrderState, new_order
from gpn_bayes.mcmc.partition import BLOCK, PartitionState, partition_from_depths
from gpn_bayes.mcmc.tables import ScoreTables, outside_places, own_copy, set_outside_candidates
from gpn_bayes.mcmc.tempering import Ladder, new_ladder, run_tempered
from gpn_bayes.sampling.stored_chains import (
    Arrays,
    check_arrays,
    check_places,
    checked_order,
    checked_partition,
    require,
)

# The key of a state under which files keep the current parent from outside of each node.
_OUTSIDE = "guests"


class Block(NamedTuple):
    """DAGs that a chain has drawn one after the other.

    Attributes
    ----------
    parents : ndarray of uint64, shape (draws, n, words)
        The DAGs, as parent bits.
    log_scores, targets : ndarray of shape (draws,)
        Their log scores, and those of the states they were drawn from.
    """

    parents: np.ndarray
    log_scores: np.ndarray
    targets: np.ndarray


class ChainInfo(NamedTuple):
    """What a chain has counted.

    Attributes
    ----------
    counters : ndarray of shape (moves, 2)
        Counts moves tried, and moves that changed the state.
    exchanges : ndarray of shape (temperatures - 1, 2)
        Counts exchanges between coupled copies tried, and made.
    betas : ndarray of shape (temperatures,)
        The powers of the score that the copies have.
    completed : ndarray of shape (tables, missing entries), or None
        What it drew for missing entries, at some of its draws; None where none are missing.
    """

    counters: np.ndarray
    exchanges: np.ndarray
    betas: np.ndarray
    completed: np.ndarray | None = None


class MarkovChain(ABC):
    """A chain of DAGs.

    Parameters
    ----------
    tables : ScoreTables
        The scores; the chain makes its own copy of what changes.
    required : ndarray of bool, shape (n, n)
        Edges that every DAG has, rows parents.
    """

    moves: tuple[str, ...] = ()

    def __init__(self, tables: ScoreTables, required: np.ndarray) -> None:
        self.tables = own_copy(tables)
        self.required = required
        self.counters = np.zeros((len(self.moves), 2), np.int64)

    @abstractmethod
    def init(self, rng: np.random.Generator) -> None:
        """Go to a state to start from."""

    def step(self, rng: np.random.Generator, count: int, thin: int, tuning: bool) -> Block:
        """Move on, and return the DAGs drawn on the way.

        Parameters
        ----------
        rng : Generator
            The source of randomness.
        count : int
            DAGs to draw.
        thin : int
            Steps before each.
        tuning : bool
            Whether the draws are discarded, so that the chain may adapt.
        """
        n = len(self.tables.layout)
        block = Block(np.zeros((count, n, (n + 63) // 64), np.uint64), np.empty(count), np.empty(count))
        self._fill(block, rng, thin, tuning)
        return block

    @abstractmethod
    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        """Draw the DAGs of a block; see `step`."""

    @abstractmethod
    def state(self) -> Arrays:
        """Return all that the next step depends on, but for the source of randomness."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Go to a state that `state` returned.

        Raises
        ------
        ValueError
            For one that it can't have returned.
        """

    def info(self) -> ChainInfo:
        """Return what the chain has counted."""
        return ChainInfo(self.counters, np.zeros((0, 2), np.int64), np.ones(1))


class WalkingChain(MarkovChain):
    """A chain whose state is a place that other scores leave where it is."""

    @abstractmethod
    def rescore(self, tables: ScoreTables) -> None:
        """Stay, under other scores of the same parent sets."""


class ExactChain(MarkovChain):
    """Independent draws from the posterior; `weights` are the sums over layerings that they are drawn by."""

    def __init__(self, tables: ScoreTables, required: np.ndarray, weights: LayeredWeights) -> None:
        super().__init__(tables, required)
        self.weights = weights

    def init(self, rng: np.random.Generator) -> None:
        """Do nothing: independent draws start nowhere."""

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        draw_exact(rng, no_script(), self.tables, self.weights, block.parents, block.log_scores)
        block.targets[:] = block.log_scores

    def state(self) -> Arrays:
        """Return nothing: a draw doesn't depend on the one before."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Do nothing, since there is no state."""
        require(not state, "the state of a chain")


class OrderChain(WalkingChain):
    """Order MCMC; see `gpn_bayes.mcmc.order`."""

    moves = orders.MOVES
    position: OrderState

    def init(self, rng: np.random.Generator) -> None:
        """Go to an order of high score."""
        self.position = _annealed_order(rng, self.tables, self.required)

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        mix = orders.DEFAULT_MIX
        chain_runs.run_order(rng, no_script(), self.tables, self.position, mix, thin, *block, self.counters)

    def rescore(self, tables: ScoreTables) -> None:
        """Stay at the order."""
        self.tables = own_copy(tables)
        self.position = new_order(self.tables, self.position.ints[ORDER].copy())

    def state(self) -> Arrays:
        """Return the order and the parents from outside."""
        return self.position._asdict() | {_OUTSIDE: outside_places(self.tables)}

    def restore(self, state: Arrays) -> None:
        """Go to an order."""
        _set_outside(self.tables, state)
        self.position = checked_order(self.tables, _without_outside(state))


class PartitionChain(WalkingChain):
    """Partition MCMC; see `gpn_bayes.mcmc.partition`."""

    moves = chain_runs.PARTITION_MOVES
    position: PartitionState

    def init(self, rng: np.random.Generator) -> None:
        """Go to the layering of a DAG drawn from an order of high score."""
        order = _annealed_order(rng, self.tables, self.required)
        self.position = chain_runs.start_partition(rng, no_script(), self.tables, order.ints[ORDER])

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        mix = chain_runs.PARTITION_MIX
        chain_runs.run_partition(rng, no_script(), self.tables, self.position, mix, thin, *block, self.counters)

    def rescore(self, tables: ScoreTables) -> None:
        """Stay at the partition."""
        self.tables = own_copy(tables)
        depth = self.position.ints[BLOCK, : len(tables.layout)].copy()
        self.position = partition_from_depths(self.tables, depth)

    def state(self) -> Arrays:
        """Return the partition and the parents from outside."""
        return self.position._asdict() | {_OUTSIDE: outside_places(self.tables)}

    def restore(self, state: Arrays) -> None:
        """Go to a partition."""
        _set_outside(self.tables, state)
        self.position = checked_partition(self.tables, _without_outside(state))


class TemperedChain(MarkovChain):
    """Partition MCMC coupled to copies of itself under flattened scores; see `gpn_bayes.mcmc.tempering`."""

    moves = chain_runs.PARTITION_MOVES
    ladder: Ladder

    def __init__(self, tables: ScoreTables, required: np.ndarray, temperatures: int) -> None:
        super().__init__(tables, required)
        self.temperatures = temperatures

    def init(self, rng: np.random.Generator) -> None:
        """Let all copies start where a partition chain would."""
        alone = PartitionChain(self.tables, self.required)
        alone.init(rng)
        self.ladder = new_ladder(alone.tables, alone.position, self.temperatures)

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        mix = chain_runs.PARTITION_MIX
        run_tempered(rng, no_script(), self.tables, self.ladder, mix, thin, tuning, *block, self.counters)

    def state(self) -> Arrays:
        """Return all copies, each with its parents from outside."""
        state = self.ladder._asdict()
        layouts = state.pop("layouts")
        outside = [outside_places(self.tables._replace(layout=layout)) for layout in layouts]
        return state | {_OUTSIDE: np.array(outside)}

    def restore(self, state: Arrays) -> None:
        """Let every copy go to its own state."""
        n, copies = len(self.tables.layout), self.temperatures
        start = PartitionState(np.empty((6, n + 1), np.int64), np.empty(n))
        expected = new_ladder(self.tables, start, copies)._asdict()
        del expected["layouts"]
        check_arrays(_without_outside(state), expected, "the state of a chain")
        require(_OUTSIDE in state and state[_OUTSIDE].shape == (copies, n), "parents from outside")
        layouts, positions = [], []
        for t in range(copies):
            tables = own_copy(self.tables)
            _set_outside(tables, {_OUTSIDE: state[_OUTSIDE][t]})
            positions.append(checked_partition(tables, {"ints": state["ints"][t], "score": state["scores"][t]}))
            layouts.append(tables.layout)
        betas, progress, exchanges = state["betas"], state["progress"], state["exchanges"]
        require(bool(betas[0] == 1.0 and (betas > 0).all() and (np.diff(betas) <= 0).all()), "powers of the score")
        require(bool(progress[0] in (0, 1) and progress[1] >= 0 and (exchanges >= 0).all()), "exchanges of a chain")
        ints, scores = (np.stack(column) for column in zip(*positions, strict=True))
        self.ladder = Ladder(np.stack(layouts), ints, scores, betas, exchanges, progress)

    def info(self) -> ChainInfo:
        """Return what the chain has counted, and its temperatures."""
        return ChainInfo(self.counters, self.ladder.exchanges, self.ladder.betas)


# Every sampler's moves, in the order of its counters.
MOVES = {"exact": ExactChain.moves, "order": OrderChain.moves, "partition": PartitionChain.moves}


def new_chains(
    sampler: str, temperatures: int, tables: ScoreTables, required: np.ndarray, count: int, progressbar: bool
) -> list[MarkovChain]:
    """Return chains that have not started yet.

    Parameters
    ----------
    sampler : str
        "exact", "partition" or "order".
    temperatures : int
        Coupled copies of each partition chain; 1 for none but itself.
    tables : ScoreTables
        The scores.
    required : ndarray of bool, shape (n, n)
        Edges that every DAG has.
    count : int
        How many chains.
    progressbar : bool
        Whether to show the progress of the sums that exact draws need.
    """
    if sampler == "exact":
        with progress_bar("Summing", 1.0, progressbar) as advance:
            weights = layered_weights(tables, shares(advance))
        return [ExactChain(tables, required, weights) for _ in range(count)]
    if temperatures > 1:
        return [TemperedChain(tables, required, temperatures) for _ in range(count)]
    kind = OrderChain if sampler == "order" else PartitionChain
    return [kind(tables, required) for _ in range(count)]


def _annealed_order(rng: np.random.Generator, tables: ScoreTables, required: np.ndarray) -> OrderState:
    """Return an order of high score in which the required edges lead forward.

    Started at random, a chain may be caught where scores are low.
    """
    edges = nx.from_numpy_array(required.astype(int), create_using=nx.DiGraph)
    priority = rng.permutation(len(required))
    nodes = nx.lexicographical_topological_sort(edges, key=lambda node: priority[node])
    order = new_order(tables, np.array(list(nodes)))
    if order.score.sum() > -np.inf:
        anneal(rng, no_script(), tables, order, LEVELS, SWEEPS)
    return order


def _set_outside(tables: ScoreTables, state: Arrays) -> None:
    """Give every node the parent from outside that a state holds."""
    require(_OUTSIDE in state, "parents from outside")
    check_places(tables, state[_OUTSIDE])
    set_outside_candidates(tables, state[_OUTSIDE])


def _without_outside(state: Arrays) -> Arrays:
    """Return copies of what a state holds beside the parents from outside."""
    return {name: values.copy() for name, values in state.items() if name != _OUTSIDE}
