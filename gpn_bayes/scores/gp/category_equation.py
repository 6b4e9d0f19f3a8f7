"""The equation of a category under Gaussian processes: hyperparameters, then the processes, drawn given the rows."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.scores.equations import DrawnLevels, LeftOut, LevelsEquation, log_mean
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.curve_equation import POINTS, SEED, tabulated
from gpn_bayes.scores.gp.links import LatentPosterior
from gpn_bayes.scores.gp.processes import tabulated_functions
from gpn_bayes.scores.gp.proposal import MOST_PHI

# Draws of the processes behind predictive probabilities.
_DRAWS = 320
# Levels that have no chance in any draw are counted as this rare.
_LEAST_CHANCE = 1e-300


class DrawnProcesses(DrawnLevels):
    """Draws of a function for each parent and process, tabulated, means, and the noise.

    Attributes
    ----------
    grids : ndarray of shape (parents, points)
        Values of the parents.
    values : ndarray of shape (draws, processes, parents, points)
        The functions there, over the noise.
    intercept : ndarray of shape (draws, processes)
        The means, over the noise.
    offsets : ndarray of shape (draws, cuts or levels)
        The cuts of ordered levels, or what is added for each of unordered ones, over the noise.
    ordered : bool
        Whether levels are ordered.
    occurring : ndarray of int
        The codes of the levels that were observed; others have no probability.
    levels : int
        How many levels there are.
    """

    def __init__(
        self,
        grids: Floats,
        values: Floats,
        intercept: Floats,
        offsets: Floats,
        ordered: bool,
        occurring: Ints,
        levels: int,
    ) -> None:
        self.grids, self.values, self.intercept, self.offsets = grids, values, intercept, offsets
        self.ordered, self.occurring, self.levels = ordered, occurring, levels

    def chances(self, draw: int, parents: Floats) -> Floats:
        """Return the probabilities of the levels in one draw, of shape (…, levels), at some values of the parents."""
        shape = parents.shape[1:]
        processes = np.empty((*shape, len(self.intercept[draw])))
        for k, (level, tables) in enumerate(zip(self.intercept[draw], self.values[draw], strict=True)):
            processes[..., k] = level
            for at, grid, values in zip(parents, self.grids, tables, strict=True):
                processes[..., k] += np.interp(at, grid, values)
        chances = np.zeros((*shape, self.levels))
        if self.ordered:
            below = np.zeros((*shape, len(self.occurring) + 1))
            below[..., -1] = 1.0
            below[..., 1:-1] = expit(self.offsets[draw] - processes)
            chances[..., self.occurring] = np.diff(below, axis=-1)
        else:
            chances[..., self.occurring] = softmax(self.offsets[draw] + processes, axis=-1)
        return chances


class CategoryEquation(LevelsEquation):
    """The posterior of the processes behind a category.

    Parameters
    ----------
    posterior : LatentPosterior
        That of the hyperparameters.
    basis : Basis
        The basis that it is of.
    parents : tuple of int
        The parents.
    known_levels : mapping of int to ndarray
        For every parent that is a category, the values of its levels in the basis, by code.
    occurring : ndarray of int
        The codes of the node's levels that were observed.
    levels : int
        How many levels it has.
    """

    def __init__(
        self,
        posterior: LatentPosterior,
        basis: Basis,
        parents: tuple[int, ...],
        known_levels: Mapping[int, Floats],
        occurring: Ints,
        levels: int,
    ) -> None:
        self._posterior, self._basis, self._parents = posterior, basis, parents
        self._tables = tabulated(basis, parents, known_levels)
        self._occurring, self._levels = occurring, levels

    @one_blas_thread
    def draw(self, count: int, rng: np.random.Generator) -> DrawnProcesses:
        """Draw hyperparameters, a few dozen at most, and for each of them processes."""
        phis = self._posterior.draw_phi(min(count, MOST_PHI), rng)
        counts = self._posterior.counts
        processes = 1 if counts.ordered else counts.counts.shape[1]
        values = np.empty((count, processes, len(self._parents), POINTS))
        intercept, offsets = np.empty((count, processes)), np.empty((count, len(counts.offsets)))
        for k, phi in enumerate(phis):
            own = np.arange(k, count, len(phis))
            drawn = self._posterior.draw_processes(phi, len(own), rng)
            intercept[own], offsets[own] = drawn.intercept, self._posterior.scale(phi) * counts.offsets
            values[own] = tabulated_functions(drawn, phi, self._basis, self._parents, self._tables)
        grids = np.array([table.grid for table in self._tables]).reshape(-1, POINTS)
        return DrawnProcesses(grids, values, intercept, offsets, counts.ordered, self._occurring, self._levels)

    def log_predictive(self, codes: Ints, parents: NDArray[np.float64]) -> Floats:
        """Return the log probability of new levels, draws of the processes averaged over."""
        return log_mean(np.log(self._chances(codes, parents)[0]))

    def leave_one_out(self, codes: Ints, parents: NDArray[np.float64]) -> LeftOut:
        """Return what all other rows say of each row's level.

        Draws given all rows are weighted by what they make of the others: a harmonic mean.
        """
        own, before = self._chances(codes, parents)
        shares = 1 / own
        below: Floats = (shares * before).sum(axis=0) / shares.sum(axis=0)
        return LeftOut(-log_mean(-np.log(own)), below)

    def _chances(self, codes: Ints, parents: NDArray[np.float64]) -> tuple[Floats, Floats]:
        """Return the probabilities of levels, and of smaller ones, in each of some draws: (draw, row)."""
        drawn = self.draw(_DRAWS, np.random.default_rng(SEED))
        own, before = np.empty((_DRAWS, len(codes))), np.empty((_DRAWS, len(codes)))
        given = np.broadcast_to(parents, (len(parents), len(codes)))
        rows = np.arange(len(codes))
        for k in range(_DRAWS):
            chances = drawn.chances(k, given)
            own[k] = np.maximum(chances[rows, codes], _LEAST_CHANCE)
            before[k] = (np.cumsum(chances, axis=-1) - chances)[rows, codes]
        return own, before
