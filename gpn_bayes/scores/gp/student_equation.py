"""The equation of a number with Student t noise: hyperparameters, then functions, drawn given the rows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats
from gpn_bayes.scores.equations import Equation, LeftOut, log_mean, log_t, without_own_row
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.curve_equation import POINTS, SEED, DrawnCurves, tabulated
from gpn_bayes.scores.gp.processes import tabulated_functions
from gpn_bayes.scores.gp.proposal import MOST_PHI
from gpn_bayes.scores.gp.student import LevelGrid, StudentPosterior

# Draws of the functions behind predictive densities.
_DRAWS = 320
# Without parents, points of the grid this many nats below the highest don't count for densities.
_NEGLIGIBLE = 12.0


class StudentNoise(NamedTuple):
    """A t distribution of unit variance, as `gpn_bayes.scores.equations.Noise` says.

    Attributes
    ----------
    degrees : float
        The degrees of freedom.

    Examples
    --------
    >>> noise = StudentNoise(4.0)
    >>> noise.ppf(np.array([0.001, 0.5])).round(2) + 0.0, noise.isf(np.array([0.001])).round(2)
    (array([-5.07,  0.  ]), array([5.07]))
    >>> noise.cdf(noise.ppf(np.array([0.001]))).round(6), noise.sf(np.array([0.0])), noise.logpdf(0.0).round(3)
    (array([0.001]), array([0.5]), np.float64(-0.634))
    """

    degrees: float

    @property
    def scale(self) -> float:
        """What a t distribution of the usual scale is multiplied by."""
        return float(np.sqrt(1 - 2 / self.degrees))

    def logpdf(self, x: Floats) -> Floats:
        """Return the log density."""
        return log_t(x, self.degrees, np.asarray(self.scale**2))

    def cdf(self, x: Floats) -> Floats:
        """Return the probability of a smaller number."""
        below: Floats = stdtr(self.degrees, x / self.scale)
        return below

    def sf(self, x: Floats) -> Floats:
        """Return the probability of a larger number."""
        return self.cdf(-x)

    def ppf(self, q: Floats) -> Floats:
        """Return the number that is larger with this probability."""
        number: Floats = stdtrit(self.degrees, q) * self.scale
        return number

    def isf(self, q: Floats) -> Floats:
        """Return the number that is smaller with this probability."""
        return -self.ppf(q)


def _densities(error: Floats, sigma: Floats, degrees: float) -> LeftOut:
    """Return log densities of errors, and the probability of smaller ones, sigma being the standard deviation."""
    variance = sigma**2 * (1 - 2 / degrees)
    below: Floats = stdtr(degrees, error / np.sqrt(variance))
    return LeftOut(log_t(error, degrees, variance), below)


class StudentEquation(Equation):
    """The posterior of an additive process with Student t noise.

    Parameters
    ----------
    posterior : StudentPosterior
        That of the hyperparameters.
    basis : Basis
        The basis that it is of.
    parents : tuple of int
        The parents.
    known_levels : mapping of int to ndarray
        For every parent that is a category, the values of its levels in the basis, by code.
    """

    def __init__(
        self, posterior: StudentPosterior, basis: Basis, parents: tuple[int, ...], known_levels: Mapping[int, Floats]
    ) -> None:
        self._posterior, self._basis, self._parents = posterior, basis, parents
        self._tables = tabulated(basis, parents, known_levels)

    @one_blas_thread
    def draw(self, count: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw hyperparameters, a few dozen at most, and for each of them functions and a mean."""
        phis = self._posterior.draw_phi(min(count, MOST_PHI), rng)
        values = np.empty((count, len(self._parents), POINTS))
        intercept, sigma = np.empty(count), np.empty(count)
        for k, phi in enumerate(phis):
            own = np.arange(k, count, len(phis))
            drawn, scale = self._posterior.draw_processes(phi, len(own), rng), self._posterior.scale(phi)
            sigma[own] = np.exp(phi[0])
            intercept[own] = self._basis.mu[0] + drawn.intercept[:, 0] / scale
            functions = tabulated_functions(drawn, phi, self._basis, self._parents, self._tables)
            values[own] = functions[:, 0] / scale
        grids = np.array([table.grid for table in self._tables])
        return DrawnCurves(grids, values, intercept, sigma, StudentNoise(self._posterior.observed.degrees))

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values, draws of functions and noise averaged over."""
        return log_mean(self._given(values, parents).log_density)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one.

        Draws given all rows are weighted by what they make of the others: a harmonic mean.
        """
        return without_own_row(self._given(values, parents))

    def _given(self, values: Floats, parents: Floats) -> LeftOut:
        """Return densities of values given each of some draws: (draw, row)."""
        drawn = self.draw(_DRAWS, np.random.default_rng(SEED))
        known = np.broadcast_to(parents, (len(parents), len(values)))
        error = np.array([values - drawn.expected(k, known) for k in range(_DRAWS)])
        return _densities(error, drawn.sigma[:, None], self._posterior.observed.degrees)


class StudentLevelEquation(Equation):
    """A node without parents and with Student t noise: a mean and the noise.

    Parameters
    ----------
    grid : LevelGrid
        The posterior of both.
    degrees : float
        The degrees of freedom.
    """

    def __init__(self, grid: LevelGrid, degrees: float) -> None:
        self._grid, self._degrees = grid, degrees

    def draw(self, count: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw the mean and the noise."""
        mu, sigma = self._grid.draw(count, rng)
        nothing = np.empty((0, POINTS)), np.empty((count, 0, POINTS))
        return DrawnCurves(*nothing, mu, sigma, StudentNoise(self._degrees))

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values: an integral over the mean and the noise."""
        given, log_weights = self._given(values)
        return log_mean(given.log_density, log_weights)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one: a harmonic mean over the mean and the noise."""
        return without_own_row(*self._given(values))

    def _given(self, values: Floats) -> tuple[LeftOut, Floats]:
        """Return densities of values at points of the grid, (point, row), and log weights of these."""
        log_density = self._grid.log_density
        first, second = np.nonzero(log_density > log_density.max() - _NEGLIGIBLE)
        error = values - self._grid.mu[second, None]
        given = _densities(error, np.exp(self._grid.log_sigma[first, None]), self._degrees)
        return given, log_density[first, second][:, None]
