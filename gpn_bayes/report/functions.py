"""The fitted curves of a report: how variables depend on their parents, as numbers."""

from typing import Any

import numpy as np

from gpn_bayes.posterior.curves import fitted_curves, has_curves
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.queries import edge_probabilities

# Parents from this probability on have a curve.
CURVES_FROM = 0.1
_POINTS = 60
# Dots of a curve at most; more can't be told apart, and the file must stay small.
_DOTS = 300


def functions_of(post: Draws, data: Any, most: int) -> dict[str, Any]:
    """Return the curves of the variables with the most probable parents, or why there are none.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    data : DataFrame, ndarray, path or Dataset, optional
        The table, for a posterior that was loaded.
    most : int
        Of how many variables.

    Returns
    -------
    dict
        `missing`, why there are none, or an empty text; `of`, for each variable with curves (its number as text) a list
        of them: `parent`, `x` (first and last value of the parent), `mean`, `lower`, `upper` (at evenly spaced values
        between) and `dots`; `levels`, for each of these its parents that are categories, which have none; `left`, the
        variables with probable parents that have no curves; `rows`, every variable's values at the rows that the dots
        are of; and `shown` and `all`, how many rows those are.
    """
    content: dict[str, Any] = {
        "missing": _missing(post, data),
        "of": {},
        "levels": {},
        "left": [],
        "rows": {},
        "shown": 0,
        "all": 0,
    }
    if content["missing"]:
        return content
    largest = edge_probabilities(post).to_numpy().max(axis=0)
    ranked = [int(node) for node in np.argsort(-largest, kind="stable") if largest[node] >= CURVES_FROM]
    content["left"] = ranked[most:]
    for node in ranked[:most]:
        # Of categories there are effects, but no curves.
        if has_curves(post, node, data):
            _add_curves(content, post, node, data)
    return content


def _missing(post: Draws, data: Any) -> str:
    score = post.record.score_title("an unknown score")
    if score != "GP":
        return f"Curves come with the Gaussian-process score (gp); this network was scored by {score}."
    if post.record.score_parameters.get("noise", "normal") != "normal":
        return "Curves come with normal noise; this network was scored with Student t noise."
    if data is None and post.data is None:
        return "Curves need the rows, and this posterior was saved without them: give them to report as data."
    if getattr(post.data if data is None else data, "missing", None) is not None:
        return "Curves need a complete table, and some of its values are missing."
    return ""


def _add_curves(found: dict[str, Any], post: Draws, node: int, data: Any) -> None:
    """Compute the curves of one variable, and note the rows they need."""
    lines, points, categories = fitted_curves(post, node, data, threshold=CURVES_FROM, points=_POINTS)
    found["levels"][str(node)] = [post.names.index(name) for name in categories]
    curves = []
    for parent, line in lines.groupby("parent", sort=False):
        if parent in categories:
            continue
        own = points[points["parent"] == parent]
        rows = _some_rows(len(own))
        number = post.names.index(str(parent))
        curves.append(
            {
                "parent": number,
                "x": _short(line["x"].iloc[[0, -1]]),
                **{name: _short(line[name]) for name in ("mean", "lower", "upper")},
                "dots": _short(own["adjusted"].iloc[rows]),
            }
        )
        found["rows"][str(number)] = _short(own["x"].iloc[rows])
        found["shown"], found["all"] = len(rows), len(own)
    found["of"][str(node)] = curves


def _some_rows(count: int) -> np.ndarray:
    """Return the rows to show, the same for all curves: all of them, or some at random."""
    if count <= _DOTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, _DOTS, replace=False))


def _short(values: Any) -> list[float]:
    """Return numbers with as many digits as a picture can show."""
    return [float(f"{value:.4g}") for value in np.asarray(values, dtype=float)]
