"""Columns that follow from others: nearly the same, sums, and categories cut from a number."""

import numpy as np
import pandas as pd
from scipy.special import gammaln

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data.dataset import Dataset
from gpn_bayes.data.flagging import DESCRIBED, Flag, TableColumn, listed
from gpn_bayes.data.identifiers import FEWEST_ROWS

# Two columns with this correlation differ in half a percent of their variance. Hardly any measurement is repeated that
# closely, so that its error may decide which of the two looks like the parent.
SAME_CORRELATION = 0.9975
# As many groups as this, or more, share one flag.
_MOST_FLAGS = 3
# Columns with missing values are compared in this many rows at least.
_FEWEST_SHARED = 30
# A column follows from others if they leave this share of its variance: half a percent of its standard deviation, as
# sums of rounded numbers do. Those with coefficients below four times as much have no part in it.
_LEFT, _PART = 0.005**2, 0.02
# Columns that are looked at for sums have values in this share of the rows.
_FILLED = 0.8
# Rows beyond the number of columns, without which any column follows from the others.
_MORE_ROWS = 20
# The most categories that are looked for in a number, and how many distinct values it has for each of them at least;
# and how rarely chance gives each a range of its own.
_MOST_CATEGORIES, _VALUES_PER_CATEGORY, _BY_CHANCE = 6, 3, 1e-6


def same_columns(data: Dataset, columns: list[TableColumn], numbers: bool) -> list[Flag]:
    """Return groups of columns that are nearly the same.

    Parameters
    ----------
    data : Dataset
        The table.
    columns : list of TableColumn
        Those to be compared.
    numbers : bool
        Whether the score reads columns as numbers.
    """
    groups = _correlated(data, columns) if numbers else _relabelled(columns, data.n_rows)
    advice = "The data can't distinguish their roles: keep one of them."
    if len(groups) >= _MOST_FLAGS:
        shown = [f"{listed(names)} ({how})" for names, how in groups[:DESCRIBED]]
        more = f"; and {len(groups) - len(shown)} more such groups" if len(groups) > len(shown) else ""
        advice = "The data can't distinguish the roles of such columns: keep one of each group."
        names = tuple(name for own, _ in groups for name in own)
        return [Flag("same columns", names, f"{'; '.join(shown)}{more}. {advice}")]
    return [Flag("same columns", tuple(names), f"{listed(names)}: {how}. {advice}") for names, how in groups]


def _correlated(data: Dataset, columns: list[TableColumn]) -> list[tuple[list[str], str]]:
    chosen = [data.names.index(column.name) for column in columns if column.is_number]
    if len(chosen) < 2:
        return []
    r = np.abs(_correlations(data.values[:, chosen]))
    groups, seen = [], set()
    for i in range(len(chosen)):
        same = [j for j in range(i + 1, len(chosen)) if r[i, j] > SAME_CORRELATION and j not in seen]
        if same and i not in seen:
            seen |= set(same)
            groups.append(([data.names[chosen[j]] for j in (i, *same)], _in_words(r[i, same])))
    return groups


def _in_words(r: Floats) -> str:
    if r.min() > 1 - 1e-12:
        return "a correlation of 1"
    # Rounded down: no correlation below 1 is called 1.
    least = np.floor(r.min() * 1e4) / 1e4
    return f"a correlation of {least:g}" if len(r) == 1 else f"correlations of {least:g} and more"


def _correlations(values: Floats) -> Floats:
    """Return the correlations of columns, each in the rows where both are observed; NaN where these are few."""
    if not np.isnan(values).any():
        return np.atleast_2d(np.corrcoef(values, rowvar=False))
    return pd.DataFrame(values).corr(min_periods=_FEWEST_SHARED).to_numpy()


def _relabelled(columns: list[TableColumn], n_rows: int) -> list[tuple[list[str], str]]:
    """Return the columns that divide the rows in which both are observed alike, whatever their levels are called."""
    groups: list[list[TableColumn]] = []
    for column in columns:
        for group in groups:
            if _divide_alike(group[0], column, n_rows):
                group.append(column)
                break
        else:
            groups.append([column])
    how = "the same categories under different names"
    return [([column.name for column in group], how) for group in groups if len(group) > 1]


def _divide_alike(one: TableColumn, other: TableColumn, n_rows: int) -> bool:
    if len(one.distinct) != len(other.distinct):
        return False
    if len(one.rows) == len(other.rows) == n_rows and sorted(one.counts) != sorted(other.counts):
        return False
    both = np.column_stack([one.in_all_rows(n_rows), other.in_all_rows(n_rows)])
    both = both[~np.isnan(both).any(axis=1)]
    pairs = np.unique(both, axis=0)
    levels = len(one.distinct)
    return len(both) >= FEWEST_ROWS and len(pairs) == levels == len(np.unique(both[:, 0])) == len(np.unique(both[:, 1]))


def sum_flag(data: Dataset, columns: list[TableColumn], known: list[Flag]) -> Flag | None:
    """Return the columns that are sums of others, but for rounding, such as totals, and shares that add up to 1.

    Parameters
    ----------
    data : Dataset
        The table; its complete rows are looked at.
    columns : list of TableColumn
        Those to be compared.
    known : list of Flag
        The columns that are nearly the same, of which one of each group is looked at.

    Examples
    --------
    >>> parts = np.random.default_rng(1).normal(size=(100, 3))
    >>> data = Dataset.read(pd.DataFrame(parts, columns=list("abc")).assign(all=parts.sum(axis=1)))
    >>> print(sum_flag(data, [TableColumn.of(data, v, True) for v in range(4)], []).message)
    all = a + b + c. Each of these columns follows from the others, and no data can tell which from which: leave one of
    each such sum out.
    """
    doubles = {name for flag in known for name in flag.columns[1:]} if len(known) < _MOST_FLAGS else set()
    # Those with many gaps would leave few complete rows.
    filled = [c for c in columns if len(c.values) >= _FILLED * data.n_rows]
    chosen = [data.names.index(c.name) for c in filled if c.is_number and c.name not in doubles]
    values = data.values[:, chosen]
    values = values[~np.isnan(values).any(axis=1)]
    if len(chosen) < 3 or len(values) < len(chosen) + _MORE_ROWS:
        return None
    relations = _sums(values)
    if not relations:
        return None
    names = [data.names[v] for v in chosen]
    shown = [_equation(values, names, node, others) for node, others in relations[:DESCRIBED]]
    if len(relations) > len(shown):
        shown.append(f"{len(relations) - len(shown)} more")
    involved = {v for node, others in relations for v in (node, *others)}
    return Flag(
        "sums",
        tuple(names[v] for v in sorted(involved)),
        f"{'; '.join(shown)}. Each of these columns follows from the others, and no data can tell which from which: "
        "leave one of each such sum out.",
    )


def _sums(values: Floats) -> list[tuple[int, list[int]]]:
    """Return each column that is a sum of columns to its left, with these; they are independent of each other."""
    spread = values.std(axis=0)
    basis = np.zeros((len(values), 0))
    triangle: list[Floats] = []
    kept: list[int] = []
    relations: list[tuple[int, list[int]]] = []
    for v in np.flatnonzero(spread > 0).tolist():
        own = (values[:, v] - values[:, v].mean()) / (spread[v] * np.sqrt(len(values)))
        along = basis.T @ own
        rest = own - basis @ along
        more = basis.T @ rest  # once more, for accuracy
        along, rest = along + more, rest - basis @ more
        if float(rest @ rest) * (len(values) - 1) / (len(values) - 1 - len(kept)) > _LEFT:
            size = float(np.sqrt(rest @ rest))
            triangle.append(np.append(along, size))
            basis, kept = np.column_stack([basis, rest / size]), [*kept, v]
            continue
        upper = np.zeros((len(kept), len(kept)))
        for k, column in enumerate(triangle):
            upper[: k + 1, k] = column
        parts = np.linalg.solve(upper, along)
        others = [kept[k] for k in np.flatnonzero(np.abs(parts) > _PART)]
        if len(others) > 1:
            relations.append((v, others))
    return relations


def _equation(values: Floats, names: list[str], node: int, others: list[int]) -> str:
    """Return how a column follows from others: the sum, where its coefficients are 1 and -1."""
    design = np.column_stack([values[:, others] - values[:, others].mean(axis=0)])
    slopes = np.linalg.lstsq(design, values[:, node] - values[:, node].mean(), rcond=None)[0]
    if not (np.abs(np.abs(slopes) - 1) < _PART).all():
        return f"{names[node]} is a weighted sum of {listed([names[v] for v in others])}"
    signs = np.sign(slopes)
    constant = float(values[:, node].mean() - signs @ values[:, others].mean(axis=0))
    terms = [("+ " if sign > 0 else "- ") + names[v] for sign, v in zip(signs, others, strict=True)]
    if abs(constant) > _PART * values[:, node].std():
        terms.insert(0, f"{'+' if constant > 0 else '-'} {abs(constant):.4g}")
    terms.sort(key=lambda term: term[0] == "-")
    return f"{names[node]} = {' '.join(terms).removeprefix('+ ').replace('- ', '-' if terms[0][0] == '-' else '- ', 1)}"


def cut_flag(columns: list[TableColumn], but: set[tuple[str, str]]) -> Flag | None:
    """Return the columns each of whose few values stands for a range of another column, such as low = (bwt < 2500).

    Parameters
    ----------
    columns : list of TableColumn
        Those to be compared.
    but : set of (str, str)
        Pairs, the number first, of which more is known.

    Examples
    --------
    >>> data = Dataset.read(pd.DataFrame({"bwt": np.arange(100) ** 2, "low": (np.arange(100) < 30) + 0}))
    >>> print(cut_flag([TableColumn.of(data, v, True) for v in range(2)], set()).message)
    low: 1 where bwt is 0 to 841, and 0 where it is 900 to 9801. This column was made of the other one: keep one of
    the two.
    """
    cut = [c for c in columns if 2 <= len(c.distinct) <= _MOST_CATEGORIES]
    seen: list[tuple[str, str, str]] = []
    for number in columns:
        if number.is_text:
            continue
        for own in cut:
            many = len(number.distinct) >= max(_VALUES_PER_CATEGORY * len(own.distinct), 8)
            if many and own.name not in {name for name, _, _ in seen} and (number.name, own.name) not in but:
                ranges = _ranges(number, own, len(columns))
                if ranges is not None:
                    seen.append((own.name, number.name, _cut_in_words(number, own, ranges)))
    if not seen:
        return None
    what = [text for _, _, text in seen[:DESCRIBED]]
    more = f"; and {len(seen) - len(what)} more" if len(seen) > len(what) else ""
    advice = "This column was made of the other one" if len(seen) == 1 else "These columns were made of the others"
    names = tuple(dict.fromkeys(name for own, number, _ in seen for name in (own, number)))
    return Flag("cut columns", names, f"{'; '.join(what)}{more}. {advice}: keep one of the two.")


def _ranges(number: TableColumn, own: TableColumn, columns: int) -> list[tuple[float, float, float]] | None:
    """Return the value of each range of a number, with its ends; None if values don't have ranges of their own."""
    _, first, second = np.intersect1d(number.rows, own.rows, return_indices=True)
    values, codes = number.values[first], own.values[second]
    order = np.argsort(values, kind="stable")
    values, codes = values[order], codes[order]
    levels, counts = np.unique(codes, return_counts=True)
    borders = np.flatnonzero(np.diff(codes) != 0)
    if len(levels) < 2 or len(borders) != len(levels) - 1 or (values[borders] == values[borders + 1]).any():
        return None
    if gammaln(len(levels) + 1) + _log_ways(counts) > np.log(_BY_CHANCE) - 2 * np.log(columns):
        return None
    starts, ends = [0, *(borders + 1).tolist()], [*borders.tolist(), len(values) - 1]
    return [(float(codes[a]), float(values[a]), float(values[b])) for a, b in zip(starts, ends, strict=True)]


def _log_ways(counts: Ints) -> float:
    """Return the log probability of one arrangement of levels among rows."""
    return float(gammaln(counts + 1).sum() - gammaln(counts.sum() + 1))


def _cut_in_words(number: TableColumn, own: TableColumn, ranges: list[tuple[float, float, float]]) -> str:
    if own.is_text or len(ranges) > 2:
        return f"{own.name}: each value stands for a range of {number.name}"
    (low, a, b), (high, c, d) = ranges
    return f"{own.name}: {low:g} where {number.name} is {a:g} to {b:g}, and {high:g} where it is {c:g} to {d:g}"
