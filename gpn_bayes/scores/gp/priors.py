"""The priors of a Gaussian process' hyperparameters, as a user states them and as compiled code reads them."""

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc, gammaln

from gpn_bayes._util.checks import check_choice, shown
from gpn_bayes._util.types import Floats
from gpn_bayes.kernels.gaussian_process.priors import Priors

KERNELS = ("additive", "interaction")
# Where the tables begin and end, the number of their knots, and the probability that may lie beyond their ends:
# less than scores are uncertain by.
LOWEST, HIGHEST, _KNOTS, LARGEST_LOSS = 1e-3, 1e4, 4001, 0.01
_AT = np.linspace(math.log(LOWEST), math.log(HIGHEST), _KNOTS)
_STEP = float(_AT[1] - _AT[0])
# The degree of the spline that gives the slopes, and the quadrature of the density within a cell.
_DEGREE = 5
_POINTS, _SHARES = np.polynomial.legendre.leggauss(6)
_POINTS, _SHARES = 0.5 * (_POINTS + 1.0), 0.5 * _SHARES


class Table(NamedTuple):
    """One distribution's rows of the compiled `Priors`, and the probability that they hold."""

    log_density: Floats
    slopes: Floats
    cumulative: Floats
    bounds: Floats
    mass: float


class HyperPriors:
    """Priors of the noise sigma, the length scales theta, the kernel weights tau, and the mean mu.

    They are tabulated between 0.001 and 10000, which must hold 99 % of each one's probability; what lies beyond is left
    out, without making up for it. Bounds of a distribution are kept to rounding.

    Parameters
    ----------
    sigma, theta, tau : pair of float, or PyMC distribution
        Shape and scale of an inverse gamma distribution; or any continuous distribution of one positive number, such as
        ``pm.LogNormal.dist(0, 1)``, whose parameters are constants. It must belong to no model.
    mu : pair of float, or PyMC distribution
        Mean and standard deviation of a normal distribution; or ``pm.Normal.dist(mean, sd)``.

    Examples
    --------
    >>> priors = HyperPriors(sigma=(3, 2))
    >>> priors.parameters["sigma"], priors.parameters["theta"]
    ([3.0, 2.0], [2.0, 2.0])
    >>> priors.for_parents(2).kinds
    array([0, 1, 1])
    >>> import pymc as pm
    >>> HyperPriors(theta=pm.LogNormal.dist(0.5, 0.75)).parameters["theta"]
    {'distribution': 'LogNormal', 'parameters': [0.5, 0.75]}
    """

    def __init__(self, sigma: Any = (1.0, 1.0), theta: Any = (2.0, 2.0), tau: Any = (1.0, 1.0), mu: Any = (0.0, 1.0)):
        self._parameters: dict[str, Any] = {}
        # Pickled, so that workers which get these priors needn't load PyMC to read them.
        self._distributions: dict[str, bytes] = {}
        tables = [self._read(name, prior) for name, prior in (("sigma", sigma), ("theta", theta), ("tau", tau))]
        tables.append(_log_odds_up_to_one(tables[0]))
        self._log_density = np.array([table.log_density for table in tables])
        self._slopes = np.array([table.slopes for table in tables])
        self._cumulative = np.array([table.cumulative for table in tables])
        self._bounds = np.array([table.bounds for table in tables])
        self.mu = _read_mu(mu)

    def _read(self, name: str, prior: Any) -> Table:
        """Take down a prior and return its table."""
        if _is_distribution(prior):
            from gpn_bayes.scores.gp import distributions as gp_distributions

            prior = gp_distributions.simplified(name, prior)
            if not isinstance(prior, tuple):
                self._parameters[name] = gp_distributions.describe(prior)
                self._distributions[name] = pickle.dumps(prior)
                label = gp_distributions.name_of(prior)
                return _checked(name, label, tabulate(name, label, gp_distributions.log_density(prior)))
        shape, scale = _pair(prior) or (math.nan, math.nan)
        if not (0.0 < shape < math.inf and 0.0 < scale < math.inf):
            raise ValueError(
                f"{name} must have a positive shape and scale, or a PyMC distribution such as pm.LogNormal.dist(0, 1); "
                f"received {shown(prior)}"
            )
        self._parameters[name] = [shape, scale]
        return _checked(name, f"InverseGamma({shape:g}, {scale:g})", _inverse_gamma(shape, scale))

    @property
    def parameters(self) -> dict[str, Any]:
        """What defines the priors, JSON-able; equal for equal priors."""
        return {**self._parameters, "mu": list(self.mu)}

    def __repr__(self) -> str:
        """Show the priors as what defines them."""
        return f"HyperPriors({', '.join(f'{name}={value}' for name, value in self.parameters.items())})"

    def stated(self, name: str) -> Any:
        """Return the prior of "sigma", "theta" or "tau": (shape, scale) if inverse gamma, or a PyMC distribution."""
        if name in self._distributions:
            return pickle.loads(self._distributions[name])
        return tuple(self._parameters[name])

    def probability_below(self, name: str, value: float) -> float:
        """Return the prior probability that "sigma", "theta" or "tau" is below a value within the tables."""
        row = list(self._parameters).index(name)
        return float(np.interp(math.log(value), _AT, self._cumulative[row]))

    def for_parents(self, parents: int, kernel: str = "additive", category: bool = False) -> Priors:
        """Return the tables for a node with this many parents.

        Parameters
        ----------
        parents : int
            Their number.
        kernel : {"additive", "interaction"}
            With "interaction", phi ends in log tau1 and log tau2 from two parents on.
        category : bool, default False
            Whether the node is a category, for which phi begins with log(sigma / (1 - sigma)). The noise of the number
            behind it is at most 1, as data make sure for a standardised number: more noise would hide any function
            behind levels that are about equally frequent.
        """
        check_choice("kernel", kernel, KERNELS)
        kinds = [3 if category else 0] + [1] * parents
        if kernel == "interaction" and parents > 1:
            kinds += [2, 2]
        return Priors(
            np.array(kinds, np.int64),
            float(_AT[0]),
            _STEP,
            self._log_density,
            self._slopes,
            self._cumulative,
            self._bounds,
        )


def _is_distribution(prior: Any) -> bool:
    """Tell whether a prior is a variable of PyTensor, without loading it."""
    return hasattr(prior, "owner") and type(prior).__module__.partition(".")[0] == "pytensor"


def _pair(numbers: Any) -> tuple[float, float] | None:
    try:
        first, second = numbers
        return float(first), float(second)
    except (TypeError, ValueError):
        return None


def _read_mu(mu: Any) -> tuple[float, float]:
    if _is_distribution(mu):
        from gpn_bayes.scores.gp import distributions as gp_distributions

        pair = gp_distributions.normal_parameters(mu)
    else:
        pair = _pair(mu)
    mean, sd = pair or (math.nan, math.nan)
    if not (math.isfinite(mean) and 0.0 < sd < math.inf):
        raise ValueError(
            "mu must have a mean and a positive standard deviation, or be a pm.Normal.dist with constant parameters; "
            f"received {shown(pair or mu)}"
        )
    return mean, sd


def _checked(name: str, label: str, table: Table) -> Table:
    if not abs(table.mass - 1.0) <= LARGEST_LOSS:
        raise ValueError(
            f"{name} must have {1 - LARGEST_LOSS:.0%} of its prior probability between {LOWEST:g} and {HIGHEST:g}; "
            f"{label} has {table.mass:.3g} there"
        )
    return table


def _log_odds_up_to_one(table: Table) -> Table:
    """Return the distribution of log(x / (1 - x)) given that x is at most 1, from that of log x; NaN if it never is."""
    log_x = -np.log1p(np.exp(-_AT))
    cell = np.minimum(((log_x - _AT[0]) / _STEP).astype(int), _KNOTS - 2)
    left = (log_x - _AT[cell]) / _STEP
    # Knots are so close that straight lines do: where the density counts, they are off by less than 1e-4.
    with np.errstate(invalid="ignore"):
        density, slopes = ((1 - left) * own[cell] + left * own[cell + 1] for own in (table.log_density, table.slopes))
    density[np.isnan(density)] = -np.inf  # beyond the bounds
    below = float(np.interp(0.0, _AT, table.cumulative))
    if not below > 0:
        return Table(np.full(_KNOTS, np.nan), np.zeros(_KNOTS), np.linspace(0, 1, _KNOTS), _AT[[0, -1]], 0.0)
    x = np.exp(log_x)
    log_density = density + np.log1p(-x) - math.log(below * table.mass)
    slopes = slopes * (1 - x) - x
    cumulative = np.interp(log_x, _AT, table.cumulative) / below
    cumulative = (cumulative - cumulative[0]) / (cumulative[-1] - cumulative[0])
    lower, upper = np.exp(table.bounds)
    bounds = np.clip([_log_odds(lower), _log_odds(upper)], _AT[0], _AT[-1])
    return Table(log_density, slopes, cumulative, bounds, below * table.mass)


def _log_odds(x: float) -> float:
    return math.log(x / (1 - x)) if x < 1 else math.inf


@functools.cache
def _inverse_gamma(shape: float, scale: float) -> Table:
    x = np.exp(_AT)
    log_density = shape * math.log(scale) - gammaln(shape) - shape * _AT - scale / x
    below = gammaincc(shape, scale / x)
    mass = below[-1] - below[0]
    return Table(log_density, scale / x - shape, (below - below[0]) / mass, _AT[[0, -1]], float(mass))


def tabulate(name: str, label: str, log_density: Callable[[Floats], Floats]) -> Table:
    """Return the table of a log density of log x, which is minus infinity outside an interval.

    A spline through the finite values gives the slopes, carries them on to the first knot outside, and is integrated.
    """
    from scipy.interpolate import make_interp_spline  # takes long to load, and only priors from PyMC need it

    values = log_density(_AT)
    inside = np.flatnonzero(np.isfinite(values))
    if len(inside) <= _DEGREE or inside[-1] - inside[0] >= len(inside):
        raise ValueError(
            f"{name} must have a prior density that is positive on one interval between {LOWEST:g} and {HIGHEST:g}, "
            f"a factor of {math.exp((_DEGREE + 1) * _STEP):.2f} wide or more; received {label}"
        )
    first, last = int(inside[0]), int(inside[-1])
    bounds = np.array([_bound(log_density, first, -1), _bound(log_density, last, +1)])
    spline = make_interp_spline(_AT[inside], values[inside], k=_DEGREE)
    reach = slice(max(first - 1, 0), last + 2)
    rows = np.full((2, _KNOTS), [[-np.inf], [0.0]])
    rows[0, reach], rows[1, reach] = spline(_AT[reach]), spline.derivative()(_AT[reach])
    edges = np.clip(_AT, *bounds)
    widths = np.diff(edges)
    masses = np.exp(spline(edges[:-1, None] + widths[:, None] * _POINTS)) @ _SHARES * widths
    below = np.concatenate([[0.0], np.cumsum(masses)])
    return Table(rows[0], rows[1], below / below[-1], bounds, float(below[-1]))


def _bound(log_density: Callable[[Floats], Floats], knot: int, side: int) -> float:
    """Return the last point of positive density on one side of the last knot that has one, by bisection."""
    if not 0 <= knot + side < _KNOTS:
        return float(_AT[knot])
    within, outside = float(_AT[knot]), float(_AT[knot + side])
    while (middle := 0.5 * (within + outside)) not in (within, outside):
        if np.isfinite(log_density(np.array([middle]))[0]):
            within = middle
        else:
            outside = middle
    return within
