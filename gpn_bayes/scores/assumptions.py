"""What scores assume about the data, as text; and the residuals by which some of it can be checked."""

import numpy as np

from gpn_bayes._util.types import Floats

EVEN_NOISE = "The noise has constant variance: it doesn't depend on the parents."
LINEAR = ("Every variable is a linear function of its parents plus normal noise.", EVEN_NOISE)
EQUIVALENCE = (
    "Directions within a Markov equivalence class are not identifiable from the data: networks that join the same "
    "pairs and have the same colliders (a -> c <- b, with a and b not joined) have the same score.",
)
EQUIVALENCE_OF_EXPERIMENTS = (
    "Directions within an interventional equivalence class are not identifiable from the data: an experiment "
    "determines the direction of an edge if it changed one end and not the other; others follow from these and from "
    "colliders.",
)
EXPERIMENTS = {
    "perfect": "Experiments set their targets and nothing else: in those rows a target doesn't depend on its parents.",
    "soft": "Experiments changed how their targets depend on their parents, and nothing else.",
    "unknown": "Each experiment may have changed how a variable depends on its parents, but not which ones they are.",
}
SMOOTH = "Every variable is a smooth function of its parents plus normal noise."
SMOOTH_STUDENT = (
    "Every variable is a smooth function of its parents plus noise of Student's t distribution with {:g} degrees of "
    "freedom: its tails are heavy, and outliers are expected."
)
LINEAR_OR_SMOOTH = "Every variable is a linear or a smooth function of its parents plus normal noise."
BEHIND_LEVELS = (
    "Behind every category are smooth functions of its parents: logistic noise is added to one of them, which is cut "
    "into levels that are ordered or two; where there are more without order, that level occurs whose function plus "
    "noise is largest."
)
ADDITIVE = "The effects of parents are additive: no parent changes the effect of another."
PAIRWISE = "The effects of parents and of pairs of parents are additive."
CURVED = (
    "Directions are learnt from the shape of curved relations: where a relation is close to a straight line, its "
    "direction is not identifiable, and a probability that favours one may be wrong."
)
CATEGORIES = (
    "Categories have no order: levels that are ordered or equally spaced are treated like any others.",
    "Every combination of the parents' levels has its own probabilities, so a large number of parents needs many rows.",
)
# Where a score needs numbers, what to do with a table that has categories too.
FOR_MIXED = "score='cg' and score='gp' take both"
LEAST_SQUARES = (
    "Every variable is a linear function of its parents plus noise, whose variance is the same for all variables in "
    "the units of the table.",
)


def linear_residuals(values: Floats, node: int, parents: tuple[int, ...], weights: Floats | None = None) -> Floats:
    """Return the residuals of the linear regression of a column on others, in which rows may have weights.

    Examples
    --------
    >>> x = np.arange(4.0)
    >>> linear_residuals(np.column_stack([x, 2 * x + [0, 1, 0, -1]]), 1, (0,)).round(1).tolist()
    [-0.6, 0.8, 0.2, -0.4]
    """
    chosen = values[:, [node, *parents]]
    chosen = chosen - np.average(chosen, axis=0, weights=weights)
    y, x = chosen[:, 0], chosen[:, 1:]
    if not parents:
        return y
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    return y - x @ np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)[0]
