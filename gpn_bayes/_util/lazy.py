"""Names of a package that are loaded when they are first used, so that importing it stays quick."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    names : mapping of str to str
        The modules that hold the public names.
    modules : mapping of str to str, optional
        Modules that are public names themselves, and where they stand.

    Examples
    --------
    >>> get, listed = lazily("mathematics", {"gcd": "math"}, {"numbers": "fractions"})
    >>> get("gcd")(12, 18), get("numbers").__name__, listed()
    (6, 'fractions', ['gcd', 'numbers'])
    >>> get("lcd")
    Traceback (most recent call last):
    AttributeError: module 'mathematics' has no attribute 'lcd'
    """
    homes = modules or {}

    def get(name: str) -> Any:
        if name in homes:
            return import_module(homes[name])
        if name in names:
            return getattr(import_module(names[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*names, *homes])
