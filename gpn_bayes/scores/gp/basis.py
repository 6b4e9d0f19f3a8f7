"""Rows once and for all: a low-rank form of the squared-exponential kernel that serves every length scale.

For one variable, functions of length scale theta or more are determined, to rounding, by their values at a few nodes
z: f(x) = sum_a W_a(x) f(z_a). Nodes and W come from an interpolative decomposition of kernel columns of several length
scales, whose error is that of the columns; a pivoted Cholesky factorisation of the kernel alone would only reach its
square root. The spaces of these functions are nested: the longer the length scale, the smaller. So orthonormal
functions U are chosen from the longest length scale down, and the first m of them serve all length scales from some
theta on: K_theta = U C(theta) U', with C(theta) a matrix of size m. Its Cholesky factor B(theta) is tabulated.
"""

import os
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, helmert, qr, solve_triangular

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data.weights import weighted_sums
from gpn_bayes.kernels.algebra.tiles import TILE_ROWS
from gpn_bayes.kernels.gaussian_process.features import RowFunctions
from gpn_bayes.kernels.gaussian_process.links import Counts
from gpn_bayes.kernels.gaussian_process.low_rank import CELL_WIDTH, CELLS, DEGREE, LOWEST_THETA, Moments

# Length scales, relative to the shortest, whose columns the nodes must carry; a constant stands for all longer ones.
_SAMPLED = (1.0, 1.4, 2.0, 3.3)
_NODE_TOLERANCE = 3e-14
# Nodes are chosen among the pivots for a somewhat shorter length scale.
_SHRINK = 1.5
# Of many points, those serve that are a length scale over this apart: the kernel hardly changes in between.
_STEPS = 50
_CHUNK = 8192
# Functions are added for the length scale at which every second cell begins.
_CELLS_A_LEVEL = 2
# Beyond this many rows, errors may grow in proportion to them: so do differences in log likelihood that matter.
MANY_ROWS = 3000
# About the rounding of the kernel, relative to the number of rows; more only where C(theta) isn't positive definite.
_RIDGE = 3e-16
# Steps of the logarithm of rounded length scales, and how many bytes of their functions are kept.
_STEP, _MOST_BYTES = 0.02, 256_000_000


def by_weight(rows: Floats, weights: Floats | None) -> Floats:
    """Return rows times their weights, if there are any."""
    return rows if weights is None else weights[:, None] * rows


def squared_distances(a: Floats, b: Floats, spacing: float = 0.0) -> Floats:
    """Return the squared distances between values of a variable, every one of `a` and every one of `b`.

    Parameters
    ----------
    a, b : ndarray
        The values: numbers, or codes of levels.
    spacing : float, default 0
        The squared distance between any two levels of a category without order; 0 for numbers.

    Examples
    --------
    >>> squared_distances(np.array([0.0, 2.0]), np.array([0.0, 1.0, 2.0]), spacing=3.0)
    array([[0., 3., 3.],
           [3., 3., 0.]])
    """
    squares: Floats = spacing * (a[:, None] != b[None, :]) if spacing else (a[:, None] - b[None, :]) ** 2
    return squares


def squared_exponential(squares: Floats, theta: float) -> Floats:
    """Return the squared-exponential kernel, given squared distances.

    Examples
    --------
    >>> squared_exponential(np.array([[0.0, 2.0]]), theta=1.0).round(3)
    array([[1.   , 0.368]])
    """
    kernel = squares * (-0.5 / theta**2)
    return np.exp(kernel, out=kernel)


def _thinned(points: Floats, theta: float) -> Floats:
    """Return the first of many sorted points in each step of a grid that is much finer than the length scale."""
    if len(points) <= MANY_ROWS:
        return points
    steps = np.floor(points * (_STEPS / theta))
    kept: Floats = points[np.concatenate([[True], steps[1:] > steps[:-1]])]
    return kept


def _pivots(points: Floats, theta: float) -> Floats:
    """Return the points at which a pivoted Cholesky factorisation of the kernel matrix pivots."""
    left = np.ones(len(points))
    factor = np.empty((64, len(points)))
    chosen: list[int] = []
    while len(chosen) < len(points):
        pivot = int(left.argmax())
        if left[pivot] <= 1e-15:
            break
        rank = len(chosen)
        if rank == len(factor):
            factor = np.concatenate([factor, np.empty_like(factor)])
        column = np.exp(-0.5 * ((points - points[pivot]) / theta) ** 2)
        column -= factor[:rank, pivot] @ factor[:rank]
        column /= np.sqrt(left[pivot])
        factor[rank] = column
        left -= column**2
        left[pivot] = 0.0
        chosen.append(pivot)
    return points[chosen]


def _features(points: Floats, centres: Floats, theta: float) -> Floats:
    squares = squared_distances(points, centres)
    kernels = [squared_exponential(squares, theta * factor) for factor in _SAMPLED]
    return np.hstack([*kernels, np.ones((len(points), 1))])


def _interpolate(points: Floats, theta: float) -> tuple[Floats, Floats]:
    """Return nodes for functions of length scale theta or more, and the weights W of every point."""
    centres = _pivots(_thinned(points, theta / _SHRINK), theta / _SHRINK)
    q, r, order = qr(_features(centres, centres, theta).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(r))
    m = int((sizes > _NODE_TOLERANCE * sizes[0]).sum())
    chunks = [
        solve_triangular(r[:m, :m], q[:, :m].T @ _features(points[begin : begin + _CHUNK], centres, theta).T).T
        for begin in range(0, len(points), _CHUNK)
    ]
    return centres[order[:m]], np.vstack(chunks)


def _nested_functions(squares: Floats, root: Floats, n_rows: int, tolerance: float) -> Floats:
    """Return orthonormal functions, from the longest length scale down: a column has `root` @ (values at nodes)."""
    functions = (root @ np.ones(len(root)))[:, None]
    functions /= np.linalg.norm(functions)
    for cell in range(CELLS, -1, -_CELLS_A_LEVEL):
        left = root @ squared_exponential(squares, LOWEST_THETA * np.exp(cell * CELL_WIDTH)) / np.sqrt(n_rows)
        for _ in range(2):
            left -= functions @ (functions.T @ left)
        if (left**2).sum(axis=0).max() <= tolerance**2:
            continue
        q, r, _ = qr(left, mode="economic", pivoting=True)
        new = q[:, : min(int((np.abs(np.diag(r)) > tolerance).sum()), len(root) - functions.shape[1])]
        if new.shape[1]:
            new = np.linalg.qr(new - functions @ (functions.T @ new))[0]
            functions = np.hstack([functions, new])
    return functions


def _monomials() -> tuple[Floats, Floats]:
    """Return Chebyshev points, and the matrix that makes polynomials of the values there."""
    points = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    return points, np.linalg.inv(np.vander(points, increasing=True))


class _Rows:
    """The rows of a table, seen through each variable's nodes, made as far as they are asked for."""

    def __init__(self, values: Floats, weights: Floats | None, spacings: Floats) -> None:
        self.values = values
        self.weights = weights
        self.spacings = spacings
        self._nodes: dict[int, tuple[Floats, Floats]] = {}
        self._grams: dict[tuple[int, int], Floats] = {}
        self._grams_of_parts: dict[tuple[int, int], Floats] = {}

    def nodes(self, i: int) -> tuple[Floats, Floats]:
        """Return the nodes of a variable, and the weights W of all rows."""
        if i not in self._nodes:
            points, place = np.unique(self.values[:, i], return_inverse=True)
            # Functions of levels are their values there.
            nodes, weights = (points, np.eye(len(points))) if self.spacings[i] else _interpolate(points, LOWEST_THETA)
            self._nodes[i] = nodes, weights[place]
        return self._nodes[i]

    def gram(self, i: int, j: int) -> Floats:
        """Return W_i'W_j, in which every row counts by its weight."""
        if i > j:
            return self.gram(j, i).T
        if (i, j) not in self._grams:
            self._grams[i, j] = by_weight(self.nodes(i)[1], self.weights).T @ self.nodes(j)[1]
        return self._grams[i, j]

    def grams_of_parts(self, i: int, j: int, parts: list[Ints]) -> Floats:
        """Return W_i'W_j of each of some parts of the rows, which must always be the same."""
        if (i, j) not in self._grams_of_parts:
            first, second = self.nodes(i)[1], self.nodes(j)[1]
            self._grams_of_parts[i, j] = np.array([first[rows].T @ second[rows] for rows in parts])
        return self._grams_of_parts[i, j]


class _Variable:
    """The functions U of one variable, and the tables of its kernel, to some tolerance of kernel columns.

    Attributes
    ----------
    at_nodes : ndarray of shape (nodes, functions)
        The functions at the nodes: U = W at_nodes.
    sizes : ndarray of int64, shape (cells,)
        How many of the functions each cell of log theta needs.
    coefficients : ndarray, one-dimensional
        The polynomials of B, cell after cell.
    """

    def __init__(self, squares: Floats, gram: Floats, n_rows: int, tolerance: float) -> None:
        root = cholesky(gram)
        functions = _nested_functions(squares, root, n_rows, tolerance)
        self.sizes, self.coefficients = _tabulate(squares, root.T @ functions, n_rows, tolerance)
        self.at_nodes = solve_triangular(root, functions[:, : self.sizes.max()])


def _tabulate(squares: Floats, dual: Floats, n_rows: int, tolerance: float) -> tuple[Ints, Floats]:
    """Return for every cell of log theta how many functions it needs, and the polynomials of B.

    C(theta) is dual' K_theta(z, z) dual.
    """
    points, to_monomials = _monomials()
    sizes, tables = [], []
    for cell in range(CELLS):
        theta = LOWEST_THETA * np.exp(cell * CELL_WIDTH)
        parts = dual.T @ squared_exponential(squares, theta) / np.sqrt(n_rows)
        left = np.sqrt(np.cumsum((parts**2)[::-1], axis=0)[::-1].max(axis=1))
        m = max(int((left > tolerance).sum()), 1)
        own, lower = dual[:, :m], np.tril_indices(m)
        scales = theta * np.exp(0.5 * (points + 1.0) * CELL_WIDTH)
        kernels = np.array([own.T @ squared_exponential(squares, scale) @ own for scale in scales])
        values = _factors(kernels, _RIDGE * n_rows)[:, *lower]
        sizes.append(m)
        tables.append((to_monomials @ values).ravel())
    return np.array(sizes), np.concatenate(tables)


def _factors(kernels: Floats, ridge: float) -> Floats:
    """Return the Cholesky factors of matrices that are positive definite but for rounding."""
    while True:
        try:
            return np.linalg.cholesky(kernels + ridge * np.eye(kernels.shape[1]))
        except np.linalg.LinAlgError:
            ridge *= 2


class Functions(NamedTuple):
    """Functions of one variable whose outer products add up to its kernel: times standard normal c, they are a process.

    Attributes
    ----------
    at_nodes : ndarray of shape (nodes, functions)
        At the variable's nodes.
    at_points : ndarray of shape (points, functions)
        At all rows, or at other points.
    """

    at_nodes: Floats
    at_points: Floats


class Basis:
    """The low-rank form of a whole table.

    Parameters
    ----------
    values : ndarray of shape (rows, variables)
        The standardised table.
    tolerance : float, default 1e-6
        How much the columns of the kernel matrix may be off, over the number of rows (or `MANY_ROWS`, if there are
        more). Log likelihoods are then off by less than a hundred times as much, most by far less; 1e-11 is as fine as
        rounding allows.
    mu : pair of float
        Prior mean and standard deviation of the node's mean.
    experiment : ndarray of int, optional
        The number of each row's experiment, where moments are asked for that are of some experiments only.
    weights : ndarray, optional
        How many rows each row stands for; functions are then orthonormal over all these.
    spacings : ndarray of shape (variables,), optional
        For variables that are categories without order, whose values are codes of levels, the squared distance between
        any two of these; 0 for numbers.

    Examples
    --------
    >>> basis = Basis(np.random.default_rng(1).normal(size=(50, 3)))
    >>> len(basis.moments(0, (1, 2)).starts)
    3
    """

    def __init__(
        self,
        values: Floats,
        tolerance: float = 1e-6,
        mu: tuple[float, float] = (0.0, 1.0),
        experiment: Ints | None = None,
        weights: Floats | None = None,
        spacings: Floats | None = None,
    ) -> None:
        self.values = values
        self.tolerance = tolerance
        self.mu = mu
        self.experiment = experiment
        self.weights = weights
        self.size = len(values) if weights is None else round(float(weights.sum()))
        self.spacings = np.zeros(values.shape[1]) if spacings is None else spacings
        self._rows = _Rows(values, weights, self.spacings)
        self._variables: list[_Variable] = []
        self._grams: dict[tuple[int, int], Floats] = {}
        self._grams_of_parts: dict[tuple[int, int], Floats] = {}
        self._with_all_of_parts: dict[int, Floats] = {}
        self._near: OrderedDict[tuple[int, int], Functions] = OrderedDict()
        self._near_bytes = 0
        self._lock = threading.Lock()

    def rougher(self, tolerance: float) -> "Basis":
        """Return a basis of another tolerance that shares what was made of the rows."""
        other = Basis(self.values, tolerance, self.mu, self.experiment, self.weights, self.spacings)
        other._rows, other._lock = self._rows, self._lock
        return other

    def moments(self, node: int, parents: tuple[int, ...], group: tuple[int, ...] | None = None) -> Moments:
        """Return what the likelihood of a node given its parents needs of the rows, or of those of some experiments."""
        with self._lock:
            if group is None:
                self._prepare(parents)
            else:
                self._prepare_parts(parents)
        sizes = np.array([self._variables[p].sizes.max() for p in parents], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // TILE_ROWS) * TILE_ROWS)])
        spans = [slice(start, start + size) for start, size in zip(starts[:-1], sizes, strict=True)]
        gram, with_one, with_y = np.zeros((starts[-1], starts[-1])), np.zeros(starts[-1]), np.zeros(starts[-1])
        chosen = None if group is None else list(group)
        for i, span in zip(parents, spans, strict=True):
            with_all = self._with_all[i] if chosen is None else self._with_all_of_parts[i][chosen].sum(axis=0)
            with_one[span], with_y[span] = with_all[:, -1], with_all[:, node]
            for j, other in zip(parents, spans, strict=True):
                if i <= j and chosen is not None:
                    gram[span, other] = self._grams_of_parts[i, j][chosen].sum(axis=0)
                elif i < j:
                    gram[span, other] = self._grams[i, j]
                if i < j:
                    gram[other, span] = gram[span, other].T
        rows = self.rows_of(group)
        y = self.values[rows, node] - self.mu[0]
        n_rows, y_sum, y_squares = weighted_sums(y, None if self.weights is None else self.weights[rows])
        return Moments(
            cells=self._cells[list(parents)],
            coefficients=self._coefficients,
            starts=starts,
            gram=gram,
            orthonormal=group is None,
            with_one=with_one,
            with_y=with_y,
            n_rows=n_rows,
            y_squares=y_squares,
            y_sum=y_sum,
            mean_sd=float(self.mu[1]),
        )

    def counts(self, parents: tuple[int, ...], levels: Ints, offsets: Floats, ordered: bool) -> Counts:
        """Return what the likelihood of a category given its parents needs of the rows.

        Parameters
        ----------
        parents : tuple of int
            The parents.
        levels : ndarray of int, shape (rows,)
            The category's levels, by code.
        offsets, ordered
            As of `Counts`.
        """
        # Rows of equal parents are one.
        _, first, place = np.unique(self.values[:, parents], axis=0, return_index=True, return_inverse=True)
        rows = self.row_functions(parents, first)
        observed = np.zeros((rows.functions.shape[1], len(offsets) + ordered))
        np.add.at(observed, (place.reshape(-1), levels), 1.0 if self.weights is None else self.weights)
        return Counts(rows, observed, offsets, ordered, helmert(observed.shape[1]))

    def row_functions(self, parents: tuple[int, ...], rows: Ints) -> RowFunctions:
        """Return the functions of a node's parents at some rows."""
        with self._lock:
            self._prepare(())
        sizes = np.array([self._variables[p].sizes.max() for p in parents], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // TILE_ROWS) * TILE_ROWS)])
        functions = np.zeros((starts[-1], -(-len(rows) // TILE_ROWS) * TILE_ROWS))
        for i, start, size in zip(parents, starts, sizes, strict=False):
            weights = self.interpolation(i)[1][rows]
            functions[start : start + size, : len(rows)] = (weights @ self._variables[i].at_nodes).T
        return RowFunctions(
            cells=self._cells[list(parents)],
            coefficients=self._coefficients,
            starts=starts,
            functions=functions,
            mean_sd=float(self.mu[1]),
        )

    def at_nodes(self, i: int) -> Floats:
        """Return the functions U of a variable at its nodes, of shape (nodes, functions)."""
        with self._lock:
            self._prepare(())
        return self._variables[i].at_nodes

    def rows_of(self, group: tuple[int, ...] | None) -> Ints | slice:
        """Return the rows of some experiments, or all."""
        if group is None or self.experiment is None:
            return slice(None)
        return np.flatnonzero(np.isin(self.experiment, group))

    def factor(self, i: int, theta: float) -> Floats:
        """Return B with B B' = K_theta of a variable, to rounding, for a length scale that the low-rank form serves.

        Parameters
        ----------
        i : int
            The variable.
        theta : float
            The length scale, `LOWEST_THETA` or more.
        """
        return self._functions(i, theta).at_points

    def functions_near(self, i: int, theta: float) -> Functions:
        """Return the functions of a variable whose length scale is rounded, by at most 1%; the last ones are kept.

        Where many length scales are averaged over, this is as good as the length scale itself, and much quicker.

        Parameters
        ----------
        i : int
            The variable.
        theta : float
            The length scale, `LOWEST_THETA` or more.
        """
        step = round(np.log(theta / LOWEST_THETA) / _STEP)
        with self._lock:
            known = self._near.get((i, step))
        if known is None:
            known = self._functions(i, LOWEST_THETA * float(np.exp(_STEP * step)))
            with self._lock:
                if (i, step) not in self._near:
                    self._near[i, step] = known
                    self._near_bytes += known.at_points.nbytes
                while self._near_bytes > _MOST_BYTES and len(self._near) > 1:
                    self._near_bytes -= self._near.popitem(last=False)[1].at_points.nbytes
        return known

    def _functions(self, i: int, theta: float) -> Functions:
        nodes, weights = self.interpolation(i)
        squares = squared_distances(nodes, nodes, self.spacings[i])
        values, vectors = np.linalg.eigh(squared_exponential(squares, theta))
        kept = values > _RIDGE * len(nodes)
        at_nodes = vectors[:, kept] * np.sqrt(values[kept])
        return Functions(at_nodes, weights @ at_nodes)

    def interpolation(self, i: int) -> tuple[Floats, Floats]:
        """Return the nodes z of a variable and the weights W of all rows: a smooth function is W times f(z) there."""
        with self._lock:
            return self._rows.nodes(i)

    def interpolation_gram(self, i: int, j: int) -> Floats:
        """Return W_i'W_j of the weights of two variables, in which every row counts by its own weight."""
        with self._lock:
            return self._rows.gram(i, j)

    def _prepare(self, parents: tuple[int, ...]) -> None:
        pairs = [(i, j) for i in parents for j in parents if i < j and (i, j) not in self._grams]
        if self._variables and not pairs:
            return
        with one_blas_thread:
            if not self._variables:
                self._read_variables()
            for i, j in pairs:
                first, second = self._variables[i].at_nodes, self._variables[j].at_nodes
                self._grams[i, j] = first.T @ self._rows.gram(i, j) @ second

    def _prepare_parts(self, parents: tuple[int, ...]) -> None:
        """Make what moments of some experiments are sums of."""
        pairs = [(i, j) for i in parents for j in parents if i <= j and (i, j) not in self._grams_of_parts]
        if not pairs:
            return
        assert self.experiment is not None
        parts = [np.flatnonzero(self.experiment == k) for k in range(int(self.experiment.max()) + 1)]
        with one_blas_thread:
            if not self._variables:
                self._read_variables()
            for i, j in pairs:
                first, second = self._variables[i].at_nodes, self._variables[j].at_nodes
                self._grams_of_parts[i, j] = first.T @ self._rows.grams_of_parts(i, j, parts) @ second
            for i in {i for pair in pairs for i in pair if i not in self._with_all_of_parts}:
                weights, own = self._rows.nodes(i)[1], self._variables[i].at_nodes
                self._with_all_of_parts[i] = np.array(
                    [own.T @ (weights[rows].T @ self._with_ones(rows)) for rows in parts]
                )

    def _with_ones(self, rows: Ints | slice) -> Floats:
        """Return some rows less the prior mean of mu, and a column of ones."""
        values = self.values[rows] - self.mu[0]
        return np.column_stack([values, np.ones(len(values))])

    def _read_variables(self) -> None:
        n_rows, n = self.size, self.values.shape[1]
        tolerance = self.tolerance / min(n_rows, MANY_ROWS)

        def read(i: int) -> _Variable:
            nodes = self._rows.nodes(i)[0]
            squares = squared_distances(nodes, nodes, self.spacings[i])
            return _Variable(squares, self._rows.gram(i, i), n_rows, tolerance)

        # In threads of its own: numpy lets go of the interpreter, and whoever needs a score has to wait for this.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            variables = list(pool.map(read, range(n)))
        self._coefficients = np.concatenate([variable.coefficients for variable in variables])
        self._cells = np.empty((n, CELLS, 2), np.int64)
        begin = 0
        for i, variable in enumerate(variables):
            lengths = (DEGREE + 1) * variable.sizes * (variable.sizes + 1) // 2
            self._cells[i, :, 0] = variable.sizes
            self._cells[i, :, 1] = begin + np.cumsum(lengths) - lengths
            begin += int(lengths.sum())
        both = by_weight(self._with_ones(slice(None)), self.weights)
        self._with_all = [
            variable.at_nodes.T @ (self._rows.nodes(i)[1].T @ both) for i, variable in enumerate(variables)
        ]
        self._variables = variables

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again: workers get the table only."""
        kept = ("values", "tolerance", "mu", "experiment", "weights", "spacings")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing made."""
        self.__init__(**state)  # type: ignore[misc]  # a subclass could take other arguments; there is none


class PartOfBasis:
    """The low-rank form of the rows of some experiments, by the functions of the whole table.

    Those are not orthonormal on some of the rows, which makes a likelihood slower; but nothing has to be made anew for
    each of many groups of experiments.

    Parameters
    ----------
    whole : Basis
        That of the whole table.
    group : tuple of int
        The experiments.
    """

    def __init__(self, whole: Basis, group: tuple[int, ...]) -> None:
        self._whole = whole
        self._group = group
        self.spacings = whole.spacings

    def moments(self, node: int, parents: tuple[int, ...]) -> Moments:
        """Return what the likelihood of a node given its parents needs of these rows."""
        return self._whole.moments(node, parents, self._group)

    def factor(self, i: int, theta: float) -> Floats:
        """Return B with B B' = K_theta of a variable in these rows; see `Basis.factor`."""
        return self._whole.factor(i, theta)[self._whole.rows_of(self._group)]

    def functions_near(self, i: int, theta: float) -> Functions:
        """Return the functions of a variable, in these rows; see `Basis.functions_near`."""
        whole = self._whole.functions_near(i, theta)
        return Functions(whole.at_nodes, whole.at_points[self._whole.rows_of(self._group)])

    def interpolation(self, i: int) -> tuple[Floats, Floats]:
        """Return the nodes of a variable and the weights of these rows; see `Basis.interpolation`."""
        nodes, weights = self._whole.interpolation(i)
        return nodes, weights[self._whole.rows_of(self._group)]

    def interpolation_gram(self, i: int, j: int) -> Floats:
        """Return W_i'W_j of these rows."""
        gram: Floats = self.interpolation(i)[1].T @ self.interpolation(j)[1]
        return gram
