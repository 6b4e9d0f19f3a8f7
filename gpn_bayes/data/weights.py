"""Weights of rows: frequencies, by which rows are repeated, and survey weights, which scores take."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes._util.checks import shown
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.types import Floats, Ints

# Rows are repeated by their frequencies up to this many in all; beyond, frequencies are kept as weights.
MOST_REPEATED = 100_000
_EXACT = 2**53  # up to here all whole numbers are floats
# What answers from survey weights assume.
SURVEY = (
    "Survey weights count as frequencies that add up to the number of rows: answers describe the population, but they "
    "are as certain as if these rows had been drawn from it at random; the design of the survey is ignored."
)
_PACKAGE = (str(Path(__file__).parents[1]),)


def check_weights(given: Any, labels: Any, word: str) -> Floats:
    """Return the weights of rows as numbers.

    Parameters
    ----------
    given : sequence
        A weight for each row.
    labels : sequence
        What the rows are called in messages, by this `word`.

    Raises
    ------
    ValueError
        For weights that are missing, negative, infinite or no numbers, and where fewer than two rows have one above 0.

    Examples
    --------
    >>> check_weights([2, 0, 1], ["a", "b", "c"], "row").tolist()
    [2.0, 0.0, 1.0]
    """
    weights = np.empty(len(given))
    for place, weight in enumerate(given):
        try:
            weights[place] = np.nan if weight is None else float(weight)
        except (TypeError, ValueError):
            weights[place] = np.nan
        if not 0 <= weights[place] < np.inf:
            raise ValueError(
                f"weights must be numbers, 0 or more, in every row; received {shown(weight)} in {word} {labels[place]}"
            )
    if not weights.sum() < _EXACT:
        raise ValueError(f"weights must add up to less than 2^53; they add up to {weights.sum():g}")
    if (weights > 0).sum() < 2:
        raise ValueError(f"at least two rows must have a weight above 0; received {(weights > 0).sum()}")
    return weights


def are_frequencies(weights: Floats) -> bool:
    """Tell whether weights are whole numbers, which say how often a row stands there.

    Examples
    --------
    >>> are_frequencies(np.array([1.0, 3.0])), are_frequencies(np.array([0.5, 3.0]))
    (True, False)
    """
    return bool((weights == np.floor(weights)).all())


def repetitions(weights: Floats) -> Ints | None:
    """Return the places of rows, each as often as its frequency says; None where that would be too many.

    Examples
    --------
    >>> repetitions(np.array([1.0, 3.0])).tolist(), repetitions(np.array([1e6, 3.0])) is None
    ([0, 1, 1, 1], True)
    """
    if weights.sum() > MOST_REPEATED:
        return None
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def scaled(weights: Floats) -> Floats:
    """Return survey weights such that they add up to the number of rows.

    Examples
    --------
    >>> scaled(np.array([0.5, 1.0, 0.5])).tolist()
    [0.75, 1.5, 0.75]
    """
    return weights * (len(weights) / weights.sum())


def warn_of_survey_weights(weights: Floats) -> None:
    """Say in one line what answers from survey weights mean."""
    rows, worth = len(weights), effective_size(weights)
    warnings.warn(
        f"weights that aren't whole numbers are survey weights, here scaled to add up to the {rows} rows: answers "
        "describe the population, but are as certain as if these rows had been drawn from it at random; the design of "
        f"the survey is ignored (by Kish's formula, such weights leave the information of {worth:.0f} rows)",
        UserWarning,
        skip_file_prefixes=_PACKAGE,
    )


def refuse_weights(data: Any, what: str) -> None:
    """Refuse a table whose rows have weights where all rows count alike.

    Parameters
    ----------
    data : Dataset or other
        The table.
    what : str
        What takes no weights, for the message.
    """
    if getattr(data, "weights", None) is not None:
        raise ValueError(
            f"{what} takes rows that all count alike; received weights of rows, which scores take (gpn.sample, Exact, "
            "HillClimbing)"
        )


def weighted_sums(values: Floats, weights: Floats | None) -> tuple[float, float, float]:
    """Return the number of rows, and the sums of their values and of the squares of these; each by its weight.

    Examples
    --------
    >>> weighted_sums(np.array([1.0, 3.0]), np.array([2.0, 0.5]))
    (2.5, 3.5, 6.5)
    """
    if weights is None:
        return float(len(values)), float(values.sum()), float(values @ values)
    return float(weights.sum()), float(weights @ values), float(weights @ values**2)
