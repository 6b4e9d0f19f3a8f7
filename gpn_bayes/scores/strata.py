"""A number given categories and numbers: a regression of its own in each stratum, a combination of levels."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.scores.equations import (
    DrawnEquation,
    Equation,
    LeftOut,
    LinearEquation,
    LinearEquations,
    left_out_of_lines,
    log_mean,
    log_t,
    without_own_row,
)

# Up to this many strata have parameters of their own, rows or none; of more, those without rows share theirs.
_MOST_STRATA = 512
# Degrees of freedom of a variance that is as good as known.
_CERTAIN = 1e12


def conjugate_lines(rows: Floats, means: Floats, scatters: Floats, imagined: float, scale: float) -> LinearEquations:
    """Return regressions within groups of rows, with normal-inverse-gamma posteriors.

    The prior is that of `gpn_bayes.scores.CG`: imagined rows of each group, in which all numbers are independent, have
    mean 0 and a given variance.

    Parameters
    ----------
    rows : ndarray of shape (groups,)
        How many rows each group has, or none.
    means : ndarray of shape (groups, parents + 1)
        The means of the parents, then of the node, standardised over the whole table.
    scatters : ndarray of shape (groups, parents + 1, parents + 1)
        Their squares and products about these.
    imagined : float
        How many rows are imagined in each group.
    scale : float
        Their variance.

    Examples
    --------
    >>> lines = conjugate_lines(np.array([9.0, 0.0]), np.array([[0.2], [0.0]]), np.array([[[4.0]], [[0.0]]]), 1.0, 0.5)
    >>> lines.df.tolist(), lines.level.round(2).tolist(), lines.residual.round(3).tolist()
    ([10.0, 1.0], [0.18, 0.0], [4.536, 0.5])
    """
    size = means.shape[1] - 1
    shrunk = (rows * imagined / (rows + imagined))[:, None, None]
    matrices = scatters + shrunk * means[:, :, None] * means[:, None, :] + scale * imagined * np.eye(size + 1)
    spread = np.linalg.inv(matrices[:, :size, :size])
    mean = np.einsum("gab,gb->ga", spread, matrices[:, :size, size])
    centres = means * (rows / (rows + imagined))[:, None]
    return LinearEquations(
        mean=mean,
        spread=spread,
        residual=matrices[:, size, size] - np.einsum("ga,ga->g", mean, matrices[:, :size, size]),
        df=rows + imagined + size,
        level=centres[:, size],
        centre=centres[:, :size],
        rows=rows + imagined,
    )


class SharedVariance(NamedTuple):
    """The posterior of an equation's variance where it is the same in all strata.

    Attributes
    ----------
    probability : float
        The probability that it is the same.
    residual : float
        The sum of squares that the lines of all strata leave, prior included.
    df : float
        Degrees of freedom.
    """

    probability: float
    residual: float
    df: float


class Strata:
    """Where the values of parents lie among strata.

    Parameters
    ----------
    keys : ndarray of int
        The strata that have a place of their own, by their number among all combinations, ascending.
    shape : tuple of int
        The levels of every category.
    among : ndarray of bool, shape (parents,)
        Which parents are categories.

    Examples
    --------
    >>> strata = Strata(np.array([0, 3]), (2, 2), np.array([True, False, True]))
    >>> strata.places(np.array([[0.0, 1.0, 1.0], [2.5, 0.1, 0.1], [0.0, 1.0, 0.0]])).tolist()
    [0, 1, 2]
    """

    def __init__(self, keys: Ints, shape: tuple[int, ...], among: Bools) -> None:
        self.among = among
        self._keys = keys
        self._shape = shape
        self._all = len(keys) == int(np.prod(shape, dtype=object))

    def places(self, parents: Floats) -> Ints:
        """Return the place of each stratum that values of the parents are in; the number of places for any other."""
        number: Ints = np.ravel_multi_index(tuple(parents[self.among].astype(np.int64)), self._shape)
        if self._all:
            return number
        place = np.minimum(np.searchsorted(self._keys, number), len(self._keys) - 1)
        found: Ints = np.where(self._keys[place] == number, place, len(self._keys))
        return found


class DrawnStrata(DrawnEquation):
    """Draws of an intercept, coefficients and the noise of each stratum.

    Attributes
    ----------
    intercept, sigma : ndarray of shape (draws, strata)
        The intercepts, and the standard deviations of the noise.
    coefficients : ndarray of shape (draws, strata, numbers)
        The coefficients of the numbers among the parents.
    """

    def __init__(self, strata: Strata, intercept: Floats, coefficients: Floats, sigma: Floats) -> None:
        self._strata = strata
        self.intercept = intercept
        self.coefficients = coefficients
        self.sigma = sigma

    def expected(self, draw: int, parents: Floats) -> Floats:
        """Return the intercept plus the coefficients times the numbers, of one draw, each in its stratum."""
        place = self._strata.places(parents)
        slopes = np.moveaxis(self.coefficients[draw][place], -1, 0)
        values: Floats = self.intercept[draw][place] + (slopes * parents[~self._strata.among]).sum(axis=0)
        return values

    def noise(self, draw: int, parents: Floats) -> Floats:
        """Return the standard deviation of the noise, which is that of the stratum."""
        sigma: Floats = self.sigma[draw][self._strata.places(parents)]
        return sigma


@dataclass(frozen=True, eq=False)
class StrataEquation(Equation):
    """Linear regressions of one node on the same numbers, with independent posteriors in each stratum.

    Given the noise, that is: its variance may be the same in all strata.

    Parameters
    ----------
    lines : LinearEquations
        Those of the strata that have a place of their own; the last one is of any other, and has the prior.
    strata : Strata
        The strata.
    shared : SharedVariance, optional
        What is known if all strata have the same variance; None if each has its own for certain.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpn_bayes.scores import CG
    >>> rng = np.random.default_rng(1)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> dose = rng.normal(size=400)
    >>> answer = np.where(sex == "f", 2, -1) * dose + rng.normal(size=400)
    >>> scorer = CG().bind(pd.DataFrame({"sex": sex, "dose": dose, "answer": answer}))
    >>> equation = scorer.equation(2, (0, 1))
    >>> drawn = equation.draw(1000, np.random.default_rng(1))
    >>> bool(drawn.expected(0, np.array([[0.0], [1.0]])) > 0 > drawn.expected(0, np.array([[1.0], [1.0]])))
    True
    """

    lines: LinearEquations
    strata: Strata
    shared: SharedVariance | None = None
    is_linear = True

    @classmethod
    def of_observed(
        cls,
        lines: LinearEquations,
        observed: Ints,
        shape: tuple[int, ...],
        among: Bools,
        shared: SharedVariance | None = None,
    ) -> "StrataEquation":
        """Return the equation whose strata with rows have certain lines; those without rows have the last one.

        Parameters
        ----------
        lines : LinearEquations
            Those of strata with rows, then one that has the prior.
        observed : ndarray of int
            The strata with rows, by their number among all combinations, ascending.
        shape : tuple of int
            The levels of every category.
        among : ndarray of bool, shape (parents,)
            Which parents are categories.
        shared : SharedVariance, optional
            As for the class.
        """
        count = int(np.prod(shape, dtype=object))
        if count > _MOST_STRATA:
            return cls(lines, Strata(observed, shape, among), shared)
        line = np.full(count + 1, len(observed))
        line[observed] = np.arange(len(observed))
        return cls(LinearEquations(*(own[line] for own in lines)), Strata(np.arange(count), shape, among), shared)

    def draw(self, count: int, rng: np.random.Generator) -> DrawnStrata:
        """Draw the parameters of every stratum.

        Where no rows and hardly a prior say something, so that parameters have no mean (t distributions of one degree
        of freedom or less), the noise has the prior's own standard deviation, and all else is drawn given it: effects
        are means.
        """
        lines = self.lines
        loose = lines.df <= 1
        lines = lines._replace(
            df=np.where(loose, _CERTAIN, lines.df),
            residual=np.where(loose, _CERTAIN * lines.residual / lines.rows, lines.residual),
        )
        sigmas = np.sqrt(lines.residual / rng.chisquare(lines.df, (count, len(loose))))
        if self.shared is not None:
            same = rng.random(count) < self.shared.probability
            of_all = np.sqrt(self.shared.residual / rng.chisquare(self.shared.df, count))
            sigmas = np.where(same[:, None], of_all[:, None], sigmas)
        drawn = [lines.draw_given(sigma, np.full(count, place), rng) for place, sigma in enumerate(sigmas.T)]
        intercept, coefficients, sigma = (
            np.stack([getattr(own, name) for own in drawn], axis=1) for name in ("intercept", "coefficients", "sigma")
        )
        return DrawnStrata(self.strata, intercept, coefficients, sigma)

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values, which are t distributed in each stratum."""
        error, leverage, place = self._errors(values, parents)
        densities = [log_t(error, df, residual / df * (1 + leverage)) for residual, df in self._variances(place)]
        return log_mean(np.array(densities), self._log_shares)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one, as in `LinearEquation`."""
        error, leverage, place = self._errors(values, parents)
        given = [left_out_of_lines(error, leverage, residual, df) for residual, df in self._variances(place)]
        return without_own_row(LeftOut(*map(np.array, zip(*given, strict=True))), self._log_shares)

    def _errors(self, values: Floats, parents: Floats) -> tuple[Floats, Floats, Ints]:
        """Return each row's difference from its line, its leverage, and the place of its stratum."""
        place, numbers = self.strata.places(parents), parents[~self.strata.among]
        error, leverage = np.empty(len(values)), np.empty(len(values))
        for own in np.unique(place):
            rows = place == own
            line: LinearEquation = self.lines.one(int(own))
            error[rows], leverage[rows] = line.errors(values[rows], numbers[:, rows])
        return error, leverage, place

    def _variances(self, place: Ints) -> list[tuple[Floats, Floats]]:
        """Return the residual and the degrees of freedom of each row's variance: its stratum's own, and that of all."""
        own = [(self.lines.residual[place], self.lines.df[place])]
        if self.shared is None:
            return own
        same = np.ones(len(place))
        return [*own, (self.shared.residual * same, self.shared.df * same)]

    @property
    def _log_shares(self) -> Floats:
        """The log probabilities of the cases of `_variances`, of shape (cases, 1)."""
        if self.shared is None:
            return np.zeros((1, 1))
        with np.errstate(divide="ignore"):  # either can be out of the question
            shares: Floats = np.log([[1 - self.shared.probability], [self.shared.probability]])
        return shares
