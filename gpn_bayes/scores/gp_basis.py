"""Rows once and for all: a low-rank form of the squared-exponential kernel that serves every length scale.

For one variable, functions of length scale theta or more are determined, to rounding, by their values at a few nodes
z: f(x) = sum_a W_a(x) f(z_a). Then K_theta(x, x') = W K_theta(z, z) W' for all such theta, and a likelihood needs the
rows only through W'W, W'y and W'1. Nodes and W come from an interpolative decomposition of kernel columns of several
length scales, whose error is that of the columns; a pivoted Cholesky factorisation of the kernel alone would only reach
its square root.

The rows are seen once, for the finest level. A coarser level has fewer nodes, and its functions are known at the finer
level's nodes, so that its W'W follows from the finest one's.
"""

import threading
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from gpn_bayes.kernels.gp import Moments

# The length scales the levels are made for; below the first, the dense likelihood is used.
LEVELS = np.array([0.1, 0.22, 0.5, 1.1, 2.4, 5.3, 12.0])
# Length scales, relative to a level's own, whose columns its nodes must carry; a constant stands for all longer ones.
_SAMPLED = (1.0, 1.4, 2.0, 3.3)
_TOLERANCE = 3e-14
# Nodes are chosen among the pivots for a somewhat shorter length scale.
_SHRINK = 1.5
_CHUNK = 8192


def _kernel(a: np.ndarray, b: np.ndarray, theta: float) -> np.ndarray:
    return np.exp(-0.5 * ((a[:, None] - b[None, :]) / theta) ** 2)


def _pivots(points: np.ndarray, theta: float) -> np.ndarray:
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


def _features(points: np.ndarray, centres: np.ndarray, theta: float) -> np.ndarray:
    kernels = [_kernel(points, centres, theta * factor) for factor in _SAMPLED]
    return np.hstack([*kernels, np.ones((len(points), 1))])


def _interpolate(points: np.ndarray, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes for functions of length scale theta or more, and the weights W of every point."""
    centres = _pivots(points, theta / _SHRINK)
    q, r, order = qr(_features(centres, centres, theta).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(r))
    m = int((sizes > _TOLERANCE * sizes[0]).sum())
    chunks = [
        solve_triangular(r[:m, :m], q[:, :m].T @ _features(points[begin : begin + _CHUNK], centres, theta).T).T
        for begin in range(0, len(points), _CHUNK)
    ]
    return centres[order[:m]], np.vstack(chunks)


@dataclass(frozen=True)
class _Variable:
    """One variable's nodes on all levels, level after level, and how they follow from the finest level's."""

    nodes: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    spread: np.ndarray


def _read_variable(column: np.ndarray) -> _Variable:
    points, place = np.unique(column, return_inverse=True)
    finest, weights = _interpolate(points, float(LEVELS[0]))
    nodes, spread = [finest], [np.eye(len(finest))]
    for theta in LEVELS[1:]:
        own, at_finest = _interpolate(finest, float(theta))
        nodes.append(own)
        spread.append(at_finest)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in nodes])])
    return _Variable(np.concatenate(nodes), starts, weights[place], np.hstack(spread))


class Basis:
    """The low-rank form of a whole table, made as far as it is asked for.

    Parameters
    ----------
    values : ndarray of shape (rows, variables)
        The standardised table.

    Examples
    --------
    >>> basis = Basis(np.random.default_rng(1).normal(size=(50, 3)))
    >>> basis.moments(0, (1, 2)).starts.shape
    (2, 8)
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._variables: dict[int, _Variable] = {}
        self._with_all: dict[int, np.ndarray] = {}
        self._grams: dict[tuple[int, int], np.ndarray] = {}
        self._lock = threading.Lock()

    def moments(self, node: int, parents: tuple[int, ...]) -> Moments:
        """Return what the likelihood of a node given its parents needs of the rows."""
        with self._lock:
            self._prepare(parents)
        variables = [self._variables[p] for p in parents]
        offsets = np.concatenate([[0], np.cumsum([len(v.nodes) for v in variables])]).astype(np.int64)
        gram = np.empty((offsets[-1], offsets[-1]))
        for a, i in enumerate(parents):
            for b, j in enumerate(parents):
                block = self._grams[i, j] if i <= j else self._grams[j, i].T
                gram[offsets[a] : offsets[a + 1], offsets[b] : offsets[b + 1]] = block
        y = self.values[:, node]
        return Moments(
            nodes=np.concatenate([v.nodes for v in variables]) if variables else np.empty(0),
            starts=np.array(
                [v.starts + offset for v, offset in zip(variables, offsets, strict=False)], np.int64
            ).reshape(len(parents), len(LEVELS) + 1),
            thetas=LEVELS,
            gram=gram,
            with_one=np.concatenate([self._with_all[p][:, -1] for p in parents]) if parents else np.empty(0),
            with_y=np.concatenate([self._with_all[p][:, node] for p in parents]) if parents else np.empty(0),
            sizes=np.array([float(len(y)), float(y @ y)]),
        )

    def _prepare(self, parents: tuple[int, ...]) -> None:
        for p in parents:
            if p not in self._variables:
                variable = _read_variable(self.values[:, p])
                both = np.column_stack([self.values, np.ones(len(self.values))])
                self._with_all[p] = variable.spread.T @ (variable.weights.T @ both)
                self._variables[p] = variable
        for i in parents:
            for j in parents:
                if i <= j and (i, j) not in self._grams:
                    first, second = self._variables[i], self._variables[j]
                    finest = first.weights.T @ second.weights
                    self._grams[i, j] = first.spread.T @ finest @ second.spread

    def __getstate__(self) -> dict:
        """Leave out what can be made again: workers get the table only."""
        return {"values": self.values}

    def __setstate__(self, state: dict) -> None:
        """Start with nothing made."""
        self.__init__(state["values"])  # type: ignore[misc]
