"""Names of a package, and methods of a class, that are loaded when they are first used, so that imports stay quick."""

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


class Attached:
    """A function of another module as a method of a class; the module is loaded when the method is first looked up.

    From then on the class has the function itself, with its signature and docstring.

    Parameters
    ----------
    module, function : str
        Where it stands, and its name there.

    Examples
    --------
    >>> class Note(str):
    ...     short = Attached("textwrap", "shorten")
    >>> Note("as good as it gets").short(12), Note.short.__module__
    ('as [...]', 'textwrap')
    """

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __repr__(self) -> str:
        """Say where the function stands."""
        return f"<{self._module}.{self._function}, attached>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Put the function in its own place, and return it as it is found there."""
        function = getattr(import_module(self._module), self._function)
        setattr(self._owner, self._name, function)
        # Not by name: a subclass may have one of its own, which calls this.
        return function if instance is None else function.__get__(instance, owner)


class Shelf:
    """A module whose functions a class body takes as methods, without loading it: each is `Attached`.

    Parameters
    ----------
    module : str
        Its name.

    Examples
    --------
    >>> Shelf("operator").neg
    <operator.neg, attached>
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, function: str) -> Attached:
        """Return a function of the module, to be loaded later."""
        return Attached(self._module, function)
