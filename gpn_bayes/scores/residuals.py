"""Whether the noise of a fitted network is as its score assumes: independent, normal, with constant variance."""

from collections.abc import Collection, Sequence

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.data import CATEGORICAL, Dataset
from gpn_bayes.data.flags import Flag, grouped
from gpn_bayes.scores.assumptions import LINEAR
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.leftover import Grouping, Leftover, leftover_of_one, leftover_of_two
from gpn_bayes.scores.mixed import MIXED

# Rows beyond the number of parents that the tests need.
_FEWEST_ROWS = 30
# Tails are called heavy where the excess kurtosis is both large and certain: at least this, and this many standard
# errors above 0, after the transformation of Anscombe & Glynn (1983). Of 730,000 normal samples of 50 to 1,000 rows,
# the largest z was 4.56, and those of no more than 100 rows stayed below 4.5.
_LEAST_KURTOSIS, _KURTOSIS_Z = 1.0, 4.5
# Noise is called uneven where the test of Breusch & Pagan (1979), as Koenker (1981) made it robust to heavy tails,
# exceeds this (a p-value of 6e-7), and standard deviations differ by this factor.
_UNEVEN, _UNEVEN_RATIO = 25.0, 1.25
# A column with one of these flags has no residuals worth a look, nor have those that depend on one of the latter.
_SPOILT = frozenset({"sentinel", "identifier", "codes", "binary", "outliers"})
_SPOILING = frozenset({"sentinel", "identifier"})

_LEFTOVER = "leftover dependence"
# What is found, in this order: the kind of its flag, and what to do.
_ADVICE = {
    "curved": (_LEFTOVER, "Lines can't follow curves, and edges may be missing or spurious: try score='gp'."),
    "curved, mixed": (
        _LEFTOVER,
        "Lines can't follow curves, and edges may be missing or spurious: transform columns, or add one of squares.",
    ),
    "joint, mixed": (_LEFTOVER, "Parents seem to act together, which lines can't follow: add a column of products."),
    "missing": (_LEFTOVER, "Edges may be missing: allow more parents, or more candidates."),
    "joint": (
        _LEFTOVER,
        "Parents seem to act together, which sums of functions can't follow: try GP(kernel='interaction').",
    ),
    "heavy tails": (
        "heavy tails",
        "Normal noise has 0; heavier tails make edges look more certain than they are: look for outliers and "
        "curved relations, transform the column, or try GP(noise='student').",
    ),
    "uneven noise": (
        "uneven noise",
        "Noise of unequal variance can distort edges and their directions: transform the column, for instance by "
        "logarithms, or look for curved relations.",
    ),
}


def residual_flags(
    scorer: Scorer, data: Dataset, parents: Sequence[tuple[int, ...]], known: Collection[Flag] = ()
) -> tuple[Flag, ...]:
    """Return whether what parents leave unexplained looks unlike independent normal noise of constant variance.

    Where it still depends on another variable only that is reported: the rest may follow from it.

    Parameters
    ----------
    scorer : Scorer
        The score, bound to the data; where it has no residuals nothing is looked at.
    data : Dataset
        The table.
    parents : sequence of tuple of int
        The parents of every variable.
    known : collection of Flag
        What is known of the table: columns with values that are no measurements aren't looked at again.

    Examples
    --------
    >>> from gpn_bayes.scores import BGe
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=300)
    >>> table = Dataset.read(np.column_stack([x, x + rng.standard_t(2, size=300)]))
    >>> for flag in residual_flags(BGe().bind(table), table, [(), (0,)]):
    ...     print(flag.kind, flag.columns)
    heavy tails ('v2',)
    """
    spoilt = {name for flag in known if flag.kind in _SPOILT for name in flag.columns}
    spoiling = {name for flag in known if flag.kind in _SPOILING for name in flag.columns}
    seen: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _ADVICE}
    mixed = MIXED[0] in scorer.assumptions
    linear = mixed or LINEAR[0] in scorer.assumptions
    grouping = Grouping.of(data.values)
    effects = graphs.ancestors(_adjacency(parents))
    for node, own in enumerate(parents):
        name = data.names[node]
        if name in spoilt or spoiling & {data.names[p] for p in own} or data.n_rows - len(own) < _FEWEST_ROWS:
            continue
        of_rows = scorer.residuals(data, node, own)
        if of_rows is None:
            continue
        known = ~np.isnan(of_rows)
        residuals = of_rows[known]
        if len(residuals) - len(own) < _FEWEST_ROWS or np.ptp(residuals) == 0:
            continue
        others = [
            v
            for v in range(len(parents))
            if v != node
            and not effects[node, v]
            and not spoiling & {data.names[v]}
            and data.kinds[v] not in CATEGORICAL
        ]
        rows = grouping.of_rows(known)
        ratio = _unevenness(residuals, data.values[known, node], own)
        if one := leftover_of_one(residuals, rows, np.array(others, dtype=np.int64)):
            kind = "curved" if linear and not one.straight else "missing"
            seen[f"{kind}, mixed" if mixed and kind == "curved" else kind].append((name, _depends(one, data)))
        elif two := leftover_of_two(residuals, rows, own):
            seen["joint, mixed" if mixed else "joint"].append((name, _depends(two, data)))
        elif ratio is not None:
            where = "high" if ratio > 1 else "low"
            seen["uneven noise"].append(
                (name, f"residuals {max(ratio, 1 / ratio):.1f} times as wide where the fitted value is {where}")
            )
        elif (kurtosis := _heavy_tails(residuals)) is not None:
            error = kurtosis_error(len(residuals))
            seen["heavy tails"].append(
                (name, f"excess kurtosis of the residuals {kurtosis:.1f}, standard error {error:.1f}")
            )
    flags = [grouped(kind, seen[found], advice) for found, (kind, advice) in _ADVICE.items()]
    return tuple(flag for flag in flags if flag is not None)


def _adjacency(parents: Sequence[tuple[int, ...]]) -> Adjacency:
    adjacency = np.zeros((len(parents), len(parents)), dtype=np.int8)
    for node, own in enumerate(parents):
        adjacency[list(own), node] = 1
    return adjacency


def _depends(found: Leftover, data: Dataset) -> str:
    names = " and ".join(data.names[v] for v in found.variables)
    verb = "explains" if len(found.variables) == 1 else "together explain"
    return f"{names} {verb} {found.share:.0%} of the variance that its parents leave"


def kurtosis_error(rows: int) -> float:
    """Return the standard error of the excess kurtosis of a normal sample.

    Examples
    --------
    >>> round(kurtosis_error(100), 2), round((24 / 10_000) ** 0.5 / kurtosis_error(10_000), 2)
    (0.48, 1.0)
    """
    n = float(rows)
    skewness_error = np.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
    return float(2 * skewness_error * np.sqrt((n * n - 1) / ((n - 3) * (n + 5))))


def _heavy_tails(residuals: Floats) -> float | None:
    """Return the excess kurtosis of residuals, if it is both large and certain."""
    squares = (residuals - residuals.mean()) ** 2
    excess = float((squares**2).mean() / squares.mean() ** 2 - 3)
    if excess < _LEAST_KURTOSIS:
        return None
    # Takes a second to load, and few tables need it.
    from scipy.stats import kurtosistest

    return excess if kurtosistest(residuals).statistic >= _KURTOSIS_Z else None


def _unevenness(residuals: Floats, values: Floats, parents: tuple[int, ...]) -> float | None:
    """Return how much wider residuals are in the upper third of fitted values than in the lower, if it matters."""
    fitted = values - residuals
    if not parents or np.ptp(fitted) == 0:
        return None
    strength = len(fitted) * np.corrcoef(residuals**2, fitted)[0, 1] ** 2
    lower, upper = np.quantile(fitted, [1 / 3, 2 / 3])
    ratio = float(residuals[fitted >= upper].std() / residuals[fitted <= lower].std())
    return ratio if strength > _UNEVEN and max(ratio, 1 / ratio) > _UNEVEN_RATIO else None
