"""ArviZ's statistics of plain arrays: R-hat, effective sample sizes, Pareto-smoothed importance weights."""

from typing import Any


def array_stats() -> Any:
    """Return ArviZ's functions, loaded when first needed: they take longer to load than all else together.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(1).normal(size=(4, 500))
    >>> bool(array_stats().rhat(draws) < 1.01)
    True
    """
    from arviz_stats.base.array import array_stats

    return array_stats
