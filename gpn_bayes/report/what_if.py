"""The effects that a report shows: what happens to one variable if another is set, computed ahead of time."""

from typing import Any

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.effect import Effect
from gpn_bayes.posterior.effects import PairEffects
from gpn_bayes.posterior.equations import given_data
from gpn_bayes.posterior.queries import edge_probabilities
from gpn_bayes.report.rounding import decimals_of, numbers

# Pairs from this probability of a directed path on are worth an effect.
EFFECTS_FROM = 0.01
# Linear effects take no time, but a few hundred bytes each; curves and tables take time, and so have fewer networks.
_MOST_SLOPES, _CURVE_DRAWS, _TABLE_DRAWS = 400, 120, 200
# Slopes invert one n x n matrix per network, at a cost of n³: the budget for all of them, and the fewest networks.
_INVERSION_COST, _FEWEST_DRAWS = 2_000_000_000, 100
# Odd, so that every third of them, which is listed, includes both ends.
_POINTS, _BINS = 13, 32
# Cells of all tables together: some 20 bytes each.
_MOST_CELLS = 6_000
_DECIMALS = 4


def effects_ahead(post: Draws, data: Any, paths: Floats, most: int) -> dict[str, Any]:
    """Return the effects of the pairs with the most probable directed paths, or why there are none.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    data : Dataset, optional
        The table, for a posterior that was saved without.
    paths : ndarray of shape (n, n)
        The probability of a directed path from each variable (row) to each (column).
    most : int
        Of how many pairs, where effects are curves or tables.

    Returns
    -------
    dict
        `missing`, why there are none, or an empty text; `quantity`, what effects are ("slope", "curve", "table", or
        "mixed" where pairs differ); `networks` and `all`, how many networks were averaged over, of how many; `left`,
        how many pairs were left out; `levels`, of tables and means, those of each variable (its number as text); and
        `pairs`, the largest effect first. A pair has `cause`, `outcome`, `quantity` (its own: "slope", "curve",
        "means", "table" or "curves") and `probability` (of any effect). A slope has `mean`, `sd`, `mcse`, `lower`,
        `upper`, `given` (the interval given a path), and the histogram of what isn't zero: `ends` and `shares` of the
        probability. A curve has `x` (first and last value of the cause), `mean`, `lower`, `upper`, `lowest` and
        `highest` (of single outcomes), each at evenly spaced values between, and `slope`, its mean and interval. Means
        have all of these but `x` and `slope`, at the levels of the cause. A table has `mean`, `lower` and `upper`,
        flat, the levels of the cause one after another, and so have curves, with values of the cause for levels.
    """
    content: dict[str, Any] = {
        "missing": "", "quantity": "", "networks": 0, "all": post.log_score.size, "left": 0, "levels": {}, "pairs": [],
    }  # fmt: skip
    post = given_data(post, data)
    try:
        quantity = PairEffects(post, 1, 0).quantity
    except ValueError as error:
        return content | {"missing": f"This report has no effects: {error}."}
    ranked = _ranked(post, paths)
    if not ranked:
        return content | {"missing": f"No directed path has a probability of {EFFECTS_FROM:g} or more."}
    if quantity != "slope" and most == 0:
        return content | {"missing": "Effects were left out of this report; post.effect computes them."}
    with one_blas_thread:
        content |= _computed(post, quantity, ranked[: _MOST_SLOPES if quantity == "slope" else most])
    return content | {"left": len(ranked) - len(content["pairs"])}


def _ranked(post: Draws, paths: Floats) -> list[tuple[int, int]]:
    """Return the pairs worth an effect, by falling probability of a path, then of an edge."""
    n = len(post.names)
    edges = edge_probabilities(post).to_numpy().ravel()
    flat = np.where(np.eye(n, dtype=bool), 0.0, paths).ravel()
    order = np.lexsort((-edges, -flat))
    i, j = np.divmod(order[flat[order] >= EFFECTS_FROM], n)
    return list(zip(i.tolist(), j.tolist(), strict=True))


def _draws(post: Draws, quantity: str) -> int | None:
    """Return over how many networks to average; None for all."""
    if quantity == "slope":
        affordable = max(_FEWEST_DRAWS, _INVERSION_COST // len(post.names) ** 3)
        return None if affordable >= post.log_score.size else affordable
    return _TABLE_DRAWS if quantity == "table" else _CURVE_DRAWS


def _computed(post: Draws, quantity: str, pairs: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the effects of some pairs; those that can't be computed are left out."""
    source = PairEffects(post, _draws(post, quantity), 0)
    spread = post.data.spreads()
    levels: dict[str, list[str]] = {}
    sized: list[tuple[float, dict[str, Any]]] = []
    missing, cells = "", 0
    for i, j in pairs:
        try:
            effect = source.effect(i, j, points=_POINTS)
        except ValueError as error:
            missing = f"This report has no effects: {error}."
            continue
        pair = {"cause": i, "outcome": j, "quantity": effect.quantity}
        pair |= {"probability": round(effect.probability, _DECIMALS)}
        if effect.quantity == "slope":
            sized.append((abs(effect.mean) * spread[i] / spread[j], pair | _slope(effect)))
        elif effect.quantity == "curve":
            sized.append((float(np.ptp(effect.mean.to_numpy())) / spread[j], pair | _curve(effect)))
        elif cells + effect.mean.size <= _MOST_CELLS:
            cells += effect.mean.size
            for node, name in ((i, "cause"), (j, "outcome")):
                if name in effect.mean.dims:
                    found = effect.mean[name].to_numpy().tolist()
                    levels[str(node)] = [f"{own:.4g}" if isinstance(own, float) else str(own) for own in found]
            if effect.quantity == "means":
                sized.append((float(np.ptp(effect.mean.to_numpy())) / spread[j], pair | _bands(effect)))
            else:
                sized.append((float(np.ptp(effect.mean.to_numpy(), axis=0).max()), pair | _table(effect)))
    sized.sort(key=lambda own: -own[0])
    return {
        "missing": "" if sized else missing,
        "quantity": quantity,
        "networks": len(source),
        "levels": levels,
        "pairs": [pair for _, pair in sized],
    }


def _slope(effect: Effect) -> dict[str, Any]:
    lower, upper = effect.interval(0.9)
    values, weights = effect.draws.to_numpy().ravel(), effect.weights.ravel() / effect.weights.sum()
    some = values != 0
    shares, edges = np.histogram(values[some], bins=_BINS, weights=weights[some])
    decimals = decimals_of(0.0, edges)
    described = numbers([effect.mean, effect.sd, effect.mcse, lower, upper], decimals)
    given = None if effect.given_path is None else numbers(effect.given_path.interval(0.9), decimals)
    return {
        "given": given,
        **dict(zip(("mean", "sd", "mcse", "lower", "upper"), described, strict=True)),
        "ends": numbers(edges[[0, -1]], decimals),
        "shares": numbers(shares, _DECIMALS),
    }


def _curve(effect: Effect) -> dict[str, Any]:
    at = effect.mean["cause"].to_numpy()[[0, -1]]
    assert effect.slope is not None  # as curves have
    slope = [effect.slope.mean, *effect.slope.interval(0.9)]
    return {"x": numbers(at, decimals_of(at)), **_bands(effect), "slope": numbers(slope, decimals_of(0.0, slope))}


def _bands(effect: Effect) -> dict[str, Any]:
    """Return the mean, its interval and that of single outcomes, at values or levels of the cause."""
    bands = (*effect.interval(0.9), *effect.outcome_interval(0.9))
    decimals = decimals_of(*bands)
    named = zip(("mean", "lower", "upper", "lowest", "highest"), (effect.mean, *bands), strict=True)
    return {name: numbers(values, decimals) for name, values in named}


def _table(effect: Effect) -> dict[str, Any]:
    named = zip(("mean", "lower", "upper"), (effect.mean, *effect.interval(0.9)), strict=True)
    return {name: numbers(values, _DECIMALS) for name, values in named}
