"""The chains of all samplers in one shape: init, step, state, restore, info.

Exact draws are a chain too, one without memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
from numba import typeof

from gpn_bayes.mcmc import chains as chain_runs
from gpn_bayes.mcmc import order as orders
from gpn_bayes.mcmc.annealing import LEVELS, SWEEPS, anneal
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.exact_draws import LayeredWeights, draw_exact
from gpn_bayes.mcmc.order import ORDER, OrderState, new_order
from gpn_bayes.mcmc.partition import BLOCK, PartitionState, partition_from_depths
from gpn_bayes.mcmc.tables import ScoreTables, build_tables, outside_places, own_copy, set_outside_candidates
from gpn_bayes.mcmc.tempering import Ladder, new_ladder, run_tempered
from gpn_bayes.samplers.moves import Move, step
from gpn_bayes.samplers.stored_chains import (
    Arrays,
    check_arrays,
    check_places,
    checked_order,
    checked_partition,
    require,
)

# The key of a state under which files keep the current parent from outside of each node.
_OUTSIDE = "guests"
# Nodes of the graphs that chains are compiled with.
_FEW = 3


class Block(NamedTuple):
    """DAGs that a chain has drawn one after the other.

    Attributes
    ----------
    parents : ndarray of uint64, shape (draws, n, words)
        The DAGs, as parent bits.
    log_scores, targets : ndarray of shape (draws,)
        Their log scores, and those of the states they were drawn from.

    Examples
    --------
    >>> from gpn_bayes import graphs
    >>> block = Block(graphs.pack(np.array([[[0, 1], [0, 0]]])), np.array([-3.5]), np.array([-2.5]))
    >>> block.parents.shape, block.log_scores.tolist()
    ((1, 2, 1), [-3.5])
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

    Examples
    --------
    >>> info = ChainInfo(np.array([[10, 4]]), np.zeros((0, 2)), np.ones(1))
    >>> info.counters.tolist(), info.completed is None
    ([[10, 4]], True)
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

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> from gpn_bayes.mcmc.tables import build_tables
    >>> scorer = gpn.scores.BGe().bind(gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]])
    >>> lists = [[1, 2], [0, 2], [0, 1]]
    >>> tables = build_tables(lists, [scorer.table(i, own) for i, own in enumerate(lists)])
    >>> chain, other = gpn.samplers.Order().chains(tables, np.zeros((3, 3), bool), 2)
    >>> rng = np.random.default_rng(1)
    >>> chain.init(rng)
    >>> block = chain.step(rng, 4, thin=5, tuning=False)
    >>> other.restore(chain.state())
    >>> rngs = [np.random.default_rng(2) for _ in range(2)]
    >>> bool((chain.step(rngs[0], 4, 5, False).parents == other.step(rngs[1], 4, 5, False).parents).all())
    True
    >>> chain.rescore(tables)
    >>> int(chain.info().counters[:, 0].sum())
    40
    """

    moves: tuple[str, ...] = ()  # in the order of the counters

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
    """A chain whose state is a place that other scores leave where it is.

    Examples
    --------
    >>> issubclass(WalkingChain, MarkovChain), hasattr(WalkingChain, "rescore")
    (True, True)
    """

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
        draw_exact(Chance(rng), self.tables, self.weights, block.parents, block.log_scores)
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
        chain_runs.run_order(Chance(rng), self.tables, self.position, mix, thin, *block, self.counters)

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
    """Partition MCMC; see `gpn_bayes.mcmc.partition`.

    Parameters
    ----------
    tables, required
        As of every chain.
    mix : ndarray of float64
        The shares of the built-in moves.
    own : sequence of (str, Move, float)
        Moves of the user's own, by name, and their shares.
    """

    position: PartitionState

    def __init__(
        self,
        tables: ScoreTables,
        required: np.ndarray,
        mix: np.ndarray = chain_runs.PARTITION_MIX,
        own: Sequence[tuple[str, Move, float]] = (),
    ) -> None:
        self.moves = (*chain_runs.PARTITION_MOVES, *(name for name, *_ in own))
        super().__init__(tables, required)
        self.mix, self.own = mix, own

    def init(self, rng: np.random.Generator) -> None:
        """Go to the layering of a DAG drawn from an order of high score."""
        order = _annealed_order(rng, self.tables, self.required)
        self.position = chain_runs.start_partition(Chance(rng), self.tables, order.ints[ORDER])

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        if not self.own:
            chain_runs.run_partition(Chance(rng), self.tables, self.position, self.mix, thin, *block, self.counters)
            return
        shares = np.array([share for *_, share in self.own])
        for place in range(len(block.log_scores)):
            # Each DAG by itself, so that what is drawn doesn't depend on the size of blocks.
            one = Block(*(array[place : place + 1] for array in block))
            steps = int(rng.binomial(thin, shares.sum()))
            for k in rng.choice(len(shares), steps, p=shares / shares.sum()):
                self._step(rng, int(k))
            chain_runs.run_partition(
                Chance(rng), self.tables, self.position, self.mix, thin - steps, *one, self.counters
            )

    def _step(self, rng: np.random.Generator, k: int) -> None:
        """Try a move of the user's own."""
        name, move, _ = self.own[k]
        before, row = self.position, len(chain_runs.PARTITION_MOVES) + k
        self.position = step(rng, self.tables, before, name, move)
        self.counters[row] += (1, self.position is not before)

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

    def __init__(
        self,
        tables: ScoreTables,
        required: np.ndarray,
        temperatures: int,
        mix: np.ndarray = chain_runs.PARTITION_MIX,
    ) -> None:
        super().__init__(tables, required)
        self.temperatures, self.mix = temperatures, mix

    def init(self, rng: np.random.Generator) -> None:
        """Let all copies start where a partition chain would."""
        alone = PartitionChain(self.tables, self.required)
        alone.init(rng)
        self.ladder = new_ladder(alone.tables, alone.position, self.temperatures)

    def _fill(self, block: Block, rng: np.random.Generator, thin: int, tuning: bool) -> None:
        run_tempered(Chance(rng), self.tables, self.ladder, self.mix, thin, tuning, *block, self.counters)

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


def three_nodes(outside: bool) -> ScoreTables:
    """Return small tables to compile chains with, with or without parents from outside the candidates."""
    others = [[j for j in range(_FEW) if j != i] for i in range(_FEW)]
    if not outside:
        return build_tables(others, [np.zeros(4)] * _FEW)
    inside, beside = [own[:1] for own in others], [own[1:] for own in others]
    return build_tables(inside, [np.zeros(2)] * _FEW, beside, [np.zeros((1, 2))] * _FEW)


def draw_a_few(chains: Callable[[ScoreTables, np.ndarray, int], list[MarkovChain]], outside: bool) -> None:
    """Compile what a sampler's chains call, given the method that makes them."""
    rng = np.random.default_rng(1)
    for chain in chains(three_nodes(outside), np.zeros((_FEW, _FEW), bool), 1):
        chain.init(rng)
        chain.step(rng, 2, 2, tuning=True)


def walk_over_dags() -> None:
    """Compile what a partition chain calls to walk over DAGs."""
    tables = three_nodes(outside=True)
    state = PartitionState(np.zeros((6, _FEW + 1), np.int64), np.zeros(_FEW))
    parents, counters = np.zeros(_FEW, np.int64), np.zeros((len(chain_runs.PARTITION_MOVES), 2), np.int64)
    given = (Chance(np.random.default_rng(1)), tables, state, np.ones(4), 1, parents, parents, counters)
    # It has no entrance from Python.
    chain_runs.draw_dag.compile(tuple(map(typeof, given)))  # type: ignore[attr-defined]


def _annealed_order(rng: np.random.Generator, tables: ScoreTables, required: np.ndarray) -> OrderState:
    """Return an order of high score in which the required edges lead forward.

    Started at random, a chain may be caught where scores are low.
    """
    edges = nx.from_numpy_array(required.astype(int), create_using=nx.DiGraph)
    priority = rng.permutation(len(required))
    nodes = nx.lexicographical_topological_sort(edges, key=lambda node: priority[node])
    order = new_order(tables, np.array(list(nodes)))
    if order.score.sum() > -np.inf:
        anneal(Chance(rng), tables, order, LEVELS, SWEEPS)
    return order


def _set_outside(tables: ScoreTables, state: Arrays) -> None:
    """Give every node the parent from outside that a state holds."""
    require(_OUTSIDE in state, "parents from outside")
    check_places(tables, state[_OUTSIDE])
    set_outside_candidates(tables, state[_OUTSIDE])


def _without_outside(state: Arrays) -> Arrays:
    """Return copies of what a state holds beside the parents from outside."""
    return {name: values.copy() for name, values in state.items() if name != _OUTSIDE}
