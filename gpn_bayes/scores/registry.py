"""Scores by name: those of this package, loaded when they are first asked for, and all others once they are defined.

A subclass of `gpn_bayes.scores.Score` with a `name` is entered here. What a file or a command names is looked up and
never imported, so that nothing but what is here can be made from a file.
"""

from importlib import import_module
from typing import Any

# Where the scores of this package stand.
_BUILT_IN = {
    "bge": ("gpn_bayes.scores.bge", "BGe"),
    "gp": ("gpn_bayes.scores.gp.score", "GP"),
    "bic": ("gpn_bayes.scores.bic", "BIC"),
    "bdeu": ("gpn_bayes.scores.discrete", "BDeu"),
    "k2": ("gpn_bayes.scores.discrete", "K2"),
    "cg": ("gpn_bayes.scores.cg", "CG"),
    "lasso": ("gpn_bayes.scores.lasso", "Lasso"),
}
# No likelihood, and dependent on units: only learners use it.
_ONLY_FOR_LEARNERS = ("lasso",)
# Those that users defined.
_registered: dict[str, type[Any]] = {}


def register(kind: type[Any]) -> None:
    """Enter a class of scores under its name; one that is defined again, as in a notebook, takes its own place.

    Parameters
    ----------
    kind : type
        The class, with a `name`.

    Raises
    ------
    ValueError
        For a name that another class has.
    """
    name, own = kind.name, (kind.__module__, kind.__qualname__)
    if not isinstance(name, str) or not name or name != name.lower():
        raise ValueError(f"the name of a score must be text in lower case; received {name!r}")
    known = _registered.get(name)
    other = _BUILT_IN.get(name) if known is None else (known.__module__, known.__qualname__)
    again = known is not None and "__main__" in (known.__module__, kind.__module__)  # in a notebook, under another name
    if other is not None and other != own and not again:
        raise ValueError(f"every score must have a name of its own; {name!r} is that of {'.'.join(other)}")
    if name not in _BUILT_IN:
        _registered[name] = kind


def find(name: Any) -> type[Any] | None:
    """Return the class of scores of this name; None where there is none.

    Examples
    --------
    >>> find("bge").__name__, find("my own")
    ('BGe', None)
    """
    if not isinstance(name, str):
        return None
    if name in _BUILT_IN:
        module, own = _BUILT_IN[name]
        kind: type[Any] = getattr(import_module(module), own)
        return kind
    return _registered.get(name)


def is_own(name: str) -> bool:
    """Tell whether a score of this name was defined by a user.

    Examples
    --------
    >>> is_own("bge")
    False
    """
    return name in _registered


def title(name: str) -> str:
    """Return the name of the class of scores of this name; the name itself where there is none.

    Examples
    --------
    >>> title("bge"), title("my own")
    ('BGe', 'my own')
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name][1]
    return _registered[name].__name__ if name in _registered else name


def names() -> tuple[str, ...]:
    """Return the names of all scores that networks can be drawn under: those of this package, then all others.

    Examples
    --------
    >>> names()[:6]
    ('bge', 'gp', 'bic', 'bdeu', 'k2', 'cg')
    """
    return (*(name for name in _BUILT_IN if name not in _ONLY_FOR_LEARNERS), *_registered)
