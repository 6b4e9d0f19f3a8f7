"""K2 scores of families whose counts two parties hold in shares, in shares again.

A configuration of the parents with a0 and a1 rows, for the two levels of a node, adds f(a0) + f(a1) - f(a0 + a1 + 1):

- "exact": f(x) = ln x!, from a table;
- "paper": f(x) = (x + 1/2) ln x, the function g of Wright & Yang (2004) with its constants left out. These don't cancel
  between sets of different sizes, and configurations without rows, for which f is 0, gain.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gpn_bayes._util.checks import check_choice
from gpn_bayes.private.logarithm import plain_logarithms, share_logarithms
from gpn_bayes.private.lookup import Precision, log_factorials, look_up, table_length
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import reduced

# Products x ln x carry the rounding of ln x times x, and so the approximations have more bits behind the point.
PRECISIONS: Mapping[str, Precision] = {"exact": Precision(48, 28), "paper": Precision(64, 40)}


class Terms(NamedTuple):
    """What counts add to a score: whole numbers, in shares or in the clear.

    Attributes
    ----------
    cells : ndarray
        f(x), of the rows x in which a node has one level under one configuration.
    margins : ndarray
        -f(x + 1), of the rows x under one configuration.
    """

    cells: np.ndarray
    margins: np.ndarray


def share_terms(session: Session, cells: np.ndarray, margins: np.ndarray, n_rows: int, score: str = "exact") -> Terms:
    """Return this party's shares, modulo ``2**PRECISIONS[score].bits``, of what counts add to scores.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    cells, margins : ndarray of uint64
        This party's shares of counts of rows, modulo `table_length` of the rows or a multiple of it.
    n_rows : int
        Rows in all; both parties know it.
    score : {"exact", "paper"}
        What f is.
    """
    check_choice("score", score, tuple(PRECISIONS))
    precision, length = PRECISIONS[score], table_length(n_rows)
    # One more than each margin: one party adds it.
    counts = np.concatenate([cells.ravel(), margins.ravel() + np.uint64(session.leads)])
    is_cell = np.arange(len(counts)) < cells.size
    if not counts.size:
        return Terms(cells, margins)
    if score == "exact":
        values = look_up(session, log_factorials(length, precision), counts, precision.bits)
    else:
        found = share_logarithms(session, counts, length, _halves(precision))
        values = found.products * np.uint64(2) + found.logarithms
    values = np.where(is_cell, values, -values)
    values = reduced(values, precision.bits)
    return Terms(values[: cells.size].reshape(cells.shape), values[cells.size :].reshape(margins.shape))


def plain_terms(n_rows: int, score: str = "exact") -> Terms:
    """Return what the shares of `share_terms` open to, for counts of 0, 1, …, n_rows.

    Scores are sums of these numbers, ``2**PRECISIONS[score].fraction`` times as large as in natural logs; two learners
    that add and compare them find the same network, ties included.

    Examples
    --------
    >>> terms = plain_terms(10)
    >>> score = terms.cells[[3, 7]].sum() + terms.margins[10]
    >>> float(np.ldexp(score, -PRECISIONS["exact"].fraction).round(4))
    -7.1854
    """
    check_choice("score", score, tuple(PRECISIONS))
    precision, length = PRECISIONS[score], table_length(n_rows)
    counts = np.arange(n_rows + 2)
    if score == "exact":
        values = log_factorials(length, precision)[counts]
    else:
        values = (2 * counts + 1) * plain_logarithms(length, _halves(precision))[counts]
    return Terms(values[:-1], -values[1:])


def error_bound(n_rows: int, score: str, n_configurations: int) -> float:
    """Return how far a score from `plain_terms` can be from the same score without rounding.

    Parameters
    ----------
    n_rows : int
        Rows in all.
    score : {"exact", "paper"}
        What f is.
    n_configurations : int
        Configurations of the parents, each of which adds two cells and a margin.

    Examples
    --------
    >>> error_bound(1000, "exact", 8) < 1e-7, error_bound(1000, "paper", 8) < 1e-7
    (True, True)
    """
    unit = 2.0 ** -PRECISIONS[score].fraction
    if score == "exact":
        return 1.5 * n_configurations * unit
    # Each ln x is rounded twice, to halves of a unit of what is then multiplied by x + 1/2, and cut off once; the
    # counts of all cells add up to the rows, and so do those of all margins.
    return 3.0 * (2 * n_rows + 3 * n_configurations) * unit


def _halves(precision: Precision) -> Precision:
    """Return the precision of ln x at which (2 x + 1) ln x is (x + 1/2) ln x at the given one."""
    return Precision(precision.bits, precision.fraction - 1)
