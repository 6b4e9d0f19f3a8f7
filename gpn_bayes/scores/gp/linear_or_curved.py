"""Equations that are linear or curved, both as probable in advance: a line under BGe's prior, or a Gaussian process."""

from dataclasses import dataclass

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.scores.base import ScoreBatch
from gpn_bayes.scores.equations import DrawnLine, Equation, LeftOut, LinearEquation, log_mean
from gpn_bayes.scores.gp.curve_equation import CurveEquation, DrawnCurves, LevelEquation, without_own_row


def linear_or_curved(lines: Floats, curves: ScoreBatch) -> ScoreBatch:
    """Return the scores of equations of which it isn't known whether they are linear: averages of both.

    Parameters
    ----------
    lines : ndarray of shape (sets,)
        Log marginal likelihoods of the sets where equations are linear.
    curves : ScoreBatch
        Those where they are curved.

    Examples
    --------
    >>> curves = ScoreBatch(np.log([1.0, 3.0]), np.array([0.1, 0.1]), np.array([0.2, 0.2]), ["ok", "ok"])
    >>> found = linear_or_curved(np.log([3.0, 1.0]), curves)
    >>> np.exp(found.values), found.errors
    (array([2., 2.]), array([0.025, 0.075]))
    """
    total = np.logaddexp(lines, curves.values)
    return curves._replace(values=total - np.log(2), errors=np.exp(curves.values - total) * curves.errors)


@dataclass(frozen=True, eq=False)
class LinearOrCurvedEquation(Equation):
    """The posterior of an equation that is linear or curved.

    Parameters
    ----------
    line : LinearEquation
        The posterior if it is linear.
    curve : CurveEquation or LevelEquation
        The posterior if it is curved.
    straight : float
        The probability that it is linear.
    """

    line: LinearEquation
    curve: CurveEquation | LevelEquation
    straight: float

    def draw(self, count: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw whether the equation is linear, and its parameters; lines are tabulated as curves are."""
        straight = rng.random(count) < self.straight
        # Their grids are wanted even where no curve is drawn.
        curves = self.curve.draw(max(int((~straight).sum()), 1), rng)
        lines = self.line.draw(int(straight.sum()), rng)
        values = np.empty((count, *curves.values.shape[1:]))
        intercept, sigma = np.empty(count), np.empty(count)
        for own, drawn, tables in (
            (straight, lines, _tabulated(lines, curves.grids)),
            (~straight, curves, curves.values),
        ):
            kept = int(own.sum())
            values[own], intercept[own], sigma[own] = tables[:kept], drawn.intercept[:kept], drawn.sigma[:kept]
        return DrawnCurves(curves.grids, values, intercept, sigma)

    def log_predictive(self, values: Floats, parents: Floats) -> Floats:
        """Return the log density of new values, averaged over both."""
        given = [own.log_predictive(values, parents) for own in (self.line, self.curve)]
        return log_mean(np.array(given), self._log_shares)

    def leave_one_out(self, values: Floats, parents: Floats) -> LeftOut:
        """Return what all other rows say of each one, averaged over both as these rows have it."""
        given = [own.leave_one_out(values, parents) for own in (self.line, self.curve)]
        return without_own_row(LeftOut(*map(np.array, zip(*given, strict=True))), self._log_shares)

    @property
    def _log_shares(self) -> Floats:
        with np.errstate(divide="ignore"):  # either can be out of the question
            shares: Floats = np.log([[self.straight], [1 - self.straight]])
        return shares


def _tabulated(lines: DrawnLine, grids: Floats) -> Floats:
    """Return lines at the points at which functions are tabulated, (draw, parent, point)."""
    tables: Floats = lines.coefficients[:, :, None] * grids
    return tables
