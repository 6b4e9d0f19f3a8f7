"""Acyclicity as a smooth constraint: the augmented Lagrangian, and a central path along which it tightens."""

from collections.abc import Iterator

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.estimators import lagrangian
from gpn_bayes.estimators.notears.objective import LinearProblem
from gpn_bayes.estimators.quasi_newton import Function, Minimum, minimise
from gpn_bayes.kernels.learners.acyclicity import Acyclicity, exponential, log_determinant, polynomial

ACYCLICITIES: dict[str, Acyclicity] = {
    "exponential": exponential,
    "polynomial": polynomial,
    "log-det": log_determinant,
}
# The constraint counts as met below this.
LARGEST_H = 1e-8
# The weight of the objective against the constraint, and the bound on the eigenvalues, along the path.
_PATH = ((1.0, 1.0), (0.1, 0.9), (0.01, 0.8), (0.001, 0.7), (0.0001, 0.6))
_EXACT = 1e-10
# Enough for an order to begin from: which variables come first is settled long before the weights are.
ROUGH = 1e-3


def augmented_lagrangian(problem: LinearProblem, acyclicity: str, solver: str) -> Iterator[np.ndarray]:
    """Yield the weights after every round of the augmented Lagrangian; the last meet tr exp(W * W) - d < 1e-8.

    Parameters
    ----------
    problem : LinearProblem
        What to minimise.
    acyclicity : {"exponential", "polynomial", "log-det"}
        The function h.
    solver : {"orthant-wise", "proximal"}
        How each round minimises.
    """
    free = _FreeWeights(problem, ACYCLICITIES[acyclicity])

    def minimiser(function: Function, start: Floats) -> Minimum:
        return free.minimise(function, start, 1.0, solver, _EXACT)

    for latest in lagrangian.augmented_lagrangian(free.loss, free.constraint, free.zeros(), 0.0, minimiser):
        weights = free.matrix(latest.x)
        yield weights
        # One measure for all: that of the paper.
        if exponential(weights[: problem.d] ** 2)[0] < LARGEST_H:
            return


def central_path(
    problem: LinearProblem, acyclicity: str, solver: str, tolerance: float = _EXACT
) -> Iterator[np.ndarray]:
    """Yield the weights along the central path: minima of mu F + h for falling mu, each from the one before.

    The last are nearly acyclic. With h = -log det(s I - W * W) + d log s, s falls as well (Bello et al. 2022).

    Parameters
    ----------
    problem : LinearProblem
        What to minimise.
    acyclicity : {"exponential", "polynomial", "log-det"}
        The function h.
    solver : {"orthant-wise", "proximal"}
        How each point is found.
    tolerance : float
        How exactly; see `quasi_newton.minimise`.
    """
    weights = np.zeros(problem.shape)
    for mu, s in _PATH:
        constraint = ACYCLICITIES[acyclicity]
        if acyclicity == "log-det":
            # Weights that the smaller s leaves outside stay with the larger one.
            s = s if np.isfinite(log_determinant(weights[: problem.d] ** 2, s)[0]) else 1.0
            constraint = _log_determinant_below(s)
        free = _FreeWeights(problem, constraint)
        weights = free.matrix(free.minimise(free.barrier(mu), weights[problem.free], mu, solver, tolerance).x)
        yield weights


def _log_determinant_below(s: float) -> Acyclicity:
    return lambda squares: log_determinant(squares, s)


class _FreeWeights:
    """The weights that may differ from zero, as a vector; with loss and constraint as functions of it."""

    def __init__(self, problem: LinearProblem, acyclicity: Acyclicity) -> None:
        self.problem = problem
        self.acyclicity = acyclicity

    def zeros(self) -> Floats:
        return np.zeros(int(self.problem.free.sum()))

    def matrix(self, x: Floats) -> Floats:
        weights = np.zeros(self.problem.shape)
        weights[self.problem.free] = x
        return weights

    def loss(self, x: Floats) -> tuple[float, Floats]:
        value, gradient = self.problem.loss_and_gradient(self.matrix(x))
        return value, gradient[self.problem.free]

    def constraint(self, x: Floats) -> tuple[float, Floats]:
        inner = self.matrix(x)[: self.problem.d]
        h, slope = self.acyclicity(inner**2)
        gradient = np.zeros(self.problem.shape)
        gradient[: self.problem.d] = 2 * inner * slope
        return h, gradient[self.problem.free]

    def barrier(self, mu: float) -> Function:
        def function(x: Floats) -> tuple[float, Floats]:
            loss, gradient = self.loss(x)
            h, slope = self.constraint(x)
            return mu * loss + h, mu * gradient + slope

        return function

    def minimise(self, function: Function, start: Floats, mu: float, solver: str, tolerance: float) -> Minimum:
        """Minimise a function plus mu times the penalties."""
        penalties = mu * self.problem.penalties[self.problem.free]
        # An infinite h times zero weights is no number; the line search turns back at infinite values anyway.
        with np.errstate(invalid="ignore", over="ignore"):
            return minimise(function, start, penalties, tolerance, solver)
