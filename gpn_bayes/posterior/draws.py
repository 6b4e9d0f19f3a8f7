"""DAGs and the moments of their features: all that questions, pictures, reports and files need of a posterior."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.types import Adjacency, Bools, DiGraph, Floats, Ints, Words
from gpn_bayes.posterior.estimate import (
    Estimate,
    Moments,
    ess_of,
    exact_moments,
    weighted_moments,
    with_spread_between,
)
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.posterior.score_noise import ScoreNoise

if TYPE_CHECKING:
    from gpn_bayes.posterior.directions import DirectionShares

# DAGs to average over by default where each takes long: curves and densities of Gaussian processes.
CURVE_DRAWS = 500

# Up to this many variables every DAG is listed, so that any feature has an exact probability.
MAX_LISTED = 5

type Features = Callable[[np.ndarray], np.ndarray]


class GraphCollection(metaclass=ABCMeta):
    """DAGs over the same variables, drawn from a posterior or fitted to resampled rows.

    A subclass has the attributes below, and implements `_moments` and `_best_dag`.

    Attributes
    ----------
    names : tuple of str
        The variables.
    parents : ndarray of uint64, shape (chain, draw, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.
    quantity : str
        What to call the share of the DAGs that have an edge.
    """

    names: tuple[str, ...]
    parents: Words
    quantity: ClassVar[str] = "probability"
    _best: ClassVar[str] = "map"  # what `export` calls the one DAG

    @abstractmethod
    def _moments(self, features_of: Features) -> Moments:
        """Return the means of features of a stack of DAGs, as arrays over the features."""

    @abstractmethod
    def _best_dag(self) -> DiGraph:
        """Return the one DAG that stands for all where a DAG is needed."""

    @cached_property
    def adjacency(self) -> Adjacency:
        """The drawn DAGs as int8 of shape (chain, draw, parent, child).

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.adjacency.shape
        (4, 100, 4, 4)
        >>> post.adjacency[0, 0].tolist()
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
        """
        return graphs.unpack(self.parents, len(self.names))

    @property
    def _weights(self) -> Floats:
        """The weight of each DAG, of mean one."""
        return np.ones(self.parents.shape[:2])

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct DAGs as parent bits, the first draw of each, and which one each draw is."""
        flat = self.parents.reshape(self.parents.shape[0] * self.parents.shape[1], -1)
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return flat[first].reshape(-1, *self.parents.shape[2:]), first, inverse.reshape(-1)

    @property
    def _known_directions(self) -> dict[str, Bools]:
        """The pairs that can only be joined in one direction, by what says so; see `directions.known_directions`."""
        return {}

    @cached_property
    def _direction_shares(self) -> "DirectionShares":
        """How often edges are there, and how often their direction is the same in the whole equivalence class."""
        from gpn_bayes.posterior.directions import any_known, direction_shares

        flat = self.parents.reshape(-1, *self.parents.shape[2:])
        return direction_shares(flat, self._weights.ravel(), any_known(self._known_directions, len(self.names)))

    def _features(self, features_of: Features) -> np.ndarray:
        """Return features of the distinct DAGs, one row each."""
        distinct, _, _ = self._distinct
        parts = [features_of(dags) for dags in graphs.unpack_in_parts(distinct, len(self.names))]
        return np.concatenate([np.asarray(part).reshape(len(part), -1) for part in parts])

    def _estimate(self, features_of: Features) -> Estimate:
        """Return the mean of one feature, with its error."""
        value, mcse, ess, _ = (column[0] for column in self._moments(features_of))
        return Estimate(float(value), float(mcse), float(ess))

    @cached_property
    def _edge_moments(self) -> Moments:
        """The estimates of all edges, flat; those that were never drawn, which are most, are one column."""
        ever = graphs.unpack(np.bitwise_or.reduce(self.parents, axis=(0, 1)), len(self.names))
        i, j = np.nonzero(ever)
        # No node is its own parent.
        i, j = np.append(i, 0), np.append(j, 0)
        moments = self._moments(lambda dags: dags[:, i, j])
        column = np.full(ever.size, len(i) - 1)
        column[i[:-1] * len(self.names) + j[:-1]] = np.arange(len(i) - 1)
        return Moments(*(values[column] for values in moments))

    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        """Return the estimates that nodes i and j are joined, either way."""
        return self._moments(lambda dags: dags[:, i, j] | dags[:, j, i])

    def _index(self, node: Hashable) -> int:
        return graphs.node_index(node, self.names)

    def _note_on_pair(self, i: int, j: int) -> str:
        """Return what to say beside the probability that nodes i and j are joined."""
        return ""

    def _note_on_effect(self, i: int, j: int) -> str:
        """Return what to say beside the probability that node i acts on node j."""
        return ""


@dataclass(frozen=True)
class ExactAnswers:
    """Exact posterior probabilities of edges and parent sets, and the scores behind them.

    Attributes
    ----------
    edges : ndarray of shape (n, n)
        Edge probabilities, rows parents.
    log_z : float
        Log of the sum of the scores of all DAGs.
    candidates : list of list of int
        The candidate parents of each node.
    log_scores, parent_sets : list of ndarray
        For each node the log score and the probability of every subset of its candidates, bitmask order.
    """

    edges: np.ndarray
    log_z: float
    candidates: list[list[int]]
    log_scores: list[np.ndarray]
    parent_sets: list[np.ndarray]

    def log_score(self, adjacency: np.ndarray) -> np.ndarray:
        """Return the log score of each DAG of a stack; minus infinity outside the search space."""
        total = np.zeros(adjacency.shape[:-2])
        for node, chosen in enumerate(self.candidates):
            column = adjacency[..., node].astype(np.int64)
            mask = column[..., chosen] @ (1 << np.arange(len(chosen)))
            outside = column.sum(axis=-1) > column[..., chosen].sum(axis=-1)
            total += np.where(outside, -np.inf, self.log_scores[node][mask])
        return total

    def all_dags(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return every DAG of positive probability with it, for networks small enough; else None."""
        n = len(self.candidates)
        if n > MAX_LISTED:
            return None
        dags = graphs.enumerate_dags(n)
        probabilities = np.exp(self.log_score(dags) - self.log_z)
        possible = probabilities > 0
        return dags[possible], probabilities[possible]


@dataclass(eq=False)
class Draws(GraphCollection):
    """Weighted draws of DAGs from a posterior, with their scores: `GraphPosterior` without the questions."""

    names: tuple[str, ...]
    parents: Words
    log_score: Floats
    log_weights: Floats | None = None
    stats: dict[str, NDArray[Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    exact: ExactAnswers | None = None
    scorer: Callable[[Adjacency], float] | None = None
    score_errors: Floats | None = None
    data: Any = field(default=None, repr=False)
    completed: Floats | None = field(default=None, repr=False)

    @cached_property
    def record(self) -> RunRecord:
        """How the draws were made: the settings, checked and by name.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.record.independent, post.record.chains, post.record.score.name
        (True, 4, 'bge')
        """
        return RunRecord.read(self.settings)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each draw, of mean one; all alike where `log_weights` is None."""
        if self.log_weights is None:
            return np.ones_like(self.log_score)
        weights: Floats = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.mean()

    @property
    def _weights(self) -> Floats:
        return self.weights

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """All DAGs and their probabilities, where they can be listed."""
        return None if self.exact is None else self.exact.all_dags()

    @cached_property
    def _ess_of_log_score(self) -> float:
        size = float(sum(map(ess_of, np.split(self.log_score, self.record.tables))))
        return min(size if np.isfinite(size) else self.log_score.size, effective_size(self.weights))

    @cached_property
    def _noise(self) -> ScoreNoise | None:
        """What the errors of the scores do to the answers; None where there are none."""
        if self.score_errors is None:
            return None
        parents, first, inverse = self._distinct
        errors = self.score_errors.reshape(-1, len(self.names))[first]
        return ScoreNoise(parents, np.bincount(inverse, self.weights.ravel()), errors)

    def _moments(self, features_of: Features) -> Moments:
        """Return the posterior means of features of a stack of DAGs, as arrays over the features."""
        if self._listed is not None:
            dags, probabilities = self._listed
            features = np.asarray(features_of(dags), dtype=float).reshape(len(dags), -1)
            # Probabilities add up to one but for rounding, which would show where nothing varies.
            means = np.where(np.ptp(features, axis=0) == 0, features[0], probabilities @ features)
            return self._exactly(means, features_of)
        features = self._features(features_of)
        which = self._distinct[2].reshape(self.log_score.shape)
        moments = weighted_moments(features, which, self.weights, self._ess_of_log_score)
        if (tables := self.record.tables) > 1:
            moments = with_spread_between(moments, features, which, self.weights, tables)
        if self._noise is None:
            return moments
        return moments._replace(mcse=np.hypot(moments.mcse, self._noise.errors_of(features)))

    def _drawn_moments(self, values: Floats, places: Ints, weights: Floats) -> Moments:
        """Return the posterior means of numbers that were drawn with some of the DAGs: (draw, feature).

        Parameters
        ----------
        values : ndarray of shape (draws, features)
            The numbers.
        places : ndarray of int
            Which draws they are of, counted through all chains.
        weights : ndarray of shape (chain, draw)
            The weights of these draws.
        """
        which = np.arange(len(values)).reshape(weights.shape)
        moments = weighted_moments(values, which, weights, self._ess_of_log_score)
        if self._noise is None:
            return moments
        # DAGs that are not among these count as the average.
        distinct, _, inverse = self._distinct
        own = np.bincount(inverse[places], weights.ravel(), len(distinct))
        sums = [np.bincount(inverse[places], weights.ravel() * column, len(distinct)) for column in values.T]
        features = np.where(own > 0, np.array(sums) / np.where(own > 0, own, 1.0), moments.value[:, None]).T
        return moments._replace(mcse=np.hypot(moments.mcse, self._noise.errors_of(features)))

    def _exactly(self, value: np.ndarray, features_of: Features) -> Moments:
        """Return exact means with the error that the scores leave in them, estimated from the draws."""
        if self._noise is None:
            return exact_moments(value)
        features = self._features(features_of)
        same = (features == features[0]).all(axis=0)
        noise = np.where(same, self._noise.bound(value - features[0]), self._noise.errors_of(features))
        return exact_moments(value, noise)

    @cached_property
    def _edge_moments(self) -> Moments:
        if self.exact is None:
            return super()._edge_moments
        return self._exactly(self.exact.edges.ravel(), lambda dags: dags)

    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        if self.exact is None:
            return super()._joined_moments(i, j)
        # No DAG holds both directions.
        value = np.minimum(self.exact.edges[i, j] + self.exact.edges[j, i], 1.0)
        return self._exactly(value, lambda dags: dags[:, i, j] | dags[:, j, i])

    @property
    def _known_targets(self) -> list[list[int]]:
        """The variables that each experiment changed, where that is known."""
        done = self.record.interventions
        return [] if done is None else [[self._index(name) for name in own.targets] for own in done.experiments]

    @cached_property
    def _known_directions(self) -> dict[str, Bools]:
        from gpn_bayes.posterior.directions import known_directions

        # Which targets are probable, where they aren't known, would take scores of all the parent sets drawn.
        return known_directions(self.record, len(self.names), self._known_targets)

    def _note_on_pair(self, i: int, j: int) -> str:
        from gpn_bayes.posterior.impossible_pairs import note_on_pair

        return note_on_pair(self.record, i, j)

    def _note_on_effect(self, i: int, j: int) -> str:
        from gpn_bayes.posterior.impossible_pairs import note_on_effect

        return note_on_effect(self.record, self.names, i, j)


@dataclass(eq=False, repr=False)
class ResampledGraphs(GraphCollection):
    """DAGs that a learner found in resampled rows: `BootstrapResult` without the questions."""

    names: tuple[str, ...]
    parents: Words
    learner: str
    inconsistent: int = 0
    data: Any = None
    known: Mapping[str, Bools] | None = None
    quantity: ClassVar[str] = "frequency"

    @property
    def _known_directions(self) -> dict[str, Bools]:
        return dict(self.known or {})

    @property
    def resamples(self) -> int:
        """How many resamples there are.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
        >>> boot.resamples
        20
        """
        count: int = self.parents.shape[1]
        return count

    def _moments(self, features_of: Features) -> Moments:
        _, _, inverse = self._distinct
        features = self._features(features_of).astype(float)
        count = len(inverse)
        times = np.bincount(inverse)
        value = times @ features / count
        same = (features == features[0]).all(axis=0)
        error = np.full(len(value), np.nan)
        if not same.all():
            error[~same] = np.sqrt(times @ (features - value)[:, ~same] ** 2 / count / (count - 1))
        status = np.where(same, "constant", "sampled").astype(object)
        status[same & (features[0] == 0)] = "never"
        status[same & (features[0] == 1)] = "always"
        return Moments(value, error, np.full(len(value), float(count)), status)


class Chosen(NamedTuple):
    """The draws that an answer is averaged over: places among all, counted through the chains, and their weights."""

    places: Ints
    weights: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        chains, draws = self.weights.shape
        return chains, draws


def choose(post: Draws, draws: int | None) -> Chosen:
    """Return roughly this many draws, evenly spaced within each chain, with their weights; all of them by default."""
    chains, length = post.log_score.shape
    wanted = length
    if draws is not None:
        check_count("draws", draws, 1)
        wanted = min(length, -(-draws // chains))
    columns = np.unique(np.linspace(0, length - 1, wanted).round().astype(np.int64))
    places = (np.arange(chains)[:, None] * length + columns).ravel()
    weights = post.weights[:, columns]
    return Chosen(places, weights / weights.mean())


def resampled_draws(weights: np.ndarray, random_seed: int = 0) -> np.ndarray:
    """Return which draws of each chain to keep, in their order, so that the weights are 1: systematic resampling.

    A draw of weight w, in a chain of mean weight m, is kept floor(w / m) or one more times (Kitagawa 1996).

    Parameters
    ----------
    weights : ndarray of shape (chain, draw)
        The weights.
    random_seed : int, default 0
        Where the one random number of each chain comes from.

    Returns
    -------
    ndarray of int, shape (chain, draw)

    Examples
    --------
    >>> resampled_draws(np.array([[1.0, 0.0, 2.0, 1.0]])).tolist()
    [[0, 2, 2, 3]]
    """
    chains, draws = weights.shape
    offsets = np.random.default_rng(random_seed).random((chains, 1))
    ends = np.cumsum(weights, axis=1)
    places = (np.arange(draws) + offsets) / draws * ends[:, -1:]
    return np.array([np.searchsorted(own, at, side="right") for own, at in zip(ends, places, strict=True)])
