"""The equation of a node under a Gaussian process: hyperparameters, then functions and noise, drawn given the rows.

With K_theta the kernel of the values f(z) at a variable's nodes, V and lambda its eigenvectors and eigenvalues, a
function of length scale theta is f(x) = k(x, z) V lambda^-1/2 c with c standard normal; at the rows it is
W V lambda^1/2 c, W being the weights of `Basis.interpolation`. So given the hyperparameters, all functions and the mean
are one linear regression, on c.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import ndtr

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats
from gpn_bayes.data.weights import weighted_sums
from gpn_bayes.kernels.gaussian_process.low_rank import LOWEST_THETA
from gpn_bayes.scores.equations import DrawnEquation, Equation, LeftOut, Noise, log_mean, without_own_row
from gpn_bayes.scores.gp.basis import (
    Basis,
    Functions,
    PartOfBasis,
    by_weight,
    squared_distances,
    squared_exponential,
)
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.proposal import MOST_PHI, draw_hyperparameters
from gpn_bayes.scores.gp.without_parents import draw_without_parents, posterior_without_parents

# Functions are tabulated at this many points, from beyond the rows on one side to beyond them on the other: by this
# share of their range. Further out they are taken as constant.
POINTS, _BEYOND = 401, 0.5
# Where the hyperparameters behind predictive densities come from, so that these are the same every time.
SEED = 0
# Without parents, densities need only every twentieth point of the fine grid of noise levels.
_EVERY = 20
# Eigenvalues of a kernel matrix below this share of the largest are rounding.
_LEAST_EIGENVALUE = 1e-13


class DrawnCurves(DrawnEquation):
    """Draws of a function for each parent, tabulated, a mean and the noise.

    Attributes
    ----------
    grids : ndarray of shape (parents, points)
        Values of the parents.
    values : ndarray of shape (draws, parents, points)
        The functions there.
    intercept : ndarray of shape (draws,)
        The mean.
    """

    def __init__(
        self, grids: Floats, values: Floats, intercept: Floats, sigma: Floats, unit_noise: Noise | None = None
    ) -> None:
        self.grids = grids
        self.values = values
        self.intercept = intercept
        self.sigma = sigma
        self.unit_noise = unit_noise

    def expected(self, draw: int, parents: Floats) -> Floats:
        """Return the mean plus the functions of the parents, of one draw."""
        total = np.full(parents.shape[1:], self.intercept[draw])
        for at, grid, values in zip(parents, self.grids, self.values[draw], strict=True):
            total += np.interp(at, grid, values)
        return total


class _Regression(NamedTuple):
    """The regression on c given the hyperparameters: its matrix' Cholesky root, its solution, and whose is what."""

    root: Floats
    centre: Floats
    spans: list[slice]


class CurveEquation(Equation):
    """The posterior of an additive process: hyperparameters by importance sampling, the functions given them.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        The node, as the score takes it.
    basis : Basis or PartOfBasis
        What was prepared of the rows.
    parents : tuple of int
        The parents.
    posterior : HyperPosterior
        The posterior of the hyperparameters.
    modes : Modes
        Its modes.
    priors : HyperPriors
        The priors.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.
    known_levels : mapping of int to ndarray, optional
        For every parent that is a category, the values of its levels in the basis, by code.

    Examples
    --------
    >>> from gpn_bayes.scores import GP
    >>> x = np.random.default_rng(1).uniform(-2, 2, 200)
    >>> table = np.column_stack([x, np.sin(2 * x) + 0.1 * np.random.default_rng(2).normal(size=200)])
    >>> drawn = GP(standardise=False).bind(table).equation(1, (0,)).draw(50, np.random.default_rng(3))
    >>> float(np.mean([drawn.expected(k, np.array([0.5])) for k in range(50)]).round(1))
    0.8
    """

    def __init__(
        self,
        y: Floats,
        basis: Basis | PartOfBasis,
        parents: tuple[int, ...],
        posterior: HyperPosterior,
        modes: Modes,
        priors: HyperPriors,
        weights: Floats | None = None,
        known_levels: Mapping[int, Floats] | None = None,
    ) -> None:
        self._posterior, self._modes, self._priors = posterior, modes, priors
        self._basis, self._parents = basis, parents
        self._nodes, to_rows = zip(*(basis.interpolation(p) for p in parents), strict=True)
        left = y - priors.mu[0]
        # Of the rows, only these are needed, whatever the hyperparameters.
        self._grams = [[basis.interpolation_gram(i, j) for j in parents] for i in parents]
        weighted = [by_weight(own, weights) for own in to_rows]
        self._with_one = [own.sum(axis=0) for own in weighted]
        self._with_y = [own.T @ left for own in weighted]
        self._n_rows, self._y_sum, _ = weighted_sums(left, weights)
        self._tables = tabulated(basis, parents, known_levels)
        self.grids = np.array([table.grid for table in self._tables])

    @one_blas_thread
    def draw(self, count: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw hyperparameters, a few dozen at most, and for each of them functions and the noise."""
        phis = draw_hyperparameters(self._posterior, self._modes, min(count, MOST_PHI), rng)
        values = np.empty((count, len(self._nodes), POINTS))
        intercept, sigma = np.empty(count), np.empty(count)
        for k, phi in enumerate(phis):
            own = np.arange(k, count, len(phis))
            sigma[own] = np.exp(phi[0])
            values[own], intercept[own] = self._functions(phi, len(own), rng)
        return DrawnCurves(self.grids, values, intercept, sigma)

    @one_blas_thread
    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values: normal given the hyperparameters, whose draws are averaged over."""
        given = [
            _log_normal(error, noise * (1 + leverage))
            for noise, error, leverage in self._errors(values, partial(self._at, parents))
        ]
        return log_mean(np.array(given))

    @one_blas_thread
    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one: normal given the hyperparameters.

        Draws of these given all rows are weighted by what they make of the others: a harmonic mean.
        """
        given = [_left_out(*found) for found in self._errors(values, self._at_rows)]
        return without_own_row(LeftOut(*map(np.array, zip(*given, strict=True))))

    def _errors(
        self, values: Floats, functions_of: Callable[[Floats], list[Functions]]
    ) -> Iterator[tuple[float, Floats, Floats]]:
        """Return for some hyperparameters the noise, each row's difference from the mean function, and its leverage."""
        rng = np.random.default_rng(SEED)
        for phi in draw_hyperparameters(self._posterior, self._modes, MOST_PHI, rng):
            noise = float(np.exp(2 * phi[0]))
            functions = functions_of(phi)
            regression = self._regression(functions, noise)
            features = np.column_stack(
                [*(function.at_points for function in functions), np.full(len(values), self._priors.mu[1])]
            )
            error = values - self._priors.mu[0] - features @ regression.centre
            leverage = (solve_triangular(regression.root, features.T, lower=True) ** 2).sum(axis=0)
            yield noise, error, leverage

    def _at(self, points: Sequence[Floats] | Floats, phi: Floats) -> list[Functions]:
        """Return the functions of all parents given their length scales, at some points of each."""
        thetas = self._thetas(phi)
        return [
            table.functions(table.inside(own), theta)
            for table, own, theta in zip(self._tables, points, thetas, strict=True)
        ]

    def _at_rows(self, phi: Floats) -> list[Functions]:
        """Return the functions of all parents, given about their length scales, in the rows of the data."""
        return [self._basis.functions_near(*known) for known in zip(self._parents, self._thetas(phi), strict=True)]

    def _thetas(self, phi: Floats) -> Floats:
        thetas: Floats = np.maximum(np.exp(phi[1 : 1 + len(self._nodes)]), LOWEST_THETA)
        return thetas

    def _functions(self, phi: Floats, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw functions, tabulated, and means, given the hyperparameters."""
        functions, noise = self._at(self.grids, phi), float(np.exp(2 * phi[0]))
        root, centre, spans = self._regression(functions, noise)
        normal = rng.standard_normal((len(centre), count))
        c = centre[:, None] + np.sqrt(noise) * solve_triangular(root, normal, lower=True, trans="T")
        tables = np.stack([(f.at_points @ c[span]).T for f, span in zip(functions, spans, strict=True)], axis=1)
        return tables, self._priors.mu[0] + self._priors.mu[1] * c[-1]

    def _regression(self, functions: Sequence[Functions], noise: float) -> _Regression:
        """Return the regression on c of all functions and on the mean, given the hyperparameters."""
        ends = np.cumsum([function.at_nodes.shape[1] for function in functions])
        spans = [slice(end - f.at_nodes.shape[1], end) for end, f in zip(ends, functions, strict=True)]
        size, sd = int(ends[-1]) + 1, self._priors.mu[1]
        system, with_y = np.empty((size, size)), np.empty(size)
        for i, (f, span) in enumerate(zip(functions, spans, strict=True)):
            for j, (g, other) in enumerate(zip(functions, spans, strict=True)):
                system[span, other] = f.at_nodes.T @ self._grams[i][j] @ g.at_nodes
            system[-1, span] = system[span, -1] = sd * (self._with_one[i] @ f.at_nodes)
            with_y[span] = self._with_y[i] @ f.at_nodes
        system[-1, -1], with_y[-1] = self._n_rows * sd**2, sd * self._y_sum
        root, _ = cho_factor(system + noise * np.eye(size), lower=True)
        return _Regression(root, cho_solve((root, True), with_y), spans)


class LevelEquation(Equation):
    """A node without parents: a mean and the noise.

    Parameters
    ----------
    y : ndarray of shape (rows,)
        The node, as the score takes it.
    priors : HyperPriors
        The priors.
    weights : ndarray of shape (rows,), optional
        How many rows each row stands for.
    """

    def __init__(self, y: Floats, priors: HyperPriors, weights: Floats | None = None) -> None:
        self._y, self._priors, self._weights = y, priors, weights

    def draw(self, count: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw the mean and the noise."""
        mu, sigma = draw_without_parents(self._y, self._priors, count, rng, self._weights)
        return DrawnCurves(np.empty((0, POINTS)), np.empty((count, 0, POINTS)), mu, sigma)

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values: an integral over the noise."""
        noise, error, leverage, log_weights = self._errors(values)
        return log_mean(_log_normal(error, noise * (1 + leverage)), log_weights)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one: a harmonic mean over the noise."""
        noise, error, leverage, log_weights = self._errors(values)
        return without_own_row(_left_out(noise, error, leverage), log_weights)

    def _errors(self, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return variances of the noise, differences from the mean given each, leverages, and log weights."""
        known = posterior_without_parents(self._y, self._priors, self._weights)
        log_sigma, log_weights = (part[::_EVERY, None] for part in known)
        noise, (mean, sd) = np.exp(2 * log_sigma), self._priors.mu
        n_rows, total, _ = weighted_sums(self._y - mean, self._weights)
        leverage = 1 / (n_rows + noise / sd**2)
        centre = mean + leverage * total
        return noise, values - centre, leverage, log_weights


class Tabulated(NamedTuple):
    """Where the functions of a parent are tabulated.

    Attributes
    ----------
    nodes : ndarray of shape (nodes,)
        Its nodes in the basis.
    spacing : float
        The squared distance between any two levels of a category without order; 0 otherwise.
    levels : ndarray of shape (levels,), or None
        The values of a category's levels in the basis, by code.
    grid : ndarray of shape (points,)
        The points, as equations take the parent: numbers, or about codes of levels.
    """

    nodes: Floats
    spacing: float
    levels: Floats | None
    grid: Floats

    def inside(self, values: Floats) -> Floats:
        """Return values of the parent as the basis has them, given as equations take them."""
        if self.levels is None:
            return values
        codes = np.clip(np.rint(values), 0, len(self.levels) - 1).astype(np.int64)
        found: Floats = self.levels[codes]
        return found

    def functions(self, points: Floats, theta: float) -> Functions:
        """Return the functions of the parent of some length scale, at some points of the basis."""
        squares = squared_distances(self.nodes, self.nodes, self.spacing)
        values, vectors = np.linalg.eigh(squared_exponential(squares, theta))
        kept = values > _LEAST_EIGENVALUE * values[-1]
        roots, own = np.sqrt(values[kept]), vectors[:, kept]
        with_nodes = squared_exponential(squared_distances(points, self.nodes, self.spacing), theta)
        return Functions(own * roots, with_nodes @ (own / roots))


def tabulated(
    basis: Basis | PartOfBasis, parents: Sequence[int], known_levels: Mapping[int, Floats] | None
) -> list[Tabulated]:
    """Return for every parent where its functions are tabulated: beyond its values, or at its levels."""
    tables = []
    for p in parents:
        nodes, _ = basis.interpolation(p)
        levels = (known_levels or {}).get(p)
        if levels is None:
            lowest, highest = float(nodes.min()), float(nodes.max())
            beyond = _BEYOND * (highest - lowest)
            grid = np.linspace(lowest - beyond, highest + beyond, POINTS)
        else:
            # Between two points on both sides of a code, functions are constant.
            grid = np.linspace(-0.5, len(levels) - 0.5, POINTS)
        tables.append(Tabulated(nodes, float(basis.spacings[p]), levels, grid))
    return tables


def _left_out(noise: Floats | float, error: Floats, leverage: Floats) -> LeftOut:
    """Return what all other rows say of each one, given the hyperparameters."""
    left = 1 - leverage
    below: Floats = ndtr(error / np.sqrt(noise * left))
    return LeftOut(_log_normal(error / left, noise / left), below)


def _log_normal(error: Floats, variance: Floats) -> Floats:
    """Return the log density of a normal distribution about zero."""
    from scipy import stats  # takes half a second, which others needn't wait for

    return np.asarray(stats.norm.logpdf(error, scale=np.sqrt(variance)))
