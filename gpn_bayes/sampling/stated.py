"""What was said of a table, as settings keep it, so that a report can print the call that draws the same."""

from collections.abc import Mapping
from typing import Any

from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.data.keywords import KEYWORDS, Described, given_names, settings_of, value_of

# What settings keep elsewhere: "missing" and "interventions".
_KEPT_ELSEWHERE = ("missing", "imputations", "intervention", "target_probability", "target_penalty")


def stated_of(data: Any, keywords: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what was said of a table, JSON-able: its columns' kinds, how it was read, and columns about its rows.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Table, Dataset or SufficientStatistics
        The data, which can be read with the keywords.
    keywords : mapping
        What was said of them besides.

    Returns
    -------
    dict or None
        By keyword, without those that have their defaults, and without sequences that have an entry for each row; None
        where it can't be told, of a table that was read before.

    Examples
    --------
    >>> import numpy as np
    >>> import gpn_bayes as gpn
    >>> table = gpn.Table(np.array([[0.5, 1.0], [1.5, 4.0]]), drop="v2", weights=[1, 2])
    >>> stated_of(table, {"kinds": {"v1": "number"}})
    {'kinds': {'v1': 'number'}, 'drop': ['v2']}
    >>> stated_of(gpn.Dataset.read(np.eye(2)), {}) is None
    True
    """
    if isinstance(data, Described):
        data, keywords = data.data, data.joined(keywords)
    if isinstance(data, Dataset | SufficientStatistics):
        return None
    settings = settings_of(keywords)
    given = {name: value_of(settings, name) for name in given_names(settings) if name not in _KEPT_ELSEWHERE}
    return {name: _plain(own) for name, own in given.items() if isinstance(own, str) or not KEYWORDS[name].of_rows}


def _plain(value: Any) -> Any:
    """Return the value of a keyword as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(own) for own in value]
    return value if isinstance(value, str) else int(value)
