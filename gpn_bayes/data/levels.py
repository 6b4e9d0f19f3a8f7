"""Numbers cut into levels: at their mean, or into parts of equal frequency."""

import numpy as np

from gpn_bayes._util.types import Floats, Ints

# Whole numbers with more values than this are measurements, where a score takes either kind.
FEW_LEVELS = 20
_LABELS = {2: ["low", "high"], 3: ["low", "middle", "high"]}


def labels(levels: int) -> list[str]:
    """Return the names of levels: low and high; low, middle and high; or, if more, q1, q2, …."""
    return _LABELS.get(levels, [f"q{k + 1}" for k in range(levels)])


def cut(name: str, values: Floats, method: str, levels: int) -> Ints:
    """Return the level of every value of a column, from 0.

    Parameters
    ----------
    name : str
        The column, for the message.
    values : ndarray
        Its values.
    method : {"mean", "quantile"}
        Whether to cut at the mean or into parts of equal frequency.
    levels : int
        Number of levels.

    Raises
    ------
    ValueError
        If some level holds no row.
    """
    codes = (values > values.mean()).astype(int) if method == "mean" else _quantile_codes(values, levels)
    if len(np.unique(codes)) < levels:
        distinct = len(np.unique(values))
        reason = f"has {distinct} distinct values" if distinct < levels else "has too many equal values"
        raise ValueError(f"each of the {levels} levels must hold a row; column {name!r} {reason}")
    return codes


def _quantile_codes(values: Floats, levels: int) -> Ints:
    """Return the part that the middle of a value's ranks falls into, so that ties at either end are treated alike."""
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    # Whole numbers: rounding could move a value that lies on a limit.
    return (below + upto) * levels // (2 * len(values))
