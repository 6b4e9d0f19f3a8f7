"""Which pairs of variables no conditioning set makes independent: the PC and dual PC algorithms."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from gpn_bayes._util.checks import check_share
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.independence.partial_correlations import DETERMINED, weakest_partials

# Some seconds; networks where a level takes more are so dense that higher levels hardly thin them out.
MAX_TESTS = 1_000_000_000
# Correlations nearer to one differ from it by rounding alone.
_LARGEST_SQUARE = 1 - 1e-15

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The pairs of variables that stayed dependent in every test.

    Attributes
    ----------
    adjacent : ndarray of bool, shape (n, n)
        Symmetric.
    strengths : ndarray of shape (n, n)
        Smallest absolute z statistic of each pair over its tests: the smaller, the nearer to independence.
    separating_sets : dict
        For each pair (i, j), i < j, that isn't adjacent, the set given which it was nearest to independence.
    largest_set : int
        Size of the largest sets gone through: of conditioning sets, and of what they leave out in the dual algorithm.
    complete : bool
        Whether all sizes were gone through; False where the rows, `max_conditioning` or `max_tests` forbade it. Then
        there may be more pairs than there would be otherwise.
    """

    adjacent: np.ndarray
    strengths: np.ndarray
    separating_sets: dict[Pair, tuple[int, ...]]
    largest_set: int
    complete: bool

    @property
    def p_values(self) -> np.ndarray:
        """The largest p-value of each pair over its tests."""
        largest: Floats = 2 * ndtr(-self.strengths)
        return largest


def pc_skeleton(
    correlation: np.ndarray,
    n_rows: int,
    alpha: float = 0.05,
    max_conditioning: int | None = None,
    max_tests: int = MAX_TESTS,
    kept: np.ndarray | None = None,
    apart: np.ndarray | None = None,
) -> Skeleton:
    """Return the skeleton that the PC algorithm finds in Gaussian data, whatever the order of the variables.

    Starting from all pairs, level by level, a pair goes if it is independent (Fisher's z) given some set of that many
    neighbours of one of the two, where neighbours are those at the beginning of the level (Colombo & Maathuis 2014).
    Every set of a level is tested, and the one nearest to independence separates the pair.

    Sets that determine one of the two variables, or one of their own members, aren't tested: of two identical columns
    both keep their neighbours.

    Parameters
    ----------
    correlation : ndarray of shape (n, n)
        Correlations of the variables.
    n_rows : int
        Number of rows they were computed from.
    alpha : float, default 0.05
        Level of each test: larger values leave more pairs.
    max_conditioning : int, optional
        Largest conditioning set.
    max_tests : int
        No level is begun that could need more tests.
    kept, apart : ndarray of bool, shape (n, n), optional
        Pairs that are adjacent whatever the tests say, and pairs that aren't; symmetric.

    Examples
    --------
    >>> chain = np.array([[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
    >>> skeleton = pc_skeleton(chain, n_rows=1000)
    >>> skeleton.adjacent.astype(int).tolist(), skeleton.separating_sets
    ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], {(0, 2): (1,)})
    """
    return _climb(_Search(correlation, n_rows, alpha, kept, apart), max_conditioning, max_tests, dual=False)


def dual_pc_skeleton(
    correlation: np.ndarray,
    n_rows: int,
    alpha: float = 0.05,
    max_conditioning: int | None = None,
    max_tests: int = MAX_TESTS,
) -> Skeleton:
    """Return the skeleton that the dual PC algorithm finds in Gaussian data, whatever the order of the variables.

    As `pc_skeleton`, but every level also tests given all neighbours, and given all of them but a set of the level's
    size; and the first level also given all other variables (Giudice, Kuipers & Moffa 2022). The partial correlations
    of these complements come from the precision matrix as those of the sets from the correlation matrix.

    Where the variables of a neighbourhood determine each other, it has no precision matrix, and only sets are tested.

    Parameters
    ----------
    correlation, n_rows, alpha, max_conditioning, max_tests
        As for `pc_skeleton`; `max_conditioning` also limits what is left out of the complements.

    Raises
    ------
    ValueError
        If there aren't at least two rows more than variables.

    Examples
    --------
    >>> chain = np.array([[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
    >>> dual_pc_skeleton(chain, n_rows=1000).separating_sets
    {(0, 2): (1,)}
    """
    search = _Search(correlation, n_rows, alpha)
    check_dual_rows(len(search.matrix), n_rows)
    search.test_given_all_others()
    return _climb(search, max_conditioning, max_tests, dual=True)


def z_statistic(square: float, freedom: int) -> float:
    """Return Fisher's z, in standard errors, of a squared partial correlation with some degrees of freedom.

    Examples
    --------
    >>> round(z_statistic(0.25, 100), 3)
    5.493
    """
    return math.sqrt(freedom) * math.atanh(math.sqrt(min(square, _LARGEST_SQUARE)))


def check_dual_rows(n: int, n_rows: int) -> None:
    """Refuse tables with too few rows to condition on all other variables."""
    if n_rows < n + 2:
        raise ValueError(
            f"the dual PC algorithm needs two rows more than variables; received {n_rows} rows of {n} variables: "
            "use 'pc'"
        )


def _climb(search: "_Search", max_conditioning: int | None, max_tests: int, dual: bool) -> Skeleton:
    """Go through all levels above the first."""
    if max_conditioning is not None and max_conditioning < 0:
        raise ValueError(f"max_conditioning must be 0 or more; received {max_conditioning}")
    search.test_given_nothing()
    search.remove()
    size = 0
    while nodes := search.nodes_with(size + 1):
        forbidden = max_conditioning is not None and size + 1 > max_conditioning
        if forbidden or search.freedom(size + 1) < 1 or (1 + dual) * search.count_tests(size + 1) > max_tests:
            break
        size += 1
        for node in nodes:
            local = search.around(node)
            search.test_sets(local, size)
            if dual:
                search.test_complements(local, size)
        search.remove()
    return Skeleton(search.adjacent, search.strengths, search.separating_sets, size, not nodes)


@dataclass(eq=False)
class _Search:
    """The state of a search: who is still adjacent, and the weakest test of every pair so far."""

    matrix: np.ndarray
    n_rows: int
    alpha: float
    kept: np.ndarray | None = None
    apart: np.ndarray | None = None
    adjacent: np.ndarray = field(init=False)
    strengths: np.ndarray = field(init=False)
    separating_sets: dict[Pair, tuple[int, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Check the input; begin with all pairs."""
        self.matrix = _checked_correlation(self.matrix)
        check_share("alpha", self.alpha, ends=False)
        if self.freedom(0) < 1:
            raise ValueError(f"tests of independence need at least 4 rows; received {self.n_rows}")
        n = len(self.matrix)
        self._limit = -ndtri(self.alpha / 2)
        self.adjacent = ~np.eye(n, dtype=bool)
        if self.apart is not None:
            self.adjacent &= ~self.apart
        self.strengths = np.full((n, n), np.inf)

    def freedom(self, size: int) -> int:
        """Return the degrees of freedom of a test given a number of variables."""
        return self.n_rows - size - 3

    def nodes_with(self, size: int) -> list[int]:
        """Return the nodes with enough neighbours besides the one that is tested."""
        return np.flatnonzero(self.adjacent.sum(axis=0) > size).tolist()

    def count_tests(self, size: int) -> int:
        """Return the number of tests of a level."""
        degrees = self.adjacent.sum(axis=0).tolist()
        return sum(math.comb(degree, size) * max(degree - size, 0) for degree in degrees)

    def around(self, node: int) -> list[int]:
        """Return a node, then its neighbours."""
        return [node, *np.flatnonzero(self.adjacent[node]).tolist()]

    def test_given_nothing(self) -> None:
        """Test all pairs given nothing."""
        for i, j in np.argwhere(np.triu(self.adjacent)).tolist():
            self._note(i, j, self.matrix[i, j] ** 2, 0, tuple)

    def test_given_all_others(self) -> None:
        """Test all pairs given all other variables."""
        everyone = list(range(len(self.matrix)))
        precision = _precision(self.matrix, everyone)
        if precision is not None:
            for i, j in combinations(everyone, 2):
                self._note(i, j, precision[i, j] ** 2, len(everyone) - 2, partial(_without, everyone, {i, j}))

    def test_sets(self, local: list[int], size: int) -> None:
        """Test the first variable with the others, given all sets of a size of the others."""
        weakest, sets = weakest_partials(np.ascontiguousarray(self.matrix[np.ix_(local, local)]), size)
        for b in range(1, len(local)):
            self._note(local[0], local[b], weakest[b], size, partial(_members, local, sets[b]))

    def test_complements(self, local: list[int], size: int) -> None:
        """Test the first variable with the others, given all others, and all but any set of a size."""
        others = len(local) - 2
        precision = _precision(self.matrix, local)
        if precision is None:
            return
        if self.freedom(others) >= 1:
            for b in range(1, len(local)):
                given = partial(_without, local, {local[0], local[b]})
                self._note(local[0], local[b], precision[0, b] ** 2, others, given)
        # Smaller complements were sets of the levels below.
        if 2 * size < others and self.freedom(others - size) >= 1:
            weakest, sets = weakest_partials(precision, size)
            for b in range(1, len(local)):
                given = partial(_without, local, {local[0], local[b], *_members(local, sets[b])})
                self._note(local[0], local[b], weakest[b], others - size, given)

    def remove(self) -> None:
        """Take out the pairs that were independent in some test."""
        stays = self.strengths > self._limit
        self.adjacent &= stays if self.kept is None else stays | self.kept

    def _note(self, i: int, j: int, square: float, size: int, given: Callable[[], tuple[int, ...]]) -> None:
        """Remember a test of two variables if it is the weakest of its pair so far."""
        if square == np.inf:
            return
        z = z_statistic(square, self.freedom(size))
        if z < self.strengths[i, j]:
            self.strengths[i, j] = self.strengths[j, i] = z
            if z <= self._limit and (self.kept is None or not self.kept[i, j]):
                self.separating_sets[min(i, j), max(i, j)] = given()


def _members(local: list[int], positions: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(local[position] for position in positions))


def _without(local: list[int], left_out: set[int]) -> tuple[int, ...]:
    return tuple(sorted(set(local) - left_out))


def _precision(matrix: np.ndarray, local: list[int]) -> np.ndarray | None:
    """Return the precision matrix of some variables, scaled to a unit diagonal; None if it has no accurate one."""
    values, vectors = np.linalg.eigh(matrix[np.ix_(local, local)])
    if values[0] < DETERMINED:
        return None
    precision = (vectors / values) @ vectors.T
    scale = np.sqrt(np.diag(precision))
    scaled: Floats = precision / np.outer(scale, scale)
    return scaled


def _checked_correlation(correlation: np.ndarray) -> np.ndarray:
    matrix: Floats = np.array(correlation, dtype=float)
    rule = "correlations must be a symmetric matrix with ones on its diagonal"
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{rule}; received the shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{rule}; received NaN or infinity")
    if not (np.allclose(matrix, matrix.T, atol=1e-8) and np.allclose(np.diag(matrix), 1, atol=1e-8)):
        raise ValueError(f"{rule}; received another")
    return (matrix + matrix.T) / 2
