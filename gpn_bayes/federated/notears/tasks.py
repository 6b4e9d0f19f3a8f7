"""The tasks of a run of ADMM, which coordinator and clients must know by the same names."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.checks import check_choice

ROWS = "rows"
ROUND = "round"
LARGEST_RHO = 1e16
# By how much the strength of consensus grows from round to round.
_GROWTH_OF_RHO2 = 1.25


class RoundTask(NamedTuple):
    """What a client receives in a round.

    Attributes
    ----------
    shared : ndarray
        The shared parameters, W.
    rho, last_rho : float
        The strengths of consensus in this round, and in the one before.
    rows : float
        How many rows all clients have together.
    centre : ndarray
        The point about which this client takes its rows.
    """

    shared: np.ndarray
    rho: float
    last_rho: float
    rows: float
    centre: np.ndarray


def next_rho(rho: float) -> float:
    """Return the strength of consensus, rho2, in the next round.

    Examples
    --------
    >>> next_rho(0.1)
    0.125
    """
    return rho * _GROWTH_OF_RHO2 if rho < LARGEST_RHO else rho


def check_task(task: str) -> None:
    """Refuse a task that no client knows.

    Examples
    --------
    >>> check_task("covariance")
    Traceback (most recent call last):
    ValueError: task must be one of rows, round; received 'covariance'
    """
    check_choice("task", task, (ROWS, ROUND))


def about_rows(count: int, means: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return what a client says of its rows: their number and, where intercepts are shared, their sum.

    Examples
    --------
    >>> about_rows(4, np.array([0.5, 2.0]))["total"].tolist()
    [2.0, 8.0]
    """
    rows = {"rows": np.array(float(count))}
    return rows if means is None else rows | {"total": count * means}


def read_round(
    values: Mapping[str, np.ndarray], shape: tuple[int, ...], means: np.ndarray, shared_intercepts: bool
) -> RoundTask:
    """Return what a round's values say, or refuse them.

    Parameters
    ----------
    values : mapping
        "shared", "rho", "last_rho", "rows" and, if intercepts are shared, "centre".
    shape : tuple of int
        That of the shared parameters.
    means : ndarray
        This client's own, which are the centre unless intercepts are shared.
    shared_intercepts : bool
        Whether they are.

    Examples
    --------
    >>> values = {"shared": np.zeros((2, 2)), "rho": np.array(0.1), "last_rho": np.array(0.1), "rows": np.array(9)}
    >>> read_round(values, (3, 3), np.zeros(3), False)
    Traceback (most recent call last):
    ValueError: 'shared' of a round must have the shape (3, 3); received (2, 2)
    """
    numbers = {name: float(_shaped(values, name, ())) for name in ("rho", "last_rho", "rows")}
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name!r} of a round must be above 0; received {number}")
    centre = _shaped(values, "centre", means.shape) if shared_intercepts else means
    return RoundTask(_shaped(values, "shared", shape), **numbers, centre=centre)


def _shaped(values: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name not in values:
        raise ValueError(f"a round must come with {name!r}; it doesn't")
    if np.shape(values[name]) != shape:
        raise ValueError(f"{name!r} of a round must have the shape {shape}; received {np.shape(values[name])}")
    return np.asarray(values[name], dtype=float)
