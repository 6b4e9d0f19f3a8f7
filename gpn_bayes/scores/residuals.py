"""Whether the noise of a fitted network is as its score assumes: independent, normal, with constant variance."""

from collections.abc import Collection, Sequence

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.data import CATEGORICAL, Dataset
from gpn_bayes.data.flagging import Flag, grouped
from gpn_bayes.scores.assumptions import LINEAR
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.leftover import Grouping, Leftover, leftover_of_one, leftover_of_two
from gpn_bayes.scores.mixed import MIXED, ONE_OR_EACH, categories_among
from gpn_bayes.scores.slower import curves_advice, interaction_advice, mixed_advice, student_advice

# Rows beyond the number of parents that the tests need.
_FEWEST_ROWS = 30
# Tails are called heavy where the excess kurtosis is both large and certain: at least this, and this many standard
# errors above 0, after the transformation of Anscombe & Glynn (1983). Of 730,000 normal samples of 50 to 1,000 rows,
# the largest z was 4.56, and those of no more than 100 rows stayed below 4.5.
_LEAST_KURTOSIS, _KURTOSIS_Z = 1.0, 4.5
# Skewness counts where categories could have variances of their own; normal noise has 0, and exponential noise 2.
_LEAST_SKEWNESS = 1.0
# Noise is called uneven where the test of Breusch & Pagan (1979), as Koenker (1981) made it robust to heavy tails,
# exceeds this (a p-value of 6e-7), and standard deviations differ by this factor.
_UNEVEN, _UNEVEN_RATIO = 25.0, 1.25
# From here on a number says no more than that one of the two is hardly there.
_MOST_UNEVEN = 100.0
# A column with one of these flags has no residuals worth a look, nor have those that depend on it: values that are no
# measurements, and rows that depend on each other, of which every check of residuals would take chance for a relation.
_SPOILING = frozenset({"sentinel", "identifier", "groups", "dependent rows"})
_SPOILT = _SPOILING | {"codes", "binary", "outliers", "time to event", "spike"}

_LEFTOVER = "leftover dependence"
# What is found, in this order: the kind of its flag, what it means and what to do; {} stands for advice that depends on
# what it would take on the table.
_ADVICE = {
    "curved": (_LEFTOVER, "Lines can't follow curves, and edges may be missing or spurious: {}"),
    "curved, mixed": (
        _LEFTOVER,
        "Lines can't follow curves, and edges may be missing or spurious: transform columns, or add one of squares.",
    ),
    "joint, mixed": (_LEFTOVER, "Parents seem to act together, which lines can't follow: add a column of products."),
    "missing": (
        _LEFTOVER,
        "Edges may be missing: allow more parents, or more candidates, and look again at what tiers and forbidden "
        "edges rule out.",
    ),
    "joint": (_LEFTOVER, "Parents seem to act together, which sums of functions can't follow: {}"),
    "heavy tails": (
        "heavy tails",
        "Normal noise has 0; heavier tails make edges look more certain than they are: look for outliers and "
        "curved relations, {}",
    ),
    "tails, mixed": (
        "heavy tails",
        "Skew and tails look like variances that differ between categories: 'cg' counts such differences the less the "
        "heavier the tails, but edges may still look too certain: transform the column, for instance by logarithms, "
        "{}",
    ),
    "tails, each": (
        "heavy tails",
        "Skew and tails look like variances that differ between categories, and edges like certain ones: transform the "
        "column, for instance by logarithms, or use score='cg', which takes tails into account.",
    ),
    "uneven noise": (
        "uneven noise",
        "Noise of unequal variance can distort edges and their directions: transform the column, for instance by "
        "logarithms, or look for curved relations.",
    ),
}
RESIDUAL_KINDS = frozenset(kind for kind, _ in _ADVICE.values())


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
    family: dict[str, tuple[int, ...]] = {}
    mixed = MIXED[0] in scorer.assumptions
    tails = "tails, mixed" if ONE_OR_EACH in scorer.assumptions else "tails, each"
    kinds = {name: {flag.kind for flag in known if name in flag.columns} & _SPOILT for name in spoilt}
    outlying = {name for name, own in kinds.items() if mixed and own == {"outliers"}}
    spoilt -= outlying
    among = categories_among(data) if mixed else np.zeros(len(data.names), dtype=bool)
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
        has_one = ~np.isnan(of_rows)
        residuals = of_rows[has_one]
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
        if name in outlying:
            # Of values that are far out, all that is left to say is what the score does with them.
            if shape := _skew_or_tails(residuals):
                seen[tails].append((name, shape))
            continue
        rows = grouping.of_rows(has_one)
        fitted = _fitted(residuals, data.values[has_one], node, [p for p in own if among[p]], mixed)
        widths = _unevenness(residuals, fitted) if own else None
        if one := leftover_of_one(residuals, rows, np.array(others, dtype=np.int64)):
            kind = "curved" if linear and not one.straight else "missing"
            seen[f"{kind}, mixed" if mixed and kind == "curved" else kind].append((name, _depends(one, data)))
        elif two := leftover_of_two(residuals, rows, own):
            seen["joint, mixed" if mixed else "joint"].append((name, _depends(two, data)))
            family.setdefault("joint", (node, *two.variables))
        elif widths is not None:
            seen["uneven noise"].append((name, widths))
        elif mixed and (shape := _skew_or_tails(residuals)):
            seen[tails].append((name, shape))
        elif not mixed and (kurtosis := _heavy_tails(residuals)) is not None:
            error = kurtosis_error(len(residuals))
            family.setdefault("heavy tails", (node, *own))
            seen["heavy tails"].append(
                (name, f"excess kurtosis of the residuals {kurtosis:.1f}, standard error {error:.1f}")
            )
    flags = [
        grouped(kind, seen[found], advice.format(_followable(found, data, family.get(found, ()))))
        for found, (kind, advice) in _ADVICE.items()
        if seen[found]
    ]
    return tuple(flag for flag in flags if flag is not None)


def _followable(found: str, data: Dataset, family: tuple[int, ...]) -> str:
    """Return the part of the advice that depends on how long it would take on this table."""
    if found == "curved":
        return curves_advice(data)
    if found == "tails, mixed":
        return mixed_advice(data)
    if found == "joint":
        return interaction_advice(data, family)
    return student_advice(data, family) if found == "heavy tails" else ""


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
    residuals = residuals / np.abs(residuals).max()  # in any unit, fourth powers are numbers
    squares = (residuals - residuals.mean()) ** 2
    excess = float((squares**2).mean() / squares.mean() ** 2 - 3)
    if excess < _LEAST_KURTOSIS:
        return None
    # Takes a second to load, and few tables need it.
    from scipy.stats import kurtosistest

    return excess if kurtosistest(residuals).statistic >= _KURTOSIS_Z else None


def _skew_or_tails(residuals: Floats) -> str:
    """Return the skewness and the excess kurtosis of residuals in words, if either is both large and certain."""
    from scipy.stats import skewtest

    left = residuals - residuals.mean()
    skewness = float((left**3).mean() / (left**2).mean() ** 1.5)
    kurtosis = float((left**4).mean() / (left**2).mean() ** 2 - 3)
    skewed = abs(skewness) >= _LEAST_SKEWNESS and abs(float(skewtest(residuals).statistic)) >= _KURTOSIS_Z
    if not skewed and _heavy_tails(residuals) is None:
        return ""
    return f"skewness {skewness:.1f} and excess kurtosis {kurtosis:.1f} of the residuals within categories"


def _fitted(residuals: Floats, values: Floats, node: int, categories: list[int], mixed: bool) -> Floats:
    """Return what parents explain; mixed scores have residuals of unit variance in each combination of categories."""
    fitted: Floats = values[:, node] - residuals
    if not mixed:
        return fitted
    group = np.zeros(len(values), dtype=np.int64)
    if categories:
        group = np.unique(values[:, categories], axis=0, return_inverse=True)[1].reshape(-1)
    for own in range(int(group.max()) + 1):
        rows = np.flatnonzero(group == own)
        left = residuals[rows] - residuals[rows].mean()
        # Least squares leave what no parent has a part in.
        unit = float(left @ values[rows, node] / (left @ left)) if np.ptp(left) > 0 else 0.0
        fitted[rows] = values[rows, node] - unit * residuals[rows]
    return fitted


def _unevenness(residuals: Floats, fitted: Floats) -> str | None:
    """Return how much wider residuals are in the upper third of fitted values than in the lower, if it matters."""
    if np.ptp(fitted) == 0 or np.ptp(np.abs(residuals)) == 0:
        return None
    strength = len(fitted) * np.corrcoef(residuals**2, fitted)[0, 1] ** 2
    lower, upper = np.quantile(fitted, [1 / 3, 2 / 3])
    low, high = float(residuals[fitted <= lower].std()), float(residuals[fitted >= upper].std())
    narrow, wide = sorted((low, high))
    if strength <= _UNEVEN or wide <= _UNEVEN_RATIO * narrow:
        return None
    where = "high" if high > low else "low"
    # A third of the rows may lie on the line: a value that all of them share, or copies of a parent.
    if wide > _MOST_UNEVEN * narrow:
        return f"hardly any residuals but where the fitted value is {where}"
    return f"residuals {wide / narrow:.1f} times as wide where the fitted value is {where}"
