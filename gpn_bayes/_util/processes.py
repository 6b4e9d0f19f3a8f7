"""Processes of the package's own."""

import os
from pathlib import Path

import gpn_bayes


def package_environment() -> dict[str, str]:
    """Return the environment in which a new interpreter finds the package that runs here.

    Examples
    --------
    >>> "PYTHONPATH" in package_environment()
    True
    """
    home = str(Path(gpn_bayes.__file__).parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
