"""How many draws, or rows, weighted ones are worth."""

from gpn_bayes._util.types import Floats

# Weighted draws that are worth a smaller share of their number can't be relied on.
WEIGHT_ESS_LIMIT = 0.1


def effective_size(weights: Floats) -> float:
    """Return how many draws of equal weight would be worth as much as weighted ones, by Kish's formula.

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0])), effective_size(np.array([1.0, 3.0]))
    (2.0, 1.6)
    """
    return float(weights.sum() ** 2 / (weights**2).sum())
