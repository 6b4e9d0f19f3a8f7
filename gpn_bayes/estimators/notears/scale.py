"""Whether an estimate depends on the units of the variables."""

import warnings
from typing import Any

import numpy as np

from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.graphs import metrics

# Answers that differ in more than this share of the edges hinge on scale.
_SHARE = 0.25
# Columns that were divided by their standard deviations have equal variances, and those are 1 but for its divisor.
_EQUAL, _UNIT = 1e-6, 0.1


def varsortability(adjacency: np.ndarray, variances: Floats) -> float:
    """Return how far variances grow along the directed paths of a graph.

    For every length, all pairs of variables that a path of that length joins are counted; the answer is the share of
    those whose variance grows from the first to the last, where equal variances count half (Reisach et al. 2021). At
    1, sorting the variables by their variance gives the order; at 1/2 variances say nothing. NaN without edges.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> varsortability(chain, np.array([1.0, 2.0, 3.0])), varsortability(chain, np.array([1.0, 2.0, 1.0]))
    (1.0, 0.5)
    """
    edges = adjacency != 0
    equal = np.isclose(variances[:, None], variances[None, :], rtol=1e-9, atol=0)
    grows = np.where(equal, 0.5, variances[:, None] < variances[None, :])
    paths, count, growing = edges.copy(), 0, 0.0
    while paths.any():
        count += int(paths.sum())
        growing += float(grows[paths].sum())
        paths = (paths.astype(float) @ edges) > 0
    return growing / count if count else float("nan")


def are_standardised(variances: Floats) -> bool:
    """Return whether all columns have unit variance, by the divisor of N rows or of N - 1.

    Examples
    --------
    >>> are_standardised(np.full(3, 0.995)), are_standardised(np.array([1.0, 1.1]))
    (True, False)
    """
    return bool(np.ptp(variances) <= _EQUAL and abs(variances[0] - 1.0) <= _UNIT)


def compare_scales(adjacency: Adjacency, standardised: Adjacency, variances: Floats) -> dict[str, Any]:
    """Return how the estimate on raw columns and that on standardised ones differ, and warn if they do by much.

    Parameters
    ----------
    adjacency, standardised : ndarray, shape (d, d)
        The two estimates.
    variances : ndarray, shape (d,)
        Those of the raw columns.
    """
    distance = metrics.shd(adjacency, standardised)
    edges = max(int(adjacency.sum()), int(standardised.sum()))
    depends = distance > 1 and distance > _SHARE * edges
    sortable = varsortability(adjacency, variances)
    if depends:
        warnings.warn(
            f"the estimate depends on the units of the variables: with every column scaled to unit variance, "
            f"{distance} edges differ ({int(adjacency.sum())} edges raw, {int(standardised.sum())} standardised); "
            f"{100 * sortable:.0f}% of its paths lead to a larger variance. Trust the directions only if all variables "
            "are measured in the same units and have similar noise",
            UserWarning,
            stacklevel=4,
        )
    return {
        "varsortability": sortable,
        "shd_standardised": distance,
        "standardised_adjacency": standardised,
        "hinges_on_scale": depends,
    }
