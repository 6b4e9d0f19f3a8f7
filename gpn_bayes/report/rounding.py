"""Numbers of a report as JSON takes them, with as many digits as a reader can use."""

from math import floor, log10
from typing import Any

import numpy as np

# As in edges.csv, so that the table's download is the same file.
PROBABILITY_DECIMALS = 6


def numbers(values: Any, decimals: int) -> list[float | None]:
    """Return numbers as JSON takes them: rounded, with None for those that aren't finite.

    Examples
    --------
    >>> numbers([0.12345, float("nan")], 2)
    [0.12, None]
    """
    return [
        round(value, decimals) if np.isfinite(value) else None for value in np.asarray(values, float).ravel().tolist()
    ]


def errors(values: Any) -> list[float | None]:
    """Return standard errors as JSON takes them; one that isn't 0 doesn't become it, since 0 stands for exact.

    Examples
    --------
    >>> errors([0.0, 1e-9, 0.25])
    [0.0, 1e-07, 0.25]
    """
    least = 10.0 ** -(PROBABILITY_DECIMALS + 1)
    rounded = numbers(values, PROBABILITY_DECIMALS)
    return [least if own == 0 and value > 0 else own for own, value in zip(rounded, np.ravel(values), strict=True)]


def decimals_of(*values: Any) -> int:
    """Return to how many decimals numbers must be rounded so that a thousandth of the span between them still shows.

    Examples
    --------
    >>> decimals_of([0.1, 0.7], 0.3), decimals_of([2010.0, 2020.0]), decimals_of(1.5, 1.5)
    (4, 2, 6)
    """
    span = float(np.ptp(np.concatenate([np.ravel(own) for own in values])))
    return 3 - floor(log10(span)) if span > 0 else 6
