"""The likelihood-ratio statistic of independence in a table of counts, by strata."""

import math

import numpy as np
from numpy.typing import NDArray

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner


@inner
def _entropy_term(count: int) -> float:
    """Return N ln N, which is 0 for N = 0."""
    return count * math.log(count) if count > 0 else 0.0


@inner
def _add_stratum(cells: Ints, first: Ints, second: Ints, answer: Floats) -> None:
    """Add the statistic and the degrees of freedom of one stratum, and set its counts to zero."""
    # G^2 / 2 = sum_ab N_ab ln N_ab - sum_a N_a ln N_a - sum_b N_b ln N_b + N ln N: cells, first, second and total.
    total, rows, columns = 0, 0, 0
    statistic = 0.0
    for a in range(len(first)):
        if first[a] > 0:
            rows += 1
            total += first[a]
            statistic -= _entropy_term(first[a])
            for b in range(len(second)):
                statistic += _entropy_term(cells[a, b])
                cells[a, b] = 0
            first[a] = 0
    for b in range(len(second)):
        if second[b] > 0:
            columns += 1
            statistic -= _entropy_term(second[b])
            second[b] = 0
    answer[0] += 2 * (statistic + _entropy_term(total))
    # (levels of the first that occur - 1) (levels of the second that occur - 1); none do where all weights are zero.
    if total > 0:
        answer[1] += (rows - 1) * (columns - 1)


@compiled
def g_squared(
    first_codes: NDArray[np.int32],
    second_codes: NDArray[np.int32],
    weights: Ints,
    order: Ints,
    starts: Ints,
    shape: tuple[int, int],
) -> Floats:
    """Return G^2 = 2 sum N_abs ln(N_abs N_s / (N_as N_bs)) of two variables by strata s, and its degrees of freedom.

    Levels that don't occur in a stratum give it no degrees of freedom.

    Parameters
    ----------
    first_codes, second_codes : ndarray of int32, shape (rows,)
        The levels of the two variables.
    weights : ndarray of int64, shape (rows,)
        How often each row occurs.
    order, starts : ndarray of int64
        Stratum s holds the rows ``order[starts[s]:starts[s + 1]]``.
    shape : tuple of int
        Number of levels of the two.
    """
    cells = np.zeros(shape, np.int64)
    first, second = np.zeros(shape[0], np.int64), np.zeros(shape[1], np.int64)
    answer = np.zeros(2)
    for s in range(len(starts) - 1):
        for t in range(starts[s], starts[s + 1]):
            row = order[t]
            a, b, weight = first_codes[row], second_codes[row], weights[row]
            cells[a, b] += weight
            first[a] += weight
            second[b] += weight
        _add_stratum(cells, first, second, answer)
    return answer
