"""What a run will do, as far as public settings tell: which sets are counted ahead, and what it takes at most."""

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

from gpn_bayes.private.costs import Expected
from gpn_bayes.private.counts import VariableSet
from gpn_bayes.private.lookup import table_length
from gpn_bayes.private.product_plan import Sizes, plan_answers, plan_bundles, work_of
from gpn_bayes.private.scoring import PRECISIONS
from gpn_bayes.private.settings import Settings

# At most this many sets are counted before the first step; most of any further ones would be wasted.
_MAX_AHEAD = 1500
# Seconds of a multiplication modulo the square of a 2048-bit key, and of a megabyte of look-ups; and the power of the
# key's length by which a multiplication takes longer.
_MULTIPLICATION = 9e-6
_GROWTH = 2.0
_MEGABYTE_OF_LOOK_UPS = 0.12
_BLOCK = 16


class _Ahead(NamedTuple):
    """What is sent for the sets that are counted ahead, and what it takes in multiplications."""

    encryptions: int
    answers: int
    work: float


def sets_ahead(n_variables: int, max_parents: int) -> list[VariableSet]:
    """Return the sets that are counted before the first step: as large as families, or smaller if there are too many.

    Examples
    --------
    >>> len(sets_ahead(8, 3)), len(sets_ahead(20, 3)[0]), len(sets_ahead(200, 3)[0])
    (70, 3, 2)
    """
    size = min(max_parents + 1, n_variables)
    while size > 2 and sum(comb(n_variables, k) for k in range(2, size + 1)) > _MAX_AHEAD:
        size -= 1
    return list(combinations(range(n_variables), size))


@lru_cache(maxsize=4)
def _plan_ahead(holders: int, helpers: int, max_parents: int, sizes: Sizes) -> _Ahead:
    """Return what the sets that are counted ahead take, by the plan that both parties will make."""
    n_variables = holders + helpers
    largest = len(sets_ahead(n_variables, max_parents)[0])
    pairs = []
    for size in range(2, largest + 1):
        for part in combinations(range(n_variables), size):
            mine = tuple(v for v in part if v < holders)
            if 0 < len(mine) < size:
                pairs.append((mine, part[len(mine) :]))
    bundles = plan_bundles(pairs, sizes)
    encryptions = sum(bundle.ciphertexts(sizes.rows) for bundle in bundles)
    return _Ahead(encryptions, len(plan_answers(bundles, pairs, sizes)), work_of(bundles, pairs, sizes))


def encryptions_ahead(settings: Settings, holders: int, helpers: int, rows: int) -> int:
    """Return how many ciphertexts the key holder sends before the first step.

    Parameters
    ----------
    settings : Settings
        Of the run.
    holders, helpers : int
        How many columns the key holder and the other party have.
    rows : int
        Rows of the joined table, or more.

    Examples
    --------
    >>> encryptions_ahead(Settings(tuple("abcdefgh"), key_bits=2048), 4, 4, 1000)
    668
    """
    return _plan_ahead(holders, helpers, settings.max_parents, Sizes(rows, settings.key_bits)).encryptions


def most_look_ups(n_variables: int, max_parents: int) -> int:
    """Return how many counts are looked up at most: no node stops, and no set is met twice or owned by one party.

    Examples
    --------
    >>> most_look_ups(8, 3)
    780
    """
    total = 0
    for predecessors in range(n_variables):
        for parents in range(1, min(max_parents, predecessors) + 1):
            # As many candidates as are left, each with a family of cells and with margins.
            total += (predecessors - parents + 1) * (2 ** (parents + 1) + 2**parents)
    return total


def expectations(settings: Settings, holders: int, helpers: int, rows: int) -> dict[str, Expected]:
    """Return what the costly sub-protocols take at most, roughly.

    Parameters
    ----------
    settings, holders, helpers, rows
        As of `encryptions_ahead`.
    """
    ahead = _plan_ahead(holders, helpers, settings.max_parents, Sizes(rows, settings.key_bits))
    seconds = ahead.work * _MULTIPLICATION * (settings.key_bits / 2048) ** _GROWTH
    counts = Expected(seconds, (ahead.encryptions + ahead.answers) * settings.key_bits // 4)
    length, bits = table_length(rows), PRECISIONS[settings.score].bits
    each = length * bits // 8 + _BLOCK * length.bit_length()
    look_ups = most_look_ups(holders + helpers, settings.max_parents) * each
    return {"counts": counts, "scores": Expected(look_ups * 1e-6 * _MEGABYTE_OF_LOOK_UPS, look_ups)}
