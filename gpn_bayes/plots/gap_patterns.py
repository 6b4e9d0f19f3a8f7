"""Which values of a table are missing together: its rows in groups by what they lack."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.types import Bools, Ints


class GapPatterns(NamedTuple):
    """Groups of rows that lack the same columns, the most frequent first.

    Attributes
    ----------
    missing : ndarray of bool, shape (patterns, columns)
        Which columns each lacks.
    rows : ndarray of int, shape (patterns,)
        How many rows it has.
    left : int
        How many patterns were left out, the rarest.
    left_rows : int
        How many rows these have.
    """

    missing: Bools
    rows: Ints
    left: int
    left_rows: int


def gap_patterns(missing: Bools, most: int) -> GapPatterns:
    """Return the patterns of missing values, complete rows among them.

    Parameters
    ----------
    missing : ndarray of bool, shape (rows, columns)
        Which values are missing.
    most : int
        How many patterns to return.

    Examples
    --------
    >>> found = gap_patterns(np.array([[0, 1], [0, 0], [0, 1], [1, 1]], dtype=bool), most=2)
    >>> found.missing.astype(int).tolist(), found.rows.tolist(), found.left, found.left_rows
    ([[0, 1], [0, 0]], [2, 1], 1, 1)
    """
    patterns, rows = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-rows, kind="stable")
    shown, left = order[:most], order[most:]
    return GapPatterns(patterns[shown], rows[shown], len(left), int(rows[left].sum()))
