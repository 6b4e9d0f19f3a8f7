"""Sources of randomness, from what users give for one."""

from contextlib import suppress
from typing import Any

import numpy as np

from gpn_bayes._util.checks import shown


def generator(name: str, seed: Any) -> np.random.Generator:
    """Return the generator that a seed stands for, or refuse what can't be one.

    Parameters
    ----------
    name : str
        What the setting is called.
    seed : int, SeedSequence, Generator or None
        None for another generator every time.

    Examples
    --------
    >>> int(generator("random_seed", 1).integers(100))
    47
    >>> generator("random_seed", "one")
    Traceback (most recent call last):
    ValueError: random_seed must be a whole number, 0 or more, a numpy generator or None; received 'one'
    """
    with suppress(TypeError, ValueError):
        # True is a number to numpy, and "1" stands for one.
        if not isinstance(seed, bool | str):
            return np.random.default_rng(seed)
    raise ValueError(f"{name} must be a whole number, 0 or more, a numpy generator or None; received {shown(seed)}")
