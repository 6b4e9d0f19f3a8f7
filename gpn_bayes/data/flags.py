"""Checks of the columns and rows of a table before it is analysed: what is probably a mistake."""

from collections.abc import Callable, Collection, Iterable

import numpy as np
from scipy.special import chdtrc, gammaln, ndtr

from gpn_bayes._util.types import Bools, Floats, Ints, Words
from gpn_bayes.data.dataset import Dataset
from gpn_bayes.data.event_times import event_flag, event_times
from gpn_bayes.data.exact_relations import cut_flag, same_columns, sum_flag
from gpn_bayes.data.flagging import DESCRIBED, Flag, TableColumn, checked, grouped, listed, value_range
from gpn_bayes.data.identifiers import FEWEST_ROWS, named_so
from gpn_bayes.data.kinds import CATEGORY
from gpn_bayes.data.row_dependence import dependence_flags

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

# Where other values hardly repeat, one is too frequent if it has this many rows and this share of them. Others hardly
# repeat if they have this many distinct values a row.
_SPIKE, _SPIKE_SHARE, _HARDLY_REPEAT = 10, 0.1, 0.5
_COPIES_TO_NEIGHBOURS, _COPIES_TO_CHANCE = 3.0, 100.0


def data_flags(data: Dataset, numbers: bool, categories: Collection[str] = ()) -> tuple[Flag, ...]:
    """Return what should be checked in a table before it is analysed.

    It looks for values that stand for missing ones, identifiers of rows and of groups, rows that are like the next,
    times to an event, codes of categories that are read as numbers, values that are too frequent, outliers, copies of
    rows, columns that are nearly the same, and columns that follow from others. Tables of fewer than ten rows aren't
    looked at, nor are columns in which fewer are observed.

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
    >>> table = Dataset.read(np.column_stack([np.arange(501.0, 601.0), glucose]))
    >>> [(flag.kind, flag.columns) for flag in data_flags(table, numbers=True)]
    [('sentinel', ('v2',)), ('identifier', ('v1',))]
    >>> print(data_flags(table, numbers=True)[0].message)
    v2: -999 in 5 rows (the first is row 10); its other values are 2.29 to 7.87. If this means a missing
    value, read it as one: gpn.Table(data, na=[-999], missing='impute') has it drawn along with the networks, and
    missing='drop' leaves those rows out.
    """
    if data.n_rows < FEWEST_ROWS:
        return ()
    columns = [TableColumn.of(data, v, numbers and name not in categories) for v, name in enumerate(data.names)]
    columns = [column for column in columns if len(column.values) >= FEWEST_ROWS]
    sentinels = [_sentinels(column) for column in columns]
    identifiers = _identifiers(columns)
    rest = [
        column.without(dropped)
        for column, dropped, identifier in zip(columns, sentinels, identifiers, strict=True)
        if not identifier
    ]
    kept = [column for column, identifier in zip(columns, identifiers, strict=True) if not identifier]
    events = event_times(rest)
    timed = {name for pair in events for name in pair[:2]}
    checks: dict[str, Callable[[], Iterable[Flag | None]]] = {
        "values that stand for missing ones": lambda: [_sentinel_flag(data, columns, sentinels, numbers)],
        "identifiers": lambda: [_identifier_flag(columns, identifiers)],
        "dependent rows": lambda: [] if data.repeated else dependence_flags(rest, data.n_rows),
        "times to an event": lambda: [event_flag(events)],
        "codes of categories": lambda: [_code_flag([c for c in rest if c.name not in timed])],
        "values that are too frequent": lambda: [_spike_flag(rest)],
        "outliers": lambda: [_outlier_flag(rest)],
        "copies of rows": lambda: [None if data.repeated else _row_flag(kept, data.n_rows)],
        "columns that say the same": lambda: same_columns(data, kept, numbers),
        "sums of columns": lambda: [sum_flag(data, kept, same_columns(data, kept, numbers)) if numbers else None],
        "columns made of others": lambda: [cut_flag(rest, {pair[:2] for pair in events})],
        "columns of two values": lambda: [_binary_flag([c for c in rest if c.name not in timed])],
    }
    return checked(checks)


# Values that stand for missing ones


def _sentinels(column: TableColumn) -> Bools:
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


def _is_far(column: TableColumn, others: slice, value: float) -> bool:
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


def _sentinel_flag(data: Dataset, columns: list[TableColumn], sentinels: list[Bools], numbers: bool) -> Flag | None:
    seen = []
    for column, chosen in zip(columns, sentinels, strict=True):
        if chosen.any():
            values = listed([f"{value:.15g}" for value in column.distinct[chosen]])
            rows, first = int(column.counts[chosen].sum()), int(column.rows[np.argmax(column.holds(chosen))]) + 1
            others = value_range(column.distinct[~chosen])
            seen.append(
                (column.name, f"{values} in {rows} rows (the first is row {first}); its other values are {others}")
            )
    if not seen:
        return None
    counted = "" if numbers else "; as it stands, it counts as a category"
    advice = f"If this means a missing value, {_read_as_missing(data, columns, sentinels)}{counted}."
    return grouped("sentinel", seen, advice)


def _read_as_missing(data: Dataset, columns: list[TableColumn], sentinels: list[Bools]) -> str:
    """Return how to have values read as missing ones, by a setting of the reader that is about all columns alike."""
    values = sorted({float(value) for c, own in zip(columns, sentinels, strict=True) for value in c.distinct[own]})
    also = [
        repr(column.name)
        for column, own in zip(columns, sentinels, strict=True)
        if np.isin(column.distinct[~own], values).any()
    ]
    # Those of experiments and of weighted rows can't be drawn along with the networks.
    drawn = data.interventions is None and data.weights is None and not data.repeated
    if also:
        how = "missing='impute', which draws them along with the networks, or missing='drop'"
        return (
            f"empty those cells, and not those of {listed(also[:DESCRIBED])} with the same value, and use "
            f"{how if drawn else "missing='drop'"}"
        )
    na = f"na={[int(value) for value in values]!r}"
    if not drawn:
        return f"read it as one: gpn.Table(data, {na}, missing='drop') leaves those rows out"
    return (
        f"read it as one: gpn.Table(data, {na}, missing='impute') has it drawn along with the networks, and "
        "missing='drop' leaves those rows out"
    )


# Identifiers


def _identifiers(columns: list[TableColumn]) -> list[bool]:
    """Tell which columns number or name the rows."""
    is_id = [_rises(column) or _is_named_so(column) or _is_unique_text(column) for column in columns]
    # Whole numbers without a gap, but in any order; several such columns are ranks.
    dense = [column.unique and column.whole and np.ptp(column.distinct) == len(column.values) - 1 for column in columns]
    if sum(dense) <= 2:
        is_id = [own or gapless for own, gapless in zip(is_id, dense, strict=True)]
    return is_id


def _rises(column: TableColumn) -> bool:
    """Tell whether whole numbers rise or fall from row to row as a count does: mostly by the same, or steadily."""
    if not (column.unique and column.whole):
        return False
    steps = np.diff(column.values)
    if not ((steps > 0).all() or (steps < 0).all()):
        return False
    _, often = np.unique(steps, return_counts=True)
    steady = abs(np.corrcoef(column.values, np.arange(len(column.values)))[0, 1]) ** 2 > _STRAIGHT
    return bool(often.max() >= _EVEN_STEPS * len(steps) or (steady and len(steps) >= 2 * FEWEST_ROWS))


def _is_named_so(column: TableColumn) -> bool:
    return column.unique and (column.whole or column.is_text) and named_so(column.name)


def _is_unique_text(column: TableColumn) -> bool:
    return column.is_text and len(column.distinct) >= _UNIQUE_TEXT * len(column.values)


def _identifier_flag(columns: list[TableColumn], identifiers: list[bool]) -> Flag | None:
    seen = []
    for column, identifier in zip(columns, identifiers, strict=True):
        if identifier and column.is_text:
            seen.append((column.name, f"{len(column.distinct)} different texts in {len(column.values)} rows"))
        elif identifier:
            order = ", in row order" if (np.diff(column.values) > 0).all() else ""
            seen.append((column.name, f"a different whole number in every row ({value_range(column.distinct)}{order})"))
    return grouped("identifier", seen, "A row number or an identifier is not a variable: leave the column out.")


# Codes of categories, read as numbers


def _code_flag(columns: list[TableColumn]) -> Flag | None:
    seen = [
        (column.name, f"only the whole numbers {listed([f'{value:g}' for value in column.distinct])}, read as amounts")
        for column in columns
        if column.is_number and _are_codes(column)
    ]
    return grouped(
        "codes",
        seen,
        "If these are codes of categories, their order and distances mean nothing: "
        f"{_kinds_argument([name for name, _ in seen])} says so, for score='cg', which takes categories beside "
        "numbers.",
    )


def _kinds_argument(names: list[str]) -> str:
    """Return how to say that columns are categories, in a way that can be typed."""
    return f"gpn.Table(data, kinds={dict.fromkeys(names, CATEGORY)!r})"


def _are_codes(column: TableColumn) -> bool:
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


def _binary_flag(columns: list[TableColumn]) -> Flag | None:
    names = [column.name for column in columns if column.is_number and len(column.distinct) == 2]
    if not names:
        return None
    shown = listed([*names[:DESCRIBED], *([f"{len(names) - DESCRIBED} more"] if len(names) > DESCRIBED else [])])
    return Flag(
        "binary",
        tuple(names),
        f"{shown}: only two values. As a cause this is fine; as an effect, normal noise is a rough approximation.",
    )


# Outliers


def _outlier_flag(columns: list[TableColumn]) -> Flag | None:
    seen = []
    for column in columns:
        if not column.is_number or len(column.distinct) <= 2 or _are_codes(column) or _has_spike(column):
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
            row = int(column.rows[np.argmax(column.values == value)]) + 1
            away = abs(value - middle) / deviation
            what = f"{value:.4g} in row {row}, {away:.0f} robust standard deviations from the median"
            if count > 1:
                beyond = f"{count} values at least {limit:.0f} robust standard deviations from the median"
                what = f"{beyond}, {value:.4g} in row {row} the farthest"
            seen.append((column.name, what))
    advice = "Check these values; if the column has a long tail, transform it, for instance by logarithms."
    return grouped("outliers", seen, advice)


def _spike_flag(columns: list[TableColumn]) -> Flag | None:
    """Return values, mostly 0, that many rows share in columns that otherwise hardly repeat any."""
    seen = [
        (column.name, f"{column.distinct[column.counts.argmax()]:g} in {column.counts.max()} of its rows")
        for column in columns
        if column.is_number and _has_spike(column)
    ]
    return grouped(
        "spike",
        seen,
        "Other values hardly repeat. Curves zigzag beside such a value, with bands that are too narrow: replace "
        "the column by whether it has that value (0/1), or cut all columns into levels and use score='bdeu'.",
    )


def _has_spike(column: TableColumn) -> bool:
    count, rows = int(column.counts.max()), len(column.values)
    frequent = count >= max(_SPIKE, _SPIKE_SHARE * rows)
    return bool(frequent and len(column.distinct) - 1 >= max(_SPIKE, _HARDLY_REPEAT * (rows - count)))


# Copies


def _row_flag(columns: list[TableColumn], n_rows: int) -> Flag | None:
    """Return whether rows are copies of others, more than few distinct values explain.

    Where rows are equal by chance, many more pairs differ in a single column; and columns that repeat few values make
    rows equal that often even if they are independent. Copies do neither.
    """
    if not columns:
        return None
    rng = np.random.default_rng(0)
    # What is missing counts as a value of its own; rows of which most is are alike without being copies.
    table = np.array([column.in_all_rows(n_rows) for column in columns])
    rows = np.flatnonzero(2 * np.isnan(table).sum(axis=0) <= len(columns))
    parts = [_hashed(values[rows], rng) for values in table]
    total = np.sum(parts, axis=0, dtype=np.uint64)
    equal = _pairs(np.unique(total, return_counts=True)[1])
    if equal == 0:
        return None
    one_apart = sum(_pairs(np.unique(total - own, return_counts=True)[1]) - equal for own in parts)
    among = _pairs(np.array([len(rows)]))
    chance = among * np.prod([_pairs(np.unique(own, return_counts=True)[1]) / among for own in parts])
    if equal <= _COPIES_TO_NEIGHBOURS * one_apart or equal <= _COPIES_TO_CHANCE * chance:
        return None
    _, first, inverse = np.unique(total, return_index=True, return_inverse=True)
    copies = np.flatnonzero(np.arange(len(rows)) != first[inverse])
    row, original = int(rows[copies[0]]) + 1, int(rows[first[inverse[copies[0]]]]) + 1
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
