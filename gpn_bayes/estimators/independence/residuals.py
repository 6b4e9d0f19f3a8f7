"""What is left of a variable when others, linearly and otherwise, explain it: Gaussian-process regression."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.estimators.independence.base import Nodes
from gpn_bayes.kernels.independence.dependence import median_distance

# Widths of the Gaussian kernel, in median distances of the rows.
_WIDTHS = (0.5, 1.0)
# Variances of the noise, as parts of the kernel's own.
_NOISE = np.geomspace(1e-3, 1e2, 26)
# Numbers that matrices of a bound test are remembered up to: 64 MB.
REMEMBERED = 8_000_000


class _Basis(NamedTuple):
    """The covariance of a regression for one width: its eigenvectors, and its eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray


class Regression:
    """Residuals of any column given any others.

    The prior of the regression is a Gaussian process, the sum of a linear and a Gaussian kernel (half as wide as the
    median distance of the rows, or as wide). Width and noise are those of the highest marginal likelihood.

    Rows that are the same in every column count once in the regression: the copies that a bootstrap makes would let the
    noise appear smaller than it is. The time for a set grows with the cube of the rows.

    Parameters
    ----------
    values : ndarray of shape (rows, n)
        The table; every column must vary.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 60)
    >>> noise = np.random.default_rng(1).normal(size=60)
    >>> left = Regression(np.column_stack([x, 5 * np.sin(x) + noise])).residuals(1, (0,))
    >>> bool(np.corrcoef(left, noise)[0, 1] > 0.9)
    True
    """

    def __init__(self, values: Floats) -> None:
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
        self._rows, self._copies = np.unique(scaled, axis=0, return_inverse=True)
        self._copies = self._copies.reshape(-1)
        self._bases = lru_cache(max(REMEMBERED // (len(_WIDTHS) * len(self._rows) ** 2), 2))(self._find_bases)
        self.residuals = lru_cache(max(REMEMBERED // len(values), 2))(self._find_residuals)

    def _find_bases(self, given: Nodes) -> list[_Basis]:
        points = np.ascontiguousarray(self._rows[:, list(given)])
        squares = (points**2).sum(axis=1)
        linear = points @ points.T
        distances = np.maximum(squares[:, None] + squares - 2 * linear, 0.0)
        scale = median_distance(points)
        return [_basis(linear / len(given) + np.exp(-0.5 * distances / (width * scale) ** 2)) for width in _WIDTHS]

    def _find_residuals(self, target: int, given: Nodes) -> Floats:
        """Return a column's residuals, in its standard deviations; without others, the column itself."""
        column = self._rows[:, target]
        if not given:
            return column[self._copies]
        column = column - column.mean()
        best, left = np.inf, column
        for basis in self._bases(given):
            weights = basis.vectors.T @ column
            # One row for every noise: how much of each component is taken for noise.
            shrunk = _NOISE[:, None] / (basis.values + _NOISE[:, None])
            deviance = (len(column) - 1) * np.log((shrunk / _NOISE[:, None]) @ weights**2)
            deviance += np.log(basis.values + _NOISE[:, None]).sum(axis=1)
            place = int(deviance.argmin())
            if deviance[place] < best:
                best, left = deviance[place], basis.vectors @ (shrunk[place] * weights)
        return left[self._copies]


def _basis(covariance: Floats) -> _Basis:
    """Return the eigenvectors of a covariance with the mean taken out."""
    means = covariance.mean(axis=0)
    values, vectors = np.linalg.eigh(covariance - means - means[:, None] + means.mean())
    return _Basis(vectors, np.maximum(values, 0.0))
