"""Checks of single arguments, with the one wording all share."""

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what isn't a whole number, or is below the least.

    Examples
    --------
    >>> check_whole("n_rows", 0, 1)
    Traceback (most recent call last):
    ValueError: n_rows must be a whole number, at least 1; received 0
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; received {value!r}")
