"""Equations that are linear or curved, both as probable in advance: a line under BGe's prior, or a Gaussian process."""

from dataclasses import dataclass

import numpy as np

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.scores.base import ScoreBatch
from gpn_bayes.scores.equations import DrawnEquation, Equation, LeftOut, LinearEquation, log_mean, without_own_row
from gpn_bayes.scores.gp.curve_equation import CurveEquation, LevelEquation


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


class DrawnLinesOrCurves(DrawnEquation):
    """Draws of an equation, of which some are lines and the others curves.

    Attributes
    ----------
    straight : ndarray of shape (draws,)
        Which draws are lines.
    lines, curves : DrawnEquation
        Those that are lines, and the others.
    """

    def __init__(self, straight: Bools, lines: DrawnEquation, curves: DrawnEquation) -> None:
        self.straight = straight
        self.lines = lines
        self.curves = curves
        # Where each draw stands among those of its own kind.
        self._place = np.where(straight, straight.cumsum(), (~straight).cumsum()) - 1
        self.sigma = np.empty(len(straight))
        self.sigma[straight], self.sigma[~straight] = lines.sigma, curves.sigma

    def expected(self, draw: int, parents: Floats) -> Floats:
        """Return the line or the curve of one draw."""
        own = self.lines if self.straight[draw] else self.curves
        return own.expected(int(self._place[draw]), parents)


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

    def draw(self, count: int, rng: np.random.Generator) -> DrawnLinesOrCurves:
        """Draw whether the equation is linear, and its parameters."""
        straight = rng.random(count) < self.straight
        lines = int(straight.sum())
        return DrawnLinesOrCurves(straight, self.line.draw(lines, rng), self.curve.draw(count - lines, rng))

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
