"""What the API reference shows: its builder, and a walk over all public functions, classes and methods."""

import inspect
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

from tests.running import ROOT, load


class Public(NamedTuple):
    """A public name.

    Attributes
    ----------
    name : str
        As in the reference, such as "gpn_bayes.GraphPosterior.map".
    docstring : str
        Its own.
    owner : type or None
        The class of a method or property, as it is shown; None for functions and classes.
    """

    name: str
    docstring: str
    owner: type | None = None


def load_builder() -> ModuleType:
    """Return the script that builds the reference, as a module."""
    return load(ROOT / "docs" / "build.py")


def public_names(modules: list[ModuleType]) -> Iterator[Public]:
    """Yield every public function and class of modules, each class followed by its methods and properties."""
    for module in modules:
        for name in getattr(module, "__all__", None) or _own_names(module):
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield Public(f"{module.__name__}.{name}", value.__doc__ or "")
            if inspect.isclass(value):
                yield from members(value, f"{module.__name__}.{name}")


def members(owner: type, name: str) -> Iterator[Public]:
    """Yield the public methods and properties of a class, also those it inherits, unless from another package."""
    for member in dir(owner):
        function = _function_of(inspect.getattr_static(owner, member))
        if not member.startswith("_") and function is not None and not _is_foreign(function.__module__):
            yield Public(f"{name}.{member}", function.__doc__ or "", owner)


def _own_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _function_of(member: Any) -> Any:
    """Return the function behind a method or property; None for other attributes."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member if inspect.isfunction(member) else None


def _is_foreign(module: str) -> bool:
    return module.split(".")[0] not in ("gpn_bayes", "tests")
