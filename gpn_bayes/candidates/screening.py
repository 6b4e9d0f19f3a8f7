"""Which variables tell most about each variable: by correlation, distance correlation, or forward selection."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.scores.cache import ScoreCache

# Rows that distance correlations are computed from, drawn with a fixed seed where there are more.
MAX_DISTANCE_ROWS = 1000
# Numbers held at once while products of distances are summed: 64 MB.
_BLOCK = 8_000_000
# Mean squared distances of standardised values below this are zero.
_ROUNDING = 1e-20
# What a parent must add to the score, in nats. Scores charge for parents themselves: the best of many that have nothing
# to do with a node comes out near zero, so this lets some of them in, and all that the score favours.
MARGIN = 0.0


def distance_correlations(values: np.ndarray, max_rows: int = MAX_DISTANCE_ROWS) -> np.ndarray:
    """Return the bias-corrected squared distance correlations of all pairs of columns.

    They are near zero, on either side, for independent columns, and positive for any kind of dependence, for which
    a correlation may be zero (Székely & Rizzo 2014).

    Parameters
    ----------
    values : ndarray of shape (rows, n)
        At least four rows; every column must vary.
    max_rows : int
        Of more rows, this many are drawn with a fixed seed.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=500)
    >>> correlations = distance_correlations(np.column_stack([x, x**2, np.random.default_rng(2).normal(size=500)]))
    >>> correlations.round(1).tolist()
    [[1.0, 0.3, -0.0], [0.3, 1.0, -0.0], [-0.0, -0.0, 1.0]]
    """
    if len(values) < 4:
        raise ValueError(f"distance correlations need at least 4 rows; received {len(values)}")
    if len(values) > max_rows:
        values = values[np.sort(np.random.default_rng(0).choice(len(values), max_rows, replace=False))]
    columns = np.ascontiguousarray((values - values.mean(axis=0)).T / values.std(axis=0)[:, None])
    rows = columns.shape[1]
    row_sums = _distance_sums(columns)
    totals = row_sums.sum(axis=1, keepdims=True) / ((rows - 1) * (rows - 2))
    row_sums /= rows - 2
    products = np.zeros((len(columns), len(columns)))
    step = max(1, _BLOCK // columns.size)
    for begin in range(0, rows, step):
        block = slice(begin, begin + step)
        centred = np.abs(columns[:, block, None] - columns[:, None, :])
        centred -= row_sums[:, block, None] + row_sums[:, None, :]
        centred += totals[:, :, None]
        # A row has no distance to itself to be centred.
        centred[:, np.arange(centred.shape[1]), np.arange(begin, begin + centred.shape[1])] = 0.0
        flat = centred.reshape(len(columns), -1)
        products += flat @ flat.T
    # Few rows, such as 0, 1, 1, 2, can leave nothing but rounding of a column that varies: it then says nothing.
    squares = np.diag(products)
    scale = np.sqrt(np.where(squares > _ROUNDING * rows**2, squares, np.inf))
    correlations: Floats = products / np.outer(scale, scale)
    return correlations


def _distance_sums(columns: Floats) -> Floats:
    """Return the sum of the distances from each entry of a column to all others, by sorting."""
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    rows = columns.shape[1]
    below = np.cumsum(ordered, axis=1)
    sums = ordered * (2 * np.arange(rows) + 2 - rows) - 2 * below + below[:, -1:]
    result: Floats = np.empty_like(sums)
    np.put_along_axis(result, order, sums, axis=1)
    return result


def strongest(strengths: np.ndarray, allowed: np.ndarray, limit: int) -> list[list[int]]:
    """Return for each variable the others of greatest strength, strongest first.

    Parameters
    ----------
    strengths : ndarray of shape (n, n)
        Column i ranks the candidates of variable i.
    allowed : ndarray of bool, shape (n, n)
        Who may be a candidate of whom.
    limit : int
        Longest list.

    Examples
    --------
    >>> strengths = np.array([[1, 0.2, 0.5], [0.2, 1, 0.3], [0.5, 0.3, 1]])
    >>> strongest(strengths, ~np.eye(3, dtype=bool), 1)
    [[2], [2], [0]]
    """
    lists = []
    for i in range(len(strengths)):
        possible = np.flatnonzero(allowed[:, i])
        order = np.argsort(-strengths[possible, i], kind="stable")
        lists.append(possible[order][:limit].tolist())
    return lists


def forward_selection(
    store: ScoreCache,
    pools: Sequence[Iterable[int]],
    start: Sequence[Iterable[int]] | None = None,
    limit: int = 12,
    margin: float = MARGIN,
    at_least: int = 0,
    executor: Executor | None = None,
    progressbar: bool = True,
) -> list[list[int]]:
    """Return for each node the parents that forward selection under a score adds, in the order they are added.

    All nodes go together: in each step the scores of all nodes' sets, one larger, are computed at once. For linear
    relations this finds parents, children and the children's other parents.

    Parameters
    ----------
    store : ScoreCache
        The score. Those without a closed form are kept there.
    pools : sequence of iterable of int
        For each node, whom to choose from.
    start : sequence of iterable of int, optional
        For each node, parents that it has from the beginning; they count towards the limit.
    limit : int, default 12
        Largest number of parents.
    margin : float, default 0
        A node stops when its best addition raises the score by no more than this.
    at_least : int, default 0
        Number of parents, those of the start included, up to which a node takes the best addition whatever it does to
        the score.
    executor, progressbar
        As for `ScoreCache.fill`.

    Examples
    --------
    >>> from gpn_bayes.scores.bge import BGe
    >>> x = np.random.default_rng(1).normal(size=(200, 3))
    >>> x[:, 2] += x[:, 0]
    >>> forward_selection(ScoreCache(BGe().bind(x)), [[1, 2], [0, 2], [0, 1]])
    [[2], [], [0]]
    """
    n = len(store.scorer.names)
    begun = [tuple(sorted(own)) for own in start] if start is not None else [()] * n
    added: list[list[int]] = [[] for _ in range(n)]
    left = [[j for j in pool if j not in begun[i]] for i, pool in enumerate(pools)]
    best = _scores(store, {i: [begun[i]] for i in range(n)}, limit, executor, progressbar)
    scores = {i: float(values[0]) for i, values in best.items()}
    active = list(range(n))
    while active:
        active = [i for i in active if left[i] and len(begun[i]) + len(added[i]) < limit]
        sets = {i: [tuple(sorted((*begun[i], *added[i], j))) for j in left[i]] for i in active}
        improved = []
        for i, values in _scores(store, sets, limit, executor, progressbar).items():
            place = int(np.argmax(values))
            too_few = len(begun[i]) + len(added[i]) < at_least
            if values[place] > (-np.inf if too_few else scores[i] + margin):
                scores[i] = float(values[place])
                added[i].append(left[i].pop(place))
                improved.append(i)
        active = improved
    return added


def _scores(
    store: ScoreCache,
    sets: dict[int, list[tuple[int, ...]]],
    limit: int,
    executor: Executor | None,
    progressbar: bool,
) -> dict[int, np.ndarray]:
    """Return the scores of several sets of several nodes."""
    if store.scorer.closed_form:
        # Computing these again takes less than keeping them.
        return {i: store.scorer.score_sets(i, own).values for i, own in sets.items()}
    requests = ((i, parents) for i, own in sets.items() for parents in own)
    # Each step has a bar of its own, since larger sets take longer and nobody knows how many steps follow.
    size = max((len(parents) for own in sets.values() for parents in own), default=0)
    store.fill(requests, executor, progressbar, description=f"Candidates, sets of {size} of at most {limit}")
    return {i: store.values(i, own) for i, own in sets.items()}
