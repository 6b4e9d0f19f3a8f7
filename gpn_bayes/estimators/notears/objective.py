"""What NOTEARS minimises: the loss of linear structural equations plus a penalty on their weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from gpn_bayes._util.types import Bools, Floats
from gpn_bayes.data import (
    Dataset,
    SufficientStatistics,
    read_complete,
    refuse_interventions,
    refuse_weights,
    statistics_of,
)
from gpn_bayes.kernels.learners.regressions import LOGISTIC, POISSON, Regressions
from gpn_bayes.scores.prior import GraphPrior

LOSSES = ("l2", "logistic", "poisson")
_CODES = {"l2": 0, "logistic": LOGISTIC, "poisson": POISSON}
# Rates of a Poisson loss stay finite: a line search turns back long before.
_LARGEST_EXPONENT = 200.0


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Data, a loss, a penalty, and which edges may and must be there.

    Weights are matrices of d rows for least squares, and of one more for the other losses: the intercepts, which have
    no penalty. Centring does for least squares what intercepts do for the others.

    Attributes
    ----------
    data : Dataset or SufficientStatistics
        As the user gave them.
    loss : {"l2", "logistic", "poisson"}
        1/(2 n) ||X - X W||^2, or minus the average log likelihood less what doesn't depend on W.
    covariance : ndarray, shape (d, d)
        X'X / n of the centred columns.
    rows : ndarray, shape (n, d + 1), or None
        The columns and one of ones; None for least squares, which need the covariance only.
    lambda1 : float
        The penalty of a unit of weight; required edges have none.
    allowed, required : ndarray of bool, shape (d, d)
        Rows are parents.
    """

    data: Dataset | SufficientStatistics
    loss: str
    covariance: Floats
    rows: Floats | None
    lambda1: float
    allowed: Bools
    required: Bools

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.covariance)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights."""
        return (self.d if self.rows is None else self.d + 1), self.d

    @cached_property
    def penalties(self) -> Floats:
        """The penalty of a unit of each weight, intercepts among them."""
        penalties = np.zeros(self.shape)
        penalties[: self.d] = np.where(self.required, 0.0, self.lambda1)
        return penalties

    @cached_property
    def free(self) -> Bools:
        """Which weights may differ from zero, intercepts among them."""
        free = np.ones(self.shape, dtype=bool)
        free[: self.d] = self.allowed
        return free

    def with_lambda1(self, lambda1: float) -> "LinearProblem":
        """Return the same problem with another penalty."""
        return replace(self, lambda1=lambda1)

    def standardised(self) -> "LinearProblem":
        """Return the least-squares problem of the columns scaled to unit variance."""
        scale = np.sqrt(np.diag(self.covariance))
        return replace(self, covariance=self.covariance / np.outer(scale, scale))

    def loss_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        if self.rows is None:
            residual = np.eye(self.d) - weights
            product = self.covariance @ residual
            return 0.5 * float(np.vdot(residual, product)), -product
        values = self.rows[:, : self.d]
        predictors = self.rows @ weights
        if self.loss == "logistic":
            losses, means = np.logaddexp(0, predictors), expit(predictors)
        else:
            losses = means = np.exp(np.minimum(predictors, _LARGEST_EXPONENT))
        value = float((losses - values * predictors).sum()) / len(values)
        return value, self.rows.T @ (means - values) / len(values)

    def objective(self, weights: Floats) -> float:
        """Return F: the loss plus the penalties."""
        return self.loss_and_gradient(weights)[0] + float((self.penalties * np.abs(weights)).sum())

    def regressions(self) -> Regressions:
        """Return what the compiled regressions of one variable on others need."""
        rows = None if self.rows is None else np.ascontiguousarray(self.rows.T)
        return Regressions(
            _CODES[self.loss],
            self.covariance,
            rows,
            np.ascontiguousarray(self.penalties[: self.d].T),
            np.ascontiguousarray(self.allowed.T),
        )


def read_linear_problem(
    data: Any, loss: str, lambda1: float, required: Any = (), forbidden: Any = (), tiers: Any = None
) -> LinearProblem:
    """Check the data and the edges.

    Raises
    ------
    ValueError
        For data that the loss can't take, or edges that contradict each other.
    """
    checked = read_complete(data)
    refuse_interventions(checked, "NOTEARS")
    refuse_weights(checked, "NOTEARS")
    prior = GraphPrior(checked.names, required=required, forbidden=forbidden, tiers=tiers)
    if loss != "l2":
        checked.with_rows(f"the {loss} loss needs rows")
    if checked.table is None:
        statistics = statistics_of(checked, "NOTEARS")
        covariance, rows = statistics.cov * ((statistics.n - 1) / statistics.n), None
    else:
        values = checked.table.numeric("NOTEARS")
        centred = values - values.mean(axis=0)
        covariance, rows = centred.T @ centred / len(values), None
        if loss != "l2":
            _check_values(values, checked.names, loss)
            rows = np.column_stack([values, np.ones(len(values))])
    # Halves that differ by rounding would make the order of two variables matter.
    covariance = np.ascontiguousarray((covariance + covariance.T) / 2)
    return LinearProblem(checked, loss, covariance, rows, lambda1, ~prior.forbidden, prior.required)


def _check_values(values: Floats, names: tuple[str, ...], loss: str) -> None:
    tests: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
        "logistic": (lambda x: (x == 0) | (x == 1), "0 and 1"),
        "poisson": (lambda x: (x >= 0) & (x == np.round(x)), "counts 0, 1, 2, …"),
    }
    fits, wanted = tests[loss]
    for name, column in zip(names, values.T, strict=True):
        wrong = column[~fits(column)]
        if len(wrong):
            raise ValueError(f"the {loss} loss needs columns of {wanted}; column {name!r} holds {wrong[0]:g}")
