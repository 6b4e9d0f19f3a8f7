"""Checks of the columns and rows of a table before it is analysed: what is probably a mistake."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, gammaln, ndtr

from gpn_bayes._util.types import Bools, Floats, Ints, Words
from gpn_bayes.data.dataset import Dataset
from gpn_bayes.data.identifiers import FEWEST_ROWS, named_so
from gpn_bayes.data.kinds import CATEGORICAL

# Worth knowing, but not a reason to doubt the answers.
MILD_KINDS = frozenset({"binary"})
# Columns whose values are described one by one in a message; the others are counted.
_DESCRIBED = 3

# Values that often stand for a missing one.
_SENTINELS = [
    *(
        sign * float(value)
        for sign in (1, -1)
        for value in (77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9997, 9998, 9999, 99999, 999999, 9999999)
    ),
    *(-1.0, -7.0, -8.0, -9.0, 9.0),
]
# How far a sentinel is from all other values at least, in their standard deviations: further for numbers of one digit,
# unless their sign gives them away, and further still for 9, which small counts reach.
_SENTINEL_GAP, _ONE_DIGIT_GAP, _NINE_GAP = 1.0, 2.0, 2.5
# Among measurements that hardly repeat, one that does so this many times, and this many times as often as any other,
# need not be far.
_FEWEST_REPEATS, _REPEATS_TO_OTHERS = 3, 5

_MOST_CODES = 6
# Whole numbers that may well be Poisson counts or rounded normal measurements are no codes: p-value of the test, and
# how many rows it must expect of a value.
_MISFIT, _FEWEST_EXPECTED = 0.003, 5.0

# Robust standard deviations from the median, more where few rows give them, and the share of a column beyond which it
# has two clusters rather than outliers.
_OUTLYING, _OUTLYING_ROWS, _MOST_OUTLIERS = 8.0, 20.0, 0.1
_MAD_TO_SD = 1.4826

_EVEN_STEPS, _STRAIGHT = 0.5, 0.995
_UNIQUE_TEXT = 0.95

_SAME_CORRELATION = 0.9999
_COPIES_TO_NEIGHBOURS, _COPIES_TO_CHANCE = 3.0, 100.0


@dataclass(frozen=True)
class Flag:
    """Something in the data that should be checked.

    Attributes
    ----------
    kind : str
        "codes", "binary", "identifier", "sentinel", "outliers", "same rows" or "same columns"; and, of residuals,
        "leftover dependence", "heavy tails" or "uneven noise".
    columns : tuple of str
        The columns it is about; none for whole rows.
    message : str
        What was seen, and what to do. Rows are counted from 1.

    Examples
    --------
    >>> flag = Flag("binary", ("smoker",), "smoker: two values only.")
    >>> flag.mild, Flag.read(flag.record()) == flag
    (True, True)
    """

    kind: str
    columns: tuple[str, ...]
    message: str

    @property
    def mild(self) -> bool:
        """Whether it is only worth knowing, and not a reason to doubt the answers."""
        return self.kind in MILD_KINDS

    def record(self) -> dict[str, Any]:
        """Return the flag as JSON takes it."""
        return {"kind": self.kind, "columns": list(self.columns), "message": self.message}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Flag":
        """Return the flag that `record` wrote."""
        return cls(str(record["kind"]), tuple(record["columns"]), str(record["message"]))


class _Column(NamedTuple):
    """One column: its name and values, and its distinct values (ascending) with their counts."""

    name: str
    values: Floats
    distinct: Floats
    counts: Ints
    is_number: bool
    is_text: bool

    @property
    def whole(self) -> bool:
        return not self.is_text and bool((self.distinct == np.floor(self.distinct)).all())

    @property
    def unique(self) -> bool:
        return len(self.distinct) == len(self.values)

    def holds(self, chosen: Bools) -> Bools:
        """Tell which rows hold one of the chosen distinct values."""
        return np.isin(self.values, self.distinct[chosen])

    def without(self, dropped: Bools) -> "_Column":
        """Return the column without the rows that hold the dropped distinct values."""
        if not dropped.any():
            return self
        kept = self.values[~self.holds(dropped)]
        return self._replace(values=kept, distinct=self.distinct[~dropped], counts=self.counts[~dropped])


def data_flags(data: Dataset, numbers: bool, categories: Collection[str] = ()) -> tuple[Flag, ...]:
    """Return what should be checked in a table before it is analysed.

    It looks for values that stand for missing ones, identifiers, codes of categories that are read as numbers,
    outliers, copies of rows, and columns that are nearly the same. Tables of fewer than ten rows aren't looked at.

    Parameters
    ----------
    data : Dataset
        The table.
    numbers : bool
        Whether the score reads columns as numbers; False for scores of categories.
    categories : collection of str
        Those that it reads as categories in any case.

    Returns
    -------
    tuple of Flag
        The gravest first.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> glucose = np.where(rng.random(100) < 0.05, -999.0, rng.normal(5.0, 1.0, 100))
    >>> table = Dataset.read(np.column_stack([np.arange(1.0, 101.0), glucose]))
    >>> [(flag.kind, flag.columns) for flag in data_flags(table, numbers=True)]
    [('sentinel', ('v2',)), ('identifier', ('v1',))]
    >>> print(data_flags(table, numbers=True)[0].message)
    v2: -999 in 5 rows (the first is row 10); its other values are 2.29 to 7.87. If this means a missing
    value, remove those rows or fill them in.
    """
    if data.n_rows < FEWEST_ROWS:
        return ()
    columns = [_column(data, place, numbers and name not in categories) for place, name in enumerate(data.names)]
    sentinels = [_sentinels(column) for column in columns]
    identifiers = _identifiers(columns)
    rest = [
        column.without(dropped)
        for column, dropped, identifier in zip(columns, sentinels, identifiers, strict=True)
        if not identifier
    ]
    kept = [column for column, identifier in zip(columns, identifiers, strict=True) if not identifier]
    flags = [
        _sentinel_flag(columns, sentinels, numbers),
        _identifier_flag(columns, identifiers),
        _code_flag(rest),
        *_outlier_flags(rest, kept),
        None if data.repeated else _row_flag(kept, data.n_rows),
        *_column_flags(data, kept, numbers),
        _binary_flag(rest),
    ]
    return tuple(flag for flag in flags if flag is not None)


def grouped(kind: str, seen: Sequence[tuple[str, str]], advice: str) -> Flag | None:
    """Return one flag for all columns with the same finding; None if there are none.

    Parameters
    ----------
    kind : str
        See `Flag`.
    seen : sequence of (str, str)
        Columns, and what was seen in each; the first few are described, the others only counted.
    advice : str
        What to do, in whole sentences.

    Examples
    --------
    >>> grouped("outliers", [("a", "3 values"), ("b", "1 value")], "Check them.").message
    'a: 3 values; b: 1 value. Check them.'
    """
    if not seen:
        return None
    descriptions = [f"{name}: {what}" for name, what in seen[:_DESCRIBED]]
    more = len(seen) - len(descriptions)
    descriptions += [f"and {more} more column{'s' if more > 1 else ''}"] if more else []
    return Flag(kind, tuple(name for name, _ in seen), f"{'; '.join(descriptions)}. {advice}")


def _column(data: Dataset, place: int, numbers: bool) -> _Column:
    values = data.values[:, place]
    distinct, counts = np.unique(values, return_counts=True)
    is_text = data.kinds[place] in CATEGORICAL
    return _Column(data.names[place], values, distinct, counts, numbers and not is_text, is_text)


# Values that stand for missing ones


def _sentinels(column: _Column) -> Bools:
    """Tell which distinct values probably stand for missing ones: known to do so, repeated, and unlike the rest."""
    coded = np.zeros(len(column.distinct), dtype=bool)
    if column.is_text or len(column.distinct) < 4:
        return coded
    known = np.isin(column.distinct, _SENTINELS) & (column.counts > 1)
    if not known.any() or known.all():
        return coded
    below, above = int(np.argmin(known)), int(np.argmin(known[::-1]))
    for count in range(below, 0, -1):
        if _is_far(column, slice(count, len(coded) - above), column.distinct[count - 1]):
            coded[:count] = True
            break
    for count in range(above, 0, -1):
        if _is_far(column, slice(coded.sum(), len(coded) - count), column.distinct[-count]):
            coded[len(coded) - count :] = True
            break
    most = int(column.counts[~known].max())
    often = _FEWEST_REPEATS if most == 1 else max(_FEWEST_REPEATS, _REPEATS_TO_OTHERS * most)
    return coded | (known & (column.counts >= often))


def _is_far(column: _Column, others: slice, value: float) -> bool:
    """Tell whether a value is far from the others, for what it is."""
    distinct, counts = column.distinct[others], column.counts[others]
    if len(distinct) < 2:
        return False
    mean = np.average(distinct, weights=counts)
    spread = np.sqrt(np.average((distinct - mean) ** 2, weights=counts))
    gap = max(distinct[0] - value, value - distinct[-1])
    if abs(value) > 9:
        return bool(gap > _SENTINEL_GAP * spread)
    if value < 0 <= distinct[0]:
        return bool(gap > max(_SENTINEL_GAP * spread, 1.0))
    return bool(gap > (_NINE_GAP if value == 9 else _ONE_DIGIT_GAP) * spread)


def _sentinel_flag(columns: list[_Column], sentinels: list[Bools], numbers: bool) -> Flag | None:
    seen = []
    for column, chosen in zip(columns, sentinels, strict=True):
        if chosen.any():
            values = _listed([f"{value:g}" for value in column.distinct[chosen]])
            rows, first = int(column.counts[chosen].sum()), int(np.argmax(column.holds(chosen))) + 1
            others = _range(column.distinct[~chosen])
            seen.append(
                (column.name, f"{values} in {rows} rows (the first is row {first}); its other values are {others}")
            )
    advice = "If this means a missing value, remove those rows or fill them in."
    if not numbers:
        advice = "If this means a missing value, note that it counts as a category here."
    return grouped("sentinel", seen, advice)


# Identifiers


def _identifiers(columns: list[_Column]) -> list[bool]:
    """Tell which columns number or name the rows."""
    is_id = [_rises(column) or _is_named_so(column) or _is_unique_text(column) for column in columns]
    # Whole numbers without a gap, but in any order; several such columns are ranks.
    dense = [column.unique and column.whole and np.ptp(column.distinct) == len(column.values) - 1 for column in columns]
    if sum(dense) <= 2:
        is_id = [own or gapless for own, gapless in zip(is_id, dense, strict=True)]
    return is_id


def _rises(column: _Column) -> bool:
    """Tell whether whole numbers rise or fall from row to row as a count does: mostly by the same, or steadily."""
    if not (column.unique and column.whole):
        return False
    steps = np.diff(column.values)
    if not ((steps > 0).all() or (steps < 0).all()):
        return False
    _, often = np.unique(steps, return_counts=True)
    steady = abs(np.corrcoef(column.values, np.arange(len(column.values)))[0, 1]) ** 2 > _STRAIGHT
    return bool(often.max() >= _EVEN_STEPS * len(steps) or (steady and len(steps) >= 2 * FEWEST_ROWS))


def _is_named_so(column: _Column) -> bool:
    return column.unique and (column.whole or column.is_text) and named_so(column.name)


def _is_unique_text(column: _Column) -> bool:
    return column.is_text and len(column.distinct) >= _UNIQUE_TEXT * len(column.values)


def _identifier_flag(columns: list[_Column], identifiers: list[bool]) -> Flag | None:
    seen = []
    for column, identifier in zip(columns, identifiers, strict=True):
        if identifier and column.is_text:
            seen.append((column.name, f"{len(column.distinct)} different texts in {len(column.values)} rows"))
        elif identifier:
            order = ", in row order" if (np.diff(column.values) > 0).all() else ""
            seen.append((column.name, f"a different whole number in every row ({_range(column.distinct)}{order})"))
    return grouped("identifier", seen, "A row number or an identifier is not a variable: leave the column out.")


# Codes of categories, read as numbers


def _code_flag(columns: list[_Column]) -> Flag | None:
    seen = [
        (column.name, f"only the whole numbers {_listed([f'{value:g}' for value in column.distinct])}, read as amounts")
        for column in columns
        if column.is_number and _are_codes(column)
    ]
    return grouped(
        "codes",
        seen,
        "If these are codes of categories, their order and distances mean nothing: give each category its own 0/1 "
        "column, or make all columns categories and use score='bdeu'.",
    )


def _are_codes(column: _Column) -> bool:
    """Tell whether values may be codes: few whole numbers from 0 or 1 on, with a gap at most, unlike any amounts."""
    levels, rows = len(column.distinct), len(column.values)
    if not 3 <= levels <= _MOST_CODES or rows < 5 * levels or not column.whole:
        return False
    first, last = column.distinct[[0, -1]]
    if first not in (0, 1) or last - first > levels:
        return False
    # The last value stands for all that lie beyond those that occur.
    k = np.arange(last + 2)
    observed = np.zeros(len(k))
    observed[column.distinct.astype(np.int64)] = column.counts
    mean, variance = np.average(column.distinct, weights=column.counts), column.values.var()
    counts = np.exp(k * np.log(mean) - mean - gammaln(k + 1.0))
    counts[-1] += 1 - counts.sum()
    if _fits(observed, counts, parameters=1):
        return False
    # Rounding adds 1/12 to a variance. Three levels are too few to tell a bell from anything else.
    below = ndtr((k[:-1] + 0.5 - mean) / np.sqrt(max(variance - 1 / 12, 1 / 12)))
    return levels == 3 or not _fits(observed, np.diff(below, prepend=0.0, append=1.0), parameters=2)


def _fits(observed: Floats, probabilities: Floats, parameters: int) -> bool:
    """Tell whether a chi-squared test lets counts of 0, 1, … have these probabilities; also if they are too few."""
    expected = observed.sum() * probabilities
    # Cells at either end are joined until none expects too few rows for the test.
    for end, next_one in ((0, 1), (-1, -2)):
        while len(expected) > 2 and expected[end] < _FEWEST_EXPECTED:
            expected[next_one] += expected[end]
            observed = observed.copy()
            observed[next_one] += observed[end]
            expected, observed = np.delete(expected, end), np.delete(observed, end)
    degrees = len(expected) - 1 - parameters
    if degrees < 1:
        return True
    return bool(chdtrc(degrees, ((observed - expected) ** 2 / expected).sum()) >= _MISFIT)


def _binary_flag(columns: list[_Column]) -> Flag | None:
    names = [column.name for column in columns if column.is_number and len(column.distinct) == 2]
    if not names:
        return None
    shown = _listed([*names[:_DESCRIBED], *([f"{len(names) - _DESCRIBED} more"] if len(names) > _DESCRIBED else [])])
    return Flag(
        "binary",
        tuple(names),
        f"{shown}: only two values. As a cause this is fine; as an effect, normal noise is a rough approximation.",
    )


# Outliers


def _outlier_flags(columns: list[_Column], whole: list[_Column]) -> list[Flag | None]:
    """Return outliers; rows are numbered in the whole columns, sentinels included."""
    seen = []
    for column, entire in zip(columns, whole, strict=True):
        if not column.is_number or len(column.distinct) <= 2 or _are_codes(column):
            continue
        middle = np.median(column.values)
        # Rounding hides deviations below the step of the values.
        step = np.diff(column.distinct).min()
        deviation = _MAD_TO_SD * max(np.median(np.abs(column.values - middle)), step)
        limit = _OUTLYING * (1 + _OUTLYING_ROWS / len(column.values))
        far = np.abs(column.distinct - middle) > limit * deviation
        count = int(column.counts[far].sum())
        if 0 < count <= _MOST_OUTLIERS * len(column.values):
            value = max(column.distinct[far], key=lambda own: abs(own - middle))
            row = int(np.argmax(entire.values == value)) + 1
            away = abs(value - middle) / deviation
            what = f"{value:.4g} in row {row}, {away:.0f} robust standard deviations from the median"
            if count > 1:
                beyond = f"{count} values at least {limit:.0f} robust standard deviations from the median"
                what = f"{beyond}, {value:.4g} in row {row} the farthest"
            seen.append((column.name, what))
    advice = "Check these values; if the column has a long tail, transform it, for instance by logarithms."
    return [grouped("outliers", seen, advice)]


# Copies


def _row_flag(columns: list[_Column], n_rows: int) -> Flag | None:
    """Return whether rows are copies of others, more than few distinct values explain.

    Where rows are equal by chance, many more pairs differ in a single column; and columns that repeat few values make
    rows equal that often even if they are independent. Copies do neither.
    """
    if not columns:
        return None
    rng = np.random.default_rng(0)
    parts = [_hashed(column.values, rng) for column in columns]
    total = np.sum(parts, axis=0, dtype=np.uint64)
    equal = _pairs(np.unique(total, return_counts=True)[1])
    if equal == 0:
        return None
    one_apart = sum(_pairs(np.unique(total - own, return_counts=True)[1]) - equal for own in parts)
    chance = _pairs(np.array([n_rows])) * np.prod([_pairs(c.counts) / _pairs(np.array([n_rows])) for c in columns])
    if equal <= _COPIES_TO_NEIGHBOURS * one_apart or equal <= _COPIES_TO_CHANCE * chance:
        return None
    _, first, inverse = np.unique(total, return_index=True, return_inverse=True)
    copies = np.flatnonzero(np.arange(n_rows) != first[inverse])
    row, original = int(copies[0]) + 1, int(first[inverse[copies[0]]]) + 1
    which = f"row {row} repeats row {original}"
    what = f"1 row repeats another in every column ({which})"
    if len(copies) > 1:
        what = f"{len(copies)} rows repeat others in every column (for instance, {which})"
    return Flag("same rows", (), f"{what}. Rows must be independent: if these are copies, remove them.")


def _hashed(values: Floats, rng: np.random.Generator) -> Words:
    """Return a number for every row that looks random, and is equal for equal values; rows add up those of columns."""
    key, first, second = rng.integers(2**62, 2**63, 3, dtype=np.uint64) | np.uint64(1)
    bits: Words = (values + 0.0).view(np.uint64) ^ key  # -0 is 0
    for factor in (first, second):
        bits = (bits ^ (bits >> np.uint64(31))) * factor
    mixed: Words = bits ^ (bits >> np.uint64(29))
    return mixed


def _pairs(counts: Ints) -> float:
    counts = counts.astype(float)
    return float((counts * (counts - 1)).sum() / 2)


def _column_flags(data: Dataset, columns: list[_Column], numbers: bool) -> list[Flag]:
    """Return groups of columns that are nearly the same."""
    groups = _correlated(data, columns) if numbers else _relabelled(columns)
    flags = []
    for names, how in groups:
        text = f"{_listed(list(names))}: {how}. The data can't distinguish their roles: keep one of them."
        flags.append(Flag("same columns", tuple(names), text))
    return flags


def _correlated(data: Dataset, columns: list[_Column]) -> list[tuple[list[str], str]]:
    chosen = [data.names.index(column.name) for column in columns if column.is_number]
    if len(chosen) < 2:
        return []
    r = np.abs(np.corrcoef(data.values[:, chosen], rowvar=False))
    groups, seen = [], set()
    for i in range(len(chosen)):
        same = [j for j in range(i + 1, len(chosen)) if r[i, j] > _SAME_CORRELATION and j not in seen]
        if same and i not in seen:
            seen |= set(same)
            least = r[i, same].min()
            how = "a correlation of 1" if least > 1 - 1e-12 else f"correlations above {_SAME_CORRELATION:g}"
            groups.append(([data.names[chosen[j]] for j in (i, *same)], how))
    return groups


def _relabelled(columns: list[_Column]) -> list[tuple[list[str], str]]:
    """Return the columns that divide the rows alike, whatever their levels are called."""
    groups: dict[bytes, list[str]] = {}
    for column in columns:
        # Levels are numbered as they come.
        _, first, places = np.unique(column.values, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        groups.setdefault(rank[places].tobytes(), []).append(column.name)
    return [(names, "the same categories under different names") for names in groups.values() if len(names) > 1]


def _range(values: Floats) -> str:
    return f"{values[0]:.3g} to {values[-1]:.3g}" if not _is_whole(values) else f"{values[0]:.0f} to {values[-1]:.0f}"


def _is_whole(values: Floats) -> bool:
    return bool((values == np.floor(values)).all())


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
