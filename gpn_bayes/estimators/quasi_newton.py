"""Smooth functions plus weighted absolute values, minimised by two quasi-Newton methods whose zeros are exact."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.learners.proximal import descend_coordinates

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
SOLVERS = ("orthant-wise", "proximal")
# Pairs of steps and gradient changes that make up the model of the curvature.
_MEMORY = 10
_ARMIJO = 1e-4
_MOST_HALVINGS = 45
# Progress is judged over this many steps: one may be short by chance.
_WINDOW = 10
_COORDINATE_ROUNDS = 200


class Minimum(NamedTuple):
    """Where a minimisation ended.

    Attributes
    ----------
    x : ndarray
        The point.
    value : float
        The function there, penalties included.
    evaluations : int
        How often the function was computed.
    """

    x: np.ndarray
    value: float
    evaluations: int


class _Point(NamedTuple):
    """A point with the gradient of the smooth part, and the whole objective."""

    x: np.ndarray
    gradient: np.ndarray
    value: float


class _Problem:
    """What is minimised, and how often it was computed."""

    def __init__(self, function: Function, penalties: Floats) -> None:
        self.function = function
        self.penalties = penalties
        self.evaluations = 0

    def at(self, x: Floats) -> _Point:
        self.evaluations += 1
        smooth, gradient = self.function(x)
        return _Point(x, gradient, smooth + float(self.penalties @ np.abs(x)))


class _Curvature:
    """The latest steps and changes of the gradient, along which the curvature is known."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)

    def add(self, step: Floats, change: Floats) -> None:
        """Take in a step, unless the function bends down along it."""
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs.append((step, change, product))

    @property
    def scale(self) -> float:
        """The curvature where none is known."""
        if not self.pairs:
            return 1.0
        _, change, product = self.pairs[-1]
        return float(change @ change) / product

    def newton(self, gradient: Floats) -> Floats:
        """Return the inverse of the curvature times a gradient (two loops over the pairs)."""
        direction = gradient.copy()
        shares = []
        for step, change, product in reversed(self.pairs):
            shares.append(float(step @ direction) / product)
            direction -= shares[-1] * change
        direction /= self.scale
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            direction += (share - float(change @ direction) / product) * step
        return direction

    def compact(self, size: int) -> tuple[Floats, Floats]:
        """Return Q and Q R such that the curvature is `scale` I - Q R Q' (Byrd, Nocedal & Schnabel 1994)."""
        if not self.pairs:
            return np.zeros((size, 1)), np.zeros((size, 1))
        steps, changes = (np.array(part) for part in list(zip(*self.pairs, strict=True))[:2])
        products = steps @ changes.T
        lower = np.tril(products, -1)
        middle = np.block([[self.scale * steps @ steps.T, lower], [lower.T, -np.diag(np.diag(products))]])
        wide = np.vstack([self.scale * steps, changes])
        return np.ascontiguousarray(wide.T), np.ascontiguousarray(np.linalg.solve(middle, wide).T)


def minimise(
    function: Function,
    start: Floats,
    penalties: Floats,
    tolerance: float = 1e-9,
    solver: str = "orthant-wise",
    most_steps: int = 10_000,
) -> Minimum:
    """Minimise f(x) + sum of penalties |x|.

    Parameters
    ----------
    function : callable
        Returns f and its gradient; f may be infinite or NaN outside its domain.
    start : ndarray, shape (size,)
        Where to begin, with f finite.
    penalties : ndarray, shape (size,)
        None is negative; coordinates without one move freely.
    tolerance : float
        Steps end when they lower the value by less than this share of it each, on average over ten.
    solver : {"orthant-wise", "proximal"}
        "orthant-wise" (Andrew & Gao 2007) searches along the quasi-Newton direction within one orthant at a time;
        "proximal" (Zhong et al. 2014; section 4.2 of Zheng et al. 2018) minimises the quadratic model with the
        penalties by coordinate descent over the entries that aren't zero or won't stay so.
    most_steps : int
        They end here at the latest.

    Examples
    --------
    >>> minimum = minimise(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2), np.array([2.0, 9.0]))
    >>> minimum.x.round(6).tolist(), round(minimum.value, 6)
    ([2.0, 0.0], 14.0)
    """
    problem, curvature = _Problem(function, penalties), _Curvature()
    point = problem.at(np.array(start, dtype=float))
    values = deque([point.value], maxlen=_WINDOW + 1)
    advance = _orthant_step if solver == "orthant-wise" else _proximal_step
    for _ in range(most_steps):
        moved = advance(problem, point, curvature)
        if moved is None:
            if not curvature.pairs:
                break
            # What is known of the curvature misleads here: begin it anew.
            curvature = _Curvature()
            continue
        curvature.add(moved.x - point.x, moved.gradient - point.gradient)
        point = moved
        values.append(point.value)
        if len(values) > _WINDOW and values[0] - point.value <= _WINDOW * tolerance * abs(point.value):
            break
    return Minimum(point.x, point.value, problem.evaluations)


def steepest(gradient: Floats, x: Floats, penalties: Floats) -> Floats:
    """Return the gradient of the whole objective: at zeros the least in magnitude that it can be.

    Examples
    --------
    >>> steepest(np.array([0.5, -3.0, 1.0]), np.array([0.0, 0.0, 2.0]), np.ones(3)).tolist()
    [0.0, -2.0, 2.0]
    """
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - penalties, 0.0)
    slope: Floats = np.where(x != 0, gradient + penalties * np.sign(x), at_zero)
    return slope


def _orthant_step(problem: _Problem, point: _Point, curvature: _Curvature) -> _Point | None:
    """Return the next point of the orthant-wise method, or None where there is no better one."""
    penalised = problem.penalties > 0
    slope = steepest(point.gradient, point.x, problem.penalties)
    if not slope.any():
        return None
    direction = -curvature.newton(slope)
    direction[penalised & (direction * slope >= 0)] = 0.0
    if not float(direction @ slope) < 0:
        return None
    side = np.where(point.x != 0, np.sign(point.x), -np.sign(slope))
    length = 1.0 if curvature.pairs else min(1.0, 1.0 / float(np.linalg.norm(slope)))
    for _ in range(_MOST_HALVINGS):
        x = point.x + length * direction
        x[penalised & (x * side < 0)] = 0.0
        moved = problem.at(x)
        if moved.value <= point.value + _ARMIJO * float(slope @ (x - point.x)) and (x != point.x).any():
            return moved
        length *= 0.5
    return None


def _proximal_step(problem: _Problem, point: _Point, curvature: _Curvature) -> _Point | None:
    """Return the next point of the proximal method, or None where there is no better one."""
    penalties = problem.penalties
    slope = steepest(point.gradient, point.x, penalties)
    active = np.flatnonzero((point.x != 0) | (slope != 0))
    if not slope.any():
        return None
    # Before any curvature is known, a step as long as a unit of the gradient would be.
    scale = curvature.scale if curvature.pairs else max(1.0, float(np.abs(slope).sum()))
    wide, reduced = curvature.compact(len(point.x))
    step = np.zeros_like(point.x)
    descend_coordinates(point.gradient, point.x, penalties, scale, wide, reduced, active, _COORDINATE_ROUNDS, step)
    promised = float(point.gradient @ step) + float(penalties @ (np.abs(point.x + step) - np.abs(point.x)))
    if not promised < 0:
        return None
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        moved = problem.at(point.x + length * step)
        if moved.value <= point.value + _ARMIJO * length * promised:
            return moved
        length *= 0.5
    return None
