"""Whether rows depend on each other: neighbours that are alike, and columns that name groups of rows."""

import re
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, gdtr, ndtri

from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data.flagging import DESCRIBED, Flag, TableColumn, grouped, listed
from gpn_bayes.data.identifiers import named_so

# Columns that are looked at have this many rows at least, and as many beside their most frequent value: two of few
# that differ from it stand side by side too easily.
_FEWEST = 20
# Neighbours are alike where the correlations of rows with the next are certain and large. Certain: all columns
# together, or the second largest, exceed chance (in none of 1,200 tables of independent rows). Large: where two columns
# have correlations r and s, their own correlation has a variance (1 + rs) / (1 - rs) times as large as in independent
# rows (Bartlett 1935), at rs = 0.1 by a fifth.
_CERTAIN, _BY_CHANCE, _LARGE = 4.0, 0.0005, 0.1
# A column orders the rows if chance does so this rarely.
_ORDERED = np.log(1e-6)
# Where rows are sorted by a number, others change slowly with it: about linearly within this many rows.
_PIECE = 20
# The share of steps that may go the other way in a column by which rows are sorted within blocks.
_AGAINST = 0.03
# Columns that name groups of rows by the look of it have this many values, those called so fewer.
_GROUPS, _NAMED_GROUPS, _CYCLE = 10, 5, 50
# Groups are of more equal sizes than any counts: p-value of the test.
_EQUAL = 1e-4
_CALENDAR = re.compile(r"(.*[\W_])?(year|month|quarter|week|day|date|hour|time)s?([\W_].*)?", re.IGNORECASE)
_YEARS = (1500, 2200)


class _Order(NamedTuple):
    """What rows are sorted by: the columns, and the pieces of rows within which others are compared."""

    names: tuple[str, ...]
    piece_of_row: Ints
    straight: bool


class _Likeness(NamedTuple):
    """How much neighbouring rows are alike: of each column the correlation, beyond chance, and in standard errors.

    And of all columns but the one with the largest, their sum in standard errors.
    """

    names: list[str]
    correlations: Floats
    z: Floats
    others: float

    def of(self, names: set[str]) -> "_Likeness":
        """Return that of some columns."""
        chosen = [k for k, name in enumerate(self.names) if name in names]
        return self._replace(
            names=[self.names[k] for k in chosen], correlations=self.correlations[chosen], z=self.z[chosen]
        )

    @property
    def any_certain(self) -> bool:
        """Whether at least one column is like what chance hardly makes."""
        least = -ndtri(_BY_CHANCE / max(len(self.names), 1))
        return bool(((self.z > least) & (self.correlations >= _LARGE)).any())

    @property
    def flagged(self) -> bool:
        """Whether at least two are, or all together, and edges between them look too certain."""
        if len(self.names) < 2:
            return False
        first, second = np.sort(self.correlations)[-2:]
        sure = np.sort(self.z)[-2] > -ndtri(_BY_CHANCE / len(self.names)) or self.others > _CERTAIN
        return bool(sure and first > 0 and first * second >= _LARGE)


def dependence_flags(columns: list[TableColumn], n_rows: int) -> list[Flag | None]:
    """Return whether rows are repeated measurements of groups, or neighbours alike, as moments in time are.

    A table that was merely sorted has neighbours that are alike, too, and its rows may be independent: they are
    compared within blocks of equal values, or about lines in pieces of few rows.

    Parameters
    ----------
    columns : list of TableColumn
        Those that don't number the rows.
    n_rows : int
        The rows of the table.

    Examples
    --------
    >>> from gpn_bayes.data.dataset import Dataset
    >>> def flags(table):
    ...     data = Dataset.read(table)
    ...     found = dependence_flags([TableColumn.of(data, v, True) for v in range(3)], data.n_rows)
    ...     return [flag.kind for flag in found if flag is not None]
    >>> noise = np.random.default_rng(1).normal(size=(200, 3))
    >>> flags(noise), flags(noise.cumsum(axis=0))
    ([], ['dependent rows'])
    """
    if groups := _group_flag(columns):
        return [groups]
    usable = [c for c in columns if len(c.values) - int(c.counts.max()) >= _FEWEST]
    order = _order(columns, n_rows)
    unsorted = _Order((), np.zeros(n_rows, dtype=np.int64), False)
    whole = _likeness(usable, n_rows, unsorted)
    if not whole.flagged:
        return []
    if order is None:
        return [_neighbour_flag(whole, n_rows, ())]
    rest = [column for column in usable if column.name not in order.names]
    others = _likeness(rest, n_rows, unsorted)
    if not others.any_certain:
        return []
    if any(_CALENDAR.fullmatch(name) for name in order.names):
        # What changes with time may well be what rows share.
        return [_neighbour_flag(others, n_rows, order.names) if others.flagged else _sorted_flag(order.names)]
    within = _likeness(rest, n_rows, order)
    if not within.flagged:
        return [_sorted_flag(order.names)]
    alike = {name for name, r in zip(within.names, within.correlations, strict=True) if r > _LARGE}
    return [_neighbour_flag(others.of(alike), n_rows, order.names)]


# Groups of rows


def _group_flag(columns: list[TableColumn]) -> Flag | None:
    seen = [(column.name, _groups(column)) for column in columns]
    found = [(name, what) for name, what in seen if what]
    advice = (
        "This looks like an identifier of groups of rows, which depend on each other, so that edges look too certain: "
        "leave the column out, and keep one row per group, "
        f"or the means (df.groupby({found[0][0]!r}).mean())."
        if found
        else ""
    )
    return grouped("groups", found, advice)


def _groups(column: TableColumn) -> str:
    """Return in words that the values of a column name groups of rows; nothing where they don't."""
    levels, rows = len(column.distinct), len(column.values)
    if not (column.whole or column.is_text) or column.unique or levels < _NAMED_GROUPS or rows < 1.5 * levels:
        return ""
    fewest, most = int(column.counts.min()), int(column.counts.max())
    size = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    in_blocks = _runs(column.values) == levels
    where = f"in blocks of {size} rows" if in_blocks else f"in {size} rows each"
    text = f"{levels} {'texts' if column.is_text else 'whole numbers'} {where}"
    if named_so(column.name):
        return text
    years = not column.is_text and _YEARS[0] <= column.distinct[0] and column.distinct[-1] <= _YEARS[1]
    if levels < _GROUPS or fewest < 2 or years or _CALENDAR.fullmatch(column.name):
        return ""
    mean = rows / levels
    misfit = float(((column.counts - mean) ** 2).sum() / mean)
    equal = gdtr(0.5, (levels - 1) / 2, misfit) < _EQUAL
    steps = np.diff(column.values)
    is_sorted = bool((steps >= 0).all() or (steps <= 0).all())
    cycles = fewest == most and levels >= _CYCLE and len(np.unique(column.values[:levels])) == levels
    return text if (in_blocks and (equal or not is_sorted)) or cycles else ""


# Neighbouring rows


def _order(columns: list[TableColumn], n_rows: int) -> _Order | None:
    """Return what the rows are sorted by, if by anything."""
    whole = [column for column in columns if len(column.values) == n_rows]
    blocks = [c for c in whole if _stand_together(c) and len(c.distinct) <= n_rows / _PIECE]
    starts = np.zeros(n_rows, dtype=bool)
    for column in blocks:
        starts[1:] |= np.diff(column.values) != 0
    names, straight, cuts = [column.name for column in blocks], False, starts.copy()
    for column in whole:
        steps = np.diff(column.values)
        against = (steps < 0 if (steps > 0).sum() >= (steps < 0).sum() else steps > 0) & ~starts[1:]
        few = against.sum() <= _AGAINST * (steps != 0).sum()
        if column.name not in names and few and _rises_in_runs(column, int(against.sum() + starts.sum()) + 1):
            names.append(column.name)
            cuts[1:] |= against
            straight = True
    return _Order(tuple(names), _pieces(cuts) if straight else np.cumsum(cuts), straight) if names else None


def _stand_together(column: TableColumn) -> bool:
    """Tell whether the equal values of a column stand together, as they hardly do by chance."""
    runs = _runs(column.values)
    return bool(runs == len(column.distinct) and gammaln(runs + 1) - _log_arrangements(column) < _ORDERED)


def _rises_in_runs(column: TableColumn, runs: int) -> bool:
    """Tell whether so few runs of rows in which a column rises, or falls, hardly come by chance."""
    # Every row can be in any of the runs.
    return bool(np.log(2) + len(column.values) * np.log(runs) - _log_arrangements(column) < _ORDERED)


def _log_arrangements(column: TableColumn) -> float:
    return float(gammaln(len(column.values) + 1) - gammaln(column.counts + 1).sum())


def _pieces(starts: Bools) -> Ints:
    """Return the number of each row's piece: blocks, cut into pieces of few rows."""
    first = np.flatnonzero(starts | (np.arange(len(starts)) == 0))
    block = np.cumsum(starts)
    place = np.arange(len(starts)) - first[block]
    cut = starts | ((place % _PIECE == 0) & (place > 0))
    return np.cumsum(cut)


def _likeness(columns: list[TableColumn], n_rows: int, order: _Order) -> _Likeness:
    """Return how much rows are like the next in each column, within pieces of rows, about means or lines."""
    names, left, correlations, z = [], [], [], []
    for column in columns:
        ranks = np.full(n_rows, np.nan)
        ranks[column.rows] = np.searchsorted(column.distinct, column.values)
        middle = np.cumsum(column.counts) - 0.5 * column.counts
        ranks[column.rows] = middle[ranks[column.rows].astype(np.int64)]
        residuals, expected = _about_lines(ranks, order)
        squares = float((residuals**2).sum())
        both = ~np.isnan(ranks[1:]) & ~np.isnan(ranks[:-1]) & (np.diff(order.piece_of_row) == 0)
        if both.sum() < _FEWEST or squares <= 1e-9 * float(np.nanvar(ranks)) * n_rows:
            continue
        share = len(column.values) / max(int(both.sum()), 1)
        own = share * float((residuals[1:] * residuals[:-1])[both].sum()) / squares - expected
        names.append(column.name)
        left.append(residuals / np.sqrt(squares))
        correlations.append(own)
        z.append(own * np.sqrt(both.sum()))
    others = 0.0
    if len(names) > 1:
        rest = np.arange(len(names)) != int(np.argmax(z))
        alike = np.array(left)[rest] @ np.array(left)[rest].T
        others = float(np.array(z)[rest].sum() / np.sqrt((alike**2).sum()))
    return _Likeness(names, np.array(correlations), np.array(z), others)


def _about_lines(values: Floats, order: _Order) -> tuple[Floats, float]:
    """Return what the means, or lines, of all pieces leave (0 where a value is missing), and the correlation expected.

    Of independent rows that is, and negative: neighbours share what was subtracted.
    """
    known = ~np.isnan(values)
    piece = order.piece_of_row
    count = int(piece[-1]) + 1

    def means(own: Floats) -> Floats:
        sums = np.bincount(piece[known], own[known], count)
        result: Floats = (sums / np.maximum(np.bincount(piece[known], minlength=count), 1))[piece]
        return result

    left = np.where(known, values - means(np.where(known, values, 0.0)), 0.0)
    # What rows lose to the mean of their piece, and pairs of neighbours.
    sizes = np.bincount(piece[known], minlength=count)
    lost, shared = float((sizes > 0).sum()), float((np.maximum(sizes - 1, 0) / np.maximum(sizes, 1)).sum())
    if order.straight:
        place = np.arange(len(values), dtype=float)
        place = np.where(known, place - means(place), 0.0)
        spread = np.bincount(piece, place**2, count)
        slopes = np.bincount(piece, place * left, count) / np.where(spread > 0, spread, 1.0)
        left = left - slopes[piece] * place
        lost += float((spread > 0).sum())
        next_to = np.where(np.diff(piece) == 0, place[1:] * place[:-1], 0.0)
        shared += float((np.bincount(piece[1:], next_to, count) / np.where(spread > 0, spread, 1.0)).sum())
    return left, -shared / max(float(known.sum()) - lost, 1.0)


def _runs(values: Floats) -> int:
    return 1 + int((np.diff(values) != 0).sum())


def _neighbour_flag(found: _Likeness, n_rows: int, ordered_by: tuple[str, ...]) -> Flag:
    chosen = np.argsort(-found.correlations)
    chosen = chosen[found.correlations[chosen] > np.sqrt(_LARGE)]
    if len(chosen) < 2:
        chosen = np.argsort(-found.correlations)[:2]
    shown = [f"{found.correlations[k]:.2f} in {found.names[k]}" for k in chosen[:DESCRIBED]]
    typical = min(float(np.median(found.correlations[chosen])) ** 2, 1 - 1 / n_rows)
    worth = max(round(n_rows * (1 - typical) / (1 + typical)), 2)
    order = f", sorted by {listed(ordered_by[:DESCRIBED])}," if ordered_by else ""
    return Flag(
        "dependent rows",
        tuple(found.names[k] for k in sorted(chosen)),
        f"Rows{order} are like the next in {len(chosen)} columns (correlations of {listed(shown)}), as those in order "
        "of time or place, or of the same subject, are. Unless the table was merely sorted, edges look too certain: "
        f"{n_rows} such rows say as much as about {worth} independent ones. Analyse differences (df.diff().dropna()), "
        "learn with gpn.estimators.DYNOTEARS, or keep one row per subject.",
    )


def _sorted_flag(ordered_by: tuple[str, ...]) -> Flag:
    return Flag(
        "sorted rows",
        tuple(ordered_by),
        f"{listed(ordered_by[:DESCRIBED])}: rows are sorted by {'them' if len(ordered_by) > 1 else 'it'}, which "
        "explains that neighbours are alike in other columns as well. This does no harm, unless the order is one of "
        "time or place.",
    )
