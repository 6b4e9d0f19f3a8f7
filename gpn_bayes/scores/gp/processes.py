"""Hyperparameters of processes that can't be integrated out exactly: what all kinds of observations have in common."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import pinvh

from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.features import RowFunctions, new_workspace
from gpn_bayes.kernels.gaussian_process.low_rank import LOWEST_THETA
from gpn_bayes.kernels.gaussian_process.priors import Priors
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.climbing import ClimbedPosterior
from gpn_bayes.scores.gp.curve_equation import POINTS, Tabulated
from gpn_bayes.scores.gp.modes import starts_of_search, within_bounds
from gpn_bayes.scores.gp.proposal import draw_hyperparameters

# Weighted draws of the processes for each one that is wanted.
_DRAWS_EACH = 8


class Kernels(NamedTuple):
    """The compiled functions of a kind of observations.

    Attributes
    ----------
    laplace, laplace_and_gradient : callable
        The log posterior by Laplace's approximation; the same, with its gradient written.
    estimated : callable
        Logs of unbiased estimates of the posterior at some points.
    weighted : callable
        Weighted draws of the processes' weights.
    """

    laplace: Callable[..., float]
    laplace_and_gradient: Callable[..., float]
    estimated: Callable[..., Floats]
    weighted: Callable[..., tuple[Floats, Floats]]


class DrawnWeights(NamedTuple):
    """Draws of processes, given hyperparameters.

    Attributes
    ----------
    functions : list of ndarray of shape (draw, process, function)
        For every parent, s times the coefficients of the basis' functions U.
    intercept : ndarray of shape (draw, process)
        s times mu.
    """

    functions: list[Floats]
    intercept: Floats


class ProcessPosterior(ClimbedPosterior):
    """The posterior of the hyperparameters of processes, given what was observed of them.

    Densities and modes are those of Laplace's approximation; `log_densities` are estimates without bias, so that what
    is estimated from many of them is exact but for its standard error.

    Parameters
    ----------
    kernels : Kernels
        What computes it.
    observed : Counts or Measured
        The data of the node and its parents, as these take them.
    processes : int
        How many processes there are.
    priors : Priors
        The priors of phi.
    n_rows : int
        How many rows there are.
    rng : numpy.random.Generator
        The source of the estimates' randomness.
    """

    hessian_step = 0.02
    stages = ((0.05, 0.25), (1e-3, 0.1), (1e-5, 0.05))
    # Pairs of weighted draws that estimate a likelihood, and how many climbs start for modes of the hyperparameters.
    pairs: int
    climbs: int

    def __init__(
        self, kernels: Kernels, observed: Any, processes: int, priors: Priors, n_rows: int, rng: np.random.Generator
    ) -> None:
        self.priors = priors
        self.size = len(priors.kinds)
        self.n_rows = n_rows
        self._kernels, self._observed, self._rng = kernels, observed, rng
        self._rows: RowFunctions = observed.rows
        self._work = new_workspace(self._rows, processes)

    def log_densities(self, points: Floats) -> Floats:
        """Return the logs of unbiased estimates of the density at every point, one per row."""
        return self._kernels.estimated(points, self._observed, self._work, self.priors, self.pairs, self._rng)

    def log_density(self, phi: Floats) -> float:
        """Return the log density by Laplace's approximation; minus infinity where it can't be computed."""
        value = self._kernels.laplace(phi, self._observed, self._work, self.priors)
        return -np.inf if np.isnan(value) else value

    def log_density_and_gradient(self, phi: Floats) -> tuple[float, Floats]:
        """Return the log density by Laplace's approximation, and its gradient."""
        gradient = np.full(self.size, np.nan)
        value = self._kernels.laplace_and_gradient(phi, self._observed, self._work, self.priors, gradient)
        return (value, gradient) if np.isfinite(value) else (-np.inf, np.full(self.size, np.nan))

    def starts(self) -> Floats:
        """Return the best few of the usual starts: a climb takes longer than where processes are integrated out."""
        usual = within_bounds(self.usual_starts(), self.priors)
        heights = [self.log_density(start) for start in usual]
        return usual[np.argsort(heights)[::-1][: self.climbs]]

    def usual_starts(self) -> Floats:
        """Return the starts that are considered, one a row."""
        return starts_of_search(self.size - 1)

    def draw_phi(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw hyperparameters from the posterior, one a row."""
        return draw_hyperparameters(self, self.find_modes(), count, rng)

    @abstractmethod
    def scale(self, phi: Floats) -> float:
        """Return s, what processes are multiplied by to be in units of the noise's scale."""

    def draw_processes(self, phi: Floats, count: int, rng: np.random.Generator) -> DrawnWeights:
        """Draw the weights w of the processes given hyperparameters: those of weighted draws that a choice falls on."""
        drawn, log_weights = self._kernels.weighted(
            phi, self._observed, self._work, max(_DRAWS_EACH * count // 2, 1), rng
        )
        chances = np.exp(log_weights - log_weights.max())
        chosen = drawn[rng.choice(len(drawn), count, p=chances / chances.sum())]
        spans, parents = self._work.spans, len(self._rows.cells)
        functions = [
            chosen[:, :, begin : begin + m] @ self._work.factors[i, :m, :m].T
            for i, (m, begin) in enumerate(spans[:parents].tolist())
        ]
        return DrawnWeights(functions, self.scale(phi) * self._rows.mean_sd * chosen[:, :, spans[parents, 1]])


def tabulated_functions(
    drawn: DrawnWeights, phi: Floats, basis: Basis, parents: Sequence[int], tables: Sequence[Tabulated]
) -> Floats:
    """Return drawn functions of the parents where they are tabulated, times s: (draw, process, parent, point).

    Parameters
    ----------
    drawn : DrawnWeights
        The draws.
    phi : ndarray
        The hyperparameters that they are given: after the first coordinate, the logs of the length scales.
    basis : Basis
        The basis that they are of.
    parents : sequence of int
        The parents.
    tables : sequence of Tabulated
        Where the functions of each are tabulated.
    """
    found = np.empty((*drawn.intercept.shape, len(parents), POINTS))
    for i, (p, table) in enumerate(zip(parents, tables, strict=True)):
        theta = max(float(np.exp(phi[1 + i])), LOWEST_THETA)
        at_nodes = drawn.functions[i] @ basis.at_nodes(p)[:, : drawn.functions[i].shape[-1]].T
        functions = table.functions(table.inside(table.grid), theta)
        # The coefficients of functions that have these values at the nodes.
        inverse = pinvh(functions.at_nodes.T @ functions.at_nodes) @ functions.at_nodes.T
        found[:, :, i] = at_nodes @ inverse.T @ functions.at_points.T
    return found
