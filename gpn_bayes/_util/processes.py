"""Processes of the package's own."""

import os
import sys
from pathlib import Path

import gpn_bayes


def interpreter(*arguments: str) -> list[str]:
    """Return the command of a new interpreter, which imports nothing from the folder that the user works in.

    Else a file there called ``numpy.py`` would be carried out in place of numpy.

    Examples
    --------
    >>> interpreter("-c", "import numpy")[1:]
    ['-P', '-c', 'import numpy']
    """
    return [sys.executable, "-P", *arguments]


def package_environment() -> dict[str, str]:
    """Return the environment in which a new interpreter finds the package that runs here.

    Examples
    --------
    >>> "PYTHONPATH" in package_environment()
    True
    """
    home = str(Path(gpn_bayes.__file__).parents[1])
    # An empty entry, as at the end of "PYTHONPATH=/mine:", stands for the folder that the user works in.
    paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
