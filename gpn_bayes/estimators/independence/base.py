"""The interface of tests: a `ConditionalIndependenceTest` says how to test, and bound to data it is a `BoundTest`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from gpn_bayes import graphs
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.candidates.pc_skeleton import Skeleton
from gpn_bayes.data import Data, Dataset, read_complete, refuse_interventions, refuse_weights

Nodes = tuple[int, ...]


class ConditionalIndependenceTest(ABC):
    """How to test independence; `bind` it to data to get p-values. A subclass implements `_bind`.

    It sets `takes_weights` where it counts rows by `Dataset.weights`.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators.independence import FisherZ
    >>> test = FisherZ()
    >>> isinstance(test, ConditionalIndependenceTest)
    True
    >>> bound = test.bind(datasets.sachs(transform="log2"))
    >>> round(bound.p_value("raf", "akt"), 2), round(bound.p_value("raf", "mek"), 2)
    (0.25, 0.0)
    """

    takes_weights = False

    @abstractmethod
    def _bind(self, data: Data, rng: np.random.Generator) -> "BoundTest":
        """Return the test of checked data."""

    def bind(self, data: Any, random_state: Any = None) -> "BoundTest":
        """Check the data and return the test that answers for them.

        Parameters
        ----------
        data : DataFrame, ndarray, path, Dataset or SufficientStatistics
            The table.
        random_state : int, Generator or None
            Source of randomness for permutations, in tests that use any.
        """
        table = read_complete(data)
        refuse_interventions(table, "a test of independence")
        if not self.takes_weights:
            refuse_weights(table, f"the test {type(self).__name__}")
        return self._bind(table, generator("random_state", random_state))

    def __repr__(self) -> str:
        """Show the test as it would be made."""
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class BoundTest(ABC):
    """A test bound to data. A subclass implements `_p_value`; answers are remembered.

    Attributes
    ----------
    names : tuple of str
        The variables.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators.independence import FisherZ
    >>> test = FisherZ().bind(datasets.sachs(transform="log2")[["raf", "mek", "pkc", "p38"]])
    >>> round(test.p_value("raf", "p38"), 2), round(test.p_value("raf", "p38", ["pkc"]), 2)
    (0.11, 0.23)
    >>> test.known(0, 3, (2,)) == test.p_value("p38", "raf", ["pkc"])
    True
    >>> none = np.zeros((4, 4), dtype=bool)
    >>> skeleton = test.skeleton(alpha=0.01, max_conditioning=None, kept=none, apart=none)
    >>> [(test.names[i], test.names[j]) for i, j in np.argwhere(np.triu(skeleton.adjacent))]
    [('raf', 'mek'), ('pkc', 'p38')]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._known: dict[tuple[int, int, Nodes], float] = {}

    @abstractmethod
    def _p_value(self, x: int, y: int, given: Nodes) -> float:
        """Return the p-value for x < y and an ascending set; NaN where the data don't determine it."""

    def p_value(self, x: Hashable, y: Hashable, given: Iterable[Hashable] = ()) -> float:
        """Return the p-value of the hypothesis that x and y are independent given a set of others.

        Parameters
        ----------
        x, y : str or int
            Two variables.
        given : iterable of str or int
            Others.

        Returns
        -------
        float
            NaN where the data don't determine it, for instance because the set determines one of the two.
        """
        i, j = (graphs.node_index(node, self.names) for node in (x, y))
        others = [graphs.node_index(node, self.names) for node in given]
        if len({i, j, *others}) < 2 + len(others):
            variables = [self.names[k] for k in (i, j, *others)]
            raise ValueError(f"x, y and the variables given must all differ; received {variables}")
        return self.known(i, j, tuple(others))

    def known(self, x: int, y: int, given: Nodes) -> float:
        """Return the p-value by index, from memory where it was asked for before.

        Parameters
        ----------
        x, y : int
            Two variables' indices.
        given : tuple of int
            Indices of others.
        """
        key = (min(x, y), max(x, y), tuple(sorted(given)))
        if key not in self._known:
            self._known[key] = self._p_value(*key)
        return self._known[key]

    def skeleton(
        self, alpha: float, max_conditioning: int | None, kept: Bools, apart: Bools, progressbar: bool = False
    ) -> Skeleton:
        """Return the pairs that no conditioning set makes independent; see `candidates.pc_skeleton`.

        Parameters
        ----------
        alpha : float
            Level of each test.
        max_conditioning : int or None
            Largest conditioning set.
        kept, apart : ndarray of bool, shape (n, n)
            Pairs that are adjacent whatever the tests say, and pairs that aren't; symmetric.
        progressbar : bool
            Whether to show progress.
        """
        n = len(self.names)
        adjacent = ~(np.eye(n, dtype=bool) | apart)
        largest = np.where(adjacent, -1.0, np.nan)
        separating: dict[tuple[int, int], Nodes] = {}
        size = 0
        while (more := (adjacent.sum(axis=0) > size).any()) and (max_conditioning is None or size <= max_conditioning):
            pairs = np.argwhere(np.triu(adjacent & ~kept)).tolist()
            with progress_bar(f"Given {size}", len(pairs), progressbar) as advance:
                for x, y in pairs:
                    self._test_pair(x, y, size, adjacent, alpha, largest, separating)
                    advance(1)
            for x, y in separating:
                adjacent[x, y] = adjacent[y, x] = False
            size += 1
        # No test at all says no more against independence than a p-value of zero.
        strengths = -ndtri(np.maximum(largest, 0.0) / 2)
        strengths[np.isnan(strengths)] = np.inf
        return Skeleton(adjacent, strengths, separating, max(size - 1, 0), not more)

    def _test_pair(
        self,
        x: int,
        y: int,
        size: int,
        adjacent: Bools,
        alpha: float,
        largest: Floats,
        separating: dict[tuple[int, int], Nodes],
    ) -> None:
        """Test a pair given all sets of a size, and note the one nearest to independence."""
        for given in neighbour_sets(x, y, size, adjacent):
            p = self.known(x, y, given)
            if p > largest[x, y]:
                largest[x, y] = largest[y, x] = p
                if p >= alpha:
                    separating[x, y] = given


def neighbour_sets(x: int, y: int, size: int, adjacent: Bools) -> Iterator[Nodes]:
    """Yield the sets of `size` neighbours of x, and then of y, each set once.

    Examples
    --------
    >>> list(neighbour_sets(0, 1, 1, np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)))
    [(2,)]
    """
    around = [[int(k) for k in np.flatnonzero(adjacent[i]) if k not in (x, y)] for i in (x, y)]
    seen = set(combinations(around[0], size))
    yield from combinations(around[0], size)
    yield from (given for given in combinations(around[1], size) if given not in seen)


class CallableTest(ConditionalIndependenceTest):
    """A test that is a function.

    Parameters
    ----------
    function : callable
        Takes the table as a DataFrame of numbers (categories by their codes), the names of two variables and a tuple of
        names of those given; returns the p-value, or NaN where the data don't determine it.

    Examples
    --------
    >>> always = CallableTest(lambda table, x, y, given: 1.0)
    >>> always.bind(np.array([[0.0, 1.0], [1.0, 0.0]])).p_value("v1", "v2")
    1.0
    """

    def __init__(self, function: Callable[[pd.DataFrame, str, str, tuple[str, ...]], float]) -> None:
        self.function = function

    def _bind(self, data: Data, rng: np.random.Generator) -> BoundTest:
        return _BoundCallable(self.function, data.with_rows("a user-defined test needs the rows"))


class _BoundCallable(BoundTest):
    def __init__(self, function: Callable[..., float], data: Dataset) -> None:
        super().__init__(data.names)
        self.function = function
        self.table = pd.DataFrame(data.values, columns=list(data.names))

    def _p_value(self, x: int, y: int, given: Nodes) -> float:
        p = float(self.function(self.table, self.names[x], self.names[y], tuple(self.names[k] for k in given)))
        if p < 0 or p > 1:
            raise ValueError(f"a test must return a p-value between 0 and 1, or NaN; received {p}")
        return p
