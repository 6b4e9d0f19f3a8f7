"""What is drawn of a variable beside a posterior's predictions of it."""

from typing import Any, NamedTuple

from gpn_bayes._util.types import Floats


class VariableCheck(NamedTuple):
    """One variable of the data beside what a posterior predicts of it.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple
        Its levels, where it is a category: all values are then codes of these.
    observed : ndarray of shape (row,)
        The data.
    simulated : ndarray of shape (table, row)
        Tables drawn anew, each from a single DAG with a single draw of its parameters.
    pit : ndarray of shape (row,)
        The probability integral transform: that of a smaller value than the row's, given its parents and all other
        rows, averaged over DAGs. Uniform if the model is right. Categories: drawn between the probability of an earlier
        level and that of this one or an earlier.
    parent : str or None
        The most probable parent, if it is at least 0.1 probable.
    parent_levels : tuple
        Its levels.
    probability : float
        Of that edge.
    parent_observed, parent_simulated : ndarray
        The parent's values, as the variable's.
    residuals : ndarray of shape (row,), or None
        What all parents leave unexplained, averaged over DAGs; None for categories.
    """

    name: str
    levels: tuple[Any, ...]
    observed: Floats
    simulated: Floats
    pit: Floats
    parent: str | None
    parent_levels: tuple[Any, ...]
    probability: float
    parent_observed: Floats
    parent_simulated: Floats
    residuals: Floats | None
