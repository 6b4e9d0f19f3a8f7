"""The equation of a node given its parents, with the posterior of its parameters: what scores integrate out, drawn."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri, stdtr

from gpn_bayes._util.types import Floats, Ints

# Draws of parameters behind averages where there is no closed form, and their seed.
_DRAWS, _SEED = 1000, 0
# Rows whose densities given all draws are held at a time.
_ROWS = 10_000


def log_mean(log_values: Floats, log_weights: Floats | None = None) -> Floats:
    """Return the log of a mean over the first axis, weighted where weights are given, of any scale.

    Examples
    --------
    >>> float(np.exp(log_mean(np.log([1.0, 3.0]))).round(6))
    2.0
    """
    weights = np.zeros_like(log_values) if log_weights is None else np.broadcast_to(log_weights, log_values.shape)
    found: Floats = logsumexp(log_values + weights, axis=0) - logsumexp(weights, axis=0)
    return found


class LeftOut(NamedTuple):
    """What all other rows say of each row's value, parameters integrated out.

    Attributes
    ----------
    log_density : ndarray of shape (rows,)
        The log density of the value, or the log probability of the level.
    below : ndarray of shape (rows,)
        The probability of a smaller value, or of a level before this one.
    k_hats : ndarray of shape (rows,), optional
        Where draws were weighted, the Pareto k of the weights: above 0.7 they can't be relied on.
    """

    log_density: Floats
    below: Floats
    k_hats: Floats | None = None


def without_own_row(given: LeftOut, log_weights: Floats | None = None) -> LeftOut:
    """Return averages over parameters drawn given all rows, (draw, row), as if drawn without the row itself."""
    log_shares = -given.log_density if log_weights is None else log_weights - given.log_density
    shares = np.exp(log_shares - log_shares.max(axis=0))
    below: Floats = (shares * given.below).sum(axis=0) / shares.sum(axis=0)
    return LeftOut(-log_mean(-given.log_density, log_weights), below)


class Noise(Protocol):
    """A distribution of mean 0 and variance 1, as ``scipy.stats`` has them: ``stats.laplace(scale=0.5**0.5)``."""

    def logpdf(self, x: Floats) -> Floats:
        """Return the log density."""

    def cdf(self, x: Floats) -> Floats:
        """Return the probability of a smaller number."""

    def sf(self, x: Floats) -> Floats:
        """Return the probability of a larger number."""

    def ppf(self, q: Floats) -> Floats:
        """Return the number that is larger with this probability."""

    def isf(self, q: Floats) -> Floats:
        """Return the number that is smaller with this probability."""


class DrawnEquation(ABC):
    """Draws of the parameters of a node's equation, X = f(parents) + sigma times noise of unit variance.

    A subclass has `expected`, which is f, and `sigma`; it sets `unit_noise` where noise isn't normal.

    Attributes
    ----------
    sigma : ndarray of shape (draws,)
        The standard deviation of the noise, in the units in which the score takes the data.
    unit_noise : Noise or None
        The distribution of the noise, of mean 0 and variance 1; None for the normal one.

    Examples
    --------
    >>> from scipy import stats
    >>> drawn = DrawnLine(np.zeros(1), np.ones((1, 1)), np.ones(1), unit_noise=stats.laplace(scale=0.5**0.5))
    >>> drawn.noise_from_normal(np.array([-3.0, 1.0])).round(2)
    array([-4.18,  0.81])
    >>> drawn.normal_from_noise(drawn.noise_from_normal(np.array([-3.0, 1.0]))).round(6)
    array([-3.,  1.])
    >>> drawn.expected(0, np.array([[2.0, 5.0]])), drawn.noise(0, np.array([[2.0, 5.0]]))
    (array([2., 5.]), np.float64(1.0))
    """

    sigma: Floats
    unit_noise: Noise | None = None

    @abstractmethod
    def expected(self, draw: int, parents: Floats) -> Floats:
        """Return f of one draw at some values of the parents.

        Parameters
        ----------
        draw : int
            Which draw.
        parents : ndarray of shape (parents, …)
            Values of the parents, in the units in which the score takes the data; categories by the codes of levels.
        """

    def noise(self, draw: int, parents: Floats) -> Floats:
        """Return the standard deviation of one draw's noise at some values of the parents; here the same at all.

        Parameters
        ----------
        draw : int
            Which draw.
        parents : ndarray of shape (parents, …)
            As for `expected`.
        """
        sigma: Floats = self.sigma[draw]
        return sigma

    def noise_from_normal(self, normal: Floats) -> Floats:
        """Return noise of unit variance at the same quantiles as standard normal numbers."""
        if self.unit_noise is None:
            return normal
        # From the tail at hand, where probabilities are exact.
        tail = ndtr(-np.abs(normal))
        return np.where(normal < 0, self.unit_noise.ppf(tail), self.unit_noise.isf(tail))

    def normal_from_noise(self, noise: Floats) -> Floats:
        """Return the standard normal numbers at the same quantiles as noise of unit variance."""
        if self.unit_noise is None:
            return noise
        below, above = self.unit_noise.cdf(noise), self.unit_noise.sf(noise)
        return np.where(below < above, ndtri(below), -ndtri(above))

    def densities(self, values: Floats, parents: Floats) -> "LeftOut":
        """Return log densities of values given each draw and the parents, and the probabilities of smaller ones.

        Parameters
        ----------
        values : ndarray of shape (rows,)
            The node's, in the units in which the score takes the data.
        parents : ndarray of shape (parents, rows)
            Its parents', likewise.

        Returns
        -------
        LeftOut
            Each of shape (draws, rows).

        Examples
        --------
        >>> drawn = DrawnLine(np.zeros(1), np.ones((1, 1)), np.ones(1))
        >>> [part.round(3).tolist() for part in drawn.densities(np.array([2.0]), np.array([[2.0]]))[:2]]
        [[[-0.919]], [[0.5]]]
        """
        left, log_sigma = np.empty((2, len(self.sigma), len(values)))
        for k in range(len(self.sigma)):
            sigma = self.noise(k, parents)
            left[k] = (values - self.expected(k, parents)) / sigma
            log_sigma[k] = np.log(sigma)
        if self.unit_noise is None:
            return LeftOut(-0.5 * left**2 - 0.5 * np.log(2 * np.pi) - log_sigma, ndtr(left))
        return LeftOut(self.unit_noise.logpdf(left) - log_sigma, self.unit_noise.cdf(left))


class Equation(ABC):
    """The posterior of the parameters of one node's equation, given its parents: a subclass has `draw`.

    All else follows from draws: densities are averages over a thousand of them, and without a row of the data, averages
    weighted by the inverse of its density, smoothed as Pareto's k asks (Vehtari, Gelman & Gabry 2017). A subclass with
    closed forms has these in their place.

    Attributes
    ----------
    is_linear : bool
        Whether f is linear, given categories: effects are then slopes.

    Examples
    --------
    The mean of normal numbers whose variance is 1:

    >>> class Level(Equation):
    ...     def draw(self, count, rng):
    ...         mean = 2.0 + rng.normal(size=count) / np.sqrt(50)
    ...         return DrawnLine(mean, np.empty((count, 0)), np.ones(count))
    >>> Level().draw(3, np.random.default_rng(1)).sigma
    array([1., 1., 1.])
    >>> Level().log_predictive(np.array([2.0]), np.empty((0, 1))).round(2)
    array([-0.93])
    >>> Level().leave_one_out(np.array([2.0, 4.0]), np.empty((0, 2))).below.round(1)
    array([0.5, 1. ])
    >>> Level().residuals(np.array([2.0, 4.0]), np.empty((0, 2))).round(1) + 0.0
    array([0., 2.])
    """

    is_linear = False

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> DrawnEquation:
        """Draw the parameters this many times."""

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values, parameters integrated out.

        Parameters
        ----------
        values : ndarray of shape (rows,)
            The node's, in the units in which the score takes the data.
        parents : ndarray of shape (parents, rows)
            Its parents', likewise.
        """
        parts = [log_mean(given.log_density) for given in self._of_draws(values, parents)]
        return np.concatenate(parts)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows of the data say of each one, parameters integrated out.

        Parameters
        ----------
        values : ndarray of shape (rows,)
            The node's, as the posterior was computed from them.
        parents : ndarray of shape (parents, rows)
            Its parents', likewise.
        """
        parts = []
        for given in self._of_draws(values, parents):
            log_weights, k_hats = smoothed_inverse(given.log_density)
            weights = np.exp(log_weights)
            below = (weights * given.below).sum(axis=0) / weights.sum(axis=0)
            parts.append((log_mean(given.log_density, log_weights), below, k_hats))
        return LeftOut(*map(np.concatenate, zip(*parts, strict=True)))

    def residuals(self, values: Floats, parents: Floats) -> Floats:
        """Return what f leaves of the rows as it would be if noise were normal, averaged over draws.

        Where noise has another distribution, normal numbers at the same quantiles: what looks unlike normal noise in
        them doesn't look like noise of that distribution.

        Parameters
        ----------
        values : ndarray of shape (rows,)
            The node's, as the posterior was computed from them.
        parents : ndarray of shape (parents, rows)
            Its parents', likewise.
        """
        drawn = self._some()
        total = np.zeros(len(values))
        for k in range(_DRAWS):
            sigma = drawn.noise(k, parents)
            total += sigma * drawn.normal_from_noise((values - drawn.expected(k, parents)) / sigma)
        return total / _DRAWS

    def _some(self) -> DrawnEquation:
        """Return the draws that averages are over, the same every time."""
        return self.draw(_DRAWS, np.random.default_rng(_SEED))

    def _of_draws(self, values: Floats, parents: Floats) -> Iterator[LeftOut]:
        """Yield densities of values given each of some draws, (draw, row), of some rows after the other."""
        drawn, known = self._some(), np.broadcast_to(parents, (len(parents), len(values)))
        for begin in range(0, max(len(values), 1), _ROWS):
            yield drawn.densities(values[begin : begin + _ROWS], known[:, begin : begin + _ROWS])


def smoothed_inverse(log_densities: Floats) -> tuple[Floats, Floats]:
    """Return the log weights by which draws given all rows stand for draws without each of them, and Pareto's k.

    Parameters
    ----------
    log_densities : ndarray of shape (draws, rows)
        Those of each row, given each draw.

    Examples
    --------
    >>> log_weights, k_hats = smoothed_inverse(np.log(np.random.default_rng(1).uniform(1, 2, (1000, 3))))
    >>> log_weights.shape, bool((k_hats < 0.5).all())
    ((1000, 3), True)
    """
    from gpn_bayes._util.pareto_tails import smooth_tail  # compiled, and seldom needed

    log_weights, k_hats = np.empty_like(log_densities), np.empty(log_densities.shape[1])
    for row, own in enumerate(log_densities.T):
        smoothed, k_hats[row] = smooth_tail(np.exp(own.min() - own))
        log_weights[:, row] = np.log(np.maximum(smoothed, np.finfo(float).tiny))
    return log_weights, k_hats


class DrawnLine(DrawnEquation):
    """Draws of an intercept, coefficients and the noise.

    Attributes
    ----------
    intercept : ndarray of shape (draws,)
        The intercepts.
    coefficients : ndarray of shape (draws, parents)
        The coefficients.

    Examples
    --------
    >>> drawn = DrawnLine(np.array([1.0]), np.array([[2.0]]), np.array([0.5]))
    >>> drawn.expected(0, np.array([[3.0]])), drawn.noise(0, np.array([[3.0]]))
    (array([7.]), np.float64(0.5))
    >>> drawn.densities(np.array([7.0]), np.array([[3.0]])).below
    array([[0.5]])
    >>> drawn.noise_from_normal(np.array([1.0])), drawn.normal_from_noise(np.array([1.0]))
    (array([1.]), array([1.]))
    """

    def __init__(self, intercept: Floats, coefficients: Floats, sigma: Floats, unit_noise: Noise | None = None) -> None:
        self.intercept = intercept
        self.coefficients = coefficients
        self.sigma = sigma
        self.unit_noise = unit_noise

    def expected(self, draw: int, parents: Floats) -> Floats:
        """Return the intercept plus the coefficients times the parents, of one draw."""
        values: Floats = self.intercept[draw] + np.tensordot(self.coefficients[draw], parents, axes=1)
        return values


@dataclass(frozen=True, eq=False)
class LinearEquation(Equation):
    """A linear regression with normal noise: coefficients have a multivariate t posterior.

    sigma^2 is inverse gamma with shape df / 2 and scale `residual` / 2; given it, the coefficients are normal around
    `mean` with covariance sigma^2 times `spread`, and the intercept is normal around the value that makes the line
    pass through `centre` and `level`, with variance sigma^2 / rows.

    Parameters
    ----------
    mean : ndarray of shape (parents,)
        The coefficients' posterior mean.
    spread : ndarray of shape (parents, parents)
        The inverse of the parents' matrix of squares and products.
    residual : float
        The sum of squares that the regression leaves, prior included.
    df : float
        Degrees of freedom.
    level : float
        The posterior mean of the node's mean.
    centre : ndarray of shape (parents,)
        That of the parents' means.
    rows : float
        How many rows the mean rests on, prior included.

    Examples
    --------
    >>> from gpn_bayes import datasets, scores
    >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
    >>> line = scorer.equation(scorer.index("mek"), (scorer.index("raf"),))
    >>> line.mean.round(2), line.scale.round(3), line.df
    (array([0.68]), array([0.025]), 857.0)
    >>> drawn = line.draw(1000, np.random.default_rng(1))
    >>> float(drawn.coefficients.mean().round(2))
    0.68
    """

    mean: Floats
    spread: Floats
    residual: float
    df: float
    level: float
    centre: Floats
    rows: float
    is_linear = True

    @property
    def scale(self) -> Floats:
        """The scale of each coefficient's t distribution."""
        scale: Floats = np.sqrt(self.residual / self.df * np.diag(self.spread))
        return scale

    def draw(self, count: int, rng: np.random.Generator) -> DrawnLine:
        """Draw sigma, then the coefficients and the intercept given it."""
        return LinearEquations.of([self]).draw(np.zeros(count, dtype=np.int64), rng)

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values, which are t distributed.

        Examples
        --------
        >>> line = LinearEquation(np.array([2.0]), np.array([[0.1]]), 8.0, 4.0, 1.0, np.array([0.0]), 10.0)
        >>> line.log_predictive(np.array([1.0, 9.0]), np.array([[0.0, 0.0]])).round(2)
        array([-1.38, -6.66])
        """
        error, leverage = self.errors(values, parents)
        return log_t(error, self.df, self.residual / self.df * (1 + leverage))

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one, by downdates of rank one.

        Without a row of error e and leverage h there is a degree of freedom less, its error is e / (1 - h), and the
        sum of squares falls by e^2 / (1 - h).

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> data = datasets.sachs(transform="log2")[["raf", "mek"]]
        >>> scorer = scores.BGe().bind(data)
        >>> rows = ((data - data.mean()) / data.std()).to_numpy()
        >>> line = scorer.equation(1, (0,))
        >>> with_it, without = line.log_predictive(*rows.T[::-1, None]), line.leave_one_out(*rows.T[::-1, None])
        >>> bool((without.log_density < with_it).all())
        True
        """
        return left_out_of_lines(*self.errors(values, parents), self.residual, self.df)

    def errors(self, values: Floats, parents: Floats) -> tuple[Floats, Floats]:
        """Return each row's difference from the line, and its leverage."""
        apart = parents - self.centre[:, None]
        leverage = 1 / self.rows + np.einsum("ar,ab,br->r", apart, self.spread, apart)
        return values - self.level - self.mean @ apart, leverage


def left_out_of_lines(error: Floats, leverage: Floats, residual: Floats | float, df: Floats | float) -> LeftOut:
    """Return what all other rows say of each one, given its error and leverage in a regression with it.

    Parameters
    ----------
    error, leverage : ndarray of shape (rows,)
        Each row's difference from the line, and its leverage.
    residual, df : float or ndarray of shape (rows,)
        The sum of squares and the degrees of freedom of the regression it is in.

    Examples
    --------
    >>> left_out_of_lines(np.array([0.0]), np.array([0.5]), 8.0, 5.0).below
    array([0.5])
    """
    left = 1 - leverage
    if np.min(df) <= 1 or left.min() < 1e-10:
        raise ValueError(
            "without priors, rows that alone determine a coefficient can't be predicted from the others; received "
            "one: use score='bge'"
        )
    fewer = df - 1
    scale_squared = (residual - error**2 / left) / fewer / left
    below: Floats = stdtr(fewer, error / left / np.sqrt(scale_squared))
    return LeftOut(log_t(error / left, fewer, scale_squared), below)


def log_t(error: Floats, df: Floats | float, scale_squared: Floats) -> Floats:
    """Return the log density of a t distribution about zero.

    Examples
    --------
    >>> log_t(np.array([0.0]), 1.0, np.array([1.0])).round(4), -np.log(np.pi).round(4)
    (array([-1.1447]), np.float64(-1.1447))
    """
    from scipy import stats  # takes half a second, which others needn't wait for

    return np.asarray(stats.t.logpdf(error, df, scale=np.sqrt(scale_squared)))


class LinearEquations(NamedTuple):
    """The linear regressions of one node on several sets of as many parents each.

    An array of each attribute of `LinearEquation`, with an entry for every set.
    """

    mean: Floats
    spread: Floats
    residual: Floats
    df: Floats
    level: Floats
    centre: Floats
    rows: Floats

    @classmethod
    def of(cls, lines: Sequence[LinearEquation]) -> "LinearEquations":
        """Return regressions on as many parents each as one."""
        return cls(
            mean=np.array([line.mean for line in lines]),
            spread=np.array([line.spread for line in lines]),
            residual=np.array([line.residual for line in lines]),
            df=np.array([line.df for line in lines]),
            level=np.array([line.level for line in lines]),
            centre=np.array([line.centre for line in lines]),
            rows=np.array([line.rows for line in lines], dtype=float),
        )

    @classmethod
    def of_moments(
        cls, matrix: Floats, node: int, parent_sets: Ints, df: float, means: Floats, rows: float
    ) -> "LinearEquations":
        """Return the regressions of a node on sets of parents, from the matrix of squares and products.

        Parameters
        ----------
        matrix : ndarray of shape (variables, variables)
            The squares and products of all variables, with what the prior adds.
        node : int
            The variable.
        parent_sets : ndarray of int, shape (sets, parents)
            Its parents.
        df : float
            Degrees of freedom.
        means : ndarray of shape (variables,)
            The posterior means of all variables' means.
        rows : float
            How many rows these rest on.
        """
        spread = np.linalg.inv(matrix[parent_sets[:, :, None], parent_sets[:, None, :]])
        with_node = matrix[parent_sets, node]
        mean = np.einsum("kab,kb->ka", spread, with_node)
        residual = matrix[node, node] - np.einsum("ka,ka->k", mean, with_node)
        same = np.ones(len(parent_sets))
        return cls(mean, spread, residual, df * same, means[node] * same, means[parent_sets], rows * same)

    def one(self, place: int) -> LinearEquation:
        """Return one of the regressions."""
        mean, spread, residual, df, level, centre, rows = (values[place] for values in self)
        return LinearEquation(mean, spread, float(residual), float(df), float(level), centre, float(rows))

    def draw(self, which: Ints, rng: np.random.Generator) -> DrawnLine:
        """Draw the parameters of regressions, of one after the other as they are named.

        Parameters
        ----------
        which : ndarray of int
            Their places.
        rng : numpy.random.Generator
            The source of all randomness.
        """
        return self.draw_given(np.sqrt(self.residual[which] / rng.chisquare(self.df[which])), which, rng)

    def draw_given(self, sigma: Floats, which: Ints, rng: np.random.Generator) -> DrawnLine:
        """Draw coefficients and intercepts given the standard deviations of the noise; see `draw`."""
        normal = rng.standard_normal((len(which), self.mean.shape[1]))
        roots = np.linalg.cholesky(self.spread)[which]
        coefficients = self.mean[which] + sigma[:, None] * np.einsum("kab,kb->ka", roots, normal)
        through = self.level[which] + sigma * rng.standard_normal(len(which)) / np.sqrt(self.rows[which])
        return DrawnLine(through - np.einsum("ka,ka->k", coefficients, self.centre[which]), coefficients, sigma)


class DrawnLevels(ABC):
    """Draws of the parameters of a category's equation, which gives each of its levels a probability."""

    @abstractmethod
    def chances(self, draw: int, parents: Floats) -> Floats:
        """Return the probabilities of the levels in one draw, of shape (…, levels), at some values of the parents.

        Parameters
        ----------
        draw : int
            Which draw.
        parents : ndarray of shape (parents, …)
            Numbers in the units in which the score takes the data, categories by the codes of levels.
        """


class LevelsEquation(ABC):
    """The posterior of the parameters of a category's equation, given its parents."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> DrawnLevels:
        """Draw the parameters this many times."""

    @abstractmethod
    def log_predictive(self, codes: Ints, parents: NDArray[Any]) -> Floats:
        """Return the log probability of new levels, parameters integrated out; see `Equation.log_predictive`."""

    @abstractmethod
    def leave_one_out(self, codes: Ints, parents: NDArray[Any]) -> LeftOut:
        """Return what all other rows say of each row's level; see `Equation.leave_one_out`."""


class DrawnTable(DrawnLevels):
    """Draws of a node's conditional probabilities.

    Attributes
    ----------
    probabilities : ndarray of shape (draws, *levels of the parents, levels of the node)
        The probability of each level of the node, for every configuration of its parents.
    """

    def __init__(self, probabilities: Floats) -> None:
        self.probabilities = probabilities

    def chances(self, draw: int, parents: NDArray[Any]) -> Floats:
        """Return the probabilities of one draw in some configurations of the parents.

        Examples
        --------
        >>> drawn = DrawnTable(np.array([[[0.8, 0.2], [0.1, 0.9]]]))
        >>> drawn.chances(0, np.array([[1.0, 0.0]])).tolist()
        [[0.1, 0.9], [0.8, 0.2]]
        """
        probabilities: Floats = self.probabilities[(draw, *parents.astype(np.int64))]
        return probabilities


@dataclass(frozen=True, eq=False)
class TableEquation(LevelsEquation):
    """Conditional probabilities with independent Dirichlet posteriors, one for each configuration of the parents.

    Parameters
    ----------
    concentrations : ndarray of shape (*levels of the parents, levels of the node)
        Rows that were counted, plus those that the prior imagines.

    Examples
    --------
    >>> equation = TableEquation(np.array([[8.0, 2.0], [1.0, 9.0]]))
    >>> equation.draw(1000, np.random.default_rng(1)).probabilities.mean(axis=0).round(1)
    array([[0.8, 0.2],
           [0.1, 0.9]])
    """

    concentrations: Floats

    @property
    def mean(self) -> Floats:
        """The posterior mean of each probability.

        Examples
        --------
        >>> TableEquation(np.array([[8.0, 2.0], [1.0, 9.0]])).mean.tolist()
        [[0.8, 0.2], [0.1, 0.9]]
        """
        mean: Floats = self.concentrations / self.concentrations.sum(axis=-1, keepdims=True)
        return mean

    def draw(self, count: int, rng: np.random.Generator) -> DrawnTable:
        """Draw the probabilities of every configuration."""
        parts = rng.standard_gamma(self.concentrations, (count, *self.concentrations.shape))
        # Tiny concentrations can leave all parts at zero.
        parts = np.maximum(parts, np.finfo(float).tiny)
        return DrawnTable(parts / parts.sum(axis=-1, keepdims=True))

    def log_predictive(self, codes: Ints, parents: NDArray[Any]) -> Floats:
        """Return the log probability of new levels, probabilities integrated out.

        Parameters
        ----------
        codes : ndarray of int, shape (rows,)
            The node's levels.
        parents : ndarray of int, shape (parents, rows)
            Its parents'.

        Examples
        --------
        >>> equation = TableEquation(np.array([[8.0, 2.0], [1.0, 9.0]]))
        >>> np.exp(equation.log_predictive(np.array([0, 1]), np.array([[0, 1]]))).round(1)
        array([0.8, 0.9])
        """
        place = tuple(parents.astype(np.int64))
        levels = self.concentrations.sum(axis=-1)[place]
        found: Floats = np.log(self.concentrations[(*place, codes)]) - np.log(levels)
        return found

    def leave_one_out(self, codes: Ints, parents: NDArray[Any]) -> LeftOut:
        """Return what all other rows say of each row's level, probabilities integrated out.

        Parameters
        ----------
        codes : ndarray of int, shape (rows,)
            The node's levels, as they were counted.
        parents : ndarray of int, shape (parents, rows)
            Its parents'.

        Examples
        --------
        >>> equation = TableEquation(np.array([[8.0, 2.0], [1.0, 9.0]]))
        >>> found = equation.leave_one_out(np.array([0, 1]), np.array([[0, 1]]))
        >>> np.exp(found.log_density).round(2), found.below.round(2)
        (array([0.78, 0.89]), array([0.  , 0.11]))
        """
        place = tuple(parents.astype(np.int64))
        others = self.concentrations.sum(axis=-1)[place] - 1
        before = (np.cumsum(self.concentrations, axis=-1) - self.concentrations)[(*place, codes)]
        return LeftOut(np.log(self.concentrations[(*place, codes)] - 1) - np.log(others), before / others)

    @classmethod
    def of_counts(
        cls,
        codes: NDArray[Any],
        weights: NDArray[Any],
        cardinalities: Ints,
        node: int,
        parents: tuple[int, ...],
        imagined: float,
    ) -> "TableEquation":
        """Return the posterior of a node's table from the rows' codes, with so many imagined rows in each cell.

        Parameters
        ----------
        codes : ndarray of int, shape (variables, rows)
            Distinct rows, one a column.
        weights : ndarray, shape (rows,)
            How often each occurs, or the sum of its weights.
        cardinalities : ndarray of int
            The levels of every variable.
        node : int
            The variable.
        parents : tuple of int
            Its parents.
        imagined : float
            Imagined rows of a cell.
        """
        family = [*parents, node]
        shape = tuple(int(levels) for levels in cardinalities[family])
        cells = np.ravel_multi_index(tuple(codes[v].astype(np.int64) for v in family), shape)
        counts = np.bincount(cells, weights, int(np.prod(shape))).reshape(shape)
        return cls(counts + imagined)
